"""What stands below the map: how many responses it shows, which it cannot show and why, and the map as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from components import state
from components.figures.standalone import standalone
from components.text import excerpt, visible
from core import maps
from core.dataset import Dataset

_REASON = 300  # characters of an error that are shown


def note(loaded: state.Loaded, made: maps.Map, prompt_id: str | None, shown: Sequence[str]) -> str:
    """How many of the responses are usable, how the picture was made, and how it is to be read."""
    here = _here(loaded.dataset, prompt_id, shown)
    usable = int((here & loaded.dataset.usable).sum())
    how = "UMAP of sentence vectors (cosine)" if made.method == "umap" else ""
    parts = [f"{usable} usable of {int(here.sum())} responses", how, (made.note or "").rstrip(".")]
    split, _ = state.longer(loaded)
    if split:
        parts.append(f"texts longer than the encoder reads ({split}) were encoded in parts and averaged")
    parts.append("near means similar; distances across the picture mean little")
    return " · ".join(part for part in parts if part)


def below(
    loaded: state.Loaded, made: maps.Map, prompt_id: str | None, shown: Sequence[str], figure: dict[str, Any]
) -> None:
    """The note, the map as a file, and the responses that are not on it."""
    said = note(loaded, made, prompt_id, shown)
    left, right = st.columns([8, 1], vertical_alignment="top")
    left.caption(said)
    with right:
        _download(loaded.dataset, prompt_id, figure, said)
    missing = absent(loaded.dataset, made, prompt_id, shown)
    if len(missing):
        one = len(missing) == 1
        with st.expander(f"{len(missing)} response{'' if one else 's'} {'is' if one else 'are'} not on the map"):
            st.dataframe(
                missing,
                hide_index=True,
                height=min(38 + 35 * len(missing), 260),
                column_config={"reason": st.column_config.TextColumn("reason", width="large")},
                alt="The responses that are not on the map with system, sample and reason",
            )


def absent(dataset: Dataset, made: maps.Map, prompt_id: str | None, shown: Sequence[str]) -> pd.DataFrame:
    """The responses of these systems that have no place on the map: system, sample, reason.

    With the prompt id as a column where the map is of the whole dataset.
    """
    here = _here(dataset, prompt_id, shown) & ~dataset.responses["response_id"].isin(list(made.response_ids))
    rows = dataset.responses[here]
    empty = rows["text"].str.strip() == ""
    reason = np.select(
        [rows["error"].notna(), ~dataset.usable[here], empty],
        ["error: " + rows["error"].fillna("").map(lambda text: excerpt(text, _REASON)), "no answer", "empty"],
        "no vector",
    )
    table = rows[["system", "prompt_id", "sample"]].assign(reason=reason)
    table = table.assign(system=table["system"].map(visible), prompt_id=table["prompt_id"].map(visible))
    return table if prompt_id is None else table.drop(columns="prompt_id")


def _here(dataset: Dataset, prompt_id: str | None, shown: Sequence[str]) -> pd.Series:
    rows = dataset.responses
    return rows["system"].isin(list(shown)) & ((rows["prompt_id"] == prompt_id) if prompt_id is not None else True)


def _download(dataset: Dataset, prompt_id: str | None, figure: dict[str, Any], said: str) -> None:
    title = dataset.name if prompt_id is None else f"{dataset.name}: {dataset.prompt_text(prompt_id)}"
    st.download_button(
        "HTML",
        data=lambda: standalone(figure, title, said),
        file_name=f"{dataset.name}-map.html",
        mime="text/html",
        icon=":material/download:",
        type="tertiary",
        key="map html",
        help="The map as a page of its own (about 5 MB) that any browser opens without a network. "
        "A picture (PNG) is saved by the camera above the map.",
        on_click="ignore",
    )
