"""Prompts, hints and examples of a specification: written in it, or in files beside it."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.columns import storable
from core.errors import OvertonError, Problems, reason_of
from core.prompting import ExampleSet, example_sets
from core.readers.rows import kind_of, rows

_ID, _TEXT = ("prompt_id", "id"), ("text", "prompt", "question", "query")


@dataclass(frozen=True)
class Prompt:
    """One prompt of a specification."""

    prompt_id: str
    text: str
    kind: str = ""


def prompt_id_of(text: str) -> str:
    """The id of a prompt that was given none: it depends on the text alone, so that lines may change places."""
    return f"p-{hashlib.sha256(text.strip().encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise OvertonError(f"{file} cannot be read: {reason_of(error)}.") from error
    except ValueError as error:
        raise OvertonError(f"{file} is not UTF-8: save it in that encoding.") from error


def toml_of(text: str, file: object) -> dict[str, Any]:
    """A TOML text as a dictionary. Raises `OvertonError` that says where it goes wrong."""
    try:
        found = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers of thousands of digits raise a plain `ValueError`
        where = str(error).rstrip(".")
        raise OvertonError(f"{file} is not TOML: {where[:1].lower()}{where[1:]}.") from error
    if _too_large(found):
        raise OvertonError(f"{file} is not TOML: a whole number lies beyond 64 bits.")
    return found


def _too_large(value: Any) -> bool:
    """Whether there is a whole number that TOML does not allow, though its reader does."""
    if isinstance(value, int):
        return not -(2**63) <= value < 2**63
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_too_large(one) for one in inner)


def _table_rows(file: Path) -> Iterator[Mapping[str, Any]]:
    """Rows of a CSV, JSON lines or Parquet file. Raises `OvertonError` for the first that cannot be read."""
    problems = Problems()
    for line, row in rows(file, problems):
        if not isinstance(row, Mapping):
            problems.add(file, line, "the row has no named columns.")
        for problem in problems:
            raise OvertonError(str(problem))
        yield row
    for problem in problems:
        raise OvertonError(str(problem))


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    found = next((row[name] for name in names if row.get(name) not in (None, "")), "")
    return str(found)


def prompt_of(row: Mapping[str, Any], place: str) -> Prompt:
    """A prompt from the fields of a row. Raises `OvertonError` where it has no text."""
    text = _first(row, _TEXT)
    if not text.strip():
        raise OvertonError(f"{place} has no text.")
    return Prompt(storable(_first(row, _ID)) or prompt_id_of(text), storable(text), storable(_first(row, ("kind",))))


def prompts_of(file: Path) -> list[Prompt]:
    """The prompts of a file: TOML (`[[prompt]]`), CSV, JSON lines or Parquet with a column `text`, or lines of text.

    Raises `OvertonError` where the file or one of its rows cannot be read.
    """
    if file.suffix.lower() == ".toml":
        found = toml_of(_text_of(file), file).get("prompt")
        if not isinstance(found, list) or not all(isinstance(p, Mapping) for p in found):
            raise OvertonError(f"{file} has no [[prompt]] tables.")
        return [prompt_of(raw, f"{file}, prompt {k}") for k, raw in enumerate(found, 1)]
    if file.suffix.lower() not in (".txt", ".md") and kind_of(file):
        return [prompt_of(row, f"{file}, row {k}") for k, row in enumerate(_table_rows(file), 1)]
    lines = [line.strip() for line in _text_of(file).split("\n")]
    return [Prompt(prompt_id_of(line), line) for line in lines if line]


def hints_of(file: Path) -> dict[str, str]:
    """Hints by prompt id: a TOML file with `id = "hint"` or `[id] hint = …`, or rows with `prompt_id` and `hint`."""
    if file.suffix.lower() == ".toml":
        return hint_table(toml_of(_text_of(file), file), str(file))
    return {_first(row, _ID): storable(_first(row, ("hint",))) for row in _table_rows(file)}


def hint_table(raw: Mapping[str, Any], place: str) -> dict[str, str]:
    """Hints by prompt id from a table. Raises `OvertonError` for a value that is no text."""
    hints = {key: value.get("hint") if isinstance(value, Mapping) else value for key, value in raw.items()}
    for key, hint in hints.items():
        if not isinstance(hint, str):
            raise OvertonError(f"{place}: the hint for {key!r} is not a text.")
    return {key: str(hint) for key, hint in hints.items()}


def examples_of(given: str, folder: Path | None) -> ExampleSet:
    """Examples by the name of a shipped set, or from a TOML file (`file.toml`, or `file.toml#set` of several).

    Raises `OvertonError` where there are none.
    """
    shipped = example_sets()
    if given in shipped:
        return shipped[given]
    path, _, chosen = given.partition("#")
    if not path.endswith(".toml"):
        raise OvertonError(f"there is no set of examples {given!r}: take {', '.join(shipped)}, or a TOML file.")
    if folder is None:
        raise OvertonError("files of examples can only be named in a specification that is a file itself.")
    sets = example_sets(folder / path)
    if chosen and chosen not in sets:
        raise OvertonError(f"{path} has no set {chosen!r}; there are: {', '.join(sets) or 'none'}.")
    if not chosen and len(sets) != 1:
        raise OvertonError(f"{path} has {len(sets)} sets: name one of them, as in {path}#NAME.")
    return sets[chosen] if chosen else next(iter(sets.values()))


def beside(folder: Path | None, file: str) -> Path:
    """A file that a specification names. Raises `OvertonError` where that is no file itself."""
    if folder is None:
        raise OvertonError(
            "Files can only be named in a specification that is a file itself: write [[prompt]] tables."
        )
    found = folder / file
    try:
        found.exists()
    except OSError as error:  # a name that no file can have
        raise OvertonError(f"{file:.80} cannot be read: {reason_of(error)}.") from error
    return found
