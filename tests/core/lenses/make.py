"""Small datasets from texts, and the real one where it is on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from core import lenses
from core.dataset import Dataset
from core.readers import read


def dataset_of(groups: Mapping[tuple[str, str], Sequence[str]], systems: Sequence[str] = ()) -> Dataset:
    """A dataset of the texts by (prompt, system); `systems` names some that may have none."""
    names = list(dict.fromkeys([*systems, *(system for _, system in groups)]))
    prompts = list(dict.fromkeys(prompt for prompt, _ in groups))
    columns = ["prompt_id", "system", "sample", "text", "finish_reason", "error"]
    rows = [(p, s, k, text, "stop", None) for (p, s), texts in groups.items() for k, text in enumerate(texts)]
    return Dataset.build(
        "made",
        prompts=pd.DataFrame({"prompt_id": prompts, "text": prompts}),
        systems=pd.DataFrame({"system": names, "role": "other"}),
        responses=pd.DataFrame(rows, columns=columns),
    )


def value(lens: str, texts: Sequence[str], vectors: Sequence[Sequence[float]] | None = None) -> tuple[float, int]:
    """Value and n of one lens for one distribution."""
    given = None if vectors is None else np.array(vectors, dtype=np.float32)
    row = lenses.measure(dataset_of({("p", "s"): texts} if texts else {("p", "t"): [""]}, ["s"]), [lens], given)
    row = row[row["system"] == "s"].iloc[0]
    return float(row["value"]), int(row["n"])


@cache
def release_dataset(folder: Path) -> Dataset:
    """LIMA-OE of the authors' release."""
    return read(folder / "LIMA-OE")[0][0]
