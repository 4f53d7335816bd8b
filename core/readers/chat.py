"""Answers as servers give them: rows in the shapes of OpenAI's API or of Text Generation Inference.

One file, or one file a system in a folder. What was asked is taken from `messages` or `prompt` in the row (or in its
`request`); equal questions are one prompt. Without any, the line number tells the prompts apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.dataset import Dataset
from core.errors import Problems
from core.readers.builder import Builder, name_from
from core.readers.files import all_rows, first_file
from core.readers.roles import guess_role
from core.readers.rows import rows
from core.readers.shapes import Sample, conversation_text, samples_of, trimmed, user_turn

KIND = "chat"
_Named = tuple[str | None, str | None]
_IDS = ("prompt_id", "instance_id", "question_id")


def matches(path: Path) -> bool:
    """Whether the first rows of the first file hold answers in one of the two shapes."""
    first = first_file(path)
    return first is not None and any(_is_answer(row) for row in first[1][:20])


def _is_answer(row: Any) -> bool:
    if isinstance(row, list):
        row = {"outputs": row}
    if not isinstance(row, Mapping):
        return False
    inner = row.get("response")
    if isinstance(inner, Mapping):
        row = inner.get("body", inner)
    if not isinstance(row, Mapping):
        return False
    if isinstance(row.get("generated_text"), str):
        return True
    lists = [row[key] for key in ("choices", "outputs") if isinstance(row.get(key), list)]
    return any(isinstance(item, Mapping) for items in lists for item in items) or isinstance(row.get("ok"), bool)


def read(
    path: Path, *, name: str | None = None, mapping: Mapping[str, str] | object | None = None
) -> tuple[Dataset, Problems]:
    """Read a file or a folder of files; `mapping` has no meaning here."""
    problems = Problems()
    builder = Builder(problems)
    single = not path.is_dir()
    only: list[_Named] = []  # looked for at the first row that needs it
    for stem, file, line, row in all_rows(path, problems):
        samples = samples_of(row)
        if not samples:
            problems.add(file, line, "the row holds no responses.")
            continue
        fields: Mapping[str, Any] = row if isinstance(row, Mapping) else {}
        prompt_id = _prompt(fields, builder, file, line)
        named = _named(fields)
        if single and named == (None, None) and _failed(samples):
            only = only or [_only_system(file)]
            named = only[0]
        system = _system(named, stem, builder, single=single)
        for sample in samples:
            if sample is None:
                problems.add(file, line, "one of the responses has an unknown shape; it is left out.")
            else:
                got = trimmed(sample, _sent(fields))
                builder.add(prompt_id, system, **vars(got), file=file, line=line)
    return builder.dataset(name or name_from(path), meta={"source": KIND}), problems


def _sent(row: Mapping[str, Any]) -> str | None:
    """The text that was sent, template and all."""
    request = row.get("request")
    places = [row, request] if isinstance(request, Mapping) else [row]
    return next((p[k] for p in places for k in ("prompt", "inputs") if isinstance(p.get(k), str)), None)


def _question(row: Mapping[str, Any]) -> str | None:
    request = row.get("request")
    for place in (row, request, row.get("body")):
        if isinstance(place, Mapping) and (text := conversation_text(place.get("messages"))) is not None:
            return text
    sent = _sent(row)
    return user_turn(sent) if sent is not None else None


def _named(row: Mapping[str, Any]) -> _Named:
    """What a row says of its system: the name, and the model."""
    inner = row.get("response")
    body = inner.get("body", inner) if isinstance(inner, Mapping) else {}
    model = next(
        (p["model"] for p in (row, body) if isinstance(p, Mapping) and isinstance(p.get("model"), str)), None
    )
    given = row.get("system")
    return (given if isinstance(given, str) and 0 < len(given) <= 80 and "\n" not in given else None, model)


def _failed(samples: list[Sample | None]) -> bool:
    return all(sample is not None and sample.error is not None for sample in samples)


def _only_system(file: Path) -> _Named:
    """What all answers in a file say of their system, `(None, None)` where they do not say the same.

    A row with an error often names no model: it belongs to the system that the other rows are of.
    """
    found: _Named = (None, None)
    for _, row in rows(file, Problems()):
        named = _named(row) if isinstance(row, Mapping) else (None, None)
        if named == (None, None) and not _failed(samples_of(row) or []):
            return None, None
        if named != (None, None) and found not in (named, (None, None)):
            return None, None
        found = named if named != (None, None) else found
    return found


def _system(row: _Named, stem: str, builder: Builder, *, single: bool) -> str:
    named, model = row
    system = named or (model if single and model else stem)
    guess = guess_role(system)
    return builder.system(system, role=guess if guess != "other" or not model else guess_role(model), model=model)


def _prompt(row: Mapping[str, Any], builder: Builder, file: Path, line: int) -> str:
    """The prompt that a row belongs to: by its id, else by its text, else by its line."""
    text = _question(row)
    meta = row.get("metadata")
    places = [row, meta] if isinstance(meta, Mapping) else [row]
    given = next((p[k] for p in places for k in _IDS if isinstance(p.get(k), str | int) and p[k] != ""), None)
    if given is None and text is None:
        given = row.get("custom_id") if isinstance(row.get("custom_id"), str) else line - 1
    prompt_id = str(given) if given is not None else builder.id_of(str(text))
    return builder.prompt(prompt_id, text, file=file, line=line)
