"""From (prompt, examples, hint) to the exact text that is sent.

Base models are addressed in a query/answer format: a heading and a fenced block for each part, the last
fence left open, so that the closing fence ends the response. This is the format of the zero-shot and
in-context runs of arXiv 2406.17692; the wording is our own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from core.errors import OvertonError
from core.generation.base import FENCE
from core.workspace import SHIPPED

STOP = (FENCE,)


@dataclass(frozen=True)
class Example:
    """One (query, answer) pair for the context, with an optional hint; `on` False leaves it out."""

    query: str
    answer: str
    hint: str = ""
    on: bool = True


@dataclass(frozen=True)
class ExampleSet:
    """A named list of examples with the instruction that stands above them."""

    name: str
    title: str
    instruction: str
    examples: tuple[Example, ...]


def _block(heading: str, text: str) -> str:
    return f"# {heading}:\n{FENCE}\n{text.strip()}\n{FENCE}\n\n"


def query_answer(prompt: str, *, examples: Sequence[Example] = (), hint: str = "", instruction: str = "") -> str:
    """The context for a base model, ending in an open answer fence.

    Without examples the instruction is left out too: that is the zero-shot format. With a non-empty `hint`
    every example that has a hint shows it before its answer, so that the model sees what a hint is for.
    """
    shown = [example for example in examples if example.on]
    parts = [f"# Instruction:\n\n{instruction.strip()}\n\n"] if instruction.strip() and shown else []
    for example in shown:
        parts.append(_block("Query", example.query))
        if hint.strip() and example.hint.strip():
            parts.append(_block("Hint", example.hint))
        parts.append(_block("Answer", example.answer))
    parts.append(_block("Query", prompt))
    if hint.strip():
        parts.append(_block("Hint", hint))
    return "".join(parts) + f"# Answer:\n{FENCE}\n"


def opened_code_block(text: str) -> bool:
    """Whether an answer that ended at a fence seems to have opened a code block there, not closed the answer.

    A closing fence follows a finished line; an opening one follows a line that announces it with a colon.
    """
    return text.rstrip().endswith(":")


def example_sets(file: Path = SHIPPED / "examples.toml") -> dict[str, ExampleSet]:
    """The example sets of a TOML file by name. Raises `OvertonError` where the file cannot be read."""
    try:
        loaded = tomllib.loads(file.read_text(encoding="utf-8"))
        return {
            name: ExampleSet(
                name=name,
                title=str(entry.get("title", name)),
                instruction=str(entry.get("instruction", "")),
                examples=tuple(
                    Example(str(e["query"]).strip(), str(e["answer"]).strip(), str(e.get("hint", "")).strip())
                    for e in entry.get("example", [])
                ),
            )
            for name, entry in loaded.items()
        }
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise OvertonError(f"The examples in {file} cannot be read: each needs a query and an answer.") from error
