"""AppTest on the real app with a small dataset in a workspace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from core import vectors
from core.dataset import Dataset
from core.workspace import Workspace

APP = Path(__file__).resolve().parent.parent.parent / "app.py"


@pytest.fixture
def space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    """The workspace that the app uses in this test; the shipped datasets are there as well."""
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path / "space"))
    st.cache_resource.clear()
    st.cache_data.clear()
    yield Workspace(tmp_path / "space")
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def with_vectors(space: Workspace, small: Dataset) -> Dataset:
    """The small dataset in the workspace, with vectors that need no model (under the default encoder's name)."""
    space.save(small)
    encoder = vectors.HashEncoder()
    encoder.key = vectors.DEFAULT_KEY
    vectors.vectors_for(small, space, encoder)
    return small


@pytest.fixture
def open_app() -> Callable[..., AppTest]:
    """Open the app on a page, with session state set beforehand."""

    def run(page: str = "pages/explore.py", **state: object) -> AppTest:
        app = AppTest.from_file(str(APP), default_timeout=60)
        for key, value in state.items():
            app.session_state[key] = value
        app.run()
        if page != "pages/explore.py":
            app.switch_page(page).run()
        assert not app.exception
        return app

    return run
