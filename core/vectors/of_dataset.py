"""The vectors of a dataset: taken from what was shipped or stored, the rest encoded and stored."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from threading import Event
from typing import Any, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.dataset import Dataset, text_keys
from core.errors import OvertonError
from core.vectors.encoders import DEFAULT_KEY, Encoder, Floats, Progress, unit
from core.vectors.store import VectorStore
from core.workspace import Workspace, atomic_file

SHIPPED_FILE = "vectors.npz"
_BATCH = 128  # texts that are encoded before they are put on disk

Kept = dict[str, tuple[NDArray[np.float16], int]]


def keys_of(texts: pd.Series) -> NDArray[np.str_]:
    """Text keys without regard to white space around the text: what the program calls equal texts."""
    return cast("NDArray[np.str_]", text_keys(texts.str.strip()))


def _needed(dataset: Dataset) -> tuple[NDArray[np.str_], NDArray[np.bool_]]:
    """Text key per response (in the order of `dataset.responses`), and whether it needs a vector."""
    texts = dataset.responses["text"]
    needed = dataset.usable.to_numpy(dtype=bool) & (texts.str.strip() != "").to_numpy(dtype=bool)
    return keys_of(texts), needed


def store_file(workspace: Workspace) -> Path:
    """Where the workspace keeps its vectors."""
    return workspace.root / "vectors" / "vectors.sqlite"


def _store(workspace: Workspace) -> VectorStore:
    return VectorStore(store_file(workspace))


@lru_cache(maxsize=4)
def _read_shipped(file: Path, _changed: tuple[int, int]) -> tuple[str, Kept]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            keys, vectors = arrays["keys"], arrays["vectors"]
            encoder = str(arrays["encoder"]) if "encoder" in arrays else DEFAULT_KEY
            parts = arrays["parts"] if "parts" in arrays else np.ones(len(keys), dtype=int)
            rows = zip(keys.tolist(), vectors.astype(np.float16, copy=False), parts.tolist(), strict=True)
            return encoder, {key: (vector, count) for key, vector, count in rows}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        return "", {}  # a damaged file is as good as none: the vectors are computed anew


def _shipped(dataset: Dataset, workspace: Workspace, encoder_key: str) -> Kept:
    """What lies beside the manifests of this dataset and of the shipped ones, as texts may come from there."""
    known: Kept = {}
    for name in workspace.names():
        if name != dataset.name and not workspace.is_shipped(name):
            continue
        file = workspace.path(name) / SHIPPED_FILE
        try:
            status = file.stat()
        except OSError:
            continue  # not there, or locked
        encoder, kept = _read_shipped(file, (status.st_mtime_ns, status.st_size))
        if encoder == encoder_key:
            known.update(kept)
    return known


def _known(keys: Sequence[str], dataset: Dataset, workspace: Workspace, encoder_key: str) -> Kept:
    shipped = _shipped(dataset, workspace, encoder_key)
    missing = [key for key in keys if key not in shipped]
    stored_ones = _store(workspace).get(encoder_key, missing) if missing else {}
    return {**{key: shipped[key] for key in keys if key in shipped}, **stored_ones}


def _rows(keys: NDArray[np.str_], needed: NDArray[np.bool_], known: Kept, dimension: int) -> Floats:
    rows = np.full((len(keys), dimension), np.nan, dtype=np.float32)
    for i in np.flatnonzero(needed):
        rows[i] = known[keys[i]][0]
    return unit(rows)


def stored(dataset: Dataset, workspace: Workspace, encoder_key: str = DEFAULT_KEY) -> Floats | None:
    """The vectors of a dataset if all are there already, else None; loads no model.

    Looks at the file beside a shipped dataset first, then at the workspace. Shape (responses, dimension),
    aligned with `dataset.responses`; rows of NaN for responses that are unusable or empty. A dataset without
    any text to encode gives shape (responses, 0).
    """
    keys, needed = _needed(dataset)
    wanted = list(dict.fromkeys(keys[needed].tolist()))
    known = _known(wanted, dataset, workspace, encoder_key)
    if len(known) < len(wanted):
        return None
    return _rows(keys, needed, known, len(next(iter(known.values()))[0]) if known else 0)


def coverage(dataset: Dataset, workspace: Workspace, encoder_key: str = DEFAULT_KEY) -> tuple[int, int]:
    """(have, need): number of usable, non-empty responses that have a vector, and of all such responses."""
    keys, needed = _needed(dataset)
    known = _known(list(dict.fromkeys(keys[needed].tolist())), dataset, workspace, encoder_key)
    return sum(key in known for key in keys[needed].tolist()), int(needed.sum())


def longer(dataset: Dataset, workspace: Workspace, encoder_key: str = DEFAULT_KEY) -> tuple[int, int]:
    """(longer, have): responses that were longer than the encoder reads at once, of those with a vector."""
    keys, needed = _needed(dataset)
    known = _known(list(dict.fromkeys(keys[needed].tolist())), dataset, workspace, encoder_key)
    counts = [known[key][1] for key in keys[needed].tolist() if key in known]
    return sum(count > 1 for count in counts), len(counts)


def vectors_for(
    dataset: Dataset,
    workspace: Workspace,
    encoder: Encoder,
    *,
    progress: Progress | None = None,
    cancel: Event | None = None,
) -> Floats:
    """The vectors of a dataset, shape (responses, dimension), aligned with `dataset.responses`.

    What is shipped or stored is taken as it is; the rest is encoded, each text once, longest first, and put on
    disk batch by batch, so that a run that was stopped goes on from there. `progress` gets (done, total) in
    different texts. Raises `OvertonError` when `cancel` is set, or when the encoder cannot be had.
    """
    keys, needed = _needed(dataset)
    texts = dict(zip(keys[needed].tolist(), dataset.responses["text"][needed].str.strip(), strict=True))
    known = _known(list(texts), dataset, workspace, encoder.key)
    todo = sorted((key for key in texts if key not in known), key=lambda key: (-len(texts[key]), key))
    store = _store(workspace)
    if todo:
        workspace.folder("vectors")
    batches = [todo[start : start + _BATCH] for start in range(0, len(todo), _BATCH)]
    report = _from(progress, len(texts) - len(todo), len(texts))
    for number, made, counts in _encoded(
        encoder, [[texts[key] for key in batch] for batch in batches], report, cancel
    ):
        store.put(encoder.key, batches[number], made, counts)
        known.update(zip(batches[number], zip(made.astype(np.float16), counts, strict=True), strict=True))
    if len(known) < len(texts):
        raise OvertonError(f"Encoding was stopped: {len(known)} of {len(texts)} texts are done and kept.")
    return _rows(keys, needed, known, len(next(iter(known.values()))[0]) if known else 0)


def _from(progress: Progress | None, done: int, total: int) -> Callable[[int], None]:
    """A report of how many of the missing texts are done."""
    return lambda more: None if progress is None else progress(done + more, total)


def _encoded(
    encoder: Encoder, batches: Sequence[Sequence[str]], report: Callable[[int], None], cancel: Event | None
) -> Iterator[tuple[int, Floats, Sequence[int]]]:
    """Yield (number of the batch, vectors, parts): one after another, or as an encoder with many workers has them."""
    done, many = 0, getattr(encoder, "encode_batches", None)
    if many is not None and batches:
        for number, made, counts in many(batches, cancel or Event()):
            done += len(made)
            report(done)
            yield number, made, counts
        return
    for number, texts in enumerate(batches):
        if cancel is not None and cancel.is_set():
            return
        made = encoder.encode(texts, progress=lambda here, _, before=done: report(before + here))  # type: ignore[misc]
        done += len(texts)
        yield number, made, encoder.parts(texts)


def write_shipped(
    dataset: Dataset,
    vectors: NDArray[Any],
    folder: Path,
    *,
    encoder_key: str = DEFAULT_KEY,
    workspace: Workspace | None = None,
) -> Path:
    """Write `vectors.npz` into a dataset's folder: one float16 row a different text.

    `vectors` is what `vectors_for` gave. With `workspace`, the stored rows themselves are taken, and the number
    of parts each text was read in.
    """
    keys, needed = _needed(dataset)
    needed &= np.isfinite(vectors).all(axis=1)
    unique, first = np.unique(keys[needed], return_index=True)
    known = _known(unique.tolist(), dataset, workspace, encoder_key) if workspace is not None else {}
    half = np.asarray(vectors)[needed][first].astype(np.float16)
    parts = np.ones(len(unique), dtype=np.uint16)
    for i, key in enumerate(unique.tolist()):
        if key in known:
            half[i], parts[i] = known[key]
    file = folder / SHIPPED_FILE
    with atomic_file(file) as part, part.open("wb") as opened:
        np.savez_compressed(opened, keys=unique, vectors=half, parts=parts, encoder=np.array(encoder_key))
    return file
