"""The contract of an embedder: what makes vectors of texts, so that texts that mean alike can be found by likeness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

Vector = Sequence[float]


@runtime_checkable
class Embedder(Protocol):
    """Makes vectors of texts; any thread may call it, and the same text gives the same vector."""

    @property
    def name(self) -> str:
        """Return what tells its vectors from those of any other: the model, its version, and its dimension."""
        ...

    def dimensions(self) -> int:
        """Return how many numbers each of its vectors has."""
        ...

    def generate(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order; raises ModelUnavailable, and then there is none."""
        ...
