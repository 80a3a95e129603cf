import json
import re
from pathlib import Path

import pytest
from reader_world import TURTLE, new_index, reader_of, shortened, triples, world_index

import jidomem
from jidomem.base.files import query_files
from jidomem.check.check import check_files
from jidomem.errors import Failed, InvalidRequest, NotFound, PolicyDenied
from jidomem.rdf import sparql
from jidomem.rdf.vocab import CLASS_OF_TYPE, graph_iri
from jidomem.read.playbook import GATES, Playbook
from jidomem.records.named_query import parse
from jidomem.schema import ontology

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "queries" / "cases"
SHIPPED = {query.name: query for query in Playbook()}
#: The 23 queries of the playbook, by number.
NUMBERED = {
    "architect": ["active-decisions", "conventions", "risks"],
    "planner": ["open-tasks", "task-dependencies", "blocked-tasks"],
    "debugger": ["open-errors", "unexplained-root-causes", "lessons"],
    "curator": ["facts", "evidence-contradictions", "items-without-project", "dangling-supersessions"],
    "code": ["elixir-modules", "commands-and-events", "projections"],
    "governance": ["strict-conventions", "agent-rules"],
    "session": ["active-sessions", "continuations"],
    "ci": ["items-without-confidence", "decisions-without-rationale", "tasks-without-assignee"],
}
HEADER = "#+ summary: s\n#+ params: project\n#+ columns: item\n#+ order: item\n"


@pytest.fixture(scope="module")
def reader():
    return reader_of(world_index())


def test_all_23_queries_of_the_playbook_are_shipped_by_role():  # C100
    roles = Playbook().roles()
    assert sum(map(len, NUMBERED.values())) == 23
    assert {role: [name for name in names if SHIPPED[name] not in roles[role]] for role, names in NUMBERED.items()} == {
        role: [] for role in NUMBERED
    }


@pytest.mark.parametrize("name", sorted(SHIPPED))
def test_a_shipped_query_returns_the_rows_of_its_cases(reader, name):  # C088, C097, C099
    for case in json.loads((CASES / f"{name}.json").read_text("utf-8")).values():
        assert shortened(reader.ask(name, project="demo", **case["asked"])) == case["rows"], case["asked"]


def test_memories_of_a_kind_are_listed_by_its_name_alias_or_class_and_another_name_is_refused(reader):
    def items(kind):
        return [row["item"] for row in reader.ask("memories-of-kind", project="demo", kind=kind)]

    assert items("lesson") == items("lesson_learned") == items("https://jido.ai/ontology#LessonLearned") != []
    assert items("plan") == []
    with pytest.raises(InvalidRequest, match="kind='plans' is not a kind of memory") as refusal:
        items("plans")
    assert "milestone, plan" in refusal.value.hint
    assert all(items(kind) is not None for kind in CLASS_OF_TYPE)


def test_a_shipped_query_of_active_memories_has_the_column_of_the_memory():
    listing = [query for query in SHIPPED.values() if query.takes("includeInactive") and query.role != "session"]

    assert len(listing) > 30
    assert [query.name for query in listing if query.memory_column not in query.columns] == []
    assert (SHIPPED["commits"].memory_column, SHIPPED["conflicts"].memory_column) == (None, None)


def test_the_three_ci_queries_list_the_findings_of_the_check():  # C112
    whole = (
        'jido:appliesToProject p:demo ; jido:assertedBy <urn:ana> ; jido:assertedIn s:one ; jido:summary "a" ;'
        ' jido:hasTimestamp "2026-01-01T09:00:00Z"^^xsd:dateTime ; jido:recordedAt "2026-01-01T09:00:00Z"^^xsd:dateTime'
    )
    turtle = (
        f"m:unsure a jido:Fact ; {whole} .\n"
        f"m:bare a jido:Decision ; jido:hasConfidence jido:High ; {whole} .\n"
        f"m:idle a jido:Task ; jido:hasTaskStatus jido:Planned ; jido:hasConfidence jido:High ; {whole} .\n"
        f'm:fine a jido:Decision ; jido:rationale "r" ; jido:hasConfidence jido:High ; {whole} .\n'
    )
    index = new_index()
    index.apply(graph_iri("demo"), "1", triples(turtle))
    rows_by_query = {name: shortened(reader_of(index).ask(name, project="demo")) for name in NUMBERED["ci"]}

    problems = check_files([("memory.ttl", (TURTLE + turtle).encode())], ontology.load()).problems

    by_rule = {problem.name: problem.item.rsplit("/", 1)[-1] for problem in problems}
    assert [by_rule[rule] for rule in ("ItemHasOneConfidence", "DecisionHasRationale", "TaskHasAnAssignee")] == [
        "unsure", "bare", "idle",
    ]  # fmt: skip
    assert [row[0] for rows in rows_by_query.values() for row in rows] == ["unsure", "bare", "idle"]


