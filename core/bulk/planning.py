"""The plan of a bulk run: the exact context of every system and prompt, the seeds, and what is still missing."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.bulk.journal import journal_of, sample_rows
from core.bulk.prompts import Prompt
from core.bulk.reading import reader_of
from core.bulk.spec import Spec
from core.bulk.systems import System, check_hints
from core.demo import seed_of
from core.errors import OvertonError
from core.generation.base import Reads, Sampling
from core.prompting.strategies import STRATEGIES, Ask
from core.workspace import Workspace

# Samples of one context that take one turn in the queue of a model, so that other visitors get in between.
LARGEST_BATCH = 64
MOST_SAMPLES = 2_000_000  # of one run: each takes some hundred bytes of memory while it is planned

Address = tuple[str, str, int]  # system, prompt_id, sample


def address_of(row: Mapping[str, Any]) -> Address:
    """Which sample a row of a journal is."""
    return row["system"], row["prompt_id"], row["sample"]


@dataclass(frozen=True)
class Cell:
    """One system and one prompt: the exact context and everything else that its samples depend on.

    `key` stands for context, sampling, model and revision. `exact` says whether the model's own
    tokenizer counted `tokens`. `too_long` is a sentence where the context does not fit.
    """

    system: System
    prompt: Prompt
    context: str
    tokens: int
    revision: str
    seed: int
    key: str
    exact: bool = True
    too_long: str | None = None

    @property
    def place(self) -> tuple[str, str]:
        """The system and the prompt id."""
        return self.system.name, self.prompt.prompt_id

    def seed_of(self, sample: int) -> int:
        """The seed of one sample: 32 bits that depend on base seed, system, prompt and sample alone."""
        return seed_of(f"{self.seed}|{self.system.name}", self.prompt.prompt_id, sample)

    def key_of(self, sample: int) -> str:
        """Content key of one sample: context, sampling, model, revision and its seed."""
        return hashlib.sha256(f"{self.key}|{self.seed_of(sample)}".encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Batch:
    """Work that an engine does in one go: samples of one context. Plain values, so that it can be sent elsewhere.

    `samples` are the sample indices and `seeds` the seed of each. `server` is the table of an inline server.
    """

    system: str
    prompt_id: str
    model: str
    context: str
    sampling: Sampling
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    server: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Plan:
    """All cells in the order of the dataset, and which of their samples the journal lacks."""

    spec: Spec
    prompts: tuple[Prompt, ...]
    cells: tuple[Cell, ...]
    missing: Mapping[tuple[str, str], tuple[int, ...]]
    reused: int = 0
    errors_kept: Mapping[str, int] = field(default_factory=dict)
    left: int = 0
    seconds: Mapping[str, tuple[float, int]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of samples of the dataset."""
        return sum(cell.system.samples for cell in self.cells)

    @property
    def too_long(self) -> list[Cell]:
        """Cells whose context does not fit into the model."""
        return [cell for cell in self.cells if cell.too_long]

    def counts(self) -> dict[str, dict[str, int]]:
        """`{system: {"total", "done", "errors"}}` before anything more is generated."""
        found = {system.name: {"total": 0, "done": 0, "errors": 0} for system in self.spec.systems}
        for cell in self.cells:
            own, samples = found[cell.system.name], cell.system.samples
            own["total"] += samples
            own["done"] += samples - len(self.missing[cell.place])
            own["errors"] += samples if cell.too_long else 0
        for name, kept in self.errors_kept.items():
            found[name]["errors"] += kept
        return found

    @property
    def lacking(self) -> int:
        """Number of samples to generate."""
        return sum(len(samples) for samples in self.missing.values())

    def batches(self) -> list[Batch]:
        """The missing samples as work units: model by model, then system by system, then in the order of prompts."""
        models = list(dict.fromkeys(system.model for system in self.spec.systems))
        names = [system.name for system in self.spec.systems]
        cells = sorted(self.cells, key=lambda c: (models.index(c.system.model), names.index(c.system.name)))
        return [batch for cell in cells for batch in self._batches(cell)]

    def _batches(self, cell: Cell) -> Iterator[Batch]:
        missing = self.missing.get(cell.place, ())
        for k in range(0, len(missing), LARGEST_BATCH):
            samples = missing[k : k + LARGEST_BATCH]
            yield Batch(
                system=cell.system.name,
                prompt_id=cell.prompt.prompt_id,
                model=cell.system.model,
                context=cell.context,
                sampling=cell.system.sampling,
                samples=samples,
                seeds=tuple(cell.seed_of(sample) for sample in samples),
                server=cell.system.server,
            )

    def cell(self, system: str, prompt_id: str) -> Cell:
        """One cell. Raises `KeyError` where there is none."""
        return self._index[system, prompt_id]

    @property
    def _index(self) -> dict[tuple[str, str], Cell]:
        made: dict[tuple[str, str], Cell] | None = self.__dict__.get("_cells")
        if made is None:
            made = {c.place: c for c in self.cells}
            object.__setattr__(self, "_cells", made)
        return made


