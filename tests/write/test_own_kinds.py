"""Own kinds and properties of a project are used by their names, in every interface."""

import json
from decimal import Decimal

import pytest
from click.testing import CliRunner

import jidomem
from jidomem.errors import IntentRefused, InvalidRequest
from jidomem.rdf.terms import XSD
from jidomem.schema.shacl import SH
from jidomem_cli.main import cli

SHOP = "https://shop.example/ns#"
TERMS = f"""@prefix shop: <{SHOP}> .
@prefix jido: <https://jido.ai/ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
shop:Runbook a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:label "runbook"@en ; rdfs:comment "How it is done."@en .
shop:severity a owl:DatatypeProperty ; rdfs:domain shop:Runbook ; rdfs:range xsd:string ; rdfs:label "severity"@en ;
  rdfs:comment "How bad it is."@en .
shop:pages a owl:DatatypeProperty ; rdfs:domain shop:Runbook ; rdfs:range xsd:integer ; rdfs:label "pages"@en ;
  rdfs:comment "How many."@en .
"""


WHO = {"type": "fact", "asserted_by": "a", "asserted_in": "s", "confidence": "high", "applies_to_project": "p"}


def run(*words, code=0, stdin=None):
    result = CliRunner().invoke(cli, [str(word) for word in words], input=stdin)
    assert result.exit_code == code, result.stdout + result.stderr
    return result


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("init", "-q", "--project", "p")
    folder = tmp_path / ".jidomem" / "ontology"
    folder.mkdir()
    (folder / "shop.ttl").write_text(TERMS)
    return tmp_path / ".jidomem"


def shown(item):
    return json.loads(run("show", item, "--json").stdout)


def own(item):
    memory = shown(item)
    known = {name: memory["properties"].get(SHOP + name) for name in ("severity", "pages")}
    return {name: values for name, values in known.items() if values is not None}


def test_an_own_property_without_its_prefix_is_refused_with_its_iri_and_the_repaired_intent(root):
    words = ("remember", "restart the queue", "--type", "Runbook", "--set", "pages=2")
    refusal = json.loads(run("--json", *words, code=3).stdout)

    assert refusal["violations"][0]["nearest"] == SHOP + "pages"
    item = run("submit", "-", stdin=json.dumps(refusal["fixed_intent"])).stdout.strip()
    assert own(item) == {"pages": [2]}
    assert f"write `{SHOP}pages` for 'pages'" in run("edit", item, "--set", "pages=3", code=3).stderr


@pytest.mark.parametrize("name", ["Runbook", "runbook", "shop:Runbook", SHOP + "Runbook"])
def test_a_memory_of_an_own_kind_is_recorded_by_its_name(root, name):
    item = run("remember", "restart the queue", "--type", name, "--set", "shop:severity=high").stdout.strip()

    memory = shown(item)
    assert (memory["type"], memory["own_classes"], own(item)) == ("fact", [SHOP + "Runbook"], {"severity": ["high"]})
    (row,) = json.loads(run("ask", "timeline", "--json").stdout)["rows"]
    assert row["kind"] == SHOP + "Runbook"
    assert "Runbook (Fact)" in run("show", item).stdout
    assert "Runbook (Fact)" in run("show", item, "--why").stdout
    assert json.loads(run("check", "--json").stdout)["problems"] == []


@pytest.mark.parametrize(("to", "after"), [("fact", "Fact"), ("Guide", SHOP + "Guide"), ("risk", "Risk")])
def test_a_retyped_memory_is_one_row_of_an_event_that_names_both_kinds(root, to, after):
    more = "shop:Guide a owl:Class ; rdfs:subClassOf jido:Fact ; rdfs:comment 'How it is explained.' .\n"
    (root / "ontology" / "shop.ttl").write_text(TERMS + more)
    first = run("remember", "restart", "--type", "Runbook", "--topic", "queue").stdout.strip()
    second = run("edit", first, "--set", f"type={to}", "--reason", "as it is").stdout.strip()

    with jidomem.open(root) as memory:
        rows, changed = memory.reader.history("p", second), memory.reader.diff("p", "0")
    assert [(row["entry"], row["event"]) for row in rows] == [(first, "asserted"), (second, "revised")]
    assert rows[1]["changes"] == [{"field": "type", "before": SHOP + "Runbook", "after": after}]
    assert sorted(row["item"] for row in changed) == sorted([first, second])


