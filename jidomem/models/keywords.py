"""Keywords, importance and summaries of texts by rule, without a model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from jidomem.base.stems import Stemmer
from jidomem.base.words import TELL_LITTLE, beginning

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
#: English words that say little about the topic, even if they are rare.
CHAT = frozenset(_CHAT.split()) | TELL_LITTLE
_SIBILANT, _PLURAL = re.compile("(?:x|ch|sh|ss|zz)es$"), re.compile("[^siu]s$")


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text by its stem: its display form, and its weight as an indicator of the topic."""

    stem: str
    shown: str
    weight: float


def telling(stemmer: Stemmer, text: str) -> list[Word]:
    """Return the significant words of *text*, each stem once, in the order of their first occurrence.

    A word weighs more if it occurs repeatedly or is long, since function words are short in most languages. Words of
    one character count only if there are no longer ones.
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
    weights = {stem: (1 + math.log(counts[stem])) * math.sqrt(min(len(shown[stem]), 8)) for stem in longer}
    return [Word(stem, shown[stem], weights[stem]) for stem in longer]


def keywords(stemmer: Stemmer, text: str, most: int) -> tuple[str, ...]:
    """Return the *most* significant words of *text*, best first; of words of one stem the shortest, in the singular.

    >>> keywords(Stemmer(), "The indexes were rebuilt: each index is kept by Oxigraph.", 2)
    ('index', 'oxigraph')
    """
    ranked = sorted(telling(stemmer, text), key=lambda word: -word.weight)
    return tuple(dict.fromkeys(word.shown for word in ranked))[:most]


@lru_cache(8_192)  # consecutive texts share most of their words
def singular(word: str) -> str:
    """Return an English *word* without its plural ending, and any other word unchanged.

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


#: The cues of an important statement, each with its weight; together they never exceed 1.
CUES: tuple[tuple[float, re.Pattern[str]], ...] = tuple(
    (weight, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for weight, words in (
        (0.6, "must|always|never|mandatory|required|requires|forbidden|prohibited|policy|policies|rules?|standards?"
              "|conventions?|decided|agreed|do not|don't|only"),
        (0.6, "critical|crucial|important|urgent|security|secure|vulnerab\\w+|breach|outages?|downtime|data loss"
              "|emergency|incidents?|deadlines?|breaking|deprecated|legal|compliance|allerg\\w+|fail(?:s|ed|ure|ures)?"),
        (0.4, "everyone|everybody|all (?:teams|users|agents|projects|services|customers)|company|organi[sz]ation|team"
              "|production|customers?|clients?|releases?|deploy\\w*|migrat\\w+|launch\\w*"),
        (0.2, "\\d[\\d.,:-]*|\\w+_\\w+|\\w+\\.\\w+"),
    )
)  # fmt: skip
BASE = 0.2
_PERSONAL = re.compile(
    r"(?:(?:really )?(?:likes?|loves?|enjoys?|prefers?|dislikes?|hates?|wants?|hopes?|plans?|feels?|is going|would like"
    r"|went|watched|played|bought|ate|has been)|does not like|i (?:like|love|want|feel|prefer))\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(r"\b(?:maybe|perhaps|probably|might|possibly|not sure)\b", re.IGNORECASE)


def importance(statement: str) -> float:
    """Return the importance of *statement* to others, from 0 to 1: rules and dangers are high, personal tastes low.

    >>> importance("Deploys must go through staging"), importance("likes green tea")
    (0.808, 0.1)
    """
    unimportant = 1 - BASE
    for weight, pattern in CUES:
        if pattern.search(statement):
            unimportant *= 1 - weight
    personal = 0.5 if _PERSONAL.match(statement.lstrip()) else 1.0
    hedged = 0.6 if _HEDGED.search(statement) else 1.0
    return round((1 - unimportant) * personal * hedged, 3)


_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
#: The share of the weight of a sentence in another from which on the two count as the same.
SAME = 0.7
#: The most characters of one sentence, and of all texts together; only the beginning of longer ones is read.
LONGEST, READ = 1_000, 24_000
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    place: int
    weights: dict[str, float]


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of *text*, line by line, with single spaces; one of more than `LONGEST` characters in parts.

    >>> list(sentences("Which index?  Oxigraph.\nIt embeds."))
    ['Which index?', 'Oxigraph.', 'It embeds.']
    """
    for piece in _ENDS.split(text):
        rest = " ".join(piece.split())
        while len(rest) > LONGEST:
            end = rest.rfind(" ", 1, LONGEST) + 1 or LONGEST
            yield rest[:end].rstrip()
            rest = rest[end:]
        if rest:
            yield rest


def cut(text: str, longest: int) -> str:
    """Return *text* within *longest* characters: cut between words if possible, and marked with an ellipsis.

    >>> cut("keep the whole journal", 12)
    'keep the…'
    """
    return text if len(text) <= longest else beginning(text, longest - 1).rstrip(" ,;:") + "…"


def summary(stemmer: Stemmer, texts: Sequence[str], longest: int) -> str:
    """Return the most central sentences of *texts*, in their order, within *longest* characters.

    Fenced code is read only if a text has nothing else.
    """
    every = [*_weighed(stemmer, texts)]
    if not every:
        return ""
    whole = Counter(stem for sentence in every for stem in sentence.weights)
    ranked = sorted(every, key=lambda sentence: (-_score(sentence, whole, len(every)), sentence.place))
    chosen = [ranked[0]]
    room = longest - len(ranked[0].text)
    for sentence in ranked[1:]:
        if len(sentence.text) < room and not any(_same(sentence, other) for other in chosen):
            chosen.append(sentence)
            room -= len(sentence.text) + 1
    return cut(
        " ".join(sentence.text for sentence in sorted(chosen, key=lambda each: each.place)),
        longest,
    )


def _first_sentences(texts: Sequence[str]) -> Iterator[Iterable[str]]:
    """Yield the first sentences of each text, within its share of the characters; at least one."""
    prose = [_CODE.sub("\n", text) if "```" in text else text for text in texts]
    read = [prosaic if prosaic.strip() else text for prosaic, text in zip(prose, texts, strict=True)]
    share = _share([len(text) for text in read])
    for text in read:
        parts = [*sentences(text[:share])]
        yield parts[:-1] if len(text) > share and len(parts) > 1 else parts


def _share(lengths: Sequence[int]) -> int:
    """Return the most characters read of each text: what short texts leave unused is shared by the others.

    >>> _share([100, 200, 50_000, 90_000])
    11850
    """
    room, share = READ, READ
    for place, length in enumerate(sorted(lengths)):
        share = max(room // (len(lengths) - place), 1)
        if length > share:
            return share
        room -= length
    return share


def _weighed(stemmer: Stemmer, texts: Sequence[str]) -> Iterator[_Sentence]:
    place = 0
    for parts in _first_sentences(texts):
        for sentence in parts:
            yield _Sentence(sentence, place, {word.stem: word.weight for word in telling(stemmer, sentence)})
            place += 1


def _score(sentence: _Sentence, whole: Counter[str], count: int) -> float:
    """Return the average weight of the words of a sentence for the topic of all; half of it for a question."""
    score = sum(
        weight * math.log(1 + whole[stem]) * math.log(1 + count / whole[stem])
        for stem, weight in sentence.weights.items()
    )
    score /= 1 + len(sentence.weights)
    return score / 2 if sentence.text.endswith(("?", "？")) else score


def _same(one: _Sentence, other: _Sentence) -> bool:
    shared = sum(weight for stem, weight in one.weights.items() if stem in other.weights)
    return shared >= SAME * sum(one.weights.values())
