"""The Lab with the real base model and the real encoder, on the shipped demonstration."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from bench.browser import Server, serve
from core import demo, models
from core.errors import OvertonError
from core.vectors import DEFAULT_ID
from core.workspace import Workspace
from tests.e2e.conftest import Visit, on_ci
from tests.e2e.driver import choose_dataset, plot, settled, slide

pytestmark = pytest.mark.slow
SLOW = 240_000  # milliseconds: two cores load the model, read the context and write 2 x 48 tokens
STARS = "gd => gd.data.filter(t => t.marker && t.marker.symbol === 'star').map(t => t.x.length)[0] || 0"
DONE = re.compile(r"^sample \d+ · \d+ words")


@pytest.fixture(scope="session")
def fetched() -> None:
    """The models, from the registry if they are not here yet."""
    try:
        for model in (demo.BASE_MODEL, DEFAULT_ID):
            models.fetch(model)
    except OvertonError as error:
        if on_ci():
            raise
        pytest.skip(f"the models cannot be fetched: {error}")


@pytest.fixture(scope="module")
def server(fetched: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Workspace]]:
    """The app as a user starts it, but for its workspace."""
    folder = tmp_path_factory.mktemp("real")
    env = {k: os.environ[k] for k in ("OVERTON_MODELS",) if k in os.environ}
    env |= {"OVERTON_WORKSPACE": str(folder / "workspace"), "OVERTON_FAKE_GENERATOR": ""}
    env |= {"HF_HUB_DISABLE_PROGRESS_BARS": "0"}  # they tell how often a model is loaded
    with serve(folder / "server.log", env=env, options=("--server.fileWatcherType", "none")) as started:
        started.wait()
        yield started, Workspace(folder / "workspace")


def lab(visit: Visit, server: Server) -> Page:
    """The Lab, ready for two short samples of the first prompt."""
    page = visit("lab", server=server)
    choose_dataset(page, demo.NAME)
    slide(page, "lab_samples", "Home", "ArrowRight")
    slide(page, "lab_tokens", "Home", "ArrowRight", "ArrowRight")
    return page


def finished(page: Page) -> Locator:
    return page.get_by_test_id("stCaptionContainer").filter(has_text=DONE)


def test_real_samples_land_on_the_map_and_are_saved(visit: Visit, server: tuple[Server, Workspace]):
    app, space = server
    page = lab(visit, app)
    page.get_by_role("button", name=re.compile("Generate")).click()
    expect(finished(page)).to_have_count(2, timeout=SLOW)
    texts = [text.strip() for text in page.get_by_test_id("stText").all_inner_texts()]
    assert any(len(text.split()) > 3 for text in texts)
    page.wait_for_function(f"({STARS})(document.querySelector('.st-key-lab_map .js-plotly-plot')) > 0", timeout=SLOW)
    assert plot(page, "lab_map").evaluate(STARS) >= 1
    settled(page)
    page.get_by_role("button", name=re.compile("Save this run")).click()
    page.get_by_role("textbox", name="Name of the system").fill("my run")
    page.get_by_role("textbox", name="Name of the new dataset").fill("demonstration and my run")
    page.get_by_role("button", name="Save", exact=True).click()
    box = page.locator(".st-key-dataset_box input").first
    expect(box).to_have_value("demonstration and my run", timeout=SLOW)
    saved = space.load("demonstration and my run")
    mine = saved.responses[saved.responses["system"] == "my run"]
    assert len(mine) == 2
    assert mine["seed"].notna().all()
    assert set(mine["text"].str.strip()) <= {*texts, ""}
    assert "my run" not in space.load(demo.NAME).roles()


def test_two_visitors_share_one_model(visit: Visit, server: tuple[Server, Workspace]):
    app, _ = server
    pages = [lab(visit, app), lab(visit, app)]
    for page in pages:
        page.get_by_role("button", name=re.compile("Generate")).click()
    for page in pages:
        expect(finished(page)).to_have_count(2, timeout=SLOW)
    # What transformers says when it has read a model: (number of its tensors) by model.
    loads = Counter(re.findall(r"Loading weights: 100%\|[^|]*\| (\d+)/\1", app.output()))
    assert loads, "transformers no longer says when it loads"
    assert set(loads.values()) == {1}
