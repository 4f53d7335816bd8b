"""A model of the transformers library on this machine: many samples of one context, and the scores of given texts.

The context is read once and shared by all samples, rows that have stopped leave the batch, and after an edit only
what follows the common beginning is read again. Every sample draws from its own seed, independent of the others.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import Any

from core.errors import OvertonError, TooLong
from core.generation import loading, memory
from core.generation.base import OnText, Sample, Sampling, TokenTrace, check_fits
from core.generation.batch import in_batches
from core.generation.network import Cancelled, network
from core.generation.reader import TokenReader
from core.generation.rows import Row
from core.generation.scoring import score
from core.heavy import LOADING

_CONTEXTS = 2**30  # bytes for remembered contexts, or a tenth of the free memory if that is less


class LocalGenerator:
    """A causal language model from a folder or a hub id, on CUDA, MPS or CPU.

    `make_room` is called before the model is loaded, with the bytes that it will take and the device; it may raise
    `OvertonError`.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        model: str | None = None,
        revision: str = "",
        make_room: Callable[[int, str], None] | None = None,
    ) -> None:
        self.model = model or str(source)
        self.revision = revision
        self._lock = Lock()
        try:
            if revision == "hub":
                source = loading.hub_files(str(source))
            with LOADING:
                self._load(Path(source), make_room)
        except OvertonError:
            raise
        except Exception as error:  # the libraries raise many types: network, format, unknown architecture
            raise OvertonError(
                f"The model {self.model} cannot be loaded: give a model of the catalogue, a folder in the format of "
                f"transformers, or a hub id that this machine can reach ({type(error).__name__})."
            ) from error
        config = self._network.net.config
        if revision == "hub":
            self.revision = str(getattr(config, "_commit_hash", None) or Path(source).name)[:12]
        self._reader = TokenReader(self.model, self.revision, self._tokenizer, config)
        self.chat, self.limit = self._reader.chat, self._reader.limit
        self._ends = self._end_ids()

    def _load(self, folder: Path, make_room: Callable[[int, str], None] | None) -> None:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        self.device = loading.device()
        if make_room is not None:
            make_room(loading.size_in_memory(folder, self.device), self.device)
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        net: Any = AutoModelForCausalLM.from_pretrained(folder, dtype=loading.dtype_for(self.device))
        net.to(self.device).eval()
        self._size = sum(int(p.nbytes) for p in net.parameters())
        self._network: Any = network(net, min(_CONTEXTS, memory.available(self.device) // 10))

    def _end_ids(self) -> set[int]:
        declared = self._network.net.generation_config.eos_token_id
        ids = set(declared) if isinstance(declared, list) else {declared}
        ids.add(self._tokenizer.eos_token_id)
        return {int(i) for i in ids if i is not None}

    def close(self) -> None:
        """Free the memory of the model; it can count tokens afterwards, but no longer generate."""
        with self._lock:
            self._network = None
            gc.collect()  # layers and network refer to each other: without it the weights would stay for a while
            if self.device == "cuda":
                import torch

                torch.cuda.empty_cache()

    def held(self) -> Mapping[str, int]:
        """What is in memory: bytes of `weights`; `contexts` that are remembered, their `tokens` and `bytes`.

        `reused` counts the tokens of the last context that were not read again.
        """
        net = self._network
        if net is None:
            return {"weights": 0, "contexts": 0, "tokens": 0, "bytes": 0, "reused": 0}
        kept = net.contexts
        counts = {"contexts": len(kept), "tokens": kept.tokens, "bytes": kept.nbytes, "reused": kept.reused}
        return {"weights": self._size, **counts}

    # -- text and tokens ---------------------------------------------------------------------------------------

    def encode(self, context: str) -> list[int]:
        """The token ids of a context, with exactly one BOS where the model wants one."""
        return self._reader.encode(context)

    def count_tokens(self, context: str) -> int:
        """Number of tokens that the model reads for this context, special tokens included."""
        return self._reader.count_tokens(context)

    def chat_context(self, prompt: str) -> str:
        """The model's own chat template around one user message. Raises `OvertonError` without a template."""
        return self._reader.chat_context(prompt)

    def chat_messages(self, messages: Sequence[Mapping[str, str]]) -> str:
        """The model's own chat template around messages; see `core.generation.reader.TokenReader`."""
        return self._reader.chat_messages(messages)

    # -- generating --------------------------------------------------------------------------------------------

    def generate(
        self,
        context: str,
        seeds: Sequence[int],
        sampling: Sampling,
        *,
        cancel: Event | None = None,
        on_text: OnText | None = None,
    ) -> Iterator[Sample]:
        """Yield one `Sample` per seed as they finish; see `core.generation.base.Generator`."""
        sampling.check()
        check_fits(self, context, sampling)
        ids = self._begun(context)
        if any(seed < 0 for seed in seeds):
            raise OvertonError("A seed must be 0 or more.")
        rows = [Row(index, seed, sampling, self._tokenizer) for index, seed in enumerate(seeds)]
        try:
            with self._busy(cancel) as net:
                yield from in_batches(net, ids, rows, self._ends | self._reader.special(sampling.stop), on_text)
        except Cancelled:
            yield from [row.sample("cancelled") for row in rows]

    def _begun(self, context: str) -> list[int]:
        """The token ids of a context. Raises `OvertonError` for none: a model continues something."""
        ids = self.encode(context)
        if not ids:
            raise OvertonError(f"The context is empty, and {self.model} has no token to begin with: write a context.")
        return ids

    @contextmanager
    def _busy(self, cancel: Event | None) -> Iterator[Any]:
        """The network for one piece of work at a time. Raises `Cancelled` for one that is stopped while it waits."""
        while not self._lock.acquire(timeout=0.1):
            if cancel is not None and cancel.is_set():
                raise Cancelled
        try:
            net = self._network
            if net is None:
                raise OvertonError(f"{self.model} has left the memory to make room for another model: start again.")
            net.cancel = cancel
            try:
                yield net
            finally:
                net.cancel = None
                net.end()
        finally:
            self._lock.release()

    def score(self, context: str, texts: Sequence[str], *, cancel: Event | None = None) -> list[TokenTrace]:
        """What the model thinks of given texts after a context: one trace a text, teacher-forced, in batches.

        Ids, log-probabilities and entropies (nats) of the tokens of each text; an empty text has none. Raises
        `TooLong` where context and text exceed the model's limit, and `OvertonError` where `cancel` is set.
        """
        ids = self._begun(context)
        wanted = [self._continuation(context, ids, text) for text in texts]
        longest = max(map(len, wanted), default=0)
        if len(ids) + longest > self.limit:
            raise TooLong(
                f"The context has {len(ids)} tokens and the longest text {longest} more, but {self.model} reads at "
                f"most {self.limit}: shorten one of them."
            )
        try:
            with self._busy(cancel) as net:
                return score(net, ids, wanted)
        except Cancelled as stopped:
            raise OvertonError("Scoring was stopped before it was done.") from stopped

    def _continuation(self, context: str, ids: list[int], text: str) -> list[int]:
        """The ids of `text` as they follow the context, or by themselves where the border falls inside a token."""
        whole = self.encode(context + text)
        if whole[: len(ids)] == ids:
            return whole[len(ids) :]
        return self._reader.bare(text)
