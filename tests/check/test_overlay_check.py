"""The check of an overlay: faults in the terms, shapes and queries of a project, with their lines."""

import json
from codecs import BOM_UTF8

import pytest
from click.testing import CliRunner

from jidomem.base.files import ontology_files, shape_files
from jidomem.check.overlay import check_overlay
from jidomem.errors import JidomemError
from jidomem.read.playbook import Playbook
from jidomem.runtime.location import init
from jidomem.schema import ontology
from jidomem_cli.main import cli

PREFIXES = """\
@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix other: <https://other.example/> .
"""
FIRST = PREFIXES.count("\n") + 1
LABELS = ' rdfs:label "x"@en ; skos:definition "Something."@en .'
RECIPE = f"my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ;{LABELS}"
SERVES = f"my:serves a owl:DatatypeProperty ; rdfs:domain my:Recipe ; rdfs:range xsd:integer ;{LABELS}"
RULE = """my:RecipeServes a sh:NodeShape ; sh:targetClass my:Recipe ;
    sh:property [ sh:path my:serves ; sh:minCount 1 ; sh:message "Say for how many: give it my:serves." ] ."""
HEADER = "#+ summary: Which recipes?\n#+ params: project\n#+ columns: item\n#+ order: item\n"
QUERY = f"{HEADER}SELECT ?project ?item WHERE {{ ?item <https://jido.ai/ontology#appliesToProject> ?project }}\n"


def write_overlay(root, terms=(RECIPE, SERVES), rules=(RULE,), **queries):
    texts = {"ontology/mine.ttl": PREFIXES + "\n".join(terms), "shapes/mine.ttl": PREFIXES + "\n".join(rules)}
    texts |= {f"queries/cook/{name}.rq": text for name, text in queries.items()}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def reported(report):
    """Each finding above information, as file, line, rule and severity."""
    return [
        (problem.path.rsplit("/", 1)[1], problem.line, problem.name, problem.severity)
        for problem in report.problems
        if problem.severity != "info"
    ]


def test_a_valid_overlay_has_one_note_that_names_the_command_for_its_class(tmp_path):
    report = check_overlay(write_overlay(tmp_path, recipes=QUERY))

    assert (report.exit_code, reported(report), report.judged) == (0, [], 3)
    assert [(each.name, each.severity) for each in report.problems] == [("KindCanBeKept", "info")]
    assert "of the type 'fact' too: jidomem remember TEXT --type Recipe" in report.problems[0].message


