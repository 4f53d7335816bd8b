"""The button that gives responses as a file, made at the click."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from core.export import MIME

LABELS = {"parquet": "Parquet", "csv": "CSV", "jsonl": "JSONL"}


def download_button(format: str, data: Callable[[], bytes], *, name: str, key: str, help: str) -> None:
    """A button for one format of `core.export`; `data` runs only when it is clicked, `name` has no ending."""
    st.download_button(
        LABELS[format],
        data=data,
        file_name=f"{name}.{format}",
        mime=MIME[format],
        icon=":material/download:",
        key=key,
        help=help,
        on_click="ignore",
    )
