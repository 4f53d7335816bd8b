"""One call of a server generator: many requests at once in a thread of their own; the caller waits for samples."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Any

from core.errors import OvertonError, TooLong
from core.generation.base import OnText, Sample, Sampling
from core.generation.endpoints import key_of
from core.generation.server_client import (
    Failure,
    Fatal,
    Refused,
    TooMuch,
    failure_of,
    make_client,
    refusal_text,
    wait_before,
)
from core.generation.server_reply import Growing, choices_of, usage_of
from core.generation.server_request import Manners, adapted, body_of, names_in

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from core.generation.server import ServerGenerator

TICK = 0.05  # seconds between two looks at `cancel`
MOST_AT_ONCE = 64  # samples in one request
_AFTERWARDS = 2.0  # seconds that the count of tokens may come after the end of the text
_END = object()
_LONGEST = 10  # an attempt may take this many times the longest silence


class Call:
    """The requests for one context. `run` yields the samples; nothing of it is left when that ends."""

    def __init__(self, owner: ServerGenerator, context: str, seeds: Sequence[int], sampling: Sampling) -> None:
        self._owner, self._endpoint = owner, owner.endpoint
        self._context, self._seeds, self._sampling = context, seeds, sampling
        self._outbox: SimpleQueue[Sample | int | OvertonError | None] = SimpleQueue()
        self._shown: dict[int, tuple[str, int]] = {}  # the growing texts; those in `_fresh` are in the outbox too
        self._fresh: set[int] = set()
        self._reached = False
        self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._main: asyncio.Task[None] | None = None

    def run(self, cancel: Event | None, on_text: OnText | None) -> Iterator[Sample]:
        """Yield the samples as they finish, and those that were cancelled. Raises `OvertonError`."""
        key = key_of(self._endpoint)
        thread = threading.Thread(target=self._work, args=(key,), name=f"asking {self._endpoint.name}", daemon=True)
        thread.start()
        missing = set(range(len(self._seeds)))
        try:
            while missing:
                stopping = cancel is not None and cancel.is_set()
                try:
                    item = self._outbox.get(timeout=0 if stopping else TICK)
                except Empty:
                    if stopping:
                        break
                    continue
                if item is None:
                    raise self._sentence("ended without all samples: try again")
                if isinstance(item, OvertonError):
                    raise item
                if isinstance(item, Sample):
                    missing.discard(item.index)
                    yield item
                elif item in missing:
                    self._show(item, on_text)
            for index in sorted(missing):
                text, tokens = self._shown.get(index, ("", 0))
                yield Sample(index, text, "cancelled", tokens, self._seeds[index])
        finally:
            self._stop()
            thread.join(0.5)

    def _show(self, index: int, on_text: OnText | None) -> None:
        self._fresh.discard(index)
        if on_text is not None:
            on_text(index, *self._shown.get(index, ("", 0)))

    def _stop(self) -> None:
        self._stopped = True
        if self._loop is not None and self._main is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._main.cancel)

    def _work(self, key: str | None) -> None:
        """What the thread does."""
        try:
            asyncio.run(self._all(key))
        except asyncio.CancelledError:
            pass
        except Exception as error:
            why = f"cannot be asked ({type(error).__name__}): check its settings"
            self._outbox.put(self._sentence(why))
        finally:
            self._outbox.put(None)

    def _sentence(self, why: str) -> OvertonError:
        return OvertonError(f"{self._endpoint.name} {why}.")

    async def _all(self, key: str | None) -> None:
        self._loop, self._main = asyncio.get_running_loop(), asyncio.current_task()
        if self._stopped:
            return
        size = MOST_AT_ONCE if self._endpoint.batch else 1
        order = list(range(len(self._seeds)))
        gate = asyncio.Semaphore(self._endpoint.concurrency)
        client = make_client(self._endpoint, key)
        groups = [order[k : k + size] for k in range(0, len(order), size)]
        tasks = [asyncio.create_task(self._group(client, gate, group)) for group in groups]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
            failed = [error for task in done if (error := task.exception()) is not None]
            if failed:
                known = [error for error in failed if isinstance(error, Fatal)]
                why = str(known[0]) if known else f"cannot be asked ({type(failed[0]).__name__})"
                longer = bool(known) and isinstance(known[0], TooMuch)
                self._outbox.put(TooLong(f"{self._endpoint.name} {why}.") if longer else self._sentence(why))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()

    async def _group(self, client: AsyncOpenAI, gate: asyncio.Semaphore, group: list[int]) -> None:
        """Ask for the samples of a group until each has ended or failed for good."""
        async with gate:
            while not self._owner.slots.acquire(blocking=False):  # other calls use the same server
                await asyncio.sleep(0.02)
            try:
                await self._until_done(client, group)
            finally:
                self._owner.slots.release()

    async def _until_done(self, client: AsyncOpenAI, left: list[int]) -> None:
        manners, failures = self._owner.manners, 0
        while left:
            batch = left if "n" not in manners.omitted else left[:1]
            body = self._body(manners, batch)
            ended: set[int] = set()
            try:
                offered = await self._attempt(client, body, batch, ended)
                if offered < len(batch):  # it was asked for more samples, and knows nothing of `n`
                    manners = manners.without("n")
                self._owner.manners = manners
            except Refused as refused:
                if refused.said.get("code") == "content_filter":
                    ended = self._give_up(batch, f"{self._endpoint.name}: its content filter refused the prompt.")
                else:
                    manners = self._adapt(manners, body, refused)
            except Failure as failure:
                failures += 1
                rest = [index for index in batch if index not in ended]
                ended |= await self._failed(failure, failures, rest)
            left = [index for index in left if index not in ended]

    async def _failed(self, failure: Failure, failures: int, batch: list[int]) -> set[int]:
        """Count a failure and wait before the next attempt; the samples that are given up where it was the last."""
        self._owner.count(failure.kind)
        self._reached |= failure.reached
        for index in batch:
            self._shown.pop(index, None)  # what a broken attempt said is not continued by the next one
        if failures > self._endpoint.retries:
            return self._lost(batch, failure, failures)
        self._owner.count("retries")
        await asyncio.sleep(wait_before(failures, self._owner.backoff, failure.after))
        return set()

    def _lost(self, batch: list[int], failure: Failure, attempts: int) -> set[int]:
        if not self._reached:
            raise Fatal(f"{failure.why}: is the server running there?")
        times = "once" if attempts == 1 else f"at each of {attempts} attempts"
        return self._give_up(batch, f"{self._endpoint.name} {failure.why}, {times}.")

    def _give_up(self, batch: list[int], sentence: str) -> set[int]:
        for index in batch:
            self._owner.count("errors")
            self._outbox.put(Sample(index, "", "error", 0, self._seeds[index], error=sentence))
        return set(batch)

    def _body(self, manners: Manners, batch: list[int]) -> dict[str, Any]:
        seed, n = self._seeds[batch[0]], len(batch)
        return body_of(self._endpoint, manners, self._context, self._sampling, seed=seed, n=n)

    def _adapt(self, manners: Manners, body: Mapping[str, Any], refused: Refused) -> Manners:
        self._reached = True
        why = refusal_text(refused, has_key=bool(self._endpoint.key_env))
        named = names_in(refused.said, body)
        try:
            return adapted(manners, body, named, str(refused.said), why=why)
        except OvertonError as error:
            raise Fatal(str(error)) from None

    async def _attempt(self, client: AsyncOpenAI, body: Mapping[str, Any], batch: list[int], ended: set[int]) -> int:
        """Make one request; the samples that ended go into the outbox and into `ended`.

        Returns how many samples the answer had. Raises `Failure`, `Refused` or `Fatal`.
        """
        self._owner.count("requests")
        growing: dict[int, Growing] = {}
        problem: Exception | None = None
        try:
            async with asyncio.timeout(_LONGEST * self._endpoint.timeout), aclosing(_events(client, body)) as events:
                while True:
                    over = len(growing) == len(batch) and all(one.ended for one in growing.values())
                    if over and any(one.cut for one in growing.values()):
                        break
                    # After the end only the count of tokens can come.
                    async with asyncio.timeout(_AFTERWARDS if over else None):
                        event = await anext(events, _END)
                    if event is _END:
                        break
                    self._take(event, growing, batch)
        except Exception as error:  # a hostile server gets any exception out of a client
            problem = failure_of(error, self._endpoint)
        for place, one in growing.items():
            if one.ended:
                self._finish(one, batch, place, ended)
        if isinstance(problem, Failure | Refused | Fatal) and len(ended) < len(batch):
            raise problem
        if not growing or any(not one.ended for one in growing.values()):
            raise Failure("broken", "broke off its answer")
        return len(growing)

    def _take(self, event: Any, growing: dict[int, Growing], batch: list[int]) -> None:
        """Take in one event of a stream, or a whole answer."""
        self._reached = True
        for place, choice in choices_of(event):
            if place >= len(batch):
                continue
            if place not in growing:
                growing[place] = Growing(self._sampling.stop, self._sampling.max_new_tokens)
            growing[place].feed(choice)
            index = batch[place]
            self._shown[index] = (growing[place].shown, growing[place].tokens)
            if index not in self._fresh:
                self._fresh.add(index)
                self._outbox.put(index)
        if len(batch) == 1 and growing:
            growing[0].usage = usage_of(event) or growing[0].usage

    def _finish(self, one: Growing, batch: list[int], place: int, ended: set[int]) -> None:
        """Put a sample that has ended into the outbox, with the seed that its request had."""
        index, seed = batch[place], self._seeds[batch[0]]
        ended.add(index)
        if one.withheld:
            self._give_up([index], f"{self._endpoint.name}: {one.withheld}.")
            return
        self._owner.count("samples")
        self._outbox.put(Sample(index, one.text, str(one.ended), one.tokens, seed, tokens=one.trace()))


async def _events(client: AsyncOpenAI, body: Mapping[str, Any]) -> AsyncGenerator[Any, None]:
    """The events of a streamed answer, or the whole answer where it is not streamed."""
    from openai import AsyncStream

    path = "/chat/completions" if "messages" in body else "/completions"
    if not body.get("stream"):
        yield await client.post(path, cast_to=object, body=body)
        return
    stream = await client.post(path, cast_to=object, body=body, stream=True, stream_cls=AsyncStream[object])
    try:
        if "application/json" in stream.response.headers.get("content-type", ""):  # it does not stream
            yield json.loads(await stream.response.aread())
            return
        async for event in stream:
            yield event
    finally:
        await stream.close()
