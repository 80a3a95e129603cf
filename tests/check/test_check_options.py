"""The options of check: git ranges, waivers, issues, own gates and terms, and output formats."""

import json
import shutil
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shlex import quote
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from conftest import START, decision, fixed_sources, intent
from corpus import append

import jidomem
from jidomem.base import clock
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.vocab import TYPE
from jidomem.runtime.location import init
from jidomem_cli.main import cli

UNJUDGED_DECISION = """memory:slipped a jido:Decision ; jido:summary "slipped in" ; jido:recordedIn <urn:jido:this> ;
  jido:appliesToProject <https://jido.ai/projects/p> ; jido:assertedBy agent:architect ; jido:assertedIn session:s-1 ;
  jido:hasConfidence jido:High ; jido:hasTimestamp "2026-11-21T08:00:00Z"^^xsd:dateTime ."""
ITEM = "https://jido.ai/memory/slipped"
ISSUE = "https://github.com/acme/app/issues/"


def run(*arguments, code=0):
    result = CliRunner().invoke(cli, [str(word) for word in arguments])
    assert result.exit_code == code, result.stdout + result.stderr
    return result


def git(*arguments):
    subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], check=True, capture_output=True)


def build(folder):
    """Make a repository with a clean memory of two, committed."""
    git("init", "-q", "-b", "main", folder)
    with jidomem.open(init(folder, "p"), sources=fixed_sources()) as memory:
        memory.writer.submit_intent("p", intent())
        memory.writer.submit_intent("p", decision(topic="store"))
    git("-C", folder, "add", "-A")
    git("-C", folder, "commit", "-qm", "begin")


@pytest.fixture
def repository(tmp_path, monkeypatch, copy_built):
    """A repository with a clean memory of two, committed; it is the working directory."""
    monkeypatch.chdir(tmp_path)
    return copy_built(build, tmp_path)


def days_later(days):
    return replace(fixed_sources(START + timedelta(days=days)), new_id=clock.new_id)


def append_raw(repository, turtle=UNJUDGED_DECISION, number=0):
    append(FileJournal(repository / ".jidomem"), turtle, number)


def findings(*arguments, code=1):
    return json.loads(run("check", "--json", *arguments, code=code).stdout)["problems"]


def test_since_reports_findings_of_commits_after_a_revision_alone(repository):
    append_raw(repository)
    git("add", "-A")
    git("commit", "-qm", "a fault")
    append_raw(repository, UNJUDGED_DECISION.replace("memory:slipped", "memory:newer"), 1)

    assert [problem["item"] for problem in findings()] == [ITEM, "https://jido.ai/memory/newer"]
    assert [problem["item"] for problem in findings("--since", "HEAD")] == ["https://jido.ai/memory/newer"]
    assert len(findings("--since", "HEAD~1")) == 2


def test_since_reports_the_memories_that_a_redaction_of_the_range_left_without_a_text(repository):
    with jidomem.open(repository / ".jidomem", project="p", sources=days_later(1)) as memory:
        rows = memory.reader.ask("facts", project="p"), memory.reader.ask("decisions", project="p")
        fact, decided = (of_kind[0] for of_kind in rows)
        memory.maintenance.redact(memory.maintenance.plan("p", fact["fact"]), agent="user", reason="a name")
    assert [each["item"] for each in findings("--since", "HEAD", code=0)] == [fact["fact"]]
    git("add", "-A")
    git("commit", "-qm", "redacted")
    assert findings("--since", "HEAD", code=0) == []

    with jidomem.open(repository / ".jidomem", project="p", sources=days_later(2)) as memory:
        memory.maintenance.redact(memory.maintenance.plan("p", decided["decision"]), agent="user", reason="a name")

    assert {each["item"] for each in findings("--since", "HEAD", code=0)} == {decided["decision"]}
    assert {each["item"] for each in findings("--since", "HEAD~1", code=0)} >= {fact["fact"]}


def test_since_judges_new_statements_together_with_older_memories(repository):
    old = "https://jido.ai/memory/01900000-0000-7000-8000-000000000001"
    append_raw(repository, f'<{old}> jido:summary "another" .')

    rules = {(problem["item"], problem["rule"].rsplit("#", 1)[1]) for problem in findings("--since", "HEAD")}

    assert rules == {(old, "ItemHasOneSummary"), (old, "functional-property-has-one-value")}


