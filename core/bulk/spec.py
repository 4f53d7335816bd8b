"""The specification of a bulk run: prompts x systems x samples, read from TOML with every mistake named."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.bulk.fields import SpecError, Table
from core.bulk.prompts import (
    Prompt,
    examples_of,
    hint_table,
    hints_of,
    prompt_id_of,
    prompts_of,
    toml_of,
)
from core.dataset import ROLES, check_name
from core.errors import OvertonError, Problems, reason_of
from core.generation.base import Sampling
from core.prompting import ExampleSet
from core.prompting.strategies import STRATEGIES

_TOP = ("name", "title", "about", "samples", "seed", "prompts", "dataset", "limit", "prompt", "sampling", "system")
_SYSTEM = ("name", "role", "model", "strategy", "examples", "hint", "samples", "sampling", "server")
_SAMPLING = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
    "max_new_tokens": int,
}
MOST_SAMPLES = 100_000


@dataclass(frozen=True)
class System:
    """One system of a specification; `server` is the table of an inline server (it never holds a key)."""

    name: str
    role: str
    model: str
    strategy: str
    sampling: Sampling
    samples: int
    examples: ExampleSet | None = None
    examples_name: str = ""
    hints: Mapping[str, str] = field(default_factory=dict)
    server: Mapping[str, Any] | None = None

    @property
    def identity(self) -> str:
        """What stands for the model, in keys and in the dataset: of an inline server its address and model."""
        return self.model if self.server is None else f"{self.server.get('model')} at {self.server.get('url')}"


@dataclass(frozen=True)
class Spec:
    """A checked specification. Prompts of a `dataset` are looked up when the run is planned."""

    name: str
    systems: tuple[System, ...]
    prompts: tuple[Prompt, ...] = ()
    dataset: str = ""
    limit: int | None = None
    seed: int = 0
    title: str = ""
    about: str = ""
    file: str = ""


def load_spec(source: Path | str, *, folder: Path | None = None) -> Spec:
    """Read a specification: a path, or its text.

    Files that it names are looked for beside it; in a text only where `folder` is given (a text may come from a
    visitor). Raises `SpecError`, whose `sentences` name every mistake.
    """
    file = str(source) if isinstance(source, Path) else "the specification"
    if isinstance(source, Path):
        folder = source.parent if folder is None else folder
        try:
            source = source.read_text(encoding="utf-8-sig")
        except OSError as error:
            raise SpecError([f"{file} cannot be read: {reason_of(error)}."]) from error
        except ValueError as error:
            raise SpecError([f"{file} is not UTF-8: save it in that encoding."]) from error
    problems = Problems()
    try:
        spec = _spec(Table(toml_of(source, file), file=file, place="", problems=problems), folder)
    except OvertonError as error:  # it is no TOML
        raise SpecError([str(error)]) from error
    if len(problems):
        raise SpecError(str(problem) for problem in problems)
    return spec


def _spec(top: Table, folder: Path | None) -> Spec:
    top.known(*_TOP)
    name = top.get("name", str, "")
    if not name:
        top.wrong("the field 'name' is missing: it becomes the name of the dataset.")
    else:
        top.attempt(lambda: check_name(name), "")
    prompts = _prompts(top, folder)
    defaults = _sampling(_table(top, "sampling", "[sampling]"), Sampling())
    samples = _count(top, "samples", 5)
    stops = "stop" in top.raw.get("sampling", {})
    systems = tuple(_system(table, folder, defaults, stops, samples) for table in _tables(top, "system"))
    if not systems:
        top.wrong("there is no [[system]]: give at least one.")
    for twice in _repeated([system.name for system in systems if system.name]):
        top.wrong(f"the system {twice!r} occurs more than once.")
    for twice in _repeated([prompt.prompt_id for prompt in prompts]):
        top.wrong(f"the prompt {twice!r} occurs more than once.")
    spec = Spec(
        name=name,
        systems=systems,
        prompts=prompts,
        dataset=top.get("dataset", str, ""),
        limit=_count(top, "limit", 0) or None,
        seed=top.get("seed", int, 0),
        title=top.get("title", str, ""),
        about=top.get("about", str, ""),
        file=top.file,
    )
    if not spec.dataset:
        for system in systems:
            top.attempt(lambda s=system: check_hints(s, spec.prompts), None)  # type: ignore[misc]
        spec = replace(spec, prompts=prompts[: spec.limit])
    return spec


def check_hints(system: System, prompts: tuple[Prompt, ...]) -> None:
    """Raise `OvertonError` where a system with hints lacks the hint of a prompt."""
    lacking = [p.prompt_id for p in prompts if not system.hints.get(p.prompt_id, "").strip()] if system.hints else []
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise OvertonError(f"The system {system.name!r} has no hint for the prompt {lacking[0]!r}{more}.")


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []


def _table(parent: Table, name: str, place: str) -> Table:
    return Table(parent.get(name, dict, {}), file=parent.file, place=place, problems=parent.problems)


def _tables(top: Table, name: str) -> list[Table]:
    found = top.get(name, list, [])
    if not all(isinstance(raw, dict) for raw in found):
        top.wrong(f"has {name} tables of the wrong shape: write [[{name}]] above each.")
        return []
    made = []
    for k, raw in enumerate(found, 1):
        called = raw.get("name") or raw.get("id")
        place = f"[[{name}]] {called!r}" if isinstance(called, str) and called else f"[[{name}]] number {k}"
        made.append(Table(raw, file=top.file, place=place, problems=top.problems))
    return made


def _count(table: Table, name: str, default: int) -> int:
    value = table.get(name, int, default)
    if name in table.raw and not 1 <= value <= MOST_SAMPLES:
        table.wrong(f"has {name} = {value}: it must lie between 1 and {MOST_SAMPLES}.")
    return value


# -- prompts ----------------------------------------------------------------------------------------------------


def _prompts(top: Table, folder: Path | None) -> tuple[Prompt, ...]:
    given = [name for name in ("prompts", "dataset", "prompt") if name in top.raw]
    if len(given) != 1:
        top.wrong(
            'give the prompts in exactly one way: [[prompt]] tables, prompts = "FILE" or dataset = "NAME"'
            f" ({' and '.join(given) or 'none'} given)."
        )
        return ()
    if given == ["dataset"]:
        return ()
    if given == ["prompts"]:
        file = top.get("prompts", str, "")
        nothing: tuple[Prompt, ...] = ()
        read = top.attempt(lambda: tuple(prompts_of(_beside(folder, file))), nothing)
        if not read and not len(top.problems):
            top.wrong(f"there are no prompts in {file}.")
        return read
    found = []
    for table in _tables(top, "prompt"):
        table.known("id", "text", "kind")
        text, kind = table.get("text", str, ""), table.get("kind", str, "")
        if not text.strip():
            table.wrong("has no text.")
        found.append(Prompt(table.get("id", str, "") or prompt_id_of(text), text, kind))
    return tuple(found)


def _beside(folder: Path | None, file: str) -> Path:
    if folder is None:
        raise OvertonError(
            "Files can only be named in a specification that is a file itself: write [[prompt]] tables."
        )
    return folder / file


# -- systems ----------------------------------------------------------------------------------------------------


def _system(table: Table, folder: Path | None, defaults: Sampling, stops: bool, samples: int) -> System:
    table.known(*_SYSTEM)
    for needed in ("name", "model", "strategy"):
        if not table.raw.get(needed) and not (needed == "model" and "server" in table.raw):
            table.wrong(f"lacks the field {needed!r}.")
    strategy = table.get("strategy", str, "")
    known = STRATEGIES.get(strategy)
    if strategy and known is None:
        table.wrong(f"has the unknown strategy {strategy!r}: take one of {', '.join(STRATEGIES)}.")
    role = table.get("role", str, known.role if known else "other")
    if role not in ROLES:
        table.wrong(f"has the unknown role {role!r}: take one of {', '.join(ROLES)}.")
    own = _table(table, "sampling", f"{table.place} sampling")
    if known and not stops:
        defaults = replace(defaults, stop=known.stop)
    system = System(
        name=table.get("name", str, ""),
        role=role,
        model=table.get("model", str, ""),
        strategy=strategy,
        sampling=_sampling(own, defaults),
        samples=_count(table, "samples", samples),
        server=table.get("server", dict, {}) or None,
    )
    return _with_server(table, _with_context(table, folder, system))


def _with_context(table: Table, folder: Path | None, system: System) -> System:
    """The system with its examples and hints, as far as its strategy takes them."""
    known = STRATEGIES.get(system.strategy)
    if known is None:
        return system
    if "examples" in table.raw and not known.takes_examples:
        table.wrong(f"has examples, which the strategy {known.name!r} does not use.")
    elif known.takes_examples:
        name = table.get("examples", str, "plain")
        system = replace(system, examples=table.attempt(lambda: examples_of(name, folder), None), examples_name=name)
    if "hint" not in table.raw:
        return system
    if not known.takes_hint:
        table.wrong(f"has a hint, which the strategy {known.name!r} does not use.")
        return system
    given = table.raw["hint"]
    if isinstance(given, dict):
        return replace(system, hints=table.attempt(lambda: hint_table(given, "hint"), {}))
    file = table.get("hint", str, "")
    return replace(system, hints=table.attempt(lambda: hints_of(_beside(folder, file)), {}))


def _with_server(table: Table, system: System) -> System:
    """Check the table of an inline server and give the system the model id under which it will be known."""
    if system.server is None:
        return system
    from core.generation.endpoints import from_table

    server = {**({"model": system.model} if system.model else {}), **system.server}
    key = hashlib.sha256(json.dumps(server, sort_keys=True, default=str).encode()).hexdigest()[:10]
    own = Table(server, file=table.file, place=f"{table.place} server", problems=table.problems)
    if own.secrets():
        return system
    table.attempt(lambda: from_table(f"inline-{key}", server), None)
    return replace(system, model=f"server:inline-{key}", server=server)


def _sampling(table: Table, defaults: Sampling) -> Sampling:
    table.known(*_SAMPLING, "stop")
    given: dict[str, Any] = {}
    for name, kind in _SAMPLING.items():
        if name in table.raw:
            given[name] = table.get(name, kind, getattr(defaults, name))
    if "stop" in table.raw:
        stop = table.raw["stop"]
        stop = [stop] if isinstance(stop, str) else stop
        if not isinstance(stop, list) or not all(isinstance(s, str) and s for s in stop):
            table.wrong("has a stop that is not a list of texts.")
        else:
            given["stop"] = tuple(stop)
    return table.attempt(replace(defaults, **given).check, defaults)
