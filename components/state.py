"""What pages share: the workspace, the chosen dataset and prompt, and everything that is loaded once for all."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from components.theme import Style, styles
from core import clusters, lenses, maps, scores, similarity, vectors
from core.dataset import Dataset
from core.errors import OvertonError
from core.workspace import Workspace

# How often a dataset was read anew because it had got vectors, by name.
_REFRESHED: dict[str, int] = {}
_VECTOR_MEASURES = frozenset(
    [lens.id for lens in lenses.LENSES.values() if lens.needs_vectors]
    + [measure for measure in similarity.MEASURES if measure.startswith("vector")]
)
DATASET, PROMPT, SELECTED = "dataset", "prompt", "selected_responses"


@st.cache_resource
def workspace() -> Workspace:
    """The workspace of this server."""
    return Workspace()


@dataclass(frozen=True)
class Loaded:
    """A dataset with what is drawn beside it. Shared by all visitors: never changed in place.

    `key` stands for its content in caches; `vectors` is None where some are not made yet.
    """

    dataset: Dataset
    vectors: np.ndarray | None
    styles: dict[str, Style]
    texts: dict[str, str]
    scores: pd.DataFrame
    key: str = ""

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
    return (*(path.stat().st_mtime for path in _watched(name)), _REFRESHED.get(name, 0))


def refresh(name: str) -> None:
    """Read a dataset anew at the next `load`: it has got vectors."""
    _REFRESHED[name] = _REFRESHED.get(name, 0) + 1


@st.cache_resource(max_entries=8, show_spinner="Reading the dataset and measuring it …")
def _load(name: str, stamp: tuple[float, ...]) -> Loaded:
    space = workspace()
    dataset = space.load(name)
    known = vectors.stored(dataset, space)
    texts = dict(zip(dataset.responses["response_id"], dataset.responses["text"], strict=True))
    scored = scores.scores(dataset, space, known)
    return Loaded(dataset, known, styles(dataset.roles()), texts, scored, f"{name} {stamp}")


@st.cache_resource(max_entries=256, show_spinner=False)
def _part(key: str, prompt_id: str, systems: tuple[str, ...], _loaded: Loaded) -> Dataset:
    rows = _loaded.dataset.responses
    here = (rows["prompt_id"] == prompt_id) & rows["system"].isin(systems)
    return dataclasses.replace(_loaded.dataset, responses=rows[here].reset_index(drop=True))


def part(loaded: Loaded, prompt_id: str | None, systems: Sequence[str]) -> Loaded:
    """One prompt and some systems of a dataset that lacks vectors, with the vectors of just these if they are there.

    A dataset that has all its vectors, or the whole of it, is returned as it is.
    """
    if loaded.vectors is not None or prompt_id is None or not systems:
        return loaded
    piece = _part(loaded.key, prompt_id, tuple(systems), loaded)
    known = vectors.stored(piece, workspace())
    key = f"{loaded.key} {prompt_id} {list(systems)}"
    scored = loaded.scores if known is None else _part_scores(key, loaded, piece, known)
    return dataclasses.replace(loaded, dataset=piece, vectors=known, scores=scored, key=key)


@st.cache_resource(max_entries=256, show_spinner=False)
def _part_scores(key: str, _loaded: Loaded, _piece: Dataset, _known: np.ndarray) -> pd.DataFrame:
    """The scores of the whole dataset, completed by what the vectors of this part tell."""
    made = scores.compute(_piece, _known)
    made = made[made["value"].notna() & made["lens"].isin(_VECTOR_MEASURES)]
    return pd.concat([_loaded.scores[_loaded.scores["value"].notna()], made], ignore_index=True)


@st.cache_resource(max_entries=64, show_spinner=False)
def _longer(key: str, _loaded: Loaded) -> tuple[int, int]:
    return vectors.longer(_loaded.dataset, workspace())


def longer(loaded: Loaded) -> tuple[int, int]:
    """(responses that the encoder read in parts, responses with a vector)."""
    return _longer(loaded.key, loaded)


@st.cache_resource(max_entries=256, show_spinner=False)
def _quick_map(key: str, prompt_id: str | None, _loaded: Loaded) -> maps.Map:
    assert _loaded.vectors is not None
    return maps.build(_loaded.dataset, _loaded.vectors, prompt_id=prompt_id, method="quick")


def map_of(loaded: Loaded, prompt_id: str | None) -> maps.Map:
    """The map of one prompt or (None) of the whole dataset, which must have vectors.

    That of the dataset it was derived from, so that nothing moves; else the UMAP one where it is there, else a
    quick one.
    """
    ready = _extended_map(loaded.key, prompt_id, loaded)
    ready = ready or maps.existing(loaded.dataset, workspace(), loaded.vectors, prompt_id, "umap")
    return ready or _quick_map(loaded.key, prompt_id, loaded)


@st.cache_resource(max_entries=64, show_spinner=False)
def _extended_map(key: str, prompt_id: str | None, _loaded: Loaded) -> maps.Map | None:
    """For a derived dataset: the map of the dataset that it came from, with its own responses placed on it."""
    parent = str(_loaded.dataset.meta.get("derived_from", ""))
    if parent not in workspace().names() or _loaded.vectors is None:
        return None
    before = load(parent)
    if before.vectors is None or prompt_id not in {None, *before.dataset.prompts["prompt_id"]}:
        return None
    return maps.extend(map_of(before, prompt_id), _loaded.dataset, _loaded.vectors, prompt_id=prompt_id)


@st.cache_resource(max_entries=64, show_spinner=False)
def _clusters(key: str, prompt_id: str | None, _loaded: Loaded) -> clusters.Clusters:
    assert _loaded.vectors is not None
    return clusters.cluster(_loaded.dataset, _loaded.vectors, prompt_id=prompt_id)


def clusters_of(loaded: Loaded, prompt_id: str | None) -> clusters.Clusters:
    """The clusters of one prompt or (None) of the whole dataset."""
    return _clusters(loaded.key, prompt_id, loaded)


@st.cache_resource(max_entries=16, show_spinner="Summing up over all prompts …")
def _summary(key: str, _loaded: Loaded) -> pd.DataFrame:
    return lenses.summarise(_loaded.scores)


def summary_of(loaded: Loaded) -> pd.DataFrame:
    """All scores summed up over prompts: system, lens, value, low, high, n. Shared: never changed in place."""
    return _summary(loaded.key, loaded)


def visitor() -> str:
    """A name for this visitor, for queues in which visitors take turns; it holds as long as the page is open."""
    return str(st.session_state.setdefault("visitor", uuid.uuid4().hex))


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