def test_since_recognises_packed_commits(repository):
    append_raw(repository)
    append_raw(repository, UNJUDGED_DECISION.replace("memory:slipped", "memory:b"), 1)
    FileJournal(repository / ".jidomem").seal(Stream("p"))
    assert len(findings("--since", "HEAD")) == 2
    git("add", "-A")
    git("commit", "-qm", "packed")
    assert findings("--since", "HEAD", code=0) == []


def test_since_reports_the_row_of_a_gate_for_items_with_new_statements_alone(repository):
    with jidomem.open(repository / ".jidomem", sources=days_later(1)) as memory:
        old = memory.writer.submit_intent("p", intent(summary="before")).iri
        other = memory.writer.submit_intent("p", intent(summary="untouched")).iri
    gate(repository, "none-is-superseded", "?item a jido:Fact ; jido:supersededBy ?by", "Odd.\n#+ inactive: true")
    gate(repository, "no-session-is-long", "?item a jido:WorkSession")
    gate(repository, "no-module-is-known", "?item a <urn:x:Kind>")
    git("add", "-A")
    git("commit", "-qm", "two facts")
    assert [each["rule"].rpartition("#")[2] for each in findings("--since", "HEAD", code=0)] == []

    with jidomem.open(repository / ".jidomem", sources=days_later(2)) as memory:
        memory.writer.submit_intent("p", intent(summary="after", supersedes=[old]))
        memory.long_term("p").insert([("urn:x:m", TYPE[1:-1], "urn:x:Kind")], graph="codebase")
    findings_since = {(each["rule"].rpartition("#")[2], each["item"]) for each in findings("--since", "HEAD")}

    assert findings_since >= {("none-is-superseded", old), ("no-module-is-known", "urn:x:m")}
    assert other not in {item for _, item in findings_since}


def test_since_of_a_file_reports_findings_of_added_statements(repository):
    text = "@prefix jido: <https://jido.ai/ontology#> .\n<urn:a> a jido:Agent ; jido:hasCapability jido:CanPlan .\n"
    (repository / "agents.ttl").write_text(text)
    git("add", "-A")
    git("commit", "-qm", "agents")
    (repository / "agents.ttl").write_text(text + "<urn:b> a jido:Agent ; jido:hasCapability jido:CanPlan .\n")

    (problem,) = findings("--since", "HEAD", "agents.ttl")

    assert (problem["item"], problem["path"], problem["line"]) == ("urn:b", "agents.ttl", 3)


def test_since_of_a_file_reports_findings_of_removed_statements(repository):  # C109
    whole = run("root", "export").stdout
    (repository / "e.ttl").write_text(whole)
    git("add", "-A")
    git("commit", "-qm", "exported")
    lines = whole.splitlines(keepends=True)
    (repository / "e.ttl").write_text("".join(line for line in lines if "jido:rationale" not in line))

    (problem,) = findings("--since", "HEAD", "e.ttl")

    assert problem["rule"].endswith("#DecisionHasRationale")


def test_since_of_a_file_omits_older_findings_of_a_changed_item(repository):
    text = "@prefix jido: <https://jido.ai/ontology#> .\n<urn:a> a jido:Agent ; jido:hasCapability jido:CanPlan .\n"
    (repository / "agents.ttl").write_text(text)
    git("add", "-A")
    git("commit", "-qm", "agents")
    (repository / "agents.ttl").write_text(text + '<urn:a> jido:agentName "a" .\n')

    assert findings("--since", "HEAD", "agents.ttl", code=0) == []
    (repository / "agents.ttl").write_text(text.replace("CanPlan", "CanDance"))
    assert {one["rule"].rsplit("#", 1)[1] for one in findings("--since", "HEAD", "agents.ttl")} >= {"TermIsDeclared"}


def test_since_reports_an_old_item_that_a_new_statement_makes_invalid(repository):
    append_raw(repository, 'session:s-1 jido:endedAt "2020-01-01T00:00:00Z"^^xsd:dateTime .')

    (problem,) = findings("--since", "HEAD")

    assert problem["item"] == "https://jido.ai/sessions/s-1"


def test_an_unknown_git_revision_is_a_usage_error(repository, tmp_path, monkeypatch):
    assert "git knows no revision 'nowhere'" in run("check", "--since", "nowhere", code=2).stderr
    assert "git knows no revision" in run("check", "--since=--output=x", code=2).stderr
    shutil.rmtree(repository / ".git")
    without = run("check", "--since", "HEAD", code=2).stderr
    assert "in no git repository" in without
    assert "make a repository: git init" in without


