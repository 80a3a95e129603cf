"""The help is correct: every example runs, and the reference page is generated from the verbs."""

import json
import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest
from cli_world import create_repository, run, write_example_files
from forked_jidomem import programs

from docs.generate.command_line import markdown
from jidomem_cli.main import COMMANDS, cli

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repo", monkeypatch)


def verbs(command=cli, name="jidomem", parent=None):
    context = click.Context(command, info_name=name, parent=parent)
    if parent is not None:
        yield context.command_path, command
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            yield from verbs(command.get_command(context, below), below, context)


ALL = dict(verbs())
RUN_ELSEWHERE = ["jidomem serve", "jidomem mcp", "jidomem demo"]  # by tests/serve and test_demo.py
FINITE_VERBS = [path for path, verb in ALL.items() if not isinstance(verb, click.Group) and path not in RUN_ELSEWHERE]


#: The shared root of the examples, which is replaced by a real one.
SHARED = "postgresql://db/team"


@pytest.fixture
def with_real_address(request, repository, monkeypatch):
    """Return a function that replaces the shared root of an example by a real one."""

    def with_real_address(line):
        if SHARED not in line:
            return line
        from jidomem.extras.servers import addresses

        monkeypatch.setenv("JIDOMEM_HOME", str(repository / "home"))
        address = request.getfixturevalue("postgres").address()
        log = addresses.open_log(address, os.environ)
        addresses.change(log, lambda files: {"shapes/old.ttl": "<urn:a> <urn:b> <urn:c> .\n"})
        log.close()
        (repository / "team").mkdir(exist_ok=True)
        assert run("init", repository / "team").exit_code == 0
        return line.replace(SHARED, f"'{address}'")

    return with_real_address


