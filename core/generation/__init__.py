"""Generators: from a context to samples."""
