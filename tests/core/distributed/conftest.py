"""A real Ray cluster of two nodes on this machine, one worker on each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from core.distributed import RayOptions, cluster
from core.generation.fake import FakeGenerator
from tests.e2e.conftest import on_ci

DELAY = "0.02"  # seconds a token of the fake models takes in the workers


@pytest.fixture(scope="session")
def two_workers() -> Iterator[RayOptions]:
    """How to reach the cluster; all of it ends with the tests."""
    if not on_ci():  # there it must be installed
        pytest.importorskip("ray", reason="Ray is not installed: pip install -r requirements-ray.txt")
    import ray
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"OVERTON_FAKE_GENERATOR": "1", "OVERTON_FAKE_DELAY": DELAY}.items():
            patch.setenv(name, value)
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_dashboard": False}
        nodes = Cluster(initialize_head=True, head_node_args=node)
        nodes.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        options = RayOptions(address=nodes.address, workers=2)
        try:
            ray.init(nodes.address, runtime_env=cluster._sent(), log_to_driver=False)
            yield options
        finally:
            ray.shutdown()
            nodes.shutdown()
            patch.delenv("RAY_ADDRESS", raising=False)
            os.environ.pop("RAY_ADDRESS", None)


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The models in the memory of the driver: those that only pretend, without a delay."""
    from core.bulk import reading
    from core.generation import pool

    built: dict[str, Any] = {"fake": FakeGenerator(), "fake chat": FakeGenerator(model="fake chat", chat=True)}
    monkeypatch.setattr(pool, "_BUILT", built)
    monkeypatch.setattr(reading, "_READERS", {})
    return built


@pytest.fixture
def one_thread() -> Any:
    """A context in which torch computes with as many threads as a worker has."""

    @contextmanager
    def act() -> Iterator[None]:
        import torch

        before = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(before)

    return act
