"""Rows out of files: lines, arrays, CSV and Parquet, with whatever is wrong in them."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from core.errors import OvertonError, Problems
from core.readers.rows import rows


def got(path: Path) -> tuple[list, list[tuple[int | None, str]]]:
    problems = Problems()
    values = [value for _, value in rows(path, problems)]
    return values, [(p.line, p.what) for p in problems]


def write(path: Path, data: bytes | str) -> Path:
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_lines_end_at_newline_alone(tmp_path):
    line = '{"text": "a\u2028b\u2029c\u0085d\\r"}'
    values, problems = got(write(tmp_path / "f.jsonl", line + "\r\n" + line))
    assert values == [{"text": "a\u2028b\u2029c\x85d\r"}] * 2
    assert problems == []


def test_byte_order_mark_and_blank_lines_are_passed_over(tmp_path):
    values, problems = got(write(tmp_path / "f.jsonl", b'\xef\xbb\xbf{"a": 1}\n\n  \n{"a": 2}\n'))
    assert values == [{"a": 1}, {"a": 2}]
    assert problems == []


def test_half_written_last_line(tmp_path):
    values, problems = got(write(tmp_path / "f.jsonl", '{"a": 1}\n{"a": 2}\n{"a": "hal'))
    assert len(values) == 2
    assert problems[0][0] == 3
    assert "cut off" in problems[0][1]


def test_bad_line_in_the_middle_and_one_of_another_encoding(tmp_path):
    data = b'{"a": 1}\nnot json\n' + '{"a": "Grüße"}'.encode("latin-1") + b'\n{"a": 4}\n'
    values, problems = got(write(tmp_path / "f.jsonl", data))
    assert values == [{"a": 1}, {"a": 4}]
    assert [line for line, _ in problems] == [2, 3]
    assert "UTF-8" in problems[1][1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("name", ["f.jsonl", "f.csv", "f.json"])
def test_wide_encodings_are_named(tmp_path, encoding, name):
    with pytest.raises(OvertonError, match="UTF-8"):
        got(write(tmp_path / name, '{"a": 1}\n'.encode(encoding)))


@pytest.mark.parametrize("name", ["f.jsonl", "f.csv", "f.json", "f.parquet"])
def test_empty_file(tmp_path, name):
    with pytest.raises(OvertonError, match="is empty"):
        got(write(tmp_path / name, b""))


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("name", ["f.json", "f.jsonl"])
def test_arrays(tmp_path, indent, name):
    items = [{"a": k, "b": "]\n["} for k in range(3)]
    assert got(write(tmp_path / name, json.dumps(items, indent=indent))) == (items, [])


def test_array_that_breaks_off_keeps_what_came_before(tmp_path):
    whole = json.dumps([{"a": k} for k in range(5)], indent=1)
    values, problems = got(write(tmp_path / "f.json", whole[: whole.index('"a": 3') + 2]))
    assert values == [{"a": 0}, {"a": 1}, {"a": 2}]
    assert problems[0][0] == 11


def test_array_item_of_another_encoding(tmp_path):
    values, problems = got(write(tmp_path / "f.json", b'[{"a": 1},\n{"a": "\xfc"},\n{"a": 3}]'))
    assert values == [{"a": 1}, {"a": 3}]
    assert problems[0][0] == 2


def test_lines_that_are_lists_are_no_array(tmp_path):
    values, _ = got(write(tmp_path / "f.jsonl", '[{"a": 1}]\n[{"a": 2}]\n'))
    assert values == [[{"a": 1}], [{"a": 2}]]


def test_object_around_rows_and_single_object(tmp_path):
    assert got(write(tmp_path / "w.json", '{"version": 1,\n "data": [{"a": 1}, {"a": 2}]}'))[0] == [
        {"a": 1},
        {"a": 2},
    ]
    assert got(write(tmp_path / "o.json", '{"a":\n 1}'))[0] == [{"a": 1}]
    assert got(write(tmp_path / "l.json", '{"a": 1}\n{"a": 2}'))[0] == [{"a": 1}, {"a": 2}]


def test_deep_nesting_and_endless_numbers_are_problems(tmp_path):
    data = "[" * 100_000 + "\n" + '{"n": ' + "1" * 5000 + '}\n{"a": 1}\n'
    values, problems = got(write(tmp_path / "f.jsonl", '{"a": 0}\n' + data))
    assert values == [{"a": 0}, {"a": 1}]
    assert [line for line, _ in problems] == [2, 3]


def test_csv_with_quotes_and_line_breaks_inside_a_text(tmp_path):
    text = 'He said "no",\nthen\r\n\r"yes";\tend'
    frame = pd.DataFrame({"prompt": ["p", "q"], "text": [text, "plain"]})
    frame.to_csv(tmp_path / "f.csv", index=False)
    values, problems = got(tmp_path / "f.csv")
    assert [v["text"] for v in values] == [text, "plain"]
    assert problems == []


def test_csv_row_with_too_many_or_few_cells_is_a_problem_with_its_line(tmp_path):
    data = 'prompt,text\np,"two\nlines"\nq,un,quoted\nr\ns,good\n'
    values, problems = got(write(tmp_path / "f.csv", data))
    assert [v["prompt"] for v in values] == ["p", "s"]
    assert [line for line, _ in problems] == [4, 5]


@pytest.mark.parametrize(("name", "mark"), [("f.csv", ";"), ("f.csv", "\t"), ("f.tsv", "\t"), ("f.csv", "|")])
def test_other_delimiters(tmp_path, name, mark):
    assert got(write(tmp_path / name, f"a{mark}b\n1{mark}2,5\n"))[0] == [{"a": "1", "b": "2,5"}]


def test_csv_text_longer_than_the_usual_limit_and_one_with_nul(tmp_path):
    values, problems = got(write(tmp_path / "f.csv", "\ufefftext\n" + "x" * 300_000 + "\na\0b\n"))
    assert [len(v["text"]) for v in values] == [300_000, 3]
    assert problems == []


def test_csv_row_of_another_encoding(tmp_path):
    values, problems = got(write(tmp_path / "f.csv", b"text\ngood\nGr\xfc\xdfe\nlast\n"))
    assert [v["text"] for v in values] == ["good", "last"]
    assert problems[0][0] == 3


def test_parquet_with_list_columns(tmp_path):
    parquet.write_table(pa.table({"prompt": ["p"], "responses": [["a", "b"]]}), tmp_path / "f.parquet")
    assert got(tmp_path / "f.parquet")[0] == [{"prompt": "p", "responses": ["a", "b"]}]


def test_damaged_parquet_is_one_sentence(tmp_path):
    parquet.write_table(pa.table({"a": list(range(1000))}), tmp_path / "f.parquet")
    data = (tmp_path / "f.parquet").read_bytes()
    for broken in (data[:-20], b"PAR1", b"PAR1" + b"\0" * 50 + b"PAR1", data[: len(data) // 2]):
        with pytest.raises(OvertonError, match="Parquet"):
            got(write(tmp_path / "g.parquet", broken))


def test_kind_is_seen_from_the_content_where_the_name_tells_nothing(tmp_path):
    assert got(write(tmp_path / "answers.txt", '{"a": 1}\n'))[0] == [{"a": 1}]
    with pytest.raises(OvertonError, match="no kind"):
        got(write(tmp_path / "notes.txt", "dear diary"))
