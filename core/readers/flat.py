"""Flat files: JSONL, `.json` arrays, CSV and Parquet with one response a row, or a list of them in one column."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingType
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.dataset import ROLES, Dataset
from core.errors import Problems
from core.readers.builder import Builder, name_from
from core.readers.cells import as_text, as_whole, is_nan
from core.readers.files import all_rows, first_file, first_rows
from core.readers.mapping import Mapping, as_mapping, guess, lists_as_text, text_list
from core.readers.roles import guess_role
from core.readers.shapes import Sample, error_text, reason, sample_of

KIND = "flat"
NO_PROMPT = "(prompt not given)"
_NO_ERROR = (None, False, 0, "False", "false", "None", "none", "null", "nan", "NaN", "0")

__all__ = ["Mapping", "columns", "guess", "guess_mapping", "matches", "read"]


def matches(path: Path) -> bool:
    """Whether there is a file whose rows have named columns."""
    first = first_file(path)
    return first is not None and any(isinstance(row, MappingType) for row in first[1])


def _columns(rows: list[Any]) -> list[str]:
    return list(dict.fromkeys(str(key) for row in rows if isinstance(row, MappingType) for key in row))


def _tables(rows: list[Any]) -> list[MappingType[str, Any]]:
    return [row for row in rows if isinstance(row, MappingType)]


def columns(path: Path) -> list[str]:
    """Names of the columns in the first rows of the first file that has any."""
    first = first_file(path)
    return _columns(first[1]) if first else []


def guess_mapping(path: Path) -> Mapping:
    """The mapping that a file's column names and first rows suggest; all None where it has no columns."""
    first = first_file(path)
    return guess(_columns(first[1]), _tables(first[1])) if first else Mapping()


def read(
    path: Path, *, name: str | None = None, mapping: Mapping | MappingType[str, str] | object | None = None
) -> tuple[Dataset, Problems]:
    """Read a file or a folder of files. Without `mapping`, it is guessed for each file by itself.

    Raises `OvertonError` where a column is named that no row has, or no column can be taken for the text.
    """
    problems = Problems()
    builder = Builder(problems)
    given = as_mapping(mapping) if mapping is not None else None
    tables: dict[Path, _Table] = {}
    for stem, file, line, row in all_rows(path, problems):
        if file not in tables:
            tables[file] = _Table(file, stem, builder, given)
        if isinstance(row, MappingType):
            tables[file].row(row, line)
        else:
            problems.add(file, line, "the row has no named columns; it is left out.")
    for table in tables.values():
        table.finish(strict=len(tables) == 1)
    used = next(iter(tables.values())).mapping if tables else Mapping()
    return builder.dataset(name or name_from(path), meta={"source": KIND, "mapping": used.columns()}), problems


class _Table:
    """One file on its way into the builder."""

    def __init__(self, file: Path, stem: str, builder: Builder, mapping: Mapping | None) -> None:
        first = first_rows(file)
        self.file, self.stem, self.builder = file, stem, builder
        self.mapping = mapping or guess(_columns(first), _tables(first))
        self.unseen = set(self.mapping.columns().values())
        self.seen = dict.fromkeys(_columns(first))
        self.lists = self.mapping.text is not None and lists_as_text(self.mapping.text, _tables(first))
        if self.mapping.text is None:
            self.mapping.check(self.seen)

    def finish(self, *, strict: bool) -> None:
        """Complain of columns that no row had."""
        if self.unseen and strict:
            self.mapping.check(self.seen)
        for column in sorted(self.unseen):
            self.builder.problems.add(self.file, None, f"there is no column {column!r} in this file.")

    def _cell(self, row: MappingType[str, Any], field: str) -> Any:
        column = getattr(self.mapping, field)
        value = row.get(column) if column is not None else None
        return None if value == "" and field != "text" else value

    def row(self, row: MappingType[str, Any], line: int) -> None:
        self.unseen.difference_update(row)
        if self.unseen:
            self.seen.update(dict.fromkeys(map(str, row)))
        samples = list(self._samples(row, line))
        if not samples:
            return
        prompt_id, system = self._prompt(row, line), self._system(row, line)
        given = as_whole(self._cell(row, "sample")) if len(samples) == 1 else None
        for sample in samples:
            self.builder.add(prompt_id, system, **vars(sample), sample=given, file=self.file, line=line)

    def _prompt(self, row: MappingType[str, Any], line: int) -> str:
        asked, given = self._cell(row, "prompt"), self._cell(row, "prompt_id")
        text = as_text(asked) if asked is not None else None
        if given is not None:
            prompt_id = as_text(given)
        else:
            text = text if text is not None else NO_PROMPT
            prompt_id = self.builder.id_of(text)
        return self.builder.prompt(prompt_id, text, file=self.file, line=line)

    def _system(self, row: MappingType[str, Any], line: int) -> str:
        named, model, role = (self._cell(row, field) for field in ("system", "model", "role"))
        system = as_text(named) if named is not None else self.stem
        if system in self.builder.systems:
            return system
        guessed = guess_role(as_text(role)) if role is not None else guess_role(system)
        if role is not None and guessed == "other" and as_text(role).casefold() != "other":
            self.builder.problems.add(
                self.file, line, f"{as_text(role)[:60]!r} is no role ({', '.join(ROLES)}); 'other' is taken."
            )
        return self.builder.system(system, role=guessed, model=as_text(model) if model is not None else None)

    def _samples(self, row: MappingType[str, Any], line: int) -> Iterator[Sample]:
        error, cell = self._cell(row, "error"), self._cell(row, "text")
        common = Sample(
            finish_reason=reason(self._cell(row, "finish_reason")),
            token_count=as_whole(self._cell(row, "token_count")),
            seed=as_whole(self._cell(row, "seed")),
        )
        if error not in _NO_ERROR and not is_nan(error):
            yield replace(common, error=error_text(error))
            return
        if self.lists:
            found_list = text_list(cell)
            cell = cell if found_list is None else found_list
        if cell is None or is_nan(cell) or cell == []:
            self.builder.problems.add(self.file, line, "the row has no text; it is left out.")
        elif isinstance(cell, list):
            for item in cell:
                found = sample_of(item)
                if found is None:
                    self.builder.problems.add(self.file, line, "an entry of the list is no text; it is left out.")
                else:
                    yield found
        else:
            yield replace(common, text=as_text(cell))
