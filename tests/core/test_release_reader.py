"""The authors' release: our own small copy of its layout with each irregularity, and the real one's counts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from core.dataset import parameters_of, summary
from core.errors import OvertonError
from core.readers import read
from core.readers.release import matches

FENCED = "# Query:\n```\nQ\n```\n\n# Answer:\n```\n"
HINTED = "# Query:\n```\nQ\n```\n\n# Summary:\n```\n"


def tgi(*texts: str, prompt: str = FENCED) -> dict:
    return {"prompt": prompt, "outputs": [{"generated_text": text} for text in texts]}


def openai(*texts: str, reason: str = "stop") -> dict:
    outputs = [{"index": k, "finish_reason": reason, "message": {"content": t}} for k, t in enumerate(texts)]
    return {"ok": True, "outputs": outputs}


def lines(file: Path, rows: list, end: str = "\n") -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(row) for row in rows) + end)


@pytest.fixture
def folder(tmp_path) -> Path:
    """A data-set folder with two prompts."""
    root = tmp_path / "Small-Set"
    asked = [{"messages": [{"role": "user", "content": text}]} for text in ("Why is tea hot?", " Is rain wet? ")]
    lines(root / "instances" / "data.jsonl", asked)
    outputs = root / "outputs"
    lines(outputs / "llama-2-base" / "samples.jsonl", [tgi("Hot.\n```", "Cut off in the"), tgi("```", "Wet\n```")])
    lines(outputs / "gpt-3.5-turbo" / "samples.jsonl", [openai("It is hot."), openai("Rain is", reason="length")])
    return root


def one(folder: Path):
    ((dataset, problems),) = read(folder)
    return dataset, problems, summary(dataset)["systems"]


def test_both_shapes_and_what_is_counted(folder):
    dataset, problems, counts = one(folder)
    assert dataset.name == "Small-Set"
    assert list(dataset.prompts["prompt_id"]) == ["0", "1"]
    assert list(dataset.prompts["text"]) == ["Why is tea hot?", " Is rain wet? "]
    assert dataset.roles() == {"gpt-3.5-turbo": "aligned", "llama-2-base": "base"}
    assert counts["llama-2-base"]["responses"] == 4
    assert counts["llama-2-base"]["cut"] == 1
    assert counts["llama-2-base"]["empty"] == 1
    assert counts["gpt-3.5-turbo"]["cut"] == 1
    assert len(problems) == 0
    assert len(dataset.contexts) == 0


def test_error_objects_are_counted_and_never_text(folder):
    failed = {"error": "inputs tokens + max_new_tokens must be <= 4096", "error_type": "validation"}
    rows = [{"prompt": FENCED, "outputs": [failed] * 5}, tgi(*["Fine.```"] * 5)]
    lines(folder / "outputs" / "llama-2-icl-chat-5nn-prompt_similar" / "samples.jsonl", rows)
    lines(folder / "outputs" / "limited" / "samples.jsonl", [{"ok": False, "error": "rate limit"}, openai("ok")])
    dataset, _, counts = one(folder)
    many = counts["llama-2-icl-chat-5nn-prompt_similar"]
    assert (many["responses"], many["usable"], many["errors"], many["prompts"]) == (10, 5, 5, 1)
    assert (counts["limited"]["errors"], counts["limited"]["usable"]) == (1, 1)
    assert not dataset.responses["text"].str.contains("max_new_tokens").any()


def test_own_hint_run(folder):
    answer = "S\n```\n\n# Answer:\n```\n{}"
    rows = [
        tgi(answer.format("Yes.\n```\n\n# Query:\n```\nMore?"), "no marker", prompt=HINTED),
        tgi(answer.format("Cut"), prompt=HINTED),
    ]
    lines(folder / "outputs" / "llama-2-icl-chat-summary-cot" / "samples.jsonl", rows)
    dataset, _, counts = one(folder)
    system = counts["llama-2-icl-chat-summary-cot"]
    assert (system["no_answer"], system["usable"], system["cut"], system["errors"]) == (1, 2, 1, 0)
    texts = dataset.responses.loc[dataset.responses["system"] == "llama-2-icl-chat-summary-cot", "text"]
    assert list(texts) == ["Yes.\n", "no marker", "Cut"]


def test_parameters_from_either_kind_of_arguments(folder):
    run = folder / "outputs" / "llama-2-icl-chat-knn-prompt_similar"
    lines(run / "samples.jsonl", [tgi("a```"), tgi("b```")])
    arguments = {
        "params": {
            "temperature": 0.5,
            "max_new_tokens": 664,
            "repetition_penalty": 1.1,
            "stop": ["```"],
            "top_p": None,
        },
        "server": {"model_id": "some/base"},
        "embedding_args": {"top_k": 4},
    }
    (run / "args.json").write_text(json.dumps(arguments))
    (folder / "outputs" / "gpt-3.5-turbo" / "args.json").write_text(
        json.dumps({"openai_params": {"model": "gpt-x", "temperature": 0, "max_tokens": 70, "n": 5}})
    )
    dataset, problems, _ = one(folder)
    assert parameters_of(dataset, run.name) == {
        "temperature": 0.5,
        "repetition_penalty": 1.1,
        "stop": ["```"],
        "max_new_tokens": 664,
        "k": 4,
        "teacher": "llama-2-chat",
    }
    assert parameters_of(dataset, "gpt-3.5-turbo") == {"temperature": 0, "max_new_tokens": 70}
    assert parameters_of(dataset, "llama-2-base") == {}
    models = dict(zip(dataset.systems["system"], dataset.systems["model"], strict=True))
    assert (models[run.name], models["gpt-3.5-turbo"]) == ("some/base", "gpt-x")
    assert len(problems) == 0


def test_greedy_runs_are_systems_of_their_own(folder):
    lines(folder / "outputs-temp0" / "llama-2-base" / "samples.jsonl", [tgi("a```"), tgi("b```")])
    lines(folder / "outputs" / "llama-2-base-temp0" / "samples.jsonl", [tgi("a```"), tgi("b```")])
    dataset, _, counts = one(folder)
    assert counts["llama-2-base-temp0-2"]["responses"] == 2
    assert dataset.roles()["llama-2-base-temp0-2"] == "base"
    assert parameters_of(dataset, "llama-2-base-temp0-2") == {"temperature": 0}


def test_what_is_broken_or_absent_is_listed_and_the_rest_is_read(folder):
    outputs = folder / "outputs"
    (folder / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (outputs / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
    (outputs / "llama-2-base" / ".DS_Store").write_bytes(b"\0")
    (outputs / "absent").mkdir()
    (outputs / "empty").mkdir()
    (outputs / "empty" / "samples.jsonl").touch()
    (outputs / "wide").mkdir()
    (outputs / "wide" / "samples.jsonl").write_bytes(json.dumps(tgi("x")).encode("utf-16"))
    lines(outputs / "half" / "samples.jsonl", [tgi("whole```"), tgi("h")], end="")
    half = outputs / "half" / "samples.jsonl"
    half.write_text(half.read_text()[:-15])
    (outputs / "llama-2-base" / "args.json").write_text("{")
    lines(folder / "eval-quality" / "outputs" / "judged-only" / "samples.jsonl", [])
    dataset, problems, counts = one(folder)
    found = {(Path(p.file).parent.name, Path(p.file).name, p.line) for p in problems}
    assert ("outputs", "absent", None) in found
    assert ("empty", "samples.jsonl", None) in found
    assert ("wide", "samples.jsonl", None) in found
    assert ("half", "samples.jsonl", 2) in found
    assert ("llama-2-base", "args.json", None) in found
    assert ("outputs", "judged-only", None) in found
    assert not any(".DS_Store" in p.file for p in problems)
    assert counts["half"]["responses"] == 1
    assert counts["llama-2-base"]["responses"] == 4
    assert len(dataset.prompts) == 2


def test_a_bad_line_does_not_shift_the_prompts(folder):
    file = folder / "outputs" / "llama-2-base" / "samples.jsonl"
    file.write_text("broken\n" + json.dumps(tgi("second```")) + "\n")
    dataset, problems, _ = one(folder)
    rows = dataset.responses[dataset.responses["system"] == "llama-2-base"]
    assert list(zip(rows["prompt_id"], rows["text"], strict=True)) == [("1", "second")]
    assert [p.line for p in problems] == [1]


def test_missing_prompts_are_taken_from_what_was_sent(folder):
    (folder / "instances" / "data.jsonl").unlink()
    dataset, problems, _ = one(folder)
    assert list(dataset.prompts["text"]) == ["Q", "Q"]  # not by the first run, which does not carry them
    assert len(problems) == 1
    (folder / "outputs" / "llama-2-base" / "samples.jsonl").unlink()
    assert list(one(folder)[0].prompts["text"]) == ["Prompt 0", "Prompt 1"]


def test_prompt_that_cannot_be_read_keeps_its_place(folder):
    file = folder / "instances" / "data.jsonl"
    file.write_text("broken\n" + file.read_text().split("\n")[1] + "\n")
    dataset, problems, _ = one(folder)
    assert list(dataset.prompts["text"]) == ["Q", " Is rain wet? "]
    assert [p.line for p in problems] == [1]


def test_rows_beyond_or_short_of_the_prompts_are_a_problem(folder):
    lines(folder / "outputs" / "long" / "samples.jsonl", [tgi("x```")] * 3)
    lines(folder / "outputs" / "short" / "samples.jsonl", [tgi("x```")])
    dataset, problems, _ = one(folder)
    assert sorted(p.what for p in problems) == [
        "1 rows more than there are prompts.",
        "the file ends after 1 of 2 prompts.",
    ]
    assert len(dataset.prompts) == 3


def test_clone_and_release_root_give_one_dataset_a_folder(tmp_path, folder):
    clone = tmp_path / "clone"
    (clone / "data").mkdir(parents=True)
    (clone / "lib").mkdir()
    folder.rename(clone / "data" / "A-Set")
    lines(clone / "data" / "B-Set" / "outputs" / "mistral" / "samples.jsonl", [tgi("x```")])
    (clone / "data" / "readme.txt").write_text("not data")
    assert [d.name for d, _ in read(clone)] == ["A-Set", "B-Set"]
    assert [d.name for d, _ in read(clone / "data", name="mine")] == ["mine-A-Set", "mine-B-Set"]
    assert [d.name for d, _ in read(clone / "data" / "A-Set", name="mine")] == ["mine"]
    (clone / "data" / "B-Set" / "outputs" / "mistral" / "samples.jsonl").write_text("broken\n")
    ((dataset, problems),) = read(clone)
    assert dataset.name == "A-Set"
    assert any("B-Set" in p.file for p in problems)


def test_nothing_readable_in_the_layout(folder):
    for file in folder.rglob("samples.jsonl"):
        file.write_bytes(b"\xff\xff\xff")
    with pytest.raises(OvertonError, match="could be read"):
        read(folder)


# -- the real release ------------------------------------------------------------------------------------------------


def expected(values: dict) -> dict:
    fences = values["n_stopped_by_fence"]
    return {
        "responses": values["n_samples"],
        "usable": values["n_usable"],
        "errors": values["n_error_objects"],
        "empty": values["n_empty_after_cleaning"],
        "no_answer": values["n_no_answer_marker"],
        "cut": values["n_usable"] - fences if fences else values["n_finish_length_openai"],
        "duplicates": values["n_duplicates_within_prompt"],
        "prompts": values["n_prompts_with_output"],
    }


@pytest.mark.parametrize("name", ["LIMA-OE", "ConflictingQA"])
def test_counts_and_lengths_of_the_real_release(release, reference, name):
    ((dataset, problems),) = read(release / name)
    counts = summary(dataset)
    usable = dataset.usable_responses
    words = usable["text"].str.split().str.len().groupby(usable["system"]).mean()
    runs = {
        run + outputs.removeprefix("outputs"): values
        for outputs, by_run in reference["models"][name].items()
        for run, values in by_run.items()
    }
    assert set(counts["systems"]) == set(runs)
    for run, values in runs.items():
        got = {key: counts["systems"][run][key] for key in expected(values)}
        assert got == expected(values), run
        assert words[run] == pytest.approx(values["mean_words_whitespace"], abs=0.001), run
    assert counts["prompts"] == reference["datasets"][name]["n_prompts"]
    assert all("judged" in p.what for p in problems)


def test_real_release_as_a_whole(release):
    assert [d.name for d, _ in read(release)] == ["ConflictingQA", "LIMA-OE"]
    dataset = read(release / "LIMA-OE")[0][0]
    assert parameters_of(dataset, "llama-2-icl-chat-knn-prompt_similar")["max_new_tokens"] == 664
    assert parameters_of(dataset, "llama-2-chat") == {}
    assert set(dataset.systems["role"]) == {"base", "aligned", "in-context"}


def test_module_is_not_fooled_by_other_folders(tmp_path):
    assert not matches(tmp_path)
    (tmp_path / "outputs" / "x").mkdir(parents=True)
    assert not matches(tmp_path)


def test_locked_outputs_are_a_problem_and_the_rest_is_read(folder, lock):
    lines(folder / "outputs-temp0" / "llama-2-base" / "samples.jsonl", [tgi("Hot.\n```"), tgi("Wet.\n```")])
    lock(folder / "outputs")
    dataset, problems, counts = one(folder)
    assert list(counts) == ["llama-2-base-temp0"]
    assert list(dataset.prompts["text"]) == ["Why is tea hot?", " Is rain wet? "]
    assert [(p.file, "permission denied" in p.what) for p in problems] == [(str(folder / "outputs"), True)]


def test_a_locked_run_is_a_problem_and_the_rest_is_read(folder, lock):
    lock(folder / "outputs" / "llama-2-base")
    _, problems, counts = one(folder)
    assert list(counts) == ["gpt-3.5-turbo"]
    assert [p.file for p in problems] == [str(folder / "outputs" / "llama-2-base")]


@pytest.mark.parametrize("inside", [".", "outputs"])
def test_a_locked_data_set_beside_others_is_a_problem(folder, lock, inside):
    lines(folder.parent / "Other" / "outputs" / "mistral" / "samples.jsonl", [tgi("x")])
    lines(folder.parent / "Other" / "instances" / "data.jsonl", [{"messages": [{"role": "user", "content": "Q"}]}])
    lock((folder.parent / "Other" / inside).resolve())
    ((dataset, problems),) = read(folder.parent)
    assert dataset.name == "Small-Set"
    assert any("Other" in p.file and "permission denied" in p.what for p in problems)


def test_parameters_that_are_a_pipe_are_not_waited_for(folder):
    os.mkfifo(folder / "outputs" / "llama-2-base" / "args.json")
    assert len(one(folder)[0].systems) == 2
