"""Reading at the command line: the answers of the reader as text and as JSON."""

import csv
import io
import json
import re
import shlex
import shutil
from datetime import UTC, datetime

import pytest
from cli_world import FACT, MEMORY, OLD, TASK, create_repository, rows, run
from conftest import intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.entries import Entry, write
from jidomem_cli.options import App
from jidomem_cli.output import show_rows

LISTS = {
    "tasks": "list_open_tasks",
    "errors": "list_open_errors",
    "conventions": "list_conventions",
    "facts": "list_facts_with_confidence",
    "recent-lessons": "list_recent_lessons",
    "active-sessions": "list_active_sessions",
}


@pytest.fixture(autouse=True)
def repository(tmp_path, monkeypatch):
    return create_repository(tmp_path / "repo", monkeypatch)


@pytest.mark.parametrize("kind", LISTS)
def test_a_list_at_the_command_line_is_the_answer_of_the_reader(kind):
    # C098 C104
    with jidomem.open() as memory:
        answer = getattr(memory.reader, LISTS[kind])("p")

    printed = rows("ask", kind)

    assert [list(row) for row in printed] == [list(row) for row in answer]
    for row, expected in zip(printed, answer, strict=True):
        for column, value in row.items():
            assert value == expected[column] or value == f"{expected[column]:%Y-%m-%dT%H:%M:%S.%fZ}"


@pytest.mark.parametrize(
    ("kind", "summary"),
    [("decisions", "One journal a project"), ("tasks", "Ship the importer"), ("errors", "Import loses dates")],
)
def test_a_list_is_a_table_with_a_header_and_short_ids(kind, summary):
    # C103
    header, *json_lines = run("ask", kind).stdout.splitlines()

    assert "summary" in header
    (line,) = [line for line in json_lines if summary in line]
    assert "https://" not in line
    assert header.index("summary") == line.index(summary)


def test_the_decisions_at_the_command_line_include_every_kind_of_decision():
    # C103
    with jidomem.open() as memory:
        every = [row["decision"] for row in memory.reader.ask("decisions", project="p")]
        architectural = [row["decision"] for row in memory.reader.ask("active-decisions", project="p")]

    assert [row["decision"] for row in rows("ask", "decisions")] == every
    assert {*architectural} < {*every}


def test_a_list_of_inactive_memories_has_a_column_for_their_memory_status():
    assert run("edit", TASK, "--set", "status=Completed").exit_code == 0
    assert run("remember", "The gate was open", "--valid-until", "2020-01-01").exit_code == 0

    tasks = {row["task"][-8:]: row.get("memory_status") for row in rows("ask", "tasks", "--include-inactive")}
    facts = {row["summary"]: row.get("memory_status") for row in rows("ask", "facts", "--include-inactive")}

    assert tasks[TASK] == "superseded"
    assert facts["The gate was open"] == "expired"
    assert None in facts.values()
    assert "memory_status" in run("ask", "tasks", "--include-inactive").stdout.splitlines()[0]
    assert "memory_status" not in run("ask", "tasks").stdout
    assert all("memory_status" not in row for row in rows("ask", "decisions", "--include-inactive"))


def test_a_memory_recorded_after_its_end_is_expired_in_every_view():
    item = run("remember", "The gate was open", "--valid-until", "2020-01-01").stdout.strip()

    (version,) = rows("show", item, "--history")
    stale = {row["item"]: row["reason"] for row in rows("ask", "stale", "--include-inactive")}

    assert json.loads(run("show", item, "--json").stdout)["status"] == version["status"] == "expired"
    assert stale[item] == "no_longer_valid"
    assert item not in {row["item"] for row in rows("ask", "stale")}


def json_lines(*words):
    """Return the rows that a command prints as JSON lines."""
    return [json.loads(line) for line in run(*words, "--format", "jsonl").stdout.splitlines()]


@pytest.mark.parametrize("form", ["csv", "tsv"])
def test_inactive_memories_have_their_status_in_each_text_format(form):
    assert run("remember", "The gate was open", "--valid-until", "2020-01-01").exit_code == 0
    delimiter = {"csv": ",", "tsv": "\t"}[form]

    def read(*options):
        return list(
            csv.DictReader(io.StringIO(run("ask", "facts", "--format", form, *options).stdout), delimiter=delimiter)
        )

    with_inactive = {row["summary"]: row["memory_status"] for row in read("--include-inactive")}

    assert with_inactive["The gate was open"] == "expired"
    assert "" in with_inactive.values()
    assert all("memory_status" not in row for row in read())
    assert "memory_status" in run("ask", "tasks", "--include-inactive", "--format", form).stdout.splitlines()[0]
    assert "memory_status" not in run("ask", "decisions", "--include-inactive", "--format", form).stdout


