"""Who supersedes and amends whom in a set of decision records: one successor each, no cycles, nothing lost silently."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heappop, heappush
from itertools import pairwise
from types import MappingProxyType
from urllib.parse import unquote, urlsplit

from jidomem.exchange.adr_record import Note, Record, Severity
from jidomem.exchange.adr_words import Reference, number_in, slug, stem, unnumbered

_VERB = {"ends": "supersedes", "ended": "superseded by", "amends": "amends", "amended": "amended by"}


@dataclass(frozen=True, slots=True)
class Links:
    """What each record supersedes and amends, by name, the records that are superseded, and the order to submit in."""

    ends: Mapping[str, tuple[str, ...]]
    amends: Mapping[str, tuple[str, ...]]
    ended: frozenset[str]
    order: tuple[str, ...]
    notes: tuple[Note, ...]


def tie(
    records: Mapping[str, Record], is_known: Callable[[str], bool], moved: Mapping[str, str] = MappingProxyType({})
) -> Links:
    """Return how *records* (by name) hang together.

    *is_known* tells whether the record of a file by that name, which is not among them, is in memory: that can be
    superseded and amended, and says nothing itself. *moved* gives, for the path that a record had before, its path now.
    """
    tying = _Tying(records, is_known, moved)
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
        self, records: Mapping[str, Record], is_known: Callable[[str], bool], moved: Mapping[str, str]
    ) -> None:
        self.records = records
        self.is_known = is_known
        self.notes: list[Note] = []
        self.claims: dict[str, list[_Claim]] = defaultdict(list)
        self.ends: dict[str, set[str]] = defaultdict(set)
        self.amends: dict[str, set[str]] = defaultdict(set)
        self.by_path = {posixpath.normpath(record.path): name for name, record in records.items()}
        self.by_name: dict[str, list[str]] = defaultdict(list)
        self.by_number: dict[int | None, list[str]] = defaultdict(list)
        self.by_title: dict[str, list[str]] = defaultdict(list)
        for name, record in records.items():
            self.by_name[stem(record.path)].append(name)
            self.by_number[record.number].append(name)
            self.by_title[slug(record.title)].append(name)
        present = {*self.by_name}
        for old, path in moved.items():
            if (moved_name := self.by_path.get(path)) is not None:
                self.by_path.setdefault(old, moved_name)
                if stem(old) not in present and moved_name not in self.by_name[stem(old)]:
                    self.by_name[stem(old)].append(moved_name)

    def note(self, severity: Severity, name: str, line: int | None, message: str) -> None:
        self.notes.append(Note(self.records[name].path, None if line is None else line + 1, message, severity))

    def path(self, name: str) -> str:
        return self.records[name].path if name in self.records else name

    def find(self, record: Record, reference: Reference) -> list[str]:
        """Return the records a reference can mean: by file, else by number (in its folder first), else by title."""
        address = urlsplit(reference.href or (reference.text if reference.text.endswith(".md") else ""))
        file = unquote(address.path)
        if file:
            here = self.by_path.get(posixpath.normpath(posixpath.join(posixpath.dirname(record.path), file)))
            found = [here] if here else self.by_name.get(stem(file), [])
            if not found and self.is_known(stem(file)):
                found = [stem(file)]
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
        for name, record in self.records.items():
            for reference in record.references:
                self._claim(name, record, reference)

    def _claim(self, name: str, record: Record, reference: Reference) -> None:
        found = self.find(record, reference)
        verb = f"{_VERB[reference.relation]} {' '.join(reference.text.split())!r}"
        if len(found) != 1:
            names = (
                f"which names {', '.join(map(self.path, found))}" if found else "which is not here and not in memory"
            )
            severity: Severity = "warning" if reference.relation in ("ends", "ended") else "info"
            self.note(severity, name, reference.line, f"{verb}, {names}; kept as text")
            return
        new, old = (name, found[0]) if reference.relation in ("ends", "amends") else (found[0], name)
        if new not in self.records:
            self.note("info", name, reference.line, f"{verb}, which is in memory and not here; kept as text")
        elif reference.relation in ("ends", "ended"):
            self.claims[old].append(_Claim(new, old, name, reference.line))
        else:
            self.amends[new].add(old)

    def settle(self) -> None:
        """Give each superseded record one successor: the one it names itself, else the first."""
        for old, claims in self.claims.items():
            named = {claim.new for claim in claims if claim.by == old}
            standing = [claim for claim in claims if claim.new in named or not self._only_intends(claim)]
            standing.sort(key=lambda claim: claim.new not in named)
            for claim in standing:
                if claim.new != standing[0].new:
                    rivals = f"{self.path(claim.new)} supersedes {self.path(old)}, as does {self.path(standing[0].new)}"
                    message = f"{rivals}, and a memory has one successor; kept as text"
                    self.note("warning", claim.by, claim.line, message)
            if standing:
                self.ends[standing[0].new].add(old)

    def _only_intends(self, claim: _Claim) -> bool:
        """Return whether a record not in force says it supersedes another, which is not yet so; notes it."""
        new = self.records[claim.new]
        if new.status not in ("proposed", "rejected"):
            return False
        self.note(
            "warning", claim.new, claim.line, f"{new.status}, so it does not supersede {self.path(claim.old)} yet"
        )
        return True

    def order(self) -> tuple[str, ...]:
        """Return the records, each after those it names, else as given; links that run in a circle are taken out."""
        place = {name: number for number, name in enumerate(self.records)}
        while True:
            sorter = TopologicalSorter({name: sorted(self.ends[name] | self.amends[name]) for name in self.records})
            try:
                sorter.prepare()
                break
            except CycleError as error:
                self._cut([(new, old) for old, new in pairwise(error.args[1])])
        ready: list[tuple[int, str]] = []
        ordered: list[str] = []
        while sorter.is_active():
            for name in sorter.get_ready():
                heappush(ready, (place.get(name, -1), name))
            _, name = heappop(ready)
            ordered.append(name)
            sorter.done(name)
        return tuple(name for name in ordered if name in place)

    def _cut(self, circle: list[tuple[str, str]]) -> None:
        """Take the amendments of a circle out, or where it has none, the supersessions."""
        files = ", ".join(sorted({self.path(new) for new, _ in circle}))
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
