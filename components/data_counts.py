"""How many responses of each system can be read: a computed sentence, and a table in which roles can be changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd
import streamlit as st

from components import state
from components.text import visible
from core.dataset import ROLES

COUNTS = {
    "responses": ("responses", "All that were sampled, whatever became of them."),
    "usable": ("usable", "Neither an error nor without an answer: what figures and measures are made of."),
    "errors": ("errors", "The server or the program gave an error in place of a text."),
    "empty": ("empty", "Usable, but the text has no characters: counted as 0 words."),
    "no_answer": ("no answer", "The system thought aloud and never came to the marker of an answer: not usable."),
    "cut": ("cut", "Usable, but cut off by the limit of tokens."),
    "duplicates": ("duplicates", "Usable, but the same text, to the last blank, as an earlier one to that prompt."),
    "prompts": ("prompts", "Prompts with at least one usable response."),
}


def number(n: int, what: str) -> str:
    """`1 prompt`, `1,280 responses`."""
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def total(counts: Mapping[str, Any], key: str) -> int:
    """The sum of one count over all systems of `core.dataset.summary`."""
    return sum(int(system[key]) for system in counts["systems"].values())


def sentence(counts: Mapping[str, Any]) -> str:
    """What can be read and what not, as Markdown; only what occurs is named."""
    n, usable = total(counts, "responses"), total(counts, "usable")
    whole = f"{number(n, 'response')} of {number(len(counts['systems']), 'system')} "
    whole += f"to {number(counts['prompts'], 'prompt')}"
    if not n:
        return f"There is no response in it yet ({number(counts['prompts'], 'prompt')})."
    if usable == n:
        first = f"**All {whole} are usable**" if n > 1 else f"**The {whole} is usable**"
    else:
        first = f"**{usable:,} of {whole} {'is' if usable == 1 else 'are'} usable**"
    errors, lost = total(counts, "errors"), total(counts, "no_answer")
    out = [f"{errors:,} {'is an error' if errors == 1 else 'are errors'}"] * bool(errors)
    out += [f"{lost:,} {'holds' if lost == 1 else 'hold'} no answer"] * bool(lost)
    cut, empty, same = (total(counts, key) for key in ("cut", "empty", "duplicates"))
    kept = [f"{cut:,} {'was' if cut == 1 else 'were'} cut by the limit of tokens"] * bool(cut)
    kept += [f"{empty:,} {'is' if empty == 1 else 'are'} empty"] * bool(empty)
    kept += [f"{same:,} {'repeats' if same == 1 else 'repeat'} another one word for word"] * bool(same)
    parts = [first + (f" ({' and '.join(out)})" if out else "")]
    if kept:
        listed = kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"
        parts.append(f"of the usable ones, {listed}" if usable < n else f"of these, {listed}")
    return "; ".join(parts) + "."


def table(counts: Mapping[str, Any], roles: Mapping[str, str]) -> pd.DataFrame:
    """One row a system: name, role, and the counts."""
    rows = [
        {"system": visible(name), "role": roles.get(name, system["role"]), **{key: system[key] for key in COUNTS}}
        for name, system in counts["systems"].items()
    ]
    return pd.DataFrame(rows, columns=["system", "role", *COUNTS])


def role_editor(counts: Mapping[str, Any], key: str) -> dict[str, str]:
    """The table, with roles to choose; returns the roles as they stand on the page.

    The choices outlive a visit to another page: a table that is drawn anew begins with them. The key belongs to one
    state of one dataset.
    """
    kept, begun = f"{key} chosen", f"{key} begun"
    if key not in st.session_state:
        st.session_state[begun] = dict(st.session_state.get(kept, {}))
    frame = table(counts, st.session_state.get(begun, {}))
    numbers = {
        column: st.column_config.NumberColumn(
            label, help=text, format="localized", disabled=True, width=86 if len(label) > 8 else 66
        )
        for column, (label, text) in COUNTS.items()
    }
    edited = st.data_editor(
        _legible(frame),
        key=key,
        hide_index=True,
        height="content",
        column_config={
            "system": st.column_config.TextColumn("system", disabled=True, width=202),
            "role": st.column_config.SelectboxColumn(
                "role",
                options=list(ROLES),
                required=True,
                width=100,
                help="What the system stands for: click to change it.",
            ),
            **numbers,
        },
        alt="Per system: its role, which can be changed, and how many of its responses are usable, errors, empty, "
        "without an answer, cut or duplicates",
    )
    chosen = [str(role) for role in edited["role"]]
    roles = dict(zip(counts["systems"], chosen, strict=True))
    st.session_state[kept] = changed(counts, roles)
    return roles


def _legible(frame: pd.DataFrame) -> Any:
    """Names in the colour of the text, which the editor greys where they cannot be changed; zeros stand back."""
    text, faint = ("#E8EDF2", "#8A96A2") if state.is_dark() else ("#1E2730", "#6B7680")
    return frame.style.map(lambda value: f"color: {faint if value == 0 else text}", subset=["system", *COUNTS])


def changed(counts: Mapping[str, Any], roles: Mapping[str, str]) -> dict[str, str]:
    """The roles that differ from those of the dataset."""
    return {name: role for name, role in roles.items() if counts["systems"][name]["role"] != role}
