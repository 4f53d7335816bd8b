"""What is trimmed from a response, and which shapes of answers are understood."""

from __future__ import annotations

import pytest

from core.readers.roles import Strategy, guess_role, guess_strategy
from core.readers.shapes import Sample, samples_of, trimmed, user_turn

OPEN = "# Query:\n```\nWhy?\n```\n\n# Answer:\n```\n"
CHAT = "[INST] Why? [/INST]"


def trim(text: str, prompt: str | None = OPEN, **keywords) -> tuple[str, str | None]:
    sample = trimmed(Sample(text), prompt, **keywords)
    return sample.text, sample.finish_reason


def test_exactly_one_fence_is_dropped_at_the_end():
    assert trim("Because.\n```") == ("Because.\n", "stop")
    assert trim("Because.``````\n") == ("Because.```", "stop")
    assert trim("```") == ("", "stop")


def test_without_a_fence_the_limit_cut_it():
    assert trim("Because of the") == ("Because of the", "length")


def test_aligned_responses_keep_their_code_blocks():
    assert trim(" Try:\n```\nls\n```", CHAT) == (" Try:\n```\nls\n```", None)


def test_without_the_prompt_an_odd_fence_at_the_end_is_the_stop():
    assert trim("Because.\n```", None) == ("Because.\n", "stop")
    assert trim("Try:\n```\nls\n```", None) == ("Try:\n```\nls\n```", None)
    assert trim("Because", None) == ("Because", None)


def test_odd_fence_in_an_example_does_not_hide_the_open_one():
    assert trim("Because.```", "# Answer:\n```\nsee ```\n```\n\n" + OPEN) == ("Because.", "stop")


def test_own_hint_keeps_only_the_answer():
    raw = "A summary.\n```\n\n# Answer:\n```\nThe answer.\n```\n\n# Query:\n```\nInvented?\n```"
    prompt = "# Query:\n```\nWhy?\n```\n\n# Summary:\n```\n"
    assert trim(raw, prompt) == ("The answer.\n", "stop")
    assert trim("S\n```\n\n# Answer:\n```\nThe ans", prompt) == ("The ans", "length")
    assert trim("Only a summary", prompt) == ("Only a summary", "no_answer")
    assert trim(raw, None, own_hint=True)[0] == "The answer.\n"


def test_an_error_is_never_trimmed_into_text():
    sample = Sample(error="too long```")
    assert trimmed(sample, OPEN) == sample


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"outputs": [{"generated_text": "a"}, {"error": "full", "error_type": "validation"}]}, ["a", None]),
        ({"ok": True, "outputs": [{"finish_reason": "stop", "message": {"content": "b"}}]}, ["b"]),
        ({"choices": [{"message": {"content": [{"type": "text", "text": "c"}]}}]}, ["c"]),
        ({"choices": [{"text": "d"}]}, ["d"]),
        (
            {
                "custom_id": "1",
                "response": {"status_code": 200, "body": {"choices": [{"message": {"content": "e"}}]}},
            },
            ["e"],
        ),
        ({"generated_text": "f", "details": {"finish_reason": "eos_token"}}, ["f"]),
        ([{"generated_text": "g"}], ["g"]),
        ({"ok": False, "error": "rate limit"}, [None]),
        ({"ok": False, "error": "rate limit", "outputs": []}, [None]),
        ({"error": "rate limit", "choices": []}, [None]),
        ({"ok": True, "outputs": []}, []),
        ({"error": {"message": "down"}}, [None]),
        ({"choices": [{"message": {"content": None}}]}, [None]),
    ],
)
def test_shapes(row, texts):
    samples = samples_of(row)
    assert [None if s.error else s.text for s in samples] == texts


@pytest.mark.parametrize("row", [None, 3, "text", {}, [], {"prompt": "p"}, {"outputs": "no list"}])
def test_no_answer_in_it(row):
    assert samples_of(row) is None


def test_entry_of_unknown_shape_is_marked():
    assert samples_of({"outputs": [{"strange": 1}, 7]}) == [None, None]


def test_finish_reason_tokens_and_seed():
    row = {"generated_text": "x", "details": {"finish_reason": "length", "generated_tokens": 9, "seed": 2**63}}
    assert samples_of(row) == [Sample("x", "length", 9, 2**63)]
    row = {"choices": [{"message": {"content": "y"}, "finish_reason": "stop"}], "usage": {"completion_tokens": 4}}
    assert samples_of(row) == [Sample("y", "stop", 4)]


@pytest.mark.parametrize(
    "sent",
    [
        "# Query:\n```\nOther?\n```\n\n# Answer:\n```\nYes.\n```\n\n# Query:\n```\nWhy?\n```\n\n# Answer:\n```\n",
        "<s>[INST] Why? [/INST]",
        "[INST] <<SYS>>\nBe kind.\n<</SYS>>\n\nWhy? [/INST]",
        "<|user|>\nWhy?</s>\n<|assistant|>\n",
        "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n",
        "Why?",
    ],
)
def test_question_is_found_in_the_template(sent):
    assert user_turn(sent) == "Why?"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("llama-2-base", "base"),
        ("mistral", "base"),
        ("mistral-base", "base"),
        ("gpt2", "base"),
        ("gemma-3-270m", "base"),
        ("llama-2-chat", "aligned"),
        ("gpt-3.5-turbo", "aligned"),
        ("mistral-instruct", "aligned"),
        ("mistral-sft", "aligned"),
        ("zephyr", "aligned"),
        ("SmolLM2-135M-Instruct", "aligned"),
        ("gemma-2b-it", "aligned"),
        ("llama-2-icl-chat-summary", "in-context"),
        ("mistral-icl-instruct-rand", "in-context"),
        ("gpt-3.5-turbo-summary-llama-2-chat", "revised"),
        ("my-run", "other"),
        ("In-Context", "in-context"),
    ],
)
def test_roles_guessed_from_names(name, role):
    assert guess_role(name) == role


@pytest.mark.parametrize(
    ("run", "strategy"),
    [
        ("llama-2-base", Strategy("zero-shot")),
        ("llama-2-icl", Strategy("fixed examples")),
        ("mistral-icl-instruct", Strategy("teacher examples", "mistral-instruct")),
        ("llama-2-icl-gpt-3.5", Strategy("teacher examples", "gpt-3.5-turbo")),
        ("llama-2-icl-chat-rand", Strategy("random k", "llama-2-chat", 3)),
        ("llama-2-icl-chat-knn-prompt_similar", Strategy("nearest k by prompt", "llama-2-chat", 3)),
        ("llama-2-icl-chat-5nn-prompt_similar", Strategy("nearest k by prompt", "llama-2-chat", 5)),
        ("llama-2-icl-gpt-3.5-knn-response_similar", Strategy("nearest k by response", "gpt-3.5-turbo", 3)),
        ("mistral-icl-chat-summary", Strategy("hint", "llama-2-chat")),
        ("llama-2-icl-chat-summary-cot", Strategy("own hint", "llama-2-chat")),
        ("gpt-3.5-turbo-summary-llama-2-chat", Strategy("hint", "llama-2-chat")),
    ],
)
def test_strategies_guessed_from_names_of_runs(run, strategy):
    assert guess_strategy(run) == strategy
