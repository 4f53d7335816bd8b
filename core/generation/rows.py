"""One sample while it grows: its ids, its text without broken characters, its random numbers, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core.generation.base import Sample, Sampling, TokenTrace, holds_back, trim_at_stop
from core.generation.sampling import Drawn

_BROKEN = "\ufffd"  # what a decoder puts where the rest of a character is still to come


class Row:
    """A growing sample. Its random numbers follow from its seed alone, one for each token."""

    def __init__(self, index: int, seed: int, sampling: Sampling, tokenizer: Any) -> None:
        self.index = index
        self.seed = seed
        self.ids: list[int] = []
        self.text = ""
        self.sampling = sampling
        self._tokenizer = tokenizer
        self._numbers = np.random.Generator(np.random.PCG64(seed))
        self._logprobs: list[float] = []
        self._entropies: list[float] = []
        self._ended = False
        self._decoder = _decoder(tokenizer)

    def again(self) -> Row:
        """The same sample, not begun."""
        return Row(self.index, self.seed, self.sampling, self._tokenizer)

    def number(self) -> float:
        """The next random number from [0, 1)."""
        return float(self._numbers.random())

    def take(self, drawn: Drawn, place: int, ends: set[int]) -> str | None:
        """Add row `place` of what was drawn; the finish reason where the sample has ended with it."""
        token = drawn.tokens[place]
        self.ids.append(token)
        self._logprobs.append(drawn.logprobs[place])
        self._entropies.append(drawn.entropies[place])
        self._ended = token in ends
        if self._ended:
            return "stop"
        self._grow(token)
        if trim_at_stop(self.text, self.sampling.stop)[1]:
            return "stop"
        return "length" if len(self.ids) >= self.sampling.max_new_tokens else None

    def _grow(self, token: int) -> None:
        if self._decoder is not None:
            try:
                self.text += self._decoder.step(self._tokenizer._tokenizer, token) or ""
                return
            except Exception:
                # A stray byte can break characters before it, which the library refuses to take back.
                self._decoder = None
        self.text = self._decode().rstrip(_BROKEN)

    def _decode(self) -> str:
        ids = self.ids[:-1] if self._ended else self.ids
        # As the model said it: some tokenizers would take out spaces before marks, and stop strings with them.
        return str(self._tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def shown(self) -> str:
        """The text so far, without what may turn out to be the beginning of a stop string."""
        text, stopped = trim_at_stop(self.text, self.sampling.stop)
        return text if stopped else text[: len(text) - holds_back(text, self.sampling.stop)]

    def sample(self, reason: str, error: str | None = None) -> Sample:
        """The finished sample."""
        whole = self._decode()
        if not self.text.endswith(_BROKEN):  # it was cut inside a character
            whole = whole.rstrip(_BROKEN)
        text = trim_at_stop(whole, self.sampling.stop)[0]
        trace = TokenTrace(tuple(self.ids), tuple(self._logprobs), tuple(self._entropies))
        return Sample(self.index, text, reason, len(self.ids), self.seed, error, trace)


def _decoder(tokenizer: Any) -> Any:
    """A decoder of single tokens where the tokenizer is one of the fast ones, else None."""
    if getattr(tokenizer, "_tokenizer", None) is None:
        return None
    from tokenizers.decoders import DecodeStream

    return DecodeStream(skip_special_tokens=True)


def numbers(rows: Sequence[Row]) -> Any:
    """The next random number of each row, (rows,) float64."""
    import torch

    return torch.tensor([row.number() for row in rows], dtype=torch.float64)
