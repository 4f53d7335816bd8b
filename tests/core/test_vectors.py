"""Vectors: encoders, parts of long texts, the store on disk, and the vectors of a dataset."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from core import models, vectors
from core.dataset import Dataset
from core.errors import OvertonError
from core.vectors import HashEncoder, SentenceTransformerEncoder, VectorStore
from core.vectors.parts import cuts, join
from core.workspace import Workspace, write_dataset

ROOT = Path(__file__).resolve().parent.parent.parent


class Counting(HashEncoder):
    """Remembers what it was given."""

    def __init__(self):
        super().__init__(64)
        self.calls: list[list[str]] = []

    def encode(self, texts, *, progress=None):
        self.calls.append(list(texts))
        return super().encode(texts, progress=progress)


def dataset_of(texts: list[str], name: str = "many") -> Dataset:
    return Dataset.build(
        name,
        prompts=pd.DataFrame([{"prompt_id": "p", "text": "Say something."}]),
        systems=pd.DataFrame([{"system": "s", "role": "base"}]),
        responses=pd.DataFrame(
            [{"prompt_id": "p", "system": "s", "sample": i, "text": text} for i, text in enumerate(texts)]
        ),
    )


# -- encoders ---------------------------------------------------------------------------------------------------


def test_the_stand_in_puts_like_texts_near_and_is_the_same_in_another_process():
    encoder = HashEncoder()
    rows = encoder.encode(["boil the water", "boil the hot water", "my dog sleeps all day", "!?", ""])
    assert rows.dtype == np.float32
    assert rows.shape == (5, encoder.dimension)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.7
    assert abs(rows[0] @ rows[2]) < 0.3
    code = "from core.vectors import HashEncoder; print(HashEncoder().encode(['boil the water'])[0, :4].tolist())"
    there = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert np.allclose(np.array(eval(there.stdout)), rows[0, :4])


def test_the_default_key_names_the_revision_of_the_catalogue():
    assert f"{vectors.DEFAULT_ID}@{models.entry(vectors.DEFAULT_ID).revision}" == vectors.DEFAULT_KEY
    assert SentenceTransformerEncoder().key == vectors.DEFAULT_KEY


def test_a_default_encoder_that_was_not_fetched_is_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setenv("OVERTON_MODELS", str(tmp_path))
    with pytest.raises(OvertonError, match="fetch it first"):
        SentenceTransformerEncoder().encode(["x"])


def test_parts_begin_with_a_word_and_fit():
    words = [i // 3 for i in range(100)]  # each word has three tokens
    ends = cuts(words, 40)
    starts = [0, *ends[:-1]]
    assert ends[-1] == 100
    assert all(end - start <= 40 for start, end in zip(starts, ends, strict=True))
    assert all(words[start] != words[start - 1] for start in starts[1:])
    assert cuts(words, 100) == [100]
    # one word longer than the encoder reads
    assert np.diff([0, *cuts([0] * 100, 40)]).max() <= 40


def test_joined_parts_count_by_their_tokens():
    rows = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)
    assert np.allclose(join(rows, [[30, 10], [5]]), [[0.75, 0.25], [0, 1]])


def test_an_encoder_that_cannot_be_had_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(OvertonError, match="cannot be loaded"):
        SentenceTransformerEncoder(tmp_path / "empty").encode(["x"])


def test_importing_loads_no_heavy_library():
    code = (
        "import sys, core.vectors, core.maps, core.clusters, core.neighbours; "
        "heavy = ['torch','umap','numba','transformers','sentence_transformers','sklearn','nltk','streamlit']; "
        "print([m for m in heavy if m in sys.modules])"
    )
    there = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert there.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def real() -> SentenceTransformerEncoder:
    try:
        models.fetch(vectors.DEFAULT_ID)
    except OvertonError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"the weights of {vectors.DEFAULT_ID} cannot be had: {error}")
    return SentenceTransformerEncoder()


@pytest.mark.slow
def test_the_real_encoder_reads_all_of_a_long_text(real):
    filler = " ".join(f"The {i}th cup of tea was better than the one before it." for i in range(60))
    with_end = filler + " " + " ".join(["Volcanoes spit glowing lava over the island."] * 40)
    assert real.max_tokens == 256
    assert real.parts(["short", filler, ""]) == [1, 4, 1]
    rows = real.encode([filler, with_end, "Lava flows from a volcano.", "Two equal texts.", "Two equal texts."])
    assert rows.shape == (5, 384)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[1] @ rows[2] > rows[0] @ rows[2] + 0.1  # what stands behind the first 256 tokens counts
    assert rows[3] @ rows[4] == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_no_part_is_longer_than_the_encoder_reads_and_nothing_is_lost(real):
    text = " ".join(f"Uncommonly unpronounceable wörd-{i} (aside); see no. {i * 37}." for i in range(200))
    parts = real._split([text])[0]
    tokenizer = real._load().tokenizer
    assert max(len(tokenizer(part)["input_ids"]) for part, _ in parts) <= 256
    assert "".join("".join(part.split()) for part, _ in parts) == "".join(text.split())


# -- the store --------------------------------------------------------------------------------------------------


def test_the_store_keeps_vectors_by_text_and_encoder(tmp_path):
    store = VectorStore(tmp_path / "deep" / "vectors.sqlite")
    assert store.get("e", ["a"]) == {}
    assert store.count("e") == 0
    store.put("e", ["a", "b"], np.eye(2, dtype=np.float32), [1, 3])
    store.put("e", ["a"], np.array([[9, 9]]))  # there already
    store.put("other", ["a"], np.array([[0.5, 0.25, 0]]))
    found = store.get("e", ["a", "b", "c"])
    assert set(found) == {"a", "b"}
    assert found["a"][0].tolist() == [1, 0]
    assert found["b"][1] == 3
    assert store.get("other", ["a"])["a"][0].tolist() == [0.5, 0.25, 0]
    assert (store.count("e"), store.count("none")) == (2, 0)


def test_many_keys_are_read_at_once(tmp_path):
    store = VectorStore(tmp_path / "v.sqlite")
    keys = [f"k{i}" for i in range(2345)]
    store.put("e", keys, np.arange(2345, dtype=np.float16)[:, None])
    found = store.get("e", keys)
    assert len(found) == 2345
    assert found["k2047"][0][0] == 2047


def test_a_damaged_store_is_one_sentence(tmp_path):
    file = tmp_path / "v.sqlite"
    file.write_bytes(b"this is not a database, not at all" * 100)
    with pytest.raises(OvertonError, match="damaged"):
        VectorStore(file).get("e", ["a"])


def test_threads_may_write_at_once(tmp_path):
    store = VectorStore(tmp_path / "v.sqlite")
    failures: list[BaseException] = []

    def work(offset: int) -> None:
        try:
            for i in range(20):
                keys = [f"k{offset + 5 * i + j}" for j in range(10)]  # overlaps with itself and the others
                store.put("e", keys, np.ones((10, 4)))
                assert len(store.get("e", keys)) == 10
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(50 * t,)) for t in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.count("e") == 255


WRITER = """
import sys, numpy as np
from core.vectors import VectorStore
from pathlib import Path
store = VectorStore(Path(sys.argv[1]))
for i in range(40):
    store.put("e", [f"{sys.argv[2]}-{i}", f"both-{i}"], np.ones((2, 4)))
