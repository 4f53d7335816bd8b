"""Token traces beside a dataset: which tokens a response is made of, and what its model thought of each.

A file `tokens.parquet` in the folder of the dataset, one row a response that has a trace: its `response_id`,
`token_ids` (int32), `logprobs` and `entropies` (float32, natural logarithms; see `core.generation.base.TokenTrace`).
A field that the generator did not tell is an empty list. Most datasets have no traces; foreign ones never do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.errors import OvertonError
from core.generation.base import TokenTrace

FILE = "tokens.parquet"
# Field of a trace, its column, and how its values are kept.
_FIELDS = (
    ("ids", "token_ids", np.int32),
    ("logprobs", "logprobs", np.float32),
    ("entropies", "entropies", np.float32),
)
COLUMNS = ("response_id", *(column for _, column, _ in _FIELDS))


def compact(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one trace from its fields, as arrays; a field that is not there is an empty one."""
    return {column: np.asarray(raw.get(name, ()), dtype=kind) for name, column, kind in _FIELDS}


def frame_of(traces: Iterable[tuple[str, TokenTrace | None]]) -> pd.DataFrame:
    """The table of (response id, trace) pairs; those without a trace are left out."""
    rows = [{"response_id": name, **compact(vars(trace))} for name, trace in traces if trace is not None]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def write(frame: pd.DataFrame, folder: Path) -> None:
    """Write the table into the folder of a dataset; nothing where it has no rows."""
    if frame.empty:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = (pa.int32(), pa.float32(), pa.float32())
    columns = {"response_id": pa.array(frame["response_id"].tolist(), pa.string())}
    for name, kind in zip(COLUMNS[1:], numbers, strict=True):
        columns[name] = pa.array(frame[name].tolist(), pa.list_(kind))
    pq.write_table(
        pa.table(columns),
        folder / FILE,
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=[f"{name}.list.element" for name in COLUMNS[2:]],
    )


def read(folder: Path) -> pd.DataFrame:
    """The table of a dataset, without rows where it has none. Raises `OvertonError` for a damaged file."""
    file = folder / FILE
    if not file.is_file():
        return frame_of(())
    try:
        return pd.read_parquet(file)[list(COLUMNS)]
    except Exception as error:  # pyarrow raises many types for a damaged file
        raise OvertonError(
            f"The token traces {file} are damaged: delete the file, and the dataset works on without them."
        ) from error