def test_several_prefixes_on_a_line_are_known(root):
    (root / "ontology" / "shop.ttl").write_text(TERMS.replace(" .\n@prefix", " . @prefix"))

    item = run("remember", "restart the queue", "--type", "Runbook", "--set", "shop:severity=high").stdout.strip()
    assert own(item) == {"severity": ["high"]}


def test_an_edit_of_an_own_property_keeps_the_kind_and_the_other_properties(root):
    item = run(
        "remember", "restart", "--type", "Runbook", "--set", "shop:severity=high", "--set", "shop:pages=2"
    ).stdout

    item = run("edit", item.strip(), "--set", "shop:severity=low").stdout.strip()
    assert own(item) == {"severity": ["low"], "pages": [2]}
    item = run("edit", item, "--set", "shop:pages=").stdout.strip()
    assert own(item) == {"severity": ["low"]}
    item = run("edit", item, "--set", 'extra_triples=[["shop:pages", 7]]').stdout.strip()
    assert own(item) == {"pages": [7]}
    assert shown(item)["own_classes"] == [SHOP + "Runbook"]


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"shop:severity": "low"}, {"severity": ["low"], "pages": [2]}),
        ({SHOP + "severity": ["low", "mid"]}, {"severity": ["low", "mid"], "pages": [2]}),
        ({"shop:pages": None}, {"severity": ["high"]}),
        ({"extra_triples": [["shop:pages", 7]]}, {"pages": [7]}),
        ({"extra_triples": None}, {}),
    ],
)
@pytest.mark.parametrize("way", ["revise", "correct", "confirm"])
def test_python_sets_an_own_property_as_an_edit_does(root, way, changes, values):
    with jidomem.open(root) as memory:
        item = memory.remember("restart", type="Runbook", **{"shop:severity": "high", "shop:pages": 2}).iri
        given = changes if way == "confirm" else {"changes": changes, "reason": "r"}
        item = getattr(memory.writer, way)("p", item, **given).iri

    assert (own(item), shown(item)["own_classes"]) == (values, [SHOP + "Runbook"])


def test_a_settlement_sets_an_own_property_as_an_edit_does(root):
    config = (root / "config.toml").read_text()
    (root / "config.toml").write_text(config.replace("# [conflicts]", '[conflicts]\nfact = "propose"'))
    words = ("--type", "Runbook", "--topic", "queue", "--set")
    first = run("remember", "restart", *words, "shop:severity=low").stdout.strip()
    other = run("remember", "wait", *words, "shop:severity=high").stdout.strip()

    changes = ("--set", "shop:severity=mid", "--set", "about=night", "--reason", "r")
    item = run("review", "keep-both", other, "--against", first, *changes).stdout.strip()
    assert (own(item), shown(item)["own_classes"]) == ({"severity": ["mid"]}, [SHOP + "Runbook"])


@pytest.mark.parametrize("given", ["type=Guide", "rdf:type=shop:Guide", 'extra_triples=["rdf:type", "shop:Guide"]'])
def test_a_memory_of_a_renamed_kind_is_given_the_new_one(root, given):
    item = run("remember", "restart", "--type", "Runbook").stdout.strip()
    (root / "ontology" / "shop.ttl").write_text(TERMS.replace("shop:Runbook", "shop:Guide"))

    refusal = run("edit", item, "--supersede", "restart twice", code=3).stderr
    assert "give a declared kind in --set type=VALUE, or propose it: jidomem ontology propose" in refusal
    new = run("edit", item, "--set", given, "--set", "shop:severity=low").stdout.strip()
    assert (shown(new)["own_classes"], own(new)) == ([SHOP + "Guide"], {"severity": ["low"]})
    new = run("edit", item, "--undo", "--set", "type=Guide").stdout.strip()
    assert (shown(new)["own_classes"], own(new)) == ([SHOP + "Guide"], {})
    new = run("edit", new, "--set", "type=assumption").stdout.strip()
    assert (shown(new)["type"], shown(new)["own_classes"]) == ("assumption", [])


def test_a_property_of_another_kind_has_the_kind_to_give_instead(root):
    refusal = run("remember", "restart", "--set", "shop:pages=2", code=3).stderr

    assert "hint: give shop:Runbook as --type, or leave out --set shop:pages" in refusal


