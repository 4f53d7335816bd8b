"""Endpoints: the operator's file, what visitors may type, and keys that go nowhere but to their own server."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core import lab
from core.dataset import Dataset
from core.errors import OvertonError
from core.generation import endpoints, pool
from core.generation.base import Sampling
from core.generation.endpoints import Endpoint, from_table
from core.generation.local import LocalGenerator
from core.workspace import Workspace
from tests.core.generation.hostile import Request, Server, polite, serving
from tests.core.generation.tiny import make as tiny

KEY = "sk-planted-8c1f0d"
GOOD = {"url": "http://localhost:8000/v1", "model": "owner/name"}


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(pool, "_BUILT", {})
    monkeypatch.setattr(endpoints, "_SECRETS", [])
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path))
    for name in ("OVERTON_ENDPOINTS", "OVERTON_ALLOW_ENDPOINTS", "E_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as state:
        yield state


def write(folder: Path, text: str) -> Path:
    path = folder / "endpoints.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_there_are_none() -> None:
    assert endpoints.configured() == {}
    with pytest.raises(OvertonError, match="none is configured"):
        endpoints.find("server:lab")


def test_the_file_of_the_workspace_and_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, '[lab]\nurl = "http://localhost:8000/v1/"\nmodel = "owner/name"\n')
    assert endpoints.find("server:lab") == Endpoint("lab", "http://localhost:8000/v1", "owner/name")
    other = tmp_path / "other.toml"
    other.write_text(
        '[big]\nurl = "https://api.example.org/v1"\nmodel = "m"\nkind = "chat"\nkey_env = "BIG_KEY"\nlimit = 4096\n'
        "concurrency = 2\ntimeout = 9.5\nlogprobs = false\nbatch = true\nseeds = false\nrevision = 'June'\n"
        "[big.extra]\nreasoning_effort = 'low'\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("OVERTON_ENDPOINTS", str(other))
    big = endpoints.configured()["big"]
    assert (big.kind, big.key_env, big.limit, big.concurrency, big.timeout) == ("chat", "BIG_KEY", 4096, 2, 9.5)
    assert (big.logprobs, big.batch, big.seeds, big.revision) == (False, True, False, "June")
    assert big.extra == {"reasoning_effort": "low"}
    with pytest.raises(OvertonError, match=r"no endpoint 'lab' in .*other\.toml: there are big"):
        endpoints.find("server:lab")
    monkeypatch.setenv("OVERTON_ENDPOINTS", str(tmp_path / "absent.toml"))
    with pytest.raises(OvertonError, match="is not there"):
        endpoints.configured()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[lab\nurl=1", "not a TOML file"),
        ("lab = 3", "'lab': give it as a table"),
        ('[lab]\nmodel = "m"', "'lab': url is missing"),
        ('[lab]\nurl = "http://h/v1"', "'lab': model is missing"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "  "', "model is missing"),
        ('["a b"]\nurl = "http://h/v1"\nmodel = "m"', "'a b': a name is made of"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\napi_key = "sk-1"', "no field 'api_key'; there are url, model"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nkind = "text"', "kind must be completions or chat"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nlimit = "big"', "limit must be a whole number"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nconcurrency = 0', "concurrency must lie between 1 and 256"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nconcurrency = true', "concurrency must be a whole number"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\ntimeout = nan', "timeout must lie between"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nbatch = 1', "batch must be true or false"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nkey_env = "sk-12-34"', "and not a key"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\nseed = 1', "must not hold seed"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\nrepetition_penalty = 2', "hold repetition_penalty"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\nlogprobs = 5', "must not hold logprobs"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\nday = 2020-01-01', "no dates"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\na = [{ b = nan }]', "no dates, inf or nan"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\n[lab.extra]\nx = [{ Api-Key = "hunter2" }]', "not hold Api-Key"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nkey_env = "hf_hunter2hunter2hunter2"', "and not a key"),
        ('[lab]\nurl = "http://h/v1"\nmodel = "m"\nkey_env = "Hhunter2hunter2hunter2hunter2hun"', "and not a key"),
        ('[lab]\nurl = "ftp://h/v1"\nmodel = "m"', "must be an address such as"),
        ('[lab]\nurl = "h:8000"\nmodel = "m"', "must be an address such as"),
        ('[lab]\nurl = "http://h:port/v1"\nmodel = "m"', "must be an address such as"),
        ('[lab]\nurl = "http://ann:hunter2@h/v1"\nmodel = "m"', "must not hold a user"),
        ('[lab]\nurl = "http://h/v1?key=hunter2"\nmodel = "m"', "must end before any"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_file_and_field(tmp_path: Path, text: str, told: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(OvertonError, match=told) as error:
        endpoints.configured()
    assert str(path) in str(error.value)
    assert "hunter2" not in str(error.value) and "sk-1" not in str(error.value)


def test_a_variable_may_look_like_a_key_where_it_is_one_and_a_schema_may_name_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("hf_token_of_the_whole_group", "k")
    schema = "[lab.extra.response_format.properties.password]\ntype = 'string'\n"
    write(tmp_path, f'[lab]\nurl = "http://h/v1"\nmodel = "m"\nkey_env = "hf_token_of_the_whole_group"\n{schema}')
    assert endpoints.configured()["lab"].key_env == "hf_token_of_the_whole_group"


def test_the_documentation_has_a_file_that_can_be_read_and_names_each_field(tmp_path: Path) -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "servers.md").read_text(encoding="utf-8")
    write(tmp_path, text.split("```toml\n")[1].split("```")[0])
    known = endpoints.configured()
    assert len(known) == 6
    assert {endpoint.kind for endpoint in known.values()} == set(endpoints.KINDS)
    fields = {line.split("`")[1] for line in text.splitlines() if line.startswith("| `")}
    assert fields == set(Endpoint.__dataclass_fields__) - {"name"}


def test_a_file_that_is_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "endpoints.toml").mkdir()
    with pytest.raises(OvertonError, match="cannot be read"):
        endpoints.configured()


def test_the_pool_builds_an_endpoint_once_and_never_unloads_it_for_room(server: Server, tmp_path: Path) -> None:
    write(tmp_path, f'[lab]\nurl = "{server.url}"\nmodel = "m"\n')
    made = pool.generator("server:lab")
    assert pool.generator("server:lab") is made
    assert not hasattr(made, "close")


def test_an_endpoint_that_cannot_be_reached_is_not_kept(tmp_path: Path) -> None:
    with serving() as state:
        url = state.url
    write(tmp_path, f'[lab]\nurl = "{url}"\nmodel = "m"\n')
    with pytest.raises(OvertonError, match="lab cannot be reached"):
        pool.generator("server:lab")
    assert not pool.is_built("server:lab")


# -- endpoints that a visitor types -------------------------------------------------------------------------------


def test_a_typed_endpoint_is_refused_unless_the_operator_allows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = "server:http://localhost:8000/v1#m"
    for value in (None, "", "0", "yes"):
        if value is not None:
            monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", value)
        for act in (lambda: endpoints.find(typed), lambda: pool.generator(typed)):
            with pytest.raises(OvertonError, match="switched off here"):
                act()
        with pytest.raises(OvertonError, match="switched off here"):
            from_table("mine", GOOD, typed=True)
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    assert endpoints.typed_id(" http://localhost:8000/v1/ ", "m") == typed
    assert endpoints.find(typed).host == "localhost:8000"


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://h/1", "http://", "localhost:8000", "", "http://h/#x"]
)
def test_a_typed_endpoint_must_be_an_address(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    with pytest.raises(OvertonError, match=r"address|url"):
        endpoints.typed_id(url, "m")


def test_a_password_in_a_typed_address_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    with pytest.raises(OvertonError) as error:
        endpoints.typed_id("http://ann:hunter2@h/v1", "m")
    assert "hunter2" not in str(error.value)


def test_no_configured_key_goes_to_a_typed_address(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    for name in ("E_KEY", "OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Secret: {KEY}\nAuthorization: Bearer {KEY}")
    write(tmp_path, f'[lab]\nurl = "{server.url}"\nmodel = "m"\nkey_env = "E_KEY"\n')
    list(pool.generator(endpoints.typed_id(server.url, "m")).generate("abc", [1], Sampling()))
    assert server.requests[0].headers["authorization"] == "Bearer EMPTY"
    assert KEY not in str(server.requests[0].headers)
    with pytest.raises(OvertonError, match="key_env"):
        from_table("mine", {**GOOD, "key_env": "E_KEY"}, typed=True)
    list(pool.generator("server:lab").generate("abc", [1], Sampling()))
    assert server.requests[1].headers["authorization"] == f"Bearer {KEY}"
    assert str(server.requests[1].headers).count(KEY) == 1


# -- keys ---------------------------------------------------------------------------------------------------------


def test_keys_come_from_the_environment_or_the_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    with_key = from_table("e", {**GOOD, "key_env": "E_KEY"})
    assert endpoints.key_of(from_table("e", GOOD)) is None
    with pytest.raises(OvertonError, match="set E_KEY"):
        endpoints.key_of(with_key)
    endpoints.use_secrets({"E_KEY": "from secrets"[5:]})
    assert endpoints.key_of(with_key) == "secrets"
    monkeypatch.setenv("E_KEY", f" {KEY}\n")
    assert endpoints.key_of(with_key) == KEY
    monkeypatch.setenv("E_KEY", "ключ")
    with pytest.raises(OvertonError, match="cannot have") as error:
        endpoints.key_of(with_key)
    assert "ключ" not in str(error.value)


def test_secrets_that_cannot_be_read_are_none() -> None:
    class Broken(dict[str, Any]):
        def __getitem__(self, name: str) -> Any:
            raise FileNotFoundError(name)

    endpoints.use_secrets(Broken())
    with pytest.raises(OvertonError, match="set E_KEY"):
        endpoints.key_of(from_table("e", {**GOOD, "key_env": "E_KEY"}))


def echo(status: int) -> Any:
    """A server that repeats the key in its refusal."""

    def act(request: Request) -> None:
        request.refuse(status, f"Incorrect key: {request.headers['authorization']}", echo=dict(request.headers))

    return act


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
def test_a_planted_key_is_found_nowhere(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "openai._base_client", "httpx2", "httpcore2", "asyncio"):
        caplog.set_level(logging.DEBUG, logger=name)
    monkeypatch.setenv("E_KEY", KEY)
    entry = {"url": server.url, "model": "m", "key_env": "E_KEY", "retries": 0, "concurrency": 1}
    made = endpoints.build(from_table("e", entry))
    pool.use_generator("server:e", made)
    server.does(polite, echo(status))
    workspace = Workspace(tmp_path, shipped=tmp_path / "none")
    spec = lab.Spec("p", "Why?", "Why?", "server:e", "zero-shot", (1, 2, 3), Sampling())
    run = lab.start_run(workspace, spec)
    assert run.job is not None and run.job.thread is not None
    run.job.thread.join(20)
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}", "it was sent where it belongs"
    assert len(server.requests) > 1
    dataset = Dataset.build(
        "d",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Why?"}]),
        systems=pd.DataFrame([{"system": "b", "role": "base"}]),
        responses=pd.DataFrame([{"prompt_id": "p", "system": "b", "sample": 0, "text": "x"}]),
    )
    lab.save_run(workspace, run, dataset, system="s", name="kept")
    told = [repr(made), str(vars(made)), repr(run), str(run.job.error), made.revision, caplog.text]
    told += [json.dumps(sample.as_dict()) for sample in run.finished()]
    assert "httpcore2" in caplog.text and "openai" in caplog.text, "the libraries did write to their logs"
    assert not [text for text in told if KEY in text]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 3
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_redirect_is_not_followed_and_the_key_stays(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("E_KEY", KEY)
    with serving() as other:
        target = other.url.replace("127.0.0.1", "localhost")
        for status in (301, 302, 307, 308):
            server.does(lambda r, s=status: r.answer(s, "", Location=f"{target}/completions"))
            made = endpoints.build(from_table("e", {"url": server.url, "model": "m", "key_env": "E_KEY"}))
            with pytest.raises(OvertonError, match="sends requests on to another address"):
                list(made.generate("abc", [1], Sampling()))
        assert not other.requests


def test_refused_access_is_told_when_it_is_built(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    monkeypatch.setattr(Request, "refuse", lambda self, *_: self.answer(401, "{}"))
    with pytest.raises(OvertonError, match=r"e refused access \(401\): it wants a key \(key_env\)\."):
        endpoints.build(from_table("e", {"url": server.url, "model": "m"}))


def test_a_local_model_is_still_built_from_its_folder(tmp_path: Path) -> None:
    assert isinstance(pool.generator(str(tiny(tmp_path / "model"))), LocalGenerator)


def test_the_file_is_looked_for_in_the_workspace_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OVERTON_ENDPOINTS", raising=False)
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path / "usual"))
    endpoints.look_in(tmp_path / "named")
    assert endpoints.file() == tmp_path / "named" / "endpoints.toml"
    endpoints.look_in(None)
    assert endpoints.file() == tmp_path / "usual" / "endpoints.toml"


def test_deployments_behind_one_host_are_told_apart() -> None:
    table = {"url": "https://h.example/openai/deployments/one", "model": "m"}
    one, two = (
        endpoints.from_table(name, {**table, "url": table["url"].replace("one", name)}) for name in ("one", "two")
    )
    assert (one.place, two.place) == tuple(f"h.example/openai/deployments/{name}" for name in ("one", "two"))
    assert endpoints.from_table("x", {**table, "url": "https://h.example:8/v1"}).place == "h.example:8"
