"""Explore: picker, sentences, map, reading, few and hostile responses."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.testing.v1 import AppTest

from components import explore, fetching, preparing, state
from components.theme import styles
from core import scores, vectors
from core.dataset import Dataset
from core.workspace import Workspace

Open = Callable[..., AppTest]


def figure(app: AppTest, number: int = 0) -> dict[str, Any]:
    return json.loads(app.get("plotly_chart")[number].proto.spec)


def said(app: AppTest) -> str:
    return "\n".join(
        [*(m.value for m in app.markdown), *(c.value for c in app.caption), *(t.value for t in app.text)]
    )


def test_the_map_shows_every_system_and_text_once(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app(dataset="small", prompt="tea")
    traces = figure(app)["data"]
    assert [t["name"] for t in traces] == ["plain", "tuned"]
    assert [len(t["x"]) for t in traces] == [3, 2], "two equal texts share a dot"
    assert "6 usable of 6 responses" in said(app)


def test_the_sentences_hold_the_numbers_of_the_data(open_app: Open, with_vectors: Dataset) -> None:
    text = said(open_app(dataset="small", prompt="tea"))
    assert "A base response has **5** words and an aligned one **11**" in text
    assert "0 % of the base and 100 % of the aligned ones are lists" in text


def test_a_selected_response_is_read_in_full_with_its_copies(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app(dataset="small", prompt="tea", selected_responses=["tuned/tea/0"])
    assert "1. Boil water.\n2. Add the leaves.\n3. Wait three minutes." in [t.value for t in app.text]
    assert "The same text was sampled 2 times (also samples 2)." in said(app)
    assert "Nearest response of each other system" in said(app)
    assert len(app.dataframe[0].value) == 2


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], bytes]]:
    """What the download buttons of the drawn page would save, by the key of the button."""
    made: dict[str, Callable[[], bytes]] = {}
    real = DeltaGenerator.download_button

    def noted(self: DeltaGenerator, label: str, data: Any, *args: Any, **options: Any) -> bool:
        made[str(options.get("key"))] = data
        return real(self, label, data, *args, **options)

    monkeypatch.setattr(DeltaGenerator, "download_button", noted)
    monkeypatch.setattr(st, "download_button", lambda *a, **o: noted(st._main, *a, **o))
    return made


def test_a_selection_is_saved_unaltered_in_three_formats(
    open_app: Open, space: Workspace, small: Dataset, downloads: dict[str, Callable[[], bytes]]
) -> None:
    odd = "a\u202eb \x07 <b>\r\nsecond line"
    rows = small.responses.copy()
    rows.loc[rows["response_id"] == "tuned/tea/1", "text"] = odd
    changed = Dataset.build("small", prompts=small.prompts, systems=small.systems, responses=rows)
    space.save(changed)
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    vectors.vectors_for(changed, space, encoder)
    open_app(dataset="small", prompt="tea", selected_responses=["tuned/tea/1"])
    tables = {
        "csv": pd.read_csv(io.BytesIO(downloads["selection csv"]()), lineterminator="\n"),
        "jsonl": pd.DataFrame([json.loads(line) for line in downloads["selection jsonl"]().splitlines()]),
        "parquet": pd.read_parquet(io.BytesIO(downloads["selection parquet"]())),
    }
    for format, table in tables.items():
        assert table["response_id"].tolist() == ["tuned/tea/1"], format
        assert table["role"].tolist() == ["aligned"] and table["seed"].tolist() == [1], format
        assert "error" in table and "parameters" in table, format
        assert table["text"].tolist() == [odd], format


def test_the_next_prompt_is_one_click_away(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app(dataset="small", prompt="tea", selected_responses=["tuned/tea/0"])
    app.button(key="Next prompt").click().run()
    assert not app.exception
    assert app.session_state["prompt"] == "bike"
    assert app.session_state["selected_responses"] == []
    assert "6 usable of 7 responses" in said(app)
    assert [e.label for e in app.expander] == ["2 responses are not on the map"]
    table = app.dataframe[0].value
    assert table["system"].tolist() == ["plain", "plain"] and table["sample"].tolist() == [1, 3]
    assert table["reason"].tolist() == ["empty", "error: the server hung up"]


def test_prompts_are_ordered_by_a_lens(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app(dataset="small", prompt="tea")
    app.selectbox(key="prompt_order").set_value("bullet_list").run()
    assert not app.exception
    assert app.selectbox(key="prompt_box").options[0].startswith("My bike")


@pytest.mark.parametrize("colour", ["role", "cluster", "words", "bullet_list"])
def test_every_colouring_draws(open_app: Open, with_vectors: Dataset, colour: str) -> None:
    app = open_app(dataset="small", prompt="tea")
    app.selectbox(key="colour_by").set_value(colour).run()
    assert not app.exception
    assert not app.error
    assert len(figure(app)["data"]) >= 2


def test_the_whole_dataset_is_drawn(open_app: Open, with_vectors: Dataset) -> None:
    app = open_app(dataset="small", scope="whole dataset")
    assert "12 usable of 13 responses" in said(app)
    assert "Over 2 prompts" in said(app)
    assert "n = 2 prompts per system · bars: 95 % interval over prompts" in said(app)
    bars = [t for t in figure(app, 1)["data"] if t.get("error_x")]
    assert len(bars) >= 3
    assert "95 % interval" in bars[0]["hovertemplate"]


def test_the_small_figures_of_a_prompt_name_their_n(open_app: Open, with_vectors: Dataset) -> None:
    assert "n = 3 responses per system" in said(open_app(dataset="small", prompt="tea"))


def test_unequal_numbers_of_responses_are_named(small: Dataset) -> None:
    fewer = dataclasses.replace(small, responses=small.responses.drop(index=[10, 11]))
    loaded = state.Loaded(fewer, None, styles(small.roles()), {}, scores.compute(fewer, None))
    assert explore.numbers_line(loaded, "bike", ["plain", "tuned"]) == "n (responses): plain 3, tuned 1"
    assert explore.numbers_line(loaded, None, ["plain", "tuned"]) == "n (prompts): plain 2, tuned 1 to 2"
    assert explore.numbers_line(loaded, "bike", []) == ""


def test_the_map_is_saved_as_a_page(
    open_app: Open, with_vectors: Dataset, downloads: dict[str, Callable[[], bytes]]
) -> None:
    open_app(dataset="small", prompt="tea")
    page = downloads["map html"]().decode()
    assert (
        "small: How do I make tea?" in page
        and "6 usable of 6 responses" in page
        and "tuned\\u002ftea\\u002f0" in page
    )


def test_without_vectors_the_texts_can_be_read_and_the_map_is_offered(
    open_app: Open, space: Workspace, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_MODELS", str(space.root / "no-models"))
    space.save(small)
    app = open_app(dataset="small", prompt="tea")
    assert "84 MB" in said(app) and "Apache" in said(app)
    assert any(b.label.startswith("Fetch") for b in app.button)
    assert "Boil water and wait." in said(app)


def test_without_vectors_the_prompt_at_hand_is_encoded_and_drawn(
    open_app: Open, space: Workspace, small: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    monkeypatch.setattr(preparing, "encoder", lambda: encoder)
    monkeypatch.setattr(fetching, "missing", lambda *ids: [])
    space.save(small)
    app = open_app(dataset="small", prompt="tea")
    deadline = time.monotonic() + 20
    while not any(t.get("customdata") for t in figure(app)["data"]) and time.monotonic() < deadline:
        time.sleep(0.05)
        app.run()
    assert not app.exception and not app.error
    assert "6 usable of 6 responses" in said(app) and "in meaning they agree" in said(app)
    assert vectors.coverage(small, space) == (6, 11)
    assert vectors.stored(small, space) is None, "the other prompt is not encoded"


@pytest.mark.parametrize("texts", [[], ["one"], ["a b", "c d"], ["same"] * 20, ["", "  "], ["a", "b", "c", "d", "e"]])
def test_few_and_equal_responses_look_right(open_app: Open, space: Workspace, texts: list[str]) -> None:
    columns = ["prompt_id", "system", "sample", "text"]
    rows = pd.DataFrame(
        [{"prompt_id": "p", "system": "s", "sample": k, "text": t} for k, t in enumerate(texts)], columns=columns
    )
    dataset = Dataset.build(
        "few",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Why?"}]),
        systems=pd.DataFrame([{"system": "s", "role": "base"}]),
        responses=rows,
    )
    space.save(dataset)
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    vectors.vectors_for(dataset, space, encoder)
    app = open_app(dataset="few")
    assert not app.error
    for colour in ("cluster", "words"):
        app.selectbox(key="colour_by").set_value(colour).run()
        assert not app.exception and not app.error
    assert "nan" not in said(app).lower()


def test_hostile_text_is_escaped_everywhere(open_app: Open, space: Workspace) -> None:
    nasty = "<img src=x onerror=alert(1)> **bold** $x$ :red[no] [l](javascript:alert(1))"
    dataset = Dataset.build(
        "nasty",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": nasty}]),
        systems=pd.DataFrame([{"system": nasty, "role": "base"}]),
        responses=pd.DataFrame(
            [{"prompt_id": "p", "system": nasty, "sample": k, "text": f"{nasty} {k}"} for k in range(3)]
        ),
    )
    space.save(dataset)
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    vectors.vectors_for(dataset, space, encoder)
    chosen = dataset.responses["response_id"].iloc[0]
    app = open_app(dataset="nasty", selected_responses=[chosen])
    assert f"{nasty} 0" in [t.value for t in app.text], "the text itself is shown literally"
    for place in [*(m.value for m in app.markdown), *(c.value for c in app.caption), *(b.label for b in app.button)]:
        assert not re.search(r"(?<!\\)(<img|\*\*bold|\$x|\]\(javascript)", place), place
    trace = figure(app)["data"][0]
    assert "<img" not in json.dumps(trace["text"]) and "<img" not in trace["name"]


def test_an_empty_workspace_says_what_to_do(
    open_app: Open, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Workspace, "names", lambda self: [])
    app = open_app()
    assert "Data page" in app.error[0].value
