"""The store of vectors on disk: one SQLite file, safe for several threads and processes at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from core.errors import OvertonError, reason_of

_TABLES = """
CREATE TABLE IF NOT EXISTS encoders (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS vectors (
    encoder INTEGER NOT NULL, text TEXT NOT NULL, parts INTEGER NOT NULL, vector BLOB NOT NULL,
    PRIMARY KEY (encoder, text)
);
"""
_CHUNK = 500  # keys in one query; SQLite takes at least 999
_WAIT = 30.0  # seconds to wait for another writer


class VectorStore:
    """Float16 vectors by text key and encoder key.

    Each `put` is one transaction: what was put is there after a crash. Opening does not create the file,
    the first `put` does.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def _locked(self, error: OSError) -> OvertonError:
        return OvertonError(
            f"The vectors in {self.file} cannot be reached ({reason_of(error)}): allow it, or set OVERTON_WORKSPACE "
            "to another folder."
        )

    def _is_there(self) -> bool:
        try:
            return self.file.is_file()
        except OSError as error:
            raise self._locked(error) from error

    def _connect(self, *, write: bool) -> sqlite3.Connection:
        """A connection that holds its lock already.

        Where another one opens or closes the file at this moment, SQLite says "locked" at once, without waiting.
        """
        deadline = time.monotonic() + _WAIT
        while True:
            connection = sqlite3.connect(self.file, timeout=_WAIT)
            try:
                if write:
                    connection.execute("PRAGMA journal_mode=WAL")
                    connection.execute("PRAGMA synchronous=NORMAL")
                    connection.executescript(_TABLES)
                connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.OperationalError as error:
                connection.close()
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
            except BaseException:
                connection.close()
                raise

    @contextmanager
    def _open(self, *, write: bool) -> Iterator[sqlite3.Connection]:
        # A connection per call costs about a millisecond and spares all questions of threads and forks.
        connection = None
        try:
            connection = self._connect(write=write)
            with connection:
                yield connection
        except sqlite3.OperationalError as error:
            raise OvertonError(f"The vectors in {self.file} cannot be reached now ({error}): try again.") from error
        except sqlite3.DatabaseError as error:
            raise OvertonError(f"{self.file} is damaged: delete it, and the vectors are computed anew.") from error
        finally:
            if connection is not None:
                connection.close()

    def put(
        self, encoder: str, keys: Sequence[str], vectors: NDArray[np.floating], parts: Sequence[int] | None = None
    ) -> None:
        """Keep one vector (a row) per text key; keys that are there stay as they are."""
        if len(keys) != len(vectors):
            raise ValueError("one vector per key")
        half = np.ascontiguousarray(vectors, dtype=np.float16)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._locked(error) from error
        with self._open(write=True) as connection:
            connection.execute("INSERT OR IGNORE INTO encoders (key) VALUES (?)", (encoder,))
            (number,) = connection.execute("SELECT id FROM encoders WHERE key = ?", (encoder,)).fetchone()
            rows = zip(keys, parts if parts is not None else [1] * len(keys), half, strict=True)
            connection.executemany(
                "INSERT OR IGNORE INTO vectors (encoder, text, parts, vector) VALUES (?, ?, ?, ?)",
                ((number, str(key), int(count), row.tobytes()) for key, count, row in rows),
            )

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, tuple[NDArray[np.float16], int]]:
        """What is stored of these text keys: vector, and the number of parts it was made from."""
        if not self._is_there():
            return {}
        found: dict[str, tuple[NDArray[np.float16], int]] = {}
        with self._open(write=False) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'vectors'").fetchone():
                return {}
            hit = connection.execute("SELECT id FROM encoders WHERE key = ?", (encoder,)).fetchone()
            if hit is None:
                return {}
            for start in range(0, len(keys), _CHUNK):
                some = [str(key) for key in keys[start : start + _CHUNK]]
                marks = ",".join("?" * len(some))
                query = f"SELECT text, vector, parts FROM vectors WHERE encoder = ? AND text IN ({marks})"
                for text, blob, parts in connection.execute(query, (hit[0], *some)):
                    found[text] = (np.frombuffer(blob, dtype=np.float16), parts)
        return found

    def count(self, encoder: str) -> int:
        """Number of texts that have a vector of this encoder."""
        if not self._is_there():
            return 0
        query = "SELECT count(*) FROM vectors JOIN encoders ON encoders.id = vectors.encoder WHERE encoders.key = ?"
        with self._open(write=False) as connection:
            return int(connection.execute(query, (encoder,)).fetchone()[0])
