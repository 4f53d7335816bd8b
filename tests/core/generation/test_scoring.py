"""Teacher-forced scores equal the library's, whatever the batch, and what the generator said while sampling."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from core.errors import OvertonError
from core.generation import scoring
from core.generation.base import Sampling, TokenTrace
from core.generation.local import LocalGenerator
from tests.core.generation.tiny import make

TEXTS = ["a lens is glass.", "b", "", "who knows? nobody knows that and nobody ever will.", "a lens is glass"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def tiny(folder: Path) -> LocalGenerator:
    return LocalGenerator(folder, model="tiny")


def test_scores_equal_the_library(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).float()
    tiny = LocalGenerator(folder, model="tiny")
    tiny._network.net.float()
    for width in (256, 12, 5):
        monkeypatch.setattr(scoring, "_TOKENS", width)
        traces = tiny.score("what is a lens? ", TEXTS)
        for text, trace in zip(TEXTS, traces, strict=True):
            before, ids = tiny.encode("what is a lens? "), list(trace.ids)
            assert tiny._tokenizer.decode(ids) == text and len(trace.logprobs) == len(trace.entropies) == len(text)
            with torch.inference_mode():
                logits = net(torch.tensor([before + ids])).logits[0, len(before) - 1 : -1].double()
            chances = logits.log_softmax(-1)
            expected = chances[range(len(ids)), ids]
            entropies = -(chances.exp() * chances).sum(-1)
            assert list(trace.logprobs) == pytest.approx(expected.tolist(), abs=1e-3)
            assert list(trace.entropies) == pytest.approx(entropies.tolist(), abs=1e-3)


def test_scores_do_not_depend_on_the_batch(tiny: LocalGenerator) -> None:
    together = tiny.score("what is a lens? ", TEXTS * 8)
    assert together[: len(TEXTS)] == together[len(TEXTS) : 2 * len(TEXTS)]
    for text, trace in zip(TEXTS, together, strict=False):
        (alone,) = tiny.score("what is a lens? ", [text])
        assert alone.ids == trace.ids
        assert alone.logprobs == pytest.approx(trace.logprobs, abs=0.05)


def test_scores_are_exact_while_another_model_is_being_loaded(tiny: LocalGenerator) -> None:
    """Loading changes the number format that all threads of the process use where they do not say which."""
    import torch

    alone = tiny.score("abc", TEXTS)
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        assert tiny.score("abc", TEXTS) == alone
    finally:
        torch.set_default_dtype(usual)


def test_the_generator_said_the_same_while_sampling(tiny: LocalGenerator) -> None:
    samples = list(tiny.generate("abc", [1, 2, 3], Sampling(temperature=0.8, top_p=0.9, max_new_tokens=20)))
    traces = tiny.score("abc", [tiny._tokenizer.decode(s.tokens.ids) for s in samples if s.tokens])
    for sample, trace in zip(samples, traces, strict=True):
        assert sample.tokens is not None and sample.tokens.ids == trace.ids
        assert sample.tokens.logprobs == pytest.approx(trace.logprobs, abs=0.1)
        assert sample.tokens.entropies == pytest.approx(trace.entropies, abs=0.1)
        assert len(trace.ids) == sample.token_count


def test_a_sensible_text_scores_higher_than_its_letters_shuffled(tiny: LocalGenerator) -> None:
    """Planted: the model's own likeliest text against others of the same length; null: a text against itself."""
    own = next(iter(tiny.generate("abc", [0], Sampling(temperature=0, max_new_tokens=16)))).tokens
    assert own is not None
    likely = tiny._tokenizer.decode(own.ids)
    best, *others = tiny.score("abc", [likely, likely[::-1], "zq" * 8])
    assert all(sum(best.logprobs) > sum(other.logprobs) + 1 for other in others)
    one, same = tiny.score("abc", [likely, likely])
    assert one == same


def test_what_is_too_long_is_refused_with_both_counts(tiny: LocalGenerator) -> None:
    with pytest.raises(OvertonError, match=r"101 tokens and the longest text 40 more, .* at most 128"):
        tiny.score("a" * 100, ["b" * 40, "c"])


def test_no_texts_and_a_stop(tiny: LocalGenerator) -> None:
    assert tiny.score("abc", []) == []
    assert tiny.score("abc", [""]) == [TokenTrace()]
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(OvertonError, match="stopped"):
        tiny.score("abc", ["bcd"], cancel=cancel)
