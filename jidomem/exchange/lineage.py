"""An entry of a source, and its lineage: the memories that were imported from it, one after the other. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import NamedTuple

from jidomem.base.words import TELL_LITTLE, line_sentences, normal_text, words
from jidomem.exchange.importer import ForeignEntry
from jidomem.repository.other_tools import ADR

#: The states of an entry's memory: active, only proposed, superseded by that of another entry, withdrawn by a
#: synchronisation, and ended in another way.
ACTIVE, PENDING, SUCCEEDED, GONE, SETTLED = "active", "pending", "succeeded", "gone", "settled"

#: The properties by which a decision record without a digest is compared, and their fields.
_READ: Mapping[str, str] = {
    "summary": "summary",
    "rationale": "rationale",
    "detailedExplanation": "detailed_explanation",
    "decisionStatus": "status",
}
#: The reasons of a synchronisation to withdraw a memory: the values of `jido:sourceState`.
REMOVED, REPLACED = "removed", "replaced"


@dataclass(frozen=True, slots=True)
class SourceVersion:
    """One memory with a source: imported from it, or written here in place of an imported memory.

    `digest` is None for a decision record imported by version 0.1.0, and after a redaction; those of two texts that two
    branches imported as one memory are joined. `content` holds its values by property, without author and source.
    `ended_by` are the memories that superseded or withdrew it; `is_withdrawn` is True if one of them withdrew it, and
    `withdrawn_as` is the reason if a synchronisation did. `withdrawals` are the pending proposals of synchronisations
    to withdraw it. `is_doubted` is True if there was such a proposal, whatever its outcome, unless its source came
    back; `returns` counts how often it did. `is_redacted` is True if a part of it was redacted: its entry is then
    recognised by its place alone.
    """

    iri: str
    kind: str
    path: str
    key: str
    digest: str | None
    summary: str
    content: frozenset[tuple[str, str]]
    is_asserted: bool
    recorded: str
    supersedes: tuple[str, ...] = ()
    revives: tuple[str, ...] = ()
    previous: tuple[str, ...] = ()
    ended_by: tuple[str, ...] = ()
    is_withdrawn: bool = False
    withdrawn_as: str | None = None
    withdrawals: tuple[str, ...] = ()
    is_doubted: bool = False
    returns: int = 0
    is_redacted: bool = False

    @property
    def is_live(self) -> bool:
        """Return whether no memory has superseded or withdrawn it."""
        return not self.ended_by

    @property
    def texts(self) -> tuple[str, str, str]:
        """Return title, decision and all other text of a record."""
        content = dict(self.content)
        return self.summary, content.get("rationale", ""), content.get("detailedExplanation", "")


class Lineage(NamedTuple):
    """The versions of one entry, oldest first, and its state.

    `rejected` are the digests of versions that were ended here, not by a synchronisation. `successors` are the memories
    of other entries that superseded it.
    """

    versions: tuple[SourceVersion, ...]
    state: str
    rejected: frozenset[str | None] = frozenset()
    successors: tuple[str, ...] = ()

    @property
    def newest(self) -> SourceVersion:
        """Return the version that was recorded last."""
        return self.versions[-1]

    @property
    def active(self) -> tuple[SourceVersion, ...]:
        """Return the active versions, the newest first: one, unless branches were merged."""
        return tuple(each for each in reversed(self.versions) if each.is_live and each.is_asserted)

    @property
    def pending(self) -> tuple[SourceVersion, ...]:
        """Return the versions that are only proposed, the newest first."""
        return tuple(each for each in reversed(self.versions) if each.is_live and not each.is_asserted)

    @property
    def last_asserted(self) -> SourceVersion | None:
        """Return the asserted version that was recorded last, active or not; None if there were only proposals."""
        return next((each for each in reversed(self.versions) if each.is_asserted), None)

    @property
    def current(self) -> SourceVersion | None:
        """Return the version that represents the entry as last read: the newest proposed one, else the active one."""
        return next(iter((*self.pending, *self.active)), None)

    @property
    def redacted(self) -> SourceVersion | None:
        """Return the live version with a redacted part, the active one first, or None."""
        return next((each for each in (*self.active, *self.pending) if each.is_redacted), None)

    @property
    def is_edited(self) -> bool:
        """Return whether the active version was edited here, so that its content differs from the imported one."""
        return any(self._imported(each).content != each.content for each in self.active)

    @property
    def read(self) -> SourceVersion:
        """Return the version with the content of the entry when it was last read."""
        return self._imported(self.newest)

    @property
    def texts(self) -> tuple[str, str, str]:
        """Return title, decision and all other text of `read`."""
        return self.read.texts

    def _imported(self, version: SourceVersion) -> SourceVersion:
        """Return the version that was imported from the same content of the entry as *version*."""
        return next((each for each in self.versions if each.digest == version.digest is not None), version)


def lineages(versions: Iterable[SourceVersion]) -> list[Lineage]:
    """Return the lineages of *versions*, those of the oldest entries first.

    A version follows another if it names that as its previous import, or if it replaces that and has the same digest
    (as after an acceptance, an edit or a restoration by a curator). A redacted version has no digest; it follows a
    redacted version at the same place.
    """
    by_iri: dict[str, SourceVersion] = {}
    for each in sorted(versions, key=lambda each: (each.recorded, each.iri)):
        by_iri[each.iri] = _with_doubt(_with_redaction(each, by_iri), by_iri)
    root = {iri: iri for iri in by_iri}

    def find(iri: str) -> str:
        while root[iri] != iri:
            root[iri] = root[root[iri]]
            iri = root[iri]
        return iri

    for version in by_iri.values():
        for other in (*version.previous, *version.supersedes, *version.revives):
            if other in by_iri and (other in version.previous or _is_same(version, by_iri[other])):
                root[find(version.iri)] = find(other)
    groups: dict[str, list[SourceVersion]] = defaultdict(list)
    for iri in by_iri:
        groups[find(iri)].append(by_iri[iri])
    lineage_of = {each.iri: root for root, group in groups.items() for each in group}
    return [_lineage(root, group, by_iri, lineage_of) for root, group in groups.items()]


def _with_redaction(version: SourceVersion, earlier: Mapping[str, SourceVersion]) -> SourceVersion:
    """Return *version*, marked as redacted if it replaced a redacted version at the same place."""
    before = (earlier[iri] for iri in (*version.supersedes, *version.revives) if iri in earlier)
    is_redacted = version.digest is None and any(each.is_redacted and _is_at(version, each) for each in before)
    return replace(version, is_redacted=True) if is_redacted else version


def _is_at(version: SourceVersion, other: SourceVersion) -> bool:
    return (version.path, version.key) == (other.path, other.key)


def _with_doubt(version: SourceVersion, earlier: Mapping[str, SourceVersion]) -> SourceVersion:
    """Return *version*, marked as doubted if it replaced a doubted version with the same content, as a confirmation
    does.
    """
    restated = (iri for iri in version.revives if iri not in version.previous)
    before = (earlier[iri] for iri in (*version.supersedes, *restated) if iri in earlier)
    is_doubted = any(each.is_doubted and each.path == version.path and _is_same(version, each) for each in before)
    return replace(version, is_doubted=True) if is_doubted else version


def _is_same(version: SourceVersion, other: SourceVersion) -> bool:
    if version.digest is None:
        return version.is_redacted and other.is_redacted and _is_at(version, other)
    return (version.digest, version.key) == (other.digest, other.key)


def _is_rejected(version: SourceVersion, by_iri: Mapping[str, SourceVersion]) -> bool:
    """Return whether *version* was ended here: by a memory without a source, or by an earlier version restored here."""
    ends = [by_iri[end] for end in version.ended_by if end in by_iri]
    return not ends or any(end.digest != version.digest and not {*end.revives} <= {*end.previous} for end in ends)


def _lineage(
    root: str, group: list[SourceVersion], by_iri: Mapping[str, SourceVersion], lineage_of: Mapping[str, str]
) -> Lineage:
    ended = (each for each in group if not each.is_live and each.withdrawn_as is None)
    rejected = frozenset(each.digest for each in ended if _is_rejected(each, by_iri))
    if any(each.is_live for each in group):
        state = ACTIVE if any(each.is_live and each.is_asserted for each in group) else PENDING
        return Lineage(tuple(group), state, rejected)
    last = next((each for each in reversed(group) if each.is_asserted), group[-1])
    others = [by_iri[end] for end in last.ended_by if end in by_iri and lineage_of[end] != root]
    if others:
        return Lineage(tuple(group), SUCCEEDED, rejected, tuple(each.iri for each in others))
    lasting = next((each for each in reversed(group) if each.withdrawn_as != REPLACED), None)
    is_gone = lasting is None or lasting.withdrawn_as == REMOVED
    return Lineage(tuple(group), GONE if is_gone else SETTLED, rejected)


class SourceEntry(NamedTuple):
    """An entry as its source has it now: its file, the content id of the file, and its key there.

    A decision record has a file of its own, and no key there. `digests` are that of the entry and that of the form of
    version 0.1.0. With `alone` no other entry has its key.
    """

    kind: str
    path: str
    blob: str
    key: str
    entry: ForeignEntry
    source_type: str | None
    alone: bool
    digests: tuple[str, ...]

    @classmethod
    def of(
        cls, kind: str, path: str, blob: str, entry: ForeignEntry, *, source_type: str | None, alone: bool
    ) -> SourceEntry:
        """Return *entry* of the file *path*."""
        key = "" if kind == ADR else key_in(path, entry.key)
        digests = dict.fromkeys((entry.digest_under(key), entry.digest))
        return cls(kind, path, blob, key, entry, source_type, alone, tuple(digests))

    @property
    def digest(self) -> str:
        """Return the digest of the content, independent of the path of the file."""
        return self.digests[0]

    @property
    def texts(self) -> tuple[str, str, str]:
        """Return title, decision and all other text of a record."""
        fields = self.entry.fields
        return self.entry.summary, fields.get("rationale") or "", fields.get("detailed_explanation") or ""

    def matches(self, version: SourceVersion) -> bool:
        """Return whether *version* has the content of the entry; False for a redacted version, whose content is
        unknown.
        """
        if version.is_redacted:
            return False
        return version.digest in self.digests if version.digest is not None else self._reads_as(version)

    def _reads_as(self, version: SourceVersion) -> bool:
        """Return whether *version*, which has no digest, has the texts of the entry."""
        content, fields = dict(version.content), self.entry.fields
        return all(_words(content.get(name)) == _words(fields.get(field_name)) for name, field_name in _READ.items())


def _words(text: str | None) -> list[str]:
    return (text or "").split()


def key_in(path: str, key: str) -> str:
    """Return the key of an entry within its file: without the path of the file, if it begins with that.

    >>> key_in("CLAUDE.md", "CLAUDE.md: Build"), key_in("CLAUDE.md", "CLAUDE.md"), key_in("issues.jsonl", "bd-1")
    ('Build', '', 'bd-1')
    """
    return "" if key == path else key.removeprefix(f"{path}: ")


#: The weights of the title, the decision and all other text of a record, and the characters of each that are compared.
_WEIGHTS, _COMPARED = (1, 2, 1), 4_000


class RecordText(NamedTuple):
    """The words of the title, of the decision and of all other text of a record, by which a renamed one is recognised.

    Headings, and words that say little, are left out.
    """

    parts: tuple[Counter[str], ...]

    @classmethod
    def of(cls, texts: Sequence[str], common: frozenset[str] = frozenset()) -> RecordText:
        """Return the words of *texts*; outside the title those in *common* sentences are left out."""
        title, *others = texts
        own = [title, *(" ".join(each for each in _sentences(text) if each not in common) for text in others)]
        return cls(tuple(Counter(each for each in words(text) if each not in TELL_LITTLE) for text in own))

    def likeness(self, other: RecordText) -> float:
        """Return the weighted mean of the shared words of each part, from 0 to 1; 0 if only the titles can be compared.

        >>> one = RecordText.of(("Ship with DHL", "DHL collects at noon.", "It is cheap."))
        >>> one.likeness(RecordText.of(("Use DHL", "DHL collects at noon.", "It is cheap.")))
        0.9166666666666666
        >>> one.likeness(RecordText.of(("Cache in Redis", "Redis runs beside the shop.", "It is cheap.")))
        0.25
        """
        pairs = [pair for pair in zip(_WEIGHTS, self.parts, other.parts, strict=True) if pair[1] or pair[2]]
        if not any(ours and theirs for _, ours, theirs in pairs[1:]):
            return 0.0
        shared = sum(weight * 2 * (a & b).total() / (a.total() + b.total()) for weight, a, b in pairs)
        return shared / sum(weight for weight, _, _ in pairs)


def common_sentences(records: Iterable[Sequence[str]]) -> frozenset[str]:
    """Return the sentences of decision and other text that several of *records* contain."""
    counts = Counter(each for _, *texts in records for each in {*_sentences("\n".join(texts))})
    return frozenset(sentence for sentence, count in counts.items() if count > 1)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of *text* in normal form, without headings."""
    lines = (line for line in text[:_COMPARED].split("\n") if not line.lstrip().startswith("#"))
    return (normal_text(sentence) for line in lines for sentence in line_sentences(line))


class WordSets:
    """The sets of words of entries and lineages, as the bits of numbers: many pairs are compared in little time."""

    def __init__(self) -> None:
        self._bits: dict[str, int] = {}
        self._sets: dict[int, int] = {}

    def nearest(self, one: SourceEntry, others: Sequence[Lineage], count: int) -> list[int]:
        """Return the numbers of the up to *count* lineages of *others* with the greatest shares of words in *one*."""
        own, sets = self._set(one), [self._set(each) for each in others]
        size = own.bit_count()
        shares = [((own & other).bit_count() / (size + other.bit_count() or 1), -n) for n, other in enumerate(sets)]
        return [-number for _, number in nlargest(count, shares)]

    def _set(self, one: SourceEntry | Lineage) -> int:
        if id(one) not in self._sets:
            present = {self._bits.setdefault(each, len(self._bits)) for text in one.texts for each in words(text)}
            self._sets[id(one)] = sum(1 << bit for bit in present)
        return self._sets[id(one)]
