"""How a model reads a context, without its weights: what a plan needs before anything is generated."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

from core.errors import OvertonError
from core.generation import pool
from core.generation.fake import FakeGenerator
from core.heavy import LOADING


class Reads(Protocol):
    """The part of a generator that a plan needs; see `core.generation.base.Generator`."""

    model: str
    revision: str
    limit: int
    chat: bool

    def count_tokens(self, context: str) -> int:
        """Number of tokens that the model reads for this context, special tokens included."""
        ...

    def chat_context(self, prompt: str) -> str:
        """The exact text that a chat model is sent for one prompt."""
        ...


class TokenizerReader:
    """The tokenizer and the limits of a local model; agrees with the generator of the same model."""

    def __init__(self, model: str) -> None:
        from core.models import locate

        found = locate(model)
        self.model, self.revision = found.model, found.revision
        try:
            with LOADING:
                from transformers import AutoConfig, AutoTokenizer

                config: Any = AutoConfig.from_pretrained(found.source)
                self._tokenizer: Any = AutoTokenizer.from_pretrained(found.source)
        except Exception as error:  # the libraries raise many types: network, format, unknown architecture
            raise OvertonError(
                f"The tokenizer of {model} cannot be loaded ({type(error).__name__}): give a model of the catalogue, "
                "a folder in the format of transformers, or a hub id that this machine can reach."
            ) from error
        if self.revision == "hub":
            self.revision = str(getattr(config, "_commit_hash", None) or "hub")[:12]
        self.chat = bool(self._tokenizer.chat_template)
        self.limit = int(getattr(config.get_text_config(), "max_position_embeddings", 0) or 2048)
        bos = self._tokenizer.bos_token_id
        self._adds_bos = bos is not None and self._tokenizer("a")["input_ids"][:1] == [bos]

    def count_tokens(self, context: str) -> int:
        """Number of tokens, special tokens included; exactly one BOS."""
        ids = self._tokenizer(context, add_special_tokens=False)["input_ids"]
        bos = self._tokenizer.bos_token
        return len(ids) + int(self._adds_bos and not (bos and context.startswith(bos)))

    def chat_context(self, prompt: str) -> str:
        """The model's own chat template around one user message. Raises `OvertonError` without a template."""
        if not self.chat:
            raise OvertonError(f"{self.model} has no chat template: use the query/answer format.")
        message = [{"role": "user", "content": prompt}]
        return str(self._tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True))


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
    if pool.is_built(model) or model.startswith("server:"):
        return pool.generator(model)
    if model not in _READERS:
        _READERS[model] = TokenizerReader(model)
    return _READERS[model]


def reader_or_guess(model: str, server: Mapping[str, Any] | None = None) -> Reads:
    """Like `reader_of`, with a guess where the model is not at hand."""
    try:
        return reader_of(model, server)
    except OvertonError:
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
        from core.generation import endpoints

        pool.use_generator(model, endpoints.build(endpoints.from_table(model.removeprefix("server:"), server)))
