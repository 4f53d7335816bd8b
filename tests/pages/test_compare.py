"""The Compare page, drawn without a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components import compare, compare_pair, state
from core.dataset import Dataset
from core.workspace import Workspace

APP = str(Path(__file__).resolve().parents[2] / "app.py")
HOSTILE = "<script>alert(1)</script> [x](javascript:alert(1)) $x$ :red[bees] `bees`"

Opener = Callable[[Dataset], AppTest]


@pytest.fixture
def opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Opener]:
    """Opens the page on one dataset in a workspace of its own."""
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path / "workspace"))

    def open_on(dataset: Dataset) -> AppTest:
        st.cache_resource.clear()
        st.cache_data.clear()
        Workspace(tmp_path / "workspace").save(dataset)
        app = AppTest.from_file(APP, default_timeout=60).run()
        app.session_state[state.DATASET] = dataset.name
        app.switch_page("pages/compare.py").run()
        return sound(app)

    yield open_on
    st.cache_resource.clear()
    st.cache_data.clear()


def sound(app: AppTest) -> AppTest:
    assert not app.exception
    assert not app.error, [e.value for e in app.error]
    assert not app.warning, [w.value for w in app.warning]
    return app


def show(app: AppTest, view: str) -> AppTest:
    app.session_state[compare.VIEW] = view
    return sound(app.run())


def every_text(app: AppTest) -> list[str]:
    return [t.value for t in app.text]


def every_note(app: AppTest) -> str:
    return "\n".join([*(m.value for m in app.markdown), *(c.value for c in app.caption)])


def of_one_prompt(texts: dict[str, list[str]]) -> Dataset:
    rows = [
        {"prompt_id": "p", "system": system, "sample": k, "text": text}
        for system, own in texts.items()
        for k, text in enumerate(own)
    ]
    columns = ["prompt_id", "system", "sample", "text"]
    return Dataset.build(
        "one",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "What do bees do?"}]),
        systems=pd.DataFrame([{"system": s, "role": "other"} for s in texts]),
        responses=pd.DataFrame(rows, columns=columns),
    )


def test_full_texts_stand_side_by_side_and_equal_ones_once(opened, small):
    app = opened(small)
    texts = every_text(app)
    assert texts.count("1. Boil water.\n2. Add the leaves.\n3. Wait three minutes.") == 1
    assert "I have no idea, ask my aunt." in texts
    assert "2 equal texts" in every_note(app)
    assert "cut by the token limit" in every_note(app)


def test_hostile_text_is_literal_with_and_without_marks(opened):
    app = opened(of_one_prompt({"<b>one</b>": [HOSTILE], "two": [HOSTILE]}))
    assert HOSTILE in every_text(app)
    app.toggle(key="compare mark").set_value(True).run()
    shown = [m.value for m in sound(app).markdown if "alert" in m.value and "background" in m.value]
    assert shown
    for value in shown:
        assert "<script" not in value
        assert "](javascript" not in value
        assert r"\$" in value
        assert r"red]\[" in value
        assert r"\`" in value
    assert not any("<b>one" in m.value for m in app.markdown)


def test_words_in_common_are_marked_on_demand(opened):
    app = opened(of_one_prompt({"one": ["honey and wax"], "two": ["wax candles"]}))
    assert not any("background" in m.value for m in app.markdown)
    app.toggle(key="compare mark").set_value(True).run()
    marked = [m.value for m in sound(app).markdown if ":primary-background[wax]" in m.value]
    assert len(marked) == 2
    assert not any(":primary-background[honey]" in m.value for m in app.markdown)
    assert "1 word occurs in responses of all 2 systems" in every_note(app)


def test_many_responses_are_paged(opened):
    texts = [f"answer number {k}" for k in range(9)]
    app = opened(of_one_prompt({"one": texts, "two": ["short"]}))
    assert len(set(every_text(app)) & set(texts)) == 5
    next(b for b in app.button if b.label == "Show all 9 texts").click()
    sound(app.run())
    assert set(texts) <= set(every_text(app))


def test_a_system_without_usable_responses_says_why(opened, small):
    broken = small.responses.copy()
    broken.loc[broken["system"] == "tuned", "error"] = "the server hung up"
    app = opened(Dataset.build("broken", prompts=small.prompts, systems=small.systems, responses=broken))
    assert "None of 3 responses is usable (error: the server hung up)." in every_note(app)
    for view in compare.VIEWS:
        show(app, view)
    assert "no prompt has a value for both" in every_note(app)


@pytest.mark.parametrize("texts", [{"one": ["alone"]}, {"one": []}, {"one": [""], "two": []}])
@pytest.mark.parametrize("view", compare.VIEWS)
def test_few_responses_and_one_system_alone_break_nothing(opened, texts, view):
    show(opened(of_one_prompt(texts)), view)


def test_every_lens_has_a_figure_a_sentence_and_its_n(opened, small):
    app = show(opened(small), compare.FIGURES)
    notes = every_note(app)
    assert "Most alike: **tuned**" in notes
    assert r"n \= 2 prompts · bars\: 95 % interval" in notes
    assert "it needs vectors" in notes
    assert r"length\: 4, 10 words" in notes


def test_the_table_holds_value_interval_and_n_and_a_dash_where_undefined(opened, small):
    app = show(opened(small), compare.TABLE)
    table = app.dataframe[0].value.set_index("measure")
    assert table.loc["Lists", "s1"] == "100 % (100 % to 100 %) · 2".replace(" %", "\u00a0%")
    assert table.loc["Vendi score"].tolist()[1:] == ["–", "–"]


def test_a_click_on_a_lens_shows_where_two_systems_differ_in_it(opened, small):
    app = show(opened(small), compare.TABLE)
    app.session_state[compare_pair.LENS] = "list_share"
    app = show(app, compare.DIFFER)
    assert "**tuned** lies 100 points above **plain** on average" in every_note(app)


def test_a_lens_its_twin_and_the_length_stand_beside_each_other(opened, small):
    app = opened(small)
    for lens in ("distinct_2", "distinct_2_first50"):
        app.session_state[compare_pair.LENS] = lens
        notes = every_note(show(app, compare.DIFFER))
        assert "**Distinct pairs of words**" in notes
        assert "**Distinct pairs of words, first 50 words**" in notes
        assert "**Words**" in notes


def test_prompts_that_differ_most_come_first(opened, small):
    app = opened(small)
    app.session_state[compare_pair.LENS] = "words"
    show(app, compare.DIFFER)
    table = app.dataframe[0].value
    assert table["difference"].abs().is_monotonic_decreasing
    assert table["prompt"].iloc[0] in {"How do I make tea?", "My bike squeaks. Why?"}


def test_choices_outlive_a_visit_to_another_page(opened, small):
    app = opened(small)
    app.session_state["systems small"] = ["tuned"]
    show(app, compare.TABLE)
    app.switch_page("pages/about.py").run()
    app.switch_page("pages/compare.py").run()
    assert app.session_state[compare.VIEW] == compare.TABLE
    assert app.session_state["systems small"] == ["tuned"]


def test_no_system_chosen_is_a_sentence(opened, small):
    app = opened(small)
    app.session_state["systems small"] = []
    for view in compare.VIEWS[:3]:
        assert "No system is chosen" in every_note(show(app, view))


@pytest.mark.parametrize(
    ("event", "row"),
    [
        ({"selection": {"rows": [3], "cells": []}}, 3),
        ({"selection": {"rows": [], "cells": [(2, "prompt")]}}, 2),
        ({"selection": {"rows": [], "cells": []}}, None),
    ],
)
def test_a_click_on_a_row_is_one_on_its_box_or_a_cell(event, row):
    assert compare.clicked_row(event) == row


def test_a_clicked_prompt_is_read_with_both_systems(opened, small, monkeypatch):
    app = opened(small)
    loaded = state.load("small")
    kept = {"key": {"selection": {"rows": [1], "cells": []}}, "systems small": ["plain"]}
    monkeypatch.setattr(st, "session_state", kept)
    compare_pair._read(loaded, "key", ["tea", "bike"], ("tuned", "plain"))
    assert kept[state.PROMPT] == "bike"
    assert kept[compare.VIEW] == compare.READ
    assert kept["systems small"] == ["tuned", "plain"]
    assert app is not None


def test_more_systems_than_chips_get_a_box_with_a_limit(opened):
    app = opened(of_one_prompt({f"system {k}": ["text"] for k in range(15)}))
    assert app.multiselect[0].label == "Systems (up to 12 of 15)"
    assert app.multiselect[0].value == ["system 0", "system 1", "system 2"]
