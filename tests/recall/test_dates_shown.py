"""The day on which a memory is due, and that until which it is valid, are shown wherever it is read."""

import pytest
from conftest import intent
from shown_texts import in_shell, over_mcp

import jidomem
from jidomem.serve.app import create_app

LATE, SOON, NEVER = "Renew the licence", "Write the runbook", "Paint the shed"


@pytest.fixture
def memory(tmp_path):
    """A project with a task without a date, one that is due, one that is overdue, and a fact valid for a time."""
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember(NEVER, type="task")
        memory.remember(SOON, type="task", due="2036-12-15")
        memory.remember(LATE, type="task", expires_on="2020-11-30T09:30:00Z", timestamp="2020-11-01")
        memory.remember("Payouts to acme wait for its documents", valid_until="2036-12-31")
        yield memory


WORDS = "licence, runbook, shed and payouts"


@pytest.mark.parametrize(
    "read",
    [
        lambda memory: memory.briefing("p").text,
        lambda memory: over_mcp(memory, "briefing").text,
        lambda memory: over_mcp(memory, "recall", query=WORDS).text,
        lambda memory: in_shell(memory, "recall", WORDS, "--format", "md"),
    ],
    ids=["a briefing", "a briefing over MCP", "recall over MCP", "recall in a shell"],
)
def test_the_texts_show_the_dates(memory, read):
    lines = read(memory).splitlines()
    assert "due 2036-12-15," in next(line for line in lines if SOON in line)
    assert "due 2020-11-30 09:30," in next(line for line in lines if LATE in line)
    assert "until 2036-12-31," in next(line for line in lines if "acme" in line)
    assert "due" not in next(line for line in lines if NEVER in line)


def test_the_rows_of_every_door_have_the_dates(memory):
    rows = {row["summary"]: row.get("due") for row in memory.reader.ask("open-tasks", project="p")}
    days = {name: moment and f"{moment:%Y-%m-%d}" for name, moment in rows.items()}
    assert days == {NEVER: None, SOON: "2036-12-15", LATE: "2020-11-30"}
    (fact,) = create_app(memory).test_client().get("/projects/p/queries/facts").get_json()["rows"]
    assert fact["until"].startswith("2036-12-31T00:00")
    (row,) = [row for row in over_mcp(memory, "ask", name="open-tasks").values["rows"] if row["summary"] == SOON]
    assert row["due"] == "2036-12-15T00:00:00Z"
    assert "2036-12-15" in in_shell(memory, "ask", "open-tasks")


def test_a_long_list_has_the_dates_too(memory):
    memory.writer.submit_many("p", [intent(type="task", summary=f"step {number}") for number in range(600)])

    rows = memory.reader.ask("open-tasks", project="p")

    assert {row["summary"] for row in rows if "due" in row} == {SOON, LATE}


def test_overdue_tasks_come_first_in_a_briefing_and_are_listed_alone(memory):
    tasks = [line for line in memory.briefing("p").text.splitlines() if " task, " in line]
    assert LATE in tasks[0]
    (row,) = memory.reader.ask("open-tasks", project="p", overdue_only=True)
    assert row["summary"] == LATE
    assert memory.reader.ask("open-tasks", project="p", overdue_only=True, valid_at="2020-11-29") == []
    assert len(memory.reader.ask("open-tasks", project="p", overdue_only=True, valid_at="2037-01-01")) == 2


def test_the_date_is_given_as_due_at_every_door(memory):
    due = "2036-01-01"
    posted = intent(type="task", summary="over HTTP", due=due)
    assert create_app(memory).test_client().post("/projects/p/intents", json=posted).status_code == 201
    item = over_mcp(memory, "remember", text="over MCP", type="task", fields={"due": due}).values["iri"]
    assert not over_mcp(memory, "revise", id=item, set={"due": "2036-01-02"}, reason="later").is_error
    in_shell(memory, "remember", "in a shell", "--type", "task", "--due", due)

    rows = memory.reader.ask("open-tasks", project="p")

    days = {row["summary"]: f"{row['due']:%Y-%m-%d}" for row in rows if "due" in row}
    assert days.items() >= {"over HTTP": due, "over MCP": "2036-01-02", "in a shell": due}.items()
    refused = over_mcp(memory, "remember", text="x", type="task", fields={"due": due, "expires_on": due})
    assert "`expires_on` in `fields` is given" in refused.text


def test_due_is_a_field_of_tasks_alone(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        with pytest.raises(jidomem.IntentRefused, match="did you mean 'expires_on'") as refused:
            memory.remember("The port is 80", due="2036-01-01")
        fact = memory.writer.submit_intent("p", refused.value.fixed_intent)
        with pytest.raises(jidomem.IntentRefused, match="did you mean 'expires_on'"):
            memory.writer.correct("p", fact.iri, changes={"due": "2037-01-01"}, reason="later")

        (date,) = memory.reader.get_memory("p", fact.iri)["properties"]["expiresOn"]
        assert f"{date:%Y-%m-%d}" == "2036-01-01"


@pytest.mark.parametrize("inactive", [False, True], ids=["active ones", "inactive ones too"])
def test_overdue_tasks_are_listed_although_no_memory_is_valid_for_a_time(tmp_path, inactive):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember(NEVER, type="task")
        memory.remember(LATE, type="task", due="2020-11-30", timestamp="2020-11-01")

        late = memory.reader.ask("open-tasks", project="p", overdue_only=True, include_inactive=inactive)

        assert [row["summary"] for row in late] == [LATE]
        assert memory.briefing("p").text.index(LATE) < memory.briefing("p").text.index(NEVER)


def test_a_memory_with_an_iri_of_its_author_has_its_dates_and_validity_in_lists(tmp_path):
    with jidomem.open(tmp_path / "root", project="p", agent="ana") as memory:
        memory.remember("Due", type="task", due="2036-12-20", iri="urn:t:1")
        memory.remember("Expired", valid_until="2020-01-01", timestamp="2019-01-01", iri="urn:t:2")

        (task,) = memory.reader.ask("open-tasks", project="p")
        (fact,) = memory.reader.ask("facts", project="p", include_inactive=True)
        rows = memory.reader.ask("timeline", project="p", include_inactive=True)
        states = {row["summary"]: row["status"] for row in rows}

        assert f"{task['due']:%Y-%m-%d}" == "2036-12-20"
        assert (fact["memory_status"], f"{fact['until']:%Y-%m-%d}") == ("expired", "2020-01-01")
        assert states == {"Due": "active", "Expired": "expired"}
