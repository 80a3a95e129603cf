"""What may answer a question, gathered by words and by likeness, with what stands around it and what ranks it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

from jidomem.candidate import Candidate, Passage, Question
from jidomem.embedder import Vector
from jidomem.index import passages
from jidomem.index.held_texts import Comparable, Readable
from jidomem.index.kept_words import ENTRY
from jidomem.index.text_file import Row, TextFile, Within
from jidomem.index.turn_words import TURN
from jidomem.journal.files import Stream
from jidomem.lexical import FIELDS, Counts
from jidomem.read import rank
from jidomem.read.search import numbers_about, telling
from jidomem.terms import bare

#: So many are found by their words, and so many by their likeness, and the best of both are looked at with what stands
#: around them: what is asked for is often said beside what is alike to the question. More where more are asked for.
BY_WORDS, BY_LIKENESS, CLOSELY = 100, 100, 60
#: So much of what was said before and after a candidate is told of it.
BEFORE, AFTER = 3, 3
#: So many memories that hold the rarest words are looked at, and what other words count in those, as far as no more
#: than BESIDE hold them together.
FIRST, BESIDE = 4_000, 30_000
#: So many pieces are compared one by one where what is looked through is but a part of all.
COMPARED = 20_000
#: So many vectors are compared in full where all are looked through.
IN_FULL = 1_000
#: What is a page of a dialogue, which no graph holds.
PAGE = "urn:jidomem:page"
_KINDS = {bare(ENTRY): "entry", bare(TURN): "turn", PAGE: "page"}


@dataclass(frozen=True, slots=True)
class Alike:
    """The vectors of a root, and the vector of what is asked."""

    vectors: Comparable
    vector: Vector


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: the text, its stems, the files it is about, when, and what makes likeness known, if anything.

    `limit` is how many answers are wanted at most.
    """

    text: str
    stems: Mapping[str, str]
    about: tuple[str, ...] = ()
    now: str = ""
    alike: Alike | None = None
    limit: int = 1


def gather(texts: Readable, stream: Stream, asked: Asked, within: Within) -> tuple[list[Candidate], Question]:
    """Return what of *stream* may answer what is *asked*, in no order, and the question as it meets it."""
    return texts.read(stream, lambda file: _Gathering(file, stream, asked, within).gathered())


