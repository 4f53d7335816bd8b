"""The responses of other systems that are nearest to one response."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core.dataset import Dataset
from core.errors import OvertonError
from core.vectors import keys_of
from core.vectors.encoders import unit

COLUMNS = ("response_id", "system", "similarity", "count", "text_key")


def nearest(
    vectors: NDArray[Any],
    dataset: Dataset,
    response_id: str,
    *,
    systems: Collection[str] | None = None,
    k: int = 3,
    prompt_id: str | None = None,
) -> pd.DataFrame:
    """The k texts of other systems that are most like one response, by cosine, nearest first.

    Columns: response_id (the first with that text), system, similarity (-1 to 1), count (responses of that
    system with that text), text_key. `vectors` is aligned with `dataset.responses`. Looks at the prompt of the
    response, or at `prompt_id`, and at the named `systems` without its own. No rows where the response has no
    vector or nothing else is there. Raises `OvertonError` for an unknown response or prompt.
    """
    responses = dataset.responses
    hit = np.flatnonzero((responses["response_id"] == response_id).to_numpy(dtype=bool))
    if len(hit) == 0:
        raise OvertonError(f"There is no response {response_id!r} in {dataset.name!r}.")
    own = int(hit[0])
    if prompt_id is not None:
        dataset.prompt_text(prompt_id)
    prompt, system = responses["prompt_id"].iloc[own], responses["system"].iloc[own]
    wanted = dataset.usable & (responses["prompt_id"] == (prompt_id or prompt)) & (responses["system"] != system)
    if systems is not None:
        wanted &= responses["system"].isin(list(systems))
    positions = np.flatnonzero(wanted.to_numpy(dtype=bool))
    query = unit(np.asarray(vectors)[[own]])[0]
    others = unit(np.asarray(vectors)[positions])
    good = np.isfinite(others).all(axis=1)
    if not np.isfinite(query).all() or not good.any():
        return pd.DataFrame(columns=list(COLUMNS))
    some = responses.iloc[positions[good]]
    frame = pd.DataFrame(
        {
            "response_id": some["response_id"].to_numpy(),
            "system": some["system"].to_numpy(),
            "similarity": np.clip((others[good] @ query).astype(np.float64), -1, 1),
            "text_key": keys_of(some["text"]),
        }
    )
    groups = frame.groupby(["text_key", "system"], sort=False)
    folded = groups.first().reset_index()
    folded["count"] = groups.size().to_numpy()
    same = folded["text_key"] == keys_of(responses["text"].iloc[[own]])[0]
    folded["similarity"] = folded["similarity"].mask(same, 1.0)  # not 0.9999999
    ordered = folded.sort_values("similarity", ascending=False, kind="stable").head(k)
    return ordered[list(COLUMNS)].reset_index(drop=True)
