"""Gathers prompts, systems and responses row by row, in little memory, into a dataset."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from core.columns import storable
from core.dataset import PROMPT_COLUMNS, RESPONSE_COLUMNS, SYSTEM_COLUMNS, Dataset, check_name
from core.errors import OvertonError, Problems

CHUNK = 10_000


def name_from(path: Path) -> str:
    """A dataset name that is allowed, made from a file's or folder's name."""
    stem = path.stem if path.is_file() else path.resolve().name
    name = re.sub(r"[^\w .()+@-]+", "-", storable(stem))
    name = re.sub(r"\.{2,}", ".", re.sub(r"^[\W_]+", "", name))[:60].strip(" .-")
    try:
        return check_name(name)
    except OvertonError:
        return "dataset"


class Builder:
    """Collects rows; texts that cannot be stored as they are are repaired and listed in `problems`."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.prompts: dict[str, tuple[str, str | None]] = {}
        self.systems: dict[str, dict[str, Any]] = {}
        self.responses = 0
        self._samples: dict[tuple[str, str], set[int]] = {}
        self._rows: list[tuple[Any, ...]] = []
        self._chunks: list[pd.DataFrame] = []
        self._told: set[str] = set()
        self._nameless: set[str] = set()
        self._response_ids: set[str] = set()
        self._ids: dict[str, str] = {}

    def text(self, value: str, file: object, line: int | None) -> str:
        """`value`, with what Parquet cannot hold replaced (and counted as a problem)."""
        kept = storable(value)
        if kept != value:
            self.problems.add(file, line, "half a character (a lone surrogate) was replaced by U+FFFD.")
        return kept

    def prompt(
        self, prompt_id: str, text: str | None, *, kind: str | None = None, file: object = "", line: int | None = None
    ) -> str:
        """Make a prompt known; the first text that an id comes with is kept. Returns the id.

        A prompt of which no row tells the text (None) is called after its id.
        """
        prompt_id = storable(prompt_id)
        known = self.prompts.get(prompt_id)
        if known is None or (text is not None and prompt_id in self._nameless):
            shown = self.text(text, file, line) if text is not None else f"Prompt {prompt_id}"
            self.prompts[prompt_id] = (shown, kind and storable(kind))
            (self._nameless.add if text is None else self._nameless.discard)(prompt_id)
        elif text is not None and known[0] != storable(text) and prompt_id not in self._told:
            self._told.add(prompt_id)
            self.problems.add(
                file, line, f"the prompt {prompt_id!r} has another text than before; the first is kept."
            )
        return prompt_id

    def lacks(self, prompt_id: str) -> bool:
        """Whether the text of a prompt is not known yet."""
        return prompt_id not in self.prompts or prompt_id in self._nameless

    def id_of(self, text: str) -> str:
        """The id of the prompt with this text, for files that give prompts no ids: numbers from 0 on."""
        found = self._ids.get(text)
        if found is None:
            number = len(self._ids)
            while str(number) in self.prompts:
                number += 1
            found = self._ids[text] = str(number)
        return found

    def system(self, name: str, **columns: Any) -> str:
        """Make a system known (`role`, `model`, `strategy`, `parameters`); what it first came with is kept."""
        name = storable(name)
        if name not in self.systems:
            parameters = columns.get("parameters")
            if isinstance(parameters, Mapping):
                columns["parameters"] = json.dumps(parameters) if parameters else None
            texts = {key: storable(value) if isinstance(value, str) else value for key, value in columns.items()}
            self.systems[name] = {"system": name, "role": "other", **texts}
        return name

    def add(
        self,
        prompt_id: str,
        system: str,
        text: str,
        *,
        sample: int | None = None,
        response_id: str | None = None,
        finish_reason: str | None = None,
        token_count: Any = None,
        seed: Any = None,
        error: str | None = None,
        file: object = "",
        line: int | None = None,
    ) -> None:
        """One response of a known prompt and system. Without a sample index, or with one that is taken, the next."""
        taken = self._samples.setdefault((prompt_id, system), set())
        if sample is None or sample in taken or not 0 <= sample < 2**62:
            if sample is not None:
                self.problems.add(file, line, f"the sample index {sample} is taken or not allowed; the next is used.")
            sample = len(taken)
            while sample in taken:
                sample += 1
        taken.add(sample)
        text = self.text(text, file, line)
        error, finish_reason, response_id = (v and storable(v) for v in (error, finish_reason, response_id))
        if response_id in self._response_ids:
            self.problems.add(file, line, f"the response id {response_id!r} is taken; a new one is made.")
            response_id = None
        if response_id is not None:
            self._response_ids.add(response_id)
        row = (response_id, prompt_id, system, sample, text, finish_reason, token_count, seed, error)
        self._rows.append(row)
        self.responses += 1
        if len(self._rows) >= CHUNK:
            self._flush()

    def _flush(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else ([] for _ in RESPONSE_COLUMNS)
        numbers = ("sample", "token_count", "seed")
        # Column by column: a frame of objects turned into texts would keep all the Python texts alive.
        self._chunks.append(
            pd.DataFrame(
                {
                    name: pd.Series(list(column), dtype="object" if name in numbers else "str")
                    for name, column in zip(RESPONSE_COLUMNS, columns, strict=True)
                }
            )
        )
        self._rows = []

    def dataset(
        self, name: str, *, meta: Mapping[str, Any] | None = None, contexts: pd.DataFrame | None = None
    ) -> Dataset:
        """The dataset. Raises `OvertonError` where there is not a single response."""
        if self.responses == 0:
            first = next(iter(self.problems), None)
            raise OvertonError(f"Nothing in it could be read as a response{f' ({first})' if first else ''}.")
        self._flush()
        responses = self._chunks[0] if len(self._chunks) == 1 else pd.concat(self._chunks, ignore_index=True)
        self._chunks = []
        return Dataset.build(
            name,
            prompts=pd.DataFrame([(k, *v) for k, v in self.prompts.items()], columns=list(PROMPT_COLUMNS)),
            systems=pd.DataFrame(list(self.systems.values()), columns=list(SYSTEM_COLUMNS)),
            responses=responses,
            contexts=contexts,
            meta=meta,
        )
