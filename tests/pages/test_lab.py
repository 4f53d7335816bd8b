"""Lab: editing, generating with the fake generator, keeping what was edited."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from components import fetching, preparing
from core import lab, vectors
from core.dataset import Dataset
from core.generation import pool
from core.generation.fake import FakeGenerator
from core.workspace import Workspace

Open = Callable[..., AppTest]


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the model nor the encoder is real here, nor fetched."""
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    monkeypatch.setenv("OVERTON_FAKE_GENERATOR", "1")
    monkeypatch.setattr(pool, "_BUILT", {})
    monkeypatch.setattr(preparing, "encoder", lambda: encoder)
    real = fetching.missing
    monkeypatch.setattr(fetching, "missing", lambda *ids: [m for m in real(*ids) if m != vectors.DEFAULT_ID])


def context(app: AppTest) -> str:
    return app.code[0].value


def run_until_over(app: AppTest) -> AppTest:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        run = app.session_state["lab_run"]
        if run.job.over and len(run.vectors) == len(run.samples):
            return app.run()
        time.sleep(0.05)
    raise AssertionError("the run did not end")


def test_the_exact_context_follows_the_edits(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    assert context(app).count("# Query:") == 4
    assert context(app).endswith("How do I make tea?\n```\n\n# Answer:\n```")
    first = next(iter(app.session_state["lab_examples"]))
    app.checkbox(key=f"{first} on").uncheck().run()
    assert context(app).count("# Query:") == 3
    app.text_area(key="hint tea").set_value("use a pot").run()
    assert context(app).count("# Hint:") == 3
    app.button(key=f"{first} Remove").click().run()
    assert len(app.session_state["lab_examples"]) == 2
    assert not app.exception


def test_examples_can_be_edited_moved_and_added(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    one, two, _ = list(app.session_state["lab_examples"])
    app.button(key=f"{one} Edit").click().run()
    app.text_area(key=f"{one} query").set_value("What is new?").run()
    assert "What is new?" in context(app)
    app.button(key=f"{one} Move down").click().run()
    assert list(app.session_state["lab_examples"])[:2] == [two, one]
    app.button(key=f"{one} Move up").click().run()
    next(b for b in app.button if b.label == "Add an example").click().run()
    assert len(app.session_state["lab_examples"]) == 4
    next(b for b in app.button if b.label == "Back to the shipped ones").click().run()
    assert len(app.session_state["lab_examples"]) == 3 and "What is new?" not in context(app)


def test_edits_survive_a_page_switch(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    one = next(iter(app.session_state["lab_examples"]))
    app.text_area(key="hint tea").set_value("use a pot").run()
    app.checkbox(key=f"{one} on").uncheck().run()
    app.slider(key="lab_samples").set_value(3).run()
    app.switch_page("pages/about.py").run()
    app.switch_page("pages/lab.py").run()
    assert app.text_area(key="hint tea").value == "use a pot"
    assert app.checkbox(key=f"{one} on").value is False
    assert app.slider(key="lab_samples").value == 3
    assert any(b.label == "Generate 3" for b in app.button)


def test_a_run_generates_and_is_saved(open_app: Open, with_vectors: Dataset, space: Workspace) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    app.slider(key="lab_samples").set_value(3).run()
    next(b for b in app.button if b.label == "Generate 3").click().run()
    app = run_until_over(app)
    assert "3 samples" in app.success[0].value
    run = app.session_state["lab_run"]
    texts = [t.value for t in app.text]
    assert [s.text for s in run.finished() if s.text not in texts] == [], texts
    new = [t for t in json.loads(app.get("plotly_chart")[0].proto.spec)["data"] if t["name"] == "new"]
    assert len(new[0]["x"]) == 3, "every sample is a star on the map"
    assert len(lab.load_runs(space)) == 1
    app.form_submit_button[0].click().run()
    assert not app.exception and not app.error
    assert "lab: fixed examples" in space.load("small + lab").roles()
    assert app.session_state["dataset"] == "small + lab"
    app.switch_page("pages/explore.py").run()
    assert not app.exception and not app.error
    assert any("3 later responses were placed on the map that was there" in c.value for c in app.caption)


def test_runs_of_one_visitor_have_one_owner(
    open_app: Open, with_vectors: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    real = lab.start_run
    monkeypatch.setattr(lab, "start_run", lambda *a, **k: (seen.append(k["owner"]), real(*a, **k))[1])
    for presses in (2, 1):
        app = open_app("pages/lab.py", dataset="small", prompt="tea")
        for _ in range(presses):
            next(b for b in app.button if b.label == "Generate 8").click().run()
            app = run_until_over(app)
    assert seen[0] == seen[1] != seen[2] and all(seen)


def test_a_slider_moved_meanwhile_loses_nothing(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    next(b for b in app.button if b.label == "Generate 8").click().run()
    run = app.session_state["lab_run"]
    app.slider(key="lab_temperature").set_value(1.2).run()
    assert app.session_state["lab_run"] is run
    app = run_until_over(app)
    assert len(run.samples) == 8 and run.spec.sampling.temperature == 0.7


def test_filters_are_part_of_the_run_and_seen_when_they_are_on(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    assert any("More: top-p" in popover.proto.popover.label for popover in app.get("popover"))
    app.number_input(key="lab_top_k").set_value(40).run()
    app.slider(key="lab_min_p").set_value(0.05).run()
    assert any("More · top-k 40, min-p 0.05" in popover.proto.popover.label for popover in app.get("popover"))
    next(b for b in app.button if b.label == "Generate 8").click().run()
    sampling = app.session_state["lab_run"].spec.sampling
    assert (sampling.top_k, sampling.min_p, sampling.top_p, sampling.repetition_penalty) == (40, 0.05, 1.0, 1.0)
    assert not run_until_over(app).exception


def test_what_a_model_holds_in_memory_is_told(open_app: Open, with_vectors: Dataset) -> None:
    class Holding(FakeGenerator):
        def held(self) -> dict[str, int]:
            return {"weights": 540_000_000, "contexts": 2, "tokens": 1162, "bytes": 44_000_000, "reused": 512}

    pool.use_generator("fake", Holding())
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    (told,) = [c.value for c in app.caption if c.value.startswith("In memory")]
    assert told == (
        "In memory: 0.54 GB of weights, and what was read of the last 2 contexts (1,162 tokens, 44 MB). Of the last "
        "one, 512 tokens were not read again."
    )


def test_temperature_zero_is_explained(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    app.slider(key="lab_temperature").set_value(0.0).run()
    assert any("all samples will be equal" in c.value for c in app.caption)


def test_a_context_that_is_too_long_says_both_counts(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    app.text_area(key="hint tea").set_value("word " * 2100).run()
    assert "at most 2048" in app.error[0].value


def test_a_prompt_of_ones_own_can_be_generated(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    app.text_input(key="lab_own_prompt").set_value("Where is the moon?").run()
    assert "Where is the moon?" in context(app)
    app.slider(key="lab_samples").set_value(2).run()
    next(b for b in app.button if b.label == "Generate 2").click().run()
    app = run_until_over(app)
    assert not app.exception and not app.error


def test_without_the_model_its_size_and_licence_are_shown(
    open_app: Open, with_vectors: Dataset, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERTON_FAKE_GENERATOR")
    monkeypatch.setenv("OVERTON_MODELS", str(space.root / "no-models"))
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    text = "\n".join(m.value for m in app.markdown)
    assert "238 MB" in text and "Gemma Terms of Use" in text
    assert any(b.label == "Fetch 238 MB" for b in app.button)
    assert not any(b.label.startswith("Generate") for b in app.button)


def test_a_prompt_of_ones_own_gets_both_distributions(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app("pages/lab.py", dataset="small", prompt="tea")
    app.text_input(key="lab_own_prompt").set_value("Where is the moon?").run()
    next(b for b in app.button if b.label.startswith("Ask the base and the aligned model")).click().run()
    (runs,) = app.session_state["lab_references"].values()
    deadline = time.monotonic() + 30
    while any(len(r.vectors) < 8 or not r.job.over for r in runs.values()) and time.monotonic() < deadline:
        time.sleep(0.05)
    app.run()
    assert not app.exception and not app.error
    assert runs["aligned"].spec.context == "<user>Where is the moon?</user><assistant>"
    assert runs["base"].spec.context.startswith("# Query:")
    map_ = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    assert [t["name"] for t in map_] == ["base", "aligned"]
    dots = sum(len(t["x"]) for t in map_)
    assert 2 < dots <= 16, "equal texts share a dot"
    gauge = json.loads(app.get("plotly_chart")[1].proto.spec)["data"]
    assert len([t for t in gauge if t["x"]]) == 2, "a floor and a ceiling"
    next(b for b in app.button if b.label == "Generate 8").click().run()
    app = run_until_over(app)
    assert not app.exception and not app.error
    map_ = json.loads(app.get("plotly_chart")[0].proto.spec)["data"]
    assert [t["name"] for t in map_] == ["base", "aligned", "new"]
