"""The Lab with the fake generator: edit, generate, watch, stop, go away and come back."""

from __future__ import annotations

import json
import re
import time

from playwright.sync_api import Locator, Page, expect

from core.workspace import Workspace
from tests.e2e.conftest import Visit
from tests.e2e.driver import PATIENCE, choose_dataset, go, settled, slide

FINISHED = re.compile(r"sample \d+ .*\bwords\b")


def lab(visit: Visit) -> Page:
    page = visit("lab")
    choose_dataset(page, "kettles")
    return page


def hint_box(page: Page) -> Locator:
    return page.get_by_role("textbox", name=re.compile("^Hint")).last


def write_hint(page: Page, text: str) -> None:
    hint_box(page).fill(text)
    hint_box(page).press("Control+Enter")
    settled(page)


def generate(page: Page) -> Locator:
    return page.get_by_role("button", name=re.compile("Generate"))


def finished(page: Page) -> Locator:
    return page.get_by_test_id("stCaptionContainer").filter(has_text=FINISHED)


def test_a_hint_steers_the_samples_that_appear(visit: Visit):
    page = lab(visit)
    slide(page, "lab_samples", "Home", "ArrowRight", "ArrowRight")
    write_hint(page, "Warm the pot first")
    generate(page).click()
    expect(finished(page)).to_have_count(3, timeout=PATIENCE)
    expect(page.get_by_test_id("stText").filter(has_text="1. Warm the pot first.").first).to_be_visible()


def test_the_exact_text_that_is_sent_holds_the_hint(visit: Visit):
    page = lab(visit)
    write_hint(page, "Warm the pot first")
    page.get_by_text("The exact text that will be sent").click()
    expect(page.get_by_test_id("stCode").filter(has_text="Warm the pot first")).to_be_visible(timeout=PATIENCE)


def ends(space: Workspace) -> list[str]:
    """How the samples of the latest run ended, as far as they are on disk."""
    lines = max((space.root / "runs").glob("*.jsonl")).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [row["sample"]["finish_reason"] for row in rows if "sample" in row]


def test_a_long_run_stops_within_two_seconds_and_keeps_what_it_has(visit: Visit, space: Workspace):
    page = lab(visit)
    slide(page, "lab_samples", "End")
    write_hint(page, " ".join(f"word{k}" for k in range(400)))
    generate(page).click()
    expect(finished(page).first).to_be_visible(timeout=PATIENCE)
    stop = page.get_by_role("button", name="Stop")
    expect(stop).to_be_visible(timeout=PATIENCE)
    stop.click()
    pressed = time.monotonic()
    while "cancelled" not in ends(space):
        assert time.monotonic() - pressed < 2.0, "it goes on generating"
        time.sleep(0.02)
    expect(page.get_by_text(re.compile("^Stopped"))).to_be_visible(timeout=PATIENCE)
    expect(stop).to_have_count(0)
    assert 0 < sum(end != "cancelled" for end in ends(space)) < 16
    assert finished(page).count() >= 1


def test_edits_survive_a_visit_to_another_page(visit: Visit):
    page = lab(visit)
    write_hint(page, "Descale it every month")
    examples = page.get_by_role("checkbox")
    before = examples.count()
    page.locator("[class*=st-key-e][class*=Remove] button:visible").first.click()
    expect(examples).to_have_count(before - 1, timeout=PATIENCE)
    slide(page, "lab_samples", "Home")
    settled(page)
    go(page, "Explore")
    expect(page.locator(".st-key-map")).to_be_visible(timeout=PATIENCE)
    go(page, "Lab")
    expect(hint_box(page)).to_have_value("Descale it every month", timeout=PATIENCE)
    expect(examples).to_have_count(before - 1, timeout=PATIENCE)
    expect(generate(page)).to_contain_text("1")


def test_moving_a_slider_during_a_run_keeps_its_samples(visit: Visit):
    page = lab(visit)
    slide(page, "lab_samples", "Home", *["ArrowRight"] * 4)
    write_hint(page, " ".join(f"word{k}" for k in range(60)))
    generate(page).click()
    expect(finished(page).first).to_be_visible(timeout=PATIENCE)
    slide(page, "lab_temperature", "ArrowRight")
    expect(finished(page)).to_have_count(5, timeout=PATIENCE)


def test_two_visitors_generate_at_the_same_moment_and_see_their_own_samples(visit: Visit):
    pages = [lab(visit), lab(visit)]
    for k, page in enumerate(pages):
        slide(page, "lab_samples", "Home", "ArrowRight")
        write_hint(page, f"Hint of visitor {k}")
    for page in pages:
        generate(page).click()
    for k, page in enumerate(pages):
        expect(finished(page)).to_have_count(2, timeout=PATIENCE)
        texts = page.get_by_test_id("stText")
        expect(texts.filter(has_text=f"Hint of visitor {k}")).to_have_count(2)
        expect(texts.filter(has_text=f"Hint of visitor {1 - k}")).to_have_count(0)


def test_a_run_is_saved_as_a_system_of_a_new_dataset(visit: Visit, space: Workspace):
    page = lab(visit)
    untouched = space.load("kettles").content_key()
    slide(page, "lab_samples", "Home", "ArrowRight")
    generate(page).click()
    expect(finished(page)).to_have_count(2, timeout=PATIENCE)
    page.get_by_role("button", name=re.compile("Save this run")).click()
    page.get_by_role("textbox", name="Name of the system").fill("my run")
    page.get_by_role("textbox", name="Name of the new dataset").fill("kettles again")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".st-key-dataset_box input").first).to_have_value("kettles again", timeout=PATIENCE)
    saved = space.load("kettles again")
    assert (saved.responses["system"] == "my run").sum() == 2
    assert space.load("kettles").content_key() == untouched
    space.delete("kettles again")


def test_where_no_model_is_fetched_the_lab_says_what_would_be(visit: Visit):
    page = lab(visit)
    box = page.locator(".st-key-lab_model input").first
    box.click()
    page.get_by_role("option", name="gemma-3-270m").click()
    offer = page.get_by_role("button", name=re.compile(r"^Fetch \d+ MB|.*Fetch \d+ MB"))
    expect(offer).to_be_visible(timeout=PATIENCE)
    expect(page.get_by_text(re.compile(r"\d+ MB, licence")).first).to_be_visible()
