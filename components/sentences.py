"""The sentences above a figure: every number in them is computed from the responses that the figure shows."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from components.text import literal
from core.dataset import Dataset, parameters_of
from core.lenses import LENSES
from core.scores import representative

JACCARD, TO_ALIGNED = "pairwise_jaccard_simple", "vector_to_teacher"


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * share:.0f} %"


def value_of(scores: pd.DataFrame, prompt_id: str | None, system: str, lens: str) -> float:
    """A lens value for one prompt, or summed up over prompts for `prompt_id` None; NaN where undefined.

    Over prompts it is the mean, and for shares of responses (pooled lenses) the share over all responses.
    """
    return _values(scores).get((prompt_id, system, lens), (float("nan"), 0))[0]


def count_of(scores: pd.DataFrame, prompt_id: str | None, system: str, lens: str) -> int:
    """What a value was computed from: responses for one prompt, prompts for `prompt_id` None; 0 where undefined."""
    return _values(scores).get((prompt_id, system, lens), (float("nan"), 0))[1]


_Known = dict[tuple[str | None, str, str], tuple[float, int]]
# By the identity of the table: the same few are asked again and again, and looking rows up takes milliseconds.
_KNOWN: dict[int, tuple[weakref.ref[pd.DataFrame], _Known]] = {}


def _values(scores: pd.DataFrame) -> _Known:
    """(value, n) by (prompt, system, lens), and summed up over prompts under the prompt None."""
    known = _KNOWN.get(id(scores))
    if known is not None and known[0]() is scores:
        return known[1]
    rows = scores.dropna(subset=["value"])
    pooled = rows["lens"].isin([lens.id for lens in LENSES.values() if lens.pooled])
    weight = rows["n"].where(pooled, 1).astype(float)
    weighted = rows.assign(value=rows["value"] * weight, weight=weight, prompts=1)
    sums = weighted.groupby(["system", "lens"])[["value", "weight", "prompts"]].sum()
    sums = sums[sums["weight"] > 0]
    numbers = zip((sums["value"] / sums["weight"]).tolist(), sums["prompts"].tolist(), strict=True)
    values: _Known = {(None, *key): pair for key, pair in zip(sums.index, numbers, strict=True)}
    keys = zip(rows["prompt_id"], rows["system"], rows["lens"], strict=True)
    numbers = zip(rows["value"].astype(float).tolist(), rows["n"].astype(int).tolist(), strict=True)
    values.update(zip(keys, numbers, strict=True))
    number = id(scores)
    _KNOWN[number] = (weakref.ref(scores, lambda _: _KNOWN.pop(number, None)), values)
    return values


def counted(numbers: Iterable[int]) -> str:
    """One number, or the range that several span: "14", "12 to 14"."""
    some = sorted(set(numbers))
    return f"{some[0]} to {some[-1]}" if len(some) > 1 else str(some[0])


def explain(
    dataset: Dataset, scores: pd.DataFrame, prompt_id: str | None, shown: Sequence[str] | None = None
) -> list[str]:
    """At most three sentences on what is seen, for one prompt or (None) over all of them.

    They are about the base and the aligned system; where one of these roles is not there, about the first two of
    the systems that are `shown` (all of them, where none are given). A sentence whose numbers are undefined is
    left out.
    """
    base, aligned = representative(dataset, "base"), representative(dataset, "aligned")
    if base is not None and aligned is not None:
        named, by_role = {"base": base, "aligned": aligned}, True
    else:
        chosen = list(dataset.roles()) if shown is None else list(shown)
        named, by_role = {literal(system, 60): system for system in chosen[:2]}, False
    made = [
        _sharing(scores, prompt_id, named, by_role),
        _length_by_role(scores, prompt_id, named) if by_role else _length(scores, prompt_id, named),
        _nearness(dataset, scores, prompt_id, base, aligned),
    ]
    said = [sentence for sentence in made if sentence]
    if not said:
        return []
    where = "For this prompt" if prompt_id is not None else _over(scores, list(named.values()))
    return [f"{where} {said[0]}", *(f"{text[0].upper()}{text[1:]}" for text in said[1:])]


def _over(scores: pd.DataFrame, systems: Sequence[str]) -> str:
    """How many prompts the numbers of these systems come from."""
    found = [count_of(scores, None, system, lens) for system in systems for lens in (JACCARD, "words")]
    numbers = [n for n in found if n]
    return (
        f"Over {counted(numbers)} prompt{'' if numbers == [1] * len(numbers) else 's'}"
        if numbers
        else "Over all prompts"
    )


def _sharing(scores: pd.DataFrame, prompt_id: str | None, named: Mapping[str, str], by_role: bool) -> str | None:
    """How much two responses of one system have in common: in words, and in meaning where there are vectors."""
    words = {name: value_of(scores, prompt_id, system, JACCARD) for name, system in named.items()}
    words = {name: value for name, value in words.items() if not np.isnan(value)}
    if not words:
        return None
    first, *others = words
    start = f"two {first} responses" if by_role else f"two responses of {first}"
    said = [f"{start} share **{percent(words[first])}** of their words"]
    said += [
        f"two {name} ones **{percent(words[name])}**" if by_role else f"two of {name} **{percent(words[name])}**"
        for name in others
    ]
    text = ", ".join(said)
    meaning = [1 - value_of(scores, prompt_id, system, "mean_cosine_distance") for system in named.values()]
    if len(meaning) == 2 and not np.isnan(meaning).any():
        text += f"; in meaning they agree to **{meaning[0]:.2f}** and **{meaning[1]:.2f}** (1 = the same)"
    return f"{text}."


def _length_by_role(scores: pd.DataFrame, prompt_id: str | None, named: Mapping[str, str]) -> str | None:
    words = [value_of(scores, prompt_id, s, "words") for s in named.values()]
    lists = [value_of(scores, prompt_id, s, "list_share") for s in named.values()]
    if np.isnan([*words, *lists]).any():
        return None
    return (
        f"a base response has **{words[0]:.0f}** words and an aligned one **{words[1]:.0f}**; "
        f"{percent(lists[0])} of the base and {percent(lists[1])} of the aligned ones are lists."
    )


def _length(scores: pd.DataFrame, prompt_id: str | None, named: Mapping[str, str]) -> str | None:
    """Words and lists of systems that are called by their names."""
    found = {
        name: (value_of(scores, prompt_id, system, "words"), value_of(scores, prompt_id, system, "list_share"))
        for name, system in named.items()
    }
    found = {name: pair for name, pair in found.items() if not np.isnan(pair).any()}
    if not found:
        return None
    first, *others = found
    text = f"a response of {first} has **{found[first][0]:.0f}** words"
    text += "".join(f" and one of {name} **{found[name][0]:.0f}**" for name in others)
    lists = [f"{percent(found[name][1])} of those of {name}" for name in found]
    return f"{text}; {' and '.join(lists)} are lists."


def _nearness(
    dataset: Dataset, scores: pd.DataFrame, prompt_id: str | None, base: str | None, aligned: str | None
) -> str | None:
    """How near each kind of system comes to the aligned one, beside the aligned one against itself."""
    helped = helped_system(dataset)
    if base is None or aligned is None:
        return None
    values = {s: value_of(scores, prompt_id, s, TO_ALIGNED) for s in (base, helped, aligned) if s}
    if np.isnan(list(values.values())).any():
        return None
    middle = f", **{values[helped]:.2f}** with {_help_words(dataset, helped)}" if helped else ""
    return (
        f"the base model's similarity to the aligned responses is **{values[base]:.2f}** on its own{middle}; "
        f"aligned responses among themselves reach {values[aligned]:.2f}."
    )


def helped_system(dataset: Dataset) -> str | None:
    """The in-context system with the most help: one that was given a hint, else the first one.

    One that imitates the aligned system of these sentences goes before those with other teachers.
    """
    names = dataset.systems_with_role("in-context")
    strategies = dict(zip(dataset.systems["system"], dataset.systems["strategy"].fillna(""), strict=True))
    hinted = [n for n in names if "hint" in strategies[n] and "own" not in strategies[n]]
    teacher = representative(dataset, "aligned")
    fitting = [n for n in hinted if parameters_of(dataset, n).get("teacher") == teacher]
    return (fitting or hinted or names or [None])[0]


def _help_words(dataset: Dataset, system: str) -> str:
    strategy = dataset.systems.loc[dataset.systems["system"] == system, "strategy"].fillna("").iloc[0]
    return "examples and a hint" if "hint" in strategy else "examples in its context"