def test_every_case_belongs_to_a_shipped_query():
    assert {file.stem for file in CASES.iterdir()} == set(SHIPPED)


@pytest.mark.parametrize("query", SHIPPED.values(), ids=SHIPPED)
def test_a_shipped_query_takes_as_of_and_a_project(query):  # C099
    assert query.takes("asOf")
    assert query.takes("project") or query.name == "items-without-project"


@pytest.mark.parametrize("query", SHIPPED.values(), ids=SHIPPED)
def test_a_shipped_query_has_a_total_order_of_its_rows(query):  # C097
    """Rows are distinct and every column is in the order, so no two rows tie."""
    stated = re.search(r"\n\}.* ORDER BY (.*)\s*\Z", query.text)[1].split()
    assert [re.sub(r"DESC\(\?(\w+)\)", r"-\1", word).lstrip("?") for word in stated] == list(query.order)
    assert {word.lstrip("-") for word in query.order} == set(query.columns)
    assert "SELECT DISTINCT" in query.text
    assert not re.search(r"\b(LIMIT|OFFSET)\b", query.text)


@pytest.mark.parametrize("query", SHIPPED.values(), ids=SHIPPED)
def test_a_parameter_of_a_shipped_query_is_used_and_outside_sub_selects(query):
    checked = sparql.check(query.text)
    sparql.refuse_graphs(checked)
    code = [token for token in checked if token.kind in ("word", "variable")]
    within = re.findall(r"\{ SELECT [^{}]*\{[^{}]*\}[^{}]*\}", query.text)
    assert [token.text.upper() for token in code].count("SELECT") == 1 + len(within)
    for param in query.params:
        assert not any(f"?{param.name}" in inner for inner in within)
        assert sum(token.text == f"?{param.name}" for token in code) >= 2, f"?{param.name} is selected and not used"


@pytest.mark.parametrize("query", SHIPPED.values(), ids=SHIPPED)
def test_each_exists_of_a_shipped_query_has_one_pattern(query):
    """With two patterns in one EXISTS the engine multiplies them out for every row: 5 s for 84 rows of 1,000 items."""
    patterns = re.findall(r"EXISTS \{([^{}]*)", query.text)
    assert [pattern for pattern in patterns if ";" in pattern or " . " in pattern] == []


def test_every_shipped_query_declares_the_jido_prefix():  # C094
    assert [q.name for q in SHIPPED.values() if "PREFIX jido: <https://jido.ai/ontology#>\n" not in q.text] == []


def test_the_playbook_page_is_up_to_date():
    written = Playbook().markdown()
    assert (ROOT / "docs" / "reference" / "playbook.md").read_text("utf-8") == written, (
        'write it again: python -c "from jidomem.read.playbook import Playbook;'
        " open('docs/reference/playbook.md', 'w').write(Playbook().markdown())\""
    )


def test_a_query_is_found_by_its_name_with_or_without_role():
    playbook = Playbook()
    assert playbook.get("planner/open-tasks") is playbook.get("open-tasks")


@pytest.mark.parametrize(
    ("name", "near"),
    [("open-taks", "open-tasks"), ("debugger/open-tasks", "open-errors"), ("planner/x", "open-tasks")],
)
def test_an_unknown_query_is_refused_with_the_nearest_names(name, near):
    with pytest.raises(NotFound) as refusal:
        Playbook().get(name)
    assert refusal.value.code == "unknown_query"
    assert near in refusal.value.hint


def overlay(folder, text, name="mine", role="planner"):
    (folder / role).mkdir(parents=True)
    (folder / role / f"{name}.rq").write_text(text, "utf-8")
    return folder


def test_shipped_query_names_are_unique():
    files = [file for file in query_files() if file.parent.name != GATES]

    assert sorted(file.stem for file in files) == Playbook().names()


