"""From a dot to its text: a click opens exactly the response that the dot stands for."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.driver import PATIENCE, Point, choose_dataset, click, hover, plot, points, settled


def texts_of(space: Workspace, name: str) -> dict[str, str]:
    rows = space.load(name).responses
    return dict(zip(rows["response_id"], rows["text"], strict=True))


def second_system(page: Page) -> list[Point]:
    """The dots of the second system, the freest ones first."""
    shown = points(page)
    last = [p for p in shown if p.curve == 1]
    assert last
    assert {p.curve for p in shown} == {0, 1}
    return sorted(last, key=lambda p: -p.apart(shown))


def test_click_on_the_second_system_opens_that_response(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    texts = texts_of(space, "kettles")
    for point in second_system(page)[:3]:
        click(page, point)
        shown = page.get_by_test_id("stText").filter(has_text=texts[point.id])
        expect(shown.first).to_be_visible(timeout=PATIENCE)
        assert shown.first.inner_text() == texts[point.id]
        settled(page)


def test_equal_texts_are_one_dot_and_said_to_be_several(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    assert len(points(page)) < 16
    folded = next(p for p in second_system(page) if p.id.endswith("/0"))
    click(page, folded)
    expect(page.get_by_text("was sampled 2 times")).to_be_visible(timeout=PATIENCE)


def test_lasso_over_several_opens_the_table(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    map_ = plot(page)
    map_.hover()
    map_.locator(".modebar-btn[data-title*=Lasso]").click()
    box = map_.bounding_box()
    assert box is not None
    left, top = box["x"] + 4, box["y"] + 40
    right, bottom = box["x"] + box["width"] - 6, box["y"] + box["height"] - 6
    inside = [p for p in points(page) if left < p.x < right and top < p.y < bottom]
    page.mouse.move(left, top)
    page.mouse.down()
    for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 3)):
        page.mouse.move(x, y, steps=8)
    page.mouse.up()
    table = page.get_by_test_id("stDataFrame")
    expect(table.first).to_be_visible(timeout=PATIENCE)
    said = page.get_by_text(re.compile(r"^\d+ selected$")).first.inner_text()
    assert int(said.split()[0]) >= len(inside) >= 2


def test_hover_shows_an_excerpt_and_the_system(visit: Visit, space: Workspace):
    page = visit()
    choose_dataset(page, "kettles")
    point = second_system(page)[0]
    said = hover(page, point)
    start = " ".join(texts_of(space, "kettles")[point.id].split())[:20]
    assert start in said
    assert "aligned" in said


@pytest.mark.parametrize("colour", ["role", "cluster"])
def test_other_colours_do_not_move_the_dots(visit: Visit, colour: str):
    page = visit()
    choose_dataset(page, "kettles")
    before = {p.id: (round(p.x), round(p.y)) for p in points(page)}
    page.locator(".st-key-colour_by input").first.click()
    page.get_by_role("option", name=colour, exact=True).click()
    settled(page)
    assert {p.id: (round(p.x), round(p.y)) for p in points(page)} == before
