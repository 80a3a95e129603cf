"""The ranking of candidates: the weighted sum of the features of each candidate.

The weights depend on the kind of text: conversations of people, conversations with a machine, or memories. `ranked` is
pure; `rank_sources` gathers the candidates of several sources and ranks them together.

The score of a text is the probability that it answers the question. The sum of a ranking has no scale of its own; its
log odds are a line, fitted for each ranking to questions with known answers, without an answer, and of other projects
(`python -m bench.calibration`). One of few memories is an answer more often than one of many with the same sum: by that
factor its odds are higher.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from heapq import merge
from math import exp, log, sqrt
from typing import NamedTuple

from jidomem.base.words import words_of
from jidomem.index.search_index import Readable
from jidomem.index.search_tables import SearchFilter
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import JIDO, local_name
from jidomem.recall import bm25, question
from jidomem.recall.candidates import RecallQuery, VectorQuery, gather, merge_questions
from jidomem.recall.question import (
    ROLES,
    DateRange,
    answer_kinds,
    asks_for_speaker,
    class_words,
    contains_cue,
    identifiers,
    is_instruction,
    is_of_itself,
    is_subject,
    past_verbs,
    question_share,
    requested_days,
    spoken_of,
)
from jidomem.records.recall import FITTED_MEMORIES, MIN_SCORE, Candidate, Profile, Question, Ranked, ScoredPassage

#: Conversations of people: short turns, each understood from the turns around it. The person named in a question is
#: mostly the speaker; a turn that asks is no answer, and one that tells of the past is more often. Fitted to six
#: conversations of two kinds (a logit of each turn against all others) with leave-one-out validation, then rounded,
#: which changes R@10 by less than half a point. `bench.recall --without` measures each feature.
PEOPLE: Profile = {
    "name": "people-3", "coverage": 1.5, "coverage_around": 3.0, "reply": 0.5, "likeness": 5.0,
    "likeness_around": 5.5, "speaker": 2.5, "date": 5.0, "event": 2.0, "gives_time": 1.5, "gives_number": 1.5,
    "itself": 1.0, "asks": -1.5, "past": 0.5,
}  # fmt: skip
#: Conversations with a machine: long messages; those of the person contain the information. The turns around a message
#: do not help (they cost 10 points of R@5); the frequency of a word does. A standing instruction ("Always give units")
#: counts if the question asks for help. Fitted to six conversations in the same way.
ASSISTANT: Profile = {
    "name": "assistant-3", "lexical": 2.0, "matched": 1.0, "likeness": 7.0, "date": 6.0, "told": 2.0,
    "answered": 1.0, "instruction": 2.5, "brief": 2.0,
}  # fmt: skip
#: Many short conversations with a machine, each on one task: a turn is understood from those around it, an agent goes
#: on with a recent task, and of one conversation the best turn is enough: each further one of it scores `repeated` of
#: the one before. Fitted to three people with leave-one-out validation, then rounded.
TASKS: Profile = {
    "name": "tasks-2", "coverage": 1.0, "coverage_around": 2.0, "likeness": 5.0, "likeness_around": 2.0, "date": 6.0,
    "recent": 2.0, "repeated": 0.6,
}  # fmt: skip
#: Texts without a speaker: words, for a note also in its neighbours, similarity, and the dates in the text. Fitted to
#: the records of two people, each left out of its own fit, and moved towards similarity until the notes of repositories
#: (`tests/recall/project_notes`) are ranked better than by plain fusion. A memory has a time and a kind: what is of
#: another time than the question names, or of another kind than it asks for, is a less probable answer.
MEMORIES: Profile = {
    "name": "memories-4", "lexical": 1.0, "coverage": 1.0, "coverage_around": 1.0, "likeness": 10.0, "date": 6.0,
    "event": 6.0, "brief": 3.0, "other_time": -6.0, "other_kind": -2.0, "choice": 1.0, "exact": 4.0, "lacks": -3.0,
}  # fmt: skip
#: The share of turns by a machine from which the candidates count as a conversation with a machine; the least number of
#: conversations that are many, and the most candidates of each, on average, that make them short.
MACHINE_TURN_SHARE, MANY_TALKS, SHORT_TALK_TURNS = 0.2, 4, 12


def chosen(candidates: Sequence[Candidate]) -> Profile:
    """Return the profile for *candidates*: by their speakers, if at least half of them have one."""
    spoken = [one for one in candidates if one.passage.speakers]
    if 2 * len(spoken) < len(candidates) or not spoken:
        return MEMORIES
    if sum(map(answers_question, spoken)) < MACHINE_TURN_SHARE * len(spoken):
        return PEOPLE
    talks = {one.talk for one in spoken if one.talk}
    return TASKS if len(talks) >= MANY_TALKS and len(spoken) <= SHORT_TALK_TURNS * len(talks) else ASSISTANT


def answers_question(one: Candidate) -> bool:
    """Return whether the speaker is a machine, by its name."""
    return any(name.casefold() in question.ANSWERING for name in one.passage.speakers)


#: The weights of the similarity of the turns before and after, the nearest first.
AROUND = (0.7, 0.5, 0.2)
#: The turns before and after whose words count, and the factor for each step away.
BEFORE, AFTER, FURTHER = 2, 1, 0.9
_FURTHER = tuple(FURTHER**far for far in range(1, BEFORE + 1))
#: The distance in days from a requested day at which the feature has the value 1/e, the factor for earlier days, and
#: the length in words at which `brief` has that value.
NEAR, EARLY, BRIEF = 7.0, 1.5, 300.0
#: The usual similarity of a candidate to a question. A memory is an answer by similarity alone only if it exceeds this:
#: for questions without an answer the most similar of 60 memories has 0.11 to 0.24.
USUAL = 0.25
#: The share of the subject's words, and the similarity, from which a text has the subject of a question that names a
#: time. The day of a memory is that of its recording, and tells less than the day of an entry.
OF_SUBJECT, OF_ENTRY = (0.75, 0.5), (0.25, 0.4)
#: The score of a text of the time that a question asks for without a subject.
ANSWERS_TIME = 0.9
#: The fewest digits of a code that an answer should have.
CODE_DIGITS = 2
#: The characters of a text that are searched for dates, the longest span in days that counts as a date, and the most
#: spans of a question.
LONGEST_TEXT, MONTHS, MOST_SPANS = 1_000, 62, 100
#: The verbs in the past, and the words of a question, from which more do not count.
MANY_PAST, MANY_WORDS = 3, 3
DECISIONS = frozenset(f"{JIDO}{name}" for name in ("Decision", "ArchitecturalDecision", "ImplementationDecision"))
#: The endings of the classes of what is agreed, which answers what to use or do; the share of the weight that the words
#: of the class keep of which an answer names an instance: "database" if the question is which database to use.
AGREED, OF_CLASS = ("Decision", "Convention", "AgentRule", "CodingStandard"), 0.5
#: The part of the mentions of the most frequent year from which another year is meant as well.
FREQUENT = 0.2


def ranked(candidates: Sequence[Candidate], question: Question, profile: Profile | None = None) -> list[Ranked]:
    """Return *candidates*, best first, each with the parts that add up to its score; those without any match are left
    out, but for the most similar memory if there is no other.

    The default profile is that of `chosen`. With a given profile, a score depends only on the candidate and the
    question, on the years of all candidates if the question names a day without a year, and for `TASKS` on the other
    candidates.
    """
    profile = profile or chosen(candidates)
    lowered = class_words(question.text) if any(one.kind == "memory" for one in candidates) else ()
    query = _PreparedQuery.of(question, candidates, lowered)
    alone = 1.0 if question.has_vectors else ALONE
    worth = {name: float(profile[name]) * (alone if name in WORD_SIGNS else 1) for name in SIGNS if name in profile}
    silent = {sign: each * 0.0 for sign, each in worth.items()}
    signs = [(sign, each, SIGNS[sign]) for sign, each in worth.items() if sign not in query.silent]
    fits, others = ([one for one in signs if (one[0] in FITS) is is_fit] for is_fit in (True, False))
    ranked_candidates = []
    for one in candidates:
        parts, is_match = silent.copy(), _is_alike(one.passage)
        for sign, each, value in fits:
            parts[sign] = part = each * value(query, one)
            is_match = is_match or part > 0
        if is_match:
            for sign, each, value in others:
                parts[sign] = each * value(query, one)
            if (total := sum(parts.values())) < 0:  # no sum is below 0, the least of a text that does not match
                parts[min(parts, key=parts.__getitem__)] -= total
            parts |= _beside(one, max(total, 0.0), question)
            ranked_candidates.append(Ranked(one, max(sum(parts.values()), 0.0), parts))
    if not ranked_candidates and profile["name"] in OF_MEMORIES:
        similar = (one for one in candidates if one.passage.cosine is not None)
        if (nearest := max(similar, key=lambda one: one.passage.cosine or 0.0, default=None)) is not None:
            return [Ranked(nearest, 0.0, silent)]
    if "repeated" in profile:
        ranked_candidates = _with_repetitions_lowered(ranked_candidates, float(profile["repeated"]))
    return in_order(ranked_candidates)


def _with_repetitions_lowered(candidates: Iterable[Ranked], factor: float) -> list[Ranked]:
    """Return *candidates* with the score of each turn multiplied by *factor* for each better turn of its talk."""
    lowered, better = list[Ranked](), Counter[str]()
    for one in sorted(candidates, key=_place):
        talk = one.candidate.talk
        cut = one.score * (factor ** better[talk] - 1) if talk else 0.0
        better[talk] += 1
        lowered.append(Ranked(one.candidate, one.score + cut, {**one.parts, "repeated": cut}) if cut else one)
    return lowered


class _PreparedQuery(NamedTuple):
    """A question, analysed once for all candidates: the weights of its words, their sum, the people and dates it names.

    `spans` are the dates that each candidate names, by its item, if the question names one, and `subject` the weights
    of its words beside the time. `identifiers` has the rarity of each stem of those that it names: 1 if one text has
    it, 0 if none has. `moments` are the moments of all candidates, in order. `silent` are features that are 0 for every
    candidate.
    """

    weight: Mapping[str, float]
    whole: float
    average: float
    speakers: frozenset[str]
    days: tuple[DateRange, ...]
    spans: Mapping[str, Sequence[DateRange]]
    subject: Mapping[str, float]
    identifiers: Mapping[str, float]
    moments: Sequence[_Moment]
    answer_kinds: frozenset[str]
    silent: frozenset[str]
    has_vectors: bool

    @classmethod
    def of(cls, question: Question, candidates: Sequence[Candidate], lowered: Container[str]) -> _PreparedQuery:
        """Return *question* analysed, with the words *lowered* to OF_CLASS; a person it names is not a search word, but
        the probable speaker.
        """
        named = frozenset(name for name in question.speakers if name.casefold() not in ROLES)
        names = {part.casefold() for name in named for part in (*name.split(), *words_of(name))}
        days, spans = _days_and_spans(question, candidates)
        stems = {stem: word for stem, word in question.stems.items() if word not in names} or question.stems
        unknown = {stem: word for stem, word in question.unknown.items() if word not in names}
        if days:  # `event` and `date` stand for the words of the time
            stems, unknown = (
                {stem: word for stem, word in each.items() if not contains_cue("time", word)}
                for each in (stems, unknown)
            )
        weight = {stem: each * (OF_CLASS if stems[stem] in lowered else 1.0)
                  for stem, each in bm25.weights(stems, question.counts).items()}  # fmt: skip
        average = question.counts.words / max(question.counts.memories, 1)
        whole = bm25.total_weight([*stems, *unknown], question.counts)
        kinds = answer_kinds(question.text)
        silent = {sign for sign, kind in _OF_KIND.items() if kind not in kinds} | ({*_OF_DAYS} if not days else set())
        subject_stems = [stem for stem, word in {**unknown, **stems}.items() if is_subject(word)] if days else []
        subject = {stem: weight.get(stem, 0.0) for stem in subject_stems}
        codes = {*identifiers(question.text)}
        holding = {stem: question.counts.holding.get(stem, 0) for stem, word in {**unknown, **stems}.items()
                   if word in codes}  # fmt: skip
        silent |= ({*_OF_CODES} if not holding else set()) | ({*_OF_VECTORS} if not question.has_vectors else set())
        rarity = {stem: 1 / count if count else 0.0 for stem, count in holding.items()}
        return cls(weight, whole, average, named, days, spans, subject, rarity, sorted(map(_moment, candidates)), kinds,
                   frozenset(silent), question.has_vectors)  # fmt: skip

    def score(self, passage: ScoredPassage) -> float:
        """Return the match of *passage* with the words: about 1 if each word occurs."""
        if not passage.words or not self.whole:
            return 0.0
        damping = bm25.K1 * (1 - bm25.B + bm25.B * passage.length / self.average) if self.average else bm25.K1
        score = 0.0
        for stem, idf in self.weight.items():
            if often := passage.words.get(stem):
                score += idf * often * (bm25.K1 + 1) / (often + damping)
        return score / self.whole

    def share(self, shares: Mapping[str, float]) -> float:
        """Return the sum of the weights of stems, each times its share, in the sum of all weights."""
        if not shares or not self.whole:
            return 0.0
        return sum(idf * shares[stem] for stem, idf in self.weight.items() if stem in shares) / self.whole


_Moment = tuple[str, str]


def names_time(text: str, now: str) -> bool:
    """Return whether *text*, asked at the moment *now*, names days.

    >>> names_time("the renewal in March?", "2026-11-18T08:00:00.000000Z"), names_time("the renewal?", "")
    (True, False)
    """
    day = day_of(now)
    days, words = requested_days(text, day, [day.year]) if day else ([], frozenset())
    return bool(days and not words) or bool(spoken_of(text, day, [(day or date.min).year]))


def _moment(one: Candidate) -> _Moment:
    """Return when a candidate was said and recorded."""
    return one.passage.said_at, one.recorded


def _days_and_spans(
    question: Question, candidates: Sequence[Candidate]
) -> tuple[tuple[DateRange, ...], Mapping[str, Sequence[DateRange]]]:
    """Return the days that *question* names, and the spans that each candidate names if there are any.

    A day without a year is taken in each year of a candidate, and in each that texts name a `FREQUENT` part as often as
    the most frequent.
    """
    if not (question.spans or names_time(question.text, question.now)):
        return (), {}
    now = day_of(question.now)
    days = {one.passage.item: day_of(one.passage.said_at) for one in candidates}
    spans = {
        one.passage.item: [
            span for span in spoken_of(one.passage.text[:LONGEST_TEXT], days[one.passage.item]) if len(span) <= MONTHS
        ]
        for one in candidates
    }
    named = Counter(span.first.year for each in spans.values() for span in each)
    often = FREQUENT * max(named.values(), default=0)
    years = {day.year for day in days.values() if day} | {year for year, times in named.items() if times >= often}
    in_question = map(days_of, question.spans) if question.spans else spoken_of(question.text, now, sorted(years))
    return tuple(in_question)[:MOST_SPANS], spans


def days_of(span: tuple[str, str]) -> DateRange:
    """Return the days of a span from a first to before a second moment, both canonical timestamps."""
    first, after = (date.fromisoformat(moment[:10]) for moment in span)
    return DateRange(first, after - timedelta(days=1))


Sign = Callable[[_PreparedQuery, Candidate], float]


def _lexical(query: _PreparedQuery, one: Candidate) -> float:
    return query.score(one.passage)


def _coverage(query: _PreparedQuery, one: Candidate) -> float:
    return query.share(dict.fromkeys(one.passage.words, 1.0)) if one.passage.words else 0.0


def _coverage_around(query: _PreparedQuery, one: Candidate) -> float:
    """Return the share of the weights matched by a passage or its neighbours, decreasing with distance."""
    shares = dict.fromkeys(one.passage.words, 1.0)
    for neighbours in (one.before, one.after[:AFTER]):
        for share, each in zip(_FURTHER, neighbours, strict=False):
            for stem in each.words:
                if shares.get(stem, 0.0) < share:
                    shares[stem] = share
    return query.share(shares)


def _reply(query: _PreparedQuery, one: Candidate) -> float:
    """Return the match of the question that the candidate replies to, if there is one."""
    return query.score(one.before[0]) if one.before and "?" in one.before[0].text else 0.0


def _likeness(query: _PreparedQuery, one: Candidate) -> float:
    """Return the similarity, or that expected by its words if the passage has no vector yet."""
    cosine, expected = one.passage.cosine, max(one.passage.expected, USUAL)
    return max(cosine, 0.0) if cosine is not None else expected * query.has_vectors


def _likeness_around(query: _PreparedQuery, one: Candidate) -> float:
    """Return the root of the mean similarity of a passage and its neighbours: the first of it tells most."""
    own = one.passage.expected if one.passage.cosine is None else one.passage.cosine
    total, shares = own, float(own != 0 or one.passage.cosine is not None)
    for neighbours in (one.before, one.after):
        for share, each in zip(AROUND, neighbours, strict=False):
            if (cosine := each.cosine) is not None:
                total += share * cosine
                shares += share
    return sqrt(max(total / shares, 0.0) if shares else USUAL * query.has_vectors)


def _speaker(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether the named person is the speaker; several names are no evidence."""
    return float(len(query.speakers) == 1 and not query.speakers.isdisjoint(one.passage.speakers))


