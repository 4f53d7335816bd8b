"""Opening a file of one's own: whatever its name and its columns are called, they are shown literally."""

from __future__ import annotations

import json
import re

from playwright.sync_api import expect

from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.datasets import FORMULA, IMAGE, MARKDOWN, SCRIPT
from tests.e2e.driver import PATIENCE, nothing_got_out, settled


def test_a_hostile_file_is_previewed_saved_and_shown_literally(visit: Visit, space: Workspace):
    rows = [
        {"prompt": f"Say {SCRIPT}", "system": system, "sample": k, "text": f"{text} {k}", IMAGE: MARKDOWN}
        for system in (IMAGE, SCRIPT)
        for k, text in enumerate((SCRIPT, IMAGE, MARKDOWN, FORMULA))
    ]
    lines = [json.dumps(row) for row in rows] + ['{"prompt": "' + IMAGE]
    page = visit("data")
    settled(page)
    before = set(space.names())
    page.locator("input[type=file]").first.set_input_files(
        {"name": f"{IMAGE} {FORMULA}.jsonl", "mimeType": "application/json", "buffer": "\n".join(lines).encode()}
    )
    save = page.get_by_role("button", name=re.compile("Save")).first
    expect(save).to_be_visible(timeout=PATIENCE)
    settled(page)
    expect(page.locator("[data-testid=stMain]")).to_contain_text(IMAGE)
    nothing_got_out(page)
    save.click()
    expect(page.get_by_role("button", name=re.compile("Delete")).first).to_be_visible(timeout=PATIENCE)
    settled(page)
    nothing_got_out(page)
    (name,) = set(space.names()) - before
    saved = space.load(name)
    assert set(saved.roles()) == {IMAGE, SCRIPT}
    assert set(saved.responses["text"]) == {row["text"] for row in rows}
    space.delete(name)
