"""The Vendi score: how many different responses there are, in effect."""

from __future__ import annotations

import numpy as np

from core.lenses.base import Lens, Sample
from core.lenses.features import Floats, Ints


def _effective_number(vectors: Floats) -> Floats:
    """Of unit vectors (groups, k, d): the exponential of the entropy of the eigenvalues of their similarities."""
    k, d = vectors.shape[1:]
    turned = np.swapaxes(vectors, 1, 2)
    matrix = vectors @ turned if k <= d else turned @ vectors  # the eigenvalues above zero are the same
    values = np.clip(np.linalg.eigvalsh(matrix / k), 0, None)
    logs = np.log(values, out=np.zeros_like(values), where=values > 0)
    number: Floats = np.clip(np.exp(-(values * logs).sum(axis=1)), 1, k)
    return number


def _vendi(sample: Sample) -> tuple[Floats, Ints]:
    directions, group = sample.directions
    n = np.bincount(group, minlength=sample.groups)
    order, starts = np.argsort(group, kind="stable"), np.cumsum(n) - n
    scores = np.full(sample.groups, np.nan)
    for k in np.unique(n[n > 1]):
        alike = np.flatnonzero(n == k)
        rows = order[starts[alike][:, None] + np.arange(k)]
        for part in range(0, len(alike), 512):  # bounds the memory for the gathered vectors
            some = slice(part, part + 512)
            scores[alike[some]] = _effective_number(directions[rows[some]])
    return scores, n


LENSES = (
    Lens(
        id="vendi",
        name="Vendi score",
        unit="score",
        description=(
            "Effective number of different meanings among the responses to one prompt: 1 when all are equal, "
            "as many as there are responses when none resemble each other."
        ),
        range=(1, None),
        reading="higher = more diverse",
        whole=_vendi,
        needs_vectors=True,
    ),
)