def _on_subject(query: _PreparedQuery, one: Candidate) -> float:
    """Return how much of the subject of a question that names a time a text without a speaker has, at most 1: the
    known words of the subject, or similarity above the usual one. What somebody says on a day may be an answer without.
    """
    if not query.subject or one.passage.speakers:
        return 1.0
    enough, clear = OF_SUBJECT if one.kind == "memory" else OF_ENTRY
    whole = sum(query.subject.values())
    share = sum(query.subject.get(stem, 0.0) for stem in one.passage.words) / whole if whole else 0.0
    alike = ((one.passage.cosine or 0.0) - USUAL) / (clear - USUAL)
    return min(max(share / enough, alike, 0.0), 1.0)


def _date(query: _PreparedQuery, one: Candidate) -> float:
    """Return the nearness of its day to the requested days; earlier days count as further away."""
    day = day_of(one.passage.said_at) if query.days else None
    if day is None:
        return 0.0
    away = min(max(meant.days_from(day), -EARLY * meant.days_from(day)) for meant in query.days)
    return exp(-away / NEAR) * _on_subject(query, one)


def _event(query: _PreparedQuery, one: Candidate) -> float:
    """Return the nearness of the dates it names to the requested days: 1 if they share a day."""
    spans = query.spans.get(one.passage.item, ())
    near = max((exp(-meant.days_between(span) / NEAR) for span in spans for meant in query.days), default=0.0)
    return near * _on_subject(query, one)


