"""A process that embeds a root and is killed at the second four texts: python killed_embedder.py ADDRESS.

It prints the texts that it embeds. Its lease expires after a second.
"""

import os
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

from conftest import ToyEmbedder

import jidomem
from jidomem.extras.servers import shared_vectors
from jidomem.index import search_index


class Fatal(ToyEmbedder):
    """Embeds once, and kills its process the next time."""

    def generate(self, texts):
        if self.asked:
            os.kill(os.getpid(), signal.SIGKILL)
        print(*texts, sep="\n", flush=True)
        return super().generate(texts)


if __name__ == "__main__":
    search_index.MAX_BATCH, shared_vectors.LEASE = 4, 1.0
    jidomem.open(sys.argv[1], project="p", embedder=Fatal()).embedding.embed("p")
