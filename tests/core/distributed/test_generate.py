"""The engine `ray` on a real cluster of two workers: what it gives, loses and repeats."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from core import bulk, demo
from core.bulk.journal import journal_of, sample_rows
from core.bulk.ray_engine import RayEngine
from core.distributed import RayOptions
from core.generation import pool
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC
from tests.core.generation.real import folder_of

ROOT = Path(__file__).resolve().parents[3]
FIELDS = ["response_id", "text", "finish_reason", "token_count", "seed", "error"]
LONG = SPEC.replace("samples = 3", "samples = 12", 1)


def finish(run: bulk.BulkRun, seconds: float = 90) -> bulk.BulkRun:
    assert run.job.thread is not None
    run.job.thread.join(seconds)
    assert run.job.state == "done", run.job.error
    return run


def wait_for(what: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.02)


def actors() -> list[psutil.Process]:
    return [p for p in psutil.process_iter() if "GenerateWorker" in " ".join(cmdline(p))]


def cmdline(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def addresses(workspace: Workspace) -> list[tuple[Any, ...]]:
    rows = sample_rows(journal_of(workspace, "trial"))
    return [(row["system"], row["prompt_id"], row["sample"]) for row in rows]


def local(text: str, tmp_path: Path) -> Any:
    """What the local engine makes of a specification."""
    workspace = Workspace(tmp_path / "local", shipped=tmp_path / "none")
    run = finish(bulk.start(bulk.load_spec(text), workspace), 240)
    assert run.dataset is not None
    return workspace.load(run.dataset)


@pytest.mark.usefixtures("fakes")
def test_the_same_samples_as_the_local_engine(two_workers: RayOptions, workspace: Workspace, tmp_path: Path) -> None:
    run = finish(bulk.start(bulk.load_spec(SPEC), workspace, engine=RayEngine(two_workers)))
    assert run.dataset is not None and run.engine == "ray" and run.progress.errors == 0
    made, wanted = workspace.load(run.dataset), local(SPEC, tmp_path)
    assert made.responses[FIELDS].equals(wanted.responses[FIELDS])
    assert made.contexts.equals(wanted.contexts)


@pytest.mark.usefixtures("fakes")
def test_a_worker_that_dies_loses_and_doubles_nothing(
    two_workers: RayOptions, workspace: Workspace, tmp_path: Path
) -> None:
    run = bulk.start(bulk.load_spec(LONG), workspace, engine=RayEngine(two_workers))
    wait_for(lambda: run.progress.made >= 5)
    victims = actors()
    assert len(victims) == 2, "both workers have an actor"
    victims[0].send_signal(signal.SIGKILL)
    finish(run)
    assert len(addresses(workspace)) == len(set(addresses(workspace))) == run.progress.total
    assert workspace.load("trial").responses[FIELDS].equals(local(LONG, tmp_path).responses[FIELDS])


@pytest.mark.usefixtures("fakes")
def test_it_stops_within_a_second_and_goes_on(two_workers: RayOptions, workspace: Workspace) -> None:
    run = bulk.start(bulk.load_spec(LONG), workspace, engine=RayEngine(two_workers))
    wait_for(lambda: run.progress.made >= 3)
    run.stop()
    assert run.job.thread is not None
    run.job.thread.join(1)
    assert run.job.state == "stopped"
    kept = len(addresses(workspace))
    wait_for(lambda: not actors(), 10)
    rest = finish(bulk.start(bulk.load_spec(LONG), workspace, engine=RayEngine(two_workers)))
    assert kept >= 3 and (rest.progress.reused, rest.progress.made) == (kept, rest.progress.total - kept)


@pytest.mark.usefixtures("fakes")
def test_it_stops_while_the_workers_start(two_workers: RayOptions, workspace: Workspace) -> None:
    run = bulk.start(bulk.load_spec(SPEC), workspace, engine=RayEngine(two_workers))
    wait_for(lambda: "starting" in run.job.what)
    run.stop()
    assert run.job.thread is not None
    run.job.thread.join(1)
    assert run.job.state == "stopped" and run.progress.made == 0


@pytest.mark.usefixtures("fakes")
def test_a_driver_that_is_killed_loses_only_what_is_in_flight(
    two_workers: RayOptions, workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "spec.toml").write_text(LONG)
    command = [
        sys.executable,
        "-m",
        "core",
        "--workspace",
        str(workspace.root),
        "generate",
        str(tmp_path / "spec.toml"),
    ]
    command += ["--engine", "ray", "--ray-address", two_workers.address, "--ray-workers", "2"]
    driver = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
    wait_for(lambda: len(addresses(workspace)) >= 4)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait(10)
    kept = len(addresses(workspace))
    rest = finish(bulk.start(bulk.load_spec(LONG), workspace, engine=RayEngine(two_workers)))
    assert (rest.progress.reused, rest.progress.made) == (kept, rest.progress.total - kept)
    assert len(addresses(workspace)) == len(set(addresses(workspace)))
    assert workspace.load("trial").responses[FIELDS].equals(local(LONG, tmp_path).responses[FIELDS])


def test_files_that_differ_on_a_worker_are_one_sentence(
    two_workers: RayOptions, workspace: Workspace, fakes: dict[str, Any]
) -> None:
    fakes["fake"].revision = "fake-2"
    run = bulk.start(bulk.load_spec(SPEC), workspace, engine=RayEngine(two_workers))
    assert run.job.thread is not None
    run.job.thread.join(60)
    assert run.job.state == "failed" and "planned for fake-2" in str(run.job.error)
    assert "On the node" in str(run.job.error) and addresses(workspace) == []


@pytest.mark.slow
def test_real_models_give_the_same_texts_and_log_probabilities(
    two_workers: RayOptions, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_of(demo.BASE_MODEL)
    monkeypatch.setattr(pool, "_BUILT", {})
    text = SPEC[: SPEC.index('[[system]]\nname = "examples"')].replace('"fake"', f'"{demo.BASE_MODEL}"')
    text = text.replace("[[prompt]]", "[sampling]\nmax_new_tokens = 24\n[[prompt]]", 1)
    finish(bulk.start(bulk.load_spec(text), workspace, engine=RayEngine(two_workers)), 240)
    assert workspace.load("trial").responses[FIELDS].equals(local(text, tmp_path).responses[FIELDS])
    there, here = (
        {(r["prompt_id"], r["sample"]): r["tokens"] for r in sample_rows(journal_of(own, "trial"))}
        for own in (workspace, Workspace(tmp_path / "local", shipped=tmp_path / "none"))
    )
    assert there == here, "the number of threads does not change a number"
