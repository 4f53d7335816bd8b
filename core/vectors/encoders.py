"""Encoders: text to vector. The real one reads long texts in parts; the fake one needs no model."""

from __future__ import annotations

import contextlib
import hashlib
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from core.errors import OvertonError, user_path
from core.heavy import LOADING
from core.vectors.parts import join, parts_of

Floats = NDArray[np.float32]
Progress = Callable[[int, int], None]  # (done, total)

DEFAULT_ID = "all-MiniLM-L6-v2"
DEFAULT_REVISION = "b9a0018dff09"  # as the catalogue has it (tested), written here so that nothing is read at import
DEFAULT_KEY = f"{DEFAULT_ID}@{DEFAULT_REVISION}"


@runtime_checkable
class Encoder(Protocol):
    """What turns texts into vectors."""

    @property
    def key(self) -> str:
        """``id@revision``: under it the vectors are stored."""
        ...

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        ...

    @property
    def max_tokens(self) -> int | None:
        """Number of tokens that are read at once; None where there is no limit."""
        ...

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Vectors of unit length, shape (len(texts), dimension)."""
        ...

    def parts(self, texts: Sequence[str]) -> list[int]:
        """In how many parts each text is read: more than 1 where it is longer than `max_tokens`."""
        ...


def unit(vectors: NDArray[Any]) -> Floats:
    """Rows scaled to length 1 as float32; rows of zeros or with NaN become NaN."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(lengths > 0, rows / lengths, np.nan).astype(np.float32)


