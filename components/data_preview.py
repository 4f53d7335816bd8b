"""What was opened, before anything is saved: what it is, the columns, the counts, the problems, and then Save."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from components import data_open, state
from components.data_counts import changed, number, role_editor, sentence
from components.data_detail import SAID
from components.data_list import choose
from components.data_opening import Candidate, Opening, check_names, listed, save
from components.text import literal, visible
from core.errors import OvertonError, Problems
from core.readers import Mapping
from core.readers.cells import as_text

SHOWN = 50
_KINDS = {
    "own": "an export of Overton Lens",
    "release": "the layout of the generations released with arXiv 2406.17692",
    "chat": "answers as a server gives them (OpenAI or Text Generation Inference)",
    "flat": "a table with one response, or a list of them, in each row; its columns are a guess that you can change",
}
_FIRST = ("text", "prompt", "system", "sample")
_FIELDS = {
    "text": ("Text", "The response itself; needed."),
    "prompt": ("Prompt", "What was asked."),
    "system": ("System", "Which system answered; without it, each file is a system."),
    "sample": ("Sample", "The number of the sample; without it, they are counted."),
    "role": ("Role", "base, aligned, in-context, revised or other; without it, guessed from the system's name."),
    "model": ("Model", "The model behind a system."),
    "finish_reason": ("Finish reason", "How a response ended; 'length' is counted as cut."),
    "seed": ("Seed", "The random seed of a response."),
    "token_count": ("Tokens", "How many tokens a response has."),
    "error": ("Error", "A row with something here is an error, and its text is not read."),
    "prompt_id": ("Prompt id", "Tells prompts apart; without it, equal texts are one prompt."),
}
NONE = ""


def preview(opening: Opening) -> None:
    """Everything that was found in it."""
    st.markdown(f"##### {literal(opening.label, 100)} :orange-badge[not saved]")
    first = opening.reading.first
    bar = st.container()  # filled last, when roles and names are known, but in sight from the beginning
    if first is not None:
        st.markdown(f"Recognised: {_KINDS.get(first.kind, literal(first.kind))}.")
        if first.columns:
            _columns(opening)
    if not opening.over:
        with bar:
            data_open.waiting()
        return
    if opening.error:
        st.error(literal(opening.error, 600), icon=":material/error:")
        with bar:
            _close_button()
        return
    found = opening.reading.found
    names = _choices(opening, found) if len(found) > 1 else None
    looked = _looked_at(opening, found) if len(found) > 1 else 0
    opening.roles[looked] = _candidate(opening, looked, found[looked])
    with bar:
        _save_bar(opening, names)


# -- the columns of a flat file ---------------------------------------------------------------------------------


def _key(opening: Opening, what: str) -> str:
    return f"data {opening.id} {what}"


def _columns(opening: Opening) -> None:
    """Select boxes for the guessed columns, and the first rows."""
    first = opening.reading.first
    assert first is not None
    now = opening.mapping or first.mapping
    options = [NONE, *first.columns]
    for k, column in enumerate(st.columns(len(_FIRST), gap="small")):
        with column:
            _select(opening, _FIRST[k], options, now)
    rest = [f.name for f in fields(Mapping) if f.name not in _FIRST]
    guessed = sum(getattr(now, field) is not None for field in rest)
    with st.expander(f"More columns ({guessed} of {len(rest)} in use)"):
        for start in range(0, len(rest), 4):
            for field, column in zip(rest[start : start + 4], st.columns(4, gap="small"), strict=False):
                with column:
                    _select(opening, field, options, now)
    rows = pd.DataFrame([{c: _cell(row.get(c)) for c in first.columns} for row in first.rows], columns=first.columns)
    rows.columns = [visible(str(c)) for c in first.columns]
    st.dataframe(rows, hide_index=True, height="content", alt="The first rows of the file as they are")
    told = f"The first {number(len(rows), 'row')}, as they stand in the file."
    if opening.several:
        told += (
            " There are more files: each is guessed by itself until you choose a column, which then holds for all."
        )
    st.caption(told)


def _cell(value: Any) -> str:
    return "" if value is None else visible(as_text(value))[:300]


def _select(opening: Opening, field: str, options: list[str], now: Mapping) -> None:
    label, text = _FIELDS[field]
    key = _key(opening, f"column {field}")
    if key not in st.session_state:
        guess = getattr(now, field)
        st.session_state[key] = guess if guess in options else NONE
    st.selectbox(
        label,
        options,
        key=key,
        format_func=lambda c: "—" if c == NONE else " ".join(visible(c).split())[:60],
        help=text,
        on_change=partial(_mapped, opening),
    )


def _mapped(opening: Opening) -> None:
    """Read it again with the columns that are chosen now."""
    now = opening.mapping or (opening.reading.first.mapping if opening.reading.first else Mapping())
    chosen = {f.name: st.session_state.get(_key(opening, f"column {f.name}")) for f in fields(Mapping)}
    opening.begin(Mapping(**{f: getattr(now, f) if c is None else c or None for f, c in chosen.items()}))


# -- what is to be saved, and under which name ------------------------------------------------------------------


def _name_of(opening: Opening, k: int, candidate: Candidate, *, label: str = "Name") -> str:
    key = _key(opening, f"name {k}")
    if key not in st.session_state:
        st.session_state[key] = st.session_state.get(f"{key} kept", candidate.name)
    given = st.text_input(
        label,
        key=key,
        max_chars=100,
        width=320 if label == "Name" else "stretch",
        label_visibility="visible" if label == "Name" else "collapsed",
        help="Letters, digits, spaces and - _ . ( ) + @; the datasets that are there keep their names.",
    )
    st.session_state[f"{key} kept"] = given  # the field itself is forgotten on another page
    return given.strip()


def _choices(opening: Opening, found: list[Candidate]) -> dict[int, str]:
    """One row a dataset: whether to save it, and its name; returns the names by place of those that are to be."""
    st.markdown(f"**{number(len(found), 'dataset')}** in it. Which of them shall be saved?")
    names = {}
    for k, candidate in enumerate(found):
        tick, name, note = st.columns([1.3, 1.5, 2.2], vertical_alignment="center")
        key = _key(opening, f"save {k}")
        if key not in st.session_state:
            st.session_state[key] = st.session_state.get(f"{key} kept", candidate.same is None)
        wanted = tick.checkbox(literal(candidate.dataset.name, 60), key=key)
        st.session_state[f"{key} kept"] = wanted
        with name:
            given = _name_of(opening, k, candidate, label=f"Name of {candidate.dataset.name}")
        sizes = (
            f"{number(candidate.counts['prompts'], 'prompt')} · {number(len(candidate.counts['systems']), 'system')}"
        )
        sizes += f" · {number(len(candidate.dataset.responses), 'response')}"
        note.caption(sizes if candidate.same is None else f"already there as {literal(candidate.same, 60)}")
        if wanted:
            names[k] = given
    _problems(opening.reading.failed, "the other datasets were read")
    return names


def _looked_at(opening: Opening, found: list[Candidate]) -> int:
    return int(
        st.selectbox(
            "Look at",
            range(len(found)),
            format_func=lambda k: found[k].dataset.name,
            key=_key(opening, "looked"),
            persist_state="session",
            width=280,
        )
    )


# -- one dataset ------------------------------------------------------------------------------------------------


def _candidate(opening: Opening, k: int, candidate: Candidate) -> dict[str, str]:
    """What can be read of it, its roles and its problems; returns the roles that were changed."""
    st.markdown(sentence(candidate.counts))
    roles = role_editor(candidate.counts, _key(opening, f"roles {opening.number} {k}"))
    _problems(candidate.problems, "the rest was read")
    return changed(candidate.counts, roles)


def _problems(problems: Problems, what: str) -> None:
    count = len(problems)
    if not count:
        return
    shown = listed(problems.items, SHOWN)
    more = f"; the first {len(shown)} of them" if count > len(shown) else ""
    st.markdown(f":material/warning: **{number(count, 'problem')}**, {what}{more}:")
    frame = pd.DataFrame(shown).map(visible)
    st.dataframe(
        frame,
        hide_index=True,
        height="content" if len(frame) <= 12 else 440,
        column_config={
            "file": st.column_config.TextColumn("file", width="medium"),
            "line": st.column_config.TextColumn("line", width="small"),
            "what": st.column_config.TextColumn("what", width="large"),
        },
        alt="Problems: the file, the line, and what is wrong",
    )


def _already_there(opening: Opening, same: str) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.info(f"Exactly this is already there as {literal(same, 100)}.", icon=":material/content_copy:")
        st.button("Look at it", key=_key(opening, "same"), on_click=_close_and_choose, args=(same,))


# -- saving -----------------------------------------------------------------------------------------------------


def _save_bar(opening: Opening, chosen: dict[int, str] | None) -> None:
    """The name (where only one dataset was found), Save and Close; `chosen` holds the names of several."""
    first = opening.reading.found[0]
    if chosen is None and first.same is not None:
        _already_there(opening, first.same)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = chosen if chosen is not None else {0: _name_of(opening, 0, first)}
        again = any(opening.reading.found[k].same is not None for k in names)
        label = "Save" if len(names) == 1 else f"Save {number(len(names), 'dataset')}"
        st.button(
            "Save another copy" if again and len(names) == 1 else label,
            icon=":material/save:",
            type="secondary" if again else "primary",
            key=_key(opening, "save"),
            disabled=not names,
            on_click=_ask_to_save,
            args=(opening,),
        )
        _close_button()
    if st.session_state.pop(_SAVING, None) == opening.id:
        _save(opening, names)


_SAVING = "data_saving"


def _ask_to_save(opening: Opening) -> None:
    """Saving itself waits until the page is drawn: its spinner and its errors have a place there."""
    st.session_state[_SAVING] = opening.id


def _close_button() -> None:
    st.button("Close without saving", key="data_close", type="tertiary", on_click=data_open.close)


def _save(opening: Opening, names: dict[int, str]) -> None:
    """All names are checked before the first dataset is written; where one fails, what was opened stays."""
    space = state.workspace()
    try:
        check_names(list(names.values()), space)
        with st.spinner("Saving …", show_time=True):
            for k, name in names.items():
                save(opening.reading.found[k], name, opening.roles.get(k, {}), _origin(opening), space)
    except OvertonError as error:
        st.error(literal(str(error), 600), icon=":material/error:")
        return
    saved = [literal(name, 100) for name in names.values()]
    st.session_state[SAID] = ("saved", f"Saved as {', '.join(saved)}.")
    _close_and_choose(next(iter(names.values())))
    st.rerun()


def _origin(opening: Opening) -> str:
    return opening.label if isinstance(opening.source, Path) else f"{opening.label} (uploaded)"


def _close_and_choose(name: str) -> None:
    data_open.close()
    choose(name)
