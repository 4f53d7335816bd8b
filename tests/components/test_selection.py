"""A selection is known by what a point carries, never by its position."""

from __future__ import annotations

import pandas as pd

from components.selection import ids_of, unfold


def test_ids_come_from_the_points_themselves() -> None:
    event = {
        "selection": {
            "points": [
                {"curve_number": 1, "point_index": 0, "customdata": ["b/1"]},
                {"curve_number": 0, "point_index": 0, "customdata": ["a/7"]},
                {"curve_number": 1, "point_index": 0, "customdata": ["b/1"]},
                {"curve_number": 3, "point_index": 0},
            ]
        }
    }
    assert ids_of(event) == ["b/1", "a/7"]
    assert ids_of(None) == [] and ids_of({"selection": {"points": []}}) == []


def test_copies_are_unfolded() -> None:
    dots = pd.DataFrame({"response_id": ["a", "c"], "response_ids": [("a", "b"), ("c",)]})
    assert unfold(["a"], dots) == ["a", "b"]
    assert unfold(["x"], dots) == ["x"], "what is hidden now is still selected"