def test_a_shipped_query_is_parsed_once_in_a_process(monkeypatch):
    reads = []
    monkeypatch.setattr(Path, "read_text", lambda file, *how: reads.append(file))

    assert Playbook().get("open-tasks") is SHIPPED["open-tasks"]
    assert reads == []


def test_a_project_adds_its_own_queries(tmp_path):
    text = (
        HEADER + "SELECT ?project ?item { ?item <https://jido.ai/ontology#appliesToProject> ?project } ORDER BY ?item"
    )
    reader = reader_of(world_index(), playbook=Playbook([overlay(tmp_path, text)]))

    assert {"item": "https://jido.ai/memory/write-index"} in reader.planner.mine("demo")


def test_the_header_on_the_page_of_the_ontology_is_that_of_a_query(tmp_path):
    page = (Path(__file__).parents[2] / "docs/ontology.md").read_text("utf-8")
    (header,) = re.findall(r"^```sparql\n(#\+.*?)^```$", page, re.MULTILINE | re.DOTALL)
    item, serves = "https://jido.ai/memory/write-index", "BIND(4.5 AS ?serves) FILTER(?serves >= ?least)"
    found = f"?item <https://jido.ai/ontology#appliesToProject> ?project {serves}"
    text = f"{header}SELECT ?project ?asOf ?least ?item ?serves {{ {found} }} ORDER BY DESC(?serves) ?item"
    reader = reader_of(world_index(), playbook=Playbook([overlay(tmp_path, text)]))

    assert item in {row["item"] for row in reader.planner.mine("demo")}
    assert reader.planner.mine("demo", least=4.6) == []


def test_a_project_query_with_a_shipped_name_is_refused(tmp_path):
    with pytest.raises(Failed, match=r"open-tasks.rq: the name 'open-tasks' is taken by planner/open-tasks") as refusal:
        Playbook([overlay(tmp_path, SHIPPED["open-tasks"].text, "open-tasks", "ci")])
    assert refusal.value.code == "invalid_config"


def test_a_project_query_with_service_is_refused(tmp_path):
    with pytest.raises(PolicyDenied, match="SERVICE"):
        Playbook([overlay(tmp_path, HEADER + "SELECT ?project ?item { SERVICE <urn:x> { ?item ?a ?project } }")])


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT ?x {}", r"planner/mine\.rq:1: the header has no summary, params, columns, order"),
        (HEADER.replace("#+ order: item\n", "") + "SELECT ?project ?item {}", r"mine\.rq:4: the header has no order"),
        ("#+ sumary: s\n" + HEADER, r"mine\.rq:1: '#\+ sumary: s' is not a header line"),
        (HEADER.replace("project", "n:number") + "SELECT ?n ?item {}", r"mine\.rq:2: 'number' is not a type"),
        (HEADER.replace("project", "n:integer=x") + "SELECT ?n ?item {}", r"mine\.rq:2: the default 'x' is not"),
        (HEADER + "SELECT ?item {}", r"mine\.rq:2: the query does not select \?project"),
        (HEADER + "SELECT ?project {}", r"mine\.rq:3: the query does not select \?item"),
        (HEADER + "ASK {}", r"mine\.rq:5: this is not a SELECT query"),
    ],
)
def test_an_invalid_header_is_refused_with_file_and_line(text, where):
    with pytest.raises(Failed, match=where) as refusal:
        parse("mine", "planner", text)
    assert refusal.value.code == "invalid_config"


@pytest.mark.parametrize(("short", "name"), [("tasks", "open-tasks"), ("errors", "open-errors")])
def test_an_alias_of_a_query_returns_the_same_rows_in_python(tmp_path, short, name):
    with jidomem.open(tmp_path, project="p") as memory:
        memory.remember("Ship it", type="task", status="Planned")
        memory.remember("it hangs", type="bug", status="Reported", severity="high")
        assert memory.ask(short) == memory.ask(name) != []


def test_a_root_query_replaces_an_alias_of_the_same_name(tmp_path):
    folder = tmp_path / "queries" / "own"
    folder.mkdir(parents=True)
    text = (ROOT / "queries" / "planner" / "open-tasks.rq").read_text()
    (folder / "tasks.rq").write_text(text)
    with jidomem.open(tmp_path, project="p") as memory:
        assert memory.playbook.get("tasks").name == "tasks"
