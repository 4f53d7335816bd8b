"""A bulk run in the background: plan, generate what is missing, write each sample down, make the dataset."""

from __future__ import annotations

import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

from core import jobs
from core.bulk.engines import Engine, engine_named
from core.bulk.journal import journal_of, locked, sample_row, sample_rows
from core.bulk.planning import Batch, Plan, plan
from core.bulk.progress import Progress, counts_of
from core.bulk.result import assemble, save
from core.bulk.spec import Spec
from core.generation.journal import Journal
from core.workspace import Workspace


@dataclass
class BulkRun:
    """One run: its job (state, `what`, error), live progress, and at the end the name of the dataset."""

    spec: Spec
    journal: Journal
    engine: str
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
    engine: str = "local",
    keep_errors: bool = False,
    skip_too_long: bool = False,
    owner: str = "",
) -> BulkRun:
    """Begin, or go on with, the run of a specification in the background.

    Raises `OvertonError` for an unknown engine and where a run of this name is going on, here or in another process.
    Everything later is in `run.job.error`.
    """
    made = engine_named(engine)
    run = BulkRun(spec, journal_of(workspace, spec.name), engine)
    workspace.folder("runs")
    held = ExitStack()
    held.enter_context(locked(run.journal))

    def work(job: jobs.Job) -> None:
        with held:
            run.job = job
            job.what = "reading the contexts"
            options: dict[str, Any] = {"keep_errors": keep_errors, "skip_too_long": skip_too_long}
            _fetch(spec, job)
            run.plan = plan(spec, workspace, cancelled=job.cancel.is_set, **options)
            _generate(run, made, job, owner)
            if job.cancel.is_set():
                return
            job.what = "writing the dataset"
            complete = assemble(run.plan, sample_rows(run.journal), engine=engine)
            run.dataset, run.was_there = save(workspace, *complete)

    run.job = jobs.start(f"{spec.name}", work, lane=f"bulk {run.journal.path}", owner=owner)
    return run


def _fetch(spec: Spec, job: jobs.Job) -> None:
    """Fetch the models of the catalogue that are not here yet."""
    from core import models

    for model in dict.fromkeys(system.model for system in spec.systems):
        if model in models.catalogue() and models.local_folder(model) is None:
            models.fetch(model, progress=job.progress, cancel=job.cancel)


def _generate(run: BulkRun, engine: Engine, job: jobs.Job, owner: str) -> None:
    """Write every sample of the engine into the journal, before anything else happens to it."""
    plan = run.plan
    assert plan is not None
    cells = [
        (c.system.name, c.system.samples, len(plan.missing[c.system.name, c.prompt.prompt_id])) for c in plan.cells
    ]
    run.progress.begin(plan.total, plan.total - plan.lacking, plan.left, counts_of(cells))
    run.progress.errors = plan.errors_kept + sum(cell.system.samples for cell in plan.too_long)
    job.progress("generating", run.progress.done, plan.total)
    begun: set[str] = set()
    last = time.monotonic()

    def grow(batch: Batch, place: int, text: str, tokens: int) -> None:
        run.progress.grow((batch.system, batch.prompt_id, batch.samples[place]), tokens)

    with closing(engine.run(plan.batches(), job, owner=owner, on_growth=grow)) as finished:  # type: ignore[type-var]
        for done in finished:
            if done.sample.finish_reason == "cancelled":
                continue
            batch, cell = done.batch, plan.cell(done.batch.system, done.batch.prompt_id)
            if cell.key not in begun:
                begun.add(cell.key)
                run.journal.append(_head(batch, cell.key, cell.revision))
            now, number = time.monotonic(), batch.samples[done.sample.index]
            key, place = cell.key_of(number), (batch.system, batch.prompt_id)
            run.journal.append(sample_row(key, *place, number, done.sample, now - last))
            last = now
            run.progress.add((*place, number), done.sample.token_count, error=done.sample.error is not None)
            job.done = run.progress.done
    run.progress.ended = time.monotonic()


def _head(batch: Batch, key: str, revision: str) -> dict[str, Any]:
    place = {"cell": key, "system": batch.system, "prompt_id": batch.prompt_id, "context": batch.context}
    return {**place, "sampling": batch.sampling.as_dict(), "model": batch.model, "revision": revision}