def baseline(repository, name="waivers.toml", **changed):
    values = {"rule": "DecisionHasRationale", "item": ITEM, "reason": "imported before the rule", "until": "2999-01-31"}
    rows = [
        f"{key} = {value}" if key == "until" else f"{key} = {json.dumps(value)}"
        for key, value in (values | changed).items()
        if value is not None
    ]
    path = repository / name
    path.write_text("# accepted for now\n[[waiver]]\n" + "\n".join(rows) + "\n")
    return path


def test_a_waiver_excuses_its_finding_and_reports_date_and_reason(repository):
    append_raw(repository)

    result = run("check", "--baseline", baseline(repository))
    report = json.loads(run("check", "--json", "--baseline", baseline(repository)).stdout)

    assert "waived until 2999-01-31: DecisionHasRationale" in result.stderr
    assert report["problems"] == []
    assert report["waived"][0]["reason"] == "imported before the rule"


def test_an_expired_waiver_is_a_finding_with_its_line(repository):
    append_raw(repository)

    problems = findings("--baseline", baseline(repository, until="2026-01-31"))

    assert [problem["rule"].rsplit("#", 1)[1] for problem in problems] == ["DecisionHasRationale", "WaiverIsInForce"]
    assert problems[1]["line"] == 2


def test_a_waiver_without_a_finding_is_a_warning(repository):
    (problem,) = findings("--baseline", baseline(repository), code=0)

    assert problem["severity"] == "warning"
    assert problem["rule"].endswith("WaiverIsOfUse")


@pytest.mark.parametrize("words", [(), ("--since", "HEAD")])
def test_a_waiver_of_an_unknown_rule_or_convention_is_a_warning_with_the_nearest(repository, words):
    baseline(repository, ".jidomem/baseline.toml", rule="DecisionHasRational")
    (unknown,) = findings(*words, code=0)
    baseline(repository, ".jidomem/baseline.toml", rule="guard")
    (unused,) = findings(*words, code=0)

    assert unknown["message"] == "there is no rule DecisionHasRational: did you mean 'DecisionHasRationale'?"
    assert unused["message"].startswith("no active strict convention has this id: ")


@pytest.mark.parametrize("changed", [{"reason": None}, {"reason": " "}, {"until": None}, {"until": '"soon"'},
                                     {"item": None}, {"rule": ""}, {"who": "me"}])  # fmt: skip
def test_a_waiver_without_reason_date_rule_or_item_is_a_usage_error(repository, changed):
    assert "waivers.toml:2: " in run("check", "--baseline", baseline(repository, **changed), code=2).stderr


def test_the_printed_waivers_of_all_violations_are_a_baseline_that_leaves_none(repository):
    append_raw(repository)
    before = findings()
    printed = run("check", "--waive", 'old "wiki"', "--waive-until", "2999-12-31").stdout
    (repository / ".jidomem" / "baseline.toml").write_text(printed)

    report = json.loads(run("check", "--json").stdout)
    assert [each["reason"] for each in report["waived"]] == ['old "wiki"'] * len(before)
    assert not [each for each in report["problems"] if each["severity"] == "violation"]
    assert run("check", "--waive", "r", "--waive-until", "2999-12-31").stdout == ""
    for words in (("--waive", "r"), ("--waive-until", "2999-12-31"), ("--waive", " ", "--until", "2999-12-31")):
        run("check", *words, code=2)


def test_the_baseline_of_a_root_applies_in_every_interface_unless_another_is_given(repository):
    append_raw(repository)
    baseline(repository, ".jidomem/baseline.toml", by="ana")

    printed = json.loads(run("check", "--json").stdout)
    with jidomem.open(repository / ".jidomem") as memory:
        report = memory.check()
        served = json.loads(memory.checks.answer("p", "json"))

    assert printed["waivers"] == served["waivers"] == report.to_dict()["waivers"]
    assert [(one["by"], one["state"], one["findings"]) for one in printed["waivers"]] == [("ana", "holds", 1)]
    assert (printed["problems"], served["problems"], report.problems) == ([], [], [])
    other = baseline(repository, item="urn:other")
    assert [each["item"] for each in findings("--baseline", other)] == [ITEM, "urn:other"]