def test_the_status_of_a_memory_is_that_of_the_valid_time_asked_for():
    later = run("remember", "The gate opens", "--topic", "gate", "--valid-from", "2999-01-01").stdout.strip()
    options = ("--valid-at", "2999-02-01")

    status = json.loads(run("show", later, "--json", *options).stdout)["status"]
    hits = {row["id"]: row["metadata"]["status"] for row in json_lines("recall", "gate opens", *options)}
    listed = {row["item"]: row["status"] for row in rows("ask", "timeline", *options)}
    added = {row["item"]: row["after"] for row in rows("ask", "changes", "since=2020-01-01")}

    assert (status, hits[later], listed[later]) == ("active",) * 3
    assert added[later] == "scheduled"
    assert {row["item"]: row["after"] for row in json_lines("journal", "diff", "--as-of", "0")}[later] == "scheduled"


def test_stale_memories_at_a_past_moment_are_determined_for_that_moment():
    item = run("remember", "The gate is open", "--valid-until", "2999-01-01").stdout.strip()
    assert item in {row["item"] for row in rows("ask", "stale", "--valid-at", "2999-02-01")}

    with jidomem.open(sources=Sources(now=lambda: datetime(2999, 2, 1, tzinfo=UTC))) as memory:
        assert item in {row["item"] for row in memory.reader.ask("stale", project="p")}
        assert item not in {row["item"] for row in memory.reader.ask("stale", project="p", as_of="2998-01-01")}
        assert "no longer valid" in memory.briefing().text
        assert "no longer valid" not in memory.briefing(as_of="2998-01-01").text


def test_each_format_has_the_same_rows():
    expected = rows("ask", "tasks")
    as_lines = [json.loads(line) for line in run("ask", "tasks", "--format", "jsonl").stdout.splitlines()]
    as_csv = list(csv.DictReader(io.StringIO(run("ask", "tasks", "--format", "csv").stdout)))
    as_tsv = [line.split("\t") for line in run("ask", "tasks", "--format", "tsv").stdout.splitlines()]
    as_markdown = run("ask", "tasks", "--format", "md").stdout.splitlines()

    assert as_lines == as_csv == expected
    assert as_tsv == [list(expected[0]), list(expected[0].values())]
    assert as_markdown == [
        "| task | summary | status | assignee |",
        "|---|---|---|---|",
        f"| {TASK} | Ship the importer | Planned | ana |",
    ]


def test_an_empty_answer_is_reported_on_standard_error_only():
    result = run("ask", "conventions")

    assert (result.stdout, result.stderr, result.exit_code) == ("", "none\n", 0)
    assert run("ask", "conventions", "-q").stderr == ""


def test_conventions_with_a_name_are_listed_with_their_text():
    run("remember", "Write no debug output", "--type", "convention")
    assert "summary" not in run("ask", "conventions").stdout

    run("remember", "Indent by tabs", "--type", "convention", "--set", "convention_name=Indentation")
    listed = run("ask", "conventions").stdout

    assert re.search(r"Indentation +Advisory +Indent by tabs\n", listed)


def test_an_answer_as_of_a_moment_before_the_first_commit_names_that_commit():
    before = run("ask", "tasks", "--as-of", "2020-01-01")
    since = run("ask", "conventions", "--as-of", "2100-01-01")

    first_commit = rows("journal", "log")[-1]["recorded_at"][:19].replace("T", " ")
    assert before.stderr == f"none by then: the first commit is of {first_commit}Z, see: jidomem journal log\n"
    assert (before.stdout, before.exit_code, since.stderr) == ("", 0, "none by then\n")


def test_pages_contain_all_rows_until_the_cursor_is_empty():
    for number in range(5):
        assert run("remember", f"fact number {number}").exit_code == 0
    facts, cursor, pages = [], None, 0
    while pages == 0 or cursor:
        more = ["--cursor", cursor] if cursor else []
        page = json.loads(run("ask", "facts", "--json", "--limit", "2", *more).stdout)
        facts, cursor, pages = facts + page["rows"], page["cursor"], pages + 1

    assert pages == 3
    assert facts == rows("ask", "facts")


