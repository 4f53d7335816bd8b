"""The benchmark of the lenses compares two ways that give equal results, and notices when they do not."""

from __future__ import annotations

import json

import pytest

from bench import lenses as bench
from core import lenses


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(bench, "MANY", 40)
    monkeypatch.setattr(bench, "chosen", lambda what: bench.made_up(prompts=2, systems=2, samples=3, length=60))


def test_it_prints_times_and_ratios(quick, capsys):
    bench.main(["--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["responses"] == 12
    assert found["ratio"] == pytest.approx(found["straightforward_seconds"] / found["seconds"])
    assert found["many"]["pairs"] == 40 * 39 // 2
    bench.main([])
    assert "times faster" in capsys.readouterr().out


def test_both_ways_are_equal_on_a_dataset_with_odd_responses(small):
    ids = list(bench.straightforward(str.split, str.split))
    assert set(ids) == {lens.id for lens in lenses.LENSES.values() if not lens.needs_vectors}
    bench.assert_equal(lenses.measure(small, ids), bench.run_straightforward(small, keep=True))


def test_a_wrong_value_stops_it(small):
    scores = lenses.measure(small, ["words"])
    scores.loc[0, "value"] += 1
    with pytest.raises(AssertionError, match="words"):
        bench.assert_equal(scores, bench.run_straightforward(small, keep=True))


def test_a_path_that_is_nothing_is_one_sentence(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTON_WORKSPACE", str(tmp_path))
    assert bench.main(["no such dataset"]) == 1
    assert capsys.readouterr().err.startswith("error: There is no dataset named")
