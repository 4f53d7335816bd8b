"""Build a map: which responses are on it, one place a different text, and by which layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from core.dataset import Dataset
from core.errors import OvertonError
from core.maps import layout
from core.vectors import select

Method = Literal["umap", "quick"]

ENOUGH = 8  # different texts; with fewer, UMAP says nothing and distances are drawn as they are


@dataclass(frozen=True, eq=False)
class Map:
    """Where responses lie in the plane.

    response_ids  shape (n,), in the order of the dataset's responses
    text_keys     shape (n,), equal texts have equal keys and lie at the same place
    xy            shape (n, 2), float32; centre 0, root mean square distance of the different texts 1
    method        umap; pca (the two main directions); simple (few texts, by distance); single; empty
    note          one sentence for the reader, or None
    left_out      ids of the responses that have no vector: errors, no answer, empty
    prompt_id     the prompt, or "" for the whole dataset
    parameters    what the layout was made with
    """

    response_ids: NDArray[np.str_]
    text_keys: NDArray[np.str_]
    xy: NDArray[np.float32]
    method: str
    note: str | None = None
    left_out: tuple[str, ...] = ()
    prompt_id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.response_ids)


def rows(drawn: Map, dataset: Dataset) -> NDArray[np.int64]:
    """Positions in `dataset.responses` of the responses on a map: ``vectors[rows(m, d)]`` is aligned with it.

    Raises `OvertonError` where the map belongs to another dataset.
    """
    places = dataset.responses["response_id"].reset_index(drop=True)
    found = places.reset_index().set_index("response_id")["index"].reindex(list(drawn.response_ids))
    if found.isna().any():
        raise OvertonError("This map belongs to another dataset: build it anew.")
    return found.to_numpy(dtype=np.int64)


def build(
    dataset: Dataset,
    vectors: NDArray[Any],
    *,
    prompt_id: str | None = None,
    method: Method = "umap",
    seed: int = 0,
) -> Map:
    """The map of a whole dataset, or of one prompt.

    `vectors` is aligned with `dataset.responses` (see `core.vectors`); rows of NaN or zeros are left out. Equal
    texts are laid out once. "quick" needs no UMAP and takes milliseconds; fewer than 8 different texts are laid
    out by their distances in any case. The same data gives the same picture.
    """
    chosen = select(dataset, vectors, prompt_id)
    _, first, inverse = np.unique(chosen.text_keys, return_index=True, return_inverse=True)
    # In the order of the responses, as the order of hashes means nothing.
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    texts = np.asarray(vectors, dtype=np.float32)[chosen.positions[first[order]]]
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    used, note = _choose(len(texts), len(chosen.positions), method)
    parameters: dict[str, Any] = {}
    if used == "umap":
        parameters = {"neighbours": layout.neighbours_for(len(texts)), "min_dist": layout.MIN_DIST, "seed": seed}
    ids = dataset.responses["response_id"].to_numpy(dtype=str)
    return Map(
        response_ids=ids[chosen.positions],
        text_keys=chosen.text_keys,
        xy=_lay_out(texts, used, seed)[rank[inverse]],
        method=used,
        note=note,
        left_out=tuple(ids[chosen.left_out].tolist()),
        prompt_id=prompt_id or "",
        parameters=parameters,
    )


def _choose(texts: int, responses: int, method: Method) -> tuple[str, str | None]:
    if responses == 0:
        return "empty", "There is no response to draw."
    if texts == 1:
        one = "There is one response" if responses == 1 else f"All {responses} responses are the same text"
        return "single", f"{one}: one dot."
    if texts < ENOUGH:
        return "simple", f"There are only {texts} different texts: they are laid out by their distances alone."
    if method == "quick":
        return "pca", "A quick layout along the two main directions."
    return "umap", None


def _lay_out(texts: NDArray[np.float32], used: str, seed: int) -> NDArray[np.float32]:
    if used == "empty":
        return np.zeros((0, 2), dtype=np.float32)
    if used == "umap":
        return layout.scaled(layout.umap(texts, seed))
    return layout.scaled(layout.directions(texts, 2))
