"""Specifications: what they hold, and one sentence for every mistake."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core import bulk
from core.prompting import STOP
from tests.core.bulk.conftest import SPEC

SYSTEM = '[[system]]\nname = "base"\nmodel = "fake"\nstrategy = "zero-shot"\n'
PROMPT = '[[prompt]]\nid = "tea"\ntext = "Tea?"\n'


def sentences(text: str, folder: Path | None = None) -> list[str]:
    with pytest.raises(bulk.SpecError) as caught:
        bulk.load_spec(text, folder=folder)
    return caught.value.sentences


def test_a_system_takes_role_and_stop_from_its_strategy_unless_it_says_otherwise() -> None:
    spec = bulk.load_spec(SPEC)
    base, examples, aligned = spec.systems
    assert [s.role for s in spec.systems] == ["base", "in-context", "aligned"]
    assert [s.samples for s in spec.systems] == [3, 3, 2]
    assert base.sampling.stop == STOP and aligned.sampling.stop == ()
    assert (base.sampling.temperature, examples.sampling.temperature) == (0.7, 0.5)
    assert examples.examples is not None and len(examples.examples.examples) == 3
    own = bulk.load_spec(f'name = "x"\n{PROMPT}{SYSTEM}role = "revised"\nsampling = {{ stop = "END" }}')
    assert (own.systems[0].role, own.systems[0].sampling.stop) == ("revised", ("END",))


def test_shared_sampling_holds_for_all_systems() -> None:
    spec = bulk.load_spec(
        f'name = "x"\n[sampling]\ntemperature = 1.5\nstop = ["END"]\n{PROMPT}{SYSTEM}sampling = {{ min_p = 0.1 }}'
    )
    sampling = spec.systems[0].sampling
    assert (sampling.temperature, sampling.stop, sampling.min_p) == (1.5, ("END",), 0.1)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("name = \n", ["is not TOML", "line 1"]),
        (f"{PROMPT}{SYSTEM}", ["lacks the field 'name'"]),
        (f'name = "../x"\n{PROMPT}{SYSTEM}', ["name", "cannot be used"]),
        (
            f'name = "x"\nsample = 3\n{PROMPT}{SYSTEM}',
            ["it has the unknown field 'sample'", "did you mean 'samples'?"],
        ),
        (f'name = "x"\nzzz = 3\n{PROMPT}{SYSTEM}', ["'zzz'", "there are: name, title"]),
        (f'name = "x"\nsamples = 0\n{PROMPT}{SYSTEM}', ["samples = 0", "between 1 and"]),
        (f'name = "x"\nsamples = true\n{PROMPT}{SYSTEM}', ["samples that is not a whole number"]),
        (f'name = "x"\nsamples = "3"\n{PROMPT}{SYSTEM}', ["samples that is not a whole number"]),
        (f'name = "x"\n{PROMPT}', ["no [[system]]"]),
        (f'name = "x"\n{SYSTEM}', ["exactly one way", "none given"]),
        (f'name = "x"\ndataset = "y"\n{PROMPT}{SYSTEM}', ["exactly one way", "dataset and prompt given"]),
        (f'name = "x"\n{PROMPT}{PROMPT}{SYSTEM}', ["the prompt 'tea' occurs more than once"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}{SYSTEM}', ["the system 'base' occurs more than once"]),
        (f'name = "x"\n[[prompt]]\nid = "tea"\n{SYSTEM}', ["[[prompt]] 'tea' has no text"]),
        (f'name = "x"\n{PROMPT}[system]\nname = "base"', ["two brackets, as [[system]]"]),
        (
            f'name = "x"\n{PROMPT}[[system]]\nname = "base"\nstrategy = "chat"',
            ["[[system]] 'base' lacks the field 'model'"],
        ),
        (
            f'name = "x"\n{PROMPT}{SYSTEM}'.replace("zero-shot", "zero"),
            ["unknown strategy 'zero'", "zero-shot, fixed"],
        ),
        (f'name = "x"\n{PROMPT}{SYSTEM}role = "boss"', ["unknown role 'boss'", "base, aligned"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}temperature = 1', ["unknown field 'temperature'"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}sampling = {{ temprature = 1 }}', ["sampling", "did you mean 'temperature'?"]),
        (
            f'name = "x"\n{PROMPT}{SYSTEM}sampling = {{ temperature = 9 }}',
            ["[[system]] 'base' sampling", "between 0.01 and 5"],
        ),
        (f'name = "x"\n{PROMPT}{SYSTEM}sampling = {{ temperature = nan }}', ["between 0.01 and 5"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}sampling = {{ stop = [1] }}', ["stop that is not a list of texts"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}sampling = 5', ["sampling that is not a table"]),
        (f'name = "x"\nsampling = 5\n{PROMPT}{SYSTEM}', ["sampling that is not a table"]),
        (
            f'name = "x"\n{PROMPT}{SYSTEM}examples = "plain"',
            ["examples, which the strategy 'zero-shot' does not use"],
        ),
        (f'name = "x"\n{PROMPT}{SYSTEM}hint = {{}}', ["has a hint that holds none"]),
        (f'name = "x"\nlimit = "3"\n{PROMPT}{SYSTEM}', ["limit that is not a whole number"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}hint = {{ bike = "b" }}', ["'base' has no hint for the prompt 'tea'"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}hint = "hints.toml"', ["only be named in a specification that is a file"]),
        (f'name = "x"\nprompts = "/etc/passwd"\n{SYSTEM}', ["only be named in a specification that is a file"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}server = {{ url = "ftp://x", model = "m" }}', ["must be an address"]),
        (f'name = "x"\n{PROMPT}{SYSTEM}server = {{ url = "http://x/v1", modle = "m" }}', ["no field 'modle'"]),
    ],
)
def test_every_mistake_is_a_sentence_with_its_place(
    text: str, parts: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    found = sentences(text)
    assert len(found) == 1, found
    assert found[0].startswith("the specification")
    for part in parts:
        assert part in found[0]


def test_several_mistakes_are_told_at_once() -> None:
    found = sentences(f'name = "x"\nsample = 3\n{PROMPT}{SYSTEM}rolle = "base"\nsampling = {{ top_p = 2 }}')
    assert len(found) == 3
    assert "'samples'" in found[0] and "'role'" in found[1] and "top_p" in found[2]


@pytest.mark.parametrize(
    "where", ["api_key = {}\n", "server = {{ url = 'http://x/v1', model = 'm', api_key = {} }}\n", "Token = {}\n"]
)
def test_a_key_in_the_file_is_refused_and_not_repeated(where: str) -> None:
    found = sentences(f'name = "x"\n{PROMPT}{SYSTEM}' + where.format("'sk-very-secret'"))
    assert len(found) == 1, found
    assert "environment variable" in found[0] and "sk-very-secret" not in found[0]


def test_the_sentence_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("name = 3", encoding="utf-8")
    with pytest.raises(bulk.SpecError) as caught:
        bulk.load_spec(file)
    assert all(s.startswith(str(file)) for s in caught.value.sentences)
    with pytest.raises(bulk.SpecError, match="cannot be read: no such file"):
        bulk.load_spec(tmp_path / "absent.toml")
    file.write_bytes(b"name = '\xff'")
    with pytest.raises(bulk.SpecError, match="not UTF-8"):
        bulk.load_spec(file)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("p.toml", '[[prompt]]\nid = "a"\ntext = "One?"\n[[prompt]]\nid = "b"\ntext = "Two?"\nkind = "open"\n'),
        ("p.csv", "prompt_id,text,kind\na,One?,\nb,Two?,open\n"),
        ("p.jsonl", '{"id": "a", "prompt": "One?"}\n{"id": "b", "question": "Two?", "kind": "open"}\n'),
    ],
)
def test_prompts_from_files(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    prompts = bulk.load_spec(f'name = "x"\nprompts = "{name}"\n{SYSTEM}', folder=tmp_path).prompts
    assert [(p.prompt_id, p.text, p.kind) for p in prompts] == [("a", "One?", ""), ("b", "Two?", "open")]


def test_prompts_one_a_line_keep_their_ids_when_lines_move(tmp_path: Path) -> None:
    text = f'name = "x"\nprompts = "p.txt"\n{SYSTEM}'
    (tmp_path / "p.txt").write_text("One?\n\n  Two?\r\n", encoding="utf-8")
    first = {p.text: p.prompt_id for p in bulk.load_spec(text, folder=tmp_path).prompts}
    (tmp_path / "p.txt").write_text("Two?\nZero?\nOne?", encoding="utf-8")
    second = {p.text: p.prompt_id for p in bulk.load_spec(text, folder=tmp_path).prompts}
    assert set(first) == {"One?", "Two?"} and first.items() <= second.items()
    limited = bulk.load_spec(f"limit = 2\n{text}", folder=tmp_path)
    assert [p.text for p in limited.prompts] == ["Two?", "Zero?"]


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("p.csv", "prompt_id,text\na,One?\nb\n", "line 3"),
        ("p.jsonl", '{"id": "a", "text": "One?"}\n{"id": "b"}\n', "row 2 has no text"),
        ("p.toml", "x = 1\n", "no [[prompt]] tables"),
        ("p.txt", "\n", "no prompts in p.txt"),
        ("absent.txt", None, "cannot be read"),
    ],
)
def test_prompt_files_that_cannot_be_read_whole_are_refused(
    tmp_path: Path, name: str, content: str | None, part: str
) -> None:
    if content is not None:
        (tmp_path / name).write_text(content, encoding="utf-8")
    found = sentences(f'name = "x"\nprompts = "{name}"\n{SYSTEM}', tmp_path)
    assert len(found) == 1 and part in found[0]


def test_hints_and_examples_from_files(tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text('tea = "boil water"\n[bike]\nhint = "oil"\n', encoding="utf-8")
    (tmp_path / "e.toml").write_text(
        '[mine]\ninstruction = "Do."\n[[mine.example]]\nquery = "q"\nanswer = "a"\n[other]\n', encoding="utf-8"
    )
    text = SPEC.replace('"fixed examples"', '"fixed examples"\nexamples = "e.toml#mine"\nhint = "h.toml"')
    system = bulk.load_spec(text, folder=tmp_path).systems[1]
    assert system.hints == {"tea": "boil water", "bike": "oil"}
    assert system.examples is not None and system.examples.instruction == "Do."
    assert "2 sets" in sentences(text.replace("#mine", ""), tmp_path)[0]
    assert "no set 'nine'" in sentences(text.replace("#mine", "#nine"), tmp_path)[0]
    assert "no set of examples 'fancy'" in sentences(text.replace("e.toml#mine", "fancy"), tmp_path)[0]


def test_an_inline_server_never_holds_a_key_and_has_an_id_of_its_own(tmp_path: Path) -> None:
    text = f'name = "x"\n{PROMPT}{SYSTEM}[system.server]\nurl = "http://localhost:1/v1"\nkey_env = "MY_KEY"\n'
    system = bulk.load_spec(text, folder=tmp_path).systems[0]
    assert system.server == {"model": "fake", "url": "http://localhost:1/v1", "key_env": "MY_KEY"}
    assert system.model.startswith("server:inline-")
    assert system.identity == "fake at http://localhost:1/v1"


def test_a_visitor_may_type_a_server_only_where_that_is_switched_on(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f'name = "x"\n{PROMPT}{SYSTEM}server = {{ url = "http://localhost:1/v1" }}\n'
    monkeypatch.delenv("OVERTON_ALLOW_ENDPOINTS", raising=False)
    assert "switched off" in sentences(text)[0]
    monkeypatch.setenv("OVERTON_ALLOW_ENDPOINTS", "1")
    assert bulk.load_spec(text).systems[0].server is not None
    assert "operator's own" in sentences(text.replace(" }", ', key_env = "KEY" }'))[0]


@pytest.mark.parametrize("number", ["9" * 400, "9" * 5000, "0x" + "f" * 5000, "[[{ a = 9223372036854775808 }]]"])
def test_numbers_beyond_those_of_toml_are_one_sentence(number: str) -> None:
    for field in ("seed", "samples", "sampling = { temperature = 1 }\ntitle"):
        (found,) = sentences(f'name = "x"\n{field} = {number}\n{PROMPT}{SYSTEM}')
        assert "is not TOML" in found and len(found) < 200
    assert bulk.load_spec(f'name = "x"\nseed = 9223372036854775807\n{PROMPT}{SYSTEM}').seed == 2**63 - 1


def test_a_name_that_no_file_can_have_is_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    for field in (f'prompts = "{"a" * 5000}"\n{SYSTEM}', f'{PROMPT}{SYSTEM}hint = "{"a" * 5000}.csv"'):
        path.write_text(f'name = "x"\n{field}', encoding="utf-8")
        with pytest.raises(bulk.SpecError, match="file name too long") as error:
            bulk.load_spec(path)
        assert len(error.value.sentences) == 1


@pytest.mark.parametrize("content", ["prompt_id,hint\n", ""])
def test_a_file_without_hints_does_not_make_a_system_without_hints(tmp_path: Path, content: str) -> None:
    name = "hints.csv" if content else "hints.toml"
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "spec.toml").write_text(f'name = "x"\n{PROMPT}{SYSTEM}hint = "{name}"', encoding="utf-8")
    with pytest.raises(bulk.SpecError, match="has a hint that holds none"):
        bulk.load_spec(tmp_path / "spec.toml")


def test_a_prompt_that_is_repeated_among_very_many_is_found_at_once(tmp_path: Path) -> None:
    lines = [f"prompt {k}" for k in range(30_000)]
    (tmp_path / "prompts.txt").write_text("\n".join([*lines, lines[7]]), encoding="utf-8")
    (tmp_path / "spec.toml").write_text(f'name = "x"\nprompts = "prompts.txt"\n{SYSTEM}', encoding="utf-8")
    begun = time.monotonic()
    with pytest.raises(bulk.SpecError, match="occurs more than once"):
        bulk.load_spec(tmp_path / "spec.toml")
    assert time.monotonic() - begun < 4  # comparing each with each takes a minute
