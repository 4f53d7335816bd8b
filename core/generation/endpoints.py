"""Endpoints: servers with an OpenAI-compatible interface, by name, from a file that the operator writes.

The file is `OVERTON_ENDPOINTS`, or `endpoints.toml` in the workspace; docs/servers.md shows one. A configured
endpoint is the model `server:NAME` everywhere. A visitor may type one of their own, `server:URL#MODEL`, only where
the operator has set `OVERTON_ALLOW_ENDPOINTS=1`, and it never gets a key.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from core.errors import OvertonError, reason_of, user_path
from core.generation.endpoint_fields import KINDS, UNKNOWN_LIMIT, check_value, checked_url, is_secret
from core.workspace import default_root

if TYPE_CHECKING:
    from core.generation.server import ServerGenerator

__all__ = ["KINDS", "UNKNOWN_LIMIT", "Endpoint", "is_secret"]

PREFIX = "server:"
_SECRETS: list[Mapping[str, Any]] = []
_ROOT: list[Path] = []  # the workspace that was named on the command line


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
    def place(self) -> str:
        """The host, and the path where it is not the usual one: one host may serve several deployments."""
        path = urlsplit(self.url).path.rstrip("/")
        return self.host if path in ("", "/v1") else f"{self.host}{path}"

    @property
    def chat(self) -> bool:
        """Whether it takes chats, and not plain text."""
        return self.kind == "chat"


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
        check_value(f"{place}: {key}", key, value)
    for key, needed in known.items():
        if needed and not str(table.get(key, "")).strip():
            raise OvertonError(f"{place}: {key} is missing.")
    return Endpoint(name, **{**table, "url": checked_url(table["url"], f"{place}: url")})


def look_in(root: Path | None) -> None:
    """Look for `endpoints.toml` in this workspace; None means the default one again."""
    _ROOT[:] = [] if root is None else [root]


def file(root: Path | None = None) -> Path:
    """The file that endpoints are configured in; it need not be there."""
    named = os.environ.get("OVERTON_ENDPOINTS")
    return user_path(named) if named else (root or (_ROOT[0] if _ROOT else default_root())) / "endpoints.toml"


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
