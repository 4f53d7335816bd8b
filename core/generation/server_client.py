"""The client that talks to a server, and what its failures mean: try again, leave something out, or give up."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.generation.endpoints import Endpoint
from core.generation.server_reply import Garbled
from core.generation.server_request import message_of, too_long

if TYPE_CHECKING:
    from openai import AsyncOpenAI

CONNECT_TIMEOUT = 10.0
LONGEST_WAIT = 60.0  # seconds between two attempts, whatever the server asks for
MOST_BYTES = 64 * 2**20  # of one answer
# Nothing else leaves this machine: the client would add headers from the environment and a description of it.
_HEADERS = ("host", "accept", "connection", "content-type", "content-length", "user-agent")
_RETRIED = (408, 409, 425, 429)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Fatal(Exception):
    """The endpoint cannot be used at all as it is asked; the text continues a sentence that begins with its name."""


class TooMuch(Fatal):
    """The context is too long for the model of the endpoint."""


@dataclass
class Refused(Exception):
    """The server refused the request (400 or 422): `said` is what it answered."""

    status: int
    said: Mapping[str, Any]


@dataclass
class Failure(Exception):
    """An attempt that may be repeated. `why` continues a sentence that begins with the name of the endpoint.

    `after` is what the server asked to wait, in seconds; `reached` says whether it answered at all.
    """

    kind: str
    why: str
    after: float | None = None
    reached: bool = True


def make_client(endpoint: Endpoint, key: str | None) -> AsyncOpenAI:
    """The official client for one endpoint: no retries of its own, no redirects, no headers from the environment."""
    import httpx2
    from openai import AsyncOpenAI

    bearer = f"Bearer {key or 'EMPTY'}"

    async def only_ours(request: httpx2.Request) -> None:
        for name in list(request.headers):
            if name.lower() not in _HEADERS:
                del request.headers[name]
        request.headers["Authorization"] = bearer
        request.headers["Accept-Encoding"] = "identity"

    async def bounded(response: httpx2.Response) -> None:
        response.stream = _Bounded(response.stream)

    class _Bounded(httpx2.AsyncByteStream):
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        async def __aiter__(self) -> AsyncIterator[bytes]:
            left = MOST_BYTES
            async for part in self._inner:
                left -= len(part)
                if left < 0:
                    raise Garbled("sent far more than was asked for")
                yield part

        async def aclose(self) -> None:
            await self._inner.aclose()

    http = httpx2.AsyncClient(
        timeout=httpx2.Timeout(endpoint.timeout, connect=min(CONNECT_TIMEOUT, endpoint.timeout)),
        follow_redirects=False,
        # A proxy of the environment cannot reach this machine's own servers.
        trust_env=urlsplit(endpoint.url).hostname not in _LOOPBACK,
        event_hooks={"request": [only_ours], "response": [bounded]},
        limits=httpx2.Limits(max_connections=endpoint.concurrency, max_keepalive_connections=endpoint.concurrency),
    )
    return AsyncOpenAI(base_url=endpoint.url, api_key=key or "EMPTY", max_retries=0, http_client=http)


def failure_of(error: Exception, endpoint: Endpoint) -> Exception:
    """What an exception of the client means: a `Failure`, a `Refused` or a `Fatal`. Never repeats what was sent."""
    import httpx2
    import openai

    if isinstance(error, Garbled):
        return Failure("garbled", str(error))
    if isinstance(error, openai.APIStatusError):
        return _of_status(error, endpoint)
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
        connecting = type(error.__cause__).__name__ == "ConnectTimeout"
        why = "cannot be reached" if connecting else f"said nothing for {endpoint.timeout:g} s"
        return Failure("timeout", f"{why} at {endpoint.host}", reached=not connecting)
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError):
        cause = type(error.__cause__).__name__
        if cause in ("ConnectError", "UnsupportedProtocol", "ProxyError", "SSLError"):
            return Failure("connection", f"cannot be reached at {endpoint.host}", reached=False)
        return Failure("broken", "broke off its answer")
    if isinstance(error, openai.APIError):
        return Failure("broken", "reported an error in the middle of its answer")
    return Failure("garbled", "sent something that is no completion")


def _of_status(error: Any, endpoint: Endpoint) -> Exception:
    status = int(error.status_code)
    said = error.body if isinstance(error.body, Mapping) else {}
    # The client unwraps `error`; validation errors come in `detail`.
    if status in (401, 403):
        key = f"the key in {endpoint.key_env} is not accepted" if endpoint.key_env else "it wants a key (key_env)"
        return Fatal(f"refused access ({status}): {key}")
    if status == 404:
        return Fatal(f"has no {endpoint.kind} for the model {endpoint.model!r} (404): check url, kind and model")
    if 300 <= status < 400:
        return Fatal(f"sends requests on to another address ({status}): write that address as its url")
    if said.get("code") == "insufficient_quota":
        return Fatal("says that the account has no credit left")
    if status in _RETRIED or status >= 500:
        after = _retry_after(error.response.headers.get("retry-after"))
        kind = "limited" if status == 429 else "failed"
        why = "takes no more requests for now (429)" if status == 429 else f"failed with status {status}"
        return Failure(kind, why, after)
    if status in (400, 422):
        if said.get("code") == "content_filter":
            return Refused(status, {"code": "content_filter"})
        longer = too_long(said)
        return TooMuch(longer) if longer else Refused(status, said)
    return Fatal(f"refused the request with status {status}")


def _retry_after(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks for; None where it says nothing that can be read."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT) if seconds == seconds else None


def wait_before(attempt: int, base: float, after: float | None) -> float:
    """Seconds before attempt number `attempt` (1 = the first repetition): exponential with full jitter.

    What the server asked for is waited in full, with a little jitter on top so that not all come back at once.
    """
    if after is not None:
        return after + random.uniform(0, base)
    return random.uniform(0, min(LONGEST_WAIT, base * 2.0**attempt))


def refusal_text(refused: Refused, *, has_key: bool) -> str:
    """How a refusal that names nothing is told. The server's own words stand there only where no key was sent."""
    words = " ".join(message_of(refused.said).split())[:160].rstrip(". ")
    return f"refused the request ({refused.status})" + (f": {words}" if words and not has_key else "")
