"""The server generator against a server that misbehaves: repeated where that helps, one sentence where not."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import pytest

from core.errors import OvertonError, TooLong
from core.generation import server_client
from core.generation.base import Sample, Sampling
from core.generation.endpoints import Endpoint
from core.generation.server import ServerGenerator
from tests.core.generation.hostile import Behaviour, Request, Server, polite, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


def make(url: str, **more: Any) -> ServerGenerator:
    given = {"timeout": 0.3, "retries": 2, "concurrency": 1, **more}
    return ServerGenerator(Endpoint("e", url, "served", **given), backoff=0.005)


def ask(generator: ServerGenerator, seeds: tuple[int, ...] = (1,), **sampling: Any) -> list[Sample]:
    return sorted(generator.generate("abc", seeds, Sampling(**sampling)), key=lambda s: s.index)


def html(request: Request) -> None:
    request.answer(200, "<html>Welcome</html>", "text/html")


def no_json(request: Request) -> None:
    request.answer(200, '{"choices": [')


def half(request: Request) -> None:
    request.stream("half of ", finish=None)


def cut_body(request: Request) -> None:
    request.handler.send_response(200)
    request.handler.send_header("Content-Type", "application/json")
    request.handler.send_header("Content-Length", "500")
    request.handler.end_headers()
    request.handler.wfile.write(b'{"choices": [{"text": "half')
    request.handler.close_connection = True


def hang_up(request: Request) -> None:
    request.handler.connection.shutdown(socket.SHUT_RDWR)


def error_midway(request: Request) -> None:
    request.begin_stream()
    request.send(request.piece("some "))
    request.send({"error": {"message": "out of memory"}})


def answers(body: Any) -> Behaviour:
    return lambda request: request.answer(200, json.dumps(body))


def events(*sent: Any) -> Behaviour:
    def act(request: Request) -> None:
        request.begin_stream()
        for event in sent:
            request.send(event)

    return act


BAD: dict[str, tuple[Behaviour, str]] = {
    "429": (lambda r: r.refuse(429, "slow down"), "limited"),
    "500": (lambda r: r.refuse(500, "oops"), "failed"),
    "503 in HTML": (lambda r: r.answer(503, "<h1>busy</h1>", "text/html"), "failed"),
    "408": (lambda r: r.refuse(408, "slow"), "failed"),
    "409": (lambda r: r.refuse(409, "conflict"), "failed"),
    "half a stream": (half, "broken"),
    "half a body": (cut_body, "broken"),
    "hangs up": (hang_up, "broken"),
    "error midway": (error_midway, "broken"),
    "aborted": (lambda r: r.stream("some", finish="abort"), "broken"),
    "HTML": (html, "broken"),
    "no JSON": (no_json, "garbled"),
    "no JSON in the stream": (events("{nonsense"), "garbled"),
    "a list": (answers([1, 2]), "garbled"),
    "null": (answers(None), "garbled"),
    "deep": (lambda r: r.answer(200, "[" * 200_000), "garbled"),
    "no choices": (answers({"id": "x"}), "garbled"),
    "choices of another shape": (answers({"choices": {"text": "x"}}), "garbled"),
    "a choice that is a number": (answers({"choices": [4]}), "garbled"),
    "a text that is a number": (answers({"choices": [{"text": 4, "finish_reason": "stop"}]}), "garbled"),
    "a message that is a text": (answers({"choices": [{"message": "x", "finish_reason": "stop"}]}), "garbled"),
    "an unknown end": (answers({"choices": [{"text": "x", "finish_reason": "bored"}]}), "garbled"),
    "an end that is a list": (answers({"choices": [{"text": "x", "finish_reason": ["stop"]}]}), "garbled"),
    "an index that is a text": (answers({"choices": [{"text": "x", "index": "0"}]}), "garbled"),
    "no end": (answers({"choices": [{"text": "x"}]}), "broken"),
    "no such choice": (answers({"choices": [{"text": "x", "index": 7, "finish_reason": "stop"}]}), "broken"),
    "empty choices": (answers({"choices": []}), "broken"),
    "NaN": (
        answers(
            {"choices": [{"text": "x", "finish_reason": "stop", "logprobs": {"token_logprobs": [float("nan")]}}]}
        ),
        "garbled",
    ),
    "log-probabilities as text": (
        answers({"choices": [{"text": "x", "finish_reason": "stop", "logprobs": {"content": [{"logprob": "-1"}]}}]}),
        "garbled",
    ),
    "far too much": (lambda r: r.stream("x" * 60_000, finish="length"), "garbled"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_fault_is_repeated_and_then_all_is_well(server: Server, name: str) -> None:
    behaviour, kind = BAD[name]
    server.does(behaviour, behaviour, polite)
    generator = make(server.url)
    samples = ask(generator)
    assert [(s.text, s.finish_reason, s.error) for s in samples] == [("one two 1 three", "stop", None)]
    assert generator.counts == {"requests": 3, "retries": 2, "samples": 1, kind: 2}


@pytest.mark.parametrize("name", BAD)
def test_a_fault_that_stays_is_an_error_of_that_sample(server: Server, name: str) -> None:
    behaviour, kind = BAD[name]
    server.does(polite, behaviour, behaviour, behaviour, polite)
    generator = make(server.url)
    samples = ask(generator, (1, 2, 3))
    assert [s.finish_reason for s in samples] == ["stop", "error", "stop"]
    assert samples[1].seed == 2 and samples[1].text == ""
    error = samples[1].error
    assert error is not None and error.startswith("e ") and error.endswith(", at each of 3 attempts.")
    assert generator.counts == {"requests": 5, "retries": 2, "samples": 2, "errors": 1, kind: 3}


@pytest.mark.parametrize("how", ["hang", "stall"])
def test_silence_times_out_and_is_repeated(server: Server, how: str) -> None:
    server.does(getattr(server, how), polite)
    generator = make(server.url, timeout=0.15)
    assert ask(generator)[0].text == "one two 1 three", "nothing of the broken attempt is kept"
    assert generator.counts["timeout"] == 1


def test_a_server_that_drips_for_ever_is_left(server: Server) -> None:
    server.does(server.drip)
    generator = make(server.url, timeout=0.05, retries=0)
    started = time.monotonic()
    sample = ask(generator)[0]
    assert time.monotonic() - started < 2
    assert sample.finish_reason == "error"


def test_retry_after_is_waited_in_full(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.does(lambda r: r.answer(429, "{}", Retry_After="0.3"), polite)
    started = time.monotonic()
    assert ask(make(server.url))[0].finish_reason == "stop"
    assert 0.3 <= time.monotonic() - started < 1.5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("2", 2.0), ("0", 0.0), ("-3", 0.0), ("999999", 60.0), ("inf", 60.0), ("nan", None), ("soon", None),
        (None, None),
        ("later", 60.0), ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
    ],
    ids=str,
)  # fmt: skip
def test_reading_retry_after(header: str | None, seconds: float | None) -> None:
    if header == "later":
        header = formatdate(time.time() + 5000, usegmt=True)
    assert server_client._retry_after(header) == seconds


def test_the_wait_doubles_with_full_jitter_up_to_a_limit() -> None:
    waits = [[server_client.wait_before(k, 0.5, None) for _ in range(400)] for k in (1, 3, 30)]
    for drawn, most in zip(waits, (1.0, 4.0, 60.0), strict=True):
        assert 0 <= min(drawn) < most * 0.1
        assert most * 0.9 < max(drawn) <= most
    assert 7 <= server_client.wait_before(3, 0.5, 7.0) <= 7.5


@pytest.mark.parametrize(
    ("behaviour", "told"),
    [
        (lambda r: r.refuse(401, "bad key"), r"refused access \(401\)"),
        (lambda r: r.refuse(403, "no"), r"refused access \(403\)"),
        (lambda r: r.refuse(404, "no model"), r"has no completions for the model 'served' \(404\)"),
        (lambda r: r.refuse(429, "pay", code="insufficient_quota"), "no credit"),
        (lambda r: r.refuse(400, "The weather is bad"), r"refused the request \(400\): The weather is bad\."),
        (lambda r: r.answer(405, "<h1>"), "405"),
        (lambda r: r.refuse(400, "top_k is not permitted"), "does not take top_k = 3: switch it off"),
        (lambda r: r.refuse(400, "no", param="temperature"), "does not take temperature = 0.7"),
        (lambda r: r.answer(422, json.dumps({"detail": [{"loc": ["body", "top_k"]}]})), "does not take top_k"),
        (lambda r: r.answer(422, json.dumps({"detail": "Unexpected fields in the request: {'top_k'}"})), "top_k"),
        (lambda r: r.refuse(400, "Unrecognized parameter: seed"), "seeds = false"),
    ],
)  # fmt: skip
def test_what_cannot_be_mended_ends_the_run_at_once(server: Server, behaviour: Behaviour, told: str) -> None:
    server.does(polite, behaviour)
    got: list[Sample] = []
    with pytest.raises(OvertonError, match=told) as error:
        for sample in make(server.url).generate("abc", range(50), Sampling(top_k=3)):
            got.append(sample)
    assert str(error.value).count(".") <= 3
    assert [s.text for s in got] == ["one two 0 three"], "the one that finished stays"
    assert len(server.requests) <= 6


@pytest.mark.parametrize(
    ("message", "more", "told"),
    [
        (
            "This model's maximum context length is 2048 tokens. However, you requested 3000 tokens "
            "(2900 in the messages, 100 in the completion). Please reduce the length.",
            {}, "reads at most 2048 tokens and was sent or asked for 3000",
        ),
        (
            "the request exceeds the available context size", {"n_ctx": 512, "n_prompt_tokens": 600},
            "reads at most 512 tokens and was sent or asked for 600",
        ),
        (
            "inputs tokens + max_new_tokens must be <= 4096. Given: 5000 inputs tokens and 16 max_new_tokens",
            {}, "4096 .* 5000",
        ),
        ("The prompt has too many tokens for the context window", {}, "context is too long"),
    ],
)  # fmt: skip
def test_a_context_that_is_too_long_is_told_with_both_counts(
    server: Server, message: str, more: dict[str, Any], told: str
) -> None:
    server.does(lambda r: r.refuse(400, message, **more))
    with pytest.raises(TooLong, match=told):
        ask(make(server.url))
    assert len(server.requests) == 1


def test_a_server_that_is_not_there_is_one_sentence() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    generator = make(url)
    with pytest.raises(
        OvertonError, match=r"^e cannot be reached at 127\.0\.0\.1:\d+: is the server running there\?"
    ):
        ask(generator, (1, 2, 3))
    assert generator.counts["connection"] == 3
    with pytest.raises(OvertonError, match="cannot be reached"):
        generator.probe()


def test_a_server_that_dies_midway_keeps_what_is_finished() -> None:
    with serving() as state:
        generator = make(state.url)
        samples = generator.generate("abc", (1, 2, 3), Sampling())
        first = next(samples)
        state.does(hang_up)
        rest = list(samples)
    assert first.finish_reason == "stop"
    assert {s.finish_reason for s in rest} <= {"stop", "error"} and rest[-1].finish_reason == "error"


def test_a_content_filter_that_refuses_the_prompt_is_an_error_of_the_sample(server: Server) -> None:
    server.does(lambda r: r.refuse(400, "no", code="content_filter"))
    assert [(s.finish_reason, "content filter" in (s.error or "")) for s in ask(make(server.url))] == [
        ("error", True)
    ]


def refusing(parameter: str, message: str, status: int = 400) -> Behaviour:
    """Refuse requests that have a parameter, and answer others."""
    return lambda r: r.refuse(status, message) if parameter in r.body else polite(r)


@pytest.mark.parametrize(
    ("parameter", "message", "sampling"),
    [
        ("logprobs", "logprobs are not supported", {}),
        ("logprobs", "Bad request", {}),
        ("stream_options", "Unknown field `stream_options`", {}),
        ("stream", "'stream' is not supported", {}),
        ("stop", "'stop' takes at most 0 strings", {"stop": ("ee",)}),
        ("top_p", "`top_p` must be > 0.0 and < 1.0", {}),
    ],
)  # fmt: skip
def test_what_changes_no_text_is_left_out_and_that_is_remembered(
    server: Server, parameter: str, message: str, sampling: dict[str, Any]
) -> None:
    plain = (lambda r: r.answer(200, json.dumps(r.whole("one two three")))) if parameter == "stream" else polite
    server.does(lambda r: r.refuse(422, message) if parameter in r.body else plain(r))
    generator = make(server.url)
    samples = ask(generator, (1, 2, 3), **sampling)
    assert {s.finish_reason for s in samples} == {"stop"}
    assert all(s.text.endswith("thr" if sampling else "three") for s in samples)
    refused = sum(parameter in r.body for r in server.requests)
    assert (refused, "errors" in generator.counts) == (1 if message != "Bad request" else 2, False) or refused == 1
    before = len(server.requests)
    ask(generator, (4,), **sampling)
    assert len(server.requests) == before + 1


def test_a_guess_that_did_not_help_is_not_remembered(server: Server) -> None:
    server.does(lambda r: r.refuse(400, "Bad request"))
    generator = make(server.url)
    with pytest.raises(OvertonError):
        ask(generator)
    server.does(polite)
    ask(generator)
    assert "logprobs" in server.requests[-1].body


def test_the_other_name_of_the_token_limit_is_learned_once(server: Server) -> None:
    message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
    server.does(refusing("max_tokens", message))
    generator = make(server.url)
    assert len(ask(generator, (1, 2), max_new_tokens=9)) == 2
    assert [("max_tokens" in r.body, r.body.get("max_completion_tokens")) for r in server.requests] == [
        (True, None), (False, 9), (False, 9),
    ]  # fmt: skip


def test_a_server_that_does_not_stream_is_read_all_the_same(server: Server) -> None:
    server.does(lambda r: r.answer(200, json.dumps(r.whole("all at once", usage={"completion_tokens": 4}))))
    sample = ask(make(server.url))[0]
    assert (sample.text, sample.finish_reason, sample.token_count) == ("all at once", "stop", 4)


def test_faults_of_all_kinds_at_once_lose_nothing_and_double_nothing(server: Server) -> None:
    kinds = itertools.cycle([half, polite, no_json, polite, cut_body, polite, polite])
    server.does(lambda r: next(kinds)(r))
    generator = make(server.url, concurrency=8, retries=12)
    samples = ask(generator, tuple(range(60)))
    assert [s.index for s in samples] == list(range(60))
    assert [s.text for s in samples] == [f"one two {k} three" for k in range(60)]
    assert generator.counts["retries"] == generator.counts["requests"] - 60 > 20
