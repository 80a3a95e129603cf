"""The ranking of candidates: the weighted sum of the features of each candidate.

The weights depend on the kind of text: talk of people, talk with a machine, or memories. `ranked`
is pure; `rank_sources` gathers the candidates of several sources and ranks them together.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import exp, log

from jidomem.index.search_index import Readable
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.recall import bm25, question
from jidomem.recall.candidates import RecallQuery, VectorQuery, gather, merge_questions
from jidomem.recall.question import ROLES, Days, contains_cue, is_of_itself, spoken_of, wanted
from jidomem.records.recall import Candidate, Profile, Question, Ranked, ScoredPassage

#: Talk of people: short turns, each understood by what was said around it. Who is named in a question spoke mostly.
#: Fitted to six talks of two kinds (a logit of each turn against all others), each left out in turn, then rounded:
#: rounding changes R@10 by less than half a point. `bench.recall --without` measures each feature.
PEOPLE: Profile = {
    "name": "people-2",
    "coverage": 1.5,
    "coverage_around": 2.5,
    "reply": 0.5,
    "likeness": 5.0,
    "likeness_around": 6.0,
    "speaker": 3.0,
    "date": 6.0,
    "event": 1.5,
    "gives_time": 1.5,
    "gives_number": 1.5,
    "itself": 1.5,
    "length": 0.25,
}
#: Talk with a machine: long messages, of which those of the person say what there is to remember; what was said around
#: them tells nothing (it costs 10 points of R@5), and how often a word is repeated does. Fitted to six talks likewise.
ASSISTANT: Profile = {
    "name": "assistant-2",
    "lexical": 2.0,
    "likeness": 7.0,
    "told": 2.0,
    "answered": 1.5,
    "brief": 2.0,
}
#: What was not said by anybody: the words, how often they are there and whether, of a note also in those beside it, and
#: likeness. Half or twice of each weight finds the same.
MEMORIES: Profile = {
    "name": "memories-1",
    "lexical": 2.0,
    "coverage": 1.0,
    "coverage_around": 1.0,
    "likeness": 6.0,
}
#: Where a machine said so much of what was found, or more, it is talk with a machine.
MACHINE = 0.2


def chosen(candidates: Sequence[Candidate]) -> Profile:
    """Return the profile for *candidates*: by who said them, if anybody said half of them."""
    spoken = [one for one in candidates if one.passage.speakers]
    if 2 * len(spoken) < len(candidates) or not spoken:
        return MEMORIES
    return ASSISTANT if sum(map(answers_question, spoken)) >= MACHINE * len(spoken) else PEOPLE


def answers_question(one: Candidate) -> bool:
    """Return whether a machine said it, by the name it goes by."""
    return any(name.casefold() in question.ANSWERING for name in one.passage.speakers)


#: How much what was said before or after it counts by its likeness, the nearest first.
AROUND = (0.7, 0.5, 0.2)
#: So much of what was said before and after it can hold words for it, and how much less each further one counts.
BEFORE, AFTER, FURTHER = 2, 1, 0.9
#: How many days from one asked for count a third, how much further what was said before it is, and for how many words
#: one that is brief counts a third.
NEAR, EARLY, BRIEF = 7.0, 1.5, 300.0
#: How alike most of what is found is to what is asked. What nobody said, a memory, is no answer by its likeness alone
#: unless it is more alike: of questions that nothing answers the most alike of 60 memories has 0.11 to 0.24.
USUAL = 0.25
#: So much of what is said is looked through for days; what tells of more days than two months tells of no day; and so
#: many days may be asked for at once.
LONGEST_TEXT, MONTHS, MOST_SPANS = 1_000, 62, 100


def ranked(candidates: Sequence[Candidate], question: Question, profile: Profile | None = None) -> list[Ranked]:
    """Return *candidates*, the best first, each with the parts that add up to its score; what fits in nothing is left.

    Without a profile it is the one for what is looked through. With one, a score depends on the candidate and the
    question alone (where a day asked for has no year: on the years of all candidates, too).
    """
    profile = profile or chosen(candidates)
    query = _PreparedQuery.of(question, candidates)
    alone = 1.0 if question.has_vectors else ALONE
    worth = {name: float(profile[name]) * (alone if name in WORDS else 1) for name in SIGNS if name in profile}
    ranked_candidates = []
    for one in candidates:
        parts = {sign: each * SIGNS[sign](query, one) for sign, each in worth.items()}
        if _is_alike(one.passage) or any(parts.get(sign, 0.0) > 0 for sign in FITS):
            parts |= _beside(one, sum(parts.values()), question)
            ranked_candidates.append(Ranked(one, sum(parts.values()), parts))
    return in_order(ranked_candidates)


@dataclass(frozen=True, slots=True)
class _PreparedQuery:
    """A question, read once for all candidates: what its words weigh, together too, whom and when it names."""

    weight: Mapping[str, float]
    whole: float
    average: float
    speakers: frozenset[str]
    days: tuple[Days, ...]
    wanted: frozenset[str]
    has_vectors: bool

    @classmethod
    def of(cls, question: Question, candidates: Sequence[Candidate]) -> _PreparedQuery:
        """Return *question* as it is read; who is named is no word to look for, but who is to have spoken."""
        named = frozenset(name for name in question.speakers if name.casefold() not in ROLES)
        names = {part.casefold() for name in named for part in name.split()}
        stems = [stem for stem, word in question.stems.items() if word not in names] or [*question.stems]
        weight = bm25.weights(stems, question.counts)
        years = sorted({day.year for one in candidates if (day := day_of(one.passage.said_at))})
        meant = spoken_of(question.text, day_of(question.now), years)[:MOST_SPANS]
        average = question.counts.words / max(question.counts.memories, 1)
        return cls(weight, sum(weight.values()), average, named, tuple(meant), wanted(question.text),
                   question.has_vectors)  # fmt: skip

    def met(self, passages: Sequence[tuple[float, ScoredPassage]]) -> float:
        """Return how well *passages*, each with its share, match the words: about 1 where each word occurs."""
        length = sum(share * passage.length for share, passage in passages) / sum(share for share, _ in passages)
        damping = bm25.K1 * (1 - bm25.B + bm25.B * length / self.average) if self.average else bm25.K1
        met = 0.0
        for stem, idf in self.weight.items():
            often = sum(share * passage.words.get(stem, 0.0) for share, passage in passages)
            met += idf * often * (bm25.K1 + 1) / (often + damping)
        return met / self.whole if self.whole else 0.0

    def share(self, stems: Collection[str]) -> float:
        """Return how much of what the words weigh together *stems* have."""
        return sum(idf for stem, idf in self.weight.items() if stem in stems) / self.whole if self.whole else 0.0


Sign = Callable[[_PreparedQuery, Candidate], float]


def _near(one: Candidate) -> list[tuple[float, ScoredPassage]]:
    """Return a turn and those around it, each with its weight."""
    return [(1.0, one.passage), *zip(AROUND, one.before, strict=False), *zip(AROUND, one.after, strict=False)]


def _lexical(query: _PreparedQuery, one: Candidate) -> float:
    return query.met([(1.0, one.passage)])


def _coverage(query: _PreparedQuery, one: Candidate) -> float:
    return query.share(one.passage.words)


def _coverage_around(query: _PreparedQuery, one: Candidate) -> float:
    """Return how much of what the words weigh is met by it or close to it, the less the further away."""
    met = dict.fromkeys(one.passage.words, 1.0)
    for neighbours in (one.before[:BEFORE], one.after[:AFTER]):
        for far, each in enumerate(neighbours, start=1):
            met |= {stem: max(FURTHER**far, met.get(stem, 0.0)) for stem in each.words}
    return sum(idf * met.get(stem, 0.0) for stem, idf in query.weight.items()) / query.whole if query.whole else 0.0


def _reply(query: _PreparedQuery, one: Candidate) -> float:
    """Return the coverage of the words by the question that it answers, if there is one."""
    return query.met([(1.0, one.before[0])]) if one.before and "?" in one.before[0].text else 0.0


def _likeness(query: _PreparedQuery, one: Candidate) -> float:
    """Return how alike it is; what no vector is made of yet stands where most of what was found does."""
    cosine = one.passage.cosine
    return max(cosine, 0.0) if cosine is not None else USUAL * query.has_vectors


def _likeness_around(query: _PreparedQuery, one: Candidate) -> float:
    known = [(share, neighbour.cosine) for share, neighbour in _near(one) if neighbour.cosine is not None]
    if not known:
        return USUAL * query.has_vectors
    return max(sum(share * cosine for share, cosine in known) / sum(share for share, _ in known), 0.0)


def _speaker(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether the named speaker said it; several names give no evidence."""
    return float(len(query.speakers) == 1 and not query.speakers.isdisjoint(one.passage.speakers))


