"""A bulk run in the background: plan, generate what is missing, write each sample down, make the dataset."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

from core import jobs
from core.bulk.engines import Done, Engine, engine_named
from core.bulk.journal import dataset_row, journal_of, locked, sample_row, sample_rows, spec_row
from core.bulk.planning import Batch, Cell, Plan, plan
from core.bulk.progress import Progress
from core.bulk.result import assemble, save
from core.bulk.spec import Spec
from core.errors import OvertonError, reason_of
from core.generation.base import Sample
from core.generation.journal import Journal
from core.workspace import Workspace

# So many failures in a row of one model, over more than two prompts, end a run: its server is gone.
MOST_FAILURES = 20


@dataclass
class BulkRun:
    """One run: its job (state, `what`, error), live progress, and at the end the name of the dataset."""

    spec: Spec
    journal: Journal
    engine: str
    keep_errors: bool = False
    progress: Progress = field(default_factory=Progress)
    job: jobs.Job = field(default_factory=lambda: jobs.Job("", ""))
    plan: Plan | None = None
    dataset: str | None = None
    was_there: bool = False

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.job.over

    def stop(self) -> None:
        """Ask it to stop; what is in the journal stays, and the same specification goes on from there."""
        self.job.stop()

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        state = {"name": self.spec.name, "state": self.job.state, "error": self.job.error, "dataset": self.dataset}
        rest = {"dataset_was_there": self.was_there, "journal": str(self.journal.path), "engine": self.engine}
        return {**state, **rest, **self.progress.as_dict()}


def start(
    spec: Spec,
    workspace: Workspace,
    *,
    engine: str | Engine = "local",
    keep_errors: bool = False,
    skip_too_long: bool = False,
    owner: str = "",
) -> BulkRun:
    """Begin, or go on with, the run of a specification in the background.

    Raises `OvertonError` for an unknown engine and where a run of this name is going on, here or in another process.
    Everything later is in `run.job.error`.
    """
    chosen = engine_named(engine)
    run = BulkRun(spec, journal_of(workspace, spec.name), chosen.name, keep_errors)
    workspace.folder("runs")
    held = ExitStack()
    held.enter_context(locked(run.journal))

    def work(job: jobs.Job) -> None:
        with held:
            run.job = job
            job.what = "reading the contexts"
            options: dict[str, Any] = {"keep_errors": keep_errors, "skip_too_long": skip_too_long}
            _fetch(spec, job)
            run.plan = made = plan(spec, workspace, cancelled=job.cancel.is_set, **options)
            _generate(run, made, chosen, job, owner)
            if job.cancel.is_set():
                return
            job.what = "writing the dataset"
            complete = assemble(made, sample_rows(run.journal), engine=chosen.name)
            run.dataset, run.was_there = save(workspace, *complete)
            with suppress(OSError):  # the dataset is there all the same
                run.journal.append(dataset_row(run.dataset))

    run.job = jobs.start(f"{spec.name}", work, lane=f"bulk {run.journal.path}", owner=owner)
    return run


def _fetch(spec: Spec, job: jobs.Job) -> None:
    """Fetch the models of the catalogue that are not here yet."""
    from core import models

    for model in dict.fromkeys(system.model for system in spec.systems):
        if model in models.catalogue() and models.local_folder(model) is None:
            models.fetch(model, progress=job.progress, cancel=job.cancel)


def _generate(run: BulkRun, plan: Plan, engine: Engine, job: jobs.Job, owner: str) -> None:
    """Let the engine make what is missing. Raises `OvertonError` where that ends before everything is there."""
    run.progress.begin(plan.counts(), left=plan.left)
    job.progress("generating", run.progress.done, plan.total)
    writer = _Writer(run, plan)
    writer.append(spec_row(plan.spec.text, plan.spec.folder))

    def grow(batch: Batch, place: int, text: str, tokens: int) -> None:
        run.progress.grow((batch.system, batch.prompt_id, batch.samples[place]), tokens)

    finished = engine.run(plan.batches(), job, owner=owner, on_growth=grow)
    try:
        for done in finished:
            if done.sample.finish_reason != "cancelled":
                writer.write(done)
                job.done = run.progress.done
    finally:
        run.progress.end()
        close = getattr(finished, "close", None)
        if close is not None:
            close()
    if run.progress.done < run.progress.total and not job.cancel.is_set():
        lost = run.progress.total - run.progress.done
        raise OvertonError(f"{lost} samples did not come; the same specification goes on with them.")


class _Writer:
    """Writes every sample into the journal, before anything else happens to it, and counts failures in a row."""

    def __init__(self, run: BulkRun, plan: Plan) -> None:
        self.run, self.plan = run, plan
        self._begun: set[str] = set()
        self._last = time.monotonic()
        self._failed: dict[str, list[str]] = {}

    def append(self, row: Mapping[str, Any]) -> None:
        """Put a row on disk. Raises `OvertonError` where that refuses it."""
        try:
            self.run.journal.append(row)
        except OSError as error:
            raise OvertonError(
                f"{self.run.journal.path} cannot be written ({reason_of(error)}): make room there, and the same "
                "specification goes on from what is in it."
            ) from error

    def write(self, done: Done) -> None:
        """Write one sample. Raises `OvertonError` where the disk refuses it or nothing but errors comes."""
        batch, sample = done.batch, done.sample
        cell, number, now = (
            self.plan.cell(batch.system, batch.prompt_id),
            batch.samples[sample.index],
            time.monotonic(),
        )
        row = sample_row(cell.key_of(number), *cell.place, number, sample, now - self._last)
        if cell.key not in self._begun:
            self.append(_head(cell))
            self._begun.add(cell.key)
        self.append(row)
        self._last = now
        self.run.progress.add((*cell.place, number), sample.token_count, error=sample.error is not None)
        self._check(batch, sample)

    def _check(self, batch: Batch, sample: Sample) -> None:
        """Stop asking a model that fails for one prompt after another."""
        failed = self._failed.setdefault(batch.model, [])
        if sample.error is None:
            failed.clear()
            return
        failed.append(batch.prompt_id)
        if not self.run.keep_errors and len(failed) >= MOST_FAILURES and len(set(failed)) > 2:
            raise OvertonError(
                f"The last {len(failed)} samples of the system {batch.system!r} all failed "
                f"({sample.error.rstrip('.')}): mend that, and the same specification goes on."
            )


def _head(cell: Cell) -> dict[str, Any]:
    place = {
        "cell": cell.key,
        "system": cell.system.name,
        "prompt_id": cell.prompt.prompt_id,
        "context": cell.context,
    }
    sampling = cell.system.sampling.as_dict()
    return {**place, "sampling": sampling, "model": cell.system.identity, "revision": cell.revision}
