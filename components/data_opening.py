"""Something that a visitor opened and has not saved: it is read in the background, and nothing is written for it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from core import jobs
from core.dataset import Dataset, check_name, summary
from core.errors import OvertonError, Problem, Problems
from core.readers import Mapping as Columns
from core.readers import Preview, preview, read, reader_for
from core.readers.files import data_files
from core.workspace import Workspace

SPEED = 25e6  # bytes a second that are read on a laptop; for the guess of how long it takes


class Upload(Protocol):
    """What Streamlit gives for an uploaded file: its name as the browser sent it, and its bytes."""

    name: str

    def getbuffer(self) -> memoryview:
        """The bytes."""


@dataclass
class Candidate:
    """One dataset that was found: how it would be saved, and what is said beside it.

    `counts` is `core.dataset.summary`; `same` names the dataset that already holds exactly this content.
    """

    dataset: Dataset
    problems: Problems
    counts: dict[str, Any]
    same: str | None
    name: str


@dataclass
class Reading:
    """One go at reading: what the path seems to hold, what was found in it, and what could not be read."""

    job: jobs.Job | None = None
    first: Preview | None = None
    found: list[Candidate] = field(default_factory=list)
    failed: Problems = field(default_factory=Problems)


@dataclass
class Opening:
    """A path on this machine, or uploaded files.

    `number` counts the goes at reading, for the keys of widgets; `roles` holds the roles that were changed on the
    page, by place among the datasets that were found.
    """

    source: Path | Sequence[Upload]
    workspace: Workspace
    mapping: Columns | None = None
    reading: Reading = field(default_factory=Reading)
    number: int = 0
    roles: dict[int, dict[str, str]] = field(default_factory=dict)
    id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def label(self) -> str:
        """What the visitor calls it. From outside: never rendered as it is."""
        if isinstance(self.source, Path):
            return str(self.source)
        first, others = self.source[0].name, len(self.source) - 1
        return first if not others else f"{first} and {others} other file{'s' if others > 1 else ''}"

    @property
    def several(self) -> bool:
        """Whether it is more than one file, or a folder of them."""
        return self.source.is_dir() if isinstance(self.source, Path) else len(self.source) > 1

    @property
    def size(self) -> int:
        """Bytes to read; 0 where that is not known at once."""
        if not isinstance(self.source, Path):
            return sum(file.getbuffer().nbytes for file in self.source)
        try:
            return self.source.stat().st_size if self.source.is_file() else 0
        except (OSError, ValueError):
            return 0

    @property
    def error(self) -> str | None:
        """The sentence that reading ended with, where it failed."""
        return self.reading.job.error if self.reading.job is not None else None

    @property
    def over(self) -> bool:
        """Whether reading has ended, one way or another."""
        return self.reading.job is not None and self.reading.job.over

    def begin(self, mapping: Columns | None = None) -> None:
        """Read it (anew) in the background; an earlier go that is still running stops and is forgotten."""
        self.stop()
        self.mapping, self.roles = mapping, {}
        self.number += 1
        # What is known of the file stays on the page while it is read again with other columns.
        reading = Reading(first=self.reading.first)
        self.reading = reading
        reading.job = jobs.start(
            "Reading", lambda job: self._read(job, reading, mapping), lane=f"read {self.id} {self.number}"
        )

    def stop(self) -> None:
        """Ask the reading to stop; it does so between two datasets, and what it finds is not looked at any more."""
        if self.reading.job is not None:
            self.reading.job.stop()

    def wait(self, seconds: float) -> None:
        """Wait for the end of reading, at most so long."""
        job = self.reading.job
        if job is not None and job.thread is not None:
            job.thread.join(seconds)

    def _read(self, job: jobs.Job, reading: Reading, mapping: Columns | None) -> None:
        with located(self.source) as (path, root):
            try:
                reading.first = preview(path)
                parts = _parts(path) if mapping is None else [path]
                for k, part in enumerate(parts):
                    if job.cancel.is_set():
                        return
                    job.progress(part.name if len(parts) > 1 else "", k, len(parts) if len(parts) > 1 else 0)
                    self._part(part, root, reading, mapping, alone=len(parts) == 1)
            except OvertonError as error:
                raise OvertonError(_shorter(str(error), root)) from error
            if root is not None:
                _passed_over(path, reading)
        if not reading.found:
            raise OvertonError(f"Nothing in it could be read ({next(iter(reading.failed), 'it is empty')}).")

    def _part(self, part: Path, root: Path | None, reading: Reading, mapping: Columns | None, *, alone: bool) -> None:
        """Read one dataset; where there are several, one that cannot be read is a problem among others."""
        try:
            found = read(part, mapping=mapping)
        except OvertonError as error:
            if alone:
                raise
            reading.failed.add(part.name, None, _shorter(str(error), root))
            return
        for dataset, problems in found:
            taken = {candidate.name for candidate in reading.found}
            reading.found.append(
                Candidate(
                    dataset,
                    relative(problems, root if root is not None else _base(part)),
                    summary(dataset),
                    self.workspace.same_content(dataset),
                    _untaken(dataset.name, taken, self.workspace),
                )
            )


def _passed_over(path: Path, reading: Reading) -> None:
    """Tell of uploaded files that stand beside others and were not looked at, as no reader knows their kind."""
    if not path.is_dir() or not reading.found:
        return
    read_ones = {file for _, file in data_files(path)}
    for file in sorted(set(path.iterdir()) - read_ones):
        told = Problem(file.name, None, "the file is of no kind that can be read; it is left out.")
        reading.found[0].problems.items.insert(0, told)


def _parts(path: Path) -> list[Path]:
    reader = reader_for(path)
    return list(reader.parts(path)) if hasattr(reader, "parts") else [path]


def _base(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _untaken(name: str, taken: set[str], workspace: Workspace) -> str:
    free, k = workspace.free_name(name), 2
    while free in taken:
        free, k = workspace.free_name(f"{name[:90]}-{k}"), k + 1
    return free


def safe_name(given: str) -> str:
    """A file name from outside as one that stays in its folder: its last part, without characters that do not print.

    Everything else is kept, as the name of a file may become the name of a system.
    """
    last = re.split(r"[/\\]", given)[-1]
    kept = "".join(c for c in last if c.isprintable()).strip().lstrip(".")
    if os.name == "nt":
        kept = re.sub(r'[<>:"|?*]', "_", kept)
    stem, dot, suffix = kept.rpartition(".")
    stem, suffix = (stem, f".{suffix[:20]}") if dot else (kept, "")
    return (stem.encode()[:150].decode("utf-8", "ignore").strip() or "file") + suffix


@contextmanager
def located(source: Path | Sequence[Upload]) -> Iterator[tuple[Path, Path | None]]:
    """The path to read, and for uploads the temporary folder that they stand in; it is removed at the end.

    Several files stand in one folder; a single one stands alone, and a file that readers call after its folder
    (`samples.jsonl`) is called after itself.
    """
    if isinstance(source, Path):
        yield source, None
        return
    temporary = Path(tempfile.mkdtemp(prefix="overton-lens-upload-"))
    try:
        names = [safe_name(file.name) for file in source]
        folder = temporary / _common(names)
        folder.mkdir()
        for k, (file, name) in enumerate(zip(source, names, strict=True)):
            target = folder / (name if name not in names[:k] else f"{k + 1}-{name}")
            target.write_bytes(file.getbuffer())
        yield (folder / names[0] if len(names) == 1 else folder), folder
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise OvertonError(f"The upload cannot be kept on the disk ({reason}): give its path instead.") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _common(names: Sequence[str]) -> str:
    """What file names begin with in common; a folder of that name gives the dataset its name."""
    stems = [Path(name).stem for name in names]
    first, last = min(stems), max(stems)
    length = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    shared = first[:length]
    if len(stems) > 1:
        shared = shared.rstrip(" ._-([")
    return shared if len(shared) > 2 or len(stems) == 1 else "uploaded files"


def relative(problems: Problems, root: Path) -> Problems:
    """The same problems with files named from `root` on: the visitor knows what was opened."""
    items = [replace(problem, file=_inside(problem.file, root)) for problem in problems.items]
    return Problems(limit=problems.limit, items=items, dropped=problems.dropped)


def _inside(file: str, root: Path) -> str:
    try:
        return str(Path(file).relative_to(root))
    except ValueError:
        return file


def _shorter(sentence: str, root: Path | None) -> str:
    """A sentence about uploaded files without the temporary folder that they stood in."""
    if root is None:
        return sentence
    return sentence.replace(f"{root}{os.sep}", "").replace(str(root), "the uploaded files")


def check_names(wanted: Sequence[str], workspace: Workspace) -> None:
    """Raise `OvertonError` where a dataset cannot be saved under one of these names, before anything is written."""
    for k, name in enumerate(wanted):
        if not name.strip():
            raise OvertonError("A dataset needs a name: type one.")
        check_name(name)
        if workspace.free_name(name) != name or name in wanted[:k]:
            raise OvertonError(f"A dataset named {name!r} is already there: choose another name.")


def save(candidate: Candidate, name: str, roles: Mapping[str, str], origin: str, workspace: Workspace) -> None:
    """Save what was found under a name and with roles that were chosen on the page.

    Raises `OvertonError` where the name cannot be used; nothing is overwritten.
    """
    dataset = candidate.dataset.with_roles(roles)
    workspace.save(replace(dataset, name=name, meta={**dataset.meta, "origin": origin}))


def listed(problems: Sequence[Problem], count: int) -> list[dict[str, str]]:
    """The first problems as rows of a table."""
    return [
        {"file": p.file, "line": "" if p.line is None else f"{p.line:,}", "what": p.what} for p in problems[:count]
    ]