class _Gathering:
    """One gathering, while nobody changes the file."""

    def __init__(self, file: TextFile, stream: Stream, asked: Asked, within: Within) -> None:
        self._file = file
        self._stream = stream
        self._asked = asked
        self._within = within
        self._counts = file.counts(asked.stems, within.moment)
        self._weight = telling(asked.stems, self._counts)

    def gathered(self) -> tuple[list[Candidate], Question]:
        file, within = self._file, self._within
        about = numbers_about(file, self._asked.about)
        runs = self._runs(self._first(about))
        around = {number: sides for run, middle in runs for number, sides in _sides(run, middle)}
        rows = {row.number: row for row in file.rows(around, within)}
        if within.inactive:  # what superseded a candidate stands before it, if it answers at all
            rows = self._with_later(rows)
        beside = {number for run, _ in runs for number in run} - rows.keys()
        known = {**rows, **{row.number: row for row in file.rows(beside, Within(within.moment, inactive=True))}}
        said = file.passages.of(known)
        met = self._met(known, said)
        found = [
            self._candidate(row, met, around.get(number, ((), ())), number in about) for number, row in rows.items()
        ]
        return found, self._question({name for one in said.values() for name in one.speakers}, met)

    def _with_later(self, rows: Mapping[int, Row]) -> dict[int, Row]:
        """Return *rows* with what came in the place of them, and in the place of that, each told of all of these."""
        found, new = {**rows}, [*rows.values()]
        while new:
            numbers = {*self._file.numbers(item for row in new for item in row.successors)}
            new = self._file.rows(numbers - found.keys(), self._within)
            found |= {row.number: row for row in new}
        after = {row.item: row.successors for row in found.values()}
        return {number: row._replace(successors=_in_turn(row.item, after)) for number, row in found.items()}

    def _first(self, about: frozenset[int]) -> list[int]:
        """Return the numbers of what fits best by words and likeness, each measured by the best there is."""
        words = self._by_words(about)
        near = {number: max(cosine, 0.0) for number, cosine in self._cosines([*words, *self._by_likeness()]).items()}
        most, nearest = max(words.values(), default=0.0) or 1.0, max(near.values(), default=0.0) or 1.0

        def fit(number: int) -> tuple[float, int]:
            parts = words.get(number, 0.0) / most + near.get(number, 0.0) / nearest
            return -parts * (1 + rank.ABOUT * (number in about)), -number

        return sorted(words.keys() | near.keys(), key=fit)[: self._most(CLOSELY)]

    def _by_words(self, about: frozenset[int]) -> dict[int, float]:
        """Return what holds the words best, of all and of what is *about* a file asked for, each with its reach."""
        if not self._weight:
            return {}
        held = [*accumulate(self._counts.holding[stem] for stem in self._weight)]
        stems, first = [*self._weight], max(1, bisect_right(held, FIRST))
        beside = stems[first : bisect_right(held, BESIDE)]
        found = [*islice(self._file.best(stems[:first], self._within, beside=beside), self._most(BY_WORDS))]
        if about:
            found += islice(self._file.best(self._weight, self._within, about), self._most(BY_WORDS))
        return {one.number: one.reach for one in found}

    def _by_likeness(self) -> list[int]:
        """Return the numbers of what is most alike, of what is looked through."""
        if self._asked.alike is None:
            return []
        vectors, vector, most = self._asked.alike.vectors, self._asked.alike.vector, self._most(BY_LIKENESS)
        wanted = min(2 * most, IN_FULL)
        near = vectors.nearest(self._stream, vector, wanted)
        found = self._saying([known for known, _ in near])
        if len(found) < most and len(near) == wanted:  # most of what is near is not looked through
            pieces = vectors.cosines(self._stream, vector, self._file.digests(self._within, COMPARED))
            found = self._saying(sorted(pieces, key=lambda known: (-pieces[known], known))[: 2 * most])
        return found[:most]

    def _most(self, usual: int) -> int:
        """Return how many are looked at: the usual number, or those asked for and one that tells of more."""
        return max(usual, self._asked.limit + 1)

    def _saying(self, digests: Sequence[bytes]) -> list[int]:
        """Return the numbers of what says one of *digests*, in their order, and is looked through."""
        saying = self._file.passages.saying(digests)
        numbers = dict.fromkeys(number for known in digests for number in saying[known])
        inside = self._file.within(numbers, self._within)
        return [number for number in numbers if number in inside]

    def _runs(self, numbers: Iterable[int]) -> list[tuple[list[int], int]]:
        """Return for each of *numbers* the run of what was said around it, and its place in there."""
        far, moment = BEFORE + AFTER, self._within.moment
        found = []
        for number, one in self._file.passages.of(numbers).items():
            before, after = self._file.passages.around(one, far, far, moment)
            found.append(([*reversed(before), number, *after], len(before)))
        return found

    def _met(self, rows: Mapping[int, Row], said: Mapping[int, passages.Passage]) -> dict[int, Passage]:
        """Return each of *rows* as the question meets it."""
        cosines = self._cosines(rows)
        return {
            number: Passage(
                item=row.item,
                text=said[number].text,
                words=_words(row.fields, self._weight),
                length=row.length,
                cosine=cosines.get(number),
                speakers=said[number].speakers,
                said_at=said[number].said_at,
            )
            for number, row in rows.items()
        }

    def _cosines(self, numbers: Iterable[int]) -> dict[int, float]:
        """Return how alike each of *numbers* is: as its piece that is most alike, as far as there are vectors."""
        if self._asked.alike is None:
            return {}
        pieces = self._file.passages.digests(numbers)
        every = list(dict.fromkeys(known for digests in pieces.values() for known in digests))
        cosines = self._asked.alike.vectors.cosines(self._stream, self._asked.alike.vector, every)
        found = {
            number: [cosines[known] for known in digests if known in cosines] for number, digests in pieces.items()
        }
        return {number: max(each) for number, each in found.items() if each}

    def _candidate(
        self,
        row: Row,
        met: Mapping[int, Passage],
        around: tuple[Sequence[int], Sequence[int]],
        is_about: bool,
    ) -> Candidate:
        before, after = around
        return Candidate(
            passage=met[row.number],
            kind=next((_KINDS[name] for name in row.types if name in _KINDS), "memory"),
            types=row.types,
            recorded=row.recorded,
            confidence=row.confidence,
            agent=row.agent,
            session=row.session,
            before=tuple(met[number] for number in before if number in met),
            after=tuple(met[number] for number in after if number in met),
            is_about=is_about,
            ended=row.ended if self._within.moment is None or (row.ended or "") <= self._within.moment else None,
            successors=row.successors,
        )

    def _question(self, speakers: Iterable[str], met: Mapping[int, Passage]) -> Question:
        words = set(self._asked.stems.values())
        named = sorted(name for name in speakers if words & {part.casefold() for part in name.split()})
        stems = {stem: self._asked.stems[stem] for stem in self._weight}
        has_vectors = any(one.cosine is not None for one in met.values())
        return Question(self._asked.text, stems, self._counts, tuple(named), self._asked.now, has_vectors)


def _sides(run: Sequence[int], middle: int) -> Iterator[tuple[int, tuple[Sequence[int], Sequence[int]]]]:
    """Yield what has the middle of a *run* among what is told of it, with what was said before and after each."""
    for at in range(max(middle - AFTER, 0), min(middle + BEFORE + 1, len(run))):
        yield run[at], (run[max(at - BEFORE, 0) : at][::-1], run[at + 1 : at + 1 + AFTER])


def _in_turn(item: str, successors: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return what came in the place of *item*, and in the place of that, by what came in the place of each."""
    later: dict[str, None] = {}
    left = [*successors[item]]
    while left:
        name = left.pop()
        if name not in later and name != item:
            later[name] = None
            left += successors.get(name, ())
    return tuple(later)


def _words(fields: Sequence[str], stems: Mapping[str, float]) -> dict[str, float]:
    """Return how often each of *stems* stands in the *fields*, each time counted by its field."""
    found: dict[str, float] = {}
    for weight, text in zip(FIELDS.values(), fields, strict=True):
        if text:
            words = text.split()
            for stem in stems.keys() & set(words):
                found[stem] = found.get(stem, 0.0) + weight * words.count(stem)
    return found


def together(questions: Sequence[Question]) -> Question:
    """Return one question for what was gathered of several streams."""
    first = questions[0]
    counts = [question.counts for question in questions]
    holding: Counter[str] = Counter()
    for one in counts:
        holding.update(one.holding)
    whole = Counts(sum(one.memories for one in counts), sum(one.words for one in counts), holding,
                   max(one.newest for one in counts))  # fmt: skip
    stems = {stem: word for question in questions for stem, word in question.stems.items()}
    speakers = tuple(dict.fromkeys(name for question in questions for name in question.speakers))
    return Question(first.text, stems, whole, speakers, first.now, any(one.has_vectors for one in questions))
