"""Vectors from a real cluster of two workers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from core import vectors
from core.distributed import RayOptions
from core.errors import OvertonError
from core.vectors import HashEncoder, VectorStore, of_dataset, ray_encoder
from core.vectors.ray_encoder import EncodeWorker, RayEncoder
from core.workspace import Workspace
from tests.core.generation.real import folder_of
from tests.core.test_vectors import dataset_of

TEXTS = [f"{word} number {k}" for k in range(20) for word in ("kettle", "river", "train")]


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_dataset, "_BATCH", 8)


@pytest.mark.usefixtures("small_batches")
def test_vectors_are_those_of_one_process_and_stored_once(two_workers: RayOptions, workspace: Workspace) -> None:
    dataset = dataset_of([*TEXTS, *TEXTS[:9]])
    seen: list[tuple[int, int]] = []
    encoder = RayEncoder(make=partial(HashEncoder, 64), options=two_workers)
    made = vectors.vectors_for(dataset, workspace, encoder, progress=lambda *now: seen.append(now))
    assert seen[-1] == (60, 60) and len(seen) == 8
    assert VectorStore(vectors.store_file(workspace)).count(encoder.key) == 60
    other = Workspace(workspace.root / "other", shipped=workspace.root / "none")
    assert np.array_equal(made, vectors.vectors_for(dataset, other, HashEncoder(64)))


@pytest.mark.usefixtures("small_batches")
def test_what_is_stored_is_not_encoded_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors.vectors_for(dataset_of(TEXTS[:50]), workspace, HashEncoder(64))
    asked: list[str] = []

    def take(items: Any, worker: type[EncodeWorker], arguments: Any, *rest: Any) -> Any:
        own = worker(*arguments, 1)
        for item in items:
            asked.extend(item[1])
            yield from own.work(item)

    monkeypatch.setattr(ray_encoder, "results", take)
    monkeypatch.setattr(ray_encoder, "connected", lambda *given: object())
    encoder = RayEncoder(make=partial(HashEncoder, 64), options=RayOptions())
    vectors.vectors_for(dataset_of(TEXTS), workspace, encoder)
    assert sorted(asked) == sorted(TEXTS[50:])


@pytest.mark.usefixtures("small_batches")
def test_a_stop_keeps_what_has_come(two_workers: RayOptions, workspace: Workspace) -> None:
    dataset, cancel = dataset_of(TEXTS), threading.Event()
    encoder = RayEncoder(make=partial(HashEncoder, 64), options=two_workers)

    def stop(done: int, total: int) -> None:
        cancel.set()

    with pytest.raises(OvertonError, match="of 60 texts are done and kept"):
        vectors.vectors_for(dataset, workspace, encoder, progress=stop, cancel=cancel)
    have, need = vectors.coverage(dataset, workspace, encoder.key)
    assert 0 < have < need
    assert np.isfinite(vectors.vectors_for(dataset, workspace, encoder)).all()


def test_another_encoder_on_a_worker_is_refused() -> None:
    (found,) = EncodeWorker(partial(HashEncoder, 32), "hash", "hash-64@1", 1).work((0, ["a"]))
    assert "The encoder is hash-32@1" in str(found)


@pytest.mark.slow
@pytest.mark.usefixtures("small_batches")
def test_the_real_encoder_gives_the_same_numbers(
    two_workers: RayOptions, workspace: Workspace, monkeypatch: pytest.MonkeyPatch, one_thread: Callable[[], Any]
) -> None:
    folder_of(vectors.DEFAULT_ID)
    dataset = dataset_of([*TEXTS[:20], "A long text. " * 300])
    made = vectors.vectors_for(dataset, workspace, RayEncoder(options=two_workers))
    other = Workspace(workspace.root / "other", shipped=workspace.root / "none")
    with one_thread():
        wanted = vectors.vectors_for(dataset, other, vectors.SentenceTransformerEncoder())
    assert np.array_equal(made, wanted)
    assert vectors.longer(dataset, workspace) == vectors.longer(dataset, other) == (1, 21)
