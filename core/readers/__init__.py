"""Readers: one file a foreign format, each with `matches(path)` and `read(path, name=, mapping=)`.

A new format is a new file here and one entry in `READERS`. A format whose paths may hold several datasets also has
`parts(path)`.
"""

from __future__ import annotations

from collections.abc import Mapping as MappingType
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from core.dataset import Dataset, check_name
from core.errors import OvertonError, Problems, user_path
from core.readers import chat, flat, own, release
from core.readers.files import data_files, first_file
from core.readers.flat import Mapping, guess_mapping
from core.readers.rows import kind_of, rows

# The first that matches reads; the later ones are less particular.
READERS: tuple[ModuleType, ...] = (own, release, chat, flat)

__all__ = ["READERS", "Mapping", "Preview", "guess_mapping", "preview", "read", "reader_for"]


@dataclass(frozen=True)
class Preview:
    """What a path seems to hold: the reader's kind (`own`, `release`, `chat`, `flat`), and for the flat kind the
    names of the columns, the guessed mapping and the first rows (elsewhere empty)."""

    kind: str
    columns: list[str]
    mapping: Mapping
    rows: list[dict[str, Any]]


def reader_for(path: Path | str) -> ModuleType:
    """The first reader that knows what is at a path. Raises `OvertonError` where there is none."""
    path = user_path(path)
    try:
        if not path.exists():
            raise OvertonError(f"There is no file or folder {path}.")
        found = next((reader for reader in READERS if reader.matches(path)), None)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "the path is not allowed"
        raise OvertonError(f"{path} cannot be read: {reason.lower()}.") from error
    if found is None:
        raise OvertonError(_why_nothing(path))
    return found


def _why_nothing(path: Path) -> str:
    problems = Problems()
    if path.is_dir():
        data_files(path, problems)
        why = f" ({next(iter(problems))})" if len(problems) else ""
        return (
            f"There is nothing in {path} that can be read{why}: give a folder with JSONL, JSON, CSV or Parquet files."
        )
    try:
        if kind_of(path) is None and path.stat().st_size:
            return f"{path} is of no kind that can be read: give JSONL, JSON, CSV or Parquet."
        for _ in rows(path, problems):
            return f"{path} holds no rows with named columns."
    except OvertonError as error:
        return str(error)
    first = next(iter(problems), None)
    return f"There is no row in {path} that can be read{f' (line {first.line}: {first.what})' if first else ''}"


def read(
    path: Path | str, *, name: str | None = None, mapping: Mapping | MappingType[str, str] | None = None
) -> list[tuple[Dataset, Problems]]:
    """Read whatever is at a path: each dataset with the problems that were met.

    The authors' release gives one dataset a data-set folder (with `name`, they are called `name-folder`); anything
    else gives one. A `mapping` says that the file is a flat one. Raises `OvertonError` in one sentence where nothing
    can be read.
    """
    path = user_path(path)
    if name is not None:
        check_name(name)
    reader = reader_for(path)
    if mapping is not None:
        reader = flat
    parts = reader.parts(path) if hasattr(reader, "parts") else [path]
    found: list[tuple[Dataset, Problems]] = []
    failed = Problems()
    for part in parts:
        called = f"{name}-{part.name}" if name and len(parts) > 1 else name
        try:
            found.append(reader.read(part, name=called, mapping=mapping))
        except OSError as error:
            raise OvertonError(f"{part} cannot be read: {(error.strerror or 'unknown reason').lower()}.") from error
        except OvertonError as error:
            if len(parts) == 1:
                raise
            failed.add(part, None, str(error))
    if not found:
        raise OvertonError(f"Nothing in {path} could be read ({next(iter(failed))}).")
    found[0][1].extend(failed)
    return found


def preview(path: Path | str, *, count: int = 5) -> Preview:
    """A first look at a path, from its first rows only. Raises `OvertonError` where nothing can be read."""
    path = user_path(path)
    reader = reader_for(path)
    kind = str(reader.KIND)
    first = first_file(path) if kind == flat.KIND else None
    if first is None:
        return Preview(kind, [], Mapping(), [])
    tables = [dict(row) for row in first[1] if isinstance(row, MappingType)]
    return Preview(kind, flat.columns(path), guess_mapping(path), tables[:count])
