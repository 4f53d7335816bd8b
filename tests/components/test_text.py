"""Hostile text in the places where it may stand."""

from __future__ import annotations

import html

import pytest

from components.text import EXCERPT, excerpt, hover, literal, plain, visible

NASTY = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "**bold** _it_ `code` ~~s~~",
    "$x^2$ and \\alpha",
    ":red[x] :material/home: :smile:",
    "[link](javascript:alert(1))",
    "# heading\n- item\n> quote\n| a | b |",
    "&lt;b&gt;",
]


@pytest.mark.parametrize("text", NASTY)
def test_a_label_has_no_live_markdown(text: str) -> None:
    made = literal(text)
    assert "\n" not in made
    for k, character in enumerate(made):
        if character in "<*_`$[]()#~|{}":
            assert made[k - 1] == "\\", made


@pytest.mark.parametrize("text", NASTY)
def test_plotly_gets_no_tags_and_the_text_comes_back(text: str) -> None:
    assert "<" not in plain(text, 300) and html.unescape(plain(text, 300)) == excerpt(text, 300)
    assert "<" not in hover(text).replace("<br>", "")


def test_excerpts_are_short_and_on_one_line() -> None:
    assert excerpt("a\n b\t c") == "a b c"
    assert len(excerpt("x" * 5000)) == EXCERPT
    assert excerpt("x" * 5000).endswith("…")
    assert hover("") == "(empty)"


def test_control_marks_become_visible() -> None:
    assert visible("a\x00b\u202ec\n\td") == "a\ufffdb\ufffdc\n\td"
