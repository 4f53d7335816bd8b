"""The demonstration: its plan with a fake model, and what is shipped."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from core import demo, maps, scores, vectors
from core.dataset import summary
from core.generation.fake import FakeGenerator
from core.generation.journal import Journal
from core.workspace import SHIPPED, Workspace

FOLDER = SHIPPED / "demonstration"


@pytest.fixture
def generators() -> dict[str, FakeGenerator]:
    return {
        demo.BASE_MODEL: FakeGenerator(model=demo.BASE_MODEL),
        demo.ALIGNED_MODEL: FakeGenerator(model=demo.ALIGNED_MODEL, chat=True),
    }


def test_the_prompts_are_enough_and_of_both_kinds() -> None:
    table = demo.prompts()
    assert table["prompt_id"].is_unique and table["text"].is_unique
    assert (table["kind"] == "open").sum() >= 24
    assert (table["kind"] == "contested").sum() >= 16


def test_the_plan_is_carried_out_and_resumed(tmp_path: Path, generators: dict[str, FakeGenerator]) -> None:
    table = demo.prompts().head(2)
    journal = Journal(tmp_path / "j")
    demo.generate(journal, generators, prompt_table=table, samples=3)
    rows = list(journal)
    assert len(rows) == 2 * 3 * len(demo.SYSTEMS)
    assert len({row["seed"] for row in rows}) == len(rows), "every sample has a seed of its own"
    half = Journal(tmp_path / "half")
    for row in rows[:7]:
        half.append(row)
    demo.generate(half, generators, prompt_table=table, samples=3)
    key = ("system", "prompt_id", "sample", "text", "seed")
    assert sorted([row[k] for k in key] for row in half) == sorted([row[k] for k in key] for row in rows)


def test_the_contexts_are_what_the_strategies_say(tmp_path: Path, generators: dict[str, FakeGenerator]) -> None:
    table = demo.prompts().head(1)
    journal = Journal(tmp_path / "j")
    demo.generate(journal, generators, prompt_table=table, samples=2)
    dataset = demo.assemble(journal, generators, prompt_table=table)
    context = dataset.contexts.set_index("system")["text"]
    assert context["base"].count("# Query:") == 1
    assert context["base + examples"].count("# Query:") == 4 and "# Hint:" not in context["base + examples"]
    assert context["base + examples + hint"].count("# Hint:") == 4
    assert context["aligned"].startswith("<user>")
    assert dataset.roles() == {s.name: s.role for s in demo.SYSTEMS}


def test_a_written_hint_is_used_only_for_the_text_that_it_summarises() -> None:
    aligned = FakeGenerator(chat=True)
    written = {"p": {"hint": "by hand", "source": demo.source_key("the answer")}}
    assert demo.hint_for("p", "the answer", written, aligned) == "by hand"
    other = demo.hint_for("p", "another answer", written, aligned)
    assert other and other != "by hand"


@pytest.fixture(scope="module")
def shipped() -> Workspace:
    return Workspace("/nonexistent/workspace")


def test_the_shipped_dataset_is_whole(shipped: Workspace) -> None:
    dataset = shipped.load(demo.NAME)
    counted = summary(dataset)
    assert counted["prompts"] == len(demo.prompts())
    assert set(counted["systems"]) == {s.name for s in demo.SYSTEMS}
    for values in counted["systems"].values():
        assert values["responses"] == values["usable"] == 8 * counted["prompts"]
    assert len(dataset.responses) >= 1280
    assert dataset.prompts["text"].tolist() == demo.prompts()["text"].tolist()


def test_the_shipped_samples_are_recorded(shipped: Workspace) -> None:
    dataset = shipped.load(demo.NAME)
    rows = dataset.responses
    expected = [
        demo.seed_of(s, p, k) for s, p, k in zip(rows["system"], rows["prompt_id"], rows["sample"], strict=True)
    ]
    assert rows["seed"].tolist() == expected
    assert rows["token_count"].between(1, 160).all()
    assert set(rows["finish_reason"]) == {"stop", "length"}
    assert (rows.loc[rows["finish_reason"] == "length", "token_count"] == 160).all()
    of_base = rows[rows["system"] != "aligned"]
    assert not of_base["text"].str.contains("```", regex=False).any(), "the stop fence is no part of a response"
    assert len(dataset.contexts) == 4 * len(dataset.prompts)


def test_the_shipped_hints_stand_in_the_contexts(shipped: Workspace) -> None:
    dataset = shipped.load(demo.NAME)
    written = demo.written_hints()
    answers = dataset.responses[(dataset.responses["system"] == "aligned") & (dataset.responses["sample"] == 0)]
    texts = dict(zip(answers["prompt_id"], answers["text"], strict=True))
    context = dataset.contexts[dataset.contexts["system"] == "base + examples + hint"].set_index("prompt_id")["text"]
    for prompt_id, entry in written.items():
        assert entry["source"] == demo.source_key(texts[prompt_id])
        assert f"# Hint:\n```\n{entry['hint']}\n```" in context[prompt_id]


def test_a_hint_copies_no_run_of_six_words(shipped: Workspace) -> None:
    def runs(text: str) -> set[tuple[str, ...]]:
        words = text.lower().split()
        return {tuple(words[k : k + 6]) for k in range(len(words) - 5)}

    dataset = shipped.load(demo.NAME)
    answers = dataset.responses[(dataset.responses["system"] == "aligned") & (dataset.responses["sample"] == 0)]
    for prompt_id, text in zip(answers["prompt_id"], answers["text"], strict=True):
        assert not runs(demo.written_hints()[prompt_id]["hint"]) & runs(text), prompt_id


def test_vectors_maps_and_scores_are_shipped(shipped: Workspace) -> None:
    dataset = shipped.load(demo.NAME)
    known = vectors.stored(dataset, shipped)
    assert known is not None and known.shape == (len(dataset.responses), 384)
    drawn = maps.load_shipped(FOLDER)
    assert set(drawn) == {"", *dataset.prompts["prompt_id"]}
    assert maps.existing(dataset, shipped, known, None, "umap") is not None
    fresh = scores.compute(dataset, known)
    kept = scores.scores(dataset, shipped, known)
    both = kept.merge(fresh, on=["prompt_id", "system", "lens"], suffixes=("", "_now"))
    assert len(both) == len(fresh) == len(kept)
    assert np.allclose(both["value"], both["value_now"], atol=1e-5, equal_nan=True), "stored scores are up to date"


def test_the_demonstration_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 15_000_000
