"""The common case as a form: it writes a specification into the editor, which stays the one source of truth."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components import endpoints, state
from components import generate_runs as runs
from components import generate_source as source
from components.generate_toml import Wish, write
from components.text import excerpt
from core import demo
from core.dataset import check_name
from core.errors import OvertonError

OF_DATASET, OWN = "of a dataset", "my own"
# Name and strategy of the systems that can be ticked; the aligned one has a model of its own.
SYSTEMS = {"base": "zero-shot", "base + examples": "fixed examples", "aligned": "chat"}
_KEY = "generate_form"


def form(*, done: Callable[[], None]) -> None:
    """The fields, and the button that writes the specification and calls `done`."""
    name = st.text_input("Name of the dataset", "my dataset", key=f"{_KEY} name", persist_state="session")
    prompts, dataset, limit = _prompts()
    bases, aligned = _models()
    systems = st.pills(
        "Systems",
        list(SYSTEMS),
        selection_mode="multi",
        default=list(SYSTEMS),
        key=f"{_KEY} systems",
        persist_state="session",
    )
    left, right = st.columns(2)
    base = _model(left, "Base model", bases)
    chat = _model(right, "Aligned model", aligned)
    one, two, three = st.columns(3)
    samples = one.number_input("Samples", 1, 1000, 5, key=f"{_KEY} samples", persist_state="session")
    temperature = two.number_input(
        "Temperature", 0.0, 5.0, 0.7, 0.1, key=f"{_KEY} temperature", persist_state="session"
    )
    tokens = three.number_input("New tokens", 1, 8192, 120, key=f"{_KEY} tokens", persist_state="session")
    chosen = [(s, chat if s == "aligned" else base, SYSTEMS[s]) for s in SYSTEMS if s in systems]
    wish = Wish(name.strip(), chosen, prompts, dataset, int(limit), int(samples), float(temperature), int(tokens))
    st.button(
        "Write it into the editor",
        icon=":material/edit_document:",
        type="primary",
        key=f"{_KEY} write",
        on_click=_write,
        args=(wish, done),
        help="What stands in the editor is replaced.",
    )


def _model(place: DeltaGenerator, label: str, known: list[str]) -> str:
    chosen = place.selectbox(
        label,
        known,
        key=f"{_KEY} {label}",
        persist_state="session",
        accept_new_options=True,
        format_func=lambda m: excerpt(endpoints.label(str(m)), 60),
    )
    return str(chosen or known[0])


def _models() -> tuple[list[str], list[str]]:
    """The models to choose from: fake ones where they are asked for, the catalogue's, and configured servers."""
    fake = bool(os.environ.get("OVERTON_FAKE_GENERATOR"))
    return (
        [*["fake"] * fake, demo.BASE_MODEL, *endpoints.offered("completions")],
        [*["fake chat"] * fake, demo.ALIGNED_MODEL, *endpoints.offered("chat")],
    )


def _prompts() -> tuple[Sequence[str], str, int]:
    """Own prompts, or the name of a dataset and how many of its prompts (0 = all)."""
    names = state.workspace().names()
    kinds = [OF_DATASET, OWN] if names else [OWN]
    kind = st.segmented_control(
        "Prompts", kinds, default=kinds[0], required=True, key=f"{_KEY} kind", persist_state="session"
    )
    if kind == OWN:
        typed = st.text_area(
            "One prompt a line",
            key=f"{_KEY} prompts",
            persist_state="session",
            placeholder="How do I choose a good melon?\nIs it rude to arrive early?",
        )
        return [line.strip() for line in (typed or "").split("\n") if line.strip()], "", 0
    left, right = st.columns([2, 1])
    dataset = left.selectbox(
        "Dataset", names, key=f"{_KEY} dataset", persist_state="session", format_func=lambda n: excerpt(n, 60)
    )
    limit = right.number_input(
        "Prompts, at most",
        1,
        100_000,
        10,
        key=f"{_KEY} limit",
        persist_state="session",
        help="The first few of them.",
    )
    return [], str(dataset), int(limit)


def _write(wish: Wish, done: Callable[[], None]) -> None:
    try:
        check_name(wish.name)
        if not wish.dataset and not wish.prompts:
            raise OvertonError("Type at least one prompt into the form, one a line.")
        if not wish.systems:
            raise OvertonError("Choose at least one system in the form.")
    except OvertonError as error:
        runs.say(str(error))
        return
    source.put(source.Source("what the form wrote", write(wish)))
    done()
