"""Summaries made of the sentences that say most of what a text is about."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jidomem.excerpt import beginning
from jidomem.models.keywords import telling
from jidomem.stems import Stemmer

_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])|\n+")
#: Sentences that say nearly the same: so much of the smaller's weight is in one that is taken already.
SAME = 0.7
#: Signs of a sentence that is read as one, and of all texts together: of long ones the beginnings are read.
LONGEST, READ = 1_000, 24_000
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    place: int
    weights: dict[str, float]


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of *text*, its lines apart, with single spaces; one of more than `LONGEST` signs in parts.

    >>> list(sentences("Which index?  Oxigraph.\nIt embeds."))
    ['Which index?', 'Oxigraph.', 'It embeds.']
    """
    for piece in _ENDS.split(text):
        found = " ".join(piece.split())
        while len(found) > LONGEST:
            end = found.rfind(" ", 1, LONGEST) + 1 or LONGEST
            yield found[:end].rstrip()
            found = found[end:]
        if found:
            yield found


def cut(text: str, longest: int) -> str:
    """Return *text* in at most *longest* signs, between words where there are any, and with a sign where it was cut.

    >>> cut("keep the whole journal", 12)
    'keep the…'
    """
    return text if len(text) <= longest else beginning(text, longest - 1).rstrip(" ,;:") + "…"


def summary(stemmer: Stemmer, texts: Sequence[str], longest: int) -> str:
    """Return those sentences of *texts* that say most of what all are about, in their order, in *longest* signs.

    What stands between fences is code, and read only where a text has nothing else.
    """
    every = [*_weighed(stemmer, texts)]
    if not every:
        return ""
    whole = Counter(stem for sentence in every for stem in sentence.weights)
    ranked = sorted(every, key=lambda sentence: (-_score(sentence, whole, len(every)), sentence.place))
    taken = [ranked[0]]
    room = longest - len(ranked[0].text)
    for sentence in ranked[1:]:
        if len(sentence.text) < room and not any(_same(sentence, other) for other in taken):
            taken.append(sentence)
            room -= len(sentence.text) + 1
    return cut(" ".join(sentence.text for sentence in sorted(taken, key=lambda found: found.place)), longest)


def _begun(texts: Sequence[str]) -> Iterator[Iterable[str]]:
    """Yield the sentences of each text, as many from its beginning as there is room for; one at least."""
    prose = [_CODE.sub("\n", text) if "```" in text else text for text in texts]
    read = [prosaic if prosaic.strip() else text for prosaic, text in zip(prose, texts, strict=True)]
    share = _share([len(text) for text in read])
    for text in read:
        found = [*sentences(text[:share])]
        yield found[:-1] if len(text) > share and len(found) > 1 else found


def _share(lengths: Sequence[int]) -> int:
    """Return how many signs of a text are read at most: what short ones leave of the room is shared by the others.

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
    for found in _begun(texts):
        for sentence in found:
            yield _Sentence(sentence, place, {word.stem: word.weight for word in telling(stemmer, sentence)})
            place += 1


def _score(sentence: _Sentence, whole: Counter[str], count: int) -> float:
    """Return how much a word of the sentence tells of what all are about, on average; one in a question tells less."""
    told = sum(
        weight * math.log(1 + whole[stem]) * math.log(1 + count / whole[stem])
        for stem, weight in sentence.weights.items()
    )
    told /= 1 + len(sentence.weights)
    return told / 2 if sentence.text.endswith(("?", "？")) else told


def _same(one: _Sentence, other: _Sentence) -> bool:
    shared = sum(weight for stem, weight in one.weights.items() if stem in other.weights)
    return shared >= SAME * sum(one.weights.values())
