"""The page of the check: the waivers, and the preview of new failures under changed terms or rules."""

import pytest
from conftest import files, intent

from jidomem.check.overlay import copy_with_overlay, preview
from jidomem.runtime import worker_pool
from jidomem.serve.app import create_app

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
RULE = f"""{PREFIXES}my:FactsHaveATopic a sh:NodeShape ; sh:targetClass jido:Fact ;
  sh:property [ sh:path jido:topic ; sh:minCount 1 ; sh:message "give this fact a topic" ] .
"""
#: Text that is no overlay, and the rule that refuses it.
HOSTILE = {
    "this is no Turtle": "TurtleParses",
    f"{PREFIXES}jido:Fact rdfs:subClassOf my:Recipe .": "OverlayAddsOnly",
    f"{PREFIXES}<urn:x> owl:imports <http://127.0.0.1:1/x.ttl> .": "OverlayImportsNothing",
    f"{PREFIXES}my:S sh:targetClass jido:Fact ; sh:sparql [ sh:select 'SELECT $this {{}}' ] .": "ShapeRunsNoCode",
    f"{PREFIXES}my:S sh:targetClass jido:Fact ; sh:path jido:topic ; sh:pattern '(a+)+\\\\1' .": "PatternEndsSoon",
}


@pytest.fixture
def item(memory):
    """An active fact without a topic; another one has a topic, and a third was withdrawn."""
    recorded = [memory.writer.submit_intent("p", intent(summary=text, **fields)).iri
            for text, fields in (("a", {}), ("b", {"topic": "t"}), ("c", {}))]  # fmt: skip
    memory.writer.invalidate("p", recorded[2], reason="wrong")
    return recorded[0]


@pytest.fixture
def client(memory, item):
    return create_app(memory).test_client()


def preview_of(client, **form):
    """The preview that the page shows of a change."""
    answer = client.post("/ui/p/check", data={"act": "preview", **form})
    assert answer.status_code == 303, answer.text
    page = answer.headers["Location"]
    assert client.get(page).status_code == 200
    return client.get(page.replace("?", ".json?")).json["preview"]


def test_the_preview_lists_new_failures_by_item_and_rule_and_changes_no_file(client, memory, item):
    before = {name for name in files(memory.settings.root) if not name.startswith(("index/", "cache/"))}

    result = preview_of(client, file="shapes", turtle=RULE)

    assert (result["usable"], result["failures"], result["changed"]) == (True, 1, 1)
    assert [(each["item"], each["name"], each["message"]) for each in result["failing"]] == [
        (item, "FactsHaveATopic", "give this fact a topic")
    ]
    assert result["failing"][0]["link"].startswith("/ui/p/memories/")
    assert {name for name in files(memory.settings.root) if not name.startswith(("index/", "cache/"))} == before
    assert memory.writer.submit_intent("p", intent(summary="d")).status == "asserted"


@pytest.mark.parametrize("text", HOSTILE)
def test_an_invalid_overlay_is_refused_with_its_line(memory, item, tmp_path, text):
    (tmp_path / "laid").mkdir()
    name = copy_with_overlay(memory.settings.root, tmp_path / "laid", "shapes", text)

    report = preview(memory.index, "p", memory.settings.root, tmp_path / "laid", name).to_dict()

    problem = report["problems"][0]
    assert (report["usable"], problem["rule"].partition("#")[2], problem["path"]) == (False, HOSTILE[text], name)
    assert problem["line"] in (1, 6)
    assert str(tmp_path) not in str(report)


def test_the_preview_of_a_file_shows_its_changed_and_its_removed_terms(client, memory, item):
    folder = memory.settings.root / "ontology"
    folder.mkdir()
    terms = f"{PREFIXES}my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label 'recipe'@en .\n"
    (folder / "mine.ttl").write_text(terms)
    page = client.get("/ui/p/check?file=ontology/mine.ttl")
    assert "my:Recipe a owl:Class" in page.text

    assert preview_of(client, file="ontology/mine.ttl", turtle=terms.replace("\n", "\r\n"))["changed"] == 0
    removal = preview_of(client, file="ontology/mine.ttl", turtle="")

    assert [(each["change"], each["term"]) for each in removal["changes"]] == [
        ("removed", "https://my.example/kitchen#Recipe")
    ]
    assert (folder / "mine.ttl").read_text() == terms


