"""A root shared by a group: files created by one of two real users are usable by the other."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

ANA, BOB, EVE, TEAM, OTHERS = 2001, 2002, 2003, 3000, 3001
PROCESS = str(Path(__file__).with_name("user_process.py"))

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")


class User:
    """A process of a user that runs command lines."""

    def __init__(self, process, root):
        self._process, self._root = process, root

    def run(self, *words, code=0):
        self._process.stdin.write(json.dumps(["--root", str(self._root), *words]) + "\n")
        self._process.stdin.flush()
        exit_code, out, err = json.loads(self._process.stdout.readline())
        assert exit_code == code, (words, out, err)
        return out + err


@contextmanager
def user(uid, root, *, group=TEAM, large=2**21, embedder="local"):
    home = root.parent.parent / f"home-{uid}"
    home.mkdir(exist_ok=True)
    os.chown(home, uid, uid)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("JIDOMEM_", "XDG_"))},
        "HOME": str(home), "JIDOMEM_EMBEDDER": embedder, "USER": f"u{uid}",
    }  # fmt: skip
    # the process may read the code anywhere; write access depends on its ids only
    reading = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]
    ids = ["--reuid", str(uid), "--regid", str(uid), "--groups", str(group)]
    command = ["setpriv", *ids, *reading, sys.executable, PROCESS, str(large)]
    with subprocess.Popen(
        command, stdin=-1, stdout=-1, text=True, env=environment, cwd=root.parent, umask=0o022
    ) as process:
        assert process.stdout.readline() == "ready\n"
        yield User(process, root)
        process.stdin.close()


@pytest.fixture
def root():
    """Yield a new root in a repository that TEAM may write to, created with the umask 022."""
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o755)
        folder = Path(place, "repository", ".jidomem")
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text('project = "p"\nread_log = true\n')
        for path in (folder.parent, folder, folder / "config.toml"):
            os.chown(path, ANA, TEAM)
            path.chmod(0o2775 if path.is_dir() else 0o664)
        yield folder


#: Commands that create files in a root: journal, working state, turns, text index and vectors, the rules of the
#: guard, lists, snapshots, packs, the configuration.
FILE_COMMANDS = [
    ["remember", "The build needs Rust {user}", "--type", "fact"],
    [
        "remember",
        "Pools are small, says {user}",
        "--type",
        "convention",
        "--enforcement-level",
        "Strict",
        "--about",
        "src",
    ],
    ["agent", "working", "put", "language", "{user}"],
    ["agent", "working", "add", "ask about the index"],
    ["agent", "briefing"],
    ["recall", "Rust"],
    ["agent", "conversation", "record", "evening", "--prompt", "a word of {user}"],
    ["guard", "src/a.py"],
    ["ask", "facts"],
    ["agent", "memoryos", "add", "I like tea, said {user}", "Good"],
    ["root", "reindex"],
    ["journal", "pack"],
    ["journal", "verify"],
]


def inaccessible_paths(root):
    """Return the paths of a root that its group may not read and write, or that belong to another group."""
    paths = [path for path in root.rglob("*") if "/store/" not in str(path) or "/snapshots/" in str(path)]
    return [
        (str(path.relative_to(root)), oct(s.st_mode), s.st_gid)
        for path in paths
        if (s := path.stat()).st_gid != TEAM or s.st_mode & 0o060 != 0o060
    ]


@pytest.mark.parametrize(("large", "mode"), [(2**21, 0o2775), (0, 0o775)], ids=["in memory", "on disk, no setgid"])
def test_files_created_by_one_user_of_a_group_are_usable_by_another(root, large, mode):
    root.chmod(mode)
    with user(BOB, root, large=large) as bob, user(ANA, root, large=large) as ana:
        for each, name in ((bob, "Bob"), (ana, "Ana"), (bob, "Bob again")):
            for words in FILE_COMMANDS:
                each.run(*(word.format(user=name) for word in words))
        assert "ask about the index" in ana.run("agent", "working", "tasks")
        assert inaccessible_paths(root) == []
        assert "can be read and written (uid 2001)" in ana.run("status", "--doctor")


def test_files_created_by_uid_0_belong_to_the_owner_of_the_root(root):
    root.chmod(0o755)
    with user(0, root, group=0) as administrator, user(ANA, root) as ana:
        administrator.run("remember", "CI runs on ARM", "--type", "fact")
        administrator.run("agent", "working", "put", "language", "en")

        ana.run("remember", "CI runs at night", "--type", "fact")
        ana.run("agent", "working", "put", "language", "de")
    assert {(path.stat().st_uid, path.stat().st_gid) for path in root.rglob("*")} == {(ANA, TEAM)}


PUT = ["agent", "working", "put", "language", "fr"]


def test_a_refusal_names_an_unwritable_path_and_its_hint_repairs_it(root):
    with user(ANA, root, embedder="none") as ana:
        ana.run("remember", "CI runs on ARM", "--type", "fact")
        ana.run(*PUT)

    with user(BOB, root, embedder="none") as bob:
        for path, words in (
            ("state/working.sqlite", PUT),
            ("state", PUT),
            ("projects/p/memory/.lock", ["remember", "CI runs on Sundays", "--type", "fact"]),
            ("projects/p/memory", ["remember", "CI runs on Mondays", "--type", "fact"]),
        ):
            unwritable = root / path
            os.chown(unwritable, ANA, ANA)
            unwritable.chmod(0o755 if unwritable.is_dir() else 0o644)

            message, doctor = bob.run(*words, code=1), bob.run("status", "--doctor")
            hint = message.partition("hint: ")[2].strip()
            mode, bits = ("0755", "g+rwxs") if unwritable.is_dir() else ("0644", "g+rw")
            assert f"uid {BOB} may not read and write {unwritable} (mode {mode}, {ANA}:{ANA})" in message
            assert hint == f"sudo chgrp {TEAM} {unwritable} && sudo chmod {bits} {unwritable}"
            assert hint in doctor
            subprocess.run(hint.replace("sudo ", ""), shell=True, check=True)
            bob.run(*words)


def test_a_user_outside_the_group_of_a_root_is_given_the_command_to_become_its_owner(root):
    with user(ANA, root) as ana:
        ana.run(*PUT)
    with user(EVE, root, group=OTHERS) as eve:
        message = eve.run(*PUT, code=1)
        assert (
            f"uid {EVE} may not read and write {root}/state (mode 2775, {ANA}:{TEAM}), {root}/state/working.sqlite ("
            in message
        )
        subprocess.run(message.partition("hint: ")[2].replace("sudo ", ""), shell=True, check=True)
        eve.run(*PUT)
