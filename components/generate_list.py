"""The earlier runs of the workspace: how far each is, and going on with it."""

from __future__ import annotations

import streamlit as st

from components import generate_runs as runs
from components.text import literal

_FIRST = 8


def earlier_runs() -> None:
    """One row a run, the latest first."""
    st.markdown("##### Earlier runs")
    found = runs.earlier()
    if not found:
        st.caption(
            "Every run is kept here, whatever ends it (Stop, a crash, a power cut), and goes on with exactly the "
            "samples that are missing."
        )
        return
    for one in found[:_FIRST]:
        _row(one)
    if len(found) > _FIRST:
        with st.expander(f"{len(found) - _FIRST} older ones"):
            for one in found[_FIRST:]:
                _row(one)


def _row(one: runs.Earlier) -> None:
    past = one.past
    with st.container(horizontal=True, vertical_alignment="center"):
        state = " :green-badge[complete]" if one.complete else ""
        st.markdown(f"**{literal(past.name, 80)}**{state} :gray[· {one.far} · {one.ago}]", width="stretch")
        if not one.complete:
            st.button(
                "Go on",
                icon=":material/play_arrow:",
                key=f"go on {past.name}",
                on_click=runs.go_on,
                args=(past,),
                help="Generates exactly the samples that are missing.",
            )
        st.button(
            "Show",
            icon=":material/edit_document:",
            key=f"show {past.name}",
            type="tertiary",
            on_click=runs.show,
            args=(past,),
            help="Puts its specification into the editor.",
        )
