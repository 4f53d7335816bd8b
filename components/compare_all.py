"""All prompts: one small figure per lens, and the table of lenses by systems."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from components import compare_lenses as cl
from components import state
from components.compare import CLICKS, DIFFER, VIEW, clicked_row, left_out_note
from components.compare_pair import LENS
from components.figures import STILL
from components.figures.strips import strip
from components.text import excerpt, literal
from components.theme import icon
from core.statistics import Estimate


def figures(loaded: state.Loaded, systems: Sequence[str]) -> None:
    """A figure per lens under three headings; a lens and its twin of equal length stand side by side."""
    summary = state.summary_of(loaded)
    made = cl.measures(loaded)
    lengths = cl.rows_of(summary, "words", systems)
    _legend(loaded, systems)
    for title, pairs in cl.groups(made).items():
        st.markdown(f"##### {literal(title)}")
        wide = 4 if any(len(pair) > 1 for pair in pairs) or len(pairs) < 5 else 5
        with st.grid(wide, min_column_width=220, gap=("medium", "medium")) as grid:
            for pair in pairs:
                with grid.cell(column_span=len(pair)):
                    for column, measure in zip(st.columns(len(pair), gap="medium"), pair, strict=True):
                        with column:
                            _figure(loaded, measure, cl.rows_of(summary, measure.id, systems), lengths)
    left_out_note(loaded, systems)


def _legend(loaded: state.Loaded, systems: Sequence[str]) -> None:
    named = "  ".join(f"{icon(loaded.styles[s])} {literal(s, 60)}" for s in systems)
    st.markdown(f":small[In each figure from top to bottom: {named}]")


def _figure(
    loaded: state.Loaded, measure: cl.Measure, rows: Mapping[str, Estimate], lengths: Mapping[str, Estimate]
) -> None:
    st.markdown(f"**{literal(measure.name)}**", help=_escaped_help(measure))
    st.markdown(cl.seen(measure, rows, loaded.scores))
    values = {s: e.value for s, e in rows.items()}
    if any(v == v for v in values.values()):
        chart = strip(
            list(rows),
            loaded.styles,
            values,
            intervals={s: (e.low, e.high) for s, e in rows.items()},
            form=measure.form,
            high=0.1 if measure.unit == "share" else None,
        )
        chart["layout"]["xaxis"]["tickformat"] = ".0%" if measure.unit == "share" else ""
        shown = ", ".join(f"{s} {cl.number(v, measure.form)}" for s, v in values.items())
        st.plotly_chart(chart, key=f"figure {measure.id}", config=STILL, alt=f"{measure.name}: {shown}")
    lines = cl.counted(loaded, measure, rows)
    if measure.reading == "higher = more diverse" or measure.id.startswith("pairwise"):
        lines.append("length: " + ", ".join(cl.number(e.value, ".0f") for e in lengths.values()) + " words")
    st.caption("  \n".join(literal(line, 400) for line in lines))


def _escaped_help(measure: cl.Measure) -> str:
    return literal(f"{measure.description} ({measure.reading})", 600)


def table(loaded: state.Loaded, systems: Sequence[str]) -> None:
    """Lenses by systems: value, interval and number of prompts; a click shows the prompts that differ most."""
    summary = state.summary_of(loaded)
    made = cl.measures(loaded)
    values = {m.id: cl.rows_of(summary, m.id, systems) for m in made}
    _table_head(loaded, summary, made, values)
    frame = pd.DataFrame({"measure": [m.name for m in made], "reading": [m.reading for m in made]})
    config = {
        "measure": st.column_config.TextColumn("Measure", width=320, pinned=len(systems) > 4),
        "reading": st.column_config.TextColumn("Reading", width=150),
    }
    for k, system in enumerate(systems):
        frame[f"s{k}"] = [cell(values[m.id][system], m.form) for m in made]
        config[f"s{k}"] = st.column_config.TextColumn(
            f"{loaded.styles[system].mark} {excerpt(system, 40)}", help=literal(system)
        )
    key = f"lens table {loaded.dataset.name}"
    st.dataframe(
        frame,
        hide_index=True,
        height="content",
        column_config=config,
        key=key,
        on_select=lambda: _open_lens(key, [m.id for m in made]),
        selection_mode=CLICKS,
        alt="Value, interval and number of prompts of every lens for the chosen systems",
    )
    _dashes(loaded, made, values)
    left_out_note(loaded, systems)


def _table_head(
    loaded: state.Loaded,
    summary: pd.DataFrame,
    made: Sequence[cl.Measure],
    values: Mapping[str, Mapping[str, Estimate]],
) -> None:
    defined = sum(any(e.value == e.value for e in rows.values()) for rows in values.values())
    left, right = st.columns([5, 1], vertical_alignment="center")
    with left:
        st.markdown(
            f"**{defined} of {len(made)}** measures are defined for the chosen systems. Each cell: mean over prompts "
            "(95 % interval) · number of prompts. Click a row to see where two systems differ most in it."
        )
    with right:
        st.download_button(
            "CSV of all systems",
            csv_of(summary, made),
            f"{loaded.dataset.name} lenses.csv",
            "text/csv",
            icon=":material/download:",
            on_click="ignore",
        )


def cell(estimate: Estimate, form: str) -> str:
    """Value, interval and n in one cell; a dash where it is undefined."""
    if estimate.value != estimate.value:
        return cl.DASH
    return " ".join(
        part for part in (cl.number(estimate.value, form), cl.interval(estimate, form), f"· {estimate.n}") if part
    )


def csv_of(summary: pd.DataFrame, made: Sequence[cl.Measure]) -> bytes:
    """All systems, one row per lens and system; undefined values are empty."""
    names = {m.id: m.name for m in made}
    rows = summary[summary["lens"].isin(names)]
    rows = rows.assign(name=rows["lens"].map(names))[["lens", "name", "system", "value", "low", "high", "n"]]
    return rows.rename(columns={"n": "prompts"}).to_csv(index=False).encode()


def _dashes(loaded: state.Loaded, made: Sequence[cl.Measure], values: Mapping[str, Mapping[str, Estimate]]) -> None:
    """Why a cell holds a dash: once for measures and systems that share a reason."""
    found: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for measure in made:
        rows = values[measure.id]
        reasons: dict[str, list[str]] = {}
        for system, estimate in rows.items():
            if estimate.value != estimate.value:
                reasons.setdefault(cl.why_undefined(loaded, system, measure), []).append(system)
        for why, who in reasons.items():
            found.setdefault((why, tuple(who) if len(who) < len(rows) else ()), []).append(measure.name)
    lines = [f"{cl.DASH} {_few(names)}{_of(who)}: {why}" for (why, who), names in found.items()]
    if lines:
        st.caption("  \n".join(literal(line, 400) for line in lines))


def _of(systems: Sequence[str]) -> str:
    return f" of {', '.join(systems)}" if systems else ""


def _few(names: list[str]) -> str:
    return ", ".join(names) if len(names) < 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _open_lens(key: str, ids: list[str]) -> None:
    row = clicked_row(st.session_state[key])
    if row is not None:
        st.session_state[LENS] = ids[row]
        st.session_state[VIEW] = DIFFER
