"""Work through Ray Data: pieces go to a pool of actors, results come back one by one as they are made."""

from __future__ import annotations

import logging
import pickle
import threading
import warnings
from collections.abc import Iterator, Sequence
from queue import Empty, Full, Queue
from threading import Event
from typing import Any

from core.distributed.cluster import Cluster
from core.distributed.worker import Fatal, Worker
from core.errors import OvertonError

_RETRIES = 3  # of one piece of work whose actor has died
_PATIENCE = 0.3  # seconds to wait for the end, which goes on in the background


class WorkersDied(OvertonError):
    """Ray gave up: an actor died again and again. What has come is good, the rest can be tried again."""


_END = object()
_CONTEXT = threading.Lock()  # the settings of Ray Data are global


def results(
    items: Sequence[Any], worker: type[Worker], arguments: tuple[Any, ...], cluster: Cluster, cancel: Event
) -> Iterator[Any]:
    """What `worker(*arguments, cpus)` yields for each item, in any order, as it is made.

    Ends within a second of `cancel`, or when it is closed; the actors are then killed. Raises the sentence of a
    `Fatal`, and `WorkersDied`.
    """
    dataset = _dataset(items, worker, arguments, cluster)
    halt, box = Event(), Queue[Any](maxsize=64)
    # The public iterators show their executor only after the first result, which may take minutes, and leave a
    # thread behind.
    executor = dataset._create_executor()
    thread = threading.Thread(target=_read, args=(dataset, executor, halt, box), daemon=True, name="ray results")
    thread.start()
    try:
        while not cancel.is_set():
            try:
                found = box.get(timeout=0.05)
            except Empty:
                continue
            if found is _END:
                return
            if isinstance(found, Fatal):
                raise OvertonError(found.sentence)
            if isinstance(found, BaseException):
                raise WorkersDied(_why(found)) from found
            yield found
    finally:
        halt.set()
        ending = threading.Thread(target=_end, args=(executor, thread), daemon=True, name="ray end")
        ending.start()
        ending.join(_PATIENCE)


def _dataset(items: Sequence[Any], worker: type[Worker], arguments: tuple[Any, ...], cluster: Cluster) -> Any:
    import ray.data

    for name in ("ray.data", "ray"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = ray.data.DataContext.get_current().copy()
    context.enable_progress_bars = False
    # Every result is a block of its own, so that none waits for the next one.
    context.target_max_block_size = context.target_min_block_size = 1
    rows = [{"row": pickle.dumps(item)} for item in items]
    blocks = min(len(rows), 1000 * cluster.workers)
    with _CONTEXT, ray.data.DataContext.current(context), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of options that a later release takes in another way
        dataset = ray.data.from_items(rows, override_num_blocks=blocks)
        return dataset.map_batches(
            worker,
            fn_constructor_args=(*arguments, cluster.cpus),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=cluster.workers, max_tasks_in_flight_per_actor=1),
            num_cpus=cluster.cpus,
            num_gpus=cluster.gpus,
            max_task_retries=_RETRIES,
        )


def _read(dataset: Any, executor: Any, halt: Event, box: Queue[Any]) -> None:
    """Put all results into the box, then an end or what went wrong."""
    import ray

    try:
        for bundle in dataset._build_bundle_iterator(executor):
            for table in ray.get(list(bundle.block_refs)):
                for row in table.column("row").to_pylist():
                    _put(pickle.loads(row), halt, box)
            if halt.is_set():
                return
        _put(_END, halt, box)
    except BaseException as error:  # raised again where somebody reads
        _put(error, halt, box)


def _put(item: Any, halt: Event, box: Queue[Any]) -> None:
    while not halt.is_set():
        try:
            box.put(item, timeout=0.1)
            return
        except Full:
            continue


def _end(executor: Any, thread: threading.Thread) -> None:
    """Kill the actors and wait for the thread; before it has begun to work there is nothing to kill."""
    while thread.is_alive():
        executor.shutdown(force=True)
        thread.join(0.1)


def _why(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"The Ray workers cannot go on ({type(error).__name__}: {(lines or ['no reason given'])[0]:.200})."
