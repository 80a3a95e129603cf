"""Lists on a terminal: no line is wider than the terminal, and every text is available completely."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from unicodedata import east_asian_width

import pytest
from cli_world import create_repository, run
from conftest import decision, intent
from forked_jidomem import programs

import jidomem
from jidomem_cli import output

WIDTH = 80
LONG = (
    "Keep the journal of a project in files that git can merge, and say of each commit who made it and why it was made"
)
WIDE = "日誌はファイルに書く、それぞれのコミットについて誰がなぜ作ったかを記録するために、そして統合できるように"
LISTS = [
    ["ask", "decisions"],
    ["ask", "facts"],
    ["ask", "tasks"],
    ["ask", "conventions"],
    ["ask"],
    ["ask", "active-decisions"],
    ["ask", "recent-decisions", "--limit", "2"],
    ["ask", "decision-log"],
    ["ask", "timeline", "--limit", "2"],
    ["recall", "journal"],
    ["recall", "journal", "--explain"],
    ["governing", "src/a.py"],
    ["review"],
    ["review", "--conflicts"],
    ["journal", "log"],
    ["journal", "diff", "--as-of", "0"],
]


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    folder = create_repository(tmp_path / "repo", monkeypatch)
    with jidomem.open() as memory:
        for number, text in enumerate((LONG, WIDE)):
            about = ["src/a.py", f"src/{'deep/' * 12}b{number}.py"]
            memory.writer.submit_intent("p", decision(summary=text, topic=f"journal {number}", about=about))
            memory.writer.submit_intent("p", intent(summary=f"journal: {text}", about=about))
            memory.writer.submit_intent(
                "p", intent(type="convention", summary=f"journal: {text}", convention_name=text, about=about)
            )
            memory.writer.submit_intent("p", intent(summary=f"journal, proposed: {text}", about=about), propose=True)
        rival = decision(summary=f"{LONG}, or not", topic="journal 0")
        memory.writer.submit_intent("p", rival, propose=True)
    return folder


#: Runs commands in order, and ends the output of each with a null character.
RUN_EACH = """
import json, sys
from contextlib import suppress
from jidomem_cli.main import cli
for words in json.loads(sys.argv[1]):
    with suppress(SystemExit):
        cli.main(words)
    print(end="\\0", flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def program(tmp_path_factory):
    """The program `jidomem`, which is forked, on PATH."""
    folder = tmp_path_factory.mktemp("program")
    with programs(folder):
        yield


def run_in_terminal(*args, columns=WIDTH):
    """Return the output of `jidomem ARGS` on a terminal of so many columns, and its standard error."""
    return run_command_in_terminal(["jidomem", *args], columns)


def run_command_in_terminal(command, columns):
    master, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        command, stdout=terminal, stderr=subprocess.PIPE, env=environment | {"NO_COLOR": "1"}
    ) as child:
        os.close(terminal)
        screen = b""
        while True:
            try:
                part = os.read(master, 65_536)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            screen += part
        stderr = child.stderr.read()
    os.close(master)
    assert child.returncode == 0, stderr
    return screen.decode().replace("\r\n", "\n"), stderr.decode()


def width_of(line):
    return sum(1 + (east_asian_width(sign) in "FW") for sign in line)


def test_no_line_of_a_list_is_wider_than_the_terminal():
    screen, stderr = run_command_in_terminal([sys.executable, "-c", RUN_EACH, json.dumps(LISTS)], WIDTH)

    *lists, end = screen.split("\0")
    assert (len(lists), end) == (len(LISTS), ""), stderr
    for args, printed in zip(LISTS, lists, strict=True):
        assert printed.strip(), (args, stderr)
        lines = [
            line for line in printed.splitlines() if not line.startswith("    jidomem ")
        ]  # commands for pasting are not cut
        assert [line for line in lines if width_of(line) > WIDTH] == [], args
        assert "https://jido.ai/memory/" not in printed, args


@pytest.mark.parametrize("columns", [1, 20, 40, 61, 200])
def test_the_width_of_any_terminal_from_20_columns_is_kept(columns):
    printed, _ = run_in_terminal("recall", "journal", columns=columns)

    if columns >= 20:
        assert [line for line in printed.splitlines() if width_of(line) > columns] == []


