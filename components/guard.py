"""No traceback reaches a user: an expected failure is one sentence, an unexpected one says where to look."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

import streamlit as st
from streamlit.runtime.pages_manager import PagesManager

from components.text import literal
from core.errors import OvertonError
from core.heavy import wait_for_half_a_module

log = logging.getLogger(__name__)


def guarded(page: Callable[[], None]) -> Callable[[], None]:
    """Run a page; show an `OvertonError` as its sentence and log anything else."""

    @functools.wraps(page)
    def run() -> None:
        _by_the_front_door()
        try:
            page()
        except OvertonError as error:
            st.error(literal(str(error), 600), icon=":material/error:")
        except Exception as error:
            if wait_for_half_a_module(error):
                st.rerun()
            log.exception("a page failed")
            st.error(
                f"This page could not be drawn ({type(error).__name__}). "
                "Reload it, or choose another dataset; the log of the server has the details.",
                icon=":material/error:",
            )

    return run


def _by_the_front_door() -> None:
    """Go through app.py, which makes the navigation.

    A server that has not run app.py yet takes the folder pages/ for an app of the old kind: a first visit to
    /lab would see the page alone, beside a list of files.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
