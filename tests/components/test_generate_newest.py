"""The end of a journal, read while it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from components.generate_newest import TAIL, latest_error, newest


def row(k: int, **more: Any) -> dict[str, Any]:
    return {"key": "k", "system": "base", "prompt_id": "tea", "sample": k, "text": f"text {k}", "error": None, **more}


def written(path: Path, *rows: object, end: str = "\n") -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in rows) + end, encoding="utf-8")
    return path


def test_the_last_samples_come_first(tmp_path: Path):
    file = written(tmp_path / "j", {"spec": "x"}, {"cell": "c"}, *(row(k) for k in range(5)))
    assert [r["sample"] for r in newest(file, 3)] == [4, 3, 2]


def test_samples_of_an_earlier_go_are_not_new(tmp_path: Path):
    file = written(tmp_path / "j", {"spec": "x"}, row(0), {"spec": "x"}, row(1))
    assert [r["sample"] for r in newest(file, 3)] == [1]


def test_a_half_written_row_and_garbage_are_passed_over(tmp_path: Path):
    file = written(tmp_path / "j", {"spec": "x"}, row(0), "[1]", "\x00", '{"key": "k", "sam', end="")
    assert [r["sample"] for r in newest(file, 3)] == [0]
    assert newest(tmp_path / "absent", 3) == []


def test_only_the_end_of_a_long_journal_is_read(tmp_path: Path):
    long = "x" * (TAIL // 4)
    file = written(tmp_path / "j", {"spec": "x"}, *(row(k, text=long) for k in range(20)))
    assert [r["sample"] for r in newest(file, 10)] == [19, 18, 17]


def test_the_latest_error_is_found_among_good_samples(tmp_path: Path):
    rows = [row(0, error="first"), row(1, error="second"), row(2)]
    assert latest_error(written(tmp_path / "j", {"spec": "x"}, *rows)) == "second"
    assert latest_error(written(tmp_path / "k", {"spec": "x"}, row(2))) is None
