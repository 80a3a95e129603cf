"""A change of the configuration of a root, by any process, applies to processes that have it open."""

import os

import pytest
from conftest import intent

import jidomem
from jidomem.errors import Failed, IntentRefused, NotFound
from jidomem.extras.servers import addresses
from jidomem.serve.app import create_app

SHAPE = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:own:R> a sh:NodeShape ; sh:targetClass jido:Fact ; sh:property <urn:own:P> .
<urn:own:P> sh:path jido:summary ; sh:pattern "^we " ; sh:message "A fact begins with: we" .
"""
QUERY = """\
#+ summary: What is said of spoons?
#+ params: project
#+ columns: spoon
#+ order: spoon
PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?project ?spoon WHERE {
  ?i jido:appliesToProject ?project ; jido:summary ?spoon . FILTER(CONTAINS(?spoon, "WORD"))
} ORDER BY ?spoon
"""


@pytest.fixture(params=["folder", "postgres"])
def address(request, tmp_path):
    if request.param == "folder":
        return str(tmp_path / "root")
    return request.getfixturevalue("postgres").address()


@pytest.fixture
def open_on_machine(address, tmp_path, monkeypatch):
    """Return a function that opens the root as the machine of a name."""
    memories = []

    def open_on_machine(machine="here"):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(address, project="p"))
        return memories[-1]

    yield open_on_machine
    for memory in memories:
        memory.close()


@pytest.fixture
def change_file(address, tmp_path):
    """Return a function that changes a file of the root like another process; without a text it removes the file."""

    def changed(path, text):
        if "://" in address:
            log = addresses.open_log(address, os.environ)
            files = {path: text} if text else {}
            addresses.change(log, lambda now: {name: now[name] for name in now if name != path} | files)
            log.close()
            return
        file = tmp_path / "root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text) if text else file.unlink()

    return changed


def test_a_write_is_validated_by_the_current_shapes(open_on_machine, change_file):  # C031
    first, second = open_on_machine("here"), open_on_machine("there")
    first.writer.remember("p", "spoons are counted")
    second.writer.remember("p", "forks are counted")
    plain = first.schema.version

    change_file("shapes/own.ttl", SHAPE)

    for memory in (first, second):
        with pytest.raises(IntentRefused, match="begins with: we"):
            memory.writer.remember("p", "knives are counted")
    receipt = second.writer.remember("p", "we count knives")
    assert f'ontologyVersion "{plain}+' in _document(second, receipt)
    with pytest.raises(IntentRefused, match="begins with: we"):
        first.writer.remember("p", "cups are counted", dry_run=True)

    change_file("shapes/own.ttl", None)
    assert f'ontologyVersion "{plain}"' in _document(first, first.writer.remember("p", "cups are counted"))


def _document(memory, receipt):
    from jidomem.journal.journal import Stream

    return next(c.data.decode() for c in memory.journal.read(Stream("p")) if c.id == receipt.commit)


def test_a_query_is_answered_by_its_current_text(open_on_machine, change_file):
    memory = open_on_machine()
    for text in ("spoons are counted", "forks are counted"):
        memory.writer.remember("p", text)
    with pytest.raises(NotFound, match="no query 'spoons'"):
        memory.reader.ask("spoons", project="p")

    change_file("queries/planner/spoons.rq", QUERY.replace("WORD", "spoon"))
    memory.catch_up("p")
    assert [row["spoon"] for row in memory.reader.ask("spoons", project="p")] == ["spoons are counted"]
    change_file("queries/planner/spoons.rq", QUERY.replace("WORD", "forks are"))
    assert [row["spoon"] for row in memory.reader.ask("spoons", project="p")] == ["forks are counted"]
    change_file("queries/planner/spoons.rq", None)
    memory.catch_up("p")
    with pytest.raises(NotFound, match="no query 'spoons'"):
        memory.reader.ask("spoons", project="p")


def test_a_changed_policy_of_the_configuration_applies_to_the_next_write(open_on_machine, change_file):
    memory = open_on_machine()
    change_file("config.toml", 'secrets = "off"\n')
    memory.writer.remember("p", "it opens with ghp_0123456789abcdefghijABCDEFGHIJ012345")

    change_file("config.toml", 'secrets = "refuse"\n')

    with pytest.raises(IntentRefused, match="GitHub"):
        memory.writer.remember("p", "or with ghp_9876543210abcdefghijABCDEFGHIJ012345")


def test_a_term_accepted_by_another_process_applies_to_the_next_write(open_on_machine):  # C044
    first, second = open_on_machine("here"), open_on_machine("there")
    first.writer.remember("p", "spoons are counted")
    fields = {"kind": "property", "domain": ["Fact"], "range_": ["xsd:integer"], "definition": "For how many."}
    term = first.term_proposals("p").propose("serves", **fields, reason="asked").term
    first.writer.submit_intent("p", intent(extra_triples=[[term, "many"]]))

    second.term_proposals("p").accept("serves", reason="two memories need it")

    first.writer.submit_intent("p", intent(summary="more", extra_triples=[[term, 4]]))
    with pytest.raises(IntentRefused, match="is not written as"):
        first.writer.submit_intent("p", intent(summary="others", extra_triples=[[term, "many"]]))
    assert first.reader.select("p", f"SELECT ?kind {{ <{term}> a ?kind }}")


def test_invalid_shapes_stop_writes_and_are_reported_while_reads_continue(open_on_machine, change_file):
    memory = open_on_machine()
    memory.writer.remember("p", "spoons are counted")
    client = create_app(memory).test_client()
    assert client.get("/readyz").status_code == 200

    change_file("shapes/own.ttl", SHAPE.replace(" .", " ;", 3))

    rows = memory.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }")
    assert [row["s"] for row in rows] == ["spoons are counted"]
    with pytest.raises(Failed, match=r"own\.ttl") as refusal:
        memory.writer.remember("p", "we count knives")
    assert refusal.value.code == "invalid_config"
    response = client.get("/readyz")
    assert (response.status_code, response.json["status"], response.json["rules"]["code"]) == (
        503,
        "rules",
        "invalid_config",
    )

    change_file("shapes/own.ttl", SHAPE)
    memory.writer.remember("p", "we count knives")
    assert client.get("/readyz").json["status"] == "ok"


def test_circular_links_in_an_open_root_are_not_followed(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.remember("p", "spoons are counted")
        folder = tmp_path / "root" / "ontology"
        folder.mkdir()
        for name in ("a", "b", "c"):  # if links were followed, there would be three to the power of forty paths
            (folder / name).symlink_to(".")

        memory.writer.remember("p", "forks are counted")
        facts = memory.reader.ask("facts", project="p")
        assert [row["summary"] for row in facts] == ["spoons are counted", "forks are counted"]


def test_a_broken_link_does_not_hide_a_change_of_a_later_file(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.remember("p", "spoons are counted")
        shapes = tmp_path / "root" / "shapes"
        shapes.mkdir()
        (shapes / "a.md").symlink_to("gone")
        memory.writer.remember("p", "forks are counted")

        (shapes / "own.ttl").write_text(SHAPE)

        with pytest.raises(IntentRefused, match="begins with: we"):
            memory.writer.remember("p", "knives are counted")
