"""The overlay, judged: what is wrong with a project's own terms, shapes and questions, and in which line."""

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
SAID = ' rdfs:label "x"@en ; skos:definition "Something."@en .'
RECIPE = f"my:Recipe a owl:Class ; rdfs:subClassOf jido:Fact ;{SAID}"
SERVES = f"my:serves a owl:DatatypeProperty ; rdfs:domain my:Recipe ; rdfs:range xsd:integer ;{SAID}"
RULE = """my:RecipeServes a sh:NodeShape ; sh:targetClass my:Recipe ;
    sh:property [ sh:path my:serves ; sh:minCount 1 ; sh:message "Say for how many: give it my:serves." ] ."""
HEADER = "#+ summary: Which recipes?\n#+ params: project\n#+ columns: item\n#+ order: item\n"
QUESTION = f"{HEADER}SELECT ?project ?item WHERE {{ ?item <https://jido.ai/ontology#appliesToProject> ?project }}\n"


def laid(root, terms=(RECIPE, SERVES), rules=(RULE,), **questions):
    texts = {"ontology/mine.ttl": PREFIXES + "\n".join(terms), "shapes/mine.ttl": PREFIXES + "\n".join(rules)}
    texts |= {f"queries/cook/{name}.rq": text for name, text in questions.items()}
    for name, text in texts.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def told(report):
    """Each finding but information, as file, line, rule and gravity."""
    return [
        (problem.path.rsplit("/", 1)[1], problem.line, problem.name, problem.severity)
        for problem in report.problems
        if problem.severity != "info"
    ]


def test_a_sound_overlay_is_clean_and_says_how_a_memory_of_its_class_is_kept(tmp_path):
    report = check_overlay(laid(tmp_path, recipes=QUESTION))

    assert (report.exit_code, told(report), report.judged) == (0, [], 3)
    assert [(each.name, each.severity) for each in report.problems] == [("KindCanBeKept", "info")]
    assert "of the type 'fact' too: jidomem remember TEXT --type Recipe" in report.problems[0].message


TERMS = [
    ("my:Broken a", "TurtleParses", 0),
    (f"jido:Fact rdfs:subClassOf my:Recipe ;{SAID}", "OverlayAddsOnly", 0),
    (f"jido:Mine a owl:Class ;{SAID}", "OverlayAddsOnly", 0),
    ("jido:assertedBy rdfs:range my:Recipe .", "OverlayAddsOnly", 0),
    ("jido:topic a owl:FunctionalProperty .", "OverlayAddsOnly", 0),
    ("my:o a owl:Ontology ;\n owl:imports <https://other.example/o> .", "OverlayImportsNothing", 1),
    (f"my:A a owl:Class ; rdfs:subClassOf my:A ;{SAID}", "ClassTreeHasNoCycle", 0),
    (f"my:A a owl:Class ;\n rdfs:subClassOf my:Recipie ;{SAID}", "TermIsDeclared", 1),
    (f"my:A a owl:Class ; rdfs:subClassOf jido:Fakt ;{SAID}", "TermIsDeclared", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:domain my:Nobody ;{SAID}", "TermIsDeclared", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:range my:serves ;{SAID}", "TermIsDeclared", 0),
    (f"my:A a owl:Class ; my:serves 3 ; my:feeds 3 ;{SAID}", "TermIsDeclared", 0),
    (f"my:p a owl:DatatypeProperty ; rdfs:range my:Recipe ;{SAID}", "TermCanBeUsed", 0),
    (f"my:p a owl:ObjectProperty ; rdfs:range xsd:string ;{SAID}", "TermCanBeUsed", 0),
    (f"<https://jido.ai/projects/p/x#p> a owl:ObjectProperty ;{SAID}", "TermCanBeUsed", 0),
    (f"<http://jido.ai/ontology#Mine> a owl:Class ; rdfs:subClassOf jido:Fact ;{SAID}", "TermCanBeUsed", 0),
    (f"my:A a owl:Class ; rdfs:subClassOf jido:Fact , jido:Project ;{SAID}", "OntologyIsConsistent", 0),
]


def test_every_fault_in_a_term_is_found_in_its_line(tmp_path):
    faults = [each for each in TERMS if each[1] != "TurtleParses"]
    lines, expected = [RECIPE, SERVES], set()
    for n, (text, rule, below) in enumerate(faults):
        expected.add(("mine.ttl", FIRST + "\n".join(lines).count("\n") + 1 + below, rule, "violation"))
        lines.append(text.replace("my:A ", f"my:A{n} ").replace("my:A ", f"my:A{n} ").replace("my:p ", f"my:p{n} "))

    report = check_overlay(laid(tmp_path, lines))

    assert {each for each in told(report) if each[3] == "violation"} == expected
    assert report.exit_code == 1


def test_a_file_that_is_no_turtle_is_told_with_its_line(tmp_path):
    report = check_overlay(laid(tmp_path, ["my:Broken a"], rules=()))
    assert told(report) == [("mine.ttl", FIRST, "TurtleParses", "violation")]


