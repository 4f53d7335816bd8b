"""What stands beside Generate while a model is being loaded, and after it has left the memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from streamlit.testing.v1 import AppTest

from components import fetching, lab_history
from core import demo, jobs
from core.generation import pool


def _page() -> None:
    from typing import Any

    from components import lab_history
    from core import demo, lab
    from core.generation.base import Sampling

    loaded: Any = None
    lab_history.controls(loaded, lab.Spec("p", "Why?", "Why?", demo.BASE_MODEL, "zero-shot", (1, 2), Sampling()))


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """A base model that is being loaded until the event is set."""
    loaded = threading.Event()
    job = jobs.start("Loading", lambda job: loaded.wait(20), lane="load it")
    monkeypatch.setattr(pool, "_BUILT", {})
    monkeypatch.setattr(fetching, "missing", lambda *_: [])
    monkeypatch.setattr(lab_history, "_keep", lambda loaded: None)
    monkeypatch.setattr(lab_history, "_warming", lambda: {demo.BASE_MODEL: job, lab_history.vectors.DEFAULT_ID: job})
    yield loaded
    loaded.set()
    assert job.thread is not None
    job.thread.join(10)


def said(app: AppTest) -> str:
    assert not app.exception and len(app.button) == 1
    return " ".join(caption.value for caption in app.caption)


def test_a_model_that_has_left_the_memory_is_not_said_to_be_loading(loading: threading.Event) -> None:
    app = AppTest.from_function(_page).run()
    assert "Loading" in said(app)
    loading.set()
    thread = lab_history._warming()[demo.BASE_MODEL].thread
    assert thread is not None
    thread.join(10)
    assert "Loading" not in said(app.run())