def _date(query: _PreparedQuery, one: Candidate) -> float:
    """Return how near to the days asked for it was said; what was said before them is sooner too far."""
    day = day_of(one.passage.said_at) if query.days else None
    if day is None:
        return 0.0
    away = min(max(meant.away(day), -EARLY * meant.away(day)) for meant in query.days)
    return exp(-away / NEAR)


def _event(query: _PreparedQuery, one: Candidate) -> float:
    """Return the share of its dates that are requested."""
    day = day_of(one.passage.said_at) if query.days else None
    spans = [each for each in spoken_of(one.passage.text[:LONGEST_TEXT], day) if len(each) <= MONTHS] if day else []
    return max((meant.shared(each) / min(len(each), len(meant)) for each in spans for meant in query.days), default=0.0)


def _gives(kind: str) -> Sign:
    return lambda asked, one: float(kind in asked.wanted and contains_cue(kind, one.passage.text))


def _itself(query: _PreparedQuery, one: Candidate) -> float:
    return float(is_of_itself(one.passage.text))


def _length(query: _PreparedQuery, one: Candidate) -> float:
    return log(1 + one.passage.length)


def _brief(query: _PreparedQuery, one: Candidate) -> float:
    return exp(-one.passage.length / BRIEF)


def _is_prompt(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether a person said it to a machine."""
    return float(not answers_question(one))


def _answered(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether a machine said it, if the question is about its answers."""
    return float("answerer" in query.wanted and answers_question(one))


#: Each sign of an answer by its name: a number from 0, about 1 where it is all there (`length` is a logarithm).
SIGNS: Mapping[str, Sign] = {
    "lexical": _lexical,
    "coverage": _coverage,
    "coverage_around": _coverage_around,
    "reply": _reply,
    "likeness": _likeness,
    "likeness_around": _likeness_around,
    "speaker": _speaker,
    "date": _date,
    "event": _event,
    "gives_time": _gives("time"),
    "gives_number": _gives("number"),
    "itself": _itself,
    "length": _length,
    "brief": _brief,
    "told": _is_prompt,
    "answered": _answered,
}
#: What words tell, and how many times as much it is worth where no likeness is known.
WORDS, ALONE = ("lexical", "coverage", "coverage_around", "reply"), 2.0
#: A candidate with none of these answers nothing, unless it is alike.
FITS = ("lexical", "coverage", "coverage_around", "date")


def _is_alike(passage: ScoredPassage) -> bool:
    """Return whether a candidate may answer by similarity alone."""
    return (passage.cosine or 0.0) > (0.0 if passage.speakers else USUAL)


def in_order(candidates: Sequence[Ranked]) -> list[Ranked]:
    """Return what was found, the best first, of equals the newest; what was superseded stands behind its successors."""
    known = {one.candidate.passage.item: one for one in candidates}
    done: dict[str, Ranked] = {}

    def behind(one: Ranked, seen: frozenset[str]) -> Ranked:
        item = one.candidate.passage.item
        if item not in done:
            after = [known[name] for name in one.candidate.successors if name in known and name not in seen]
            most = min((behind(later, seen | {item}).score * bm25.BEHIND for later in after), default=one.score)
            cut = min(most - one.score, 0.0)
            done[item] = Ranked(one.candidate, one.score + cut, {**one.parts, "superseded": cut}) if cut else one
        return done[item]

    # Begun with the best: where some supersede each other in a circle, the order would be that of the candidates.
    return sorted([behind(one, frozenset()) for one in sorted(candidates, key=_place)], key=_place)


def _place(one: Ranked) -> tuple[float, str, str]:
    return -one.score, bm25.backwards(one.candidate.recorded), one.candidate.passage.item


def _beside(one: Candidate, score: float, question: Question) -> dict[str, float]:
    """Return what is added for a file asked about, for what was recorded late and for what is held to be sure."""
    late, sure = bm25.ties(one.recorded, one.confidence, question.counts.newest)
    return {"about": score * bm25.ABOUT * one.is_about, "recency": score * late, "confidence": score * sure}


def day_of(moment: str) -> date | None:
    """Return the day of a moment in the one written form, None for none."""
    return date.fromisoformat(moment[:10]) if moment else None


@dataclass(frozen=True, slots=True)
class RankingSource:
    """A source of candidates: the texts of a stream, and the vector query if there is one."""

    texts: Readable
    stream: Stream
    within: SearchFilter
    alike: VectorQuery | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """The ranked candidates, best first, the analysed question, and the name of the ranking."""

    ranked: Sequence[Ranked]
    question: Question
    ranking: str


def rank_sources(sources: Sequence[RankingSource], query: RecallQuery) -> Answered:
    """Return what of *sources* answers what is *query*: gathered by words and by likeness, ranked as one."""
    gathered = [gather(one.texts, one.stream, replace(query, alike=one.alike), one.within) for one in sources]
    question = merge_questions([question for _, question in gathered])
    candidates = [one for each, _ in gathered for one in each]
    profile = chosen(candidates)
    return Answered(ranked(candidates, question, profile), question, str(profile["name"]))
