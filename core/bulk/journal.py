"""The journal of a bulk run: where it lies, what its rows are, and the lock that keeps a second writer out.

    {"spec": its text, "folder": where its files lie}                                    each time a run begins
    {"cell": key, "system", "prompt_id", "context", "sampling", "model", "revision"}     before the first sample of it
    {"key", "system", "prompt_id", "sample", "seconds", and the fields of `core.generation.base.Sample`}
    {"dataset": its name}                                                                when all samples became one

`seconds` passed since the sample before it, or since generation began.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from core.columns import storable
from core.errors import OvertonError, reason_of
from core.generation.base import Sample
from core.generation.journal import Journal
from core.workspace import Workspace


def journal_of(workspace: Workspace, name: str) -> Journal:
    """The journal of all bulk runs of one name in a workspace."""
    key = hashlib.sha256(name.encode()).hexdigest()[:8]  # names may differ in case alone
    return Journal(workspace.root / "runs" / f"bulk-{name}-{key}.journal")


_KINDS = {"key": str, "system": str, "prompt_id": str, "sample": int, "text": str, "seconds": float | int}


def sample_rows(journal: Journal) -> Iterator[dict[str, Any]]:
    """The rows of samples, oldest first; damaged ones are passed over."""
    for row in journal:
        if all(isinstance(row.get(name), kind) for name, kind in _KINDS.items()):
            yield row


def spec_row(text: str, folder: Path | None) -> dict[str, Any]:
    """The specification of a run that begins, as a row."""
    return {"spec": text, "folder": None if folder is None else str(folder.resolve())}


def sample_row(key: str, system: str, prompt_id: str, number: int, made: Sample, seconds: float) -> dict[str, Any]:
    """One finished sample as a row; `number` is its sample index, whatever its place in the batch."""
    fields = {name: value for name, value in made.as_dict().items() if name != "index"}
    fields["text"] = storable(made.text)
    place = {"key": key, "system": system, "prompt_id": prompt_id, "sample": number}
    return {**place, "seconds": round(seconds, 4), **fields}


@dataclass(frozen=True)
class Past:
    """A run that a workspace keeps: the text of its latest specification, and how many samples its journal holds.

    `dataset` is what its latest specification became, None where that is not over.
    `load_spec(past.text, folder=past.folder)` and `start` go on with it.
    """

    name: str
    text: str
    folder: Path | None
    samples: int
    changed: datetime
    dataset: str | None = None


def past_runs(workspace: Workspace) -> list[Past]:
    """The bulk runs of a workspace, the latest first; journals that cannot be read are passed over."""
    found = []
    for path in (workspace.root / "runs").glob("bulk-*.journal"):
        try:
            last, dataset, samples = _latest(path)
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError:
            continue
        if last is not None:
            name = path.stem.removeprefix("bulk-").rpartition("-")[0]
            folder = Path(last["folder"]) if last.get("folder") else None
            found.append(Past(name, last["spec"], folder, samples, changed, dataset))
    return sorted(found, key=lambda past: past.changed, reverse=True)


def dataset_row(name: str) -> dict[str, Any]:
    """The end of a run: the dataset that it became."""
    return {"dataset": name}


def _latest(path: Path) -> tuple[dict[str, Any] | None, str | None, int]:
    """The row of the latest specification, the dataset that it became (if any), and how many samples there are.

    A journal may hold a gigabyte of traces: only the rows of specifications and ends are parsed; the others are known
    by how they begin, as `spec_row`, `sample_row` and `dataset_row` do.
    """
    last, dataset, samples = None, None, 0
    with path.open("rb") as file:
        for line in file:
            samples += line.startswith(b'{"key"') and line.endswith(b"}\n")
            if line.startswith((b'{"spec"', b'{"dataset"')):
                with suppress(ValueError):
                    row = json.loads(line)
                    if isinstance(row.get("spec"), str):
                        last, dataset = row, None
                    elif isinstance(row.get("dataset"), str):
                        dataset = row["dataset"]
    return last, dataset, samples


@contextmanager
def locked(journal: Journal) -> Iterator[None]:
    """Keep a second run of the same name out; the system lets go of the lock however this process ends.

    Raises `OvertonError` where another run holds it, or where nothing can be written there.
    """
    path = journal.path.with_suffix(".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise OvertonError(f"{path} cannot be written: {reason_of(error)}.") from error
    with file:
        try:
            _lock(file)
        except OSError as error:
            file.seek(0)
            holder = file.read(20).decode("ascii", "ignore").strip() or "unknown"
            raise OvertonError(
                f"This run is going on already (process {holder}): wait for it or stop it, then try again."
            ) from error
        with suppress(OSError):  # a full disk does not say who holds it
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())
        yield


def _lock(file: IO[bytes]) -> None:
    """Take the whole file for this process, or raise `OSError` at once."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(1 << 20)  # far behind the text, which others may then still read
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
