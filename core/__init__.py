"""Everything that works without a browser: datasets, lenses, vectors, maps, prompting, generation."""

import os

# Threads that wait for each other by spinning starve when a browser and a server share the processor with the
# model: generation gets several times slower. Must be set before torch is first imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
