"""What runs inside an actor: it holds its model and turns pieces of work into results, one by one."""

from __future__ import annotations

import os
import pickle
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.errors import OvertonError


@dataclass(frozen=True)
class Fatal:
    """A result that ends the whole work: the sentence that says why."""

    sentence: str


class Worker:
    """Base of the workers: Ray Data makes one in each actor and calls it with tables of pickled work."""

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self._share_set = False

    def __call__(self, table: Any) -> Iterator[dict[str, list[bytes]]]:
        """Yield each result at once, as a table of one row."""
        if not self._share_set:
            set_threads(self.cpus)
            self._share_set = True
        for item in table.column("row").to_pylist():
            for result in self.work(pickle.loads(item)):
                yield {"row": [pickle.dumps(result)]}

    def work(self, item: Any) -> Iterator[Any]:
        """The results of one piece of work, or `Fatal`."""
        raise NotImplementedError


def set_threads(cpus: int) -> None:
    """Let the numerical libraries use a worker's share of its machine."""
    os.environ["OMP_NUM_THREADS"] = str(cpus)
    try:
        import torch
    except ImportError:  # servers and the fake models need none
        return
    torch.set_num_threads(cpus)


def here(error: OvertonError) -> Fatal:
    """An error of this node that ends the work, with the name of the node."""
    return Fatal(f"On the node {platform.node()}: {error}")


def fetch_if_missing(model: str) -> None:
    """Fetch a model of the catalogue onto this node. Raises `OvertonError` where that fails."""
    from core import models

    if model not in models.catalogue() or models.local_folder(model) is not None:
        return
    try:
        models.fetch(model)
    except OvertonError:
        if models.local_folder(model) is None:  # else another worker of this node was faster
            raise
