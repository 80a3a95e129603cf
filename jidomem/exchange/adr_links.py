"""Who supersedes and amends whom in a set of decision records: one successor each, no cycles, nothing lost silently."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from urllib.parse import unquote, urlsplit

from jidomem.exchange.adr_record import Note, Record, Severity
from jidomem.exchange.adr_words import Reference, number_in, slug, stem, unnumbered

_VERB = {"ends": "supersedes", "ended": "superseded by", "amends": "amends", "amended": "amended by"}


@dataclass(frozen=True, slots=True)
class Links:
    """What each record supersedes and amends, by IRI, the records that are superseded, and the order to submit in."""

    ends: Mapping[str, tuple[str, ...]]
    amends: Mapping[str, tuple[str, ...]]
    ended: frozenset[str]
    order: tuple[str, ...]
    notes: tuple[Note, ...]


def tie(records: Mapping[str, Record], iri_of: Callable[[str], str], known: Callable[[str], bool]) -> Links:
    """Return how *records* (by IRI) hang together.

    *iri_of* gives the IRI of a record by the name of its file, *known* tells which are in memory already: those can be
    superseded, and are not changed.
    """
    tying = _Tying(records, iri_of, known)
    tying.claim()
    tying.settle()
    order = tying.order()
    ended = frozenset(old for olds in tying.ends.values() for old in olds)
    return Links(_sorted(tying.ends), _sorted(tying.amends), ended, order, tuple(tying.notes))


@dataclass(frozen=True, slots=True)
class _Claim:
    """One record saying that *new* comes after *old*; `by` is the one that says so."""

    new: str
    old: str
    by: str
    line: int


class _Tying:
    """The links as they are found, judged and put in order."""

    def __init__(
        self, records: Mapping[str, Record], iri_of: Callable[[str], str], known: Callable[[str], bool]
    ) -> None:
        self.records = records
        self.iri_of = iri_of
        self.known = known
        self.notes: list[Note] = []
        self.claims: dict[str, list[_Claim]] = defaultdict(list)
        self.ends: dict[str, set[str]] = defaultdict(set)
        self.amends: dict[str, set[str]] = defaultdict(set)
        self.by_path = {posixpath.normpath(record.path): iri for iri, record in records.items()}
        self.by_name: dict[str, list[str]] = defaultdict(list)
        self.by_number: dict[int | None, list[str]] = defaultdict(list)
        self.by_title: dict[str, list[str]] = defaultdict(list)
        for iri, record in records.items():
            self.by_name[stem(record.path)].append(iri)
            self.by_number[record.number].append(iri)
            self.by_title[slug(record.title)].append(iri)

    def note(self, severity: Severity, iri: str, line: int | None, message: str) -> None:
        self.notes.append(Note(self.records[iri].path, None if line is None else line + 1, message, severity))

    def name(self, iri: str) -> str:
        return self.records[iri].path if iri in self.records else iri

    def find(self, record: Record, reference: Reference) -> list[str]:
        """Return the records a reference can mean: by file, else by number (in its folder first), else by title."""
        address = urlsplit(reference.href or (reference.text if reference.text.endswith(".md") else ""))
        file = unquote(address.path)
        if file:
            here = self.by_path.get(posixpath.normpath(posixpath.join(posixpath.dirname(record.path), file)))
            found = [here] if here else self.by_name.get(stem(file), [])
            if not found and self.known(self.iri_of(stem(file))):
                found = [self.iri_of(stem(file))]
            if found or address.netloc or posixpath.dirname(posixpath.normpath(file)):
                return found
        numbers = [number_in(text) for text in (reference.text, stem(file))]
        number = next((number for number in numbers if number is not None), None)
        if number is not None and self.by_number.get(number):
            folder = posixpath.dirname(record.path)
            near = [i for i in self.by_number[number] if posixpath.dirname(self.records[i].path) == folder]
            return near or self.by_number[number]
        return self.by_title.get(slug(unnumbered(reference.text)), [])

    def claim(self) -> None:
        """Find the record behind each reference; one that names none, or several, stays words."""
        for iri, record in self.records.items():
            if self.known(iri):
                wanted = [r for r in record.references if r.relation in ("ends", "ended")]
            else:
                wanted = list(record.references)
            for reference in wanted:
                self._claim(iri, record, reference)

    def _claim(self, iri: str, record: Record, reference: Reference) -> None:
        found = self.find(record, reference)
        verb = f"{_VERB[reference.relation]} {' '.join(reference.text.split())!r}"
        if len(found) != 1:
            names = (
                f"which names {', '.join(map(self.name, found))}" if found else "which is not here and not in memory"
            )
            severity: Severity = "warning" if reference.relation in ("ends", "ended") else "info"
            if not self.known(iri):
                self.note(severity, iri, reference.line, f"{verb}, {names}; kept as text")
            return
        new, old = (iri, found[0]) if reference.relation in ("ends", "amends") else (found[0], iri)
        if reference.relation in ("ends", "ended"):
            self.claims[old].append(_Claim(new, old, iri, reference.line))
        elif self.known(new):
            self.note("info", iri, reference.line, f"{verb}, which is in memory already; kept as text")
        else:
            self.amends[new].add(old)

    def settle(self) -> None:
        """Give each superseded record one successor: one in memory, else the one it names itself, else the first."""
        for old, claims in self.claims.items():
            named = {claim.new for claim in claims if claim.by == old}
            standing = [claim for claim in claims if claim.new in named or not self._only_intends(claim)]
            standing.sort(key=lambda claim: (not self.known(claim.new), claim.new not in named))
            for claim in standing:
                if claim.new != standing[0].new and not self.known(claim.by):
                    rivals = f"{self.name(claim.new)} supersedes {self.name(old)}, as does {self.name(standing[0].new)}"
                    message = f"{rivals}, and a memory has one successor; kept as text"
                    self.note("warning", claim.by, claim.line, message)
            if standing and not self.known(standing[0].new):
                self.ends[standing[0].new].add(old)
            elif standing and not self.known(old):
                successor = standing[0].new
                todo = f"jidomem revise {old} --invalidate --reason 'superseded by {successor}'"
                message = f"its successor {self.name(successor)} is in memory already; after the import run: {todo}"
                self.note("warning", old, None, message)

    def _only_intends(self, claim: _Claim) -> bool:
        """Return whether a record not in force says it supersedes another, which is not yet so; notes it."""
        new = self.records.get(claim.new)
        if new is None or new.status not in ("proposed", "rejected"):
            return False
        if not self.known(claim.new):
            self.note(
                "warning", claim.new, claim.line, f"{new.status}, so it does not supersede {self.name(claim.old)} yet"
            )
        return True

    def order(self) -> tuple[str, ...]:
        """Return the records, each after those it names, else as given; links that run in a circle are taken out."""
        place = {iri: number for number, iri in enumerate(self.records)}
        while True:
            sorter = TopologicalSorter({iri: sorted(self.ends[iri] | self.amends[iri]) for iri in self.records})
            try:
                sorter.prepare()
                break
            except CycleError as error:
                self._cut([(new, old) for old, new in pairwise(error.args[1])])
        ready: list[tuple[int, str]] = []
        ordered: list[str] = []
        while sorter.is_active():
            for iri in sorter.get_ready():
                heappush(ready, (place.get(iri, -1), iri))
            _, iri = heappop(ready)
            ordered.append(iri)
            sorter.done(iri)
        return tuple(iri for iri in ordered if iri in place)

    def _cut(self, circle: list[tuple[str, str]]) -> None:
        """Take the amendments of a circle out, or where it has none, the supersessions."""
        files = ", ".join(sorted({self.name(new) for new, _ in circle}))
        first = min((new for new, _ in circle), key=list(self.records).index)
        soft = [(new, old) for new, old in circle if old in self.amends[new]]
        for new, old in soft or circle:
            (self.amends if soft else self.ends)[new].discard(old)
        if soft:
            self.note("warning", first, None, f"amendments in a circle: {files}; kept as text")
        else:
            self.note("error", first, None, f"supersessions in a circle: {files}; none of them is kept as a link")


def _sorted(links: Mapping[str, set[str]]) -> dict[str, tuple[str, ...]]:
    return {new: tuple(sorted(olds)) for new, olds in links.items()}
