"""Two memories side by side: what each says, property by property, with what differs marked."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from jidomem.serve.curator import text

_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
#: Texts of more words are compared as wholes: telling them apart word by word takes the square of their number.
_MOST = 2_000
#: Signs of a text that are shown here.
_LONGEST = 4_000


class Part(NamedTuple):
    """A piece of a text, and whether the other one has it not."""

    text: str
    differs: bool


def compared(left: Mapping[str, Sequence[Any]], right: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each property of either with its values on both sides, as parts of texts.

    >>> [row] = compared({"summary": ["use tabs"]}, {"summary": ["use spaces"]})
    >>> [part.text for part in row["right"] if part.differs]
    ['spaces']
    """
    for name in dict.fromkeys((*left, *right)):
        one, other = (" · ".join(map(text.name, side.get(name, ()))) for side in (left, right))
        ours, theirs = parts(_cut(one), _cut(other))
        yield {"name": name, "differs": one != other, "left": ours, "right": theirs}


def _cut(said: str) -> str:
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]} … ({len(said):,} characters: see the memory itself)"


def parts(left: str, right: str) -> tuple[list[Part], list[Part]]:
    """Return both texts in parts, those marked that the other has not."""
    one, other = _WORDS.findall(left), _WORDS.findall(right)
    if len(one) + len(other) > _MOST:
        return [Part(left, left != right)], [Part(right, left != right)]
    ours, theirs = [], []
    for how, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        ours.append(Part("".join(one[a:b]), how != "equal"))
        theirs.append(Part("".join(other[c:d]), how != "equal"))
    return [part for part in ours if part.text], [part for part in theirs if part.text]
