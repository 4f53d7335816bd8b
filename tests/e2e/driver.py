"""What a test does in the browser: find dots, choose, wait, and look for what must not be there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from playwright.sync_api import Locator, Page, expect

PATIENCE = 30_000  # milliseconds; machines that run tests are slow and shared
POINTS = """gd => {
  const box = gd.getBoundingClientRect(), full = gd._fullLayout, found = [];
  gd.data.forEach((trace, curve) => {
    if (!trace.customdata) return;
    trace.x.forEach((x, i) => found.push({
      system: trace.name, curve, id: trace.customdata[i][0],
      x: box.left + full.xaxis._offset + full.xaxis.l2p(x),
      y: box.top + full.yaxis._offset + full.yaxis.l2p(trace.y[i]),
    }));
  });
  return found;
}"""


@dataclass(frozen=True)
class Point:
    """A dot of the map: its system, its curve, the id it carries, and where it lies in the window."""

    system: str
    curve: int
    id: str
    x: float
    y: float

    def apart(self, others: Iterable[Point]) -> float:
        """Distance in pixels to the nearest other dot."""
        return min((math.hypot(self.x - o.x, self.y - o.y) for o in others if o != self), default=math.inf)


def plot(page: Page, key: str = "map") -> Locator:
    """The plotly figure with this key, drawn."""
    found = page.locator(f".st-key-{key} .js-plotly-plot")
    expect(found.locator(".scatterlayer .point, .gl-canvas").first).to_be_attached(timeout=PATIENCE)
    return found


def points(page: Page, key: str = "map") -> list[Point]:
    """All dots that carry a response."""
    return [Point(**raw) for raw in plot(page, key).evaluate(POINTS)]


def hover(page: Page, point: Point, key: str = "map") -> str:
    """Rest on a dot; returns what its label says."""
    label = page.locator(f".st-key-{key} .hoverlayer .hovertext")
    page.mouse.move(point.x + 30, point.y + 30)
    page.mouse.move(point.x, point.y, steps=4)
    expect(label.first).to_be_attached(timeout=PATIENCE)
    return " ".join((label.first.text_content() or "").split())


def click(page: Page, point: Point, key: str = "map") -> None:
    """Click a dot, as a hand does it: first get there, then press.

    Faster hands lose a click: a redraw between press and release, or plotly takes two clicks for a double one.
    """
    hover(page, point, key)
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.up()


def settled(page: Page) -> None:
    """Wait until the server has drawn everything that it was asked for."""
    page.wait_for_timeout(150)
    expect(page.locator("[data-testid=stApp]")).to_have_attribute(
        "data-test-script-state", re.compile("notRunning"), timeout=PATIENCE
    )
    expect(page.locator("[data-stale=true]")).to_have_count(0, timeout=PATIENCE)


def choose(page: Page, box: str, option: str) -> None:
    """Pick an option of the select box with this key, by typing."""
    inside = page.locator(f".st-key-{box} input").first
    inside.click()
    inside.fill(option)
    page.get_by_role("option", name=option, exact=True).first.click()
    settled(page)


def choose_dataset(page: Page, name: str) -> None:
    """Pick a dataset, unless it is chosen already."""
    box = page.locator(".st-key-dataset_box")
    expect(box).to_be_visible(timeout=PATIENCE)
    if box.locator("input").first.input_value() != name:
        choose(page, "dataset_box", name)
    expect(box.locator("input").first).to_have_value(name, timeout=PATIENCE)


def go(page: Page, title: str) -> None:
    """Go to a page by the navigation, as a visitor does: what was edited is kept."""
    page.get_by_test_id("stTopNavLinkContainer").get_by_text(title, exact=True).click()
    settled(page)


def slide(page: Page, key: str, *presses: str) -> None:
    """Move the slider with this key by the keyboard."""
    thumb = page.locator(f".st-key-{key} [role=slider], .st-key-{key} input[type=range]").first
    expect(thumb).to_be_attached(timeout=PATIENCE)
    thumb.focus()
    for press in presses:
        page.keyboard.press(press)
    settled(page)


def no_sideways_scrolling(page: Page) -> None:
    """Nothing is wider than the window."""
    wide = page.evaluate(
        "[document.documentElement, document.querySelector('[data-testid=stMain]')]"
        ".map(e => e.scrollWidth - e.clientWidth)"
    )
    assert max(wide) <= 1, f"the page is {max(wide)} px wider than the window"


INTRUDERS = """() => {
  const found = [];
  for (const s of document.scripts) if (s.textContent.includes('alert(')) found.push(s.outerHTML);
  for (const e of document.querySelectorAll('img[src="x"], img[onerror], a[href^="javascript"], .katex, svg image'))
    found.push(e.outerHTML);
  for (const e of document.querySelectorAll('b, strong, em, code, [class*=colored], [style*="font-weight:bold"]'))
    if (['x', 'strong', 'slanted', 'hue', 'code'].includes(e.textContent.trim())) found.push(e.outerHTML);
  for (const e of document.querySelectorAll('tspan'))
    if (e.textContent === 'x' && getComputedStyle(e).fontWeight >= 600) found.push(e.outerHTML);
  return found.map(h => h.slice(0, 300));
}"""


def nothing_got_out(page: Page) -> None:
    """No text has become an element."""
    assert page.evaluate(INTRUDERS) == []
