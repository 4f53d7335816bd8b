"""Length in words."""

from __future__ import annotations

from core.lenses.base import Lens
from core.lenses.features import Features, Floats


def _words(features: Features) -> Floats:
    return features.pieces.lengths.astype(float)


LENSES = (
    Lens(
        id="words",
        name="Words",
        unit="words",
        description="Length of a response, in pieces between blanks. An empty response has 0.",
        range=(0, None),
        reading="neutral",
        each=_words,
    ),
)
