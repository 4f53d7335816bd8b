"""How far a bulk run is: counts, rates over the last while, and the time that is left."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

WINDOW = 60.0  # seconds over which rates are measured


@dataclass
class Progress:
    """Live counts. `done` counts samples of the dataset that are there (reused ones too), `made` those of this run.

    Written by one thread, read by any.
    """

    total: int = 0
    reused: int = 0
    made: int = 0
    errors: int = 0
    tokens: int = 0
    left: int = 0
    per_system: dict[str, dict[str, int]] = field(default_factory=dict)
    growing: dict[tuple[str, str, int], int] = field(default_factory=dict)
    started: float | None = None
    ended: float | None = None
    _latest: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=4096), repr=False)

    @property
    def done(self) -> int:
        """Samples that are there."""
        return self.reused + self.made

    def begin(self, per_system: dict[str, dict[str, int]], *, left: int) -> None:
        """Set the counts of a plan: `{system: {"total", "done", "errors"}}`, and the rows that it leaves alone."""
        self.total, self.reused, self.errors = (
            sum(counts[name] for counts in per_system.values()) for name in ("total", "done", "errors")
        )
        self.left, self.per_system = left, per_system
        self.started = time.monotonic()

    def grow(self, address: tuple[str, str, int], tokens: int) -> None:
        """A sample that is not finished has so many tokens now."""
        self.growing[address] = tokens

    def add(self, address: tuple[str, str, int], tokens: int, *, error: bool) -> None:
        """A sample is in the journal."""
        self.growing.pop(address, None)
        self.made += 1
        self.tokens += tokens
        self.errors += error
        counts = self.per_system.get(address[0])
        if counts is not None:
            counts["done"] += 1
            counts["errors"] += error
        self._latest.append((time.monotonic(), tokens))

    def end(self) -> None:
        """Nothing more comes."""
        self.ended = time.monotonic()
        self.growing.clear()

    @property
    def seconds(self) -> float:
        """Seconds since generation began."""
        return 0.0 if self.started is None else (self.ended or time.monotonic()) - self.started

    def _window(self) -> tuple[float, int, int]:
        """Seconds, samples and tokens of the last while."""
        now = self.ended or time.monotonic()
        latest = [(at, tokens) for at, tokens in list(self._latest) if now - at <= WINDOW]
        full = len(latest) < self.made  # the run is older than the window
        since = latest[0][0] if full and len(latest) > 1 else self.started or now
        counted = latest[1:] if full and len(latest) > 1 else latest
        return now - since, len(counted), sum(tokens for _, tokens in counted)

    @property
    def samples_per_second(self) -> float | None:
        """Finished samples per second; None while that cannot be said."""
        spent, samples, _ = self._window()
        return samples / spent if spent > 0 and samples else None

    @property
    def tokens_per_second(self) -> float | None:
        """Tokens per second of finished and growing samples; None while that cannot be said."""
        spent, _, tokens = self._window()
        tokens += sum(self.growing.copy().values())
        return tokens / spent if spent > 0 and tokens else None

    @property
    def remaining(self) -> float | None:
        """Estimated seconds that are left; None while that cannot be said."""
        rate = self.samples_per_second
        return (self.total - self.done) / rate if rate else None

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "samples": self.total,
            "done": self.done,
            "reused": self.reused,
            "made": self.made,
            "left": self.left,
            "errors": self.errors,
            "tokens": self.tokens,
            "seconds": round(self.seconds, 3),
            "samples_per_s": round(self.made / self.seconds, 3) if self.seconds and self.made else None,
            "tokens_per_s": round(self.tokens / self.seconds, 3) if self.seconds and self.tokens else None,
            "systems": self.per_system,
        }


def duration(seconds: float | None) -> str:
    """A time in words that are easy to read: 40 s, 12 min, 3.5 h."""
    if seconds is None:
        return "unknown"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
