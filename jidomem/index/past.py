"""A project's memory replayed to a moment: what an index holds that stops there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jidomem.errors import TooLarge
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.steps import after_clearing
from jidomem.journal.commit import Commit
from jidomem.journal.files import NAMES, FileJournal, Stream
from jidomem.terms import Triple

#: Bytes of journal that are replayed for one question.
MOST = 32_000_000


def past(journal: FileJournal, ontology: Iterable[Triple], project: str, moment: str) -> OxigraphIndex:
    """Return an index of what *project* had recorded by *moment*, as commits write it, beside the present *ontology*.

    Raises TooLarge `result_too_large` when that is more than MOST bytes of journal.
    """
    index, left = OxigraphIndex(), MOST
    index.put_ontology(ontology)
    for stream in (Stream(project, name) for name in NAMES):
        by_then = (commit for commit in journal.read(stream) if commit.recorded_at <= moment)
        commits = list(_within(left, by_then))
        left -= sum(len(commit.data) for commit in commits)
        index.take_many(stream.graph, after_clearing(stream, commits))
    return index


def _within(limit: int, commits: Iterable[Commit]) -> Iterator[Commit]:
    for commit in commits:
        limit -= len(commit.data)
        if limit < 0:
            raise TooLarge(
                f"by then the journal had more than {MOST:,} bytes, and no more is replayed for raw SPARQL",
                hint="ask a named question with as_of, of any size: jidomem ask",
                code="result_too_large",
            )
        yield commit
