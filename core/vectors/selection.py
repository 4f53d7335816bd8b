"""Which responses of a dataset, or of one prompt, have a vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dataset import Dataset
from core.errors import OvertonError
from core.vectors.of_dataset import keys_of


@dataclass(frozen=True, eq=False)
class Selection:
    """The responses of a dataset or a prompt: positions in `dataset.responses` with and without a vector."""

    positions: NDArray[np.int64]
    left_out: NDArray[np.int64]
    text_keys: NDArray[np.str_]


def select(dataset: Dataset, vectors: NDArray[Any], prompt_id: str | None) -> Selection:
    """Positions of the responses to draw. Raises `OvertonError` for an unknown prompt or vectors of another size."""
    if len(vectors) != len(dataset.responses):
        raise OvertonError(
            f"There are {len(vectors)} vectors for {len(dataset.responses)} responses: compute the vectors anew."
        )
    wanted = np.ones(len(vectors), dtype=bool)
    if prompt_id is not None:
        dataset.prompt_text(prompt_id)
        wanted = (dataset.responses["prompt_id"] == prompt_id).to_numpy(dtype=bool)
    inside = np.flatnonzero(wanted)
    some = np.asarray(vectors)[inside]
    # Some encoders give the empty text a vector like any other; it is a response, but nothing to compare.
    readable = dataset.usable & (dataset.responses["text"].str.strip() != "")
    good = readable.to_numpy(dtype=bool)[inside]
    good &= np.isfinite(some).all(axis=1) & (np.abs(some).sum(axis=1) > 0)
    return Selection(inside[good], inside[~good], keys_of(dataset.responses["text"].iloc[inside[good]]))
