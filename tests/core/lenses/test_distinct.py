from __future__ import annotations

import math

import pytest

from tests.core.lenses.make import value


def test_planted_repetition():
    assert value("distinct_1", ["red red red", "Red"])[0] == 0.25
    assert value("distinct_2", ["red tea red tea", "red tea"])[0] == 0.5  # red tea, tea red, red tea | red tea
    assert value("distinct_3", ["red tea red tea"])[0] == 1.0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_all_different_is_one(n):
    assert value(f"distinct_{n}", ["one two three.", "four, five six"])[0] == 1.0


def test_no_n_gram_reaches_into_the_next_response():
    assert value("distinct_2", ["red tea", "red tea"])[0] == 0.5
    assert math.isnan(value("distinct_2", ["red", "tea"])[0])
    assert math.isnan(value("distinct_3", ["red tea", "red tea"])[0])


def test_little_words_count_and_punctuation_does_not():
    assert value("distinct_1", ["the the ... !"])[0] == 0.5


@pytest.mark.parametrize("texts", [[], [""], ["", "?!"]])
def test_nothing_to_count_is_undefined(texts):
    assert math.isnan(value("distinct_1", texts)[0])


def test_the_twin_is_free_of_length():
    long = " ".join(f"word{i}" for i in range(50)) + " la" * 500
    assert value("distinct_2", [long])[0] < 0.2
    assert value("distinct_2_first50", [long])[0] == 1.0
    assert value("distinct_2_first50", [long, "la la la"])[0] == pytest.approx(50 / 51)
