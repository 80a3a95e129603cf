"""A reader checks size and form of the files in a hostile folder before it reads them, and reads them once."""

import time
from collections import Counter

import pytest
from journal_world import STREAM, add, commit_on, fact

from jidomem.base import disk
from jidomem.base.disk import SETTLE
from jidomem.base.json_values import BRACKETS, check_turtle
from jidomem.errors import TooLarge
from jidomem.journal import commit as commits
from jidomem.journal import stream as looking
from jidomem.journal import stream_files
from jidomem.journal.commit import FormatError, file_name, parse
from jidomem.journal.journal import FileJournal
from jidomem.records.intent import Version

MANY = 2_000
NAME = "20261121T080000.000000Z-000000000000.ttl"
PACK = "pack-20261121T080000.000000Z-000000000000.ttl"
HEAD = commit_on(Version()).data.partition(b"\n\n")[0] + b"\n\n"
TOP = b"# jidomem pack 1\n# commits 1\n# first 2026-11-21T08:00:00.000000Z\n# last 2026-11-21T08:00:00.000000Z\n"


@pytest.fixture
def folder(tmp_path):
    add(FileJournal(tmp_path), "sound")
    return tmp_path / "projects/demo/memory"


@pytest.fixture
def work(monkeypatch):
    """Return the number of file reads, their bytes, and the number of file states read."""
    counts = Counter()

    def counted(name, real):
        def call(path, *more):
            result = real(path, *more)
            counts[name] += 1
            counts["bytes"] += len(result) if isinstance(result, bytes) else 0
            return result

        return call

    for name in ("read", "read_part"):
        monkeypatch.setattr(disk, name, counted("read", getattr(disk, name)))
    monkeypatch.setattr(stream_files.disk, "file_state", counted("file_state", disk.file_state))
    return counts


def sparse(path, size, head=b""):
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


@pytest.mark.parametrize(
    ("name", "head", "reason"),
    [
        (NAME, b"", "cannot be read: it has 3,000,000,000 bytes, more than 50,331,648"),
        (NAME, HEAD, "cannot be read: it has 3,000,000,000 bytes, more than 50,331,648"),
        (PACK, b"# jidomem pack 1\n# commits 1\n", "the top of a pack has at most 1,048,576 bytes"),
        (PACK, TOP + b"# tip x\n" * 200_000, "the top of a pack has at most 1,048,576 bytes"),
    ],
)
def test_an_oversized_commit_or_pack_header_is_damage_and_not_read(folder, work, name, head, reason):
    sparse(folder / name, 3_000_000_000, head)
    journal = FileJournal(folder.parents[2])

    (damage,) = journal.damage(STREAM)

    assert (damage.path, reason in damage.detail) == (str(folder / name), True)
    assert journal.head(STREAM).position == 1
    assert work["bytes"] < 6_000_000


def test_a_pack_with_an_oversized_table_or_document_is_damaged_and_not_read(folder, work):
    journal = FileJournal(folder.parents[2])
    for name in "abc":
        add(journal, name)
    journal.seal(STREAM)
    (pack,) = folder.glob("pack-*")
    top, _, rest = pack.read_bytes().partition(b"# table ")
    changed = top + b"# table 3000000000 " + rest.partition(b" ")[2]
    pack.unlink()
    end = changed.index(b"\n", changed.index(b"# blocks")) + 1
    name = f"{PACK[:-16]}{commits.blake2b(changed[:end], digest_size=32).hexdigest()[:12]}.ttl"
    name = name.replace("20261121T080000.000000Z", pack.name.split("-")[1])
    sparse(folder / name, 3_000_000_000 + len(changed), changed)

    (damage,) = (each for each in FileJournal(folder.parents[2]).damage(STREAM) if "table" in each.detail)

    assert "a table of 3,000,000,000 bytes; it has at most 8,388,608" in damage.detail
    assert work["bytes"] < 6_000_000


