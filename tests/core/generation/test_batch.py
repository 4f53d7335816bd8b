"""Batches: independent rows, too little memory, failures, stopping inside a step, no broken characters."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import OvertonError
from core.generation import batch
from core.generation.base import Sample, Sampling
from core.generation.local import LocalGenerator
from tests.core.generation.tiny import make

SAMPLING = Sampling(temperature=1.0, max_new_tokens=24)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> LocalGenerator:
    return LocalGenerator(make(tmp_path_factory.mktemp("tiny")), model="tiny")


def run(tiny: LocalGenerator, n: int, sampling: Sampling = SAMPLING, context: str = "abc") -> list[Sample]:
    return sorted(tiny.generate(context, list(range(n)), sampling), key=lambda s: s.index)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 33])
def test_a_sample_is_the_same_at_any_batch_size(tiny: LocalGenerator, n: int) -> None:
    whole = run(tiny, 40)
    assert len({s.text for s in whole}) > 10
    assert run(tiny, n) == whole[:n]


def test_what_memory_does_not_hold_goes_in_parts_with_the_same_texts(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run(tiny, 10)
    sizes: list[int] = []
    usual = batch._Together.__init__

    def noting(self: Any, net: Any, ids: Any, rows: Any, *rest: Any) -> None:
        sizes.append(len(rows))
        usual(self, net, ids, rows, *rest)

    monkeypatch.setattr(batch._Together, "__init__", noting)
    needed = 2 * 2 * 2 * 8 * 4 * 24 + 37 * 16  # tail and logits of one row of this model
    monkeypatch.setattr(batch.memory, "available", lambda device: 2 * 4 * needed)
    assert run(tiny, 10) == whole
    assert sizes == [4, 4, 2]


def failing(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch, fails: Callable[[int, int], Exception | None]
) -> None:
    """Let steps fail: `fails(number of the step, rows)` gives the error, if any."""
    net, count = tiny._network, 0
    usual = net.step

    def step(ids: list[list[int]]) -> Any:
        nonlocal count
        count += 1
        error = fails(count, len(ids))
        if error is not None:
            raise error
        return usual(ids)

    monkeypatch.setattr(net, "step", step)


def test_a_batch_that_runs_out_of_memory_is_halved_and_nothing_is_lost(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    whole = run(tiny, 9)
    steps: list[int] = []

    def fails(step: int, rows: int) -> Exception | None:
        steps.append(rows)
        return torch.OutOfMemoryError("CUDA out of memory.") if rows > 3 and step > 2 else None

    failing(tiny, monkeypatch, fails)
    assert run(tiny, 9) == whole
    assert max(steps) > 3 and steps[-1] <= 3


def test_one_sample_without_memory_is_an_error_in_a_sentence(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(tiny, monkeypatch, lambda step, rows: RuntimeError("DefaultCPUAllocator: can't allocate memory: you"))
    samples = run(tiny, 2)
    assert {s.finish_reason for s in samples} == {"error"}
    assert all(s.error is not None and "not enough memory" in s.error for s in samples)


def test_a_failure_keeps_what_is_finished(tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    sampling = Sampling(temperature=1.0, max_new_tokens=24, stop=("e",))
    whole = run(tiny, 12, sampling)
    early = [s for s in whole if s.token_count <= 8]
    assert 0 < len(early) < 12
    failing(tiny, monkeypatch, lambda step, rows: ValueError("secret") if step == 8 else None)
    samples = run(tiny, 12, sampling)
    assert [s for s in samples if s.finish_reason != "error"] == early
    assert all("ValueError" in str(s.error) and "secret" not in str(s.error) for s in samples if s.error)
    monkeypatch.undo()
    assert run(tiny, 12, sampling) == whole, "the generator works on"


def test_stop_comes_through_inside_a_forward_pass(tiny: LocalGenerator) -> None:
    """A layer that takes long (a large model on a processor) is not waited for to the end of the pass."""
    cancel = threading.Event()
    tiny._network.contexts.clear()
    layers = tiny._network.net.get_decoder().layers
    passes: list[int] = []

    def slow(*_: Any) -> None:
        passes.append(1)
        if len(passes) == 9:
            cancel.set()

    handle = layers[0].register_forward_pre_hook(slow, prepend=True)
    try:
        samples = list(tiny.generate("abc", [1, 2], SAMPLING, cancel=cancel))
    finally:
        handle.remove()
    assert len(passes) == 9
    assert [(s.finish_reason, s.token_count) for s in samples] == [("cancelled", 8)] * 2
    assert all(s.text for s in samples)


@pytest.mark.parametrize("remembered", [False, True])
def test_a_run_that_is_stopped_before_it_began_says_so(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch, remembered: bool
) -> None:
    cancel = threading.Event()
    cancel.set()
    tiny._network.contexts.clear()
    if remembered:
        run(tiny, 1, context="abc" * 20)
    monkeypatch.setattr(batch, "MOST_ROWS", 2)
    samples = list(tiny.generate("abc" * 20, [1, 2, 3], SAMPLING, cancel=cancel))
    assert [(s.text, s.finish_reason, s.token_count) for s in samples] == [("", "cancelled", 0)] * 3
    with pytest.raises(OvertonError, match="stopped"):
        tiny.score("abc" * 20, ["a"], cancel=cancel)


def test_stop_does_not_wait_for_the_work_of_others(tiny: LocalGenerator) -> None:
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    began = time.monotonic()
    with tiny._busy(None):
        samples = list(tiny.generate("abc", [1, 2], SAMPLING, cancel=cancel))
        assert [(s.finish_reason, s.token_count) for s in samples] == [("cancelled", 0)] * 2
        with pytest.raises(OvertonError, match="stopped"):
            tiny.score("abc", ["a"], cancel=cancel)
    assert time.monotonic() - began < 1.2
    assert {s.finish_reason for s in run(tiny, 3)} <= {"stop", "length"}, "the others are done, and it works on"


def test_a_closed_generator_says_so_and_still_counts(tmp_path: Path) -> None:
    gone = LocalGenerator(make(tmp_path), model="gone")
    assert gone.held()["weights"] > 0
    gone.close()
    assert gone.held()["weights"] == 0
    assert gone.count_tokens("abc") == 4
    with pytest.raises(OvertonError, match="left the memory"):
        list(gone.generate("abc", [1], SAMPLING))


def test_a_closed_generator_gives_its_memory_back_at_once(tmp_path: Path) -> None:
    """Else room that is made for another model is not seen, and one model after the other would leave."""
    closing = LocalGenerator(make(tmp_path), model="closing")
    list(closing.generate("abc", [1], SAMPLING))
    weights = weakref.ref(closing._network.net)
    gc.disable()
    try:
        closing.close()
        assert weights() is None
    finally:
        gc.enable()


def test_two_threads_take_turns(tiny: LocalGenerator) -> None:
    whole, found = run(tiny, 6), {}

    def visit(k: int) -> None:
        found[k] = run(tiny, 6)

    visitors = [threading.Thread(target=visit, args=(k,)) for k in range(3)]
    for visitor in visitors:
        visitor.start()
    for visitor in visitors:
        visitor.join(60)
    assert [found[k] for k in range(3)] == [whole] * 3


def test_characters_of_several_tokens_are_never_shown_broken(tmp_path: Path) -> None:
    """With one token a byte most random bytes make no character; what is shown grows and holds no half of one."""
    tiny = LocalGenerator(make(tmp_path, byte_level=True), model="bytes")
    shown: dict[int, list[str]] = {}

    def on_text(index: int, text: str, tokens: int) -> None:
        shown.setdefault(index, []).append(text)

    text = "né 漢字 🙂 "
    say(tiny, text)
    samples = list(tiny.generate("a", [0], Sampling(temperature=0, max_new_tokens=16), on_text=on_text))
    assert samples[0].text == text and samples[0].finish_reason == "length"
    assert all("\ufffd" not in growing and text.startswith(growing) for growing in shown[0])
    say(tiny, text)
    cut = list(tiny.generate("a", [0], Sampling(temperature=0, max_new_tokens=6), on_text=on_text))
    assert cut[0].text == "né " and cut[0].token_count == 6


def say(tiny: LocalGenerator, text: str) -> None:
    """Make the tokens of `text` the likeliest ones, one after the other."""
    import torch

    ids = iter(tiny._tokenizer(text, add_special_tokens=False)["input_ids"])

    def next_one(*shape: int) -> Any:
        logits = torch.full((*shape, 259), -100.0)
        logits[..., next(ids)] = 100.0
        return logits

    net = tiny._network
    net.read = lambda _: next_one(1)
    net.begin = lambda _: None
    net.step = lambda rows: next_one(len(rows), 1)


@pytest.mark.parametrize("work", ["generate", "score"])
def test_time_to_stop_is_less_than_a_second(tiny: LocalGenerator, work: str) -> None:
    """With layers of a fifth of a second all of it would take half a minute."""
    cancel, asked = threading.Event(), []
    handles = [
        layer.register_forward_pre_hook(lambda *_: time.sleep(0.2))
        for layer in tiny._network.net.get_decoder().layers
    ]

    def stop() -> None:
        asked.append(time.monotonic())
        cancel.set()

    threading.Timer(0.5, stop).start()
    try:
        if work == "generate":
            long = Sampling(temperature=1.0, max_new_tokens=110)
            samples = list(tiny.generate("abc", [1, 2], long, cancel=cancel))
            assert {s.finish_reason for s in samples} == {"cancelled"}
        else:
            with pytest.raises(OvertonError, match="stopped"):
                tiny.score("abc", ["abc" * 10] * (16 * 40), cancel=cancel)
    finally:
        for handle in handles:
            handle.remove()
    assert time.monotonic() - asked[0] < 1


def test_logits_that_are_no_numbers_are_an_error_in_a_sentence(
    tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = tiny._network
    usual = net.step
    monkeypatch.setattr(net, "step", lambda ids: usual(ids) * float("nan"))
    for settings in ({"temperature": 0}, {"temperature": 1.0}, {"temperature": 1.0, "top_p": 0.9}):
        samples = run(tiny, 2, Sampling(max_new_tokens=8, **settings))
        assert [(s.finish_reason, s.token_count) for s in samples] == [("error", 1)] * 2
        assert all(s.error is not None and "no numbers" in s.error for s in samples)
