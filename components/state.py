"""What pages share: the workspace, the chosen dataset and prompt, and everything that is loaded once for all."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from components.theme import Style, styles
from core import clusters, lenses, maps, scores, vectors
from core.dataset import Dataset
from core.errors import OvertonError
from core.workspace import Workspace

# Datasets whose vectors are all there: for them, later writes to the store change nothing.
_COMPLETE: set[tuple[str, tuple[float, ...]]] = set()
DATASET, PROMPT, SELECTED = "dataset", "prompt", "selected_responses"


@st.cache_resource
def workspace() -> Workspace:
    """The workspace of this server."""
    return Workspace()


@dataclass(frozen=True)
class Loaded:
    """A dataset with what is drawn beside it. Shared by all visitors: never changed in place."""

    dataset: Dataset
    vectors: np.ndarray | None
    styles: dict[str, Style]
    texts: dict[str, str]
    scores: pd.DataFrame

    @cached_property
    def measured(self) -> frozenset[str]:
        """The lenses that `scores` has values of."""
        return frozenset(self.scores["lens"])


def load(name: str) -> Loaded:
    """Load a dataset once for all visitors; again when its files or the vectors of its texts have changed."""
    return _load(name, _stamp(name))


def _watched(name: str) -> list[Path]:
    space = workspace()
    files = (space.path(name) / "manifest.json", space.root / "roles" / f"{name}.json")
    return [file for file in files if file.exists()]


def _stamp(name: str) -> tuple[float, ...]:
    """Changes whenever something that `load` reads has changed."""
    space = workspace()
    stamp = tuple(path.stat().st_mtime for path in _watched(name))
    if (name, stamp) in _COMPLETE:
        return stamp
    file = vectors.store_file(space)
    return (*stamp, file.stat().st_mtime) if file.exists() else stamp


@st.cache_resource(max_entries=8, show_spinner="Reading the dataset and measuring it …")
def _load(name: str, stamp: tuple[float, ...]) -> Loaded:
    space = workspace()
    dataset = space.load(name)
    known = vectors.stored(dataset, space)
    if known is not None:
        _COMPLETE.add((name, stamp[: len(_watched(name))]))
    texts = dict(zip(dataset.responses["response_id"], dataset.responses["text"], strict=True))
    return Loaded(dataset, known, styles(dataset.roles()), texts, scores.scores(dataset, space, known))


@st.cache_resource(max_entries=8, show_spinner=False)
def _longer(name: str, stamp: tuple[float, ...]) -> tuple[int, int]:
    return vectors.longer(_load(name, stamp).dataset, workspace())


def longer(name: str) -> tuple[int, int]:
    """(responses that the encoder read in parts, responses with a vector)."""
    return _longer(name, _stamp(name))


@st.cache_resource(max_entries=256, show_spinner=False)
def _quick_map(name: str, stamp: tuple[float, ...], prompt_id: str | None) -> maps.Map:
    loaded = _load(name, stamp)
    assert loaded.vectors is not None
    return maps.build(loaded.dataset, loaded.vectors, prompt_id=prompt_id, method="quick")


def map_of(name: str, prompt_id: str | None) -> maps.Map:
    """The map of one prompt or (None) of the whole dataset: the UMAP one where it is there, else a quick one.

    The dataset must have vectors.
    """
    stamp = _stamp(name)
    loaded = _load(name, stamp)
    ready = maps.existing(loaded.dataset, workspace(), loaded.vectors, prompt_id, "umap")
    return ready if ready is not None else _quick_map(name, stamp, prompt_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _clusters(name: str, stamp: tuple[float, ...], prompt_id: str | None) -> clusters.Clusters:
    loaded = _load(name, stamp)
    assert loaded.vectors is not None
    return clusters.cluster(loaded.dataset, loaded.vectors, prompt_id=prompt_id)


def clusters_of(name: str, prompt_id: str | None) -> clusters.Clusters:
    """The clusters of one prompt or (None) of the whole dataset."""
    return _clusters(name, _stamp(name), prompt_id)


@st.cache_resource(max_entries=16, show_spinner="Summing up over all prompts …")
def _summary(name: str, stamp: tuple[float, ...]) -> pd.DataFrame:
    return lenses.summarise(_load(name, stamp).scores)


def summary_of(name: str) -> pd.DataFrame:
    """All scores summed up over prompts: system, lens, value, low, high, n. Shared: never changed in place."""
    return _summary(name, _stamp(name))


def is_dark() -> bool:
    """Whether the visitor sees the dark theme."""
    return str(st.context.theme.get("type", "light")) == "dark"


def current_dataset() -> str:
    """The name of the chosen dataset; the demonstration first. Raises `OvertonError` where there is none."""
    names = workspace().names()
    if not names:
        raise OvertonError("There is no dataset yet: open a file or a folder on the Data page.")
    name = st.session_state.get(DATASET)
    return name if name in names else names[0]


def current_prompt(dataset: Dataset) -> str:
    """The id of the chosen prompt; the first one where none is chosen."""
    chosen = st.session_state.get(PROMPT)
    ids = list(dataset.prompts["prompt_id"])
    if not ids:
        raise OvertonError(f"{dataset.name!r} has no prompts.")
    return chosen if chosen in ids else ids[0]


def choose_prompt(prompt_id: str) -> None:
    """Go to another prompt; what was selected on the map belongs to the old one."""
    st.session_state[PROMPT] = prompt_id
    st.session_state[SELECTED] = []
