"""The sampling loop: rows that share a context grow together, leave when they end, split where memory is short."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from core.generation import memory
from core.generation.base import OnText, Sample
from core.generation.loading import out_of_memory
from core.generation.network import Cancelled, PlainNetwork, SharedNetwork
from core.generation.rows import Row, numbers
from core.generation.sampling import NoNumbers, Sampler

log = logging.getLogger(__name__)

# No more rows than this go together: beyond it a step takes so long that streaming suffers.
MOST_ROWS = 128


def in_batches(
    net: SharedNetwork | PlainNetwork, ids: Sequence[int], rows: Sequence[Row], ends: set[int], on_text: OnText | None
) -> Iterator[Sample]:
    """Samples of all rows as they finish. What memory does not hold goes in several batches.

    A batch that still runs out of memory is begun again in halves, with the same seeds; a single row that does, and
    a row whose computation fails, becomes a sample with an error.
    """
    waiting, most = list(rows), MOST_ROWS
    while waiting:
        most = min(most, _fitting(net, ids, waiting[0]))
        batch = waiting[:most]
        try:
            for sample in _Together(net, ids, batch, ends, on_text).run():
                waiting = [row for row in waiting if row.index != sample.index]
                yield sample
        except Exception as error:  # whatever the libraries raise: what is finished stays
            left = [row for row in waiting if row in batch]
            net.end()
            net.contexts.clear()
            if out_of_memory(error) and len(left) > 1:
                most = (len(left) + 1) // 2
                waiting = [row.again() if row in left else row for row in waiting]
                continue
            log.exception("a batch of %d samples failed", len(left))
            for row in left:
                yield row.sample("error", _sentence(error))
            waiting = [row for row in waiting if row not in left]


def _sentence(error: Exception) -> str:
    if out_of_memory(error):
        return "There was not enough memory: shorten the context, or ask for fewer tokens."
    if isinstance(error, NoNumbers):
        return "The model gave no numbers to draw from: its weights are damaged, or its number format overflows here."
    return f"The computation failed ({type(error).__name__}); the log has the details."


def _fitting(net: SharedNetwork | PlainNetwork, ids: Sequence[int], row: Row) -> int:
    """How many rows fit into half of the free memory: their tails, and four times their logits for sampling."""
    config = net.net.config.get_text_config()
    queries = getattr(config, "num_attention_heads", None) or 1  # none where there is no attention, as in Mamba
    heads = getattr(config, "num_key_value_heads", None) or queries
    size = getattr(config, "head_dim", None) or config.hidden_size // queries
    tokens = row.sampling.max_new_tokens + (len(ids) if isinstance(net, PlainNetwork) else 0)
    needed = config.num_hidden_layers * 2 * heads * size * 4 * tokens + config.vocab_size * 4 * 4
    return max(1, memory.available(str(net.net.device.type)) // 2 // int(needed))


class _Together:
    """One batch on its way."""

    def __init__(
        self,
        net: SharedNetwork | PlainNetwork,
        ids: Sequence[int],
        rows: Sequence[Row],
        ends: set[int],
        on_text: OnText | None,
    ) -> None:
        self.net = net
        self.ids = ids
        self.live = list(rows)
        self.ends = ends
        self.on_text = on_text
        self.sampler = Sampler(rows[0].sampling)
        self.seen: Any = None

    def run(self) -> Iterator[Sample]:
        """Samples as they finish; those that were stopped keep what they have."""
        import torch

        try:
            self.net.check()  # a context that is remembered needs no forward pass
            with torch.inference_mode():
                logits = self._begin()
            while True:
                with torch.inference_mode():
                    finished = self._draw(logits)
                yield from finished
                if not self.live:
                    return
                with torch.inference_mode():
                    logits = self.net.step([[row.ids[-1]] for row in self.live])[:, -1]
        except Cancelled:
            yield from [row.sample("cancelled") for row in self.live]

    def _begin(self) -> Any:
        import torch

        logits = self.net.read(self.ids).expand(len(self.live), -1)
        self.net.begin(len(self.live))
        if self.live[0].sampling.repetition_penalty != 1:
            self.seen = torch.zeros(logits.shape, dtype=torch.bool, device=logits.device)
            self.seen[:, list(set(self.ids))] = True
        return logits

    def _draw(self, logits: Any) -> list[Sample]:
        """Give each row its next token; the samples of those that end with it leave the batch."""
        drawn = self.sampler.draw(logits, numbers(self.live), self.seen)
        if self.seen is not None:
            for place, token in enumerate(drawn.tokens):
                self.seen[place, token] = True
        finished, stay = [], []
        for place, row in enumerate(self.live):
            reason = row.take(drawn, place, self.ends)
            if self.on_text is not None:
                self.on_text(row.index, row.shown(), len(row.ids))
            if reason:
                finished.append(row.sample(reason))
            else:
                stay.append(place)
        if finished and stay:
            self.net.select(stay)
            self.seen = None if self.seen is None else self.seen[stay]
        self.live = [self.live[place] for place in stay]
        return finished
