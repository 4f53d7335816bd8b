"""What comes back from a server, read strictly: a choice as it grows, its log-probabilities, and how it ended."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.generation.base import TokenTrace, holds_back, trim_at_stop

# How servers call the two proper ends; those of TGI's own interface are among them.
ENDS = {
    "stop": "stop",
    "eos_token": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
}
WITHHELD = {
    "content_filter": "its content filter withheld the answer",
    "tool_calls": "it answered with a tool call instead of a text",
    "function_call": "it answered with a tool call instead of a text",
}
BROKEN = ("abort", "aborted", "error", "cancelled")
_PER_TOKEN = 200  # characters that a token has at most, generously


class Garbled(Exception):
    """The server sent something that is no completion; the text says what, and never repeats what was sent."""


@dataclass
class Growing:
    """One choice while it arrives.

    `ended` is `stop`, `length`, `error` (`withheld` says why) or None (not yet); `cut` says that a stop string was
    found here and the server may still go on.
    """

    stop: Sequence[str]
    most_tokens: int
    text: str = ""
    pieces: int = 0
    logprobs: list[float] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    ended: str | None = None
    cut: bool = False
    withheld: str = ""
    usage: int | None = None

    def feed(self, choice: Mapping[str, Any]) -> None:
        """Take in a choice, whole or one piece of it. Raises `Garbled`."""
        if self.ended is not None:
            return
        piece = _text_of(choice)
        if piece:
            self.text += piece
            self.pieces += 1
        self._feed_logprobs(choice.get("logprobs"))
        if len(self.text) > 1000 + _PER_TOKEN * self.most_tokens:
            raise Garbled("sent far more text than was asked for")
        self.text, stopped = trim_at_stop(self.text, self.stop)
        reason = choice.get("finish_reason")
        if stopped:
            self.ended = "stop"  # also where the server goes on, or says that the limit was reached
            self.cut = reason is None
        elif reason is not None and reason not in BROKEN:
            if not isinstance(reason, str) or reason not in {*ENDS, *WITHHELD}:
                raise Garbled("ended its answer for a reason that is not known")
            self.withheld = WITHHELD.get(reason, "")
            self.ended = ENDS.get(reason, "error")

    def _feed_logprobs(self, raw: Any) -> None:
        if raw is None:
            return
        if not isinstance(raw, Mapping):
            raise Garbled("sent log-probabilities of an unknown shape")
        content = raw.get("content")
        if content is None:
            values = raw.get("token_logprobs") or []
            ids: list[Any] = []
        else:
            if not isinstance(content, list) or not all(isinstance(entry, Mapping) for entry in content):
                raise Garbled("sent log-probabilities of an unknown shape")
            values = [entry.get("logprob") for entry in content]
            ids = [entry.get("id") for entry in content]
        if not isinstance(values, list) or not all(_is_logprob(value) for value in values):
            raise Garbled("sent log-probabilities that are no numbers (logprobs = false does without them)")
        self.logprobs += [float(value) for value in values]
        self.ids += [i for i in ids if isinstance(i, int) and not isinstance(i, bool)]

    @property
    def shown(self) -> str:
        """The text that can be shown while it grows: no beginning of a stop string, no half characters."""
        kept = self.text if self.ended else self.text[: len(self.text) - holds_back(self.text, self.stop)]
        return kept.rstrip("\ufffd")

    @property
    def tokens(self) -> int:
        """Tokens so far: as many as have log-probabilities, else what the server counted, else the pieces."""
        return len(self.logprobs) or (self.pieces if self.usage is None else self.usage)

    def trace(self) -> TokenTrace | None:
        """The log-probabilities and, where each token has one, the ids; None without them."""
        if not self.logprobs:
            return None
        return TokenTrace(tuple(self.ids) if len(self.ids) == len(self.logprobs) else (), tuple(self.logprobs))


def _is_logprob(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value <= 1e-3


def _text_of(choice: Mapping[str, Any]) -> str:
    """The text of a choice: of a completion, of a chat, or of a piece of one; empty where it has none."""
    inner: Mapping[str, Any] = choice
    key = "text"
    for holder in ("delta", "message"):
        if choice.get(holder) is not None:
            if not isinstance(choice[holder], Mapping):
                raise Garbled("sent a message of an unknown shape")
            inner, key = choice[holder], "content"
    text = inner.get(key)
    if text is not None and not isinstance(text, str):
        raise Garbled("sent a text that is no text")
    return text or ""


def choices_of(event: Any) -> list[tuple[int, Mapping[str, Any]]]:
    """The choices of an event or of a whole answer, each with its index. Raises `Garbled` for any other shape."""
    if not isinstance(event, Mapping):
        raise Garbled("sent something that is no completion")
    choices = event.get("choices")
    if choices is None and "usage" in event:
        choices = []
    if not isinstance(choices, list) or not all(isinstance(choice, Mapping) for choice in choices):
        raise Garbled("sent an answer without choices")
    found = [(choice.get("index", place), choice) for place, choice in enumerate(choices)]
    if any(not isinstance(index, int) or isinstance(index, bool) or index < 0 for index, _ in found):
        raise Garbled("sent choices without proper numbers")
    return found


def usage_of(event: Mapping[str, Any]) -> int | None:
    """The number of tokens of all choices of an answer, where the event tells it."""
    usage = event.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, Mapping) else None
    return count if isinstance(count, int) and not isinstance(count, bool) and count >= 0 else None
