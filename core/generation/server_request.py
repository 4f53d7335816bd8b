"""What is sent to a server: the body of a request, and what to leave out once the server has refused it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from core.errors import OvertonError
from core.generation.base import Sampling
from core.generation.endpoints import Endpoint

# The values at which a sampling parameter does nothing, so that it can be left out.
OFF: dict[str, float] = {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
# Left out one after another where a refusal does not say what it is about: none of them changes a text.
NICETIES = ("stream_options", "logprobs", "n")
# Words that also mean something else: these count only where they are quoted or used as a parameter's name.
_COMMON = ("n", "stop", "seed", "stream", "model", "prompt", "messages")


@dataclass(frozen=True)
class Manners:
    """What a server was seen to understand: the parameters to leave out, and the name of the token limit."""

    omitted: frozenset[str] = field(default_factory=frozenset)
    limit_name: str = "max_tokens"

    def without(self, *names: str) -> Manners:
        """The same, with some more parameters left out."""
        return replace(self, omitted=self.omitted | set(names))


def messages_of(prompt: str) -> str:
    """The exact record of a chat with one message: the `messages` of the request, as JSON."""
    return json.dumps([{"role": "user", "content": prompt}], ensure_ascii=False)


def read_messages(context: str, name: str) -> list[dict[str, str]]:
    """The inverse of `messages_of`. Raises `OvertonError` for any other text."""
    try:
        messages = json.loads(context)
    except (ValueError, RecursionError):
        messages = None
    good = isinstance(messages, list) and all(
        isinstance(m, dict) and set(m) == {"role", "content"} and all(isinstance(v, str) for v in m.values())
        for m in messages
    )
    if not messages or not good:
        raise OvertonError(f"{name} takes chats and not plain text: use it with the chat strategy.")
    return list(messages)


def check_text(context: str, name: str) -> None:
    """Raise `OvertonError` for a text that has no UTF-8 form."""
    try:
        context.encode("utf-8")
    except UnicodeEncodeError as error:
        raise OvertonError(
            f"The context cannot be sent to {name}: character {error.start + 1} is half a character, remove it."
        ) from None


def body_of(
    endpoint: Endpoint, manners: Manners, context: str, sampling: Sampling, *, seed: int, n: int
) -> dict[str, Any]:
    """The body of one request for `n` samples. `top_p` is always sent, since servers have defaults of their own."""
    wanted: dict[str, Any] = {**endpoint.extra, "model": endpoint.model}
    if endpoint.chat:
        wanted["messages"] = read_messages(context, endpoint.name)
    else:
        wanted["prompt"] = context
    wanted[manners.limit_name] = sampling.max_new_tokens
    optional: dict[str, Any] = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    for name in ("top_k", "min_p", "repetition_penalty"):
        if getattr(sampling, name) != OFF[name]:
            optional[name] = getattr(sampling, name)
    if endpoint.seeds:
        optional["seed"] = seed
    if sampling.stop:
        optional["stop"] = list(sampling.stop)
    if n > 1:
        optional["n"] = n
    if endpoint.logprobs:
        optional["logprobs"] = True if endpoint.chat else 1
    if "stream" not in manners.omitted:
        optional |= {"stream": True, "stream_options": {"include_usage": True}}
    return wanted | {name: value for name, value in optional.items() if name not in manners.omitted}


def adapted(manners: Manners, body: Mapping[str, Any], named: set[str], hint: str, *, why: str) -> Manners:
    """The manners after a refusal (400 or 422) that names some parameters of the body; see `names_in`.

    What does not change the texts is left out: log-probabilities, streaming, several samples at once, stop strings
    (they are applied here as well) and parameters that are off. Raises `OvertonError`, which ends with `why`, where
    the request cannot be made without changing what was asked for.
    """
    if manners.limit_name in named and manners.limit_name != "max_completion_tokens" and _wants_other_limit(hint):
        return replace(manners, limit_name="max_completion_tokens")
    spare = {"stream_options", "logprobs", "n", "stream", "stop"}
    spare |= {name for name, off in OFF.items() if body.get(name) == off}
    harmless = [name for name in named if name in spare]
    if harmless:
        return manners.without(*harmless)
    if not named:
        for name in NICETIES:
            if name in body:
                return manners.without(name)
        raise OvertonError(why)
    name = sorted(named)[0]
    if name == "seed":
        raise OvertonError("does not take seeds: write seeds = false for this endpoint, and nothing can be repeated")
    if name in OFF:
        raise OvertonError(
            f"does not take {name} = {body[name]:g}: switch it off ({name} = {OFF[name]:g}) or change it"
        )
    raise OvertonError(f"refused {name}: change it, or look into the log of the server")


def _wants_other_limit(hint: str) -> bool:
    return "max_completion_tokens" in hint


def names_in(refusal: Mapping[str, Any], body: Mapping[str, Any]) -> set[str]:
    """The parameters of the body that a refusal is about.

    Servers say it in a field (`param`, or the path `loc` of a validation error), or somewhere in their message.
    """
    fields = {str(refusal.get("param"))}
    detail = refusal.get("detail")
    for entry in detail if isinstance(detail, list) else []:
        if isinstance(entry, Mapping) and isinstance(entry.get("loc"), list):
            fields |= {str(part) for part in entry["loc"]}
    if sure := fields & set(body):
        return sure
    text = message_of(refusal)
    return {name for name in body if re.search(_pattern(name), text)}


def _pattern(name: str) -> str:
    alone = rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])"
    if name not in _COMMON:
        return alone
    return rf"""['"`]{name}['"`]|{alone}\s*(=|>|must\b|parameter\b|is not supported\b)|parameter:?\s+{alone}"""


def message_of(refusal: Mapping[str, Any]) -> str:
    """The message of a refusal, whatever field the server puts it into; empty where there is none."""
    found: list[str] = []
    for key in ("message", "detail", "error", "msg"):
        value = refusal.get(key)
        for entry in value if isinstance(value, list) else [value]:
            if isinstance(entry, str):
                found.append(entry)
            elif isinstance(entry, Mapping):
                found.append(message_of(entry))
    return " ".join(found)[:4000]


def too_long(refusal: Mapping[str, Any]) -> str | None:
    """What to say where a refusal is about the length of the context, with the counts that it tells; else None."""
    text = message_of(refusal)
    said = text.lower()
    if not re.search(r"context (length|size|window)|must be <=|too (long|large)|exceed", said):
        return None
    if not re.search(r"token|context", said):
        return None
    limit = _number(r"(?:context (?:length|size|window)\D{0,40}?|<= ?|at most |limit\D{0,20}?)(\d{2,})", said)
    limit = _count(refusal.get("n_ctx")) or limit
    counts = [int(number) for number in re.findall(r"(?<![\d.])\d{2,9}(?![\d.]*\d)", said)]
    asked = _count(refusal.get("n_prompt_tokens")) or max((c for c in counts if limit and c > limit), default=None)
    if limit and asked:
        return f"reads at most {limit} tokens and was sent or asked for {asked}"
    return f"reads at most {limit} tokens" if limit else "says that the context is too long for it"


def _number(pattern: str, text: str) -> int | None:
    found = re.search(pattern, text)
    return int(found[1]) if found else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
