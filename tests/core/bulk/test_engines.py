"""The local engine: servers are asked for several batches at once, local models for one, and no thread stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Any

import pytest

from core import bulk, jobs
from core.bulk.together import together
from core.errors import OvertonError, TooLong
from core.generation.base import Sample, Sampling
from core.generation.fake import FakeGenerator
from core.workspace import Workspace

PROMPTS = "".join(f'[[prompt]]\nid = "p{k}"\ntext = "{k}?"\n' for k in range(12))
SYSTEM = '[[system]]\nname = "{}"\nmodel = "{}"\nstrategy = "zero-shot"\n'


class Watched(FakeGenerator):
    """Knows how many calls were going on at once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.now = self.most = 0
        self.breaks = False

    def generate(self, context: str, seeds: Sequence[int], sampling: Sampling, **options: Any) -> Iterator[Sample]:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            if self.breaks:
                raise OvertonError("The server wants a key.")
            yield from super().generate(context, seeds, sampling, **options)
        finally:
            self.now -= 1


@pytest.fixture
def served(fakes: dict[str, Any]) -> tuple[Watched, Watched]:
    fakes["fake"] = Watched(delay=0.002)
    fakes["server:there"] = Watched(model="server:there", delay=0.002)
    return fakes["fake"], fakes["server:there"]


@pytest.fixture
def spec() -> bulk.Spec:
    systems = SYSTEM.format("here", "fake") + SYSTEM.format("there", "server:there")
    return bulk.load_spec(f'name = "both"\nsamples = 2\n{PROMPTS}{systems}')


def end(run: bulk.BulkRun) -> bulk.BulkRun:
    assert run.job.thread is not None
    run.job.thread.join(30)
    assert run.over
    return run


def test_servers_are_asked_at_once_and_local_models_in_turn(
    workspace: Workspace, served: tuple[Watched, Watched], spec: bulk.Spec
) -> None:
    run = end(bulk.start(spec, workspace))
    assert run.job.state == "done" and run.progress.made == 48
    assert (served[0].most, served[1].most > 1) == (1, True)
    assert not workspace.load("both").responses.duplicated(["system", "prompt_id", "sample"]).any()


def test_stop_and_failure_leave_no_thread(
    workspace: Workspace, served: tuple[Watched, Watched], spec: bulk.Spec
) -> None:
    before = threading.active_count()
    run = bulk.start(spec, workspace)
    while run.progress.made < 5:
        time.sleep(0.005)
    run.stop()
    assert end(run).job.state == "stopped" and threading.active_count() == before
    served[1].breaks = True
    run = end(bulk.start(spec, workspace))
    assert (run.job.state, run.job.error) == ("failed", "The server wants a key.")
    assert threading.active_count() == before
    served[1].breaks = False
    rest = end(bulk.start(spec, workspace))
    assert rest.job.state == "done" and rest.progress.reused >= 5


def test_a_context_that_the_server_cannot_read_costs_its_own_samples_only(
    workspace: Workspace, served: tuple[Watched, Watched], spec: bulk.Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is the first that the server is asked: nothing has worked there yet."""
    usual = served[1].generate

    def refusing(context: str, seeds: Sequence[int], *rest: Any, **options: Any) -> Iterator[Sample]:
        if "\n0?" in context:
            raise TooLong("there reads at most 512 tokens.")
        return usual(context, seeds, *rest, **options)

    monkeypatch.setattr(served[1], "generate", refusing)
    run = end(bulk.start(spec, workspace))
    assert run.job.state == "done" and run.dataset is not None
    rows = workspace.load(run.dataset).responses
    wrong = rows[rows["error"].notna()]
    assert set(wrong["system"]) == {"there"} and set(wrong["error"]) == {"there reads at most 512 tokens."}
    assert 0 < len(wrong) < (rows["system"] == "there").sum()


def test_visitors_take_turns_at_a_local_model(workspace: Workspace, served: tuple[Watched, Watched]) -> None:
    text = f"samples = 2\n{PROMPTS}" + SYSTEM.format("here", "fake")
    runs = [bulk.start(bulk.load_spec(f'name = "{k}"\n{text}'), workspace, owner=str(k)) for k in range(3)]
    others = [jobs.start("a look", lambda job: None, lane="model fake", owner="lab")]
    for run in runs:
        assert end(run).job.state == "done"
    assert served[0].most == 1 and others[0].state == "done"


def test_streams_end_when_nobody_reads_on() -> None:
    ended: list[int] = []

    def stream(k: int) -> Any:
        def run(halt: Event) -> Iterator[int]:
            number = 0
            while not halt.is_set():
                yield number
                number += 1
            ended.append(k)

        return run

    before = threading.active_count()
    reading = together([stream(0), stream(1)], Event())
    assert next(reading) == 0
    reading.close()
    assert threading.active_count() == before


def test_streams_run_to_their_end() -> None:
    found = sorted(together([lambda halt: iter(range(100)), lambda halt: iter(range(100, 300))], Event()))
    assert found == list(range(300))


def test_what_other_streams_had_ready_is_kept_when_one_fails() -> None:
    paid = Event()

    def fails(halt: Event) -> Iterator[int]:
        yield 1
        paid.wait(5)
        raise OvertonError("refused")

    def slow(halt: Event) -> Iterator[int]:
        paid.set()
        assert halt.wait(5), "it is told that another one has failed"
        yield 2  # finished all the same

    found: list[int] = []
    with pytest.raises(OvertonError, match="refused"):
        for one in together([fails, slow], Event()):
            found.append(one)
    assert sorted(found) == [1, 2]


def test_a_slow_reader_still_gets_all_that_was_ready_when_it_was_stopped() -> None:
    made: list[int] = []

    def stream(halt: Event) -> Iterator[int]:
        while not halt.is_set():
            made.append(0)
            yield 0

    cancel, found = Event(), 0
    for _ in together([stream] * 16, cancel):
        if not found:
            cancel.set()
            time.sleep(0.3)  # the queue is full, and all streams wait to put something
        found += 1
        time.sleep(0.03)
    assert found == len(made)