TERMS = [
    ("my:Broken a", "TurtleParses", 0),
    (f"jido:Fact rdfs:subClassOf my:Recipe ;{LABELS}", "OverlayAddsOnly", 0),
    (f"jido:Mine a owl:Class ;{LABELS}", "OverlayAddsOnly", 0),
    ("jido:assertedBy rdfs:range my:Recipe .", "OverlayAddsOnly", 0),
    ("jido:topic a owl:FunctionalProperty .", "OverlayAddsOnly", 0),
    ("my:o a owl:Ontology ;\n owl:imports <https://other.example/o> .", "OverlayImportsNothing", 1),
    (f"my:A a owl:Class ; rdfs:subClassOf my:A ;{LABELS}", "ClassTreeHasNoCycle", 0),
    (f"my:A a owl:Class ;\n rdfs:subClassOf my:Recipie ;{LABELS}", "TermIsDeclared", 1),
    (f"my:A a owl:Class ; rdfs:subClassOf jido:Fakt ;{LABELS}", "TermIsDeclared", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:domain my:Nobody ;{LABELS}", "TermIsDeclared", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:range my:serves ;{LABELS}", "TermIsDeclared", 0),
    (f"my:A a owl:Class ; my:serves 3 ; my:feeds 3 ;{LABELS}", "TermIsDeclared", 0),
    (f"my:p a owl:DatatypeProperty ; rdfs:range my:Recipe ;{LABELS}", "TermCanBeUsed", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:range xsd:string ;{LABELS}", "TermCanBeUsed", 0),
    (f"<https://jido.ai/projects/p/x#p> a owl:ObjectProperty ;{LABELS}", "TermCanBeUsed", 0),
    (f"<http://jido.ai/ontology#Mine> a owl:Class ; rdfs:subClassOf jido:Fact ;{LABELS}", "TermCanBeUsed", 0),
    (f"my:A a owl:Class ; rdfs:subClassOf jido:Fact , jido:Project ;{LABELS}", "OntologyIsConsistent", 0),
]


def test_each_fault_in_a_term_is_a_violation_at_its_line(tmp_path):
    faults = [each for each in TERMS if each[1] != "TurtleParses"]
    lines, expected = [RECIPE, SERVES], set()
    for n, (text, rule, below) in enumerate(faults):
        expected.add(("mine.ttl", FIRST + "\n".join(lines).count("\n") + 1 + below, rule, "violation"))
        lines.append(text.replace("my:A ", f"my:A{n} ").replace("my:A ", f"my:A{n} ").replace("my:p ", f"my:p{n} "))

    report = check_overlay(write_overlay(tmp_path, lines))

    assert {each for each in reported(report) if each[3] == "violation"} == expected
    assert report.exit_code == 1


@pytest.mark.parametrize("range_", ["<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", "rdfs:Literal"])
def test_a_range_of_texts_with_languages_is_refused_with_the_repair(tmp_path, range_):
    given = f"my:p a owl:DatatypeProperty ; rdfs:domain my:Recipe ; rdfs:range {range_} ;{LABELS}"

    report = check_overlay(write_overlay(tmp_path, [RECIPE, SERVES, given]))

    (message,) = [each.message for each in report.problems if each.severity == "violation"]
    assert message.endswith("leave the range out, and it takes any text, also with a language")
    repaired = given.replace(f" rdfs:range {range_} ;", "")
    assert check_overlay(write_overlay(tmp_path, [RECIPE, SERVES, repaired])).exit_code == 0


GATE = """#+ summary: A recipe names its project.
#+ params:
#+ columns: item message
#+ order: item
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ("Name it." AS ?message) WHERE { ?item a jido:Fact
  MINUS { ?item jido:appliesToProject ?project } } ORDER BY ?item
"""


@pytest.mark.parametrize(("folder", "text"), [("cook", QUERY), ("gates", GATE)])
def test_a_misspelt_term_in_a_query_is_a_violation_at_its_line(tmp_path, folder, text):
    path = write_overlay(tmp_path) / "queries" / folder / "recipes.rq"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert reported(check_overlay(tmp_path)) == []

    path.write_text(text.replace("appliesToProject", "apliesToProject"))

    report = check_overlay(tmp_path)
    line = text.count("\n", 0, text.index("appliesToProject")) + 1
    assert reported(report) == [("recipes.rq", line, "TermIsDeclared", "violation")]
    (message,) = [each.message for each in report.problems if each.severity == "violation"]
    assert message.endswith("is not a declared term; did you mean https://jido.ai/ontology#appliesToProject?")


def test_a_given_query_is_judged_with_the_terms_of_a_given_file_and_no_other_query_is_reported(tmp_path):
    root = write_overlay(tmp_path / "root", recipes=QUERY.replace("appliesToProject", "apliesToProject"))
    new = write_overlay(tmp_path / "new", [f"my:warm a owl:DatatypeProperty ; rdfs:domain jido:Fact ;{LABELS}"], ())
    query = new / "queries" / "cook" / "warm.rq"
    query.parent.mkdir(parents=True)
    query.write_text(QUERY.replace("https://jido.ai/ontology#appliesToProject", "https://my.example/kitchen#warm"))

    report = check_overlay(root, [new / "ontology" / "mine.ttl", query])

    assert [each for each in reported(report) if each[3] == "violation"] == []
    assert [each.partition(" was not included")[0] for each in report.unchecked] == [
        str(root / "queries" / "cook" / "recipes.rq")
    ]


def test_an_invalid_turtle_file_is_a_violation_at_its_line(tmp_path):
    report = check_overlay(write_overlay(tmp_path, ["my:Broken a"], rules=()))
    assert reported(report) == [("mine.ttl", FIRST, "TurtleParses", "violation")]


def test_a_byte_order_mark_and_windows_line_ends_change_no_result(tmp_path):
    write_overlay(tmp_path, recipes=QUERY)
    before = ontology.load([tmp_path]).version
    for path in tmp_path.glob("*/**/*.*"):
        path.write_bytes(BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))

    assert (reported(check_overlay(tmp_path)), ontology.load([tmp_path]).version) == ([], before)
    assert "recipes" in {query.name for query in Playbook([tmp_path / "queries"])}


