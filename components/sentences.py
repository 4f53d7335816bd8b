"""The sentences above a figure: every number in them is computed from the responses that the figure shows."""

from __future__ import annotations

import weakref

import numpy as np
import pandas as pd

from core.dataset import Dataset, parameters_of
from core.scores import representative

JACCARD, TO_ALIGNED = "pairwise_jaccard_simple", "vector_to_teacher"


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{100 * share:.0f} %"


def value_of(scores: pd.DataFrame, prompt_id: str | None, system: str, lens: str) -> float:
    """A lens value for one prompt, or its mean over prompts for `prompt_id` None; NaN where undefined."""
    return _values(scores).get((prompt_id, system, lens), float("nan"))


# By the identity of the table: the same few are asked again and again, and looking rows up takes milliseconds.
_KNOWN: dict[int, tuple[weakref.ref[pd.DataFrame], dict[tuple[str | None, str, str], float]]] = {}


def _values(scores: pd.DataFrame) -> dict[tuple[str | None, str, str], float]:
    """Values by (prompt, system, lens), and their means over prompts under the prompt None."""
    known = _KNOWN.get(id(scores))
    if known is not None and known[0]() is scores:
        return known[1]
    rows = scores.dropna(subset=["value"])
    means = rows.groupby(["system", "lens"])["value"].mean()
    values: dict[tuple[str | None, str, str], float] = {(None, *key): float(v) for key, v in means.items()}
    keys = zip(rows["prompt_id"], rows["system"], rows["lens"], strict=True)
    values.update(zip(keys, rows["value"].astype(float), strict=True))
    number = id(scores)
    _KNOWN[number] = (weakref.ref(scores, lambda _: _KNOWN.pop(number, None)), values)
    return values


def explain(dataset: Dataset, scores: pd.DataFrame, prompt_id: str | None) -> list[str]:
    """At most three sentences on what is seen, for one prompt or (None) over all of them.

    A sentence whose numbers are undefined is left out.
    """
    base = representative(dataset, "base")
    aligned = representative(dataset, "aligned")
    where = "for this prompt" if prompt_id is not None else "over all prompts"
    made = [
        _sharing(scores, prompt_id, base, aligned, where),
        _length(scores, prompt_id, base, aligned),
        _nearness(dataset, scores, prompt_id, base, aligned),
    ]
    return [sentence for sentence in made if sentence]


def _sharing(
    scores: pd.DataFrame, prompt_id: str | None, base: str | None, aligned: str | None, where: str
) -> str | None:
    """How much two responses of one system have in common: in words, and in meaning where there are vectors."""
    named = [(role, system) for role, system in (("base", base), ("aligned", aligned)) if system]
    words = [(role, value_of(scores, prompt_id, system, JACCARD)) for role, system in named]
    words = [(role, value) for role, value in words if not np.isnan(value)]
    if not words:
        return None
    said = [f"two {words[0][0]} responses share **{percent(words[0][1])}** of their words"]
    said += [f"two {role} ones **{percent(value)}**" for role, value in words[1:]]
    text = f"{where} {', '.join(said)}"
    meaning = [1 - value_of(scores, prompt_id, system, "mean_cosine_distance") for _, system in named]
    if len(meaning) == 2 and not np.isnan(meaning).any():
        text += f"; in meaning they agree to **{meaning[0]:.2f}** and **{meaning[1]:.2f}** (1 = the same)"
    return f"{text[0].upper()}{text[1:]}."


def _length(scores: pd.DataFrame, prompt_id: str | None, base: str | None, aligned: str | None) -> str | None:
    if base is None or aligned is None:
        return None
    words = [value_of(scores, prompt_id, s, "words") for s in (base, aligned)]
    lists = [value_of(scores, prompt_id, s, "list_share") for s in (base, aligned)]
    if np.isnan([*words, *lists]).any():
        return None
    return (
        f"A base response has **{words[0]:.0f}** words and an aligned one **{words[1]:.0f}**; "
        f"{percent(lists[0])} of the base and {percent(lists[1])} of the aligned ones are lists."
    )


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
        f"The base model's similarity to the aligned responses is **{values[base]:.2f}** on its own{middle}; "
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