@pytest.mark.parametrize("setting", ["shop:severity=", "topic= ", "about="])
def test_an_empty_setting_of_a_new_memory_is_refused(root, setting):
    refusal = run("remember", "restart", "--type", "Runbook", "--set", setting, code=2).stderr

    assert f"error: --set {setting} is empty" in refusal


LEVELS = """shop:Level a owl:Class . shop:Secret a shop:Level . shop:Open a shop:Level .
shop:level a owl:ObjectProperty ; rdfs:range shop:Level . shop:needs a owl:ObjectProperty ; rdfs:range shop:Runbook .
"""


@pytest.mark.parametrize("given", ["Secret", "secret", "shop:Secrett", SHOP + "Secre"])
def test_a_misspelt_value_of_an_own_list_has_the_nearest_one_and_the_repaired_intent(root, given):
    (root / "ontology" / "levels.ttl").write_text(TERMS[: TERMS.index("shop:Runbook")] + LEVELS)

    refusal = json.loads(run("remember", "x", "--set", f"shop:level={given}", "--json", code=3).stdout)
    (violation,) = refusal["violations"]
    assert violation["nearest"] == SHOP + "Secret"
    assert f"write shop:Secret for {given.replace(SHOP, 'shop:')}" == violation["hint"]
    assert refusal["fixed_intent"]["extra_triples"] == [["shop:level", SHOP + "Secret"]]
    message = run("remember", "x", "--set", "shop:level=Other", code=3).stderr
    assert "allowed: shop:Open, shop:Secret" in message


def test_a_setting_of_an_own_property_has_a_language_as_in_turtle_and_its_changes_are_shown_as_text(root):
    words = TERMS[: TERMS.index("shop:Runbook")] + "shop:word a owl:DatatypeProperty ."
    (root / "ontology" / "words.ttl").write_text(words)
    item = run("-q", "remember", "x", "--set", 'shop:word="Haus"@de').stdout.strip()
    assert shown(item)["properties"][SHOP + "word"] == [{"@value": "Haus", "@language": "de"}]

    run("edit", item, "--set", 'shop:word="Turm"@de', "--reason", "r")
    assert "word: Haus @de -> Turm @de" in run("journal", "diff", "--as-of", "0").stdout


def test_an_own_property_of_memories_takes_a_short_id(root):
    (root / "ontology" / "levels.ttl").write_text(TERMS[: TERMS.index("shop:Runbook")] + LEVELS)
    first = run("remember", "restart", "--type", "Runbook").stdout.strip()

    item = run("remember", "stop", "--type", "Runbook", "--set", f"shop:needs={first[-8:]}").stdout.strip()
    assert shown(item)["properties"][SHOP + "needs"] == [{"@id": first}]
    item = run("edit", item[-8:], "--set", "shop:pages=1").stdout.strip()
    assert shown(item)["properties"][SHOP + "needs"] == [{"@id": first}]
    assert "has no memory 'deadbeef'" in run("edit", item, "--set", "shop:needs=deadbeef", code=3).stderr


def test_an_intent_has_own_properties_beside_its_fields(root):
    with jidomem.open(root) as memory:
        item = memory.remember("restart", type="Runbook", **{"shop:severity": ["a", "b"], SHOP + "pages": 3}).iri
        with pytest.raises(IntentRefused, match="did you mean"):
            memory.remember("restart again", type="Runbook", **{"shop:sverity": "a"})
        with pytest.raises(IntentRefused, match="'two' is not written as"):
            memory.remember("restart again", type="Runbook", **{"shop:pages": "two"})

    assert own(item) == {"severity": ["a", "b"], "pages": [3]}


@pytest.mark.parametrize("name", ["Runbook", "runbook", "shop:Runbook", SHOP + "Runbook"])
def test_memories_of_an_own_kind_are_listed_recalled_and_looked_up_by_its_name(root, name):
    item = run("remember", "restart the queue", "--type", "Runbook").stdout.strip()
    run("remember", "restart the clock")

    (row,) = json.loads(run("ask", "memories-of-kind", f"kind={name}", "--json").stdout)["rows"]
    assert row["item"] == item
    (hit,) = json.loads(run("recall", "restart", "--kind", name, "--json").stdout)["entries"]
    assert hit["id"] == item
    assert json.loads(run("ontology", "show", name, "--json").stdout)["iri"] == SHOP + "Runbook"


