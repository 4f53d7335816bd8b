"""The datasets there are, the shipped ones first: how large, when made, where from; one of them is chosen."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import streamlit as st

from components import state
from components.data_counts import number
from components.text import excerpt, literal
from core.errors import OvertonError
from core.workspace import Workspace, read_manifest

# Where a dataset came from, by what the reader that made it is called; an own export tells nothing more.
_KINDS = {
    "release": "the authors' release",
    "chat": "answers of a server",
    "flat": "a flat file",
    "own": "an export of Overton Lens",
}


@dataclass(frozen=True)
class Entry:
    """One dataset in the list. A number is None, and `error` a sentence, where its manifest cannot be read."""

    name: str
    shipped: bool
    prompts: int | None = None
    systems: int | None = None
    responses: int | None = None
    made: str = ""
    origin: str = ""
    error: str | None = None

    @property
    def sizes(self) -> str:
        """`40 prompts · 4 systems · 1,280 responses`, as far as they are known."""
        known = ((self.prompts, "prompt"), (self.systems, "system"), (self.responses, "response"))
        return " · ".join(number(n, what) for n, what in known if n is not None)

    @property
    def history(self) -> str:
        """When it was made and where from."""
        return " · ".join(part for part in (self.made, self.origin) if part)

    @property
    def caption(self) -> str:
        """Sizes, day and origin in few words: of a path, its last part."""
        origin = re.sub(r"^from .*[/\\](?=.)", "from ", self.origin)
        return " · ".join(part for part in (self.sizes, self.made.split(",")[0], excerpt(origin, 48)) if part)


def entries(workspace: Workspace) -> list[Entry]:
    """All datasets, the shipped ones first; only their manifests are read."""
    return [entry(name, workspace) for name in workspace.names()]


def entry(name: str, workspace: Workspace) -> Entry:
    """One dataset of a workspace."""
    shipped = workspace.is_shipped(name)
    try:
        manifest = read_manifest(workspace.path(name))
    except OvertonError as error:
        return Entry(name, shipped, error=str(error))
    rows = manifest.get("rows")
    sizes = [rows.get(key) if isinstance(rows, dict) else None for key in ("prompts", "systems", "responses")]
    prompts, systems, responses = (size if isinstance(size, int) else None for size in sizes)
    made, origin = _day(manifest.get("created")), _origin(manifest, shipped)
    return Entry(name, shipped, prompts, systems, responses, made, origin)


def _day(created: Any) -> str:
    try:
        made = datetime.fromisoformat(str(created)).astimezone()
    except ValueError:
        return ""
    return f"{made.day} {made:%b %Y, %H:%M}"


def _origin(manifest: dict[str, Any], shipped: bool) -> str:
    if shipped:
        return "came with Overton Lens"
    meta = manifest.get("meta")
    meta = meta if isinstance(meta, dict) else {}
    if meta.get("derived_from"):
        return f"made in the Lab from {meta['derived_from']}"
    source = str(meta.get("source", ""))
    return f"from {meta.get('origin') or _KINDS.get(source, source)}" if source or meta.get("origin") else ""


def dataset_list(found: list[Entry], current: str | None) -> None:
    """Radio buttons, one a dataset; the choice holds on every page. None is chosen while none is looked at."""
    key = "data_list"
    names = [one.name for one in found]
    shipped = {one.name for one in found if one.shipped}
    st.session_state[key] = current

    def chosen() -> None:
        if st.session_state[key] is not None:
            choose(st.session_state[key])

    with st.container(height=460 if len(names) > 7 else "content", border=False):
        st.radio(
            "Datasets",
            names,
            index=None,
            key=key,
            on_change=chosen,
            format_func=lambda name: literal(name, 60) + (" :gray-badge[shipped]" if name in shipped else ""),
            captions=["cannot be read" if one.error else literal(one.caption) for one in found],
            label_visibility="collapsed",
        )


def choose(name: str) -> None:
    """Make a dataset the chosen one, and look at it; what was opened and not saved stays."""
    if name != st.session_state.get(state.DATASET):
        st.session_state.pop(state.PROMPT, None)
        st.session_state[state.SELECTED] = []
    st.session_state[state.DATASET] = name
    st.session_state[VIEW] = DATASET_VIEW


# What the wide side of the page shows: the chosen dataset, or what was opened and is not saved yet.
VIEW, DATASET_VIEW, OPENED_VIEW = "data_view", "dataset", "opened"
