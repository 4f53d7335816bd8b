"""Specifications with the generators that need no model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from core import bulk
from core.bulk import reading
from core.generation import pool
from core.generation.fake import FakeGenerator
from core.workspace import Workspace

SPEC = """
name = "trial"
seed = 7
samples = 3
[[prompt]]
id = "tea"
text = "How do I make tea?"
[[prompt]]
id = "bike"
text = "My bike squeaks. Why?"
kind = "open"
[[system]]
name = "base"
model = "fake"
strategy = "zero-shot"
[[system]]
name = "examples"
model = "fake"
strategy = "fixed examples"
sampling = { temperature = 0.5 }
[[system]]
name = "aligned"
model = "fake chat"
strategy = "chat"
samples = 2
"""


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The models in memory, by id: a base and a chat model that only pretend."""
    built: dict[str, Any] = {"fake": FakeGenerator(), "fake chat": FakeGenerator(model="fake chat", chat=True)}
    monkeypatch.setattr(pool, "_BUILT", built)
    monkeypatch.setattr(reading, "_READERS", {})
    monkeypatch.setenv("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # the command sets it, and later tests count such bars
    return built


@pytest.fixture
def go(workspace: Workspace) -> Callable[..., bulk.BulkRun]:
    """Run a specification to its end."""

    def act(text: str = SPEC, **options: Any) -> bulk.BulkRun:
        run = bulk.start(bulk.load_spec(text), workspace, **options)
        assert run.job.thread is not None
        run.job.thread.join(30)
        assert run.over
        return run

    return act
