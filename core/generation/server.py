"""The generator that asks an OpenAI-compatible server: completions for base models, chat for aligned ones."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from threading import Event
from typing import Any

from core.errors import OvertonError
from core.generation.base import OnText, Sample, Sampling
from core.generation.endpoints import PREFIX, UNKNOWN_LIMIT, Endpoint, key_of
from core.generation.server_call import Call
from core.generation.server_client import Failure, Fatal, failure_of, make_client, wait_before
from core.generation.server_request import Manners, body_of, check_text, messages_of

BACKOFF = 0.5  # seconds; doubled with each attempt
PROBE_TIMEOUT = 10.0
PROBES, LONGEST_PROBE_WAIT = 4, 3.0


class ServerGenerator:
    """Samples from one endpoint. Any thread may use it; all calls together keep to its `concurrency`.

    By default each sample is one request with its own seed. Servers need not honour seeds: with the same seed they
    may give another text, so runs need not repeat. With `endpoint.batch` one request asks for many samples; they then
    share one seed and each sample records that seed of its request.

    Token counts are estimates (`counts_exactly`), so a context that is too long is refused by the server, not here.
    """

    counts_exactly = False

    def __init__(self, endpoint: Endpoint, *, backoff: float = BACKOFF) -> None:
        self.endpoint = endpoint
        self.backoff = backoff
        self.model = f"{PREFIX}{endpoint.name}"
        self.revision = self._revision("")
        self.limit = endpoint.limit or UNKNOWN_LIMIT
        self.chat = endpoint.chat
        self.manners = Manners()
        self.slots = threading.BoundedSemaphore(endpoint.concurrency)
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"ServerGenerator({self.endpoint.name!r}, {self.endpoint.kind} of {self.endpoint.host})"

    @property
    def counts(self) -> dict[str, int]:
        """What happened so far: `requests`, `retries`, `samples`, `errors`, and failed attempts by kind.

        The kinds are `limited` (429), `failed` (5xx and the like), `timeout`, `connection`, `broken`, `garbled`.
        """
        with self._lock:
            return dict(self._counts)

    def count(self, what: str) -> None:
        """Count something that happened."""
        with self._lock:
            self._counts[what] += 1

    def count_tokens(self, context: str) -> int:
        """An estimate of the number of tokens: one for four bytes."""
        return -(-len(context.encode("utf-8", errors="replace")) // 4)

    def chat_context(self, prompt: str) -> str:
        """The `messages` of the request, as JSON. Raises `OvertonError` where the endpoint takes plain text."""
        if not self.chat:
            raise OvertonError(f"{self.endpoint.name} takes plain text: use the query/answer format.")
        return messages_of(prompt)

    def generate(
        self,
        context: str,
        seeds: Sequence[int],
        sampling: Sampling,
        *,
        cancel: Event | None = None,
        on_text: OnText | None = None,
    ) -> Iterator[Sample]:
        """Yield one `Sample` per seed as they finish; see `core.generation.base.Generator`.

        A sample that the server did not give after `endpoint.retries` repetitions has the finish reason `error`.
        Raises `OvertonError` where the endpoint cannot be used at all: unreachable, refused access, an unknown model,
        a context that is too long, or a parameter that it does not take. Samples that finished before stay valid.
        """
        sampling.check()
        check_text(context, self.endpoint.name)
        body_of(self.endpoint, self.manners, context, sampling, seed=0, n=1)  # complains about a wrong context
        if seeds:
            yield from Call(self, context, tuple(seeds), sampling).run(cancel, on_text)

    def probe(self) -> None:
        """Ask the server what it says of the model: its limit and revision. Servers need not answer that.

        Raises `OvertonError` where the server cannot be reached or refuses access.
        """
        try:
            said = _in_a_thread(self._asked())
        except Fatal as error:
            raise OvertonError(f"{self.endpoint.name} {error}.") from None
        except Failure as error:
            if not error.reached:
                raise OvertonError(f"{self.endpoint.name} {error.why}: is the server running there?") from None
            return  # busy or still loading: the first request will see
        entries = said.get("data") if isinstance(said, Mapping) else None
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, Mapping) and entry.get("id") == self.endpoint.model:
                self._take_over(entry)

    def _take_over(self, entry: Mapping[str, Any]) -> None:
        """Limit and revision from the server's entry for the model; what the configuration says comes first."""
        if self.endpoint.limit is None:
            for name in ("max_model_len", "context_length"):
                limit = entry.get(name)
                if isinstance(limit, int) and not isinstance(limit, bool) and 0 < limit < UNKNOWN_LIMIT:
                    self.limit = limit
                    break
        if not self.endpoint.revision:
            for name in ("revision", "root"):
                said = entry.get(name)
                if isinstance(said, str) and 0 < len(said) <= 200 and said != self.endpoint.model:
                    self.revision = self._revision(f" ({said})")
                    break

    def _revision(self, said: str) -> str:
        """What is known of the model behind the endpoint, and what of its settings changes texts.

        The model is named also where the operator tells a revision: the endpoint may serve another one tomorrow.
        """
        there = self.endpoint
        said = f" ({there.revision})" if there.revision else said
        extra = f", with {json.dumps(dict(there.extra), default=str)}" if there.extra else ""
        seeds = "" if there.seeds else ", seeds not sent"
        return f"{there.model}{said} at {there.place}{extra}{seeds}"

    async def _asked(self) -> Any:
        """The answer to GET /models, asked for again where the server is busy.

        What it tells becomes part of the revision: with and without it, samples would not count as the same.
        """
        for attempt in range(1, PROBES):
            try:
                return await self._models()
            except Failure as error:
                if error.kind not in ("limited", "failed"):
                    raise
                await asyncio.sleep(min(wait_before(attempt, self.backoff, error.after), LONGEST_PROBE_WAIT))
        return await self._models()

    async def _models(self) -> Any:
        """The server's answer to GET /models; empty where it has none. Raises `Failure` or `Fatal`."""
        client = make_client(self.endpoint, key_of(self.endpoint))
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return await client.get("/models", cast_to=object)
        except Exception as error:
            meaning = failure_of(error, self.endpoint)
            refused_key = isinstance(meaning, Fatal) and getattr(error, "status_code", 0) in (401, 403)
            if refused_key or isinstance(meaning, Failure):
                raise meaning from None
            return {}
        finally:
            await client.close()


def _in_a_thread(work: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in a thread of its own: the calling one may have a loop already."""
    box: list[Any] = []

    def run() -> None:
        try:
            box.append(asyncio.run(work))
        except Exception as error:  # raised again in the thread that waits
            box.append(error)

    thread = threading.Thread(target=run, name="asking a server for its models", daemon=True)
    thread.start()
    thread.join()
    if isinstance(box[0], Exception):
        raise box[0]
    return box[0]
