"""Layouts: vectors of unit length to points in the plane. UMAP is imported only where it is used."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_ROWS = 1024  # rows of the table of similarities that are held at once
MIN_DIST = 0.1


def directions(vectors: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Coordinates along the main directions, shape (n, count), the same on every run.

    For vectors of unit length this is also classical scaling of the distances ``sqrt(2 - 2 cos)``.
    """
    centred = np.asarray(vectors, dtype=np.float64)
    centred = centred - centred.mean(axis=0)
    n, d = centred.shape
    if n <= d:
        values, axes = np.linalg.eigh(centred @ centred.T)
        found = axes * np.sqrt(np.clip(values, 0, None))
    else:
        _, axes = np.linalg.eigh(centred.T @ centred)
        found = centred @ axes
    found = found[:, ::-1][:, :count]
    # An axis may point either way: its largest coordinate shall be positive.
    largest = np.argmax(np.abs(found) > np.abs(found).max(axis=0) * (1 - 1e-6), axis=0)
    found = found * np.where(found[largest, np.arange(found.shape[1])] < 0, -1.0, 1.0)
    return np.pad(found, ((0, 0), (0, count - found.shape[1])))


def scaled(xy: NDArray[Any]) -> Floats:
    """Points moved to the centre (0, 0) and scaled to a root mean square distance of 1 from it.

    Points that all coincide are put on a circle, so that each can be seen.
    """
    centred = np.asarray(xy, dtype=np.float64) - np.mean(xy, axis=0)
    spread = float(np.sqrt((centred**2).sum(axis=1).mean()))
    n = len(centred)
    if n == 1:
        return np.zeros((1, 2), dtype=np.float32)
    if not np.isfinite(spread) or spread < 1e-6:
        angles = 2 * np.pi * np.arange(n) / n
        return np.column_stack([np.cos(angles), np.sin(angles)]).astype(np.float32)
    return np.asarray(centred / spread, dtype=np.float32)


def neighbours(vectors: Floats, count: int) -> tuple[NDArray[np.int64], Floats]:
    """The `count` nearest rows by cosine, each row itself first: indices and distances, shape (n, count)."""
    n = len(vectors)
    indices = np.empty((n, count), dtype=np.int64)
    distances = np.empty((n, count), dtype=np.float32)
    for start in range(0, n, _ROWS):
        similar = vectors[start : start + _ROWS] @ vectors.T
        own = np.arange(start, min(start + _ROWS, n))
        similar[own - start, own] = np.inf
        near = np.argpartition(-similar, count - 1, axis=1)[:, :count]
        near.sort(axis=1)
        values = np.take_along_axis(similar, near, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        indices[own] = np.take_along_axis(near, order, axis=1)
        distances[own] = np.clip(1 - np.take_along_axis(values, order, axis=1), 0, 2)
    return indices, distances


def neighbours_for(n: int) -> int:
    """How many neighbours UMAP looks at among n different texts: 15, and a quarter of few (at least 4)."""
    return int(min(15, max(4, n // 4)))


def umap(vectors: Floats, seed: int) -> NDArray[Any]:
    """UMAP by cosine with a fixed seed, shape (n, 2), for at least 8 rows.

    The neighbours are exact and the start is the layout by main directions: both are the same on every run and
    work for few points, where the library's own start fails.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from umap.umap_ import find_ab_params, fuzzy_simplicial_set, simplicial_set_embedding

        indices, distances = neighbours(vectors, neighbours_for(len(vectors)))
        graph, _, _ = fuzzy_simplicial_set(
            vectors,
            indices.shape[1],
            np.random.RandomState(seed),
            "cosine",
            knn_indices=indices,
            knn_dists=distances,
        )
        start = directions(vectors, 2)
        # Texts that differ may have the same vector: without a little noise they could never part.
        start = 10 * start / max(float(np.abs(start).max()), 1e-9)
        start += np.random.RandomState(seed).normal(scale=1e-3, size=start.shape)
        a, b = find_ab_params(1.0, MIN_DIST)
        xy, _ = simplicial_set_embedding(
            vectors,
            graph,
            n_components=2,
            initial_alpha=1.0,
            a=a,
            b=b,
            gamma=1.0,
            negative_sample_rate=5,
            n_epochs=None,
            init=start.astype(np.float32),
            random_state=np.random.RandomState(seed),
            metric="euclidean",
            metric_kwds={},
            densmap=False,
            densmap_kwds={},
            output_dens=False,
            parallel=False,
        )
    return np.asarray(xy)
