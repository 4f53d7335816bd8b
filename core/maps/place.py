"""New responses on an old map: the old points stay where they are, and no model of the map is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import OvertonError
from core.maps.build import Map
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
