"""What of a text one vector is made of: all of it, or of a long one each of its pieces.  Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import blake2b

#: Signs of a text that are kept beside its words, and so many at most that one piece has: models read no more.
LONGEST, PIECE = 8_000, 500
_ENDS = re.compile(r"\n\s*\n|\n|(?<=[.!?。！？])\s+")


def pieces(text: str) -> list[str]:
    """Return the pieces of *text*, which end where paragraphs or sentences do as far as those are short enough.

    Who said it stands in none: with names, all that one person said is alike, and to each question that names them.

    >>> pieces("Short. And whole.")
    ['Short. And whole.']
    >>> [len(piece) for piece in pieces("a" * 499 + ". " + "b" * 750)]
    [500, 500, 250]
    """
    found: list[str] = []
    for part in _parts(text[:LONGEST]):
        if found and len(found[-1]) + 1 + len(part) <= PIECE:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def _parts(text: str) -> Iterator[str]:
    """Yield the sentences of *text*, cut where they are longer than a piece."""
    text = text.strip()
    if len(text) <= PIECE:
        yield from [text] if text else []
        return
    for part in filter(None, map(str.strip, _ENDS.split(text))):
        yield from (part[at : at + PIECE] for at in range(0, len(part), PIECE))


def digest(text: str) -> bytes:
    """Return what tells a text from any other, in 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
