"""What is asked of vLLM and what becomes of its answers; a stand-in with the same signatures takes its place."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar

import pytest

from core.bulk import Batch
from core.bulk.ray_worker import GenerateWorker
from core.errors import OvertonError
from core.generation import pool, vllm_generator
from core.generation.base import Sampling, TokenTrace
from core.generation.vllm_generator import VllmGenerator
from core.models import Located


@dataclass(kw_only=True)
class SamplingParams:
    """The fields that are used, with the defaults of vLLM 0.33; another name is a TypeError, as there."""

    n: int = 1
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: str | list[str] | None = None
    max_tokens: int | None = 16
    logprobs: int | None = None


@dataclass
class Logprob:
    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


@dataclass
class CompletionOutput:
    index: int
    text: str
    token_ids: Sequence[int]
    cumulative_logprob: float | None
    logprobs: list[dict[int, Logprob]] | None
    finish_reason: str | None = None
    stop_reason: int | str | None = None


@dataclass
class RequestOutput:
    outputs: list[CompletionOutput]


class LLM:
    """Answers with the seed; keeps what it was asked."""

    made: ClassVar[list[Any]] = []

    def __init__(self, model: str, *, enable_prefix_caching: bool | None = None) -> None:
        if "broken" in model:
            raise ValueError("no such architecture")
        self.model, self.asked = model, []
        self.reasons = {2: "length", 3: "abort"}
        LLM.made.append(self)

    def generate(
        self, prompts: Any, sampling_params: Any = None, *, use_tqdm: bool = True, lora_request: Any = None
    ) -> list[RequestOutput]:
        assert len(prompts) == len(sampling_params) and not use_tqdm
        self.asked += list(zip(prompts, sampling_params, strict=True))
        return [RequestOutput([self._one(p)]) for p in sampling_params]

    def _one(self, asked: SamplingParams) -> CompletionOutput:
        logprobs = [{asked.seed: Logprob(-0.5, 1, "a")}, {9: Logprob(-1.5, 2, "b")}]
        reason = self.reasons.get(asked.seed or 0, "stop")
        return CompletionOutput(0, f"text {asked.seed}", [asked.seed or 0, 9], -2.0, logprobs, reason)


@dataclass
class Reader:
    model: str = "tiny"
    revision: str = "r1"
    limit: int = 100
    chat: bool = False
    seen: list[str] = field(default_factory=list)

    def encode(self, context: str) -> list[int]:
        return [1, *map(ord, context)]

    def count_tokens(self, context: str) -> int:
        return len(self.encode(context))


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> type[LLM]:
    module: Any = ModuleType("vllm")
    module.LLM, module.SamplingParams = LLM, SamplingParams
    LLM.made = []
    monkeypatch.setitem(sys.modules, "vllm", module)
    monkeypatch.setattr(vllm_generator, "read_tokens", lambda found: Reader())
    monkeypatch.setattr("core.models.locate", lambda model: Located(model, f"/models/{model}", "r1"))
    monkeypatch.setattr(pool, "_BUILT", {})
    return LLM


def test_every_sample_is_a_request_with_its_own_seed(stand_in: type[LLM]) -> None:
    sampling = Sampling(0.6, 0.9, 40, 12, ("\n#",), 0.05, 1.1)
    made = list(VllmGenerator("tiny").generate("ab", [5, 2, 3], sampling))
    (llm,) = stand_in.made
    assert llm.model == "/models/tiny"
    assert [prompt for prompt, _ in llm.asked] == [{"prompt_token_ids": [1, 97, 98]}] * 3
    assert [p.seed for _, p in llm.asked] == [5, 2, 3]
    wanted = SamplingParams(
        temperature=0.6, top_p=0.9, top_k=40, min_p=0.05, repetition_penalty=1.1, max_tokens=12, seed=5, stop=["\n#"]
    )
    wanted.logprobs = 0
    assert llm.asked[0][1] == wanted
    assert [(s.index, s.seed, s.text, s.finish_reason, s.token_count) for s in made] == [
        (0, 5, "text 5", "stop", 2),
        (1, 2, "text 2", "length", 2),
        (2, 3, "text 3", "error", 2),
    ]
    assert made[0].tokens == TokenTrace((5, 9), (-0.5, -1.5)) and made[0].error is None
    assert "'abort'" in str(made[2].error)


@pytest.mark.usefixtures("stand_in")
def test_a_context_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OvertonError, match="at most 100"):
        list(VllmGenerator("tiny").generate("x" * 95, [1], Sampling(max_new_tokens=10)))


@pytest.mark.usefixtures("stand_in")
def test_a_model_that_vllm_does_not_take_is_one_sentence() -> None:
    with pytest.raises(OvertonError, match=r"vLLM cannot load broken \(ValueError: no such architecture\)"):
        VllmGenerator("broken")


def test_without_vllm_one_sentence(monkeypatch: pytest.MonkeyPatch, stand_in: type[LLM]) -> None:
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(OvertonError, match="--ray-backend transformers"):
        VllmGenerator("tiny")


def test_a_worker_takes_vllm_where_it_is_usable(monkeypatch: pytest.MonkeyPatch, stand_in: type[LLM]) -> None:
    work = (0, Batch("base", "tea", "tiny", "ab", Sampling(max_new_tokens=8), (0, 1), (5, 6)))
    monkeypatch.setattr(vllm_generator, "usable", lambda: True)
    made = [sample.text for _, sample in GenerateWorker("tiny", "r1", "auto", 1).work(work)]
    assert made == ["text 5", "text 6"] and len(stand_in.made) == 1
    monkeypatch.setattr(pool, "_BUILT", {})
    monkeypatch.setattr(vllm_generator, "usable", lambda: False)
    monkeypatch.setattr(pool, "_build", lambda model: pytest.fail("transformers"))
    with pytest.raises(pytest.fail.Exception, match="transformers"):
        list(GenerateWorker("tiny", "r1", "auto", 1).work(work))
    assert len(list(GenerateWorker("tiny", "r1", "vllm", 1).work(work))) == 2


def test_it_is_not_usable_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not vllm_generator.usable()
