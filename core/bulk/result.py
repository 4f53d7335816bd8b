"""From a complete journal to a dataset of the workspace, with the trace of every token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from core.bulk.planning import Address, Cell, Plan, address_of
from core.dataset import Dataset
from core.traces import COLUMNS, compact
from core.workspace import Workspace

_FIELDS = ("prompt_id", "system", "sample", "text", "finish_reason", "token_count", "seed", "error")


def assemble(plan: Plan, rows: Iterable[Mapping[str, Any]], *, engine: str) -> tuple[Dataset, pd.DataFrame]:
    """The dataset and its token traces (see `traces`), in the order prompt, system, sample.

    Takes the first row without an error of each sample, else the last one with an error. Contexts that did not fit
    become errors.
    """
    found = _best(plan, rows)
    ordered = [
        found.get((*cell.place, k)) or _unsent(cell, k) for cell in plan.cells for k in range(cell.system.samples)
    ]
    responses = pd.DataFrame({name: [row.get(name) for row in ordered] for name in _FIELDS}, dtype="object")
    contexts = [(cell.prompt.prompt_id, cell.system.name, cell.context) for cell in plan.cells]
    dataset = Dataset.build(
        plan.spec.name,
        prompts=pd.DataFrame([{"prompt_id": p.prompt_id, "text": p.text, "kind": p.kind} for p in plan.prompts]),
        systems=_systems(plan, engine),
        responses=responses,
        contexts=pd.DataFrame(contexts, columns=["prompt_id", "system", "text"]),
        meta={name: value for name in ("title", "about") if (value := getattr(plan.spec, name))},
    )
    ids = dataset.responses["response_id"]
    return dataset, traces({**row, "response_id": i} for row, i in zip(ordered, ids, strict=True))


def _best(plan: Plan, rows: Iterable[Mapping[str, Any]]) -> dict[Address, Mapping[str, Any]]:
    """The row that counts for each sample, its trace in a compact form."""
    wanted = {(*cell.place, k): cell.key_of(k) for cell in plan.cells for k in range(cell.system.samples)}
    best: dict[Address, Mapping[str, Any]] = {}
    for row in rows:
        address = address_of(row)
        known = best.get(address)
        if wanted.get(address) == row["key"] and (known is None or known.get("error") is not None):
            best[address] = {**row, "tokens": _compact(row.get("tokens"))}
    return best


def _compact(trace: Any) -> dict[str, Any] | None:
    if not isinstance(trace, Mapping):
        return None
    return compact(trace)


def _unsent(cell: Cell, sample: int) -> dict[str, Any]:
    """The row of a sample that was never asked for, since its context does not fit."""
    place = {"system": cell.system.name, "prompt_id": cell.prompt.prompt_id, "sample": sample}
    error = cell.too_long or "It was not generated."
    return {**place, "text": "", "finish_reason": "error", "seed": cell.seed_of(sample), "error": error}


def _systems(plan: Plan, engine: str) -> pd.DataFrame:
    revisions = {cell.system.name: cell.revision for cell in plan.cells}
    made = []
    for system in plan.spec.systems:
        parameters = {
            **system.sampling.as_dict(),
            "revision": revisions.get(system.name, ""),
            "spec": plan.spec.name,
            "seed": plan.spec.seed,
            "engine": engine,
        }
        if system.examples is not None:
            parameters["examples"] = system.examples_name
        named = {"system": system.name, "role": system.role, "model": system.identity, "strategy": system.strategy}
        made.append({**named, "parameters": json.dumps(parameters, ensure_ascii=False)})
    return pd.DataFrame(made)


def traces(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Token traces of rows that have a `response_id`: see `core.traces`.

    `tokens` of a row holds the trace as `core.generation.base.TokenTrace.as_dict` gives it, or by column already.
    Rows without a trace are left out; a field that the generator does not know is an empty array.
    """
    found = []
    for row in rows:
        trace = row.get("tokens")
        if trace is not None:
            found.append(
                {"response_id": row["response_id"], **(trace if "token_ids" in trace else _compact(trace) or {})}
            )
    return pd.DataFrame(found, columns=list(COLUMNS))


def save(workspace: Workspace, dataset: Dataset, tokens: pd.DataFrame) -> tuple[str, bool]:
    """Put a dataset into the workspace: its name there, and whether the same content was there already."""
    same = workspace.same_content(dataset)
    if same is not None:
        return same, True
    named = replace(dataset, name=workspace.free_name(dataset.name))
    workspace.save(named, tokens=tokens)
    return named.name, False
