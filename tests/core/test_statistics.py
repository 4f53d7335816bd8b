"""Means, differences and their intervals."""

from __future__ import annotations

import numpy as np
import pytest

from core import statistics


def test_a_mean_lies_in_its_interval_and_is_repeatable():
    values = np.random.default_rng(3).normal(5, 1, 40)
    found = statistics.mean(values)
    assert found == statistics.mean(values)
    assert found.low < found.value < found.high
    assert found.high - found.low == pytest.approx(2 * 1.96 * values.std() / np.sqrt(40), rel=0.15)
    assert found != statistics.mean(values, seed=1)


def test_prompts_without_a_value_are_left_out():
    assert statistics.mean([1.0, np.nan, 3.0]).n == 2
    assert statistics.mean([1.0, np.nan, 3.0])[:3] == statistics.mean([1.0, 3.0])[:3]


def test_no_prompt_is_undefined_and_one_has_no_interval():
    for values in ([], [np.nan]):
        assert np.isnan(statistics.mean(values)[:3]).all()
        assert statistics.mean(values).n == 0
    one = statistics.mean([4.0])
    assert (one.value, one.n) == (4.0, 1)
    assert np.isnan([one.low, one.high]).all()


def test_weights_make_a_share_over_all_responses():
    assert statistics.mean([1.0, 0.0], weights=[1, 3]).value == 0.25
    assert statistics.mean([1.0, np.nan, 0.0], weights=[1, 0, 3]).n == 2


def test_columns_are_as_each_alone():
    table = np.random.default_rng(0).random((12, 5))
    table[3, 1] = table[7, 1] = table[:, 4] = np.nan
    value, low, high, n = statistics.column_estimates(table)
    for k in range(5):
        alone = statistics.mean(table[:, k])
        assert [value[k], low[k], high[k], n[k]] == pytest.approx(list(alone), nan_ok=True)


def test_interval_is_the_percentile_bootstrap_drawn_prompt_by_prompt():
    values = np.random.default_rng(1).random(20)
    means = values[np.random.default_rng(0).integers(0, 20, (1000, 20))].mean(axis=1)
    found = statistics.mean(values)
    assert [found.low, found.high] == pytest.approx(np.percentile(means, [2.5, 97.5]).tolist())


def test_a_paired_difference_is_narrower_than_two_means():
    rng = np.random.default_rng(0)
    hard = rng.normal(0, 5, 50)
    a, b = hard + 1 + rng.normal(0, 0.1, 50), hard
    found = statistics.difference(a, b)
    assert found.value == pytest.approx(1, abs=0.1)
    assert found.high - found.low < 0.2
    assert found.low < found.value < found.high


def test_equal_systems_do_not_differ():
    values = np.random.default_rng(0).random(30)
    assert statistics.difference(values, values)[:3] == (0, 0, 0)


def test_a_difference_is_over_common_prompts_alone():
    found = statistics.difference([1, np.nan, 3, 5], [0, 9, np.nan, 1])
    assert (found.value, found.n) == (2.5, 2)
    nothing = statistics.difference([1, np.nan], [np.nan, 1])
    assert np.isnan(nothing.value)
    assert nothing.n == 0
