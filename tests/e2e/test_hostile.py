"""A dataset whose names and texts are HTML, Markdown and formulas: shown literally wherever they stand."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.datasets import FORMULA, HINT, HOSTILE, IMAGE, MARKDOWN, PROMPT, SCRIPT, SYSTEMS
from tests.e2e.driver import PATIENCE, choose_dataset, click, hover, nothing_got_out, points, settled, slide


def opened(visit: Visit, path: str = "") -> Page:
    page = visit(path)
    choose_dataset(page, HOSTILE)
    settled(page)
    return page


def body_of(page: Page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


def test_explore_shows_names_and_prompt_literally(visit: Visit):
    page = opened(visit)
    points(page)
    nothing_got_out(page)
    assert page.locator(".st-key-prompt_box input").first.input_value().startswith(PROMPT[:60])
    chips = page.get_by_role("toolbar", name="Systems")
    for system in SYSTEMS:
        expect(chips).to_contain_text(system)


@pytest.mark.parametrize("curve", [0, 1])
def test_hover_and_reading_show_texts_literally(visit: Visit, space: Workspace, curve: int):
    page = opened(visit)
    rows = space.load(HOSTILE).responses
    texts = dict(zip(rows["response_id"], rows["text"], strict=True))
    for hostile in (SCRIPT, IMAGE, MARKDOWN, FORMULA):
        everywhere = points(page)
        shown = [p for p in everywhere if p.curve == curve and texts[p.id].startswith(hostile)]
        point = max(shown, key=lambda p: p.apart(everywhere))
        assert "".join(hostile.split())[:20] in "".join(hover(page, point).split())
        nothing_got_out(page)
        click(page, point)
        expect(page.get_by_test_id("stText").filter(has_text=texts[point.id]).first).to_be_visible(timeout=PATIENCE)
        settled(page)
        nothing_got_out(page)


def test_the_list_of_prompts_shows_them_literally(visit: Visit):
    page = opened(visit)
    page.locator(".st-key-prompt_box input").first.click()
    expect(page.get_by_role("option").filter(has_text=SCRIPT).first).to_be_visible(timeout=PATIENCE)
    nothing_got_out(page)


@pytest.mark.parametrize("path", ["compare", "lab", "data"])
def test_other_pages_show_names_literally(visit: Visit, path: str):
    page = visit(path)
    settled(page)
    if page.locator(".st-key-dataset_box").count():
        choose_dataset(page, HOSTILE)
        settled(page)
    else:
        page.get_by_text(HOSTILE, exact=True).first.click()
        settled(page)
    expect(page.locator("[data-testid=stMain]")).to_be_visible()
    nothing_got_out(page)


def test_compare_shows_texts_and_names_literally(visit: Visit):
    page = opened(visit, "compare")
    said = body_of(page)
    assert SCRIPT in said
    assert IMAGE in said
    nothing_got_out(page)


def test_lab_shows_the_hint_and_what_becomes_of_it_literally(visit: Visit):
    page = opened(visit, "lab")
    hint = page.get_by_role("textbox", name=re.compile("^Hint")).last
    expect(hint).to_have_value(HINT, timeout=PATIENCE)
    slide(page, "lab_samples", "Home", "ArrowRight")
    page.get_by_role("button", name=re.compile("Generate")).click()
    expect(page.get_by_test_id("stText").filter(has_text=HINT)).to_have_count(2, timeout=PATIENCE)
    page.get_by_text("The exact text that will be sent").click()
    expect(page.get_by_test_id("stCode").filter(has_text=SCRIPT)).to_be_visible(timeout=PATIENCE)
    page.get_by_text("Earlier runs").click()
    settled(page)
    nothing_got_out(page)