def test_a_byte_order_mark_and_lines_of_windows_change_nothing(tmp_path):
    laid(tmp_path, recipes=QUESTION)
    before = ontology.load([tmp_path]).version
    for path in tmp_path.glob("*/**/*.*"):
        path.write_bytes(BOM_UTF8 + path.read_bytes().replace(b"\n", b"\r\n"))

    assert (told(check_overlay(tmp_path)), ontology.load([tmp_path]).version) == ([], before)
    assert "recipes" in {query.name for query in Playbook([tmp_path / "queries"])}


def test_what_can_be_worked_with_but_should_be_otherwise_is_a_warning(tmp_path):
    texts = [
        "my:A a owl:Class .",
        "my:p a owl:ObjectProperty ; rdfs:label 'x' .",
        f"my:B a owl:Class ; rdfs:subClassOf other:Thing ;{SAID}",
        "my:S a sh:NodeShape ; sh:minCount 1 .",
    ]
    report = check_overlay(laid(tmp_path, [RECIPE, SERVES, *texts]))

    rules = ["TermIsExplained", "TermIsExplained", "TermIsDeclared", "OverlayIsRead"]
    assert told(report) == [("mine.ttl", FIRST + 2 + n, rule, "warning") for n, rule in enumerate(rules)]
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
]  # fmt: skip


def test_every_fault_in_a_shape_is_found_in_its_line(tmp_path):
    lines, expected = [RULE], set()
    for n, (text, rule, below) in enumerate(SHAPES):
        expected.add(("mine.ttl", FIRST + "\n".join(lines).count("\n") + 1 + below, rule, "violation"))
        lines.append(text.replace("my:S ", f"my:S{n} "))

    report = check_overlay(laid(tmp_path, rules=lines))

    assert {each for each in told(report) if each[3] == "violation"} >= expected
    assert report.exit_code == 1


def test_a_shape_without_a_message_is_a_warning_and_one_that_is_not_compiled_is_told(tmp_path):
    text = "my:S a sh:NodeShape ; sh:targetClass my:Recipe ;\n sh:property [ sh:path my:serves ; sh:minInclusive 1 ] ."
    report = check_overlay(laid(tmp_path, rules=[text]))

    assert told(report) == [("mine.ttl", FIRST + 1, "ShapeSaysWhatToDo", "warning")]
    assert ("https://my.example/kitchen#S", "ShapeIsCompiled") in [(each.item, each.name) for each in report.problems]


QUESTIONS = [
    ("SELECT ?item WHERE { ?item ?p ?o }", 1),
    (QUESTION.replace("#+ order: item\n", ""), 4),
    (QUESTION.replace("?project ?item WHERE", "?item WHERE"), 2),
    (QUESTION.replace(" }\n", "\n"), 6),
    (QUESTION.replace("{ ?item", "{ SERVICE <http://127.0.0.1:9/> { ?item ?x ?y } ?item"), 5),
    (QUESTION.replace("WHERE", "FROM <http://127.0.0.1:9/g> WHERE"), 5),
    (f"{HEADER}LOAD <http://127.0.0.1:9/>", 1),
    (f"{HEADER}# SELECT ?project ?item\nDELETE WHERE {{ ?project ?p ?item }}", 1),
    (QUESTION.replace("?item <", f"?item {'/'.join(['<urn:p>'] * 300)} ?x . ?item <"), 5),
]


def test_a_question_that_is_none_or_reaches_outside_is_refused_with_its_line(tmp_path):
    laid(tmp_path, (), (), **{f"q{n}": text for n, (text, _) in enumerate(QUESTIONS)})

    report = check_overlay(tmp_path)

    found = {each.item: each.line for each in report.problems if each.name == "QueryIsSound"}
    assert found == {f"cook/q{n}.rq": line for n, (_, line) in enumerate(QUESTIONS)}


@pytest.mark.parametrize("text", [text for text, line in QUESTIONS if line != 6])
def test_it_is_refused_when_the_playbook_is_read_and_its_file_and_line_are_named(tmp_path, text):
    with pytest.raises(JidomemError, match=r"mine\.rq:\d: "):
        Playbook([laid(tmp_path, (), (), mine=text) / "queries"])


def test_a_question_of_a_name_that_is_taken_is_refused(tmp_path):
    report = check_overlay(laid(tmp_path, (), (), **{"open-tasks": QUESTION}))
    assert [
        "is taken by planner/open-tasks.rq" in each.message for each in report.problems if each.name != "KindCanBeKept"
    ] == [True]


def test_a_question_that_would_never_end_is_judged_and_never_asked(tmp_path):
    many = " ".join(f"VALUES ?v{n} {{ {' '.join(map(str, range(400)))} }}" for n in range(8))
    report = check_overlay(laid(tmp_path, (), (), mine=QUESTION.replace("{ ?item", f"{{ {many} ?item")))
    assert report.exit_code in (0, 1)