"""


def test_two_processes_may_write_at_once(tmp_path):
    file = tmp_path / "v.sqlite"
    both = [subprocess.Popen([sys.executable, "-c", WRITER, str(file), name], cwd=ROOT) for name in ("a", "b")]
    assert [process.wait(60) for process in both] == [0, 0]
    assert VectorStore(file).count("e") == 120


# -- the vectors of a dataset -----------------------------------------------------------------------------------


def test_rows_are_aligned_and_texts_are_encoded_once(small, workspace):
    encoder = Counting()
    rows = vectors.vectors_for(small, workspace, encoder)
    assert rows.shape == (13, 64)
    assert rows.dtype == np.float32
    texts = small.responses["text"]
    nothing = (texts.str.strip() == "") | small.responses["error"].notna()
    assert nothing.sum() == 2
    assert np.array_equal(np.isnan(rows).all(axis=1), nothing.to_numpy())
    assert np.allclose(np.linalg.norm(rows[~nothing], axis=1), 1, atol=1e-6)
    given = [text for call in encoder.calls for text in call]
    assert len(given) == len(set(given)) == texts[~nothing].nunique()
    assert [len(t) for t in given] == sorted((len(t) for t in given), reverse=True)
    same = texts == texts[3]
    assert same.sum() == 2
    assert len(np.unique(rows[same], axis=0)) == 1
    expected = encoder.encode([texts[0]])[0]
    assert rows[0] @ expected == pytest.approx(1, abs=1e-5)
    encoder.calls.clear()
    again = vectors.vectors_for(small, workspace, encoder)
    assert encoder.calls == []
    assert np.array_equal(again, rows, equal_nan=True)


def test_white_space_around_a_text_makes_no_other_text(workspace):
    rows = vectors.vectors_for(dataset_of(["tea", " tea\n", "  \n"]), workspace, HashEncoder())
    assert np.array_equal(rows[0], rows[1])
    assert np.isnan(rows[2]).all()


def test_stored_is_none_until_all_is_there(small, workspace):
    key = HashEncoder().key
    assert vectors.stored(small, workspace, key) is None
    assert vectors.coverage(small, workspace, key) == (0, 11)
    assert not workspace.root.exists()  # looking writes nothing
    half = dataset_of(list(small.responses["text"][:4]))
    vectors.vectors_for(half, workspace, HashEncoder())
    assert vectors.stored(small, workspace, key) is None
    have, need = vectors.coverage(small, workspace, key)
    assert (have, need) == (5, 11)  # the fourth text occurs twice
    rows = vectors.vectors_for(small, workspace, HashEncoder())
    assert np.array_equal(vectors.stored(small, workspace, key), rows, equal_nan=True)
    assert vectors.coverage(small, workspace, key) == (11, 11)
    assert vectors.stored(small, workspace, "another@1") is None


def test_progress_goes_to_the_end_and_cancelling_keeps_what_is_done(workspace):
    many = dataset_of([f"text number {i}" for i in range(400)])
    encoder = Counting()
    cancel = threading.Event()

    def stop(done: int, total: int) -> None:
        assert total == 400
        if done > 200:
            cancel.set()

    with pytest.raises(OvertonError, match="stopped: 256 of 400"):
        vectors.vectors_for(many, workspace, encoder, progress=stop, cancel=cancel)
    assert vectors.coverage(many, workspace, encoder.key) == (256, 400)
    seen: list[tuple[int, int]] = []
    vectors.vectors_for(many, workspace, encoder, progress=lambda *step: seen.append(step))
    assert seen[0][0] > 256
    assert seen[-1] == (400, 400)
    assert seen == sorted(seen)


def test_no_text_at_all(workspace):
    empty = dataset_of(["", " "])
    assert vectors.vectors_for(empty, workspace, HashEncoder()).shape == (2, 0)
    assert vectors.stored(empty, workspace, HashEncoder().key).shape == (2, 0)
    assert vectors.coverage(empty, workspace, HashEncoder().key) == (0, 0)


def test_long_responses_are_counted(workspace):
    class Short(HashEncoder):
        def parts(self, texts):
            return [1 + len(text) // 20 for text in texts]

    some = dataset_of(["short", "a text that is longer than twenty letters", ""])
    vectors.vectors_for(some, workspace, Short())
    assert vectors.longer(some, workspace, Short().key) == (1, 2)


KILLED = """
import sys, time
from core.vectors import HashEncoder, vectors_for
from core.workspace import Workspace, read_dataset
from pathlib import Path

