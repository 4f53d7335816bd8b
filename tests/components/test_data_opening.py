"""Opening files: names from outside stay inside, nothing is left on the disk, and what is found is told."""

from __future__ import annotations

import io
import json
import tempfile
from pathlib import Path

import pytest

from components.data_opening import Opening, check_names, listed, located, relative, safe_name, save
from core.errors import OvertonError, Problem, Problems
from core.readers import Mapping

ROWS = [
    {"prompt": "Tea?", "system": "plain", "response": "Boil it."},
    {"prompt": "Tea?", "system": "tuned", "response": "1. Boil it."},
]


class File(io.BytesIO):
    """Like an uploaded file."""

    def __init__(self, name: str, content: bytes | str) -> None:
        super().__init__(content.encode() if isinstance(content, str) else content)
        self.name = name


def jsonl(rows, name: str = "tea.jsonl") -> File:
    return File(name, "".join(json.dumps(row) + "\n" for row in rows))


def opened(source, workspace, mapping: Mapping | None = None) -> Opening:
    opening = Opening(source, workspace)
    opening.begin(mapping)
    opening.wait(30)
    assert opening.over
    return opening


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch) -> Path:
    """Temporary folders of this test stand in a folder of its own, so that what is left can be seen."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../x.jsonl", "x.jsonl"),
        ("/etc/passwd", "passwd"),
        ("..\\..\\x.csv", "x.csv"),
        ("..", "file"),
        ("", "file"),
        (".hidden.jsonl", "hidden.jsonl"),
        ("a\0b\n.jsonl", "ab.jsonl"),
        ("<img src=x onerror=alert(1)>.jsonl", "<img src=x onerror=alert(1)>.jsonl"),
    ],
)
def test_a_name_from_outside_is_one_part_of_a_path(given: str, kept: str) -> None:
    assert safe_name(given) == kept


def test_a_long_name_keeps_its_ending() -> None:
    name = safe_name("é" * 500 + ".parquet")
    assert name.endswith(".parquet") and len(name.encode()) < 200


def test_uploads_stand_in_a_folder_that_is_removed(temporary: Path) -> None:
    files = [File("../a.jsonl", "1"), File("a.jsonl", "2"), File("/../b.csv", "3")]
    with located(files) as (path, root):
        assert root == path and temporary in path.parents
        assert sorted(p.name for p in path.iterdir()) == ["2-a.jsonl", "a.jsonl", "b.csv"]
        inside = {p for p in temporary.rglob("*") if p.is_file()}
        assert len(inside) == 3
    assert list(temporary.iterdir()) == []
    assert [p.name for p in temporary.parent.iterdir()] == ["temporary"]


def test_uploads_are_removed_where_reading_fails(temporary: Path, workspace) -> None:
    opening = opened([File("x.bin", b"\x00\x01")], workspace)
    assert opening.error is not None and opening.error.startswith("x.bin ")
    assert str(temporary) not in opening.error
    assert list(temporary.iterdir()) == []


def test_nothing_is_written_before_it_is_saved(workspace) -> None:
    opening = opened([jsonl(ROWS)], workspace)
    assert [c.name for c in opening.reading.found] == ["tea"]
    assert not workspace.root.exists()


def test_a_file_that_readers_call_after_its_folder_is_called_after_itself(workspace) -> None:
    rows = [{"prompt": "Tea?", "response": "Boil it."}]
    opening = opened([jsonl(rows, "samples.jsonl")], workspace)
    assert list(opening.reading.found[0].counts["systems"]) == ["samples"]


def test_several_files_are_one_dataset_named_by_what_they_share(workspace) -> None:
    rows = [{"prompt": "Tea?", "response": "Boil it."}]
    opening = opened([jsonl(rows, "tea-base.jsonl"), jsonl(rows, "tea-chat.jsonl")], workspace)
    (found,) = opening.reading.found
    assert found.name == "tea" and sorted(found.counts["systems"]) == ["tea-base", "tea-chat"]
    assert opening.several and opening.label == "tea-base.jsonl and 1 other file"


def test_an_uploaded_file_of_no_known_kind_beside_others_is_a_problem(workspace) -> None:
    opening = opened([jsonl(ROWS), File("notes.docx", b"PK")], workspace)
    (found,) = opening.reading.found
    assert [p.file for p in found.problems] == ["notes.docx"]


def test_problems_name_the_file_as_the_visitor_knows_it(workspace) -> None:
    opening = opened([File("<b>.jsonl", json.dumps(ROWS[0]) + "\n{half\n")], workspace)
    (problem,) = opening.reading.found[0].problems
    assert (problem.file, problem.line) == ("<b>.jsonl", 2)


def test_the_same_content_is_told(workspace) -> None:
    first = opened([jsonl(ROWS)], workspace).reading.found[0]
    assert first.same is None
    save(first, "first", {}, "tea.jsonl", workspace)
    again = opened([jsonl(ROWS)], workspace).reading.found[0]
    assert again.same == "first"
    other = opened([jsonl(ROWS[:1])], workspace).reading.found[0]
    assert other.same is None


def test_a_taken_name_gets_a_number(workspace) -> None:
    save(opened([jsonl(ROWS)], workspace).reading.found[0], "tea", {}, "tea.jsonl", workspace)
    assert opened([jsonl(ROWS)], workspace).reading.found[0].name == "tea-2"


def test_other_columns_are_read_anew_and_a_wrong_choice_keeps_the_columns(workspace) -> None:
    opening = opened([File("t.csv", 'q,a,b\nTea?,"one\ntwo",three\n')], workspace)
    assert opening.reading.first is not None and opening.reading.first.columns == ["q", "a", "b"]
    opening.begin(Mapping(prompt="q", text="b"))
    opening.wait(30)
    assert list(opening.reading.found[0].dataset.responses["text"]) == ["three"]
    opening.begin(Mapping(prompt="q"))
    opening.wait(30)
    assert opening.error is not None and "no column for the text" in opening.error
    assert opening.reading.first is not None and opening.reading.found == []


def test_a_file_reads_its_prompts_with_line_breaks(workspace) -> None:
    opening = opened([File("t.csv", 'prompt,response\nTea?,"one, ""two""\nthree"\n')], workspace)
    assert list(opening.reading.found[0].dataset.responses["text"]) == ['one, "two"\nthree']


def test_one_dataset_that_cannot_be_read_leaves_the_others(tmp_path: Path, workspace) -> None:
    for name, text in (("good", "Boil it."), ("bad", None)):
        run = tmp_path / "release" / name / "outputs" / "llama-2-base"
        run.mkdir(parents=True)
        row = {"prompt": "Tea?", "outputs": [{"generated_text": text}]} if text else {"nothing": 1}
        (run / "samples.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    opening = opened(tmp_path / "release", workspace)
    assert [c.dataset.name for c in opening.reading.found] == ["good"]
    assert [p.file for p in opening.reading.failed] == ["bad"]


def test_saved_with_other_roles_and_where_it_came_from(workspace) -> None:
    found = opened([jsonl(ROWS)], workspace).reading.found[0]
    save(found, "mine", {"plain": "base"}, "tea.jsonl", workspace)
    saved = workspace.load("mine")
    assert saved.roles()["plain"] == "base" and saved.meta["origin"] == "tea.jsonl"


@pytest.mark.parametrize("names", [["../x"], [""], [" "], ["there"], ["THERE"], ["a", "a"]])
def test_a_name_that_cannot_be_used_is_told_before_anything_is_written(names, small, workspace) -> None:
    save(opened([jsonl(ROWS)], workspace).reading.found[0], "there", {}, "", workspace)
    with pytest.raises(OvertonError):
        check_names(names, workspace)
    assert workspace.names() == ["there"]
    check_names(["free", "free too"], workspace)


def test_problems_are_named_from_what_was_opened_and_listed_up_to_a_count() -> None:
    problems = Problems(limit=3)
    for k in range(5):
        problems.add("/a/b/c.jsonl", k or None, "bad")
    shown = relative(problems, Path("/a/b"))
    assert len(shown) == 5 and {p.file for p in shown} == {"c.jsonl"}
    assert listed(shown.items, 2) == [
        {"file": "c.jsonl", "line": "", "what": "bad"},
        {"file": "c.jsonl", "line": "1", "what": "bad"},
    ]
    assert relative(Problems(items=[Problem("/x", 1, "bad")]), Path("/a")).items[0].file == "/x"
