"""Estimates with their intervals: means over prompts, differences of two systems on the same prompts.

Every interval is a percentile bootstrap over prompts: prompts are drawn with replacement, the responses to a drawn
prompt stay together. Equal input and seed give an equal interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLES = 1000
LEVEL = 0.95

Floats = NDArray[np.float64]


class Estimate(NamedTuple):
    """A mean with its interval and the number of prompts; NaN where undefined (an interval needs two prompts)."""

    value: float
    low: float
    high: float
    n: int


@lru_cache(maxsize=64)
def _drawn(n: int, resamples: int, seed: int) -> Floats:
    """How often each of n prompts was drawn in each resample, (resamples, n)."""
    draws = np.random.default_rng(seed).integers(0, n, (resamples, n))
    rows = np.repeat(np.arange(resamples), n)
    counts = np.bincount(rows * n + draws.ravel(), minlength=resamples * n).reshape(resamples, n)
    return counts.astype(np.float64)


def _patterns(defined: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Columns that are defined for the same prompts: the mask over prompts, and those columns."""
    masks, which = np.unique(defined, axis=1, return_inverse=True)
    for k in range(masks.shape[1]):
        yield masks[:, k], np.flatnonzero(which.ravel() == k)


def _percentiles(means: Floats) -> tuple[Floats, Floats]:
    with np.errstate(invalid="ignore"):
        low, high = np.percentile(means, [50 * (1 - LEVEL), 50 * (1 + LEVEL)], axis=0)
    return low, high


def column_estimates(
    values: ArrayLike, weights: ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Mean over prompts, interval and number of prompts for each column of `values`, (prompts, columns).

    NaN marks a prompt without a value. `weights`, of the same shape, weighs the prompts (the number of responses,
    say, which makes the mean one over all responses).
    """
    table = np.asarray(values, dtype=np.float64)
    heavy = np.ones_like(table) if weights is None else np.asarray(weights, dtype=np.float64)
    defined = np.isfinite(table) & (heavy > 0)
    n = defined.sum(axis=0).astype(np.int64)
    value, low, high = (np.full(table.shape[1], np.nan) for _ in range(3))
    for mask, columns in _patterns(defined):
        prompts = int(mask.sum())
        if prompts == 0:
            continue
        some, weight = table[np.ix_(mask, columns)], heavy[np.ix_(mask, columns)]
        value[columns] = (some * weight).sum(axis=0) / weight.sum(axis=0)
        if prompts > 1:
            drawn = _drawn(prompts, resamples, seed)
            low[columns], high[columns] = _percentiles((drawn @ (some * weight)) / (drawn @ weight))
    return value, low, high, n


def mean(
    values: ArrayLike, weights: ArrayLike | None = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """Mean over prompts with its interval; NaN marks a prompt without a value."""
    column = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    heavy = None if weights is None else np.asarray(weights, dtype=np.float64).reshape(-1, 1)
    value, low, high, n = column_estimates(column, heavy, resamples=resamples, seed=seed)
    return Estimate(float(value[0]), float(low[0]), float(high[0]), int(n[0]))


def difference(
    a: ArrayLike,
    b: ArrayLike,
    weights_a: ArrayLike | None = None,
    weights_b: ArrayLike | None = None,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Estimate:
    """Mean of `a` minus mean of `b` over the prompts where both are defined, with a paired interval.

    All four are aligned by prompt, and both systems are taken at the same drawn prompts.
    """
    table = np.stack([np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)], axis=1)
    heavy = np.ones_like(table)
    for k, weights in enumerate((weights_a, weights_b)):
        if weights is not None:
            heavy[:, k] = np.asarray(weights, dtype=np.float64)
    both = (np.isfinite(table) & (heavy > 0)).all(axis=1)
    table, heavy, n = table[both], heavy[both], int(both.sum())
    if n == 0:
        return Estimate(np.nan, np.nan, np.nan, 0)
    first, second = (table * heavy).sum(axis=0) / heavy.sum(axis=0)
    low, high = np.nan, np.nan
    if n > 1:
        drawn = _drawn(n, resamples, seed)
        means = (drawn @ (table * heavy)) / (drawn @ heavy)
        low, high = (float(x) for x in _percentiles(means[:, 0] - means[:, 1]))
    return Estimate(float(first - second), low, high, n)
