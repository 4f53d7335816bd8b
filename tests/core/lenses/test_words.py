from __future__ import annotations

import math

from tests.core.lenses.make import value


def test_words_are_counted_between_blanks():
    assert value("words", ["one two,three", "four"]) == (1.5, 2)


def test_an_empty_response_has_no_words_but_counts():
    assert value("words", ["", "one two"]) == (1.0, 2)


def test_no_response_is_undefined():
    found, n = value("words", [])
    assert math.isnan(found)
    assert n == 0
