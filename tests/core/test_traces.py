"""Token traces: kept beside a dataset, carried into derived ones, never in the way."""

from __future__ import annotations

import pytest

from core import lab, traces
from core.dataset import Dataset
from core.errors import OvertonError
from core.generation.base import Sample, Sampling, TokenTrace
from core.workspace import Workspace

TRACE = TokenTrace((5, 262_143, 7), (-0.25, -12.5, -1e-7), (0.5, 3.25, 0.0))


def test_traces_survive_the_disk(workspace: Workspace, small: Dataset) -> None:
    first, second = small.responses["response_id"].iloc[:2]
    frame = traces.frame_of([(first, TRACE), ("none", None), (second, TokenTrace((), (-1.0,), ()))])
    workspace.save(small, tokens=frame)
    found = workspace.tokens("small")
    assert list(found["response_id"]) == [first, second]
    assert found["token_ids"][0].tolist() == list(TRACE.ids)
    assert found["logprobs"][0].tolist() == pytest.approx(TRACE.logprobs)
    assert found["entropies"][0].tolist() == pytest.approx(TRACE.entropies)
    assert [len(found[column][1]) for column in traces.COLUMNS[1:]] == [0, 1, 0]
    assert (found["token_ids"][0].dtype, found["logprobs"][0].dtype) == ("int32", "float32")
    assert workspace.load("small").content_key() == small.content_key()


def test_they_are_small(workspace: Workspace, small: Dataset) -> None:
    """At most twelve bytes a token and half a kilobyte a response."""
    import random

    chance = random.Random(0)
    ids = list(small.responses["response_id"])
    made = [
        TokenTrace(
            tuple(chance.randrange(262_144) for _ in range(200)),
            tuple(-chance.expovariate(1) for _ in range(200)),
            tuple(chance.expovariate(1) for _ in range(200)),
        )
        for _ in ids
    ]
    folder = workspace.save(small, tokens=traces.frame_of(zip(ids, made, strict=True)))
    assert (folder / traces.FILE).stat().st_size < len(ids) * (12 * 200 + 512)


def test_a_dataset_without_traces_has_none(workspace: Workspace, small: Dataset) -> None:
    folder = workspace.save(small, tokens=traces.frame_of(()))
    assert not (folder / traces.FILE).exists()
    assert workspace.tokens("small").empty


def test_a_damaged_file_is_one_sentence(workspace: Workspace, small: Dataset) -> None:
    folder = workspace.save(small)
    (folder / traces.FILE).write_bytes(b"PAR1 and no more")
    with pytest.raises(OvertonError, match="works on without them"):
        workspace.tokens("small")
    assert workspace.load("small").name == "small"


def test_a_run_keeps_its_traces_and_those_of_the_dataset(workspace: Workspace, small: Dataset) -> None:
    first = small.responses["response_id"].iloc[0]
    workspace.save(small, tokens=traces.frame_of([(first, TRACE)]))
    spec = lab.Spec("tea", "How do I make tea?", "context", "m", "zero-shot", (1, 2, 3), Sampling())
    run = lab.Run("r", spec, "2030-01-01")
    for index, reason in ((0, "stop"), (1, "cancelled"), (2, "length")):
        run.samples[index] = Sample(index, f"text {index}", reason, 3, index, None, TRACE if index else None)
    derived = lab.save_run(workspace, run, small, system="lab", name="derived")
    found = workspace.tokens("derived").set_index("response_id")
    (own,) = derived.responses.loc[
        (derived.responses["system"] == "lab") & (derived.responses["sample"] == 2), "response_id"
    ]
    assert set(found.index) == {first, own}
    assert found.loc[own, "token_ids"].tolist() == list(TRACE.ids)


def test_a_sample_survives_its_journal() -> None:
    sample = Sample(3, "a", "stop", 3, 9, None, TRACE)
    again = Sample.from_dict(sample.as_dict())
    assert again.tokens is not None and again.tokens.ids == TRACE.ids
    assert again.tokens.logprobs == pytest.approx(TRACE.logprobs, rel=1e-4)
    assert Sample.from_dict(Sample(0, "b", "length", 1, 2).as_dict()) == Sample(0, "b", "length", 1, 2)
