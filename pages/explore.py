"""Explore: one prompt (or the whole dataset) as a map of its responses, and the text behind each dot."""

import streamlit as st

from components import explore, picker, selection, state
from components.guard import guarded
from components.reading import reading_panel
from components.sentences import explain


@guarded
def page() -> None:
    """Choose, call, show."""
    loaded, prompt_id = picker.top()
    scope = st.session_state.get("scope", explore.PROMPT_ONLY)
    shown = prompt_id if scope != explore.WHOLE else None
    sentences = st.container()
    chosen_systems, colour_by = explore.controls(loaded)
    loaded = state.part(loaded, shown, chosen_systems)
    sentences.markdown(" ".join(explain(loaded.dataset, loaded.scores, shown, chosen_systems)))
    picture, reading = st.columns([1.9, 1], gap="medium")
    with picture:
        dots = explore.map_or_offer(loaded, shown, chosen_systems, colour_by)
        if colour_by == "cluster" and dots is not None:
            explore.cluster_list(loaded, shown)
        explore.small_figures(loaded, shown, chosen_systems)
    chosen = selection.unfold(st.session_state.get(state.SELECTED, []), dots) if dots is not None else []
    with reading, st.container(border=True):
        reading_panel(loaded, chosen, prompt_id=shown, systems=chosen_systems)
    if chosen:
        selection.selection_table(loaded, chosen)


page()
