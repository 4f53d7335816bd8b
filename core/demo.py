"""The demonstration dataset: which systems, which contexts, which seeds, and how it is generated again."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from core import traces
from core.columns import storable
from core.dataset import Dataset
from core.generation.base import Generator, Sampling, TokenTrace
from core.generation.journal import Journal
from core.prompting import STOP, example_sets, query_answer
from core.workspace import SHIPPED

NAME = "demonstration"
BASE_MODEL, ALIGNED_MODEL = "gemma-3-270m", "SmolLM2-135M-Instruct"
SAMPLES = 8
EXAMPLES = "plain"
HINTS = SHIPPED / "demo_hints.toml"

# (done, total) finished responses.
OnDone = Callable[[int, int], None]


@dataclass(frozen=True)
class System:
    """One system of the demonstration."""

    name: str
    role: str
    model: str
    strategy: str
    sampling: Sampling


_BASE = Sampling(temperature=0.7, max_new_tokens=160, stop=STOP)
ALIGNED = System("aligned", "aligned", ALIGNED_MODEL, "chat", Sampling(temperature=0.7, max_new_tokens=160))
ZERO_SHOT = System("base", "base", BASE_MODEL, "zero-shot", _BASE)
WITH_EXAMPLES = System("base + examples", "in-context", BASE_MODEL, "fixed examples", _BASE)
WITH_HINT = System("base + examples + hint", "in-context", BASE_MODEL, "fixed examples and hint", _BASE)
SYSTEMS = (ZERO_SHOT, ALIGNED, WITH_EXAMPLES, WITH_HINT)


def prompts(file: Path = SHIPPED / "prompts.toml") -> pd.DataFrame:
    """The prompts of the demonstration: prompt_id, text, kind (`open` or `contested`)."""
    loaded = tomllib.loads(file.read_text(encoding="utf-8"))["prompt"]
    return pd.DataFrame([{"prompt_id": p["id"], "text": p["text"], "kind": p["kind"]} for p in loaded])


def seed_of(system: str, prompt_id: str, sample: int) -> int:
    """The seed of one sample: a 32-bit number that depends on nothing but its name."""
    digest = hashlib.sha256(f"{system}|{prompt_id}|{sample}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def source_key(text: str) -> str:
    """Short key of the response that a hint summarises."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def context_of(system: System, prompt: str, hint: str, aligned: Generator) -> str:
    """The exact text that is sent for one system and prompt."""
    if system is ALIGNED:
        return aligned.chat_context(prompt)
    if system is ZERO_SHOT:
        return query_answer(prompt)
    examples = example_sets()[EXAMPLES]
    return query_answer(
        prompt,
        examples=examples.examples,
        instruction=examples.instruction,
        hint=hint if system is WITH_HINT else "",
    )


def hint_for(prompt_id: str, answer: str, written: Mapping[str, Mapping[str, str]], aligned: Generator) -> str:
    """The hint that summarises `answer`: the one written by hand for exactly this text, else the model's own."""
    stored = written.get(prompt_id, {})
    if stored.get("source") == source_key(answer):
        return stored["hint"]
    request = f"Summarise the following text in two short sentences. Do not quote it.\n\n{answer}"
    sampling = Sampling(temperature=0.0, max_new_tokens=80)
    return next(iter(aligned.generate(aligned.chat_context(request), [0], sampling))).text.strip()


def written_hints(file: Path = HINTS) -> dict[str, dict[str, str]]:
    """Hints written by hand: by prompt id, `hint` and the `source` key of the response that it summarises."""
    return tomllib.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def generate(
    journal: Journal,
    generators: Mapping[str, Generator],
    *,
    systems: Sequence[System] = SYSTEMS,
    prompt_table: pd.DataFrame | None = None,
    samples: int = SAMPLES,
    progress: OnDone | None = None,
) -> None:
    """Generate what the journal lacks, the aligned system first since hints summarise its sample 0."""
    table = prompts() if prompt_table is None else prompt_table
    aligned = generators[ALIGNED_MODEL]
    written = written_hints()
    rows = {(r["system"], r["prompt_id"], r["sample"]): r for r in journal}
    total = len(systems) * len(table) * samples
    for system in sorted(systems, key=lambda s: s is not ALIGNED):
        for prompt_id, text in zip(table["prompt_id"], table["text"], strict=True):
            missing = [k for k in range(samples) if (system.name, prompt_id, k) not in rows]
            hint = ""
            if system is WITH_HINT and missing:
                hint = hint_for(prompt_id, rows[ALIGNED.name, prompt_id, 0]["text"], written, aligned)
            context = context_of(system, text, hint, aligned)
            seeds = [seed_of(system.name, prompt_id, k) for k in missing]
            made = generators[system.model].generate(context, seeds, system.sampling) if missing else ()
            for sample in made:
                key = (system.name, prompt_id, missing[sample.index])
                rows[key] = {
                    "system": key[0],
                    "prompt_id": key[1],
                    "sample": key[2],
                    "text": storable(sample.text),
                    "finish_reason": sample.finish_reason,
                    "token_count": sample.token_count,
                    "seed": sample.seed,
                    "context": context,
                    "tokens": None if sample.tokens is None else sample.tokens.as_dict(),
                }
                journal.append(rows[key])
                if progress is not None:
                    progress(len(rows), total)


def assemble(
    journal: Journal, generators: Mapping[str, Generator], *, prompt_table: pd.DataFrame | None = None
) -> Dataset:
    """The dataset from a complete journal, in a fixed order."""
    table = prompts() if prompt_table is None else prompt_table
    frame = pd.DataFrame(list(journal)).drop_duplicates(["system", "prompt_id", "sample"])
    order = {name: k for k, name in enumerate(table["prompt_id"])}
    place = {system.name: k for k, system in enumerate(SYSTEMS)}
    frame = frame.assign(_p=frame["prompt_id"].map(order), _s=frame["system"].map(place))
    frame = frame.sort_values(["_p", "_s", "sample"], ignore_index=True)
    systems = [
        {
            "system": s.name,
            "role": s.role,
            "model": s.model,
            "strategy": s.strategy,
            "parameters": json.dumps(_parameters(s, generators[s.model]), ensure_ascii=False),
        }
        for s in SYSTEMS
        if s.name in set(frame["system"])
    ]
    contexts = frame.drop_duplicates(["prompt_id", "system"])[["prompt_id", "system", "context"]]
    return Dataset.build(
        NAME,
        prompts=table,
        systems=pd.DataFrame(systems),
        responses=frame.drop(columns=["_p", "_s", "context", "tokens"]),
        contexts=contexts.rename(columns={"context": "text"}),
        meta={
            "title": "Demonstration",
            "about": "Generated on a laptop-class CPU by two small open models; prompts and examples are ours.",
        },
    )


def token_traces(journal: Journal, dataset: Dataset) -> pd.DataFrame:
    """The token traces of an assembled dataset, in the order of its responses."""
    made = {(r["prompt_id"], r["system"], r["sample"]): TokenTrace.from_dict(r.get("tokens")) for r in journal}
    rows = dataset.responses
    places = zip(rows["prompt_id"], rows["system"], rows["sample"], strict=True)
    return traces.frame_of(zip(rows["response_id"], (made[place] for place in places), strict=True))


def _parameters(system: System, generator: Generator) -> dict[str, Any]:
    shared = {**system.sampling.as_dict(), "revision": generator.revision}
    return shared if system.role != "in-context" else {**shared, "examples": EXAMPLES}
