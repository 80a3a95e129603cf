"""One error table for every door: the same code, detail and hint through Python and through the command line."""

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem import JidomemError, MemoryUpdateIntent
from jidomem.errors import CODES
from jidomem_cli.main import cli

#: Codes no verb can meet yet: no policy denies, no answer is cut off, no package is optional; those of HTTP
#: alone, and those of stores that only programs hold.
NOT_REACHED = {
    *("policy_denied", "result_too_large", "missing_extra", "method_not_allowed", "not_acceptable"),
    *("unsupported_media_type", "query_timeout", "too_many_requests", "index_behind", "index_is_derived"),
    *("store_unavailable",),
}
OLD = "urn:d:1"


@dataclass(frozen=True)
class Case:
    """How to meet one error: by a call, by a command line, on a root that *spoil* has changed."""

    call: Callable[[jidomem.Jidomem], Any]
    args: list[str]
    stdin: str | None = None
    spoil: Callable[[Any], Any] = lambda root: nullcontext()


def submitted(values, spoil=Case.spoil):
    return Case(lambda memory: memory.writer.submit_intent("p", values), ["submit"], json.dumps(values), spoil)


def asked(text):
    return Case(lambda memory: memory.reader.run("p", text), ["sparql", text])


@contextmanager
def held_by_another_process(root):
    """Another process has the turn to write."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom jidomem.journal.files import FileJournal, Stream\n"
        "with FileJournal(Path(sys.argv[1])).turn(Stream('p')):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "held\n"
        yield
        other.communicate("")


@contextmanager
def a_file_where_a_folder_should_be(root):
    (root / "projects" / "p" / "memory").rename(root / "elsewhere")
    (root / "projects" / "p" / "memory").write_text("in the way")
    yield


@contextmanager
def an_edited_commit(root):
    (path,) = (root / "projects" / "p" / "memory").glob("*.ttl")
    path.write_text(path.read_text().replace("Use Oxigraph", "Use nothing"))
    yield


@contextmanager
def a_misspelt_key(root):
    (root / "config.toml").write_text('projct = "p"\n')
    yield


CASES = {
    "missing_required_fields": submitted({"type": "fact", "summary": "x"}),
    "missing_rationale": submitted(intent(type="decision")),
    "unknown_type": submitted(intent(type="fakt")),
    "invalid_confidence": submitted(intent(confidence="hgh")),
    "invalid_iri": submitted(intent(iri="https://jido.ai/agents/me")),
    "iri_exists": submitted(intent(iri=OLD)),
    "unknown_field": submitted(intent(sumary="x")),
    "unknown_reference": submitted(intent(supersedes=["https://jido.ai/memory/nowhere"])),
    "project_mismatch": submitted(intent(applies_to_project="q")),
    "unknown_term": submitted(intent(extra_triples=[["jido:impactLevle", "high"]])),
    "shape_violation": submitted(intent(severity="high")),
    "payload_too_large": submitted(intent(summary="x" * 300_000)),
    "conflict": submitted(decision(summary="Use Jena", topic="store")),
    "idempotency_mismatch": submitted(decision(summary="Use Jena", idempotency_key="k-1")),
    "busy": submitted(intent(), held_by_another_process),
    "write_failed": submitted(intent(), a_file_where_a_folder_should_be),
    "journal_damaged": submitted(intent(), an_edited_commit),
    "invalid_config": submitted(intent(), a_misspelt_key),
    "malformed_json": Case(lambda _: MemoryUpdateIntent.from_json('{"a":'), ["submit"], '{"a":'),
    "malformed_query": asked("SELEC * WHERE { ?s ?p ?o }"),
    "update_refused": asked("DELETE WHERE { ?s ?p ?o }"),
    "federation_refused": asked("SELECT * WHERE { SERVICE <http://example.org/> { ?s ?p ?o } }"),
    "invalid_project": Case(
        lambda memory: memory.reader.list_open_tasks("Bad Name"), ["memory", "tasks", "--project", "Bad Name"]
    ),
    "unknown_project": Case(lambda memory: memory.reader.list_open_tasks("q"), ["memory", "tasks", "--project", "q"]),
    "not_found": Case(lambda memory: memory.reader.resolve("p", "deadbeef"), ["show", "deadbeef"]),
    "unknown_query": Case(lambda memory: memory.reader.ask("open-taks", project="p"), ["ask", "open-taks"]),
    "invalid_argument": Case(
        lambda memory: memory.reader.ask("open-tasks", project="p", actionable_only="maybe"),
        ["ask", "open-tasks", "actionable_only=maybe"],
    ),
}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(iri=OLD, topic="store", idempotency_key="k-1"))
    return root


def test_every_code_that_can_be_met_has_a_case():
    assert set(CASES) == set(CODES) - NOT_REACHED


@pytest.mark.parametrize("code", CASES)
def test_an_error_is_the_same_through_python_and_the_command_line(code, root):
    # C104
    case = CASES[code]
    place = ["--root", str(root), "--project", "p", *(["--wait", "0.2"] if case.args == ["submit"] else [])]

    with case.spoil(root):
        with pytest.raises(JidomemError) as raised:
            case.call(jidomem.open(root, project="p", wait=0.2))
        printed = CliRunner().invoke(cli, [*case.args[:1], *place, *case.args[1:], "--json"], input=case.stdin)

    error, told = raised.value, json.loads(printed.stdout)
    assert (told["code"], printed.exit_code) == (code, CODES[code][1])
    assert (told["detail"], told["hint"]) == (error.detail, error.hint)
    assert told == json.loads(json.dumps(error.to_dict()))
    assert error.detail
    assert error.hint


@pytest.mark.parametrize("code", CASES)
def test_a_person_is_told_the_detail_and_what_to_do(code, root):
    case = CASES[code]
    place = ["--root", str(root), "--project", "p", *(["--wait", "0.2"] if case.args == ["submit"] else [])]

    with case.spoil(root):
        printed = CliRunner().invoke(cli, [*case.args[:1], *place, *case.args[1:]], input=case.stdin)

    assert (printed.exit_code, printed.stdout) == (CODES[code][1], "")
    assert "error: " in printed.stderr
    assert "hint: " in printed.stderr
