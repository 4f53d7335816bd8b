"""A generator that runs vLLM in this process: for workers with a graphics card."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from core.errors import OvertonError
from core.generation.base import OnText, Sample, Sampling, TokenTrace, check_fits, trim_at_stop
from core.generation.reader import read_tokens


def usable() -> bool:
    """Whether vLLM is installed and there is a graphics card."""
    if importlib.util.find_spec("vllm") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


class VllmGenerator:
    """See `core.generation.base.Generator`; all samples of a context are one call, and come together.

    It cannot be interrupted: who wants to cancel ends its process. Entropies are unknown. Raises `OvertonError`
    where vLLM is not installed or cannot load the model.
    """

    def __init__(self, model: str) -> None:
        from core.models import locate

        try:
            import vllm
        except ImportError as error:
            raise OvertonError(
                "vLLM is not installed here: install it, or take --ray-backend transformers."
            ) from error
        found = locate(model)
        self._reader = read_tokens(found)
        self.model, self.revision, self.chat = self._reader.model, self._reader.revision, self._reader.chat
        self.limit = self._reader.limit
        self._parameters: Any = vllm.SamplingParams
        try:
            self._llm: Any = vllm.LLM(model=found.source, enable_prefix_caching=True)
        except Exception as error:  # it raises many types: memory, format, unknown architecture
            raise OvertonError(f"vLLM cannot load {model} ({type(error).__name__}: {error!s:.200}).") from error

    def count_tokens(self, context: str) -> int:
        """Number of tokens, special tokens included; exactly one BOS."""
        return self._reader.count_tokens(context)

    def chat_context(self, prompt: str) -> str:
        """The model's own chat template around one user message."""
        return self._reader.chat_context(prompt)

    def generate(
        self,
        context: str,
        seeds: Sequence[int],
        sampling: Sampling,
        *,
        cancel: Event | None = None,
        on_text: OnText | None = None,
    ) -> Iterator[Sample]:
        """Yield one `Sample` per seed, each a request of its own with its own seed."""
        sampling.check()
        check_fits(self, context, sampling)
        prompt = {"prompt_token_ids": self._reader.encode(context)}
        wanted = [self._parameters(seed=seed, **_fields(sampling)) for seed in seeds]
        answers = self._llm.generate([prompt] * len(wanted), wanted, use_tqdm=False)
        for index, (seed, answer) in enumerate(zip(seeds, answers, strict=True)):
            yield _sample(index, seed, answer.outputs[0], sampling)


def _fields(sampling: Sampling) -> dict[str, Any]:
    """The parameters under their names in vLLM; `logprobs` 0 asks for those of the sampled tokens alone."""
    same = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    fields = {name: getattr(sampling, name) for name in same}
    return {**fields, "max_tokens": sampling.max_new_tokens, "stop": list(sampling.stop), "logprobs": 0}


def _sample(index: int, seed: int, made: Any, sampling: Sampling) -> Sample:
    ids = tuple(int(token) for token in made.token_ids)
    text = trim_at_stop(made.text, sampling.stop)[0]
    trace = TokenTrace(ids, _logprobs(ids, made.logprobs))
    if made.finish_reason in ("stop", "length"):
        return Sample(index, text, made.finish_reason, len(ids), seed, tokens=trace)
    return Sample(index, text, "error", len(ids), seed, f"vLLM ended it with {made.finish_reason!r}.", trace)


def _logprobs(ids: Sequence[int], given: Sequence[Mapping[int, Any]] | None) -> tuple[float, ...]:
    return tuple(float(row[token].logprob) for token, row in zip(ids, given, strict=True)) if given else ()
