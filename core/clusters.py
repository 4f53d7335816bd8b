"""Clusters of responses that say much the same, with the words that set each of them apart.

HDBSCAN looks at the different texts (so a text that is repeated does not count as a crowd), along the main
directions of their vectors: 5 for the few responses of a prompt, 50 for a whole dataset, where 5 would melt many
topics into one. A group that is no denser than chance makes some group of its size is not a cluster. A text that
is repeated often enough is a group of its own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import lgamma, log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.dataset import Dataset
from core.heavy import settled
from core.text import STOP_WORDS, simple_words
from core.vectors import select
from core.vectors.encoders import unit

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]

ENOUGH = 8  # different texts; with fewer no clusters are looked for
MANY = 200  # different texts; from here on it is a whole dataset rather than a prompt
NEAR = 0.9  # cosine at which a text counts as a variant of one that is often repeated
OFTEN = 0.2  # share of responses from which the most frequent text is worth a sentence


@dataclass(frozen=True)
class Cluster:
    """One cluster: size counts responses, texts counts different texts, systems gives responses by system."""

    label: int
    size: int
    texts: int
    systems: dict[str, int]
    medoid: str
    words: tuple[str, ...]

    @property
    def name(self) -> str:
        """The three words that set it apart most."""
        return ", ".join(self.words[:3]) or f"cluster {self.label + 1}"


@dataclass(frozen=True, eq=False)
class Clusters:
    """The clusters of a dataset or a prompt, the largest first.

    response_ids and labels have shape (n,), in the order of `dataset.responses`; label -1 = in no cluster.
    `texts` is the number of different texts; `note` is one sentence or None. Responses without a vector are in
    neither list.
    """

    response_ids: NDArray[np.str_]
    labels: Labels
    clusters: tuple[Cluster, ...]
    texts: int
    sentence: str
    note: str | None = None


def cluster(dataset: Dataset, vectors: NDArray[Any], *, prompt_id: str | None = None) -> Clusters:
    """Clusters of the responses of a dataset, or of one prompt; `vectors` is aligned with `dataset.responses`.

    Raises `OvertonError` for an unknown prompt or vectors of another dataset.
    """
    chosen = select(dataset, vectors, prompt_id)
    here = dataset.responses.iloc[chosen.positions]
    ids = here["response_id"].to_numpy(dtype=str)
    _, first, inverse, counts = np.unique(
        chosen.text_keys, return_index=True, return_inverse=True, return_counts=True
    )
    points = unit(np.asarray(vectors)[chosen.positions[first]])
    by_text = _ordered(_label(points, counts), counts)
    texts = here["text"].to_numpy()[first]
    words = distinctive_words(list(texts), by_text)
    found = []
    for label in range(int(by_text.max(initial=-1)) + 1):
        inside = np.flatnonzero(by_text == label)
        # The medoid is the text with the highest mean cosine to the responses of the cluster.
        centre = (points[inside] * counts[inside, None]).sum(axis=0)
        medoid = inside[np.argmax((points[inside] @ centre).round(5))]
        members = here["system"].to_numpy()[by_text[inverse] == label]
        size = Counter(members.tolist())
        systems = {system: size[system] for system in dataset.roles() if size[system]}
        found.append(Cluster(label, len(members), len(inside), systems, str(ids[first[medoid]]), words[label]))
    return Clusters(
        response_ids=ids,
        labels=by_text[inverse],
        clusters=tuple(found),
        texts=len(first),
        sentence=_sentence(found, len(ids), len(first)),
        note=_note(counts),
    )


# -- labels of the different texts ------------------------------------------------------------------------------


def smallest(n: int) -> int:
    """The smallest cluster among n different texts: 3 of 20, 4 of 32, 11 of 1,000, 31 of 8,500."""
    return max(min(4, max(3, n // 8)), round(sqrt(n) / 3))


def _label(points: Floats, counts: NDArray[np.int64]) -> Labels:
    n = len(points)
    if n == 1 and counts[0] > 1:
        return np.zeros(1, dtype=np.int64)
    labels = np.full(n, -1, dtype=np.int64)
    if n >= ENOUGH:
        labels = _dense(points, _hdbscan(points))
    return _repeated(points, counts, labels)


def _hdbscan(points: Floats) -> Labels:
    from sklearn.cluster import HDBSCAN

    from core.maps.layout import directions

    n = len(points)
    coordinates = directions(points, min(50 if n >= MANY else 5, n - 1))
    if np.abs(coordinates).max() < 1e-6:
        return np.zeros(n, dtype=np.int64)  # texts that differ, all with one vector
    method = HDBSCAN(min_cluster_size=smallest(n), min_samples=5 if n >= MANY else 2, copy=True)
    return np.asarray(settled(lambda: method.fit_predict(coordinates)), dtype=np.int64)


def _dense(points: Floats, labels: Labels) -> Labels:
    """Drop clusters that are no denser than the densest group of their size that chance would make.

    The measure is the mean cosine within. Were all pairs drawn alike, the mean over the p pairs of one group
    would spread by ``sd / sqrt(p)``, and the largest of all ``C(n, k)`` groups would lie about
    ``sqrt(2 ln C(n, k))`` such steps above the mean: a bound on what a search can find where nothing is.
    """
    n = len(points)
    rows = points.astype(np.float64)
    pairs = n * (n - 1)
    mean = (float((rows.sum(axis=0) ** 2).sum()) - n) / pairs
    square = (float(((rows.T @ rows) ** 2).sum()) - n) / pairs
    sd = sqrt(max(square - mean**2, 0.0))
    kept = labels.copy()
    for label in range(int(labels.max(initial=-1)) + 1):
        inside = labels == label
        k = int(inside.sum())
        if k == n:
            continue
        within = (float((rows[inside].sum(axis=0) ** 2).sum()) - k) / (k * (k - 1))
        groups = lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)
        if within - mean < sd * sqrt(2 * groups / (k * (k - 1) / 2)):
            kept[inside] = -1
    return kept


def _repeated(points: Floats, counts: NDArray[np.int64], labels: Labels) -> Labels:
    """Make a group of each text that occurs often and is in no cluster; its variants come along."""
    often = smallest(int(counts.sum()))
    labels = labels.copy()
    for text in np.argsort(-counts, kind="stable"):
        if counts[text] < often:
            break
        if labels[text] < 0:
            near = (points @ points[text] >= NEAR) & (labels < 0)
            near[text] = True
            labels[near] = labels.max() + 1
    return labels


def _ordered(labels: Labels, counts: NDArray[np.int64]) -> Labels:
    """Number the clusters anew, the one with most responses first."""
    present = np.unique(labels[labels >= 0])
    sizes = [int(counts[labels == label].sum()) for label in present]
    firsts = [int(np.flatnonzero(labels == label)[0]) for label in present]
    ordered = sorted(range(len(present)), key=lambda i: (-sizes[i], firsts[i]))
    fresh = np.full(len(labels), -1, dtype=np.int64)
    for new, i in enumerate(ordered):
        fresh[labels == present[i]] = new
    return fresh


# -- words and sentences ----------------------------------------------------------------------------------------


def distinctive_words(texts: list[str], labels: Labels, top: int = 6) -> list[tuple[str, ...]]:
    """For each label from 0 on, the words whose share of texts is raised most in the cluster.

    `texts` are different from each other, so that an answer given a thousand times counts once. The score is the
    share of the cluster's texts with the word times the log of its ratio to the share elsewhere.
    """
    bags = [
        {word: None for word in simple_words(text) if word not in STOP_WORDS and not word.isdecimal()}
        for text in texts
    ]
    everywhere = Counter(word for bag in bags for word in bag)
    result: list[tuple[str, ...]] = []
    for label in range(int(labels.max(initial=-1)) + 1):
        inside = np.flatnonzero(labels == label)
        n, others = len(inside), len(texts) - len(inside)
        here = Counter(word for i in inside for word in bags[i])
        scores: dict[str, float] = {}
        for word, count in here.items():
            outside = (everywhere[word] - count + 0.5) / (others + 1)
            score = count / n * log(count / n / outside)
            if score > 0 and count >= min(2, n):
                scores[word] = score
        # A stable sort: equal scores stay in the order in which the words occur.
        result.append(tuple(sorted(scores, key=lambda word: -round(scores[word], 9))[:top]))
    return result


def _sentence(found: list[Cluster], n: int, texts: int) -> str:
    if n == 0:
        return "There is no response to group."
    if texts == 1:
        return "There is one response." if n == 1 else f"One group: all {n} responses are the same text."
    held = sum(one.size for one in found)
    if not found and texts < ENOUGH:
        return f"No clusters: {texts} different texts are too few to look for them."
    if not found:
        return f"No clusters: the {n} responses do not fall into groups."
    what = "1 cluster holds" if len(found) == 1 else f"{len(found)} clusters hold"
    rest = "none is outside" if held == n else f"{n - held} {'is' if n - held == 1 else 'are'} in no cluster"
    return f"{what} {held} of {n} responses; {rest}."


def _note(counts: NDArray[np.int64]) -> str | None:
    n, most = int(counts.sum()), int(counts.max(initial=0))
    if len(counts) < 2 or most < 3 or most < OFTEN * n:
        return None
    return f"{most} of {n} responses ({most / n:.0%}) are the same text."
