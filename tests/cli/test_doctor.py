"""`jidomem status --doctor`: each fault in words, with what to do, and nothing touched."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
from datetime import timedelta

import pytest
from click.testing import CliRunner
from conftest import fixed_sources, intent

import jidomem
from jidomem.base.clock import Sources, format_timestamp, now
from jidomem.entries import Entry, WriteRequest
from jidomem.journal.journal import Stream
from jidomem.records.policy import PolicyChange
from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem_cli.main import cli


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A root in a repository that git keeps, with one memory in it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    monkeypatch.chdir(folder)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    made = init(folder, "p")
    with jidomem.open(made, sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent())
    return made


def doctor(*options, code=0):
    """The looks of `jidomem status --doctor --json`, by name: those that are not ok, and all of them."""
    done = CliRunner().invoke(cli, ["status", "--doctor", "--json", *options])
    assert done.exit_code == code, done.output
    told = json.loads(done.stdout)
    assert told["ok"] is (code == 0)
    bad = {each["name"]: each for each in told["checks"] if each["level"] != "ok"}
    assert all(each["hint"] for each in bad.values())
    return bad, {each["name"]: each["detail"] for each in told["checks"]}


def state(root):
    """Every file and folder of a root: its bytes, when it was changed, and its mode."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (data, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
    return found


def test_a_sound_root_is_told_to_be_one_and_nothing_of_it_is_touched(root):
    before, own = state(root), state(own_config().parent) if own_config().parent.exists() else None

    bad, told = doctor()
    doctor("--full")
    words = CliRunner().invoke(cli, ["status", "--doctor"])

    bad.pop("disk", None)  # how full the disk is, is its own affair
    bad.pop("port", None)
    assert bad == {}
    assert [*told] == [
        "python", "packages", "extras", "root", "permissions", "disk", "file system", "config", "journal", "clock",
        "index", "leftovers", "cache", "git", "clients", "tokens", "model", "embedder", "port",
    ]  # fmt: skip
    assert told["root"] == f"{root} (found in or above the working directory)"
    assert "pyoxigraph 0.5" in told["packages"]
    assert words.exit_code == 0
    assert list(dict.fromkeys(line[6:19].strip() for line in words.stdout.splitlines())) == [*told]  # a line an extra
    assert all(line.split()[0] == "ok" for line in words.stdout.splitlines() if "disk" not in line)
    assert state(root) == before
    assert own_config().parent.exists() == (own is not None)


def test_no_root_and_a_configuration_that_cannot_be_read_fail_and_the_rest_is_looked_at(root, tmp_path):
    bad, _ = doctor("--root", str(tmp_path / "none"), code=1)
    assert bad["root"]["hint"].endswith("jidomem init")

    (root / "config.toml").write_text('projct = "p"\n')
    bad, told = doctor(code=1)
    assert (bad["config"]["level"], bad["config"]["hint"]) == ("fail", "did you mean 'project'?")
    assert told["journal"].startswith("p/memory is at 1-")


