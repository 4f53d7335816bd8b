"""What the lexical lenses read: every text of a dataset cut once, as ragged arrays of integer ids."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from threading import Lock
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from core import text as cut
from core.dataset import Dataset
from core.heavy import settled
from core.stop_words import STOP_WORDS

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ragged:
    """Rows of unequal length: row i is ``ids[offsets[i]:offsets[i + 1]]``."""

    ids: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Ints:
        """Entries per row."""
        return np.diff(self.offsets)

    @cached_property
    def rows(self) -> Ints:
        """The row of each entry."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def keep(self, wanted: NDArray[np.bool_]) -> Ragged:
        """The entries that are wanted, in their order; no row disappears."""
        return _ragged(self.ids[wanted], np.bincount(self.rows[wanted], minlength=len(self)))

    def first(self, n: int) -> Ragged:
        """The first `n` entries of each row."""
        return self.keep(np.arange(len(self.ids)) - self.offsets[self.rows] < n)

    def unique(self) -> Ragged:
        """Each id once a row, sorted."""
        width = int(self.ids.max(initial=0)) + 1
        keys = np.sort(pd.unique(self.rows * width + self.ids))  # many times as fast as np.unique
        return _ragged(keys % width, np.bincount(keys // width, minlength=len(self)))

    def take(self, rows: Ints) -> Ragged:
        """The given rows, in the given order."""
        lengths = self.lengths[rows]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return _ragged(self.ids[np.repeat(self.offsets[:-1][rows], lengths) + within], lengths)


def _ragged(ids: Ints, lengths: Iterable[int] | Ints) -> Ragged:
    ends = np.cumsum(np.asarray(lengths, dtype=np.int64))
    return Ragged(ids, np.concatenate([np.zeros(1, dtype=np.int64), ends]))


def membership(bags: Ragged, codes: Ints, width: int) -> Any:
    """Sets as rows of a sparse matrix of ones, (len(bags), width); `codes` are the columns, one an entry."""
    from scipy.sparse import csr_array

    shape = (len(bags), max(width, 1))
    return settled(lambda: csr_array((np.ones(len(codes)), codes, bags.offsets), shape=shape))


def _numbered(rows: Iterable[Sequence[str]]) -> tuple[Ragged, list[str]]:
    """Rows of strings as rows of ids, and the strings by id."""
    numbers: dict[str, int] = defaultdict(count().__next__)  # a new string gets the next number
    arrays = [np.fromiter(map(numbers.__getitem__, row), dtype=np.int64, count=len(row)) for row in rows]
    ids = np.concatenate(arrays) if arrays else np.zeros(0, dtype=np.int64)
    return _ragged(ids, [len(a) for a in arrays]), list(numbers)


class Features:
    """Texts cut once. Every distinct piece between blanks is cut a single time, whatever the number of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.pieces, self._vocabulary = _numbered(text.split() for text in self.texts)

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def lower(self) -> list[str]:
        """The texts in lower case, straight apostrophes throughout, blanks at the ends dropped."""
        return [text.strip().lower().replace("’", "'") for text in self.texts]

    @cached_property
    def simple(self) -> Ragged:
        """Ids of the simple words, in their order."""
        return self._simple[0]

    @cached_property
    def _simple(self) -> tuple[Ragged, list[str]]:
        codes, known = pd.factorize(self.pieces.ids * 2 + self._latin)
        found = [cut.simple_words(self._vocabulary[code // 2], latin=code % 2 == 1) for code in known.tolist()]
        by_piece, names = _numbered(found)
        return _through(self.pieces, codes, by_piece), names

    @cached_property
    def tokens(self) -> Ragged:
        """Ids of the tokens without punctuation, in their order, case kept."""
        return self._tokens[0]

    @cached_property
    def lower_tokens(self) -> Ragged:
        """Ids of the tokens without punctuation, in their order, in lower case."""
        ids, names = self._tokens
        lowered, _ = _numbered([[name.lower()] for name in names])
        return Ragged(lowered.ids[ids.ids], ids.offsets)

    @cached_property
    def _tokens(self) -> tuple[Ragged, list[str]]:
        codes, known = pd.factorize(self.pieces.ids * 4 + self._closing * 2 + self._latin)
        pieces = [self._vocabulary[code // 4] for code in known.tolist()]
        found = cut.tokenize_pieces(pieces, (known // 2 % 2 == 1).tolist(), (known % 2 == 1).tolist())
        by_piece, names = _numbered([[t for t in row if not cut.is_punctuation(t)] for row in found])
        return _through(self.pieces, codes, by_piece), names

    @cached_property
    def _latin(self) -> Ints:
        """1 for each piece of a text in Latin script, 0 otherwise."""
        return np.array([cut.is_latin(text) for text in self.texts], dtype=np.int64)[self.pieces.rows]

    @property
    def _closing(self) -> NDArray[np.bool_]:
        """Whether a piece ends a sentence with a full stop; `core.text.ends_sentence` for all pieces at once."""
        kind_of = np.array([cut.stop_kind(piece) for piece in self._vocabulary], dtype=np.int8)
        small = np.array([piece[0].islower() for piece in self._vocabulary], dtype=bool)
        ids, ends = self.pieces.ids, self.pieces.offsets[1:][self.pieces.lengths > 0] - 1
        last = np.zeros(len(ids), dtype=bool)
        last[ends] = True
        small_follows = np.append(small[ids[1:]], False)[: len(ids)]
        kind = kind_of[ids]
        closing: NDArray[np.bool_] = (kind > 0) & (last | (kind == 1) | ((kind == 2) & ~small_follows))
        return closing

    def simple_bags(self, first: int | None = None) -> Ragged:
        """Sets of simple words without stop words, of the whole texts or of their first words."""
        return _bags(*self._simple, first)

    def token_bags(self, first: int | None = None) -> Ragged:
        """Sets of tokens without stop words, case kept, of the whole texts or of their first tokens."""
        return _bags(*self._tokens, first)


def _through(pieces: Ragged, codes: Ints, by_piece: Ragged) -> Ragged:
    """Replace each piece of each row by its own row of ids."""
    taken = by_piece.take(codes)
    return Ragged(taken.ids, taken.offsets[pieces.offsets])


def _bags(ids: Ragged, names: Sequence[str], first: int | None) -> Ragged:
    counted = ids if first is None else ids.first(first)
    content = np.array([name not in STOP_WORDS for name in names], dtype=bool)
    return counted.keep(content[counted.ids]).unique() if len(names) else counted


_CACHE: dict[int, tuple[weakref.ref[pd.DataFrame], Features]] = {}
_LOCK = Lock()


def features_of(dataset: Dataset) -> Features:
    """The features of the usable responses, in their order; kept as long as the dataset's table lives.

    Two datasets that differ in roles alone share one table, and so the features.
    """
    table: Any = dataset.responses
    with _LOCK:
        kept = _CACHE.get(id(table))
        if kept is not None and kept[0]() is table:
            return kept[1]
    features = Features(dataset.usable_responses["text"].tolist())
    with _LOCK:
        key = id(table)
        _CACHE[key] = (weakref.ref(table, lambda _: _CACHE.pop(key, None)), features)
    return features
