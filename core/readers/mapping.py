"""Which column of a flat file holds what: a mapping that is guessed, shown, and editable."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from collections.abc import Mapping as MappingType
from dataclasses import asdict, dataclass, fields
from typing import Any

from core.errors import OvertonError

_NAMES: dict[str, tuple[str, ...]] = {
    "text": (
        "response",
        "output",
        "completion",
        "generation",
        "generated_text",
        "text",
        "answer",
        "reply",
        "model_output",
        "model_response",
        "prediction",
        "responses",
        "outputs",
        "completions",
        "generations",
        "samples",
        "answers",
        "texts",
        "content",
    ),
    "prompt": (
        "prompt",
        "question",
        "query",
        "instruction",
        "prompt_text",
        "input",
        "user",
        "request",
        "search_query",
    ),
    "system": (
        "system",
        "system_name",
        "model",
        "model_name",
        "generator",
        "source",
        "condition",
        "variant",
        "run",
        "method",
    ),
    "sample": (
        "sample",
        "sample_id",
        "sample_index",
        "sample_idx",
        "sample_number",
        "replicate",
        "generation_id",
        "draw",
    ),
    "role": ("role", "system_role", "model_type"),
    "model": ("model", "model_id", "model_name", "hf_model"),
    "finish_reason": ("finish_reason", "stop_reason", "finished"),
    "seed": ("seed", "random_seed"),
    "token_count": ("token_count", "tokens", "n_tokens", "num_tokens", "completion_tokens", "generated_tokens"),
    "error": ("error", "error_message", "exception"),
    "prompt_id": ("prompt_id", "question_id", "query_id", "instance_id", "example_id", "item_id", "pid", "qid"),
}
_PLURAL = {"responses", "outputs", "completions", "generations", "samples", "answers", "texts"}


@dataclass(frozen=True)
class Mapping:
    """The column for each thing, or None where the file has none for it; `text` may be a column of lists."""

    prompt: str | None = None
    system: str | None = None
    text: str | None = None
    sample: str | None = None
    role: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    seed: str | None = None
    token_count: str | None = None
    error: str | None = None
    prompt_id: str | None = None

    def columns(self) -> dict[str, str]:
        """Column by field, for the fields that have one."""
        return {field: column for field, column in asdict(self).items() if column is not None}

    def check(self, columns: Iterable[str]) -> None:
        """Raise `OvertonError` where a column is named that is not there, or none is named for the text."""
        have = list(columns)
        absent = [column for column in self.columns().values() if column not in have]
        if absent:
            listed = ", ".join(have[:20]) or "none"
            raise OvertonError(
                f"The mapping names the column {absent[0]!r}, which is not there; there are: {listed}."
            )
        if self.text is None:
            raise OvertonError("The mapping names no column for the text of the responses: choose one.")


def as_mapping(given: Mapping | MappingType[str, str | None] | object) -> Mapping:
    """A mapping from a dictionary of field and column. Raises `OvertonError` for an unknown field."""
    if isinstance(given, Mapping):
        return given
    known = [field.name for field in fields(Mapping)]
    if not isinstance(given, MappingType) or not set(given) <= set(known):
        raise OvertonError(f"A mapping gives a column for some of: {', '.join(known)}.")
    return Mapping(**{field: column or None for field, column in given.items()})


def guess(columns: Sequence[str], first_rows: Sequence[MappingType[str, Any]]) -> Mapping:
    """The mapping that the names of the columns and the first rows suggest."""
    plain = {re.sub(r"\W+", "_", column.strip().casefold()): column for column in reversed(columns)}
    found: dict[str, str] = {}
    for field, names in _NAMES.items():
        for name in names:
            column = plain.get(name)
            if column is None or (column in found.values() and (field, name) != ("model", "model")):
                continue
            if field != "text" or _holds_text(column, first_rows):
                found[field] = column
                break
    if "text" not in found and (longest := _longest(columns, first_rows, set(found.values()))):
        found["text"] = longest
    if found.get("model") == found.get("text"):
        found.pop("model", None)
    return Mapping(**found)


def _holds_text(column: str, rows: Sequence[MappingType[str, Any]]) -> bool:
    values = [row[column] for row in rows if row.get(column) is not None]
    return not values or any(isinstance(value, str | list) for value in values)


def _longest(columns: Sequence[str], rows: Sequence[MappingType[str, Any]], used: set[str]) -> str | None:
    """The column that is not used yet and holds the longest texts, where it holds any."""

    def length(column: str) -> float:
        texts = [row[column] for row in rows if isinstance(row.get(column), str)]
        return sum(map(len, texts)) / len(texts) if texts and not all(map(_number, texts)) else 0.0

    return max((c for c in columns if c not in used and length(c) > 0), key=length, default=None)


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def lists_as_text(column: str, first_rows: Sequence[MappingType[str, Any]]) -> bool:
    """Whether a column with a name in the plural holds, in each of the first rows, a JSON list of texts."""
    cells = [row.get(column) for row in first_rows]
    return column.casefold() in _PLURAL and bool(cells) and all(text_list(cell) is not None for cell in cells)


def text_list(cell: Any) -> list[str] | None:
    """The texts of a JSON list in a cell; None where the cell is something else."""
    if not isinstance(cell, str) or not cell.lstrip().startswith("["):
        return None
    try:
        values = json.loads(cell)
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, list) and all(isinstance(v, str) for v in values) else None
