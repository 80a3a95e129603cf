"""Commits in the steps in which they are applied, up to one that clears their stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from jidomem.journal.commit import Commit
from jidomem.journal.files import FileJournal, Stream
from jidomem.terms import iri
from jidomem.version import Version
from jidomem.vocab import jido

#: Bytes of commits applied in one step.
STEP = 500_000
_CLEARS = jido("clears")


def clears(stream: Stream, commit: Commit) -> bool:
    """Return whether its stream is empty after *commit*; memories are never cleared, whatever a commit says."""
    return stream.name != "memory" and (iri(commit.iri), _CLEARS, iri(stream.graph)) in commit.triples


def after_clearing(stream: Stream, commits: Sequence[Commit]) -> list[Commit]:
    """Return *commits* without those that cleared the stream, and what these knew of."""
    by_id = {commit.id: commit for commit in commits}
    gone, further = set[str](), [commit.id for commit in commits if clears(stream, commit)]
    while further:
        name = further.pop()
        if name not in gone and name in by_id:
            gone.add(name)
            further += by_id[name].parents
    return [commit for commit in commits if commit.id not in gone]


def cleared_by(journal: FileJournal, stream: Stream, clearing: Commit, before: Version) -> Version:
    """Return the commits that cleared a stream: *clearing*, and those of *before* that it did not know of."""
    beside = set()
    for commit in journal.read(stream, after=Version.of([clearing.head])):
        if commit.recorded_at > before.recorded_at:
            break
        beside.add(commit.id)
    return Version.of([clearing.head, *(head for head in before.heads if head.id in beside)])


def until_cleared(stream: Stream, commits: Iterable[Commit], clearing: list[Commit]) -> Iterator[list[Commit]]:
    """Yield steps up to a commit that clears the stream, which is put into *clearing* instead."""

    def before() -> Iterator[Commit]:
        for commit in commits:
            if clears(stream, commit):
                clearing.append(commit)
                return
            yield commit

    return steps(before())


def steps(commits: Iterable[Commit]) -> Iterator[list[Commit]]:
    """Yield commits, in their order, as many at a time as are applied in one step."""
    step, size = list[Commit](), 0
    for commit in commits:
        step.append(commit)
        size += len(commit.data)
        if size >= STEP:
            yield step
            step, size = [], 0
    if step:
        yield step
