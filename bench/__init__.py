"""What jidomem costs, measured beside something else: `python -m bench` runs all of it."""

import os

os.environ.setdefault("JIDOMEM_EMBEDDER", "none")  # what is measured of recall is what it costs by words
