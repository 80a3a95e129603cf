"""The words of a text, as they are looked for: folded, with identifiers and paths whole and in parts.  Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache

#: Signs of a word that are kept; a longer run of letters is cut, a longer name is found by its parts alone.
LONGEST = 100
_LITTLE = """
a about after all also am an and any are as at be because been before being but by can could did do does doing done
during each for from further had has have having he her here hers him his how i if in into is it its itself just let me
more most my no nor not of on once only or other our ours out over own please same shall she should so some such than
that the their theirs them then there these they this those through to too under until up us use used using very was we
were what when where which while who whom whose why will with would you your yours
"""
#: English words that tell little of what a text is about, also where few texts hold them.
TELL_LITTLE = frozenset(_LITTLE.split())
# What stands in a word beside letters and digits: the marks of scripts that write vowels with them.
_SIGN = "(?:[^\\W_]|[\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u109f])"
_NAME = re.compile(f"{_SIGN}+(?:[_.\\-/\\\\:]+{_SIGN}+)*")
_PLACES, _PIECES, _LINKS = re.compile(r"[/\\:]+"), re.compile(r"[/\\:.\-]+"), re.compile(r"[_.\-/\\:]+")
_HUMPS = re.compile(r"[0-9]+|[A-Z]{2,}s(?![^A-Z0-9])|[A-Z]+(?![^A-Z0-9])|[A-Z]?[^A-Z0-9]+")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))
#: What stands between the words of a topic: white space, underscores, and the dashes and hyphens of Unicode.
_LINK = r"[-\s_\u00ad\u2010-\u2015\u2212]"
_TOPIC_LINKS, _LINKS_AFTER_DIGIT = re.compile(f"{_LINK}+"), re.compile(rf"(?<=[0-9]){_LINK}+(?!{_LINK}|\Z)")
# Scripts that put no space between words, and Hangul, whose words end in many ways.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
#: Marks that show nothing: names that differ in these alone look the same.
_UNSEEN = frozenset("\u034f\u180b\u180c\u180d\u180f") | {*map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))}


def words(text: str) -> Iterator[str]:
    """Yield the words of *text* in order: a name or path is followed by what it is made of.

    >>> list(words("Café: move IndexStore"))
    ['cafe', 'move', 'indexstore', 'index', 'store']
    >>> list(words("src/text_file.py"))
    ['srctextfilepy', 'textfilepy', 'textfile', 'src', 'text', 'file', 'py']
    """
    for name in names(text):
        yield from words_of(name)


def names(text: str) -> list[str]:
    """Return what stands between spaces and other signs in *text*: words, identifiers, paths."""
    return _NAME.findall(_folded(text))


def words_of(name: str) -> Iterator[str]:
    """Yield one of `names` as it is, its places and pieces that have several parts, and its parts."""
    parts = _parts(name)
    if len(parts) > 1:
        pieces = dict.fromkeys((name, *_PLACES.split(name), *_PIECES.split(name)))
        for whole in dict.fromkeys(map(_joined, pieces)):
            if whole and len(whole) <= LONGEST:
                yield whole
    for part in parts:
        yield from _grams(part[:LONGEST])


def _folded(text: str) -> str:
    """Return *text* in compatibility form without the accents of Latin, Greek and Cyrillic letters; case is kept."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).translate(_ACCENTS))


def _joined(piece: str) -> str:
    """Return a piece of several parts as one word, however it was written; digits keep their place."""
    parts = _parts(piece)
    return ("_" if any(map(str.isdigit, parts)) else "").join(parts) if len(parts) > 1 else ""


def _parts(name: str) -> list[str]:
    return [part.casefold() for link in _LINKS.split(name) for part in _HUMPS.findall(link)]


def _grams(part: str) -> Iterator[str]:
    """Yield a part; where nothing tells its words apart, each sign and each pair of signs."""
    if part.isascii() or not _UNSPACED.search(part):
        yield part
        return
    place = 0
    for run in _UNSPACED.finditer(part):
        if run.start() > place:
            yield part[place : run.start()]
        yield from run[0]
        yield from (run[0][at : at + 2] for at in range(len(run[0]) - 1))
        place = run.end()
    if place < len(part):
        yield part[place:]


def normal_text(text: str) -> str:
    """Return *text* as it is compared: casefolded, NFC (which casefolding undoes), white space collapsed.

    >>> normal_text(" Use  Oxigraph ")
    'use oxigraph'
    """
    if text.isascii():
        return " ".join(text.casefold().split())
    folded = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


def misspelling_of(given: str, known: Iterable[str]) -> str | None:
    """Return the one of *known* names that *given* is a slip of the pen for, None where it is another word.

    A slip is one letter too many, too few, wrong, or in its neighbour's place; a name of eight letters may have two.

    >>> misspelling_of("tpoic", ["type", "topic"]), misspelling_of("blocked_by", ["tracked_by"])
    ('topic', None)
    """
    slips = {name: edit_distance(given, name) for name in known if abs(len(name) - len(given)) < 3}
    best = min(slips, key=lambda name: (slips[name], name), default=None)
    if best is None or len(best) < 3 or slips[best] > (2 if min(len(best), len(given)) >= 8 else 1):
        return None
    return best


def edit_distance(one: str, other: str) -> int:
    """Return how many letters have to be put in, left out, changed or swapped with the next to make *one* the *other*.

    >>> edit_distance("modles", "models"), edit_distance("opnai", "openai")
    (1, 1)
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now: list[int] = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]


def topic_key(text: str) -> str:
    """Return the topic *text* as it is compared: without regard to case, dashes, underscores and white space.

    After a digit a full stop stands for them, so that 1-10 is not 11-0. A text of nothing else is compared as it is.
    The query facts-about does the same.

    >>> {topic_key(each) for each in ("Internal DNS zones", "internal-dns-zones", " internal_DNS‐Zones")}
    {'internaldnszones'}
    >>> topic_key("rails 5-1 2"), topic_key("--")
    ('rails5.1.2', '--')
    """
    plain = normal_text(text)
    return _TOPIC_LINKS.sub("", _LINKS_AFTER_DIGIT.sub(".", plain)) or plain


def slug(name: str) -> str:
    """Return the last part of the IRI a plain name becomes: NFC, casefolded, all but letters, digits, `._-` to `-`.

    A mark belongs to the letter it stands on, as the vowels of many scripts do.

    >>> slug("  The Architect "), slug("राम") == slug("रीम")
    ('the-architect', False)
    """
    return _slug(name) if len(name) <= 200 else _slug.__wrapped__(name)


@lru_cache(maxsize=1024)  # agents and sessions come again and again
def _slug(name: str) -> str:
    text = unicodedata.normalize("NFC", name).casefold()
    if text.isascii():
        return re.sub(r"[^\w.-]+", "-", text).strip("-.")
    kept = " "
    for sign in text:
        stays = sign.isalnum() or sign in "._-" or (kept[-1] not in " ._-" and _is_mark(sign))
        kept += sign if stays else " " if sign not in _UNSEEN else ""
    return unicodedata.normalize("NFC", "-".join(kept.split())).strip("-.")


def _is_mark(sign: str) -> bool:
    return unicodedata.category(sign) in ("Mn", "Mc") and sign not in _UNSEEN
