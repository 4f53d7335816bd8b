"""The dataset table: validation, counts, keys, and values that files cannot hold."""

from __future__ import annotations

import pandas as pd
import pytest

from core.dataset import Dataset, check_name, parameters_of, summary, text_keys
from core.errors import OvertonError


def make(responses: list[dict], **frames) -> Dataset:
    prompts = frames.get("prompts", [{"prompt_id": "p", "text": "Why?"}])
    systems = frames.get("systems", [{"system": "s", "role": "base"}])
    return Dataset.build(
        "made",
        prompts=pd.DataFrame(prompts),
        systems=pd.DataFrame(systems),
        responses=pd.DataFrame(responses, dtype="object"),
    )


def row(**columns) -> dict:
    return {"prompt_id": "p", "system": "s", "sample": 0, "text": "x", **columns}


def test_summary_counts_each_kind_once(small):
    counts = summary(small)
    assert counts["prompts"] == 2
    assert counts["systems"]["plain"] == {
        "role": "base",
        "responses": 7,
        "usable": 6,
        "errors": 1,
        "empty": 1,
        "no_answer": 0,
        "cut": 1,
        "duplicates": 0,
        "prompts": 2,
    }
    assert counts["systems"]["tuned"]["duplicates"] == 1


def test_no_answer_is_neither_usable_nor_an_error():
    made = make([row(finish_reason="no_answer", text="raw"), row(sample=1, finish_reason="length")])
    counts = summary(made)["systems"]["s"]
    assert (counts["usable"], counts["errors"], counts["no_answer"], counts["cut"]) == (1, 0, 1, 1)
    assert made.responses["text"][0] == "raw"


def test_duplicates_count_within_a_prompt_and_system_only():
    prompts = [{"prompt_id": "p", "text": "1"}, {"prompt_id": "q", "text": "2"}]
    systems = [{"system": "s", "role": "base"}, {"system": "t", "role": "base"}]
    rows = [row(), row(sample=1), row(prompt_id="q"), row(system="t"), row(sample=2, text="x ")]
    counts = summary(make(rows, prompts=prompts, systems=systems))["systems"]
    assert counts["s"]["duplicates"] == 1
    assert counts["t"]["duplicates"] == 0


def test_system_without_responses_is_counted_as_zero():
    systems = [{"system": "s", "role": "base"}, {"system": "idle", "role": "other"}]
    assert summary(make([row()], systems=systems))["systems"]["idle"]["responses"] == 0


@pytest.mark.parametrize("seed", [2**53 + 1, 2**63 - 1, -(2**63)])
def test_large_seeds_stay_exact_beside_missing_ones(seed):
    made = make([row(seed=seed), row(sample=1, seed=None)])
    assert made.responses["seed"][0] == seed
    assert pd.isna(made.responses["seed"][1])


def test_number_that_does_not_fit_is_missing_not_a_traceback():
    made = make([row(seed=2**64, token_count="many"), row(sample=1, token_count="12")])
    assert pd.isna(made.responses["seed"][0])
    assert pd.isna(made.responses["token_count"][0])
    assert made.responses["token_count"][1] == 12


@pytest.mark.parametrize("sample", [None, -1, "first"])
def test_sample_index_must_be_a_number(sample):
    with pytest.raises(OvertonError, match="sample index"):
        make([row(sample=sample)])


def test_repeated_sample_is_refused():
    with pytest.raises(OvertonError, match="occurs more than once"):
        make([row(response_id="a"), row(response_id="b")])


def test_ids_made_from_names_with_slashes_stay_distinct():
    prompts = [{"prompt_id": "1/2", "text": "a"}, {"prompt_id": "2", "text": "b"}]
    systems = [{"system": "x", "role": "base"}, {"system": "x/1", "role": "base"}]
    rows = [row(prompt_id="1/2", system="x"), row(prompt_id="2", system="x/1")]
    assert make(rows, prompts=prompts, systems=systems).responses["response_id"].is_unique


def test_lone_surrogate_is_replaced_and_other_text_kept():
    made = make([row(text="a\ud800b"), row(sample=1, text="\x00<script>é\u2028")])
    assert list(made.responses["text"]) == ["a\ufffdb", "\x00<script>é\u2028"]


def test_empty_error_means_no_error():
    assert make([row(error="")]).usable.all()


def test_unknown_role_prompt_and_column_are_refused():
    with pytest.raises(OvertonError, match="Unknown role"):
        make([row()], systems=[{"system": "s", "role": "model"}])
    with pytest.raises(OvertonError, match="unknown prompt_id"):
        make([row(prompt_id="elsewhere")])
    with pytest.raises(OvertonError, match="lacks the column system"):
        Dataset.build(
            "x",
            prompts=pd.DataFrame([{"prompt_id": "p", "text": ""}]),
            systems=pd.DataFrame([{"role": "base"}]),
            responses=pd.DataFrame([row()]),
        )


def test_content_key_sees_content_and_nothing_else(small):
    def build(responses: pd.DataFrame) -> Dataset:
        return Dataset.build("other", prompts=small.prompts, systems=small.systems, responses=responses)

    assert build(small.responses[::-1]).content_key() == small.content_key()
    assert small.with_roles({"plain": "other"}).content_key() == small.content_key()
    changed = small.responses.copy()
    changed.loc[0, "text"] = "Boil water and wait!"
    assert build(changed).content_key() != small.content_key()
    assert build(small.responses[1:]).content_key() != small.content_key()


def test_with_roles_refuses_unknown_systems_and_roles(small):
    assert small.with_roles({"plain": "revised"}).roles() == {"plain": "revised", "tuned": "aligned"}
    with pytest.raises(OvertonError, match="no system"):
        small.with_roles({"nobody": "base"})
    with pytest.raises(OvertonError, match="Unknown role"):
        small.with_roles({"plain": "boss"})


def test_with_system_derives_a_dataset_and_leaves_the_old_one(small):
    rows = pd.DataFrame([{"prompt_id": "tea", "system": "hinted", "sample": 0, "text": "Steep it."}])
    sent = pd.DataFrame([{"prompt_id": "tea", "system": "hinted", "text": "# Query: tea"}])
    derived = small.with_system("more", {"system": "hinted", "role": "in-context"}, rows, sent)
    assert len(derived.responses) == len(small.responses) + 1
    assert derived.meta["derived_from"] == "small"
    assert list(derived.contexts["text"]) == ["# Query: tea"]
    assert "hinted" not in small.roles()


def test_with_prompt(small):
    assert small.with_prompt("new", "And coffee?").prompt_text("new") == "And coffee?"
    with pytest.raises(OvertonError, match="no prompt"):
        small.prompt_text("new")


@pytest.mark.parametrize("text", ["{broken", "[1]", "[" * 100_000, None])
def test_strange_parameters_are_no_parameters(text):
    made = make([row()], systems=[{"system": "s", "role": "base", "parameters": text}])
    assert parameters_of(made, "s") == {}


def test_text_keys_fold_equal_texts_only():
    keys = text_keys(pd.Series(["a", "a", "a "]))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.parametrize("name", ["LIMA-OE", "a b (2)", "Übung", "x" * 100])
def test_good_names(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "../x", "a/b", "a\\b", ".hidden", "x.", " x", "x ", "a..b", "x" * 101, "漢" * 90, "con", "NUL.txt", "a\nb"],
)
def test_bad_names(name):
    with pytest.raises(OvertonError, match="cannot be used"):
        check_name(name)
