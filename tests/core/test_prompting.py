"""The exact texts that are sent."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.errors import OvertonError
from core.prompting import Example, example_sets, opened_code_block, query_answer

ONE = Example("Which way?", "Left.", "a direction")


def test_zero_shot_is_the_prompt_and_an_open_fence() -> None:
    assert query_answer(" Why? ") == "# Query:\n```\nWhy?\n```\n\n# Answer:\n```\n"
    assert query_answer("Why?", instruction="Be kind.") == query_answer("Why?")
    assert query_answer("Why?", examples=[Example("a", "b", on=False)], instruction="x") == query_answer("Why?")


def test_examples_stand_before_the_prompt_under_the_instruction() -> None:
    text = query_answer("Why?", examples=[ONE], instruction="Be kind.")
    assert text == (
        "# Instruction:\n\nBe kind.\n\n"
        "# Query:\n```\nWhich way?\n```\n\n# Answer:\n```\nLeft.\n```\n\n"
        "# Query:\n```\nWhy?\n```\n\n# Answer:\n```\n"
    )


def test_with_a_hint_the_examples_show_theirs() -> None:
    text = query_answer("Why?", examples=[ONE, Example("q", "a")], hint="because")
    assert text.count("# Hint:") == 2
    assert text.index("a direction") < text.index("Left.") < text.index("because") < text.rindex("# Answer:")
    assert "# Hint:" not in query_answer("Why?", examples=[ONE], hint="  ")


def test_the_order_of_examples_is_kept() -> None:
    text = query_answer("Why?", examples=[Example("q2", "a2"), Example("q1", "a1")])
    assert text.index("q2") < text.index("q1")


def test_an_answer_that_opened_a_code_block_is_noticed() -> None:
    assert opened_code_block("You can do it like this:\n")
    assert not opened_code_block("That is all.\n")


def test_the_shipped_examples_are_complete() -> None:
    plain = example_sets()["plain"]
    assert len(plain.examples) == 3
    assert plain.instruction
    for example in plain.examples:
        assert example.query and example.answer and example.hint
        assert "```" not in example.query + example.answer + example.hint


def test_a_broken_file_of_examples_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("[a]\n[[a.example]]\nquery = 'only a query'\n", encoding="utf-8")
    with pytest.raises(OvertonError, match="query and an answer"):
        example_sets(file)
