"""`jidomem status --doctor` reports each fault with a hint and changes no file."""

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
from jidomem.errors import JournalDamaged
from jidomem.journal.journal import Stream
from jidomem.records.policy import PolicyChange
from jidomem.runtime.location import init
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem_cli.main import cli


def build(folder):
    """Make a git repository that has a root with one memory."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    with jidomem.open(init(folder, "p"), sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent())


@pytest.fixture
def root(tmp_path, monkeypatch, copy_built):
    """Return a root with one memory; its repository is the working directory."""
    folder = copy_built(build, tmp_path / "repository")
    monkeypatch.chdir(folder)
    return folder / ".jidomem"


def doctor(*options, code=0):
    """Return the checks of `jidomem status --doctor --json` by name: those with a fault, and the details of all."""
    result = CliRunner().invoke(cli, ["status", "--doctor", "--json", *options])
    assert result.exit_code == code, result.output
    report = json.loads(result.stdout)
    assert report["ok"] is (code == 0)
    faults = {each["name"]: each for each in report["checks"] if each["level"] != "ok"}
    assert all(each["hint"] for each in faults.values())
    return faults, {each["name"]: each["detail"] for each in report["checks"]}


def state(root):
    """Return the bytes, times and mode of every file and folder of a root."""
    files = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        files[str(path)] = (data, status.st_mtime_ns, status.st_ctime_ns, status.st_mode)
    return files


def test_a_sound_root_passes_every_check_and_is_left_unchanged(root):
    before, own_before = state(root), state(own_config().parent) if own_config().parent.exists() else None

    faults, details = doctor()
    doctor("--full")
    printed = CliRunner().invoke(cli, ["status", "--doctor"])

    faults.pop("disk", None)  # the free space of the disk is independent of the root
    faults.pop("port", None)
    assert faults == {}
    assert [*details] == [
        "python", "packages", "extras", "root", "permissions", "disk", "file system", "config", "journal", "clock",
        "index", "leftovers", "cache", "git", "clients", "tokens", "model", "embedder", "port",
    ]  # fmt: skip
    assert details["root"] == f"{root} (found in or above the working directory)"
    assert "pyoxigraph 0.5" in details["packages"]
    assert printed.exit_code == 0
    assert list(dict.fromkeys(line[6:19].strip() for line in printed.stdout.splitlines())) == [
        *details
    ]  # one line for each extra
    assert all(line.split()[0] == "ok" for line in printed.stdout.splitlines() if "disk" not in line)
    assert state(root) == before
    assert own_config().parent.exists() == (own_before is not None)


def test_a_missing_root_and_an_unreadable_configuration_fail_and_other_checks_run(root, tmp_path):
    faults, _ = doctor("--root", str(tmp_path / "none"), code=1)
    assert faults["root"]["hint"].endswith("jidomem init")

    (root / "config.toml").write_text('projct = "p"\n')
    faults, details = doctor(code=1)
    assert (faults["config"]["level"], faults["config"]["hint"]) == ("fail", "did you mean 'project'?")
    assert details["journal"].startswith("p/memory is at 1-")


def test_a_damaged_commit_fails_the_full_check_with_its_file_name(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    commit.write_bytes(commit.read_bytes().replace(b"Rust", b"Rost"))

    faults, _ = doctor("--full", code=1)

    assert faults["journal"]["level"] == "fail"
    assert commit.name in faults["journal"]["detail"]


@pytest.mark.parametrize("place", [0, 1])
def test_a_commit_for_which_writes_are_refused_fails_the_quick_check(root, place):
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(summary="second"))
    commits = sorted((root / "projects" / "p" / "memory").glob("*.ttl"))
    commits[place].write_bytes(commits[place].read_bytes()[:100])
    with jidomem.open(root) as memory, pytest.raises(JournalDamaged):
        memory.writer.submit_intent("p", intent(summary="third"))

    faults, details = doctor(code=1)

    assert faults["journal"]["level"] == "fail"
    assert commits[place].name in faults["journal"]["detail"]
    assert "sound" not in details["journal"]


def test_a_risk_is_a_warning_and_no_failure(root):
    with jidomem.open(root, sources=Sources(lambda: now() + timedelta(hours=1))) as ahead:
        ahead.writer.submit_intent("p", intent(summary="from tomorrow"))
    (root / ".gitattributes").unlink()
    (root / "projects" / "p" / "memory" / "x.ttl.aside").touch()
    root.chmod(0o777)

    faults, _ = doctor()

    assert {name for name, each in faults.items() if each["level"] == "warn"} >= {
        "clock", "git", "leftovers", "permissions",
    }  # fmt: skip
    assert faults["git"]["hint"] == f"echo 'projects/** -text' >> {root / '.gitattributes'}"
    assert faults["permissions"]["hint"] == f"chmod -R o-w {root}"


def test_the_hinted_commands_correct_the_dates_of_memories_written_by_a_fast_clock(root):
    ahead = Sources(lambda: now() + timedelta(days=400))
    with jidomem.open(root, sources=ahead) as memory:
        early = memory.writer.submit_intent("p", intent(summary="from a fast clock")).iri
    with jidomem.open(root) as memory:
        memory.writer.revise("p", early, changes={"summary": "corrected since"}, reason="measured")
        memory.writer.submit_intent("p", intent(summary="written since"))
        assert memory.journal.head(Stream("p")).recorded_at > format_timestamp(now() + timedelta(days=399))
        before = memory.reader.ask("facts", project="p", include_inactive=True)
    faults, _ = doctor()
    assert "2 more after it" in faults["clock"]["detail"]
    unrelated = CliRunner().invoke(cli, ["journal", "verify", "--quarantine", "0123456789ab", "--reason", "r"])
    assert unrelated.exit_code == 4

    for command in faults["clock"]["hint"].partition(": ")[2].split(" && "):
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output

    faults, details = doctor()
    assert ("clock" in faults, "journal" in faults) == (False, False), details
    with jidomem.open(root) as memory:
        assert memory.journal.verify(Stream("p")) == ()
        assert memory.journal.head(Stream("p")).recorded_at < format_timestamp(now() + timedelta(days=1))
        after = memory.reader.ask("facts", project="p", include_inactive=True)
        assert sorted(map(str, after)) == sorted(map(str, before))


def test_the_hint_of_verify_keeps_a_memory_that_is_dated_more_than_100_years_ahead(root):
    for days in (27_000, 55_000):  # the clock of a machine may be wrong by a century at most
        with jidomem.open(root, sources=Sources(lambda days=days: now() + timedelta(days=days))) as ahead:
            ahead.writer.submit_intent("p", intent(summary=f"from a fast clock, {days} days ahead"))
    with jidomem.open(root) as memory, pytest.raises(JournalDamaged) as refusal:
        memory.writer.submit_intent("p", intent(summary="after it"))
    assert refusal.value.hint.endswith("to keep them, run the commands in the hint of: jidomem journal verify")

    (report,) = json.loads(CliRunner().invoke(cli, ["journal", "verify", "--json"]).stdout)["findings"]
    for command in report["hint"].partition(": ")[2].split(" && "):
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output

    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(summary="after it"))
        facts = {row["summary"] for row in memory.reader.ask("facts", project="p")}
    assert {"from a fast clock, 27000 days ahead", "from a fast clock, 55000 days ahead", "after it"} <= facts


def test_the_repair_of_a_fast_clock_repeats_redactions_and_names_the_lost_policy_change(root):
    with jidomem.open(root, agent="ana") as memory:
        memory.writer.submit_intent("p", intent(summary="the code is 4711", asserted_by="ana"))
    with jidomem.open(root, agent="ana", sources=Sources(lambda: now() + timedelta(days=400))) as ahead:
        ahead.writer.submit_intent("p", intent(summary="from a fast clock", asserted_by="ana"))
        ahead.maintenance.redact(ahead.maintenance.plan("p", None, texts=["4711"]), agent="ana", reason="a code")
        ahead.writer.change_policy("p", [PolicyChange(kind="convention", allows="propose")])

    loss, _, commands = doctor()[0]["clock"]["hint"].partition(": ")
    for command in commands.split(" && "):
        result = CliRunner().invoke(cli, shlex.split(command)[1:])
        assert result.exit_code == 0, result.output

    assert loss == "with the clocks set, and with the loss of 1 policy change"
    verified = CliRunner().invoke(cli, ["journal", "verify"])
    assert verified.exit_code == 0, verified.output


def test_a_fast_clock_is_reported_with_the_numbers_of_entries_and_turns(root):
    with jidomem.open(root, agent="ana", sources=Sources(lambda: now() + timedelta(hours=2))) as ahead:
        for text in ("one", "two"):
            ahead.entries.write(WriteRequest(Entry(agent_id="ana", content=text)))
        ahead.conversation("talk", "p").record("which door?", "the blue one", asked_by="ana", answered_by="ana")

    hints = json.loads(CliRunner().invoke(cli, ["journal", "verify", "--json"]).stdout)

    assert "or lose 2 entries and 1 conversation turn: jidomem journal verify" in str(hints)


#: A command prefix for a process that is subject to file permissions, also as uid 0.
UNPRIVILEGED = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.geteuid() == 0 else []


#: Runs commands in order, and prints the exit code and the output of each.
RUN_EACH = """
import json, sys
from click.testing import CliRunner
from jidomem_cli.main import cli
ends = [CliRunner().invoke(cli, words) for words in json.loads(sys.argv[1])]
print(json.dumps([[end.exit_code, end.output] for end in ends]))
"""


def run_as_user(root, commands):
    """Return the outputs of a process that is subject to file permissions; *commands* have their exit codes."""
    command = [*UNPRIVILEGED, sys.executable, "-c", RUN_EACH, json.dumps([line.split() for line in commands])]
    result = subprocess.run(command, cwd=root.parent, capture_output=True, text=True, check=True)
    ends = json.loads(result.stdout)
    assert [code for code, _ in ends] == [*commands.values()], ends
    return [output for _, output in ends]


@pytest.mark.parametrize("closed", ["projects/p/memory", "projects/p"])
def test_an_unreadable_folder_is_repaired_by_the_printed_command(root, closed):
    folder = root / closed
    folder.chmod(0)
    outputs = run_as_user(root, dict.fromkeys(("ask facts", "journal verify", "status", "status --doctor"), 1))
    repair = f"chmod u+rwx {folder}"
    assert all(repair in each and "bug" not in each for each in outputs), outputs

    subprocess.run(repair, shell=True, check=True)
    assert "needs Rust" in run_as_user(root, {"ask facts": 0})[0]


def test_an_unreadable_commit_suggests_no_backup(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    commit.chmod(0)

    output, checked = run_as_user(root, {"journal verify": 7, "status --doctor --json": 1})

    assert f"hint: chmod u+rw {commit} && jidomem journal verify" in output
    assert "backup" not in output
    faults = {each["name"]: each for each in json.loads(checked)["checks"] if each["level"] == "fail"}
    assert (faults.keys(), faults["permissions"]["hint"]) == ({"permissions", "journal"}, f"chmod u+rw {commit}")


def test_an_unreadable_configuration_is_repaired_by_the_printed_command(root):
    config = root / "config.toml"
    config.chmod(0)

    (output,) = run_as_user(root, {"ask facts": 1})

    assert f"error: {config}: cannot be read: Permission denied\n" in output
    assert f"hint: chmod u+rw {config}\n" in output


def test_a_read_only_disk_is_not_reported_as_wrong_permissions(root):
    mount = root.with_name("mounted")
    shutil.copytree(root, mount / ".jidomem")
    if subprocess.run(["mount", "--bind", "-o", "ro", mount, mount], capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        result = CliRunner().invoke(cli, ["--root", str(mount / ".jidomem"), "status", "--doctor", "--json"])
    finally:
        subprocess.run(["umount", mount], check=True)

    (permissions,) = (each for each in json.loads(result.stdout)["checks"] if each["name"] == "permissions")
    assert "mounted read-only" in permissions["detail"]
    assert "uid" not in permissions["detail"]
    assert permissions["hint"] == "remount that disk writable, or use another root"


def test_a_commit_by_a_right_clock_is_not_quarantined(root):
    (commit,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    result = CliRunner().invoke(cli, ["journal", "verify", "--quarantine", commit.name, "--reason", "r"])
    assert (result.exit_code, commit.exists()) == (4, True)


def test_a_token_file_readable_by_others_fails(root):
    secret, _ = Keyring(own_config(), root).issue("ana", "agent", ["p"], Sources())
    _, details = doctor()
    assert details["tokens"] == f"1 for this root, in {own_config()}"

    own_config().chmod(0o644)
    faults, _ = doctor(code=1)

    assert faults["tokens"]["hint"] == f"chmod 600 {own_config()}"
    assert secret not in json.dumps(faults)


def test_a_root_with_its_last_token_revoked_has_a_warning(root):
    ring = Keyring(own_config(), root)
    ring.revoke(ring.issue("ana", "agent", ["p"], Sources())[1].id)

    faults, _ = doctor()

    assert (faults["tokens"]["level"], "refuse every request" in faults["tokens"]["detail"]) == ("warn", True)


def test_the_program_that_listens_at_the_port_is_named(root, monkeypatch):
    from jidomem.serve import listener

    with socket.create_server(("127.0.0.1", 0)) as other:
        monkeypatch.setattr(listener, "PORT", other.getsockname()[1])
        monkeypatch.setattr("jidomem.runtime.doctor._SECONDS", 0.1)
        faults, _ = doctor()
        assert faults["port"]["detail"].startswith("another program listens at 127.0.0.1:")
    command = [f"{os.path.dirname(sys.executable)}/jidomem", "serve", "--port", "0", "--json", "-q"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        monkeypatch.setattr("jidomem.runtime.doctor._SECONDS", 30)
        monkeypatch.setattr(listener, "PORT", int(json.loads(process.stdout.readline())["url"].rsplit(":", 1)[1]))
        _, details = doctor()
        process.terminate()
    assert details["port"].endswith("is served by jidomem")


def test_the_index_check_names_a_missing_or_outdated_snapshot_of_a_large_journal(root, monkeypatch):
    for module in ("jidomem.index.follower", "jidomem.runtime.doctor"):
        monkeypatch.setattr(f"{module}.ON_DISK_BYTES", 100)
    faults, _ = doctor()
    assert faults["index"]["hint"] == "jidomem root reindex"

    assert CliRunner().invoke(cli, ["root", "reindex"]).exit_code == 0
    with jidomem.open(root) as memory:
        memory.writer.submit_intent("p", intent(summary="later"))
    before = state(root)
    faults, details = doctor()

    assert "index" not in faults
    assert details["index"].endswith("the newest snapshot is 1 commits behind")
    assert state(root) == before