@pytest.mark.parametrize("words", [["ask", "facts"], ["journal", "log"], ["review"]], ids=" ".join)
def test_a_table_has_50_rows_by_default_and_reports_how_many_are_left(words):
    with jidomem.open() as memory:
        for number in range(60):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}"), propose="review" in words)
    count = len(rows(*words))

    for form in ("table", "md"):
        head = {"table": 1, "md": 2}[form]
        part = run(*words, "--format", form)
        assert f"more: {count - 50}; raise --limit; -v shows the cursor" in part.stderr
        assert len(run(*words, "--format", form, "--limit", count).stdout.splitlines()) >= count + head
        if "review" not in words:  # its rows have further lines below
            assert len(part.stdout.splitlines()) == 50 + head
    assert "more: raise --limit" in run(*words, "--limit", "2").stderr
    for form in ("jsonl", "csv"):
        assert len(run(*words, "--format", form).stdout.splitlines()) == count + (form == "csv")


def test_an_answer_as_of_an_earlier_moment_has_no_later_memories():
    with jidomem.open() as memory:
        moment = memory.reader.get_memory("p", MEMORY + FACT)["recorded_at"].isoformat()
    assert run("remember", "known only later").exit_code == 0

    past = rows("ask", "facts", "--as-of", moment)

    assert [row["fact"] for row in past] == [MEMORY + FACT]
    assert len(rows("ask", "facts")) == 2
    early = run("--as-of", "2020-01-01", "show", FACT)
    assert (early.exit_code, f"error: p has no memory '{FACT}' as of then\n" in early.stderr) == (4, True)
    assert f"it was recorded at {moment[:19]}" in early.stderr


def test_a_time_copied_from_a_table_includes_the_row_with_that_time():
    with jidomem.open(sources=Sources(now=lambda: datetime(2026, 11, 29, 13, 28, 59, 700_000, tzinfo=UTC))) as memory:
        memory.writer.submit_intent("p", intent(summary="written late in a second"))
    printed = next(
        line for line in run("ask", "timeline", "--format", "table").stdout.splitlines() if "late in" in line
    )
    copied = re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", run("journal", "log", "--format", "table").stdout)[0]

    assert "2026-11-29 13:28:59Z" in (copied, printed)
    assert "written late in a second" in run("ask", "facts", "--as-of", "2026-11-29 13:28:59Z").stdout
    assert "written late in a second" not in run("ask", "facts", "--as-of", "2026-11-29T13:28:59Z").stdout
    assert (
        "written late in a second" in run("journal", "diff", "--as-of", "0", "--as-of", "2026-11-29 13:28:59Z").stdout
    )


def test_a_memory_invalid_at_the_valid_time_is_left_out():
    assert run("remember", "frozen", "--valid-until", "2026-12-31").exit_code == 0

    before, after = (rows("ask", "facts", "--valid-at", moment) for moment in ("2026-12-30", "2026-12-31"))

    assert [row["summary"] for row in before if row not in after] == ["frozen"]
    assert "--valid-at" in run("ask", "facts", "validAt=2026-12-30").stderr


@pytest.mark.parametrize("option", ["--as-of", "--valid-at"])
@pytest.mark.parametrize("verb", [["journal", "verify"], ["agent", "session", "list"], ["remember", "x"]])
def test_a_time_option_is_refused_by_verbs_without_support(verb, option):
    result = run(*verb, option, "2026-01-01")

    assert result.exit_code == 2
    assert f"leave out {option}" in result.stderr


def test_common_options_are_accepted_before_and_after_the_verb(repository):
    inside = run("ask", "tasks", "--json", "--project", "p", "--root", repository / ".jidomem")

    assert inside.stdout == run("--json", "--project", "p", "ask", "tasks").stdout
    assert inside.stdout == run("ask", "--json", "tasks").stdout
    assert run("--project", "nobody", "ask", "tasks", "--project", "p", "--json").stdout == inside.stdout


@pytest.mark.parametrize(
    "name", [OLD, MEMORY[len("https://jido.ai/memory/") :] + OLD, MEMORY + OLD, OLD[-5:], OLD[:4], OLD[:7]]
)
def test_a_memory_is_shown_by_its_iri_or_a_unique_part_of_its_id(name):
    memory_ = json.loads(run("show", name, "--json").stdout)

    assert (memory_["iri"], memory_["class"], memory_["status"]) == (MEMORY + OLD, "Decision", "active")


def test_a_memory_is_shown_as_a_table_and_as_turtle():
    as_table = run("show", OLD).stdout
    as_turtle = run("show", OLD, "--format", "ttl").stdout

    values = dict(re.split(r"  +", line, maxsplit=1) for line in as_table.splitlines())
    assert values["iri"] == f"<{MEMORY}{OLD}>"
    assert (values["rationale"], values["author"], values["confidence"]) == ("it embeds", "architect", "High")
    assert f"<{MEMORY}{OLD}> a jido:Decision ;" in as_turtle
    assert '    jido:rationale "it embeds" ;' in as_turtle


