"""Opening something of one's own: an upload or a path, and the wait while it is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components import state
from components.data_detail import SAID
from components.data_list import DATASET_VIEW, OPENED_VIEW, VIEW
from components.data_opening import SPEED, Opening
from components.text import literal
from core.errors import OvertonError, user_path

OPENED = "data_opened"
_UPLOADS = "data_uploads"  # counts up, so that a new, empty uploader takes the place of one that is done with
_PATIENCE = 1.2  # seconds; what is read by then is shown without a sign of waiting


def opened() -> Opening | None:
    """What this visitor has opened and not saved yet."""
    return st.session_state.get(OPENED)


def looking_at_opened() -> bool:
    """Whether the page shows what was opened, and not a dataset that is there."""
    return opened() is not None and st.session_state.get(VIEW) == OPENED_VIEW


def paths_allowed() -> bool:
    """Whether visitors may name paths on this machine; a server for others has OVERTON_ALLOW_PATHS=0."""
    return os.environ.get("OVERTON_ALLOW_PATHS", "1").strip().casefold() not in ("0", "false", "no", "off")


def open_fields() -> None:
    """Where to drop files, and where to name a path."""
    key = f"data_upload {st.session_state.get(_UPLOADS, 0)}"
    st.file_uploader(
        "Files from your computer",
        accept_multiple_files=True,
        key=key,
        on_change=lambda: _uploaded(st.session_state.get(key)),
        help="JSONL, JSON, CSV or Parquet. Nothing is saved before you have seen what was read.",
    )
    if not paths_allowed():
        st.caption("Paths on the server are switched off here.")
        return
    with st.form("data_path_form", border=False):
        st.text_input(
            "Or a path on this machine",
            key="data_path",
            placeholder="~/generations or samples.jsonl",
            help="A file, a folder of files (one a system), or a clone of the authors' release.",
            persist_state="session",
        )
        st.form_submit_button("Open", icon=":material/folder_open:", on_click=_named, key="data_path_open")


def _uploaded(files: Sequence[Any] | None) -> None:
    if files:
        begin(list(files))
    else:
        close()


def _named() -> None:
    given = str(st.session_state.get("data_path", "")).strip().strip("\"'")
    if not paths_allowed():
        return
    if not given:
        st.session_state[SAID] = ("error", "Type the path of a file or a folder first.")
        return
    try:
        path = user_path(given)
    except OvertonError as error:
        st.session_state[SAID] = ("error", literal(str(error), 600))
        return
    begin(path)


def begin(source: Path | Sequence[Any]) -> None:
    """Read it, and look at it; what was opened before it and not saved is closed."""
    previous = opened()
    if previous is not None:
        previous.stop()
    opening = Opening(source, state.workspace())
    st.session_state[OPENED] = opening
    st.session_state[VIEW] = OPENED_VIEW
    opening.begin()


def close() -> None:
    """Close what was opened, and clear the uploader; nothing of it was written."""
    opening = st.session_state.pop(OPENED, None)
    if opening is not None:
        opening.stop()
        st.session_state[_UPLOADS] = st.session_state.get(_UPLOADS, 0) + 1
    st.session_state[VIEW] = DATASET_VIEW


def settle() -> None:
    """Give a reading a moment to end; what cannot be opened becomes a sentence, and the rest of the page stays."""
    opening = opened()
    if opening is None:
        return
    if not opening.over:
        with st.spinner(f"Reading {literal(opening.label, 60)} …"):
            opening.wait(_PATIENCE)
    if opening.over and opening.error and not _can_be_mended(opening):
        st.session_state[SAID] = ("error", literal(opening.error, 600))
        close()


def _can_be_mended(opening: Opening) -> bool:
    """Whether other columns may help: a flat file that was seen, but not understood."""
    return opening.reading.first is not None and bool(opening.reading.first.columns)


def reminder() -> None:
    """While a dataset is looked at: what is open and not saved yet, and the way back to it."""
    opening = opened()
    if opening is None or looking_at_opened():
        return
    with st.container(border=True):
        st.caption(f"Open and not saved yet: {literal(opening.label, 80)}")
        st.button("Back to it", icon=":material/undo:", key="data_back", on_click=_look, type="tertiary")


def _look() -> None:
    st.session_state[VIEW] = OPENED_VIEW


@st.fragment(run_every=0.5)
def waiting() -> None:
    """What is being read, how far and how long; it can be stopped, and the page is drawn anew at the end."""
    opening = opened()
    if opening is None or opening.over or opening.reading.job is None:
        st.rerun()
    job = opening.reading.job
    size = opening.size
    parts = [f"{job.seconds:.0f} s"]
    if size > 1e6:
        parts.insert(0, f"{size / 1e6:,.0f} MB, about {max(1, round(size / SPEED))} s")
    with st.container(horizontal=True, vertical_alignment="center"):
        if job.total:
            which = f"{literal(job.what, 60)}, {job.done + 1} of {job.total}"
            st.progress(min(job.done / job.total, 1.0), text=f"Reading {which} · {' · '.join(parts)}")
        else:
            st.info(f"Reading {literal(opening.label, 100)} · {' · '.join(parts)}", icon="spinner")
        st.button("Stop", icon=":material/stop:", key="data_stop", on_click=close)
