"""Rows of JSONL, JSON, CSV and Parquet files, one after another, whatever bytes are in them.

`rows(path, problems)` yields `(line, value)`. What cannot be read goes to `problems` and the rest is read. Lines
end at "\\n" alone: other line separators of Unicode stand inside texts.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from core.errors import OvertonError, Problems, reason_of

Row = tuple[int, Any]

KINDS = {
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
NOT_UTF8 = "the text is not UTF-8: save the file in that encoding"
_BOM = b"\xef\xbb\xbf"
_ESCAPED = re.compile("[\udc80-\udcff]")
_LONG = 8_000_000  # a first line of more bytes is taken for a whole array, not for the first of many lines
_DELIMITERS = ",;\t|"
csv.field_size_limit(2**31 - 1)  # a response may be longer than the 128 kB that csv allows


def kind_of(path: Path) -> str | None:
    """`json`, `csv` or `parquet` by the file's name, else by how it begins; None where it is none of them."""
    known = KINDS.get(path.suffix.lower())
    if known or not path.is_file():
        return known
    begin = _begin(path).removeprefix(_BOM).lstrip()
    if begin.startswith(b"PAR1"):
        return "parquet"
    return "json" if begin[:1] in (b"{", b"[") else None


def rows(path: Path, problems: Problems) -> Iterator[Row]:
    """All rows of a file as `(line, value)`: JSON values, or a dictionary by column for CSV and Parquet.

    `line` is 1-based; for Parquet it is the number of the row. Raises `OvertonError` where the file as a whole
    cannot be read.
    """
    _check_regular(path)
    kind = kind_of(path)
    if kind is None:
        raise OvertonError(f"{path} is of no kind that can be read: give JSONL, JSON, CSV or Parquet.")
    begin = _begin(path)
    if not begin:
        raise OvertonError(f"{path} is empty.")
    if begin[:2] in (b"\xff\xfe", b"\xfe\xff") or (kind != "parquet" and b"\0" in begin[:2]):
        raise OvertonError(f"{path} is UTF-16 or UTF-32: save it as UTF-8.")
    reader: Callable[[Path, Problems], Iterator[Row]] = {"json": _json, "csv": _csv, "parquet": _parquet}[kind]
    try:
        yield from reader(path, problems)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> OvertonError:
    return OvertonError(f"{path} cannot be read: {reason_of(error)}.")


def _check_regular(path: Path) -> None:
    """Refuse pipes and devices: reading them may never end."""
    try:
        strange = path.exists() and not path.is_file()
    except OSError as error:
        raise _unreadable(path, error) from error
    if strange:
        raise OvertonError(f"{path} is not a regular file: save what is in it to a file first.")


def _begin(path: Path, size: int = 4096) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(size)
    except OSError as error:
        raise _unreadable(path, error) from error


# -- JSON -------------------------------------------------------------------------------------------------------


def _json(path: Path, problems: Problems) -> Iterator[Row]:
    with path.open("rb") as file:
        first, others = b"", False
        for line in file:
            if first and line.strip():
                others = True
                break
            first = first or line.removeprefix(_BOM).strip()
    opens, complete = first[:1], len(first) < _LONG and _parses(first)
    if opens == b"[" and not (complete and others):
        yield from _array(path, path.read_bytes().decode("utf-8-sig", "surrogateescape"), problems)
    elif opens == b"{" and path.suffix.lower() == ".json" and not (complete and others):
        yield from _object(path, problems)
    else:
        yield from _lines(path, problems)


def _parses(line: bytes) -> bool:
    try:
        json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _lines(path: Path, problems: Problems) -> Iterator[Row]:
    with path.open("rb") as file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(_BOM) if number == 1 else raw
            if not line.strip():
                continue
            try:
                yield number, json.loads(line.decode("utf-8"))
            except UnicodeDecodeError:
                problems.add(path, number, f"{NOT_UTF8}; this line is left out.")
            except (ValueError, RecursionError):
                half = "the line is cut off in the middle" if not raw.endswith(b"\n") else "the line is not JSON"
                problems.add(path, number, f"{half}; it is left out.")


