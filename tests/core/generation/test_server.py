"""The server generator against a server that behaves: what is sent, what is recorded, how it streams and stops."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from core.errors import OvertonError
from core.generation.base import Sample, Sampling
from core.generation.endpoints import UNKNOWN_LIMIT, Endpoint
from core.generation.server import ServerGenerator
from core.generation.server_client import Failure
from tests.core.generation.hostile import Request, Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


def make(server: Server, **more: Any) -> ServerGenerator:
    given = {"timeout": 5.0, "retries": 2, **more}
    return ServerGenerator(Endpoint("e", server.url, "served", **given), backoff=0.005)


def ask(generator: ServerGenerator, seeds: list[int], context: str = "abc", **sampling: Any) -> list[Sample]:
    return sorted(generator.generate(context, seeds, Sampling(**sampling)), key=lambda s: s.index)


def test_each_sample_is_a_request_with_its_own_seed(server: Server) -> None:
    samples = ask(make(server), [11, 12, 13])
    assert [(s.text, s.finish_reason, s.seed, s.token_count) for s in samples] == [
        (f"one two {seed} three", "stop", seed, 3) for seed in (11, 12, 13)
    ]
    assert sorted(r.body["seed"] for r in server.requests) == [11, 12, 13]
    assert {r.path for r in server.requests} == {"/v1/completions"}
    assert all("n" not in r.body for r in server.requests)


def test_the_context_is_sent_as_it_is(server: Server) -> None:
    context = "# Query:\n```\n  wörds\t\n```\n\n# Answer:\n```\n"
    ask(make(server), [1], context)
    assert server.requests[0].body["prompt"] == context


def test_parameters_are_sent_and_those_that_are_off_are_not(server: Server) -> None:
    ask(make(server), [1], temperature=0.9, max_new_tokens=7, stop=("X",))
    body = server.requests[0].body
    assert (body["temperature"], body["max_tokens"], body["stop"], body["top_p"]) == (0.9, 7, ["X"], 1.0)
    assert not {"top_k", "min_p", "repetition_penalty", "n"} & set(body)
    ask(make(server), [1], top_p=0.5, top_k=9, min_p=0.1, repetition_penalty=1.2)
    body = server.requests[1].body
    assert [body[k] for k in ("top_p", "top_k", "min_p", "repetition_penalty")] == [0.5, 9, 0.1, 1.2]


def test_a_chat_is_sent_exactly_as_it_is_recorded(server: Server) -> None:
    generator = make(server, kind="chat")
    prompt = 'Why "ä"?\nSecond line \\ end'
    context = generator.chat_context(prompt)
    assert json.loads(context) == [{"role": "user", "content": prompt}]
    assert "ä" in context, "the record can be read"
    assert ask(generator, [1], context)[0].text == "one two 1 three"
    assert server.requests[0].path == "/v1/chat/completions"
    assert server.requests[0].body["messages"] == json.loads(context)
    assert "prompt" not in server.requests[0].body


@pytest.mark.parametrize("context", ["plain", "[]", '{"role": "user"}', '[{"role": "user"}]', "[" * 100_000, '["a"]'])
def test_a_chat_endpoint_refuses_plain_text(server: Server, context: str) -> None:
    with pytest.raises(OvertonError, match="takes chats"):
        ask(make(server, kind="chat"), [1], context)
    assert not server.requests


def test_a_completions_endpoint_has_no_chat(server: Server) -> None:
    assert not make(server).chat
    with pytest.raises(OvertonError, match="query/answer"):
        make(server).chat_context("hi")


def test_half_a_character_in_the_context_is_one_sentence(server: Server) -> None:
    with pytest.raises(OvertonError, match="character 3 is half"):
        ask(make(server), [1], "ab\ud800")


@pytest.mark.parametrize(
    ("said", "reason"), [("stop", "stop"), ("length", "length"), ("eos_token", "stop"), ("stop_sequence", "stop")]
)
def test_how_a_sample_ended(server: Server, said: str, reason: str) -> None:
    server.does(lambda r: r.stream("text", finish=said))
    assert ask(make(server), [1])[0].finish_reason == reason


@pytest.mark.parametrize(("said", "told"), [("content_filter", "content filter"), ("tool_calls", "tool call")])
def test_a_withheld_answer_is_an_error_with_a_sentence_and_not_repeated(server: Server, said: str, told: str) -> None:
    server.does(lambda r: r.stream("some", finish=said))
    sample = ask(make(server), [1])[0]
    assert (sample.finish_reason, sample.text) == ("error", "")
    assert sample.error is not None and told in sample.error
    assert len(server.requests) == 1


def test_stop_strings_are_cut_here_also_where_the_server_goes_on(server: Server) -> None:
    shown: list[str] = []
    server.does(lambda r: r.stream("answer\n``", "`\n# Query", " and so on", finish="length"))
    sampling = Sampling(stop=("```",))
    sample = next(iter(make(server).generate("abc", [1], sampling, on_text=lambda i, t, n: shown.append(t))))
    assert (sample.text, sample.finish_reason) == ("answer\n", "stop")
    assert all("`" not in text for text in shown)


def test_a_server_that_never_ends_is_left_at_the_stop_string(server: Server) -> None:
    server.does(server.drip)
    sample = ask(make(server), [1], stop=("p drop drop",))[0]
    assert (sample.text, sample.finish_reason) == ("dro", "stop")


def test_growing_text_is_shown_without_broken_characters(server: Server) -> None:
    def speak(request: Request) -> None:
        request.begin_stream()
        raw = f"data: {json.dumps(request.piece('naïve 🙂'), ensure_ascii=False)}\n\n".encode()
        for k in range(len(raw)):  # byte by byte
            request.handler.wfile.write(raw[k : k + 1])
            request.handler.wfile.flush()
        request.send(request.piece(" half \ufffd"))
        time.sleep(0.15)
        request.send(request.piece("", "stop"))

    server.does(speak)
    shown: list[tuple[int, str, int]] = []
    sample = next(iter(make(server).generate("abc", [1], Sampling(), on_text=lambda *a: shown.append(a))))
    assert sample.text == "naïve 🙂 half \ufffd"
    assert (0, "naïve 🙂 half ", 2) in shown
    assert not any("\ufffd" in text for _, text, _ in shown)


def test_no_more_requests_at_once_than_the_endpoint_allows_over_all_calls(server: Server) -> None:
    def slow(request: Request) -> None:
        time.sleep(0.03)
        request.stream("x")

    server.does(slow)
    generator = make(server, concurrency=3)
    threads = [threading.Thread(target=ask, args=(generator, list(range(8)))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 24
    assert server.most_at_once == 3


def test_cancel_while_it_streams_keeps_what_there_is(server: Server) -> None:
    server.does(server.drip)
    cancel, shown = threading.Event(), threading.Event()
    started = 0.0
    samples: list[Sample] = []

    def work() -> None:
        samples.extend(
            make(server).generate("abc", [5, 6], Sampling(), cancel=cancel, on_text=lambda *a: shown.set())
        )

    thread = threading.Thread(target=work)
    thread.start()
    assert shown.wait(5)
    started = time.monotonic()
    cancel.set()
    thread.join(5)
    assert time.monotonic() - started < 1
    assert sorted((s.index, s.finish_reason, s.seed) for s in samples) == [(0, "cancelled", 5), (1, "cancelled", 6)]
    assert all(s.text.startswith("drop ") and s.token_count for s in samples if s.text)
    assert any(s.text for s in samples)


@pytest.mark.parametrize("how", ["hang", "stall"])
def test_cancel_while_the_server_is_silent(server: Server, how: str) -> None:
    server.does(getattr(server, how))
    cancel = threading.Event()
    threading.Timer(0.2, cancel.set).start()
    started = time.monotonic()
    samples = list(make(server, timeout=60.0, concurrency=2).generate("abc", [1, 2, 3], Sampling(), cancel=cancel))
    assert time.monotonic() - started < 1.2
    assert {s.finish_reason for s in samples} == {"cancelled"}
    assert len(samples) == 3
    assert_no_thread_left()


def assert_no_thread_left() -> None:
    for _ in range(40):
        left = [t for t in threading.enumerate() if t.name.startswith("asking")]
        if not left:
            return
        time.sleep(0.05)
    raise AssertionError(left)


def test_leaving_the_samples_unread_ends_the_requests(server: Server) -> None:
    server.does(lambda r: r.stream("quick"), server.drip)
    samples = make(server, concurrency=4).generate("abc", [1, 2, 3, 4], Sampling())
    next(samples)
    samples.close()
    assert_no_thread_left()


def test_an_error_of_the_caller_ends_the_requests(server: Server) -> None:
    server.does(server.drip)

    def fail(*_: Any) -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        list(make(server).generate("abc", [1, 2], Sampling(), on_text=fail))
    assert_no_thread_left()


def test_no_seeds_ask_for_nothing(server: Server) -> None:
    assert ask(make(server), []) == []
    assert not server.requests


def test_what_the_server_says_of_its_model(server: Server) -> None:
    server.models = {
        "data": [{"id": "other", "max_model_len": 5}, {"id": "served", "max_model_len": 777, "root": "o/r"}]
    }
    generator = make(server)
    assert (generator.limit, generator.counts_exactly) == (UNKNOWN_LIMIT, False)
    generator.probe()
    host = server.url.removeprefix("http://").removesuffix("/v1")
    assert (generator.limit, generator.revision) == (777, f"served (o/r) at {host}")
    configured = make(server, limit=50, revision="of May")
    configured.probe()
    assert (configured.limit, configured.revision) == (50, f"served (of May) at {host}")
    other = ServerGenerator(Endpoint("e", server.url, "another", revision="of May"))
    assert other.revision != configured.revision, "an endpoint with another model reuses nothing"


def test_a_server_that_is_busy_at_first_has_the_same_revision(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.models = {"data": [{"id": "served", "root": "o/r"}]}
    busy, ask_for = [503, 429], ServerGenerator._models

    async def models(self: ServerGenerator) -> Any:
        if busy:
            raise Failure("failed", f"failed with status {busy.pop()}")
        return await ask_for(self)

    monkeypatch.setattr(ServerGenerator, "_models", models)
    generator = make(server)
    generator.probe()
    assert not busy and "(o/r)" in generator.revision


@pytest.mark.parametrize("models", [None, [], {"data": 3}, {"data": [3, {"id": "served", "max_model_len": "many"}]}])
def test_a_server_that_says_nothing_of_its_models_can_be_used(server: Server, models: Any) -> None:
    server.models = models
    generator = make(server)
    generator.probe()
    assert generator.limit == UNKNOWN_LIMIT
    assert ask(generator, [1])[0].finish_reason == "stop"


def test_extra_settings_are_sent_and_recorded(server: Server) -> None:
    generator = make(server, extra={"chat_template_kwargs": {"thinking": False}}, seeds=False)
    ask(generator, [1])
    assert server.requests[0].body["chat_template_kwargs"] == {"thinking": False}
    assert "seed" not in server.requests[0].body
    assert '"thinking": false' in generator.revision
    assert "seeds not sent" in generator.revision


def test_tokens_are_estimated(server: Server) -> None:
    generator = make(server)
    assert [generator.count_tokens(t) for t in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
    assert not generator.counts_exactly
