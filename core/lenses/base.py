"""What a lens is, and what it looks at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from core.lenses.features import Features, Floats, Ints

Unit = Literal["words", "share", "score"]
Reading = Literal["higher = more diverse", "higher = more alike", "neutral"]


@dataclass(frozen=True)
class Sample:
    """Usable responses in groups; a group is one distribution (one system, one prompt).

    `group` holds for each of the n responses a number in ``0 .. groups - 1``; `vectors` is (n, d), with NaN or
    zero rows where a response has none, or None.
    """

    features: Features
    group: Ints
    groups: int
    vectors: NDArray[np.float32] | None = None

    @cached_property
    def sizes(self) -> Ints:
        """Responses per group."""
        return np.bincount(self.group, minlength=self.groups)

    @cached_property
    def directions(self) -> tuple[Floats, Ints]:
        """Unit vectors of the responses that have one, and the groups of those responses."""
        if self.vectors is None:
            return np.zeros((0, 1)), np.zeros(0, dtype=np.int64)
        vectors = np.asarray(self.vectors, dtype=np.float64)
        norms = np.linalg.norm(vectors, axis=1)
        good = np.isfinite(norms) & (norms > 0)
        return vectors[good] / norms[good, None], self.group[good]

    def sums(self, values: NDArray[np.generic]) -> Floats:
        """Sum of a value per response, by group."""
        return np.bincount(self.group, weights=values, minlength=self.groups).astype(np.float64)


def quotient(above: NDArray[np.generic], below: NDArray[np.generic]) -> Floats:
    """Element by element, NaN where there is nothing to divide by."""
    out = np.full(np.shape(below), np.nan)
    np.divide(above, below, out=out, where=np.asarray(below) > 0)
    return out


@dataclass(frozen=True)
class Lens:
    """A measure over responses.

    Either `each` is given (a value per response; the distribution's value is their mean) or `whole`, which
    returns for each group the value, NaN where undefined, and the number of responses it was computed from.
    `twin` names the lens that measures the same at equal length. `pooled`: over a dataset the share is taken
    over all responses, not as a mean of prompts (they differ where prompts have unequal numbers of responses).
    """

    id: str
    name: str
    unit: Unit
    description: str
    range: tuple[float, float | None]
    reading: Reading
    each: Callable[[Features], Floats] | None = None
    whole: Callable[[Sample], tuple[Floats, Ints]] | None = None
    needs_vectors: bool = False
    pooled: bool = False
    twin: str | None = None

    @property
    def per_response(self) -> bool:
        """Whether single responses have a value (so that a map can be coloured by it)."""
        return self.each is not None

    def compute(self, sample: Sample) -> tuple[Floats, Ints]:
        """Value and number of responses used, for each group."""
        if self.whole is not None:
            return self.whole(sample)
        assert self.each is not None, f"the lens {self.id} has neither `each` nor `whole`"
        return quotient(sample.sums(self.each(sample.features)), sample.sizes), sample.sizes