@pytest.mark.parametrize("bracket", [b"[a", b"(", b"<<(", b"[", b'"\\"" , [a', b"jido:a\\# [a", b"'\"' , [a"])
def test_brackets_in_brackets_are_refused_before_the_turtle_is_parsed(bracket, monkeypatch):
    monkeypatch.setattr(commits.pyoxigraph, "parse", lambda *data, **options: pytest.fail("it was parsed"))
    document = HEAD + b"<urn:jido:commit:" + b"0" * 64 + b">\n    jido:x " + bracket * 100_000 + b"\n"

    with pytest.raises(FormatError, match="brackets, or a text that is not written as this format does") as refused:
        parse(document)

    assert refused.value.line == 10


def test_texts_may_hold_any_number_of_brackets():
    text = "[(<<" * 10_000 + "\"\\'\n[(" * 1_000
    commit = commit_on(Version(), body=fact("code", text))

    assert parse(commit.data) == commit


def test_a_document_that_expands_beyond_its_limits_is_refused_during_parsing():
    rows = b"".join(b"    jido:p%d jido:x ;\n" % number for number in range(20_000))
    document = HEAD + b"<urn:x:" + b"0" * 100_000 + b">\n" + rows[:-2] + b".\n"

    with pytest.raises(FormatError, match="more than 300,000 triples, or 83,886,080 bytes of them"):
        parse(document)


def test_a_commit_beyond_the_limits_of_readers_is_not_built(monkeypatch):
    monkeypatch.setattr(commits, "TRIPLES_BUILT", 10)
    monkeypatch.setattr(commits, "BYTES_BUILT", 5_000)

    with pytest.raises(TooLarge, match=r"a commit of 1\d triples; it has at most 10") as refusal:
        commit_on(Version(), body=fact("a", *map(str, range(10))))
    with pytest.raises(TooLarge, match=r"a commit of \d,\d+ bytes; it has at most 5,000"):
        commit_on(Version(), body=fact("a", "x" * 5_000))

    assert refusal.value.hint
    assert commits.BYTES_BUILT + 72 * commits.TRIPLES_BUILT < commits.BYTES


def test_the_limits_leave_room_for_the_redacted_form_of_the_largest_commit():
    assert (commits.BYTES_BUILT, commits.TRIPLES_BUILT) == (24 << 20, 200_000)
    assert commits.BYTES_BUILT + 72 * commits.TRIPLES_BUILT < commits.BYTES <= disk.LARGEST
    assert commits.TRIPLES_BUILT < commits.TRIPLES


@pytest.mark.parametrize("spoil", ["empty", "line ends"])
def test_many_damaged_files_are_read_a_bounded_number_of_times(folder, work, spoil, monkeypatch):
    for number in range(MANY):
        name = f"20261121T08{number // 60:02}{number % 60:02}.000000Z-{number:012x}.ttl"
        (folder / name).write_bytes(b"" if spoil == "empty" else HEAD.replace(b"\n", b"\r\n"))
    settle(folder)
    now = time.time_ns()
    monkeypatch.setattr(looking, "time_ns", lambda: now)  # so that cached values stay valid
    journal = FileJournal(folder.parents[2])

    for _ in range(20):
        journal.head(STREAM)
        assert len(journal.damage(STREAM)) == MANY
    missed = set()
    assert len(list(journal.read(STREAM, missed=missed))) == 1

    assert len(missed) == MANY
    assert work["read"] < 4 * MANY
    assert work["file_state"] < 12 * MANY
    marked = work["file_state"]
    now += 10**9
    assert len(journal.damage(STREAM)) == MANY
    assert MANY <= work["file_state"] - marked < 3 * MANY  # after a while they are checked again


