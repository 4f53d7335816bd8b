"""A small bulk run with the real base model and the real aligned one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from core import bulk, demo
from core.generation import pool
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC
from tests.core.generation.real import folder_of

pytestmark = pytest.mark.slow


@pytest.fixture
def text(monkeypatch: pytest.MonkeyPatch) -> str:
    """Two prompts x (base, aligned) x two samples of twelve tokens."""
    for model in (demo.BASE_MODEL, demo.ALIGNED_MODEL):
        folder_of(model)
    monkeypatch.setattr(pool, "_BUILT", {})
    first, _, rest = SPEC.partition('[[system]]\nname = "examples"')
    aligned = rest[rest.index("[[system]]") :]
    text = (first + aligned).replace("samples = 3", "samples = 2", 1)
    text = text.replace('"fake chat"', f'"{demo.ALIGNED_MODEL}"').replace('"fake"', f'"{demo.BASE_MODEL}"')
    return text.replace("[[prompt]]", "[sampling]\nmax_new_tokens = 12\n[[prompt]]", 1)


def test_two_real_models_make_a_dataset_and_the_same_again(
    text: str, workspace: Workspace, go: Callable[..., bulk.BulkRun]
) -> None:
    run = bulk.start(bulk.load_spec(text), workspace)
    assert run.job.thread is not None
    run.job.thread.join(240)
    assert run.job.state == "done", run.job.error
    data = workspace.load("trial")
    assert len(data.responses) == 8 and data.usable.all()
    assert set(data.responses["finish_reason"]) <= {"stop", "length"}
    contexts = data.contexts.set_index(["system", "prompt_id"])["text"]
    assert "How do I make tea?" in contexts["aligned", "tea"] and "<|im_start|>" in contexts["aligned", "tea"]
    again = go(text)
    assert again.was_there and again.progress.made == 0
    run.journal.path.unlink()
    anew = bulk.start(bulk.load_spec(text), workspace)
    assert anew.job.thread is not None
    anew.job.thread.join(240)
    assert anew.was_there, "the same specification gives the same texts"
