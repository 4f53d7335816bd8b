"""A generator without a model: for tests, and for trying the Lab where nothing can be fetched.

Its texts follow the context in a way that is easy to predict: without examples it scatters, with examples it
answers in numbered steps, and with a hint it uses the words of the hint.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator, Sequence
from threading import Event

from core.errors import OvertonError
from core.generation.base import OnText, Sample, Sampling, check_fits, trim_at_stop

_SCATTER = (
    "my uncle once told me about it",
    "nobody on our street knows",
    "ask again when the weather is better",
    "it was Tuesday and the shop was shut",
    "there are two kinds of people",
    "I would rather talk about trains",
)
_STEPS = ("Begin with what you have", "Take your time", "Ask somebody who has done it", "Try again tomorrow")


class FakeGenerator:
    """Deterministic in its seeds; `delay` seconds pass per token, so that progress and Stop can be tested."""

    def __init__(self, *, model: str = "fake", chat: bool = False, limit: int = 2048, delay: float = 0.0) -> None:
        self.model = model
        self.revision = "fake-1"
        self.chat = chat
        self.limit = limit
        self.delay = delay

    def count_tokens(self, context: str) -> int:
        """Number of words and marks."""
        return len(re.findall(r"\w+|[^\w\s]", context))

    def chat_context(self, prompt: str) -> str:
        """A visible chat frame around the prompt. Raises `OvertonError` where `chat` is off."""
        if not self.chat:
            raise OvertonError(f"{self.model} has no chat template: use the query/answer format.")
        return f"<user>{prompt}</user><assistant>"

    def generate(
        self,
        context: str,
        seeds: Sequence[int],
        sampling: Sampling,
        *,
        cancel: Event | None = None,
        on_text: OnText | None = None,
    ) -> Iterator[Sample]:
        """Yield one `Sample` per seed; see `core.generation.base.Generator`."""
        sampling.check()
        check_fits(self, context, sampling)
        for index, seed in enumerate(seeds):
            words = self._text(context, 0 if sampling.temperature == 0 else seed).split(" ")
            text, count, reason = "", 0, "stop"
            for word in words:
                if cancel is not None and cancel.is_set():
                    reason = "cancelled"
                    break
                if count >= sampling.max_new_tokens:
                    reason = "length"
                    break
                time.sleep(self.delay)
                text, count = f"{text} {word}" if text else word, count + 1
                if on_text is not None:
                    on_text(index, text, count)
            yield Sample(index, trim_at_stop(text, sampling.stop)[0], reason, count, seed)

    def _text(self, context: str, seed: int) -> str:
        chance = random.Random(seed)
        hint = re.findall(r"# Hint:\n```\n(.*?)\n```", context, re.DOTALL)
        examples = context.count("# Answer:") - 1
        if not self.chat and examples <= 0:
            return " and ".join(chance.sample(_SCATTER, chance.randint(1, 3))) + "."
        steps = list(_STEPS if self.chat else chance.sample(_STEPS, 3))
        if hint:
            steps.insert(0, hint[-1].strip().rstrip("."))
        return "\n".join(f"{k}. {step}." for k, step in enumerate(steps, 1))
