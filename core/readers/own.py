"""What Overton Lens itself wrote: an export of `core.export` (Parquet, CSV or JSONL), or a dataset folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from core.dataset import ROLES, Dataset, check_name
from core.errors import Problems
from core.export import COLUMNS
from core.readers.builder import Builder, name_from
from core.readers.cells import as_text, as_whole, is_nan
from core.readers.files import first_rows
from core.readers.roles import guess_role
from core.readers.rows import kind_of, rows
from core.workspace import read_dataset

KIND = "own"
_FRAMES = ("prompts", "systems", "responses")


def matches(path: Path) -> bool:
    """Whether a file has all columns of an export, or a folder the frames of a dataset."""
    if path.is_dir():
        return (path / "manifest.json").is_file() and all((path / f"{f}.parquet").is_file() for f in _FRAMES)
    if kind_of(path) is None:
        return False
    first = first_rows(path, 1)
    return bool(first) and isinstance(first[0], Mapping) and set(COLUMNS) <= set(first[0])


def read(
    path: Path, *, name: str | None = None, mapping: Mapping[str, str] | object | None = None
) -> tuple[Dataset, Problems]:
    """Read an export or a dataset folder; `mapping` has no meaning here."""
    problems = Problems()
    if path.is_dir():
        found = read_dataset(path)
        return replace(found, name=check_name(name or found.name)), problems
    builder = Builder(problems)
    contexts: dict[tuple[str, str], str] = {}
    for line, row in rows(path, problems):
        if not isinstance(row, Mapping):
            problems.add(path, line, "the row has no named columns; it is left out.")
        else:
            _row(_Row(row), builder, contexts, path, line)
    return builder.dataset(name or name_from(path), meta={"source": KIND}, contexts=_contexts(contexts)), problems


class _Row:
    """Cells of a row as texts; empty ones of optional columns as None."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row

    def text(self, column: str) -> str | None:
        value = self.row.get(column)
        return None if value is None or value == "" or is_nan(value) else as_text(value)

    def whole(self, column: str) -> int | None:
        return as_whole(self.row.get(column))


def _row(row: _Row, builder: Builder, contexts: dict[tuple[str, str], str], path: Path, line: int) -> None:
    prompt_id, system = row.text("prompt_id"), row.text("system")
    if prompt_id is not None:
        prompt_id = builder.prompt(prompt_id, row.text("prompt") or "", kind=row.text("kind"), file=path, line=line)
    if system is not None and system not in builder.systems:
        role = row.text("role")
        if role not in ROLES:
            builder.problems.add(path, line, f"{role!r} is no role; a guess is taken.")
            role = guess_role(system)
        columns = {column: row.text(column) for column in ("model", "strategy", "parameters")}
        system = builder.system(system, role=role, **columns)
    response_id = row.text("response_id")
    if response_id is None and row.text("sample") is None:
        return  # a prompt or a system without responses
    if prompt_id is None or system is None:
        builder.problems.add(path, line, "the row names no prompt or no system; it is left out.")
        return
    context = row.text("context")
    if context is not None:
        contexts.setdefault((prompt_id, system), builder.text(context, path, line))
    builder.add(
        prompt_id,
        system,
        row.text("text") or "",
        sample=row.whole("sample"),
        response_id=response_id,
        finish_reason=row.text("finish_reason"),
        token_count=row.whole("token_count"),
        seed=row.whole("seed"),
        error=row.text("error"),
        file=path,
        line=line,
    )


def _contexts(contexts: dict[tuple[str, str], str]) -> pd.DataFrame:
    rows_ = [(prompt_id, system, text) for (prompt_id, system), text in contexts.items()]
    return pd.DataFrame(rows_, columns=["prompt_id", "system", "text"])
