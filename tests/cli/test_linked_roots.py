"""A cloned root with a link to another folder: no verb reads, writes or removes a file there."""

import os
import shutil
import socket

import pytest
from click.testing import CliRunner
from conftest import files, intent
from every_verb import ROOTLESS, calls, verbs

import jidomem
from jidomem.errors import Failed
from jidomem.extras.transfer import move
from jidomem.extras.transfer.endpoints import FolderEnd
from jidomem.runtime import settings
from jidomem.runtime.location import init
from jidomem_cli.main import cli

SECRET = "-----BEGIN OPENSSH PRIVATE KEY-----"
FOLDERS = ("ontology", "shapes", "queries", "queries/mine", "projects", "projects/p", "projects/p/memory")
FOLDERS += ("index", "index/lists", "state", "state/turns", "cache", "cache/text")
FILES = ("config.toml", "baseline.toml", ".gitignore", ".gitattributes", "config.toml.lock", "ontology/own.ttl")
FILES += ("shapes/own.ttl", "queries/mine/own.rq", "queries/a/b/c/d.rq", "state/working.sqlite", "cache/text/p.sqlite")
KINDS = ("link", "loop", "pipe", "folder")
#: Files of the journal that the same verbs read or lock, and the kind of file in place of them.
JOURNAL = [(places, kind) for places in (("commit", "pack", "aside"), (".lock",)) for kind in KINDS]
JOURNAL += [((".seal.lock", ".incoming.lock"), kind) for kind in ("link", "pipe")]


@pytest.fixture
def home(tmp_path):
    """Return the home folder of the user, with private files."""
    folder = tmp_path / "home"
    (folder / "photos").mkdir(parents=True)
    (folder / "photos" / "one.ttl").write_text("dear")
    (folder / "id_rsa").write_text(f"{SECRET}\nkey = 1\n")
    return folder


def build(folder):
    with jidomem.open(init(folder, "p")) as memory:
        memory.writer.submit_intent("p", intent(summary="it is raining"))
        memory.writer.submit_intent("p", intent(summary="it is cold", about=["weather"]))


@pytest.fixture
def clone(tmp_path, monkeypatch, copy_built):
    """Return a root with two memories, in the working directory."""
    folder = copy_built(build, tmp_path / "clone")
    monkeypatch.chdir(folder)
    return folder / ".jidomem"


@pytest.fixture(scope="module")
def backup(tmp_path_factory):
    """Return the backup of an empty root."""
    folder = tmp_path_factory.mktemp("sound")
    move.backup(str(init(folder, "p")), folder / "backup.tar")
    return folder / "backup.tar"


@pytest.fixture
def places(tmp_path, clone, backup):
    """Yield the values of placeholders: the clone, a path without a file, a backup, a port in use."""
    (tmp_path / "file").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as busy:
        yield {
            "root": str(clone),
            "parent": str(clone.parent),
            "free": str(tmp_path / "made"),
            "file": str(tmp_path / "file"),
            "backup": str(backup),
            "busy": str(busy.getsockname()[1]),
        }