def test_unexplained_terms_foreign_parents_and_unread_shapes_are_warnings(tmp_path):
    texts = [
        "my:A a owl:Class .",
        "my:p a owl:ObjectProperty ; rdfs:label 'x' .",
        f"my:B a owl:Class ; rdfs:subClassOf other:Thing ;{LABELS}",
        "my:S a sh:NodeShape ; sh:minCount 1 .",
    ]
    report = check_overlay(write_overlay(tmp_path, [RECIPE, SERVES, *texts]))

    rules = ["TermIsExplained", "TermIsExplained", "TermIsDeclared", "OverlayIsRead"]
    assert reported(report) == [("mine.ttl", FIRST + 2 + n, rule, "warning") for n, rule in enumerate(rules)]
    assert report.exit_code == 0


SHAPES = [
    ("my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:serves ;\n sh:minCount 'one' ] .",
     "ShapeIsWellFormed", 2),
    ("my:S a sh:NodeShape ; sh:targetClass my:Nobody ; sh:nodeKind sh:IRI ; sh:message 'x' .", "ShapeHasATarget", 0),
    ("my:S a sh:NodeShape ; sh:nodeKind sh:IRI ; sh:message 'x' .", "ShapeHasATarget", 0),
    ("my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:serves ;\n sh:minCuont 1 ;"
     " sh:message 'x' ] .", "ShapeIsWellFormed", 2),
    ("my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:servez ; sh:message 'x' ] .",
     "TermIsDeclared", 1),
    ("my:S sh:targetClass my:Recipe ; sh:sparql [ sh:message 'x' ;\n sh:select 'SELECT $this {}' ] .",
     "ShapeRunsNoCode", 1),
    ("my:S sh:targetClass my:Recipe ; sh:path my:serves ; sh:message 'x' ;\n sh:pattern '(?=a)b' .",
     "PatternEndsSoon", 1),
    ("my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:serves ; sh:minCount 1 ;"
     " sh:message 'x' ;\n sh:severity sh:Warning ; jido:checkSeverity sh:Violation ] .", "ShapeIsWellFormed", 2),
    ("my:S sh:targetClass my:Recipe ; sh:path my:serves ; sh:minCount 1 ; sh:message 'x' ;\n"
     " jido:checkSeverity 'Warning' .", "ShapeIsWellFormed", 1),
]  # fmt: skip


def test_each_fault_in_a_shape_is_a_violation_at_its_line(tmp_path):
    lines, expected = [RULE], set()
    for n, (text, rule, below) in enumerate(SHAPES):
        expected.add(("mine.ttl", FIRST + "\n".join(lines).count("\n") + 1 + below, rule, "violation"))
        lines.append(text.replace("my:S ", f"my:S{n} "))

    report = check_overlay(write_overlay(tmp_path, rules=lines))

    assert {each for each in reported(report) if each[3] == "violation"} >= expected
    assert report.exit_code == 1


def test_a_shape_without_a_message_is_a_warning_and_an_uncompiled_shape_is_reported(tmp_path):
    text = "my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:serves ; sh:minInclusive 1 ] ."
    report = check_overlay(write_overlay(tmp_path, rules=[text]))

    assert reported(report) == [("mine.ttl", FIRST + 1, "ShapeSaysWhatToDo", "warning")]
    (compiled,) = [each for each in report.problems if each.name == "ShapeIsCompiled"]
    assert compiled.item == "https://my.example/kitchen#S"
    assert compiled.message.endswith(": sh:minInclusive is not compiled")