class Slow(HashEncoder):
    def encode(self, texts, *, progress=None):
        time.sleep(0.05)
        made = super().encode(texts)
        print(len(texts), flush=True)
        return made

vectors_for(read_dataset(Path(sys.argv[1])), Workspace(sys.argv[2]), Slow(64))
"""


def test_a_killed_run_goes_on_from_what_was_stored(tmp_path, workspace):
    many = dataset_of([f"this is text number {i} of many" for i in range(5000)])
    write_dataset(many, tmp_path / "many")
    running = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "many"), str(workspace.root)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    for _ in range(6):
        running.stdout.readline()
    os.kill(running.pid, signal.SIGKILL)
    assert running.wait(30) == -signal.SIGKILL
    encoder = Counting()
    have, need = vectors.coverage(many, workspace, encoder.key)
    assert need == 5000
    assert 5 * 128 <= have < 5000
    started = time.perf_counter()
    rows = vectors.vectors_for(many, workspace, encoder)
    assert sum(len(call) for call in encoder.calls) == 5000 - have
    assert np.isfinite(rows).all()
    assert time.perf_counter() - started < 30


# -- shipped vectors --------------------------------------------------------------------------------------------


def shipped_workspace(tmp_path: Path, small: Dataset) -> tuple[Workspace, Workspace, np.ndarray]:
    first = Workspace(tmp_path / "first", shipped=tmp_path / "none")
    rows = vectors.vectors_for(small, first, HashEncoder())
    write_dataset(small, tmp_path / "shipped" / "small")
    folder = tmp_path / "shipped" / "small"
    vectors.write_shipped(small, rows, folder, encoder_key=HashEncoder().key, workspace=first)
    return first, Workspace(tmp_path / "second", shipped=tmp_path / "shipped"), rows


def test_shipped_vectors_are_used_without_a_store(tmp_path, small):
    _, space, rows = shipped_workspace(tmp_path, small)
    found = vectors.stored(space.load("small"), space, HashEncoder().key)
    assert np.array_equal(found, rows, equal_nan=True)
    assert not space.root.exists()
    assert vectors.stored(space.load("small"), space) is None  # of another encoder


def test_a_derived_dataset_pays_only_for_its_new_texts(tmp_path, small):
    _, space, _ = shipped_workspace(tmp_path, small)
    new = pd.DataFrame(
        [{"prompt_id": "tea", "system": "mine", "sample": i, "text": f"New text {i}."} for i in range(3)]
    )
    derived = small.with_system("derived", {"system": "mine", "role": "in-context"}, new)
    space.save(derived)
    encoder = HashEncoder()
    assert vectors.coverage(derived, space, encoder.key) == (11, 14)
    given: list[str] = []
    encoder.encode = lambda texts, progress=None: given.extend(texts) or HashEncoder().encode(texts)
    vectors.vectors_for(derived, space, encoder)
    assert sorted(given) == ["New text 0.", "New text 1.", "New text 2."]


def test_a_damaged_shipped_file_is_as_good_as_none(tmp_path, small):
    _, space, _ = shipped_workspace(tmp_path, small)
    (tmp_path / "shipped" / "small" / "vectors.npz").write_bytes(b"PK broken")
    assert vectors.stored(small, space, HashEncoder().key) is None
    assert np.isfinite(vectors.vectors_for(small, space, HashEncoder())).any()


def test_locked_store_is_one_sentence(workspace, lock):
    store = VectorStore(vectors.store_file(workspace))
    store.put("e@1", ["k"], np.ones((1, 4)))
    lock(workspace.root)
    for act in (
        lambda: store.get("e@1", ["k"]),
        lambda: store.count("e@1"),
        lambda: store.put("e@1", ["l"], np.ones((1, 4))),
    ):
        with pytest.raises(OvertonError, match="cannot be reached \\(permission denied\\)"):
            act()
