"""Many visitors, many stops, a disk that is full: nothing lost, nothing twice, no thread left."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from core import bulk, lab
from core.generation import pool
from core.generation.base import Sample, Sampling
from core.generation.fake import FakeGenerator
from core.generation.journal import Journal
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC
from tests.core.test_lab import finish, spec


class Alone(FakeGenerator):
    """Slow, and knows whether two callers were ever inside at once."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.inside = threading.Semaphore(1)
        self.together = False

    def generate(self, context: str, seeds: Sequence[int], sampling: Sampling, **options: Any) -> Iterator[Sample]:
        mine = self.inside.acquire(blocking=False)
        self.together |= not mine
        try:
            yield from super().generate(context, seeds, sampling, **options)
        finally:
            if mine:
                self.inside.release()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Alone:
    made = Alone(delay=0.002)
    monkeypatch.setattr(pool, "_BUILT", {"fake": made, "fake chat": Alone(model="fake chat", chat=True)})
    return made


def kept(workspace: Workspace, run: lab.Run) -> list[Sample]:
    """The samples that a run has on disk."""
    rows = Journal(workspace.root / "runs" / f"{run.run_id}.jsonl")
    return [Sample.from_dict(row["sample"]) for row in rows if "sample" in row]


def settled(before: int) -> bool:
    """Whether the threads that came since are gone; they may take a moment."""
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    return threading.active_count() <= before


def test_twenty_visitors_at_once_each_get_their_samples(workspace: Workspace, slow: Alone) -> None:
    before = threading.active_count()
    runs: list[lab.Run] = []
    together = threading.Barrier(20)

    def visit(k: int) -> None:
        together.wait(10)
        for _ in range(2):
            runs.append(lab.start_run(workspace, spec(3, seeds=(k, k + 100, k + 200)), owner=f"visitor {k}"))

    visitors = [threading.Thread(target=visit, args=(k,)) for k in range(20)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(10)
    assert len(runs) == 40
    for run in runs:
        assert run.job is not None and run.job.thread is not None
        run.job.thread.join(60)
        assert run.job.state == "done", run.job.error
        assert sorted(s.seed for s in kept(workspace, run)) == sorted(run.spec.seeds)
        assert kept(workspace, run) == sorted(run.finished(), key=lambda s: s.index)
    assert not slow.together, "the model was asked by two at once"
    assert settled(before)
    first = sorted(runs, key=lambda run: run.job.started or 0 if run.job else 0)[:20]
    assert len({run.spec.seeds[0] for run in first}) >= 19, "nobody is served twice before all were served once"


def test_a_storm_of_stops_loses_nothing_and_leaves_nothing(workspace: Workspace, slow: Alone) -> None:
    before, chance = threading.active_count(), random.Random(5)
    runs = []
    for _ in range(40):
        run = lab.start_run(workspace, spec(6), owner=str(chance.randrange(4)))
        runs.append(run)
        time.sleep(chance.choice((0, 0, 0.001, 0.01)))
        for victim in chance.sample(runs, min(len(runs), chance.randrange(3))):
            assert victim.job is not None
            victim.job.stop()
    for run in runs[:-1]:
        assert run.job is not None
        run.job.stop()
    asked = time.monotonic()
    for run in runs:
        finish(run)
    assert time.monotonic() - asked < 5
    last = runs[-1]
    assert last.job is not None and last.job.state in ("done", "stopped")
    for run in runs:
        assert run.job is not None and run.job.state in ("done", "stopped")
        assert [s.index for s in kept(workspace, run)] == list(dict.fromkeys(s.index for s in kept(workspace, run)))
        assert {s.index: s for s in kept(workspace, run)} == run.samples
    after = finish(lab.start_run(workspace, spec(2)))
    assert len(after.samples) == 2, "the queue goes on after the storm"
    assert settled(before)


def test_a_bulk_run_stopped_again_and_again_makes_every_sample_once(workspace: Workspace, slow: Alone) -> None:
    before, chance = threading.active_count(), random.Random(6)
    text = SPEC.replace("samples = 3", "samples = 8")
    for _ in range(12):
        run = bulk.start(bulk.load_spec(text), workspace)
        time.sleep(chance.uniform(0, 0.08))
        run.stop()
        assert run.job.thread is not None
        run.job.thread.join(10)
        assert run.over
    run = bulk.start(bulk.load_spec(text), workspace)
    assert run.job.thread is not None
    run.job.thread.join(60)
    assert run.job.state == "done" and run.dataset is not None
    rows = [row for row in run.journal if "sample" in row]
    times = Counter((row["system"], row["prompt_id"], row["sample"]) for row in rows)
    assert len(times) == 2 * (8 + 8 + 2) and set(times.values()) == {1}
    assert len(workspace.load(run.dataset).responses) == len(times)
    assert settled(before)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 kB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=48k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small file system, which a full disk is tried on")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_one_sentence_and_what_was_written_counts(tiny_disk: Path, slow: Alone) -> None:
    slow.delay = 0
    workspace = Workspace(tiny_disk / "w", shipped=tiny_disk / "none")
    text = SPEC.replace("samples = 3", "samples = 100")
    run = bulk.start(bulk.load_spec(text), workspace)
    assert run.job.thread is not None
    run.job.thread.join(60)
    assert run.job.state == "failed" and "make room" in str(run.job.error)
    made = run.progress.made
    assert made > 20
    subprocess.run(["mount", "-o", "remount,size=8m", str(tiny_disk)], check=True)
    again = bulk.start(bulk.load_spec(text), workspace)
    assert again.job.thread is not None
    again.job.thread.join(60)
    assert again.job.state == "done", again.job.error
    assert again.progress.reused >= made - 1, "only the row that found no room may be missing"
    assert again.progress.made == again.progress.total - again.progress.reused
    lab_run = finish(lab.start_run(workspace, spec(2)))
    assert lab_run.job is not None and lab_run.job.state == "done"
    filler = tiny_disk / "filler"
    with pytest.raises(OSError, match="No space"):
        filler.write_bytes(b"x" * (16 << 20))
    full = finish(lab.start_run(workspace, spec(2)))
    assert full.job is not None and full.job.state == "failed"
    assert full.job.error is not None and "Traceback" not in full.job.error