INVALID_QUERIES = [
    ("SELECT ?item WHERE { ?item ?p ?o }", 1),
    (QUERY.replace("#+ order: item\n", ""), 4),
    (QUERY.replace("?project ?item WHERE", "?item WHERE"), 2),
    (QUERY.replace(" }\n", "\n"), 6),
    (QUERY.replace("{ ?item", "{ SERVICE <http://127.0.0.1:9/> { ?item ?x ?y } ?item"), 5),
    (QUERY.replace("WHERE", "FROM <http://127.0.0.1:9/g> WHERE"), 5),
    (f"{HEADER}LOAD <http://127.0.0.1:9/>", 5),
    (f"{HEADER}# SELECT ?project ?item\nDELETE WHERE {{ ?project ?p ?item }}", 6),
    (QUERY.replace("?item <", f"?item {'/'.join(['<urn:p>'] * 300)} ?x . ?item <"), 5),
]


def test_an_invalid_query_and_a_query_with_outside_access_are_findings_at_their_lines(tmp_path):
    write_overlay(tmp_path, (), (), **{f"q{n}": text for n, (text, _) in enumerate(INVALID_QUERIES)})

    report = check_overlay(tmp_path)

    lines = {each.item: each.line for each in report.problems if each.name == "QueryIsSound"}
    assert lines == {f"cook/q{n}.rq": line for n, (_, line) in enumerate(INVALID_QUERIES)}


@pytest.mark.parametrize("text", [text for n, (text, _) in enumerate(INVALID_QUERIES) if n != 3])
def test_an_invalid_query_is_refused_by_the_playbook_with_file_and_line(tmp_path, text):
    with pytest.raises(JidomemError, match=r"mine\.rq:\d: "):
        Playbook([write_overlay(tmp_path, (), (), mine=text) / "queries"])


def test_a_query_with_the_name_of_a_shipped_query_is_a_finding(tmp_path):
    report = check_overlay(write_overlay(tmp_path, (), (), **{"open-tasks": QUERY}))
    assert [
        "is taken by planner/open-tasks.rq" in each.message for each in report.problems if each.name != "KindCanBeKept"
    ] == [True]


def test_a_query_of_exponential_cost_is_checked_without_being_run(tmp_path):
    many = " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(400)))} }}" for n in range(8))
    report = check_overlay(write_overlay(tmp_path, (), (), mine=QUERY.replace("{ ?item", f"{{ {many} ?item")))
    assert report.exit_code in (0, 1)


def test_a_file_that_no_one_reads_is_a_warning(tmp_path):
    write_overlay(tmp_path)
    (tmp_path / "ontology" / "more.owl").write_text("x")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "top.rq").write_text("x")

    assert [(each.item, each.name) for each in check_overlay(tmp_path).problems if each.severity == "warning"] == [
        ("ontology/more.owl", "OverlayIsRead"),
        ("queries/top.rq", "OverlayIsRead"),
    ]


def test_named_files_are_judged_together_with_the_overlay(tmp_path):
    write_overlay(tmp_path, [RECIPE, "my:Broken a owl:Class ."])
    new = tmp_path / "new.ttl"
    new.write_text(PREFIXES + SERVES + "\nmy:Soup a owl:Class ; rdfs:subClassOf my:Recipe .")

    report = check_overlay(tmp_path, [new])

    assert reported(report) == [("new.ttl", FIRST + 1, "TermIsExplained", "warning")]
    assert report.judged == 1


def test_a_broken_overlay_file_leaves_the_check_of_named_files_incomplete(tmp_path):
    write_overlay(tmp_path, ["my:Broken a"])
    new = tmp_path / "new.ttl"
    new.write_text(PREFIXES + RECIPE)

    report = check_overlay(tmp_path, [new])

    assert report.exit_code == 3
    assert "ontology/mine.ttl was not included" in report.unchecked[0]


def test_the_shipped_files_as_an_overlay_break_no_rule_but_overlay_adds_only(tmp_path):
    for folder, files in (("ontology", ontology_files()), ("shapes", shape_files())):
        (tmp_path / folder).mkdir()
        for path in files:
            (tmp_path / folder / path.name).write_bytes(path.read_bytes())

    rules = {each.name for each in check_overlay(tmp_path).problems}

    assert rules == {"OverlayAddsOnly"}


