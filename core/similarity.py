"""How alike a system's responses are to a teacher's, text by text and in meaning.

The mean over all pairs of a response and a teacher's response to the same prompt. Words are counted as in the lens
`pairwise_jaccard`; meaning is the cosine of the vectors. The teacher against itself, leaving each response out
against itself, is the ceiling. Two equal texts score 1; an empty text, or one without a vector, has no similarity to
anything and is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import statistics
from core.dataset import Dataset
from core.errors import OvertonError
from core.lenses.features import Features, Floats, Ragged, features_of, membership
from core.statistics import Estimate

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class ToTeacher:
    """Similarity of one group of texts to another: in words and in meaning.

    Each is a mean over the texts with the interval of a bootstrap over them; `n` counts the texts that could be
    compared, and the value is NaN where there are none (or no vectors).
    """

    lexical: Estimate
    vector: Estimate


def bag_similarities(a: Ragged, b: Ragged) -> Floats:
    """Jaccard similarity of each set of `a` with each of `b`, (len(a), len(b)); NaN where one is empty."""
    codes, known = pd.factorize(np.concatenate([a.ids, b.ids]))
    one, two = codes[: len(a.ids)], codes[len(a.ids) :]
    shared = (membership(a, one, len(known)) @ membership(b, two, len(known)).T).toarray()
    sizes_a, sizes_b = a.lengths[:, None], b.lengths[None, :]
    out = np.full(shared.shape, np.nan)
    np.divide(shared, sizes_a + sizes_b - shared, out=out, where=(sizes_a > 0) & (sizes_b > 0))
    return out


def cosines(a: Vectors, b: Vectors) -> Floats:
    """Cosine of each vector of `a` with each of `b`; NaN where one has NaN or is all zero."""

    one, two = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    norms = np.linalg.norm(one, axis=1)[:, None] * np.linalg.norm(two, axis=1)
    out = np.full(norms.shape, np.nan)
    np.divide(one @ two.T, norms, out=out, where=np.isfinite(norms) & (norms > 0))
    return np.clip(out, -1, 1)


def _mean(values: Floats, axis: int | None = None) -> Floats:
    """Mean of what is defined, NaN (and no warning) where nothing is."""
    defined = np.isfinite(values)
    count = defined.sum(axis=axis)
    total = np.where(defined, values, 0).sum(axis=axis)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def _largest(values: Floats) -> Floats:
    """Largest of each row, NaN where nothing is defined."""
    top = np.where(np.isfinite(values), values, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(top), top, np.nan)


def _without_self(similarities: Floats) -> Floats:
    out = similarities.copy()
    np.fill_diagonal(out, np.nan)
    return out


def _over_texts(similarities: Floats) -> Estimate:
    return statistics.mean(_mean(similarities, axis=1))


_NONE = Estimate(np.nan, np.nan, np.nan, 0)


def to_teacher(
    texts: Sequence[str],
    teacher_texts: Sequence[str],
    vectors: Vectors | None = None,
    teacher_vectors: Vectors | None = None,
) -> ToTeacher:
    """Similarity of responses to a teacher's responses to the same prompt, over all pairs.

    Vectors are aligned with the texts. For a group against itself call `within`, which leaves self pairs out.
    """
    bags = Features([*texts, *teacher_texts]).token_bags()
    rows = np.arange(len(bags))
    lexical = bag_similarities(bags.take(rows[: len(texts)]), bags.take(rows[len(texts) :]))
    vector = _NONE
    if vectors is not None and teacher_vectors is not None:
        vector = _over_texts(cosines(vectors, teacher_vectors))
    return ToTeacher(_over_texts(lexical), vector)


def within(texts: Sequence[str], vectors: Vectors | None = None) -> ToTeacher:
    """Similarity of a group of texts to itself, each against all others; for a teacher this is the ceiling."""
    bags = Features(texts).token_bags()
    lexical = _over_texts(_without_self(bag_similarities(bags, bags)))
    return ToTeacher(lexical, _NONE if vectors is None else _over_texts(_without_self(cosines(vectors, vectors))))


# Each takes similarities (teacher samples, responses) and says which teacher row is sample 0, and gives a number.
# `sample_0`: against the teacher's sample 0, which a hint may have been made from. `other_samples`: against the rest.
# `best_match`: for each teacher sample the most similar response.
_SUMMARIES: dict[str, Callable[[Floats, NDArray[np.bool_]], Floats]] = {
    "": lambda table, first: _mean(table),
    "_sample_0": lambda table, first: _mean(table[first]),
    "_other_samples": lambda table, first: _mean(table[~first]),
    "_best_match": lambda table, first: _mean(_largest(table)),
}
MEASURES = tuple(f"{kind}_to_teacher{name}" for kind in ("lexical", "vector") for name in _SUMMARIES)


def over_dataset(dataset: Dataset, teacher: str, vectors: Vectors | None = None) -> pd.DataFrame:
    """Similarity of every system to the teacher, prompt by prompt.

    `vectors` is aligned with `dataset.responses`. Returns `prompt_id, system, lens, value, n` in the shape of
    `core.lenses.measure`, so that `summarise` and `paired_difference` take it; `lens` is one of `MEASURES`. The
    teacher's own rows are the ceiling: self pairs are left out, and `_other_samples` are the pairs among the samples
    after the first. Raises `OvertonError` for an unknown teacher.
    """
    if teacher not in dataset.roles():
        raise OvertonError(f"There is no system {teacher!r}; there are: {', '.join(dataset.roles())}.")
    columns = ["prompt_id", "system", "lens", "value", "n"]
    return pd.DataFrame(list(_scores(dataset, teacher, vectors)), columns=columns)


def _scores(dataset: Dataset, teacher: str, vectors: Vectors | None) -> Iterator[tuple[str, str, str, float, int]]:
    rows = dataset.usable_responses
    bags = features_of(dataset).token_bags()
    kept = None if vectors is None else np.asarray(vectors)[dataset.usable.to_numpy(dtype=bool)]
    groups = rows.groupby("prompt_id", sort=False).indices
    at = {str(prompt): np.asarray(places, dtype=np.int64) for prompt, places in groups.items()}
    system_of, sample_of = rows["system"].to_numpy(), rows["sample"].to_numpy()
    for prompt in dataset.prompts["prompt_id"]:
        places = at.get(prompt, np.zeros(0, dtype=np.int64))
        mine = places[system_of[places] == teacher]
        first = sample_of[mine] == 0
        tables = {"lexical": bag_similarities(bags.take(mine), bags.take(places))}
        if kept is not None:
            tables["vector"] = cosines(kept[mine], kept[places])
        for system in dataset.roles():
            its = system_of[places] == system
            for kind, table in tables.items():
                yield from _of_system(prompt, system, kind, table[:, its], first, same=system == teacher)


def _of_system(
    prompt: str, system: str, kind: str, table: Floats, first: NDArray[np.bool_], *, same: bool
) -> Iterator[tuple[str, str, str, float, int]]:
    if same:
        table = _without_self(table)
    for name, summary in _SUMMARIES.items():
        seen = np.where(first, np.nan, table) if same and name == "_other_samples" else table
        used = int(np.isfinite(seen).any(axis=0).sum())
        yield prompt, system, f"{kind}_to_teacher{name}", float(summary(seen, first)), used
