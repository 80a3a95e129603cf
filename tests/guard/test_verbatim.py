"""A pattern and a command are stored unchanged by every interface, and checked unchanged."""

import json
import shlex

import pytest
from guard_world import convention, denied, hooked, repository_at, run

import jidomem
from jidomem.exchange import documents
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.runtime.location import init
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSession, call
from jidomem.serve.mcp.tools import TOOLS

PATTERN, COMMAND = r"^\s*puts ", " sh -c 'exit 0'  "
CHECKS = {"forbidsPattern": PATTERN, "requiresPattern": "\t", "checkCommand": COMMAND}
REMEMBER = next(tool for tool in TOOLS if tool.name == "remember")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    return repository_at(tmp_path / "repo", monkeypatch)


def stored(repository):
    """Return the checks of the only active convention."""
    with jidomem.open(repository / ".jidomem") as memory:
        (row,) = memory.reader.ask("conventions", project="p")
        properties = memory.reader.get_memory("p", row["conv"])["properties"]
    return {name: properties[name] for name in CHECKS}


def by_command_line(repository):
    words = ["--forbids", PATTERN, "--requires", "\t", "--check-command", COMMAND]
    assert run("remember", "No puts", "--type", "convention", "--about", "src", *words).exit_code == 0


def by_submit(repository):
    intent = convention("No puts", "src", **CHECKS)
    done = run("submit", "-", stdin=json.dumps({**intent, "applies_to_project": "p"}))
    assert done.exit_code == 0, done.stderr


def by_short_form(repository):
    extra = [[f"jido:{name}", text] for name, text in CHECKS.items()]
    with jidomem.open(repository / ".jidomem") as memory:
        memory.writer.submit_intent("p", {**convention("No puts", "src"), "extra_triples": extra})


def by_http(repository):
    with jidomem.open(repository / ".jidomem") as memory:
        client = create_app(memory).test_client()
        assert client.post("/projects/p/intents", json=convention("No puts", "src", **CHECKS)).status_code == 201


def by_mcp(repository):
    extra = [[f"jido:{name}", text] for name, text in CHECKS.items()]
    given = {"text": "No puts", "type": "convention", "about": ["src"], "fields": {"extra_triples": extra}}
    with jidomem.open(repository / ".jidomem") as memory:
        assert not call(REMEMBER, ClientSession(memory, "ana"), given).is_error


def by_import(repository):
    init(repository / "other", "p")
    with jidomem.open(repository / "other" / ".jidomem") as other:
        other.writer.submit_intent("p", convention("No puts", "src", **CHECKS))
        data = documents.turtle("p", other.journal.read(Stream("p")), other.schema.version)
    with jidomem.open(repository / ".jidomem") as memory:
        text = data if isinstance(data, bytes) else data.encode()
        assert import_document(memory.writer, memory.schema, "p", "dump.ttl", text).refusals == []


def by_revision(repository):
    by_submit(repository)
    with jidomem.open(repository / ".jidomem") as memory:
        (row,) = memory.reader.ask("conventions", project="p")
        memory.writer.revise("p", row["conv"], changes={"topic": "output"}, reason="named")


INTERFACES = [by_command_line, by_submit, by_short_form, by_http, by_mcp, by_import, by_revision]


@pytest.mark.parametrize("store", INTERFACES, ids=lambda store: store.__name__)
def test_a_pattern_and_a_command_are_stored_as_given(repository, store):
    store(repository)

    assert stored(repository) == {name: [text] for name, text in CHECKS.items()}


def test_a_pattern_that_ends_with_a_blank_matches_that_blank_alone(repository):
    words = ["--enforcement-level", "Strict", "--about", "src/**", "--forbids", PATTERN]
    assert run("remember", "No puts", "--type", "convention", *words).exit_code == 0

    def written(text):
        return denied(hooked(repository, "Write", file_path=f"{repository}/src/a.py", content=text))

    assert written("putstr\n") == ""
    assert r'line 1 has "  puts ", which "^\s*puts " forbids' in written("  puts 1\n")


def test_a_trusted_command_is_the_stored_one(repository):
    words = ["--enforcement-level", "Strict", "--about", "src/**", "--check-command", COMMAND]
    assert run("remember", "Checked", "--type", "convention", *words).exit_code == 0
    assert run("access", "trust", ".", "--command", COMMAND).exit_code == 0

    answer = hooked(repository, "Write", file_path=f"{repository}/src/a.py", content="y")

    assert "is not run" not in json.dumps(answer)
    assert shlex.split(COMMAND) == ["sh", "-c", "exit 0"]
