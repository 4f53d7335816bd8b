"""The left side of the Generate page: where a specification comes from, and the editor it stands in."""

from __future__ import annotations

from typing import Any

import streamlit as st

from components import generate_check as check
from components import generate_runs as runs
from components import generate_source as source
from components.data_open import paths_allowed
from components.generate_form import form
from components.text import literal
from core.errors import OvertonError, user_path

_UPLOAD, _PATH = "generate_upload", "generate_path"
# The only way to another typeface for one field; it draws nothing.
_MONOSPACED = """.st-key-generate_text textarea {
  font-family: "Source Code Pro", ui-monospace, monospace; font-size: 0.8125rem; line-height: 1.5;
}"""


def openers() -> None:
    """Three ways to get a text into the editor."""
    with st.container(horizontal=True):
        with _popover("Examples", ":material/menu_book:"):
            for path in source.example_files():
                label = path.stem.replace("-", " ")
                with st.container(gap="xxsmall"):
                    st.button(literal(label), key=f"example {path.stem}", on_click=_example, args=(path,))
                    st.caption(literal(source.about(path), 200))
        with _popover("Open a file", ":material/folder_open:"):
            _file()
        with _popover("Use a form", ":material/list_alt:"):
            form(done=_close)


def _popover(label: str, icon: str) -> Any:
    """A popover that `_close` can close."""
    return st.popover(label, icon=icon, key=f"generate_pop {label}", on_change="rerun")


def _close() -> None:
    for label in ("Examples", "Open a file", "Use a form"):
        st.session_state[f"generate_pop {label}"] = False


def _example(path: Any) -> None:
    _put(lambda: source.from_example(path))


def _file() -> None:
    st.file_uploader(
        "A specification from your computer",
        key=_UPLOAD,
        type=["toml"],
        max_upload_size=1,
        on_change=_uploaded,
        help="A TOML file; docs/generate.md says what it may hold. Files that it names cannot be uploaded with it.",
    )
    if not paths_allowed():
        st.caption("Paths on the server are switched off here.")
        return
    with st.form("generate_path_form", border=False):
        st.text_input(
            "Or a path on this machine",
            key=_PATH,
            placeholder="~/specs/my-spec.toml",
            persist_state="session",
            help="Files that the specification names are looked for beside it.",
        )
        st.form_submit_button("Open", icon=":material/folder_open:", on_click=_named, key="generate_path_open")


def _uploaded() -> None:
    file = st.session_state.get(_UPLOAD)
    if file is not None:
        _put(lambda: source.from_upload(file))


def _named() -> None:
    given = str(st.session_state.get(_PATH) or "").strip().strip("\"'")
    if not paths_allowed():
        return
    if not given:
        runs.say("Type the path of a TOML file first.")
        return
    _put(lambda: source.from_file(user_path(given)))


def _put(read: Any) -> None:
    """Read a specification, put it into the editor and check it."""
    try:
        source.put(read())
    except OvertonError as error:
        runs.say(str(error))
        return
    _close()
    check.begin()


def editor() -> None:
    """The text, always shown and always what runs; below it what can be done with it."""
    st.text_area(
        "Specification (TOML)",
        key=source.TEXT,
        height=460,
        persist_state="session",
        help="What stands here is what is generated. docs/generate.md describes every field.",
    )
    st.components.v2.component("overton_monospaced", css=_MONOSPACED, isolate_styles=False)(height=1)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Check",
            icon=":material/fact_check:",
            key="generate_check_button",
            on_click=check.begin,
            help="Counts, tokens and exact contexts; nothing is generated.",
        )
        st.button(
            "Generate",
            icon=":material/play_arrow:",
            type="primary",
            key="generate_begin",
            on_click=runs.begin_editor,
            help="Begins, or goes on with what is missing.",
        )
        with st.popover("Options", icon=":material/tune:", type="tertiary"):
            st.checkbox(
                "Keep samples that failed before",
                key=runs.KEEP_ERRORS,
                persist_state="session",
                help="Without it they are tried again.",
            )
            st.checkbox(
                "Leave out contexts that do not fit",
                key=runs.SKIP_TOO_LONG,
                persist_state="session",
                help="Their samples become errors; without it nothing is generated.",
            )
    _origin()
    check.mistakes()


def _origin() -> None:
    """Where the text came from, and where files that it names are looked for."""
    kept = source.source()
    if not kept.label:
        return
    told = f"{'Edited; begun as' if source.edited() else 'This is'} {literal(kept.label, 120)}."
    if kept.folder is not None and source.folder() is None:
        told += " Now that it is edited it may name no files: those paths are switched off here."
    st.caption(told)