def test_the_preview_of_a_proposed_term_shows_the_added_term(client, memory):
    memory.term_proposals("p").propose("Recipe", kind="class", parents=["Fact"], definition="One.", reason="we cook")
    (term,) = [each["term"] for each in client.get("/ui/p/ontology.json").json["proposals"]]
    assert "Preview" in client.get("/ui/p/ontology").text

    result = preview_of(client, term=term)

    assert (result["name"], result["failures"]) == ("ontology/further.ttl", 0)
    assert [(each["change"], each["term"]) for each in result["changes"]] == [("added", term)]
    assert not (memory.settings.root / "ontology").exists()


@pytest.mark.parametrize(
    ("form", "status", "message"),
    [
        ({"file": "shapes", "turtle": " "}, 400, "there is no text"),
        ({"file": "shapes/../config.toml", "turtle": "x"}, 400, "is not a file of the overlay"),
        ({"file": "shapes", "turtle": "#" * (256 * 1024 + 1)}, 400, "more than the limit of 262,144"),
        ({"file": "shapes", "turtle": "#" * (1024 * 1024)}, 413, "the form has more than 1,048,576 bytes"),
        ({"term": "Soup"}, 404, "there is no pending term"),
    ],
)
def test_an_invalid_preview_is_refused_with_a_hint(client, form, status, message):
    answer = client.post("/ui/p/check", data={"act": "preview", **form})

    assert (answer.status_code, message in answer.text, "Hint:" in answer.text) == (status, True, True)


def test_a_late_preview_is_stopped_and_previews_are_bounded_and_kept_by_project(client, memory):
    result = preview_of(client, file="shapes", turtle=RULE)
    assert result["failures"] == 1
    (name,) = memory.checks.previews
    memory.writer.submit_intent("q", intent(applies_to_project="q"))
    assert client.get(f"/ui/q/check?preview={name}").status_code == 404

    memory.checks.preview_seconds = 0.05
    late = client.post("/ui/p/check", data={"act": "preview", "file": "shapes", "turtle": RULE})
    assert (late.status_code, "did not finish in 0.05 seconds" in late.text) == (503, True)
    for number in range(worker_pool.PREVIEWS - 1):
        memory.checks.previews[str(number)] = ("p", b"{}")
    memory.checks.preview_seconds = 60
    client.post("/ui/p/check", data={"act": "preview", "file": "shapes", "turtle": RULE})
    assert (len(memory.checks.previews), name in memory.checks.previews) == (worker_pool.PREVIEWS, False)


def test_waivers_are_shown_with_author_reason_end_and_state(client, memory, item):
    (memory.settings.root / "shapes").mkdir()
    (memory.settings.root / "shapes" / "mine.ttl").write_text(RULE)
    waiver = '[[waiver]]\nrule = "{}"\nitem = "{}"\nreason = "{}"\nuntil = {}\n'
    lines = [
        waiver.format("FactsHaveATopic", item, "from before", "2999-01-31") + 'by = "ana"\n',
        waiver.format("Other", item, "old", "2026-01-31"),
        waiver.format("Nothing", item, "never", "2998-01-31"),
    ]
    (memory.settings.root / "baseline.toml").write_text("".join(lines))

    client.post("/ui/p/check", data={"act": "check"})

    shown = client.get("/ui/p/check.json").json
    assert [(each["until"], each["by"], each["state"], each["findings"]) for each in shown["waivers"]] == [
        ("2026-01-31", "", "expired", 0), ("2998-01-31", "", "unused", 0), ("2999-01-31", "ana", "holds", 1),
    ]  # fmt: skip
    assert [rule["name"] for rule in shown["rules"]] == ["WaiverIsInForce", "WaiverIsOfUse"]
    page = client.get("/ui/p/check").text
    assert all(text in page for text in ("ana", "from before", ">expired<", ">unused<"))
    (memory.settings.root / "baseline.toml").write_text("[[waiver]]\n")
    answer = client.post("/ui/p/check", data={"act": "check"})
    assert (answer.status_code, "a waiver has no rule" in answer.text) == (400, True)
