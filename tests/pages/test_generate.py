"""Generate: checking, running, stopping and going on, with fake models; what a visitor may not name."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from components import generate_runs as runs
from core import bulk, jobs, models
from core.bulk import reading
from core.errors import OvertonError
from core.generation import pool
from core.generation.base import Sample
from core.generation.fake import FakeGenerator
from core.workspace import Workspace

Open = Callable[..., AppTest]
PAGE = "pages/generate.py"
SPEC = """name = "tea"
samples = 3
[[prompt]]
id = "pot"
text = "How do I warm a pot?"
[[system]]
name = "base"
model = "fake"
strategy = "zero-shot"
[[system]]
name = "aligned"
model = "fake chat"
strategy = "chat"
"""


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither model is real; no run outlives a test."""
    monkeypatch.setenv("OVERTON_FAKE_GENERATOR", "1")
    monkeypatch.delenv("OVERTON_ALLOW_ENDPOINTS", raising=False)
    monkeypatch.setattr(pool, "_BUILT", {})
    monkeypatch.setattr(reading, "_READERS", {})
    yield
    for run in runs.going():
        runs.stop(run)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each token takes a while."""
    monkeypatch.setenv("OVERTON_FAKE_DELAY", "0.05")


def texts(app: AppTest, *kinds: str) -> str:
    kinds = kinds or ("markdown", "caption", "error", "info", "success", "warning", "text")
    return "\n".join(element.value for kind in kinds for element in getattr(app, kind))


def write(app: AppTest, spec: str) -> AppTest:
    return app.text_area(key="generate_text").set_value(spec).run()


def press(app: AppTest, key: str) -> AppTest:
    app.button(key=key).click().run()
    assert not app.exception
    return app


def begun(app: AppTest, spec: str = SPEC) -> bulk.BulkRun:
    press(write(app, spec), "generate_begin")
    run = runs.current_of("tea")
    assert run is not None
    return run


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not true():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.02)


def over(run: bulk.BulkRun) -> None:
    until(lambda: run.over)


def checked(app: AppTest) -> AppTest:
    press(app, "generate_check_button")
    until(lambda: app.session_state[runs.CHECK].job.over)
    return app.run()


def rows(run: bulk.BulkRun) -> list[dict[str, Any]]:
    lines = run.journal.path.read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if "sample" in row]


def test_a_new_visitor_finds_an_example_and_what_to_do(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    assert bulk.load_spec(app.text_area(key="generate_text").value).name == "three ways"
    assert "Nothing is being generated" in texts(app) and "Every run is kept here" in texts(app)
    assert not app.error


def test_every_shipped_example_can_be_chosen_and_has_no_mistake(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    for name in ("three-ways", "temperatures", "server"):
        press(app, f"example {name}")
        app.session_state[runs.CHECK].job.stop()
        assert (Path("docs/specs") / f"{name}.toml").read_text(encoding="utf-8") == app.text_area[0].value
        assert not app.error, name


def test_each_mistake_is_a_sentence_with_its_place_and_nothing_begins(open_app: Open, space: Workspace) -> None:
    app = write(open_app(PAGE), SPEC.replace("zero-shot", "zero-shoot").replace("samples = 3", "samples = 0"))
    told = app.error[0].value
    assert "samples \\= 0" in told and "'base' has the unknown strategy 'zero\\-shoot'" in told
    press(app, "generate_begin")
    assert runs.going() == [] and app.error
    write(app, "name = = 1")
    assert "not TOML" in app.error[0].value and "line 1" in app.error[0].value


def test_a_check_counts_and_shows_the_exact_texts_and_generates_nothing(open_app: Open, space: Workspace) -> None:
    app = checked(write(open_app(PAGE), SPEC))
    assert "**6 samples**, 1 prompt × 2 systems" in texts(app) and "**6 to generate**" in texts(app)
    assert [code.value for code in app.code] == [
        "# Query:\n```\nHow do I warm a pot?\n```\n\n# Answer:\n```",
        "<user>How do I warm a pot?</user><assistant>",
    ]
    assert bulk.past_runs(space) == [] and "tea" not in space.names()
    write(app, SPEC.replace("samples = 3", "samples = 4"))
    assert "changed since this check" in texts(app)


def test_a_run_becomes_a_dataset_that_opens_in_explore(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    run = begun(app)
    over(run)
    app.run()
    assert "The dataset **tea** is saved: 6 samples generated now" in app.success[0].value
    assert "All 6 responses of 2 systems to 1 prompt are usable" in texts(app)
    assert sorted(space.load("tea").roles().items()) == [("aligned", "aligned"), ("base", "base")]
    press(app, "generate_open pages/explore.py")
    assert app.session_state["dataset"] == "tea" and app.selectbox(key="dataset_box").value == "tea"


@pytest.mark.usefixtures("slow")
def test_a_run_shows_how_far_it_is_stops_and_goes_on(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    run = begun(app)
    until(lambda: run.progress.done >= 2)
    app.run()
    assert "of 3 |" in texts(app) and "tokens · " in texts(app)
    assert app.text[0].value in {row["text"] for row in rows(run)}, "a finished text is shown as it is"
    pressed = time.monotonic()
    press(app, "stop tea")
    assert run.over and time.monotonic() - pressed < 5
    kept = len(rows(run))
    assert 2 <= kept < 6 and f"Stopped. {kept} of 6 samples are kept" in texts(app)
    press(app, "generate_go_on")
    again = runs.current_of("tea")
    assert again is not None and again is not run
    over(again)
    app.run()
    assert f"{kept} kept from before" in app.success[0].value
    places = [(row["system"], row["sample"]) for row in rows(again)]
    assert len(places) == len(set(places)) == 6, "nothing is lost and nothing came twice"


@pytest.mark.usefixtures("slow")
def test_text_and_run_are_there_after_a_visit_to_another_page(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    run = begun(app, SPEC + "# mine\n")
    app.switch_page("pages/about.py").run()
    app.switch_page(PAGE).run()
    assert app.text_area(key="generate_text").value.endswith("# mine\n")
    assert not run.over and app.button(key="stop tea")


@pytest.mark.usefixtures("slow")
def test_another_visitor_sees_the_run_and_cannot_begin_it_twice(open_app: Open, space: Workspace) -> None:
    run = begun(open_app(PAGE))
    other = open_app(PAGE)
    assert other.button(key="stop tea"), "the run that is going on is shown to whoever comes"
    press(write(other, SPEC), "generate_begin")
    assert "going on already" in other.error[0].value
    press(write(other, SPEC.replace('"tea"', '"coffee"')), "generate_begin")
    assert "Also going on here: tea" in texts(other) and other.button(key="stop coffee")
    press(other, "look tea")
    assert other.button(key="stop tea") and not run.over


def test_the_place_in_the_queue_is_shown(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    with jobs.turn(pool.lane("fake"), jobs.Job("another", "x"), owner="another"):
        run = begun(app)
        until(lambda: run.job.what.startswith("waiting"))
        app.run()
        assert "waiting, 1 before this one" in texts(app)
        press(app, "stop tea")
        assert run.over, "who waits can leave"
    assert "0 of 6 samples are kept" in texts(app)


def test_visitors_have_names_of_their_own(open_app: Open, space: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    real = bulk.start

    def start(*args: Any, owner: str, **keywords: Any) -> bulk.BulkRun:
        seen.append(owner)
        return real(*args, owner=owner, **keywords)

    monkeypatch.setattr(bulk, "start", start)
    one, two = open_app(PAGE), open_app(PAGE)
    for app in (one, two, one):
        over(begun(app))
    assert seen[0] == seen[2] != seen[1] and all(seen)


def test_an_earlier_run_is_listed_and_goes_on(
    open_app: Open, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_FAKE_DELAY", "0.05")
    run = bulk.start(bulk.load_spec(SPEC), space)
    until(lambda: run.progress.done >= 1)
    run.stop()
    over(run)
    kept = len(rows(run))
    app = open_app(PAGE)
    assert f"{kept} sample{'' if kept == 1 else 's'} kept, 6 asked for" in texts(app)
    press(app, "go on tea")
    again = runs.current_of("tea")
    assert again is not None
    over(again)
    assert app.text_area(key="generate_text").value == SPEC and len(rows(again)) == 6
    press(app.run(), "generate_close")
    assert ":green-badge[complete]" in texts(app)


class Failing(FakeGenerator):
    """Every second sample fails."""

    def generate(self, context: str, seeds: Any, *args: Any, **keywords: Any) -> Iterator[Sample]:
        for made in super().generate(context, seeds, *args, **keywords):
            failed = made.index % 2 == 0
            yield Sample(made.index, "", "error", 0, made.seed, error="the *server* hung up") if failed else made


def test_errors_are_counted_and_can_be_tried_again(open_app: Open, space: Workspace) -> None:
    pool.use_generator("fake", Failing())
    app = open_app(PAGE)
    over(begun(app))
    app.run()
    assert "2 samples have failed. The latest: the \\*server\\* hung up" in app.warning[0].value
    assert "4 of 6 responses" in texts(app)
    pool.use_generator("fake", FakeGenerator())
    press(app, "generate_go_on")
    again = runs.current_of("tea")
    assert again is not None
    over(again)
    assert "All 6 responses" in texts(app.run())


def test_a_model_that_cannot_be_fetched_ends_in_a_sentence(
    open_app: Open, space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_MODELS", str(space.root / "no-models"))

    def refuse(*args: Any, **keywords: Any) -> Path:
        raise OvertonError("The registry cannot be reached: try again with a network.")

    monkeypatch.setattr(models, "fetch", refuse)
    app = open_app(PAGE)
    checked(write(app, SPEC.replace('"fake"', '"gemma-3-270m"')))
    assert "238 MB" in texts(app) and "Gemma Terms of Use" in texts(app), "what would be fetched"
    assert "≈" in texts(app), "its tokens are a guess"
    over(begun(app, SPEC.replace('"fake"', '"gemma-3-270m"')))
    app.run()
    assert "registry cannot be reached" in app.error[0].value
    assert app.button(key="generate_go_on")


def test_a_context_that_does_not_fit_is_told_and_can_be_left_out(open_app: Open, space: Workspace) -> None:
    long = SPEC + f'[[prompt]]\nid = "long"\ntext = "{"word " * 2100}"\n'
    app = checked(write(open_app(PAGE), long))
    assert "does not fit" in app.error[0].value
    app.checkbox(key=runs.SKIP_TOO_LONG).check().run()
    checked(app)
    assert "2 contexts will not fit" in app.warning[0].value


def test_hostile_names_are_shown_as_they_are(open_app: Open, space: Workspace) -> None:
    hostile = SPEC.replace('name = "base"', 'name = "**b** | <b>x</b> $y$ [l](u)"')
    app = open_app(PAGE)
    for drawn in (checked(write(app, hostile)), press(app, "generate_begin")):
        table = next(m.value for m in drawn.markdown if m.value.startswith("| "))
        assert "\\*\\*b\\*\\* \\| \\<b\\>x\\<" in table, table
    over(runs._runs()["tea"])


# -- what a visitor may write -----------------------------------------------------------------------------------


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server for others."""
    monkeypatch.setenv("OVERTON_ALLOW_PATHS", "0")