def test_many_commits_with_missing_parents_list_the_folder_once(folder, monkeypatch):
    lists = []
    real = disk.names
    monkeypatch.setattr(disk, "names", lambda path: (lists.append(path), real(path))[1])
    nowhere = commit_on(Version(), "nowhere")
    counts = []
    for number in range(1, 21):
        orphan = commit_on(Version.of([nowhere.head]), f"n{number}", second=number + 10)
        (folder / f"{orphan.recorded_at.replace('-', '').replace(':', '')}-{orphan.id[:12]}.ttl").write_bytes(
            orphan.data
        )
        lists.clear()
        assert len(FileJournal(folder.parents[2]).damage(STREAM)) == number
        counts.append(len(lists))

    assert counts[-1] <= counts[0]


@pytest.mark.parametrize("is_settled", [False, True])
def test_damage_found_by_a_read_changes_the_next_version(folder, is_settled):
    journal = FileJournal(folder.parents[2])
    second = add(journal, "second")
    third = add(journal, "third")
    spoiled = folder / file_name(second.head)
    spoiled.write_bytes(spoiled.read_bytes().replace(b"second", b"zecond"))
    if is_settled:
        settle(folder)
    another = FileJournal(folder.parents[2])
    assert another.head(STREAM) == Version.of([third.head])  # from the lock file, before any commit is read

    sound = [commit.id for commit in another.read(STREAM)]

    (damage,) = another.damage(STREAM)
    assert damage.path == str(spoiled)
    assert [head.id for head in another.head(STREAM).heads] == sound
    assert another.head(STREAM) == another.head(STREAM)


def test_a_file_restored_in_place_is_read_at_the_next_access(folder):
    (commit,) = folder.glob("*.ttl")
    sound = commit.read_bytes()
    commit.write_bytes(sound.replace(b"\n", b"\r\n"))
    (folder / ".lock").unlink()
    settle(folder)
    journal = FileJournal(folder.parents[2])
    assert len(journal.damage(STREAM)) == 1
    assert len(journal.damage(STREAM)) == 1

    commit.write_bytes(sound)

    assert journal.damage(STREAM) == ()
    assert journal.head(STREAM).position == 1


def test_a_commit_damaged_in_a_pack_is_read_from_its_own_file(folder):
    journal = FileJournal(folder.parents[2])
    commit = add(journal, "a")
    add(journal, "b")
    data = max(folder.glob("*.ttl"))
    journal.seal(STREAM)
    (pack,) = folder.glob("pack-*")
    pack.write_bytes(pack.read_bytes().replace(b'jido:summary "a"', b'jido:summary "x"'))
    settle(folder)
    journal = FileJournal(folder.parents[2])
    assert len(journal.verify(STREAM)) == 1
    assert len(journal.damage(STREAM)) == 1

    (folder / file_name(commit.head)).write_bytes(commit.data)

    assert data.exists()
    assert journal.damage(STREAM) == ()


@pytest.mark.parametrize(
    ("turtle", "line"),
    [
        (b"<urn:a> <urn:b> " + b"[ a " * 101, 1),
        (b"<urn:a> <urn:b>\n" + b"( " * 101, 2),
        (b"<urn:a> <urn:b> '" + b"[" * 200 + b"' .", None),
        (b'<urn:a> <urn:b> """"' + b"[" * 200 + b'""" .', None),
        (b"<urn:a> <urn:b> 'it\\'s " + b"[" * 200 + b"' .", None),
        (b"# it's\n<urn:a#b> <urn:b> " + b"[ a " * 101, 2),
        (b"<urn:a> <urn:b> a:b\\'c, " + b"[ a " * 101, 1),
        (b"<urn:a> <urn:b> " + b"[], " * 1_000, None),
    ],
)
def test_nested_brackets_are_counted_outside_of_texts(turtle, line):
    assert BRACKETS == 100
    if line is None:
        check_turtle(turtle)
        return
    with pytest.raises(SyntaxError, match="brackets in more than 100 others") as refused:
        check_turtle(turtle)
    assert refused.value.lineno == line


def settle(folder):
    """Wait until a further change of a folder changes its times."""
    time.sleep(2 * SETTLE / 1e9)