def _other_time(query: _PreparedQuery, one: Candidate) -> float:
    """Return how surely it is of another time than the question names: 0 within that time or if its text names it.

    The value rises with the distance, for a day that is named sooner than for a month. A text of that time without the
    subject is lowered as well.
    """
    day = day_of(one.passage.said_at) if query.days else None
    if day is None:
        return 0.0
    on_subject = _on_subject(query, one)
    if any(meant.shared(span) for span in query.spans.get(one.passage.item, ()) for meant in query.days):
        return 1.0 - on_subject
    return 1.0 - max(exp(-abs(meant.days_from(day)) / len(meant)) for meant in query.days) * on_subject


def _exact(query: _PreparedQuery, one: Candidate) -> float:
    """Return the rarity of the rarest identifier of the question in it: 1 if no other text has it."""
    return max((query.identifiers.get(stem, 0.0) for stem in one.passage.words), default=0.0)


def _lacks(query: _PreparedQuery, one: Candidate) -> float:
    """Return the share of the codes of the question, with two digits or more, that neither it nor a text around has."""
    codes = [stem for stem in query.identifiers if sum(map(str.isdigit, stem)) >= CODE_DIGITS]
    near = (one.passage, *one.before, *one.after)
    return sum(not any(stem in each.words for each in near) for stem in codes) / max(len(codes), 1)


