"""The change feed: what each commit of a project's memory added, superseded and invalidated, in the journal's order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jidomem.active import ACTIVE, is_accepted
from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.journal.commit import Commit, advance
from jidomem.journal.files import FileJournal, Stream
from jidomem.terms import Term, bare, iri, parts
from jidomem.version import Version, read
from jidomem.vocab import TYPE, jido, local_name

_DECIDED = jido("decisionStatus")
_ENDS = {jido("supersededBy"): "superseded", jido("invalidatedBy"): "invalidated"}
_MARK, _PROPOSED = jido("hasAssertionStatus"), jido("Proposed")
_RECORDED, _SUMMARY = jido("recordedIn"), jido("summary")
Said = Mapping[Term, Mapping[Term, list[Term]]]


@dataclass(frozen=True, slots=True)
class Entry:
    """One commit: `version` stands for it and all that was told before it, and is where the feed goes on after it.

    Each of `added`, `superseded` and `invalidated` has iri, kind, summary, status and whether it is redacted, and the
    latter two `by`, the memory that ended it.
    """

    version: Version
    commit: str
    recorded_at: str
    redacted: bool
    added: tuple[dict[str, Any], ...]
    superseded: tuple[dict[str, Any], ...]
    invalidated: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
        told = {name: getattr(self, name) for name in self.__slots__}
        return {**told, "version": str(self.version)}


def version_of(journal: FileJournal, stream: Stream, text: str) -> Version:
    """Return the version that *text* shows; raises InvalidRequest for none, NotFound for one that is not here."""
    if text == "0":
        return Version()
    said = read(text)
    if said is None:
        raise InvalidRequest(f"{text!r} is no version", hint="give the version of a line of the feed: 12-0a1b2c3d4e5f")
    folder = journal.seen(stream)
    found = [folder.named(identity) for identity in said[1]]
    if not all(len(heads) == 1 for heads in found):
        raise NotFound(
            f"{stream.project} has no version {text}: it is another project's, or its branch is not checked out",
            hint="read from the beginning: leave it out",
        )
    return Version.of(heads[0] for heads in found)


def entries(journal: FileJournal, index: OxigraphIndex, stream: Stream, after: Version) -> Iterator[Entry]:
    """Yield each commit that is neither in *after* nor before it, once; *index* is level with the journal.

    So none is left out or told twice where branches were merged. Ends before damage, and raises JournalDamaged where
    that comes first; raises NotFound where *after* is not here any more.
    """
    missed, version = set[str](), after
    for commit in journal.read(stream, after, missed=missed):
        if missed:
            break
        version = advance(version, [commit])
        yield _entry(commit, version, index)
    if missed and version == after:
        for damage in journal.damage(stream):
            raise damage


def _entry(commit: Commit, version: Version, index: OxigraphIndex) -> Entry:
    said: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for subject, predicate, value in sorted(commit.triples):
        said[subject][predicate].append(value)
    own = iri(commit.iri)
    added = [
        _told(item, of, _status(of), commit.redacted) for item, of in said.items() if own in of[_RECORDED] and of[_MARK]
    ]
    ended: dict[str, list[dict[str, Any]]] = {"superseded": [], "invalidated": []}
    for item, of in said.items():
        for predicate, status in _ENDS.items():
            for by in of[predicate]:
                held = {each: [t[2] for t in index.triples(commit.graph, item, each)] for each in (TYPE, _SUMMARY)}
                ended[status].append({**_told(item, held, status, True), "by": bare(by)})
    lists = {name: tuple(found) for name, found in ended.items()}
    return Entry(version, commit.id, commit.recorded_at, commit.redacted, tuple(added), **lists)


def _status(of: Mapping[Term, list[Term]]) -> str:
    if _PROPOSED in of[_MARK]:
        return "proposed"
    stated = parts(of[_DECIDED][0]).text if of[_DECIDED] else None
    return stated if stated is not None and not is_accepted(stated) else ACTIVE


def _told(item: Term, of: Mapping[Term, list[Term]], status: str, may_lack: bool) -> dict[str, Any]:
    """Return a memory as the feed tells it; where it *may_lack* what every memory has, that was redacted."""
    kinds, texts = of.get(TYPE, []), of.get(_SUMMARY, [])
    return {
        "iri": bare(item),
        "kind": local_name(bare(min(kinds))) if kinds else None,
        "summary": parts(texts[0]).text if texts else None,
        "status": status,
        "redacted": may_lack and not texts,
    }
