"""Sentences, reasons and numbers of the Compare page."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from components import compare, compare_all, compare_pair, compare_reading
from components import compare_lenses as cl
from components.state import Loaded
from components.systems import default
from components.theme import styles
from core import lenses, scores
from core.dataset import Dataset
from core.statistics import Estimate

NAN = float("nan")


def loaded_of(dataset: Dataset) -> Loaded:
    texts = dict(zip(dataset.responses["response_id"], dataset.responses["text"], strict=True))
    return Loaded(dataset, None, styles(dataset.roles()), texts, scores.compute(dataset, None))


@pytest.fixture
def loaded(small) -> Loaded:
    return loaded_of(small)


def one(loaded: Loaded, lens: str) -> cl.Measure:
    return next(m for m in cl.measures(loaded) if m.id == lens)


def rows(loaded: Loaded, lens: str, systems=("plain", "tuned")) -> dict[str, Estimate]:
    return cl.rows_of(lenses.summarise(loaded.scores), lens, systems)


def alone(small: Dataset, samples: int) -> Dataset:
    """The base system with at most so many samples a prompt, beside nothing else."""
    rows = small.responses[(small.responses["system"] == "plain") & (small.responses["sample"] < samples)]
    return Dataset.build(
        "alone", prompts=small.prompts, systems=small.systems[small.systems["system"] == "plain"], responses=rows
    )


def test_every_lens_and_the_similarity_to_the_aligned_system_are_measures(loaded):
    ids = [m.id for m in cl.measures(loaded)]
    assert ids[: len(lenses.LENSES)] == list(lenses.LENSES)
    assert ids[len(lenses.LENSES) :] == ["lexical_to_teacher", "lexical_to_teacher_other_samples"]


def test_without_an_aligned_system_there_is_no_similarity_to_one(small):
    assert not any(m.teacher for m in cl.measures(loaded_of(small.with_roles({"tuned": "other"}))))


def test_a_lens_stands_beside_its_twin_of_equal_length(loaded):
    pairs = [pair for group in cl.groups(cl.measures(loaded)).values() for pair in group]
    assert sum(map(len, pairs)) == len(cl.measures(loaded))
    for pair in pairs:
        assert [m.id for m in pair[1:]] == ([pair[0].twin] if pair[0].twin else [])


def test_the_sentence_names_both_ends_and_what_they_mean(loaded):
    sentence = cl.seen(one(loaded, "pairwise_jaccard_simple"), rows(loaded, "pairwise_jaccard_simple"), loaded.scores)
    assert sentence.startswith("Most alike: **tuned**")
    assert "least: **plain**" in sentence


def test_a_difference_within_its_interval_is_called_chance(loaded):
    measure = one(loaded, "words")
    table = pd.DataFrame(
        [("p", "plain", 9.0), ("p", "tuned", 1.0), ("q", "plain", 1.0), ("q", "tuned", 8.0)],
        columns=["prompt_id", "system", "value"],
    ).assign(lens="words", n=1)
    found = cl.rows_of(lenses.summarise(table), "words", ["plain", "tuned"])
    assert cl.seen(measure, found, table).endswith("The difference could be chance.")


def test_equal_values_are_not_ranked(loaded):
    same = {"plain": Estimate(0.0, 0.0, 0.0, 2), "tuned": Estimate(0.0, 0.0, 0.0, 2)}
    assert cl.seen(one(loaded, "abstain"), same, loaded.scores) == "All are at 0\u00a0%."


def test_a_single_response_a_prompt_has_a_length_and_no_similarity(small):
    loaded = loaded_of(alone(small, 1))
    for lens in ("pairwise_jaccard", "pairwise_jaccard_simple_first50"):
        found = rows(loaded, lens, ["plain"])
        assert cl.seen(one(loaded, lens), found, loaded.scores) == "Undefined for all chosen systems."
        assert compare_all.cell(found["plain"], ".2f") == cl.DASH
        assert cl.counted(loaded, one(loaded, lens), found) == [
            f"{cl.DASH} plain: it compares responses, and there is only one to each prompt"
        ]
    assert rows(loaded, "words", ["plain"])["plain"].value == 3.5


def test_lenses_over_vectors_say_that_vectors_are_missing(loaded):
    measure = one(loaded, "vendi")
    assert "vectors" in cl.why_undefined(loaded, "plain", measure)


def test_a_system_without_usable_responses_says_so(small):
    broken = replace(small, responses=small.responses.assign(error="down"))
    assert cl.why_undefined(loaded_of(broken), "plain", one(loaded_of(broken), "words")) == "no usable response"


def test_n_is_told_by_system_where_it_differs(loaded):
    found = {"plain": Estimate(1, 0, 2, 2), "tuned": Estimate(1, NAN, NAN, 1)}
    assert cl.counted(loaded, one(loaded, "words"), found) == [
        "n = 2 prompts · bars: 95 % interval",
        "fewer: tuned 1",
    ]


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [
        (NAN, ".2f", "–"),
        (-0.004, ".2f", "0.00"),
        (-0.5, ".2f", "−0.50"),
        (0.25, ".0%", "25\u00a0%"),
        (12.4, ".0f", "12"),
    ],
)
def test_numbers_as_they_are_shown(value, form, shown):
    assert cl.number(value, form) == shown


def test_a_cell_holds_value_interval_and_n():
    assert compare_all.cell(Estimate(0.5, 0.25, 0.75, 9), ".2f") == "0.50 (0.25 to 0.75) · 9"
    assert compare_all.cell(Estimate(0.5, NAN, NAN, 1), ".2f") == "0.50 · 1"


def test_the_csv_has_all_systems_and_leaves_undefined_values_empty(loaded):
    lines = compare_all.csv_of(lenses.summarise(loaded.scores), cl.measures(loaded)).decode().splitlines()
    assert lines[0] == "lens,name,system,value,low,high,prompts"
    assert len(lines) == 1 + 2 * len(cl.measures(loaded))
    assert "vendi,Vendi score,plain,,,,0" in lines


def test_the_difference_sentence_has_size_interval_and_count(loaded):
    measure = one(loaded, "words")
    told = compare_pair.difference_sentence(measure, Estimate(-7.2, -9, -5, 3), "tuned", "plain", [-9, -5, 1])
    assert told == (
        "**tuned** lies 7 words below **plain** on average (difference −9 to −5), and below it on 2 of 3 prompts."
    )
    told = compare_pair.difference_sentence(measure, Estimate(3, -1, 7, 3), "tuned", "plain", [9, 1, -1])
    assert told.endswith("This could be chance.")
    told = compare_pair.difference_sentence(measure, Estimate(NAN, NAN, NAN, 0), "tuned", "plain", [])
    assert told.startswith("Undefined")


def test_what_was_left_out_is_counted_by_system(loaded):
    assert compare.left_out(loaded, ["plain", "tuned"]) == [
        "plain: 6 of 7 responses are usable (1 error), 1 of 6 were cut by the token limit, 1 empty"
    ]


def test_uneven_token_limits_are_told(small):
    systems = small.systems.assign(parameters=['{"max_new_tokens": 664}', '{"max_new_tokens": 1024}'])
    loaded = loaded_of(replace(small, systems=systems))
    assert any("plain 664, tuned 1024" in note for note in compare.left_out(loaded, ["plain", "tuned"]))
    assert not any("limits" in note for note in compare.left_out(loaded, ["plain"]))


def test_default_systems_are_base_aligned_and_in_context_with_and_without_a_hint(small):
    systems = pd.DataFrame(
        [
            ("a", "in-context", "fixed examples", None),
            ("b", "in-context", "hint", '{"teacher": "other one"}'),
            ("c", "in-context", "hint", '{"teacher": "tuned"}'),
            ("plain", "base", None, None),
            ("tuned", "aligned", None, None),
            ("plain 2", "base", None, None),
        ],
        columns=["system", "role", "strategy", "parameters"],
    )
    dataset = Dataset.build("many", prompts=small.prompts, systems=systems, responses=small.responses)
    assert default(dataset) == ["a", "c", "plain", "tuned"]


def test_default_systems_without_roles_are_the_first_ones(small):
    assert default(small.with_roles({"plain": "other", "tuned": "other"})) == ["plain", "tuned"]


def test_equal_texts_are_folded_the_most_frequent_first(small):
    rows = small.usable_responses
    tuned = rows[(rows["system"] == "tuned") & (rows["prompt_id"] == "tea")]
    found = compare_reading.folded(tuned)
    assert [one.samples for one in found] == [(0, 2), (1,)]
