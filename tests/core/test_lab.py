"""Runs of the Lab: on disk before they are shown, kept, saved into a derived dataset, one model for all."""

from __future__ import annotations

import threading
import time
from typing import Any

import pandas as pd
import pytest

from core import lab, vectors
from core.dataset import Dataset
from core.errors import OvertonError
from core.generation.base import Sampling
from core.generation.fake import FakeGenerator
from core.generation.journal import Journal
from core.prompting import STOP, Example
from core.workspace import Workspace


def spec(n: int = 4, **changes: Any) -> lab.Spec:
    values: dict[str, Any] = {
        "prompt_id": "tea",
        "prompt": "How do I make tea?",
        "context": "# Query:\n```\nHow do I make tea?\n```\n\n# Answer:\n```\n",
        "model": "fake",
        "strategy": "zero-shot",
        "seeds": tuple(range(n)),
        "sampling": Sampling(stop=STOP),
        "examples": (Example("q", "a"),),
        "hint": "",
    }
    return lab.Spec(**{**values, **changes})


def finish(run: lab.Run) -> lab.Run:
    assert run.job is not None and run.job.thread is not None
    run.job.thread.join(20)
    assert run.job.over
    return run


def fake(delay: float = 0.0) -> Any:
    made = FakeGenerator(delay=delay)
    return lambda model: made


def test_a_run_is_kept_and_read_again(workspace: Workspace) -> None:
    run = finish(lab.start_run(workspace, spec(), build=fake()))
    assert [s.index for s in run.finished()] == [0, 1, 2, 3]
    (again,) = lab.load_runs(workspace)
    assert again.spec == run.spec
    assert again.samples == run.samples
    assert (again.run_id, again.revision) == (run.run_id, "fake-1")


def test_the_same_specification_gives_the_same_samples(workspace: Workspace) -> None:
    one = finish(lab.start_run(workspace, spec(), build=fake()))
    two = finish(lab.start_run(workspace, spec(), build=fake()))
    assert one.samples == two.samples
    assert len(set(lab.fresh_seeds(50))) == 50


def test_every_sample_is_on_disk_before_it_is_shown(workspace: Workspace) -> None:
    run = lab.start_run(workspace, spec(3), build=fake(0.02))
    seen = 0
    while run.job is not None and not run.job.over:
        shown = len(run.samples)
        on_disk = sum(len(r.samples) for r in lab.load_runs(workspace))
        assert on_disk >= shown
        seen = max(seen, shown)
        time.sleep(0.01)
    assert seen > 0
    assert len(lab.load_runs(workspace)[0].samples) == 3


def test_stop_ends_within_two_seconds_and_keeps_the_samples(workspace: Workspace) -> None:
    run = lab.start_run(workspace, spec(6), build=fake(0.05))
    while len(run.samples) < 1:
        time.sleep(0.01)
    before = dict(run.samples)
    assert run.job is not None
    run.job.stop()
    asked = time.monotonic()
    finish(run)
    assert time.monotonic() - asked < 2
    assert run.job.state == "stopped"
    assert all(run.samples[index] == sample for index, sample in before.items())


def test_a_failure_leaves_the_finished_samples(workspace: Workspace) -> None:
    class Breaks(FakeGenerator):
        def generate(self, *args: Any, **kwargs: Any) -> Any:
            made = super().generate(*args, **kwargs)
            yield next(made)
            raise OvertonError("The model ran out of memory: ask for fewer samples.")

    run = finish(lab.start_run(workspace, spec(), build=lambda model: Breaks()))
    assert run.job is not None and run.job.error == "The model ran out of memory: ask for fewer samples."
    assert len(run.samples) == 1
    assert len(lab.load_runs(workspace)[0].samples) == 1


