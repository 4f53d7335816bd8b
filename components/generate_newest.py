"""The last rows of a journal while it grows, without reading all of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TAIL = 1 << 19  # bytes: the longest samples with their traces take half of it


def newest(path: Path, n: int) -> list[dict[str, Any]]:
    """The last `n` finished samples since the run began that writes there, the newest first; none where none are."""
    found: list[dict[str, Any]] = []
    for row in _backwards(path):
        if "spec" in row or len(found) == n:
            break
        if isinstance(row.get("text"), str) and "sample" in row:
            found.append(row)
    return found


def latest_error(path: Path) -> str | None:
    """The sentence of the sample that failed last, if one did so lately."""
    return next((str(row["error"]) for row in _backwards(path) if row.get("error")), None)


def _backwards(path: Path) -> Iterator[dict[str, Any]]:
    """The rows at the end of a journal, the last one first; half-written ones are passed over."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - TAIL))
            lines = file.read().split(b"\n")
    except OSError:
        return
    for line in reversed(lines if size <= TAIL else lines[1:]):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            yield row
