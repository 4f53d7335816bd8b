"""What the views over all prompts say of a measure: its name, its numbers, one sentence, and why it is undefined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from components import state
from components.text import literal
from core import lenses
from core.scores import representative
from core.statistics import Estimate

DASH = "–"


@dataclass(frozen=True)
class Measure:
    """A row of the table: a lens, or the similarity to the teacher."""

    id: str
    name: str
    unit: str
    description: str
    reading: str
    twin: str | None = None
    needs_vectors: bool = False
    needs_two: bool = False
    teacher: str | None = None

    @property
    def form(self) -> str:
        """How a value is written, as a format specification."""
        return {"words": ".0f", "share": ".0%"}.get(self.unit, ".2f")


_ALIKE = "higher = more alike"
_TO_TEACHER = (
    ("lexical_to_teacher", "in words", "Share of words that a response has in common with one of {0}"),
    ("vector_to_teacher", "in meaning", "Cosine between the vectors of a response and of one of {0}"),
)
_OTHERS = (
    " Only samples of {0} after the first count: a hint may have been made from the first, so this is the fairer "
    "value where there was one."
)
_CEILING = " The ceiling: {0} against itself."


def teacher_measures(teacher: str) -> list[Measure]:
    """Similarity to the aligned system, to all of its samples and to those no hint was made from."""
    made = []
    for key, how, what in _TO_TEACHER:
        for suffix, name, more in (("", "", "."), ("_other_samples", ", samples after the first", "." + _OTHERS)):
            made.append(
                Measure(
                    id=f"{key}{suffix}",
                    name=f"Similarity to {teacher} {how}{name}",
                    unit="score",
                    description=(what + ", over all pairs of one prompt" + more + _CEILING).format(teacher),
                    reading=_ALIKE,
                    needs_vectors=key.startswith("vector"),
                    teacher=teacher,
                )
            )
    return made


def measures(loaded: state.Loaded) -> list[Measure]:
    """Every lens, and the similarities to the aligned system, as far as the dataset has scores of them."""
    made = [
        Measure(i, x.name, x.unit, x.description, x.reading, x.twin, x.needs_vectors, _needs_two(x))
        for i, x in lenses.LENSES.items()
    ]
    teacher = representative(loaded.dataset, "aligned")
    if teacher is not None:
        made += teacher_measures(teacher)
    there = set(loaded.scores["lens"])
    return [measure for measure in made if measure.id in there]


def _needs_two(lens: lenses.Lens) -> bool:
    """Whether the lens compares responses with each other, so that a single response has no value."""
    return lens.needs_vectors or lens.id.startswith("pairwise")


def groups(made: Sequence[Measure]) -> dict[str, list[list[Measure]]]:
    """Measures under headings; a measure and its twin of equal length stand together."""
    twins = {m.twin for m in made if m.twin}
    by_id = {m.id: m for m in made}
    found: dict[str, list[list[Measure]]] = {}
    for measure in made:
        if measure.id in twins:
            continue
        title = "Length and form" if measure.reading == "neutral" else "Diversity"
        if measure.teacher:
            title = f"Similarity to {measure.teacher}"
        pair = [measure] + ([by_id[measure.twin]] if measure.twin in by_id else [])
        found.setdefault(title, []).append(pair)
    return {title: sorted(pairs, key=len, reverse=True) for title, pairs in found.items()}


def rows_of(summary: pd.DataFrame, lens: str, systems: Sequence[str]) -> dict[str, Estimate]:
    """Value, interval and number of prompts by system, undefined where there is no row."""
    rows = summary[summary["lens"] == lens].set_index("system")
    nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
    return {
        s: Estimate(*(float(rows.at[s, c]) for c in ("value", "low", "high")), int(rows.at[s, "n"]))
        if s in rows.index
        else nothing
        for s in systems
    }


def number(value: float, form: str) -> str:
    """A value as it is shown: a dash where it is undefined, a true minus sign."""
    if value != value:
        return DASH
    shown = f"{value:{form}}".replace("-", "−").replace("%", "\u00a0%")
    return shown if any(digit in shown for digit in "123456789") else shown.lstrip("−")


def interval(estimate: Estimate, form: str) -> str:
    """The interval in brackets; nothing where there is none."""
    if estimate.low != estimate.low:
        return ""
    return f"({number(estimate.low, form)} to {number(estimate.high, form)})"


def why_undefined(loaded: state.Loaded, system: str, measure: Measure) -> str:
    """The reason why a measure has no value for a system, in a few words."""
    rows = loaded.dataset.usable_responses
    own = rows[rows["system"] == system]
    if not len(own):
        return "no usable response"
    if measure.needs_vectors and loaded.vectors is None:
        return "it needs vectors, which the Explore page makes"
    if not own["text"].str.strip().any():
        return "all responses are empty"
    if own.groupby("prompt_id").size().max() < 2 and (measure.needs_two or measure.teacher == system):
        return "it compares responses, and there is only one to each prompt"
    if measure.teacher:
        return f"no prompt has responses both here and of {measure.teacher} that can be compared"
    return "no prompt has a defined value"


def seen(measure: Measure, rows: Mapping[str, Estimate], scores: pd.DataFrame) -> str:
    """One sentence on what a figure shows, as Markdown."""
    known = {s: e for s, e in rows.items() if e.value == e.value}
    form = measure.form
    if not known:
        return "Undefined for all chosen systems."
    if len(known) == 1:
        ((system, only),) = known.items()
        return f"**{literal(system, 40)}**: {number(only.value, form)} {interval(only, form)}".rstrip() + "."
    top = max(known, key=lambda s: known[s].value)
    low = min(known, key=lambda s: known[s].value)
    if number(known[top].value, form) == number(known[low].value, form):
        return f"All are at {number(known[top].value, form)}."
    high_word, low_word = _extremes(measure)
    between = lenses.paired_difference(scores, top, low, measure.id)
    sure = "" if between.low > 0 else " The difference could be chance."
    return (
        f"{high_word}: **{literal(top, 40)}** ({number(known[top].value, form)}); {low_word}: "
        f"**{literal(low, 40)}** ({number(known[low].value, form)}).{sure}"
    )


def _extremes(measure: Measure) -> tuple[str, str]:
    if measure.teacher:
        return "Nearest", "farthest"
    if measure.reading == "higher = more diverse":
        return "Most diverse", "least"
    if measure.reading == _ALIKE:
        return "Most alike", "least"
    return ("Longest", "shortest") if measure.unit == "words" else ("Highest", "lowest")


def counted(loaded: state.Loaded, measure: Measure, rows: Mapping[str, Estimate]) -> list[str]:
    """The small lines below a figure: prompts and interval, and each system without a value with the reason."""
    total = len(loaded.dataset.prompts)
    known = {s: e for s, e in rows.items() if e.value == e.value}
    lines = []
    if known:
        most = max(e.n for e in known.values())
        fewer = [f"{s} {e.n}" for s, e in known.items() if e.n < most]
        n = f"n = {most}" + (f" of {total}" if most < total else "") + " prompts"
        bars = "bars: 95 % interval" if any(e.low == e.low for e in known.values()) else "too few for an interval"
        lines.append(f"{n} · {bars}")
        if fewer:
            lines.append(f"fewer: {', '.join(fewer)}")
    reasons: dict[str, list[str]] = {}
    for system in rows:
        if system not in known:
            reasons.setdefault(why_undefined(loaded, system, measure), []).append(system)
    return lines + [f"{DASH} {', '.join(who)}: {why}" for why, who in reasons.items()]