def test_a_full_disk_is_one_sentence_and_what_was_kept_stays(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Journal.append
    written: list[Any] = []

    def append(self: Journal, row: Any) -> None:
        if len(written) == 3:
            raise OSError(28, "No space left on device", str(self.path))
        written.append(row)
        usual(self, row)

    monkeypatch.setattr(Journal, "append", append)
    run = finish(lab.start_run(workspace, spec(), build=fake()))
    assert run.job is not None and run.job.state == "failed"
    assert "no space left on device" in str(run.job.error)
    assert len(run.samples) == len(lab.load_runs(workspace)[0].samples) == 2


def test_a_context_that_does_not_fit_is_one_sentence(workspace: Workspace) -> None:
    run = finish(lab.start_run(workspace, spec(), build=lambda model: FakeGenerator(limit=5)))
    assert run.job is not None and "at most 5" in str(run.job.error)
    with pytest.raises(OvertonError, match="temperature"):
        lab.start_run(workspace, spec(sampling=Sampling(temperature=9)), build=fake())


def test_vectors_follow_the_samples_and_are_stored(workspace: Workspace) -> None:
    encoder = vectors.HashEncoder()
    run = finish(lab.start_run(workspace, spec(), build=fake(), encoder=encoder))
    deadline = time.monotonic() + 10
    while len(run.vectors) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set(run.vectors) == {0, 1, 2, 3}
    assert run.vectors[0] == pytest.approx(encoder.encode([run.samples[0].text.strip()])[0])
    keys = list(vectors.keys_of(pd.Series([run.samples[0].text.strip()])))
    assert keys[0] in vectors.VectorStore(vectors.store_file(workspace)).get(encoder.key, keys)


def test_a_damaged_run_is_passed_over(workspace: Workspace) -> None:
    finish(lab.start_run(workspace, spec(), build=fake()))
    (workspace.folder("runs") / "99999999-000000-bad.jsonl").write_text("not json\n", encoding="utf-8")
    (workspace.folder("runs") / "99999998-000000-old.jsonl").write_text('{"run": "x"}\n', encoding="utf-8")
    assert len(lab.load_runs(workspace)) == 1


def test_a_run_becomes_a_system_of_a_derived_dataset(workspace: Workspace, small: Dataset) -> None:
    workspace.save(small)
    run = finish(lab.start_run(workspace, spec(strategy="fixed examples"), build=fake()))
    saved = lab.save_run(workspace, run, small, system="with examples", name="small + lab")
    again = workspace.load("small + lab")
    assert again.roles()["with examples"] == "in-context"
    mine = again.responses[again.responses["system"] == "with examples"]
    assert mine["text"].tolist() == [s.text for s in run.finished()]
    assert mine["seed"].tolist() == [0, 1, 2, 3]
    assert again.contexts["text"].tolist() == [run.spec.context]
    assert workspace.load("small").roles() == small.roles(), "the original does not change"
    assert saved.meta["derived_from"] == "small"
    with pytest.raises(OvertonError, match="already"):
        lab.save_run(workspace, run, small, system="plain", name="other")
    with pytest.raises(OvertonError, match="already there"):
        lab.save_run(workspace, run, small, system="more", name="small + lab")


def test_a_prompt_of_ones_own_is_added_to_the_derived_dataset(workspace: Workspace, small: Dataset) -> None:
    own = lab.own_prompt_id("Why?")
    run = finish(lab.start_run(workspace, spec(prompt_id=own, prompt="Why?"), build=fake()))
    derived = lab.save_run(workspace, run, small, system="lab", name="derived")
    assert derived.prompt_text(own) == "Why?"


def test_a_run_is_not_taken_for_another_prompt_of_the_same_id(workspace: Workspace, small: Dataset) -> None:
    run = finish(lab.start_run(workspace, spec(prompt="What is in the tea chest?"), build=fake()))
    assert not lab.answers(run, small, "tea")
    derived = lab.save_run(workspace, run, small, system="lab", name="derived")
    mine = derived.responses[derived.responses["system"] == "lab"]["prompt_id"].unique().tolist()
    assert [derived.prompt_text(p) for p in mine] == ["What is in the tea chest?"]
    assert derived.prompt_text("tea") == "How do I make tea?"


def test_stopped_samples_are_not_saved(workspace: Workspace, small: Dataset) -> None:
    run = lab.start_run(workspace, spec(6), build=fake(0.03))
    while len(run.samples) < 2:
        time.sleep(0.01)
    assert run.job is not None
    run.job.stop()
    finish(run)
    ended = [s.text for s in run.finished() if s.finish_reason != "cancelled"]
    assert len(ended) < len(run.samples)
    derived = lab.save_run(workspace, run, small, system="lab", name="derived")
    assert derived.responses.loc[derived.responses["system"] == "lab", "text"].tolist() == ended


def test_stop_does_not_wait_for_a_model_that_loads(workspace: Workspace) -> None:
    go_on = threading.Event()

    def build(model: str) -> FakeGenerator:
        go_on.wait(20)
        return FakeGenerator()

    run = lab.start_run(workspace, spec(), build=build)
    time.sleep(0.1)
    assert run.job is not None
    run.job.stop()
    asked = time.monotonic()
    finish(run)
    assert time.monotonic() - asked < 2 and run.job.state == "stopped"
    go_on.set()


def test_vectors_of_an_earlier_run_are_remembered(workspace: Workspace) -> None:
    encoder = vectors.HashEncoder()
    run = finish(lab.start_run(workspace, spec(), build=fake(), encoder=encoder))
    deadline = time.monotonic() + 10
    while len(run.vectors) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    (again,) = lab.load_runs(workspace)
    assert again.vectors == {}
    lab.recall_vectors(workspace, again, encoder.key)
    assert set(again.vectors) == {0, 1, 2, 3}
    assert again.vectors[2] == pytest.approx(run.vectors[2], abs=2e-3)


def test_nothing_to_save_is_said(workspace: Workspace, small: Dataset) -> None:
    run = lab.Run("r", spec(), "2030-01-01")
    with pytest.raises(OvertonError, match="No sample is finished"):
        lab.save_run(workspace, run, small, system="x", name="y")
