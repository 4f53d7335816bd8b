"""Background work: progress, stopping, failures, and lanes."""

from __future__ import annotations

import threading
import time

from core import jobs
from core.errors import OvertonError


def ended(job: jobs.Job) -> jobs.Job:
    assert job.thread is not None
    job.thread.join(10)
    assert job.over
    return job


def test_a_job_gives_its_result_and_progress() -> None:
    def work(job: jobs.Job) -> str:
        job.progress("half", 1, 2)
        return "made"

    job = ended(jobs.start("try", work, lane="t1"))
    assert (job.state, job.result, job.done, job.total, job.error) == ("done", "made", 1, 2, None)
    assert job.remaining is None


def test_a_failure_is_one_sentence() -> None:
    def expected(job: jobs.Job) -> None:
        raise OvertonError("The disk is full.")

    def unexpected(job: jobs.Job) -> None:
        raise ValueError("secret details")

    assert ended(jobs.start("a", expected, lane="t2")).error == "The disk is full."
    job = ended(jobs.start("Baking", unexpected, lane="t2"))
    assert job.state == "failed"
    assert job.error is not None and "Baking failed (ValueError)" in job.error and "secret" not in job.error


def test_a_lane_runs_one_at_a_time_in_order() -> None:
    order: list[int] = []
    inside = threading.Semaphore(1)

    def work(job: jobs.Job, k: int) -> None:
        assert inside.acquire(blocking=False), "two jobs of one lane ran at once"
        time.sleep(0.02)
        order.append(k)
        inside.release()

    started = [jobs.start(str(k), lambda job, k=k: work(job, k), lane="t3") for k in range(5)]
    for job in started:
        assert ended(job).state == "done"
    assert order == list(range(5))


def test_lanes_do_not_wait_for_each_other() -> None:
    release = threading.Event()
    slow = jobs.start("slow", lambda job: release.wait(10), lane="t4")
    assert ended(jobs.start("quick", lambda job: 1, lane="t5")).result == 1
    release.set()
    ended(slow)


def test_a_waiting_job_says_its_place_and_can_leave() -> None:
    release = threading.Event()
    first = jobs.start("first", lambda job: release.wait(10), lane="t6")
    while first.state != "running":
        time.sleep(0.005)
    ran: list[int] = []
    waiting = jobs.start("second", lambda job: ran.append(1), lane="t6")
    deadline = time.monotonic() + 5
    while "waiting" not in waiting.what and time.monotonic() < deadline:
        time.sleep(0.005)
    assert waiting.what == "waiting, 1 before this one"
    waiting.stop()
    assert ended(waiting).state == "stopped"
    release.set()
    assert ended(first).state == "done"
    assert ran == []
    assert ended(jobs.start("third", lambda job: 3, lane="t6")).result == 3


def test_stop_is_seen_by_the_work() -> None:
    def work(job: jobs.Job) -> int:
        while not job.cancel.wait(0.005):
            job.done += 1
        return job.done

    job = jobs.start("loop", work, lane="t7")
    time.sleep(0.05)
    job.stop()
    assert ended(job).state == "stopped"
    assert job.result > 0


def test_owners_take_turns_in_a_lane() -> None:
    release = threading.Event()
    order: list[str] = []
    first = jobs.start("first", lambda job: release.wait(10), lane="t7", owner="ann")
    while first.state != "running":
        time.sleep(0.005)
    started = []
    for name, owner in (("ann 2", "ann"), ("ann 3", "ann"), ("ben 1", "ben"), ("ann 4", "ann"), ("ben 2", "ben")):
        started.append(jobs.start(name, lambda job, name=name: order.append(name), lane="t7", owner=owner))
        while "waiting" not in started[-1].what:
            time.sleep(0.005)
    time.sleep(0.5)
    assert [job.what for job in started] == [f"waiting, {k} before this one" for k in (2, 4, 1, 5, 3)]
    release.set()
    for job in started:
        ended(job)
    assert order == ["ben 1", "ann 2", "ben 2", "ann 3", "ann 4"]


def test_a_long_queue_moves_on_quickly() -> None:
    release = threading.Event()
    first = jobs.start("first", lambda job: release.wait(10), lane="t9")
    while first.state != "running":
        time.sleep(0.005)
    waiting = [jobs.start(str(k), lambda job: None, lane="t9", owner=f"visitor {k % 20}") for k in range(200)]
    began = time.monotonic()
    release.set()
    for job in waiting:
        assert job.thread is not None
        job.thread.join(60)
    assert {job.state for job in waiting} == {"done"}
    assert time.monotonic() - began < 4


def test_a_long_job_takes_a_turn_for_each_batch_and_lets_others_in_between() -> None:
    order: list[str] = []
    second = threading.Event()

    def long(job: jobs.Job) -> None:
        for k in range(3):
            with jobs.turn("t8", job, owner="bulk") as mine:
                assert mine
                order.append(f"batch {k}")
                if k == 0:
                    second.set()
                    while "waiting" not in quick.what:
                        time.sleep(0.005)

    def begin() -> jobs.Job:
        second.wait(5)
        return jobs.start("quick", lambda job: order.append("quick"), lane="t8", owner="visitor")

    bulk = jobs.Job("bulk", "elsewhere")
    thread = threading.Thread(target=long, args=(bulk,))
    quick = jobs.Job("not begun", "t8")
    thread.start()
    quick = begin()
    thread.join(10)
    ended(quick)
    assert order == ["batch 0", "quick", "batch 1", "batch 2"]
    bulk.stop()
    release = threading.Event()
    holder = jobs.start("holder", lambda job: release.wait(10), lane="t8")
    while holder.state != "running":
        time.sleep(0.005)
    with jobs.turn("t8", bulk) as mine:
        assert not mine
    release.set()
    ended(holder)
