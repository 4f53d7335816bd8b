"""Which responses are not on a map, and why."""

from __future__ import annotations

import pandas as pd

from components.below_map import absent
from core import maps, vectors
from core.dataset import Dataset
from core.workspace import Workspace


def planted() -> Dataset:
    rows = [
        {"text": "Boil water."},
        {"text": " "},
        {"text": "", "error": "<b>no</b> \x07 answer came"},
        {"text": "raw", "finish_reason": "no_answer"},
        {"text": "never encoded"},
    ]
    return Dataset.build(
        "x",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Why?"}]),
        systems=pd.DataFrame([{"system": "s", "role": "base"}, {"system": "hidden", "role": "other"}]),
        responses=pd.DataFrame(
            [{"prompt_id": "p", "system": "s", "sample": k, **row} for k, row in enumerate(rows)]
            + [{"prompt_id": "p", "system": "hidden", "sample": 0, "text": ""}]
        ),
    )


def drawn(dataset: Dataset, workspace: Workspace) -> maps.Map:
    made = vectors.vectors_for(dataset, workspace, vectors.HashEncoder())
    made[4] = float("nan")
    return maps.build(dataset, made, prompt_id="p", method="quick")


def test_each_absent_response_has_its_reason(workspace: Workspace) -> None:
    dataset = planted()
    made = drawn(dataset, workspace)
    table = absent(dataset, made, "p", ["s"])
    assert list(table.columns) == ["system", "sample", "reason"]
    assert table["sample"].tolist() == [1, 2, 3, 4], "what is on the map or hidden is not listed"
    assert table["reason"].tolist() == ["empty", "error: <b>no</b> \ufffd answer came", "no answer", "no vector"]
    assert absent(dataset, made, None, ["s"])["prompt_id"].tolist() == ["p"] * 4


def test_nothing_is_absent_where_all_are_drawn(workspace: Workspace) -> None:
    dataset = planted()
    assert absent(dataset, drawn(dataset, workspace), "p", []).empty
