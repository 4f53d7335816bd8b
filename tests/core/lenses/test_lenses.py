"""The registry, and measuring and summing up whole datasets."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from core import lenses
from core.errors import OvertonError
from core.lenses import features
from tests.core.lenses.make import dataset_of

NAMED = [
    "words",
    "pairwise_jaccard_simple",
    "pairwise_jaccard",
    "distinct_1",
    "distinct_2",
    "distinct_3",
    "distinct_2_first50",
    "numbered_list",
    "bullet_list",
    "abstain",
    "mean_cosine_distance",
    "vendi",
]


def test_every_lens_is_described():
    assert set(NAMED) <= set(lenses.LENSES)
    for lens_id, lens in lenses.LENSES.items():
        assert lens.id == lens_id
        assert lens.description.endswith(".")
        assert (lens.each is None) != (lens.whole is None)
        assert lens.twin is None or lens.twin in lenses.LENSES


def test_every_lexical_measure_of_diversity_has_a_twin_of_equal_length():
    for lens in lenses.LENSES.values():
        if lens.reading != "neutral" and not lens.needs_vectors:
            assert lens.id.endswith("_first50") or lens.twin is not None, lens.id


def test_one_row_for_each_prompt_system_and_lens(small):
    scores = lenses.measure(small)
    assert list(scores.columns) == ["prompt_id", "system", "lens", "value", "n"]
    assert len(scores) == 2 * 2 * len(lenses.LENSES)
    assert not scores.duplicated(["prompt_id", "system", "lens"]).any()


def test_an_error_is_no_response_and_an_empty_text_is_one(small):
    scores = lenses.measure(small, ["words"]).set_index(["prompt_id", "system"])
    assert scores.loc[("bike", "plain"), "n"] == 3
    assert scores.loc[("bike", "plain"), "value"] == pytest.approx((3 + 0 + 8) / 3)


def test_an_answer_without_a_marker_is_no_response(small):
    responses = small.responses.copy()
    responses.loc[0, "finish_reason"] = "no_answer"
    assert lenses.measure(replace(small, responses=responses), ["words"])["n"].tolist() == [2, 3, 3, 3]


def test_lenses_over_vectors_are_undefined_without_them(small):
    rows = lenses.measure(small, ["vendi", "mean_cosine_distance"])
    assert rows["value"].isna().all()
    assert (rows["n"] == 0).all()


def test_vectors_are_aligned_with_all_responses(small):
    vectors = np.full((len(small.responses), 2), np.nan, dtype=np.float32)
    here = (small.responses["prompt_id"] == "bike") & (small.responses["system"] == "plain")
    vectors[np.flatnonzero(here)] = [[1, 0], [0, 0], [0, 1], [1, 1]]  # the last is an error and must not count
    rows = lenses.measure(small, ["mean_cosine_distance"], vectors).set_index(["prompt_id", "system"])
    assert rows.loc[("bike", "plain"), "value"] == pytest.approx(1)
    assert rows.loc[("bike", "plain"), "n"] == 2
    assert rows["value"].notna().sum() == 1


def test_unknown_lenses_are_refused_with_the_known_ones(small):
    with pytest.raises(OvertonError, match=r"no lens 'nope'.*words.*vendi"):
        lenses.measure(small, ["words", "nope"])


def test_values_of_single_responses(small):
    values = lenses.response_values(small, "words")
    assert values.index.equals(small.responses.index)
    assert values[0] == 4
    assert np.isnan(values[small.responses["error"].notna()]).all()
    with pytest.raises(OvertonError, match="whole distribution"):
        lenses.response_values(small, "distinct_1")


def test_texts_are_cut_once_and_forgotten_with_the_dataset(small):
    kept = lenses.features_of(small)
    assert lenses.features_of(small.with_roles({"plain": "other"})) is kept
    other = replace(small, responses=small.responses.copy())
    assert lenses.features_of(other) is not kept
    size = len(features._CACHE)
    del other
    assert len(features._CACHE) == size - 1


def test_no_responses_at_all():
    dataset = dataset_of({("p", "s"): []}, ["s"])
    summary = lenses.summarise(lenses.measure(dataset))
    assert summary["value"].isna().all()
    assert (summary["n"] == 0).all()


def _scores(values: dict[str, list[float]], lens: str = "words", n: int = 5) -> pd.DataFrame:
    rows = [(f"p{k}", s, lens, x, n) for s, column in values.items() for k, x in enumerate(column)]
    return pd.DataFrame(rows, columns=["prompt_id", "system", "lens", "value", "n"])


def test_summary_is_a_mean_over_prompts_with_its_interval():
    rows = lenses.summarise(_scores({"a": [1.0, 2, 3, 6], "b": [5, 5, float("nan"), 5]})).set_index("system")
    assert rows.loc["a", ["value", "n"]].tolist() == [3.0, 4]
    assert 1 <= rows.loc["a", "low"] < 3 < rows.loc["a", "high"] <= 6
    assert rows.loc["b", ["value", "low", "high", "n"]].tolist() == [5.0, 5.0, 5.0, 3]


def test_the_order_of_prompts_is_kept_when_resampling():
    column = list(np.random.default_rng(0).random(12))  # p10 and p11 sort before p2
    means = np.array(column)[np.random.default_rng(0).integers(0, 12, (1000, 12))].mean(axis=1)
    row = lenses.summarise(_scores({"a": column})).iloc[0]
    assert [row["low"], row["high"]] == pytest.approx(np.percentile(means, [2.5, 97.5]).tolist())


def test_shares_weigh_each_response_alike():
    texts = {("p", "s"): ["1. a\n2. b"], ("q", "s"): ["x", "y", "z"]}
    summary = lenses.summarise(lenses.measure(dataset_of(texts), ["numbered_list", "words"])).set_index("lens")
    assert summary.loc["numbered_list", "value"] == 0.25
    assert summary.loc["words", "value"] == (4 + 1) / 2


def test_differences_of_two_systems():
    scores = _scores({"a": [4.0, 1, float("nan"), 2], "b": [1.0, 1, 1, 4]})
    assert lenses.paired_difference(scores, "a", "b", "words").value == pytest.approx(1 / 3)
    assert lenses.paired_difference(scores, "a", "b", "words").n == 3
    table = lenses.per_prompt_difference(scores, "a", "b", "words")
    assert table["prompt_id"].tolist() == ["p0", "p3", "p1", "p2"]
    assert table["difference"].tolist()[:3] == [3, -2, 0]


def test_a_system_that_is_not_there_differs_from_nothing():
    found = lenses.paired_difference(_scores({"a": [1.0, 2]}), "a", "gone", "words")
    assert np.isnan(found.value)
    assert found.n == 0


def test_importing_lenses_loads_neither_nltk_nor_scipy():
    code = (
        "import sys, core.lenses, core.similarity; "
        "print([m for m in ('nltk', 'sklearn', 'scipy', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
