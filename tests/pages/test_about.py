"""The About page: what it says comes from the registries."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components import about
from core import demo, lenses, models, similarity

APP = str(Path(__file__).resolve().parents[2] / "app.py")


@pytest.fixture
def page(tmp_path, monkeypatch) -> AppTest:
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path))
    app = AppTest.from_file(APP, default_timeout=60).run()
    app.switch_page("pages/about.py").run()
    assert not app.exception
    assert not app.error
    return app


def test_it_names_the_paper_and_its_own_limits(page):
    told = "\n".join(m.value for m in page.markdown)
    assert about.PAPER in told
    assert "no\nreplication" in told or "no replication" in told
    assert "distances across the picture mean little" in told.lower()
    assert "encoded in parts" in told


def test_every_lens_is_explained(page):
    table = page.table[0].value
    ids = [cell.strip("`") for cell in table["Id"]]
    assert ids[: len(lenses.LENSES)] == list(lenses.LENSES)
    assert set(ids[len(lenses.LENSES) :]) <= set(similarity.MEASURES)
    assert table["What it measures"].str.len().min() > 20


def test_ranges_are_words_a_reader_understands():
    table = about.lens_rows().set_index("Id")
    assert table.loc["`words`", "Range"] == "from 0"
    assert table.loc["`mean_cosine_distance`", "Range"] == "0 to 2"
    assert table.loc["`vector_to_teacher`", "Range"] == "−1 to 1"


def test_every_model_has_its_licence(page):
    table = page.table[1].value
    assert len(table) == len(models.catalogue())
    for entry, licence in zip(models.catalogue().values(), table["Licence"], strict=True):
        assert entry.licence_url in licence


def test_the_demonstration_is_described_as_it_is_generated(page):
    table = page.table[2].value
    assert len(table) == len(demo.SYSTEMS)
    told = "\n".join(m.value for m in page.markdown)
    assert f"{len(demo.prompts())} prompts of our own" in told
    assert f"{demo.SAMPLES} samples each" in told


def test_the_version_is_that_of_the_project():
    assert about.version().count(".") == 2
