"""What the engine is made of, without a cluster: options, shares, workers, and what happens when workers die."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core import jobs
from core.bulk import Batch, Done, ray_engine
from core.bulk.ray_engine import RayEngine, spread
from core.bulk.ray_worker import GenerateWorker
from core.distributed import RayOptions, cluster, options
from core.distributed.cluster import Cluster, shares
from core.distributed.streaming import WorkersDied
from core.distributed.worker import Fatal
from core.errors import OvertonError
from core.generation.base import Sample, Sampling
from core.generation.fake import FakeGenerator

ROOT = Path(__file__).resolve().parents[3]


def batch(prompt: str = "tea", samples: int = 4) -> Batch:
    numbers = tuple(range(samples))
    return Batch("base", prompt, "fake", f"about {prompt}", Sampling(), numbers, tuple(k + 50 for k in numbers))


def test_ray_is_not_imported_before_it_is_used() -> None:
    modules = "core.bulk.ray_engine, core.vectors.ray_encoder, core.commands.encode"
    code = f"import sys, {modules}; print('ray' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_ray_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(options.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(OvertonError, match=r"pip install -r requirements-ray\.txt"):
        RayEngine(RayOptions())


def test_options_come_from_the_environment_and_are_checked() -> None:
    given = {"RAY_ADDRESS": "auto", "OVERTON_RAY_WORKERS": "3", "OVERTON_RAY_BACKEND": "vllm"}
    assert RayOptions.from_environment(given) == RayOptions("auto", 3, 0, "vllm")
    assert RayOptions.from_environment({}) == RayOptions()
    for wrong, sentence in (
        ({"OVERTON_RAY_CPUS": "many"}, "OVERTON_RAY_CPUS must be a whole number"),
        ({"OVERTON_RAY_BACKEND": "warp"}, "no backend 'warp'"),
        ({"RAY_ADDRESS": "ray://host:10001"}, "ray://"),
    ):
        with pytest.raises(OvertonError, match=sentence):
            RayOptions.from_environment(wrong)


@pytest.mark.parametrize(
    ("resources", "nodes", "asked", "wanted"),
    [
        ({"CPU": 8.0}, 2, RayOptions(), Cluster(2, 4, 0)),
        ({"CPU": 8.0}, 2, RayOptions(workers=4), Cluster(4, 2, 0)),
        ({"CPU": 8.0}, 1, RayOptions(workers=2, cpus=1), Cluster(2, 1, 0)),
        ({"CPU": 64.0, "GPU": 4.0}, 2, RayOptions(), Cluster(4, 16, 1)),
    ],
)
def test_a_cluster_is_shared_out(resources: Any, nodes: int, asked: RayOptions, wanted: Cluster) -> None:
    assert shares(resources, nodes, asked) == wanted


def test_too_many_workers_are_refused() -> None:
    for resources, asked in (
        ({"CPU": 2.0}, RayOptions(workers=3)),
        ({"CPU": 9.0, "GPU": 1.0}, RayOptions(workers=2)),
    ):
        with pytest.raises(OvertonError, match="ask for fewer"):
            shares(resources, 1, asked)


def test_a_cluster_that_does_not_answer_is_one_sentence_soon() -> None:
    never = SimpleNamespace(init=lambda *given, **options: pytest.fail("Ray would try for many minutes"))
    with pytest.raises(OvertonError, match=r"127\.0\.0\.1:1 cannot be used"):
        cluster._open(never, RayOptions(address="127.0.0.1:1"))


def test_only_code_and_shipped_data_leave_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("core", "data", ".git", ".streamlit", "workspace", ".env"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(cluster, "ROOT", tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    sent = cluster._sent()
    assert {"/.git", "/.streamlit", "/workspace", "/.env"} <= set(sent["excludes"])
    assert "/core" not in sent["excludes"] and "secret" not in str(sent)


def test_few_batches_are_spread_over_many_workers() -> None:
    parts = spread([batch(samples=5)], 3)
    assert sorted(s for part in parts for s in part.samples) == list(range(5)) and len(parts) == 3
    assert all(seed == sample + 50 for part in parts for sample, seed in zip(part.samples, part.seeds, strict=True))
    assert spread([batch("a"), batch("b")], 2) == [batch("a"), batch("b")]
    assert len(spread([batch(samples=1)], 4)) == 1


class Broken(FakeGenerator):
    def generate(self, *args: Any, **options: Any) -> Iterator[Sample]:
        yield next(super().generate(*args, **options))
        raise RuntimeError("the card is full")


def test_what_fails_in_a_batch_are_errors_of_its_samples(fakes: dict[str, Any]) -> None:
    fakes["fake"] = Broken()
    made = [sample for _, sample in GenerateWorker("fake", "fake-1", "auto", 1).work((7, batch()))]
    assert [sample.error is None for sample in made] == [True, False, False, False]
    assert "RuntimeError: the card is full" in str(made[1].error) and [s.seed for s in made] == [50, 51, 52, 53]


@pytest.mark.usefixtures("fakes")
def test_a_model_that_cannot_be_had_ends_the_work() -> None:
    (made,) = GenerateWorker("./no-such-folder", "x", "auto", 1).work((0, batch()))
    assert isinstance(made, Fatal) and "./no-such-folder" in made.sentence and "On the node" in made.sentence


@pytest.mark.usefixtures("fakes")
def test_what_was_lost_is_made_again_and_nothing_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[Batch]] = []

    def dying(items: Any, worker: Any, arguments: Any, *rest: Any) -> Iterator[tuple[int, Sample]]:
        asked.append([b for _, b in pickle.loads(pickle.dumps(items))])
        number, first = items[0]
        made = next(worker(*arguments, 1).work((number, first)))
        yield made
        yield made
        raise WorkersDied("gone")

    monkeypatch.setattr(ray_engine, "results", dying)
    monkeypatch.setattr(ray_engine, "connected", lambda *given: Cluster(1, 1, 0))
    found = list(RayEngine(RayOptions()).run([batch("a", 2), batch("b", 1)], jobs.Job("", "")))
    assert [(d.batch.prompt_id, d.batch.samples[d.sample.index], d.sample.seed) for d in found] == [
        ("a", 0, 50),
        ("a", 1, 51),
        ("b", 0, 50),
    ]
    assert all(isinstance(done, Done) for done in found) and len(asked) == 3


@pytest.mark.usefixtures("fakes")
def test_workers_that_die_again_and_again_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = []

    def dead(*given: Any) -> Iterator[Any]:
        tries.append(1)
        raise WorkersDied("The Ray workers cannot go on.")
        yield

    monkeypatch.setattr(ray_engine, "results", dead)
    monkeypatch.setattr(ray_engine, "connected", lambda *given: Cluster(1, 1, 0))
    with pytest.raises(WorkersDied):
        list(RayEngine(RayOptions()).run([batch()], jobs.Job("", "")))
    assert len(tries) == 3
