"""An append-only file of finished samples: each is on disk before anything else happens to it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from threading import Lock
from typing import Any


class Journal:
    """JSON lines in one file; a half-written last line, left by a crash, is skipped when reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row and wait until it is on disk."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(dict(row), ensure_ascii=True) + "\n"
        with self._lock, self.path.open("a+b") as file:
            # After a crash the last line may lack its end: close it, so that this row stands alone.
            if file.tell() > 0:
                file.seek(-1, os.SEEK_END)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.encode("ascii"))
            file.flush()
            os.fsync(file.fileno())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self.path.is_file():
            return
        with self.path.open("rb") as file:
            for line in file:
                try:
                    row = json.loads(line)
                except ValueError:
                    continue
                if isinstance(row, dict):
                    yield row
