"""Encoding on a Ray cluster: each worker holds the encoder; the vectors come back and are stored here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Event

from core.distributed.cluster import connected
from core.distributed.options import RayOptions, require_ray
from core.distributed.streaming import WorkersDied, results
from core.distributed.worker import Fatal, Worker, fetch_if_missing, here
from core.errors import OvertonError
from core.vectors.encoders import DEFAULT_ID, Encoder, Floats, Progress, SentenceTransformerEncoder

_TRIES = 3  # in a row in which nothing came

Encoded = tuple[int, Floats, list[int]]  # number of the batch, its vectors, the parts of its texts


class EncodeWorker(Worker):
    """Makes its encoder with the first batch and keeps it. `key` is the one under which the vectors are stored."""

    def __init__(self, make: Callable[[], Encoder], model: str, key: str, cpus: int) -> None:
        super().__init__(cpus)
        self.make, self.model, self.key = make, model, key
        self._made: Encoder | None = None

    def work(self, item: tuple[int, list[str]]) -> Iterator[Encoded | Fatal]:
        """Yield (number of the batch, vectors, parts) for a numbered batch of texts."""
        number, texts = item
        try:
            if self._made is None:
                fetch_if_missing(self.model)
                made = self.make()
                if made.key != self.key:
                    raise OvertonError(f"The encoder is {made.key} and not {self.key}: put the same files there.")
                self._made = made
            yield number, self._made.encode(texts), self._made.parts(texts)
        except OvertonError as error:
            yield here(error)


class RayEncoder:
    """An `Encoder` whose batches go to a cluster (see `core.vectors.vectors_for`); single texts are encoded here.

    `make` makes the encoder, in every worker anew; it must give one with the same key everywhere. Raises
    `OvertonError` where Ray is not installed.
    """

    def __init__(
        self,
        model: str | Path = DEFAULT_ID,
        *,
        make: Callable[[], Encoder] | None = None,
        options: RayOptions | None = None,
    ) -> None:
        require_ray()
        self.options = (options or RayOptions.from_environment()).check()
        self._model = str(model)
        self._make: Callable[[], Encoder] = make or partial(SentenceTransformerEncoder, str(model))
        self._here = self._make()
        self.key = self._here.key

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._here.dimension

    @property
    def max_tokens(self) -> int | None:
        """Number of tokens that are read at once; None where there is no limit."""
        return self._here.max_tokens

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Vectors of unit length, shape (len(texts), dimension), made in this process."""
        return self._here.encode(texts, progress=progress)

    def parts(self, texts: Sequence[str]) -> list[int]:
        """In how many parts each text is read."""
        return self._here.parts(texts)

    def encode_batches(self, batches: Sequence[Sequence[str]], cancel: Event) -> Iterator[Encoded]:
        """Yield the vectors of each batch once, in any order, as they are made; ends soon after `cancel` is set."""
        cluster = connected(self.options, cancel)
        left, tries = dict(enumerate(batches)), 0
        while cluster is not None and left and not cancel.is_set():
            before = len(left)
            items = [(number, list(texts)) for number, texts in left.items()]
            try:
                for made in results(items, EncodeWorker, (self._make, self._model, self.key), cluster, cancel):
                    if left.pop(made[0], None) is not None:
                        yield made
            except WorkersDied:
                tries = 0 if len(left) < before else tries + 1
                if tries >= _TRIES:
                    raise
