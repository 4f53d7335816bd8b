"""Work in the background: a thread, a progress, a way to stop it. Knows nothing of the page that polls it."""

from __future__ import annotations

import heapq
import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from core.errors import OvertonError

log = logging.getLogger(__name__)


@dataclass
class Job:
    """One piece of work. `state` is queued, running, done, stopped or failed; `error` is one sentence.

    `done` of `total` units are finished (`total` 0 = unknown); `what` says what is being done now.
    """

    title: str
    lane: str
    state: str = "queued"
    what: str = ""
    done: int = 0
    total: int = 0
    error: str | None = None
    result: Any = None
    started: float | None = None
    ended: float | None = None
    cancel: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = field(default=None, repr=False)

    @property
    def over(self) -> bool:
        """Whether it has ended, one way or another."""
        return self.state in ("done", "stopped", "failed")

    @property
    def seconds(self) -> float:
        """Seconds since it began to run."""
        return 0.0 if self.started is None else (self.ended or time.monotonic()) - self.started

    @property
    def remaining(self) -> float | None:
        """Estimated seconds that are left; None while that cannot be said."""
        if not self.done or not self.total or self.over:
            return None
        return self.seconds / self.done * (self.total - self.done)

    def progress(self, what: str, done: int, total: int) -> None:
        """Report progress; fits the callbacks of `core.models.fetch` and others."""
        self.what, self.done, self.total = what, done, total

    def stop(self) -> None:
        """Ask it to stop; it ends at its next step, or leaves the queue."""
        self.cancel.set()


class _Lane:
    """One at a time, owners in turn: a ticket lock whose waiting jobs can leave.

    Next comes the oldest job of the owner who was served least recently, so that one visitor's many jobs do not keep
    the others waiting.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._waiting: dict[int, str] = {}  # owner by ticket, oldest first
        self._holder: int | None = None
        self._tickets = itertools.count()
        self._served: dict[str, int] = {}
        self._places: dict[int, int] = {}  # by ticket; 0 is next

    def _line_up(self) -> None:
        """Say who comes when; done once for every change, since all who wait ask for their place all the time."""
        tickets: dict[str, deque[int]] = {}
        for ticket, owner in self._waiting.items():
            tickets.setdefault(owner, deque()).append(ticket)
        heads = [(self._served.get(owner, -1), own.popleft(), owner) for owner, own in tickets.items()]
        heapq.heapify(heads)
        now = max(self._served.values(), default=0)
        self._places = {}
        while heads:
            _, ticket, owner = heapq.heappop(heads)
            now += 1
            self._places[ticket] = len(self._places)
            if tickets[owner]:
                heapq.heappush(heads, (now, tickets[owner].popleft(), owner))

    def enter(self, job: Job, owner: str) -> int | None:
        """Wait for the lane; None where the job was asked to stop before its turn came."""
        with self._turn:
            ticket = next(self._tickets)
            self._waiting[ticket] = owner
            self._line_up()
            while self._holder is not None or self._places[ticket]:
                if job.cancel.is_set():
                    del self._waiting[ticket]
                    self._line_up()
                    self._turn.notify_all()
                    return None
                before = self._places[ticket] + (self._holder is not None)
                job.what = f"waiting, {before} before this one"
                self._turn.wait(0.2)
            del self._waiting[ticket]
            self._holder = ticket
            self._served[owner] = max(self._served.values(), default=0) + 1
            self._line_up()
            return ticket

    def leave(self) -> None:
        """Let the next one in."""
        with self._turn:
            self._holder = None
            if not self._waiting:
                self._served.clear()  # nobody waits, so nobody is owed a turn
            self._turn.notify_all()


_LANES: dict[str, _Lane] = {}
_LANES_LOCK = threading.Lock()


def _lane(name: str) -> _Lane:
    with _LANES_LOCK:
        return _LANES.setdefault(name, _Lane())


@contextmanager
def turn(lane: str, job: Job, *, owner: str = "") -> Iterator[bool]:
    """Hold a lane for one stretch of a longer job that runs elsewhere; False where the job was stopped while waiting.

    Long jobs take a turn for each batch, so that others get in between.
    """
    queue = _lane(lane)
    if queue.enter(job, owner) is None:
        yield False
        return
    try:
        yield True
    finally:
        queue.leave()


def start(title: str, work: Callable[[Job], Any], *, lane: str, owner: str = "") -> Job:
    """Run `work(job)` in a thread. Its return value is `job.result`.

    Jobs of one lane run one after another; where several owners (visitors) wait, they take turns.
    """
    job = Job(title, lane)
    queue = _lane(lane)

    def run() -> None:
        if queue.enter(job, owner) is None:
            job.state = "stopped"
            return
        try:
            job.state, job.started = "running", time.monotonic()
            job.result = work(job)
            job.state = "stopped" if job.cancel.is_set() else "done"
        except OvertonError as error:
            job.error, job.state = str(error), "stopped" if job.cancel.is_set() else "failed"
        except Exception as error:  # a thread has nobody above it: the page must still be told
            log.exception("the job %r failed", title)
            job.error = f"{title} failed ({type(error).__name__}); the log of the server has the details."
            job.state = "failed"
        finally:
            job.ended = time.monotonic()
            queue.leave()

    job.thread = threading.Thread(target=run, name=f"job {title}", daemon=True)
    job.thread.start()
    return job
