"""How a model reads a context, without its weights: what a plan needs before anything is generated."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from core.errors import OvertonError, reason_of
from core.generation import endpoints, pool
from core.generation.base import Reads
from core.generation.fake import FakeGenerator


class Guess:
    """Stands for a model that is not at hand: about four characters a token, and no limit is known."""

    counts_exactly = False
    chat = True
    limit = 0

    def __init__(self, model: str) -> None:
        from core import models

        self.model = model
        self.revision = models.entry(model).revision if model in models.catalogue() else "unknown"

    def count_tokens(self, context: str) -> int:
        """About the number of tokens."""
        return -(-len(context) // 4)

    def chat_context(self, prompt: str) -> str:
        """The prompt, with a word on what is missing."""
        return f"(the chat template of {self.model}, which is not at hand, around this prompt)\n{prompt}"


_READERS: dict[str, Reads] = {}


def reader_of(model: str, server: Mapping[str, Any] | None = None) -> Reads:
    """What reads contexts for a model: its generator where that is built or light, else its tokenizer alone.

    Raises `OvertonError` where the model is not fetched, unknown or damaged, or a server cannot be reached.
    """
    make_ready(model, server)
    if pool.is_built(model) or endpoints.is_server(model):
        return pool.generator(model)
    if model not in _READERS:
        from core.generation.reader import read_tokens
        from core.models import locate

        try:
            found = locate(model)
        except OSError as error:  # a path that no file can have, or that may not be looked at
            raise OvertonError(f"The model {model:.80} cannot be read: {reason_of(error)}.") from error
        _READERS[model] = read_tokens(found)
    return _READERS[model]


# When a server last did not answer, in seconds of the monotonic clock: it is not asked again for every prompt.
_ABSENT: dict[str, float] = {}
_ASK_AGAIN = 20.0


def reader_or_guess(model: str, server: Mapping[str, Any] | None = None) -> Reads:
    """Like `reader_of`, with a guess where the model is not at hand."""
    if time.monotonic() - _ABSENT.get(model, -_ASK_AGAIN) >= _ASK_AGAIN:
        try:
            return reader_of(model, server)
        except OvertonError:
            if endpoints.is_server(model):
                _ABSENT[model] = time.monotonic()
    return Guess(model)


def make_ready(model: str, server: Mapping[str, Any] | None = None) -> None:
    """Make a model known to the pool that it cannot find by itself: an inline server, or a fake one.

    `fake` and `fake chat` exist where OVERTON_FAKE_GENERATOR asks for them (tests, a first look); OVERTON_FAKE_DELAY
    is the time in seconds that each of their tokens takes. Raises `OvertonError` where a server cannot be reached.
    """
    if pool.is_built(model):
        return
    if model in ("fake", "fake chat") and os.environ.get("OVERTON_FAKE_GENERATOR"):
        delay = float(os.environ.get("OVERTON_FAKE_DELAY") or 0)
        pool.use_generator(model, FakeGenerator(model=model, chat=model == "fake chat", delay=delay))
    elif server is not None:
        pool.use_generator(model, endpoints.build(endpoints.from_table(model.removeprefix(endpoints.PREFIX), server)))
