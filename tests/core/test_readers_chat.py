"""Answers in the shapes of servers, outside the release's layout."""

from __future__ import annotations

import json
from pathlib import Path

from core.dataset import summary
from core.readers import chat, read


def write(file: Path, rows: list) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(row) for row in rows) + "\n")
    return file


def answer(text: str, **columns) -> dict:
    return {"choices": [{"index": 0, "message": {"content": text}, "finish_reason": "stop"}], **columns}


def asked(text: str) -> list[dict]:
    return [{"role": "system", "content": "Be kind."}, {"role": "user", "content": text}]


def one(path: Path):
    ((dataset, problems),) = read(path)
    return dataset, list(problems)


def test_openai_rows_with_their_questions(tmp_path):
    rows = [answer(f"A{k}", messages=asked(f"Q{k % 2}"), model="gpt-x") for k in range(4)]
    dataset, problems = one(write(tmp_path / "answers.jsonl", rows))
    assert problems == []
    assert list(dataset.prompts["text"]) == ["Q0", "Q1"]
    assert list(dataset.responses["sample"]) == [0, 0, 1, 1]
    assert list(dataset.systems["system"]) == ["gpt-x"]
    assert list(dataset.systems["role"]) == ["aligned"]


def test_json_array_of_answers(tmp_path):
    (tmp_path / "answers.json").write_text(json.dumps([answer("A", messages=asked("Q"))] * 2, indent=1))
    dataset, _ = one(tmp_path / "answers.json")
    assert list(dataset.responses["text"]) == ["A", "A"]
    assert summary(dataset)["systems"]["answers"]["duplicates"] == 1


def test_server_rows_with_fences_and_errors(tmp_path):
    sent = "# Query:\n```\nWhy?\n```\n\n# Answer:\n```\n"
    rows = [
        {"prompt": sent, "outputs": [{"generated_text": "So.\n```"}, {"generated_text": "Cut"}, {"error": "full"}]},
        {"prompt": sent, "generated_text": "Single.```"},
    ]
    dataset, problems = one(write(tmp_path / "llama-base" / "samples.jsonl", rows))
    counts = summary(dataset)["systems"]["llama-base"]
    assert (counts["responses"], counts["errors"], counts["cut"]) == (4, 1, 1)
    assert list(dataset.responses["text"]) == ["So.\n", "Cut", "", "Single."]
    assert list(dataset.prompts["text"]) == ["Why?"]
    assert problems == []


def test_rows_of_two_shapes_in_one_file(tmp_path):
    rows = [
        answer("A", prompt="Q"),
        {"prompt": "Q", "outputs": [{"generated_text": "B"}]},
        {"error": "down", "prompt": "Q"},
    ]
    dataset, _ = one(write(tmp_path / "mixed.jsonl", rows))
    assert list(dataset.responses["text"]) == ["A", "B", ""]
    assert dataset.usable.tolist() == [True, True, False]


def test_batch_files(tmp_path):
    good = {"custom_id": "q-1", "response": {"status_code": 200, "body": answer("A", model="m-chat")}, "error": None}
    bad = {"custom_id": "q-2", "response": {"status_code": 500, "body": {}}, "error": {"message": "overloaded"}}
    dataset, _ = one(write(tmp_path / "batch.jsonl", [good, bad]))
    assert list(dataset.prompts["prompt_id"]) == ["q-1", "q-2"]
    assert list(dataset.responses["error"].fillna("")) == ["", "overloaded"]


def test_one_file_a_system(tmp_path):
    for name in ("mistral-base", "mistral-instruct"):
        write(tmp_path / "runs" / f"{name}.jsonl", [answer("A", messages=asked("Q"), model="served")] * 2)
    write(tmp_path / "runs" / "deeper" / "samples.jsonl", [answer("A", messages=asked("Q"))])
    (tmp_path / "runs" / ".DS_Store").write_bytes(b"\0")
    (tmp_path / "runs" / "notes.txt").write_text("none")
    (tmp_path / "runs" / "empty.jsonl").touch()
    dataset, problems = one(tmp_path / "runs")
    assert dataset.roles() == {"mistral-base": "base", "mistral-instruct": "aligned", "deeper": "other"}
    assert len(dataset.prompts) == 1
    assert [Path(p.file).name for p in problems] == ["empty.jsonl"]


def test_without_questions_lines_tell_prompts_apart(tmp_path):
    dataset, _ = one(write(tmp_path / "f.jsonl", [answer("A"), answer("B")]))
    assert list(dataset.prompts["prompt_id"]) == ["0", "1"]


def test_rows_without_answers_are_problems(tmp_path):
    rows = [answer("A", prompt="Q"), {"note": "x"}, {"outputs": [{"odd": 1}]}]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert len(dataset.responses) == 1
    assert [p.line for p in problems] == [2, 3]


def test_flat_rows_are_not_taken_for_answers(tmp_path):
    assert not chat.matches(write(tmp_path / "f.jsonl", [{"prompt": "q", "response": "text"}]))
    assert not chat.matches(write(tmp_path / "g.jsonl", [{"prompt": "q", "outputs": ["a", "b"]}]))


def test_hostile_text_is_kept_to_the_letter(tmp_path):
    text = "<script>alert(1)</script>\n$x$ \x00 \u202e *b*"
    rows = [answer(text, messages=asked(text), model="<b>x</b>"), answer("half \ud800", messages=asked("q"))]
    dataset, problems = one(write(tmp_path / "f.jsonl", rows))
    assert dataset.responses["text"][0] == text
    assert dataset.prompts["text"][0] == text
    assert dataset.systems["system"][0] == "<b>x</b>"
    assert dataset.responses["text"][1] == "half \ufffd"
    assert [p.line for p in problems] == [2]


def test_an_error_without_a_model_belongs_to_the_only_system_of_its_file(tmp_path):
    failed = {"ok": False, "error": "rate limit", "outputs": [], "prompt": "Q"}
    good = [answer("A", model="gpt-x", prompt="Q"), answer("B", model="gpt-x", prompt="Q")]
    for rows in ([failed, *good], [*good, failed]):
        dataset, problems = one(write(tmp_path / "f.jsonl", rows))
        assert len(problems) == 0
        found = summary(dataset)["systems"]
        assert list(found) == ["gpt-x"]
        assert (found["gpt-x"]["responses"], found["gpt-x"]["errors"]) == (3, 1)


def test_an_error_without_a_model_is_given_to_none_of_two_systems(tmp_path):
    rows = [answer("A", model="one"), {"ok": False, "error": "rate limit"}, answer("B", model="two")]
    dataset, _ = one(write(tmp_path / "f.jsonl", rows))
    assert set(dataset.systems["system"]) == {"one", "f", "two"}


def test_an_error_in_a_file_whose_answers_name_no_model_stays_with_them(tmp_path):
    rows = [{"ok": False, "error": "rate limit"}, answer("A"), answer("B", model="one")]
    dataset, _ = one(write(tmp_path / "f.jsonl", rows))
    assert set(dataset.systems["system"]) == {"f", "one"}
    assert len(dataset.responses[dataset.responses["system"] == "f"]) == 2
