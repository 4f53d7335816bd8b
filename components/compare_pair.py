"""Two systems: how much they differ in a lens, and the prompts where they differ most."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from components import compare_lenses as cl
from components import state, systems
from components.compare import CLICKS, READ, VIEW, clicked_row, left_out_note
from components.figures import STILL
from components.figures.differences import differences
from components.text import excerpt, literal
from core import lenses
from core.scores import representative
from core.statistics import Estimate

LENS = "compare lens"
_LENGTH = "words"
_FIRST, _ALL = 12, "compare_all_prompts"


def two_systems(loaded: state.Loaded) -> None:
    """Choose two systems and a lens; the paired difference as a sentence and a figure; the prompts as a table."""
    names = list(loaded.dataset.roles())
    if len(names) < 2:
        st.markdown("This dataset has one system only: there is nothing to compare it with.")
        return
    a, b, measure = _choose(loaded, names)
    if a == b:
        st.markdown("Choose two different systems.")
        return
    table = lenses.per_prompt_difference(loaded.scores, a, b, measure.id)
    _difference_with_twin(loaded, measure, a, b, table)
    _prompts(loaded, measure, a, b, table)
    left_out_note(loaded, [a, b])


def _pair(loaded: state.Loaded, names: list[str]) -> tuple[str, str]:
    """Aligned and base where there are both; else the first two."""
    a, b = (representative(loaded.dataset, role) for role in ("aligned", "base"))
    rest = [n for n in names if n not in (a, b)]
    a = a or rest.pop(0)
    return a, b or next(n for n in [*rest, *names] if n != a)


def _choose(loaded: state.Loaded, names: list[str]) -> tuple[str, str, cl.Measure]:
    made = {m.id: m for m in cl.measures(loaded)}
    first = _pair(loaded, names)
    if st.session_state.get(LENS) not in made:
        st.session_state[LENS] = "pairwise_jaccard_simple" if "pairwise_jaccard_simple" in made else next(iter(made))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen = [
            st.selectbox(
                label,
                names,
                index=names.index(default),
                format_func=lambda s: f"{loaded.styles[s].mark} {excerpt(s, 60)}",
                key=f"compare {label} {loaded.dataset.name}",
                persist_state="session",
                width=300,
            )
            for label, default in zip(("System", "minus"), first, strict=True)
        ]
        lens = st.selectbox(
            "in", list(made), format_func=lambda i: made[i].name, key=LENS, persist_state="session", width=340
        )
    return chosen[0], chosen[1], made[lens]


def _difference_with_twin(loaded: state.Loaded, measure: cl.Measure, a: str, b: str, table: pd.DataFrame) -> None:
    """The figure of the lens, beside it its twin of equal length, and the length itself."""
    by_id = {m.id: m for m in cl.measures(loaded)}
    whole = next((m.id for m in by_id.values() if m.twin == measure.id), None)
    beside = [measure.id, measure.twin or whole, None if measure.id == _LENGTH else _LENGTH]
    shown = [by_id[i] for i in beside if i in by_id]
    for column, one in zip(st.columns(len(shown), gap="medium"), shown, strict=True):
        with column:
            own = table if one is measure else lenses.per_prompt_difference(loaded.scores, a, b, one.id)
            _figure(loaded, one, a, b, own)


def _figure(loaded: state.Loaded, measure: cl.Measure, a: str, b: str, table: pd.DataFrame) -> None:
    st.markdown(f"**{literal(measure.name)}**", help=literal(measure.description, 600))
    mean = lenses.paired_difference(loaded.scores, a, b, measure.id)
    st.markdown(difference_sentence(measure, mean, a, b, table["difference"].dropna().tolist()))
    if mean.n:
        texts = dict(zip(loaded.dataset.prompts["prompt_id"], loaded.dataset.prompts["text"], strict=True))
        chart = differences(
            table["difference"].tolist(),
            [texts[p] for p in table["prompt_id"]],
            mean,
            loaded.styles[a],
            loaded.styles[b],
            form=measure.form,
        )
        alt = (
            f"{measure.name}: {a} minus {b} for each of {mean.n} prompts, mean {cl.number(mean.value, measure.form)}"
        )
        st.plotly_chart(chart, key=f"difference {measure.id}", config=STILL, alt=alt)
    st.caption(_below(loaded, mean))


def difference_sentence(measure: cl.Measure, mean: Estimate, a: str, b: str, differ: Sequence[float]) -> str:
    """One sentence on the paired difference, as Markdown."""
    one, two = f"**{literal(a, 40)}**", f"**{literal(b, 40)}**"
    if not mean.n:
        return f"Undefined: no prompt has a value for both {one} and {two}."
    form = measure.form
    span = f" (difference {cl.interval(mean, form)[1:]}" if mean.low == mean.low else ""
    if number_is_zero(mean.value, form):
        return f"{one} and {two} do not differ on average{span}, over {mean.n} prompts."
    word = "above" if mean.value > 0 else "below"
    by = abs(mean.value)
    size = (
        f"{by:.0f} words" if measure.unit == "words" else f"{100 * by:.0f} points" if measure.unit == "share" else ""
    )
    same = sum(d > 0 if mean.value > 0 else d < 0 for d in differ)
    chance = " This could be chance." if mean.low <= 0 <= mean.high else ""
    return (
        f"{one} lies {size or cl.number(by, form)} {word} {two} on average{span}, and {word} it on {same} of "
        f"{len(differ)} prompts.{chance}"
    )


def number_is_zero(value: float, form: str) -> bool:
    """Whether a value is shown as zero."""
    return cl.number(abs(value), form) == cl.number(0.0, form)


def _below(loaded: state.Loaded, mean: Estimate) -> str:
    total = len(loaded.dataset.prompts)
    n = f"n = {mean.n} of {total} prompts with a value for both"
    if not mean.n:
        return n
    known = mean.low == mean.low
    bars = "diamond: mean with 95 % interval over prompts" if known else "no interval: it takes two prompts"
    return f"{n} · a dot per prompt · {bars}"


def _prompts(loaded: state.Loaded, measure: cl.Measure, a: str, b: str, table: pd.DataFrame) -> None:
    """The prompts, those first on which the two differ most; a click reads the responses there."""
    texts = dict(zip(loaded.dataset.prompts["prompt_id"], loaded.dataset.prompts["text"], strict=True))
    known = table[table["difference"].notna()]
    st.markdown("##### Where they differ most")
    if not len(known):
        st.caption("No prompt has a value for both.")
        return
    st.caption("Click a row to read the responses to that prompt side by side.")
    everything = st.session_state.get(_ALL, False)
    shown = known if everything else known.head(_FIRST)
    shown = shown.assign(prompt=[excerpt(texts[p], 140) for p in shown["prompt_id"]])
    form = {"words": "%.0f", "share": "percent"}.get(measure.unit, "%.3f")
    key = f"differ {loaded.dataset.name} {measure.id}"
    st.dataframe(
        shown[["prompt", "a", "b", "difference"]],
        hide_index=True,
        height="content" if len(shown) <= 100 else 1200,
        key=key,
        on_select=lambda: _read(loaded, key, known["prompt_id"].tolist(), (a, b)),
        selection_mode=CLICKS,
        column_config={
            "prompt": st.column_config.TextColumn("Prompt", width="large"),
            "a": st.column_config.NumberColumn(f"{loaded.styles[a].mark} {excerpt(a, 40)}", format=form),
            "b": st.column_config.NumberColumn(f"{loaded.styles[b].mark} {excerpt(b, 40)}", format=form),
            "difference": st.column_config.NumberColumn("Difference", format=form),
        },
        alt=f"Prompts by the difference between {a} and {b} in {measure.name}",
    )
    if len(known) > _FIRST:
        label = f"Show the first {_FIRST}" if everything else f"Show all {len(known)} prompts"
        st.button(label, key="compare more prompts", icon=":material/unfold_more:", on_click=_toggle)


def _toggle() -> None:
    st.session_state[_ALL] = not st.session_state.get(_ALL, False)


def _read(loaded: state.Loaded, key: str, prompts: list[str], pair: tuple[str, str]) -> None:
    """Go to the prompt of the clicked row, with the two systems among those that are shown."""
    row = clicked_row(st.session_state[key])
    if row is None:
        return
    state.choose_prompt(prompts[row])
    systems.choose(loaded, [*pair, *systems.chosen(loaded)])
    st.session_state[VIEW] = READ
