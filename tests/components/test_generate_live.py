"""Small parts of a run that is watched."""

from __future__ import annotations

import base64
import re

import pytest

from components.generate_live import bar, named


@pytest.mark.parametrize(("done", "total", "width"), [(0, 0, 0.0), (0, 9, 0.0), (3, 4, 150.0), (5, 4, 200.0)])
def test_a_bar_is_as_long_as_its_share(done: int, total: int, width: float):
    image = bar({"done": done, "total": total}, "#123456", width=200)
    svg = base64.b64decode(image.split("base64,")[1].rstrip(")")).decode()
    assert re.findall(r"width='([\d.]+)' height='10' rx='5' fill='#123456'", svg) == [f"{width:.1f}"]


def test_a_long_word_can_break_in_a_table_and_a_short_one_cannot():
    assert named("a" * 40).count("\u200b") == 2
    assert "\u200b" not in named("base and examples")
    assert named("a|b").replace("\\", "") == "a|b" and "\\|" in named("a|b")
