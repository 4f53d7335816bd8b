"""The last contexts that a model has read: after an edit only what follows the common beginning is read again.

A context is always read in the same blocks, counted from its beginning, and only whole blocks are reused. So what
is kept equals, bit for bit, what reading anew would give, and a run does not depend on what was read before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from core.generation.attention import Layers

BLOCK = 256
KEPT = 8

# Reads some tokens into the layers; gives the logits (1, vocabulary) after the last one where they are asked for.
Read = Callable[[Layers, Sequence[int], bool], Any]


@dataclass
class _Entry:
    ids: list[int]
    layers: Layers
    logits: Any

    @property
    def nbytes(self) -> int:
        return self.layers.nbytes + int(self.logits.nbytes)


class Contexts:
    """Up to `KEPT` contexts of one model within `limit` bytes; the least recently used ones leave first."""

    def __init__(self, limit: int, *, block: int = BLOCK) -> None:
        self.limit = limit
        self.block = block
        self.reused = 0  # tokens of the last context that were not read again
        self._entries: list[_Entry] = []

    def read(self, ids: Sequence[int], read: Read) -> tuple[Layers, Any]:
        """Layers and last logits of a context, with as little reading as possible."""
        ids = list(ids)
        best, common = None, 0
        for entry in self._entries:
            shared = common_length(entry.ids, ids)
            if shared == len(ids) == len(entry.ids):
                self._use(entry)
                self.reused = shared
                return entry.layers, entry.logits
            if shared > common:
                best, common = entry, shared
        start = min(common, len(ids) - 1) // self.block * self.block
        self.reused = start
        self._make_room(layers_size(best, len(ids)))
        layers = best.layers.fork(start, len(ids)) if best and start else Layers(len(ids))
        logits = None
        for begin in range(start, len(ids), self.block):
            block = ids[begin : begin + self.block]
            logits = read(layers, block, begin + len(block) == len(ids))
        self._use(_Entry(ids, layers, logits))
        self._make_room(0)
        return layers, logits

    def _use(self, entry: _Entry) -> None:
        self._entries = [entry, *(e for e in self._entries if e is not entry)][:KEPT]

    def _make_room(self, coming: int) -> None:
        """Let old contexts go until the rest and what is coming fit; the newest one always stays."""
        while len(self._entries) > 1 and self.nbytes + coming > self.limit:
            self._entries.pop()

    @property
    def nbytes(self) -> int:
        """Bytes that are held."""
        return sum(entry.nbytes for entry in self._entries)

    @property
    def tokens(self) -> int:
        """Tokens whose keys and values are held."""
        return sum(len(entry.ids) for entry in self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        """Forget everything."""
        self._entries = []


def layers_size(like: _Entry | None, tokens: int) -> int:
    """Bytes that a context of so many tokens will take, judged by another one; 0 where there is none."""
    return 0 if like is None else like.layers.nbytes // max(1, len(like.ids)) * tokens


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """Length of the common beginning of two lists of token ids."""
    for k, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return k
    return min(len(one), len(other))
