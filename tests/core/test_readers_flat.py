"""Flat files: the guessed mapping, lists, and everything that can be wrong with a column."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from core.dataset import summary
from core.errors import OvertonError
from core.readers import Mapping, guess_mapping, preview, read
from core.readers.mapping import guess

ROWS = [
    {"question": "Q1", "model": "gemma-base", "response": "A", "sample_id": 3, "seed": 2**60 + 1},
    {"question": "Q1", "model": "gemma-base", "response": "A", "sample_id": 4, "seed": None},
    {"question": "Q2", "model": "gemma-chat", "response": "B", "sample_id": 0, "seed": 5},
]


def write(file: Path, rows: list) -> Path:
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return file


def one(path: Path, **keywords):
    ((dataset, problems),) = read(path, **keywords)
    return dataset, list(problems)


def as_file(folder: Path, kind: str, rows: list[dict]) -> Path:
    file = folder / f"mine.{kind}"
    if kind == "jsonl":
        return write(file, rows)
    if kind == "json":
        file.write_text(json.dumps(rows, indent=1))
    elif kind == "parquet":
        parquet.write_table(pa.Table.from_pylist(rows), file)
    else:
        pd.DataFrame(rows, dtype="object").to_csv(file, index=False)
    return file


@pytest.mark.parametrize("kind", ["jsonl", "json", "csv", "parquet"])
def test_same_rows_from_every_kind_of_file(tmp_path, kind):
    dataset, problems = one(as_file(tmp_path, kind, ROWS))
    assert problems == []
    assert dataset.name == "mine"
    assert list(dataset.prompts["text"]) == ["Q1", "Q2"]
    assert dataset.roles() == {"gemma-base": "base", "gemma-chat": "aligned"}
    assert list(dataset.responses["sample"]) == [3, 4, 0]
    assert dataset.responses["seed"][0] == 2**60 + 1
    assert pd.isna(dataset.responses["seed"][1])
    assert summary(dataset)["systems"]["gemma-base"]["duplicates"] == 1
    assert list(dataset.systems["model"]) == ["gemma-base", "gemma-chat"]


@pytest.mark.parametrize(
    ("columns", "mapping"),
    [
        (["prompt", "response"], Mapping(prompt="prompt", text="response")),
        (["Question", "Answer", "Model"], Mapping(prompt="Question", text="Answer", system="Model", model="Model")),
        (["input", "output", "model_id"], Mapping(prompt="input", text="output", model="model_id")),
        (["instruction", "generations"], Mapping(prompt="instruction", text="generations")),
        (["prompt_id", "text", "sample"], Mapping(prompt_id="prompt_id", text="text", sample="sample")),
        (["essay", "prompt"], Mapping(prompt="prompt", text="essay")),
    ],
)
def test_mapping_is_guessed_from_names(columns, mapping):
    assert guess(columns, [dict.fromkeys(columns, "some words")]) == mapping


def test_a_column_of_numbers_is_no_text():
    rows = [{"output": 0.3, "essay": "long words", "n": "12"}]
    assert guess(["output", "essay", "n"], rows).text == "essay"
    assert guess(["n"], [{"n": "12"}]).text is None


def test_preview_shows_mapping_and_rows(tmp_path):
    shown = preview(write(tmp_path / "f.jsonl", ROWS), count=2)
    assert (shown.kind, shown.columns) == ("flat", ["question", "model", "response", "sample_id", "seed"])
    assert shown.mapping == guess_mapping(tmp_path / "f.jsonl")
    assert shown.rows == ROWS[:2]
    rows = [{"prompt": "q", "outputs": [{"generated_text": "a"}]}]
    assert preview(write(tmp_path / "g.jsonl", rows)).kind == "chat"


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_mapping_that_names_a_missing_column(tmp_path, kind):
    with pytest.raises(OvertonError, match=r"'reply'.*question, model, response"):
        read(as_file(tmp_path, kind, ROWS), mapping={"text": "reply"})


def test_mapping_is_followed_even_against_the_guess(tmp_path):
    rows = [{"a": "text one", "b": "prompt one", "response": "no"}]
    dataset, _ = one(write(tmp_path / "f.jsonl", rows), mapping=Mapping(prompt="b", text="a"))
    assert (dataset.prompts["text"][0], dataset.responses["text"][0]) == ("prompt one", "text one")


def test_unknown_field_and_absent_text_are_one_sentence(tmp_path):
    file = write(tmp_path / "f.jsonl", ROWS)
    with pytest.raises(OvertonError, match="some of"):
        read(file, mapping={"txt": "response"})
    with pytest.raises(OvertonError, match="no column for the text"):
        read(file, mapping={"prompt": "question"})


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_list_columns_are_several_samples(tmp_path, kind):
    rows = [{"prompt": "p", "responses": ["a", "b", ""]}, {"prompt": "q", "responses": ["c"]}]
    dataset, problems = one(as_file(tmp_path, kind, rows))
    assert list(dataset.responses["text"]) == ["a", "b", "", "c"]
    assert list(dataset.responses["sample"]) == [0, 1, 2, 0]
    assert problems == []


def test_lists_written_into_csv_cells(tmp_path):
    rows = [{"prompt": "p", "responses": json.dumps(["a, b", "c"])}]
    assert list(one(as_file(tmp_path, "csv", rows))[0].responses["text"]) == ["a, b", "c"]
    rows = [{"prompt": "p", "response": '["a", "b"]'}]  # a model that answers in JSON
    assert list(one(as_file(tmp_path, "csv", rows))[0].responses["text"]) == ['["a", "b"]']


def test_errors_and_missing_texts_are_told_apart(tmp_path):
    rows = [
        {"prompt": "p", "response": "", "error": None},
        {"prompt": "p", "response": None, "error": "timed out"},
        {"prompt": "p", "response": None, "error": None},
        {"prompt": "p", "response": 42, "error": ""},
        "no row",
    ]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert summary(dataset)["systems"]["f"] | {"role": ""} == {
        "role": "", "responses": 3, "usable": 2, "errors": 1, "empty": 1, "no_answer": 0, "cut": 0, "duplicates": 0,
        "prompts": 1,
    }  # fmt: skip
    assert list(dataset.responses["text"]) == ["", "", "42"]
    assert [p.line for p in problems] == [3, 5]


def test_repeated_and_impossible_sample_numbers_are_renumbered(tmp_path):
    rows = [{"prompt": "p", "response": t, "sample": n} for t, n in (("a", 1), ("b", 1), ("c", -4), ("d", "x"))]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert len(set(dataset.responses["sample"])) == 4
    assert [p.line for p in problems] == [2, 3]


def test_finish_reasons_in_other_words(tmp_path):
    rows = [{"prompt": "p", "response": "x", "finish_reason": r} for r in ("max_tokens", "eos_token", "filtered", "")]
    dataset, _ = one(write(tmp_path / "f.jsonl", rows))
    assert list(dataset.responses["finish_reason"].fillna("-")) == ["length", "stop", "filtered", "-"]


def test_roles_of_the_file_are_taken_and_strange_ones_reported(tmp_path):
    rows = [{"response": "x", "system": s, "role": r} for s, r in (("a", "Aligned"), ("b", "wizard"), ("c", "other"))]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert dataset.roles() == {"a": "aligned", "b": "other", "c": "other"}
    assert [p.line for p in problems] == [2]


def test_prompt_ids_join_rows_and_two_texts_of_one_are_reported(tmp_path):
    rows = [{"prompt_id": 7, "prompt": p, "response": "x"} for p in ("one", "one", "other", None)]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert (list(dataset.prompts["prompt_id"]), list(dataset.prompts["text"])) == (["7"], ["one"])
    assert [p.line for p in problems] == [3]


def test_folder_of_flat_files_one_a_system(tmp_path):
    for name in ("base", "chat"):
        write(tmp_path / f"{name}.jsonl", [{"prompt": "p", "response": name}])
    pd.DataFrame({"prompt": ["p"], "answer": ["x"]}).to_csv(tmp_path / "third.csv", index=False)
    dataset, problems = one(tmp_path)
    assert dataset.roles() == {"base": "base", "chat": "aligned", "third": "other"}
    assert problems == []


def test_text_without_any_prompt(tmp_path):
    dataset, _ = one(write(tmp_path / "f.jsonl", [{"text": "a"}, {"text": "b"}]))
    assert len(dataset.prompts) == 1
    assert len(dataset.responses) == 2


def test_name_is_made_of_the_file_name(tmp_path):
    rows = [{"prompt": "p", "response": "x"}]
    assert one(write(tmp_path / "..my <b>data?.jsonl", rows))[0].name == "my -b-data"
    assert one(write(tmp_path / "???.jsonl", rows))[0].name == "dataset"
    assert one(write(tmp_path / "f.jsonl", rows), name="given")[0].name == "given"


@pytest.mark.parametrize(
    "path", ["nothing-here", "empty-folder", "note.txt", "numbers.jsonl", "broken.jsonl", "bad\0name"]
)
def test_nothing_to_read_is_one_sentence(tmp_path, path):
    (tmp_path / "empty-folder").mkdir()
    (tmp_path / "note.txt").write_text("dear diary")
    (tmp_path / "numbers.jsonl").write_text("1\n2\n")
    (tmp_path / "broken.jsonl").write_text("{\n{\n")
    with pytest.raises(OvertonError) as caught:
        read(tmp_path / path)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_memory_stays_near_the_size_of_the_file(tmp_path, kind):
    text = "many different words " * 60
    file = tmp_path / f"big.{kind}"
    with file.open("w") as out:
        if kind == "csv":
            out.write("prompt,response\n")
        for k in range(80_000):
            row = {"prompt": f"Q{k // 10}", "response": f"{k} {text}"}
            out.write(json.dumps(row) + "\n" if kind == "jsonl" else f"{row['prompt']},{row['response']}\n")
    code = (
        "import resource, sys\nfrom core.readers import read\nused = lambda: resource.getrusage(0).ru_maxrss\n"
        "before = used()\n((dataset, _),) = read(sys.argv[1])\n"
        "print((used() - before) * 1024, len(dataset.responses))"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code, file], cwd=root, capture_output=True, text=True, check=True)
    grown, count = map(int, done.stdout.split())
    assert count == 80_000
    assert grown < 2.2 * file.stat().st_size


def test_one_locked_folder_hides_no_other(tmp_path, lock):
    for name in ("a-base", "b-chat", "c-chat"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "samples.jsonl", [{"prompt": "Q", "response": name}])
    lock(tmp_path / "b-chat")
    dataset, problems = one(tmp_path)
    assert list(dataset.systems["system"]) == ["a-base", "c-chat"]
    assert [(p.file, "permission denied" in p.what) for p in problems] == [(str(tmp_path / "b-chat"), True)]


def test_nothing_but_a_locked_folder_is_told(tmp_path, lock):
    (tmp_path / "a").mkdir()
    lock(tmp_path / "a")
    with pytest.raises(OvertonError, match="permission denied"):
        read(tmp_path)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.jsonl")
    with pytest.raises(OvertonError, match="not a regular file"):
        read(tmp_path / "x.jsonl")
    write(tmp_path / "y.jsonl", [{"prompt": "Q", "response": "A"}])
    dataset, _ = one(tmp_path)
    assert list(dataset.systems["system"]) == ["y"]
