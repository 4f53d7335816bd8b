"""The real models for slow tests, fetched where that is possible."""

from __future__ import annotations

import pytest

from core import models
from core.errors import OvertonError
from tests.e2e.conftest import on_ci


def folder_of(model: str) -> str:
    """The folder of a model of the catalogue; the test is skipped where it cannot be fetched, but not under CI."""
    try:
        return str(models.fetch(model))
    except OvertonError as error:
        if on_ci():
            raise
        pytest.skip(f"{model} cannot be fetched: {error}")
