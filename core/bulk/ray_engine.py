"""The engine `ray`: the batches of a plan on a Ray cluster, each worker with one model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from threading import Event

from core import jobs
from core.bulk.engines import Done, LocalEngine, OnGrowth
from core.bulk.planning import Batch
from core.bulk.ray_worker import GenerateWorker
from core.bulk.reading import reader_of
from core.bulk.together import together
from core.distributed.cluster import Cluster, connected
from core.distributed.options import RayOptions, require_ray
from core.distributed.streaming import WorkersDied, results
from core.generation.endpoints import is_server

_TRIES = 3  # in a row in which nothing came


class RayEngine:
    """Local models on the workers of a cluster, one model after another; servers are asked from here.

    Raises `OvertonError` where Ray is not installed.
    """

    name = "ray"

    def __init__(self, options: RayOptions | None = None) -> None:
        require_ray()
        self.options = (options or RayOptions.from_environment()).check()

    def run(
        self, batches: Sequence[Batch], job: jobs.Job, *, owner: str = "", on_growth: OnGrowth | None = None
    ) -> Iterator[Done]:
        """See `core.bulk.engines.Engine.run`; samples are told when they are finished, not while they grow."""
        here = [batch for batch in batches if is_server(batch.model)]
        there = [batch for batch in batches if not is_server(batch.model)]
        streams: list[Callable[[Event], Iterator[Done]]] = []
        if there:
            streams.append(lambda cancel: self._on_cluster(there, job, cancel))
        if here:
            streams.append(
                lambda cancel: LocalEngine().run(here, replace(job, cancel=cancel), owner=owner, on_growth=on_growth)
            )
        if streams:
            yield from together(streams, job.cancel)

    def _on_cluster(self, batches: Sequence[Batch], job: jobs.Job, cancel: Event) -> Iterator[Done]:
        job.what = "connecting to the Ray cluster"
        cluster = connected(self.options, cancel)
        if cluster is None:  # stopped meanwhile
            return
        for _, own in groupby(batches, key=lambda batch: batch.model):
            yield from self._one_model(spread(list(own), cluster.workers), cluster, job, cancel)

    def _one_model(self, batches: list[Batch], cluster: Cluster, job: jobs.Job, cancel: Event) -> Iterator[Done]:
        """All samples of one model. What was lost with a worker is made again, unless nothing comes any more."""
        model, tries = batches[0].model, 0
        revision = reader_of(model).revision
        while batches and not cancel.is_set():
            job.what = f"starting {cluster.workers} Ray workers with {model}"
            come: set[tuple[int, int]] = set()
            numbered = list(enumerate(batches))
            arguments = (model, revision, self.options.backend)
            try:
                for number, sample in results(numbered, GenerateWorker, arguments, cluster, cancel):
                    job.what = f"{model} on {cluster.workers} Ray workers"
                    if (number, sample.index) not in come:  # a batch that was begun twice gives a sample once
                        come.add((number, sample.index))
                        yield Done(batches[number], sample)
            except WorkersDied:
                if not come and tries + 1 >= _TRIES:
                    raise
            tries = 0 if come else tries + 1
            if tries >= _TRIES:
                return
            batches = [left for number, batch in numbered if (left := _without(batch, number, come)) is not None]


def _without(batch: Batch, number: int, come: set[tuple[int, int]]) -> Batch | None:
    """What a batch still lacks; None where that is nothing."""
    places = [place for place in range(len(batch.seeds)) if (number, place) not in come]
    return _part(batch, places) if places else None


def _part(batch: Batch, places: Sequence[int]) -> Batch:
    samples, seeds = (tuple(values[place] for place in places) for values in (batch.samples, batch.seeds))
    return replace(batch, samples=samples, seeds=seeds)


def spread(batches: list[Batch], workers: int) -> list[Batch]:
    """Batches in smaller parts where there are fewer than workers, so that each worker has something to do."""
    pieces = -(-workers // len(batches))
    return [
        _part(batch, range(len(batch.seeds))[k::pieces])
        for batch in batches
        for k in range(min(pieces, len(batch.seeds)))
    ]
