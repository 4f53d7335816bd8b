"""Endpoints: servers with an OpenAI-compatible interface, by name, from a file that the operator writes.

The file is `OVERTON_ENDPOINTS`, or `endpoints.toml` in the workspace; docs/servers.md shows one. A configured
endpoint is the model `server:NAME` everywhere. A visitor may type one of their own, `server:URL#MODEL`, only where
the operator has set `OVERTON_ALLOW_ENDPOINTS=1`, and it never gets a key.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import OvertonError, reason_of, user_path
from core.workspace import default_root

if TYPE_CHECKING:
    from core.generation.server import ServerGenerator

PREFIX = "server:"
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
_SECRETS: list[Mapping[str, Any]] = []


@dataclass(frozen=True)
class Endpoint:
    """One model on one server.

    `key_env` names the environment variable or secret that holds the key, and never the key. `limit` is the context
    and response together, in tokens (None = what the server tells). `timeout` is the longest silence in seconds.
    `batch` asks for many samples in one request, `seeds` sends seeds, `logprobs` asks for log-probabilities where
    they are offered, and `extra` is sent along with every request as it stands.
    """

    name: str
    url: str
    model: str
    kind: str = "completions"
    key_env: str = ""
    limit: int | None = None
    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 5
    logprobs: bool = True
    batch: bool = False
    seeds: bool = True
    revision: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def host(self) -> str:
        """Host and port of the URL, which may be shown."""
        return urlsplit(self.url).netloc

    @property
    def chat(self) -> bool:
        """Whether it takes chats, and not plain text."""
        return self.kind == "chat"


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


def from_table(name: str, table: Mapping[str, Any], *, where: str = "", typed: bool = False) -> Endpoint:
    """An endpoint from the table that describes it; `where` is the file that it stands in, for messages.

    `typed` says that a visitor wrote it: then it must be allowed and gets no key. Raises `OvertonError` that names
    the file, the endpoint and the field.
    """
    place = f"{where}: endpoint {name!r}" if where else f"Endpoint {name!r}"
    if typed:
        check_allowed()
        if table.get("key_env"):
            raise OvertonError(f"{place}: key_env is for the operator's own file; keys do not go to other servers.")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name):
        raise OvertonError(f"{place}: a name is made of at most 64 letters, digits, dots, dashes and underscores.")
    if not isinstance(table, Mapping):
        raise OvertonError(f"{place}: give it as a table [{name}] with url and model.")
    known = {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(Endpoint)}
    known.pop("name")
    for key, value in table.items():
        if key not in known:
            raise OvertonError(f"{place}: there is no field {key!r}; there are {', '.join(known)}.")
        _check_value(f"{place}: {key}", key, value)
    for key, needed in known.items():
        if needed and not str(table.get(key, "")).strip():
            raise OvertonError(f"{place}: {key} is missing.")
    return Endpoint(name, **{**table, "url": _checked_url(table["url"], f"{place}: url")})


def _check_value(place: str, key: str, value: Any) -> None:
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


def _checked_url(url: str, place: str) -> str:
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


def file(root: Path | None = None) -> Path:
    """The file that endpoints are configured in; it need not be there."""
    named = os.environ.get("OVERTON_ENDPOINTS")
    return user_path(named) if named else (root or default_root()) / "endpoints.toml"


def configured(root: Path | None = None) -> dict[str, Endpoint]:
    """The endpoints of the operator's file by name. Raises `OvertonError` that names the file and what is wrong."""
    path = file(root)
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        if os.environ.get("OVERTON_ENDPOINTS"):
            raise OvertonError(f"{path} is not there: OVERTON_ENDPOINTS must name the file of endpoints.") from None
        return {}
    except OSError as error:
        raise OvertonError(f"{path} cannot be read: {reason_of(error)}.") from None
    except (ValueError, RecursionError):  # the message of a parser could repeat what stands there
        raise OvertonError(f"{path} is not a TOML file: see docs/servers.md for an example.") from None
    return {name: from_table(name, table, where=str(path)) for name, table in tables.items()}


def is_server(model: str) -> bool:
    """Whether a model id names an endpoint."""
    return model.startswith(PREFIX)


def find(model: str, root: Path | None = None) -> Endpoint:
    """The endpoint of a model id `server:NAME`, or of one that a visitor typed, `server:URL#MODEL`.

    Raises `OvertonError` where there is none of that name or a typed one is not allowed.
    """
    name = model.removeprefix(PREFIX)
    if "://" in name:
        url, _, served = name.partition("#")
        made = from_table("typed", {"url": url, "model": served}, typed=True)
        return replace(made, name=made.host)
    known = configured(root)
    if name not in known:
        there = f"there are {', '.join(known)}" if known else "none is configured"
        raise OvertonError(f"There is no endpoint {name!r} in {file(root)}: {there}.")
    return known[name]


def typed_id(url: str, model: str) -> str:
    """The model id of an endpoint that a visitor typed. Raises `OvertonError` where that is off or it is no URL."""
    made = from_table("typed", {"url": url, "model": model.strip()}, typed=True)
    return f"{PREFIX}{made.url}#{made.model}"


def allowed() -> bool:
    """Whether the operator lets visitors type endpoints of their own."""
    return os.environ.get("OVERTON_ALLOW_ENDPOINTS") == "1"


def check_allowed() -> None:
    """Raise `OvertonError` where visitors may not type endpoints of their own."""
    if not allowed():
        raise OvertonError("Endpoints of one's own are switched off here: the operator can configure one by name.")


def use_secrets(secrets: Mapping[str, Any]) -> None:
    """Look keys up here as well, after the environment; the mapping is asked each time and nothing is copied."""
    _SECRETS[:] = [secrets]


def key_of(endpoint: Endpoint) -> str | None:
    """The key of an endpoint; None where it needs none. Raises `OvertonError` where it is not set.

    Ask for it just before it is sent, and keep it nowhere.
    """
    if not endpoint.key_env:
        return None
    found = os.environ.get(endpoint.key_env) or _secret(endpoint.key_env)
    if not found:
        raise OvertonError(f"{endpoint.name} needs a key: set {endpoint.key_env} in the environment or the secrets.")
    key = found.strip()
    if not re.fullmatch(r"[\x21-\x7e]+", key):
        raise OvertonError(f"The key in {endpoint.key_env} holds characters that a key cannot have: set it again.")
    return key


def _secret(name: str) -> str | None:
    for secrets in _SECRETS:
        try:
            value = secrets[name]
        except Exception:  # a missing secrets file raises its own type
            continue
        if isinstance(value, str):
            return value
    return None


def build(endpoint: Endpoint, *, probe: bool = True) -> ServerGenerator:
    """The generator of an endpoint; with `probe` it asks the server for its model and limit first.

    Raises `OvertonError` where the server cannot be reached or refuses the key.
    """
    from core.generation.server import ServerGenerator

    made = ServerGenerator(endpoint)
    if probe:
        made.probe()
    return made
