"""Teacher-forced scores: the log-probability that a model gives each token of a text that is there already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.generation.base import TokenTrace
from core.generation.network import PlainNetwork, SharedNetwork

_ROWS = 16
# Tokens of all rows in one forward pass: each needs logits for the whole vocabulary.
_TOKENS = 256


def score(net: SharedNetwork | PlainNetwork, ids: Sequence[int], texts: Sequence[Sequence[int]]) -> list[TokenTrace]:
    """One trace for each of `texts` (token ids) after the context `ids`. Raises `Cancelled` when stopped."""
    import torch

    order = sorted(range(len(texts)), key=lambda k: len(texts[k]))  # rows of one batch have similar lengths
    found: dict[int, TokenTrace] = {k: TokenTrace() for k in order if not texts[k]}
    order = [k for k in order if texts[k]]
    with torch.inference_mode():
        for start in range(0, len(order), _ROWS):
            net.check()  # texts of one token need no forward pass
            group = order[start : start + _ROWS]
            found.update(zip(group, _batch(net, ids, [texts[k] for k in group]), strict=True))
    return [found[k] for k in range(len(texts))]


def _batch(net: SharedNetwork | PlainNetwork, ids: Sequence[int], texts: Sequence[Sequence[int]]) -> list[TokenTrace]:
    import torch

    rows, longest = len(texts), max(map(len, texts))
    # What is padded comes after the text and is not looked at.
    padded = [[*text, *[text[-1]] * (longest - len(text))] for text in texts]
    first = net.read(ids)
    # The type is given, since the default one is another while some model is being loaded.
    logprobs, entropies = (torch.empty(rows, longest, dtype=torch.float32) for _ in range(2))
    logits = first[None].expand(rows, 1, -1)
    net.begin(rows)
    width = max(1, _TOKENS // rows)
    start, end = 0, 1  # the context predicts the first token, and tokens [start, end) those after them
    while True:
        wanted = torch.tensor([row[start:end] for row in padded], device=logits.device)
        logprobs[:, start:end], entropies[:, start:end] = _judge(logits, wanted)
        if end == longest:
            break
        stop = min(longest, end + width)
        logits = net.step([row[end - 1 : stop - 1] for row in padded])
        start, end = end, stop
    return [
        TokenTrace(tuple(text), tuple(logprobs[k, : len(text)].tolist()), tuple(entropies[k, : len(text)].tolist()))
        for k, text in enumerate(texts)
    ]


def _judge(logits: Any, wanted: Any) -> tuple[Any, Any]:
    """Log-probabilities of `wanted` (rows, tokens) and entropies under `logits` (rows, tokens, vocabulary)."""
    log_chances = logits.float().log_softmax(-1)
    entropies = -(log_chances.exp() * log_chances.clamp_min(-1e4)).sum(-1)
    return log_chances.gather(-1, wanted[..., None])[..., 0].cpu(), entropies.cpu()