class HashEncoder:
    """A stand-in that needs no model: hashed words and letter triples. Equal words, near vectors."""

    def __init__(self, dimension: int = 256) -> None:
        self.dimension = dimension
        self.key = f"hash-{dimension}@1"
        self.max_tokens: int | None = None
        self._feature = lru_cache(maxsize=100_000)(self._direction)

    def _direction(self, feature: str) -> Floats:
        seed = int.from_bytes(
            hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big"
        )
        return np.random.Generator(np.random.PCG64(seed)).standard_normal(self.dimension).astype(np.float32)

    def _one(self, text: str) -> Floats:
        lowered = " ".join(text.lower().split())
        words = set(re.findall(r"\w+", lowered))
        triples = {lowered[i : i + 3] for i in range(len(lowered) - 2)} if not words else set()
        total = np.zeros(self.dimension, dtype=np.float32)
        for feature in sorted(words | triples) or [lowered]:
            total += self._feature(feature)
        return total

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Vectors of unit length, shape (len(texts), dimension); the same on every machine."""
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for i, text in enumerate(texts):
            rows[i] = self._one(text)
            if progress is not None:
                progress(i + 1, len(texts))
        return unit(rows)

    def parts(self, texts: Sequence[str]) -> list[int]:
        """Always 1: there is no limit."""
        return [1] * len(texts)


def revision_of(folder: Path) -> str:
    """Twelve hex digits that stand for the weights in a folder: names, sizes, and both ends of each file.

    Whole files are not read, as they may have many GB.
    """
    digest = hashlib.sha256()
    names = ("*.safetensors", "*.bin", "config.json", "modules.json", "*/config.json")
    for file in sorted({f for pattern in names for f in folder.glob(pattern)}):
        size = file.stat().st_size
        digest.update(f"{file.relative_to(folder)} {size} ".encode())
        with file.open("rb") as opened:
            digest.update(opened.read(1 << 20))
            opened.seek(max(0, size - (1 << 20)))
            digest.update(opened.read())
    return digest.hexdigest()[:12]


def hub_snapshot(model: str) -> str:
    """The folder of a model that is in the hub's cache already, else its id where the hub answers.

    Raises `OvertonError` after a few seconds without a network; the hub's own client tries for a minute.
    """
    import huggingface_hub

    with contextlib.suppress(Exception):  # not there, or no valid id: which of them, the hub will say
        return str(huggingface_hub.snapshot_download(model, local_files_only=True))
    request = urllib.request.Request(huggingface_hub.constants.ENDPOINT, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=5).close()
    except urllib.error.HTTPError:
        pass  # it answers
    except OSError as error:
        raise OvertonError(
            f"The encoder {model} is no folder on this machine, and the hub cannot be reached: check the name or the "
            "network."
        ) from error
    return model


class SentenceTransformerEncoder:
    """An encoder of sentence-transformers; texts longer than it reads are encoded in parts and averaged.

    `model` is `all-MiniLM-L6-v2` (which must have been fetched, see `core.models`), a local folder, or an id
    on the hub. The weights load at first use. Raises `OvertonError` there when they cannot be had.
    """

    def __init__(self, model: str | Path = DEFAULT_ID, *, key: str | None = None, batch_size: int = 32) -> None:
        self.model = str(model)
        self.batch_size = batch_size
        self._key = key or (DEFAULT_KEY if self.model == DEFAULT_ID else None)
        self._loaded: Any = None
        self._lock = threading.RLock()

    @property
    def key(self) -> str:
        """``id@revision``; for a model on the hub the first look loads it."""
        if self._key is None:
            folder = user_path(self.model)
            if folder.is_dir():
                self._key = f"{folder.resolve().name}@{revision_of(folder)}"
            else:
                config = getattr(self._load()[0], "auto_model", None)
                commit = getattr(getattr(config, "config", None), "_commit_hash", None)
                self._key = f"{self.model}@{str(commit or 'unknown')[:12]}"
        return self._key

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        model = self._load()
        size = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension
        return int(size())

    @property
    def max_tokens(self) -> int | None:
        """Number of tokens that the model reads at once, with the two marks at the ends."""
        limit = self._load().max_seq_length
        return int(limit) if limit else None

    def _source(self) -> str:
        if self.model != DEFAULT_ID:
            folder = user_path(self.model)
            return str(folder) if folder.is_dir() else hub_snapshot(self.model)
        from core import models

        found = models.local_folder(DEFAULT_ID)
        if found is None:
            raise OvertonError(f"The encoder {DEFAULT_ID} is not on this machine yet: fetch it first.")
        return str(found)

    def _load(self) -> Any:
        with self._lock:
            if self._loaded is None:
                source = self._source()
                try:
                    with LOADING:
                        from sentence_transformers import SentenceTransformer

                        self._loaded = SentenceTransformer(source, device="cpu")
                except Exception as error:  # the libraries raise many types for a missing or damaged model
                    raise OvertonError(
                        f"The encoder {self.model} cannot be loaded: give a folder of sentence-transformers, or an "
                        "id on the hub while there is a network."
                    ) from error
            return self._loaded

    def _split(self, texts: Sequence[str]) -> list[list[tuple[str, int]]]:
        model = self._load()
        tokenizer: Any = getattr(model, "tokenizer", None)
        if self.max_tokens is None or not getattr(tokenizer, "is_fast", False):
            return [[(text, 1)] for text in texts]
        budget = self.max_tokens - int(tokenizer.num_special_tokens_to_add())
        return parts_of(texts, tokenizer, budget)

    def parts(self, texts: Sequence[str]) -> list[int]:
        """In how many parts each text is read."""
        return [len(split) for split in self._split(texts)]

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> Floats:
        """Vectors of unit length, shape (len(texts), dimension).

        Each part is encoded alone; a text's vector is the mean of its parts, weighted by their tokens, and
        scaled to unit length again.
        """
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        split = self._split(texts)
        flat = [part for parts in split for part in parts]
        order = sorted(range(len(flat)), key=lambda i: -flat[i][1])  # equally long ones together: less padding
        rows = np.empty((len(flat), self.dimension), dtype=np.float32)
        with self._lock:  # the model is shared by the sessions of the server
            for start in range(0, len(flat), self.batch_size):
                some = order[start : start + self.batch_size]
                batch = [flat[i][0] for i in some]
                rows[some] = self._load().encode(batch, batch_size=self.batch_size, show_progress_bar=False)
                if progress is not None:
                    progress((start + len(some)) * len(texts) // len(flat), len(texts))
        return unit(join(unit(rows), [[tokens for _, tokens in parts] for parts in split]))
