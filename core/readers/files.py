"""The data files of a path, and the name of the system that each of them may stand for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from core.errors import OvertonError, Problems
from core.readers.rows import KINDS, kind_of, rows

_NOT_DATA = {"args.json", "config.json", "manifest.json", "package.json"}
_PLAIN = {"samples", "data", "outputs", "generations", "responses", "results", "completions"}


def data_files(path: Path) -> list[tuple[str, Path]]:
    """`(system name, file)` of a file, or of a folder's files and those one level deeper, sorted.

    Hidden files and those of no known kind are passed over. A file with a name like `samples.jsonl` stands for the
    system that its folder is named after.
    """
    if not path.is_dir():
        return [(_name(path), path)]
    found = _in(path)
    for folder in sorted(p for p in path.iterdir() if p.is_dir() and not p.name.startswith(".")):
        found += _in(folder)
    return [(_name(file), file) for file in found]


def _in(folder: Path) -> list[Path]:
    return sorted(
        p
        for p in folder.iterdir()
        if p.is_file() and not p.name.startswith(".") and p.suffix.lower() in KINDS and p.name not in _NOT_DATA
    )


def _name(file: Path) -> str:
    folder = file.resolve().parent.name
    return folder if file.stem.casefold() in _PLAIN and folder else file.stem


def first_rows(path: Path, count: int = 50) -> list[Any]:
    """The first rows of a file that can be read; none where it cannot be read at all."""
    try:
        return [value for _, value in islice(rows(path, Problems()), count)]
    except OvertonError:
        return []


def first_file(path: Path) -> tuple[Path, list[Any]] | None:
    """The first data file that has rows, with these; None where there is none."""
    try:
        files = data_files(path)
    except OSError:
        return None
    for _, file in files:
        if kind_of(file) and (found := first_rows(file)):
            return file, found
    return None


def all_rows(path: Path, problems: Problems) -> Iterator[tuple[str, Path, int, Any]]:
    """`(system name, file, line, value)` over all data files; a file that cannot be read is a problem."""
    files = data_files(path)
    for name, file in files:
        try:
            for line, value in rows(file, problems):
                yield name, file, line, value
        except OvertonError as error:
            if len(files) == 1:
                raise
            problems.add(file, None, str(error))
