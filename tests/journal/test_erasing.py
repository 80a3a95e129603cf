"""Redaction in the files of a stream: triples are removed, ids and history are kept, also after a crash."""

import shutil
from pathlib import Path

import pytest
import verifier
from hypothesis import given, settings
from hypothesis import strategies as st
from journal_world import STREAM, add, commit_on, fact, ids, order_on
from test_commit import redacted_bytes
from test_files import bring, commits_in

from jidomem.base import disk
from jidomem.journal import rewrite
from jidomem.journal.commit import FormatError, is_redaction_record, parse
from jidomem.journal.journal import FileJournal
from jidomem.journal.rewrite import forms, leaves, redacted_leaves, redaction_records, removed_leaves, without
from jidomem.rdf import terms, vocab
from jidomem.records.intent import Version

J = vocab.jido


def leaf_of(commit, text):
    return next(leaf for triple, leaf in leaves(commit).items() if triple[2] == f'"{text}"')


def record(version, commit, *leaves_removed):
    """Return a commit on top of *version* that records a redaction."""
    rows = [(vocab.THIS, J("redacts"), terms.iri(commit.iri))]
    return commit_on(
        version, "record", [*rows, *((vocab.THIS, J("redactedLeaf"), f'"{leaf}"') for leaf in leaves_removed)]
    )


def redact_texts(journal, commit, *texts):
    """Redact *texts* in *commit* as the keeper does, and return the commit that records it."""
    redacted_leaves = frozenset(leaf_of(commit, text) for text in texts)
    with journal.redacting(STREAM, {commit.id: redacted_leaves}) as version:
        order = record(version, commit, *redacted_leaves)
        journal.append(STREAM, version, order)
    return order


def bytes_below(root):
    return b"".join(path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file())


@pytest.fixture
def journal(tmp_path):
    return FileJournal(tmp_path / "root")


@settings(max_examples=60)
@given(st.sets(st.integers(0, 7)), st.sets(st.integers(0, 7)))
def test_triples_removed_in_one_or_two_redactions_leave_the_bytes_of_the_independent_writer(first, second):
    whole = commit_on(Version(), "a", fact("a", *(f"text {number}" for number in range(8))))
    removed = {f'"text {number}"' for number in first | second}
    if not first:
        return
    step = without(whole, [leaf_of(whole, f"text {number}") for number in first])
    both = without(step, [leaf_of(whole, f"text {number}") for number in first | second])

    assert both.data == verifier.redact(whole.data, lambda triple: triple[2] in removed)
    assert both.id == whole.id == verifier.read(both.data)[0]
    assert {triple[2] for triple in whole.triples - both.triples} == removed
    assert removed_leaves(both) == {leaves(whole)[triple] for triple in whole.triples - both.triples}
    assert leaves(both).items() <= leaves(whole).items()


def test_the_description_of_a_commit_is_not_redacted_and_an_empty_redaction_is_refused():
    whole = commit_on(Version(), "a")
    own = [triple for triple in leaves(whole) if triple[0] == f"<{whole.iri}>"]
    assert {J("position"), J("recordedAt"), vocab.TYPE} <= {predicate for _, predicate, _ in own}
    for triple in own:
        with pytest.raises(FormatError, match=f"^what commit {whole.id} says of itself cannot be removed$"):
            without(whole, [leaves(whole)[triple]])
    with pytest.raises(FormatError, match="no nonce, and not the salts and leaves"):
        without(whole, ["00" * 32])
    assert without(parse(redacted_bytes()), []).data == redacted_bytes()


def test_triples_added_to_the_description_of_a_commit_can_be_redacted():
    whole = commit_on(Version(), "a", [(vocab.THIS, J("reason"), '"a secret"')])
    added = (f"<{whole.iri}>", J("reason"), '"a secret"')

    assert whole.triples - without(whole, [leaves(whole)[added]]).triples == {added}


