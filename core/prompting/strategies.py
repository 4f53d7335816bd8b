"""Strategies: the rules by which a prompt becomes a context. Each is one function with `@strategy` above it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from core.errors import OvertonError
from core.prompting import STOP, ExampleSet, query_answer


@dataclass(frozen=True)
class Ask:
    """What a strategy may use: the prompt, its hint, the examples of the system, and the model's chat template."""

    prompt_id: str
    prompt: str
    hint: str = ""
    examples: ExampleSet | None = None
    chat_context: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Strategy:
    """A named strategy: its function, the usual role of its systems, their stop strings, and what it can use."""

    name: str
    context: Callable[[Ask], str]
    role: str
    stop: tuple[str, ...] = ()
    chat: bool = False
    takes_hint: bool = False
    takes_examples: bool = False


STRATEGIES: dict[str, Strategy] = {}


def strategy(
    name: str,
    *,
    role: str,
    stop: tuple[str, ...] = (),
    chat: bool = False,
    takes_hint: bool = False,
    takes_examples: bool = False,
) -> Callable[[Callable[[Ask], str]], Callable[[Ask], str]]:
    """Register a function as a strategy. `chat` ones need a model with a chat template."""

    def register(context: Callable[[Ask], str]) -> Callable[[Ask], str]:
        STRATEGIES[name] = Strategy(name, context, role, stop, chat, takes_hint, takes_examples)
        return context

    return register


@strategy("zero-shot", role="base", stop=STOP, takes_hint=True)
def zero_shot(ask: Ask) -> str:
    """The prompt alone in the query/answer format."""
    return query_answer(ask.prompt, hint=ask.hint)


@strategy("fixed examples", role="in-context", stop=STOP, takes_hint=True, takes_examples=True)
def fixed_examples(ask: Ask) -> str:
    """The same examples before every prompt, in the query/answer format."""
    if ask.examples is None:
        raise OvertonError("This strategy needs examples.")
    examples = ask.examples
    return query_answer(ask.prompt, examples=examples.examples, hint=ask.hint, instruction=examples.instruction)


@strategy("chat", role="aligned", chat=True)
def chat(ask: Ask) -> str:
    """The model's own chat template around the prompt."""
    if ask.chat_context is None:
        raise OvertonError("This strategy needs a model with a chat template.")
    return ask.chat_context(ask.prompt)
