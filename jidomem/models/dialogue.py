"""What is read of the pages of a dialogue."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from jidomem.errors import InvalidRequest
from jidomem.model import Page


def said(pages: Sequence[Page]) -> list[str]:
    """Return what was asked and answered in *pages*, in order, without what is empty."""
    return [text for text in chain.from_iterable((page.query, page.response) for page in pages) if text.strip()]


def at_least_one(pages: Sequence[Page]) -> Sequence[Page]:
    """Return *pages*; raise InvalidRequest where there is none."""
    if not pages:
        raise InvalidRequest("there is no page to read", hint="give at least one page")
    return pages


def so_far(pages: Sequence[Page]) -> tuple[str | None, Sequence[Page]]:
    """Return the chain of the talk before the last of *pages*, None where it has none, and the pages said since."""
    for place in range(len(at_least_one(pages)) - 2, -1, -1):
        if found := pages[place].meta_chain:
            return found, pages[place + 1 :]
    return None, pages
