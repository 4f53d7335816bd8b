"""Generate in a real browser, with slow fake models: check, watch, stop, go on, open the dataset."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from bench.browser import Server, serve
from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.datasets import FORMULA, IMAGE, MARKDOWN, SCRIPT
from tests.e2e.driver import PATIENCE, go, no_sideways_scrolling, nothing_got_out, settled

SPEC = f"""name = "pots"
samples = 6
[[prompt]]
id = "pot"
text = '''{SCRIPT} {MARKDOWN} {FORMULA}'''
[[prompt]]
id = "lid"
text = "Where is the lid?"
[[system]]
name = '''{IMAGE}'''
model = "fake"
strategy = "zero-shot"
[[system]]
name = "aligned"
model = "fake chat"
strategy = "chat"
"""


@pytest.fixture(scope="module")
def own_space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("generate") / "workspace")


@pytest.fixture(scope="module")
def slow(own_space: Workspace) -> Iterator[Server]:
    """The app with fake models that take a while for each token."""
    folder = own_space.root.parent
    env = {
        "OVERTON_WORKSPACE": str(own_space.root),
        "OVERTON_MODELS": str(folder / "no-models"),
        "OVERTON_FAKE_GENERATOR": "1",
        "OVERTON_FAKE_DELAY": "0.02",
    }
    with serve(folder / "server.log", env=env, options=("--server.fileWatcherType", "none")) as started:
        started.wait()
        yield started


def editor(page: Page) -> Locator:
    return page.locator(".st-key-generate_text textarea")


def write(page: Page, spec: str) -> None:
    expect(editor(page)).to_be_visible(timeout=PATIENCE)
    editor(page).fill(spec)
    editor(page).press("Control+Enter")
    settled(page)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=re.compile(rf"\b{name}$")).first.click()


def samples(space: Workspace) -> list[tuple[str, str, int]]:
    """The samples in the journal of the only run."""
    (file,) = (space.root / "runs").glob("bulk-*.journal")
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    return [(row["system"], row["prompt_id"], row["sample"]) for row in rows if "sample" in row]


def test_a_specification_is_checked_generated_stopped_gone_on_with_and_opened(
    visit: Visit, slow: Server, own_space: Workspace
):
    page = visit("generate", server=slow)
    write(page, SPEC)
    press(page, "Check")
    expect(page.get_by_text("24 to generate")).to_be_visible(timeout=PATIENCE)
    nothing_got_out(page)
    press(page, "Generate")
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text(re.compile(r"[2-9] of 24 samples · \d+ tokens/s"))).to_be_visible(timeout=PATIENCE)
    nothing_got_out(page)
    no_sideways_scrolling(page)
    other = visit("generate", server=slow)
    expect(other.get_by_role("button", name="Stop")).to_be_visible(timeout=PATIENCE)

    stop.click()
    clicked = time.monotonic()
    expect(page.get_by_text(re.compile(r"^Stopped\. \d+ of 24 samples are kept"))).to_be_visible(timeout=PATIENCE)
    assert time.monotonic() - clicked < 3
    kept = len(samples(own_space))
    assert 2 <= kept < 24
    time.sleep(0.5)
    assert len(samples(own_space)) == kept, "it goes on generating"

    go(page, "About")
    go(page, "Generate")
    expect(editor(page)).to_have_value(SPEC)
    press(page, "Go on")
    expect(page.get_by_text(re.compile(rf"is saved: {24 - kept} samples generated now"))).to_be_visible(
        timeout=PATIENCE
    )
    assert len(set(samples(own_space))) == len(samples(own_space)) == 24
    nothing_got_out(page)
    press(page, "Open in Explore")
    expect(page.locator(".st-key-dataset_box input").first).to_have_value("pots", timeout=PATIENCE)
    assert len(own_space.load("pots").responses) == 24


def test_a_file_from_the_visitors_computer_is_shown_and_its_mistakes_too(visit: Visit, slow: Server, tmp_path: Path):
    page = visit("generate", server=slow)
    expect(editor(page)).to_have_value(re.compile("three ways"), timeout=PATIENCE)
    file = tmp_path / "mine.toml"
    file.write_text(SPEC.replace("zero-shot", "zero-shoot"), encoding="utf-8")
    page.get_by_role("button", name="Open a file").click()
    page.locator(".st-key-generate_upload input[type=file]").set_input_files(file)
    expect(page.get_by_text("has the unknown strategy 'zero-shoot'")).to_be_visible(timeout=PATIENCE)
    expect(editor(page)).to_have_value(re.compile("pots"))
    expect(page.locator(".st-key-generate_upload")).to_have_count(0)
    nothing_got_out(page)
