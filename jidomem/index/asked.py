"""What an index answers about some nodes or about all: since when each is known, what ended it, what is proposed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from jidomem.active import ACCEPTED
from jidomem.index.answers import Solutions
from jidomem.index.listing import FOREVER, NEVER, ticks
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.query import Course
from jidomem.terms import Term, literal
from jidomem.vocab import jido

WRITABLE = re.compile(r"<[^\x00-\x20<>\"{}|^`\\]*>")
_AT_ONCE = 500
#: Of so many nodes a scan of all that is said costs less than a look-up for each.
MANY = 50_000
RECORDED, PROPOSED, ASSERTED = jido("recordedAt"), jido("Proposed"), jido("Asserted")
STATUS = jido("hasAssertionStatus")
DATED = f"{jido('validFrom')}|{jido('validUntil')}"
DECIDED = jido("decisionStatus")
ENDED_BY = f"{jido('supersededBy')}|{jido('invalidatedBy')}"
#: What is asked beside a pattern stands in OPTIONAL, which the engine looks up for each row found: joined, it may scan
#: all moments there are. `%s` is where the nodes asked about are named.
_ENDS = (
    f"SELECT ?item ?until ?status WHERE {{ %s ?item {ENDED_BY} ?end "
    f"OPTIONAL {{ ?end {RECORDED} ?until }} OPTIONAL {{ ?end {STATUS} ?status }} }}"
)
#: The same of all items: a SELECT within is found by one scan and joined by hashing, where a look-up on disk for each
#: row costs ten times as much.
_ALL_ENDS = (
    f"SELECT ?item ?until ({ASSERTED} AS ?status) WHERE {{ %s {{ SELECT * {{ ?item {ENDED_BY} ?end }} }} "
    f"{{ SELECT * {{ ?end {RECORDED} ?until }} }} {{ SELECT * {{ ?end {STATUS} {ASSERTED} }} }} }}"
)
_PROPOSALS = f"SELECT ?item WHERE {{ %s ?item {STATUS} {PROPOSED} }}"
_UNACCEPTED = f"SELECT ?item WHERE {{ %s ?item {DECIDED} ?standing FILTER(?standing != {literal(ACCEPTED)}) }}"
_ENDED = f"SELECT ?item WHERE {{ %s ?item {ENDED_BY} ?end }}"
_KNOWN = f"SELECT ?item ?since WHERE {{ %s ?item {RECORDED} ?since }}"

#: Since when something is known, and until when it is in force, as `ticks` counts.
Span = tuple[int, int]


@dataclass(slots=True)
class Fates:
    """Which items were ended, and when; which are only proposed; and which are decisions that are not accepted."""

    until: dict[Term, int] = field(default_factory=dict)
    proposed: set[Term] = field(default_factory=set)
    unaccepted: set[Term] = field(default_factory=set)

    def of(self, item: Term) -> int:
        """Return until when *item* is in force: NEVER for a proposal."""
        return NEVER if item in self.proposed else self.until.get(item, FOREVER)


class Asked:
    """Questions to an index; where *only* is given, about these nodes alone."""

    def __init__(self, index: OxigraphIndex) -> None:
        """Ask *index*."""
        self._index = index

    def rows(
        self, graphs: Sequence[str], text: str, only: Iterable[Term] | None = None, name: str = "item"
    ) -> Iterator[tuple[Term | None, ...]]:
        """Yield the rows of a SELECT, of which *only* says what *name* may be."""
        if only is None:
            yield from self._solutions(graphs, text.replace("%s", "", 1)).rows
            return
        known = [term for term in only if term.startswith('"') or WRITABLE.fullmatch(term)]
        for at in range(0, len(known), _AT_ONCE):
            yield from self._solutions(graphs, text.replace("%s", values(name, known[at : at + _AT_ONCE]), 1)).rows

    def nodes(
        self, graphs: Sequence[str], text: str, only: Iterable[Term] | None = None, name: str = "item"
    ) -> Iterator[Term]:
        """Yield the first column of `rows`."""
        return (row[0] or "" for row in self.rows(graphs, text, only, name))

    def ended(self, graphs: Sequence[str], enders: Iterable[Term]) -> set[Term]:
        """Return the items that *enders* end, or would."""
        return set(self.nodes(graphs, _ENDED, enders, "end"))

    def look_up(self, graphs: Sequence[str], fates: Fates, only: Collection[Term] | None) -> Fates:
        """Return *fates* with those of all items, or of those among *only*."""
        until = fates.until
        for item, ended, status in self.rows(graphs, _ALL_ENDS if only is None else _ENDS, only):
            at = ticks(ended or "") if status == ASSERTED else None
            if at is not None:
                until[item or ""] = min(at, until.get(item or "", FOREVER))
        fates.proposed.update(self.nodes(graphs, _PROPOSALS, only))
        fates.unaccepted.update(self.nodes(graphs, _UNACCEPTED, only))
        return fates

    def spans(
        self, graphs: Sequence[str], items: Set[Term], recorded_at: Mapping[Term, Term] | None = None
    ) -> dict[Term, Span]:
        """Return the span of each of *items* that is ever in force and an IRI; the longest where it is unknown.

        *recorded_at* says since when each is known, where that is known already.
        """
        only = items if len(items) < MANY else None
        fates, since = self.look_up(graphs, Fates(), only), dict[Term, int]()
        for item, recorded in (recorded_at or {}).items() or self.rows(graphs, _KNOWN, only):
            if item is not None and item in items:
                at = ticks(recorded or "") or 0
                since[item] = min(at, since.get(item, at))
        found = {item: (since.get(item, 0), fates.of(item)) for item in items if WRITABLE.fullmatch(item)}
        return {item: span for item, span in found.items() if span[0] < span[1]}

    def pointing(self, graphs: Sequence[str], course: Course, items: Set[Term]) -> dict[Term, list[Span]]:
        """Return the spans of all that points at each of *items* as the course says in `unless`.

        What holds for a time only is left out: whether it counts, depends on the moment it is asked for. So is what is
        not accepted, which is never active.
        """
        what = course.unless.split(" ")[0]
        text = (
            f"{course.prologue} SELECT ?{course.variable} {what} ?since WHERE {{ %s {course.unless} . "
            f"{what} {RECORDED} ?since FILTER NOT EXISTS {{ {what} {DATED} ?date }} "
            f"FILTER NOT EXISTS {{ {what} {DECIDED} ?standing FILTER(?standing != {literal(ACCEPTED)}) }} }}"
        )
        rows = [*self.rows(graphs, text, items if len(items) < MANY else None, course.variable)]
        since = dict[Term, int]()
        for _, pointer, recorded in rows:
            if pointer is not None and (at := ticks(recorded or "")) is not None:
                since[pointer] = min(at, since.get(pointer, at))
        fates = self.look_up(graphs, Fates(), since if len(since) < MANY else None)
        spans: dict[Term, list[Span]] = {}
        for item, pointer, _ in rows:
            if item is not None and pointer in since:
                spans.setdefault(item, []).append((since[pointer], fates.of(pointer)))
        return spans

    def pointed_at(self, graphs: Sequence[str], course: Course, items: Iterable[Term]) -> set[Term]:
        """Return what *items* point at as the course says in `unless`."""
        text = f"{course.prologue} SELECT ?{course.variable} WHERE {{ %s {course.unless} }}"
        return set(self.nodes(graphs, text, items, course.unless.split(" ")[0][1:]))

    def count(self, graphs: Sequence[str], text: str) -> int:
        """Return the number that a SELECT answers with."""
        return int(next(self.nodes(graphs, text)).split('"')[1])

    def _solutions(self, graphs: Sequence[str], text: str) -> Solutions:
        found = self._index.query(text, graphs=graphs)
        assert isinstance(found, Solutions)
        return found


def held_from(spans: Iterable[Span], until: int) -> int:
    """Return from when on one of *spans* holds at every moment before *until*; that itself where none holds at last.

    >>> held_from([(1, 3), (3, FOREVER)], FOREVER), held_from([(1, 2), (5, 9)], 9), held_from([(1, 3)], 9)
    (1, 5, 9)
    """
    for since, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if end < until:
            break
        until = min(since, until)
    return until


def values(name: str, terms: Iterable[Term]) -> str:
    """Return the SPARQL that lets a variable be one of *terms*, which the store gave and can be written."""
    return f"VALUES ?{name} {{ {' '.join(terms)} }}"
