"""Faults planted in a small root: each is reported once at its place, and no other memory is reported."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import decision, intent

import jidomem
from jidomem.journal.journal import Stream
from jidomem.runtime.location import init
from jidomem_cli.main import cli

EDITED = "hash mismatch: edited after it was written"
MOVED = "holds a commit to be named "
MEMORY = Path(".jidomem/projects/p/memory")
#: The line of a commit with its id: reported where no original of the file exists.
ID_LINE = 9


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def run(*arguments):
    return CliRunner().invoke(cli, [str(word) for word in arguments])


@pytest.fixture(scope="module")
def sample_root(tmp_path_factory):
    """A root of six commits, in which later ones add statements to earlier memories."""
    folder = tmp_path_factory.mktemp("made")
    with jidomem.open(init(folder, "p")) as memory:
        submit = memory.writer.submit_intent
        first = submit("p", intent(summary="one ä")).iri
        store = submit("p", decision(topic="store")).iri
        third = submit("p", intent(summary="three", about=[first])).iri
        memory.writer.correct("p", third, supersede="three, again", reason="counted anew")
        newer = submit("p", decision(summary="Use SQLite", topic="store", supersedes=[store])).iri
        submit("p", decision(summary="Use DuckDB", topic="store", supersedes=[newer], evidence=[first]))
    return folder


@pytest.fixture(scope="module")
def sample_repository(sample_root, tmp_path_factory):
    """The same root, committed to git."""
    folder = shutil.copytree(sample_root, tmp_path_factory.mktemp("made") / "repository")
    git("init", "-q", folder)
    git("-C", folder, "add", "-A")
    git("-C", folder, "commit", "-qm", "begin")
    return folder


def files():
    return sorted(MEMORY.glob("2*.ttl"))


def lines(file):
    return file.read_bytes().split(b"\n")


def line_with(file, part):
    return next(number for number, line in enumerate(lines(file), 1) if part in line)


def substitute(file, old, new):
    """The line in which *old* was replaced."""
    number, data = line_with(file, old), file.read_bytes()
    file.write_bytes(data.replace(old, new, 1))
    return number


def sealed_pack():
    with jidomem.open(".jidomem") as memory:
        memory.journal.seal(Stream("p"))
    (pack,) = MEMORY.glob("pack-*.ttl")
    return pack


# Each plants a fault and returns its place: the file, the line with git, the line without, the start of the message.


def a_hand_edited_literal():
    file = files()[0]
    return [(file, substitute(file, "one ä".encode(), b"uno"), ID_LINE, EDITED)]


def a_literal_of_a_superseded_memory():
    file = files()[2]
    return [(file, substitute(file, b'"three"', b'"four"'), ID_LINE, EDITED)]


def an_edited_header():
    file = files()[1]
    line = substitute(file, b"# nonce", b"# nonze")
    return [(file, line, line, EDITED)]


def an_edited_nonce():
    file = files()[1]
    nonce = re.search(rb"# nonce ([0-9a-f]{64})", file.read_bytes())[1]
    return [(file, substitute(file, nonce, nonce[::-1]), ID_LINE, EDITED)]


def an_edited_id():
    file = files()[1]
    short = file.stem.rpartition("-")[2].encode()
    line = substitute(file, b"commit:" + short, b"commit:" + short[::-1])
    return [(file, line, line, EDITED)]


def a_truncated_file():
    file = files()[2]
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    return [(file, len(lines(file)), len(lines(file)), "hash mismatch: its end is missing")]


def a_duplicated_file():
    file = files()[2]
    copy = shutil.copy(file, file.with_name(f"21{file.name[2:]}"))
    return [(copy, 1, 1, MOVED)]


def a_renamed_file():
    file = files()[2]
    return [(file.rename(file.with_name(f"21{file.name[2:]}")), 1, 1, MOVED)]


def a_wrong_parent():
    first, file = files()[0], files()[3]
    own = re.search(rb"urn:jido:commit:([0-9a-f]{64})", first.read_bytes())[1]
    parent = re.search(rb"jido:parent <urn:jido:commit:([0-9a-f]{64})", file.read_bytes())[1]
    return [(file, substitute(file, parent, own), ID_LINE, EDITED)]


def a_missing_parent():
    gone, child = files()[2:4]
    line = line_with(child, b"jido:parent")
    gone.unlink()
    is_tracked = Path(".git").exists()
    words = "the commit " if is_tracked else "its parent "
    return [(gone if is_tracked else child, None, line, words)]


def rewritten_line_ends():
    file = files()[2]
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    return [(file, 1, 1, "its line ends were rewritten")]


def a_byte_order_mark():
    file = files()[2]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    return [(file, 1, 1, EDITED)]


def a_deleted_line():
    file = files()[1]
    line = line_with(file, b"jido:rationale")
    file.write_bytes(b"\n".join([*lines(file)[: line - 1], *lines(file)[line:]]))
    return [(file, line, ID_LINE, EDITED)]


def two_swapped_files():
    one, other = files()[1:3]
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)
    return [(file, 1, 1, MOVED) for file in (one, other)]


def invalid_utf_8():
    file = files()[0]
    line = substitute(file, "ä".encode(), b"\xe4")
    return [(file, line, line, EDITED)]


def an_edited_pack():
    pack = sealed_pack()
    document = line_with(pack, b"# jidomem journal 1")
    within = [number for number, line in enumerate(lines(pack), 1) if line == b"# jidomem journal 1"]
    edited = substitute(pack, b"Use SQLite", b"Use MySQL!")
    start = max(number for number in within if number < edited)
    assert document < edited
    return [(pack, start + ID_LINE - 1, start + ID_LINE - 1, EDITED)]


def a_truncated_pack():
    pack = sealed_pack()
    pack.write_bytes(pack.read_bytes()[:-200])
    return [(pack, len(lines(pack)), len(lines(pack)), "")]


def an_edited_pack_table():
    pack = sealed_pack()
    line = substitute(pack, b"# commit ", b"# kommit ")
    return [(pack, line, line, EDITED)]


def an_edited_record_of_a_redaction():
    assert run("journal", "redact", "--text", "three", "--reason", "not for all").exit_code == 0
    file = files()[-1]
    substitute(file, b"not for all", b"for nobody")
    return [(file, ID_LINE, ID_LINE, EDITED)]


def an_edited_redacted_form():
    assert run("journal", "redact", "--text", "SQLite", "--reason", "not for all").exit_code == 0
    file = next(each for each in files() if ".redacted." in each.name)
    substitute(file, b"it embeds", b"it is there")
    return [(file, None, None, EDITED)]


def a_future_date():
    file = files()[-1]
    return [(file, substitute(file, b'jido:recordedAt "2', b'jido:recordedAt "3'), ID_LINE, EDITED)]


def an_added_triple():
    file = files()[1]
    before = len(lines(file))
    file.write_bytes(file.read_bytes() + b'\n<https://jido.ai/memory/x>\n    a jido:Fact ;\n    jido:summary "s" .\n')
    return [(file, before + 1, ID_LINE, EDITED)]


def merge_conflict_marks():
    file = files()[1]
    text = lines(file)
    file.write_bytes(b"\n".join([*text[:11], b"<<<<<<< HEAD", text[11], b"=======", b">>>>>>> topic", *text[11:]]))
    return [(file, 12, None, "git left the marks of a conflict in line 12")]


def an_empty_file():
    file = files()[2]
    file.write_bytes(b"")
    return [(file, 1, 1, "the file is empty")]


def an_unreadable_file():
    file = files()[2]
    file.unlink()
    file.mkdir()
    return [(file, None, None, "cannot be read")]


def a_foreign_file():
    file = MEMORY / "notes.ttl"
    file.write_text('<urn:x:a> <urn:x:b> "c" .\n')
    return [(file, 1, 1, "not a jidomem journal file")]


FAULTS = [
    a_hand_edited_literal, a_literal_of_a_superseded_memory, an_edited_header, an_edited_nonce, an_edited_id,
    a_truncated_file, a_duplicated_file, a_renamed_file, a_wrong_parent, a_missing_parent, rewritten_line_ends,
    a_byte_order_mark, a_deleted_line, two_swapped_files, invalid_utf_8, an_edited_pack,
    a_truncated_pack, an_edited_pack_table, an_edited_record_of_a_redaction,
    an_edited_redacted_form, a_future_date, an_added_triple, merge_conflict_marks, an_empty_file,
    an_unreadable_file, a_foreign_file,
]  # fmt: skip


@pytest.fixture(params=[True, False], ids=["in git", "without git"])
def in_git(request, tmp_path, monkeypatch):
    """Whether the root in the working directory is in git."""
    original = request.getfixturevalue("sample_repository" if request.param else "sample_root")
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return request.param


def test_the_root_without_a_fault_has_no_findings(in_git):
    assert json.loads(run("check", "--json").stdout)["problems"] == []


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_planted_fault_is_the_only_finding_at_its_file_and_line(plant, in_git):
    expected = plant()

    result = run("check", "--json")
    report = json.loads(result.stdout)
    findings = [(each["path"], each["rule"].rpartition("#")[2]) for each in report["problems"]]
    assert result.exit_code == 1
    assert sorted(findings) == sorted((str(path), "JournalIsIntact") for path, *_ in expected)
    for path, line_with_git, line_without_git, message_start in expected:
        (problem,) = [each for each in report["problems"] if each["path"] == str(path)]
        line = line_with_git if in_git else line_without_git
        assert problem["message"].startswith(message_start)
        assert line is None or problem["line"] == line


def test_a_violation_of_an_intact_memory_is_reported_beside_damage_of_another(sample_root, tmp_path, monkeypatch):
    shutil.copytree(sample_root, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    shapes = Path(".jidomem/shapes")
    shapes.mkdir(exist_ok=True)
    (shapes / "topic.ttl").write_text("""\
@prefix jido: <https://jido.ai/ontology#> . @prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix ex: <https://example.org/shapes#> .
ex:FactHasTopic a sh:NodeShape ; sh:targetClass jido:Fact ; sh:property ex:FactHasATopic .
ex:FactHasATopic a sh:PropertyShape ; sh:path jido:topic ; sh:minCount 1 ; sh:message "Give this fact a topic." .
""")
    substitute(files()[1], b"Use Oxigraph", b"Use Oxigraff")

    rules = {each["rule"].rpartition("#")[2] for each in json.loads(run("check", "--json").stdout)["problems"]}

    assert rules == {"JournalIsIntact", "FactHasATopic"}
