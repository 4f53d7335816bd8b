"""A causal language model and its caches: reading a context, and the steps of many rows that continue it.

Two ways: `SharedNetwork` keeps the context once for all rows (see `core.generation.attention`); `PlainNetwork` uses
the library's own cache, repeated for every row, for architectures that the first does not fit.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Sequence
from threading import Event
from typing import Any

from core.generation.attention import KINDS, NAME, Layers, SharedCache, attending, register
from core.generation.contexts import Contexts

# Logits of both ways may differ by this share of their standard deviation, for rounding in bfloat16.
_TOLERANCE = 0.25


# Tokens that a tail has room for at first.
_TAIL = 64

log = logging.getLogger(__name__)


class Cancelled(Exception):
    """The user asked to stop; also raised inside a forward pass."""


class _Network:
    """What both ways have in common."""

    def __init__(self, net: Any) -> None:
        self.net = net
        takes = inspect.signature(net.forward).parameters
        self._cache_argument = "cache" if "cache" in takes else "past_key_values"
        self._keeps = "logits_to_keep" in takes
        self.cancel: Event | None = None

    def watch(self) -> None:
        """Look for `cancel` before every layer: one forward pass of a large model may take longer than a second."""
        for layer in _decoder_layers(self.net):
            layer.register_forward_pre_hook(self.check)

    def check(self, *_: Any) -> None:
        """Raise `Cancelled` where the user asked to stop."""
        if self.cancel is not None and self.cancel.is_set():
            raise Cancelled

    def _forward(self, ids: Any, cache: Any, *, keep: int = 1) -> Any:
        """Logits (rows, `keep`, vocabulary) of the last tokens of `ids` (rows, tokens)."""
        options = {self._cache_argument: cache, "use_cache": True}
        if self._keeps:
            options["logits_to_keep"] = keep
        return self.net(ids, **options).logits[:, -keep:]

    def _tensor(self, ids: Sequence[int] | Sequence[Sequence[int]]) -> Any:
        import torch

        return torch.tensor(ids, device=self.net.device)


class SharedNetwork(_Network):
    """Reads a context once and shares it between rows; remembers the last contexts."""

    def __init__(self, net: Any, limit: int) -> None:
        super().__init__(net)
        self.contexts = Contexts(limit)
        self._cache: SharedCache | None = None
        # Processors multiply a single row in another order than several. So that a sample does not depend on whether
        # it is the last one left, a single row is computed twice there.
        self._doubles = net.device.type == "cpu"
        self._doubled = False

    def read(self, ids: Sequence[int]) -> Any:
        """Logits (1, vocabulary) after the context."""
        layers, logits = self.contexts.read(ids, self._read)
        self._cache = SharedCache(layers)
        return logits

    def _read(self, layers: Layers, ids: Sequence[int], last: bool) -> Any:
        cache = SharedCache(layers)
        with attending(cache):
            if last:
                logits = self._forward(self._tensor([ids]), cache)[:, -1]
            else:  # without the head, which costs as much as the rest where the vocabulary is large
                logits = None
                self.net.get_decoder()(self._tensor([ids]), **{self._cache_argument: cache, "use_cache": True})
        cache.advance(len(ids))
        return logits

    def begin(self, rows: int) -> None:
        """Start `rows` rows after the context that was read last."""
        assert self._cache is not None
        self._cache = SharedCache(self._cache.context, Layers(_TAIL))
        self._doubled = self._doubles and rows == 1

    def step(self, ids: Sequence[Sequence[int]]) -> Any:
        """Logits (rows, tokens, vocabulary) of the next tokens (rows, tokens) of all rows."""
        assert self._cache is not None
        asked = [*ids, *ids] if self._doubled else ids
        with attending(self._cache):
            logits = self._forward(self._tensor(asked), self._cache, keep=len(ids[0]))
        self._cache.advance(len(ids[0]))
        return logits[:1] if self._doubled else logits

    def select(self, rows: Sequence[int]) -> None:
        """Go on with some rows only."""
        assert self._cache is not None and self._cache.tail is not None
        self._doubled = self._doubles and len(rows) == 1
        self._cache.tail.select(self._tensor([*rows, *rows] if self._doubled else rows))

    def end(self) -> None:
        """Let the rows go; the context stays."""
        self._cache = None


class PlainNetwork(_Network):
    """The library's own cache and attention, for architectures that cannot share a context."""

    def __init__(self, net: Any, limit: int) -> None:
        super().__init__(net)
        self.contexts = Contexts(limit)  # stays empty
        self._cache: Any = None

    def read(self, ids: Sequence[int]) -> Any:
        """Logits (1, vocabulary) after the context."""
        from transformers import DynamicCache

        self._cache = DynamicCache(config=self.net.config)
        return self._forward(self._tensor([ids]), self._cache)[:, -1]

    def begin(self, rows: int) -> None:
        """Start `rows` rows after the context that was read last."""
        if rows > 1:  # `reorder_cache` is what all kinds of caches can do
            self._cache.reorder_cache(self._tensor([0] * rows))

    def step(self, ids: Sequence[Sequence[int]]) -> Any:
        """Logits (rows, tokens, vocabulary) of the next tokens (rows, tokens) of all rows."""
        return self._forward(self._tensor(ids), self._cache, keep=len(ids[0]))

    def select(self, rows: Sequence[int]) -> None:
        """Go on with some rows only."""
        self._cache.reorder_cache(self._tensor(rows))

    def end(self) -> None:
        """Let the cache go."""
        self._cache = None


