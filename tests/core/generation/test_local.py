"""The local generator on a tiny real model: sampling, stops, seeds, limits."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest

from core.errors import OvertonError
from core.generation.base import Sampling
from core.generation.local import LocalGenerator
from tests.core.generation.tiny import SIZE, make


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> LocalGenerator:
    return LocalGenerator(folder, model="tiny")


def texts(generator: LocalGenerator, context: str, seeds: list[int], sampling: Sampling) -> list[str]:
    return [s.text for s in sorted(generator.generate(context, seeds, sampling), key=lambda s: s.index)]


@pytest.mark.parametrize("penalty", [1.0, 1.3])
def test_greedy_equals_the_library(tiny: LocalGenerator, folder: Path, penalty: float) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16)
    ids = torch.tensor([tiny.encode("what is a lens?")])
    options = {"do_sample": False, "max_new_tokens": 24, "repetition_penalty": penalty}
    made = net.generate(ids, **options)[0, ids.shape[1] :]
    expected = tiny._tokenizer.decode(made, skip_special_tokens=True)
    assert len(expected) > 4
    sampling = Sampling(temperature=0, max_new_tokens=24, repetition_penalty=penalty)
    assert texts(tiny, "what is a lens?", [1], sampling) == [expected]


def test_temperature_zero_gives_equal_samples(tiny: LocalGenerator) -> None:
    assert len(set(texts(tiny, "abc", [1, 2, 3], Sampling(temperature=0, max_new_tokens=12)))) == 1


def test_each_sample_depends_on_its_own_seed_alone(tiny: LocalGenerator) -> None:
    sampling = Sampling(temperature=1.0, max_new_tokens=16)
    together = texts(tiny, "abc", [11, 12, 13, 14], sampling)
    assert together == [texts(tiny, "abc", [seed], sampling)[0] for seed in (11, 12, 13, 14)]
    assert len(set(together)) > 1, "different seeds should scatter"
    assert texts(tiny, "abc", [11, 12, 13, 14], sampling) == together


def test_rows_that_stop_leave_the_batch_and_the_others_go_on(tiny: LocalGenerator) -> None:
    sampling = Sampling(temperature=1.0, max_new_tokens=40, stop=("e",))
    samples = list(tiny.generate("abc", list(range(12)), sampling))
    assert sorted(s.index for s in samples) == list(range(12))
    stopped = [s for s in samples if s.finish_reason == "stop"]
    assert len({s.token_count for s in stopped}) > 1, "they should stop at different lengths"
    for sample in samples:
        assert "e" not in sample.text
        assert sample.finish_reason == "stop" or sample.token_count == 40
        assert sample.seed == sample.index


def test_a_stop_string_may_lie_across_tokens(tiny: LocalGenerator) -> None:
    free = texts(tiny, "abc", [3], Sampling(temperature=1.0, max_new_tokens=40))[0]
    stop = free[5:8]
    place = free.index(stop)
    made = next(iter(tiny.generate("abc", [3], Sampling(temperature=1.0, max_new_tokens=40, stop=(stop,)))))
    assert (made.text, made.finish_reason) == (free[:place], "stop")


def test_growing_text_never_shows_the_beginning_of_a_stop_string(tiny: LocalGenerator) -> None:
    free = texts(tiny, "abc", [3], Sampling(temperature=1.0, max_new_tokens=40))[0]
    stop = free[9:12]
    shown: list[str] = []
    sampling = Sampling(temperature=1.0, max_new_tokens=40, stop=(stop,))
    final = next(iter(tiny.generate("abc", [3], sampling, on_text=lambda i, text, n: shown.append(text))))
    assert len(shown) > 3
    assert all(final.text.startswith(text) for text in shown)


def test_cancel_ends_at_the_next_step_and_keeps_what_there_is(tiny: LocalGenerator) -> None:
    cancel = Event()

    def watch(index: int, text: str, tokens: int) -> None:
        if tokens == 5:
            cancel.set()

    sampling = Sampling(temperature=1.0, max_new_tokens=100)
    samples = list(tiny.generate("abc", [1, 2], sampling, cancel=cancel, on_text=watch))
    assert {s.finish_reason for s in samples} == {"cancelled"}
    assert all(0 < s.token_count <= 6 and s.text for s in samples)


def test_a_context_over_the_limit_is_refused_with_both_counts(tiny: LocalGenerator) -> None:
    with pytest.raises(OvertonError, match=r"201 tokens and 16 more .* at most 128"):
        list(tiny.generate("a" * 200, [1], Sampling(max_new_tokens=16)))


def test_a_context_of_exactly_the_limit_is_read(tiny: LocalGenerator) -> None:
    (sample,) = tiny.generate("a" * 111, [5], Sampling(temperature=1.0, max_new_tokens=16))
    assert sample.finish_reason in ("stop", "length") and sample.token_count > 0
    with pytest.raises(OvertonError, match="113 tokens and 16 more"):
        list(tiny.generate("a" * 112, [5], Sampling(max_new_tokens=16)))


def test_what_cannot_begin_is_one_sentence(tiny: LocalGenerator, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OvertonError, match="seed must be 0"):
        list(tiny.generate("abc", [1, -1], Sampling(max_new_tokens=2)))
    assert list(tiny.generate("abc", [], Sampling(max_new_tokens=2))) == []
    assert [s.seed for s in tiny.generate("abc", [2**70], Sampling(max_new_tokens=2))] == [2**70]
    assert next(iter(tiny.generate("", [1], Sampling(max_new_tokens=2)))).token_count > 0, "it begins with its BOS"
    monkeypatch.setattr(tiny._reader, "_adds_bos", False)
    with pytest.raises(OvertonError, match="context is empty"):
        list(tiny.generate("", [1], Sampling(max_new_tokens=2)))
    with pytest.raises(OvertonError, match="context is empty"):
        tiny.score("", ["abc"])


def test_a_model_without_attention_generates(tmp_path: Path) -> None:
    from transformers import MambaConfig

    size = {"vocab_size": SIZE, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8}
    mamba = LocalGenerator(make(tmp_path, config=MambaConfig(**size, eos_token_id=1)), model="mamba")
    settings = Sampling(temperature=1.0, max_new_tokens=12)
    together = list(mamba.generate("abc", [1, 2, 3], settings))
    assert sorted(s.index for s in together) == [0, 1, 2] and all(s.error is None for s in together)
    assert {s.finish_reason for s in together} <= {"stop", "length"}


def test_exactly_one_bos(tmp_path: Path) -> None:
    chat = LocalGenerator(make(tmp_path, chat=True), model="tiny chat")
    context = chat.chat_context("hi")
    assert context.startswith("<bos>")
    assert chat.encode(context).count(0) == 1
    assert chat.encode("hi").count(0) == 1


def test_a_base_model_has_no_chat_template(tiny: LocalGenerator) -> None:
    assert not tiny.chat
    with pytest.raises(OvertonError, match="query/answer"):
        tiny.chat_context("hi")


def test_a_model_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OvertonError, match="cannot be loaded"):
        LocalGenerator(tmp_path, model="nothing here")


def test_room_is_made_before_loading_for_what_the_model_takes(folder: Path) -> None:
    from core.generation import loading

    asked: list[tuple[int, str]] = []
    made = LocalGenerator(folder, model="tiny", make_room=lambda size, device: asked.append((size, device)))
    ((size, device),) = asked
    assert device == made.device
    assert size - loading._OVERHEAD == pytest.approx(made.held()["weights"], rel=0.2)

    def refuse(size: int, device: str) -> None:
        raise OvertonError("tiny needs about 0.4 GB of memory and 0.1 GB are free.")

    with pytest.raises(OvertonError, match=r"^tiny needs about"):
        LocalGenerator(folder, model="tiny", make_room=refuse)


def test_the_size_of_a_folder_without_weights_is_unknown(tmp_path: Path) -> None:
    from core.generation import loading

    assert loading.size_in_memory(tmp_path, "cpu") == 0


def test_samples_carry_a_trace_of_their_tokens(tiny: LocalGenerator) -> None:
    for sample in tiny.generate("abc", [1, 2, 3], Sampling(temperature=1.0, max_new_tokens=12, stop=("e",))):
        trace = sample.tokens
        assert trace is not None
        assert len(trace.ids) == len(trace.logprobs) == len(trace.entropies) == sample.token_count
        assert all(p <= 0 for p in trace.logprobs) and all(0 <= h <= 3.7 for h in trace.entropies)
        assert tiny._tokenizer.decode(trace.ids, skip_special_tokens=True).startswith(sample.text)


def test_settings_change_what_is_said_as_they_should(tiny: LocalGenerator) -> None:
    """top-k 1, a tiny top-p and min-p 1 are greedy, whatever the temperature."""
    greedy = texts(tiny, "abc", [1], Sampling(temperature=0, max_new_tokens=24))
    for settings in ({"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}):
        assert texts(tiny, "abc", [7], Sampling(temperature=1.5, max_new_tokens=24, **settings)) == greedy


def test_a_stop_string_that_is_a_special_token_ends_a_sample(folder: Path) -> None:
    """Decoding leaves special tokens out, so the text never shows them: here the one for unknown characters."""
    made = LocalGenerator(folder, model="tiny")
    free = Sampling(temperature=2.0, max_new_tokens=60)
    said = [s for s in made.generate("abc", list(range(20)), free) if s.tokens and 2 in s.tokens.ids[:-1]]
    assert said, "some sample should hold the token"
    for sample in said:
        assert sample.tokens is not None
        (cut,) = made.generate("abc", [sample.seed], Sampling(temperature=2.0, max_new_tokens=60, stop=("<unk>",)))
        place = sample.tokens.ids.index(2)
        assert (cut.finish_reason, cut.token_count) == ("stop", place + 1)
        assert sample.text.startswith(cut.text)