def test_an_unused_waiver_is_not_reported_for_a_range_or_another_project(repository):
    baseline(repository, ".jidomem/baseline.toml")
    assert [each["severity"] for each in findings(code=0)] == ["warning"]

    assert findings("--since", "HEAD", code=0) == []
    baseline(repository, ".jidomem/baseline.toml", project="q")
    assert findings(code=0) == []
    run("check", repository / ".jidomem" / "config.toml", code=1)  # files are not the memory it speaks of


def test_an_invalid_or_symlinked_baseline_is_refused(repository):
    path = repository / ".jidomem" / "baseline.toml"
    path.write_text("[[waiver]]\n")
    assert "baseline.toml:1: a waiver has no rule" in run("check", code=2).stderr
    path.unlink()
    path.symlink_to("/etc/hostname")
    assert "is a symbolic link" in run("check", code=3).stderr


def issues(repository, *states):
    path = repository / "issues.json"
    rows = [{"number": n, "url": f"{ISSUE}{n}", "state": state} for n, state in enumerate(states, 1)]
    path.write_text(json.dumps(rows))
    return path


def remember(repository, **fields):
    with jidomem.open(repository / ".jidomem", sources=days_later(2)) as memory:
        return memory.writer.submit_intent("p", intent(type="task", assigned_to="bob", **fields)).iri


def test_an_open_task_whose_issue_is_closed_is_a_finding_at_the_line_of_its_url(repository):
    # C110
    task = remember(repository, summary="fix the build", tracked_by=f"{ISSUE}2")

    (problem,) = findings("--open-tasks-from", issues(repository, "OPEN", "CLOSED"))

    assert (problem["item"], problem["rule"].rsplit("#", 1)[1]) == (task, "OpenTaskIsOpenThere")
    line = (repository / problem["path"]).read_text().splitlines()[problem["line"] - 1]
    assert f"{ISSUE}2" in line


def test_tasks_with_an_open_issue_done_or_proposed_pass_and_tasks_without_an_issue_are_counted(repository):
    # C110
    with jidomem.open(repository / ".jidomem", sources=days_later(2)) as memory:
        for number, status in ((1, "planned"), (2, "completed"), (2, "abandoned")):
            fields = {"summary": f"do {number} {status}", "status": status, "tracked_by": f"{ISSUE}{number}"}
            memory.writer.submit_intent("p", intent(type="task", assigned_to="bob", **fields))
        memory.writer.submit_intent("p", intent(type="task", summary="tell nobody", assigned_to="bob"))
        proposed = intent(type="task", summary="do 2 perhaps", assigned_to="bob", tracked_by=f"{ISSUE}2")
        memory.writer.submit_intent("p", proposed, propose=True)

    report = json.loads(run("check", "--json", "--open-tasks-from", issues(repository, "OPEN", "CLOSED")).stdout)

    assert (report["problems"], report["tasks_not_compared"]) == ([], 1)


def test_a_task_whose_issue_is_in_no_list_is_unchecked(repository):
    remember(repository, summary="fix the build", tracked_by=f"{ISSUE}9")

    assert f"{ISSUE}9 is not in a list" in run("check", "--open-tasks-from", issues(repository, "OPEN"), code=3).stdout


@pytest.mark.parametrize("text", ["nonsense", "{}", "[1]", "[" * 100_000, '[{"url": "x", "state": "OPEN"}]',
                                  '[{"url": "https://x/1", "state": "DONE"}]', '[{"url": "https://x/1"}]'],
                         ids=lambda text: text[:20])  # fmt: skip
def test_an_invalid_list_of_issues_fails_with_the_command_that_makes_one(repository, text):
    (repository / "issues.json").write_text(text)

    assert "gh issue list" in run("check", "--open-tasks-from", "issues.json", code=3).stderr


GATE = """#+ summary: {summary}
#+ params:
#+ columns: item message
#+ order: item
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?message WHERE {{ {body} }} ORDER BY ?item
"""


def gate(repository, name, body, summary="Facts have a topic."):
    folder = repository / ".jidomem" / "queries" / "gates"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.rq").write_text(GATE.format(summary=summary, body=body))


def test_a_row_of_an_own_gate_is_a_finding_with_its_line(repository):
    gate(repository, "facts-have-a-topic", "?item a jido:Fact MINUS { ?item jido:topic ?topic }")

    (problem,) = findings()

    assert problem["rule"] == "https://jido.ai/gates#facts-have-a-topic"
    assert problem["message"] == "Facts have a topic."
    assert problem["path"].startswith(".jidomem/projects/p/memory/")
    assert problem["line"]


