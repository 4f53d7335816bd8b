"""Lists: the form that aligned systems like to answer in."""

from __future__ import annotations

import numpy as np

from core.lenses.base import Lens
from core.lenses.features import Features, Floats


def has_numbered_list(text: str) -> bool:
    """Whether lines begin "1. ", then "2. " (other lines may stand between)."""
    step = 1
    for line in text.strip().split("\n"):
        if line.startswith(f"{step}. "):
            if step == 2:
                return True
            step += 1
    return False


def has_bullet_list(text: str) -> bool:
    """Whether at least two lines begin "- "."""
    return ("\n" + text.strip()).count("\n- ") >= 2


def _numbered(features: Features) -> Floats:
    return np.array([has_numbered_list(t) if "\n2. " in t else False for t in features.texts], dtype=float)


def _bullets(features: Features) -> Floats:
    return np.array([has_bullet_list(t) for t in features.texts], dtype=float)


def _either(features: Features) -> Floats:
    return np.maximum(_numbered(features), _bullets(features))


LENSES = (
    Lens(
        id="numbered_list",
        name="Numbered lists",
        unit="share",
        description='Share of responses with lines that begin "1. " and then "2. ".',
        range=(0, 1),
        reading="neutral",
        each=_numbered,
        pooled=True,
    ),
    Lens(
        id="bullet_list",
        name="Bullet lists",
        unit="share",
        description='Share of responses with at least two lines that begin "- ".',
        range=(0, 1),
        reading="neutral",
        each=_bullets,
        pooled=True,
    ),
    Lens(
        id="list_share",
        name="Lists",
        unit="share",
        description="Share of responses with a numbered or a bullet list.",
        range=(0, 1),
        reading="neutral",
        each=_either,
        pooled=True,
    ),
)
