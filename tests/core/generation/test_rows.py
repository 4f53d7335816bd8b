"""A growing sample: its text with a tokenizer that falls back to bytes, stop strings, and what it keeps."""

from __future__ import annotations

from typing import Any

import pytest

from core.generation.base import Sample, Sampling
from core.generation.rows import Row
from core.generation.sampling import Drawn

BYTES = [f"<0x{b:02X}>" for b in range(256)]
WORDS = ["▁", "▁hello", "▁world", "▁the", "▁.", "a", "`", "``"]


def tokenizer(**options: Any) -> Any:
    """In the manner of sentencepiece: words that carry their space, and one token for each byte."""
    from tokenizers import Tokenizer, decoders, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = [(token, -1.0) for token in ("<unk>", "</s>", *BYTES, *WORDS)]
    inner = Tokenizer(models.Unigram(vocabulary, unk_id=0, byte_fallback=True))
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>", eos_token="</s>", **options)


def grow(tokens: list[str], stop: tuple[str, ...] = (), **options: Any) -> tuple[list[str], Sample]:
    """What was shown after each token, and the finished sample."""
    made = tokenizer(**options)
    row = Row(0, 1, Sampling(stop=stop, max_new_tokens=len(tokens)), made)
    shown = []
    for token in tokens:
        reason = row.take(Drawn([made.convert_tokens_to_ids(token)], [-1.0], [0.5]), 0, {made.eos_token_id})
        shown.append(row.shown())
        if reason:
            return shown, row.sample(reason)
    raise AssertionError("it did not end")


def test_words_keep_their_spaces_and_the_first_one_has_none() -> None:
    shown, sample = grow(["▁hello", "▁world", "▁.", "▁the"])
    assert shown == ["hello", "hello world", "hello world .", "hello world . the"]
    assert (sample.text, sample.finish_reason, sample.token_count) == (shown[-1], "length", 4)


def test_a_character_of_several_bytes_comes_as_a_whole() -> None:
    shown, sample = grow(["▁hello", *(f"<0x{b:02X}>" for b in "🙂".encode()), "▁the"])
    assert shown == [*["hello"] * 4, "hello🙂", "hello🙂 the"] and sample.text == shown[-1]


@pytest.mark.parametrize("last", ["a", "</s>"])
def test_a_stray_byte_that_breaks_the_character_before_it_ends_nothing(last: str) -> None:
    """The library's own way of decoding token by token raises here."""
    made = tokenizer()
    good = [f"<0x{b:02X}>" for b in "🙂".encode()]
    tokens = ["▁hello", *good, "<0xF0>", "▁the", "▁world", last]
    shown, sample = grow(tokens)
    ids = made.convert_tokens_to_ids(tokens)
    assert sample.text == shown[-1] == made.decode(ids, skip_special_tokens=True)
    assert sample.text.startswith("hello") and "the world" in sample.text
    assert sample.tokens is not None and list(sample.tokens.ids) == ids
    shown, sample = grow([*tokens[:-1], "`", "``", "a"], stop=("```",))
    assert sample.finish_reason == "stop" and sample.text.endswith("the world") and shown[-1] == sample.text


def test_a_sample_that_ends_inside_a_character_leaves_it_out() -> None:
    assert grow(["▁hello", "<0xF0>", "<0x9F>"])[1].text == "hello"
    assert grow(["▁hello", "<0xF0>", "</s>"])[1].text == "hello"


def test_what_was_held_back_comes_when_it_is_no_stop_string() -> None:
    shown, sample = grow(["▁hello", "``", "</s>"], stop=("```", ""))
    assert shown == ["hello"] * 3 and (sample.text, sample.finish_reason) == ("hello``", "stop")


def test_spaces_before_marks_stay_and_stop_strings_with_them_are_found() -> None:
    cleans: dict[str, Any] = {"clean_up_tokenization_spaces": True}
    assert grow(["▁hello", "▁.", "▁the"], **cleans)[1].text == "hello . the"
    assert grow(["▁hello", "▁.", "▁the"], stop=(" .",), **cleans)[1].text == "hello"
