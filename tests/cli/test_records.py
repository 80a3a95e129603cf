"""What the journal tells at the command line: the log, differences, histories, and the past of what is shown."""

import json

import pytest
from cli_world import FACT, MEMORY, OLD, rows, run, stand_in

import jidomem


@pytest.fixture(autouse=True)
def _repository(tmp_path, monkeypatch):
    stand_in(tmp_path / "repository", monkeypatch)


def test_the_log_lists_commits_newest_first_with_what_each_brought():
    log = rows("log")
    table = run("log", "--limit", 2)

    assert log[0]["brought"] == {"Evidence": 1, "LessonLearned": 1}
    assert [row["version"].split("-")[0] for row in log] == ["7", "6", "5", "4", "3", "2", "1"]
    assert log[0]["agents"] == ["https://jido.ai/agents/architect"]
    assert "1 Evidence, 1 LessonLearned" in table.stdout
    assert "more: raise --limit" in table.stderr
    assert rows("log", "--as-of", log[3]["recorded_at"]) == log[3:]
    assert run("log", "--valid-at", "2026-01-01").exit_code == 2


def test_a_difference_between_two_versions_tells_what_was_added_and_what_ended():
    before = rows("log")[0]["version"]
    new = run("revise", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()

    changed = rows("diff", "--as-of", before, "--as-of", rows("log")[0]["version"])
    told = run("diff", "--as-of", before)

    assert {row["item"]: (row["change"], row["before"], row["after"], row["by"]) for row in changed} == {
        MEMORY + OLD: ("superseded", "active", "superseded", new),
        new: ("added", None, "active", None),
    }
    assert "1 added, 1 superseded" in told.stderr
    assert run("--as-of", before, "diff", "--as-of", "9999-01-01", "--json").exit_code == 0


@pytest.mark.parametrize(
    ("ends", "code", "said"),
    [
        ([], 2, "a difference is between two moments"),
        (["0", "0", "0"], 2, "a difference is between two moments"),
        (["99-0123abcd"], 4, "jidomem log"),
        (["2027-01-01", "2026-01-01"], 2, "is after"),
    ],
)
def test_a_difference_that_cannot_be_told_is_refused(ends, code, said):
    result = run("diff", *(word for end in ends for word in ("--as-of", end)))

    assert result.exit_code == code
    assert said in result.stderr


@pytest.mark.parametrize("verb", [["show"], ["why"], ["history"], ["ask", "history"]])
def test_a_short_id_names_in_the_past_what_it_named_then(verb):
    asked = lambda then: run(*verb[:-1], verb[-1], "item=abcd" if verb[0] == "ask" else "abcd", "--as-of", then)  # noqa: E731
    before = rows("log")[0]["recorded_at"]
    assert run("remember", "one", "--iri", "https://x.org/one-abcd").exit_code == 0
    then = rows("log")[0]["recorded_at"]
    assert run("remember", "two", "--iri", "https://x.org/two-abcd").exit_code == 0

    assert asked(before).exit_code == 4
    assert "one" in asked(then).stdout
    assert "names several memories" in asked("9999-01-01").stderr


def test_a_history_tells_what_a_memory_replaced_and_what_replaced_it():
    run("revise", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster")

    entries = rows("history", OLD)

    assert [(row["summary"], row["status"], row["reason"]) for row in entries] == [
        ("Use Oxigraph 0.4", "superseded", None),
        ("Use Oxigraph 0.5", "active", "faster"),
    ]
    assert run("history", "1a2b3c4e").exit_code == 4
    assert run("history", OLD, "--as-of", "2020-01-01").exit_code == 4


def test_what_is_shown_of_the_past_is_what_was_known_then():
    then = rows("log")[0]["recorded_at"]
    before = run("show", FACT, "--format", "ttl").stdout
    held = json.loads(run("status", "--json").stdout)["projects"][0]
    run("revise", FACT, "--invalidate", "--reason", "wrong")
    ended = "ASK { ?s <https://jido.ai/ontology#invalidatedBy> ?o }"

    past = json.loads(run("status", "--json", "--as-of", then).stdout)["projects"][0]

    assert run("show", FACT, "--format", "ttl", "--as-of", then).stdout == before
    assert (past["version"], past["counts"], past["last_commit"]) == (
        held["version"],
        held["counts"],
        held["last_commit"],
    )
    assert [run("sparql", ended, *more).stdout for more in ((), ("--as-of", then))] == ["true\n", "false\n"]


def test_what_was_replaced_is_brought_back_and_what_still_holds_is_confirmed():
    new = run("revise", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()
    back = run("revise", OLD, "--undo", "--reason", "slower").stdout.strip()
    kept = run("revise", FACT, "--confirm", "--set", "expires_on=2030-01-01").stdout.strip()

    assert [(row["entry"], row["status"]) for row in rows("history", OLD)] == [
        (MEMORY + OLD, "superseded"),
        (new, "superseded"),
        (back, "active"),
    ]
    assert [row["item"] for row in rows("ask", "stale", "--valid-at", "2030-01-02")] == [kept]
    assert run("revise", FACT, "--undo", "--confirm").exit_code == 2
    assert "in one way" in run("revise", FACT).stderr


def test_one_memory_is_explained_in_a_table_or_as_json():
    new = run("revise", OLD, "--supersede", "Use Oxigraph 0.5", "--reason", "faster").stdout.strip()
    resting = run("remember", "loading is fast", "--evidence", MEMORY + OLD, "--evidence", "a trial").stdout.strip()

    table = run("why", OLD)
    rests = run("why", resting).stdout
    found = json.loads(run("why", OLD, "--json").stdout)

    assert table.exit_code == 0
    for said in (
        "superseded by",
        "Use Oxigraph 0.5 (reason: faster)",
        "DecisionHasRationale",
        "architect in session s-1",
        "concluded from it",
    ):
        assert said in table.stdout
    assert "rests on" in rests
    assert "a trial" in rests
    assert "(superseded) Use Oxigraph 0.4" in rests
    assert (found["iri"], found["in_its_place"]) == (MEMORY + OLD, new)
    assert [each["iri"] for each in found["derived"]] == [resting]
    assert run("why", OLD, "--as-of", "2020-01-01").exit_code == 4


def test_the_log_is_what_python_tells():
    with jidomem.open() as memory:
        assert [row["version"] for row in memory.reader.log("p").rows] == [row["version"] for row in rows("log")]
