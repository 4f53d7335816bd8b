"""Exports and their way back: nothing lost, nothing overwritten."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pandas as pd
import pytest

from core.dataset import Dataset
from core.errors import OvertonError
from core.export import COLUMNS, FORMATS, export, export_bytes, flat
from core.readers import own, read

HOSTILE = [
    "",
    " leading and trailing ",
    'quotes "and", commas\nlines\r\nreturns\rand\ttabs',
    "<script>alert(1)</script>",
    "nul \x00 bell \x07",
    "separators \u2028 \u2029 \x85 and \ufeff",
    "=1+1",
    "NA",
    "nan",
    "null",
    "[]",
    '["a", "b"]',
    "😀 漢字 עברית",
    "5000 letters " + "x" * 5000,
]


@pytest.fixture
def full() -> Dataset:
    """Every column filled somewhere and empty elsewhere; a prompt and a system without responses; contexts."""
    rows = [
        {"prompt_id": "p", "system": "s/1", "sample": k, "text": text, "finish_reason": "stop", "seed": 2**62 + k}
        for k, text in enumerate(HOSTILE)
    ]
    rows.append({"prompt_id": "p", "system": "b", "sample": 7, "error": "timed\nout", "response_id": "own id"})
    rows.append(
        {"prompt_id": "q", "system": "b", "sample": 0, "text": "x", "token_count": 3, "finish_reason": "length"}
    )
    return Dataset.build(
        "full",
        prompts=pd.DataFrame(
            [
                {"prompt_id": "p", "text": HOSTILE[2], "kind": "open"},
                {"prompt_id": "q", "text": "", "kind": None},
                {"prompt_id": "007", "text": "no response", "kind": "contested"},
            ]
        ),
        systems=pd.DataFrame(
            [
                {"system": "s/1", "role": "in-context", "model": "m/x", "strategy": "hint", "parameters": '{"k": 3}'},
                {"system": "b", "role": "base"},
                {"system": "idle", "role": "revised", "model": "z"},
            ]
        ),
        responses=pd.DataFrame(rows, dtype="object"),
        contexts=pd.DataFrame([{"prompt_id": "p", "system": "s/1", "text": HOSTILE[2]}]),
    )


@pytest.mark.parametrize("format", FORMATS)
def test_round_trip_is_exact(tmp_path, full, format):
    file = export(full, format, tmp_path / f"e.{format}")
    assert own.matches(file)
    ((back, problems),) = read(file)
    assert len(problems) == 0
    for frame in ("prompts", "systems", "responses", "contexts"):
        pd.testing.assert_frame_equal(getattr(back, frame), getattr(full, frame))
    assert back.content_key() == full.content_key()


@pytest.mark.parametrize("format", FORMATS)
def test_one_row_a_response_with_all_columns(tmp_path, small, format):
    file = export(small, format, tmp_path / "e")
    if format == "parquet":
        table = pd.read_parquet(file)
    elif format == "csv":
        table = pd.read_csv(file)
    else:
        table = pd.read_json(file, lines=True)
    assert tuple(table.columns) == COLUMNS
    assert len(table) == len(small.responses)
    assert (table["prompt"][0], table["role"][0]) == ("How do I make tea?", "base")


def test_jsonl_is_one_object_a_line_and_csv_opens_anywhere(full):
    lines = export_bytes(full, "jsonl").decode().split("\n")
    assert [json.loads(line)["text"] for line in lines[: len(HOSTILE)]] == HOSTILE
    assert json.loads(lines[0])["seed"] == 2**62
    assert json.loads(lines[0])["error"] is None
    rows = list(csv.DictReader(io.StringIO(export_bytes(full, "csv").decode(), newline="")))
    assert [row["text"] for row in rows[: len(HOSTILE)]] == HOSTILE


def test_some_rows_only(small):
    picked = small.responses.index[[5, 1]]
    table = flat(small, rows=picked)
    assert list(table["response_id"]) == list(small.responses.loc[picked, "response_id"])
    assert len(export_bytes(small, "jsonl", rows=picked).splitlines()) == 2


def test_nothing_is_overwritten_unless_asked(tmp_path, small):
    file = tmp_path / "e.csv"
    file.write_text("mine")
    with pytest.raises(OvertonError, match="already there"):
        export(small, "csv", file)
    assert file.read_text() == "mine"
    export(small, "csv", file, overwrite=True)
    assert file.read_text() != "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["e.csv"]


def test_impossible_targets_are_one_sentence(tmp_path, small):
    with pytest.raises(OvertonError, match="no format"):
        export(small, "xlsx", tmp_path / "e")
    with pytest.raises(OvertonError, match="is a folder"):
        export(small, "csv", tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OvertonError, match="cannot be written"):
        export(small, "csv", tmp_path / "file" / "e.csv")


def test_dataset_folder_is_read_as_it_is(workspace, full):
    folder = workspace.save(full)
    ((back, _),) = read(folder)
    assert back.name == "full"
    assert back.content_key() == full.content_key()
    assert read(folder, name="copy")[0][0].name == "copy"


def test_edited_export_keeps_what_is_right(tmp_path, small):
    rows = [json.loads(line) for line in export_bytes(small, "jsonl").splitlines()]
    rows[0]["role"] = "wizard"
    rows[1]["response_id"] = rows[2]["response_id"]
    rows[3]["system"] = None
    file = tmp_path / "e.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + '"stray"\n{"prompt_id": "te')
    ((back, problems),) = read(file)
    assert len(back.responses) == len(small.responses) - 1
    assert [p.line for p in problems] == [1, 3, 4, 14, 15]


def test_real_release_goes_round(release, tmp_path):
    ((dataset, _),) = read(release / "LIMA-OE")
    for format in FORMATS:
        ((back, problems),) = read(export(dataset, format, tmp_path / f"e.{format}"))
        assert len(problems) == 0
        assert replace(back, name="x").content_key() == dataset.content_key()
