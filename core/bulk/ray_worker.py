"""The worker of a bulk run on Ray: one model in one actor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.bulk.planning import Batch
from core.bulk.reading import make_ready
from core.distributed.worker import Fatal, Worker, fetch_if_missing, here
from core.errors import OvertonError
from core.generation import pool, vllm_generator
from core.generation.base import Generator, Sample


class GenerateWorker(Worker):
    """Builds its model with the first batch and keeps it. `revision` is the one that the plan was made for."""

    def __init__(self, model: str, revision: str, backend: str, cpus: int) -> None:
        super().__init__(cpus)
        self.model, self.revision, self.backend = model, revision, backend
        self._made: Generator | None = None

    def work(self, item: tuple[int, Batch]) -> Iterator[tuple[int, Sample] | Fatal]:
        """Yield (number of the batch, sample) for a numbered batch; what fails in it are errors of its samples."""
        number, batch = item
        try:
            made = self._ready()
        except OvertonError as error:
            yield here(error)
            return
        lacking = set(range(len(batch.seeds)))
        try:
            for sample in made.generate(batch.context, batch.seeds, batch.sampling):
                lacking.discard(sample.index)
                yield number, sample
        except Exception as error:  # memory, a driver, a library: the other batches may still work
            sentence = str(error) if isinstance(error, OvertonError) else f"{type(error).__name__}: {error!s:.300}"
            for place in sorted(lacking):
                yield number, Sample(place, "", "error", 0, batch.seeds[place], error=sentence)

    def _ready(self) -> Generator:
        if self._made is None:
            made = self._build()
            if made.revision != self.revision:
                raise OvertonError(
                    f"{self.model} has the revision {made.revision}, but the run was planned for {self.revision}: "
                    "put the same files on every machine."
                )
            self._made = made
        return self._made

    def _build(self) -> Generator:
        fetch_if_missing(self.model)
        make_ready(self.model)
        if pool.is_built(self.model):
            return pool.generator(self.model)
        if self.backend == "vllm" or (self.backend == "auto" and vllm_generator.usable()):
            made: Any = vllm_generator.VllmGenerator(self.model)
            pool.use_generator(self.model, made)
        return pool.generator(self.model)
