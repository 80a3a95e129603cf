"""The journal at the command line: log, diff, history, and memories as of a past moment."""

import json
import re

import pytest
from cli_world import FACT, MEMORY, OLD, create_repository, rows, run

import jidomem
from jidomem.exchange.lineage import SourceEntry
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.terms import iri
from jidomem_cli.fields import entries_now


@pytest.fixture(autouse=True)
def _repository(tmp_path, monkeypatch):
    create_repository(tmp_path / "repository", monkeypatch)


def test_the_log_lists_commits_newest_first_with_their_memories():
    log = rows("journal", "log")
    table = run("journal", "log", "--limit", 2)

    assert log[0]["brought"] == {"Evidence": 1, "LessonLearned": 1}
    assert [row["version"].split("-")[0] for row in log] == ["7", "6", "5", "4", "3", "2", "1"]
    assert log[0]["agents"] == ["https://jido.ai/agents/architect"]
    assert "1 Evidence, 1 LessonLearned" in table.stdout
    assert "more: raise --limit" in table.stderr
    assert rows("journal", "log", "--as-of", log[3]["recorded_at"]) == log[3:]
    assert run("journal", "log", "--valid-at", "2026-01-01").exit_code == 2


def test_a_diff_of_two_versions_lists_added_and_superseded_memories():
    before = rows("journal", "log")[0]["version"]
    new = run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()

    difference = rows("journal", "diff", "--as-of", before, "--as-of", rows("journal", "log")[0]["version"])
    result = run("journal", "diff", "--as-of", before)

    assert {row["item"]: (row["change"], row["before"], row["after"], row["by"]) for row in difference} == {
        MEMORY + OLD: ("superseded", "active", "superseded", new),
        new: ("added", None, "active", None),
    }
    assert "1 added, 1 superseded" in result.stderr
    assert run("--as-of", before, "journal", "diff", "--as-of", "9999-01-01", "--json").exit_code == 0


@pytest.mark.parametrize(
    ("ends", "code", "message"),
    [
        ([], 2, "a comparison is between two moments"),
        (["0", "0", "0"], 2, "a comparison is between two moments"),
        (["99-0123abcd"], 4, "jidomem journal log"),
        (["2027-01-01", "2026-01-01"], 2, "is after"),
    ],
)
def test_an_invalid_diff_is_refused(ends, code, message):
    result = run("journal", "diff", *(word for end in ends for word in ("--as-of", end)))

    assert result.exit_code == code
    assert message in result.stderr


@pytest.mark.parametrize("verb", [["show"], ["show", "--why"], ["show", "--history"], ["ask", "history"]])
def test_a_short_id_in_a_query_of_the_past_is_resolved_as_of_then(verb):
    run_at = lambda end: run(*verb[:-1], verb[-1], "item=abcd" if verb[0] == "ask" else "abcd", "--as-of", end)  # noqa: E731
    before = rows("journal", "log")[0]["recorded_at"]
    assert run("remember", "one", "--iri", "https://x.org/one-abcd").exit_code == 0
    recorded_at = rows("journal", "log")[0]["recorded_at"]
    assert run("remember", "two", "--iri", "https://x.org/two-abcd").exit_code == 0

    assert run_at(before).exit_code == 4
    assert "one" in run_at(recorded_at).stdout
    assert "names several memories" in run_at("9999-01-01").stderr


def test_a_history_lists_the_superseded_and_the_superseding_version():
    run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster")

    entries = rows("show", "--history", OLD)

    assert [(row["summary"], row["status"], row["reason"]) for row in entries] == [
        ("Use Oxigraph 0.4", "superseded", None),
        ("Use Oxigraph 0.5", "active", "faster"),
    ]
    assert run("show", "--history", "1a2b3c4e").exit_code == 4
    assert run("show", "--history", OLD, "--as-of", "2020-01-01").exit_code == 4


