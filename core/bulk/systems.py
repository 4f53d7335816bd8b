"""The systems of a specification: model, strategy, sampling, examples, hints, and inline servers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from core.bulk.fields import Table
from core.bulk.prompts import Prompt, beside, examples_of, hint_table, hints_of
from core.dataset import ROLES
from core.errors import OvertonError
from core.generation.base import Sampling
from core.prompting import ExampleSet
from core.prompting.strategies import STRATEGIES

_SYSTEM = ("name", "role", "model", "strategy", "examples", "hint", "samples", "sampling", "server")
_SAMPLING = {
    "temperature": float,
    "top_p": float,
    "top_k": int,
    "min_p": float,
    "repetition_penalty": float,
    "max_new_tokens": int,
}


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


def check_hints(system: System, prompts: tuple[Prompt, ...]) -> None:
    """Raise `OvertonError` where a system with hints lacks the hint of a prompt."""
    lacking = [p.prompt_id for p in prompts if not system.hints.get(p.prompt_id, "").strip()] if system.hints else []
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise OvertonError(f"The system {system.name!r} has no hint for the prompt {lacking[0]!r}{more}.")


def system_of(table: Table, folder: Path | None, defaults: Sampling, stops: bool, samples: int) -> System:
    """A system from its table; `defaults` and `samples` are those of the whole specification.

    `stops` says whether the defaults name stop strings; else those of the strategy are taken.
    """
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
    own = table.table("sampling", f"{table.place} sampling")
    if known and not stops:
        defaults = replace(defaults, stop=known.stop)
    system = System(
        name=table.get("name", str, ""),
        role=role,
        model=table.get("model", str, ""),
        strategy=strategy,
        sampling=sampling_of(own, defaults),
        samples=table.count("samples", samples),
        server=table.get("server", dict, {}) or None,
    )
    return _with_server(table, _with_context(table, folder, system), typed=folder is None)


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
    given, before = table.raw["hint"], len(table.problems)
    hints: dict[str, str] = {}
    if isinstance(given, dict):
        hints = table.attempt(lambda: hint_table(given, "hint"), hints)
    else:
        file = table.get("hint", str, "")
        hints = table.attempt(lambda: hints_of(beside(folder, file)), hints)
    if not hints and len(table.problems) == before:  # else it would go on as a system without hints
        table.wrong("has a hint that holds none: give one for each prompt, or leave it out.")
    return replace(system, hints=hints)


def _with_server(table: Table, system: System, *, typed: bool) -> System:
    """Check the table of an inline server and give the system the model id under which it will be known.

    `typed` says that a visitor may have written it: then the operator must allow that, and it gets no key.
    """
    if system.server is None:
        return system
    from core.generation.endpoints import from_table

    server = {**({"model": system.model} if system.model else {}), **system.server}
    key = hashlib.sha256(json.dumps(server, sort_keys=True, default=str).encode()).hexdigest()[:10]
    own = Table(server, file=table.file, place=f"{table.place} server", problems=table.problems)
    if own.secrets():
        return system
    table.attempt(lambda: from_table(f"inline-{key}", server, typed=typed), None)
    return replace(system, model=f"server:inline-{key}", server=server)


def sampling_of(table: Table, defaults: Sampling) -> Sampling:
    """Sampling parameters from a table; what it does not name is as in `defaults`."""
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
