"""The large libraries (torch, transformers, sentence-transformers) load at first use, one thread at a time.

They fill their modules lazily and build models under a switch that holds for the whole process: of two threads
that import from them or load a model at once, one may find half a module, or weights without data.
"""

from threading import RLock

LOADING = RLock()
