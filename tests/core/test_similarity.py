"""Similarity to a teacher, and its ceiling."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core import lenses, similarity
from core.errors import OvertonError
from tests.core.lenses.make import dataset_of, release_dataset

NAN = float("nan")


def test_equal_texts_score_one_and_disjoint_ones_zero():
    assert similarity.to_teacher(["green tea"], ["green tea", "green tea"]).lexical.value == 1
    assert similarity.to_teacher(["green tea", "cold milk"], ["long walks"]).lexical[::3] == (0, 2)


def test_mean_over_all_pairs_with_an_interval():
    found = similarity.to_teacher(["green tea", "green milk", "cold milk"], ["green tea", "green pot"]).lexical
    assert found.value == pytest.approx((1 + 1 / 3 + 1 / 3 + 1 / 3 + 0 + 0) / 6)
    assert found.n == 3
    assert 0 <= found.low < found.value < found.high <= 1


def test_empty_against_anything_is_undefined():
    for mine, teacher in (([""], ["tea"]), (["tea"], [""]), ([""], [""]), ([], ["tea"]), (["tea"], [])):
        found = similarity.to_teacher(mine, teacher).lexical
        assert math.isnan(found.value)
        assert found.n == 0
    assert similarity.to_teacher(["", "tea"], ["tea", ""]).lexical[::3] == (1, 1)


def test_the_ceiling_leaves_self_pairs_out():
    assert similarity.within(["green tea", "green milk", "cold pot"]).lexical.value == pytest.approx(1 / 9)
    assert math.isnan(similarity.within(["green tea"]).lexical.value)
    assert math.isnan(similarity.within([]).lexical.value)


def test_vectors():
    tea, milk = [2.0, 0], [0.0, 3]
    found = similarity.to_teacher(["a", "b", "c"], ["d"], np.array([tea, milk, [NAN, 1]]), np.array([tea]))
    assert found.vector.value == pytest.approx(0.5)
    assert found.vector.n == 2
    assert math.isnan(similarity.to_teacher(["a"], ["b"]).vector.value)
    assert similarity.within(["a", "b"], np.array([tea, tea])).vector.value == pytest.approx(1)
    assert math.isnan(similarity.to_teacher(["a"], ["b"], np.zeros((1, 2)), np.array([tea])).vector.value)
    assert math.isnan(similarity.to_teacher(["a"], ["b"], np.zeros((1, 0)), np.zeros((1, 0))).vector.value)


def test_over_a_dataset_each_prompt_has_its_own_teacher_texts():
    dataset = dataset_of(
        {
            ("p", "teacher"): ["green tea", "green milk", "green milk"],
            ("p", "student"): ["green milk", "cold pot"],
            ("q", "teacher"): ["cold pot"],
            ("q", "student"): ["cold pot"],
        }
    )
    scores = similarity.over_dataset(dataset, "teacher").set_index(["prompt_id", "system", "lens"])["value"]

    def of(prompt: str, system: str, end: str = "") -> float:
        return float(scores[prompt, system, "lexical_to_teacher" + end])

    assert of("p", "student") == pytest.approx((1 / 3 + 1 + 1) / 6)
    assert of("p", "student", "_sample_0") == pytest.approx(1 / 6)
    assert of("p", "student", "_other_samples") == pytest.approx(1 / 2)
    assert of("p", "student", "_best_match") == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert of("p", "teacher") == pytest.approx((1 / 3 + 1 / 3 + 1) / 3)
    assert of("p", "teacher", "_sample_0") == pytest.approx(1 / 3)
    assert of("p", "teacher", "_other_samples") == 1
    assert of("p", "teacher", "_best_match") == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert of("q", "student") == 1
    assert math.isnan(of("q", "teacher"))
    assert math.isnan(of("q", "student", "_other_samples"))


def test_over_a_dataset_with_vectors_and_without_responses(small):
    vectors = np.ones((len(small.responses), 3), dtype=np.float32)
    scores = similarity.over_dataset(small, "tuned", vectors)
    assert set(scores["lens"]) == set(similarity.MEASURES)
    assert scores.loc[scores["lens"] == "vector_to_teacher", "value"].tolist() == pytest.approx([1] * 4)
    nothing = similarity.over_dataset(dataset_of({("p", "s"): ["tea"]}, ["t"]), "t")
    assert nothing["value"].isna().all()
    assert (nothing["n"] == 0).all()


def test_an_unknown_teacher_is_refused(small):
    with pytest.raises(OvertonError, match="no system 'nobody'"):
        similarity.over_dataset(small, "nobody")


@pytest.mark.parametrize("teacher", ["llama-2-chat", "gpt-3.5-turbo", "mistral-instruct"])
def test_values_on_the_release(release, reference, teacher):
    scores = similarity.over_dataset(release_dataset(release), teacher)
    found = lenses.summarise(scores).set_index(["system", "lens"])
    for system, facts in reference["similarity_to_teacher"]["LIMA-OE/outputs"][teacher].items():
        for end, key in (("_sample_0", "ref0_mean"), ("_other_samples", "other_samples_mean")):
            row = found.loc[(system, "lexical_to_teacher" + end)]
            assert row["value"] == pytest.approx(facts[key]["mean"], abs=0.001), (system, key)
            assert [row["low"], row["high"]] == pytest.approx(facts[key]["ci95"], abs=0.002), (system, key)
            assert row["n"] == facts[key]["n"], (system, key)
        for end, key in (("", "all_pairs_mean"), ("_best_match", "best_match_mean")):
            assert found.loc[(system, "lexical_to_teacher" + end), "value"] == pytest.approx(facts[key], abs=0.001)
