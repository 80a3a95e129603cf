"""One error table for every door: the same code, detail and hint through Python, the command line and HTTP."""

import json
import subprocess
import sys
import traceback
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from click.testing import CliRunner
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem import JidomemError, MemoryUpdateIntent
from jidomem.errors import CODES
from jidomem.records.policy import PolicyChange
from jidomem.runtime.settings import own_config
from jidomem.runtime.tokens import Keyring
from jidomem.runtime.user_config import RootLimits
from jidomem.runtime.worker_pool import Pool
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

#: Codes no door can meet yet: no package is optional, and only programs hold other stores, providers and memories.
NOT_REACHED = {"missing_extra", "index_is_derived", "store_unavailable", "store_unfit"}
NOT_REACHED |= {"provider_failed", "model_unavailable", "unsupported", "revision_conflict"} | {
    "memory_closed",  # tests/runtime/test_closed.py
    "memory_missing",  # tests/runtime/test_vanished_roots.py
    "store_unreachable",  # these two: tests/servers
    "outcome_unknown",
    "request_timeout",  # these are met before the application: tests/serve/test_slow_clients.py
    "uri_too_long",
    "headers_too_large",
}
OLD = "urn:d:1"


@dataclass(frozen=True)
class Case:
    """How to meet one error: by a call, by a command line, on a root that *spoil* has changed."""

    call: Callable[[jidomem.Jidomem], Any]
    args: list[str]
    stdin: str | None = None
    spoil: Callable[[Any], Any] = lambda root: nullcontext()
    request: dict[str, Any] | None = None


def submitted(values, spoil=Case.spoil, is_met_by_http=True):
    text = json.dumps(values)
    request = posted(text) if is_met_by_http else None
    return Case(lambda memory: memory.writer.submit_intent("p", values), ["submit"], text, spoil, request)


def asked(text):
    request = {"path": "/projects/p/sparql", "query_string": {"query": text}}
    return Case(lambda memory: memory.reader.run("p", text), ["ask", "--sparql", text], request=request)


def posted(text, media="application/json"):
    return {"method": "POST", "path": "/projects/p/intents", "data": text, "content_type": media}


def got(path, **headers):
    return {"path": path, "headers": headers}


