"""New responses on an old map: the old points stay where they are, and no model of the map is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dataset import Dataset
from core.errors import OvertonError
from core.maps.build import Map
from core.vectors import select
from core.vectors.encoders import unit

NEAREST = 5
SHARPNESS = 0.05  # a neighbour that is this much less similar counts 1/e
SAME = 1e-5  # cosine distances below this are rounding: the text is a copy


def place(
    drawn: Map, vectors_old: NDArray[Any], new_vectors: NDArray[Any], *, nearest: int = NEAREST
) -> NDArray[np.float32]:
    """Places for new responses, shape (m, 2): means of the nearest old texts' places, weighted by similarity.

    `vectors_old` is aligned with the map (``vectors[rows(map, dataset)]``), shape (n, d); `new_vectors` has shape
    (m, d). A copy of an old text falls exactly on it; a row of NaN or zeros has no place (NaN); on a map without
    points everything lies in the centre. Raises `OvertonError` where the shapes do not fit.
    """
    if len(vectors_old) != len(drawn):
        raise OvertonError(f"There are {len(vectors_old)} vectors for {len(drawn)} points of the map.")
    new = unit(new_vectors)
    places = np.full((len(new), 2), np.nan, dtype=np.float32)
    good = np.flatnonzero(np.isfinite(new).all(axis=1))
    if len(drawn) == 0:
        places[good] = 0
        return places
    if len(good) == 0:
        return places
    _, first = np.unique(drawn.text_keys, return_index=True)
    old, xy = unit(np.asarray(vectors_old)[first]), drawn.xy[first]
    if old.shape[1] != new.shape[1]:
        raise OvertonError("The new vectors come from another encoder than those of the map: compute them anew.")
    similar = new[good] @ old.T
    near = np.argsort(-similar, axis=1, kind="stable")[:, :nearest]
    values = np.take_along_axis(similar, near, axis=1)
    weights = np.exp((values - values[:, :1]) / SHARPNESS)
    weights /= weights.sum(axis=1, keepdims=True)
    places[good] = np.einsum("mk,mkc->mc", weights, xy[near])
    copies = values[:, 0] > 1 - SAME
    places[good[copies]] = xy[near[copies, 0]]
    return places


def extend(drawn: Map, dataset: Dataset, vectors: NDArray[Any], *, prompt_id: str | None = None) -> Map | None:
    """The map of a dataset that was derived from the one of `drawn`: old responses stay, new ones are placed.

    `vectors` is aligned with `dataset.responses`. None where a response of the old map is not in the dataset.
    """
    chosen = select(dataset, vectors, prompt_id)
    ids = dataset.responses["response_id"].to_numpy(dtype=str)
    here = {rid: k for k, rid in enumerate(ids[chosen.positions].tolist())}
    if not len(drawn) or not set(drawn.response_ids.tolist()) <= set(here):
        return None
    old = np.array([here[rid] for rid in drawn.response_ids.tolist()])
    new = np.setdiff1d(np.arange(len(here)), old)
    rows = np.asarray(vectors)[chosen.positions]
    xy = np.empty((len(here), 2), dtype=np.float32)
    xy[old] = drawn.xy
    xy[new] = place(drawn, rows[old], rows[new])
    return Map(
        response_ids=ids[chosen.positions],
        text_keys=chosen.text_keys,
        xy=xy,
        method=drawn.method,
        note=f"{len(new)} later responses were placed on the map that was there." if len(new) else drawn.note,
        left_out=tuple(ids[chosen.left_out].tolist()),
        prompt_id=drawn.prompt_id,
        parameters=drawn.parameters,
    )
