"""The benchmarks of jidomem: `python -m bench` runs all of them, `python -m bench.NAME` one of them."""

import os

os.environ.setdefault("JIDOMEM_EMBEDDER", "none")  # recall by words, unless a benchmark sets another embedder