def test_a_memory_as_of_a_past_moment_is_shown_as_recorded_then():
    recorded_at = rows("journal", "log")[0]["recorded_at"]
    before = run("show", FACT, "--format", "ttl").stdout
    before_counts = json.loads(run("status", "--json").stdout)["projects"][0]
    run("edit", FACT, "--invalidate", "--reason", "wrong")
    query = "ASK { ?s <https://jido.ai/ontology#invalidatedBy> ?o }"

    past = json.loads(run("status", "--json", "--as-of", recorded_at).stdout)["projects"][0]

    assert run("show", FACT, "--format", "ttl", "--as-of", recorded_at).stdout == before
    assert (past["version"], past["counts"], past["last_commit"]) == (
        before_counts["version"],
        before_counts["counts"],
        before_counts["last_commit"],
    )
    assert [run("ask", "--sparql", query, *more).stdout for more in ((), ("--as-of", recorded_at))] == [
        "true\n",
        "false\n",
    ]


def test_a_superseded_memory_is_restored_and_an_active_one_confirmed():
    new = run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()
    restored = run("edit", OLD, "--undo", "--reason", "slower").stdout.strip()
    confirmed = run("edit", FACT, "--confirm", "--set", "expires_on=2030-01-01").stdout.strip()

    assert [(row["entry"], row["status"]) for row in rows("show", "--history", OLD)] == [
        (MEMORY + OLD, "superseded"),
        (new, "superseded"),
        (restored, "active"),
    ]
    assert [row["item"] for row in rows("ask", "stale", "--valid-at", "2030-01-02")] == [confirmed]
    assert run("edit", FACT, "--undo", "--confirm").exit_code == 2
    assert "choose one correction" in run("edit", FACT).stderr


