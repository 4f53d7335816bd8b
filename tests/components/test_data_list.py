"""The list of datasets: what their manifests say, also where one is damaged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from components.data_list import Entry, entries
from core.dataset import Dataset
from core.workspace import Workspace, write_dataset


def test_shipped_ones_come_first_with_sizes_and_where_from(tmp_path: Path, small: Dataset) -> None:
    space = Workspace(tmp_path / "own", shipped=tmp_path / "shipped")
    space.save(replace(small, name="a mine", meta={"source": "flat", "origin": "/data/x/mine.csv"}))
    space.save(replace(small, name="b lab", meta={"derived_from": "a mine"}))
    space.save(replace(small, name="c release", meta={"source": "release"}))
    write_dataset(replace(small, name="demo"), tmp_path / "shipped" / "demo")
    found = entries(space)
    assert [(e.name, e.shipped) for e in found] == [
        ("demo", True),
        ("a mine", False),
        ("b lab", False),
        ("c release", False),
    ]
    assert {e.sizes for e in found} == {"2 prompts · 2 systems · 13 responses"}
    assert [e.origin for e in found] == [
        "came with Overton Lens",
        "from /data/x/mine.csv",
        "made in the Lab from a mine",
        "from the authors' release",
    ]
    assert found[1].caption.startswith(f"{found[1].sizes} · ") and found[1].caption.endswith(" · from mine.csv")
    assert found[1].made and found[1].made in found[1].history


def test_a_damaged_manifest_is_told_and_the_others_are_there(tmp_path: Path, small: Dataset) -> None:
    space = Workspace(tmp_path / "own", shipped=tmp_path / "none")
    space.save(small)
    broken = tmp_path / "own" / "datasets" / "broken"
    broken.mkdir()
    (broken / "manifest.json").write_text("{", encoding="utf-8")
    by_name = {e.name: e for e in entries(space)}
    assert by_name["broken"].error is not None and by_name["broken"].sizes == ""
    assert by_name["small"].error is None


def test_a_manifest_with_strange_values_has_no_numbers(tmp_path: Path, small: Dataset) -> None:
    space = Workspace(tmp_path / "own", shipped=tmp_path / "none")
    file = space.save(small) / "manifest.json"
    file.write_text('{"format": 1, "rows": [1], "meta": 3, "created": "yesterday"}', encoding="utf-8")
    assert entries(space) == [Entry("small", False)]