def test_of_commits_with_a_wanted_document_others_are_not_verified_and_redacted_triples_are_left_out(journal, tmp_path):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "last")]
    first, whole = commits_in(journal.path(STREAM))[:2]
    shutil.copy(whole, tmp_path)
    redact_texts(journal, written[1], "hunter2")
    (journal.path(STREAM) / f"{whole.stem}.redacted.ttl").unlink()
    shutil.copy(tmp_path / whole.name, whole)  # a checkout restored the whole form
    first.write_bytes(first.read_bytes().replace(b"first", b"frist"))
    reader = FileJournal(journal.folder)

    wanted = [*reader.matching(STREAM, lambda document: b"hunter2" in document)]

    assert ids(wanted) == ids([written[1]])
    assert written[1].triples - wanted[0].triples == {each for each in written[1].triples if each[2] == '"hunter2"'}
    assert reader.known_damage(STREAM.project) == 0
    assert ids(reader.read(STREAM)) == ids([*written[1:], *reader.matching(STREAM, is_redaction_record)])
    assert reader.known_damage(STREAM.project) == 1


def test_a_redaction_record_is_recognised_by_its_triple_and_not_by_its_text():
    whole = commit_on(Version(), "a", fact("a", "\n    jido:redacts <urn:x> ;"))
    assert not is_redaction_record(whole.data)
    assert is_redaction_record(record(Version(), whole, "00").data)


@pytest.mark.parametrize("sealed", [False, True])
def test_a_secret_is_in_no_file_afterwards_and_the_chain_verifies_for_everyone(journal, sealed, monkeypatch):
    written = [add(journal, name) for name in ("first", "hunter2", "third", "fourth")]
    folder = journal.path(STREAM)
    if sealed:
        assert journal.seal(STREAM) == 3
    (folder / ".incoming.lock").write_bytes(b"what a killed writer left of hunter2")
    reader = FileJournal(journal.folder)
    assert ids(reader.read(STREAM)) == ids(written)

    order = redact_texts(journal, written[1], "hunter2")

    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert not any(b'"hunter2"' in data for data in files.values())
    assert ".incoming.lock" not in files
    assert not any(b"# nonce " + b"nonce of hunter2".hex().encode() in data for data in files.values())
    for each in (reader, journal, FileJournal(journal.folder)):
        assert (ids(each.read(STREAM)), each.verify(STREAM)) == ([*ids(written), order.id], ())
        assert each.head(STREAM) == Version.of([order.head])
    for name, data in files.items():
        if name.startswith("pack-"):
            assert [document[0] for document in verifier.read_pack(name, data)] == ids(written[:3])
        elif name.endswith(".ttl"):
            verifier.read(data)
    assert [form.commit.redacted for form in forms(journal.inspect(STREAM), written[1].id)] == [True]
    assert ids(redaction_records(reader.inspect(STREAM))) == [order.id]
    assert add(reader, "later").position == 6


@pytest.mark.parametrize("sealed", [False, True])
def test_two_redactions_remove_both_texts_and_a_repeated_one_changes_nothing(journal, sealed):
    whole = add(journal, "a", second=1)
    with journal.lock(STREAM) as version:
        whole = commit_on(version, "b", fact("b", "one", "two", "three"))
        journal.append(STREAM, version, whole)
    add(journal, "c")
    if sealed:
        journal.seal(STREAM)
    redact_texts(journal, whole, "one")
    redact_texts(journal, whole, "two")
    names = [path.name for path in commits_in(journal.path(STREAM))]
    with journal.redacting(STREAM, {whole.id: frozenset([leaf_of(whole, "two")])}):
        pass
    assert [path.name for path in commits_in(journal.path(STREAM))] == names
    (form,) = forms(journal.inspect(STREAM), whole.id)
    assert {o for _, p, o in whole.triples - form.commit.triples if p == J("summary")} == {'"one"', '"two"'}
    assert FileJournal(journal.folder).verify(STREAM) == ()