def _array(path: Path, text: str, problems: Problems) -> Iterator[Row]:
    """Items one by one, so that those before a break in the file are kept."""
    decoder = json.JSONDecoder()
    skip = re.compile(r"[\s,]*")
    at = skip.match(text, text.index("[") + 1).end()  # type: ignore[union-attr]
    line, counted = 1, 0
    while at < len(text) and text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            problems.add(path, line, "from here on the file is not JSON, or is cut off; the rest is left out.")
            return
        if _ESCAPED.search(text, at, end):
            problems.add(path, line, f"{NOT_UTF8}; this item is left out.")
        else:
            yield line, value
        at = skip.match(text, end).end()  # type: ignore[union-attr]
    if at >= len(text):
        problems.add(path, None, "the closing ] is missing: the file may have been cut off.")


def _object(path: Path, problems: Problems) -> Iterator[Row]:
    """One object: a wrapper around one list of rows, or a row itself; failing both, lines."""
    try:
        whole = json.loads(path.read_bytes().decode("utf-8-sig"))
    except (ValueError, RecursionError):
        yield from _lines(path, problems)
        return
    wrapped = [v for k, v in whole.items() if k in ("data", "rows", "responses", "samples", "results")]
    if len(wrapped) == 1 and isinstance(wrapped[0], list) and all(isinstance(v, dict) for v in wrapped[0]):
        yield from enumerate(wrapped[0], start=1)
    else:
        yield 1, whole


# -- CSV --------------------------------------------------------------------------------------------------------


def _delimiter(path: Path) -> str:
    if path.suffix.lower() == ".tsv":
        return "\t"
    head = _begin(path, 65536).removeprefix(_BOM).decode("utf-8", "replace").split("\n")[0]
    head = re.sub(r'"[^"]*"', "", head)
    return max(_DELIMITERS, key=head.count)


def _csv(path: Path, problems: Problems) -> Iterator[Row]:
    delimiter = _delimiter(path)
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        reader = csv.reader(file, delimiter=delimiter)
        try:
            header = [name.strip() for name in next(reader, [])]
            if not any(header) or _ESCAPED.search("".join(header)):
                raise OvertonError(f"{path} has no first line of column names in UTF-8.")
            twice = sorted({name for name in header if header.count(name) > 1})
            if twice:
                problems.add(path, 1, f"the column {twice[0]!r} occurs more than once; the last one is taken.")
            last = reader.line_num
            for cells in reader:
                line, last = last + 1, reader.line_num
                if not cells:
                    continue
                if len(cells) != len(header):
                    problems.add(
                        path, line, f"{len(cells)} cells under {len(header)} column names; the row is left out."
                    )
                elif _ESCAPED.search("".join(cells)):
                    problems.add(path, line, f"{NOT_UTF8}; this row is left out.")
                else:
                    yield line, dict(zip(header, cells, strict=True))
        except csv.Error as error:
            problems.add(path, reader.line_num, f"the file cannot be read from here on ({error}).")


# -- Parquet ----------------------------------------------------------------------------------------------------


def _parquet(path: Path, problems: Problems) -> Iterator[Row]:
    import pyarrow.parquet as parquet

    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(batch_size=2000):
                for row in _values(batch):
                    number += 1
                    if row is None:
                        problems.add(path, number, "the row cannot be decoded; it is left out.")
                    else:
                        yield number, row
    except Exception as error:  # pyarrow raises many types for a damaged file
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise OvertonError(f"{path} is not a Parquet file, or is damaged.") from error


def _values(batch: Any) -> Iterator[dict[str, Any] | None]:
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):  # bytes that are not UTF-8, dates out of range
        for k in range(len(batch)):
            try:
                yield batch.slice(k, 1).to_pylist()[0]
            except (ValueError, OverflowError):
                yield None