@pytest.mark.parametrize("name", ["Rnbook", "shop:Rnbook", "shp:Runbook"])
def test_a_name_that_is_no_kind_is_refused_by_queries_as_by_a_submission(root, name):
    for words in (("ask", "memories-of-kind", f"kind={name}"), ("recall", "x", "--kind", name)):
        assert "is not a kind of memory" in run(*words, code=2).stderr
    run("ontology", "show", name, code=4)


def test_a_deprecated_term_names_its_replacement(root):
    old = "shop:level a owl:DatatypeProperty ; rdfs:range xsd:string ; owl:deprecated true ; dct:isReplacedBy"
    (root / "ontology" / "old.ttl").write_text(
        f"@prefix dct: <http://purl.org/dc/terms/> .\n{TERMS}\n{old} shop:severity ."
    )

    warned = run("remember", "restart", "--type", "Runbook", "--set", "shop:level=high").stderr
    assert f"warning: {SHOP}level is deprecated: use {SHOP}severity" in warned
    assert f"replaced by: {SHOP}severity" in run("ontology", "show", "shop:level").stdout


def test_a_misspelt_own_kind_and_a_foreign_prefix_are_refused(root):
    with jidomem.open(root) as memory:
        with pytest.raises(IntentRefused, match="'Rnbook' is not a type of memory"):
            memory.remember("x", type="Rnbook")
        with pytest.raises(IntentRefused, match="acme:severity"):
            memory.remember("x", **{"acme:severity": "a"})


def test_a_rule_of_the_policy_on_an_own_kind_applies_to_its_memories_alone(root):
    run("access", "policy", "set", "propose", "--kind", "runbook")
    run("access", "policy", "set", "propose", "--kind", "Rnbook", code=2)

    assert run("remember", "one", "--type", "Runbook").stderr.startswith("proposed")
    assert run("remember", "two").stderr.startswith("asserted")
    assert run("access", "policy", "may", "ana", "Runbook").stdout == "propose\n"
    run("access", "policy", "set", "assert", "--kind", "fact")
    assert run("access", "policy", "may", "ana", "Runbook").stdout == "propose\n"
    run("access", "policy", "may", "ana", "Rnbook", code=2)


@pytest.mark.parametrize("given", [("--type", "Drill"), ("--set", "rdf:type=shop:Drill")], ids=" ".join)
def test_a_rule_on_an_own_kind_binds_the_own_kinds_below_it(root, given):
    below = "shop:Drill a owl:Class ; rdfs:subClassOf shop:Exercise . shop:Exercise a owl:Class ; rdfs:subClassOf"
    (root / "ontology" / "drill.ttl").write_text(TERMS[: TERMS.index("shop:Runbook")] + f"{below} shop:Runbook .")
    before = run("remember", "zero", *given).stdout.strip()
    run("access", "policy", "set", "deny", "--kind", "shop:Runbook", "--for", "cy")

    assert run("access", "policy", "may", "cy", "Drill").stdout == "deny\n"
    assert "may not write a Drill" in run("remember", "one", *given, "--agent", "cy", code=3).stderr
    run("edit", run("remember", "a fact").stdout.strip(), "--set", "type=Drill", "--agent", "cy", code=3)
    run("edit", before, "--invalidate", "--reason", "r", "--agent", "cy", code=3)
    run("access", "policy", "set", "assert", "--kind", "shop:Exercise", "--for", "cy")
    run("remember", "two", *given, "--agent", "cy")


SHAPE = f"""@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix shop: <{SHOP}> .
<https://shop.example/rules#HasPages> a sh:NodeShape ; sh:targetClass shop:Runbook ;
  sh:property [ sh:path shop:pages ; sh:minCount 1 ; sh:message "Give shop:pages." ] .
"""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--confidence", "sure"), "confidence is low, medium, high or a number from 0 to 1, not 'sure'"),
        (("--set", "shop:paeges=3"), "did you mean https://shop.example/ns#pages?"),
        (("--set", "shop:severity=shop:x", "--type", "task"), "shop:severity"),
    ],
)
def test_a_mistake_elsewhere_does_not_violate_the_shape_of_a_given_own_property(root, words, message):
    (root / "shapes").mkdir()
    (root / "shapes" / "shop.ttl").write_text(SHAPE)

    refused = run("remember", "restart", "--type", "Runbook", "--set", "shop:pages=3", *words, code=3)

    assert "Give shop:pages" not in refused.stderr
    lacking = run("remember", "restart", "--type", "Runbook", code=3).stderr
    assert "hint: give --set shop:pages=VALUE" in lacking


