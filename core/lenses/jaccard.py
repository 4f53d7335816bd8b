"""Pairwise similarity of word sets: the share of words that two responses have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from core.lenses.base import Lens, Sample, quotient
from core.lenses.features import Features, Floats, Ints, Ragged, membership

FIRST = 50
_PAIRS_AT_ONCE = 4_000_000


def pair_means(bags: Ragged, group: Ints, groups: int) -> tuple[Floats, Ints]:
    """Mean Jaccard similarity over the pairs in each group, and the number of pairs.

    A pair with one empty set counts 0; a pair of two empty sets is left out. NaN where no pair is left.
    """
    # Words are numbered within their group, so that one product holds the pairs inside the groups and no others.
    width = int(bags.ids.max(initial=0)) + 1
    columns, known = pd.factorize(group[bags.rows] * width + bags.ids)
    member = membership(bags, columns, len(known))
    turned, sizes = member.T.tocsr(), bags.lengths
    counts = np.bincount(group, minlength=groups)
    total = np.zeros(groups)
    step = max(1, _PAIRS_AT_ONCE // max(int(counts.max(initial=0)), 1))
    for start in range(0, len(bags), step):
        common = (member[start : start + step] @ turned).tocoo()
        left, right = common.row + start, common.col
        once = left < right
        left, right, shared = left[once], right[once], common.data[once]
        scores = shared / (sizes[left] + sizes[right] - shared)
        total += np.bincount(group[left], weights=scores, minlength=groups)
    empty = np.bincount(group[sizes == 0], minlength=groups)
    pairs = counts * (counts - 1) // 2 - empty * (empty - 1) // 2
    return quotient(total, pairs), pairs


def _lens(id: str, name: str, description: str, bags: Callable[[Features], Ragged], twin: str | None = None) -> Lens:
    def whole(sample: Sample) -> tuple[Floats, Ints]:
        return pair_means(bags(sample.features), sample.group, sample.groups)[0], sample.sizes

    return Lens(
        id=id,
        name=name,
        unit="score",
        description=description,
        range=(0, 1),
        reading="higher = more alike",
        whole=whole,
        twin=twin,
    )


_CUT = f" Only the first {FIRST} words of each response count, so length plays no part."
_SIMPLE = "Share of words that two responses to one prompt have in common, over all pairs; little words are left out."
_TOKENS = (
    "The same share counted as in the released code: words as NLTK cuts them, capital letters told apart, "
    "little words and punctuation left out."
)

LENSES = (
    _lens(
        "pairwise_jaccard_simple",
        "Similarity within",
        _SIMPLE,
        Features.simple_bags,
        f"pairwise_jaccard_simple_first{FIRST}",
    ),
    _lens(
        f"pairwise_jaccard_simple_first{FIRST}",
        f"Similarity within, first {FIRST} words",
        _SIMPLE + _CUT,
        lambda features: features.simple_bags(FIRST),
    ),
    _lens(
        "pairwise_jaccard",
        "Similarity within (release)",
        _TOKENS,
        Features.token_bags,
        f"pairwise_jaccard_first{FIRST}",
    ),
    _lens(
        f"pairwise_jaccard_first{FIRST}",
        f"Similarity within (release), first {FIRST} words",
        _TOKENS + _CUT,
        lambda features: features.token_bags(FIRST),
    ),
)