def test_a_file_that_lies_where_nobody_reads_it_is_told(tmp_path):
    laid(tmp_path)
    (tmp_path / "ontology" / "more.owl").write_text("x")
    (tmp_path / "queries").mkdir()
    (tmp_path / "queries" / "top.rq").write_text("x")

    assert [(each.item, each.name) for each in check_overlay(tmp_path).problems if each.severity == "warning"] == [
        ("ontology/more.owl", "OverlayIsRead"),
        ("queries/top.rq", "OverlayIsRead"),
    ]


def test_files_that_are_named_are_judged_with_the_overlay_in_view(tmp_path):
    laid(tmp_path, [RECIPE, "my:Broken a owl:Class ."])
    new = tmp_path / "new.ttl"
    new.write_text(PREFIXES + SERVES + "\nmy:Soup a owl:Class ; rdfs:subClassOf my:Recipe .")

    report = check_overlay(tmp_path, [new])

    assert told(report) == [("new.ttl", FIRST + 1, "TermIsExplained", "warning")]
    assert report.judged == 1


def test_a_file_that_cannot_be_kept_in_view_is_told_and_nothing_passes(tmp_path):
    laid(tmp_path, ["my:Broken a"])
    new = tmp_path / "new.ttl"
    new.write_text(PREFIXES + RECIPE)

    report = check_overlay(tmp_path, [new])

    assert report.exit_code == 3
    assert "ontology/mine.ttl was not included" in report.unchecked[0]


def test_the_shipped_files_pass_as_an_overlay_but_for_being_shipped(tmp_path):
    for folder, files in (("ontology", ontology_files()), ("shapes", shape_files())):
        (tmp_path / folder).mkdir()
        for path in files:
            (tmp_path / folder / path.name).write_bytes(path.read_bytes())

    rules = {each.name for each in check_overlay(tmp_path).problems}

    assert rules == {"OverlayAddsOnly"}


@pytest.mark.parametrize("form", ["text", "sarif", "github"])
def test_the_command_tells_it_in_every_form_also_of_a_root_that_cannot_be_opened(tmp_path, form):
    root = laid(init(tmp_path, "p"), [RECIPE, SERVES, "jido:Mine a owl:Class ."])

    done = CliRunner().invoke(cli, ["ontology", "check", "--root", str(root), "--format", form])

    assert done.exit_code == 1
    assert "OverlayAddsOnly" in done.stdout
    assert form != "sarif" or json.loads(done.stdout)


PATTERN = """my:S a sh:NodeShape ; sh:targetClass jido:Fact ;
    sh:property [ sh:path jido:summary ;
        sh:pattern "([a-z" ; sh:message "Use words." ] ."""
BROKEN = {"PatternEndsSoon": (PATTERN, FIRST + 2), "TurtleParses": (f"{RULE}\nmy:S a [", FIRST + RULE.count("\n") + 1)}


@pytest.mark.parametrize("rule", BROKEN)
@pytest.mark.parametrize("form", ["text", "json", "sarif", "junit", "github"])
def test_a_check_names_a_rule_that_keeps_the_memory_from_being_opened_in_every_format(
    tmp_path, form, rule, monkeypatch
):
    text, line = BROKEN[rule]
    laid(init(tmp_path, "p"), rules=[text])
    monkeypatch.chdir(tmp_path)

    done = CliRunner().invoke(cli, ["check", "--format", form])

    assert done.exit_code == 3
    place = {
        "text": f".jidomem/shapes/mine.ttl:{line}: violation: {rule}: ",
        "json": f'"path": ".jidomem/shapes/mine.ttl", "line": {line}',
        "sarif": f'"startLine": {line}',
        "junit": f'file=".jidomem/shapes/mine.ttl" line="{line}"',
        "github": f"::error file=.jidomem/shapes/mine.ttl,line={line},title={rule}::",
    }
    assert place[form] in done.stdout
    assert "correct th" in done.stdout
    assert rule == "TurtleParses" or "kitchen#S" in done.stdout
    assert "_:" not in done.stdout
    assert "the memory of this root" in done.stdout  # is unchecked


@pytest.mark.parametrize("form", ["json", "sarif", "junit", "github"])
def test_a_check_of_a_root_that_cannot_be_opened_says_so_in_the_format_asked_for(tmp_path, form):
    root = init(tmp_path, "p")
    (root / "config.toml").write_text("x = =")

    done = CliRunner().invoke(cli, ["check", "--root", str(root), "--format", form])

    assert done.exit_code == 3
    assert "config.toml" in done.stdout


def test_an_import_check_of_a_root_with_a_broken_shape_does_not_end_as_if_sources_differed(tmp_path, monkeypatch):
    laid(init(tmp_path, "p"), rules=[PATTERN])
    monkeypatch.chdir(tmp_path)

    plain = CliRunner().invoke(cli, ["root", "import", "--check"])
    on_github = CliRunner().invoke(cli, ["root", "import", "--check", "--format", "github"])

    assert (plain.exit_code, on_github.exit_code) == (3, 3)
    assert "jidomem ontology check" in plain.stderr
    assert on_github.stdout.startswith(f"::error file=.jidomem/shapes/mine.ttl,line={FIRST + 2},title=PatternEndsSoon")
