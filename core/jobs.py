"""Work in the background: a thread, a progress, a way to stop it. Knows nothing of the page that polls it."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable
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
    """First come, first served: a ticket lock whose waiting jobs can leave."""

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._waiting: list[int] = []
        self._tickets = itertools.count()

    def enter(self, job: Job) -> int | None:
        with self._turn:
            ticket = next(self._tickets)
            self._waiting.append(ticket)
            while self._waiting[0] != ticket and not job.cancel.is_set():
                job.what = f"waiting, {self._waiting.index(ticket)} before this one"
                self._turn.wait(0.2)
            if self._waiting[0] != ticket:
                self._waiting.remove(ticket)
                return None
            return ticket

    def leave(self, ticket: int) -> None:
        with self._turn:
            self._waiting.remove(ticket)
            self._turn.notify_all()


_LANES: dict[str, _Lane] = {}
_LANES_LOCK = threading.Lock()


def start(title: str, work: Callable[[Job], Any], *, lane: str) -> Job:
    """Run `work(job)` in a thread; jobs of one lane run one after another. Its return value is `job.result`."""
    job = Job(title, lane)
    with _LANES_LOCK:
        queue = _LANES.setdefault(lane, _Lane())

    def run() -> None:
        ticket = queue.enter(job)
        if ticket is None:
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
            queue.leave(ticket)

    job.thread = threading.Thread(target=run, name=f"job {title}", daemon=True)
    job.thread.start()
    return job
