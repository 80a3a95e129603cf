"""The installed command as a process: exit codes, signals, pipes, terminals."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import pytest
from cli_world import INTENTS, create_repository, run

from jidomem_cli.main import COMMANDS

JIDOMEM = str(Path(sys.executable).parent / "jidomem")


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repo", monkeypatch)


def call(*args, **options):
    return subprocess.run([JIDOMEM, *args], capture_output=True, text=True, timeout=60, **options)


def test_data_goes_to_stdout_and_messages_to_stderr_with_the_exit_code_of_the_error_table():
    stored = call("remember", "the queue is bounded")
    refused = call("remember", "Use Jena", "--type", "decision", "--json")

    assert (stored.returncode, stored.stdout.count("\n"), "asserted" in stored.stderr) == (0, 1, True)
    assert (refused.returncode, refused.stderr) == (3, "")
    assert json.loads(refused.stdout)["code"] == "missing_rationale"
    assert call("show", "00000000").returncode == 4
    assert call("nothing").returncode == 2


def test_help_has_the_short_option_too():
    assert call("-h").stdout == call("--help").stdout
    assert call("ask", "-h").stdout == call("ask", "--help").stdout != ""


def test_a_closed_pipe_ends_the_command_without_a_message(repository):
    (repository / "many.jsonl").write_text(
        "".join(json.dumps({**INTENTS[0], "about": [str(n)]}) + "\n" for n in range(300))
    )
    assert call("submit", "-q", "many.jsonl").returncode == 0

    command = f"set -o pipefail; {JIDOMEM} ask facts --format jsonl | head -1"
    piped = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    closed = subprocess.run(["bash", "-c", f"{JIDOMEM} ask facts | true; echo ${{PIPESTATUS[0]}}"], capture_output=True)

    assert piped.stdout.count("\n") == 1
    assert piped.stderr == ""
    assert closed.stderr == b""
    assert closed.stdout in (b"0\n", b"141\n")


def test_an_interrupt_exits_with_130_and_no_traceback():
    # A background job of a shell ignores interrupts, and so do its children: this one has to receive them.
    interruptible = [
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(2, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    command = [*interruptible, JIDOMEM, "submit", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until = time.monotonic() + 20
        while "pipe" not in Path(f"/proc/{process.pid}/wchan").read_text() and time.monotonic() < until:
            time.sleep(0.01)  # until it waits for standard input, which stays open
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        message = process.stderr.read().decode()

    assert "interrupted" in message
    assert "Traceback" not in message


def test_a_table_header_is_bold_on_a_terminal_and_plain_in_a_pipe():
    reader, writer = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR")
    subprocess.run([JIDOMEM, "ask", "tasks"], stdout=writer, env=environment, check=True)
    subprocess.run([JIDOMEM, "ask", "tasks", "--no-color"], stdout=writer, env=environment, check=True)
    os.close(writer)
    output = os.read(reader, 20_000).decode()
    os.close(reader)

    plain = call("ask", "tasks").stdout
    colored, colorless = (page.partition("Ship the importer")[0] for page in output.split("Planned")[:2])
    assert "\x1b[1m" in colored
    assert "\x1b[" not in colorless
    assert "\x1b" not in plain


def test_a_server_started_on_a_terminal_explains_itself_on_stderr():
    reader, writer = pty.openpty()
    with subprocess.Popen([JIDOMEM, "mcp"], stdin=writer, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
        lines = [server.stderr.readline().decode() for _ in range(2)]
        server.send_signal(signal.SIGINT)
        output = server.stdout.read()
    os.close(reader)
    os.close(writer)

    assert lines[0].endswith("(stop with Ctrl-C)\n")
    assert lines[1].endswith("jidomem setup claude\n")
    assert output == b""


@pytest.fixture
def failing_verb(monkeypatch):
    import click

    from jidomem_cli.options import Command

    @click.command(cls=Command)
    def explode():
        raise RuntimeError("the gasket gave way")

    module = types.ModuleType("jidomem_cli.explode")
    module.explode = explode
    monkeypatch.setitem(sys.modules, "jidomem_cli.explode", module)
    monkeypatch.setitem(COMMANDS, "explode", ("explode:explode", "Fail."))


@pytest.mark.usefixtures("failing_verb")
def test_a_bug_is_reported_in_one_line_and_with_a_traceback_in_verbose_mode():
    plain, verbose, as_json = run("explode"), run("explode", "-v"), run("--json", "explode")

    assert (plain.exit_code, plain.stdout) == (1, "")
    assert plain.stderr.count("\n") == 1
    assert "RuntimeError: the gasket gave way; this is a bug" in plain.stderr
    assert "Traceback" in verbose.stderr
    assert json.loads(as_json.stdout)["code"] == "internal_error"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_printed_for_each_shell(shell):
    printed = run("completion", shell)

    assert printed.exit_code == 0
    assert "_JIDOMEM_COMPLETE" in printed.stdout
    assert shell in printed.stdout


def test_a_shell_completes_a_verb():
    environment = {**os.environ, "_JIDOMEM_COMPLETE": "bash_complete", "COMP_WORDS": "jidomem rem", "COMP_CWORD": "1"}

    assert "remember" in call(env=environment).stdout


def test_redirected_input_and_output_is_utf_8_in_any_locale():
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    stored = call("remember", "łódź → 木", env=environment)

    assert stored.returncode == 0, stored.stderr
    listed = subprocess.run([JIDOMEM, "ask", "facts", "--format", "csv"], capture_output=True, env=environment)
    assert "łódź → 木".encode() in listed.stdout


def test_closed_standard_streams_are_treated_as_empty():
    command = f"{JIDOMEM} submit <&-; echo $?; {JIDOMEM} status >&-; echo $?; {JIDOMEM} bogus 2>&-; echo $?"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True)

    assert result.stdout == "2\n0\n2\n"
    assert "bug" not in result.stderr


def test_progress_is_shown_on_a_terminal_only(repository):
    (repository / "two.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in INTENTS))
    reader, writer = pty.openpty()
    subprocess.run([JIDOMEM, "submit", "two.jsonl"], stderr=writer, stdout=subprocess.DEVNULL, check=True)
    os.close(writer)
    output = os.read(reader, 20_000).decode()
    os.close(reader)

    assert re.search(r"━━━ 2 submitted, 0 refused \S+/s 0:00:00", re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output))
    assert "\r" not in call("submit", "two.jsonl").stderr
