from __future__ import annotations

import pytest

from tests.core.lenses.make import value


@pytest.mark.parametrize(
    ("text", "numbered", "bullets"),
    [
        ("1. Boil\n2. Pour", 1, 0),
        ("Do this:\n\n1. Boil\n\nslowly\n\n2. Pour", 1, 0),
        (" 1. Boil\n2. Pour", 1, 0),
        ("1. Boil", 0, 0),
        ("2. Pour\n1. Boil", 0, 0),
        ("2. Pour\n3. Drink", 0, 0),
        ("1) Boil\n2) Pour", 0, 0),
        ("  x\n 1. Boil\n 2. Pour", 0, 0),
        ("- Boil\n- Pour", 0, 1),
        (" - Boil\n- Pour", 0, 1),
        ("- Boil", 0, 0),
        ("* Boil\n* Pour", 0, 0),
        ("well - no - yes", 0, 0),
        ("1. Boil\n2. Pour\n- hot\n- fast", 1, 1),
        ("", 0, 0),
    ],
)
def test_lists(text, numbered, bullets):
    assert value("numbered_list", [text]) == (numbered, 1)
    assert value("bullet_list", [text]) == (bullets, 1)
    assert value("list_share", [text]) == (max(numbered, bullets), 1)


def test_shares():
    assert value("numbered_list", ["1. a\n2. b", "x", "y", ""]) == (0.25, 4)
