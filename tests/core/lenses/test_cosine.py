from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.lenses.make import value

LENS = "mean_cosine_distance"
NAN = float("nan")


def test_equal_vectors_are_at_no_distance():
    found, n = value(LENS, ["a"] * 3, [[0.3, 0.4, 0.1]] * 3)
    assert found == pytest.approx(0, abs=1e-6)
    assert found >= 0
    assert n == 3


def test_right_angles_are_at_distance_one_whatever_the_length_of_the_vectors():
    assert value(LENS, ["a", "b", "c"], [[1, 0, 0], [0, 5, 0], [0, 0, 0.1]])[0] == pytest.approx(1)
    assert value(LENS, ["a", "b"], [[1, 0], [-3, 0]])[0] == pytest.approx(2)


def test_mean_over_all_pairs():
    vectors = np.random.default_rng(0).normal(size=(5, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    expected = np.mean([1 - unit[i] @ unit[j] for i in range(5) for j in range(i)])
    assert value(LENS, list("abcde"), vectors)[0] == pytest.approx(expected, abs=1e-6)


def test_missing_and_zero_vectors_are_left_out_and_counted():
    found, n = value(LENS, list("abcd"), [[1, 0], [NAN, NAN], [0, 0], [0, 1]])
    assert found == pytest.approx(1)
    assert n == 2


@pytest.mark.parametrize("vectors", [None, [[1.0, 0], [NAN, NAN]], [[], []]])
def test_fewer_than_two_vectors_are_undefined(vectors):
    assert math.isnan(value(LENS, ["a", "b"], vectors)[0])
