"""The sentence and the table of counts say what `core.dataset.summary` counts, and nothing else."""

from __future__ import annotations

import pandas as pd
import pytest

from components.data_counts import changed, number, sentence, table, total
from core.dataset import Dataset, summary


def counts(**given: int) -> dict:
    system = dict.fromkeys(("responses", "usable", "errors", "empty", "no_answer", "cut", "duplicates", "prompts"), 0)
    return {"prompts": 40, "systems": {"a": {"role": "base", **system, **given}}}


def test_only_what_occurs_is_named(small: Dataset) -> None:
    said = sentence(summary(small))
    assert said == (
        "**12 of 13 responses of 2 systems to 2 prompts are usable** (1 is an error); "
        "of the usable ones, 1 was cut by the limit of tokens, 1 is empty and 1 repeats another one word for word."
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"responses": 1408, "usable": 1408}, "**All 1,408 responses of 1 system to 40 prompts are usable**."),
        ({"responses": 1, "usable": 1}, "**The 1 response of 1 system to 40 prompts is usable**."),
        ({"responses": 0, "usable": 0}, "There is no response in it yet (40 prompts)."),
        (
            {"responses": 9, "usable": 1, "errors": 5, "no_answer": 3},
            "**1 of 9 responses of 1 system to 40 prompts is usable** (5 are errors and 3 hold no answer).",
        ),
        (
            {"responses": 9, "usable": 9, "cut": 4},
            "**All 9 responses of 1 system to 40 prompts are usable**; of these, 4 were cut by the limit of tokens.",
        ),
        (
            {"responses": 9, "usable": 0, "errors": 9},
            "**0 of 9 responses of 1 system to 40 prompts are usable** (9 are errors).",
        ),
    ],
)
def test_the_sentence_is_computed(given: dict, said: str) -> None:
    assert sentence(counts(**given)) == said


def test_the_table_has_the_counts_of_the_command_line(small: Dataset) -> None:
    found = summary(small)
    frame = table(found, {"tuned": "revised"})
    assert list(frame["role"]) == ["base", "revised"]
    for key in ("responses", "usable", "errors", "empty", "no_answer", "cut", "duplicates", "prompts"):
        assert list(frame[key]) == [system[key] for system in found["systems"].values()]
        assert pd.api.types.is_integer_dtype(frame[key])
    assert total(found, "usable") == int(small.usable.sum())


def test_a_dataset_without_systems_has_an_empty_table() -> None:
    assert table({"prompts": 0, "systems": {}}, {}).empty


def test_only_roles_that_differ_are_changes(small: Dataset) -> None:
    assert changed(summary(small), {"plain": "base", "tuned": "other"}) == {"tuned": "other"}


def test_marks_that_turn_the_writing_direction_are_made_visible() -> None:
    found = {"prompts": 1, "systems": {"a\u202eb": counts()["systems"]["a"]}}
    assert list(table(found, {})["system"]) == ["a\ufffdb"]


def test_plural() -> None:
    assert [number(n, "prompt") for n in (0, 1, 2000)] == ["0 prompts", "1 prompt", "2,000 prompts"]
