"""What a store takes in at once: commits, and the mark of how far their graph reaches with them, as one TriG text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from jidomem.conflict_keys import lacking
from jidomem.journal.commit import Commit, advance
from jidomem.terms import Term, bare, line, literal
from jidomem.version import Head, Version

#: The graph of the marks, and what a mark says of a graph; no query is given that graph.
MARKS = "urn:jidomem:index:marks"
HOLDS = "urn:jidomem:index:holds"
_TOPIC = b"jido:topic "


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a graph reaches: of how many commits it is made, at which version of its stream, and what cleared it.

    Of `cleared`, and of all that came before it, nothing is held.
    """

    commits: int = 0
    version: Version = Version()
    cleared: Version = Version()

    def after(self, commits: Iterable[Commit]) -> Mark:
        """Return the mark once *commits*, which follow from this one, are in."""
        added = list(commits)
        return Mark(self.commits + len(added), advance(self.version, added), self.cleared)

    @property
    def term(self) -> Term:
        """Return the mark as a literal."""
        heads, cleared = (
            [(head.recorded_at, head.id, head.position) for head in version.heads]
            for version in (self.version, self.cleared)
        )
        return literal(json.dumps([self.commits, heads, cleared], separators=(",", ":")))

    @classmethod
    def of(cls, term: Term) -> Mark:
        """Return the mark that a literal says.

        >>> Mark.of(Mark().term) == Mark()
        True
        """
        commits, heads, cleared = json.loads(bare(term))
        return cls(commits, *(Version.of(Head(*head) for head in of) for of in (heads, cleared)))


def trig(graph: str, commits: Iterable[Commit], mark: Mark | None = None) -> bytes:
    """Return *commits*, at least one, in *graph*, with *mark* where it is to be set by the same write.

    A commit's own document is Turtle of one form, its prefixes before the first empty line, so it is put together
    from those as they are; none of its triples passes through Python again. The conflict keys that a commit of an
    earlier version lacks follow it.
    """
    head, bodies = b"", [b"\n<", graph.encode(), b"> {\n"]
    for commit in commits:
        head, _, body = commit.data.partition(b"\n\n")
        bodies.append(body)
        if _TOPIC in body:
            bodies += [f"\n{line(triple)}".encode() for triple in lacking(commit.triples)]
    said = f"<{MARKS}> {{ <{graph}> <{HOLDS}> {mark.term} }}\n" if mark else ""
    return b"".join([head, *bodies, b"}\n", said.encode()])
