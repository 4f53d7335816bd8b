"""The large libraries (torch, transformers, sentence-transformers) load at first use, one thread at a time.

They fill their modules lazily and build models under a switch that holds for the whole process: of two threads
that import from them or load a model at once, one may find half a module, or weights without data.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from threading import RLock
from typing import TypeVar

T = TypeVar("T")

LOADING = RLock()
_HALF = re.compile(r"partially initialized module '([\w.]+)'")


def wait_for_half_a_module(error: BaseException) -> bool:
    """Whether an error comes from a module that another thread is just importing; returns when that is done.

    scipy and scikit-learn look whether their input is a tensor as soon as torch is among the loaded modules, be it
    half-loaded.
    """
    found = _HALF.search(str(error)) if isinstance(error, AttributeError | ImportError) else None
    if found is None:
        return False
    importlib.import_module(found[1])
    return True


def settled(work: Callable[[], T]) -> T:
    """The result of `work`, which is begun again where it has met half a module."""
    for _ in range(4):
        try:
            return work()
        except (AttributeError, ImportError) as error:
            if not wait_for_half_a_module(error):
                raise
    return work()
