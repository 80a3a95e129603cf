"""A power cut at any moment: acknowledged commits are stored completely, and no other content is taken for one."""

import ast
import os
import shutil
import tempfile
from itertools import count
from pathlib import Path

import pytest
from power import Recorder, every_image, keep_place, restore

from jidomem.base import disk
from jidomem.errors import JidomemError
from jidomem.journal import rewrite
from jidomem.journal.commit import build
from jidomem.journal.journal import FileJournal, Stream, VersionMismatch
from jidomem.journal.rewrite import leaves, without
from jidomem.rdf import terms, vocab

STREAM = Stream("p")
SOURCES = [Path(disk.__file__), *Path(rewrite.__file__).parent.glob("*.py")]


def commit_on(version, name, size=1):
    """A small commit on top of *version*."""
    item = terms.iri(f"urn:memory:{name}")
    triples = [(item, vocab.jido("summary"), terms.literal(f"{name} {number}")) for number in range(size)]
    return build(
        graph=STREAM.graph,
        parents=version,
        recorded_at=f"2026-11-21T08:{version.position // 60:02}:{version.position % 60:02}.000000Z",
        committer="https://jido.ai/agents/memory-writer",
        ontology_version="0.1.0",
        body=triples,
        nonce=name.encode().ljust(32, b"."),
    )


def first_text(name):
    """The first text of the commit *name*."""
    return f'"{name} 0"'


class Run:
    """A recorded run of a writer below *base*: `forms` by commit id, `log` the calls of the disk."""

    def __init__(self, base):
        self.root, self.forms = base / "new" / "root", {}
        with pytest.MonkeyPatch.context() as patched:
            self.recorder = Recorder(base, patched)
            self._run(patched)
        self.log = self.recorder.log

    def _append(self, journal, commit):
        self.forms[commit.id] = {commit.data}
        assert not isinstance(journal.append(STREAM, journal.head(STREAM), commit), VersionMismatch)
        self.recorder.told(commit.id)

    def _run(self, patched):
        with FileJournal(self.root).lock(STREAM):
            pass  # made the folders, and died
        journal = FileJournal(self.root)
        for number in range(3):
            self._append(journal, commit_on(journal.head(STREAM), f"n{number}"))
        with journal.lock(STREAM) as version:
            self._append(journal, commit_on(version, "group", 20))
        self._unknown_outcome(journal, patched)
        self._brought_by_git(journal)
        self._append(FileJournal(self.root), commit_on(journal.head(STREAM), "last"))
        self._sealed(journal, patched)
        self._redacted(journal, "n1")  # in a pack
        self._append(journal, commit_on(journal.head(STREAM), "hunter2"))
        self._redacted(journal, "hunter2")  # in a file of its own

    def _redacted(self, journal, name):
        """Redact the text of one commit; from then on it is not found."""
        secret = next(
            commit for commit in journal.read(STREAM) if any(first_text(name) == value for *_, value in commit.triples)
        )
        leaf = next(leaf for triple, leaf in leaves(secret).items() if triple[2] == first_text(name))
        self.forms[secret.id].add(without(secret, [leaf]).data)
        with journal.redacting(STREAM, {secret.id: frozenset([leaf])}) as version:
            order = commit_on(version, f"order-{name}")
            self.forms[order.id] = {order.data}
            journal.append(STREAM, version, order)
        self.recorder.told(order.id, first_text(name))

    def _sealed(self, journal, patched):
        """Seal files into packs; one sealer dies before it removes the files, and another removes them."""
        patched.setattr(rewrite, "COMMITS", 4)
        assert journal.seal(STREAM) == 6
        for number in range(3):
            self._append(journal, commit_on(journal.head(STREAM), f"m{number}"))
        recorded = disk.unlink

        def die(path):
            raise KeyboardInterrupt

        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(disk, "unlink", die)
            dying.setattr(disk, "flush", lambda path: None)
            with pytest.raises(KeyboardInterrupt):
                journal.seal(STREAM)
        assert disk.unlink == recorded
        other = FileJournal(self.root)
        assert (other.seal(STREAM), other.loose(STREAM)) == (3, 1)
        self._append(journal, commit_on(journal.head(STREAM), "end"))

    def _unknown_outcome(self, journal, patched):
        """A writer dies between rename and answer; another appends the same commit again."""
        unsure = commit_on(journal.head(STREAM), "unsure")
        self.forms[unsure.id] = {unsure.data}
        recorded = disk.rename

        def die(source, target):
            recorded(source, target)
            raise KeyboardInterrupt

        with patched.context() as dying:
            dying.setattr(disk, "rename", die)
            with pytest.raises(KeyboardInterrupt):
                journal.append(STREAM, journal.head(STREAM), unsure)
        self._append(FileJournal(self.root), unsure)

    def _brought_by_git(self, journal):
        """A file is copied in without a flush; then its commit is appended once more."""
        brought = commit_on(journal.head(STREAM), "brought")
        other = FileJournal(self.root.parent.parent.parent / "elsewhere")
        shutil.copytree(self.root, other.folder)
        with pytest.MonkeyPatch.context() as unrecorded:
            for name, call in self.recorder.real.items():
                unrecorded.setattr(disk, name, call)
            other.append(STREAM, other.head(STREAM), brought)
        (path,) = [path for path in other.path(STREAM).iterdir() if brought.id[:12] in path.name]
        self.recorder.foreign()
        descriptor = disk.create(f"{journal.path(STREAM)}/{path.name}")
        disk.write(descriptor, brought.data)
        disk.close(descriptor)
        self._append(journal, brought)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    base = tmp_path_factory.mktemp("power") / "base"
    base.mkdir()
    return Run(base)


