"""Errors and problems: what went wrong, said in one sentence that tells the user what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


class OvertonError(Exception):
    """A failure with one clear sentence for the user; never shown as a traceback."""


class TooLong(OvertonError):
    """A context that a model cannot read as it stands; others may fit."""


def reason_of(error: Exception) -> str:
    """Why a file could not be used, as it stands inside a sentence."""
    return (getattr(error, "strerror", None) or "unknown reason").lower()


def user_path(given: str | Path) -> Path:
    """A path as the user typed it, with `~` filled in. Raises `OvertonError` where it names an unknown user."""
    try:
        return Path(given).expanduser()
    except RuntimeError as error:
        raise OvertonError(
            f"{str(given)!r} starts with a user that is not on this machine: give the whole path."
        ) from error


@dataclass(frozen=True)
class Problem:
    """One thing in the input that could not be read.

    `file` is the path as the user knows it, `line` is 1-based (None where a line makes no sense),
    `what` is one sentence.
    """

    file: str
    line: int | None
    what: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}, line {self.line}"
        return f"{place}: {self.what}"


@dataclass
class Problems:
    """A list of problems that keeps at most `limit` of them in full and counts the rest."""

    limit: int = 1000
    items: list[Problem] = field(default_factory=list)
    dropped: int = 0

    def add(self, file: object, line: int | None, what: str) -> None:
        """Record one problem."""
        if len(self.items) < self.limit:
            self.items.append(Problem(str(file), line, what))
        else:
            self.dropped += 1

    def extend(self, other: Problems) -> None:
        """Take over all problems of another list."""
        for problem in other.items:
            self.add(problem.file, problem.line, problem.what)
        self.dropped += other.dropped

    def __len__(self) -> int:
        return len(self.items) + self.dropped

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.items)
