"""What was clicked or drawn around on the map, as a list of response ids; and the table below the map."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from components import state
from components.downloads import LABELS, download_button
from components.text import visible
from core.dataset import Dataset
from core.export import FORMATS, export_bytes


def ids_of(event: Any) -> list[str]:
    """The response ids of a selection event: by what each point carries, never by its position."""
    points = event.get("selection", {}).get("points", []) if event else []
    found = [str(data[0]) for point in points if (data := point.get("customdata"))]
    return list(dict.fromkeys(found))


def keep(key: str) -> None:
    """Callback of the map: remember a selection that is not empty; redrawing the map reports an empty one."""
    chosen = ids_of(st.session_state.get(key))
    if chosen:
        select(chosen)


def select(response_ids: list[str]) -> None:
    """Select these responses and read the first one."""
    st.session_state[state.SELECTED] = response_ids
    st.session_state["reading_place"] = 0


def unfold(selected: list[str], dots: pd.DataFrame) -> list[str]:
    """All responses of the selected dots, copies included."""
    by_first = dict(zip(dots["response_id"], dots["response_ids"], strict=True))
    return [rid for first in selected for rid in by_first.get(first, [first])]


def selection_table(loaded: state.Loaded, selected: list[str]) -> None:
    """The selected responses as a table that can be sorted and downloaded."""
    rows = loaded.dataset.responses
    table = rows[rows["response_id"].isin(selected)]
    table = table.assign(words=table["text"].str.split().str.len(), text=table["text"].map(visible))
    shown = table[["system", "prompt_id", "sample", "words", "finish_reason", "text"]]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"##### {len(table)} selected")
        for format in FORMATS:
            _download(loaded.dataset, table.index, format)
        st.button("Clear", icon=":material/close:", on_click=select, args=([],))
    st.dataframe(
        shown,
        hide_index=True,
        height=min(38 + 35 * len(shown), 320),
        column_config={"text": st.column_config.TextColumn("text", width="large")},
        alt="The selected responses with system, prompt, sample, words and text",
    )


def _download(dataset: Dataset, rows: pd.Index, format: str) -> None:
    """A button whose file is made at the click: these rows unaltered, with all that is known of them."""
    download_button(
        format,
        lambda: export_bytes(dataset, format, rows=rows),
        name=f"{dataset.name}-selection",
        key=f"selection {format}",
        help=f"The selected responses as one {LABELS[format]} file, one row a response, texts unaltered.",
    )
