"""Maps: few points, equal texts, nothing to draw, the same picture twice, new points, and maps on disk."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core import maps
from core.dataset import Dataset
from core.errors import OvertonError
from core.vectors import HashEncoder
from core.workspace import Workspace, write_dataset

ROOT = Path(__file__).resolve().parent.parent.parent
ENCODER = HashEncoder(64)


def dataset_of(texts: list[str], systems: int = 2, name: str = "texts") -> Dataset:
    return Dataset.build(
        name,
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Well?"}, {"prompt_id": "other", "text": "And?"}]),
        systems=pd.DataFrame([{"system": f"s{i}", "role": "other"} for i in range(systems)]),
        responses=pd.DataFrame(
            [
                {"prompt_id": "p", "system": f"s{i % systems}", "sample": i, "text": text}
                for i, text in enumerate(texts)
            ],
            columns=["prompt_id", "system", "sample", "text"],
        ),
    )


def drawn(texts: list[str], method: str = "quick", systems: int = 2) -> tuple[Dataset, np.ndarray, maps.Map]:
    dataset = dataset_of(texts, systems)
    vectors = ENCODER.encode(texts)
    return dataset, vectors, maps.build(dataset, vectors, prompt_id="p", method=method)


def topics(n: int) -> list[str]:
    draw = np.random.default_rng(1)
    words = (["sea", "salt", "boat", "wave", "sail", "harbour"], ["bread", "oven", "flour", "yeast", "crust", "loaf"])
    return [" ".join([*draw.permutation(words[i % 2])[:4], f"n{i}"]) for i in range(n)]


def unit_spread(xy: np.ndarray) -> bool:
    centre = np.abs(xy.mean(axis=0)).max()
    return bool(centre < 1e-4 and abs(np.sqrt((xy**2).sum(axis=1).mean()) - 1) < 1e-4)


# -- few points -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["umap", "quick"])
def test_nothing_to_draw_is_a_sentence(method):
    for texts in ([], ["", " "]):
        dataset, _, picture = drawn(texts, method)
        assert (len(picture), picture.method, picture.xy.shape) == (0, "empty", (0, 2))
        assert picture.note == "There is no response to draw."
        assert len(picture.left_out) == len(texts)
        assert maps.dots(picture, dataset).empty
        assert {"x", "y", "system", "count"} <= set(maps.dots(picture, dataset).columns)


@pytest.mark.parametrize("method", ["umap", "quick"])
def test_one_response_is_the_centre(method):
    _, _, picture = drawn(["Hello."], method)
    assert picture.xy.tolist() == [[0, 0]]
    assert (picture.method, picture.note) == ("single", "There is one response: one dot.")


@pytest.mark.parametrize("n", [2, 3, 4, 5, 7])
def test_few_texts_are_laid_out_by_distance_with_a_note(n):
    _, vectors, picture = drawn(topics(n), "umap")
    assert picture.method == "simple"
    assert picture.note == f"There are only {n} different texts: they are laid out by their distances alone."
    assert picture.xy.dtype == np.float32
    assert unit_spread(picture.xy)
    assert len({tuple(xy) for xy in picture.xy.round(3).tolist()}) == n
    if n in (2, 3):  # two or three points keep their distances exactly
        apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
        shown = np.linalg.norm(picture.xy[:, None] - picture.xy[None], axis=2)
        off = ~np.eye(n, dtype=bool)
        assert np.allclose(shown[off] / apart[off], (shown[off] / apart[off])[0], rtol=1e-3)


def test_different_texts_with_one_vector_can_all_be_seen():
    _, _, picture = drawn(["Yes", "yes", "YES"])
    assert np.isfinite(picture.xy).all()
    assert len({tuple(xy) for xy in picture.xy.round(3).tolist()}) == 3


# -- equal texts ------------------------------------------------------------------------------------------------


def test_fifty_equal_texts_are_one_dot_a_system_with_a_count():
    dataset, _, picture = drawn(["Same."] * 50)
    assert picture.note == "All 50 responses are the same text: one dot."
    assert len(picture) == 50
    assert np.unique(picture.xy, axis=0).shape == (1, 2)
    dots = maps.dots(picture, dataset)
    assert dots["count"].tolist() == [25, 25]
    assert sorted(sum(dots["response_ids"], ())) == sorted(dataset.responses["response_id"])
    # both stay visible, close together
    gap = np.hypot(*(dots[["x", "y"]].iloc[0] - dots[["x", "y"]].iloc[1]))
    assert 0.03 < gap < 0.2
    assert dots["x"][0] < dots["x"][1]


def test_forty_copies_and_ten_others():
    texts = ["Same."] * 40 + topics(10)
    dataset, _, picture = drawn(texts, systems=1)
    assert picture.method == "pca"
    assert len(picture) == 50
    assert len(np.unique(picture.xy[:40], axis=0)) == 1
    dots = maps.dots(picture, dataset)
    assert len(dots) == 11
    assert dots["count"].sum() == 50
    assert dots["count"].tolist() == [40] + [1] * 10
    assert dots["response_id"][0] == "s0/p/0"
    alone = maps.build(dataset_of(texts[39:], 1), ENCODER.encode(texts[39:]), method="quick")
    assert np.allclose(alone.xy, picture.xy[39:], atol=1e-4)  # copies carry no weight in the layout


def test_dots_of_many_systems_at_one_place_keep_their_distance():
    dataset, _, picture = drawn(["Same."] * 6 + ["Other thing."] * 6, systems=6)
    dots = maps.dots(picture, dataset)
    assert len(dots) == 12
    xy = dots[["x", "y"]].to_numpy(float)
    gaps = np.linalg.norm(xy[:, None] - xy[None], axis=2)[~np.eye(12, dtype=bool)]
    assert gaps.min() > 0.05


# -- what is left out -------------------------------------------------------------------------------------------


def test_nan_zero_empty_and_errors_are_left_out_and_listed(small):
    vectors = ENCODER.encode(list(small.responses["text"]))
    vectors[0] = np.nan
    vectors[1] = 0
    picture = maps.build(small, vectors, method="quick")
    assert picture.left_out == ("plain/tea/0", "plain/tea/1", "plain/bike/1", "plain/bike/3")
    assert len(picture) == 9
    assert np.isfinite(picture.xy).all()
    assert not set(picture.left_out) & set(picture.response_ids)


def test_vectors_that_do_not_fit_are_one_sentence(small):
    with pytest.raises(OvertonError, match="5 vectors for 13 responses"):
        maps.build(small, np.ones((5, 4)))
    with pytest.raises(OvertonError, match="no prompt 'x'"):
        maps.build(small, np.ones((13, 4)), prompt_id="x")
    picture = maps.build(small, ENCODER.encode(list(small.responses["text"])), method="quick")
    with pytest.raises(OvertonError, match="another dataset"):
        maps.dots(picture, dataset_of(["a"]))


# -- new points on an old map -----------------------------------------------------------------------------------


def test_a_copy_falls_on_the_old_point_and_nothing_moves():
    texts = topics(20)
    dataset, vectors, picture = drawn(texts)
    before = picture.xy.copy()
    old = vectors[maps.rows(picture, dataset)]
    new = np.vstack([vectors[7], ENCODER.encode(["sea salt boat wave sail", "oven flour yeast loaf"])])
    places = maps.place(picture, old, new)
    assert places.dtype == np.float32
    assert np.array_equal(places[0], picture.xy[7])
    assert np.array_equal(picture.xy, before)
    sea, bread = picture.xy[::2].mean(axis=0), picture.xy[1::2].mean(axis=0)
    assert np.linalg.norm(places[1] - sea) < np.linalg.norm(places[1] - bread)
    assert np.linalg.norm(places[2] - bread) < np.linalg.norm(places[2] - sea)
    assert np.array_equal(maps.place(picture, old, new[1:]), places[1:])  # each for itself
    half = maps.place(picture, old, old.astype(np.float16))
    assert np.array_equal(half, picture.xy)  # a stored copy is a copy


def test_new_points_without_a_vector_or_a_map():
    _, vectors, picture = drawn(topics(10))
    new = np.vstack([np.full(64, np.nan), np.zeros(64), vectors[0]])
    places = maps.place(picture, vectors, new)
    assert np.isnan(places[:2]).all()
    assert np.array_equal(places[2], picture.xy[0])
    assert maps.place(picture, vectors, new[:0]).shape == (0, 2)
    _, _, empty = drawn([])
    places = maps.place(empty, np.zeros((0, 64)), new)
    assert np.isnan(places[:2]).all()
    assert places[2].tolist() == [0, 0]
    with pytest.raises(OvertonError, match="another encoder"):
        maps.place(picture, vectors, np.ones((1, 5)))
    with pytest.raises(OvertonError, match="3 vectors for 10 points"):
        maps.place(picture, vectors[:3], new)


# -- on disk ----------------------------------------------------------------------------------------------------


def same(one: maps.Map, other: maps.Map) -> bool:
    return (
        np.array_equal(one.xy, other.xy)
        and one.response_ids.tolist() == other.response_ids.tolist()
        and one.text_keys.tolist() == other.text_keys.tolist()
        and (one.method, one.note, one.left_out, one.prompt_id, dict(one.parameters))
        == (other.method, other.note, other.left_out, other.prompt_id, dict(other.parameters))
    )


def test_a_map_survives_the_disk(tmp_path):
    _, _, picture = drawn([*topics(12), ""])
    maps.save(picture, tmp_path / "a" / "map.npz")
    assert same(maps.load(tmp_path / "a" / "map.npz"), picture)
    _, _, empty = drawn([""])
    maps.save(empty, tmp_path / "empty.npz")
    assert same(maps.load(tmp_path / "empty.npz"), empty)
    (tmp_path / "bad.npz").write_bytes(b"PK")
    for name in ("bad.npz", "none.npz"):
        with pytest.raises(OvertonError, match="cannot be read"):
            maps.load(tmp_path / name)


def shipped(tmp_path: Path, dataset: Dataset, pictures: list[maps.Map]) -> Workspace:
    folder = tmp_path / "shipped" / dataset.name
    write_dataset(dataset, folder)
    maps.write_shipped(pictures, folder)
    return Workspace(tmp_path / "space", shipped=tmp_path / "shipped")


def test_shipped_maps_are_taken_as_they_are(tmp_path, small):
    vectors = ENCODER.encode(list(small.responses["text"]))
    pictures = [maps.build(small, vectors, prompt_id=p, method="quick") for p in (None, "tea", "bike")]
    space = shipped(tmp_path, small, pictures)
    folder = space.path("small")
    found = maps.load_shipped(folder)
    assert list(found) == ["", "tea", "bike"]
    assert all(same(found[picture.prompt_id], picture) for picture in pictures)
    assert same(maps.existing(small, space, None, "tea"), pictures[1])  # without vectors
    assert same(maps.existing(small, space, None), pictures[0])
    assert same(maps.cached(small, space, vectors, "bike"), pictures[2])
    assert not space.root.exists()
    # another text under the same id: not this map
    responses = small.responses.copy()
    responses.loc[0, "text"] = "Something else."
    changed = Dataset.build("small", prompts=small.prompts, systems=small.systems, responses=responses)
    assert maps.existing(changed, space, None, "tea") is None
    assert maps.existing(changed, space, None, "bike") is not None
    (folder / "maps.parquet").write_bytes(b"broken")
    assert maps.load_shipped(folder) == {}
    assert maps.load_shipped(tmp_path) == {}


@pytest.mark.slow
def test_a_map_is_built_once_and_kept(workspace, monkeypatch):
    texts = topics(12)
    dataset, vectors = dataset_of(texts), ENCODER.encode(texts)
    assert maps.existing(dataset, workspace, vectors, "p") is None
    first = maps.cached(dataset, workspace, vectors, "p")
    assert first.method == "umap"
    monkeypatch.setattr("core.maps.layout.umap", lambda *_: pytest.fail("built again"))
    assert same(maps.existing(dataset, workspace, vectors, "p"), first)
    assert same(maps.cached(dataset, workspace, vectors, "p"), first)
    assert maps.existing(dataset, workspace, vectors, "p", seed=1) is None
    assert maps.existing(dataset, workspace, vectors) is None
    assert maps.existing(dataset, workspace, vectors[::-1], "p") is None
    file = next((workspace.root / "maps").glob("*.npz"))
    file.write_bytes(b"half")
    assert maps.existing(dataset, workspace, vectors, "p") is None


# -- UMAP -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("n", [8, 9, 12, 32])
def test_umap_works_for_few_points_and_keeps_topics_apart(n, recwarn):
    _, _, picture = drawn(topics(n), "umap")
    assert (picture.method, picture.note) == ("umap", None)
    assert unit_spread(picture.xy)
    assert not recwarn.list
    if n == 32:
        sea, bread = picture.xy[::2], picture.xy[1::2]
        apart = np.linalg.norm(sea.mean(axis=0) - bread.mean(axis=0))
        assert apart > 2 * max(sea.std(), bread.std()) / np.sqrt(2)
    assert picture.parameters == {"neighbours": max(4, n // 4), "min_dist": 0.1, "seed": 0}


AGAIN = """
import numpy as np, sys
from tests.core.test_maps import drawn, topics
for method in ("umap", "quick"):
    print(drawn([*topics(40), "Same.", "Same."], method)[2].xy.tobytes().hex())
"""


@pytest.mark.slow
def test_two_processes_draw_the_same_picture():
    runs = [
        subprocess.run([sys.executable, "-c", AGAIN], cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert len(runs[0]) > 1000
    assert runs[0] == runs[1]


# -- speed ------------------------------------------------------------------------------------------------------


def test_all_but_umap_takes_milliseconds_for_a_prompt():
    dataset, vectors, picture = drawn(topics(32), systems=4)

    def once() -> float:
        started = time.perf_counter()
        maps.build(dataset, vectors, prompt_id="p", method="quick")
        maps.dots(picture, dataset)
        maps.place(picture, vectors, vectors[:8])
        return time.perf_counter() - started

    assert min(once() for _ in range(5)) < 0.05
