"""Choosing a dataset and a prompt."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from components import state
from components.text import excerpt
from core import lenses

_ORDER = "prompt_order"
AS_GIVEN = "as given"


def dataset_picker() -> str:
    """A select box with all datasets; the choice is kept across pages."""
    names = state.workspace().names()
    current = state.current_dataset()

    def chosen() -> None:
        st.session_state[state.DATASET] = st.session_state["dataset_box"]
        st.session_state.pop(state.PROMPT, None)
        st.session_state[state.SELECTED] = []

    st.session_state["dataset_box"] = current
    st.selectbox("Dataset", names, key="dataset_box", on_change=chosen)
    return current


def top(*, prompt: bool = True) -> tuple[state.Loaded, str | None]:
    """The first row of a page: the dataset and (unless switched off) the prompt; returns both."""
    left, right = st.columns([1, 3], vertical_alignment="bottom")
    with left:
        loaded = state.load(dataset_picker())
    with right:
        return loaded, prompt_picker(loaded) if prompt else None


def ordered_prompts(loaded: state.Loaded, order: str) -> list[str]:
    """Prompt ids as given, or by the difference between aligned and base in a lens, largest first."""
    ids = list(loaded.dataset.prompts["prompt_id"])
    if order == AS_GIVEN:
        return ids
    return sorted(ids, key=_spread(loaded, order).get, reverse=True)


def _spread(loaded: state.Loaded, lens: str) -> dict[str, float]:
    rows = loaded.scores[loaded.scores["lens"] == lens]
    table = rows.pivot_table(index="prompt_id", columns="system", values="value")
    wide = table.max(axis=1) - table.min(axis=1)
    return {
        p: float(wide.get(p, -1.0)) if pd.notna(wide.get(p, -1.0)) else -1.0
        for p in loaded.dataset.prompts["prompt_id"]
    }


def prompt_picker(loaded: state.Loaded) -> str:
    """A select box that can be searched, an order by lens, and two buttons to step; returns the prompt id."""
    available = [i for i in lenses.LENSES if i in loaded.measured]
    order = st.session_state.get(_ORDER, AS_GIVEN)
    ids = ordered_prompts(loaded, order if order in available else AS_GIVEN)
    current = state.current_prompt(loaded.dataset)
    place = ids.index(current)
    texts = dict(zip(loaded.dataset.prompts["prompt_id"], loaded.dataset.prompts["text"], strict=True))
    st.session_state["prompt_box"] = current
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            f"Prompt · {place + 1} of {len(ids)} (type to search)",
            ids,
            key="prompt_box",
            format_func=lambda i: excerpt(texts[i], 110),
            on_change=lambda: state.choose_prompt(st.session_state["prompt_box"]),
        )
        st.selectbox(
            "Order",
            [AS_GIVEN, *available],
            key=_ORDER,
            width=190,
            format_func=lambda i: i if i == AS_GIVEN else lenses.LENSES[i].name,
            help="A lens puts those prompts first on which the systems differ most in it.",
            persist_state="session",
        )
        _step("Back", "Previous prompt", ":material/chevron_left:", ids[(place - 1) % len(ids)])
        _step("Next", "Next prompt", ":material/chevron_right:", ids[(place + 1) % len(ids)])
    return current


def _step(label: str, what: str, icon: str, target: str) -> None:
    st.button(label, icon=icon, help=what, key=what, on_click=state.choose_prompt, args=(target,))
