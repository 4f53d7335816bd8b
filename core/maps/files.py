"""Maps on disk: one file a map in the workspace, one table of all maps beside a shipped dataset."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.dataset import Dataset
from core.errors import OvertonError
from core.maps.build import ENOUGH, Map, Method, build
from core.vectors import Selection, keys_of, select
from core.workspace import Workspace, atomic_file

VERSION = 1  # raise it when a layout changes
SHIPPED_FILE = "maps.parquet"


def save(drawn: Map, file: Path) -> None:
    """Write one map as a `.npz` file, atomically."""
    about = {
        "method": drawn.method,
        "note": drawn.note,
        "left_out": list(drawn.left_out),
        "prompt_id": drawn.prompt_id,
        "parameters": dict(drawn.parameters),
    }
    with atomic_file(file) as part, part.open("wb") as opened:
        np.savez_compressed(
            opened,
            response_ids=drawn.response_ids,
            text_keys=drawn.text_keys,
            xy=drawn.xy,
            about=np.array(json.dumps(about, ensure_ascii=False)),
        )


def load(file: Path) -> Map:
    """Read one map. Raises `OvertonError` where the file is absent or damaged."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            about = json.loads(str(arrays["about"]))
            about["left_out"] = tuple(about["left_out"])
            return Map(arrays["response_ids"], arrays["text_keys"], arrays["xy"], **about)
    except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
        raise OvertonError(f"The map {file} cannot be read: delete it, and it is built anew.") from error


def _key(
    dataset: Dataset, vectors: NDArray[Any], chosen: Selection, prompt_id: str | None, method: str, seed: int
) -> str:
    """Hex digest of all that a map depends on."""
    digest = hashlib.sha256(json.dumps([VERSION, prompt_id, method, seed]).encode())
    ids = dataset.responses["response_id"]
    for positions in (chosen.positions, chosen.left_out):
        digest.update(json.dumps(ids.iloc[positions].tolist()).encode())
    digest.update("".join(chosen.text_keys.tolist()).encode())
    digest.update(np.ascontiguousarray(np.asarray(vectors)[chosen.positions], dtype=np.float16).tobytes())
    return digest.hexdigest()[:32]


def _fits(drawn: Map, dataset: Dataset, prompt_id: str | None) -> bool:
    """Whether a map shows exactly the responses of a dataset or prompt, with the texts they have now."""
    responses = dataset.responses
    if prompt_id is not None:
        responses = responses[responses["prompt_id"] == prompt_id]
    if len(drawn) + len(drawn.left_out) != len(responses):
        return False
    if set(drawn.left_out) | set(drawn.response_ids.tolist()) != set(responses["response_id"]):
        return False
    texts = responses.set_index("response_id")["text"].reindex(list(drawn.response_ids))
    return bool((keys_of(texts) == drawn.text_keys).all()) if len(drawn) else True


def existing(
    dataset: Dataset,
    workspace: Workspace,
    vectors: NDArray[Any] | None,
    prompt_id: str | None = None,
    method: Method = "umap",
    *,
    seed: int = 0,
) -> Map | None:
    """A map that is there already, shipped with the dataset or kept in the workspace; None where there is none.

    Without `vectors` only the shipped ones are looked at.
    """
    if method == "umap" and seed == 0 and dataset.name in workspace.names():
        drawn = load_shipped(workspace.path(dataset.name)).get(prompt_id or "")
        if drawn is not None and _fits(drawn, dataset, prompt_id):
            return drawn
    if vectors is None:
        return None
    chosen = select(dataset, vectors, prompt_id)
    if method == "quick" or len(set(chosen.text_keys.tolist())) < ENOUGH:
        return build(dataset, vectors, prompt_id=prompt_id, method=method, seed=seed)
    file = workspace.root / "maps" / f"{_key(dataset, vectors, chosen, prompt_id, method, seed)}.npz"
    try:
        return load(file) if file.is_file() else None
    except OvertonError:
        return None  # damaged: `cached` replaces it


def cached(
    dataset: Dataset,
    workspace: Workspace,
    vectors: NDArray[Any],
    prompt_id: str | None = None,
    method: Method = "umap",
    *,
    seed: int = 0,
) -> Map:
    """The map that is there already, or else a new one, which is kept in the workspace."""
    found = existing(dataset, workspace, vectors, prompt_id, method, seed=seed)
    if found is not None:
        return found
    drawn = build(dataset, vectors, prompt_id=prompt_id, method=method, seed=seed)
    chosen = select(dataset, vectors, prompt_id)
    save(drawn, workspace.folder("maps") / f"{_key(dataset, vectors, chosen, prompt_id, method, seed)}.npz")
    return drawn


# -- the table beside a shipped dataset ---------------------------------------------------------------------


def write_shipped(maps: Iterable[Map], folder: Path) -> Path:
    """Write maps as `maps.parquet` into a dataset's folder, one row a response; x, y are NaN for those left out."""
    frames = []
    for drawn in maps:
        n, m = len(drawn), len(drawn.left_out)
        frames.append(
            pd.DataFrame(
                {
                    "prompt_id": drawn.prompt_id,
                    "response_id": [*drawn.response_ids.tolist(), *drawn.left_out],
                    "text_key": [*drawn.text_keys.tolist(), *[""] * m],
                    "x": np.concatenate([drawn.xy[:, 0], np.full(m, np.nan, np.float32)]),
                    "y": np.concatenate([drawn.xy[:, 1], np.full(m, np.nan, np.float32)]),
                    "method": drawn.method,
                    "note": drawn.note or "",
                    "parameters": json.dumps(dict(drawn.parameters)),
                },
                index=range(n + m),
            )
        )
    file = folder / SHIPPED_FILE
    with atomic_file(file) as part:
        pd.concat(frames, ignore_index=True).to_parquet(part, index=False, compression="zstd")
    return file


def load_shipped(folder: Path) -> dict[str, Map]:
    """The maps beside a dataset's manifest, by prompt id ("" = the whole dataset); none without the file."""
    file = folder / SHIPPED_FILE
    if not file.is_file():
        return {}
    status = file.stat()
    return dict(_read_shipped(file, (status.st_mtime_ns, status.st_size)))


@lru_cache(maxsize=4)
def _read_shipped(file: Path, _changed: tuple[int, int]) -> dict[str, Map]:
    try:
        table = pd.read_parquet(file)
        return {str(prompt): _from_rows(str(prompt), rows) for prompt, rows in table.groupby("prompt_id", sort=False)}
    except Exception:  # pyarrow raises many types; a damaged file is as good as none
        return {}


def _from_rows(prompt_id: str, rows: pd.DataFrame) -> Map:
    drawn = rows["x"].notna()
    first = rows.iloc[0]
    return Map(
        response_ids=rows.loc[drawn, "response_id"].to_numpy(dtype=str),
        text_keys=rows.loc[drawn, "text_key"].to_numpy(dtype=str),
        xy=rows.loc[drawn, ["x", "y"]].to_numpy(dtype=np.float32),
        method=str(first["method"]),
        note=str(first["note"]) or None,
        left_out=tuple(rows.loc[~drawn, "response_id"]),
        prompt_id=prompt_id,
        parameters=json.loads(str(first["parameters"])),
    )
