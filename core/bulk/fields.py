"""Reading the fields of a TOML table: each mistake is one sentence with the file and the place."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from core.errors import OvertonError, Problems
from core.generation.endpoints import is_secret

MOST = 100_000  # samples, prompts

T = TypeVar("T")

_KINDS: dict[type, str] = {str: "a text", int: "a whole number", float: "a number", list: "a list", dict: "a table"}


class SpecError(OvertonError):
    """All that is wrong with a specification: `sentences`, one for each mistake."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self.sentences = list(sentences)
        super().__init__(" ".join(self.sentences))


class Table:
    """One table of a specification; what is wrong in it goes to `problems`, and the default is taken instead."""

    def __init__(self, raw: Mapping[str, Any], *, file: str, place: str, problems: Problems) -> None:
        self.raw, self.file, self.place, self.problems = raw, file, place, problems

    def wrong(self, what: str) -> None:
        """Note a mistake: `what` is the rest of a sentence that begins with the place."""
        subject = self.place or ("it" if what.startswith(("has ", "lacks ")) else "")
        self.problems.add(self.file, None, f"{subject} {what}".strip())

    def secrets(self) -> bool:
        """Note every field that seems to hold a key itself; whether there is one."""
        found = [name for name in self.raw if is_secret(name)]
        for name in found:
            self.wrong(
                f"has the field {name!r}, but a key must not stand in a file: put it into an environment variable "
                "and give the variable's name as key_env in [system.server]."
            )
        return bool(found)

    def known(self, *names: str) -> None:
        """Note every field that is none of `names`, with the nearest one that is."""
        self.secrets()
        for name in self.raw:
            if name in names:
                continue
            if is_secret(name):
                continue
            near = difflib.get_close_matches(name.lower(), names, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(names)}."
            self.wrong(f"has the unknown field {name!r}: {advice}")

    def get(self, name: str, kind: type[T], default: T) -> T:
        """A field of one kind (whole numbers also pass as numbers), or the default."""
        value = self.raw.get(name)
        if value is None:
            return default
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if not isinstance(value, kind) or isinstance(value, bool) != (kind is bool):
            self.wrong(f"has a {name} that is not {_KINDS.get(kind, 'true or false')}: {value!r:.60}.")
            return default
        return value

    def attempt(self, make: Callable[[], T], default: T) -> T:
        """What `make` returns; where it raises `OvertonError`, its sentence is noted and the default taken."""
        try:
            return make()
        except OvertonError as error:
            self.problems.add(self.file, None, f"{self.place}: {error}" if self.place else str(error))
            return default

    def table(self, name: str, place: str) -> Table:
        """A table inside this one, empty where it is absent."""
        return Table(self.get(name, dict, {}), file=self.file, place=place, problems=self.problems)

    def tables(self, name: str) -> list[Table]:
        """The tables of a list, `[[name]]` in the file; each is called by its name or id, else its number."""
        if isinstance(self.raw.get(name), dict):
            self.wrong(f"has a table [{name}]: write it with two brackets, as [[{name}]].")
            return []
        found = self.get(name, list, [])
        if not all(isinstance(raw, dict) for raw in found):
            self.wrong(f"has a {name} of the wrong shape: write [[{name}]] above each.")
            return []
        made = []
        for k, raw in enumerate(found, 1):
            called = raw.get("name") or raw.get("id")
            place = f"[[{name}]] {called!r}" if isinstance(called, str) and called else f"[[{name}]] number {k}"
            made.append(Table(raw, file=self.file, place=place, problems=self.problems))
        return made

    def count(self, name: str, default: int) -> int:
        """A whole number from 1 on, or the default."""
        before = len(self.problems)
        value = self.get(name, int, default)
        if name in self.raw and len(self.problems) == before and not 1 <= value <= MOST:
            self.wrong(f"has {name} = {value}: it must lie between 1 and {MOST}.")
        return value