@pytest.mark.parametrize("sealed", [False, True])
def test_restored_forms_of_a_commit_lose_the_triples_of_every_redaction(journal, tmp_path, sealed):
    with journal.lock(STREAM) as version:
        whole = commit_on(version, "b", fact("b", "one", "two", "three"))
        journal.append(STREAM, version, whole)
    add(journal, "c")
    shutil.copytree(journal.folder, tmp_path / "other")
    other = FileJournal(tmp_path / "other")
    if sealed:
        add(other, "d")
        other.seal(STREAM)
    first = redact_texts(journal, whole, "one")
    bring(other, journal)

    assert [form.commit.redacted for form in forms(journal.inspect(STREAM), whole.id)].count(False) == 1
    (returned,) = [commit for commit in FileJournal(journal.folder).read(STREAM) if commit.id == whole.id]
    assert returned.redacted
    redact_texts(journal, whole, "two")

    documents = {form.commit.data for form in forms(FileJournal(journal.folder).inspect(STREAM), whole.id)}
    assert len(documents) == 1
    assert b'"one"' not in bytes_below(journal.folder)
    assert b'"two"' not in bytes_below(journal.folder)
    assert journal.verify(STREAM) == ()
    assert first.id in ids(journal.read(STREAM))


class Stop(KeyboardInterrupt):
    """The process dies."""


@pytest.mark.parametrize("sealed", [False, True])
def test_a_redaction_killed_at_any_disk_call_is_completed_next_time(tmp_path, monkeypatch, sealed):
    monkeypatch.setattr(rewrite, "COMMITS", 4)
    steps, is_done = 0, False
    while not is_done:
        steps += 1
        root = tmp_path / f"root{steps}"
        journal = FileJournal(root)
        written = [add(journal, name) for name in ("first", "hunter2", "third")]
        if sealed:
            journal.seal(STREAM)
        is_done = _dies_at(
            monkeypatch, steps, lambda journal=journal, c=written[1]: redact_texts(journal, c, "hunter2")
        )

        after = FileJournal(root)
        assert (ids(after.read(STREAM))[:3], after.verify(STREAM)) == (ids(written), ())
        commit = next(c for c in after.read(STREAM) if c.id == written[1].id)
        if list(redaction_records(after.inspect(STREAM))):
            assert commit.redacted  # a reader of the record reads no secret
        if not is_done:
            redact_texts(after, written[1], "hunter2")
        assert b'"hunter2"' not in bytes_below(root)
        assert FileJournal(root).verify(STREAM) == ()
    assert steps > 10


def _dies_at(monkeypatch, step, action):
    """Return whether *action* completes before the disk call *step*, at which the process dies."""
    remaining = [step]

    def counted(call):
        def either(*arguments):
            remaining[0] -= 1
            if remaining[0] == 0:
                raise Stop
            return call(*arguments)

        return either

    with monkeypatch.context() as patched:
        for name in ("create", "write", "fsync", "flush", "rename", "unlink", "overwrite"):
            patched.setattr(disk, name, counted(getattr(disk, name)))
        try:
            action()
        except Stop:
            return False
    return True


def test_files_of_a_redaction_are_where_others_look_for_them(journal):
    written = [add(journal, name) for name in ("first", "hunter2", "third")]
    redact_texts(journal, written[1], "hunter2")
    path, before, document = journal.document(STREAM, written[1].head)
    assert (Path(path).name, before) == (f"{Path(path).name.split('.redacted')[0]}.redacted.ttl", 0)
    assert parse(document).redacted
    assert journal.loose(STREAM) == FileJournal(journal.folder).loose(STREAM) == 4


def test_commits_that_the_same_records_name_share_one_set_of_leaves():
    commits, named = [f"{number:064x}" for number in range(40)], [frozenset({f"{number:064x}"}) for number in (7, 8)]
    records = [order_on(Version(), dict.fromkeys(commits, each)) for each in named]
    known = redacted_leaves([*records, order_on(Version(), {commits[0]: frozenset({"9" * 64})})])
    assert known == {**dict.fromkeys(commits, named[0] | named[1]), commits[0]: named[0] | named[1] | {"9" * 64}}
    assert len({id(each) for each in known.values()}) == 2
