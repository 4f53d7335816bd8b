"""How a local model reads a text: one BOS, its chat template, and roles that the template refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import OvertonError
from core.generation.local import LocalGenerator
from core.generation.reader import TokenReader, read_tokens
from core.models import Located, locate
from tests.core.generation.tiny import make

STRICT = (
    "{{ bos_token }}{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('no') }}{% endif %}<{{ m['role'] }}> {{ m['content'] }}{% endfor %}<assistant> "
)


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> TokenReader:
    folder = make(tmp_path_factory.mktemp("chat"), chat=True)
    reader = read_tokens(locate(str(folder)))
    reader.tokenizer.chat_template = STRICT
    return reader


def test_messages_become_the_text_of_the_template(chat: TokenReader) -> None:
    turns = [("user", "hi"), ("assistant", "yes?"), ("user", "why")]
    text = chat.chat_messages([{"role": role, "content": said} for role, said in turns])
    assert text == "<bos><user> hi<assistant> yes?<user> why<assistant> "
    assert chat.chat_context("hi") == "<bos><user> hi<assistant> "
    assert chat.encode(text).count(0) == 1


@pytest.mark.parametrize("roles", [["system", "user"], ["assistant"], ["user", "user"]])
def test_roles_that_the_template_refuses_are_told(chat: TokenReader, roles: list[str]) -> None:
    with pytest.raises(OvertonError, match=f"refuses messages with the roles {', '.join(roles)}: use user"):
        chat.chat_messages([{"role": role, "content": "x"} for role in roles])


def test_the_reader_counts_as_the_generator_does(chat: TokenReader, tmp_path: Path) -> None:
    folder = make(tmp_path)
    alone, whole = read_tokens(locate(str(folder))), LocalGenerator(folder, model="x")
    for text in ("", "abc", "<bos>abc", "a b\n?"):
        assert alone.count_tokens(text) == whole.count_tokens(text) == len(alone.bare(text)) + (text[:5] != "<bos>")
    assert (alone.limit, alone.chat) == (128, False)


def test_a_folder_without_a_tokenizer_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OvertonError, match="tokenizer of x cannot be loaded"):
        read_tokens(Located("x", str(tmp_path), "1"))


def test_stop_strings_that_are_special_tokens_are_known_by_their_ids(chat: TokenReader) -> None:
    assert chat.special(["<eos>", "e", "<bos>", "<nothing>"]) == {0, 1}
    assert chat.special([]) == set()
