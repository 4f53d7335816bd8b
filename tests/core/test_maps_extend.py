"""A derived dataset is drawn on the map of the dataset that it came from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from core import maps
from core.dataset import Dataset
from core.vectors import HashEncoder

ENCODER = HashEncoder(64)
TEXTS = [
    f"{word} {k}"
    for k, word in enumerate(["sea salt boat", "sea wave boat", "bread oven crust", "bread loaf oven"] * 3)
]


def dataset_of(texts: list[str]) -> Dataset:
    rows = pd.DataFrame([{"prompt_id": "p", "system": "s", "sample": k, "text": t} for k, t in enumerate(texts)])
    return Dataset.build(
        "d",
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Well?"}]),
        systems=pd.DataFrame([{"system": "s", "role": "base"}]),
        responses=rows,
    )


def derived(texts: list[str]) -> Dataset:
    rows = pd.DataFrame([{"prompt_id": "p", "system": "new", "sample": k, "text": t} for k, t in enumerate(texts)])
    return dataset_of(TEXTS).with_system("d2", {"system": "new", "role": "in-context"}, rows)


def test_old_responses_stay_and_new_ones_are_placed() -> None:
    before = dataset_of(TEXTS)
    drawn = maps.build(before, ENCODER.encode(TEXTS), prompt_id="p", method="quick")
    new = [TEXTS[0], "bread oven crust"]
    after = derived(new)
    made = maps.extend(drawn, after, ENCODER.encode(TEXTS + new), prompt_id="p")
    assert made is not None
    assert np.array_equal(made.xy[: len(TEXTS)], drawn.xy)
    assert np.allclose(made.xy[len(TEXTS)], drawn.xy[0]), "a copy falls on its original"
    sea, bread = drawn.xy[[0, 1, 4, 5]].mean(axis=0), drawn.xy[[2, 3, 6, 7]].mean(axis=0)
    assert np.linalg.norm(made.xy[-1] - bread) < np.linalg.norm(made.xy[-1] - sea)
    assert made.note is not None and made.note.startswith("2 later responses")
    assert len(maps.dots(made, after)) == len(TEXTS) + 2


def test_another_dataset_gets_no_map() -> None:
    drawn = maps.build(dataset_of(TEXTS), ENCODER.encode(TEXTS), prompt_id="p", method="quick")
    fewer = dataset_of(TEXTS[:5])
    assert maps.extend(drawn, fewer, ENCODER.encode(TEXTS[:5]), prompt_id="p") is None


def test_nothing_new_is_the_same_map() -> None:
    before = dataset_of(TEXTS)
    drawn = maps.build(before, ENCODER.encode(TEXTS), prompt_id="p", method="quick")
    made = maps.extend(drawn, before, ENCODER.encode(TEXTS), prompt_id="p")
    assert made is not None and np.array_equal(made.xy, drawn.xy) and made.note == drawn.note