def plan(
    spec: Spec,
    workspace: Workspace,
    *,
    keep_errors: bool = False,
    skip_too_long: bool = False,
    reader: Callable[[str, Mapping[str, Any] | None], Reads] = reader_of,
    cancelled: Callable[[], bool] = lambda: False,
) -> Plan:
    """Work out every context, check that all fit, and compare with what the journal of this name holds.

    Raises `OvertonError` for an unknown dataset or model, a missing hint, and contexts that do not fit (unless
    `skip_too_long`: their samples then become errors of the dataset).
    """
    prompts = prompts_of_spec(spec, workspace)
    total = len(prompts) * sum(system.samples for system in spec.systems)
    if total > MOST_SAMPLES:
        raise OvertonError(
            f"{spec.name} asks for {total:,} samples, and a run makes at most {MOST_SAMPLES:,}: ask for fewer "
            "samples or prompts, or make several specifications."
        )
    cells = []
    for prompt in prompts:
        for system in spec.systems:
            if cancelled():
                raise OvertonError("Stopped while the contexts were read.")
            cells.append(cell_of(spec, system, prompt, reader(system.model, system.server)))
    long = [cell for cell in cells if cell.too_long]
    if long and not skip_too_long:
        more = f" The same is true of {len(long) - 1} more." if len(long) > 1 else ""
        raise OvertonError(f"{long[0].too_long}{more}")
    made = Plan(spec, prompts, tuple(cells), {})
    return compare(made, sample_rows(journal_of(workspace, spec.name)), keep_errors=keep_errors)


def prompts_of_spec(spec: Spec, workspace: Workspace) -> tuple[Prompt, ...]:
    """The prompts of a specification, those of a dataset looked up. Raises `OvertonError` for an unknown dataset."""
    if not spec.dataset:
        return spec.prompts
    table = workspace.load(spec.dataset).prompts
    table = table if spec.limit is None else table.head(spec.limit)
    kinds = table["kind"].fillna("")
    found = tuple(Prompt(*row) for row in zip(table["prompt_id"], table["text"], kinds, strict=True))
    for system in spec.systems:
        check_hints(system, found)
    return found


def cell_of(spec: Spec, system: System, prompt: Prompt, reader: Reads) -> Cell:
    """The context of one system for one prompt, counted against the limit of the model."""
    strategy = STRATEGIES[system.strategy]
    ask = Ask(
        prompt.prompt_id, prompt.text, system.hints.get(prompt.prompt_id, ""), system.examples, reader.chat_context
    )
    context = strategy.context(ask)
    tokens = reader.count_tokens(context)
    depends = [context, system.sampling.as_dict(), system.identity, reader.revision]
    key = hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()[:24]
    cell = Cell(
        system, prompt, context, tokens, reader.revision, spec.seed, key, getattr(reader, "counts_exactly", True)
    )
    wanted = system.sampling.max_new_tokens
    if cell.exact and 0 < reader.limit < tokens + wanted:
        what = (
            f"The prompt {prompt.prompt_id!r} does not fit with the system {system.name!r}: its context has {tokens} "
            f"tokens and {wanted} more are asked for, but {system.identity} reads at most {reader.limit}."
        )
        return replace(cell, too_long=what)
    return cell


def compare(made: Plan, rows: Iterable[Mapping[str, Any]], *, keep_errors: bool = False) -> Plan:
    """The plan with what is done and what is missing, given the rows of a journal.

    A row counts where its key is still that of the sample; other rows are left where they are.
    """
    wanted = {
        (*cell.place, sample): cell.key_of(sample)
        for cell in made.cells
        if not cell.too_long
        for sample in range(cell.system.samples)
    }
    done: dict[Address, bool] = {}
    left, seconds = 0, dict[str, tuple[float, int]]()
    for row in rows:
        address = address_of(row)
        spent, count = seconds.get(address[0], (0.0, 0))
        seconds[address[0]] = (spent + row["seconds"], count + 1)
        if wanted.get(address) != row["key"]:
            left += 1
        elif not done.get(address):
            done[address] = row.get("error") is None
    accepted = {address for address, good in done.items() if good or keep_errors}
    missing = {
        cell.place: tuple(
            sample
            for sample in range(0 if cell.too_long else cell.system.samples)
            if (*cell.place, sample) not in accepted
        )
        for cell in made.cells
    }
    kept = Counter(address[0] for address in accepted if not done[address])
    return replace(made, missing=missing, reused=len(accepted), errors_kept=kept, left=left, seconds=seconds)