def place_link(place, target):
    """Put a link to *target* in place of a file or folder of a root."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        shutil.rmtree(place)
    place.unlink(missing_ok=True)
    place.symlink_to(target)


def outcomes(chosen, places, free, *options):
    """Yield the result of each verb on the root, and the files created at *free*, which are removed again."""
    for call in chosen:
        named = (
            ("--root", places["root"]) if call.verb == "root restore" else options
        )  # it restores into no existing root
        words = [*call.words(**places), *(named if call.verb != "init" else ())]
        result = CliRunner().invoke(cli, words, input="")
        created = files(free) if free.is_dir() else {}
        created |= {"made": free.read_bytes()} if free.is_file() else {}
        yield call.verb, result.exit_code, result.stdout + result.stderr, b"".join(created.values())
        shutil.rmtree(free, ignore_errors=True)
        free.unlink(missing_ok=True)


def check_refusal_of_every_verb(places, tmp_path, *options, word="is a symbolic link"):
    failures = {}
    for verb, code, output, created in outcomes(calls(), places, tmp_path / "made", *options):
        if (code in (1, 3), word in output, SECRET in output, created) != (True, True, False, b""):
            failures[verb] = (code, output[:300])
    assert not failures, "\n".join(f"{verb}: {each}" for verb, each in failures.items())


def test_every_verb_is_listed_as_called_or_rootless():
    assert {verb for verb, _ in verbs()} == {call.verb for call in calls()} | set(ROOTLESS)


@pytest.mark.parametrize("place", FOLDERS)
def test_every_verb_refuses_a_root_with_a_linked_folder(places, clone, home, tmp_path, place):
    place_link(clone / place, home)
    before = files(home)

    check_refusal_of_every_verb(places, tmp_path, "--root", str(clone))

    assert files(home) == before


@pytest.mark.parametrize("place", FILES)
def test_every_verb_refuses_a_root_with_a_linked_file(places, clone, home, tmp_path, place):
    place_link(clone / place, home / "id_rsa")
    before = files(home)

    check_refusal_of_every_verb(places, tmp_path, "--root", str(clone))

    assert files(home) == before


@pytest.mark.parametrize("target", ["nowhere", "queries"])
def test_every_verb_refuses_a_broken_or_circular_link(places, clone, tmp_path, target):
    place_link(clone / "queries", clone / target)

    check_refusal_of_every_verb(places, tmp_path, "--root", str(clone))

    assert not (clone / "nowhere").exists()


@pytest.mark.parametrize("options", [["--root", "{}"], []], ids=["named", "found"])
def test_every_verb_refuses_a_root_that_is_itself_a_link(places, clone, home, tmp_path, monkeypatch, options):
    clone.rename(home / "memory")
    clone.symlink_to(home / "memory")
    before = files(home)

    check_refusal_of_every_verb(places, tmp_path, *(word.format(clone) for word in options))

    assert files(home) == before


@pytest.mark.parametrize("place", ["config.toml", "baseline.toml", "ontology/own.ttl", "queries/mine/own.rq"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_every_verb_refuses_a_pipe_or_a_folder_in_place_of_a_file(places, clone, tmp_path, place, make):
    (clone / place).parent.mkdir(parents=True, exist_ok=True)
    (clone / place).unlink(missing_ok=True)
    make(clone / place)

    check_refusal_of_every_verb(places, tmp_path, "--root", str(clone), word="is not a file")


@pytest.mark.parametrize(("names", "kind"), JOURNAL)
def test_no_verb_follows_a_link_in_the_journal_or_hangs_or_fails_with_a_bug(places, clone, home, tmp_path, names, kind):
    stream = clone / "projects" / "p" / "memory"
    commits = {"commit": min(stream.glob("*.ttl")).name, "pack": f"pack-20261121T080000.000000Z-{'0' * 12}.ttl"}
    commits["aside"] = f"20261121T080000.000000Z-{'0' * 12}.ttl.aside"
    for file in (stream / commits.get(name, name) for name in names):
        file.unlink(missing_ok=True)
        {
            "link": lambda file: file.symlink_to(home / "id_rsa"),
            "loop": lambda file: file.symlink_to(file.name),
            "pipe": os.mkfifo,
            "folder": os.mkdir,
        }[kind](file)
    before = files(home)

    failures = {}
    chosen = [call for call in calls() if call.verb != "mcp"]  # it would read the standard input of this process
    for verb, code, output, created in outcomes(chosen, places, tmp_path / "made", "--root", str(clone)):
        if SECRET in output or SECRET.encode() in created or "this is a bug" in output:
            failures[verb] = (code, output[:300])
    assert not failures, "\n".join(f"{verb}: {each}" for verb, each in failures.items())
    assert files(home) == before


@pytest.mark.parametrize("place", ["", *FOLDERS, *FILES])
def test_every_python_function_that_opens_a_root_refuses_a_link(clone, home, tmp_path, monkeypatch, place):
    if place:
        place_link(clone / place, home if place in FOLDERS else home / "id_rsa")
    else:
        clone.rename(home / "memory")
        clone.symlink_to(home / "memory")
    monkeypatch.setenv("JIDOMEM_ROOT", str(clone))

    for opening in (
        lambda: jidomem.open(clone),
        jidomem.open,
        lambda: settings.load(clone),
        lambda: move.backup(str(clone), tmp_path / "made"),
        lambda: move.migrate(str(clone), str(tmp_path / "made")),
        lambda: move.migrate(str(tmp_path / "other"), str(clone)),
    ):
        with pytest.raises(Failed, match="is a symbolic link") as refused:
            opening()
        assert (refused.value.code, str(clone) in refused.value.detail) == ("invalid_config", True)
        assert not (tmp_path / "made").exists()


def test_the_folder_endpoint_of_a_migration_reads_nothing_through_a_link(clone, home):
    for name in ("queries", "shapes", "ontology"):
        (clone / name).symlink_to(home)

    assert SECRET.encode() not in b"".join(data for _, data in FolderEnd(clone).files())


def test_a_root_behind_a_linked_folder_is_opened(clone, tmp_path, monkeypatch):
    (tmp_path / "linked").symlink_to(clone.parent)
    monkeypatch.chdir(tmp_path / "linked")

    with jidomem.open(tmp_path / "linked" / ".jidomem") as named, jidomem.open() as default:
        assert named.settings.root == default.settings.root == clone
