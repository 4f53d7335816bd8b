"""Clusters: planted groups are found, chance makes none, repeated texts are groups and do not rule the words."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest

from core.clusters import Clusters, cluster, distinctive_words, smallest
from core.dataset import Dataset
from core.errors import OvertonError
from core.vectors import HashEncoder, keys_of


def dataset_of(texts: list[str], systems: int = 2, prompts: int = 1) -> Dataset:
    return Dataset.build(
        "texts",
        prompts=pd.DataFrame([{"prompt_id": f"p{i}", "text": "Well?"} for i in range(prompts)]),
        systems=pd.DataFrame([{"system": f"s{i}", "role": "other"} for i in range(systems)]),
        responses=pd.DataFrame(
            [
                {"prompt_id": f"p{i % prompts}", "system": f"s{i % systems}", "sample": i, "text": text}
                for i, text in enumerate(texts)
            ]
        ),
    )


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def run(texts: list[str]) -> tuple[Dataset, Clusters]:
    dataset = dataset_of(texts)
    return dataset, cluster(dataset, HashEncoder().encode(texts), prompt_id="p0")


TOPICS = (
    ["garden", "soil", "seeds", "tomato", "water", "shade", "compost", "spring"],
    ["engine", "brake", "wheel", "clutch", "petrol", "garage", "mechanic", "gear"],
    ["violin", "concert", "melody", "rhythm", "orchestra", "piano", "chorus", "tune"],
)


def planted(per_topic: int = 11) -> list[str]:
    draw = np.random.default_rng(3)
    return [
        " ".join(["the", *draw.permutation(topic)[:6], f"case{t}{i}"])
        for i in range(per_topic)
        for t, topic in enumerate(TOPICS)
    ]


def test_planted_topics_are_recovered_with_their_words():
    dataset, found = run(planted())
    assert len(found.clusters) == 3
    assert (found.labels >= 0).mean() > 0.9
    truth = np.arange(33) % 3
    for one in found.clusters:
        assert len(set(truth[found.labels == one.label])) == 1
        topic = TOPICS[truth[found.labels == one.label][0]]
        assert set(one.words) <= set(topic)
        assert one.name.count(",") == 2
        assert one.size == (found.labels == one.label).sum() == sum(one.systems.values()) == one.texts
        assert one.medoid in found.response_ids[found.labels == one.label]
    assert [one.size for one in found.clusters] == sorted((one.size for one in found.clusters), reverse=True)
    held = sum(one.size for one in found.clusters)
    assert found.sentence.startswith(f"3 clusters hold {held} of 33 responses")
    assert found.note is None
    again = cluster(dataset, HashEncoder().encode(list(dataset.responses["text"])), prompt_id="p0")
    assert np.array_equal(again.labels, found.labels)


@pytest.mark.parametrize("n", [20, 32, 100])
def test_random_directions_make_no_clusters(n):
    found = []
    for seed in range(10):
        rows = unit(np.random.default_rng(seed).standard_normal((n, 384)))
        found.append(len(cluster(dataset_of([f"text {i}" for i in range(n)]), rows).clusters))
    assert sum(found) <= 1


def test_planted_directions_are_found_where_random_ones_are_not():
    draw = np.random.default_rng(0)
    centres = draw.standard_normal((3, 384))
    rows = unit(np.repeat(centres, [8, 10, 14], axis=0) + 0.8 * draw.standard_normal((32, 384)))
    found = cluster(dataset_of([f"text {i}" for i in range(32)]), rows)
    assert [one.size for one in found.clusters] == [14, 10, 8]


def test_equal_responses_are_one_group():
    _, found = run(["I don't know."] * 20)
    assert found.sentence == "One group: all 20 responses are the same text."
    assert found.labels.tolist() == [0] * 20
    assert (found.texts, found.clusters[0].size, found.clusters[0].texts) == (1, 20, 1)
    assert found.clusters[0].systems == {"s0": 10, "s1": 10}
    assert found.clusters[0].medoid == "s0/p0/0"


def test_five_different_responses_are_no_clusters():
    _, found = run(planted()[:5])
    assert found.clusters == ()
    assert found.sentence == "No clusters: 5 different texts are too few to look for them."
    assert found.labels.tolist() == [-1] * 5


def test_none_and_one():
    _, found = run([""])
    assert (len(found.labels), found.sentence) == (0, "There is no response to group.")
    _, found = run(["One."])
    assert (found.labels.tolist(), found.sentence) == ([-1], "There is one response.")


def test_an_answer_given_most_of_the_time_is_a_group_and_does_not_rule_the_words():
    texts = ["I don't know."] * 50 + planted()
    _, found = run(texts)
    assert found.note == "50 of 83 responses (60%) are the same text."
    assert len(found.clusters) == 4
    assert (found.clusters[0].size, found.clusters[0].texts) == (50, 1)
    assert found.labels[:50].tolist() == [0] * 50
    for one in found.clusters[1:]:
        assert any(set(one.words) <= set(topic) for topic in TOPICS)


def test_variants_of_a_repeated_answer_come_along():
    _, found = run(["I do not know that"] * 6 + ["I do not know that!"] * 2 + planted()[:3])
    assert [(one.size, one.texts) for one in found.clusters] == [(8, 2)]
    assert found.sentence == "1 cluster holds 8 of 11 responses; 3 are in no cluster."


def test_different_texts_with_one_vector_are_one_group():
    texts = [f"Yes{'!' * i}" for i in range(12)]
    _, found = run(texts)
    assert [one.size for one in found.clusters] == [12]


def test_words_count_texts_and_not_how_often_a_text_repeats_them():
    texts = ["apple apple apple apple pear", "plum pear", "plum pear cake", "river boat", "river bank", "river fish"]
    words = distinctive_words(texts, np.array([0, 0, 0, 1, 1, 1]))
    assert words[0][:2] == ("pear", "plum")
    assert "apple" not in words[0]
    assert words[1] == ("river",)


def test_left_out_responses_are_in_neither_list():
    texts = [*planted(), "", "  "]
    rows = HashEncoder().encode(texts)
    rows[0] = np.nan
    rows[1] = 0
    found = cluster(dataset_of(texts), rows)
    assert len(found.labels) == len(found.response_ids) == 31


def test_the_smallest_cluster_grows_slowly():
    assert [smallest(n) for n in (8, 20, 32, 1000, 8500)] == [3, 3, 4, 11, 31]


def test_vectors_of_another_dataset_are_one_sentence():
    with pytest.raises(OvertonError, match="3 vectors for 2 responses"):
        cluster(dataset_of(["a", "b"]), np.ones((3, 4)))
    with pytest.raises(OvertonError, match="no prompt 'x'"):
        cluster(dataset_of(["a", "b"]), np.ones((2, 4)), prompt_id="x")


def test_a_prompt_takes_milliseconds_and_a_dataset_seconds():
    dataset = dataset_of(planted()[:32])
    rows = HashEncoder().encode(list(dataset.responses["text"]))
    cluster(dataset, rows, prompt_id="p0")  # imports
    best = 1.0
    for _ in range(5):
        started = time.perf_counter()
        cluster(dataset, rows, prompt_id="p0")
        best = min(best, time.perf_counter() - started)
    assert best < 0.05

    draw = np.random.default_rng(0)
    whole = unit(np.repeat(draw.standard_normal((40, 384)), 35, axis=0) + draw.standard_normal((1400, 384)))
    many = dataset_of([f"words of text number {i}" for i in range(1400)], prompts=40)
    started = time.perf_counter()
    found = cluster(many, whole)
    assert time.perf_counter() - started < 15
    assert len(found.clusters) == 40
    assert len(set(keys_of(many.responses["text"]))) == found.texts
