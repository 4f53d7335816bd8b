"""Distance between the meanings of responses."""

from __future__ import annotations

import numpy as np

from core.lenses.base import Lens, Sample, quotient
from core.lenses.features import Floats, Ints


def _mean_cosine_distance(sample: Sample) -> tuple[Floats, Ints]:
    directions, group = sample.directions
    n = np.bincount(group, minlength=sample.groups)
    total = np.zeros((sample.groups, directions.shape[1]))
    np.add.at(total, group, directions)
    # The squared length of the sum holds every pair twice, and each unit vector with itself once.
    similarity = quotient((total**2).sum(axis=1) - n, n * (n - 1))
    return np.clip(1 - similarity, 0, 2), n


LENSES = (
    Lens(
        id="mean_cosine_distance",
        name="Distance in meaning",
        unit="score",
        description="Mean cosine distance between the vectors of two responses to one prompt, over all pairs.",
        range=(0, 2),
        reading="higher = more diverse",
        whole=_mean_cosine_distance,
        needs_vectors=True,
    ),
)
