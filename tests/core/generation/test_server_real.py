"""A real server on this machine with the real small models: `transformers serve`, asked for chats and completions."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from core import models
from core.errors import OvertonError
from core.generation.base import Sample, Sampling
from core.generation.endpoints import build, from_table
from core.generation.server import ServerGenerator

pytestmark = pytest.mark.slow
# This server draws only where the generation settings of the model or of the request say so.
DRAWS = {"generation_config": json.dumps({"do_sample": True})}
ALIGNED, BASE = "SmolLM2-135M-Instruct", "gemma-3-270m"


@pytest.fixture(scope="module")
def folders() -> dict[str, Path]:
    try:
        return {model: models.fetch(model) for model in (ALIGNED, BASE)}
    except OvertonError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the weights cannot be had: {error}")


@pytest.fixture(scope="module")
def url(folders: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("serve") / "log.txt"
    code = "from transformers.cli.transformers import main; main()"
    command = [sys.executable, "-c", code, "serve", "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    try:
        deadline = time.monotonic() + 120
        while not _healthy(port):
            assert server.poll() is None, log.read_text(errors="replace")[-2000:]
            assert time.monotonic() < deadline, "it does not start"
            time.sleep(0.2)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait(20)


def _healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def make(url: str, folder: Path, kind: str) -> ServerGenerator:
    table = {"url": url, "model": str(folder), "kind": kind, "timeout": 90, "concurrency": 3, "extra": DRAWS}
    return build(from_table("here", table))


def ask(generator: ServerGenerator, context: str, seeds: list[int], sampling: Sampling) -> list[Sample]:
    return sorted(generator.generate(context, seeds, sampling), key=lambda s: s.index)


def test_chats_are_sampled_and_streamed(url: str, folders: dict[str, Path]) -> None:
    generator = make(url, folders[ALIGNED], "chat")
    shown: list[tuple[int, str, int]] = []
    context, sampling = generator.chat_context("Tell me about tea."), Sampling(temperature=1.0, max_new_tokens=24)
    samples = list(generator.generate(context, [1, 2, 3], sampling, on_text=lambda *a: shown.append(a)))
    assert sorted(s.index for s in samples) == [0, 1, 2]
    assert all(s.finish_reason in ("stop", "length") and s.text.strip() and not s.error for s in samples)
    assert all(s.token_count == 24 for s in samples if s.finish_reason == "length")
    assert len({s.text for s in samples}) == 3
    for sample in samples:
        grown = [text for index, text, _ in shown if index == sample.index]
        assert len(grown) > 3, "it arrives in pieces"
        assert all(sample.text.startswith(text) for text in grown)
    assert generator.counts == {"requests": 3, "samples": 3}


def test_completions_continue_the_exact_context_and_stop(url: str, folders: dict[str, Path]) -> None:
    from core.generation.local import LocalGenerator

    generator = make(url, folders[BASE], "completions")
    context = "# Query:\n```\nName three drinks.\n```\n\n# Answer:\n```\n"
    greedy = Sampling(temperature=0, max_new_tokens=12)
    there = ask(generator, context, [1], greedy)[0]
    here = next(iter(LocalGenerator(folders[BASE], model=BASE).generate(context, [1], greedy)))
    assert there.text[:12] == here.text[:12] != "", "the same context gives the same beginning"
    stop = there.text[4:7]
    cut = ask(generator, context, [1], Sampling(temperature=0, max_new_tokens=12, stop=(stop,)))[0]
    assert (cut.text, cut.finish_reason) == (there.text[: there.text.index(stop)], "stop")


def test_what_it_does_not_take_is_named(url: str, folders: dict[str, Path]) -> None:
    with pytest.raises(OvertonError, match="does not take top_k = 5"):
        ask(make(url, folders[BASE], "completions"), "abc", [1], Sampling(top_k=5))


def test_cancel_ends_within_a_second(url: str, folders: dict[str, Path]) -> None:
    cancel, stopped = Event(), []

    def watch(index: int, text: str, tokens: int) -> None:
        if not stopped:
            stopped.append(time.monotonic())
            cancel.set()

    generator = make(url, folders[BASE], "completions")
    sampling = Sampling(temperature=1.0, max_new_tokens=1000)
    samples = list(generator.generate("Once", [1, 2], sampling, cancel=cancel, on_text=watch))
    assert time.monotonic() - stopped[0] < 1
    assert {s.finish_reason for s in samples} == {"cancelled"}
    assert any(s.text for s in samples)
