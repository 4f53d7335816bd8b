"""Engines: what carries out the batches of a plan. Each is one class and one line in `ENGINES`."""

from __future__ import annotations

import importlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Protocol

from core import jobs
from core.bulk.planning import Batch
from core.bulk.reading import make_ready
from core.bulk.together import together
from core.errors import OvertonError, TooLong
from core.generation import pool
from core.generation.base import Sample
from core.generation.endpoints import is_server


@dataclass(frozen=True)
class Done:
    """One finished sample: `sample.index` is its place in `batch.samples`."""

    batch: Batch
    sample: Sample


AT_ONCE = 8  # batches of one server at a time

# Called with (batch, place in the batch, text so far, tokens so far) while a sample grows; engines may leave it out.
OnGrowth = Callable[[Batch, int, str, int], None]


class Engine(Protocol):
    """Carries out batches. It writes nothing: each `Done` is in the journal before the next one is asked for."""

    name: str

    def run(
        self, batches: Sequence[Batch], job: jobs.Job, *, owner: str = "", on_growth: OnGrowth | None = None
    ) -> Iterator[Done]:
        """Yield samples as they finish, in any order; end soon after `job.cancel` is set.

        A sample that fails is yielded with an `error`. Raises `OvertonError` where nothing can go on, for instance
        where a model cannot be loaded. `job.what` says what is being done.
        """
        ...


class LocalEngine:
    """The generators of this process: local models one batch after another, each in its turn in the model's queue.

    Servers are asked meanwhile, each for several batches at once, within the concurrency of its endpoint.
    """

    name = "local"

    def __init__(self) -> None:
        self._worked: set[str] = set()  # servers that have given at least one sample

    def run(
        self, batches: Sequence[Batch], job: jobs.Job, *, owner: str = "", on_growth: OnGrowth | None = None
    ) -> Iterator[Done]:
        """See `Engine.run`."""
        queues: dict[str, deque[Batch]] = {}
        for batch in batches:
            queues.setdefault(batch.model if is_server(batch.model) else "", deque()).append(batch)

        def stream(waiting: deque[Batch], lane: str) -> Callable[[Event], Iterator[Done]]:
            return lambda cancel: self._stream(waiting, lane, cancel, job, owner, on_growth)

        streams = []
        for model, waiting in queues.items():
            places = min(AT_ONCE, len(waiting)) if model else 1
            streams += [stream(waiting, f" {k}" if model else "") for k in range(places)]
        if streams:
            yield from together(streams, job.cancel)

    def _stream(
        self, waiting: deque[Batch], lane: str, cancel: Event, job: jobs.Job, owner: str, on_growth: OnGrowth | None
    ) -> Iterator[Done]:
        """Work off a queue, which other streams may share."""
        while not cancel.is_set():
            try:
                batch = waiting.popleft()
            except IndexError:
                return
            with jobs.turn(pool.lane(batch.model) + lane, job, owner=owner) as mine:
                if not mine or cancel.is_set():
                    return
                with pool.hold(batch.model):
                    yield from self._batch(batch, cancel, job, on_growth)

    def _batch(self, batch: Batch, cancel: Event, job: jobs.Job, on_growth: OnGrowth | None) -> Iterator[Done]:
        make_ready(batch.model, batch.server)
        if not pool.is_built(batch.model):
            job.what = f"loading {batch.model}"
        made = pool.generator(batch.model)
        job.what = f"{batch.system}, prompt {batch.prompt_id}"

        def grow(place: int, text: str, tokens: int) -> None:
            if on_growth is not None:
                on_growth(batch, place, text, tokens)

        lacking = set(range(len(batch.seeds)))
        try:
            for sample in made.generate(batch.context, batch.seeds, batch.sampling, cancel=cancel, on_text=grow):
                lacking.discard(sample.index)
                if sample.error is None:
                    self._worked.add(batch.model)
                yield Done(batch, sample)
        except OvertonError as error:
            # A server that works otherwise refuses this context, or is gone: the driver counts failures in a row.
            works = is_server(batch.model) and batch.model in self._worked
            if not works and not isinstance(error, TooLong):
                raise
            for place in sorted(lacking):
                yield Done(batch, Sample(place, "", "error", 0, batch.seeds[place], error=str(error)))


# Module and class by name: an engine is imported when it is asked for.
ENGINES = {"local": ("core.bulk.engines", "LocalEngine"), "ray": ("core.bulk.ray_engine", "RayEngine")}


def engine_named(name: str | Engine) -> Engine:
    """An engine by name; one that is made already is given back.

    Raises `OvertonError` for an unknown one, or one that is not installed.
    """
    if not isinstance(name, str):
        return name
    if name not in ENGINES:
        raise OvertonError(f"There is no engine {name!r}: take one of {', '.join(ENGINES)}.")
    module, made = ENGINES[name]
    try:
        loaded: Engine = getattr(importlib.import_module(module), made)()
    except ImportError as error:
        raise OvertonError(
            f"The engine {name!r} is not installed here: see docs/generate.md, or leave out --engine."
        ) from error
    return loaded
