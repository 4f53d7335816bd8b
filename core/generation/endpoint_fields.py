"""The fields of an endpoint: their types and ranges, and what may not stand in them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from core.errors import OvertonError

KINDS = ("completions", "chat")
UNKNOWN_LIMIT = 10**9
# What a request says itself, so that `extra` may not say it again.
OWN = (
    *("model", "prompt", "messages", "max_tokens", "max_completion_tokens", "stream", "stream_options", "n", "seed"),
    *("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "stop", "logprobs"),
)
SECRET = ("key", "api_key", "apikey", "token", "access_token", "secret", "password", "authorization", "bearer")
# What a key looks like that was written where the name of its variable belongs.
_KEY_ITSELF = re.compile(
    r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9_]{32,}|(sk|hf|gsk|xai|pplx|r8)_[A-Za-z0-9_]{16,}"
)
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("url", "model", "kind", "key_env", "revision"), (str,)),
    **dict.fromkeys(("limit", "concurrency", "retries"), (int,)),
    **dict.fromkeys(("logprobs", "batch", "seeds"), (bool,)),
    "timeout": (int, float),
    "extra": (dict,),
}
_WANTED = {str: "a text", int: "a whole number", bool: "true or false", float: "a number of seconds", dict: "a table"}
_RANGES: dict[str, tuple[float, float]] = {
    "limit": (1, UNKNOWN_LIMIT),
    "concurrency": (1, 256),
    "timeout": (0.05, 3600),
    "retries": (0, 20),
}


def check_value(place: str, key: str, value: Any) -> None:
    """Raise `OvertonError`, beginning with `place`, where a field cannot have this value."""
    types: Any = _TYPES[key]
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        raise OvertonError(f"{place} must be {_WANTED[types[-1]]}.")
    if key in _RANGES:
        low, high = _RANGES[key]
        if not low <= value <= high:
            raise OvertonError(f"{place} must lie between {low:g} and {high:g}.")
    if key == "kind" and value not in KINDS:
        raise OvertonError(f"{place} must be {' or '.join(KINDS)}.")
    if key == "key_env" and value and not _names_a_variable(value):
        raise OvertonError(f"{place} must be the name of an environment variable or secret, and not a key.")
    if key == "extra":
        _check_extra(place, value)


def is_secret(name: str) -> bool:
    """Whether a field of this name would hold a key itself."""
    return name.lower().replace("-", "_") in SECRET


def _names_a_variable(value: str) -> bool:
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value) is not None and (
        _KEY_ITSELF.fullmatch(value) is None or value in os.environ
    )


def _check_extra(place: str, extra: Mapping[str, Any]) -> None:
    """Raise `OvertonError` for what is no request, says again what every request says, or would record a key."""
    if taken := sorted(set(extra) & set(OWN)):
        raise OvertonError(f"{place} must not hold {taken[0]}, which every request says itself.")
    secret = next((name for name in _names(extra) if is_secret(name)), None)
    if secret is not None:
        raise OvertonError(f"{place} must not hold {secret}: it is recorded, and a key is named in key_env alone.")
    try:
        json.dumps(extra, allow_nan=False)
    except (TypeError, ValueError):
        raise OvertonError(f"{place} must hold what JSON can say: no dates, inf or nan.") from None


def _names(value: Any) -> Iterator[str]:
    """The names of all fields of a table that hold a text, those of inner tables too."""
    if isinstance(value, Mapping):
        yield from (name for name, one in value.items() if isinstance(one, str))
    for inner in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
        yield from _names(inner)


def checked_url(url: str, place: str) -> str:
    """The URL without a slash at its end. Messages never repeat it: it may hold a password."""
    url = url.strip()
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host or re.search(r"[\s\x00-\x1f\x7f\\]", url):
        raise OvertonError(f"{place} must be an address such as http://localhost:8000/v1.")
    if "@" in parts.netloc:
        raise OvertonError(f"{place} must not hold a user or a password: name the key's variable in key_env.")
    if parts.query or parts.fragment:
        raise OvertonError(f"{place} must end before any ? or #.")
    return url.rstrip("/")
