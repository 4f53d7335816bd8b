"""What every generator offers, whether it runs a model here, asks a server, or only pretends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from threading import Event
from typing import Any, Protocol

from core.errors import OvertonError, TooLong

FENCE = "```"


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters with the standard meaning; `top_k` 0 and `top_p` 1 switch those filters off.

    `min_p` drops tokens less likely than that share of the likeliest one (0 = off); `repetition_penalty` divides the
    positive and multiplies the negative logits of tokens that were there already, in context or response (1 = off).
    `max_new_tokens` counts tokens of the model; `stop` strings end a response and are not part of it.
    """

    temperature: float = 0.7
    top_p: float = 1.0
    top_k: int = 0
    max_new_tokens: int = 128
    stop: tuple[str, ...] = ()
    min_p: float = 0.0
    repetition_penalty: float = 1.0

    def check(self) -> Sampling:
        """Return these parameters, or raise `OvertonError` that names the one out of range."""
        if not (self.temperature == 0 or 0.01 <= self.temperature <= 5):
            raise OvertonError("The temperature must be 0 (the likeliest token), or lie between 0.01 and 5.")
        if not 0 < self.top_p <= 1:
            raise OvertonError("top_p must lie above 0 and not above 1.")
        if self.top_k < 0:
            raise OvertonError("top_k must be 0 (off) or more.")
        if not 0 <= self.min_p <= 1:
            raise OvertonError("min_p must lie between 0 (off) and 1.")
        if not 0 < self.repetition_penalty <= 10:
            raise OvertonError("The repetition penalty must lie above 0 (1 is off) and not above 10.")
        if not 1 <= self.max_new_tokens <= 8192:
            raise OvertonError("The number of new tokens must lie between 1 and 8192.")
        return self

    def as_dict(self) -> dict[str, Any]:
        """The parameters as plain values, for JSON."""
        return {**asdict(self), "stop": list(self.stop)}


@dataclass(frozen=True)
class TokenTrace:
    """What a model thought of each token of a response: `token_count` values a field, or none where unknown.

    `logprobs` are natural logarithms of the probability that the model gave the token, and `entropies` (nats) those
    of its whole distribution at that place: of the model itself, before temperature, penalty and filters. The token
    that ended the response is included. Servers may not tell ids or entropies; these fields are then empty.
    """

    ids: tuple[int, ...] = ()
    logprobs: tuple[float, ...] = ()
    entropies: tuple[float, ...] = ()

    def as_dict(self) -> dict[str, list[Any]]:
        """Plain values with five significant digits, for JSON."""
        short = {name: [float(f"{v:.5g}") for v in getattr(self, name)] for name in ("logprobs", "entropies")}
        return {"ids": list(self.ids), **short}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Sequence[Any]] | None) -> TokenTrace | None:
        """The inverse of `as_dict`; None gives None."""
        if raw is None:
            return None
        return cls(*(tuple(raw.get(name, ())) for name in ("ids", "logprobs", "entropies")))


@dataclass(frozen=True)
class Sample:
    """One finished response of a generator: `index` within the run, its own `seed`, and how it ended.

    `finish_reason` is `stop` (an end token or a stop string), `length`, `cancelled` or `error`; only the last has an
    `error`, one sentence.
    """

    index: int
    text: str
    finish_reason: str
    token_count: int
    seed: int
    error: str | None = None
    tokens: TokenTrace | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "tokens"}
        return plain if self.tokens is None else {**plain, "tokens": self.tokens.as_dict()}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Sample:
        """The inverse of `as_dict`. Raises `TypeError` or `KeyError` for another shape."""
        return cls(**{**raw, "tokens": TokenTrace.from_dict(raw.get("tokens"))})


# Called with (index, text so far, tokens so far) while a sample grows.
OnText = Callable[[int, str, int], None]


class Reads(Protocol):
    """How a model reads a context: the part of a generator that needs no weights.

    Where `counts_exactly` is there and False, counts and limits are estimates.
    """

    model: str
    revision: str
    limit: int
    chat: bool

    def count_tokens(self, context: str) -> int:
        """Number of tokens that the model reads for this context, special tokens included."""
        ...

    def chat_context(self, prompt: str) -> str:
        """The exact text that a chat model is sent for one prompt."""
        ...


class Generator(Reads, Protocol):
    """Turns one context into samples. All methods may be called from any thread."""

    def generate(
        self,
        context: str,
        seeds: Sequence[int],
        sampling: Sampling,
        *,
        cancel: Event | None = None,
        on_text: OnText | None = None,
    ) -> Iterator[Sample]:
        """Yield one `Sample` per seed, in the order in which they finish."""
        ...


def check_fits(generator: Reads, context: str, sampling: Sampling) -> int:
    """Number of context tokens. Raises `TooLong` where context and response exceed the model's limit."""
    tokens = generator.count_tokens(context)
    if getattr(generator, "counts_exactly", True) and tokens + sampling.max_new_tokens > generator.limit:
        raise TooLong(
            f"The context has {tokens} tokens and {sampling.max_new_tokens} more are asked for, but "
            f"{generator.model} reads at most {generator.limit}: remove an example or ask for fewer tokens."
        )
    return tokens


def trim_at_stop(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """The text before the first stop string, and whether there was one."""
    places = [place for s in stop if s and (place := text.find(s)) >= 0]
    return (text[: min(places)], True) if places else (text, False)


def holds_back(text: str, stop: Sequence[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a stop string (not shown yet)."""
    longest = 0
    for s in stop:
        for k in range(min(len(s) - 1, len(text)), longest, -1):
            if text.endswith(s[:k]):
                longest = k
                break
    return longest
