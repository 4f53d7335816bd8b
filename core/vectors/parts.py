"""Cut texts that are longer than an encoder reads into parts, and join the vectors of the parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def cuts(words: Sequence[int | None], budget: int) -> list[int]:
    """Where to cut a sequence of tokens into parts of at most `budget`; `words` gives each token's word.

    Parts are about equally long and begin with a word, unless a single word is longer than the budget.
    Returns the ends of the parts; the last one is ``len(words)``.
    """
    n = len(words)
    if n <= budget:
        return [n]
    begins = [i for i in range(1, n) if words[i] != words[i - 1]]
    ends: list[int] = []
    start = 0
    while n - start > budget:
        left = -(-(n - start) // budget)
        target = start + -(-(n - start) // left)
        fits = [b for b in begins if start < b <= start + budget]
        end = min(fits, key=lambda b: (abs(b - target), b)) if fits else start + budget
        ends.append(end)
        start = end
    return [*ends, n]


def parts_of(texts: Sequence[str], tokenizer: Any, budget: int) -> list[list[tuple[str, int]]]:
    """Each text as a list of (part, its number of tokens); `tokenizer` is a fast one of transformers."""
    found = tokenizer(
        list(texts), add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
    )
    result: list[list[tuple[str, int]]] = []
    for i, (text, offsets) in enumerate(zip(texts, found["offset_mapping"], strict=True)):
        if len(offsets) <= budget:
            result.append([(text, max(1, len(offsets)))])
            continue
        parts: list[tuple[str, int]] = []
        start = 0
        for end in cuts(found.word_ids(i), budget):
            parts.append((text[offsets[start][0] : offsets[end - 1][1]], end - start))
            start = end
        result.append(parts)
    return result


def join(vectors: NDArray[np.float32], weights: Sequence[Sequence[int]]) -> NDArray[np.float32]:
    """Weighted means of consecutive rows: one row a list in `weights`, which has one number a part."""
    starts = np.cumsum([0, *(len(w) for w in weights[:-1])])
    flat = np.concatenate([np.asarray(w, dtype=np.float32) for w in weights])
    sums = np.add.reduceat(vectors * flat[:, None], starts, axis=0)
    return np.asarray(sums / np.add.reduceat(flat, starts)[:, None], dtype=np.float32)
