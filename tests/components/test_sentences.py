"""The sentences above the figures hold computed numbers, and none that is undefined."""

from __future__ import annotations

import numpy as np
import pandas as pd

from components.sentences import explain, percent, value_of
from core import scores
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
    assert len(made) == 1 and "nan" not in made[0]


def test_real_numbers_agree_with_the_lenses(small: Dataset) -> None:
    computed = scores.compute(small, None)
    share = value_of(computed, "tea", "tuned", "pairwise_jaccard_simple")
    assert percent(share) in explain(small, computed, "tea")[0]
    over_all = value_of(computed, None, "tuned", "pairwise_jaccard_simple")
    assert percent(over_all) in explain(small, computed, None)[0]
