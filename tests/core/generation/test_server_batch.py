"""Several samples in one request, log-probabilities, and stop strings that arrive in pieces."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.generation.base import Sample, Sampling, trim_at_stop
from core.generation.endpoints import Endpoint
from core.generation.server import ServerGenerator
from core.generation.server_reply import Growing
from tests.core.generation.hostile import Request, Server, polite, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


def make(server: Server, **more: Any) -> ServerGenerator:
    given = {"timeout": 5.0, "retries": 2, "concurrency": 1, **more}
    return ServerGenerator(Endpoint("e", server.url, "served", **given), backoff=0.005)


def ask(generator: ServerGenerator, seeds: list[int], **sampling: Any) -> list[Sample]:
    return sorted(generator.generate("abc", seeds, Sampling(**sampling)), key=lambda s: s.index)


def many(request: Request) -> None:
    """As many choices as were asked for, their pieces in turns."""
    request.begin_stream()
    n = request.body.get("n", 1)
    for word in ("text ", "number "):
        for k in range(n):
            request.send(request.piece(word, index=k))
    for k in reversed(range(n)):
        request.send(request.piece(f"{k} of {request.body['seed']}", "stop", index=k))
    request.send({"choices": [], "usage": {"completion_tokens": 3 * n}})
    request.send("[DONE]")


def test_a_batch_is_one_request_and_records_the_seed_that_it_had(server: Server) -> None:
    server.does(many)
    samples = ask(make(server, batch=True), [11, 12, 13])
    assert [(r.body["n"], r.body["seed"]) for r in server.requests] == [(3, 11)]
    assert [(s.text, s.seed, s.token_count) for s in samples] == [(f"text number {k} of 11", 11, 3) for k in range(3)]


def test_a_batch_that_is_not_streamed(server: Server) -> None:
    server.does(lambda r: r.answer(200, json.dumps(r.whole("a", "b", "c"))))
    assert [s.text for s in ask(make(server, batch=True), [1, 2, 3])] == ["a", "b", "c"]


@pytest.mark.parametrize("how", ["ignored", "refused"])
def test_a_server_without_batches_is_asked_for_each_sample(server: Server, how: str) -> None:
    def refuse(request: Request) -> None:
        return request.refuse(400, "Only n = 1 is supported") if "n" in request.body else polite(request)

    server.does(polite if how == "ignored" else refuse)
    generator = make(server, batch=True)
    samples = ask(generator, [11, 12, 13])
    assert [(s.text, s.seed) for s in samples] == [(f"one two {seed} three", seed) for seed in (11, 12, 13)]
    assert [r.body.get("n", 1) for r in server.requests] == ([3, 1, 1] if how == "ignored" else [3, 1, 1, 1])
    ask(generator, [21, 22])
    assert [r.body.get("n", 1) for r in server.requests[-2:]] == [1, 1], "it is remembered"


def test_what_a_broken_batch_did_not_give_is_asked_for_with_another_seed(server: Server) -> None:
    def lose_one(request: Request) -> None:
        request.begin_stream()
        request.send(request.piece("first", "stop", index=0))
        request.send(request.piece("half of the second", index=1))
        request.send(request.piece("third", "length", index=2))

    server.does(lose_one, many)
    samples = ask(make(server, batch=True), [11, 12, 13])
    assert [(s.text, s.seed, s.finish_reason) for s in samples] == [
        ("first", 11, "stop"), ("text number 0 of 12", 12, "stop"), ("third", 11, "length"),
    ]  # fmt: skip


def test_one_withheld_answer_of_a_batch_leaves_the_others(server: Server) -> None:
    def filtered(request: Request) -> None:
        request.begin_stream()
        request.send(request.piece("good", "stop", index=0))
        request.send(request.piece("bad", "content_filter", index=1))
        request.send("[DONE]")

    server.does(filtered)
    assert [s.finish_reason for s in ask(make(server, batch=True), [1, 2])] == ["stop", "error"]


def test_log_probabilities_of_completions(server: Server) -> None:
    def speak(request: Request) -> None:
        assert request.body["logprobs"] == 1
        request.begin_stream()
        request.send(request.piece("a b", logprobs={"tokens": ["a", " b"], "token_logprobs": [-0.5, -1.25]}))
        request.send(request.piece("", "stop", logprobs={"tokens": [""], "token_logprobs": [0.0]}))

    server.does(speak)
    sample = ask(make(server), [1])[0]
    assert sample.tokens is not None
    assert (sample.tokens.logprobs, sample.tokens.ids, sample.tokens.entropies) == ((-0.5, -1.25, 0.0), (), ())
    assert sample.token_count == 3
    assert Sample.from_dict(json.loads(json.dumps(sample.as_dict()))) == sample


def test_log_probabilities_of_chats_with_ids_where_the_server_tells_them(server: Server) -> None:
    def speak(request: Request) -> None:
        assert request.body["logprobs"] is True
        content = [{"token": "a", "logprob": -0.5, "id": 7}, {"token": "b", "logprob": -2, "id": 9}]
        request.answer(200, json.dumps({"choices": [
            {"message": {"content": "ab"}, "finish_reason": "length", "logprobs": {"content": content}}
        ]}))  # fmt: skip

    server.does(speak)
    generator = make(server, kind="chat")
    sample = next(iter(generator.generate(generator.chat_context("hi"), [1], Sampling())))
    assert sample.tokens is not None
    assert (sample.tokens.logprobs, sample.tokens.ids) == ((-0.5, -2.0), (7, 9))


def test_log_probabilities_can_be_switched_off(server: Server) -> None:
    assert ask(make(server, logprobs=False), [1])[0].tokens is None
    assert "logprobs" not in server.requests[0].body


def test_text_of_a_broken_attempt_does_not_stay_in_the_sample_or_its_trace(server: Server) -> None:
    def half(request: Request) -> None:
        request.begin_stream()
        request.send(request.piece("lost", logprobs={"token_logprobs": [-9.0]}))

    server.does(half, polite)
    sample = ask(make(server), [1])[0]
    assert (sample.text, sample.tokens) == ("one two 1 three", None)


@given(
    text=st.text("ab`\n", max_size=30),
    stop=st.lists(st.text("ab`\n", min_size=1, max_size=4), max_size=3).map(tuple),
    cuts=st.lists(st.integers(0, 30), max_size=8),
)
def test_however_the_pieces_are_cut_no_stop_string_is_kept_or_shown(
    text: str, stop: tuple[str, ...], cuts: list[int]
) -> None:
    whole = trim_at_stop(text, stop)[0]
    places = sorted({0, len(text), *(min(c, len(text)) for c in cuts)})
    one, shown = Growing(stop, 100), []
    for start, end in itertools.pairwise(places):
        one.feed({"text": text[start:end]})
        shown.append(one.shown)
    one.feed({"text": "", "finish_reason": "length"})
    if len(stop) < 2:  # of several that overlap, the one that is complete first counts
        assert one.text == whole
    assert one.ended == ("stop" if one.text != text else "length")
    assert all(one.text.startswith(s) for s in shown), "nothing is shown and taken back"
    assert not any(s in one.text for s in stop)
    assert text.startswith(one.text)
