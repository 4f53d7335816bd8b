"""What the form writes is what a specification says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from components.generate_toml import Wish, write
from core import bulk

SYSTEMS = (("base", "fake", "zero-shot"), ("aligned", "fake chat", "chat"))


def test_every_field_arrives():
    wish = Wish("tea", SYSTEMS, prompts=["Why?", "How?"], samples=7, temperature=0.3, max_new_tokens=40)
    spec = bulk.load_spec(write(wish))
    assert (spec.name, [p.text for p in spec.prompts]) == ("tea", ["Why?", "How?"])
    assert [(s.name, s.model, s.strategy) for s in spec.systems] == list(SYSTEMS)
    assert [(s.samples, s.sampling.temperature, s.sampling.max_new_tokens) for s in spec.systems] == [
        (7, 0.3, 40)
    ] * 2


def test_prompts_of_a_dataset_take_the_place_of_own_ones():
    spec = bulk.load_spec(write(Wish("tea", SYSTEMS, prompts=["Why?"], dataset="demonstration", limit=3)))
    assert (spec.dataset, spec.limit, spec.prompts) == ("demonstration", 3, ())


@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_no_prompt_gets_out_of_its_quotes(prompt: str):
    spec = bulk.load_spec(write(Wish("tea", SYSTEMS, prompts=[prompt])))
    assert [p.text for p in spec.prompts] == [prompt]


def test_a_prompt_that_is_typed_twice_stands_there_once():
    assert write(Wish("tea", SYSTEMS, prompts=["Why?", "Why?"])).count("[[prompt]]") == 1
