"""One prompt, systems side by side: full texts, equal ones folded, words in common marked on demand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from components import state
from components.compare_words import Shared, marked, shared_words
from components.reading import ENDED, body, heading
from components.text import literal

SHOWN = 5  # texts of a system that are shown at first
_MEASURE = 640  # pixels: 70 to 80 characters
_OPEN = "compare_open"


@dataclass(frozen=True)
class Folded:
    """One text and the samples that have it."""

    text: str
    samples: tuple[int, ...]
    finish_reason: str


def folded(rows: pd.DataFrame) -> list[Folded]:
    """Responses of one system to one prompt, equal texts as one; those sampled most often first."""
    found: dict[str, list[int]] = {}
    first: dict[str, tuple[str, str]] = {}
    for text, sample, ended in zip(rows["text"], rows["sample"], rows["finish_reason"].fillna(""), strict=True):
        key = str(text).strip()
        found.setdefault(key, []).append(int(sample))
        first.setdefault(key, (str(text), str(ended)))
    made = [Folded(first[key][0], tuple(samples), first[key][1]) for key, samples in found.items()]
    return sorted(made, key=lambda one: -len(one.samples))


def side_by_side(loaded: state.Loaded, prompt_id: str, systems: Sequence[str]) -> None:
    """The prompt in full, the switch for marking, and a column per system."""
    rows = loaded.dataset.responses
    here = rows[rows["prompt_id"] == prompt_id]
    usable = here[loaded.dataset.usable[here.index]]
    prompt = loaded.dataset.prompt_text(prompt_id)
    if len(prompt) > 100 or "\n" in prompt.strip():
        with st.container(width=_MEASURE):
            body(prompt)
    words = _marking({s: usable.loc[usable["system"] == s, "text"].tolist() for s in systems}, prompt)
    width = len(systems) * _MEASURE + (len(systems) - 1) * 64
    with (
        st.container(width=width),
        st.grid(min(len(systems), 4), min_column_width=280, gap=("large", "medium")) as grid,
    ):
        for system in systems:
            with grid.cell():
                mine = here[here["system"] == system]
                _column(loaded, prompt_id, system, mine, usable[usable["system"] == system], words)


def _marking(texts: dict[str, list[str]], prompt: str) -> tuple[str, ...]:
    """The switch, and when it is on one sentence on what is marked; returns the words to mark."""
    on = st.toggle("Mark words in common", key="compare mark", persist_state="session")
    if not on:
        return ()
    shared = shared_words(texts, prompt)
    st.markdown(_marked_sentence(shared, systems=sum(bool(own) for own in texts.values())))
    return shared.words


def _marked_sentence(shared: Shared, systems: int) -> str:
    what = "systems" if systems > 1 else "responses"
    needed = (
        f"all {shared.groups}" if shared.needed == shared.groups else f"at least {shared.needed} of {shared.groups}"
    )
    if not shared.words:
        return f"No word occurs in {needed} {what} (little words and those of the prompt do not count)."
    first = ", ".join(f"**{literal(word)}**" for word in shared.words[:8])
    number = "1 word occurs" if len(shared.words) == 1 else f"{len(shared.words)} words occur"
    return (
        f"{number} in {'responses of ' if systems > 1 else ''}{needed} {what}, most often {first} "
        "(little words and those of the prompt do not count)."
    )


def _column(
    loaded: state.Loaded,
    prompt_id: str,
    system: str,
    rows: pd.DataFrame,
    usable: pd.DataFrame,
    words: tuple[str, ...],
) -> None:
    texts = folded(usable)
    with st.container(gap="xxsmall"):
        heading(system, loaded.styles[system])
        st.caption(_counted(rows, usable, texts))
    key = f"{loaded.dataset.name} {prompt_id} {system}"
    opened: set[str] = st.session_state.setdefault(_OPEN, set())
    shown = texts if key in opened else texts[:SHOWN]
    for one in shown:
        with st.container(gap="xxsmall"):
            st.caption(_below(one))
            if words and one.text.strip():
                st.markdown(marked(one.text, words))
            else:
                body(one.text)
    if len(texts) > SHOWN:
        more = f"Show all {len(texts)} texts" if key not in opened else f"Show the first {SHOWN}"
        st.button(more, key=f"more {key}", icon=":material/unfold_more:", on_click=_toggle, args=(key,))


def _toggle(key: str) -> None:
    st.session_state[_OPEN] = st.session_state.get(_OPEN, set()) ^ {key}


def _counted(rows: pd.DataFrame, usable: pd.DataFrame, texts: list[Folded]) -> str:
    """How many responses, how many different ones, how long; and why some are not shown."""
    if not len(rows):
        return "No response to this prompt."
    if not len(usable):
        return f"None of {len(rows)} responses is usable{_why(rows)}."
    number = "1 response" if len(usable) == 1 else f"{len(usable)} responses"
    if len(usable) < len(rows):
        number = f"{len(usable)} usable of {len(rows)} responses{_why(rows)}"
    lengths = usable["text"].str.split().str.len()
    long = f"{lengths.mean():.0f} words" if len(usable) == 1 else f"{lengths.mean():.0f} words on average"
    different = "" if len(texts) == len(usable) else f"{len(texts)} different · "
    return f"{number} · {different}{long}"


def _why(rows: pd.DataFrame) -> str:
    errors = rows["error"].dropna()
    if len(errors):
        return f" (error: {literal(str(errors.iloc[0]), 120)})"
    return " (no answer was found in the rest)"


def _below(one: Folded) -> str:
    words = len(one.text.split())
    who = f"sample {one.samples[0]}"
    if len(one.samples) > 1:
        who = f"**{len(one.samples)} equal texts** · samples {', '.join(map(str, one.samples))}"
    ended = ENDED.get(one.finish_reason, "") if one.finish_reason != "stop" else ""
    return " · ".join(part for part in (who, f"{words} words", ended) if part)
