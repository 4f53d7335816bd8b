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
    groups = frame.groupby(["text_key", "system"], sort=False)
    folded = groups.first().reset_index()
    folded["count"] = groups.size().to_numpy()
    folded["response_ids"] = [tuple(ids) for ids in groups["response_id"].agg(list)]
    return _apart(folded, {system: i for i, system in enumerate(dataset.roles())})[list(COLUMNS)]


def _apart(folded: pd.DataFrame, order: dict[str, int]) -> pd.DataFrame:
    place = folded[["x", "y"]].round(4).astype("str").agg(" ".join, axis=1)
    shared = place.duplicated(keep=False)
    for _, group in folded[shared].groupby(place[shared], sort=False):
        n = len(group)
        inside = group.assign(_order=group["system"].map(order)).sort_values("_order", kind="stable").index
        radius = APART / 2 / np.sin(np.pi / n)
        angles = np.pi - 2 * np.pi * np.arange(n) / n  # the first one to the left
        folded.loc[inside, "x"] += (radius * np.cos(angles)).astype(np.float32)
        folded.loc[inside, "y"] += (radius * np.sin(angles)).astype(np.float32)
    return folded