@pytest.mark.parametrize("output_format", ["text", "sarif", "github"])
def test_the_ontology_check_command_reports_a_root_that_cannot_be_opened_in_every_format(tmp_path, output_format):
    root = write_overlay(init(tmp_path, "p"), [RECIPE, SERVES, "jido:Mine a owl:Class ."])

    result = CliRunner().invoke(cli, ["ontology", "check", "--root", str(root), "--format", output_format])

    assert result.exit_code == 1
    assert "OverlayAddsOnly" in result.stdout
    assert output_format != "sarif" or json.loads(result.stdout)


PATTERN = """my:S a sh:NodeShape ; sh:targetClass jido:Fact ;
    sh:property [ sh:path jido:summary ;
        sh:pattern "([a-z" ; sh:message "Use words." ] ."""
BROKEN = {"PatternEndsSoon": (PATTERN, FIRST + 2), "TurtleParses": (f"{RULE}\nmy:S a [", FIRST + RULE.count("\n") + 1)}


@pytest.mark.parametrize("rule", BROKEN)
@pytest.mark.parametrize("output_format", ["text", "json", "sarif", "junit", "github"])
def test_a_check_reports_a_shape_that_prevents_opening_the_root_in_every_format(
    tmp_path, output_format, rule, monkeypatch
):
    text, line = BROKEN[rule]
    write_overlay(init(tmp_path, "p"), rules=[text])
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(cli, ["check", "--format", output_format])

    assert result.exit_code == 3
    place = {
        "text": f".jidomem/shapes/mine.ttl:{line}: violation: {rule}: ",
        "json": f'"path": ".jidomem/shapes/mine.ttl", "line": {line}',
        "sarif": f'"startLine": {line}',
        "junit": f'file=".jidomem/shapes/mine.ttl" line="{line}"',
        "github": f"::error file=.jidomem/shapes/mine.ttl,line={line},title={rule}::",
    }
    assert place[output_format] in result.stdout
    assert "correct th" in result.stdout
    assert rule == "TurtleParses" or "kitchen#S" in result.stdout
    assert "_:" not in result.stdout
    assert "the memory of this root" in result.stdout  # is unchecked


@pytest.mark.parametrize("output_format", ["json", "sarif", "junit", "github"])
@pytest.mark.parametrize("command", [("check",), ("ontology", "check")])
def test_a_check_of_a_root_with_an_invalid_configuration_reports_its_line_in_every_format(
    tmp_path, output_format, command, monkeypatch
):
    (init(tmp_path, "p") / "config.toml").write_text("\nx = =")
    monkeypatch.chdir(tmp_path)

    result = CliRunner().invoke(cli, [*command, "--format", output_format])

    assert result.exit_code == 3
    place = {
        "json": '"unchecked": [".jidomem/config.toml: Invalid value (at line 2, ',
        "sarif": '"startLine": 2',
        "junit": 'file=".jidomem/config.toml" line="2"',
        "github": "::error file=.jidomem/config.toml,line=2,title=unchecked::.jidomem/config.toml: Invalid value",
    }
    assert place[output_format] in result.stdout
    assert str(tmp_path) not in result.stdout


def test_an_import_check_of_a_root_with_a_broken_shape_ends_with_its_own_exit_code(tmp_path, monkeypatch):
    write_overlay(init(tmp_path, "p"), rules=[PATTERN])
    monkeypatch.chdir(tmp_path)

    plain = CliRunner().invoke(cli, ["root", "import", "--check"])
    on_github = CliRunner().invoke(cli, ["root", "import", "--check", "--format", "github"])

    assert (plain.exit_code, on_github.exit_code) == (3, 3)
    assert "jidomem ontology check" in plain.stderr
    assert on_github.stdout.startswith(f"::error file=.jidomem/shapes/mine.ttl,line={FIRST + 2},title=PatternEndsSoon")
