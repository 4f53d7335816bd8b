"""Vectors of responses: encoders, and the store that keeps what they made.

A vector belongs to a *text* (without the white space around it) and an encoder, so equal responses share one
and a dataset that was derived from another pays only for its new texts. Vectors are kept as float16 and
handed out as float32 rows of unit length; whatever way they come (just encoded, from the store, shipped with a
dataset) the numbers are the same. A response without a usable, non-empty text has a row of NaN.
"""

from core.vectors.encoders import DEFAULT_ID, DEFAULT_KEY, Encoder, HashEncoder, SentenceTransformerEncoder
from core.vectors.of_dataset import coverage, keys_of, longer, store_file, stored, vectors_for, write_shipped
from core.vectors.selection import Selection, select
from core.vectors.store import VectorStore

__all__ = [
    "DEFAULT_ID",
    "DEFAULT_KEY",
    "Encoder",
    "HashEncoder",
    "Selection",
    "SentenceTransformerEncoder",
    "VectorStore",
    "coverage",
    "keys_of",
    "longer",
    "select",
    "store_file",
    "stored",
    "vectors_for",
    "write_shipped",
]
