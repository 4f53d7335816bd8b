"""The real app, started once, and a real Chromium that looks at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page

from bench.browser import Server, chromium, chromium_path, serve
from core.workspace import Workspace
from tests.e2e import datasets

HERE = Path(__file__).parent
Visit = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder drives a browser; one worker runs it all, so that the app starts once."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.xdist_group("e2e"))


def on_ci() -> bool:
    """Whether nothing may be skipped for want of a browser or a network."""
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A headless Chromium; where there is none, tests are skipped, but fail where CI is set."""
    if chromium_path() is None:
        reason = "there is no Chromium on this machine (apt-get install chromium)"
        if on_ci():
            pytest.fail(reason)
        pytest.skip(reason)
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def space(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """The workspace that the app looks at."""
    return datasets.fill(tmp_path_factory.mktemp("e2e") / "workspace")


@pytest.fixture(scope="session")
def app(space: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app with the fake generator and without any model."""
    folder = tmp_path_factory.mktemp("server")
    env = {
        "OVERTON_WORKSPACE": str(space.root),
        "OVERTON_MODELS": str(folder / "no-models"),
        "OVERTON_FAKE_GENERATOR": "1",
    }
    # Without a watcher of files, somebody who edits the code meanwhile does not disturb.
    with serve(folder / "server.log", env=env, options=("--server.fileWatcherType", "none")) as started:
        started.wait()
        yield started


def _is_complaint(said: ConsoleMessage) -> bool:
    # Streamlit looks for its server below the address first (/lab/_stcore/…), which answers 404.
    return said.type == "error" and "/_stcore/" not in said.location.get("url", "")


def _complaint(said: ConsoleMessage) -> str:
    return f"console: {said.text} at {said.location.get('url', '')}"


def _watched(page: Page, seen: list[str]) -> Page:
    page.on("pageerror", lambda error: seen.append(f"uncaught: {error}"))
    page.on("console", lambda said: seen.append(_complaint(said)) if _is_complaint(said) else None)

    def dialog(opened: Dialog) -> None:
        seen.append(f"a dialog opened: {opened.message}")
        opened.dismiss()

    page.on("dialog", dialog)
    return page


@pytest.fixture
def visit(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Visit]:
    """Open a path of the app as a new visitor.

    At the end no page may have thrown, complained or opened a dialog, and no server may have printed a traceback.
    """
    contexts: list[BrowserContext] = []
    seen: list[str] = []
    before: dict[Path, int] = {}

    def opened(
        path: str = "", *, width: int = 1440, height: int = 900, theme: str = "light", server: Server | None = None
    ) -> Page:
        at = server or request.getfixturevalue("app")
        before.setdefault(at.log, len(at.output()))
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        contexts.append(context)
        page = _watched(context.new_page(), seen)
        page.goto(f"{at.url}/{path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    printed = "".join(log.read_text(encoding="utf-8", errors="replace")[n:] for log, n in before.items())
    assert "Traceback" not in printed, printed[-3000:]
    assert seen == []