@pytest.mark.parametrize(
    ("setting", "properties"),
    [("jido:context=abc", {"context": ["abc"]}), ("jido:affectedModule=x", {"affectedModule": ["x"]})],
)
def test_a_shipped_property_without_a_field_is_set_by_its_prefixed_name(root, setting, properties):
    item = run("remember", "it holds", "--set", setting).stdout.strip()
    name, _, value = setting.partition("=")
    again = run("edit", item, "--set", f"{name}={value} and more").stdout.strip()
    run("submit", "-", stdin=json.dumps({"summary": "too", name: value, **WHO}))

    assert {key: shown(item)["properties"][key] for key in properties} == properties
    assert shown(again)["properties"][name.removeprefix("jido:")] == [f"{value} and more"]


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("jido:foo=1", "https://jido.ai/ontology#foo is not a declared property"),
        ("jido:assertedBy=me", "jido:assertedBy has a field of its own: use asserted_by"),
        ("jido:recordedAt=2026-01-01", "jido:recordedAt is set by the writer only"),
    ],
)
def test_a_property_that_cannot_be_set_is_refused_in_the_words_of_the_option(root, setting, message):
    refused = run("remember", "it holds", "--set", setting, code=3).stderr

    assert message in refused
    assert "extra_triples" not in refused


def test_a_link_to_an_ended_memory_is_a_warning_with_its_present_version(root):
    (root / "ontology" / "shop.ttl").write_text(TERMS + "shop:after a owl:ObjectProperty .\n")
    first = run("-q", "remember", "stop the queue").stdout.strip()
    link = ("--set", f"shop:after={first}")
    assert "links to" not in run("remember", "start it", *link).stderr

    second = run("-q", "edit", first, "--supersede", "drain the queue").stdout.strip()
    message = run("remember", "move it to the cellar", *link).stderr
    assert f"links to {first}, which was superseded: the present version is {second}" in message
    run("edit", second, "--invalidate", "--reason", "wrong")
    withdrawn = ("--set", f"shop:after={second}")
    assert f"links to {second}, which was withdrawn" in run("remember", "count the boxes", *withdrawn).stderr


def test_a_value_of_an_own_object_property_is_an_iri(root):
    prefix = "@prefix unit: <https://units.example/> .\n"
    (root / "ontology" / "shop.ttl").write_text(prefix + TERMS + "shop:unit a owl:ObjectProperty .\n")

    item = run("remember", "a box", "--set", "shop:unit=unit:KiloGM").stdout.strip()
    assert shown(item)["properties"][SHOP + "unit"] == [{"@id": "https://units.example/KiloGM"}]
    for text in ("kilogram", "other:KiloGM"):
        message = run("remember", "a bag", "--set", f"shop:unit={text}", code=3).stderr
        assert f"its value is an IRI, not '{text}'\nhint: give an IRI, or a name with a declared prefix, in" in message


def test_a_misspelt_own_kind_has_the_nearest_one(root):
    refused = run("remember", "restart", "--type", "Rnbook", code=3).stderr

    assert "did you mean 'Runbook'?" in refused


def test_an_unknown_kind_has_the_command_that_proposes_it(root):
    refused = run("remember", "restart", "--type", "Hanoi", code=3).stderr

    assert "hint: correct --type, or propose a kind: jidomem ontology propose Hanoi --kind class --parent" in refused


