"""The Data page: what is there, opening with a preview, saving, roles, and what may go wrong without loss."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components import data_counts
from core.dataset import Dataset
from core.readers import read
from core.workspace import Workspace, write_dataset

APP = str(Path(__file__).resolve().parents[2] / "app.py")
HOSTILE = "<img src=x onerror=alert(1)>"
ROWS = [
    {"prompt": "Tea?", "system": "plain", "response": "Boil it.", "note": "a"},
    {"prompt": "Tea?", "system": "tuned", "response": "1. Boil it.", "note": "b"},
    {"prompt": "Bike?", "system": "tuned", "response": "", "note": "c"},
]


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """The workspace that the app uses, without shipped datasets."""
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path / "own"))
    monkeypatch.setattr("components.state.Workspace", lambda: Workspace(shipped=tmp_path / "shipped"))
    st.cache_resource.clear()
    st.cache_data.clear()
    return Workspace(tmp_path / "own", shipped=tmp_path / "shipped")


@pytest.fixture
def page(space: Workspace) -> Callable[[], AppTest]:
    """Opens the page."""

    def opened() -> AppTest:
        app = AppTest.from_file(APP, default_timeout=60).run()
        return settled(app.switch_page("pages/data.py").run())

    return opened


def settled(app: AppTest) -> AppTest:
    """After reading, which goes on in the background, has ended."""
    assert not app.exception, app.exception
    opening = app.session_state.get("data_opened")
    if opening is not None:
        opening.wait(30)
        app.run()
    assert not app.exception, app.exception
    return app


def upload(app: AppTest, *files: tuple[str, bytes | str]) -> AppTest:
    sent = [(name, content.encode() if isinstance(content, str) else content, "") for name, content in files]
    return settled(app.file_uploader[0].set_value(sent).run())


def type_path(app: AppTest, path: object) -> AppTest:
    field(app, "Or a path on this machine").set_value(str(path))
    return settled(press(app, "Open"))


def jsonl(rows=ROWS) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def press(app: AppTest, label: str) -> AppTest:
    (button,) = [b for b in app.button if b.label == label]
    return button.click().run()


def field(app: AppTest, label: str):
    return next(f for f in [*app.text_input, *app.selectbox] if f.label == label)


def texts(app: AppTest) -> str:
    return "\n".join(str(e.value) for e in [*app.markdown, *app.caption, *app.success, *app.error, *app.info])


def labels(app: AppTest) -> list[str]:
    return [button.label for button in app.button]


# -- what is there ----------------------------------------------------------------------------------------------


def test_the_empty_page_teaches_what_can_be_opened(page) -> None:
    app = page()
    assert "There is no dataset yet" in texts(app)
    assert [tab.label for tab in app.tabs] == [
        "One response a row",
        "Answers of a server",
        "The authors' release",
        "Own exports",
    ]
    assert app.file_uploader[0].accept_multiple_files and field(app, "Or a path on this machine")


def test_each_example_on_the_page_can_be_opened(page, tmp_path: Path) -> None:
    from components.data_formats import FLAT, SERVER

    for name, example, kind in (("flat.jsonl", FLAT, "flat"), ("server.json", SERVER, "chat")):
        (tmp_path / name).write_text(example, encoding="utf-8")
        ((dataset, problems),) = read(tmp_path / name)
        assert len(dataset.responses) == 2 and not len(problems) and dataset.meta["source"] == kind


def test_a_dataset_is_listed_counted_and_exported_at_the_click(space, small: Dataset, page) -> None:
    space.save(small)
    app = page()
    assert [r.options for r in app.radio] == [["small"]]
    assert "12 of 13 responses of 2 systems to 2 prompts are usable" in texts(app)
    assert [b.label for b in app.get("download_button")] == ["Parquet", "CSV", "JSONL"]
    assert {"Open in Explore", "Save roles", "Delete"} <= set(labels(app))


def test_choosing_a_dataset_holds_for_the_other_pages(space, small: Dataset, page) -> None:
    from dataclasses import replace

    space.save(small)
    space.save(replace(small, name="twin"))
    app = page()
    app.session_state["prompt"] = "bike"
    app.radio[0].set_value("twin").run()
    assert app.session_state["dataset"] == "twin" and "prompt" not in app.session_state
    assert "##### twin" in texts(app)


def test_shipped_ones_are_marked_and_cannot_be_deleted(space, small: Dataset, page) -> None:
    write_dataset(small, space.shipped / "small")
    app = page()
    assert app.radio[0].options == ["small :gray-badge[shipped]"]
    assert "Delete" not in labels(app)


def test_deleting_asks_first(space, small: Dataset, page) -> None:
    space.save(small)
    app = press(page(), "Delete")
    assert space.names() == ["small"] and "cannot be brought back" in texts(app)
    app.button(key="data_delete_no").click().run()
    assert space.names() == ["small"]
    app = press(page(), "Delete")
    app.button(key="data_delete_yes").click().run()
    assert space.names() == [] and not app.exception
    assert "small was deleted" in texts(app)


def test_a_damaged_dataset_is_one_sentence_and_can_be_deleted(space, small: Dataset, page) -> None:
    (space.save(small) / "responses.parquet").write_bytes(b"nothing")
    app = page()
    assert len(app.error) == 1 and "damaged" in app.error[0].value
    app = press(app, "Delete")
    app.button(key="data_delete_yes").click().run()
    assert space.names() == []


def test_roles_are_saved_beside_the_dataset(space, small: Dataset, page, monkeypatch) -> None:
    folder = space.save(small)
    before = (folder / "systems.parquet").read_bytes()

    def edited(data, **options) -> pd.DataFrame:
        frame = getattr(data, "data", data).copy()
        frame.loc[frame["system"] == "tuned", "role"] = "revised"
        return frame

    app = page()
    assert app.button(key="data_save_roles").disabled
    monkeypatch.setattr(data_counts.st, "data_editor", edited)
    app.run()
    assert "1 role changed and not saved yet" in texts(app)
    press(app, "Save roles")
    assert space.load("small").roles() == {"plain": "base", "tuned": "revised"}
    assert (folder / "systems.parquet").read_bytes() == before
    assert "1 role saved" in texts(app)


# -- opening ----------------------------------------------------------------------------------------------------


def test_an_upload_is_shown_before_it_is_saved_and_then_saved(space, page) -> None:
    app = upload(page(), ("tea.jsonl", jsonl() + "{half"))
    assert space.names() == []
    assert "All 3 responses of 2 systems to 2 prompts are usable" in texts(app)
    assert "1 problem" in texts(app)
    assert field(app, "Text").value == "response" and field(app, "System").value == "system"
    field(app, "Name").set_value("my tea").run()
    press(app, "Save")
    assert space.names() == ["my tea"] and app.session_state["dataset"] == "my tea"
    assert "Saved as my tea" in texts(app) and "Open in Explore" in labels(app)
    assert app.file_uploader[0].value in (None, [])


def test_other_columns_are_read_at_once(space, page) -> None:
    app = upload(page(), ("tea.jsonl", jsonl()))
    settled(field(app, "Text").set_value("note").run())
    press(app, "Save")
    assert list(space.load("tea").responses["text"]) == ["a", "b", "c"]


def test_no_column_for_the_text_is_one_sentence_and_can_be_mended(space, page) -> None:
    app = upload(page(), ("tea.jsonl", jsonl()))
    settled(field(app, "Text").set_value("").run())
    assert len(app.error) == 1 and "Save" not in labels(app)
    settled(field(app, "Text").set_value("response").run())
    assert not app.error and "Save" in labels(app)


def test_a_taken_name_is_one_sentence_and_nothing_is_lost(space, small: Dataset, page) -> None:
    space.save(small)
    app = upload(page(), ("tea.jsonl", jsonl()))
    for name in ("small", "../x", "", "con"):
        field(app, "Name").set_value(name).run()
        press(app, "Save")
        assert len(app.error) == 1 and field(app, "Name").value == name
    assert space.names() == ["small"]
    field(app, "Name").set_value("free").run()
    press(app, "Save")
    assert space.names() == ["free", "small"]


def test_the_same_content_is_told_with_a_way_to_it(space, page) -> None:
    press(upload(page(), ("tea.jsonl", jsonl())), "Save")
    app = upload(page(), ("again.jsonl", jsonl()))
    assert "already there as tea" in texts(app) and "Save another copy" in labels(app)
    press(app, "Look at it")
    assert "##### tea" in texts(app) and "data_opened" not in app.session_state
    assert space.names() == ["tea"]


def test_what_cannot_be_read_is_one_sentence_and_the_page_stays(space, small: Dataset, page, tmp_path) -> None:
    space.save(small)
    app = page()
    for attempt in (
        lambda: upload(app, ("x.bin", b"\x00\x01")),
        lambda: upload(app, ("empty.jsonl", b"")),
        lambda: upload(app, ("x.parquet", b"PAR1nothing")),
        lambda: type_path(app, tmp_path / "absent"),
        lambda: type_path(app, ""),
        lambda: type_path(app, "a\0b"),
        lambda: type_path(app, "~nosuchuser/x"),
    ):
        attempt()
        assert len(app.error) == 1 and "##### small" in texts(app), texts(app)
        assert app.radio[0].value == "small"
        assert "upload" not in app.error[0].value


def test_closing_and_looking_elsewhere(space, small: Dataset, page) -> None:
    space.save(small)
    app = upload(page(), ("tea.jsonl", jsonl()))
    assert app.radio[0].value is None
    app.radio[0].set_value("small").run()
    assert "##### small" in texts(app) and "Save" not in labels(app)
    press(app, "Back to it")
    assert "tea" in texts(app) and "Save" in labels(app)
    press(app, "Close without saving")
    assert space.names() == ["small"] and "##### small" in texts(app)


def test_a_name_that_was_typed_is_there_after_another_page(space, page) -> None:
    app = upload(page(), ("tea.jsonl", jsonl()))
    field(app, "Name").set_value("mine").run()
    app.switch_page("pages/about.py").run()
    app.switch_page("pages/data.py").run()
    assert field(app, "Name").value == "mine"


def test_hostile_names_and_texts_are_literal(space, page, tmp_path) -> None:
    rows = [{"prompt": HOSTILE, "system": f"{HOSTILE}{k}", "response": "<script>alert(1)</script>"} for k in range(2)]
    app = upload(page(), (f"../../{HOSTILE}.jsonl", jsonl(rows) + "<b>half\n"))
    assert HOSTILE not in texts(app)  # every special character has a backslash before it
    assert "\\<img src\\=x onerror\\=alert\\(1\\)\\>" in texts(app)
    press(app, "Save")
    (name,) = space.names()
    assert HOSTILE not in texts(app)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["own"]
    assert space.load(name).systems_with_role("other") == [f"{HOSTILE}0", f"{HOSTILE}1"]


def test_several_datasets_of_one_folder_are_chosen(space, page, tmp_path: Path) -> None:
    for dataset in ("one", "two"):
        run = tmp_path / "release" / dataset / "outputs" / "llama-2-base"
        run.mkdir(parents=True)
        row = {"prompt": "Tea?", "outputs": [{"generated_text": f"Boil {dataset}."}]}
        (run / "samples.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    app = type_path(page(), tmp_path / "release")
    assert [box.label for box in app.checkbox] == ["one", "two"] and "Save 2 datasets" in labels(app)
    app.checkbox[0].uncheck().run()
    field(app, "Name of two").set_value("second").run()
    press(app, "Save")
    assert space.names() == ["second"]


def test_the_release_is_counted(space, page, release: Path) -> None:
    app = type_path(page(), release / "LIMA-OE")
    press(app, "Save")
    said = next(m.value for m in app.markdown if "usable" in m.value)
    counts = space.load("LIMA-OE")
    assert f"**{int(counts.usable.sum()):,} of {len(counts.responses):,} responses" in said


def test_paths_can_be_switched_off(page, monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OVERTON_ALLOW_PATHS", "0")
    app = page()
    assert [f.label for f in app.text_input] == [] and "Open" not in labels(app)
    assert "switched off" in texts(app)
    upload(app, ("tea.jsonl", jsonl()))
    assert "Save" in labels(app)
