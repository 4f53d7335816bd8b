"""The generators in memory: built once, held while in use, unloaded before memory runs out."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from core import models
from core.errors import OvertonError
from core.generation import memory, pool
from core.generation.fake import FakeGenerator


@pytest.fixture(autouse=True)
def empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BUILT", {})


def test_one_model_that_loads_does_not_hold_up_another(monkeypatch: pytest.MonkeyPatch) -> None:
    pool.use_generator("ready", FakeGenerator())
    go_on, inside = threading.Event(), threading.Event()

    def slow(model: str) -> None:
        inside.set()
        go_on.wait(20)
        raise OvertonError("no such model")

    monkeypatch.setattr(models, "locate", slow)

    def visit() -> None:
        with pytest.raises(OvertonError):
            pool.generator("slow")

    visitor = threading.Thread(target=visit)
    visitor.start()
    assert inside.wait(5)
    other = threading.Thread(target=pool.generator, args=("ready",))
    other.start()
    other.join(2)
    assert not other.is_alive()
    go_on.set()
    visitor.join()


def test_two_visitors_build_a_model_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.generation import local
    from core.models import Located

    built: list[str] = []

    class Slow:
        def __init__(self, source: str, **_: Any) -> None:
            time.sleep(0.1)
            built.append(source)

    monkeypatch.setattr(local, "LocalGenerator", Slow)
    monkeypatch.setattr(models, "locate", lambda model: Located(model, "folder", "1"))
    got: list[object] = []
    visitors = [threading.Thread(target=lambda: got.append(pool.generator("m"))) for _ in range(4)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join()
    assert built == ["folder"]
    assert len({id(g) for g in got}) == 1


class Closing(FakeGenerator):
    closed = False

    def close(self) -> None:
        self.closed = True


def test_the_least_recently_used_idle_model_leaves_first(monkeypatch: pytest.MonkeyPatch) -> None:
    made = {name: Closing(model=name) for name in ("a", "b", "c", "d")}
    for name, one in made.items():
        pool.use_generator(name, one)
    monkeypatch.setattr(memory, "available", lambda device: 100 * (1 + sum(one.closed for one in made.values())))
    pool.generator("a")
    with pool.hold("b"):
        pool.make_room("new", 150)
        assert [name for name, one in made.items() if one.closed] == ["c"], "b is held, a was just used"
        pool.make_room("new", 50)
        assert [name for name in made if not pool.is_built(name)] == ["c"]
        with pytest.raises(OvertonError, match=r"new needs about .* GB .* stop what b is doing"):
            pool.make_room("new", 900)
    with pytest.raises(OvertonError, match="take a smaller model"):
        pool.make_room("new", 900)
    assert all(one.closed for one in made.values())


def test_a_model_that_generates_is_not_unloaded() -> None:
    pool.use_generator("a", Closing(model="a"))
    with pool.hold("a"), pytest.raises(OvertonError, match="stop it first"):
        pool.unload("a")
    pool.unload("a")
    assert not pool.is_built("a")


def test_memory_is_counted() -> None:
    free = memory.available()
    assert 2**20 < memory.resident() < 2**45
    assert 0 <= free < 2**45
