"""The pictures of the README, from the real app on the shipped demonstration.

    python docs/make_screenshots.py [--lab-seconds 300]

Needs Chromium. The Lab is shown with a run of the base model where the models have been fetched
(`python -m core fetch`), else as it is before the first run.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from io import BytesIO
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402
from playwright.sync_api import Page, expect  # noqa: E402

from bench.browser import Server, chromium, serve  # noqa: E402
from core import demo, models  # noqa: E402
from core.vectors import DEFAULT_ID  # noqa: E402

SIZE = (1440, 900)
LARGEST = 250_000  # bytes
# A dot in the middle of the second system: the one that is nearest to the others of its own.
DOT = """gd => {
  const of = gd.data.filter(t => t.customdata)[1], full = gd._fullLayout, box = gd.getBoundingClientRect();
  const sum = of.x.map((x, i) => of.x.reduce((s, u, k) => s + Math.hypot(u - x, of.y[k] - of.y[i]), 0));
  const i = sum.indexOf(Math.min(...sum));
  return [box.left + full.xaxis._offset + full.xaxis.l2p(of.x[i]), box.top + full.yaxis._offset
    + full.yaxis.l2p(of.y[i])];
}"""
STARS = """n => document.querySelector('.st-key-lab_map .js-plotly-plot')?.data
  ?.some(t => t.marker?.symbol === 'star' && t.x.length >= n)"""


def save(page: Page, file: Path) -> None:
    """Take the window as a small PNG. Raises `SystemExit` where it does not become small."""
    page.wait_for_timeout(1500)  # what fades has faded
    picture = Image.open(BytesIO(page.screenshot())).convert("RGB")
    picture.save(file, optimize=True)
    if file.stat().st_size > LARGEST:  # fewer colours; small marks may change theirs a little
        picture.quantize(256, kmeans=2, dither=Image.Dither.NONE).save(file, optimize=True)
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)}: {size / 1000:.0f} kB")
    if size > LARGEST:
        raise SystemExit(f"{file} is larger than {LARGEST / 1000:.0f} kB")


def explore(page: Page, server: Server, file: Path) -> None:
    """The first screen with one response opened."""
    page.goto(server.url)
    page.wait_for_selector(".st-key-map .scatterlayer .point", timeout=60_000)
    page.wait_for_timeout(2000)
    x, y = page.locator(".st-key-map .js-plotly-plot").evaluate(DOT)
    page.mouse.move(x + 20, y + 20)
    page.mouse.move(x, y, steps=5)
    page.wait_for_selector(".st-key-map .hovertext")
    page.wait_for_timeout(500)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_text(re.compile("Nearest response of each other system"))).to_be_visible(timeout=60_000)
    page.mouse.move(5, 5)
    save(page, file)


def lab(page: Page, server: Server, file: Path, seconds: float) -> None:
    """The Lab, with a run where the models are there."""
    page.goto(f"{server.url}/lab")
    page.wait_for_selector(".st-key-lab_map .scatterlayer .point", timeout=60_000)
    if all(models.local_folder(model) for model in (demo.BASE_MODEL, DEFAULT_ID)):
        page.get_by_role("button", name=re.compile("Generate")).click()
        page.wait_for_function(STARS, arg=demo.SAMPLES - 1, timeout=1000 * seconds)
        expect(page.get_by_role("button", name="Stop")).to_have_count(0, timeout=1000 * seconds)
    page.mouse.move(5, 5)
    page.evaluate("document.querySelector('[data-testid=stMain]').scrollTo(0, 0)")
    save(page, file)


def main() -> None:
    """Make both pictures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--lab-seconds", type=float, default=300, help="how long a run in the Lab may take")
    seconds = parser.parse_args().lab_seconds
    with tempfile.TemporaryDirectory() as temporary, chromium() as browser:
        folder = Path(temporary)
        env = {"OVERTON_WORKSPACE": str(folder / "workspace"), "OVERTON_FAKE_GENERATOR": ""}
        with serve(folder / "server.log", env=env, options=("--server.fileWatcherType", "none")) as server:
            server.wait()
            size = {"width": SIZE[0], "height": SIZE[1]}
            explore(browser.new_context(viewport=size).new_page(), server, ROOT / "docs" / "explore.png")
            lab(browser.new_context(viewport=size).new_page(), server, ROOT / "docs" / "lab.png", seconds)


if __name__ == "__main__":
    main()
