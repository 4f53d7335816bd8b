"""The first visit to a server that has just started, by whatever address."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from bench.browser import serve
from components.pages import PAGES
from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.driver import PATIENCE, settled


@pytest.mark.parametrize("path", ["", "lab"])
def test_first_visit_of_all_gets_the_navigation(visit: Visit, space: Workspace, tmp_path: Path, path: str):
    env = {"OVERTON_WORKSPACE": str(space.root), "OVERTON_FAKE_GENERATOR": "1"}
    with serve(tmp_path / "server.log", env=env, options=("--server.fileWatcherType", "none")) as server:
        server.wait()
        page = visit(path, server=server)
        links = page.get_by_test_id("stTopNavLink")
        expect(links).to_have_count(len(PAGES), timeout=PATIENCE)
        expect(page.locator(".st-key-dataset_box")).to_be_visible(timeout=PATIENCE)
        settled(page)
        expect(page.get_by_test_id("stSidebar")).to_have_count(0)
        here = page.locator("[data-testid=stTopNavLink][aria-current=page]")
        assert here.inner_text().split()[-1].lower() == (path or "explore")
