"""Lenses: measures over responses, one file each."""
