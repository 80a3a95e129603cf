"""A ranking that adds up what words, likeness and surroundings say of each candidate.  Pure: values in, scores out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from jidomem.candidate import Candidate, Passage, Profile, Question, Ranked
from jidomem.read import rank

#: What each part counts at most: words that stand in it, and around it; likeness of it, and around it; words that
#: stand in its session; who was named in the question; and how much what was said around it counts, by how far it is.
PROFILE: Profile = {
    "name": "fused-1",
    "words": 1.0,
    "words_around": 1.0,
    "likeness": 1.0,
    "likeness_around": 0.5,
    "session": 0.2,
    "speaker": 0.2,
    "before": 0.5,
    "after": 0.3,
}


def ranked(candidates: Sequence[Candidate], question: Question, profile: Profile = PROFILE) -> list[Ranked]:
    """Return *candidates*, the best first, each with the parts that add up to its score; what fits in nothing is left.

    Each part is measured by the best of all candidates in it.
    """
    weight = rank.weights(question.stems, question.counts)
    average = question.counts.words / max(question.counts.memories, 1)
    measured: dict[str, Callable[[Candidate], float]] = {
        "words": lambda one: _bm25([(1.0, one.passage)], weight, average),
        "words_around": lambda one: _bm25(_around(one, profile), weight, average),
        "likeness": lambda one: max(one.passage.cosine or 0.0, 0.0),
        "likeness_around": lambda one: _cosine(_around(one, profile)),
        "session": lambda one: sum(weight[stem] for stem in one.session_holding if stem in weight),
        "speaker": lambda one: float(not set(question.speakers).isdisjoint(one.passage.speakers)),
    }
    columns = {name: _by_the_best([how(one) for one in candidates]) for name, how in measured.items()}
    found = []
    for number, one in enumerate(candidates):
        parts = {name: float(profile[name]) * column[number] for name, column in columns.items()}
        parts |= _beside(one, sum(parts.values()), question)
        if parts["words_around"] or parts["likeness"]:
            found.append(Ranked(one, sum(parts.values()), parts))
    return in_order(found)


def in_order(found: Sequence[Ranked]) -> list[Ranked]:
    """Return what was found, the best first, of equals the newest; what was superseded stands behind its successors."""
    known = {one.candidate.passage.item: one for one in found}
    done: dict[str, Ranked] = {}

    def behind(one: Ranked, seen: frozenset[str]) -> Ranked:
        item = one.candidate.passage.item
        if item not in done:
            after = [known[name] for name in one.candidate.successors if name in known and name not in seen]
            most = min((behind(later, seen | {item}).score * rank.BEHIND for later in after), default=one.score)
            cut = min(most - one.score, 0.0)
            done[item] = Ranked(one.candidate, one.score + cut, {**one.parts, "superseded": cut}) if cut else one
        return done[item]

    return sorted((behind(one, frozenset()) for one in found), key=_place)


def _place(one: Ranked) -> tuple[float, str, str]:
    return -one.score, rank.backwards(one.candidate.recorded), one.candidate.passage.item


def _around(one: Candidate, profile: Profile) -> list[tuple[float, Passage]]:
    """Return a passage and what was said around it, each with how much it counts."""
    before = [(float(profile["before"]) ** far, said) for far, said in enumerate(one.before, start=1)]
    after = [(float(profile["after"]) ** far, said) for far, said in enumerate(one.after, start=1)]
    return [(1.0, one.passage), *before, *after]


def _bm25(said: Sequence[tuple[float, Passage]], weight: Mapping[str, float], average: float) -> float:
    length = sum(share * passage.length for share, passage in said) / sum(share for share, _ in said)
    damping = rank.K1 * (1 - rank.B + rank.B * length / average) if average else rank.K1
    often: dict[str, float] = {}
    for share, passage in said:
        for stem, count in passage.words.items():
            often[stem] = often.get(stem, 0.0) + share * count
    return sum(weight[stem] * count * (rank.K1 + 1) / (count + damping) for stem, count in often.items())


def _cosine(said: Sequence[tuple[float, Passage]]) -> float:
    known = [(share, passage.cosine) for share, passage in said if passage.cosine is not None]
    return max(sum(share * cosine for share, cosine in known) / sum(share for share, _ in known), 0.0) if known else 0.0


def _by_the_best(values: Sequence[float]) -> list[float]:
    best = max(values, default=0.0)
    return [value / best if best > 0 else 0.0 for value in values]


def _beside(one: Candidate, score: float, question: Question) -> dict[str, float]:
    """Return what is added for a file asked about, for what was recorded late and for what is held to be sure."""
    late, sure = rank.ties(one.recorded, one.confidence, question.counts.newest)
    return {"about": score * rank.ABOUT * one.is_about, "recency": score * late, "confidence": score * sure}