def test_damage_shows_in_full_and_says_what_to_do(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    commit.write_bytes(commit.read_bytes().replace(b"Rust", b"Rost"))

    bad, _ = doctor("--full", code=1)

    assert bad["journal"]["level"] == "fail"
    assert commit.name in bad["journal"]["detail"]


def test_what_may_go_wrong_soon_is_a_warning_and_no_failure(root):
    with jidomem.open(root, sources=Sources(lambda: now() + timedelta(hours=1))) as ahead:
        ahead.writer.submit_intent("p", intent(summary="from tomorrow"))
    (root / ".gitattributes").unlink()
    (root / "projects" / "p" / "memory" / "x.ttl.aside").touch()
    root.chmod(0o777)

    bad, _ = doctor()

    assert {name for name, each in bad.items() if each["level"] == "warn"} >= {
        "clock", "git", "leftovers", "permissions",
    }  # fmt: skip
    assert bad["git"]["hint"] == f"echo 'projects/** -text' >> {root / '.gitattributes'}"
    assert bad["permissions"]["hint"] == f"chmod -R o-w {root}"


def test_what_a_fast_clock_wrote_is_dated_rightly_by_the_commands_that_are_given(root):
    ahead = Sources(lambda: now() + timedelta(days=400))
    with jidomem.open(root, sources=ahead) as memory:
        early = memory.writer.submit_intent("p", intent(summary="from a fast clock")).iri
    with jidomem.open(root) as memory:
        memory.writer.revise("p", early, changes={"summary": "corrected since"}, reason="measured")
        memory.writer.submit_intent("p", intent(summary="written since"))
        assert memory.journal.head(Stream("p")).recorded_at > format_timestamp(now() + timedelta(days=399))
        before = memory.reader.ask("facts", project="p", include_inactive=True)
    bad, _ = doctor()
    assert "2 more after it" in bad["clock"]["detail"]
    others = CliRunner().invoke(cli, ["journal", "verify", "--quarantine", "0123456789ab", "--reason", "r"])
    assert others.exit_code == 4

    for command in bad["clock"]["hint"].partition(": ")[2].split(" && "):
        done = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output

    bad, told = doctor()
    assert ("clock" in bad, "journal" in bad) == (False, False), told
    with jidomem.open(root) as memory:
        assert memory.journal.verify(Stream("p")) == ()
        assert memory.journal.head(Stream("p")).recorded_at < format_timestamp(now() + timedelta(days=1))
        after = memory.reader.ask("facts", project="p", include_inactive=True)
        assert sorted(map(str, after)) == sorted(map(str, before))


def test_the_repair_of_a_fast_clock_repeats_redactions_and_names_what_is_lost(root):
    with jidomem.open(root, agent="ana") as memory:
        memory.writer.submit_intent("p", intent(summary="the code is 4711", asserted_by="ana"))
    with jidomem.open(root, agent="ana", sources=Sources(lambda: now() + timedelta(days=400))) as ahead:
        ahead.writer.submit_intent("p", intent(summary="from a fast clock", asserted_by="ana"))
        ahead.keeper.redact(ahead.keeper.plan("p", None, texts=["4711"]), agent="ana", reason="a code")
        ahead.writer.change_policy("p", [PolicyChange(kind="convention", allows="propose")])

    loss, _, commands = doctor()[0]["clock"]["hint"].partition(": ")
    for command in commands.split(" && "):
        done = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert done.exit_code == 0, done.output

    assert loss == "with the clocks set, and with the loss of 1 policy change"
    verified = CliRunner().invoke(cli, ["journal", "verify"])
    assert verified.exit_code == 0, verified.output


def test_a_fast_clock_of_entries_and_turns_is_told_with_their_numbers(root):
    with jidomem.open(root, agent="ana", sources=Sources(lambda: now() + timedelta(hours=2))) as ahead:
        for text in ("one", "two"):
            ahead.entries.write(WriteRequest(Entry(agent_id="ana", content=text)))
        ahead.conversation("talk", "p").record("which door?", "the blue one", asked_by="ana", answered_by="ana")

    hints = json.loads(CliRunner().invoke(cli, ["journal", "verify", "--json"]).stdout)

    assert "or lose 2 entries and 1 conversation turn: jidomem journal verify" in str(hints)


#: A process whose permissions count, also that of uid 0.
BOUND = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


def bound(root, *words, code):
    """What a process prints whose permissions count."""
    command = [*BOUND, sys.executable, "-c", "from jidomem_cli.main import main; main()", *words]
    done = subprocess.run(command, cwd=root.parent, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("closed", ["projects/p/memory", "projects/p"])
def test_a_folder_that_may_not_be_read_is_repaired_by_the_command_that_is_given(root, closed):
    folder = root / closed
    folder.chmod(0)
    told = [
        *(bound(root, *words, code=1) for words in (["ask", "facts"], ["journal", "verify"], ["status"])),
        bound(root, "status", "--doctor", code=1),
    ]
    mended = f"chmod u+rwx {folder}"
    assert all(mended in each and "bug" not in each for each in told), told

    subprocess.run(mended, shell=True, check=True)
    assert "needs Rust" in bound(root, "ask", "facts", code=0)


def test_a_commit_that_may_not_be_read_is_no_reason_for_a_backup(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    commit.chmod(0)

    told = bound(root, "journal", "verify", code=7)

    assert f"hint: chmod u+rw {commit} && jidomem journal verify" in told
    assert "backup" not in told


def test_a_read_only_disk_is_not_reported_as_wrong_permissions(root):
    kept = root.with_name("mounted")
    shutil.copytree(root, kept / ".jidomem")
    if subprocess.run(["mount", "--bind", "-o", "ro", kept, kept], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        done = CliRunner().invoke(cli, ["--root", str(kept / ".jidomem"), "status", "--doctor", "--json"])
    finally:
        subprocess.run(["umount", kept], check=True)

    (found,) = (each for each in json.loads(done.stdout)["checks"] if each["name"] == "permissions")
    assert "mounted read-only" in found["detail"]
    assert "uid" not in found["detail"]
    assert found["hint"] == "remount that disk writable, or use another root"


def test_a_commit_by_a_right_clock_is_not_quarantined(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    done = CliRunner().invoke(cli, ["journal", "verify", "--quarantine", commit.name, "--reason", "r"])
    assert (done.exit_code, commit.exists()) == (4, True)


def test_a_file_of_tokens_that_others_can_read_fails(root):
    secret, _ = Keyring(own_config(), root).give_out("ana", "agent", ["p"], Sources())
    _, told = doctor()
    assert told["tokens"] == f"1 for this root, in {own_config()}"

    own_config().chmod(0o644)
    bad, _ = doctor(code=1)

    assert bad["tokens"]["hint"] == f"chmod 600 {own_config()}"
    assert secret not in json.dumps(bad)


def test_a_root_whose_last_token_was_revoked_has_a_warning(root):
    ring = Keyring(own_config(), root)
    ring.take_back(ring.give_out("ana", "agent", ["p"], Sources())[1].id)

    bad, _ = doctor()

    assert (bad["tokens"]["level"], "refuse every request" in bad["tokens"]["detail"]) == ("warn", True)


def test_who_listens_at_its_port_is_told(root, monkeypatch):
    from jidomem.serve import listener

    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(listener, "PORT", other.getsockname()[1])
        monkeypatch.setattr("jidomem.runtime.doctor._SECONDS", 0.1)
        bad, _ = doctor()
        assert bad["port"]["detail"].startswith("another program listens at 127.0.0.1:")
    command = [f"{os.path.dirname(sys.executable)}/jidomem", "serve", "--port", "0", "--json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        monkeypatch.setattr("jidomem.runtime.doctor._SECONDS", 30)
        monkeypatch.setattr(listener, "PORT", int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1]))
        _, told = doctor()
        process.terminate()
    assert told["port"].endswith("is served by jidomem")


def test_the_index_of_a_large_journal_is_told_by_its_snapshots(root, monkeypatch):
    for module in ("jidomem.index.follower", "jidomem.runtime.doctor"):
        monkeypatch.setattr(f"{module}.ON_DISK_BYTES", 100)
    bad, _ = doctor()
    assert bad["index"]["hint"] == "jidomem root reindex"

    assert CliRunner().invoke(cli, ["root", "reindex"]).exit_code == 0
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(summary="later"))
    before = state(root)
    bad, told = doctor()

    assert "index" not in bad
    assert told["index"].endswith("the newest snapshot is 1 commits behind")
    assert state(root) == before