def network(net: Any, limit: int) -> SharedNetwork | PlainNetwork:
    """The faster way that gives the right logits for this model; `limit` is for remembered contexts, in bytes."""
    usual = net.config._attn_implementation
    found: SharedNetwork | PlainNetwork = PlainNetwork(net, limit)
    expected = trial(found)
    try:
        if set(getattr(net.config.get_text_config(), "layer_types", None) or ()) - KINDS:
            return _ready(found, usual)
        net.set_attn_implementation(register())
        shared = SharedNetwork(net, limit)
        if net.config._attn_implementation == NAME and difference(trial(shared), expected) < _TOLERANCE:
            found = shared
            if _reads_at_once(net.config.get_text_config()):
                shared.contexts.block = 2**30
    except Exception:  # whatever an architecture lacks, the library's own way is there
        log.info("%s cannot share a context", type(net).__name__, exc_info=True)
    return _ready(found, usual)


def _reads_at_once(config: Any) -> bool:
    """Whether positions depend on how much is read at once, so that reading in blocks would give other numbers."""
    rope = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kinds = [rope, *(value for value in rope.values() if isinstance(value, dict))]
    return any(kind.get("rope_type", kind.get("type")) in ("longrope", "dynamic") for kind in kinds)


def _ready(found: SharedNetwork | PlainNetwork, usual: str) -> SharedNetwork | PlainNetwork:
    if isinstance(found, PlainNetwork):
        found.net.set_attn_implementation(usual)
    found.end()
    found.watch()
    return found


def trial(network: SharedNetwork | PlainNetwork) -> Any:
    """Logits (9, vocabulary) of a made-up context, read in two blocks, and of three rows of which one then leaves."""
    import torch

    size = network.net.config.get_text_config().vocab_size
    ids = [(k * 7919 + 13) % size for k in range(25)]
    usual, network.contexts = network.contexts, Contexts(0, block=16)
    with torch.inference_mode():
        found = [network.read(ids)]
        network.begin(3)
        for k in range(2):
            found.append(network.step([[ids[k]], [ids[k + 3]], [ids[k + 5]]])[:, -1])
        network.select([0, 2])
        found.append(network.step([[ids[7]], [ids[8]]])[:, -1])
    network.contexts = usual
    return torch.cat(found).float()


def difference(one: Any, other: Any) -> float:
    """Largest difference of two sets of logits in units of their standard deviation."""
    return float((one - other).abs().max() / other.std())


def _decoder_layers(net: Any) -> list[Any]:
    """The modules that run one after the other: the longest list of modules in the model."""
    from torch.nn import ModuleList

    lists = [module for module in net.modules() if isinstance(module, ModuleList)]
    return max((list(found) for found in lists), key=len, default=[])
