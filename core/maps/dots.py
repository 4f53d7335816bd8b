"""What a figure draws: one dot a text and system, equal texts folded and counted, none hidden by another."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core.dataset import Dataset
from core.maps.build import Map, rows

APART = 0.06  # distance of dots that would otherwise lie on each other, in the unit of the map

COLUMNS = ("x", "y", "system", "count", "response_id", "response_ids", "text_key", "prompt_id")


def dots(drawn: Map, dataset: Dataset) -> pd.DataFrame:
    """One row a (text, system), in the order of the responses.

    x, y, system, count (responses that are folded in the dot), response_id (the first of them), response_ids
    (all, a tuple), text_key, prompt_id (of the first). Dots that share a place are moved apart a little, in the
    order of the systems. Raises `OvertonError` where the map belongs to another dataset.
    """
    if len(drawn) == 0:
        return pd.DataFrame(columns=list(COLUMNS))
    here = dataset.responses.iloc[rows(drawn, dataset)]
    frame = pd.DataFrame(
        {
            "x": drawn.xy[:, 0],
            "y": drawn.xy[:, 1],
            "system": here["system"].to_numpy(),
            "response_id": drawn.response_ids,
            "text_key": drawn.text_keys,
            "prompt_id": here["prompt_id"].to_numpy(),
        }
    )
    group = frame.groupby(["text_key", "system"], sort=False).ngroup().to_numpy()
    folded = frame[~frame.duplicated(["text_key", "system"])].reset_index(drop=True)
    folded["count"] = np.bincount(group)
    ids: list[list[str]] = [[] for _ in range(len(folded))]
    for number, response_id in zip(group.tolist(), drawn.response_ids.tolist(), strict=True):
        ids[number].append(response_id)
    folded["response_ids"] = [tuple(some) for some in ids]
    return _apart(folded, {system: i for i, system in enumerate(dataset.roles())})[list(COLUMNS)]


def _apart(folded: pd.DataFrame, order: dict[str, int]) -> pd.DataFrame:
    place = (folded[["x", "y"]] * 1e4).round().astype("int64")
    shared = place.duplicated(keep=False)
    for _, group in folded[shared].groupby([place["x"][shared], place["y"][shared]], sort=False):
        n = len(group)
        inside = group.assign(_order=group["system"].map(order)).sort_values("_order", kind="stable").index
        radius = APART / 2 / np.sin(np.pi / n)
        angles = np.pi - 2 * np.pi * np.arange(n) / n  # the first one to the left
        folded.loc[inside, "x"] += (radius * np.cos(angles)).astype(np.float32)
        folded.loc[inside, "y"] += (radius * np.sin(angles)).astype(np.float32)
    return folded