FILES = SPEC.replace('[[prompt]]\nid = "pot"\ntext = "How do I warm a pot?"\n', 'prompts = "questions.txt"\n')
SERVER = '[[system]]\nname = "own"\nmodel = "m"\nstrategy = "chat"\nserver = { url = "http://localhost:9/v1" }\n'


@pytest.mark.usefixtures("closed")
def test_where_paths_are_off_no_text_can_name_a_file(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    assert "Paths on the server are switched off here" in texts(app)
    assert not [t for t in app.text_input if t.key == "generate_path"]
    press(app, "example temperatures")
    app.session_state[runs.CHECK].job.stop()
    assert not app.error, "the example itself names a file, and is the operator's"
    write(app, FILES)
    assert "Files can only be named" in app.error[0].value, "an edited example keeps no right to files"
    write(app, SPEC.replace('"fake"', '"/etc"'))
    assert "'/etc' is no model of the catalogue" in app.error[0].value.replace("\\", "")
    write(app, SPEC.replace('"fake"', '"core/models"'))
    assert "no hub id" in app.error[0].value, "a folder beside the program looks like a hub id"
    for name in ("owner/name", "gemma-3-270m", "server:lab"):
        write(app, SPEC.replace('"fake"', f'"{name}"'))
        assert not app.error, app.error[0].value


def test_where_paths_are_on_an_edited_example_may_name_the_files_beside_it(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    write(app, FILES)
    assert not app.error


@pytest.mark.parametrize("key", ["", ', key_env = "SECRET"'])
def test_a_typed_server_needs_the_operators_leave_and_gets_no_key(
    open_app: Open, space: Workspace, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    app = open_app(PAGE)
    typed = SPEC + SERVER.replace('/v1"', f'/v1"{key}')
    write(app, typed)
    assert "switched off here" in app.error[0].value, "also in an example that was edited"
    press(app, "generate_begin")
    assert runs.going() == []
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    write(app, typed + "# again\n")
    assert bool(app.error) == bool(key)


def test_a_path_on_this_machine_is_opened_with_the_files_beside_it(
    open_app: Open, space: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "questions.txt").write_text("Why?\nHow?\n", encoding="utf-8")
    (tmp_path / "mine.toml").write_text(FILES, encoding="utf-8")
    app = open_app(PAGE)
    for given, said in (
        ("", "Type the path"),
        (str(tmp_path), "is no file"),
        (str(tmp_path / "no"), "cannot be read"),
    ):
        app.text_input(key="generate_path").set_value(given)
        app.button(key="generate_path_open").click().run()
        assert said in app.error[0].value
    app.text_input(key="generate_path").set_value(str(tmp_path / "mine.toml"))
    app.button(key="generate_path_open").click().run()
    until(lambda: app.session_state[runs.CHECK].job.over)
    assert "2 prompts × 2 systems" in texts(app.run())


def test_an_uploaded_file_may_name_no_other_files(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    app.file_uploader(key="generate_upload").set_value(("mine.toml", FILES.encode(), "application/toml")).run()
    assert app.text_area(key="generate_text").value == FILES
    assert "Files can only be named" in app.error[0].value
    app.file_uploader(key="generate_upload").set_value(("odd.toml", b"\xff\xfe", "application/toml")).run()
    assert "odd.toml is not UTF-8" in texts(app, "error").replace("\\", "")
    assert app.text_area(key="generate_text").value == FILES, "what cannot be read replaces nothing"


def test_of_many_systems_one_context_is_shown_at_a_time(open_app: Open, space: Workspace) -> None:
    more = "".join(f'[[system]]\nname = "s{k}"\nmodel = "fake"\nstrategy = "zero-shot"\n' for k in range(8))
    app = checked(write(open_app(PAGE), SPEC + more))
    assert len(app.code) == 1
    app.selectbox[-1].set_value("aligned").run()
    assert app.code[0].value.startswith("<user>")


def test_the_form_writes_what_is_then_generated(open_app: Open, space: Workspace) -> None:
    app = open_app(PAGE)
    app.button_group(key="generate_form kind").set_value("my own").run()
    app.text_area(key="generate_form prompts").set_value("Why?\n\n How? \n").run()
    app.number_input(key="generate_form samples").set_value(2).run()
    press(app, "generate_form write")
    spec = bulk.load_spec(app.text_area(key="generate_text").value)
    assert [p.text for p in spec.prompts] == ["Why?", "How?"]
    assert [(s.name, s.model, s.samples) for s in spec.systems] == [
        ("base", "fake", 2),
        ("base + examples", "fake", 2),
        ("aligned", "fake chat", 2),
    ]
    app.text_input(key="generate_form name").set_value("a/b").run()
    press(app, "generate_form write")
    assert "cannot be used" in app.error[0].value