@pytest.mark.parametrize("columns", [None, "70"])
def test_a_text_of_several_lines_is_shown_in_lines_without_control_characters(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns or "")
    text = "## Options\n\n* Kafka\n  * red\u2028blue\nstatus  rejected"
    fields = ("--type", "decision", "--rationale", "r", "--detailed-explanation", text)
    receipt = run("remember", "Use Kafka", *fields, "--project", "p")

    output = run("show", receipt.stdout.split()[0], "--project", "p").stdout.splitlines()

    first = next(number for number, line in enumerate(output) if line.startswith("detailed explanation  "))
    indent = " " * len("detailed explanation  ")
    assert output[first].endswith("  ## Options")
    assert output[first + 1] == ""
    assert output[first + 2 : first + 5] == [
        f"{indent}{line}" for line in ("* Kafka", "  * red\\u2028blue", "status  rejected")
    ]


def test_abandoned_open_tasks_are_counted_with_the_option_that_excludes_them():
    assert "abandoned" not in run("ask", "tasks").stderr
    run("remember", "Port it to Rust", "--type", "task", "--status", "Abandoned", "--project", "p")

    message = run("ask", "tasks").stderr

    assert message == "abandoned: 1; leave them out with: jidomem ask open-tasks --actionable-only\n"
    result = run(*message.rpartition("jidomem ")[2].split())
    assert (result.stderr, "Port it" in result.stdout) == ("", False)
    assert (run("ask", "tasks", "--json").stderr, "Port it" in run("ask", "tasks", "--json").stdout) == ("", True)


def test_a_query_file_may_have_a_byte_order_mark_and_has_a_size_limit(tmp_path):
    (tmp_path / "q.rq").write_bytes(b"\xef\xbb\xbfASK { ?s ?p ?o }\r\n")

    endless = run("ask", "--sparql", "/dev/zero")

    assert run("ask", "--sparql", tmp_path / "q.rq").stdout == "true\n"
    assert (endless.exit_code, "more than 65,536" in endless.stderr) == (1, True)


def test_sparql_prints_rows_a_boolean_or_a_graph():
    task = "?s a <https://jido.ai/ontology#Task> . ?s <https://jido.ai/ontology#summary> ?o"

    assert rows("ask", "--sparql", f"SELECT ?o WHERE {{ {task} }}") == [{"o": "Ship the importer"}]
    assert run("ask", "--sparql", f"ASK {{ {task} }}").stdout == "true\n"
    assert json.loads(run("ask", "--sparql", f"ASK {{ {task} }}", "--json").stdout) == {"boolean": True}
    graph = run("ask", "--sparql", f"CONSTRUCT {{ ?s <urn:x:is> ?o }} WHERE {{ {task} }}")
    assert graph.stdout.endswith(f'\n<{MEMORY}{TASK}> <urn:x:is> "Ship the importer" .\n')
    assert run("ask", "--sparql", "ASK {}", "--format", "csv").exit_code == 2
    double = "<http://www.w3.org/2001/XMLSchema#double>"
    infinite = f'SELECT ("INF"^^{double} AS ?a) ("-INF"^^{double} AS ?b) ("NaN"^^{double} AS ?c) {{}}'
    assert rows("ask", "--sparql", infinite) == [{"a": "INF", "b": "-INF", "c": "NaN"}]  # no numbers of JSON


def test_the_playbook_is_listed_by_role():
    listed = rows("ask")
    with jidomem.open() as memory:
        names = [(role, query.name) for role, queries in memory.playbook.roles().items() for query in queries]

    assert [(row["role"], row["name"]) for row in listed] == names
    assert run("ask", "--limit", "3").exit_code == 2


def test_a_parameter_that_has_an_option_is_refused_with_the_option():
    result = run("ask", "open-tasks", "includeInactive=true")

    assert result.exit_code == 2
    assert "give --include-inactive instead" in result.stderr


def test_superseded_memories_are_listed_only_with_include_inactive():
    assert run("edit", TASK, "--set", "summary=Ship the exporter", "--reason", "r").exit_code == 0

    assert [row["summary"] for row in rows("ask", "tasks")] == ["Ship the exporter"]
    assert len(rows("ask", "tasks", "--include-inactive")) == 2


def test_control_characters_are_escaped_in_every_output_for_people(capsys):
    rows = [{"summary": "see\x1b[31m\tand\u009b hear\x07\nmore"}]

    for form in ("table", "md"):
        show_rows(App(format=form), rows, ["summary"])
        printed = capsys.readouterr().out
        assert "see\\x1b[31m and\\x9b hear\\x07 more" in printed
        assert not set("\x1b\x07\u009b\t") & set(printed)


HIDDEN = "\u202e\u200b\u2066\u009b\U000e0049\U000e0101"


