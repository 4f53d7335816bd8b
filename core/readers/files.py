"""The data files of a path, and the name of the system that each of them may stand for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from core.errors import OvertonError, Problems, reason_of
from core.readers.rows import KINDS, kind_of, rows

_NOT_DATA = {"args.json", "config.json", "manifest.json", "package.json"}
_PLAIN = {"samples", "data", "outputs", "generations", "responses", "results", "completions"}


def data_files(path: Path, problems: Problems | None = None) -> list[tuple[str, Path]]:
    """`(system name, file)` of a file, or of a folder's files and those one level deeper, sorted.

    Hidden files and those of no known kind are passed over. A file with a name like `samples.jsonl` stands for the
    system that its folder is named after. What is locked inside the folder goes to `problems`. Raises `OSError` where
    the path itself cannot be looked into.
    """
    problems = Problems() if problems is None else problems
    if not path.is_dir():
        return [(_name(path), path)]
    found, folders = _in(path, problems)
    for folder in folders:
        try:
            found += _in(folder, problems)[0]
        except OSError as error:
            problems.add(folder, None, locked(error))
    return [(_name(file), file) for file in found]


def locked(error: OSError) -> str:
    """The sentence about a part of a folder that cannot be read, while the rest can."""
    return f"it cannot be read ({reason_of(error)}) and is left out."


def _in(folder: Path, problems: Problems) -> tuple[list[Path], list[Path]]:
    """The data files and the folders right inside a folder, sorted."""
    files, folders = [], []
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        try:
            if path.is_dir():
                folders.append(path)
            elif path.suffix.lower() in KINDS and path.name not in _NOT_DATA and path.is_file():
                files.append(path)
        except OSError as error:
            problems.add(path, None, locked(error))
    return files, folders


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
    files = data_files(path, problems)
    for name, file in files:
        try:
            for line, value in rows(file, problems):
                yield name, file, line, value
        except OvertonError as error:
            if len(files) == 1:
                raise
            problems.add(file, None, str(error))
