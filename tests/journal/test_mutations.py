"""An edited, removed, moved or added commit is found; some removals need an anchor."""

import shutil

import pytest
from journal_world import STREAM, add, commit_on, fact

from jidomem.check.journal_integrity import anchored
from jidomem.journal import rewrite
from jidomem.journal.commit import file_name, parse
from jidomem.journal.journal import FileJournal, Stream
from jidomem.journal.packs import PackEntry, write_pack
from jidomem.records.intent import Version


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A journal of two packs and some files, with a branch that was merged; its head, and its commits by id."""
    root = tmp_path_factory.mktemp("sound") / "root"
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(rewrite, "COMMITS", 4)
        journal = FileJournal(root)
        for number in range(4):
            add(journal, f"n{number}", second=number + 1)
        other = root.with_name("other")
        shutil.copytree(root, other)
        add(journal, "left", second=10)
        add(FileJournal(other), "right", second=11)
        for path in FileJournal(other).path(STREAM).glob("*.ttl"):
            shutil.copy(path, journal.path(STREAM))
        for number in range(4, 10):
            add(FileJournal(root), f"n{number}", second=number + 20)
        assert FileJournal(root).seal(STREAM) > 8
        for number in range(10, 14):
            add(FileJournal(root), f"n{number}", second=number + 20)
    commits = {commit.id: commit for commit in FileJournal(root).read(STREAM)}
    return root, FileJournal(root).head(STREAM), commits


@pytest.fixture
def copy(sound, tmp_path):
    shutil.copytree(sound[0], tmp_path / "root")
    return tmp_path / "root"


def has_damage(root):
    """Return whether a new process that reads every byte finds damage."""
    return bool(FileJournal(root).verify(STREAM))


def folder(root):
    return FileJournal(root).path(STREAM)


def files(root):
    return sorted(folder(root).glob("2*.ttl"))


def packs(root):
    return sorted(folder(root).glob("pack-*.ttl"))


def repacked(root, path, change):
    """Rewrite a pack with changed documents, and with a consistent table and name."""
    journal = FileJournal(root)
    pack = next(pack for pack in journal.inspect(STREAM).contents.packs.listed() if pack.name == path.name)
    sealed = change([(row.entry, row.redacted, pack.document(row)) for row in pack.rows().values()])
    path.unlink()
    name, data = write_pack(sealed)
    (path.parent / name).write_bytes(data)


EDITS = {
    "a letter of a text": (b'jido:summary "n', b'jido:summary "m'),
    "a class": (b"a jido:Fact ;", b"a jido:Risk ;"),
    "the moment": (b"2026-11-21T08:00", b"2026-11-22T08:00"),
    "the nonce": (b"# nonce ", b"# nonce f"),
    "one line more": (b"    jido:summary", b'    jido:topic "x" ;\n    jido:summary'),
    "the committer": (b"agents/memory-writer", b"agents/memory-reader"),
    "white space": (b" ;\n", b"  ;\n"),
    "a comment": (b"\n\n", b"\n# nothing\n\n"),
    "line ends": (b"\n", b"\r\n"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_verify_finds_any_edit_of_any_file(sound, tmp_path, edit):
    old, new = EDITS[edit]
    for number, path in enumerate([*files(sound[0]), *packs(sound[0])]):
        root = tmp_path / f"root{number}"
        shutil.copytree(sound[0], root)
        target = folder(root) / path.name
        data = target.read_bytes()
        at = data.rindex(old)
        target.write_bytes(data[:at] + new + data[at + len(old) :])
        assert has_damage(root), path.name


def test_verify_finds_every_removed_commit_except_the_last_which_an_anchor_finds(sound, copy):
    _, head, commits = sound
    for path in files(copy):
        data = path.read_bytes()
        path.unlink()
        is_last = parse(data).id in head.ids
        assert has_damage(copy) != is_last, path.name
        assert bool(anchored(FileJournal(copy), STREAM, head.ids)) == is_last
        path.write_bytes(data)
    assert not has_damage(copy)
    assert not anchored(FileJournal(copy), STREAM, [next(iter(commits))])


def test_only_an_anchor_finds_that_the_end_of_the_journal_was_removed(sound, copy):
    _, head, _ = sound
    for path in reversed(files(copy)):
        path.unlink()
        assert not has_damage(copy)
        assert anchored(FileJournal(copy), STREAM, head.ids)
    for path in packs(copy):
        assert anchored(FileJournal(copy), STREAM, head.ids)
        path.unlink()


def test_verify_finds_a_removed_pack_and_any_removed_commit_of_a_pack_with_any_table(sound, tmp_path):
    for number, path in enumerate(packs(sound[0])):
        root = tmp_path / f"gone{number}"
        shutil.copytree(sound[0], root)
        (folder(root) / path.name).unlink()
        assert has_damage(root)
        for row in range(path.read_bytes().count(b"\n# commit ")):
            root = tmp_path / f"gone{number}-{row}"
            shutil.copytree(sound[0], root)
            repacked(root, folder(root) / path.name, lambda rows, row=row: rows[:row] + rows[row + 1 :])
            assert has_damage(root), (path.name, row)


@pytest.mark.parametrize("change", ["reversed", "two swapped", "documents swapped", "one twice"])
def test_verify_finds_reordered_commits_of_a_pack(sound, copy, change):
    path = packs(copy)[0]
    changes = {
        "reversed": lambda rows: rows[::-1],
        "two swapped": lambda rows: [rows[1], rows[0], *rows[2:]],
        "documents swapped": lambda rows: [(*rows[0][:2], rows[1][2]), (*rows[1][:2], rows[0][2]), *rows[2:]],
        "one twice": lambda rows: [rows[0], *rows],
    }
    repacked(copy, path, changes[change])
    assert has_damage(copy)


def test_verify_finds_swapped_files_and_those_of_another_stream_or_time(sound, tmp_path):
    def with_copy(name):
        shutil.copytree(sound[0], tmp_path / name)
        return tmp_path / name

    root = with_copy("swapped")
    first, second = files(root)[:2]
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)
    assert has_damage(root)

    root = with_copy("renamed")
    files(root)[0].rename(folder(root) / files(root)[0].name.replace("20261121", "20251121"))
    assert has_damage(root)

    root = with_copy("foreign")
    elsewhere = Stream("other")
    commit = commit_on(Version(), "x", second=500, graph=elsewhere.graph)
    (folder(root) / file_name(commit.head)).write_bytes(commit.data)
    assert has_damage(root)

    root = with_copy("row of another")
    pack = packs(root)[0]
    repacked(root, pack, lambda rows: [(PackEntry(rows[1][0].head, rows[0][0].parents), *rows[0][1:]), *rows[1:]])
    assert has_damage(root)


def test_an_inserted_commit_changes_no_other_and_verify_finds_impossible_claims(sound, tmp_path):
    _, _, commits = sound
    ordered = list(commits.values())
    for number, parent in enumerate(ordered[:-1]):
        root = tmp_path / f"root{number}"
        shutil.copytree(sound[0], root)
        version = Version.of([parent.head])
        after = ordered[number + 1]
        forged = commit_on(version, "forged", fact("forged", "never said"), second=600 + number)
        altered = forged.data.replace(forged.recorded_at.encode(), after.recorded_at.encode())
        (folder(root) / file_name(forged.head)).write_bytes(altered)
        assert has_damage(root)  # a moment other than its id's

        (folder(root) / file_name(forged.head)).write_bytes(forged.data)
        assert not has_damage(root)  # a valid branch, as after a merge
        recorded = {commit.id: commit for commit in FileJournal(root).read(STREAM)}
        assert recorded == {**commits, forged.id: forged}
        assert not any(forged.id in commit.parents for commit in commits.values())
        if number > 3:
            break


def test_verify_finds_positions_and_moments_that_contradict_the_parents(sound, copy):
    _, head, _ = sound
    early = commit_on(head, "early", second=1)
    (folder(copy) / file_name(early.head)).write_bytes(early.data)
    assert has_damage(copy)
    assert not has_damage(sound[0])