def test_a_number_has_the_numeric_datatype_of_its_property_or_is_refused(root):
    prefixes, datatypes = TERMS.partition("shop:Runbook")[0], ("decimal", "double", "string", "nonNegativeInteger")
    (root / "ontology" / "numbers.ttl").write_text(
        prefixes + "".join(f"shop:{name} a owl:DatatypeProperty ; rdfs:range xsd:{name} .\n" for name in datatypes)
    )
    given = {"decimal": [1.02, 1, 1e-7, Decimal("2.50")], "double": [4, 4.5], "pages": [4], "nonNegativeInteger": [7]}
    with jidomem.open(root) as memory:
        fields = {f"shop:{name}": values for name, values in given.items()}
        iri = memory.writer.submit_intent("p", {**WHO, "type": "Runbook", "summary": "numbers", **fields}).iri
        for name, value in (("pages", 4.5), ("string", 412)):
            with pytest.raises(IntentRefused) as refusal:
                memory.writer.submit_intent("p", {**WHO, "type": "Runbook", "summary": name, f"shop:{name}": value})
            assert f"not '{value}'" in refusal.value.detail
    assert refusal.value.hint == 'give `shop:string` as text: "412"'
    properties = shown(iri)["properties"]
    decimals = [{"@value": text, "@type": XSD + "decimal"} for text in ("0.0000001", "1", "1.02", "2.5")]
    doubles = [{"@value": "4", "@type": XSD + "double"}, 4.5]
    assert [sorted(properties[SHOP + name], key=str) for name in given] == [
        decimals,
        sorted(doubles, key=str),
        [4],
        [7],
    ]
    run("check")


def test_a_parameter_that_is_an_iri_takes_a_prefixed_name_and_refuses_an_undeclared_prefix(root):
    folder = root / "queries" / "shop"
    folder.mkdir(parents=True)
    (folder / "about-class.rq").write_text(
        "#+ summary: Which memories are about a term?\n#+ params: project asOf term:iri\n"
        "#+ columns: item\n#+ order: item\nPREFIX jido: <https://jido.ai/ontology#>\n"
        "SELECT ?project ?asOf ?term ?item WHERE { ?item jido:appliesToProject ?project ; jido:recordedAt ?recorded ;"
        " <https://team.example/ns#about> ?term FILTER(?recorded <= ?asOf) }"
    )
    with jidomem.open(root) as memory:
        fields = {"https://team.example/ns#about": {"@id": f"{SHOP}Runbook"}}
        item = memory.writer.submit_intent("p", {**WHO, "summary": "about runbooks", **fields}).iri
        for name in ("shop:Runbook", f"{SHOP}Runbook"):
            assert [row["item"] for row in memory.reader.ask("about-class", project="p", term=name)] == [item]
        with pytest.raises(InvalidRequest) as refusal:
            memory.reader.ask("about-class", project="p", term="shpo:Runbook")
    assert refusal.value.detail == "term='shpo:Runbook' has an undeclared prefix; did you mean 'shop:Runbook'?"


def test_the_repaired_correction_replaces_the_values_of_the_property_that_it_names(root):
    with jidomem.open(root) as memory:
        fields = {**WHO, "type": "Runbook", "summary": "restart", "shop:pages": 2, "shop:severity": "low"}
        item = memory.writer.submit_intent("p", fields).iri
        with pytest.raises(IntentRefused) as refusal:
            memory.writer.correct("p", item, changes={"shop:pagse": 3}, reason="it grew")
        new = memory.writer.submit_intent("p", refusal.value.fixed_intent).iri
    assert own(new) == {"severity": ["low"], "pages": [3]}


def test_each_broken_rule_of_one_shape_is_reported(root):
    (root / "shapes").mkdir()
    rules = '[ sh:path shop:pages ; sh:maxInclusive 9 ; sh:message "At most nine pages." ]'
    rules += ', [ sh:path shop:severity ; sh:in ( "low" "high" ) ; sh:message "The severity is low or high." ]'
    shape = f"shop:RunbookIsShort a sh:NodeShape ; sh:targetClass shop:Runbook ; sh:property {rules} .\n"
    (root / "shapes" / "shop.ttl").write_text(f"{TERMS.partition('shop:Runbook')[0]}@prefix sh: <{SH}> .\n{shape}")
    fields = {"type": "Runbook", "summary": "restart", "shop:pages": 10, "shop:severity": "dire"}
    with jidomem.open(root) as memory, pytest.raises(IntentRefused) as refusal:
        memory.writer.submit_intent("p", {**WHO, **fields})
    texts = ["At most nine pages.", "The severity is low or high."]
    assert sorted(violation.message.partition(" (shape")[0] for violation in refusal.value.violations) == texts
