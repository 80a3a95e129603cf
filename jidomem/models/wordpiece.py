"""Texts as the numbers of their pieces, as BERT's uncased models cut them: words without accents, in known parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]+")
_WORD = re.compile(r"[0-9A-Za-z]+|[^\s0-9A-Za-z]")
_LONGEST = 100
_MOST_WORDS_KEPT = 50_000
_HAN = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)


class WordPieces:
    """Cuts texts into the pieces of a vocabulary, in which each line is one; any thread may ask it."""

    def __init__(self, vocabulary: Sequence[str], most: int) -> None:
        """Know the pieces of *vocabulary*, each by its place, and give *most* numbers for a text at most."""
        self._known = {piece: place for place, piece in enumerate(vocabulary)}
        self._begin, self._end, self._unknown = (self._known[name] for name in ("[CLS]", "[SEP]", "[UNK]"))
        self._most = most
        self._cut = lru_cache(_MOST_WORDS_KEPT)(self._pieces)

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of *text* between those of its begin and end, of a long text the first ones.

        A blank text has none at all.
        """
        found: list[int] = []
        for word in words(text):
            found += self._cut(word) if len(word) <= _LONGEST else (self._unknown,)
            if len(found) >= self._most - 2:
                break
        return [self._begin, *found[: self._most - 2], self._end] if found else []

    def _pieces(self, word: str) -> tuple[int, ...]:
        """Return the numbers of the longest known parts of *word*, from its left; one that cannot be cut is unknown."""
        found, start = list[int](), 0
        while start < len(word):
            for end in range(len(word), start, -1):
                place = self._known.get(("##" if start else "") + word[start:end])
                if place is not None:
                    break
            else:
                return (self._unknown,)
            found.append(place)
            start = end
        return tuple(found) or (self._unknown,)


def words(text: str) -> Iterator[str]:
    """Yield the words of *text* in small letters without accents, and each mark of punctuation by itself.

    >>> [*words("Café: don't!")]
    ['cafe', ':', 'don', "'", 't', '!']
    """
    if text.isascii():
        for match in _WORD.finditer(_CONTROLS.sub("", text)):
            yield match[0].lower()
    else:
        plain = unicodedata.normalize("NFD", "".join(map(_spaced, text)))
        yield from filter(None, "".join(map(_small, plain)).split(" "))


@lru_cache(_MOST_WORDS_KEPT)
def _spaced(sign: str) -> str:
    """Return a sign as it stands between words: nothing for one that cannot be seen, Chinese ones by themselves."""
    if sign in "\t\n\r":
        return " "
    if sign == "\ufffd" or unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if sign.isspace():
        return " "
    return f" {sign} " if any(first <= ord(sign) <= last for first, last in _HAN) else sign


@lru_cache(_MOST_WORDS_KEPT)
def _small(sign: str) -> str:
    """Return a sign in small letters, nothing for an accent, and a mark of punctuation by itself."""
    kind = unicodedata.category(sign)
    if kind == "Mn":
        return ""
    if kind[0] == "P" or sign in "$+<=>^`|~":
        return f" {sign} "
    return sign.lower()