def test_a_memory_is_explained_as_a_table_and_as_json():
    new = run("edit", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()
    derived = run("remember", "loading is fast", "--evidence", MEMORY + OLD, "--evidence", "a trial").stdout.strip()

    table = run("show", "--why", OLD, "-v")
    evidence = run("show", "--why", derived).stdout
    explanation = json.loads(run("show", "--why", OLD, "--json").stdout)

    assert table.exit_code == 0
    for part in (
        "superseded by",
        "Use Oxigraph 0.5 (reason: faster)",
        "DecisionHasRationale",
        "architect in session s-1",
        "concluded from it",
    ):
        assert part in table.stdout
    assert "rests on" in evidence
    assert "a trial" in evidence
    assert "(superseded) Use Oxigraph 0.4" in evidence
    assert (explanation["iri"], explanation["in_its_place"]) == (MEMORY + OLD, new)
    assert [each["iri"] for each in explanation["derived"]] == [derived]
    assert run("show", "--why", OLD, "--as-of", "2020-01-01").exit_code == 4


def test_the_log_at_the_command_line_equals_the_log_in_python():
    with jidomem.open() as memory:
        assert [row["version"] for row in memory.reader.log("p").rows] == [
            row["version"] for row in rows("journal", "log")
        ]


NOTES = """# Agents

## Tests

- Run `make test` before a commit, on every machine
  that you have, and read
  what it prints.

- Never push to main.
"""


@pytest.fixture
def repository_with_notes(tmp_path, monkeypatch):
    """Return a repository with notes, and with two records of names with a common prefix."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "AGENTS.md").write_text(NOTES)
    records = tmp_path / "docs" / "adr"
    records.mkdir(parents=True)
    for name, title, more in (
        ("20200924-use-lunr", "Use Lunr", "Superseded by [Meilisearch](20201103-use-meilisearch.md)"),
        ("20201103-use-meilisearch", "Use Meilisearch", "Accepted"),
        ("20201104-use-elm", "Use Elm", "Accepted"),
    ):
        date = f"{name[:4]}-{name[4:6]}-{name[6:8]}"
        (records / f"{name}.md").write_text(
            f"# {title}\n\n- Status: {more}\n- Date: {date}\n\n## Decision\n\nWe {title.lower()} for search.\n"
        )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JIDOMEM_AGENT", "ana")
    result = run("init", "--from", "auto")
    assert result.exit_code == 0, result.stderr
    return tmp_path


def test_any_line_of_a_note_identifies_it(repository_with_notes):
    first = run("show", "AGENTS.md:5").stdout
    assert "make test" in first

    assert [run("show", f"AGENTS.md:{line}").stdout for line in (6, 7)] == [first, first]
    blank = run("show", "--why", "AGENTS.md:8")
    assert "did you mean AGENTS.md:9 or AGENTS.md:5?" in blank.stderr


def test_the_entries_of_a_file_are_compared_without_reading_memories_of_other_files(repository_with_notes, monkeypatch):
    topics = [f"topic {number}" for number in range(20)]
    (repository_with_notes / "CLAUDE.md").write_text("".join(f"- Never forget the {topic}.\n" for topic in topics))
    run("root", "import", "memory-md", "CLAUDE.md")
    compared, read = [], set()
    matches, triples = SourceEntry.matches, OxigraphIndex.triples

    def matches_counted(entry, version):
        compared.append(version.iri)
        return matches(entry, version)

    def triples_counted(index, graph, subject=None, *others):
        read.add(subject)
        return triples(index, graph, subject, *others)

    with jidomem.open(repository_with_notes / ".jidomem") as memory:
        known = entries_now(memory, ["AGENTS.md", "CLAUDE.md"])
        monkeypatch.setattr(SourceEntry, "matches", matches_counted)
        monkeypatch.setattr(OxigraphIndex, "triples", triples_counted)
        entries = entries_now(memory, ["CLAUDE.md"])

    items = {path: {iri(item) for items in lines.values() for item in items} for path, lines in known.items()}
    assert entries == {"CLAUDE.md": known["CLAUDE.md"]}
    assert len(compared) == len(items["CLAUDE.md"]) == len(topics)
    assert items["CLAUDE.md"] <= read
    assert items["AGENTS.md"]
    assert items["AGENTS.md"].isdisjoint(read)


def test_a_line_of_a_file_edited_since_the_import_identifies_the_note_now_at_that_line(repository_with_notes):
    before = run("show", "AGENTS.md:9").stdout
    page = repository_with_notes / "AGENTS.md"
    page.write_text(page.read_text().replace("# Agents\n", "# Agents\n\n- Sign each commit.\n", 1))

    assert run("show", "AGENTS.md:11").stdout == before
    not_imported = run("show", "AGENTS.md:3")
    assert (not_imported.exit_code, "did you mean AGENTS.md:7" in not_imported.stderr) == (4, True)
    run("init", "--from", "auto")
    page.write_text(page.read_text().replace("Never push to main", "Push to main only after a review"))
    listed = {row["summary"]: row["place"] for row in rows("review")}
    lines = page.read_text().splitlines()
    numbers = {text: int(place.rpartition(":")[2]) for text, place in listed.items() if ":" in place}
    assert [text for text in listed if text not in numbers] == ["Tests: Never push to main."]
    assert {lines[number - 1] for number in numbers.values()} >= {"- Sign each commit."}
    assert len(numbers) == 2


def test_a_unique_prefix_of_a_file_name_identifies_its_memory(repository_with_notes):
    assert "Use Meilisearch" in run("show", "20201103").stdout
    several = run("show", "2020110")
    assert several.exit_code == 4
    assert "20201103-use-meilisearch.md" in several.stderr
    assert "20201104-use-elm.md" in several.stderr
    assert "docs/adr/20200924-use-lunr.md" in run("show", "20200924-use-luna").stderr


def test_why_names_the_source_file_and_line_of_an_imported_memory(repository_with_notes):
    note = json.loads(run("show", "--why", "AGENTS.md:5", "--json").stdout)
    assert note["source"] == [{"path": "AGENTS.md", "line": 5}]
    assert re.search(r"^source +AGENTS.md:5$", run("show", "--why", "AGENTS.md:5").stdout, re.MULTILINE)
    assert re.search(r"^source +docs/adr/20201103-\S+$", run("show", "--why", "20201103").stdout, re.MULTILINE)


def test_why_gives_the_reason_of_the_supersession(repository_with_notes):
    first = json.loads(run("remember", "Use grep", "--type", "decision", "--rationale", "r", "--json").stdout)["iri"]
    second = json.loads(run("edit", first, "--supersede", "Use rg", "--reason", "it is slow", "--json").stdout)["iri"]
    third = json.loads(run("edit", second, "--supersede", "Use ag", "--reason", "rg is gone", "--json").stdout)["iri"]

    (row,) = json.loads(run("show", "--why", third, "--json").stdout)["replaced"]
    assert (row["iri"], row["reason"]) == (second, "rg is gone")
    (row,) = json.loads(run("show", "--why", second, "--json").stdout)["replaced_by"]
    assert row["reason"] == "rg is gone"


def test_a_date_without_a_time_is_shown_as_a_date(repository_with_notes):
    for verb in (["show", "20201103"], ["show", "--why", "20201103"], ["ask", "decisions"]):
        assert "00:00:00" not in run(*verb).stdout
    assert "2020-11-03" in run("show", "--why", "20201103").stdout


def test_the_log_shows_the_agent_of_a_policy_change_a_redaction_and_a_rollback(repository_with_notes):
    run("remember", "Jane Example knows", "--agent", "ben")
    run("access", "policy", "grant", "ana", "admin")
    assert run("journal", "redact", "--text", "Jane Example", "--reason", "a person").exit_code == 0
    run("remember", "wrong", "--agent", "ana")
    version = json.loads(run("journal", "log", "--json", "--limit", "2").stdout)["rows"][1]["version"]
    assert run("journal", "rollback", "--to", version, "--reason", "it was wrong", "--yes").exit_code == 0

    rows = json.loads(run("journal", "log", "--json", "--limit", "4").stdout)["rows"]
    assert [[agent.rpartition("/")[2] for agent in row["agents"]] for row in rows] == [["ana"]] * 4


def test_a_diff_and_a_timeline_omit_the_alternatives_of_a_decision(repository_with_notes):
    run("remember", "Use uv", "--type", "decision", "--rationale", "fast", "--alternatives", "Use pip")

    assert "Use pip" not in run("journal", "diff", "--as-of", "1").stdout
    assert "Use pip" not in run("ask", "timeline").stdout
    assert "Use uv" in run("ask", "timeline").stdout


def test_a_diff_accepts_a_version_number_and_a_limit(repository_with_notes):
    run("remember", "one")
    rows = json.loads(run("journal", "log", "--json").stdout)["rows"]
    run("remember", "two")
    run("remember", "three")
    number = rows[0]["version"].partition("-")[0]

    by_number, by_version = (
        json.loads(run("journal", "diff", "--as-of", end, "--json").stdout) for end in (number, rows[0]["version"])
    )
    assert by_number == by_version
    limited = run("journal", "diff", "--as-of", number, "--limit", "1")
    assert "2 added; 1 more: raise --limit" in limited.stderr
    assert run("journal", "diff", "--as-of", "99").exit_code == 4


def test_a_stale_supersession_is_refused_in_a_short_message(repository_with_notes):
    long = "It was measured for weeks. " * 60
    first = json.loads(run("remember", "Use grep", "--type", "decision", "--rationale", long, "--json").stdout)["iri"]
    run("edit", first, "--supersede", "Use rg", "--reason", "it is slow", "--set", f"rationale={long}")
    refused = run("edit", first, "--supersede", "Use ag", "--reason", "it is slow")

    assert "already superseded by" in refused.stderr
    assert refused.stderr.count("measured") <= 6


def test_a_review_says_that_anybody_can_appoint_themselves_until_there_is_an_administrator(repository_with_notes):
    message = run("review").stderr
    assert "appoint an administrator, who is a curator too; until then anybody can appoint themselves" in message
    run("access", "policy", "grant", "ana", "curator")
    assert "reviewed by a curator: ana\nappoint an administrator" in run("review", "--agent", "ben").stderr

    run("access", "policy", "grant", "ana", "admin")
    assert run("review", "--agent", "ben").stderr.endswith("reviewed by a curator: ana\n")
