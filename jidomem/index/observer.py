"""Who follows an index: something derived from it that is told of every change."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from jidomem.terms import Triple


class Observer(Protocol):
    """Something derived from the index that is told of every change, under the index's lock: it must not wait.

    A call comes after the store has changed and before whoever brought the index up to date may read; a reader that
    asked for nothing newer may still see the store ahead of what is derived.
    """

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Take in that *triples*, as the journal writes them, were added to *graph*; some may have been there.

        The store gives some literals back in another form: a moment without the zeros at its end.
        """

    def reset(self, graph: str) -> None:
        """Forget all that is known of *graph*: it has other content now, to be read from the index when needed."""
