"""Shared parts of the tests of the index: journals of small commits, and small limits."""

from datetime import UTC, datetime, timedelta

from jidomem.base.clock import format_timestamp
from jidomem.index import follower
from jidomem.index.follower import IndexFollower
from jidomem.index.snapshots import Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.commit import Commit, build
from jidomem.journal.journal import FileJournal, Stream
from jidomem.records.intent import Version

STREAM = Stream("demo")
START = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ONTOLOGY = [("<urn:C>", "<http://www.w3.org/2000/01/rdf-schema#subClassOf>", "<urn:D>")]


def commit_on(version: Version, name: str, body=None, *, graph: str = STREAM.graph) -> Commit:
    """Return a commit on top of *version*, a second later, with *body*, or with a triple that has *name*."""
    rows = [(f"<urn:s:{name.replace(chr(32), chr(45))}>", "<urn:p>", f'"{name}"')] if body is None else body
    return build(
        graph=graph,
        parents=version,
        recorded_at=format_timestamp(START + timedelta(seconds=version.position + 1)),
        committer="https://jido.ai/agents/memory-writer",
        ontology_version="0.1.0",
        body=rows,
        nonce=name.encode().ljust(32, b".")[:32],
    )


def add(journal: FileJournal, *names: str, stream: Stream = STREAM) -> list[Commit]:
    """Append a commit of each name and return them."""
    commits = []
    for name in names:
        with journal.lock(stream) as version:
            commits.append(commit_on(version, name, graph=stream.graph))
            assert journal.append(stream, version, commits[-1]).ids == (commits[-1].id,)
    return commits


def small_limits(monkeypatch, large=3_000, many=5, outgrown=10**9, much=10**9) -> None:
    """Lower the limits so that a few small commits count as a large journal."""
    for name, value in (
        ("ON_DISK_BYTES", large),
        ("SNAPSHOT_COMMITS", many),
        ("MAX_TRIPLES_IN_MEMORY", outgrown),
        ("WRITER_SNAPSHOT_BYTES", much),
    ):
        monkeypatch.setattr(follower, name, value)
    monkeypatch.setattr(follower, "STEP", 2_000)


def open_tail(root, journal: FileJournal | None = None) -> IndexFollower:
    """Open an index of the journal in *root*, as another process would."""
    return IndexFollower(journal or FileJournal(root), OxigraphIndex(), Clones(root / "index"), ONTOLOGY)


def as_stored(triples) -> set:
    """Return *triples* as a store returns them: it rewrites some literals, such as `.000000Z` in a moment."""
    store = OxigraphIndex()
    store.apply("urn:g", "", triples)
    return set(store.triples("urn:g"))


def index_triples(tail: IndexFollower, stream: Stream = STREAM) -> set:
    """Return all triples of a stream in an index that is up to date with the journal."""
    tail.catch_up(stream)
    return set(tail.index.triples(stream.graph))


def journal_triples(root, stream: Stream = STREAM) -> set:
    """Return all triples of the commits of a stream."""
    return as_stored(triple for commit in FileJournal(root).read(stream) for triple in commit.triples)
