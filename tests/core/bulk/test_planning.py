"""Plans: contexts, seeds that depend on names alone, what is missing, and contexts that do not fit."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core import bulk
from core.bulk import reading
from core.bulk.estimate import costs, summary
from core.bulk.reading import reader_or_guess
from core.dataset import Dataset
from core.errors import OvertonError
from core.generation.fake import FakeGenerator
from core.generation.local import LocalGenerator
from core.generation.reader import read_tokens
from core.models import locate
from core.prompting import query_answer
from core.workspace import Workspace
from tests.core.bulk.conftest import SPEC
from tests.core.generation.tiny import make


def seeds(plan: bulk.Plan) -> dict[tuple[str, str, int], int]:
    return {(b.system, b.prompt_id, k): s for b in plan.batches() for k, s in zip(b.samples, b.seeds, strict=True)}


def test_contexts_are_exact(workspace: Workspace) -> None:
    plan = bulk.plan(bulk.load_spec(SPEC), workspace)
    contexts = {cell.place: cell.context for cell in plan.cells}
    assert contexts["base", "tea"] == query_answer("How do I make tea?")
    assert contexts["aligned", "bike"] == "<user>My bike squeaks. Why?</user><assistant>"
    assert contexts["examples", "tea"].count("# Answer:") == 4
    assert (plan.total, plan.lacking, plan.reused) == (16, 16, 0)


def test_seeds_do_not_depend_on_order_or_on_what_else_is_there(workspace: Workspace) -> None:
    spec = bulk.load_spec(SPEC)
    whole = seeds(bulk.plan(spec, workspace))
    turned = replace(spec, systems=spec.systems[::-1], prompts=spec.prompts[::-1])
    assert seeds(bulk.plan(turned, workspace)) == whole
    part = seeds(bulk.plan(replace(spec, systems=spec.systems[1:2], prompts=spec.prompts[1:]), workspace))
    assert part.items() <= whole.items() and len(part) == 3
    assert len(set(whole.values())) == 16
    other = seeds(bulk.plan(replace(spec, seed=8), workspace))
    assert not set(other.values()) & set(whole.values())


def test_batches_are_plain_and_go_model_by_model(workspace: Workspace) -> None:
    spec = bulk.load_spec(SPEC)
    mixed = replace(spec, systems=(spec.systems[0], spec.systems[2], spec.systems[1]))
    batches = bulk.plan(mixed, workspace).batches()
    assert pickle.loads(pickle.dumps(batches)) == batches
    assert [b.model for b in batches] == ["fake"] * 4 + ["fake chat"] * 2
    assert [b.system for b in batches] == ["base", "base", "examples", "examples", "aligned", "aligned"]


def test_many_samples_of_one_context_take_several_turns(workspace: Workspace) -> None:
    spec = bulk.load_spec(SPEC.replace("samples = 3", "samples = 150", 1))
    batches = [b for b in bulk.plan(spec, workspace).batches() if (b.system, b.prompt_id) == ("base", "tea")]
    assert [len(b.samples) for b in batches] == [64, 64, 22]
    assert [k for b in batches for k in b.samples] == list(range(150))


def test_prompts_of_a_dataset(workspace: Workspace, small: Dataset) -> None:
    workspace.save(small)
    text = SPEC[: SPEC.index("[[prompt]]")] + 'dataset = "small"\n' + SPEC[SPEC.index("[[system]]") :]
    plan = bulk.plan(bulk.load_spec(text), workspace)
    assert [p.text for p in plan.prompts] == ["How do I make tea?", "My bike squeaks. Why?"]
    assert [p.prompt_id for p in bulk.plan(bulk.load_spec("limit = 1" + text), workspace).prompts] == ["tea"]
    with pytest.raises(OvertonError, match="no dataset named 'large'"):
        bulk.plan(bulk.load_spec(text.replace('"small"', '"large"')), workspace)
    hinted = text.replace('"zero-shot"', '"zero-shot"\nhint = { tea = "boil" }')
    with pytest.raises(OvertonError, match="'base' has no hint for the prompt 'bike'"):
        bulk.plan(bulk.load_spec(hinted), workspace)


def test_what_does_not_fit_is_refused_with_both_counts(workspace: Workspace, fakes: dict[str, Any]) -> None:
    fakes["fake"] = FakeGenerator(limit=200)
    tokens = FakeGenerator().count_tokens(
        bulk.plan(bulk.load_spec(SPEC), workspace, skip_too_long=True).cells[1].context
    )
    with pytest.raises(OvertonError) as caught:
        bulk.plan(bulk.load_spec(SPEC), workspace)
    for part in ("'tea'", "'examples'", f"{tokens} tokens", "128 more", "at most 200", "1 more"):
        assert part in str(caught.value)
    plan = bulk.plan(bulk.load_spec(SPEC), workspace, skip_too_long=True)
    assert [cell.place for cell in plan.too_long] == [("examples", "tea"), ("examples", "bike")]
    assert (plan.total, plan.lacking) == (16, 10)


def test_the_tokenizer_alone_reads_as_the_generator_does(tmp_path: Path) -> None:
    for chat in (False, True):
        folder = make(tmp_path / f"tiny-{chat}", chat=chat)
        alone, whole = read_tokens(locate(str(folder))), LocalGenerator(folder, model=folder.name)
        assert (alone.model, alone.limit, alone.chat) == (whole.model, whole.limit, whole.chat)
        for context in ("what is a lens?", "<bos>abc", ""):
            assert alone.count_tokens(context) == whole.count_tokens(context)
        if chat:
            assert alone.chat_context("why?") == whole.chat_context("why?")
            assert alone.count_tokens(alone.chat_context("why?")) == whole.count_tokens(whole.chat_context("why?"))
        else:
            with pytest.raises(OvertonError, match="no chat template"):
                alone.chat_context("why?")


def test_what_is_not_fetched_is_guessed_for_a_dry_run_and_refused_for_a_run(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OVERTON_MODELS", str(tmp_path / "none"))
    spec = bulk.load_spec(SPEC.replace('"fake chat"', '"SmolLM2-135M-Instruct"'))
    with pytest.raises(OvertonError, match="not on this machine"):
        bulk.plan(spec, workspace)
    found = costs(bulk.plan(spec, workspace, reader=reader_or_guess))
    assert [cost.exact for cost in found] == [True, True, False]
    assert "not at hand" in found[2].first_context and "How do I make tea?" in found[2].first_context


def test_costs_count_only_what_is_missing(workspace: Workspace, go: Any) -> None:
    spec = bulk.load_spec(SPEC)
    before = summary(bulk.plan(spec, workspace))
    assert (before["samples"], before["missing"], before["new_tokens"]) == (16, 16, 16 * 128)
    assert before["seconds"] is None
    go()
    more = bulk.load_spec(SPEC.replace("samples = 3", "samples = 4", 1))
    after = summary(bulk.plan(more, workspace))
    assert (after["done"], after["missing"], after["new_tokens"]) == (16, 4, 4 * 128)
    assert after["seconds"] is not None and after["systems"][2]["context_tokens"] == 0


def test_a_server_that_does_not_answer_is_asked_once_for_all_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def refuse(model: str, server: object = None) -> None:
        asked.append(model)
        raise OvertonError("cannot be reached")

    monkeypatch.setattr(reading, "_ABSENT", {})
    monkeypatch.setattr(reading, "reader_of", refuse)
    for _ in range(5):
        assert not reader_or_guess("server:gone").counts_exactly
        assert not reader_or_guess("m").counts_exactly
    assert asked.count("server:gone") == 1 and asked.count("m") == 5, "a model may have been fetched meanwhile"


def test_more_samples_than_memory_holds_are_refused_before_anything_is_read(workspace: Workspace) -> None:
    prompts = "".join(f'[[prompt]]\nid = "{k}"\ntext = "?"\n' for k in range(21))
    system = '[[system]]\nname = "s"\nmodel = "fake"\nstrategy = "zero-shot"\n'
    spec = bulk.load_spec(f'name = "huge"\nsamples = 100000\n{prompts}{system}')
    with pytest.raises(OvertonError, match="asks for 2,100,000 samples"):
        bulk.plan(spec, workspace)
