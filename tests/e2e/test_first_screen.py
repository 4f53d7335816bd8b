"""What a visitor sees first, by day and by night, on two screens, and with the keyboard alone."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.driver import PATIENCE, choose_dataset, no_sideways_scrolling, points, settled

LUMINANCE = """() => {
  const [r, g, b] = getComputedStyle(document.querySelector('[data-testid=stApp]'))
    .backgroundColor.match(/[\\d.]+/g).map(Number);
  return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (1920, 1080)])
def test_first_screen_shows_dots_sentences_and_chips(visit: Visit, theme: str, width: int, height: int):
    page = visit(theme=theme, width=width, height=height)
    shown = points(page)
    assert len({point.system for point in shown}) >= 2
    assert len(shown) >= 8
    settled(page)
    no_sideways_scrolling(page)
    expect(page.locator(".st-key-opening")).to_have_count(0)  # the empty map that stood here while waiting
    assert (page.evaluate(LUMINANCE) < 0.3) == (theme == "dark")
    chips = page.get_by_role("toolbar", name="Systems").get_by_role("button")
    assert chips.count() >= 2
    assert chips.first.is_visible()


def test_dots_lie_inside_the_first_window(visit: Visit):
    page = visit()
    assert all(0 < p.x < 1440 and 0 < p.y < 900 for p in points(page))


def test_numbers_of_the_sentences_are_those_of_the_dataset(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    rows = space.load("kettles").responses
    here = rows[rows["prompt_id"] == "kettle"]
    words = here["text"].str.split().str.len().groupby(here["system"]).mean()
    said = page.locator("[data-testid=stMarkdownContainer] strong")
    expect(said.filter(has_text=re.compile(f"^{words['base']:.0f}$")).first).to_be_visible(timeout=PATIENCE)
    expect(said.filter(has_text=re.compile(f"^{words['aligned']:.0f}$")).first).to_be_visible(timeout=PATIENCE)


def test_arrow_goes_to_the_next_prompt_and_back(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    box = page.locator(".st-key-prompt_box input").first
    texts = list(space.load("kettles").prompts["text"])
    expect(box).to_have_value(texts[0], timeout=PATIENCE)
    before = {p.id for p in points(page)}
    page.locator(".st-key-Next-prompt button:visible").click()
    expect(box).to_have_value(texts[1], timeout=PATIENCE)
    settled(page)
    after = {p.id for p in points(page)}
    assert after
    assert not before & after
    page.locator(".st-key-Previous-prompt button:visible").click()
    expect(box).to_have_value(texts[0], timeout=PATIENCE)


def test_prompt_picker_is_reached_and_used_with_the_keyboard(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    page.locator(".st-key-dataset_box input").first.focus()
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("Boolean(document.activeElement.closest('.st-key-prompt_box'))"):
            break
    else:
        pytest.fail("Tab does not reach the prompt picker")
    page.keyboard.type("stairs")
    page.keyboard.press("Enter")
    wanted = space.load("kettles").prompt_text("stairs")
    expect(page.locator(".st-key-prompt_box input").first).to_have_value(wanted, timeout=PATIENCE)


def test_switching_a_system_off_takes_its_dots_away_and_keeps_the_others(visit: Visit):
    page = visit()
    choose_dataset(page, "kettles")
    before = {p.id: p for p in points(page)}
    page.get_by_role("toolbar", name="Systems").get_by_role("button", name=re.compile("base$")).click()
    settled(page)
    after = points(page)
    assert {p.system for p in after} == {"aligned"}
    assert {p.id for p in after} < set(before)


def test_map_has_words_for_those_who_cannot_see_it(visit: Visit):
    page = visit()
    points(page)
    expect(page.get_by_role("figure", name=re.compile("Map of response.*base.*aligned")).first).to_be_visible()
