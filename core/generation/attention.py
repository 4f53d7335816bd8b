"""Attention of many samples to one shared context: the context's keys and values are kept once, not once per sample.

The usual cache repeats the context for every row and reads all of it again at every step. Here all rows ask the one
copy together, in one matrix product, and each has a short tail of its own for what it has said so far.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAME = "overton_shared"
# What layers may look at, where a configuration says so; others (such as chunks) are not known here.
KINDS = {"full_attention", "sliding_attention"}
# Rows of a float32 product are padded to this many, so that a row's result does not depend on how many there are.
_PAD = 16

_ACTIVE = threading.local()


class Layers:
    """Keys and values of all layers, (rows, heads, tokens, size) each, in buffers that are filled from the left."""

    def __init__(self, capacity: int) -> None:
        self.length = 0
        self.capacity = capacity
        self._buffers: dict[int, tuple[Any, Any]] = {}

    def write(self, layer: int, keys: Any, values: Any) -> None:
        """Put new tokens after the ones that count; `advance` makes them count."""
        import torch

        end = self.length + keys.shape[2]
        held = self._buffers.get(layer)
        if held is None or held[0].shape[2] < end:
            room = max(self.capacity, end)
            # Float32 on a processor: products are exact enough there and need no conversion at every step.
            dtype = torch.float32 if keys.device.type == "cpu" else keys.dtype
            shape = (*keys.shape[:2], room)
            fresh = tuple(torch.empty(*shape, t.shape[3], dtype=dtype, device=t.device) for t in (keys, values))
            for new, old in zip(fresh, held or (), strict=False):
                new[:, :, : self.length] = old[:, :, : self.length]
            held = self._buffers[layer] = (fresh[0], fresh[1])
        for buffer, new in zip(held, (keys, values), strict=True):
            buffer[:, :, self.length : end] = new

    def part(self, layer: int, start: int, end: int) -> tuple[Any, Any]:
        """Keys and values of the tokens from `start` to `end`."""
        keys, values = self._buffers[layer]
        return keys[:, :, start:end], values[:, :, start:end]

    def advance(self, tokens: int) -> None:
        """Count the tokens that were just written; the buffers grow by half when they are full."""
        self.length += tokens
        if self.length >= self.capacity:
            self.capacity = self.length + max(32, self.length // 2)

    def fork(self, length: int, capacity: int) -> Layers:
        """A copy of the first `length` tokens with room for `capacity`."""
        made = Layers(capacity)
        for layer, (keys, values) in self._buffers.items():
            made.write(layer, keys[:, :, :length], values[:, :, :length])
        made.length = length
        return made

    def select(self, rows: Any) -> None:
        """Keep only some rows."""
        for layer, (keys, values) in self._buffers.items():
            self._buffers[layer] = (keys[rows], values[rows])

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers."""
        return sum(int(t.nbytes) for pair in self._buffers.values() for t in pair)


class SharedCache:
    """What a model of transformers takes for its cache: a context that all rows share, and a tail per row.

    Without a tail the context itself is being read (one row).
    """

    is_compileable = False

    def __init__(self, context: Layers, tail: Layers | None = None) -> None:
        self.context = context
        self.tail = tail

    def update(self, keys: Any, values: Any, layer: int, *_: Any, **__: Any) -> tuple[Any, Any]:
        """Keep the keys and values (rows, heads, new tokens, size) of one layer."""
        (self.tail or self.context).write(layer, keys, values)
        return keys, values

    def get_seq_length(self, layer: int = 0) -> int:
        """Tokens before the new ones."""
        return self.context.length + (self.tail.length if self.tail else 0)

    def advance(self, tokens: int) -> None:
        """Count the tokens that a finished forward pass has written."""
        (self.tail or self.context).advance(tokens)


@contextmanager
def attending(cache: SharedCache) -> Iterator[None]:
    """Let the attention of this thread look into `cache`."""
    _ACTIVE.cache = cache
    try:
        yield
    finally:
        _ACTIVE.cache = None


def register() -> str:
    """Make the attention known to transformers under the returned name. No mask is built for it."""
    from transformers import AttentionInterface

    AttentionInterface.register(NAME, attend)
    return NAME


def attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: Any = None,
    **options: Any,
) -> tuple[Any, None]:
    """Attention output (rows, tokens, heads, size) for `query` (rows, heads, tokens, size) into the active cache.

    Scores are masked causally and by the layer's sliding window; the softmax is computed in float32.
    """
    import torch

    cache: SharedCache = _ACTIVE.cache
    rows, heads, tokens, size = query.shape
    window = _window(module, options)
    parts = _parts(cache, module.layer_idx, tokens, window)
    kv_heads = parts[0][0].shape[1]
    asked = query.to(parts[0][0].dtype).reshape(rows, kv_heads, heads // kv_heads * tokens, size)
    asked = asked * (size**-0.5 if scaling is None else scaling)
    scores = []
    for keys, _, mask, shared in parts:
        found = _product(asked, keys.transpose(2, 3), shared).float()
        if softcap is not None:
            found = torch.tanh(found / softcap) * softcap
        if mask is not None:
            found = found.reshape(rows, kv_heads, -1, tokens, keys.shape[2])
            found = found.masked_fill(mask, float("-inf")).reshape(rows, kv_heads, -1, keys.shape[2])
        scores.append(found)
    if s_aux is not None:  # a learned sink: a place that takes probability and gives no value
        sink = s_aux.float().view(1, kv_heads, -1, 1, 1).expand(rows, -1, -1, tokens, 1)
        scores.append(sink.reshape(rows, kv_heads, -1, 1))
    weights = torch.cat(scores, -1).softmax(-1)
    found, start = 0, 0
    for keys, values, _, shared in parts:
        share = weights[..., start : start + keys.shape[2]].to(values.dtype)
        found = found + _product(share, values, shared)
        start += keys.shape[2]
    found = found.reshape(rows, heads, tokens, -1).transpose(1, 2)
    return found.to(query.dtype).contiguous(), None


def _window(module: Any, options: dict[str, Any]) -> int | None:
    """How many tokens the layer looks back, itself included; None = all."""
    window = options.get("sliding_window") or getattr(module, "sliding_window", None)
    kinds = getattr(module.config, "layer_types", None)
    if kinds and kinds[module.layer_idx] == "sliding_attention":
        window = window or module.config.sliding_window
    elif kinds:
        window = None
    return window


def _parts(cache: SharedCache, layer: int, tokens: int, window: int | None) -> list[tuple[Any, Any, Any, bool]]:
    """Keys, values, mask (or None) and whether all rows share them: of the context and the tail, if there is one.

    What lies before the window of the first new token is left out, be it the whole context.
    """
    first = cache.get_seq_length()  # position of the first new token
    low = max(0, first - window + 1) if window else 0
    shared = cache.context.length + (0 if cache.tail else tokens)
    found = []
    places = [(cache.context, 0, shared)]
    if cache.tail:
        places.append((cache.tail, shared, cache.tail.length + tokens))
    for held, begin, length in places:
        start = max(0, low - begin)
        if start < length:
            keys, values = held.part(layer, start, length)
            found.append((keys, values, _mask(keys, begin + start, first, tokens, window), held is cache.context))
    return found


def _mask(keys: Any, begin: int, first: int, tokens: int, window: int | None) -> Any:
    """True (tokens, keys) where a token may not look; None where all may look everywhere."""
    import torch

    count = keys.shape[2]
    if begin + count <= first + 1 and (tokens == 1 or not window or begin > first + tokens - 1 - window):
        return None
    at = torch.arange(begin, begin + count, device=keys.device)
    asking = torch.arange(first, first + tokens, device=keys.device)[:, None]
    hidden = at > asking
    return hidden | (at <= asking - window) if window else hidden


def _product(left: Any, right: Any, shared: bool) -> Any:
    """`left` (rows, heads, n, a) @ `right` (rows or 1, heads, a, b); a `right` that is `shared` is read once."""
    import torch

    rows, heads, n, inner = left.shape
    if not shared:
        return left @ right
    asked = left.transpose(0, 1).reshape(heads, rows * n, inner)
    missing = -(rows * n) % _PAD
    if missing:
        asked = torch.nn.functional.pad(asked, (0, 0, 0, missing))
    found = asked @ right[0]
    return found[:, : rows * n].view(heads, rows, n, -1).transpose(0, 1)