def test_a_gate_with_a_service_an_update_a_syntax_error_or_the_name_of_a_shipped_gate_is_unchecked(repository):
    gate(repository, "service", "SERVICE <http://127.0.0.1:9/> { ?item ?p ?o }")
    gate(repository, "update", "GRAPH ?g { ?item ?p ?o } } ; LOAD <http://127.0.0.1:9/x> ; INSERT DATA {")
    gate(repository, "syntax", "?item a")
    gate(repository, "classes-are-disjoint", "?item a jido:Nothing")

    printed = run("check", code=3).stdout

    assert [name for name in ("service", "update", "syntax") if f"unchecked: gate {name}: " not in printed] == []
    assert "is taken by a shipped gate" in printed


def test_a_faulty_gate_is_annotated_at_its_line_with_the_allowed_values(repository):
    for name, old, new in (
        ("words", "SELECT ?item", "SELECT ?item ('error' AS ?severity)"),
        ("typo", "SELECT", "SELCT"),
    ):
        gate(repository, name, "?item a jido:Fact")
        file = repository / ".jidomem" / "queries" / "gates" / f"{name}.rq"
        file.write_text(file.read_text().replace(old, new))
    line = 1 + file.read_text().partition("SELCT")[0].count("\n")

    first, second = sorted(run("check", "--format", "github", code=3).stdout.splitlines())

    assert first.startswith(f"::error file=.jidomem/queries/gates/typo.rq,line={line},title=unchecked::")
    assert second.startswith("::error file=.jidomem/queries/gates/words.rq,title=unchecked::")
    assert "violation, warning, info" in second


UNREADABLE = [
    b"",
    b"\xff\xfe no text",
    b"SELECT ?item WHERE { ?item ?p ?o }",
    b"#+ summary: x\n#+ columns: other\nSELECT ?other WHERE { ?other ?p ?o }",
    b"#+ summary: x\n#+ params: who\n#+ columns: item\nSELECT ?who ?item WHERE { ?item ?p ?who }",
    b"#+ summary: x\n#+ columns: item\n#+ shrug: y\nSELECT ?item WHERE { ?item ?p ?o }",
]


def test_an_unreadable_gate_stops_no_write_and_is_unchecked(repository):
    folder = repository / ".jidomem" / "queries" / "gates"
    folder.mkdir(parents=True)
    for number, text in enumerate(UNREADABLE):
        (folder / f"broken-{number}.rq").write_bytes(text)
    names = [f"gate broken-{number}" for number in range(len(UNREADABLE))]

    with jidomem.open(repository / ".jidomem") as memory:
        assert memory.writer.submit_intent("p", intent(summary="more")).status == "asserted"
        report = memory.check()
    git("add", "-A")
    git("commit", "-qm", "a gate")

    assert (report.problems, sorted(each.partition(": ")[0] for each in report.unchecked)) == ([], names)
    for words in (["check"], ["check", "--since", "HEAD"]):
        printed = run(*words, code=3).stdout
        assert [name for name in names if f"unchecked: {name}: " not in printed] == []


def overlay(repository, ontology="", shapes=""):
    prefixes = """@prefix acme: <https://acme.example/ns#> .
@prefix jido: <https://jido.ai/ontology#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix sh: <http://www.w3.org/ns/shacl#> .
"""
    for name, text in (("ontology", ontology), ("shapes", shapes)):
        if text:
            (repository / ".jidomem" / name).mkdir(exist_ok=True)
            (repository / ".jidomem" / name / "acme.ttl").write_text(prefixes + text)


def test_a_deprecated_term_is_a_warning_that_names_its_replacement(repository):
    overlay(
        repository,
        "acme:weight a owl:DatatypeProperty ; owl:deprecated true ; rdfs:seeAlso acme:mass .\n"
        "acme:mass a owl:DatatypeProperty .",
    )
    append_raw(repository, '<https://jido.ai/memory/01900000-0000-7000-8000-000000000001> acme:weight "5" .'.replace(
        "acme:weight", "<https://acme.example/ns#weight>"))  # fmt: skip

    (problem,) = findings(code=0)

    assert (problem["severity"], problem["rule"].rsplit("#", 1)[1]) == ("warning", "TermIsNotDeprecated")
    words, _, command = problem["message"].partition(": jidomem ")
    assert words.endswith("use https://acme.example/ns#mass")
    run(*command.replace("VALUE", "5").replace("WHY", "renamed").split())
    assert findings(code=0) == []


