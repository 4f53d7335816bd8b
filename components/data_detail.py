"""The chosen dataset: what can be read of it, roles, the way to Explore, export and deletion."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components import state
from components.data_counts import changed, number, role_editor, sentence
from components.data_list import Entry
from components.downloads import LABELS, download_button
from components.text import literal
from core.dataset import summary
from core.errors import OvertonError
from core.export import FORMATS, export_bytes
from core.workspace import Workspace

SAID = "data_said"  # a sentence for the next drawing of the page: what was just done


def _stamp(name: str) -> tuple[int, ...]:
    """Changes whenever a dataset or its roles have changed."""
    space = state.workspace()
    files = (space.path(name) / "manifest.json", space.root / "roles" / f"{name}.json")
    return tuple(file.stat().st_mtime_ns for file in files if file.exists())


@st.cache_data(max_entries=32, show_spinner="Counting the responses …")
def _counts(name: str, stamp: tuple[int, ...]) -> dict[str, Any]:
    return summary(state.workspace().load(name))


def counts_of(name: str) -> dict[str, Any]:
    """`core.dataset.summary` of a dataset, counted once. Raises `OvertonError` where it cannot be read."""
    return _counts(name, _stamp(name))


def dataset_detail(entry: Entry) -> None:
    """Everything about one dataset."""
    st.markdown(f"##### {literal(entry.name, 100)}" + (" :gray-badge[shipped]" if entry.shipped else ""))
    if entry.error is not None:
        st.error(literal(entry.error, 600), icon=":material/error:")
        _delete_button(entry)
        return
    if entry.history:
        st.caption(literal(entry.history, 300))
    try:
        counts = counts_of(entry.name)
    except OvertonError as error:
        st.error(literal(str(error), 600), icon=":material/error:")
        _delete_button(entry)
        return
    _actions(entry)
    st.markdown(sentence(counts))
    roles = role_editor(counts, f"roles {entry.name} {hash(_stamp(entry.name))}")
    _save_roles(entry.name, changed(counts, roles))


def _actions(entry: Entry) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Open in Explore",
            icon=":material/scatter_plot:",
            type="primary",
            key="data_explore",
            on_click=_go,
            args=(entry.name,),
        )
        if st.session_state.pop(_GOING, False):
            st.switch_page("pages/explore.py")
        st.space("stretch")
        for format in FORMATS:
            _download(state.workspace(), entry.name, format)
        _delete_button(entry)


_GOING = "data_going"


def _go(name: str) -> None:
    st.session_state[state.DATASET] = name
    st.session_state[_GOING] = True


def _download(workspace: Workspace, name: str, format: str) -> None:
    """A button whose file is made at the click."""
    download_button(
        format,
        lambda: export_bytes(workspace.load(name), format),
        name=name,
        key=f"data_export {format}",
        help=f"Export all responses as one {LABELS[format]} file, one row a response.",
    )


def _save_roles(name: str, roles: dict[str, str]) -> None:
    """Below the table: a button that is awake when there is something to save."""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Save roles",
            icon=":material/check:",
            key="data_save_roles",
            disabled=not roles,
            on_click=_keep_roles,
            args=(name, roles),
        )
        if roles:
            st.caption(f"{number(len(roles), 'role')} changed and not saved yet.")
        else:
            st.caption(
                "A role says what a system stands for; click one in the table to change it. Texts never change."
            )


def _keep_roles(name: str, roles: dict[str, str]) -> None:
    try:
        state.workspace().set_roles(name, roles)
    except OvertonError as error:
        st.session_state[SAID] = ("error", literal(str(error), 600))
        return
    st.session_state[SAID] = ("success", f"{number(len(roles), 'role')} saved.")


def _delete_button(entry: Entry) -> None:
    if entry.shipped:
        return
    st.button(
        "Delete",
        icon=":material/delete:",
        type="tertiary",
        key="data_delete",
        on_click=_ask,
        args=(entry,),
        help="Asks before it deletes.",
    )


_ASKED = "data_asked"


def _ask(entry: Entry) -> None:
    st.session_state[_ASKED] = entry


def ask_if_asked() -> None:
    """The question whether a dataset is to be deleted, where its button was pressed."""
    entry = st.session_state.pop(_ASKED, None)
    if entry is not None:
        _question(entry)


@st.dialog("Delete this dataset?", icon=":material/delete:")
def _question(entry: Entry) -> None:
    what = f" ({literal(entry.sizes)})" if entry.sizes else ""
    st.markdown(f"**{literal(entry.name, 100)}**{what} will be gone from the workspace, and cannot be brought back.")
    st.caption("The files that it was read from stay where they are.")
    with st.container(horizontal=True, horizontal_alignment="right"):
        if st.button("Keep it", key="data_delete_no"):
            st.rerun()
        if st.button(
            "Delete",
            icon=":material/delete:",
            type="primary",
            key="data_delete_yes",
            on_click=_delete,
            args=(entry,),
        ):
            st.rerun()


def _delete(entry: Entry) -> None:
    try:
        state.workspace().delete(entry.name)
    except OvertonError as error:
        st.session_state[SAID] = ("error", literal(str(error), 600))
        return
    if st.session_state.get(state.DATASET) == entry.name:
        st.session_state.pop(state.DATASET)
        st.session_state.pop(state.PROMPT, None)
        st.session_state[state.SELECTED] = []
    st.session_state[SAID] = ("success", f"{literal(entry.name, 100)} was deleted.")
