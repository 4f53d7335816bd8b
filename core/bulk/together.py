"""Several streams of work at once, as one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, Full, Queue
from threading import Event
from typing import Generic, TypeVar

T = TypeVar("T")


class _Ended(Generic[T]):
    """A stream has come to its end, or broken off with an error."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def together(streams: Sequence[Callable[[Event], Iterator[T]]], cancel: Event) -> Iterator[T]:
    """What all streams yield, each running in a thread of its own; a single one runs in this thread.

    A stream is called with an event on which it should end: it is set after `cancel`, when another stream has failed
    (its error is raised here, after what the others had ready), and when nobody reads on. No thread is left behind.
    """
    if len(streams) == 1:
        yield from streams[0](cancel)
        return
    halt, alone, box = Event(), Event(), Queue[T | _Ended[T]](maxsize=64)
    threads = [threading.Thread(target=_fill, args=(stream, halt, alone, box), daemon=True) for stream in streams]
    try:
        for thread in threads:
            thread.start()
        running, failed = len(threads), list[BaseException]()
        while running:
            if cancel.is_set():
                halt.set()
            try:
                item = box.get(timeout=0.1)
            except Empty:
                continue
            if not isinstance(item, _Ended):
                yield item
                continue
            running -= 1
            if item.error is not None:
                failed.append(item.error)
                halt.set()
        if failed:
            raise failed[0]
    finally:
        halt.set()
        alone.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()


def _fill(stream: Callable[[Event], Iterator[T]], halt: Event, alone: Event, box: Queue[T | _Ended[T]]) -> None:
    error: BaseException | None = None
    try:
        for item in stream(halt):
            if not _put(item, alone, box):
                return
    except BaseException as raised:  # raised again where somebody reads
        error = raised
    _put(_Ended(error), alone, box)


def _put(item: T | _Ended[T], alone: Event, box: Queue[T | _Ended[T]]) -> bool:
    """Put an item, unless nobody takes it any more: a reader may be slow after a stop, and still reads all."""
    while True:
        try:
            box.put(item, timeout=0.1)
        except Full:
            if alone.is_set():
                return False
        else:
            return True
