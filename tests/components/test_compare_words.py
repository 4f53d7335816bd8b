"""Words in common, and texts with marked words that stay literal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as some

from components.compare_words import marked, shared_words, spans
from components.text import escaped

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[x](javascript:alert(1))",
    "![x](http://example.org/x.png)",
    "$x$ and $$y$$",
    ":red[..] :blue-background[x] :help[x]",
    "`code` and ```fence```",
    "**bold** _low_ ~~gone~~",
    "# head\n> quote\n- item\n1. item\n| a | b |\n---\n===",
    "&lt;b&gt; &amp; \\",
    "[^1]: note",
]


def without_escapes(markdown: str) -> str:
    """What is left of special characters once the escaped ones are taken out."""
    return re.sub(r"\\[\\`*_{}\[\]()#+\-.!|~$:<>&^=@\n]", "", markdown)


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_that_markdown_reads_is_left_unescaped(text):
    assert not re.search(r"[\\`*_{}\[\]()#|~$:<>&^]", without_escapes(marked(text, [])))


@pytest.mark.parametrize("text", HOSTILE)
def test_marking_adds_its_own_directive_and_nothing_else(text):
    left = without_escapes(marked(text, ["x", "alert", "code", "red", "item", "bold"]))
    assert not re.search(r"[\\`*_{}\[\]()#|~$:<>&^]", re.sub(r":primary-background\[[\w\u2060]+\]", "", left))


@pytest.mark.parametrize("lively", [":smile:", ":material/home:", "https://x.org", "www.x.org", "a@x.org", "a -> b"])
def test_what_markdown_would_find_in_escaped_text_is_broken_up(lively):
    assert "\u2060" in escaped(lively)
    assert escaped(lively).replace("\u2060", "").replace("\\", "") == lively


@given(some.text(max_size=200))
def test_any_text_comes_back_when_escapes_are_undone(text):
    shown = marked(text, [])
    undone = re.sub(r"\\([^\w\s]|_)", r"\1", shown.replace("\\\n", "\n")).replace("\u2060", "")
    wanted = re.sub(r"[^\S\n]", " ", text)
    for sign in set(wanted) - set(" \n\t\r"):
        if sign.isprintable() and sign != "\u2060":
            assert undone.count(sign) == text.count(sign)


def test_line_breaks_blanks_and_empty_lines_are_kept():
    assert marked("one\n\n  two   three", []) == "one\\\n\u00a0\\\n\u00a0\u00a0two\u00a0\u00a0\u00a0three"


def test_a_word_is_marked_wherever_it_stands_and_in_any_case():
    assert marked("Bees. The bees' hive; beeswax", ["bees"]) == (
        ":primary-background[Bees]\\. The :primary-background[bees]' hive; beeswax"
    )


def test_words_joined_by_underscores_are_marked_one_by_one():
    text = "red_bees fly"
    assert [text[a:b] for a, b in spans(text, frozenset({"bees", "fly"}))] == ["bees", "fly"]


def test_pairs_of_characters_are_marked_where_a_script_has_no_blanks():
    text = "蜜蜂很重要"
    assert [text[a:b] for a, b in spans(text, frozenset({"蜜蜂", "重要"}))] == ["蜜蜂", "重要"]


def test_words_of_most_systems_are_shared_and_words_of_one_are_not():
    found = shared_words(
        {"a": ["honey bees fly", "birds"], "b": ["bees sting"], "c": ["wasps", "the bees and birds"]}
    )
    assert found.words == ("bees", "birds")
    assert (found.needed, found.groups) == (2, 3)


def test_systems_with_nothing_in_common_share_no_word():
    assert shared_words({"a": ["honey bees"], "b": ["green tea"]}).words == ()


def test_words_of_the_prompt_little_words_and_numbers_do_not_count():
    assert shared_words({"a": ["the 12 bees fly"], "b": ["the 12 bees fly"]}, "Why bees?").words == ("fly",)


def test_one_system_alone_shares_the_words_of_most_of_its_responses():
    found = shared_words({"a": ["bees fly", "bees sting", "wasps fly bees"], "b": []})
    assert found.words == ("bees", "fly")
    assert found.groups == 3


def test_one_response_alone_shares_nothing():
    assert shared_words({"a": ["bees fly"]}).words == ()
