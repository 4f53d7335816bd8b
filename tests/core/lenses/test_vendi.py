from __future__ import annotations

import math

import numpy as np
import pytest

from tests.core.lenses.make import value

NAN = float("nan")


def test_equal_vectors_count_as_one():
    found, n = value("vendi", ["a"] * 5, [[0.3, 0.4]] * 5)
    assert found == pytest.approx(1, abs=1e-6)
    assert n == 5


def test_right_angles_count_each():
    assert value("vendi", list("abcd"), np.eye(4))[0] == pytest.approx(4)


def test_two_groups_of_equal_vectors_count_as_two():
    assert value("vendi", list("abcd"), [[1, 0, 0]] * 2 + [[0, 2, 0]] * 2)[0] == pytest.approx(2)


def test_more_responses_than_dimensions():
    vectors = np.random.default_rng(0).normal(size=(40, 3))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(unit @ unit.T / 40)
    values = values[values > 1e-12]
    found, _ = value("vendi", [str(i) for i in range(40)], vectors)
    assert found == pytest.approx(np.exp(-(values * np.log(values)).sum()), abs=1e-4)
    assert found <= 3


def test_missing_and_zero_vectors_are_left_out_and_counted():
    assert value("vendi", list("abcd"), [[1, 0], [NAN, 1], [0, 0], [0, 1]]) == (pytest.approx(2), 2)


@pytest.mark.parametrize("vectors", [None, [[1.0, 0], [NAN, NAN]], [[], []]])
def test_fewer_than_two_vectors_are_undefined(vectors):
    assert math.isnan(value("vendi", ["a", "b"], vectors)[0])
