"""Data: the datasets there are, what can be read of each, and opening something of one's own."""

import streamlit as st

from components import state
from components.data_detail import SAID, ask_if_asked, dataset_detail
from components.data_formats import formats
from components.data_list import dataset_list, entries
from components.data_open import looking_at_opened, open_fields, opened, reminder, settle
from components.data_preview import preview
from components.guard import guarded


def said() -> None:
    """The sentence on what was just done."""
    kind, sentence = st.session_state.pop(SAID, (None, ""))
    if kind == "error":
        st.error(sentence, icon=":material/error:")
    elif kind is not None:
        st.success(sentence, icon=":material/check:")


@guarded
def page() -> None:
    """Choose, call, show."""
    found = entries(state.workspace())
    left, right = st.columns([1, 2.6], gap="large")
    with right:
        settle()
    with left:
        if found:
            st.markdown("##### Datasets")
            dataset_list(found, None if looking_at_opened() else state.current_dataset())
        st.markdown("##### Open something of your own")
        open_fields()
        reminder()
    with right:
        said()
        opening = opened()
        if opening is not None and looking_at_opened():
            preview(opening)
        elif found:
            dataset_detail(next(entry for entry in found if entry.name == state.current_dataset()))
            ask_if_asked()
        else:
            st.markdown("##### There is no dataset yet")
            st.markdown("Drop a file on the left, or name a path: you see what was read before anything is saved.")
        formats(expanded=not found and opening is None)


page()