@pytest.mark.parametrize("words", [
    ("recall", "exe"), ("ask", "facts"), ("show", "ID"), ("show", "ID", "--history"), ("governing", "src/x.py"),
    ("review",), ("root", "export", "--format", "markdown"), ("recall", "exe", "--json"), ("ask", "facts", "--json"),
])  # fmt: skip
def test_invisible_characters_are_escaped_for_people_and_for_agents_with_a_shell(words):
    text = f"run exe.gnp {HIDDEN}before a\u00a0commit"
    with jidomem.open() as memory:
        given = intent(summary=text, about=["src/x.py"])
        iri = memory.writer.submit_intent("p", given, propose="review" in words).iri

    result = run(*(iri if word == "ID" else word for word in words))

    assert "run exe.gnp" in result.stdout
    assert not set(HIDDEN) & set(result.output)
    if "--json" in words:
        assert text in json.dumps(json.loads(result.stdout), ensure_ascii=False)


def test_a_refusal_escapes_control_characters_of_its_argument():
    result = run("show", "\x1b[31mred")

    assert result.exit_code == 4
    assert "\x1b" not in result.stderr


def test_a_query_without_a_root_names_the_command_that_creates_one(tmp_path):
    result = run("ask", "tasks", "--root", tmp_path / "nowhere")

    assert result.exit_code == 4
    hint = (
        f"hint: correct the path, or mount its disk; for a new root there: jidomem init --root {tmp_path / 'nowhere'}"
    )
    assert result.stderr.splitlines()[1] == hint
    assert not (tmp_path / "nowhere").exists()


def test_a_damaged_journal_is_reported_while_the_sound_commits_are_read(repository):
    newest = max((repository / ".jidomem/projects/p/memory").glob("*.ttl"))
    newest.write_text(newest.read_text().replace("Pin the toolchain", "Pin no toolchain"))

    result = run("ask", "tasks", "--json")
    verified = run("journal", "verify", "--json")

    assert len(json.loads(result.stdout)["rows"]) == 1
    assert result.stderr.startswith("warning: journal_damaged: ")
    assert newest.name in result.stderr
    assert verified.exit_code == 7
    assert json.loads(verified.stdout)["damage"][0]["path"].endswith(newest.name)
    assert run("remember", "x").exit_code == 7


def test_verify_reports_a_sound_journal_by_stream():
    result = run("journal", "verify")

    assert result.exit_code == 0
    assert result.stdout.startswith("p/memory  7-")
    assert result.stdout.endswith("  sound\n")


def test_the_status_counts_each_project_by_kind_and_status(repository):
    assert run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "r").exit_code == 0
    assert run("edit", FACT, "--invalidate", "--reason", "measured wrongly").exit_code == 0

    status = json.loads(run("status", "--json").stdout)

    (project,) = status["projects"]
    assert (status["root"], status["project"], status["agent"]) == (str(repository / ".jidomem"), "p", "ana")
    assert status["found"] == "found in or above the working directory"
    assert project["counts"]["Decision"] == {"active": 1, "superseded": 1}
    assert project["counts"]["Fact"] == {"invalidated": 1}
    assert project["last_commit"].startswith("20")
    assert project["damage"] == []


