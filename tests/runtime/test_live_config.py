"""What a root says of itself is active in a process that is open as soon as it was changed, by whomever."""

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
def opened(address, tmp_path, monkeypatch):
    """Open the root as the machine of that name does."""
    memories = []

    def opened(machine="here"):
        monkeypatch.setenv("JIDOMEM_HOME", str(tmp_path / machine))
        memories.append(jidomem.open(address, project="p"))
        return memories[-1]

    yield opened
    for memory in memories:
        memory.close()


@pytest.fixture
def change(address, tmp_path):
    """Change a file of the root as somebody elsewhere does; no text takes it away."""

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


def test_a_write_is_judged_by_the_shapes_that_are_there_when_it_comes(opened, change):  # C031
    here, there = opened("here"), opened("there")
    here.writer.remember("p", "spoons are counted")
    there.writer.remember("p", "forks are counted")
    plain = here.schema.version

    change("shapes/own.ttl", SHAPE)

    for memory in (here, there):
        with pytest.raises(IntentRefused, match="begins with: we"):
            memory.writer.remember("p", "knives are counted")
    kept = there.writer.remember("p", "we count knives")
    assert f'ontologyVersion "{plain}+' in _document(there, kept)
    with pytest.raises(IntentRefused, match="begins with: we"):
        here.writer.remember("p", "cups are counted", dry_run=True)

    change("shapes/own.ttl", None)
    assert f'ontologyVersion "{plain}"' in _document(here, here.writer.remember("p", "cups are counted"))


def _document(memory, receipt):
    from jidomem.journal.journal import Stream

    return next(c.data.decode() for c in memory.journal.read(Stream("p")) if c.id == receipt.commit)


def test_a_question_is_asked_as_it_is_there_when_it_is_asked(opened, change):
    here = opened()
    for text in ("spoons are counted", "forks are counted"):
        here.writer.remember("p", text)
    with pytest.raises(NotFound, match="no query 'spoons'"):
        here.reader.ask("spoons", project="p")

    change("queries/planner/spoons.rq", QUERY.replace("WORD", "spoon"))
    here.catch_up("p")
    assert [row["spoon"] for row in here.reader.ask("spoons", project="p")] == ["spoons are counted"]
    change("queries/planner/spoons.rq", QUERY.replace("WORD", "forks are"))
    assert [row["spoon"] for row in here.reader.ask("spoons", project="p")] == ["forks are counted"]
    change("queries/planner/spoons.rq", None)
    here.catch_up("p")
    with pytest.raises(NotFound, match="no query 'spoons'"):
        here.reader.ask("spoons", project="p")


def test_the_policy_of_the_configuration_counts_from_the_next_write_on(opened, change):
    here = opened()
    change("config.toml", 'secrets = "off"\n')
    here.writer.remember("p", "it opens with ghp_0123456789abcdefghijABCDEFGHIJ012345")

    change("config.toml", 'secrets = "refuse"\n')

    with pytest.raises(IntentRefused, match="GitHub"):
        here.writer.remember("p", "or with ghp_9876543210abcdefghijABCDEFGHIJ012345")


def test_a_term_that_is_accepted_elsewhere_is_known_here_from_the_next_look_on(opened):  # C044
    here, there = opened("here"), opened("there")
    here.writer.remember("p", "spoons are counted")
    said = {"kind": "property", "domain": ["Fact"], "range_": ["xsd:integer"], "definition": "For how many."}
    term = here.term_proposals("p").propose("serves", **said, reason="asked").term
    here.writer.submit_intent("p", intent(extra_triples=[[term, "many"]]))

    there.term_proposals("p").accept("serves", reason="two memories need it")

    here.writer.submit_intent("p", intent(summary="more", extra_triples=[[term, 4]]))
    with pytest.raises(IntentRefused, match="is not written as"):
        here.writer.submit_intent("p", intent(summary="others", extra_triples=[[term, "many"]]))
    assert here.reader.select("p", f"SELECT ?kind {{ <{term}> a ?kind }}")


def test_rules_that_do_not_do_stop_writes_and_are_told_and_reads_go_on(opened, change):
    here = opened()
    here.writer.remember("p", "spoons are counted")
    client = create_app(here).test_client()
    assert client.get("/readyz").status_code == 200

    change("shapes/own.ttl", SHAPE.replace(" .", " ;", 3))

    said = here.reader.select("p", "SELECT ?s { ?i <https://jido.ai/ontology#summary> ?s }")
    assert [row["s"] for row in said] == ["spoons are counted"]
    with pytest.raises(Failed, match=r"own\.ttl") as refused:
        here.writer.remember("p", "we count knives")
    assert refused.value.code == "invalid_config"
    told = client.get("/readyz")
    assert (told.status_code, told.json["status"], told.json["rules"]["code"]) == (503, "rules", "invalid_config")

    change("shapes/own.ttl", SHAPE)
    here.writer.remember("p", "we count knives")
    assert client.get("/readyz").json["status"] == "ok"


def test_links_that_lead_round_in_an_open_root_are_not_followed(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.remember("p", "spoons are counted")
        folder = tmp_path / "root" / "ontology"
        folder.mkdir()
        for name in ("a", "b", "c"):  # followed, there are three to the power of forty ways, and no end
            (folder / name).symlink_to(".")

        memory.writer.remember("p", "forks are counted")
        facts = memory.reader.ask("facts", project="p")
        assert [row["summary"] for row in facts] == ["spoons are counted", "forks are counted"]


def test_a_link_that_leads_nowhere_hides_no_change_of_a_file_after_it(tmp_path):
    with jidomem.open(tmp_path / "root", project="p") as memory:
        memory.writer.remember("p", "spoons are counted")
        shapes = tmp_path / "root" / "shapes"
        shapes.mkdir()
        (shapes / "a.md").symlink_to("gone")
        memory.writer.remember("p", "forks are counted")

        (shapes / "own.ttl").write_text(SHAPE)

        with pytest.raises(IntentRefused, match="begins with: we"):
            memory.writer.remember("p", "knives are counted")
