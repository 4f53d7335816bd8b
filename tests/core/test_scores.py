"""Stored lens values: computed once, read again, a damaged store is no harm."""

from __future__ import annotations

import pandas as pd
import pytest

from core import scores, vectors
from core.dataset import Dataset
from core.workspace import Workspace, write_dataset


def test_values_are_computed_once_and_kept(
    workspace: Workspace, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.save(small)
    first = scores.scores(small, workspace, None)
    assert {"words", "lexical_to_teacher"} <= set(first["lens"])
    monkeypatch.setattr(scores, "compute", lambda *_: pytest.fail("computed again"))
    pd.testing.assert_frame_equal(scores.scores(small, workspace, None), first)


def test_other_roles_or_vectors_are_other_values(workspace: Workspace, small: Dataset) -> None:
    workspace.save(small)
    scores.scores(small, workspace, None)
    known = vectors.vectors_for(small, workspace, vectors.HashEncoder())
    with_vectors = scores.scores(small, workspace, known)
    assert with_vectors.loc[with_vectors["lens"] == "vendi", "value"].notna().any()
    turned = small.with_roles({"plain": "aligned", "tuned": "base"})
    lexical = scores.scores(turned, workspace, None)
    of_old = scores.scores(small, workspace, None)
    own = (lexical["lens"] == "lexical_to_teacher") & (lexical["system"] == "plain")
    old = (of_old["lens"] == "lexical_to_teacher") & (of_old["system"] == "plain")
    assert lexical.loc[own, "value"].tolist() != of_old.loc[old, "value"].tolist()


def test_a_damaged_store_is_computed_again(workspace: Workspace, small: Dataset) -> None:
    workspace.save(small)
    first = scores.scores(small, workspace, None)
    (file,) = (workspace.root / "scores").glob("*.parquet")
    file.write_bytes(b"damaged")
    pd.testing.assert_frame_equal(scores.scores(small, workspace, None), first)


def test_the_representative_has_the_most_usable_responses(small: Dataset) -> None:
    assert scores.representative(small, "base") == "plain"
    assert scores.representative(small, "in-context") is None
    both = small.with_roles({"plain": "base", "tuned": "base"})
    assert scores.representative(both, "base") == "plain", "the first among equals"
    rows = both.responses[~((both.responses["system"] == "plain") & (both.responses["sample"] == 0))]
    fewer = Dataset.build("x", prompts=both.prompts, systems=both.systems, responses=rows)
    assert scores.representative(fewer, "base") == "tuned"


def test_shipped_values_are_left_where_roles_were_changed(workspace: Workspace, small: Dataset) -> None:
    folder = workspace.shipped / "small"
    write_dataset(small, folder)
    shipped = scores.compute(small, None).assign(value=7.0)
    scores.write_shipped(shipped, folder)
    assert set(scores.scores(workspace.load("small"), workspace, None)["value"]) == {7.0}
    workspace.set_roles("small", {"plain": "aligned", "tuned": "base"})
    turned = scores.scores(workspace.load("small"), workspace, None)
    pd.testing.assert_frame_equal(turned, scores.compute(workspace.load("small"), None))
