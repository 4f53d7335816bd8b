"""Fixtures that many tests share: a small dataset in our own words, a workspace, the authors' release."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core.dataset import Dataset
from core.workspace import Workspace

SHARED = Path(__file__).resolve().parent.parent.parent / "shared"


@pytest.fixture(scope="session")
def release() -> Path:
    """The folder with a part of the authors' release."""
    folder = SHARED / "release"
    if not folder.is_dir():
        pytest.skip("the authors' release is not on this machine (../shared/release)")
    return folder


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Values recomputed from that part of the release."""
    file = SHARED / "reference" / "release_reference.json"
    if not file.is_file():
        pytest.skip("the reference values are not on this machine (../shared/reference)")
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """An empty workspace without shipped datasets."""
    return Workspace(tmp_path / "workspace", shipped=tmp_path / "no-shipped-data")


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Make a folder one that may not be entered; changing its mode would not stop root, who may run the tests."""

    def act(folder: Path) -> None:
        for method in ("stat", "iterdir", "open", "mkdir"):
            monkeypatch.setattr(Path, method, _refusing(getattr(Path, method), folder, itself=method == "iterdir"))

    return act


def _refusing(method: Callable[..., Any], folder: Path, *, itself: bool) -> Callable[..., Any]:
    def refuse(self: Path, *args: Any, **keywords: Any) -> Any:
        if folder in self.parents or (itself and self == folder):
            raise PermissionError(13, "Permission denied", str(self))
        return method(self, *args, **keywords)

    return refuse


TEXTS = {
    ("tea", "plain"): ["Boil water and wait.", "Use a pot.", "I have no idea, ask my aunt."],
    ("tea", "tuned"): [
        "1. Boil water.\n2. Add the leaves.\n3. Wait three minutes.",
        "1. Boil the water.\n2. Add leaves.\n3. Wait four minutes.",
        "1. Boil water.\n2. Add the leaves.\n3. Wait three minutes.",
    ],
    ("bike", "plain"): ["Oil the chain.", "", "Bikes are fun and my street is steep."],
    ("bike", "tuned"): [
        "- Clean the chain.\n- Oil the chain.",
        "- Clean the chain.\n- Then oil the chain.",
        "- Clean it.\n- Oil the chain.",
    ],
}


@pytest.fixture
def small() -> Dataset:
    """Two prompts, a base and an aligned system, three samples each; one empty text, one cut, one error."""
    rows = [
        {"prompt_id": prompt, "system": system, "sample": k, "text": text, "finish_reason": "stop", "seed": k}
        for (prompt, system), texts in TEXTS.items()
        for k, text in enumerate(texts)
    ]
    rows[2]["finish_reason"] = "length"
    rows.append({"prompt_id": "bike", "system": "plain", "sample": 3, "text": "", "error": "the server hung up"})
    return Dataset.build(
        "small",
        prompts=pd.DataFrame(
            [
                {"prompt_id": "tea", "text": "How do I make tea?"},
                {"prompt_id": "bike", "text": "My bike squeaks. Why?"},
            ]
        ),
        systems=pd.DataFrame([{"system": "plain", "role": "base"}, {"system": "tuned", "role": "aligned"}]),
        responses=pd.DataFrame(rows),
    )
