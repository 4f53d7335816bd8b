"""Servers in the Lab: the endpoints that the operator configured, and one that a visitor types where allowed."""

from __future__ import annotations

import streamlit as st

from components.text import literal
from core.errors import OvertonError
from core.generation import endpoints

URL, MODEL = "lab_endpoint_url", "lab_endpoint_model"


def offered(kind: str) -> list[str]:
    """The model ids of the configured endpoints of a kind; what is wrong with their file is said in one sentence."""
    endpoints.use_secrets(st.secrets)
    try:
        known = endpoints.configured()
    except OvertonError as error:
        if kind == "completions":  # once is enough
            st.error(literal(str(error), 600), icon=":material/error:")
        return []
    return [f"{endpoints.PREFIX}{name}" for name, endpoint in known.items() if endpoint.kind == kind]


def label(model: str) -> str:
    """How a model is named in a choice."""
    return f"{model.removeprefix(endpoints.PREFIX)} (server)" if endpoints.is_server(model) else model


def typed() -> str | None:
    """The model id of an endpoint that the visitor typed; None without one. There is no field unless it is allowed.

    Raises `OvertonError` for an address that is none.
    """
    if not endpoints.allowed():
        return None
    with st.popover("Ask a server", icon=":material/dns:", type="tertiary"):
        url = st.text_input("Address", key=URL, persist_state="session", placeholder="http://localhost:8000/v1")
        model = st.text_input(
            "Model, as the server calls it", key=MODEL, persist_state="session", placeholder="owner/name"
        )
        st.caption("An OpenAI-compatible server of base models. No key is sent. Empty both to use the model above.")
    if not (url or "").strip() or not (model or "").strip():
        return None
    return endpoints.typed_id(str(url), str(model))
