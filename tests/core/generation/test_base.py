"""Sampling parameters, stop strings, the fake generator, the journal."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from core.errors import OvertonError
from core.generation.base import Sampling, check_fits, holds_back, trim_at_stop
from core.generation.fake import FakeGenerator
from core.generation.journal import Journal
from core.prompting import STOP, Example, query_answer


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"temperature": -1}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"max_new_tokens": 0}, "new tokens"),
    ],
)
def test_parameters_out_of_range_are_named(wrong: dict[str, float], named: str) -> None:
    with pytest.raises(OvertonError, match=named):
        Sampling(**wrong).check()


def test_trim_at_the_first_stop_string() -> None:
    assert trim_at_stop("one\n```\ntwo ###", ("###", "```")) == ("one\n", True)
    assert trim_at_stop("one", ("```",)) == ("one", False)
    assert trim_at_stop("", ("```",)) == ("", False)


def test_holds_back_only_what_may_become_a_stop_string() -> None:
    assert holds_back("text ``", ("```",)) == 2
    assert holds_back("text `x", ("```",)) == 0
    assert holds_back("abc", ("cde", "bcd")) == 2


def test_the_fake_generator_follows_examples_and_hint() -> None:
    fake = FakeGenerator()
    bare = query_answer("How?")
    full = query_answer("How?", examples=[Example("a", "b", "c")], hint="use a kite")
    sampling = Sampling(stop=STOP)
    scattered = {s.text for s in fake.generate(bare, range(8), sampling)}
    hinted = {s.text for s in fake.generate(full, range(8), sampling)}
    assert len(scattered) > 4
    assert all("use a kite" in text and text.startswith("1.") for text in hinted)
    assert [s.text for s in fake.generate(bare, range(8), sampling)] == [
        s.text for s in fake.generate(bare, range(8), sampling)
    ]
    cold = Sampling(temperature=0, stop=STOP)
    assert len({s.text for s in fake.generate(bare, range(8), cold)}) == 1


def test_the_fake_generator_stops_and_refuses() -> None:
    cancel = Event()
    cancel.set()
    assert {s.finish_reason for s in FakeGenerator().generate("x", [1, 2], Sampling(), cancel=cancel)} == {
        "cancelled"
    }
    with pytest.raises(OvertonError, match="at most 10"):
        check_fits(FakeGenerator(limit=10), "one two three four", Sampling(max_new_tokens=8))


def test_a_journal_survives_a_half_written_line(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "run.jsonl")
    journal.append({"sample": 1, "text": "a\nb \u2028 é"})
    with journal.path.open("ab") as file:
        file.write(b'{"sample": 2, "te')
    journal.append({"sample": 3, "text": "c"})
    assert [row["sample"] for row in journal] == [1, 3]
    assert next(iter(journal))["text"] == "a\nb \u2028 é"


def test_a_journal_that_is_not_there_is_empty(tmp_path: Path) -> None:
    assert list(Journal(tmp_path / "none.jsonl")) == []
