"""The lineage of an entry: the memories that were imported, one after the other, from one entry of a source. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

#: The states of an entry's memory: active, only proposed, superseded by that of another entry, withdrawn by a
#: synchronisation, and ended in another way.
ACTIVE, PENDING, SUCCEEDED, GONE, SETTLED = "active", "pending", "succeeded", "gone", "settled"

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
    def text(self) -> str:
        """Return its content as one text, for comparison with others."""
        content = dict(self.content)
        return " ".join(content[name] for name in ("summary", "rationale", "detailedExplanation") if name in content)


@dataclass(frozen=True, slots=True)
class Lineage:
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
