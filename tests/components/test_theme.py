"""Colours and shapes belong to systems."""

from __future__ import annotations

import base64

import pytest

from components.theme import ROLE_COLOURS, icon, styles
from core.dataset import ROLES


def test_roles_have_their_colours() -> None:
    made = styles({"a": "base", "b": "aligned", "c": "in-context"})
    assert [made[s].colour for s in "abc"] == [ROLE_COLOURS[r] for r in ("base", "aligned", "in-context")]
    assert len({made[s].shape for s in "abc"}) == 3


def test_a_system_keeps_its_style_when_later_ones_are_added() -> None:
    few = styles({"a": "base", "b": "in-context"})
    more = styles({"a": "base", "b": "in-context", "c": "in-context", "d": "aligned"})
    assert (few["a"], few["b"]) == (more["a"], more["b"])


@pytest.mark.parametrize("role", ROLES)
def test_many_systems_of_a_role_stay_apart(role: str) -> None:
    made = styles({f"s{k}": role for k in range(12)})
    assert len({(s.colour, s.shape) for s in made.values()}) == 12


def test_an_icon_is_an_image_in_the_exact_colour() -> None:
    for style in styles({f"s{k}": r for k, r in enumerate(ROLES * 4)}).values():
        encoded = icon(style).split("base64,")[1].rstrip(")")
        picture = base64.b64decode(encoded).decode()
        assert picture.startswith("<svg") and style.colour in picture
