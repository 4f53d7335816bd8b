"""From a complete journal to a dataset of the workspace, with the trace of every token."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from core.bulk.journal import sample_of
from core.bulk.planning import Address, Plan
from core.dataset import Dataset
from core.workspace import Workspace

_COLUMNS = ("text", "finish_reason", "token_count", "seed", "error")


def assemble(plan: Plan, rows: Iterable[Mapping[str, Any]], *, engine: str) -> tuple[Dataset, pd.DataFrame]:
    """The dataset and its token traces (see `traces`), in the order prompt, system, sample.

    Takes the first row without an error of each sample, else the last one with an error. Contexts that did not fit
    become errors.
    """
    wanted = {_address(cell, k): cell.key_of(k) for cell in plan.cells for k in range(cell.system.samples)}
    best: dict[Address, Mapping[str, Any]] = {}
    for row in rows:
        address = (str(row["system"]), str(row["prompt_id"]), int(row["sample"]))
        if wanted.get(address) == row["key"] and best.get(address, {"error": ""}).get("error") is not None:
            best[address] = row
    ordered = [
        best.get(_address(cell, k)) or _unsent(cell, k) for cell in plan.cells for k in range(cell.system.samples)
    ]
    names = ("prompt_id", "system", "sample", *_COLUMNS)
    responses = pd.DataFrame({name: [row.get(name) for row in ordered] for name in names}, dtype="object")
    responses["response_id"] = (
        responses["system"] + "/" + responses["prompt_id"] + "/" + responses["sample"].astype(str)
    )
    if responses["response_id"].duplicated().any():  # "a/b" + "c" and "a" + "b/c" meet here
        responses["response_id"] = [f"r{k}" for k in range(len(responses))]
    spec = plan.spec
    dataset = Dataset.build(
        spec.name,
        prompts=pd.DataFrame([{"prompt_id": p.prompt_id, "text": p.text, "kind": p.kind} for p in plan.prompts]),
        systems=_systems(plan, engine),
        responses=responses,
        contexts=pd.DataFrame(
            [
                {"prompt_id": cell.prompt.prompt_id, "system": cell.system.name, "text": cell.context}
                for cell in plan.cells
            ]
        ),
        meta={name: value for name in ("title", "about") if (value := getattr(spec, name))},
    )
    return dataset, traces(
        [{**row, "response_id": i} for row, i in zip(ordered, responses["response_id"], strict=True)]
    )


def _address(cell: Any, sample: int) -> Address:
    return cell.system.name, cell.prompt.prompt_id, sample


def _unsent(cell: Any, sample: int) -> dict[str, Any]:
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
        made.append(
            {
                "system": system.name,
                "role": system.role,
                "model": system.identity,
                "strategy": system.strategy,
                "parameters": json.dumps(parameters, ensure_ascii=False),
            }
        )
    return pd.DataFrame(made)


def traces(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Token traces of rows that have a `response_id`: token_ids (int32), logprobs and entropies (float32) of each.

    Rows without a trace are left out; a field that the generator does not know is an empty list.
    """
    found = []
    for row in rows:
        trace = sample_of(row).tokens if row.get("tokens") else None
        if trace is not None:
            found.append(
                {
                    "response_id": row["response_id"],
                    "token_ids": np.asarray(trace.ids, dtype=np.int32),
                    "logprobs": np.asarray(trace.logprobs, dtype=np.float32),
                    "entropies": np.asarray(trace.entropies, dtype=np.float32),
                }
            )
    return pd.DataFrame(found, columns=["response_id", "token_ids", "logprobs", "entropies"])


def save(workspace: Workspace, dataset: Dataset, tokens: pd.DataFrame) -> tuple[str, bool]:
    """Put a dataset into the workspace: its name there, and whether the same content was there already."""
    from dataclasses import replace

    same = workspace.same_content(dataset)
    if same is not None:
        return same, True
    named = replace(dataset, name=workspace.free_name(dataset.name))
    workspace.save(named)
    return named.name, False
