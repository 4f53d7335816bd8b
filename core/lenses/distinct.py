"""Distinct n-grams: how much of what a system's responses say together is said only once."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from core.lenses.base import Lens, Sample, quotient
from core.lenses.features import Floats, Ints

FIRST = 50


def _distinct(sample: Sample, n: int, first: int | None = None) -> tuple[Floats, Ints]:
    tokens = sample.features.lower_tokens
    if first is not None:
        tokens = tokens.first(first)
    starts = max(len(tokens.ids) - n + 1, 0)
    row = tokens.rows[:starts]
    inside = row == tokens.rows[n - 1 :][:starts]  # no n-gram reaches into the next response
    grams = np.zeros(starts, dtype=np.int64)
    for k in range(n):
        # Numbered anew at each step, so that three ids always fit into 64 bits.
        grams = pd.factorize(grams * (int(tokens.ids.max(initial=0)) + 1) + tokens.ids[k : starts + k])[0]
    group, grams = sample.group[row[inside]], grams[inside]
    every = np.bincount(group, minlength=sample.groups)
    different = pd.unique(group * (int(grams.max(initial=0)) + 1) + grams)
    kinds = np.bincount(different // (int(grams.max(initial=0)) + 1), minlength=sample.groups)
    return quotient(kinds, every), sample.sizes


def _lens(n: int, first: int | None) -> Lens:
    what = {1: "words", 2: "pairs of words", 3: "triples of words"}[n]
    cut = "" if first is None else f" Only the first {first} words of each response count, so length plays no part."
    return Lens(
        id=f"distinct_{n}" + ("" if first is None else f"_first{first}"),
        name=f"Distinct {what}" + ("" if first is None else f", first {first} words"),
        unit="score",
        description=f"Different {what} divided by all {what} in the responses to one prompt.{cut}",
        range=(0, 1),
        reading="higher = more diverse",
        whole=partial(_distinct, n=n, first=first),
        twin=f"distinct_{n}_first{FIRST}" if first is None else None,
    )


LENSES = tuple(_lens(n, first) for n in (1, 2, 3) for first in (None, FIRST))
