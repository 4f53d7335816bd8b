"""The sentences above the figures hold computed numbers, and none that is undefined."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd

from components.sentences import count_of, counted, explain, percent, value_of
from core import lenses, scores
from core.dataset import Dataset


def table(**values: float) -> pd.DataFrame:
    rows = []
    for name, value in values.items():
        system, lens = name.split("__")
        rows.append({"prompt_id": "tea", "system": system, "lens": lens, "value": value, "n": 3})
    return pd.DataFrame(rows)


def test_planted_numbers_appear(small: Dataset) -> None:
    made = " ".join(
        explain(
            small,
            table(
                plain__pairwise_jaccard_simple=0.11,
                tuned__pairwise_jaccard_simple=0.42,
                plain__mean_cosine_distance=0.7,
                tuned__mean_cosine_distance=0.25,
                plain__words=31.4,
                tuned__words=88.6,
                plain__list_share=0.1,
                tuned__list_share=0.9,
                plain__vector_to_teacher=0.33,
                tuned__vector_to_teacher=0.81,
            ),
            "tea",
        )
    )
    for number in ("11 %", "42 %", "0.30", "0.75", "31", "89", "10 %", "90 %", "0.33", "0.81"):
        assert number in made, number


def test_undefined_numbers_are_left_out(small: Dataset) -> None:
    made = explain(small, table(plain__words=3.0, tuned__words=np.nan), "tea")
    assert made == []
    only = explain(small, table(plain__pairwise_jaccard_simple=0.5, tuned__pairwise_jaccard_simple=np.nan), "tea")
    assert len(only) == 1 and "aligned" not in only[0]


def test_a_dataset_with_one_system_alone_is_described(small: Dataset) -> None:
    rows = small.responses[small.responses["system"] == "plain"]
    alone = Dataset.build("x", prompts=small.prompts, systems=small.systems.head(1), responses=rows)
    made = explain(alone, scores.compute(alone, None), "tea")
    assert made[0].startswith("For this prompt two responses of plain share **") and "nan" not in " ".join(made)
    assert made[1:] == ["A response of plain has **5** words; 0 % of those of plain are lists."]


def test_without_base_and_aligned_the_shown_systems_are_described(small: Dataset) -> None:
    roleless = small.with_roles({"plain": "other", "tuned": "other"})
    computed = scores.compute(roleless, None)
    both = explain(roleless, computed, "tea", ["tuned", "plain"])
    of_tuned = percent(value_of(computed, "tea", "tuned", "pairwise_jaccard_simple"))
    assert f"two responses of tuned share **{of_tuned}** of their words, two of plain **" in both[0]
    assert both[1].startswith("A response of tuned has **11** words and one of plain **5**; 100 % of those of tuned")
    only = " ".join(explain(roleless, computed, None, ["plain"]))
    assert "Over 2 prompts" in only and "tuned" not in only
    assert explain(roleless, computed, "tea", []) == []


def test_undefined_numbers_of_shown_systems_are_left_out(small: Dataset) -> None:
    roleless = small.with_roles({"plain": "other", "tuned": "other"})
    made = explain(roleless, table(plain__words=3.0, plain__list_share=0.0, tuned__words=np.nan), "tea")
    assert made == ["For this prompt a response of plain has **3** words; 0 % of those of plain are lists."]


def test_a_name_is_literal() -> None:
    nasty = "**x** <b> $y$ :red[z]"
    dataset = Dataset.build(
        "x",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Why?"}]),
        systems=pd.DataFrame([{"system": nasty, "role": "other"}]),
        responses=pd.DataFrame([{"prompt_id": "p", "system": nasty, "sample": k, "text": "a b"} for k in (0, 1)]),
    )
    made = " ".join(explain(dataset, scores.compute(dataset, None), "p", [nasty]))
    assert "\\*\\*x" in made and nasty not in made


def test_a_share_over_prompts_counts_each_response_once_and_a_mean_each_prompt(small: Dataset) -> None:
    rows = [
        {"prompt_id": prompt, "system": "plain", "lens": lens, "value": value, "n": n}
        for lens in ("list_share", "words")
        for prompt, value, n in (("tea", 1.0, 1), ("bike", 0.0, 3), ("other", np.nan, 0))
    ]
    planted = pd.DataFrame(rows)
    assert value_of(planted, None, "plain", "list_share") == 0.25
    assert value_of(planted, None, "plain", "words") == 0.5
    assert count_of(planted, None, "plain", "words") == 2 and count_of(planted, "bike", "plain", "words") == 3
    assert count_of(planted, "other", "plain", "words") == 0


def test_numbers_over_prompts_are_those_of_the_summary(small: Dataset) -> None:
    fewer = dataclasses.replace(small, responses=small.responses.drop(index=[9, 10]))
    computed = scores.compute(fewer, None)
    summed = lenses.summarise(computed, resamples=10)
    assert len(summed)
    for row in summed.itertuples():
        np.testing.assert_allclose(value_of(computed, None, row.system, row.lens), row.value, equal_nan=True)
        assert count_of(computed, None, row.system, row.lens) == row.n


def test_the_number_of_prompts_is_named(small: Dataset) -> None:
    assert explain(small, scores.compute(small, None), None)[0].startswith("Over 2 prompts two base")
    assert counted([14, 12, 14]) == "12 to 14"


def test_real_numbers_agree_with_the_lenses(small: Dataset) -> None:
    computed = scores.compute(small, None)
    share = value_of(computed, "tea", "tuned", "pairwise_jaccard_simple")
    assert percent(share) in explain(small, computed, "tea")[0]
    over_all = value_of(computed, None, "tuned", "pairwise_jaccard_simple")
    assert percent(over_all) in explain(small, computed, None)[0]
