"""Terms and shapes of an untrusted root: they run no code, make no request, and are judged in bounded time."""

import json
import socket
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner
from conftest import intent, wait_until

import jidomem
from jidomem.base import background
from jidomem.errors import Failed, QueryTimeout, TooLarge
from jidomem.runtime.location import init
from jidomem.schema import ontology
from jidomem_cli.main import cli

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
CALL = 'sh:select "SELECT $this WHERE { SERVICE <%s> { ?s ?p ?o } }"'
CODE = {
    "a constraint": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:sparql [ {CALL} ] .",
    "a constraint elsewhere": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:sparql my:C . my:C {CALL} .",
    "an escaped name": f"my:C <http://www.w3.org/ns/shacl#\\u0073elect> '' . my:S {CALL} .",
    "a target": f"my:S a sh:NodeShape ; sh:nodeKind sh:IRI ; sh:target [ a sh:SPARQLTarget ; {CALL} ] .",
    "a component": f"my:C a sh:ConstraintComponent ; sh:validator [ a sh:SPARQLSelectValidator ; {CALL} ] .",
    "a rule": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:rule [ a sh:SPARQLRule ; {CALL} ] .",
}


def branching_shapes(levels, each):
    """Shapes that each refer to every shape of the next level: *each* to the power of *levels* steps to judge."""
    lines = ["my:S0x0 sh:targetClass jido:Fact ."]
    for level in range(levels):
        below = " ".join(f"my:S{level + 1}x{n}" for n in range(each))
        lines += [f"my:S{level}x{n} a sh:NodeShape ; sh:and ( {below} ) ." for n in range(each)]
    return "\n".join([*lines, *(f"my:S{levels}x{n} a sh:NodeShape ; sh:nodeKind sh:IRI ." for n in range(each))])


def root_with(folder, shapes):
    root = init(folder, "p")
    (root / "shapes").mkdir()
    (root / "shapes" / "mine.ttl").write_text(PREFIXES + shapes)
    return root


@pytest.mark.parametrize("name", CODE)
def test_a_shape_with_sparql_is_refused_before_it_runs(tmp_path, name):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        root = root_with(tmp_path, CODE[name] % f"http://127.0.0.1:{listener.getsockname()[1]}/")

        with pytest.raises(Failed, match=r"mine\.ttl: .* runs code by sh:") as refusal:
            jidomem.open(root)
        checked = CliRunner().invoke(cli, ["check", "--root", str(root), "--json"])
        judged = CliRunner().invoke(cli, ["ontology", "check", "--root", str(root), "--json"])

        assert refusal.value.code == "invalid_config"
        assert any(one["rule"].endswith("#ShapeRunsNoCode") for one in json.loads(checked.stdout)["problems"])
        assert checked.exit_code == 3
        assert "ShapeRunsNoCode" in judged.stdout
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_shapes_of_exponential_cost_end_in_a_timeout_of_writer_and_check(tmp_path, monkeypatch):
    # Given a memory, and newer shapes that take 4 to the power of 14 steps
    root = init(tmp_path, "p")
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
    root_with(tmp_path, branching_shapes(14, 4))
    monkeypatch.setattr(ontology, "objections", lambda *_: [])  # which would take as long
    monkeypatch.setattr(background, "SECONDS", 1.0)

    # When a memory is written, and when the root is checked
    with jidomem.open(root, project="p") as memory:
        with pytest.raises(QueryTimeout, match=r"did not finish in .* seconds.*, at the shape \S+ \(shapes/mine.ttl\)"):
            memory.writer.submit_intent("p", intent(summary="later"))
        facts = memory.reader.ask("facts", project="p")
    checked = CliRunner().invoke(cli, ["check", "--root", str(root), "--json"])

    # Then both report a timeout, nothing was stored, and reads that need no shapes work
    assert len(facts) == 1
    assert (checked.exit_code, json.loads(checked.stdout)["code"]) == (3, "query_timeout")
    wait_until(lambda: all(thread.name != "jidomem-deadline" for thread in threading.enumerate()))


# An interrupted read leaves its file to the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_root_whose_shapes_take_too_long_to_read_is_not_opened(tmp_path, monkeypatch):
    root = root_with(tmp_path, branching_shapes(14, 4))
    monkeypatch.setattr(background, "SECONDS", 0.0)

    with pytest.raises(QueryTimeout, match=r"reading the ontology and the shapes of .* did not finish"):
        jidomem.open(root)


def test_work_above_the_memory_limit_is_stopped(monkeypatch):
    monkeypatch.setattr(background, "BYTES", 50_000_000)

    def grow(chunks):
        with background.time_limited("it"):
            while True:
                chunks.append(b"x" * 100_000)

    with pytest.raises(TooLarge, match="took more than 50,000,000 bytes of memory") as refusal:
        grow([])

    assert refusal.value.code == "result_too_large"


def test_work_that_catches_every_error_is_interrupted(monkeypatch):
    monkeypatch.setattr(background, "SECONDS", 0.1)
    monkeypatch.setattr(background, "_REPEAT", 0.05)
    caught = []

    def catch_every_error():
        with background.time_limited("it"):
            while len(caught) < 2:
                try:
                    while True:
                        pass
                except BaseException as error:
                    caught.append(error)
            while True:
                pass

    with pytest.raises(QueryTimeout):
        catch_every_error()

    assert len(caught) == 2


def test_work_within_the_time_limit_is_not_interrupted():
    with background.time_limited("it"):
        total = sum(range(1000))
    assert total == 499_500


def test_a_trace_function_works_after_work_within_and_beyond_the_time_limit():
    program = """
import sys
from jidomem.base import background
with background.time_limited("it"):
    pass
sys.settrace(lambda *_: None)
(lambda: print("goes on"))()
sys.settrace(None)
background.SECONDS = 0.0
try:
    with background.time_limited("it"):
        while True:
            pass
except background.QueryTimeout:
    sys.settrace(lambda *_: None)
    (lambda: print("goes on"))()
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "goes on\ngoes on\n"
