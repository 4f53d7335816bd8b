"""What the views of the Compare page share: which view, which systems, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from components import state
from components.text import literal
from core.dataset import Dataset, parameters_of, summary

VIEW = "compare view"
READ, FIGURES, TABLE, DIFFER = "One prompt", "All prompts: figures", "All prompts: table", "Where two differ"
VIEWS = (READ, FIGURES, TABLE, DIFFER)
CLICKS = ("single-row", "single-cell")  # what a table takes for a click on a row


def clicked_row(event: Any) -> int | None:
    """The row of a table that was clicked, on its box or on any of its cells; None where a choice was undone."""
    chosen = event["selection"]
    rows = [*chosen.get("rows", []), *(cell[0] for cell in chosen.get("cells", []))]
    return int(rows[0]) if rows else None


def view_switch() -> str:
    """One prompt, or one of the three views over all prompts; kept across pages."""
    st.session_state.setdefault(VIEW, READ)
    return st.segmented_control(
        "View", VIEWS, required=True, key=VIEW, persist_state="session", label_visibility="collapsed"
    )


@st.cache_data(max_entries=16, show_spinner=False)
def _counts(name: str, key: str, _dataset: Dataset) -> dict[str, dict[str, Any]]:
    return summary(_dataset)["systems"]


def counts_of(loaded: state.Loaded) -> dict[str, dict[str, Any]]:
    """Counts of responses by system, as `core.dataset.summary` gives them."""
    return _counts(loaded.dataset.name, str(id(loaded)), loaded.dataset)


def left_out(loaded: state.Loaded, systems: Sequence[str]) -> list[str]:
    """What a reader of the figures should know: responses that are not counted, cut ones, uneven token limits."""
    counts = counts_of(loaded)
    prompts = len(loaded.dataset.prompts)
    notes = []
    for system in systems:
        own, parts = counts[system], []
        if own["usable"] < own["responses"]:
            errors = f"{own['errors']} {'error' if own['errors'] == 1 else 'errors'}"
            why = [
                what
                for k, what in (("errors", errors), ("no_answer", f"{own['no_answer']} without an answer"))
                if own[k]
            ]
            parts.append(f"{own['usable']} of {own['responses']} responses are usable ({', '.join(why)})")
        if own["prompts"] < prompts:
            parts.append(f"{own['prompts']} of {prompts} prompts have usable responses")
        if own["cut"]:
            parts.append(f"{own['cut']} of {own['usable']} were cut by the token limit")
        if own["empty"]:
            parts.append(f"{own['empty']} empty")
        if parts:
            notes.append(f"{system}: {', '.join(parts)}")
    return notes + _limits(loaded.dataset, systems)


def _limits(dataset: Dataset, systems: Sequence[str]) -> list[str]:
    limits = {s: parameters_of(dataset, s).get("max_new_tokens") for s in systems}
    known = {s: limit for s, limit in limits.items() if limit is not None}
    if len(set(map(str, known.values()))) < 2:
        return []
    told = ", ".join(f"{s} {limit}" for s, limit in known.items())
    return [f"Token limits differ, so lengths do not compare directly: {told}"]


def left_out_note(loaded: state.Loaded, systems: Sequence[str]) -> None:
    """The notes of `left_out` as small lines; nothing where nothing was left out."""
    notes = left_out(loaded, systems)
    if notes:
        st.caption("  \n".join(literal(note, 500) for note in notes))