def examples(command):
    text = command.help.partition("Examples:\n")[2]
    return [line.strip() for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program `jidomem`, which is forked, on PATH."""
    folder = tmp_path_factory.mktemp("program")
    with programs(folder):
        yield


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("path", FINITE_VERBS)
def test_the_examples_in_a_help_text_run_in_order(path, repository, with_real_address):
    write_example_files(repository)
    lines = [with_real_address(line) for line in examples(ALL[path])]
    assert lines, f"{path} --help shows no example"
    for line in lines:
        assert "jidomem" in line
        if "|" in line:
            process = subprocess.run(["bash", "-o", "pipefail", "-c", line], capture_output=True)
            assert process.returncode == 0, process.stderr
        else:
            result = run(*shlex.split(line)[1:])
            assert result.exit_code == 0, f"{line}: {result.stderr or result.stdout}"


@pytest.mark.parametrize("path", FINITE_VERBS)
def test_each_verb_prints_json_objects_with_json(path, repository, with_real_address):
    write_example_files(repository)
    line = with_real_address(next(line for line in examples(ALL[path]) if "|" not in line and "--format" not in line))

    answer = run("--json", *shlex.split(line)[1:])

    assert answer.exit_code == 0, answer.stderr
    assert all(isinstance(json.loads(text), dict) for text in answer.stdout.splitlines())


@pytest.mark.parametrize("path", [path for path, command in ALL.items() if isinstance(command, click.Group)])
def test_the_examples_of_a_command_group_run(path, repository, with_real_address):
    write_example_files(repository)
    for line in map(with_real_address, examples(ALL[path])):
        assert run(*shlex.split(line)[1:]).exit_code == 0, line


def test_the_reference_page_is_generated_from_the_verbs():
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")

    assert page == markdown(), "run: python -m docs.generate command_line"


def test_help_is_printed_without_loading_heavy_libraries():
    code = (
        "import sys\nfrom jidomem_cli.main import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "print([name for name in ('pyoxigraph', 'rdflib', 'rich', 're2', 'jidomem') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.splitlines()[-1] == "[]"
    assert all(name in printed for name in COMMANDS)


def run_in_one_process(commands, heavy):
    """Run *commands* in order in one process; return the output, and the loaded modules that start with *heavy*."""
    code = (
        "import gc, sys\nfrom jidomem_cli.main import cli\n"
        f"for words in {commands}:\n"
        "    try:\n        cli.main(words)\n    except SystemExit as end:\n        assert end.code == 0, words\n"
        f"print(gc.isenabled(), [name for name in sys.modules if name.startswith({heavy})])"
    )
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_a_query_loads_no_modules_for_writing_validation_or_serving(repository):
    assert run("remember", "the build needs Rust 1.80", "--about", "a.py").exit_code == 0
    heavy = ("rdflib", "pyshacl", "flask", "rich", "numpy", "re2", "asyncio", "http", "jidomem.exchange",
             "jidomem.serve", "jidomem.records.recall", "jidomem.records.entry", "jidomem.records.differences",
             "jidomem.schema.shacl_compiler", "jidomem.write", "jidomem.runtime.similar", "jidomem.runtime.tiers",
             "jidomem.models", "jidomem.rdf.turtle", "difflib", "fractions", "logging", "ssl", "socket")  # fmt: skip
    commands = [["ask", "facts", "--limit", "5"], ["ask"], ["governing", "a.py"], ["journal", "log"]]
    printed = run_in_one_process(commands, heavy)

    assert "the build needs Rust 1.80" in printed
    assert printed.splitlines()[-1] == "True []"


def test_a_recall_with_the_local_embedder_loads_no_endpoint_and_no_rules_for_keywords(repository, monkeypatch):
    monkeypatch.setenv("JIDOMEM_EMBEDDER", "local")
    assert run("remember", "the build needs Rust 1.80", "--about", "a.py").exit_code == 0
    assert "1.80" in run("recall", "which Rust?").stdout  # its texts have vectors from now on
    heavy = ("h11", "ssl", "socket", "email", "concurrent", "jidomem.base.http_client", "jidomem.models.endpoint",
             "jidomem.models.embeddings", "jidomem.models.keywords", "jidomem.runtime.similar")  # fmt: skip
    printed = run_in_one_process([["recall", "which Rust?"]], heavy)

    assert "the build needs Rust 1.80" in printed
    assert printed.splitlines()[-1] == "True []"


def test_the_guard_loads_neither_the_index_nor_the_reader_while_its_cache_is_current(repository):
    assert run("remember", "Never print here.", "--type", "convention", "--about", "a.py").exit_code == 0
    time.sleep(0.1)  # the cache is not written for files changed just now
    assert "Never print here." in run("guard", "a.py", "--session", "first").stdout
    heavy = ("pyoxigraph", "numpy", "jidomem.index", "jidomem.journal", "jidomem.read", "jidomem.schema",
             "jidomem.write", "jidomem.records.intent", "jidomem.recall.briefing")  # fmt: skip
    printed = run_in_one_process([["guard", "a.py", "--session", "second"]], heavy)

    assert "Never print here." in printed
    assert printed.splitlines()[-1] == "True []"


def test_jidomem_alone_prints_its_help():
    assert run().stdout == run("--help").stdout
    assert run().exit_code == 0


@pytest.mark.parametrize(
    ("args", "nearest"),
    [(["inti"], "init"), (["access", "policy", "gran"], "grant"), (["remember", "x", "--topc", "y"], "--topic")],
)
def test_an_unknown_word_is_refused_with_the_nearest_one_and_the_help_option(args, nearest):
    result = run(*args)

    assert result.exit_code == 2
    assert nearest in result.stderr
    assert "--help" in result.stderr
    assert result.stdout == ""


def listed_commands(help_text):
    """Return the commands in a help text, each a name at the beginning of an indented line."""
    return re.findall(r"^  ([a-z]+) {2,}\S", help_text.partition("Begin:")[2], re.MULTILINE)


@pytest.mark.parametrize(
    ("args", "detail"),
    [
        (("ask", "facts", "--limit", "two"), "--limit is a whole number of at least 1, not 'two'"),
        (("ask", "facts", "--limit", "0"), "--limit is a whole number of at least 1, not 0"),
        (("serve", "--workers", "999"), "--workers is a whole number from 1 to 256, not 999"),
        (("remember", "x", "--wait", "soon"), "--wait is a number from 0 to 86,400, not 'soon'"),
        (("remember", "x", "--wait", "nan"), "--wait is a number from 0 to 86,400"),
    ],
)
def test_an_invalid_number_option_is_refused_with_its_range(args, detail):
    assert f"error: {detail}\n" in run(*args).stderr


def test_the_help_lists_at_most_twenty_commands_and_names_the_rest_below():
    output = run("--help").stdout

    assert len(listed_commands(output)) <= 20
    assert {*listed_commands(output)} | {"demo", "completion"} == {*COMMANDS}
    assert "jidomem demo" in output.splitlines()[-3]
    assert "jidomem completion SHELL" in output.splitlines()[-2]


#: A command of an earlier version -> its replacement.
REPLACEMENTS = {
    "sparql": "ask --sparql", "memory": "ask decisions", "history": "show ID --history", "why": "show ID --why",
    "log": "journal log", "diff": "journal diff", "verify": "journal verify", "replay": "journal replay",
    "pack": "journal pack", "redact": "journal redact", "rollback": "journal rollback", "revise": "edit",
    "briefing": "agent briefing", "session": "agent session", "working": "agent working",
    "conversation": "agent conversation", "os": "agent memoryos", "policy": "access policy", "token": "access token",
    "trust": "access trust", "conflicts": "review --conflicts", "doctor": "status --doctor", "migrate": "root migrate",
    "backup": "root backup", "restore": "root restore", "reindex": "root reindex", "import": "root import",
    "export": "root export", "list": "ask timeline", "search": "recall",
}  # fmt: skip


@pytest.mark.parametrize("word", REPLACEMENTS)
def test_a_former_command_is_refused_with_its_replacement(word):
    result = run(word, "x")

    assert (result.exit_code, result.stdout) == (2, "")
    assert f"no such command: {word}\n" in result.stderr
    assert f"did you mean: jidomem {REPLACEMENTS[word]}" in result.stderr


#: First words of the help of a command.
IMPERATIVES = {
    "Abandon", "Accept", "Add", "Allow", "Answer", "Apply", "Change", "Check", "Close", "Compare", "Complete",
    "Connect", "Copy", "Create", "Delete", "Download", "Find", "Grant", "Import", "Issue", "List", "Look", "Manage",
    "Move", "Open", "Pack", "Pause", "Print", "Propose", "Read", "Rebuild", "Record", "Reject", "Remove", "Replay",
    "Report", "Restore", "Resume", "Revoke", "Run", "Serve", "Set", "Show", "Submit", "Supersede", "Trust", "Upload",
    "Verify", "Write",
}  # fmt: skip
#: Options with several meanings by command -> their number.
MEANINGS = {
    "--about": 3, "--agent": 3, "--all": 5, "--first": 2, "--from": 3, "--kind": 3, "--session": 2, "--since": 2,
    "--status": 2, "--to": 2, "--type": 2,
    "--as-of": 2, "--project": 2,  # two moments to compare, and the projects of a token
}  # fmt: skip


@pytest.mark.parametrize("path", ALL)
def test_the_help_of_a_command_begins_with_a_verb_and_every_option_has_help(path):
    options = [param for param in ALL[path].params if isinstance(param, click.Option)]

    assert ALL[path].help.split()[0].strip(",") in IMPERATIVES
    assert [option.opts for option in options if not option.help] == []
    assert [option.opts for option in options if not option.help.endswith(".") and option.name != "help"] == []


def test_an_option_of_one_name_has_one_meaning_one_metavar_and_one_help():
    meanings = {}
    options = [param for command in (cli, *ALL.values()) for param in command.params if isinstance(param, click.Option)]
    for option in options:
        text = re.sub(r" \(default: [^)]*\)", "", option.help)
        for name in option.opts:
            meanings.setdefault(name, set()).add((text, option.metavar, option.is_flag))

    assert {name: len(each) for name, each in meanings.items() if len(each) > 1} == MEANINGS
