"""Abstaining: responses that step back as a machine without opinions, or decline."""

from __future__ import annotations

import numpy as np

from core.lenses.base import Lens
from core.lenses.features import Features, Floats

# In lower case with straight apostrophes; a curly apostrophe in a response counts as a straight one. Narrow on
# purpose: "I'm sorry" or "I don't know" stand in ordinary answers too.
PHRASES = (
    "ai language model",
    "just an ai",
    "a neutral ai",
    "i do not have personal",
    "i don't have personal",
    "cannot provide personal",
    "can't provide personal",
    "i cannot condone",
    "i can't condone",
)


def _abstains(features: Features) -> Floats:
    return np.array([any(phrase in text for phrase in PHRASES) for text in features.lower], dtype=float)


LENSES = (
    Lens(
        id="abstain",
        name="Abstains",
        unit="share",
        description="Share of responses that call themselves an AI without opinions, or decline in a set phrase.",
        range=(0, 1),
        reading="neutral",
        each=_abstains,
        pooled=True,
    ),
)
