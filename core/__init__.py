"""Everything that works without a browser: datasets, lenses, vectors, maps, prompting, generation."""
