"""Shared parts of the journal's tests: small commits with fixed clocks and nonces."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from jidomem.base import disk
from jidomem.base.clock import format_timestamp
from jidomem.journal.commit import COMMIT, Commit, build
from jidomem.journal.journal import FileJournal, Stream, VersionMismatch
from jidomem.rdf import terms, vocab
from jidomem.records.intent import Version

STREAM = Stream("demo")
START = datetime(2026, 11, 21, 8, 0, 0, 123456, tzinfo=UTC)
WRITER = "https://jido.ai/agents/memory-writer"


def fact(name: str, *summaries: str) -> list[terms.Triple]:
    """Return the triples of a small memory called *name*."""
    item = terms.iri(f"https://jido.ai/memory/{name}")
    rows = [(item, vocab.jido("summary"), terms.literal(text)) for text in summaries or (name,)]
    return [(item, vocab.TYPE, vocab.jido("Fact")), (item, vocab.jido("recordedIn"), vocab.THIS), *rows]


def commit_on(version: Version, name: str = "a", body=None, *, second: int | None = None, graph=STREAM.graph) -> Commit:
    """Return a commit on top of *version*, *second* seconds after the start (default: its position)."""
    second = version.position + 1 if second is None else second
    return build(
        graph=graph,
        parents=version,
        recorded_at=format_timestamp(START + timedelta(seconds=second)),
        committer=WRITER,
        ontology_version="0.1.0",
        body=fact(name) if body is None else body,
        nonce=f"nonce of {name}".encode().ljust(32, b".")[:32],
    )


def order_on(version: Version, redacted_leaves: dict[str, frozenset[str]], *, graph=STREAM.graph) -> Commit:
    """Return a commit on top of *version* that redacts leaves, given by the id of their commit."""
    rows = [(vocab.THIS, vocab.jido("redacts"), terms.iri(COMMIT + identity)) for identity in redacted_leaves]
    rows += [
        (vocab.THIS, vocab.jido("redactedLeaf"), terms.literal(leaf))
        for leaf in frozenset().union(*redacted_leaves.values())
    ]
    return commit_on(version, "order", rows, graph=graph)


def add(journal: FileJournal, name: str, *, stream: Stream = STREAM, second: int | None = None) -> Commit:
    """Append one more commit and return it."""
    with journal.lock(stream) as version:
        commit = commit_on(version, name, second=second, graph=stream.graph)
        answer = journal.append(stream, version, commit)
    if isinstance(answer, VersionMismatch):  # files were added by others during the lock
        return add(journal, name, stream=stream, second=second)
    assert answer.ids == (commit.id,)
    return commit


def snapshot(root: Path) -> dict[str, tuple[bytes, int]]:
    """Return every file below *root* with its bytes and its time."""
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in root.rglob("*") if path.is_file()}


def ids(commits) -> list[str]:
    return [commit.id for commit in commits]


def flip_written_bits(monkeypatch) -> None:
    """Let the disk flip one bit in the middle of each pack that is written."""
    write = disk.write

    def write_flipped(descriptor, data):
        if data.startswith(b"# jidomem pack"):
            data = bytearray(data)
            data[len(data) // 2] ^= 1
        write(descriptor, bytes(data))

    monkeypatch.setattr(disk, "write", write_flipped)
