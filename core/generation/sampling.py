"""From logits to tokens: penalty, temperature, top-k, top-p and min-p as transformers has them, and one draw per row.

Each row draws with a number of its own from [0, 1), by inverting its cumulative distribution, so that a row's token
depends on nothing but its logits and its number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from core.generation.base import Sampling

_BLOCK = 512  # the cumulative distribution is first searched by blocks of this many tokens


class NoNumbers(ArithmeticError):
    """A model gave logits that nothing can be drawn from, as half precision does where it overflows."""


@dataclass(frozen=True)
class Drawn:
    """One token per row, with what the model itself thought of it (before penalty, temperature and filters)."""

    tokens: list[int]
    logprobs: list[float]
    entropies: list[float]


class Sampler:
    """Draws tokens for batches of rows; keeps its working memory between steps."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self._room: list[Any] = []

    def _buffers(self, logits: Any) -> tuple[Any, Any]:
        import torch

        rows, size = logits.shape
        padded = size + -size % _BLOCK
        if not self._room or self._room[0].shape[0] < rows or self._room[0].shape[1] != padded:
            self._room = [torch.empty(rows, padded, dtype=torch.float32, device=logits.device) for _ in range(2)]
        return self._room[0][:rows], self._room[1][:rows]

    def draw(self, logits: Any, numbers: Any, seen: Any = None) -> Drawn:
        """Draw from `logits` (rows, vocabulary) with `numbers` (rows,) float64 from [0, 1).

        `seen` (rows, vocabulary) marks the tokens that were there already; only the repetition penalty needs it.
        Raises `NoNumbers` for logits that are NaN or infinite.
        """
        import torch

        if logits.device.type == "mps":  # which has no float64
            logits, seen = logits.cpu(), None if seen is None else seen.cpu()
        shifted, chances = self._buffers(logits)
        size = logits.shape[1]
        shifted[:, size:] = float("-inf")
        own = shifted[:, :size]
        own.copy_(logits)
        top = own.amax(-1, keepdim=True)
        own.sub_(top)  # log-probabilities but for a constant; nothing overflows
        torch.exp(shifted, out=chances)
        total = _total(chances)
        # Where a chance is 0 its logit may be -inf: their product counts as 0.
        least = own.amin()
        if bool(least.isnan()):
            raise NoNumbers
        low = own.clamp_min(-1e4) if bool(least.isinf()) else own
        mean = torch.linalg.vecdot(chances[:, :size], low).double() / total
        entropies = (total.log() - mean).clamp_min(0)
        tokens = self._choose(own, shifted, chances, top, numbers, seen)
        logprobs = own.gather(1, tokens[:, None])[:, 0].double() - total.log()
        return Drawn(tokens.tolist(), logprobs.tolist(), entropies.tolist())

    def _choose(self, own: Any, shifted: Any, chances: Any, top: Any, numbers: Any, seen: Any) -> Any:
        import torch

        s = self.sampling
        if s.repetition_penalty != 1 or s.top_k or s.top_p < 1 or s.min_p > 0:
            scores = own
            if s.repetition_penalty != 1:
                scores = penalised(own + top, seen, s.repetition_penalty)
            if s.temperature == 0:
                return scores.argmax(-1)
            kept = filtered(scores / s.temperature, s)
            chances[:, : own.shape[1]] = (kept - kept.amax(-1, keepdim=True)).exp_()
        elif s.temperature == 0:
            return own.argmax(-1)
        elif s.temperature != 1:
            torch.mul(shifted, 1 / s.temperature, out=chances).exp_()
        return invert(chances, numbers)


def _total(chances: Any) -> Any:
    """Sums (rows,) in float64 of `chances` (rows, tokens in whole blocks): fast, and exact enough for rare tokens."""
    return chances.view(chances.shape[0], -1, _BLOCK).sum(-1).double().sum(-1)


def penalised(logits: Any, seen: Any, penalty: float) -> Any:
    """`logits` (rows, vocabulary) with the repetition penalty on the tokens that `seen` (same shape, bool) marks."""
    import torch

    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def filtered(logits: Any, sampling: Sampling) -> Any:
    """`logits` (rows, vocabulary) after temperature, -inf where top-k, then top-p, then min-p drop a token."""
    if 0 < sampling.top_k < logits.shape[-1]:
        floor = logits.topk(sampling.top_k, dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < floor, float("-inf"))
    if sampling.top_p < 1:
        logits = _nucleus(logits, sampling.top_p)
    if sampling.min_p > 0:
        floor = logits.amax(-1, keepdim=True) + math.log(sampling.min_p)
        logits = logits.masked_fill(logits < floor, float("-inf"))
    return logits


def _nucleus(logits: Any, top_p: float) -> Any:
    """Drop the unlikeliest tokens as long as they have no more than 1 - `top_p` of the probability together.

    Sorting a whole vocabulary takes long. Tokens so unlikely that all of them together could be dropped are left out
    first; the rest is sorted, and equally likely ones are dropped in the order of their ids.
    """
    import torch

    size = logits.shape[1]
    own = logits - logits.amax(-1, keepdim=True)
    chances = own.exp()
    totals = chances.sum(-1).double()
    cuts = (totals * (1 - top_p) / size).log().float()
    kept = torch.full_like(logits, float("-inf"))
    for row, (cut, total) in enumerate(zip(cuts.tolist(), totals, strict=True)):
        places = (own[row] >= cut).nonzero()[:, 0]
        order = places[own[row, places].argsort(stable=True)]
        mass = chances[row, order].double().cumsum(-1)
        below = total - mass[-1]  # of those that were left out
        inside = order[(mass + below > total * (1 - top_p)) | (mass == mass[-1])]
        kept[row, inside] = logits[row, inside]
    return kept


def invert(chances: Any, numbers: Any) -> Any:
    """The token at which the cumulative sum of `chances` (rows, vocabulary in whole blocks) passes `numbers`.

    `chances` need not sum to 1. Sums are float64 and done by blocks, so that rare tokens keep their right share.
    """
    import torch

    rows = chances.shape[0]
    blocks = chances.view(rows, -1, _BLOCK)
    sums = blocks.sum(-1).double().cumsum(-1)
    target = numbers.to(sums.device)[:, None] * sums[:, -1:]
    block = torch.searchsorted(sums, target, right=True).clamp_max(sums.shape[1] - 1)
    before = torch.where(block > 0, sums.gather(1, (block - 1).clamp_min(0)), 0.0)
    inside = blocks[torch.arange(rows, device=chances.device), block[:, 0]].double()
    place = torch.searchsorted(inside.cumsum(-1) + before, target, right=True)
    # Rounding may carry the target past the last token that has a chance.
    last = _BLOCK - 1 - (inside > 0).flip(-1).to(torch.int8).argmax(-1, keepdim=True)
    return (block * _BLOCK + torch.minimum(place, last))[:, 0]
