"""Bulk runs on servers: keys stay out of every file, failures are counted, and a server may die and come back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core import bulk
from core.generation import endpoints
from core.workspace import Workspace
from tests.core.generation.hostile import Request, Server, polite, serving

PROMPTS = "".join(f'[[prompt]]\nid = "p{k}"\ntext = "Question {k}?"\n' for k in range(10))
KEY = "sk-never-on-disk-1234567890"

Run = Callable[..., bulk.BulkRun]


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


@pytest.fixture
def run(server: Server, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ten prompts x three samples on the server, to the end."""
    monkeypatch.setenv("BULK_KEY", KEY)
    monkeypatch.setattr(endpoints, "_SECRETS", [])

    def act(**options: Any) -> bulk.BulkRun:
        table = f'url = "{server.url}"\nmodel = "m"\nretries = 0\ntimeout = 5.0\nkey_env = "BULK_KEY"\n'
        system = f'[[system]]\nname = "served"\nstrategy = "zero-shot"\n[system.server]\n{table}'
        spec = bulk.load_spec(f'name = "served"\nsamples = 3\n{PROMPTS}{system}', folder=tmp_path)
        made = bulk.start(spec, workspace, **options)
        assert made.job.thread is not None
        made.job.thread.join(60)
        assert made.over
        return made

    return act


def broken(request: Request) -> None:
    request.refuse(500, "out of order")


def test_an_inline_server_makes_a_dataset_and_its_key_is_in_no_file(
    server: Server, workspace: Workspace, run: Run
) -> None:
    def slow(request: Request) -> None:
        time.sleep(0.05)
        polite(request)

    server.does(slow)
    made = run()
    assert made.job.state == "done", made.job.error
    data = workspace.load("served")
    assert len(data.responses) == 30 and data.usable.all() and server.most_at_once > 3
    for row in data.responses.to_dict("records"):
        assert row["text"] == f"one two {row['seed']} three"
    assert data.systems["model"][0] == f"m at {server.url}"
    assert any(KEY in request.headers.get("authorization", "") for request in server.requests)
    files = [path for path in workspace.root.rglob("*") if path.is_file()]
    assert files and not any(KEY.encode() in path.read_bytes() for path in files)


def test_failed_samples_are_counted_and_asked_for_again(server: Server, workspace: Workspace, run: Run) -> None:
    server.does(*[polite, broken] * 4, polite)
    first = run()
    assert (first.job.state, first.progress.errors) == ("done", 4)
    assert workspace.load("served").responses["error"].notna().sum() == 4
    server.requests.clear()
    second = run()
    assert (second.progress.made, second.progress.errors, len(server.requests)) == (4, 0, 4)


def test_a_server_that_dies_ends_the_run_and_the_rest_comes_later(
    server: Server, workspace: Workspace, run: Run
) -> None:
    server.does(*[polite] * 5, broken)
    first = run()
    assert first.job.state == "failed" and "all failed" in str(first.job.error) and first.dataset is None
    server.does(polite)
    second = run()
    assert second.job.state == "done" and second.progress.reused >= 5
    assert workspace.load("served").usable.all()


def test_a_refused_context_spoils_only_its_own_samples(server: Server, workspace: Workspace, run: Run) -> None:
    def picky(request: Request) -> None:
        if "Question 7?" in request.body["prompt"]:
            request.refuse(400, "maximum context length is 4 tokens", code="context_length_exceeded")
        else:
            polite(request)

    server.does(picky)
    made = run()
    assert made.job.state == "done", made.job.error
    failed = workspace.load("served").responses.dropna(subset=["error"])
    assert list(failed["prompt_id"]) == ["p7"] * 3


def test_a_server_that_refuses_the_key_ends_the_run_at_once(server: Server, run: Run) -> None:
    server.does(lambda request: request.refuse(401, "bad key"))
    made = run()
    assert made.job.state == "failed" and len(server.requests) <= 30
    assert KEY not in str(made.job.error)