def test_a_type_that_is_not_of_the_domain_of_a_property_of_the_memory_names_the_ways_to_change_it(repository):
    overlay(
        repository,
        "acme:Old a owl:Class ; rdfs:subClassOf jido:Fact .\nacme:New a owl:Class ; rdfs:subClassOf jido:Fact .\n"
        "acme:mass a owl:DatatypeProperty ; rdfs:domain acme:Old .",
    )
    item = run("remember", "It is heavy", "--type", "Old", "--set", "acme:mass=5").stdout.strip()

    refused = run("edit", item, "--set", "type=New", "--reason", "r", code=3).stderr
    assert "leave out --set acme:mass; a correction keeps it: empty it, or change its domain first" in refused
    run("edit", item, "--set", "type=New", "--set", "acme:mass=", "--reason", "r")


def test_a_shape_with_an_undeclared_target_is_a_finding_in_its_file(repository):
    overlay(repository, shapes="acme:S a sh:NodeShape ; sh:targetClass acme:Gadget ; sh:property [\n"
            "    sh:path jido:topic ; sh:minCount 1 ] .\n")  # fmt: skip

    (problem,) = findings()

    assert problem["rule"].endswith("ShapeHasATarget")
    assert (problem["path"], problem["line"]) == (".jidomem/shapes/acme.ttl", 6)


def test_an_unsatisfiable_own_class_is_a_finding_in_its_file(repository):
    overlay(repository, "acme:Robot a owl:Class ; rdfs:subClassOf jido:Agent , jido:Project .\n")

    (problem,) = findings()

    assert problem["rule"].endswith("OntologyIsConsistent")
    assert (problem["item"], problem["line"]) == ("https://acme.example/ns#Robot", 6)


def test_conflicting_decisions_of_two_branches_are_a_finding_after_the_merge(repository):
    def decide(day, summary):
        with jidomem.open(repository / ".jidomem", sources=days_later(day)) as memory:
            memory.writer.submit_intent("p", decision(summary=summary, topic="queue"))
        git("add", "-A")
        git("commit", "-qm", summary)

    git("checkout", "-qb", "other")
    decide(3, "Use Kafka")
    git("checkout", "-q", "main")
    decide(2, "Use NATS")
    git("merge", "-q", "--no-edit", "other")

    (problem,) = findings()

    assert problem["rule"].endswith("NothingInForceDisagrees")
    assert "Use Kafka" in (repository / problem["path"]).read_text()
    for revision, new in (("other", "Use NATS"), ("HEAD~1", "Use Kafka")):
        (in_range,) = findings("--since", revision)
        assert new in (repository / in_range["path"]).read_text()
        assert in_range["message"].startswith(problem["message"])
        assert f"git merge {quote(revision)})" in in_range["message"]
    assert findings("--since", "HEAD~2") == [problem]


def test_two_successors_of_a_decision_are_one_finding_with_a_command_that_ends_it(repository):
    def decide(day, summary, *old):
        with jidomem.open(repository / ".jidomem", sources=days_later(day)) as memory:
            fields = decision(summary=summary, topic="queue", supersedes=[*old])
            receipt = memory.writer.submit_intent("p", fields)
        git("add", "-A")
        git("commit", "-qm", summary)
        return receipt.iri

    old = decide(1, "Use Redis")
    git("checkout", "-qb", "other")
    decide(3, "Use Kafka", old)
    git("checkout", "-q", "main")
    first = decide(2, "Use NATS", old)
    git("merge", "-q", "--no-edit", "other")

    (problem,) = findings()

    assert problem["rule"].endswith("SupersessionHasOneEnd")
    assert f'{first[-8:]} "Use NATS" (architect, ' in problem["message"]
    run(*problem["message"].partition("the last one stays: jidomem ")[2].split(), "--agent", "architect")
    assert findings(code=0) == []


def test_shapes_without_targets_and_classes_without_shapes_are_reported(repository):
    report = json.loads(run("check", "--json").stdout)

    assert "https://jido.ai/shapes#TaskIsTracked" in report["idle_shapes"]
    assert "https://jido.ai/shapes#DecisionIsExplained" not in report["idle_shapes"]
    assert report["untargeted"] == {"Commit": 2, "Project": 1}


