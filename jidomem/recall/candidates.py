"""The candidates of a recall: passages gathered by words and by vectors, with their context and features.

`matching_excerpt` chooses the excerpt that answers a query: the decision first, then the sentences that match the query
best.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import accumulate, islice
from math import log
from typing import NamedTuple

from jidomem.base.clock import format_timestamp
from jidomem.base.words import EXCERPT, beginning, opening
from jidomem.index import search_tables
from jidomem.index.search_documents import ENTRY, TURN
from jidomem.index.search_index import Readable, VectorIndex
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, SearchRow
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import local_name
from jidomem.recall import bm25
from jidomem.recall.bm25 import numbers_about, search_weights, significant_stems
from jidomem.recall.question import DateRange, requested_days
from jidomem.records.interfaces import FIELD_WEIGHTS, CorpusStats, Vector
from jidomem.records.recall import Candidate, Question, ScoredPassage

#: The number of texts gathered by words and by similarity, and of the best of both that are examined with the turns
#: around them: an answer is often next to a turn similar to the question. A greater limit raises these numbers.
BY_WORDS, BY_LIKENESS, CLOSELY = 100, 100, 60
#: The turns before and after a candidate that are its context.
BEFORE, AFTER = 3, 3
#: The number of memories with the rarest words that are examined. Other words add to their score as long as at most
#: BESIDE memories contain them all together.
FIRST, BESIDE = 4_000, 30_000
#: The most pieces that are compared individually if the search covers only a part of the texts.
COMPARED = 20_000
#: How many times as many matches are read if too few of those read so far pass the filter.
MORE = 3
#: The most vectors that are compared at full precision if the search covers all texts.
IN_FULL = 1_000
#: The kind of a page of MemoryOS; pages are not in a graph.
PAGE, _WORDS = "urn:jidomem:page", re.compile(r"\w+")
_KIND_OF_CLASS = {plain_value(ENTRY): "entry", plain_value(TURN): "turn", PAGE: "page"}


class VectorQuery(NamedTuple):
    """The vectors of a root, and the vector of the query."""

    vectors: VectorIndex
    vector: Vector


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """The query: its text, stems, files, moment, and the vector query if there is one.

    `limit` is the greatest number of answers wanted. Candidates outside of the filter `active` are marked; if there are
    none of these, no candidates are returned. `caches`
    are those of the texts of each stream: the rankings of one recall share them.
    """

    text: str
    stems: Mapping[str, str]
    about: tuple[str, ...] = ()
    now: str = ""
    alike: VectorQuery | None = None
    limit: int = 1
    active: SearchFilter | None = None
    caches: dict[Hashable, QueryCache] = field(default_factory=dict)


def gather(
    texts: Readable, stream: Stream, query: RecallQuery, within: SearchFilter
) -> tuple[list[Candidate], Question]:
    """Return the candidates of *stream* for *query*, unordered, and the question with the statistics of the stream."""

    def gathered(file: SearchIndexReader) -> tuple[list[Candidate], Question]:
        key = (id(file), stream, query.text, query.about, within.moment)
        cache = query.caches.get(key)
        if cache is None or not cache.are_current():
            cache = query.caches[key] = QueryCache(file, stream, query, within.moment)
        return _Gathering(file, cache, query, within).gathered()

    return texts.read(stream, gathered)


class QueryCache:
    """The results of one query in one state of a search file, each computed once: no filter but the moment alters them.

    `counts` and `weight` are the statistics of the stems and their weights, `about` the texts about a requested file.
    """

    def __init__(self, file: SearchIndexReader, stream: Stream, query: RecallQuery, moment: str | None) -> None:
        self._file, self._stream, self._alike, self._moment = file, stream, query.alike, moment
        self._state = file.state
        self.counts = file.counts(query.stems, moment)
        self.weight = search_weights(query.stems, self.counts)
        self.about = numbers_about(file, query.about)
        #: The best word matches with their reach, and how many were asked for.
        self._matches: dict[bool, tuple[list[tuple[int, float]], int]] = {}
        self._near: dict[int, tuple[list[int], int]] = {}
        self._pieces: dict[int, list[bytes]] = {}
        self._cosines: dict[bytes, float | None] = {}
        self._rows: dict[int, SearchRow | None] = {}
        self._around: dict[int, tuple[list[int], list[int]]] = {}
        self._scored: dict[int, ScoredPassage] = {}
        #: The best texts within each filter.
        self.best: dict[Hashable, list[int]] = {}

    def are_current(self) -> bool:
        """Return whether the file is unchanged."""
        return self._state == self._file.state

    def matches(self, count: int, *, about: bool = False) -> list[tuple[int, float]]:
        """Return *count* best word matches, or fewer if there are no more, with their reach; those *about* a file."""
        known, limit = self._matches.get(about, ([], 0))
        if limit < count:
            limit = MORE * count  # a longer list takes no longer, as all matches are scored
            known = self._file.matches(*self._stems(about), limit, self.about if about else None)
            self._matches[about] = known, limit
        return known[:count]

    def matches_within(self, within: SearchFilter, count: int, *, about: bool) -> list[tuple[int, float]]:
        """Return the *count* best word matches that pass a filter, which few memories pass, as `matches`."""
        return self._file.matches(*self._stems(about), count, self.about if about else None, within)

    def _stems(self, about: bool) -> tuple[list[str], list[str]]:
        """Return the stems to search by, and those that only add to the score."""
        stems = [*self.weight]
        if about:
            return stems, []
        counts = [*accumulate(self.counts.holding[stem] for stem in stems)]
        first = max(1, bisect_right(counts, FIRST))
        return stems[:first], stems[first : bisect_right(counts, BESIDE)]

    def nearest(self, limit: int) -> tuple[list[int], int]:
        """Return the texts with the *limit* most similar pieces, and the number of these pieces."""
        if self._alike is None:
            return [], 0
        if limit not in self._near:
            near = self._alike.vectors.nearest(self._stream, self._alike.vector, limit)
            self._cosines |= near
            self._near[limit] = self._numbers_of_texts([known for known, _ in near]), len(near)
        return self._near[limit]

    def nearest_of(self, digests: Sequence[bytes], limit: int) -> list[int]:
        """Return the texts with the *limit* most similar ones of these pieces."""
        assert self._alike is not None
        pieces = self._alike.vectors.cosines(self._stream, self._alike.vector, digests)
        return self._numbers_of_texts(sorted(pieces, key=lambda known: (-pieces[known], known))[:limit])

    def _numbers_of_texts(self, digests: Sequence[bytes]) -> list[int]:
        """Return the numbers of the texts with one of *digests*, in that order."""
        saying = self._file.passages.numbers_of(digests)
        return [*dict.fromkeys(number for known in digests for number in saying[known])]

    def cosines(self, numbers: Collection[int]) -> dict[int, float]:
        """Return the similarity of each of *numbers*, that of its most similar piece; without an entry if it has no
        vector.
        """
        if self._alike is None:
            return {}
        if new := [number for number in numbers if number not in self._pieces]:
            self._pieces |= {number: [] for number in new} | self._file.passages.digests(new)
        unknown = {known for number in numbers for known in self._pieces[number]} - self._cosines.keys()
        if unknown:
            cosines = self._alike.vectors.cosines(self._stream, self._alike.vector, [*unknown])
            self._cosines |= {known: cosines.get(known) for known in unknown}
        best: dict[int, float] = {}
        for number in numbers:
            of_pieces = [cosine for known in self._pieces[number] if (cosine := self._cosines[known]) is not None]
            if of_pieces:
                best[number] = max(of_pieces)
        return best

    def rows(self, numbers: Collection[int]) -> dict[int, SearchRow]:
        """Return the rows of those of *numbers* that were recorded by the moment, active or not."""
        if new := [number for number in numbers if number not in self._rows]:
            rows = self._file.rows(new, SearchFilter(self._moment, inactive=True))
            self._rows |= dict.fromkeys(new) | {row.number: row for row in rows}
        return {number: row for number in numbers if (row := self._rows[number]) is not None}

    def neighbouring_turns(self, numbers: Collection[int]) -> Mapping[int, tuple[list[int], list[int]]]:
        """Return the turns before and after each of *numbers*, and maybe of others, the nearest first."""
        if new := [number for number in numbers if number not in self._around]:
            self._around |= {number: ([], []) for number in new}
            self._around |= self._file.passages.around(new, BEFORE + AFTER, self._moment)
        return self._around

    def scored(self, rows: Mapping[int, SearchRow]) -> dict[int, ScoredPassage]:
        """Return each of *rows* scored for the question."""
        new = {number: row for number, row in rows.items() if number not in self._scored}
        cosines = self.cosines(new)
        for number, row in new.items():
            words, cosine = _words(row.fields, self.weight), cosines.get(number)
            self._scored[number] = ScoredPassage(
                row.item, row.text, words, row.length, cosine, row.speakers, row.said_at
            )
        return {number: self._scored[number] for number in rows}


class _Gathering:
    """One gathering of candidates, while the search file is unchanged."""

    def __init__(self, file: SearchIndexReader, cache: QueryCache, query: RecallQuery, within: SearchFilter) -> None:
        self._file = file
        self._cache = cache
        self._query = query
        self._within = within
        #: The agents that the question names, if it names a time and no subject.
        self._agents = frozenset[str]()

    def gathered(self) -> tuple[list[Candidate], Question]:
        file, within, cache = self._file, self._within, self._cache
        first = self._first()
        if spans := self._requested_spans(first):
            own_filter = within._replace(agents=self._agents) if self._agents else within
            first = [*dict.fromkeys([*file.during(spans, own_filter, self._query.limit + 1), *first])]
        runs = self._runs(first)
        around = _contexts(runs)
        known = cache.rows({number for run, _ in runs for number in run})
        rows = {number: known[number] for number in file.within(around, within)}
        if within.inactive:  # successors of candidates are ranked before them, if they match
            rows = self._with_later(rows)
            known = {**known, **rows}
        active = rows.keys() if self._query.active is None else file.within(rows, self._query.active)
        if self._query.active is not None and rows.keys() <= active:
            return [], self._question([], spans)
        scored = cache.scored(known)
        candidates = [
            self._candidate(row, scored, around.get(number, ((), ())), number in active) for number, row in rows.items()
        ]
        question = self._question(scored.values(), spans)
        return _with_expected(candidates, cache.weight, question), question

    def _requested_spans(self, numbers: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Return the times for which the question asks, if it names nothing else than speakers of *numbers*."""
        text, day = self._query.text, date.fromisoformat(self._query.now[:10] or str(date.min))
        if not requested_days(text, day, [day.year])[0]:
            return ()
        rows = self._cache.rows(numbers).values()
        years = {int(row.said_at[:4]) for row in rows if row.said_at} | {day.year}
        days, words = requested_days(text, day, years)
        names = {part.casefold() for row in rows for name in row.speakers for part in name.split()}
        if not words <= names:  # agents are looked up only if a word may name one
            agents = {
                name: set(_WORDS.findall(local_name(name).casefold()))
                for name in self._file.names("agent", self._within)
            }
            self._agents = frozenset(name for name, parts in agents.items() if parts <= words)
            names |= {part for name in self._agents for part in agents[name]}
        return tuple(map(_moments, days)) if words <= names else ()

    def _with_later(self, rows: Mapping[int, SearchRow]) -> dict[int, SearchRow]:
        """Return *rows* with their successors, direct and indirect, each row with all of its successors."""
        if not any(row.successors for row in rows.values()):
            return {**rows}
        rows_by_number, new = {**rows}, [*rows.values()]
        while new:
            numbers = {*self._file.numbers(item for row in new for item in row.successors)}
            new = [*self._cache.rows(self._file.within(numbers - rows_by_number.keys(), self._within)).values()]
            rows_by_number |= {row.number: row for row in new}
        after = {row.item: row.successors for row in rows_by_number.values()}
        return {number: row._replace(successors=_in_turn(row.item, after)) for number, row in rows_by_number.items()}

    def _first(self) -> list[int]:
        """Return the numbers of the best texts by the sum of both scores, each relative to the greatest of its kind."""
        key = self._within, self._most(BY_WORDS), self._most(BY_LIKENESS)
        if key not in self._cache.best:
            self._cache.best[key] = self._ordered()
        return self._cache.best[key][: self._most(CLOSELY)]

    def _ordered(self) -> list[int]:
        words, about = self._by_words(), self._cache.about
        either = dict.fromkeys([*words, *self._by_likeness()])
        near = {number: max(cosine, 0.0) for number, cosine in self._cache.cosines(either).items()}
        most, nearest = max(words.values(), default=0.0) or 1.0, max(near.values(), default=0.0) or 1.0

        def fit(number: int) -> tuple[float, int]:
            by_words = words.get(number, 0.0) / most
            parts = by_words + (near[number] / nearest if number in near else by_words)
            return -parts * (1 + bm25.ABOUT * (number in about)), -number

        return sorted(words.keys() | near.keys(), key=fit)

    def _by_words(self) -> dict[int, float]:
        """Return the best word matches, of all texts and of those about a requested file, with their reach."""
        if not self._cache.weight:
            return {}
        return {**self._best(about=False), **(self._best(about=True) if self._cache.about else {})}

    def _best(self, *, about: bool) -> dict[int, float]:
        """Return the best word matches within the scope, with their reach; some more are read each time."""
        most, count = self._most(BY_WORDS), search_tables.AT_FIRST
        while True:
            matches = self._cache.matches(count, about=about)
            inside = self._file.within([number for number, _ in matches], self._within)
            best = dict(islice(((number, reach) for number, reach in matches if number in inside), most))
            if len(best) == most or len(matches) < count:
                return best
            if MORE * len(best) < min(most, count):
                return dict(self._cache.matches_within(self._within, most, about=about))
            count *= MORE

    def _by_likeness(self) -> list[int]:
        """Return the numbers of the most similar texts within the scope."""
        most = self._most(BY_LIKENESS)
        wanted = min(2 * most, IN_FULL)
        near, pieces = self._cache.nearest(wanted)
        numbers = self._inside(near)
        if len(numbers) < most and pieces == wanted:  # most of the nearest texts are outside the scope
            digests = self._file.digests(self._within, COMPARED)
            numbers = self._inside(self._cache.nearest_of(digests, 2 * most))
        return numbers[:most]

    def _most(self, usual: int) -> int:
        """Return the number to examine: the usual one, or the requested limit and one more, which shows that there are
        more.
        """
        return max(usual, self._query.limit + 1)

    def _inside(self, numbers: Sequence[int]) -> list[int]:
        inside = self._file.within(numbers, self._within)
        return [number for number in numbers if number in inside]

    def _runs(self, numbers: Collection[int]) -> list[tuple[list[int], int]]:
        """Return, for each of *numbers*, the turns around it and its position among them."""
        around, runs = self._cache.neighbouring_turns(numbers), []
        for number in sorted(numbers):
            before, after = around[number]
            runs.append(([*reversed(before), number, *after], len(before)))
        return runs

    def _candidate(
        self,
        row: SearchRow,
        scored: Mapping[int, ScoredPassage],
        around: tuple[Sequence[int], Sequence[int]],
        is_active: bool,
    ) -> Candidate:
        before, after = around
        moment = self._within.moment
        return Candidate(
            scored[row.number],
            _kind_of(row.types),
            row.types,
            row.recorded,
            row.confidence,
            row.agent,
            row.session,
            row.talk,
            tuple([scored[number] for number in before if number in scored]),
            tuple([scored[number] for number in after if number in scored]),
            is_about=row.number in self._cache.about,
            is_active=is_active,
            ended=row.ended if moment is None or (row.ended or "") <= moment else None,
            successors=row.successors,
        )

    def _question(self, scored: Collection[ScoredPassage], spans: tuple[tuple[str, str], ...]) -> Question:
        words, counts = set(self._query.stems.values()), self._cache.counts
        speakers = {name for one in scored for name in one.speakers}
        has_vectors = any(one.cosine is not None for one in scored)
        named = sorted(name for name in speakers if words & {part.casefold() for part in name.split()})
        named += sorted({local_name(name) for name in self._agents} - {*named}) if spans else []
        stems = {stem: self._query.stems[stem] for stem in self._cache.weight}
        missing = [stem for stem in significant_stems(self._query.stems) if not counts.holding.get(stem)]
        unknown = {stem: self._query.stems[stem] for stem in missing}
        return Question(self._query.text, stems, counts, tuple(named), self._query.now, has_vectors, unknown, spans)


