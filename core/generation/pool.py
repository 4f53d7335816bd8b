"""The generators in memory: each is built once for all visitors, and leaves before memory runs out.

A model id names a model of the catalogue, a folder, a GGUF file, a hub id, or an endpoint (`server:NAME`), which
takes no memory and is never unloaded to make room.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import OvertonError
from core.generation import memory
from core.generation.base import Generator

_BUILT: dict[str, Generator] = {}  # the least recently used one first
_HELD: Counter[str] = Counter()
_LOCKS: dict[str, threading.Lock] = {}
_STATE = threading.RLock()


def lane(model: str) -> str:
    """The queue (see `core.jobs`) in which all work of one model stands."""
    return f"model {model}"


def is_built(model: str) -> bool:
    """Whether the model is in memory already."""
    return model in _BUILT


def built(model: str) -> Generator | None:
    """The generator of a model that is in memory already; None for any other, and nothing is loaded."""
    return _BUILT.get(model)


def use_generator(model: str, made: Generator) -> None:
    """Register a generator under a model id, for instance the fake one."""
    with _STATE:
        _BUILT[model] = made


@contextmanager
def hold(model: str) -> Iterator[None]:
    """While this is open, the model is not unloaded to make room for another one."""
    with _STATE:
        _HELD[model] += 1
    try:
        yield
    finally:
        with _STATE:
            _HELD[model] -= 1


def generator(model: str) -> Generator:
    """The generator of a model, built once for all visitors; takes seconds the first time.

    Raises `OvertonError` where the model is not fetched, cannot be loaded, or does not fit into memory.
    """
    with _STATE:
        made = _BUILT.pop(model, None)
        if made is not None:
            _BUILT[model] = made  # the most recently used one is the last
            return made
        own = _LOCKS.setdefault(model, threading.Lock())
    with own, hold(model):  # only those who want this model wait for it
        if (made := _BUILT.get(model)) is None:
            made = _build(model)
            use_generator(model, made)
        return made


def _build(model: str) -> Generator:
    from core.generation import endpoints

    if endpoints.is_server(model):
        return endpoints.build(endpoints.find(model))
    from core.generation.local import LocalGenerator
    from core.models import locate

    found = locate(model)
    return LocalGenerator(
        found.source,
        model=found.model,
        revision=found.revision,
        make_room=lambda size, device: make_room(model, size, device),
    )


def unload(model: str) -> None:
    """Forget a generator and free its memory. Raises `OvertonError` while it is generating."""
    with _STATE:
        if _HELD[model] > 0:
            raise OvertonError(f"{model} is generating: stop it first.")
        made = _BUILT.pop(model, None)
    close = getattr(made, "close", None)
    if close is not None:
        close()


def make_room(model: str, size: int, device: str = "cpu") -> None:
    """Unload idle models, the least recently used first, until `size` bytes are free on a device.

    Raises `OvertonError` where that is not enough.
    """
    with _STATE:
        idle = [name for name, made in _BUILT.items() if hasattr(made, "close") and not _HELD[name]]
        while memory.available(device) < size and idle:
            unload(idle.pop(0))
        free = memory.available(device)
        if free < size:
            busy = [name for name in _BUILT if _HELD[name] and name != model]
            advice = f"stop what {busy[0]} is doing" if busy else "close other programs or take a smaller model"
            raise OvertonError(
                f"{model} needs about {size / 2**30:.1f} GB of memory and {free / 2**30:.1f} GB are free: {advice}."
            )
