"""A prompt of one's own: the base and the aligned model are sampled, so that it has both distributions too."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import streamlit as st

from components import fetching, preparing, state
from components.lab_run import progress_line
from components.theme import styles
from core import demo, lab, scores, vectors
from core.dataset import Dataset
from core.generation.base import Sampling
from core.prompting import STOP, query_answer

_RUNS = "lab_references"
_SAMPLES, _TOKENS = 8, 128


def with_references(loaded: state.Loaded, prompt_id: str, prompt: str, models: dict[str, str]) -> state.Loaded:
    """For a prompt that the dataset does not have: what both models say to it, once they were asked.

    `models` names the base and the aligned model. Until then `loaded` is returned, with what it takes shown.
    """
    if prompt_id in set(loaded.dataset.prompts["prompt_id"]):
        return loaded
    runs = st.session_state.setdefault(_RUNS, {}).get(prompt_id)
    if runs is None:
        _offer(prompt_id, prompt, models)
        return loaded
    if not all(_complete(run) for run in runs.values()):
        st.fragment(_growing, run_every=0.7)(runs)
        return loaded
    return as_loaded(prompt_id, prompt, runs)


def _offer(prompt_id: str, prompt: str, models: dict[str, str]) -> None:
    wanted = fetching.missing(*models.values(), vectors.DEFAULT_ID)
    if wanted:
        fetching.offer(wanted, "To see what the base and the aligned model say to this prompt:")
        return
    st.button(
        f"Ask the base and the aligned model too ({_SAMPLES} samples each)",
        icon=":material/groups:",
        help=f"Samples {models['base']} (zero-shot) and {models['aligned']} (chat), to compare with.",
        on_click=_begin,
        args=(prompt_id, prompt, models),
    )


def _begin(prompt_id: str, prompt: str, models: dict[str, str]) -> None:
    shared = {"encoder": preparing.encoder(), "owner": state.visitor()}
    st.session_state[_RUNS][prompt_id] = {
        role: lab.start_run(state.workspace(), _spec(role, prompt_id, prompt, model), **shared)
        for role, model in models.items()
    }


def _spec(role: str, prompt_id: str, prompt: str, model: str) -> lab.Spec:
    return lab.Spec(
        prompt_id=prompt_id,
        prompt=prompt,
        context=query_answer(prompt) if role == "base" else "",
        model=model,
        strategy="zero-shot" if role == "base" else "chat",
        seeds=tuple(demo.seed_of(role, prompt_id, k) for k in range(_SAMPLES)),
        sampling=Sampling(max_new_tokens=_TOKENS, stop=STOP if role == "base" else ()),
    )


def _complete(run: lab.Run) -> bool:
    """Whether a run is over and its samples have their vectors."""
    texts = [s for s in run.finished() if s.text.strip()]
    return run.job is not None and run.job.over and (run.encoding_failed or len(run.vectors) >= len(texts))


def _growing(runs: dict[str, lab.Run]) -> None:
    if all(_complete(run) for run in runs.values()):
        st.rerun()
    for role, run in runs.items():
        st.caption(f"{role} · {run.spec.model}")
        progress_line(run)


def as_loaded(prompt_id: str, prompt: str, runs: dict[str, lab.Run]) -> state.Loaded:
    """The runs as a small dataset with vectors and scores, for the same map, numbers and texts as any other."""
    rows = [
        {
            "prompt_id": prompt_id,
            "system": role,
            "sample": sample.index,
            "text": sample.text,
            "finish_reason": sample.finish_reason,
        }
        for role, run in runs.items()
        for sample in run.finished()
        if sample.finish_reason in ("stop", "length")
    ]
    dataset = Dataset.build(
        "lab",
        prompts=pd.DataFrame([{"prompt_id": prompt_id, "text": prompt}]),
        systems=pd.DataFrame(
            [
                {"system": role, "role": role, "model": run.spec.model, "parameters": json.dumps({})}
                for role, run in runs.items()
            ]
        ),
        responses=pd.DataFrame(rows, columns=["prompt_id", "system", "sample", "text", "finish_reason"]),
    )
    known = [runs[row["system"]].vectors.get(row["sample"]) for row in rows]
    width = next((len(vector) for vector in known if vector is not None), 0)
    empty = np.full(width, np.nan, dtype=np.float32)
    matrix = np.stack([empty if v is None else v for v in known]) if rows else np.zeros((0, 0), dtype=np.float32)
    ids = dataset.responses["response_id"]
    texts = dict(zip(ids, dataset.responses["text"], strict=True))
    key = " ".join(run.run_id for run in runs.values())
    return state.Loaded(
        dataset, matrix, styles(dataset.roles()), texts, scores.compute(dataset, matrix), f"lab {prompt_id} {key}"
    )