def test_a_cut_text_ends_in_an_ellipsis_and_is_complete_in_verbose_and_other_formats():
    printed, _ = run_in_terminal("ask", "decisions")
    verbose, _ = run_in_terminal("ask", "decisions", "-v", columns=WIDTH)

    assert f"{LONG[:20]}" in printed
    assert "…" in printed
    assert LONG not in printed
    assert LONG in verbose.replace("\n", "")
    assert LONG in run("ask", "decisions", "--format", "csv").stdout
    assert LONG in run("ask", "decisions", "--json").stdout
    assert LONG in run("ask", "decisions").stdout  # a pipe has no width


def test_the_columns_variable_limits_the_width_without_a_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")

    for line in run("ask", "decisions").stdout.splitlines():
        assert width_of(line) <= 50


def test_a_further_page_is_announced_in_a_line_and_verbose_prints_its_cursor():
    first = run("ask", "timeline", "--limit", "2")
    verbose = run("ask", "timeline", "--limit", "2", "-v")

    assert "more: raise --limit; -v shows the cursor" in first.stderr
    assert all(len(line) <= WIDTH for line in first.stderr.splitlines())
    cursor = next(line for line in verbose.stderr.splitlines() if line.startswith("more: --cursor ")).split()[2]
    assert run("ask", "timeline", "--limit", "2", "--cursor", cursor).exit_code == 0


def test_columns_hidden_on_a_narrow_terminal_are_named():
    _, message = run_in_terminal("recall", "journal")

    assert "hidden for lack of width: agent" in message


def test_the_topic_column_is_shown_if_there_are_topics_and_enough_width(monkeypatch):
    def header(*words):
        return run(*words).stdout.splitlines()[0].split()

    assert "topic" in header("ask", "decisions")
    assert "journal 0" in run("ask", "decisions").stdout
    assert "topic" not in header("ask", "facts")  # no fact has a topic
    monkeypatch.setenv("COLUMNS", "50")
    narrow = run("ask", "decisions")
    assert "topic" not in narrow.stdout.splitlines()[0]
    assert "hidden for lack of width: topic" in narrow.stderr


@pytest.mark.parametrize("verb", [["ask", "timeline"], ["journal", "log"]], ids=" ".join)
def test_a_narrow_list_shows_the_time_of_day(verb):
    printed, _ = run_in_terminal(*verb, columns=60)
    header, *rows = printed.splitlines()
    assert "recorded" in header, printed
    at = header.index("recorded")
    times = [row[at:] for row in rows if re.match(r"\d{4}-\d\d-\d\d", row[at:])]

    assert times
    assert all(re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?Z", row) for row in times)


def test_rows_of_the_same_minute_show_seconds():
    cells = [["one", "2026-11-24 03:52:12Z"], ["two", "2026-11-24 03:52:40Z"]]
    shortened = output.fitted(["summary", "recorded"], [["a text " * 5, row[1]] for row in cells], 50)[1]
    assert [row[1] for row in shortened] == [row[1] for row in cells]

    cells[1][1] = "2026-11-24 03:53:40Z"
    shortened = output.fitted(["summary", "recorded"], [["a text " * 5, row[1]] for row in cells], 50)[1]
    assert [row[1] for row in shortened] == ["2026-11-24 03:52Z", "2026-11-24 03:53Z"]


def test_a_memory_is_shown_completely_and_wrapped(repository):
    text = "One paragraph says a lot. " * 20 + "\n\n- and a list of more"
    with jidomem.open() as memory:
        item = memory.writer.submit_intent("p", decision(summary="Long", topic="long", rationale=text)).iri
    printed, _ = run_in_terminal("show", item, columns=60)

    assert " ".join(printed.split()).count("One paragraph says a lot.") == 20
    assert "- and a list of more" in printed
    assert [line for line in printed.splitlines() if width_of(line) > 60] == []


def test_a_long_text_in_a_pipe_is_complete_and_pads_no_other_row(repository):
    long = "the harbour master notes " * 20 + "every ship"
    for text in (long, "ships arrive"):
        assert run("remember", text).exit_code == 0

    lines = run("ask", "facts").stdout.splitlines()

    assert any(long in line for line in lines)
    assert all(len(line) < 200 for line in lines if long not in line)
