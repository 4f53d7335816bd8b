"""Columns of the tables of `core.dataset`: any values in, values out that Parquet can hold."""

from __future__ import annotations

from typing import Any

import pandas as pd

from core.errors import OvertonError

# Where these are empty they are absent: a CSV file cannot tell an empty text from none.
_OPTIONAL = ("kind", "model", "strategy", "parameters", "finish_reason", "error")


def storable(text: str) -> str:
    """`text` with lone surrogates, which neither UTF-8 nor Parquet can hold, replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:  # UTF-16 also joins a pair that arrived in two halves
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _integer(value: Any) -> int | None:
    """A 64-bit integer, or None for anything that is not one. Never goes through float, which rounds seeds."""
    try:
        number = int(value) if not isinstance(value, float) or value.is_integer() else round(value)
    except (TypeError, ValueError, OverflowError):
        try:
            number = round(float(value))
        except (TypeError, ValueError, OverflowError):
            return None
    return number if -(2**63) <= number < 2**63 else None


def _integers(values: pd.Series) -> pd.Series:
    if pd.api.types.is_integer_dtype(values.dtype) and values.dtype.kind == "i":
        return values.astype("Int64")
    return pd.Series([_integer(v) for v in values], index=values.index, dtype="Int64")


def _texts(values: pd.Series) -> pd.Series:
    try:
        return values.astype("str") if isinstance(values.dtype, pd.StringDtype) else pd.Series(values, dtype="str")
    except UnicodeEncodeError:
        return pd.Series([storable(v) if isinstance(v, str) else v for v in values], dtype="str")


def checked_frame(rows: pd.DataFrame, columns: tuple[str, ...], what: str, required: tuple[str, ...]) -> pd.DataFrame:
    """A new frame with exactly these columns: texts as `str`, counts and seeds as `Int64`, `sample` as `int64`.

    Absent columns are filled with nothing. Raises `OvertonError` for an absent required column (`what` names
    the table) and for a sample index that is none.
    """
    missing = [column for column in required if column not in rows.columns]
    if missing:
        raise OvertonError(f"The {what} table lacks the column {', '.join(missing)}.")
    index = pd.RangeIndex(len(rows))
    made: dict[str, pd.Series] = {}
    for column in columns:
        values = (
            rows[column].reset_index(drop=True) if column in rows.columns else pd.Series(None, index, dtype="object")
        )
        if column in ("token_count", "seed", "sample"):
            made[column] = _integers(values)
        else:
            made[column] = _texts(values)
        if column in _OPTIONAL:  # a CSV file cannot tell an empty text from none
            made[column] = made[column].where(made[column] != "", None)
    frame = pd.DataFrame(made, index=index)
    if "sample" in frame:
        if frame["sample"].isna().any() or (frame["sample"] < 0).any():
            raise OvertonError("A sample index is missing or is not a whole number from 0 on.")
        frame["sample"] = frame["sample"].astype("int64")
    return frame
