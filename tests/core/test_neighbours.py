"""The nearest responses of the other systems."""

from __future__ import annotations

import numpy as np
import pytest

from core.errors import OvertonError
from core.neighbours import nearest
from core.vectors import HashEncoder, vectors_for


@pytest.fixture
def rows(small, workspace):
    return vectors_for(small, workspace, HashEncoder())


def test_the_nearest_come_first_and_equal_texts_are_folded(small, rows):
    found = nearest(rows, small, "plain/tea/0")  # "Boil water and wait."
    assert list(found.columns) == ["response_id", "system", "similarity", "count", "text_key"]
    assert set(found["system"]) == {"tuned"}
    assert found["similarity"].is_monotonic_decreasing
    assert found.set_index("response_id")["count"].to_dict() == {"tuned/tea/0": 2, "tuned/tea/1": 1}
    assert found["similarity"].between(0.2, 0.99).all()


def test_only_other_systems_of_the_same_prompt(small, rows):
    found = nearest(rows, small, "tuned/bike/0", k=10)
    assert list(found["response_id"]) == ["plain/bike/0", "plain/bike/2"]  # neither the empty text nor the error
    assert len(nearest(rows, small, "tuned/bike/0", k=1)) == 1
    assert len(nearest(rows, small, "tuned/bike/0", systems=["tuned"])) == 0
    elsewhere = nearest(rows, small, "tuned/bike/0", prompt_id="tea")
    assert set(elsewhere["response_id"]) == {"plain/tea/0", "plain/tea/1", "plain/tea/2"}


def test_an_equal_text_of_another_system_scores_exactly_one(small, rows):
    responses = small.responses.copy()
    responses.loc[0, "text"] = " " + responses.loc[3, "text"]
    rows = rows.copy()
    rows[0] = rows[3] * 0.999  # as rounding may leave it
    changed = type(small).build("changed", prompts=small.prompts, systems=small.systems, responses=responses)
    found = nearest(rows, changed, "plain/tea/0")
    assert found["similarity"][0] == 1.0
    assert found["count"][0] == 2


def test_a_response_without_a_vector_has_no_neighbours(small, rows):
    assert len(nearest(rows, small, "plain/bike/1")) == 0
    assert list(nearest(rows, small, "plain/bike/1").columns)
    assert len(nearest(np.full_like(rows, np.nan), small, "plain/tea/0")) == 0


def test_what_is_not_there_is_one_sentence(small, rows):
    with pytest.raises(OvertonError, match="no response 'nobody'"):
        nearest(rows, small, "nobody")
    with pytest.raises(OvertonError, match="no prompt 'coffee'"):
        nearest(rows, small, "plain/tea/0", prompt_id="coffee")
