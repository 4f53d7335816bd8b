"""Values of cells as texts and whole numbers."""

from __future__ import annotations

import json
from typing import Any


def is_nan(value: Any) -> bool:
    """Whether a cell holds the number that is none."""
    return isinstance(value, float) and value != value


def as_text(value: Any) -> str:
    """Any value as text: lists and dictionaries as JSON, 3.0 as 3."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict | list):
        try:
            return json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, TypeError, RecursionError):
            return str(type(value).__name__)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def as_whole(value: Any) -> int | None:
    """A whole number in a cell, also one written as text or as 3.0; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        return int(value) if not isinstance(value, float) or value.is_integer() else None
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return int(number) if number.is_integer() else None
