"""The left side of the Lab: the prompt, the examples, the hint, the parameters, and the exact text that is sent."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from typing import Any

import streamlit as st

from components import endpoints, state
from components.text import excerpt, literal
from core import demo, lab
from core.errors import OvertonError
from core.generation import pool
from core.generation.base import Sampling
from core.generation.endpoints import UNKNOWN_LIMIT, is_server
from core.generation.fake import FakeGenerator
from core.prompting import Example, example_sets, query_answer

EXAMPLES, HINT, OWN_PROMPT, MODEL = "lab_examples", "lab_hint", "lab_own_prompt", "lab_model"
_IDS = itertools.count()


def examples() -> dict[str, Example]:
    """The examples of this visitor by id, in order; the shipped plain set to begin with."""
    if EXAMPLES not in st.session_state:
        shipped = example_sets()[demo.EXAMPLES].examples
        st.session_state[EXAMPLES] = {f"e{next(_IDS)}": example for example in shipped}
    return st.session_state[EXAMPLES]


def _move(example_id: str, by: int) -> None:
    order = list(examples())
    place = order.index(example_id)
    other = place + by
    if 0 <= other < len(order):
        order[place], order[other] = order[other], order[place]
        st.session_state[EXAMPLES] = {i: examples()[i] for i in order}


def _remove(example_id: str) -> None:
    st.session_state[EXAMPLES] = {i: e for i, e in examples().items() if i != example_id}


def add_example(query: str = "", answer: str = "") -> None:
    """Append an example, empty or from a response."""
    st.session_state[EXAMPLES] = {**examples(), f"e{next(_IDS)}": Example(query, answer)}


def _change(example_id: str, field: str) -> None:
    value: Any = st.session_state[f"{example_id} {field}"]
    changed = replace(examples()[example_id], **{field: value if field == "on" else (value or "")})
    st.session_state[EXAMPLES] = {**examples(), example_id: changed}


def examples_editor() -> None:
    """Every example in place: switch it off, edit, move, remove; and one button to add another."""
    order = list(examples().items())
    with st.container(border=True, gap="xsmall"):
        for place, (example_id, example) in enumerate(order):
            _example_head(place, len(order), example_id, example)
            if st.session_state.get(f"{example_id} open"):
                _example_fields(example_id, example)
        if not order:
            st.caption("No examples: the model gets the prompt alone (zero-shot).")
        with st.container(horizontal=True):
            st.button("Add an example", icon=":material/add:", on_click=add_example, type="tertiary")
            st.button("Back to the shipped ones", icon=":material/undo:", on_click=_reset, type="tertiary")


def _reset() -> None:
    st.session_state.pop(EXAMPLES, None)


def _example_head(place: int, total: int, example_id: str, example: Example) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.session_state[f"{example_id} on"] = example.on
        st.checkbox(
            f"{place + 1}. {literal(example.query, 70) or '(no query yet)'}",
            key=f"{example_id} on",
            on_change=_change,
            args=(example_id, "on"),
            width="stretch",
        )
        for icon, label, action, args, dead in (
            (":material/arrow_upward:", "Move up", _move, (example_id, -1), place == 0),
            (":material/arrow_downward:", "Move down", _move, (example_id, 1), place == total - 1),
            (":material/edit:", "Edit", _toggle, (example_id,), False),
            (":material/delete:", "Remove", _remove, (example_id,), False),
        ):
            key = f"{example_id} {label}"
            st.button("", icon=icon, help=label, key=key, on_click=action, args=args, disabled=dead, type="tertiary")


def _toggle(example_id: str) -> None:
    st.session_state[f"{example_id} open"] = not st.session_state.get(f"{example_id} open", False)


def _example_fields(example_id: str, example: Example) -> None:
    for field, label, height in (("query", "Query", 70), ("answer", "Answer", 170), ("hint", "Hint", 70)):
        st.session_state[f"{example_id} {field}"] = getattr(example, field)
        st.text_area(
            label,
            key=f"{example_id} {field}",
            height=height,
            on_change=_change,
            args=(example_id, field),
            help="Shown before the answer when a hint is given below." if field == "hint" else None,
        )


def hint_editor(loaded: state.Loaded, prompt_id: str) -> str:
    """The hint for this prompt; the one of the dataset, where there is one, to begin with."""
    kept = st.session_state.setdefault(HINT, {})
    shipped = shipped_hint(loaded, prompt_id)
    place = (loaded.dataset.name, prompt_id)
    kept.setdefault(place, shipped)
    key = f"hint {prompt_id}"
    st.session_state[key] = kept[place]

    def changed() -> None:
        kept[place] = st.session_state[key] or ""

    st.text_area(
        "Hint (a low-resolution summary of the wanted content; leave it empty for none)",
        key=key,
        height=100,
        on_change=changed,
        placeholder="One or two sentences on what a good answer says.",
    )
    if shipped and kept[place] == shipped:
        st.caption("This hint summarises sample 0 of the aligned system: it has looked at the answer (an oracle).")
    return str(kept[place])


def shipped_hint(loaded: state.Loaded, prompt_id: str) -> str:
    """The hint that a system of the dataset was given for this prompt, read off its context; empty without one."""
    contexts = loaded.dataset.contexts
    rows = contexts[contexts["prompt_id"] == prompt_id]["text"]
    for text in rows:
        _, found, rest = str(text).rpartition("# Hint:\n```\n")
        if found and "# Query:" not in rest:
            return rest.split("\n```", 1)[0]
    return ""


def prompt_of(loaded: state.Loaded, prompt_id: str) -> tuple[str, str]:
    """(id, text) of the prompt: the chosen one, or the one that was typed."""
    own = st.text_input(
        "Or type a prompt of your own",
        key=OWN_PROMPT,
        persist_state="session",
        placeholder="Leave empty to use the prompt above",
    )
    if own and own.strip():
        return lab.own_prompt_id(own), own.strip()
    return prompt_id, loaded.dataset.prompt_text(prompt_id)


def context_of(prompt: str, shown: list[Example], hint: str) -> str:
    """The exact text that is sent to a base model."""
    instruction = example_sets()[demo.EXAMPLES].instruction
    return query_answer(prompt, examples=shown, hint=hint, instruction=instruction)


def strategy_of(shown: list[Example], hint: str) -> str:
    """The name of what the context amounts to."""
    any_example = any(example.on for example in shown)
    if not any_example:
        return "hint" if hint.strip() else "zero-shot"
    return "fixed examples and hint" if hint.strip() else "fixed examples"


def context_view(model: str, context: str, sampling: Sampling) -> None:
    """The text that will be sent, with its token count against the limit of the model."""
    words = len(context.split())
    counted = f"{words} words"
    made = pool.built(model)
    if made is not None:
        tokens = made.count_tokens(context)
        exact = getattr(made, "counts_exactly", True)
        of = f" of {made.limit}" if made.limit < UNKNOWN_LIMIT else ""
        counted = f"{'' if exact else 'about '}{tokens} tokens{of}"
        if exact and tokens + sampling.max_new_tokens > made.limit:
            st.error(
                f"The context has {tokens} tokens and {sampling.max_new_tokens} more are asked for, but the model "
                f"reads at most {made.limit}: remove an example or ask for fewer tokens.",
                icon=":material/error:",
            )
    with st.expander(f"The exact text that will be sent · {counted}", icon=":material/description:"):
        st.code(context, language=None, wrap_lines=True)
        _memory_line(model)


def _memory_line(model: str) -> None:
    """What the model holds in memory, where it runs on this machine."""
    held = getattr(pool.built(model), "held", None)
    if held is None:
        return
    kept = held()
    text = f"In memory: {kept['weights'] / 1e9:.2f} GB of weights"
    if kept["contexts"]:
        text += (
            f", and what was read of the last {kept['contexts']} contexts ({kept['tokens']:,} tokens, "
            f"{kept['bytes'] / 1e6:.0f} MB). Of the last one, {kept['reused']:,} tokens were not read again"
        )
    st.caption(f"{text}.")


def _fake() -> list[str]:
    """The generator without a model, where OVERTON_FAKE_GENERATOR asks for it (tests, a look without a network)."""
    if not os.environ.get("OVERTON_FAKE_GENERATOR"):
        return []
    if not pool.is_built("fake"):
        pool.use_generator("fake", FakeGenerator(delay=0.02))
        pool.use_generator("fake chat", FakeGenerator(model="fake chat", chat=True, delay=0.005))
    return ["fake"]


def reference_models(model: str) -> dict[str, str]:
    """The models that answer a prompt of one's own for comparison: the base model at hand, and an aligned one.

    Beside a server of base models that is the first endpoint for chats, where one is configured.
    """
    if is_server(model) and (chats := endpoints.offered("chat")):
        return {"base": model, "aligned": chats[0]}
    return {"base": model, "aligned": "fake chat" if model == "fake" else demo.ALIGNED_MODEL}


def model_picker() -> str:
    """The base model: one of the catalogue, an endpoint, or any hub id or folder. Raises `OvertonError` for none."""
    known = [*_fake(), demo.BASE_MODEL, *endpoints.offered("completions")]
    model = st.selectbox(
        "Base model",
        known,
        key=MODEL,
        accept_new_options=True,
        persist_state="session",
        help="Choose one of the catalogue, or type a folder on this machine or a hub id such as owner/name.",
        format_func=lambda m: excerpt(endpoints.label(str(m)), 60),
    )
    own = endpoints.typed()
    if own is not None:
        st.caption(f"Asking {literal(own.removeprefix('server:'), 160)}")
        return own
    if not model:
        raise OvertonError("Choose a model, or type a folder or a hub id.")
    return str(model)