def _other_kind(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether it is a memory, and not of the kind asked for: a decision."""
    return float(one.kind == "memory" and DECISIONS.isdisjoint(one.types))


def _recent(query: _PreparedQuery, one: Candidate) -> float:
    """Return 1 for the newest candidate, falling with the logarithm of the number of newer ones to 0."""
    newer = len(query.moments) - bisect_right(query.moments, _moment(one))
    return 1.0 - log(1 + newer) / log(max(len(query.moments), 2))


def _gives(kind: str) -> Sign:
    return lambda question, one: float(kind in question.answer_kinds and contains_cue(kind, one.passage.text))


def _asks(query: _PreparedQuery, one: Candidate) -> float:
    """Return the share of questions: they have the words of the question, but no answer."""
    return question_share(one.passage.text)


def _past(query: _PreparedQuery, one: Candidate) -> float:
    """Return how much it tells of the past: 1 for MANY_PAST verbs or more."""
    return min(past_verbs(one.passage.text), MANY_PAST) / MANY_PAST


def _matched(query: _PreparedQuery, one: Candidate) -> float:
    """Return how many words of the question it has, of any weight: 1 for MANY_WORDS or more."""
    return min(sum(stem in query.weight for stem in one.passage.words), MANY_WORDS) / MANY_WORDS


def _instruction(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether it is a standing instruction of a person, near to the question, which asks for help."""
    passage = one.passage
    is_near = bool(passage.words) or (passage.cosine or 0.0) > USUAL
    is_sought = "help" in query.answer_kinds
    return float(is_sought and is_near and is_instruction(passage.text) and not answers_question(one))


def _is_prompt(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether a person is the speaker, in a conversation with a machine."""
    return float(not answers_question(one))


def _answered(query: _PreparedQuery, one: Candidate) -> float:
    """Return whether a machine is the speaker and the question is about its answers."""
    return float("answerer" in query.answer_kinds and answers_question(one))


#: The features by name: each a number from 0, about 1 for a full match.
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
    "other_time": _other_time,
    "other_kind": _other_kind,
    "choice": lambda _, one: float(any(name.endswith(AGREED) for name in one.types)),
    "exact": _exact,
    "lacks": _lacks,
    "recent": _recent,
    "gives_time": _gives("time"),
    "gives_number": _gives("number"),
    "itself": lambda _, one: float(is_of_itself(one.passage.text)),
    "asks": _asks,
    "past": _past,
    "matched": _matched,
    "instruction": _instruction,
    "brief": lambda _, one: exp(-one.passage.length / BRIEF),
    "told": _is_prompt,
    "answered": _answered,
}
#: The features of the days that a question names, and those of the kind of answer that it needs: 0 without them.
_OF_DAYS, _OF_CODES, _OF_VECTORS = ("date", "event", "other_time"), ("exact", "lacks"), ("likeness", "likeness_around")
_OF_KIND = {"other_kind": "decision", "gives_time": "time", "gives_number": "number", "answered": "answerer",
            "instruction": "help", "choice": "choice"}  # fmt: skip
#: The features from words, and their factor if there are no vectors.
WORD_SIGNS, ALONE = ("lexical", "coverage", "coverage_around", "reply", "matched"), 2.0
#: A candidate without any of these is no answer, unless it is similar.
FITS = ("lexical", "coverage", "coverage_around", "date", "event")


def _is_alike(passage: ScoredPassage) -> bool:
    """Return whether a candidate may be an answer by similarity alone."""
    return (passage.cosine or 0.0) > (0.0 if passage.speakers else USUAL)


def in_order(candidates: Sequence[Ranked]) -> list[Ranked]:
    """Return the candidates best first, of equals the newest first; superseded ones are behind their successors."""
    in_turn = sorted(candidates, key=_place)
    if not any(one.candidate.successors for one in in_turn):
        return in_turn
    known = {one.candidate.passage.item: one for one in in_turn}
    done: dict[str, Ranked] = {}

    def behind(one: Ranked, seen: frozenset[str]) -> Ranked:
        item = one.candidate.passage.item
        if item not in done:
            after = [known[name] for name in one.candidate.successors if name in known and name not in seen]
            most = min((behind(later, seen | {item}).score * bm25.BEHIND for later in after), default=one.score)
            cut = min(most - one.score, 0.0)
            done[item] = Ranked(one.candidate, one.score + cut, {**one.parts, "superseded": cut}) if cut else one
        return done[item]

    # Sorted first, so that the result does not depend on the order of the candidates if supersessions form a cycle.
    return sorted([behind(one, frozenset()) for one in in_turn], key=_place)


def _place(one: Ranked) -> tuple[float, str, str]:
    return -one.score, bm25.descending_key(one.candidate.recorded), one.candidate.passage.item


def _beside(one: Candidate, score: float, question: Question) -> dict[str, float]:
    """Return the parts added for a requested file, for recency and for confidence."""
    late, sure = bm25.ties(one.recorded, one.confidence, question.counts.newest)
    return {"about": score * bm25.ABOUT * one.is_about, "recency": score * late, "confidence": score * sure}


def day_of(moment: str) -> date | None:
    """Return the day of a canonical timestamp, None for an empty one."""
    return date.fromisoformat(moment[:10]) if moment else None


class RankingSource(NamedTuple):
    """A source of candidates: the texts of a stream, and the vector query if there is one."""

    texts: Readable
    stream: Stream
    within: SearchFilter
    alike: VectorQuery | None = None


class ScoredCandidate(NamedTuple):
    """A ranked candidate with its score, and the question as its source analysed it."""

    found: Ranked
    score: float
    question: Question


class SourceRanking(NamedTuple):
    """The ranked candidates, best first, the question analysed for all sources, and the names of the rankings."""

    ranked: Sequence[ScoredCandidate]
    question: Question
    ranking: str


def rank_sources(sources: Sequence[RankingSource], query: RecallQuery) -> SourceRanking:
    """Return the candidates of *sources* for *query*, gathered by words and by similarity, best first.

    The memories, entries, turns and pages of a source are each ranked apart: a score does not depend on what else is
    searched. There are none if the query has a filter `active` and all candidates pass it.
    """
    gathered = [gather(one.texts, one.stream, replace(query, alike=one.alike), one.within) for one in sources]
    if query.active is not None and any(candidates for candidates, _ in gathered):  # those of the other sources, too
        gathered = [known if known[0] else gather(one.texts, one.stream, replace(query, alike=one.alike, active=None),
                                                  one.within)
                    for known, one in zip(gathered, sources, strict=True)]  # fmt: skip
    groups = [
        (group, question)
        for candidates, question in gathered
        for kind in sorted({one.kind for one in candidates})
        if (group := [one for one in candidates if one.kind == kind])
    ]
    profiles = [chosen(group) for group, _ in groups]
    found = [_scored(group, question, profile, query)
             for (group, question), profile in zip(groups, profiles, strict=True)]  # fmt: skip
    names = dict.fromkeys(str(profile["name"]) for profile in profiles or [MEMORIES])
    every = merge(*found, key=lambda one: -one.score)
    return SourceRanking([*every], merge_questions([question for _, question in gathered]), ", ".join(names))


def _scored(
    candidates: Sequence[Candidate], question: Question, profile: Profile, query: RecallQuery
) -> list[ScoredCandidate]:
    line = calibration(str(profile["name"]), has_vectors=question.has_vectors, memories=question.counts.memories)
    names_speaker = asks_for_speaker(query.stems.values(), question.speakers) and not question.spans
    scored, in_time = list[ScoredCandidate](), list[tuple[int, _Moment, ScoredCandidate]]()
    for one in ranked(candidates, question, profile):
        score = line.probability(one.score)
        if names_speaker and one.parts.get("speaker"):
            score = max(score, MIN_SCORE)  # no subject: every turn of the speaker answers
        place = _place_in_time(one, question)
        if place is not None and not one.parts.get("other_kind"):
            in_time.append((place, _moment(one.candidate), ScoredCandidate(one, ANSWERS_TIME, question)))
        else:
            most = 1.0 if not question.spans else MIN_SCORE / 2 if place is None else ANSWERS_TIME
            scored.append(ScoredCandidate(one, min(score, most), question))
    return [*(known for _, _, known in sorted(in_time, key=lambda each: each[:2])), *scored]


def _place_in_time(one: Ranked, question: Question) -> int | None:
    """Return the place of the span of *question* that a candidate is of, or in which the days are that its text names;
    None if it is of none, or by another speaker.
    """
    passage = one.candidate.passage
    speakers = (local_name(one.candidate.agent),) if one.candidate.kind == "memory" else passage.speakers
    if question.speakers and speakers and {*question.speakers}.isdisjoint(speakers):
        return None
    for place, (first, after) in enumerate(question.spans):
        if first <= passage.said_at < after:
            return place
    if not question.spans or one.candidate.kind != "memory":
        return None
    named = spoken_of(passage.text[:LONGEST_TEXT], day_of(passage.said_at))
    is_named = any(span.shared(each) == len(each) for span in map(days_of, question.spans) for each in named)
    return len(question.spans) if is_named else None


class Calibration(NamedTuple):
    """The line of log odds over the sum of a ranking."""

    slope: float
    intercept: float

    def probability(self, total: float) -> float:
        """Return the probability of a text with this sum.

        >>> Calibration(1.0, -2.0).probability(2.0)
        0.5
        """
        log_odds = self.slope * total + self.intercept
        return 1 / (1 + exp(-log_odds)) if log_odds >= 0 else exp(log_odds) / (1 + exp(log_odds))


#: The name of the ranking by words alone.
WORDS = "words"
#: Ranking -> its calibration with vectors and without.
CALIBRATIONS: Mapping[str, tuple[Calibration, Calibration]] = {
    WORDS: (Calibration(3.58, -4.04), Calibration(3.58, -4.04)),
    "memories-4": (Calibration(0.660, -7.30), Calibration(0.701, -5.83)),
    "people-3": (Calibration(0.507, -8.01), Calibration(0.482, -6.93)),
    "assistant-3": (Calibration(0.559, -7.46), Calibration(0.432, -5.99)),
    "tasks-2": (Calibration(0.169, -3.82), Calibration(0.095, -3.24)),
}
#: The rankings fitted to corpora of FITTED_MEMORIES memories, and the least number for which the odds were measured.
OF_MEMORIES, FEWEST_MEMORIES = (WORDS, "memories-4"), 3


def calibration(ranking: str, *, has_vectors: bool, memories: int = FITTED_MEMORIES) -> Calibration:
    """Return the calibration of a ranking for a corpus with this number of *memories*.

    >>> calibration(WORDS, has_vectors=False, memories=5).probability(1.0) > 0.75
    True
    """
    with_vectors, alone = CALIBRATIONS[ranking]
    line = with_vectors if has_vectors else alone
    if ranking not in OF_MEMORIES or memories >= FITTED_MEMORIES:
        return line
    return Calibration(line.slope, line.intercept + log(FITTED_MEMORIES / max(memories, FEWEST_MEMORIES)))
