"""Servers in the Lab: configured ones by name, and a field for others only where the operator allows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.generation import endpoints


def script() -> None:
    import streamlit as st

    from components import endpoints as shown

    st.text(" ".join([*shown.offered("completions"), "|", *shown.offered("chat")]))
    st.text(f"typed {shown.typed()}")


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path))
    monkeypatch.setattr(endpoints, "_SECRETS", [])
    for name in ("OVERTON_ENDPOINTS", "OVERTON_ALLOW_ENDPOINTS"):
        monkeypatch.delenv(name, raising=False)
    return AppTest.from_function(script, default_timeout=30)


def test_configured_endpoints_stand_under_their_kind(app: AppTest, tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text(
        '[a]\nurl = "http://h/v1"\nmodel = "m"\n[b]\nurl = "http://h/v1"\nmodel = "m"\nkind = "chat"\n',
        encoding="utf-8",
    )
    app.run()
    assert not app.exception
    assert [text.value for text in app.text] == ["server:a | server:b", "typed None"]


def test_a_broken_file_is_one_sentence(app: AppTest, tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").write_text('[a]\nmodel = "m"\n', encoding="utf-8")
    app.run()
    assert not app.exception
    assert len(app.error) == 1 and "url is missing" in app.error[0].value
    assert app.text[0].value == "|"


def test_the_field_for_an_address_is_there_only_where_it_is_allowed(
    app: AppTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    app.run()
    assert not app.text_input
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    app.run()
    address, model = app.text_input
    address.set_value("http://localhost:9/v1")
    model.set_value("owner/name")
    app.run()
    assert not app.exception
    assert app.text[1].value == "typed server:http://localhost:9/v1#owner/name"
