"""A redacted text is removed from every index and snapshot, in every process."""

import pytest
from index_world import STREAM, add, commit_on, index_triples, journal_triples, open_tail, small_limits

from jidomem.index.snapshots import Clones
from jidomem.journal.journal import FileJournal
from jidomem.journal.rewrite import leaves
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import THIS, jido

NAMES = [f"n{number}" for number in range(12)]
SECRET = "hunter2"


@pytest.fixture(params=["memory", "disk"])
def root(request, tmp_path, monkeypatch):
    small_limits(monkeypatch, large=3_000 if request.param == "disk" else 10**9)
    return tmp_path / "root"


def erase(journal, commit):
    """Redact the secret in *commit*, and record it."""
    leaf = next(leaf for triple, leaf in leaves(commit).items() if triple[2] == f'"{SECRET}"')
    with journal.redacting(STREAM, {commit.id: frozenset([leaf])}) as version:
        rows = [(THIS, jido("redacts"), iri(commit.iri)), (THIS, jido("redactedLeaf"), f'"{leaf}"')]
        order = commit_on(version, "record", rows)
        journal.append(STREAM, version, order)
    return order


def has_secret(tail):
    """Return whether the updated index of *tail* has the secret."""
    triples = index_triples(tail)
    assert triples == journal_triples(tail.journal.folder)
    return any(SECRET in value for _, _, value in triples)


def test_every_index_drops_a_secret_at_its_next_update_after_a_redaction(root):
    journal = FileJournal(root)
    _, secret, *_ = add(journal, "first", SECRET, *NAMES)
    follower, second = open_tail(root), open_tail(root)
    assert has_secret(follower)
    assert has_secret(second)

    order = erase(journal, secret)
    second.apply(STREAM, order)  # the redacting process applies the record to its own index

    assert not has_secret(follower)
    assert not has_secret(second)
    assert not has_secret(open_tail(root))
    for tail in (follower, second):
        tail.close()


def test_a_snapshot_from_before_a_redaction_is_discarded(tmp_path, monkeypatch):
    small_limits(monkeypatch)
    journal = FileJournal(tmp_path)
    _, secret, *_ = add(journal, "first", SECRET, *NAMES)
    before = open_tail(tmp_path)
    assert has_secret(before)
    before.close()
    old = Clones(tmp_path / "index").snapshots()
    assert old

    erase(journal, secret)
    add(journal, *(f"later {name}" for name in NAMES))
    after = open_tail(tmp_path)
    assert not has_secret(after)

    snapshots = after.snapshots()
    assert not {snapshot.path for snapshot in old} & {snapshot.path for snapshot in snapshots}
    after.close()
    if snapshots:
        reopened = open_tail(tmp_path)
        assert not has_secret(reopened)
        reopened.close()


def test_an_index_built_during_a_redaction_drops_the_secret(root, monkeypatch):
    journal = FileJournal(root)
    _, secret, *_ = add(journal, "first", SECRET, *NAMES)
    tail, read, redactions = open_tail(root), FileJournal.read, []

    def then_redacted(self, stream, after=None, **more):
        for commit in read(self, stream, after, **more):
            yield commit
            if commit.id == secret.id and not redactions:
                redactions.append(erase(journal, secret))

    monkeypatch.setattr(FileJournal, "read", then_redacted)
    assert not has_secret(tail)
    assert redactions
    tail.close()


def test_a_journal_with_an_old_redaction_is_read_once(root, monkeypatch):
    journal = FileJournal(root)
    _, secret, *_ = add(journal, "first", SECRET, *NAMES)
    erase(journal, secret)
    add(journal, "last")
    reads = []
    read = FileJournal.read
    monkeypatch.setattr(
        FileJournal,
        "read",
        lambda self, stream, after=None, **more: reads.append(after) or read(self, stream, after, **more),
    )
    tail = open_tail(root)
    tail.catch_up(STREAM)
    assert sum(not (after and after.heads) for after in reads) == 1
    assert not has_secret(tail)
    tail.close()
