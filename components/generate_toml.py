"""From the fields of a form to the text of a specification."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from core.columns import storable


@dataclass(frozen=True)
class Wish:
    """What the form asks for: prompts of a dataset, or own ones; and systems (name, model, strategy)."""

    name: str
    systems: Sequence[tuple[str, str, str]]
    prompts: Sequence[str] = ()
    dataset: str = ""
    limit: int = 0
    samples: int = 5
    temperature: float = 0.7
    max_new_tokens: int = 120


def write(wish: Wish) -> str:
    """The specification as TOML."""
    lines = [f"name = {_quoted(wish.name)}", f"samples = {wish.samples}      # for each prompt and system"]
    if wish.dataset:
        lines.append(f"dataset = {_quoted(wish.dataset)}     # whose prompts are taken")
        lines += [f"limit = {wish.limit}        # only the first few prompts"] * bool(wish.limit)
    lines += ["", "[sampling]", f"temperature = {wish.temperature:g}", f"max_new_tokens = {wish.max_new_tokens}"]
    for prompt in dict.fromkeys([] if wish.dataset else wish.prompts):
        lines += ["", "[[prompt]]", f"text = {_quoted(prompt)}"]
    for name, model, strategy in wish.systems:
        fields = {"name": name, "model": model, "strategy": strategy}
        lines += ["", "[[system]]", *(f"{key} = {_quoted(value)}" for key, value in fields.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A basic string of TOML: as in JSON, but for one more character that must be escaped."""
    return json.dumps(storable(text), ensure_ascii=False).replace("\x7f", "\\u007f")
