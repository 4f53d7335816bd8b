"""Lenses: measures over responses, one file each.

A new lens is one file with `LENSES`, and one word in `_FILES` below. Values are computed within a distribution
(one system, one prompt) and summed up over prompts.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import statistics
from core.dataset import Dataset
from core.errors import OvertonError
from core.lenses import abstain, cosine, distinct, jaccard, lists, vendi, words
from core.lenses.base import Lens, Sample
from core.lenses.features import Features, features_of
from core.statistics import RESAMPLES, Estimate

__all__ = [
    "LENSES",
    "Features",
    "Lens",
    "features_of",
    "measure",
    "paired_difference",
    "per_prompt_difference",
    "response_values",
    "select",
    "summarise",
]

_FILES = (words, jaccard, distinct, lists, abstain, cosine, vendi)

LENSES: dict[str, Lens] = {lens.id: lens for file in _FILES for lens in file.LENSES}
"""All lenses by id, in the order in which they are shown."""


def select(lens_ids: Iterable[str] | None = None) -> list[Lens]:
    """The named lenses, or all. Raises `OvertonError` for an unknown id."""
    if lens_ids is None:
        return list(LENSES.values())
    wanted = list(dict.fromkeys(lens_ids))
    unknown = [lens_id for lens_id in wanted if lens_id not in LENSES]
    if unknown:
        raise OvertonError(f"There is no lens {unknown[0]!r}; there are: {', '.join(LENSES)}.")
    return [LENSES[lens_id] for lens_id in wanted]


def measure(
    dataset: Dataset, lens_ids: Iterable[str] | None = None, vectors: NDArray[np.float32] | None = None
) -> pd.DataFrame:
    """Measure every distribution of a dataset.

    `vectors` is (len(dataset.responses), d), one row a response, NaN where there is none. Returns one row per
    prompt, system and lens: `prompt_id, system, lens, value, n`, where `value` is NaN where it is undefined and
    `n` counts the responses it was computed from. A lens that needs vectors is undefined without them.
    Raises `OvertonError` for an unknown lens.
    """
    lenses = select(lens_ids)
    prompts, systems = dataset.prompts["prompt_id"], dataset.systems["system"]
    rows = dataset.usable_responses
    prompt = pd.Index(prompts).get_indexer(pd.Index(rows["prompt_id"]))
    group = prompt * len(systems) + pd.Index(systems).get_indexer(pd.Index(rows["system"]))
    usable = dataset.usable.to_numpy(dtype=bool)
    kept = None if vectors is None else np.asarray(vectors)[usable]
    sample = Sample(features_of(dataset), group.astype(np.int64), len(prompts) * len(systems), kept)
    computed = [lens.compute(sample) for lens in lenses]
    # Lens by lens, within it prompt by prompt.
    return pd.DataFrame(
        {
            "prompt_id": np.tile(np.repeat(prompts.to_numpy(), len(systems)), len(lenses)),
            "system": np.tile(systems.to_numpy(), len(prompts) * len(lenses)),
            "lens": np.repeat([lens.id for lens in lenses], sample.groups),
            "value": np.concatenate([value for value, _ in computed]) if computed else np.zeros(0),
            "n": np.concatenate([n for _, n in computed]) if computed else np.zeros(0, dtype=np.int64),
        }
    )


def response_values(dataset: Dataset, lens_id: str) -> pd.Series:
    """The value of each response, NaN where it is not usable; the index is that of `dataset.responses`.

    Raises `OvertonError` for a lens that only distributions have.
    """
    (lens,) = select([lens_id])
    if lens.each is None:
        raise OvertonError(f"The lens {lens_id!r} measures a whole distribution: a single response has no value.")
    values = pd.Series(np.nan, index=dataset.responses.index, name=lens_id, dtype="float64")
    values[dataset.usable.to_numpy(dtype=bool)] = lens.each(features_of(dataset))
    return values


def _pooled(lens_id: str) -> bool:
    return lens_id in LENSES and LENSES[lens_id].pooled


def _by_prompt(scores: pd.DataFrame, column: str, systems: list[str]) -> pd.DataFrame:
    prompts = scores["prompt_id"].drop_duplicates()  # the order decides which prompts a resample draws
    return scores.pivot(index="prompt_id", columns="system", values=column).reindex(index=prompts, columns=systems)


def summarise(scores: pd.DataFrame, *, resamples: int = RESAMPLES, seed: int = 0) -> pd.DataFrame:
    """Sum up the result of `measure` over prompts: `system, lens, value, low, high, n`.

    `value` is the mean over prompts, for shares of responses the share over all responses; `low` and `high` are
    the 95 % interval of a bootstrap over prompts; `n` counts the prompts with a defined value. Other scores of the
    same shape can be summed up too.
    """
    systems = list(dict.fromkeys(scores["system"]))
    parts = []
    for lens, rows in scores.groupby("lens", sort=False):
        values = _by_prompt(rows, "value", systems).to_numpy(dtype=float)
        weights = _by_prompt(rows, "n", systems).fillna(0).to_numpy(dtype=float) if _pooled(str(lens)) else None
        value, low, high, n = statistics.column_estimates(values, weights, resamples=resamples, seed=seed)
        parts.append(
            pd.DataFrame({"system": systems, "lens": lens, "value": value, "low": low, "high": high, "n": n})
        )
    columns = ["system", "lens", "value", "low", "high", "n"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def _two(scores: pd.DataFrame, a: str, b: str, lens: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    rows = scores[(scores["lens"] == lens) & scores["system"].isin([a, b])]
    return _by_prompt(rows, "value", [a, b]), _by_prompt(rows, "n", [a, b]).fillna(0)


def paired_difference(
    scores: pd.DataFrame, a: str, b: str, lens: str, *, resamples: int = RESAMPLES, seed: int = 0
) -> Estimate:
    """System `a` minus system `b` in one lens, over the prompts where both are defined, with a paired interval."""
    values, n = _two(scores, a, b, lens)
    weights = (n[a], n[b]) if _pooled(lens) else (None, None)
    return statistics.difference(values[a], values[b], *weights, resamples=resamples, seed=seed)


def per_prompt_difference(scores: pd.DataFrame, a: str, b: str, lens: str) -> pd.DataFrame:
    """`prompt_id, a, b, difference` (a minus b), largest difference first; undefined ones last."""
    values, _ = _two(scores, a, b, lens)
    table = pd.DataFrame(
        {"prompt_id": values.index, "a": values[a].to_numpy(dtype=float), "b": values[b].to_numpy(dtype=float)}
    )
    table["difference"] = table["a"] - table["b"]
    order = table["difference"].abs().sort_values(ascending=False, kind="stable", na_position="last").index
    return table.loc[order].reset_index(drop=True)