def _with_expected(candidates: Sequence[Candidate], weight: Mapping[str, float], question: Question) -> list[Candidate]:
    """Return *candidates*, those without a vector with the similarity expected by their words.

    It is that of the most similar candidate, lowered by what the words lack: of the question, or of what the other
    candidate has of it. So no text ranks below another one only for lack of a vector.
    """
    whole, passages = (
        bm25.total_weight([*weight, *question.unknown], question.counts),
        [one.passage for one in candidates],
    )
    if not whole or not question.has_vectors or all(each.cosine is not None for each in passages):
        return [*candidates]
    shares = [sum(weight[stem] for stem in each.words if stem in weight) / whole for each in passages]
    nearest: dict[float, float] = {}
    for share, each in zip(shares, passages, strict=True):
        nearest[share] = max(nearest.get(share, 0.0), each.cosine or 0.0)

    def expected(share: float) -> float:
        return max(
            cosine * max(share, min(share, other) / (max(share, other) or 1)) for other, cosine in nearest.items()
        )

    return [
        one if one.passage.cosine is not None or not share
        else one._replace(passage=one.passage._replace(expected=expected(share)))
        for one, share in zip(candidates, shares, strict=True)
    ]  # fmt: skip


def _moments(days: DateRange) -> tuple[str, str]:
    """Return the first moment of *days*, and the one after them, as canonical timestamps."""
    first, after = (datetime.combine(day, time(), UTC) for day in (days.first, days.last + timedelta(days=1)))
    return format_timestamp(first), format_timestamp(after)


