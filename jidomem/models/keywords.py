"""The words that tell what a text is about, by the stems that recall finds words by."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache

from jidomem.stems import Stemmer
from jidomem.words import TELL_LITTLE

_CHAT = """
absolutely actually ago ah alright already always amazing another anyone anything anyway around ask asked awesome away
back bad best better big bit bring call came cant certainly come coming cool couldnt course day days definitely didnt
different doesnt done dont else enough especially even ever every everyone everything exactly excited far feel feeling
feels felt few find fine first forward found fun gave get gets getting give given giving glad go goes going gonna gone
good got gotta great guess guys haha hang happen happened happy hard havent hear heard hello help helped helping helps
hey hi hope hoping huge idea ill im important incredible interesting isnt ive keep kind knew know last lately least less
let lets life like little ll lol long look looking looks lot lots love made make makes making many may maybe mean means
might mind moment much must need needed needs never new next nice no nope not nothing now oh ok okay old one ones part
people perfect person place please possible pretty probably put quite re read ready real really recently remember right
said saw say saying see seem seems seen send sense share show since small someone something sometimes soon sorry sort
sound sounds special start started stay still stuff super sure take taking talk talking tell thank thanks thats thing
things think thinking though thought time times today together told tomorrow took totally tried true try trying two
understand usually ve wait wanna want wanted wants wasnt way week weeks well went whats whatever wish without won wonder
wonderful wont work works world worth wouldnt wow year years yeah yep yes yesterday yet youre youve
"""
#: English words that tell little of what is talked about, however seldom they are elsewhere.
CHAT = frozenset(_CHAT.split()) | TELL_LITTLE
_SIBILANT, _PLURAL = re.compile("(?:x|ch|sh|ss|zz)es$"), re.compile("[^siu]s$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text by its stem: as it is shown, and how much it tells of what the text is about."""

    stem: str
    shown: str
    weight: float


def telling(stemmer: Stemmer, text: str) -> list[Word]:
    """Return the words of *text* that tell something, each stem once, in the order in which they first stand.

    One that is said twice tells more; so does a long one, since the words that hold a sentence together are short in
    most languages. A single sign tells something only where nothing longer does.
    """
    counts: dict[str, int] = {}
    shown: dict[str, str] = {}
    for word, stem in stemmer.stems(text):
        if word not in CHAT and not word.isdecimal():
            counts[stem] = counts.get(stem, 0) + 1
            one = singular(word)
            known = shown.setdefault(stem, one)
            if one is not known and (len(one), one) < (len(known), known):
                shown[stem] = one
    longer = [stem for stem in counts if len(stem) > 1] or list(counts)
    return [Word(stem, shown[stem], _weight(shown[stem], counts[stem])) for stem in longer]


def keywords(stemmer: Stemmer, text: str, most: int) -> tuple[str, ...]:
    """Return the *most* telling words of *text*, the best first; of words of one stem the shortest, in the singular.

    >>> keywords(Stemmer(), "The indexes were rebuilt: each index is kept by Oxigraph.", 2)
    ('index', 'oxigraph')
    """
    found = sorted(telling(stemmer, text), key=lambda word: -word.weight)
    return tuple(dict.fromkeys(word.shown for word in found))[:most]


@lru_cache(8_192)  # most words of a text are those of the one before
def singular(word: str) -> str:
    """Return an English *word* without the sign of the plural, and any other as it is.

    >>> [singular(word) for word in ("memories", "boxes", "dogs", "bus", "glass")]
    ['memory', 'box', 'dog', 'bus', 'glass']
    """
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if _SIBILANT.search(word):
        return word[:-2]
    return word[:-1] if _PLURAL.search(word) else word


def _weight(word: str, count: int) -> float:
    return (1 + math.log(count)) * math.sqrt(min(len(word), 8))
