"""Terms and shapes of a root that is somebody else's: they run no code, call nobody, and are judged in bounded time."""

import json
import socket
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner
from conftest import intent

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
ASKS = 'sh:select "SELECT $this WHERE { SERVICE <%s> { ?s ?p ?o } }"'
CODE = {
    "a constraint": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:sparql [ {ASKS} ] .",
    "a constraint elsewhere": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:sparql my:C . my:C {ASKS} .",
    "an escaped name": f"my:C <http://www.w3.org/ns/shacl#\\u0073elect> '' . my:S {ASKS} .",
    "a target": f"my:S a sh:NodeShape ; sh:nodeKind sh:IRI ; sh:target [ a sh:SPARQLTarget ; {ASKS} ] .",
    "a component": f"my:C a sh:ConstraintComponent ; sh:validator [ a sh:SPARQLSelectValidator ; {ASKS} ] .",
    "a rule": f"my:S a sh:NodeShape ; sh:targetClass jido:Fact ; sh:rule [ a sh:SPARQLRule ; {ASKS} ] .",
}


def wide(levels, each):
    """Shapes that each ask for every shape of the next level: a text of their product, a judgement of their power."""
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
def test_a_shape_that_brings_sparql_is_refused_before_anything_of_it_runs(tmp_path, name):
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


def test_shapes_that_would_never_be_done_stop_neither_writer_nor_check_for_ever(tmp_path, monkeypatch):
    # Given a memory, and shapes that came later and take 4 to the power of 14 steps
    root = init(tmp_path, "p")
    with jidomem.open(root, project="p") as memory:
        memory.writer.submit_intent("p", intent())
    root_with(tmp_path, wide(14, 4))
    monkeypatch.setattr(ontology, "objections", lambda *_: [])  # which would take as long
    monkeypatch.setattr(background, "SECONDS", 1.0)

    # When something is written, and when all is checked
    with jidomem.open(root, project="p") as memory:
        with pytest.raises(QueryTimeout, match=r"judging by the shapes of this root did not finish in .* seconds"):
            memory.writer.submit_intent("p", intent(summary="later"))
        kept = memory.reader.ask("facts", project="p")
    checked = CliRunner().invoke(cli, ["check", "--root", str(root), "--json"])

    # Then both say so, nothing was kept, and what does not depend on shapes goes on
    assert len(kept) == 1
    assert (checked.exit_code, json.loads(checked.stdout)["code"]) == (3, "query_timeout")
    while any(thread.name == "jidomem-deadline" for thread in threading.enumerate()):
        pass


# An interrupted read leaves its file to the garbage collector, which warns.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_root_whose_shapes_cannot_be_read_in_time_is_not_opened(tmp_path, monkeypatch):
    root = root_with(tmp_path, wide(14, 4))
    monkeypatch.setattr(background, "SECONDS", 0.0)

    with pytest.raises(QueryTimeout, match=r"reading the ontology and the shapes of .* did not finish"):
        jidomem.open(root)


def test_what_takes_too_much_memory_is_stopped(monkeypatch):
    monkeypatch.setattr(background, "BYTES", 50_000_000)

    def grow(kept):
        with background.time_limited("it"):
            while True:
                kept.append(b"x" * 100_000)

    with pytest.raises(TooLarge, match="took more than 50,000,000 bytes of memory") as refusal:
        grow([])

    assert refusal.value.code == "result_too_large"


def test_work_that_handles_every_error_is_interrupted_all_the_same(monkeypatch):
    monkeypatch.setattr(background, "SECONDS", 0.1)
    monkeypatch.setattr(background, "_REPEAT", 0.05)
    caught = []

    def go_on():
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
        go_on()

    assert len(caught) == 2


def test_work_that_is_done_in_time_is_left_alone():
    with background.time_limited("it"):
        found = sum(range(1000))
    assert found == 499_500


def test_a_debugger_goes_on_after_work_that_was_done_in_time_and_after_work_that_was_not():
    run = """
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
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "goes on\ngoes on\n"