def fault_after_cut(run, root, acknowledged):
    """The fault of the journal below *root* after a cut, given the acknowledged commits; None if there is none."""
    journal = FileJournal(root)
    try:
        commits = {commit.id: commit for commit in journal.read(STREAM)}
        damage = journal.verify(STREAM)
        if damage:
            return f"damage: {damage[0]}"
        if any(commit.data not in run.forms[identity] for identity, commit in commits.items()):
            return "a commit nobody wrote"
        redacted = {text for text in acknowledged if text.startswith('"')}
        if not set(acknowledged) - redacted <= commits.keys():
            return f"lost: {set(acknowledged) - redacted - commits.keys()}"
        stored = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
        if any(f" {text} ".encode() in stored for text in redacted):
            return f"back again: {redacted}"
        with journal.lock(STREAM) as version:
            fresh = commit_on(version, "fresh")
            assert journal.append(STREAM, version, fresh).ids == (fresh.id,)
        reread = {commit.id for commit in FileJournal(root).read(STREAM)}
        return None if reread == commits.keys() | {fresh.id} else "an append took something away"
    except JidomemError as error:
        return str(error)


@pytest.fixture
def cut(run, tmp_path, monkeypatch):
    """Rebuild the state after a cut and return its fault."""
    numbers = count()
    if os.access("/dev/shm", os.W_OK):  # hundreds of small folders: quicker in memory
        tmp_path = Path(tempfile.mkdtemp(dir="/dev/shm"))
    monkeypatch.setattr(disk, "fsync", lambda descriptor: None)  # of the journal made after the cut: it is a test
    monkeypatch.setattr(disk, "flush", lambda path: None)
    keep_place(monkeypatch)

    def judge(acknowledged, tree, times):
        folder = tmp_path / f"cut{next(numbers)}"
        folder.mkdir()
        restore(folder, tree, times)
        fault = fault_after_cut(run, folder / "new" / "root", acknowledged)
        shutil.rmtree(folder)
        return fault

    yield judge
    shutil.rmtree(tmp_path)


def test_acknowledged_commits_survive_a_power_cut_at_any_call_and_writes_continue(run, cut):
    # C075 C077
    cuts = 0
    for number, acknowledged, tree, times in every_image(run.log, seed=1):
        assert cut(acknowledged, tree, times) is None, (number, run.log[number - 1], sorted(tree))
        cuts += 1
    assert cuts > 3 * len(run.log)


def flushes(log):
    """The flushes of a log by source line and target: the folder, or the kind of file."""
    return sorted({flushed(call) for call in log if call.kind == "flush"})


def flushed(call):
    kind = "commit" if call.path.endswith(".ttl") else call.path.rpartition("/")[2]
    return call.site, kind if call.file else call.path


def test_the_recorded_run_calls_every_flush_of_the_source(run):
    written = {
        f"{path.name}:{node.lineno}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).removeprefix("disk.") in ("fsync", "flush")
    }
    assert {call.site for call in run.log if call.kind == "flush"} == written


def test_without_any_single_flush_a_power_cut_loses_acknowledged_commits(run, cut):
    needless = []
    for site, what in flushes(run.log):
        log = [call for call in run.log if call.kind != "flush" or flushed(call) != (site, what)]
        assert len(log) < len(run.log)
        if not any(
            cut(acknowledged, tree, times)
            for _, acknowledged, tree, times in every_image(log, seed=2, randoms=0)
            if acknowledged
        ):
            needless.append((site, what))
    assert needless == []
