"""The sampling parameters of the Lab."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.generation.base import Sampling
from core.prompting import STOP

# Sampling parameters by name: how they are called on the page, and the value that switches them off.
_FILTERS: dict[str, tuple[str, float]] = {
    "top_p": ("top-p", 1.0),
    "top_k": ("top-k", 0),
    "min_p": ("min-p", 0.0),
    "repetition_penalty": ("repetition penalty", 1.0),
}
_TOP_P = "Draw from the likeliest tokens that together have this probability; 1 = off."
_TOP_K = "Draw from so many of the likeliest tokens; 0 = off."
_MIN_P = "Drop tokens less likely than this share of the likeliest one; 0 = off."
_AGAIN = "Above 1, tokens that are there already become less likely, those of the context included."


def parameters() -> tuple[int, Sampling]:
    """Number of samples, and the sampling parameters."""
    samples, temperature, tokens = st.columns(3)
    n = samples.slider("Samples", 1, 16, 8, key="lab_samples", persist_state="session")
    heat = temperature.slider("Temperature", 0.0, 1.5, 0.7, 0.1, key="lab_temperature", persist_state="session")
    new = tokens.slider("New tokens", 16, 256, 96, 16, key="lab_tokens", persist_state="session")
    if heat == 0 and n > 1:
        st.caption(":material/info: At temperature 0 all samples will be equal.")
    return n, Sampling(temperature=heat, max_new_tokens=new, stop=STOP, **_filters())


def _filters() -> dict[str, Any]:
    """The sampling parameters that are seldom changed; the label says which ones are on."""
    kept = st.session_state
    values = {name: kept.get(f"lab_{name}", off) for name, (_, off) in _FILTERS.items()}
    on = ", ".join(f"{_FILTERS[name][0]} {value:g}" for name, value in values.items() if value != _FILTERS[name][1])
    with st.popover(f"More · {on}" if on else "More: top-p, top-k, min-p, repetition", icon=":material/tune:"):
        p = st.slider("top-p", 0.05, 1.0, 1.0, 0.05, key="lab_top_p", persist_state="session", help=_TOP_P)
        k = st.number_input("top-k", 0, 1000, 0, key="lab_top_k", persist_state="session", help=_TOP_K)
        m = st.slider("min-p", 0.0, 0.5, 0.0, 0.01, key="lab_min_p", persist_state="session", help=_MIN_P)
        r = st.slider(
            "Repetition penalty",
            1.0,
            2.0,
            1.0,
            0.05,
            key="lab_repetition_penalty",
            persist_state="session",
            help=_AGAIN,
        )
    return {"top_p": p, "top_k": int(k), "min_p": m, "repetition_penalty": r}
