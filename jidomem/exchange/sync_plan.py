"""The plan of a synchronisation: the changes that make memory agree with its sources. Pure.

Entries of sources are matched with the lineages of earlier imports, the most certain matches first: the same place and
text, the same text elsewhere, the same place, and then the most similar text. A record is never matched with one that
it supersedes or amends.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from posixpath import commonprefix
from typing import NamedTuple

from jidomem.exchange.adr_markdown import number_of, slug, stem
from jidomem.exchange.lineage import (
    ACTIVE,
    GONE,
    PENDING,
    SETTLED,
    SUCCEEDED,
    Lineage,
    RecordText,
    SourceEntry,
    SourceVersion,
    WordSets,
    common_sentences,
)
from jidomem.rdf.vocab import REDACTED
from jidomem.repository.other_tools import ADR, GRAPH, ISSUES, NOTES
from jidomem.repository.record_files import folder_of

#: The least similarity of an edited text to its original, and the characters of a text that are compared.
ALIKE, _COMPARED = 0.6, 1_000
#: The pairs of a group up to which all are compared; in a larger one each entry is compared with so many lineages.
_PAIRS, _NEAREST = 2_500, 10
#: The kinds whose entries have the same identity in any file.
_ANYWHERE = (ISSUES, GRAPH)
#: The properties for the status of a decision, a task or an error.
_STATES = ("decisionStatus", "hasTaskStatus", "hasErrorStatus")
#: The note on an entry that may still contain the text that was redacted from its memory.
REDACTED_SOURCE = "a text was redacted from its memory, so it is not imported"
#: The changes of an entry, in the order in which they are shown.
CHANGES = ("added", "changed", "moved", "removed", "conflict", "redacted", "unchanged")


@dataclass(frozen=True, slots=True)
class SyncStep:
    """The outcome of one entry, or of a lineage without one, and the intent to write for it.

    `write` is empty, `version` (asserted), `proposal`, `relocation` (the same memory at a new place) or `withdrawal` (a
    proposal). The new memory replaces `supersedes` and restores `revives`; the proposals `ends` are withdrawn.
    `inherits` are the keys of entries whose memories it ends in place of an entry that it supersedes. `holder` is the
    redacted version whose text the entry may contain: nothing is written for it.
    """

    change: str
    entry: SourceEntry | None
    lineage: Lineage | None
    write: str = ""
    supersedes: tuple[str, ...] = ()
    revives: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    inherits: tuple[str, ...] = ()
    note: str = ""
    holder: SourceVersion | None = None

    @property
    def summary(self) -> str:
        """Return the summary of the entry, from its source, else from memory.

        For an entry that may contain a redacted text it is a placeholder.
        """
        if self.change == "redacted" or self.holder is not None:
            return REDACTED
        if self.entry is not None:
            return self.entry.entry.summary
        return self.lineage.newest.summary if self.lineage else ""

    @property
    def kind(self) -> str:
        """Return the kind of the source."""
        return self.entry.kind if self.entry is not None else self.lineage.newest.kind if self.lineage else ""

    @property
    def path(self) -> str:
        """Return the file of the entry."""
        return self.entry.path if self.entry is not None else self.lineage.newest.path if self.lineage else ""

    @property
    def place(self) -> str:
        """Return the file of the entry, with its line if known."""
        return self.entry.entry.place if self.entry is not None else self.path

    @property
    def moved_from(self) -> str | None:
        """Return the earlier file of the entry if it was another one, else None."""
        if self.entry is None or self.lineage is None or self.lineage.newest.path == self.entry.path:
            return None
        return self.lineage.newest.path


class PendingChange(NamedTuple):
    """A change of an imported memory that awaits review: *proposal* would change or end it."""

    change: str
    entry: SourceEntry | None
    lineage: Lineage
    proposal: str


class LocalChange(NamedTuple):
    """A difference between memory and a source that was decided here, not a change of the source.

    The memory of *lineage* was `edited`, `withdrawn` or `superseded` here, the text of its source was `rejected`, or it
    was `retained` after its source was removed; then it has no entry.
    """

    change: str
    entry: SourceEntry | None
    lineage: Lineage


class SyncPlan(NamedTuple):
    """The steps of a synchronisation: one for each entry, in the order of the sources, then one for each removed.

    `pending` are earlier proposals for changes of the sources that await review; `unreviewed` counts the entries with
    only a proposal, never asserted. `local` are the differences decided here.
    """

    steps: tuple[SyncStep, ...]
    pending: tuple[PendingChange, ...] = ()
    unreviewed: int = 0
    local: tuple[LocalChange, ...] = ()

    @property
    def counts(self) -> Counter[str]:
        """Return the number of steps by change."""
        return Counter(step.change for step in self.steps)


def plan(
    entries: Sequence[SourceEntry],
    known: Sequence[Lineage],
    *,
    is_absent: Callable[[str], bool],
    is_removed: Callable[[Lineage], bool],
) -> SyncPlan:
    """Return the steps that update memory, with the lineages *known*, to the *entries*.

    *is_absent* returns whether a file was removed or completely read, so that an entry missing from *entries* no longer
    exists. *is_removed* returns whether the source of a lineage without a matching entry is known to be removed.
    """
    matched = _Matching(entries, known, is_absent).matches()
    blocked = _blocked(entries, matched, known, is_absent)
    lineage_of = {id(entries[number]): lineage for number, lineage in matched.items()}
    planning = _Planning(entries, lineage_of, known, is_absent)
    taken = {id(lineage) for lineage in matched.values()}
    steps = [_without_redacted(planning.step(entry), blocked) for entry in entries]
    left = (lineage for lineage in known if id(lineage) not in taken and is_removed(lineage))
    holders = {step.holder.iri for step in steps if step.holder is not None}
    # only a person can tell whether the entry of a redacted memory was removed or is one of the blocked entries
    left = (lineage for lineage in left if lineage.redacted is None or lineage.redacted.iri not in holders)
    removed = [(lineage, _removal(lineage, planning.successor_of(lineage, steps))) for lineage in left]
    steps += [step for _, step in removed if step is not None]
    looked_at = [*((step.entry, step.lineage, step) for step in steps if step.entry is not None),
                 *((None, lineage, step) for lineage, step in removed)]  # fmt: skip
    pending = [change for entry, lineage, step in looked_at for change in _pending(entry, lineage, step)]
    unreviewed = sum(step.change == "unchanged" and _is_unreviewed(step.lineage) for step in steps)
    in_review = {id(change.lineage) for change in pending}
    local = []
    for entry, lineage, step in looked_at:
        is_settled = (step is None or step.change == "unchanged") and id(lineage) not in in_review
        if lineage is not None and is_settled and (change := planning.local_change(entry, lineage)):
            local.append(LocalChange(change, entry, lineage))
    return SyncPlan(tuple(steps), tuple(pending), unreviewed, tuple(local))


def moved_records(
    entries: Sequence[SourceEntry], known: Sequence[Lineage], is_absent: Callable[[str], bool]
) -> dict[str, str]:
    """Return the present path of each decision record of *entries* by each of its earlier paths.

    If several records had a path, the last one counts. Other records may still link to the earlier paths; the result is
    used only to resolve the links.
    """
    records = [entry for entry in entries if entry.kind == ADR]
    matched = _Matching(records, known, is_absent).matches()
    paths = {entry.path for entry in records}
    had = [(version, records[number].path) for number, lineage in matched.items() for version in lineage.versions]
    had.sort(key=lambda each: each[0].recorded)
    return {version.path: path for version, path in had if version.path not in paths}


def _pending(entry: SourceEntry | None, lineage: Lineage | None, step: SyncStep | None) -> Iterator[PendingChange]:
    """Yield the proposals of earlier synchronisations to change or end *lineage* that still await review."""
    if lineage is None:
        return
    ends = step.ends if step else ()
    for marker in (marker for each in lineage.active for marker in each.withdrawals):
        if marker not in ends:
            yield PendingChange("removed", entry, lineage, marker)
    if not _is_unreviewed(lineage):
        change = "conflict" if _is_contested(lineage) else "changed"
        changes = (each for each in lineage.pending if not (each.iri in ends or _is_local(each, lineage)))
        yield from (PendingChange(change, entry, lineage, each.iri) for each in changes)


def _blocked(
    entries: Sequence[SourceEntry],
    matched: Mapping[int, Lineage],
    known: Sequence[Lineage],
    is_absent: Callable[[str], bool],
) -> dict[str, SourceVersion]:
    """Return a redacted version for each file whose new or changed entries may contain its redacted text.

    These are the file of the version and, if that is absent, the files to which its entries moved and the files from
    which nothing was imported.
    """
    versions = [version for lineage in known if (version := lineage.redacted) is not None]
    blocked = {version.path: version for version in versions}
    moved = {(lineage.newest.path, entries[number].path) for number, lineage in matched.items()}
    paths = {version.path for lineage in known for version in lineage.versions}
    for version in versions:
        if is_absent(version.path):
            later = {new for old, new in moved if old == version.path}
            later |= {entry.path for entry in entries if entry.kind == version.kind and entry.path not in paths}
            blocked = {**dict.fromkeys(later, version), **blocked}
    return blocked


def _without_redacted(step: SyncStep, blocked: Mapping[str, SourceVersion]) -> SyncStep:
    """Return *step*, without its intent if that could write a redacted text to memory again."""
    holder = blocked.get(step.path)
    if step.entry is not None and step.lineage is not None and step.lineage.redacted is not None:
        holder = step.lineage.redacted
        if not any(map(step.entry.matches, _live(step.lineage))):
            note = f"{REDACTED_SOURCE}; once the text is out of the file, run: {end_of(holder)}"
            return replace(step, change="redacted", write="", supersedes=(), revives=(), ends=(), note=note)
    return replace(step, write="", ends=(), holder=holder) if step.write and holder is not None else step


def end_of(version: SourceVersion) -> str:
    """Return the command that ends a redacted version, so that its source is imported again."""
    return f'jidomem edit {version.iri} --invalidate --reason "the text is out of its source"'


def _is_unreviewed(lineage: Lineage | None) -> bool:
    """Return whether an entry is only proposed and was never asserted."""
    return lineage is not None and lineage.state == PENDING and lineage.last_asserted is None


def _is_local(pending: SourceVersion, lineage: Lineage) -> bool:
    """Return whether *pending* was proposed here: its source is the same as at the last acceptance."""
    accepted = next(iter(lineage.active), lineage.last_asserted)
    if accepted is None or accepted.withdrawn_as is not None:
        return False
    return (pending.path, pending.key, pending.digest) == (accepted.path, accepted.key, accepted.digest)


def _removal(lineage: Lineage, successor: str | None) -> SyncStep | None:
    """Return the step of a lineage whose source is removed; None if nothing is left to end or to propose.

    If the entry of the file *successor* supersedes it in the same synchronisation, its withdrawal is not proposed.
    """
    if successor is not None and lineage.active:
        return SyncStep("removed", None, lineage, ends=_stale(lineage), note=f"{successor} supersedes it")
    doubted = [each for each in lineage.active if not each.is_doubted]
    pending = tuple(each.iri for each in lineage.pending if not each.is_doubted)
    if not doubted and not pending:
        return None
    supersedes = tuple(each.iri for each in doubted)
    return SyncStep("removed", None, lineage, "withdrawal" if doubted else "", supersedes, ends=pending)


@dataclass(slots=True)
class _Planning:
    """The planner of the steps for *entries*, which are matched with lineages of *known*."""

    entries: Sequence[SourceEntry]
    lineage_of: Mapping[int, Lineage]
    known: Sequence[Lineage]
    is_absent: Callable[[str], bool]
    _by_key: dict[tuple[str, str], SourceEntry] = field(default_factory=dict)
    _enders: dict[tuple[str, str], list[SourceEntry]] = field(default_factory=lambda: defaultdict(list))
    _owner: dict[str, Lineage] = field(default_factory=dict)
    _present: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._by_key = {(entry.kind, entry.entry.key): entry for entry in self.entries}
        self._present = {id(lineage) for lineage in self.lineage_of.values()}
        self._owner = {version.iri: lineage for lineage in self.known for version in lineage.versions}
        for entry in self.entries:
            for key in _superseded_by(entry):
                self._enders[entry.kind, key].append(entry)

    def step(self, entry: SourceEntry) -> SyncStep:
        step = self._step(entry)
        direct = {*_superseded_by(entry)}
        inherits = (other.entry.key for other in self._ended_by(entry) if other.entry.key not in direct)
        return replace(step, inherits=tuple(inherits)) if step.write in ("version", "proposal") else step

    def local_change(self, entry: SourceEntry | None, lineage: Lineage) -> str:
        """Return how *lineage* was changed here, a value of `LocalChange.change`, or an empty text if it was not."""
        if entry is None:
            return "retained" if lineage.active else ""
        last, is_followed = lineage.last_asserted, not self._enders.get((entry.kind, entry.entry.key))
        if is_followed and (lineage.state == SETTLED or (lineage.state == PENDING and last is not None)):
            return "rejected" if last is None else "withdrawn" if last.is_withdrawn else "superseded"
        if not lineage.active:
            return ""
        return "edited" if lineage.is_edited else "" if any(map(entry.matches, lineage.active)) else "rejected"

    def successor_of(self, lineage: Lineage, steps: Iterable[SyncStep]) -> str | None:
        """Return the file of the entry by whose memory one of *steps* supersedes *lineage*, or None."""
        newest = lineage.newest
        keys = {stem(newest.path), newest.path} if newest.kind == ADR else {newest.key}
        keys = {key for key in keys if (newest.kind, key) not in self._by_key}  # else a link means the present entry
        entries = (step.entry for step in steps if step.entry is not None and step.write == "version")
        named = (each for each in entries if each.kind == newest.kind and not keys.isdisjoint(_superseded_by(each)))
        return next((each.path for each in named), None)

    def _step(self, entry: SourceEntry) -> SyncStep:
        lineage = self.lineage_of.get(id(entry))
        if lineage is None or lineage.state == GONE:
            return SyncStep("added", entry, lineage, "version")
        if self._enders.get((entry.kind, entry.entry.key)):
            return self._superseded(entry, lineage)
        if lineage.state == SUCCEEDED:
            return self._released(entry, lineage)
        if lineage.state == SETTLED:
            return self._settled(entry, lineage)
        return self._live(entry, lineage)

    def _superseded(self, entry: SourceEntry, lineage: Lineage) -> SyncStep:
        """Return the step of an entry that another one supersedes: it is no longer updated."""
        if not any(each.is_live for each in lineage.versions):
            return SyncStep("unchanged", entry, lineage)
        pending = tuple(each.iri for each in lineage.pending)
        if not lineage.active:
            return SyncStep("changed", entry, lineage, ends=pending, note="it is superseded")
        if not any(self._is_to_link(ender, lineage) for ender in self._enders_of(entry)):
            return SyncStep("unchanged", entry, lineage)
        return SyncStep("changed", entry, lineage, ends=pending, note="it is superseded")

    def _enders_of(self, entry: SourceEntry) -> Iterator[SourceEntry]:
        """Yield the entries whose memories are to supersede that of *entry*.

        An entry that is superseded itself is no longer written: its successor supersedes both.
        """
        for ender in self._enders[entry.kind, entry.entry.key]:
            if self._is_passed(ender):
                yield from self._enders_of(ender)
            else:
                yield ender

    def _ended_by(self, entry: SourceEntry) -> Iterator[SourceEntry]:
        """Yield the entries whose memories are to be superseded by that of *entry*."""
        for key in _superseded_by(entry):
            other = self._by_key.get((entry.kind, key))
            if other is not None:
                yield other
                if self._is_passed(other):
                    yield from self._ended_by(other)

    def _is_passed(self, entry: SourceEntry) -> bool:
        """Return whether *entry* has a memory that was not rejected here, and is superseded by another entry."""
        lineage = self.lineage_of.get(id(entry))
        is_known = lineage is not None and lineage.state not in (GONE, SETTLED)
        return is_known and bool(self._enders.get((entry.kind, entry.entry.key)))

    def _is_to_link(self, ender: SourceEntry, lineage: Lineage) -> bool:
        """Return whether the memory of *ender* is still to supersede *lineage*.

        It is not if it was rejected here, or if it is superseded until a withdrawal is accepted.
        """
        own = self.lineage_of.get(id(ender))
        is_written = own is None or not (own.state == SETTLED or (own.state == SUCCEEDED and self._has_holder(own)))
        return is_written and not self._is_linked(ender, lineage)

    def _is_linked(self, ender: SourceEntry, lineage: Lineage) -> bool:
        """Return whether the memory of *ender* already supersedes a version of *lineage*."""
        own = self.lineage_of.get(id(ender))
        live = {each.iri for each in lineage.versions if each.is_live}
        return own is not None and any(live.intersection(each.supersedes) for each in own.versions if each.is_live)

    def _released(self, entry: SourceEntry, lineage: Lineage) -> SyncStep:
        """Return the step of an entry whose memory was superseded by that of an entry that no longer names it."""
        if self._has_holder(lineage):
            return SyncStep("unchanged", entry, lineage)
        assert lineage.last_asserted is not None
        revives = (lineage.last_asserted.iri,)
        return SyncStep("changed", entry, lineage, "version", revives=revives, note="it is no longer superseded")

    def _has_holder(self, lineage: Lineage) -> bool:
        """Return whether *lineage* is superseded until the withdrawal of its successor is accepted."""
        enders = [self._owner[iri] for iri in lineage.successors]
        return any(id(ender) not in self._present and ender.state == ACTIVE for ender in enders)

    def _settled(self, entry: SourceEntry, lineage: Lineage) -> SyncStep:
        """Return the step of an entry whose memory was ended here."""
        if entry.digest in lineage.rejected or any(map(entry.matches, lineage.versions)):
            return SyncStep("unchanged", entry, lineage)
        return SyncStep("conflict", entry, lineage, "proposal", note="its memory was withdrawn or superseded here")

    def _live(self, entry: SourceEntry, lineage: Lineage) -> SyncStep:
        """Return the step of an entry whose memory is active or proposed."""
        links = self._has_new_links(entry)
        same = (each for each in (*lineage.pending[:1], *lineage.active) if not links and entry.matches(each))
        if (version := next(same, None)) is not None:
            return self._same(entry, lineage, version)
        ends = _stale(lineage)
        if entry.digest in lineage.rejected and not links:
            return SyncStep("changed" if ends else "unchanged", entry, lineage, ends=ends)
        replaced = tuple(each.iri for each in lineage.active) or _replaced_by(lineage.pending[0], lineage)
        if not _is_contested(lineage):
            return SyncStep(
                "changed", entry, lineage, "version", replaced, ends=ends, note=_status_change(entry, lineage)
            )
        note = "its memory was edited here" if lineage.is_edited else "an earlier version was rejected here"
        return SyncStep("conflict", entry, lineage, "proposal", replaced, ends=ends, note=note)

    def _same(self, entry: SourceEntry, lineage: Lineage, version: SourceVersion) -> SyncStep:
        """Return the step of an entry with the same content as *version*, proposed or active."""
        ends = _stale(lineage, version)
        if (version.path, version.key) != (entry.path, entry.key) and self.is_absent(version.path):
            if version.is_asserted:
                active = tuple(each.iri for each in lineage.active)
                return SyncStep("moved", entry, lineage, "relocation", active, ends=ends)
            write = "proposal" if _is_contested(lineage) else "version"
            return SyncStep("moved", entry, lineage, write, _replaced_by(version, lineage), ends=(*ends, version.iri))
        if any(each.withdrawals for each in lineage.active):
            return SyncStep("added", entry, lineage, ends=ends, note="its source is back")
        if entry.kind == ADR and version.is_asserted and not lineage.is_edited:  # two branches imported two texts
            ends = (*ends, *(each.iri for each in lineage.active if each != version))
        return SyncStep("changed" if ends else "unchanged", entry, lineage, ends=ends)

    def _has_new_links(self, entry: SourceEntry) -> bool:
        """Return whether *entry* supersedes another entry whose memory is still active or not yet written."""
        for other in self._ended_by(entry):
            lineage = self.lineage_of.get(id(other))
            if lineage is None or lineage.state == GONE:
                return True
            if lineage.active and not self._is_linked(entry, lineage):
                return True
        return False


def _superseded_by(entry: SourceEntry) -> Iterator[str]:
    return (key for name, key in entry.entry.links if name == "supersedes")


def _is_contested(lineage: Lineage) -> bool:
    """Return whether the memory of an entry was edited here, or a version of it rejected."""
    return lineage.is_edited or bool(lineage.rejected)


def _status_change(entry: SourceEntry, lineage: Lineage) -> str:
    """Return the earlier and the present status of *entry*, or an empty text if they are equal."""
    content = dict(lineage.read.content)
    old = next((content[name] for name in _STATES if name in content), "")
    new = str(entry.entry.fields.get("status", ""))
    return f"{old} → {new}" if old and new and slug(old) != slug(new) else ""


def _stale(lineage: Lineage, stays: SourceVersion | None = None) -> tuple[str, ...]:
    """Return the proposals to withdraw: older versions, except *stays*, and withdrawals."""
    versions = (each.iri for each in lineage.pending if each != stays and not each.is_doubted)
    return (*versions, *(marker for each in lineage.active for marker in each.withdrawals))


def _replaced_by(pending: SourceVersion, lineage: Lineage) -> tuple[str, ...]:
    """Return the memories that the proposal *pending* is to replace once accepted, without those of its own lineage."""
    own = {each.iri for each in lineage.versions}
    active = tuple(each.iri for each in lineage.active)
    return (*active, *(iri for iri in pending.supersedes if iri not in own))


def _all(lineage: Lineage) -> Sequence[SourceVersion]:
    return lineage.versions


def _live(lineage: Lineage) -> Sequence[SourceVersion]:
    return [each for each in lineage.versions if each.is_live]


def _current(lineage: Lineage) -> Sequence[SourceVersion]:
    """Return the versions that are active or proposed, or the newest if there are none."""
    return [each for each in lineage.versions if each.is_live] or [lineage.newest]


@dataclass(slots=True)
class _Matching:
    """The matching of entries with lineages."""

    entries: Sequence[SourceEntry]
    known: Sequence[Lineage]
    is_absent: Callable[[str], bool]
    lineages: dict[int, Lineage] = field(default_factory=dict)
    taken: set[int] = field(default_factory=set)
    _texts: dict[int, RecordText] = field(default_factory=dict)
    _words: WordSets = field(default_factory=WordSets)
    _keys: frozenset[str] = frozenset()
    _common: frozenset[str] | None = None

    def __post_init__(self) -> None:
        self._keys = frozenset(each.entry.key for each in self.entries if each.kind == ADR)

    def matches(self) -> dict[int, Lineage]:
        """Return the lineage of each entry that has one, by the number of the entry."""
        for versions in (_current, _all):  # current content before earlier content
            self._by(lambda entry: [(entry.path, entry.key, each) for each in entry.digests],
                     lambda version: (version.path, version.key, version.digest), versions=versions)  # fmt: skip
            self._by(lambda entry: [*entry.digests], lambda version: version.digest, moved=True, versions=versions)
            self._by(lambda entry: [*entry.digests] if entry.kind in _ANYWHERE else [],
                     lambda version: version.digest, versions=versions)  # fmt: skip
            # between several possible records, title and text decide
            self._by(lambda entry: [(_title(entry), entry.path)] if entry.kind == ADR else [],
                     lambda version: (_title(version), version.path), versions=versions)  # fmt: skip
            self._by(lambda entry: [_title(entry)] if entry.kind == ADR else [], _title, moved=True, versions=versions)
        self._alike(lambda one: one.path if one.kind == ADR else None)
        self._alike(_name, moved=True)
        self._alike(_number, moved=True)
        self._alike(lambda one: "" if one.kind == ADR else None, moved=True)
        self._by(lambda entry: [_place(entry)] if entry.alone else [], _place)
        self._alike(lambda one: _place(one) if one.kind != ADR else None)
        self._by(lambda entry: [_name(entry)] if entry.kind == ADR else [], _name, moved=True)
        self._alike(_numbered_place, least=0, moved=True)
        self._by(lambda entry: [entry.key] if entry.kind == ISSUES else [], lambda version: version.key)
        self._alike(lambda one: one.key if one.kind == GRAPH else None)
        self._alike(lambda one: one.path)
        self._alike(lambda one: None if one.kind == ADR else "", moved=True)
        self._by(lambda entry: [_place(entry)], lambda version: _place(version) if version.is_redacted else None,
                 versions=_live)  # fmt: skip
        self._by(lambda entry: [*entry.digests], lambda version: version.digest, state=GONE)
        return self.lineages

    def _left(self, *, moved: bool, state: str | None = None) -> Iterator[Lineage]:
        for lineage in self.known:
            if (lineage.state == GONE) != (state == GONE):
                continue
            if id(lineage) not in self.taken and not (moved and not self.is_absent(lineage.newest.path)):
                yield lineage

    def _by(
        self,
        names: Callable[[SourceEntry], Iterable[Hashable]],
        name: Callable[[SourceVersion], Hashable],
        *,
        moved: bool = False,
        state: str | None = None,
        versions: Callable[[Lineage], Sequence[SourceVersion]] = _all,
    ) -> None:
        """Match entries and lineages that share a name, live lineages first; with *moved* those of absent files.

        The names of a lineage are those of its *versions* (default: all). Lineages withdrawn by a synchronisation are
        matched only if *state* is GONE.
        """
        by_name: dict[Hashable, list[Lineage]] = defaultdict(list)
        for lineage in sorted(self._left(moved=moved, state=state), key=_preference):
            for each in dict.fromkeys((version.kind, name(version)) for version in reversed(versions(lineage))):
                by_name[each].append(lineage)
        for number, entry in enumerate(self.entries):
            if number in self.lineages:
                continue
            candidates = [each for one in names(entry) for each in by_name.get((entry.kind, one), ())]
            free = [each for each in candidates if id(each) not in self.taken and not self._follows(entry, each)]
            if free:
                self._assign(number, min(free, key=lambda each: (_preference(each), _distance(entry, each))))

    def _alike(
        self, group: Callable[[SourceEntry | SourceVersion], Hashable], *, least: float = ALIKE, moved: bool = False
    ) -> None:
        """Match the most similar entries and lineages of each group; those whose group is None are left."""
        lineages: dict[Hashable, list[Lineage]] = defaultdict(list)
        for lineage in self._left(moved=moved):
            if (name := group(lineage.newest)) is not None:
                lineages[lineage.newest.kind, name].append(lineage)
        rated = []
        for number, entry in enumerate(self.entries):
            if number in self.lineages or (name := group(entry)) is None:
                continue
            of_group = lineages.get((entry.kind, name), ())
            is_large = len(of_group) * len(self.entries) > _PAIRS
            for order in self._words.nearest(entry, of_group, _NEAREST) if is_large else range(len(of_group)):
                likeness = self._likeness(entry, lineage := of_group[order], least)
                if likeness >= least and not self._follows(entry, lineage):
                    rated.append((-likeness, _preference(lineage), number, order, lineage))
        for _, _, number, _, lineage in sorted(rated, key=lambda each: each[:4]):
            if number not in self.lineages and id(lineage) not in self.taken:
                self._assign(number, lineage)

    def _likeness(self, entry: SourceEntry, lineage: Lineage, least: float) -> float:
        """Return the similarity of an entry and a lineage, from 0 to 1."""
        if entry.kind != ADR:
            return _likeness(entry, lineage.read, least)
        if self._common is None:  # what several records contain, such as the sentences of a template, identifies none
            known = (each.texts for each in self.known if each.newest.kind == ADR)
            own = (each.texts for each in self.entries if each.kind == ADR)
            self._common = common_sentences(own) | common_sentences(known)
        for one in (entry, lineage):
            if id(one) not in self._texts:
                self._texts[id(one)] = RecordText.of(one.texts, self._common)
        return self._texts[id(entry)].likeness(self._texts[id(lineage)])

    def _follows(self, entry: SourceEntry, lineage: Lineage) -> bool:
        """Return whether *entry* is a record that names the record of *lineage*, whose file is absent, in a link."""
        path = lineage.newest.path
        keys = {path, stem(path)} - self._keys if entry.kind == ADR and path != entry.path else ()
        return any(key in keys for _, key in entry.entry.links)

    def _assign(self, number: int, lineage: Lineage) -> None:
        self.lineages[number] = lineage
        self.taken.add(id(lineage))


def _place(one: SourceEntry | SourceVersion) -> tuple[str, str]:
    return one.path, one.key


def _preference(lineage: Lineage) -> int:
    return (ACTIVE, PENDING, SUCCEEDED, SETTLED, GONE).index(lineage.state)


def _distance(entry: SourceEntry, lineage: Lineage) -> tuple[bool, bool, bool]:
    """Return the distance of an entry from a lineage, to sort by: whether path, key and file name differ."""
    newest = lineage.newest
    return newest.path != entry.path, newest.key != entry.key, stem(newest.path) != stem(entry.path)


def _name(one: SourceEntry | SourceVersion) -> str | None:
    return stem(one.path) if one.kind == ADR else None


def _title(one: SourceEntry | SourceVersion) -> str:
    return slug(one.entry.summary if isinstance(one, SourceEntry) else one.summary)


def _number(one: SourceEntry | SourceVersion) -> int | None:
    return number_of(one.path, "") if one.kind == ADR else None


def _numbered_place(one: SourceEntry | SourceVersion) -> tuple[str, int] | None:
    return None if (number := _number(one)) is None else (folder_of(one.path), number)


def _likeness(entry: SourceEntry, version: SourceVersion, least: float) -> float:
    """Return the similarity of the texts of an entry and a version, 0 if it is certainly less than *least*."""
    return max(_ratio(ours, theirs, least) for ours, theirs in _compared(entry, version))


def _compared(entry: SourceEntry, version: SourceVersion) -> Iterator[tuple[str, str]]:
    """Yield the pairs of texts that are compared: for a note also the whole text if the summary is shortened."""
    yield (
        _distinct(entry.entry.summary, version.summary)
        if entry.kind == NOTES
        else (entry.entry.summary, version.summary)
    )
    if entry.kind == NOTES:
        whole = str(entry.entry.fields.get("detailed_explanation") or entry.entry.summary)
        before = dict(version.content).get("detailedExplanation") or version.summary
        if (whole, before) != (entry.entry.summary, version.summary):
            yield whole[:_COMPARED], before[:_COMPARED]


def _distinct(ours: str, theirs: str) -> tuple[str, str]:
    """Return two summaries without the headings and lead-ins that both begin with.

    >>> _distinct("Build › Tests: run make", "Build › Tests: ask Ana")
    ('run make', 'ask Ana')
    """
    start = commonprefix((ours, theirs)).rfind(": ") + 1
    return ours[start:].strip(), theirs[start:].strip()


def _ratio(ours: str, theirs: str, least: float) -> float:
    """Return the similarity of two texts, 0 if it is certainly less than *least*."""
    matcher = SequenceMatcher(None, ours, theirs)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()