@contextmanager
def held_by_another_process(root):
    """Another process has the turn to write."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom jidomem.journal.journal import FileJournal, Stream\n"
        "with FileJournal(Path(sys.argv[1])).lock(Stream('p')):\n    print('held', flush=True)\n    sys.stdin.read()\n"
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
def a_commit_of_another_branch(root):
    """A memory that was not committed is left in the folder, after a checkout of a branch without its parent."""

    def git(*words):
        named = ("-c", "user.name=t", "-c", "user.email=t@t")
        subprocess.run(["git", *named, *words], cwd=root, check=True, capture_output=True)

    git("init", "-q", "-b", "main")
    git("add", "projects/p/memory/*.ttl")
    git("commit", "-qm", "first")
    git("branch", "other")
    for summary in ("committed", "left"):
        with jidomem.open(root) as memory:
            memory.writer.submit_intent("p", intent(summary=summary))
        if summary == "committed":
            git("add", "projects/p/memory/*.ttl")
            git("commit", "-qm", "second")
    git("checkout", "-q", "other")
    yield


@contextmanager
def a_misspelt_key(root):
    (root / "config.toml").write_text('projct = "p"\n')
    yield


@contextmanager
def a_redacted_request(root):
    with jidomem.open(root, sources=fixed_sources(START + timedelta(hours=1))) as memory:
        memory.maintenance.redact(memory.maintenance.plan("p", OLD), agent="ana", reason="it named a customer")
    yield


@contextmanager
def a_rule_against_it(root):
    with jidomem.open(root, sources=fixed_sources(START + timedelta(hours=1))) as memory:
        memory.writer.change_policy("p", [PolicyChange(kind="fact", allows="deny")])
    yield


@contextmanager
def a_token(root):
    """A token of this root was given out, which whoever asks does not have."""
    Keyring(own_config(), root).issue("ana", "agent", ["p"], fixed_sources())
    yield


CASES = {
    # the command line fills in the author and the session
    "missing_required_fields": submitted({"type": "fact", "summary": "x", "asserted_by": "ana", "asserted_in": "s-1"}),
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
    "request_redacted": submitted(decision(summary="Use Jena", idempotency_key="k-1"), a_redacted_request),
    "policy_denied": submitted(intent(), a_rule_against_it),
    "busy": submitted(intent(), held_by_another_process),
    "write_failed": submitted(intent(), a_file_where_a_folder_should_be),
    "journal_damaged": submitted(intent(), an_edited_commit),
    "branch_changed": submitted(intent(), a_commit_of_another_branch),
    "invalid_config": submitted(intent(), a_misspelt_key, is_met_by_http=False),  # no server starts
    "malformed_json": Case(
        lambda _: MemoryUpdateIntent.from_json('{"a":'), ["submit"], '{"a":', request=posted('{"a":')
    ),
    "malformed_query": asked("SELEC * WHERE { ?s ?p ?o }"),
    "update_refused": asked("DELETE WHERE { ?s ?p ?o }"),
    "federation_refused": asked("SELECT * WHERE { SERVICE <http://example.org/> { ?s ?p ?o } }"),
    "invalid_project": Case(
        lambda memory: memory.reader.list_open_tasks("Bad Name"),
        ["ask", "tasks", "--project", "Bad Name"],
        request=got("/projects/Bad Name/queries/open-tasks"),
    ),
    "unknown_project": Case(
        lambda memory: memory.reader.list_open_tasks("q"),
        ["ask", "tasks", "--project", "q"],
        request=got("/projects/q/queries/open-tasks"),
    ),
    "not_found": Case(
        lambda memory: memory.reader.resolve("p", "deadbeef"),
        ["show", "deadbeef"],
        request=got("/projects/p/memories/deadbeef"),
    ),
    "unknown_query": Case(
        lambda memory: memory.reader.ask("open-taks", project="p"),
        ["ask", "open-taks"],
        request=got("/projects/p/queries/open-taks"),
    ),
    "invalid_argument": Case(
        lambda memory: memory.reader.ask("open-tasks", project="p", actionable_only="maybe"),
        ["ask", "open-tasks", "actionable_only=maybe"],
        request=got("/projects/p/queries/open-tasks?actionable_only=maybe"),
    ),
}
_MANY = " ".join(map(str, range(40)))
#: Codes that only HTTP meets, where not even a program has a call for it.
HTTP_ALONE = {
    "method_not_allowed": {"method": "DELETE", "path": "/projects/p"},
    "not_acceptable": got("/projects/p/queries/facts", Accept="image/png"),
    "unsupported_media_type": posted(json.dumps(intent()), "text/plain"),
    "unauthenticated": got("/projects/p"),
    "unknown_host": got("/projects/p", Host="rebound.example.org"),
    "index_behind": got("/projects/p/queries/facts?min_position=99-0123456789ab"),
    "result_too_large": asked(f"SELECT * {{ VALUES ?a {{ {_MANY} }} VALUES ?b {{ {_MANY} }} }}").request,
    "query_timeout": {
        "path": "/sparql",
        "query_string": {"query": "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }", "timeout": "0.2"},
    },
    "too_many_requests": asked("ASK {}").request,
}


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "root"
    with jidomem.open(root, sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", decision(iri=OLD, topic="store", idempotency_key="k-1"))
    return root


def test_every_code_that_can_be_met_has_a_case():
    assert {*CASES, *HTTP_ALONE} == set(CODES) - NOT_REACHED
    assert not CASES.keys() & HTTP_ALONE.keys()


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
    in_options = error.hint.replace("`project`", "--project")  # the command line names its options
    assert (told["detail"], told["hint"]) == (error.detail, in_options)
    assert told == json.loads(json.dumps({**error.to_dict(), "hint": in_options}))
    assert error.detail
    assert error.hint


@contextmanager
def served(root, at_once=1):
    """A client of the memory served in this process; what it opens is let go of."""
    with jidomem.open(root, project="p", wait=0.2) as memory:
        memory.pool = Pool(root, RootLimits(queries=at_once, query_seconds=300, query_rows=1_000))
        yield create_app(memory, keyring=Keyring(own_config(), root)).test_client()


@pytest.mark.parametrize("code", [code for code in CASES if CASES[code].request])
def test_an_error_is_the_same_through_python_and_http(code, root):
    case = CASES[code]

    with case.spoil(root):
        with pytest.raises(JidomemError) as raised, jidomem.open(root, project="p", wait=0.2) as memory:
            case.call(memory)
        with served(root) as client:
            response = client.open(**case.request)

    told = json.loads(response.data)
    assert response.mimetype == "application/problem+json"
    assert (told.pop("type"), told.pop("title")) == (f"urn:jido:error:{code}", code.replace("_", " "))
    assert told.pop("status") == response.status_code == CODES[code][0]
    assert told.pop("request_id") == response.headers["X-Request-Id"]
    expected = json.loads(json.dumps(raised.value.to_dict()))
    hint, hint_of_python = told.pop("hint"), expected.pop("hint")
    assert told == expected
    assert hint == hint_of_python if "jidomem " not in hint_of_python else hint  # a command becomes a request
    assert "jidomem " not in hint or "in a shell" in hint


@pytest.mark.parametrize("code", HTTP_ALONE)
def test_an_error_that_only_http_can_meet_is_told_in_the_same_form(code, root):
    is_locked = a_token(root) if code == "unauthenticated" else nullcontext()
    with is_locked, served(root, at_once=0 if code == "too_many_requests" else 1) as client:
        response = client.open(**HTTP_ALONE[code])

    told = json.loads(response.data)
    assert (response.status_code, response.mimetype) == (CODES[code][0], "application/problem+json")
    assert told.keys() == {"type", "title", "status", "code", "detail", "hint", "request_id"}
    assert (told["code"], told["status"], bool(told["detail"]), bool(told["hint"])) == (
        code,
        CODES[code][0],
        True,
        True,
    )


@pytest.mark.parametrize("code", CASES)
def test_a_person_is_told_the_detail_and_what_to_do(code, root):
    case = CASES[code]
    place = ["--root", str(root), "--project", "p", *(["--wait", "0.2"] if case.args == ["submit"] else [])]

    with case.spoil(root):
        printed = CliRunner().invoke(cli, [*case.args[:1], *place, *case.args[1:]], input=case.stdin)

    assert (printed.exit_code, printed.stdout) == (CODES[code][1], "")
    assert "error: " in printed.stderr
    assert "hint: " in printed.stderr


def test_a_traceback_shows_the_hint_that_holds_by_then():
    error = JidomemError("no", hint="try again")
    error.add_note("at noon")
    error.hint = "give up"

    assert "".join(traceback.format_exception(error)).endswith("JidomemError: no\nat noon\nhint: give up\n")
