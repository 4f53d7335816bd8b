"""From logits to tokens: the library's own filters, exact probabilities, and a draw that follows them."""

from __future__ import annotations

import math
from typing import Any

import pytest

from core.generation.base import Sampling
from core.generation.sampling import Sampler, filtered, invert, penalised


def logits(rows: int = 4, size: int = 3000, *, seed: int = 0, spread: float = 3.0) -> Any:
    import torch

    return torch.randn(rows, size, generator=torch.Generator().manual_seed(seed)) * spread


SETTINGS = [
    {"top_k": 1},
    {"top_k": 7},
    {"top_k": 5000},
    {"top_p": 0.3},
    {"top_p": 0.9},
    {"top_p": 0.999},
    {"min_p": 0.05},
    {"min_p": 1.0},
    {"top_k": 50, "top_p": 0.8},
    {"top_k": 40, "top_p": 0.95, "min_p": 0.02},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_filters_equal_the_library(settings: dict[str, Any], spread: float) -> None:
    import torch
    from transformers import (
        LogitsProcessorList,
        MinPLogitsWarper,
        TemperatureLogitsWarper,
        TopKLogitsWarper,
        TopPLogitsWarper,
    )

    scores = logits(spread=spread)
    theirs = LogitsProcessorList([TemperatureLogitsWarper(0.7)])
    for name, make in (("top_k", TopKLogitsWarper), ("top_p", TopPLogitsWarper), ("min_p", MinPLogitsWarper)):
        if name in settings:
            theirs.append(make(settings[name]))
    expected = theirs(None, scores)
    found = filtered(scores / 0.7, Sampling(temperature=0.7, **settings))
    torch.testing.assert_close(found, expected)
    assert torch.isfinite(found).any(-1).all()
    assert settings == {"top_k": 5000} or torch.isinf(found).any()


@pytest.mark.parametrize("penalty", [0.5, 1.2, 3.0])
def test_the_repetition_penalty_equals_the_library(penalty: float) -> None:
    import torch
    from transformers import RepetitionPenaltyLogitsProcessor

    scores = logits()
    before = torch.randint(0, 3000, (4, 200), generator=torch.Generator().manual_seed(1))
    seen = torch.zeros(scores.shape, dtype=torch.bool).scatter(1, before, True)
    expected = RepetitionPenaltyLogitsProcessor(penalty)(before, scores.clone())
    torch.testing.assert_close(penalised(scores, seen, penalty), expected)


def test_what_the_model_thought_is_told_before_temperature_and_filters() -> None:
    import torch

    scores = logits()
    scores[1, 5:] = float("-inf")
    numbers = torch.full((4,), 0.5, dtype=torch.float64)
    chances = scores.double().log_softmax(-1)
    entropy = -(chances.exp() * chances.clamp_min(-1e9)).sum(-1)
    for sampling in (Sampling(temperature=1), Sampling(temperature=0.3, top_k=5), Sampling(temperature=0)):
        drawn = Sampler(sampling).draw(scores, numbers)
        for row, token in enumerate(drawn.tokens):
            assert drawn.logprobs[row] == pytest.approx(float(chances[row, token]), abs=1e-4)
            assert drawn.entropies[row] == pytest.approx(float(entropy[row]), abs=1e-4)


def test_a_certain_distribution_has_no_entropy_and_an_even_one_the_most() -> None:
    import torch

    scores = torch.zeros(2, 1000)
    scores[0, 3] = 500
    drawn = Sampler(Sampling(temperature=1)).draw(scores, torch.tensor([0.2, 0.2], dtype=torch.float64))
    assert drawn.tokens[0] == 3 and drawn.logprobs[0] == 0 and drawn.entropies[0] == 0
    assert drawn.entropies[1] == pytest.approx(math.log(1000)) and drawn.logprobs[1] == pytest.approx(-math.log(1000))


def test_draws_follow_the_distribution() -> None:
    """Planted probabilities across several blocks of the vocabulary; 40,000 draws stay within four deviations."""
    import torch

    planted = {3: 0.5, 600: 0.25, 601: 0.15, 1900: 0.0999, 2047: 0.0001}
    scores = torch.full((1, 2048), float("-inf"))
    for token, chance in planted.items():
        scores[0, token] = math.log(chance)
    n = 40_000
    numbers = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    drawn = Sampler(Sampling(temperature=1)).draw(scores.expand(n, -1), numbers).tokens
    assert set(drawn) <= set(planted)
    for token, chance in planted.items():
        assert abs(drawn.count(token) - n * chance) <= 4 * math.sqrt(n * chance * (1 - chance)) + 1


def test_temperature_sharpens_as_it_should() -> None:
    import torch

    scores = torch.log(torch.tensor([[0.6, 0.4]]))
    n = 20_000
    numbers = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    drawn = Sampler(Sampling(temperature=0.5)).draw(scores.expand(n, -1), numbers).tokens
    expected = 0.36 / (0.36 + 0.16)
    assert drawn.count(0) / n == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / n))


def test_a_row_depends_on_its_own_number_alone() -> None:
    import torch

    scores = logits(rows=6)
    numbers = torch.rand(6, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    sampler = Sampler(Sampling(temperature=0.9, top_p=0.9))
    together = sampler.draw(scores, numbers)
    for row in range(6):
        alone = sampler.draw(scores[row : row + 1], numbers[row : row + 1])
        assert alone.tokens == together.tokens[row : row + 1]


@pytest.mark.parametrize("size", [1, 511, 512, 513, 5000])
def test_the_ends_of_the_cumulative_distribution(size: int) -> None:
    import torch

    scores = torch.full((2, size), float("-inf"))
    scores[:, 0] = scores[:, size - 1] = 0.0
    numbers = torch.tensor([0.0, 1 - 1e-16], dtype=torch.float64)
    assert Sampler(Sampling(temperature=1)).draw(scores, numbers).tokens == [0, size - 1]


def test_a_number_past_the_sum_takes_the_last_token_with_a_chance() -> None:
    import torch

    chances = torch.zeros(1, 1024)
    chances[0, 700] = 1.0
    assert int(invert(chances, torch.tensor([1.0], dtype=torch.float64))) == 700
