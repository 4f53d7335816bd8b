"""The lenses give the values that were recomputed from the authors' release."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from core import lenses
from tests.core.lenses.make import release_dataset

LEXICAL = [lens.id for lens in lenses.LENSES.values() if not lens.needs_vectors]


@pytest.fixture(scope="module")
def scores(release: Path) -> pd.DataFrame:
    return lenses.measure(release_dataset(release), LEXICAL)


@pytest.fixture(scope="module")
def summary(scores: pd.DataFrame) -> pd.DataFrame:
    return lenses.summarise(scores).set_index(["system", "lens"])


@pytest.fixture(scope="module")
def systems(reference: dict[str, Any]) -> dict[str, Any]:
    found = reference["models"]["LIMA-OE"]["outputs"]
    assert len(found) == 28
    return found


@pytest.mark.parametrize(
    ("lens", "key", "within"),
    [
        ("words", "mean_words_macro_over_prompts", 0.1),
        ("numbered_list", "share_number_list", 0.00005),
        ("bullet_list", "share_bullet_list", 0.00005),
        ("abstain", "share_abstain", 0.00005),
        *((f"distinct_{n}{cut}", f"distinct_{n}{cut}", 0.0005) for n in (1, 2, 3) for cut in ("", "_first50")),
    ],
)
def test_every_system_agrees(summary, systems, lens, key, within):
    found = {system: summary.loc[(system, lens), "value"] for system in systems}
    assert found == pytest.approx({system: facts[key] for system, facts in systems.items()}, abs=within)


@pytest.mark.parametrize(
    ("lens", "key", "within"),
    [("pairwise_jaccard_simple", "jaccard_simple", 0.0002), ("pairwise_jaccard", "jaccard_repo", 0.0005)],
)
def test_pairwise_similarity_and_its_interval_agree(summary, systems, lens, key, within):
    for system, facts in systems.items():
        row = summary.loc[(system, lens)]
        assert row["value"] == pytest.approx(facts[key]["mean"], abs=within), system
        assert [row["low"], row["high"]] == pytest.approx(facts[key]["ci95"], abs=2 * within), system
        assert row["n"] == facts[key]["n"], system


def test_single_prompts_agree(scores, reference):
    table = scores.set_index(["lens", "system"])
    for system, facts in reference["per_prompt"]["LIMA-OE"].items():
        for lens, key, within in (("pairwise_jaccard", "jaccard_repo", 0.01), ("words", "mean_words", 0.051)):
            expected = [float("nan") if x is None else x for x in facts[key]]
            assert table.loc[(lens, system), "value"].tolist() == pytest.approx(expected, abs=within, nan_ok=True)


def test_shares_are_over_responses_where_prompts_have_unequal_numbers(release, scores, summary):
    system = "llama-2-icl-chat-summary-cot"
    rows = scores[(scores["system"] == system) & (scores["lens"] == "numbered_list")]
    assert rows["n"].sum() == 226
    assert rows["value"].mean() == pytest.approx(0.4170, abs=0.0001)  # what a mean of prompts would be
    assert summary.loc[(system, "numbered_list"), "value"] == pytest.approx(90 / 226)
    values = lenses.response_values(release_dataset(release), "numbered_list")
    assert values[release_dataset(release).responses["system"] == system].mean() == pytest.approx(90 / 226)


def test_greedy_runs_and_contested_questions_abstain_as_often(release, reference):
    from core.readers import read

    dataset = read(release / "ConflictingQA")[0][0]
    values = lenses.response_values(dataset, "abstain").groupby(dataset.responses["system"]).mean()
    expected = {s: f["share_abstain"] for s, f in reference["models"]["ConflictingQA"]["outputs"].items()}
    assert {s: values[s] for s in expected} == pytest.approx(expected, abs=0.00005)