def _contexts(runs: Sequence[tuple[Sequence[int], int]]) -> dict[int, tuple[Sequence[int], Sequence[int]]]:
    """Return each turn that has the middle of one of *runs* in its context, with the turns before and after it.

    They are those of the last such run: a turn that has ended is only in the run of which it is the middle.
    """
    around: dict[int, tuple[Sequence[int], Sequence[int]]] = {}
    for run, middle in reversed(runs):
        for at in range(max(middle - AFTER, 0), min(middle + BEFORE + 1, len(run))):
            if run[at] not in around:
                around[run[at]] = run[max(at - BEFORE, 0) : at][::-1], run[at + 1 : at + 1 + AFTER]
    return around


@lru_cache(256)
def _kind_of(types: Sequence[str]) -> str:
    return next((_KIND_OF_CLASS[name] for name in types if name in _KIND_OF_CLASS), "memory")


def _in_turn(item: str, successors: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the successors of *item*, direct and indirect; *successors* has the direct ones."""
    later: dict[str, None] = {}
    left = [*successors[item]]
    while left:
        name = left.pop()
        if name not in later and name != item:
            later[name] = None
            left += successors.get(name, ())
    return tuple(later)


def _words(fields: Sequence[str], stems: Mapping[str, float]) -> dict[str, float]:
    """Return the weighted count of each of *stems* in the *fields*."""
    words_of: dict[str, float] = {}
    for weight, text in zip(FIELD_WEIGHTS.values(), fields, strict=True):
        if text:
            for stem in stems:
                if stem in text and (count := text.split().count(stem)):
                    words_of[stem] = words_of.get(stem, 0.0) + weight * count
    return words_of


def merge_questions(questions: Sequence[Question]) -> Question:
    """Return one question with the summed statistics of several streams."""
    first = questions[0]
    counts = [question.counts for question in questions]
    holding: Counter[str] = Counter()
    for one in counts:
        holding.update(one.holding)
    whole = CorpusStats(sum(one.memories for one in counts), sum(one.words for one in counts), holding,
                   max(one.newest for one in counts))  # fmt: skip
    stems = {stem: word for question in questions for stem, word in question.stems.items()}
    speakers = tuple(dict.fromkeys(name for question in questions for name in question.speakers))
    unknown = {
        stem: word for question in questions for stem, word in question.unknown.items() if not whole.holding.get(stem)
    }
    spans = tuple(dict.fromkeys(span for question in questions for span in question.spans))
    has_vectors = any(one.has_vectors for one in questions)
    return Question(first.text, stems, whole, speakers, first.now, has_vectors, unknown, spans)


#: The share of the excerpt for the opening of the text if a later passage matches better.
_OPENING = 0.4
#: The share of the weight of a word in the heading above a sentence, or in an adjacent sentence.
_ABOVE, _BESIDE = 0.5, 0.4
#: The longest heading that is repeated before a sentence below it.
_LONGEST_HEADING = 120
_GAP = "…"

#: The stems of a question that count for a sentence, each with a share of its weight.
Shares = Mapping[str, float]


def matching_excerpt(
    sentences: Sequence[str], stems: Sequence[Collection[str]], weights: Mapping[str, float], longest: int = EXCERPT
) -> str:
    """Return the opening of a text and the *sentences* of it that match a question best, on one line.

    *stems* are those of each sentence, *weights* those of the question. Sentences are whole and in the order of the
    text, with an ellipsis for omitted ones. Only the opening is returned if no later sentence matches better than it.

    >>> text = ["We use one queue.", "It was slow.", "A letter waits in it.", "Letters expire after 30 days."]
    >>> stems = [{"queue"}, {"slow"}, {"letter", "wait"}, {"letter", "expir"}]
    >>> matching_excerpt(text, stems, {"letter": 1.0, "expir": 2.0}, 60)
    'We use one queue. … Letters expire after 30 days.'
    """
    start = opening(sentences, longest)
    idf = _stem_weights(stems, weights)
    shares = [_shares(sentences, stems, idf, place) for place in range(len(sentences))]
    scores = [_score(share, idf) for share in shares]
    if max(scores, default=0.0) <= max((scores[place] for place in start.places), default=0.0):
        return start.text
    lead = opening(sentences, int(longest * _OPENING))
    shown = {place: sentences[place] for place in lead.places}
    if not shown:
        shown[lead.place] = f"{beginning(sentences[lead.place], int(longest * _OPENING))} {_GAP}"
    ranked = _ranked(shares, idf)
    for place in ranked:
        above = _above(sentences, place)
        shown = _with(shown, sentences, [*above, place], longest) or _with(shown, sentences, [place], longest) or shown
    for place in ranked:
        for beside in (place + 1, place - 1):
            if place in shown and 0 <= beside < len(sentences) and not _is_heading(sentences[beside]):
                shown = _with(shown, sentences, [beside], longest) or shown
    return _text(shown, len(sentences))


def _stem_weights(stems: Sequence[Collection[str]], weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weight of each stem of the question for a sentence: the fewer sentences contain it, the higher."""
    holding = Counter(stem for each in stems for stem in weights.keys() & set(each))
    return {stem: weights[stem] * log(1 + len(stems) / count) for stem, count in holding.items()}


def _shares(sentences: Sequence[str], stems: Sequence[Collection[str]], idf: Mapping[str, float], place: int) -> Shares:
    """Return the stems that count for the sentence at *place*: its own, and those above it and beside it."""
    if _is_heading(sentences[place]):
        return {}
    around = [other for other in (place - 1, place + 1) if 0 <= other < len(sentences)]
    shares = dict.fromkeys((stem for other in around for stem in stems[other]), _BESIDE)
    shares |= dict.fromkeys((stem for other in _above(sentences, place) for stem in stems[other]), _ABOVE)
    shares |= dict.fromkeys(stems[place], 1.0)
    return {stem: share for stem, share in shares.items() if stem in idf}


def _score(shares: Shares, idf: Mapping[str, float]) -> float:
    return sum(share * idf[stem] for stem, share in shares.items())


def _ranked(shares: Sequence[Shares], idf: Mapping[str, float], most: int = 6) -> list[int]:
    """Return the places of the best sentences; a stem of a sentence already ranked counts half for the next."""
    left, ranked = dict(idf), list[int]()
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
    """Return the place of the nearest heading, or sentence that leads in to the list, above *place*."""
    heading = next((other for other in range(place - 1, -1, -1) if _is_heading(sentences[other])), None)
    return [] if heading is None or len(sentences[heading]) > _LONGEST_HEADING else [heading]


def _is_heading(sentence: str) -> bool:
    return sentence.endswith(":")


def _with(shown: Mapping[int, str], sentences: Sequence[str], places: Sequence[int], longest: int) -> dict[int, str]:
    """Return *shown* with the sentences at *places*; an empty dictionary if they are too long together."""
    more = {place: sentences[place] for place in places} | dict(shown)
    return more if len(_text(more, len(sentences))) <= longest else {}


def _text(shown: Mapping[int, str], count: int) -> str:
    """Return the sentences *shown* of *count*, with an ellipsis for omitted ones."""
    words: list[str] = []
    for place in sorted(shown):
        if place and place - 1 not in shown and not (words and words[-1].endswith(_GAP)):
            words.append(_GAP)
        words.append(shown[place])
    if count - 1 not in shown and not words[-1].endswith(_GAP):
        words.append(_GAP)
    return " ".join(words)
