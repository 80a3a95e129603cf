"""The excerpt that answers a question: the decision first, then the sentences that match the question best.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import log

from jidomem.excerpt import EXCERPT, beginning, opening

#: The share of an excerpt for the opening of the text where the question points to a later passage.
_OPENING = 0.4
#: The share of a word's weight where it stands in the heading above a sentence, or in a sentence beside it.
_ABOVE, _BESIDE = 0.5, 0.4
#: The longest heading that is repeated before a sentence below it.
_LONGEST_HEADING = 120
_GAP = "…"

#: The stems of a question that count for a sentence, each with the share of its weight.
Shares = Mapping[str, float]


def matching_excerpt(
    sentences: Sequence[str],
    stems: Sequence[Collection[str]],
    weights: Mapping[str, float],
    longest: int = EXCERPT,
) -> str:
    """Return the opening of a text and those of its *sentences* that match a question best, on one line.

    *stems* are those of each sentence, *weights* those of the question. The sentences are whole and in the
    order of the text, with an ellipsis where some are left out. The opening is all there is where no
    sentence after it matches better than the best one in it.

    >>> text = ["We use one queue.", "It was slow.", "A letter waits in it.", "Letters expire after 30 days."]
    >>> stems = [{"queue"}, {"slow"}, {"letter", "wait"}, {"letter", "expir"}]
    >>> matching_excerpt(text, stems, {"letter": 1.0, "expir": 2.0}, 60)
    'We use one queue. … Letters expire after 30 days.'
    """
    start = opening(sentences, longest)
    told = _told(stems, weights)
    shares = [_shares(sentences, stems, told, place) for place in range(len(sentences))]
    scores = [_score(share, told) for share in shares]
    if max(scores, default=0.0) <= max((scores[place] for place in start.places), default=0.0):
        return start.text
    lead = opening(sentences, int(longest * _OPENING))
    shown = {place: sentences[place] for place in lead.places}
    if not shown:
        shown[lead.place] = f"{beginning(sentences[lead.place], int(longest * _OPENING))} {_GAP}"
    ranked = _ranked(shares, told)
    for place in ranked:
        above = _above(sentences, place)
        shown = _with(shown, sentences, [*above, place], longest) or _with(shown, sentences, [place], longest) or shown
    for place in ranked:
        for beside in (place + 1, place - 1):
            if place in shown and 0 <= beside < len(sentences) and not _is_heading(sentences[beside]):
                shown = _with(shown, sentences, [beside], longest) or shown
    return _text(shown, len(sentences))


def _told(stems: Sequence[Collection[str]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return how much each stem of the question tells of a sentence: the more, the fewer sentences hold it."""
    holding = Counter(stem for each in stems for stem in weights.keys() & set(each))
    return {stem: weights[stem] * log(1 + len(stems) / count) for stem, count in holding.items()}


def _shares(
    sentences: Sequence[str], stems: Sequence[Collection[str]], told: Mapping[str, float], place: int
) -> Shares:
    """Return the stems that count for the sentence at *place*: its own, and those above and beside it."""
    if _is_heading(sentences[place]):
        return {}
    around = [other for other in (place - 1, place + 1) if 0 <= other < len(sentences)]
    found = dict.fromkeys((stem for other in around for stem in stems[other]), _BESIDE)
    found |= dict.fromkeys((stem for other in _above(sentences, place) for stem in stems[other]), _ABOVE)
    found |= dict.fromkeys(stems[place], 1.0)
    return {stem: share for stem, share in found.items() if stem in told}


def _score(shares: Shares, told: Mapping[str, float]) -> float:
    return sum(share * told[stem] for stem, share in shares.items())


def _ranked(shares: Sequence[Shares], told: Mapping[str, float], most: int = 6) -> list[int]:
    """Return the places of the best sentences; a stem of one that is ranked already counts half for the next."""
    left, ranked = dict(told), list[int]()
    while len(ranked) < most:
        places = [
            place
            for place in range(len(shares))
            if place not in ranked and max(shares[place].values(), default=0) > _BESIDE
        ]
        if not places:
            break
        best = max(places, key=lambda place: (_score(shares[place], left), -place))
        ranked.append(best)
        left |= {stem: left[stem] / 2 for stem in shares[best]}
    return ranked


def _above(sentences: Sequence[str], place: int) -> list[int]:
    """Return the place of the heading, or of the sentence that leads to the list, that is nearest above."""
    found = next((other for other in range(place - 1, -1, -1) if _is_heading(sentences[other])), None)
    return [] if found is None or len(sentences[found]) > _LONGEST_HEADING else [found]


def _is_heading(sentence: str) -> bool:
    return sentence.endswith(":")


def _with(shown: Mapping[int, str], sentences: Sequence[str], places: Sequence[int], longest: int) -> dict[int, str]:
    """Return *shown* with the sentences at *places*; nothing where they are too long together."""
    more = {place: sentences[place] for place in places} | dict(shown)
    return more if len(_text(more, len(sentences))) <= longest else {}


def _text(shown: Mapping[int, str], count: int) -> str:
    """Return the sentences *shown* of *count*, with an ellipsis where some are left out."""
    words: list[str] = []
    for place in sorted(shown):
        if place and place - 1 not in shown and not (words and words[-1].endswith(_GAP)):
            words.append(_GAP)
        words.append(shown[place])
    if count - 1 not in shown and not words[-1].endswith(_GAP):
        words.append(_GAP)
    return " ".join(words)
