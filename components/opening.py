"""What a new visitor sees while the first page is on its way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import streamlit as st

from components.figures import NO_TRACES

_DRAWN = Event()  # set once this server has drawn a page
_GROUND = "rgba(128,128,128,0.055)"  # as the map's


@contextmanager
def opening() -> Iterator[None]:
    """Draw a page inside; for the first visitor of a server, an empty map stands below it until the page is complete.

    With it the browser fetches its largest part, plotly, while the server still imports and reads. A server that
    has done so answers before the browser could draw it.
    """
    page = st.container()
    place = st.empty()
    if _DRAWN.is_set():
        with page:
            yield
        return
    place.plotly_chart(_empty_map(), key="opening", alt="The map is on its way.")
    try:
        with page:
            yield
    finally:
        place.empty()
        _DRAWN.set()


def _empty_map() -> dict[str, Any]:
    axis = {"visible": False}
    layout = {"height": 410, "plot_bgcolor": _GROUND, "xaxis": axis, "yaxis": axis}
    return {"data": NO_TRACES, "layout": {**layout, "margin": {"l": 0, "r": 0, "t": 0, "b": 0}}}
