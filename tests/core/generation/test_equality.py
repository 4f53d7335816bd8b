"""Both real models say what the library makes them say: in float32 exactly, in bfloat16 as far as rounding allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bench.repeat import against_library
from core import demo
from core.generation.base import Sample, Sampling
from core.generation.local import LocalGenerator
from core.generation.network import PlainNetwork, SharedNetwork
from core.prompting import example_sets, query_answer
from tests.core.generation.real import folder_of

pytestmark = pytest.mark.slow

GREEDY = Sampling(temperature=0, max_new_tokens=16)
FREE = Sampling(temperature=0.8, top_p=0.95, max_new_tokens=12)
PROMPTS = ("How do I clean a wool scarf?", "Is it rude to be early?", "Name a reason to keep a diary.")


def contexts(generator: LocalGenerator) -> list[str]:
    """A long context with examples, as the Lab sends it, and two short ones."""
    plain = example_sets()[demo.EXAMPLES]
    if generator.chat:
        return [generator.chat_context(prompt) for prompt in PROMPTS]
    long = query_answer(PROMPTS[0], examples=plain.examples, hint="Use cold water.", instruction=plain.instruction)
    return [long, *(query_answer(prompt) for prompt in PROMPTS[1:])]


@pytest.fixture(scope="module", params=[demo.ALIGNED_MODEL, demo.BASE_MODEL])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def exact(model: str) -> LocalGenerator:
    """The generator, computing in float32."""
    made = LocalGenerator(folder_of(model), model=model)
    made._network.net.float()
    return made


def run(generator: LocalGenerator, context: str, seeds: list[int], sampling: Sampling) -> list[Sample]:
    return sorted(generator.generate(context, seeds, sampling), key=lambda sample: sample.index)


def forget(generator: LocalGenerator) -> None:
    generator._network.contexts.clear()


def test_greedy_texts_equal_the_library(exact: LocalGenerator, model: str) -> None:
    found = against_library(exact, folder_of(model), contexts(exact), GREEDY, dtype="float32")
    assert found["equal"] == found["texts"] == 3
    assert found["largest_logprob_difference"] < 2e-3


def test_batched_equals_one_by_one(exact: LocalGenerator) -> None:
    for sampling in (GREEDY, FREE):
        together = run(exact, contexts(exact)[1], [1, 2, 3, 4, 5], sampling)
        alone = [run(exact, contexts(exact)[1], [seed], sampling)[0] for seed in (1, 2, 3, 4, 5)]
        assert [s.text for s in together] == [s.text for s in alone]
    assert len({s.text for s in together}) > 1


@pytest.fixture
def without_sharing(exact: LocalGenerator) -> Iterator[LocalGenerator]:
    """The same model with the library's own attention and cache."""
    shared: Any = exact._network
    assert isinstance(shared, SharedNetwork)
    usual = shared.net.config._attn_implementation
    shared.net.set_attn_implementation("sdpa")
    exact._network = PlainNetwork(shared.net, 0)
    yield exact
    shared.net.set_attn_implementation(usual)
    exact._network = shared


def test_a_shared_context_equals_no_sharing(exact: LocalGenerator, request: pytest.FixtureRequest) -> None:
    context = contexts(exact)[0]
    shared = [s.text for sampling in (GREEDY, FREE) for s in run(exact, context, [1, 2, 3], sampling)]
    plain = request.getfixturevalue("without_sharing")
    assert [s.text for sampling in (GREEDY, FREE) for s in run(plain, context, [1, 2, 3], sampling)] == shared


def test_after_an_edit_equals_from_scratch(exact: LocalGenerator) -> None:
    context = contexts(exact)[0]
    edited = context.replace("wool scarf", "silk scarf").replace("Use cold water.", "Use mild soap.")
    assert edited != context
    forget(exact)
    scratch = run(exact, edited, [1, 2, 3], FREE)
    forget(exact)
    run(exact, context, [1], GREEDY)
    again = run(exact, edited, [1, 2, 3], FREE)
    if not exact.chat:
        assert exact.held()["reused"] >= 256
    assert again == scratch


def test_bfloat16_agrees_as_far_as_rounding_allows(model: str, capsys: pytest.CaptureFixture[str]) -> None:
    generator = LocalGenerator(folder_of(model), model=model)
    found = against_library(generator, folder_of(model), contexts(generator), GREEDY, dtype="bfloat16")
    with capsys.disabled():
        print(
            f"\n{model} in bfloat16 against the library: {found['equal']} of {found['texts']} greedy texts equal, "
            f"largest difference of a log-probability {found['largest_logprob_difference']:.3f}"
        )
    assert found["largest_logprob_difference"] < 1.0
    assert found["tokens_before_parting"] > 0.3
