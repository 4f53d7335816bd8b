"""A dataset as one flat table, one row a response, from which `core.readers.own` makes the same dataset again."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd

from core.dataset import Dataset
from core.errors import OvertonError, reason_of, user_path
from core.workspace import atomic_file

FORMATS = ("parquet", "csv", "jsonl")
MIME = {"parquet": "application/vnd.apache.parquet", "csv": "text/csv", "jsonl": "application/jsonl"}

# `prompt` is the text of the prompt; the other names are those of `core.dataset`.
COLUMNS = (
    "prompt_id",
    "prompt",
    "kind",
    "system",
    "role",
    "model",
    "strategy",
    "parameters",
    "response_id",
    "sample",
    "text",
    "finish_reason",
    "token_count",
    "seed",
    "error",
)


def flat(dataset: Dataset, *, rows: pd.Index | None = None) -> pd.DataFrame:
    """One row a response, with the columns of `COLUMNS`, and `context` where the dataset has contexts.

    `rows` picks rows of `dataset.responses` by their index. Without it, prompts and systems that have no response
    get a row of their own, in which `response_id` is empty: nothing is lost on the way out.
    """
    responses = dataset.responses if rows is None else dataset.responses.loc[rows]
    prompts = dataset.prompts.rename(columns={"text": "prompt"})
    table = responses.merge(prompts, on="prompt_id", how="left" if rows is not None else "outer", sort=False)
    table = table.merge(dataset.systems, on="system", how="left" if rows is not None else "outer", sort=False)
    if rows is None:
        table = _in_order(table, dataset)
    columns = list(COLUMNS)
    if len(dataset.contexts):
        contexts = dataset.contexts.rename(columns={"text": "context"}).drop_duplicates(["prompt_id", "system"])
        table = table.merge(contexts, on=["prompt_id", "system"], how="left", sort=False)
        columns.append("context")
    table = table[columns].reset_index(drop=True)
    table["sample"] = table["sample"].astype("Int64")
    return table


def _in_order(table: pd.DataFrame, dataset: Dataset) -> pd.DataFrame:
    """Rows in the order of the responses, then the prompts and systems that have none."""
    place = pd.Series(range(len(dataset.responses)), index=dataset.responses["response_id"])
    key = table["response_id"].map(place).fillna(len(place))
    return table.iloc[key.argsort(kind="stable")]


def export(dataset: Dataset, format: str, file: Path | str, *, overwrite: bool = False) -> Path:
    """Write a dataset to a file, all or nothing, and return its path.

    Raises `OvertonError` for an unknown format, for a file that is already there (unless `overwrite`), and where
    the file cannot be written.
    """
    path = target(file, overwrite=overwrite)
    check_format(format)
    try:
        with atomic_file(path) as part:
            part.write_bytes(export_bytes(dataset, format))
    except OSError as error:
        raise OvertonError(f"{path} cannot be written: {reason_of(error)}.") from error
    return path


def target(file: Path | str, *, overwrite: bool, how: str = "say that it may be replaced") -> Path:
    """The path of a file that may be written; `how` says what to do to replace one that is there.

    Raises `OvertonError` for a folder, a device or a pipe, for a file that is already there (unless `overwrite`), and
    where the place cannot be reached.
    """
    path = user_path(file)
    try:
        if path.is_dir():
            raise OvertonError(f"{path} is a folder: give the name of a file.")
        if path.exists() and not path.is_file():
            raise OvertonError(f"{path} is not a regular file: give the name of another.")
        if path.exists() and not overwrite:
            raise OvertonError(f"{path} is already there: choose another file, or {how}.")
    except OSError as error:
        raise OvertonError(f"{path} cannot be written: {reason_of(error)}.") from error
    if "\0" in str(path):
        raise OvertonError("The name of the file holds a null character: give another name.")
    return path


def check_format(format: str) -> None:
    """Raise `OvertonError` for a format that is none of `FORMATS`."""
    if format not in FORMATS:
        raise OvertonError(f"{format!r} is no format to export to: choose one of {', '.join(FORMATS)}.")


def export_bytes(dataset: Dataset, format: str, *, rows: pd.Index | None = None) -> bytes:
    """The exported file as bytes (UTF-8 for text), of all responses or of some `rows`; see `flat`."""
    check_format(format)
    table = flat(dataset, rows=rows)
    if format == "parquet":
        buffer = io.BytesIO()
        table.to_parquet(buffer, index=False, compression="zstd")
        return buffer.getvalue()
    return (_csv(table) if format == "csv" else _jsonl(table)).encode("utf-8")


def _records(table: pd.DataFrame) -> list[tuple[Any, ...]]:
    plain = table.astype("object").where(table.notna(), None)
    return list(plain.itertuples(index=False, name=None))


def _csv(table: pd.DataFrame) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows(_records(table))
    return text.getvalue()


def _jsonl(table: pd.DataFrame) -> str:
    names = list(table.columns)
    lines = (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) for row in _records(table))
    return "".join(line + "\n" for line in lines)