def test_github_annotations_have_file_and_line(repository):
    append_raw(repository)

    (line,) = run("check", "--format", "github", code=1).stdout.splitlines()

    assert line.startswith("::error file=.jidomem/projects/p/memory/")
    assert ",line=" in line
    assert line.endswith(",title=DecisionHasRationale::" + ITEM + ": A decision says why: give a `rationale`.")


def test_the_junit_format_counts_and_names_failures(repository):
    append_raw(repository)

    suites = ElementTree.fromstring(run("check", "--format", "junit", code=1).stdout.encode())

    assert (suites.tag, suites.get("failures"), suites.get("errors")) == ("testsuites", "1", "0")
    cases = list(suites.iter("testcase"))
    assert len(cases) == int(suites.get("tests")) == 2
    assert [case.get("classname") for case in cases if case.find("failure") is not None] == ["DecisionHasRationale"]


SARIF = json.loads((Path(__file__).parent.parent / "cases" / "sarif" / "sarif-2.1.0-rtm.5.json").read_text("utf-8"))


def assert_sarif(document):
    """Raise unless *document* is valid by the schema of SARIF 2.1.0."""
    from jsonschema import Draft4Validator  # takes a second, which each test process would spend

    Draft4Validator(SARIF).validate(document)


def test_the_sarif_format_is_valid_by_its_schema(repository):
    append_raw(repository)
    remember(repository, summary="fix the build", tracked_by=f"{ISSUE}9")

    words = ("check", "--format", "sarif", "--open-tasks-from", issues(repository, "OPEN"))
    log = json.loads(run(*words, code=3).stdout)
    assert_sarif(log)
    (run_,) = log["runs"]
    driver, (result,) = run_["tool"]["driver"], run_["results"]

    assert (log["version"], log["$schema"].rsplit("/", 1)[1]) == ("2.1.0", "sarif-schema-2.1.0.json")
    assert (
        driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "https://jido.ai/shapes#DecisionHasRationale"
    )
    assert result["level"] == "error"
    assert ITEM in result["message"]["text"]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"].startswith(".jidomem/projects/p/memory/")
    assert place["region"]["startLine"] >= 1
    (invocation,) = run_["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["toolExecutionNotifications"][0]["level"] == "error"


@pytest.mark.parametrize(("words", "waivers", "place"), [
    ((), "[[waiver]\n", ".jidomem/baseline.toml"),
    ((), '[[waiver]]\nrule = "x"', ".jidomem/baseline.toml"),
    (("--since", "nowhere"), "", None),
])  # fmt: skip
def test_a_usage_error_is_a_valid_report_in_every_format(repository, words, waivers, place):
    (repository / ".jidomem" / "baseline.toml").write_text(waivers)

    printed = {
        form: run("check", "--format", form, *words, code=2).stdout for form in ("json", "junit", "github", "sarif")
    }

    (reason,) = json.loads(printed["json"])["unchecked"]
    assert reason.startswith(place or "--since")
    (error,) = ElementTree.fromstring(printed["junit"]).iter("error")
    assert error.get("message") == reason
    assert printed["github"].startswith(f"::error {f'file={place},line=1,' if place else ''}title=unchecked::")
    log = json.loads(printed["sarif"])
    assert_sarif(log)
    (notification,) = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert notification["message"]["text"] == f"unchecked: {reason}"


def test_a_missing_file_of_an_option_is_a_valid_report(repository):
    words = ("check", "--open-tasks-from", "nowhere.json", "--format")

    assert_sarif(log := json.loads(run(*words, "sarif", code=2).stdout))
    assert "nowhere.json" in str(log["runs"][0]["invocations"])
    assert list(ElementTree.fromstring(run(*words, "junit", code=2).stdout).iter("error"))
    assert run(*words, "github", code=2).stdout.startswith("::error title=unchecked::")


def test_a_waived_finding_is_a_suppressed_result_in_sarif(repository):
    append_raw(repository)

    log = json.loads(run("check", "--format", "sarif", "--baseline", baseline(repository)).stdout)

    assert_sarif(log)
    (result,) = log["runs"][0]["results"]
    assert result["suppressions"][0]["justification"] == "imported before the rule (until 2999-01-31)"
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert place.startswith(".jidomem/projects/p/memory/")


def test_incompatible_options_are_a_usage_error(repository):
    (repository / "a.ttl").write_text("<urn:a> <urn:b> <urn:c> .")
    run("check", "--data", "a.ttl", "--shapes", "a.ttl", "--since", "HEAD", code=2)
    run("check", "--data", "a.ttl", "--shapes", "a.ttl", "--reference", code=2)
    run("check", "a.ttl", "--open-tasks-from", issues(repository), code=2)


def test_a_waiver_is_valid_on_its_last_day(repository):
    append_raw(repository)
    today = datetime.now(UTC).date()

    run("check", "--baseline", baseline(repository, until=today.isoformat()))
    run("check", "--baseline", baseline(repository, until=(today - timedelta(days=1)).isoformat()), code=1)


def test_since_reports_old_items_that_a_new_or_stricter_gate_breaks(repository):
    with jidomem.open(repository / ".jidomem", sources=days_later(1)) as memory:
        old = memory.writer.submit_intent("p", intent(summary="before")).iri
    git("add", "-A")
    git("commit", "-qm", "a fact")
    gate(repository, "no-fact", f"?item a jido:Fact FILTER(?item = <{old}>)")
    git("add", "-A")
    git("commit", "-qm", "a gate")

    assert [each["item"] for each in findings("--since", "HEAD~1")] == [old]
    gate(repository, "no-fact", f"?item a jido:Fact . FILTER(?item = <{old}>)")
    assert findings("--since", "HEAD", code=0) == []  # the gate in another form finds nothing new
    gate(
        repository, "no-fact", f"VALUES ?class {{ jido:Fact jido:WorkSession }} ?item a ?class FILTER(?item != <{old}>)"
    )
    assert old not in {each["item"] for each in findings("--since", "HEAD")} != set()


@pytest.mark.parametrize(
    ("before", "after", "rule"),
    [
        ("rdfs:domain my:Runbook", "rdfs:domain my:Playbook", "property-is-said-of-its-domain"),
        ("rdfs:range xsd:integer", "rdfs:range xsd:string", "value-has-its-datatype"),
    ],
)
def test_since_reports_old_items_that_a_changed_property_breaks(repository, before, after, rule):
    labels = "rdfs:label 'x'@en ; rdfs:comment 'x'@en ."
    terms = f"""@prefix jido: <https://jido.ai/ontology#> . @prefix my: <https://example.org/shop#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
my:Runbook a owl:Class ; rdfs:subClassOf jido:Fact ; {labels}
my:Playbook a owl:Class ; rdfs:subClassOf jido:Fact ; {labels}
my:sev a owl:DatatypeProperty ; rdfs:range xsd:integer ; rdfs:domain my:Runbook ; {labels}
"""
    path = repository / ".jidomem" / "ontology" / "s.ttl"
    path.parent.mkdir(exist_ok=True)
    path.write_text(terms)
    item = run("remember", "Restart", "--type", "Runbook", "--set", "my:sev=3").stdout.strip()
    git("add", "-A")
    git("commit", "-qm", "a runbook")
    assert findings("--since", "HEAD", code=0) == []

    path.write_text(terms.replace(before, after))

    broken = {(each["item"], each["rule"].rpartition("#")[2]) for each in findings("--since", "HEAD")}
    assert (item, rule) in broken
    assert [each for each in findings() if each["path"] is None] == []
    assert broken == {(each["item"], each["rule"].rpartition("#")[2]) for each in findings()}


def test_since_in_a_shallow_clone_without_the_merge_base_is_refused(repository, tmp_path_factory, monkeypatch):
    git("checkout", "-qb", "pr")
    git("commit", "--allow-empty", "-qm", "pr")
    git("checkout", "-q", "main")
    with jidomem.open(repository / ".jidomem", sources=days_later(1)) as memory:
        memory.writer.submit_intent("p", intent(summary="on main"))
    git("add", "-A")
    git("commit", "-qm", "ahead")
    clone = tmp_path_factory.mktemp("clone") / "shallow"
    git("clone", "-q", "--depth", "1", "--no-single-branch", "-b", "pr", f"file://{repository}", str(clone))
    monkeypatch.chdir(clone)

    refused = run("check", "--since", "origin/main", code=2)
    git("fetch", "-q", "--unshallow")

    assert "this clone is shallow" in refused.stderr
    assert "git fetch --unshallow" in refused.stderr
    run("check", "--since", "origin/main")
