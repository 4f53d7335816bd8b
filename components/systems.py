"""Which systems are shown: chosen once, the same on Explore and Compare."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from components import state
from components.sentences import helped_system
from components.text import excerpt, literal
from components.theme import icon
from core.dataset import Dataset
from core.scores import representative

MOST = 12  # systems at once: with more of them neither columns nor figures can be read
_CHIPS = 8  # up to so many are shown as chips


def default(dataset: Dataset) -> list[str]:
    """Base, aligned, and up to two in-context systems: one with examples alone and one with a hint as well.

    Where roles name fewer than two systems, the first ones of the dataset fill up.
    """
    names = list(dataset.roles())
    strategies = dict(zip(dataset.systems["system"], dataset.systems["strategy"].fillna(""), strict=True))
    plain = [s for s in dataset.systems_with_role("in-context") if "hint" not in strategies[s]]
    wanted = {representative(dataset, "base"), representative(dataset, "aligned"), helped_system(dataset)}
    wanted.update(plain[:1])
    chosen = [name for name in names if name in wanted]
    return chosen if len(chosen) > 1 else names[:3]


def _box(loaded: state.Loaded) -> str:
    return f"systems {loaded.dataset.name}"


def chosen(loaded: state.Loaded) -> list[str]:
    """The systems that are chosen, or the default ones."""
    kept = st.session_state.get(_box(loaded))
    return default(loaded.dataset) if kept is None else list(kept)


def choose(loaded: state.Loaded, systems: Sequence[str]) -> None:
    """Choose systems from a callback; repeated ones once, and no more than can be shown."""
    st.session_state[_box(loaded)] = list(dict.fromkeys(systems))[:MOST]


def chooser(loaded: state.Loaded) -> list[str]:
    """Chips for a few systems, a box that can be searched for many; returns the chosen ones in their fixed order."""
    names = list(loaded.dataset.roles())
    choose(loaded, [name for name in chosen(loaded) if name in names])
    shared: dict[str, Any] = {"key": _box(loaded), "persist_state": "session"}
    if len(names) <= _CHIPS:
        picked = st.pills(
            "Systems",
            names,
            selection_mode="multi",
            format_func=lambda s: f"{icon(loaded.styles[s])} {literal(s, 60)}",
            label_visibility="collapsed",
            **shared,
        )
    else:
        picked = st.multiselect(
            f"Systems (up to {MOST} of {len(names)})",
            names,
            max_selections=MOST,
            select_all=False,
            format_func=lambda s: excerpt(s, 60),
            **shared,
        )
        st.markdown(" · ".join(f"{icon(loaded.styles[s])} {literal(s, 60)}" for s in names if s in picked))
    return [name for name in names if name in picked]