@pytest.mark.parametrize("width", [80, 120])
def test_the_history_shows_the_changed_fields_of_each_version_within_the_terminal_width(monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    long = "it " + "is very " * 40
    new = run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster loading").stdout.strip()
    run("edit", new, "--set", f"rationale={long}small", "--set", "about=src/store.py", "--reason", "numbers")

    json_lines = run("show", "--history", OLD).stdout.splitlines()

    assert "    summary: Use Oxigraph 0.4 -> Use Oxigraph 0.5" in json_lines
    assert "    about: (none) -> src/store.py" in json_lines
    assert any(line.startswith("    rationale: faster loading -> it is very") for line in json_lines)
    assert max(map(len, json_lines)) <= width
    assert [line.strip() for line in json_lines if "reason: " in line] == ["reason: faster loading", "reason: numbers"]
    # In 80 characters seconds, shown if they distinguish versions, take the place of the agent.
    columns = [name for name in json_lines[0].split() if width > 80 or name != "agent"]
    assert columns == ["recorded", "event", *(["agent"] if width > 80 else []), "entry", "summary", "status"]
    *_, last = rows("show", "--history", OLD)
    assert {"field": "rationale", "before": "faster loading", "after": f"{long}small"} in last["changes"]
    assert f"    rationale: faster loading -> {long}small" in run("show", "--history", OLD, "-v").stdout


def test_a_diff_shows_agent_time_reason_and_changed_fields_of_a_revision():
    version = rows("journal", "log")[0]["version"]
    run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster loading")

    output = run("journal", "diff", "--as-of", version).stdout

    assert re.search(r"\n    ana, \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ: faster loading\n", output)
    assert "    summary: Use Oxigraph 0.4 -> Use Oxigraph 0.5\n" in output


def test_the_status_counts_entries_and_turns_with_singular_and_plural(repository):
    def history_line():
        return next(line.split(maxsplit=1)[1] for line in run("status").stdout.splitlines() if "history" in line)

    with jidomem.open(repository / ".jidomem", project="p") as memory:
        write(memory.entries, Entry(agent_id="ana", content="it rains"))
        assert history_line() == "1 entry, 0 turns"
        write(memory.entries, Entry(agent_id="ana", content="it snows"))
        memory.conversation("morning", "p").record("why?", "because")

    assert history_line() == "2 entries, 1 turn"


def test_a_conflict_of_two_branches_is_listed_with_commands_that_settle_it(repository):
    config = repository / ".jidomem" / "config.toml"
    config.write_text('project = "p"\n[conflicts]\ndecision = "warn"\n')
    other = run("remember", "Use Jena", "--type", "decision", "--topic", "store", "--rationale", "tooling")
    assert "warning: overlapping_decision" in other.stderr

    (row,) = rows("review", "--conflicts")
    printed = run("review", "--conflicts").stdout
    check = run("check")

    assert check.exit_code == 1
    assert f"NothingInForceDisagrees: {row['other']}: overlapping_decision with {row['item']}" in check.stdout
    assert {row["item"], row["other"]} == {MEMORY + OLD, other.stdout.strip()}
    assert row["settle"][0] in printed
    assert run(*row["settle"][0].split()[1:]).exit_code == 0
    assert rows("review", "--conflicts") == []


def test_two_revisions_of_one_memory_in_two_branches_conflict_after_the_merge(repository, tmp_path):
    branch = shutil.copytree(repository, tmp_path / "branch")
    main_item = run("edit", FACT, "--supersede", "the cache holds 4 GiB", "--reason", "r").stdout.strip()
    other = ["--supersede", "the cache holds 8 GiB", "--reason", "r"]
    branch_item = run("edit", FACT, *other, "--root", branch / ".jidomem").stdout.strip()
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    (row,) = rows("review", "--conflicts", "--root", repository / ".jidomem")

    assert f"review --root {repository / '.jidomem'} " in row["settle"][0]
    assert (row["kind"], {row["item"], row["other"]}) == ("stale_supersession", {main_item, branch_item})
    assert run(*row["settle"][0].split()[1:]).exit_code == 0
    assert rows("review", "--conflicts") == []
    assert [fact["summary"] for fact in rows("ask", "facts")] == [row["summary"]]


def test_two_successors_of_one_memory_cannot_both_be_kept(repository, tmp_path):
    branch = shutil.copytree(repository, tmp_path / "branch")
    main_item = run("edit", FACT, "--set", "about=README.md", "--reason", "r").stdout.strip()
    edit = ["edit", FACT, "--supersede", "it holds 8 GiB", "--set", "about=docs", "--set", f"coexists_with={OLD}"]
    other = run(*edit, "--reason", "r", "--root", branch / ".jidomem").stdout.strip()
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    (row,) = rows("review", "--conflicts")
    (pending,) = json.loads(run("review", "--json").stdout)["rows"]
    refused = run("review", "keep-both", row["item"], "--against", row["other"])
    check = run("check")

    assert (row["kind"], {row["item"], row["other"]}) == ("stale_supersession", {main_item, other})
    assert (pending["kind"], pending["actions"]) == ("conflict", ["accept", "reject", "supersede"])
    assert (refused.exit_code, "review supersede" in refused.stderr) == (2, True)
    assert (check.exit_code, "SupersessionHasOneEnd" in check.stdout) == (1, True)
    assert run("review", "supersede", row["item"], "--against", row["other"]).exit_code == 0
    assert rows("review", "--conflicts") == []
    assert run("check").exit_code == 0


def test_the_same_change_in_two_branches_gives_warnings_that_one_command_settles(repository, tmp_path):
    branch = shutil.copytree(repository, tmp_path / "branch")
    edit = ["edit", TASK, "--set", "status=Completed"]
    main_item = run(*edit).stdout.strip()
    branch_item = run(*edit, "--root", branch / ".jidomem").stdout.strip()
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    check = run("check", "--json")
    problems = [each for each in json.loads(check.stdout)["problems"] if main_item[-8:] in each["message"]]
    printed = run("review").stdout

    assert check.exit_code == 0
    assert [each["severity"] for each in problems] == ["warning"]
    assert "says exactly the same as" in printed
    assert "with other fields" not in printed
    commands = {each["message"].partition("one is enough: jidomem ")[2] for each in problems}
    assert commands == {f'review accept {main_item[-8:]} --against {branch_item[-8:]} --reason "it says the same"'}
    assert run(*shlex.split(commands.pop())).exit_code == 0
    assert rows("review", "--conflicts") == []


def test_a_policy_rule_changed_in_two_branches_is_reported_until_it_is_set_again(repository, tmp_path):
    branch = shutil.copytree(repository, tmp_path / "branch")
    rule = ["--kind", "task", "--role", "MemoryWriter"]
    assert run("access", "policy", "set", "propose", *rule).exit_code == 0
    assert run("access", "policy", "set", "deny", *rule).exit_code == 0
    assert run("access", "policy", "set", "assert", *rule, "--root", branch / ".jidomem").exit_code == 0
    assert "two branches" not in run("access", "policy", "show").stderr
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    output = run("access", "policy", "show").stderr
    check = run("check")

    text = "MemoryWriter may assert task counts, MemoryWriter may not write task does not; settle it: jidomem "
    assert output.count("two branches") == check.stdout.count("two branches") == 1
    assert text in output
    assert text in check.stdout
    assert check.exit_code == 1
    command = output.rstrip().rpartition(", or jidomem ")[2]
    assert command == "access policy set deny --role MemoryWriter --kind task"
    assert run(*command.split()).exit_code == 0
    assert "two branches" not in run("access", "policy", "show").stderr
    assert run("check").exit_code == 0


@pytest.mark.parametrize(("action", "active"), [("accept", ["it holds 8 GiB"]), ("reject", [])])
def test_a_withdrawal_and_a_supersession_in_two_branches_conflict_until_one_is_chosen(
    action, active, repository, tmp_path
):
    branch = shutil.copytree(repository, tmp_path / "branch")
    main_item = run("edit", FACT, "--supersede", "it holds 8 GiB", "--reason", "r").stdout.strip()
    withdrawal = ["edit", FACT, "--invalidate", "--reason", "there is no cache"]
    branch_item = run(*withdrawal, "--root", branch / ".jidomem").stdout.strip()
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    (row,) = rows("review", "--conflicts")
    (pending,) = json.loads(run("review", "--json").stdout)["rows"]
    problems = json.loads(run("check", "--json").stdout)["problems"]
    (text,) = [each["message"] for each in problems if each["rule"].endswith("SupersessionHasOneEnd")]
    refused = run("review", "keep-both", main_item, "--against", branch_item)

    assert (row["kind"], {row["item"], row["other"]}) == ("stale_supersession", {main_item, branch_item})
    assert pending["actions"] == ["accept", "reject"]
    assert f'superseded by {main_item[-8:]} "it holds 8 GiB" (ana, ' in text
    assert f" and withdrawn by {branch_item[-8:]} " in text
    assert (refused.exit_code, "they cannot both stay" in refused.stderr) == (2, True)
    assert run("review", action, main_item, "--against", branch_item).exit_code == 0
    assert rows("review", "--conflicts") == []
    assert run("check").exit_code == 0
    assert [fact["summary"] for fact in rows("ask", "facts")] == active


def test_check_names_the_command_that_settles_two_ends_of_a_longer_chain(repository, tmp_path):
    branch = shutil.copytree(repository, tmp_path / "branch")
    first = run("edit", FACT, "--supersede", "the cache holds 4 GiB", "--reason", "r").stdout.strip()
    assert run("edit", first, "--set", "about=README.md").exit_code == 0
    assert run("edit", FACT, "--supersede", "x", "--reason", "r", "--root", branch / ".jidomem").exit_code == 0
    shutil.copytree(branch, repository, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.lock"))

    problems = json.loads(run("check", "--json").stdout)["problems"]
    (text,) = [each["message"] for each in problems if each["rule"].endswith("SupersessionHasOneEnd")]

    assert run(*text.partition("the last one stays: jidomem ")[2].split()).exit_code == 0
    assert run("check").exit_code == 0


@pytest.mark.parametrize("choice", [0, 1])
def test_a_proposal_is_listed_with_the_commands_that_accept_and_reject_it(choice, repository):
    config = repository / ".jidomem" / "config.toml"
    config.write_text('project = "p"\n[conflicts]\ndecision = "propose"\n')
    assert run("remember", "Use Jena", "--type", "decision", "--topic", "store", "--rationale", "x").exit_code == 0
    (row,) = rows("review", "--conflicts")
    assert (row["kind"], row["other"]) == ("proposal", MEMORY + OLD)
    assert row["other_summary"] == "Use Oxigraph 0.4"

    command = row["settle"][choice].split()[1:]
    settled = run(*command)

    assert settled.exit_code == 0, settled.stderr
    assert rows("review", "--conflicts") == []
    assert json.loads(run("show", OLD, "--json").stdout)["status"] == ("superseded", "active")[choice]


@pytest.mark.parametrize(
    "words",
    [
        ["ask", "facts", "--limit", "0"],
        ["ask", "facts", "--cursor", "zz"],
        ["ask", "facts", "name=x"],
        ["ask", "facts", "=x"],
        ["--project", "", "status"],
        ["remember", "x", "--wait", "nan"],
        ["remember", "x", "--wait", "-1"],
        ["show", "\udcff\udcff\udcff\udcff"],
        ["ask", "--sparql"],
    ],
)
def test_an_invalid_argument_is_a_usage_error_with_a_hint(words):
    result = run(*words)

    assert (result.exit_code, result.stdout) == (2, "")
    assert "hint: " in result.stderr


def test_a_parameter_of_a_query_is_accepted_as_an_option():
    query = ("ask", "changes", "--format", "csv")
    expected = run("ask", "changes", "since=2026-11-20", "--format", "csv").stdout

    assert len(expected.splitlines()) > 1
    assert run(*query, "--since", "2026-11-20").stdout == run(*query, "--since=2026-11-20").stdout == expected
    assert run("ask", "open-tasks", "--actionable-only", "--limit", "9").exit_code == 0
    for words, hint in (
        (["changes"], "give --since, a date or time such as 2026-11-17 or 2026-11-17T09:00:00Z"),
        (["changes", "--since", "x"], "give one of: --since 2026-11-17, "),
        (["changes", "--since"], "write --since VALUE"),
        (["--since", "2026-11-17", "changes"], "jidomem ask NAME --since VALUE"),
    ):
        assert f"hint: {hint}" in run("ask", *words).stderr
    refused = run("ask", "changes", "--sinse", "2026-11-20")
    assert (refused.exit_code, "did you mean" in refused.stderr, "--since" in refused.stderr) == (2, True, True)


def test_the_memories_of_one_agent_are_listed_and_tasks_show_their_assignee():
    assert run("remember", "Ben's fact", "--agent", "ben").exit_code == 0

    of_ben = rows("ask", "memories-of-agent", "--agent", "ben")
    (task,) = rows("ask", "tasks")

    assert [row["summary"] for row in of_ben] == ["Ben's fact"]
    assert task["assignee"] == "https://jido.ai/agents/ana"
    assert run("ask", "tasks").stdout.splitlines()[0].split() == ["task", "summary", "status", "assignee"]


def test_tables_have_plain_column_names_and_json_has_the_ontology_terms():
    assert run("edit", FACT, "--invalidate", "--reason", "not measured").exit_code == 0

    log, status = run("journal", "log").stdout, run("status").stdout

    assert log.splitlines()[0].split() == ["version", "recorded", "graph", "agents", "sessions", "added"]
    assert "1 Withdrawal" in log
    assert "DeletedMarker" not in log + status
    assert rows("journal", "log")[0]["brought"] == {"DeletedMarker": 1, "WorkSession": 1}


def test_a_backup_of_a_missing_root_is_refused_by_its_name(tmp_path):
    refused = run("--root", tmp_path / "unmounted", "root", "backup", tmp_path / "x.tar")

    assert refused.exit_code == 4
    assert refused.stderr.startswith(f"error: there is no memory root at {tmp_path / 'unmounted'}\n")
    assert not (tmp_path / "x.tar").exists()


def test_a_backup_reports_its_number_of_commits(tmp_path):
    backup = run("root", "backup", tmp_path / "memory.tar")

    assert f": {len(rows('journal', 'log'))} commits; working state" in backup.stderr


def test_the_log_names_three_agents_of_a_commit_by_many_and_all_of_them_for_programs(tmp_path):
    lines = [
        {
            "type": "fact",
            "summary": f"by {number}",
            "confidence": "high",
            "applies_to_project": "p",
            "asserted_by": f"agent-{number}",
        }
        for number in range(5)
    ]
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = run("submit", str(tmp_path / "facts.jsonl"))
    assert result.exit_code == 0, result.stderr + result.stdout

    shown, whole = (run("journal", "log", "--limit", "1", *more).stdout for more in ((), ("-v",)))
    (row,) = rows("journal", "log", "--limit", "1")

    assert "agent-0, agent-1, agent-2 and 2 more  " in shown
    assert "agent-4" in whole
    assert len(row["agents"]) == 5
