"""Lens values of a dataset, computed once: shipped beside the dataset, else kept in the workspace."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import lenses, similarity
from core.dataset import Dataset
from core.workspace import Workspace, atomic_file

Vectors = NDArray[np.float32]

# Raise this when a lens changes what it computes: stored values of other versions are not read.
VERSION = 1
FILE = "scores.parquet"


def representative(dataset: Dataset, *roles: str) -> str | None:
    """The system that stands for a role: the one with the most usable responses, the first among equals."""
    names = dataset.systems_with_role(*roles)
    if not names:
        return None
    counts = dataset.usable_responses["system"].value_counts()
    return max(names, key=lambda name: int(counts.get(name, 0)))


def compute(dataset: Dataset, vectors: Vectors | None) -> pd.DataFrame:
    """All lenses, and the similarity of every system to the aligned one, by prompt and system."""
    parts = [lenses.measure(dataset, vectors=vectors)]
    teacher = representative(dataset, "aligned")
    if teacher is not None:
        parts.append(similarity.over_dataset(dataset, teacher, vectors))
    return pd.concat(parts, ignore_index=True)


def scores(dataset: Dataset, workspace: Workspace, vectors: Vectors | None) -> pd.DataFrame:
    """Columns prompt_id, system, lens, value, n: every lens, and `core.similarity.MEASURES` to the aligned system.

    `vectors` is aligned with `dataset.responses`; without it the measures that need vectors are left out.
    """
    # Other roles may mean another aligned system than the one that the shipped values compare with.
    if workspace.is_shipped(dataset.name) and not workspace.roles_changed(dataset.name):
        shipped = workspace.path(dataset.name) / FILE
        if shipped.is_file():
            return pd.read_parquet(shipped)
    kind = "lexical" if vectors is None else "all"
    teacher = hashlib.sha256(str(representative(dataset, "aligned")).encode()).hexdigest()[:8]
    stored = workspace.root / "scores" / f"{dataset.content_key()}-{teacher}-{kind}-{VERSION}.parquet"
    if stored.is_file():
        try:
            return pd.read_parquet(stored)
        except Exception:  # a damaged file is only a cache: compute it again
            stored.unlink(missing_ok=True)
    computed = compute(dataset, vectors)
    # A full disk must not keep the user from seeing the values.
    with contextlib.suppress(OSError), atomic_file(stored) as part:
        computed.to_parquet(part, index=False, compression="zstd")
    return computed


def write_shipped(scored: pd.DataFrame, folder: Path) -> None:
    """Store values beside a dataset that is shipped."""
    with atomic_file(folder / FILE) as part:
        scored.to_parquet(part, index=False, compression="zstd")
