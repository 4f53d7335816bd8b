"""A model of the transformers library on this machine: many samples of one context.

The context is read once, its cache is shared by all samples, and rows that have stopped leave the batch.
Every sample draws from its own seed, independent of the other rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock
from typing import Any

from core.errors import OvertonError
from core.generation.base import OnText, Sample, Sampling, check_fits, holds_back, trim_at_stop
from core.heavy import LOADING


@dataclass
class _Row:
    """One sample that is still growing."""

    index: int
    seed: int
    draw: Any
    ids: list[int] = field(default_factory=list)
    text: str = ""


class LocalGenerator:
    """A causal language model from a folder or a hub id, on CUDA, MPS or CPU."""

    def __init__(
        self,
        source: str | Path,
        *,
        model: str | None = None,
        revision: str = "",
        make_room: Callable[[int], None] | None = None,
    ) -> None:
        self.model = model or str(source)
        self.revision = revision
        try:
            if revision == "hub":
                source = hub_files(str(source))
            with LOADING:
                self._load(source)
        except Exception as error:  # the libraries raise many types: network, format, unknown architecture
            raise OvertonError(
                f"The model {self.model} cannot be loaded: give a model of the catalogue, a folder in the format of "
                f"transformers, or a hub id that this machine can reach ({type(error).__name__})."
            ) from error
        if revision == "hub":
            self.revision = str(getattr(self._net.config, "_commit_hash", None) or Path(source).name)[:12]
        self.chat = bool(self._tokenizer.chat_template)
        self.limit = int(getattr(self._net.config, "max_position_embeddings", 0) or 2048)
        self._lock = Lock()
        takes = inspect.signature(self._net.forward).parameters
        self._cache_argument = "cache" if "cache" in takes else "past_key_values"
        self._ends = self._end_ids()
        self._adds_bos = self._tokenizer.bos_token_id is not None and (
            self._tokenizer("a")["input_ids"][:1] == [self._tokenizer.bos_token_id]
        )

    def _load(self, source: str | Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
        self._device = "cuda" if cuda else "mps" if mps else "cpu"
        self._tokenizer: Any = AutoTokenizer.from_pretrained(source)
        self._net: Any = AutoModelForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
        self._net.to(self._device).eval()

    def _end_ids(self) -> set[int]:
        declared = self._net.generation_config.eos_token_id
        ids = set(declared) if isinstance(declared, list) else {declared}
        ids.add(self._tokenizer.eos_token_id)
        return {int(i) for i in ids if i is not None}

    def _encode(self, context: str) -> list[int]:
        # The library would add a second BOS to a chat template that already starts with one.
        bos = self._tokenizer.bos_token
        ids = list(self._tokenizer(context, add_special_tokens=False)["input_ids"])
        if self._adds_bos and not (bos and context.startswith(bos)):
            ids.insert(0, self._tokenizer.bos_token_id)
        return ids

    def count_tokens(self, context: str) -> int:
        """Number of tokens that the model reads for this context, special tokens included."""
        return len(self._encode(context))

    def chat_context(self, prompt: str) -> str:
        """The model's own chat template around one user message. Raises `OvertonError` without a template."""
        if not self.chat:
            raise OvertonError(f"{self.model} has no chat template: use the query/answer format.")
        message = [{"role": "user", "content": prompt}]
        return str(self._tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))

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
        import torch

        sampling.check()
        check_fits(self, context, sampling)
        with self._lock:
            rows = [_Row(k, seed, torch.Generator().manual_seed(seed)) for k, seed in enumerate(seeds)]
            steps = self._steps(self._encode(context), rows, sampling)
            for _ in range(sampling.max_new_tokens):
                if cancel is not None and cancel.is_set():
                    break
                live = next(steps)
                finished = [(row, reason) for row in live if (reason := self._advance(row, sampling, on_text))]
                for row, reason in finished:
                    rows.remove(row)
                    yield Sample(row.index, row.text, reason, len(row.ids), row.seed)
                if not rows:
                    return
            stopped = cancel is not None and cancel.is_set()
            for row in rows:
                yield Sample(row.index, row.text, "cancelled" if stopped else "length", len(row.ids), row.seed)

    def _forward(self, ids: Any, cache: Any) -> Any:
        """Logits (rows, vocabulary) after the last of `ids` (rows, tokens); the cache grows."""
        options = {self._cache_argument: cache, "use_cache": True, "logits_to_keep": 1}
        return self._net(ids, **options).logits[:, -1]

    def _advance(self, row: _Row, sampling: Sampling, on_text: OnText | None) -> str | None:
        """Update a row's text after a new token; the finish reason where it has ended."""
        ended = row.ids[-1] in self._ends
        ids = row.ids[:-1] if ended else row.ids
        text = self._tokenizer.decode(ids, skip_special_tokens=True)
        row.text, stopped = trim_at_stop(text, sampling.stop)
        if on_text is not None:
            shown = row.text if stopped else row.text[: len(row.text) - holds_back(row.text, sampling.stop)]
            on_text(row.index, shown.rstrip("\ufffd"), len(row.ids))
        if stopped or ended:
            return "stop"
        return "length" if len(row.ids) >= sampling.max_new_tokens else None

    def _steps(self, ids: list[int], rows: list[_Row], sampling: Sampling) -> Iterator[list[_Row]]:
        """Endlessly: append one token to each live row, yield the rows; the caller removes those that ended."""
        import torch
        from transformers import DynamicCache

        with torch.inference_mode():
            cache = DynamicCache(config=self._net.config)
            prompt = torch.tensor([ids], device=self._device)
            logits = self._forward(prompt, cache)
            logits = logits.expand(len(rows), -1)
            if len(rows) > 1:
                cache.batch_repeat_interleave(len(rows))
        live = list(rows)
        while True:
            with torch.inference_mode():
                tokens = draw(logits.float().cpu(), [row.draw for row in live], sampling)
            for row, token in zip(live, tokens, strict=True):
                row.ids.append(token)
            yield list(live)
            keep = [k for k, row in enumerate(live) if row in rows]
            with torch.inference_mode():
                if len(keep) < len(live):
                    cache.batch_select_indices(torch.tensor(keep, device=self._device))
                    live = [live[k] for k in keep]
                step = torch.tensor([[row.ids[-1]] for row in live], device=self._device)
                logits = self._forward(step, cache)


def draw(logits: Any, generators: Sequence[Any], sampling: Sampling) -> list[int]:
    """One token per row of `logits` (rows, vocabulary; float32), each from its own random generator.

    Temperature, then top-k, then top-p, as in transformers; temperature 0 takes the most likely token.
    """
    import torch

    if sampling.temperature == 0:
        return [int(i) for i in logits.argmax(-1)]
    logits = logits / sampling.temperature
    if 0 < sampling.top_k < logits.shape[-1]:
        floor = logits.topk(sampling.top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < floor, float("-inf"))
    if sampling.top_p < 1:
        ordered, places = logits.sort(dim=-1, descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, places, before >= sampling.top_p)
        logits = logits.masked_fill(drop, float("-inf"))
    chances = logits.softmax(-1)
    return [int(torch.multinomial(chances[k], 1, generator=generator)) for k, generator in enumerate(generators)]


def hub_files(model: str) -> str:
    """The folder with the files of a hub model, which are downloaded if need be; others can load meanwhile."""
    from huggingface_hub import snapshot_download

    return str(snapshot_download(model, ignore_patterns=["*.gguf", "*.onnx", "*.msgpack", "*.h5", "original/*"]))
