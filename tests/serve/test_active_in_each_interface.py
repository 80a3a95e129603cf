"""No interface shows an inactive decision as active, and each lists it by its status."""

import json
import re
import subprocess
from collections import Counter
from datetime import timedelta

import anyio
import pytest
from click.testing import CliRunner
from conftest import decision
from mcp.client.client import Client

import jidomem
from jidomem.base.clock import Sources, format_timestamp, now
from jidomem.errors import InvalidRequest
from jidomem.guard.guard import Guard
from jidomem.index.timeline import overview
from jidomem.journal import commit as commits
from jidomem.journal.journal import Stream
from jidomem.rdf.vocab import BASE
from jidomem.read.derived import counts, pending
from jidomem.read.playbook import Playbook
from jidomem.records import active
from jidomem.runtime.location import init
from jidomem.runtime.settings import load
from jidomem.serve.app import create_app
from jidomem.serve.mcp.client_session import ClientSessions
from jidomem.serve.mcp.server import create_server
from jidomem.serve.mcp.tools import TOOLS
from jidomem_cli.main import cli

#: The decisions by their fields; all are about one file, each on a topic of its own.
INACTIVE = ("rejected", "deprecated", "undecided", "expired", "scheduled", "superseded", "withdrawn", "pending")
RECORDED = {
    "accepted": {"status": "accepted"},
    "unstated": {},
    "rejected": {"status": "rejected"},
    "deprecated": {"status": "deprecated"},
    "undecided": {"status": "proposed"},
    "expired": {"valid_until": "2020-01-01"},
    "scheduled": {"valid_from": "2090-01-01"},
    "superseded": {},
    "withdrawn": {},
}
STATE = {"undecided": "proposed", "withdrawn": "invalidated", "unstated": "active", "accepted": "active",
         "refused": "rejected", "taken": "superseded"}  # fmt: skip


def decision_named(name, **fields):
    about = {"about": ["src/a.py", "src/*.py"], "topic": name}
    return decision(summary=f"quagga {name}", timestamp="2019-05-06T07:08:09Z", **{**about, **fields})


def create_repository(folder):
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("x = 1\n")
    subprocess.run(["git", "init", "-q", folder], check=True)
    init(folder, "p")
    return folder


@pytest.fixture
def repository(tmp_path, monkeypatch):
    folder = create_repository(tmp_path / "repo")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A repository with the decisions, and their IRIs by name; no test writes to it."""
    folder = create_repository(tmp_path_factory.mktemp("recorded") / "repo")
    with jidomem.open(folder / ".jidomem") as memory:
        writer = memory.writer
        recorded = {
            name: writer.submit_intent("p", decision_named(name, **fields)).iri for name, fields in RECORDED.items()
        }
        for name in ("pending", "refused", "taken"):
            recorded[name] = writer.submit_intent("p", decision_named(name), propose=True).iri
        writer.settle("p", recorded["refused"], "reject")
        writer.settle("p", recorded["taken"], "accept")
        writer.submit_intent("p", decision_named("successor", supersedes=[recorded["superseded"]]))
        writer.invalidate("p", recorded["withdrawn"], reason="wrong")
    return folder, recorded


@pytest.fixture
def iris(recorded, monkeypatch):
    """The IRIs of the decisions, by name; their repository is the working directory."""
    folder, iris = recorded
    monkeypatch.chdir(folder)
    return iris


def at_command_line(*args):
    result = CliRunner().invoke(cli, [*args])
    assert result.exit_code == 0, result.stderr
    return result.stdout


def over_http(path):
    with jidomem.open() as memory:
        answer = create_app(memory).test_client().get(path)
        assert answer.status_code == 200, answer.text
        return answer.text


def over_mcp(tool, **arguments):
    async def ask(memory):
        async with Client(create_server(ClientSessions(memory), TOOLS)) as client:
            return (await client.call_tool(tool, arguments)).structured_content

    with jidomem.open() as memory:
        return anyio.run(ask, memory)


def governing_sections(briefing):
    """The sections of a briefing that state what governs: others name pending or expired memories, and say so."""
    parts = {part["name"]: part["entries"] for part in briefing["sections"]}
    return json.dumps([parts[name] for name in ("rules", "files", "decisions", "facts") if name in parts])


def guard_rules():
    rules = Guard(load(settings_root(), "p"), now, lambda command: False).governing(["src/a.py"])
    return " ".join(rule.summary for rule in rules["src/a.py"])


def settings_root():
    with jidomem.open() as memory:
        return memory.settings.root


def entries(recalled):
    """The results of a recall, without the ended decision that it names as such."""
    return json.dumps(recalled["entries"])


def without_ended_decision(markdown):
    lines = [line for line in markdown.splitlines() if not re.match(r"(?:rejected|superseded) decision ", line)]
    assert len(lines) == len(markdown.splitlines()) - 1
    return "\n".join(lines)


QUESTIONS = ("active-decisions", "recent-decisions", "decisions", "decision-log", "timeline", "patterns")
OUTPUTS = {
    **{f"ask {name}": lambda name=name: at_command_line("ask", name, "--json") for name in QUESTIONS},
    **{
        f"the first page of {name}": lambda name=name: at_command_line("ask", name, "--limit", "50", "--json")
        for name in QUESTIONS
    },
    "ask governing": lambda: at_command_line("ask", "governing", "file=src/a.py", "--json"),
    "memory decisions": lambda: at_command_line("ask", "decisions", "--json"),
    "memory changed": lambda: (
        at_command_line("ask", "changed-files", "--json") + "quagga accepted quagga unstated quagga taken"
    ),
    "governing": lambda: at_command_line("governing", "src/a.py", "--json"),
    "recall": lambda: entries(json.loads(at_command_line("recall", "quagga", "--json", "--limit", "100"))),
    "recall for an agent": lambda: without_ended_decision(
        at_command_line("recall", "quagga", "--format", "md", "--limit", "100")
    ),
    "briefing": lambda: governing_sections(
        json.loads(at_command_line("agent", "briefing", "--about", "src/a.py", "--format", "json"))
    ),
    "export to markdown": lambda: at_command_line("root", "export", "--format", "markdown"),
    "export to mcp-memory": lambda: at_command_line("root", "export", "--format", "mcp-memory"),
    "the guard": guard_rules,
    "HTTP queries": lambda: over_http("/projects/p/queries/active-decisions"),
    "the page of a question": lambda: over_http("/ui/p/playbook/active-decisions"),
    "the timeline page": lambda: over_http("/ui/p/timeline?state=active"),
    "the timeline page by words": lambda: over_http("/ui/p/timeline?state=active&q=quagga"),
    "MCP ask": lambda: json.dumps(over_mcp("ask", name="active-decisions")),
    "MCP recall": lambda: entries(over_mcp("recall", query="quagga", limit=100)),
    "MCP briefing": lambda: governing_sections(over_mcp("briefing", about=["src/a.py"])),
}


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_active_decisions_are_shown_by_each_interface(iris, output):  # C088
    text = re.sub("Withdrawn: quagga \\w+", "", OUTPUTS[output]())

    names = (*RECORDED, "pending", "refused", "taken")
    assert {name for name in names if f"quagga {name}" in text} == {"accepted", "unstated", "taken"}


def test_named_queries_filter_by_the_one_definition_of_an_active_memory():
    exempt = {
        "proposals": "lists what a curator has to accept first",
        "active-sessions": "lists sessions, which have a state of their own",
        "entries-of-agent": "lists entries, which are replaced and not judged",
    }
    for query in Playbook():
        if not query.takes("includeInactive") or query.name in exempt:
            continue
        lines = [line.strip() for line in query.text.splitlines()]
        items = [line.split("?")[2].split()[0] for line in lines if "jido:hasAssertionStatus jido:Proposed })" in line]
        assert items, query.name
        for item in items:
            end = next(line for line in lines if line.startswith(f"?{item} jido:supersededBy|jido:invalidatedBy ?"))
            expected = [line.strip() for line in active.filters(item, end.rpartition("?")[2]).splitlines()]
            if query.name == "stale":  # lists what is not valid any more
                expected = [line for line in expected if "validUntil" not in line]
            begin = lines.index(expected[0])
            assert lines[begin : begin + len(expected)] == expected, (query.name, item)
        assert query.judges_validity or query.name == "stale"


@pytest.mark.parametrize("name", ["active-decisions", "recent-decisions", "decisions", "decision-log"])
@pytest.mark.parametrize(
    ("status", "names"),
    [
        ("accepted", {"accepted", "unstated", "expired", "scheduled", "successor", "taken"}),
        ("rejected", {"rejected", "refused"}),
        ("deprecated", {"deprecated"}),
        ("proposed", {"undecided"}),
        ("pending", {"pending"}),
        ("superseded", {"superseded", "taken"}),
        ("invalidated", {"withdrawn"}),
    ],
)
def test_a_status_filter_lists_the_decisions_of_that_status(iris, name, status, names):
    rows = json.loads(at_command_line("ask", name, "--status", status, "--json"))["rows"]
    paged = json.loads(at_command_line("ask", name, "--status", status, "--limit", "50", "--json"))["rows"]
    served = json.loads(over_http(f"/projects/p/queries/{name}?status={status}"))["rows"]

    assert rows == paged == served
    text = "summary" if "summary" in rows[0] else "content"
    assert {row[text].splitlines()[0] for row in rows} == {f"quagga {each}" for each in names}
    assert {row["status"] for row in rows} == {status}


def test_the_status_filter_refuses_unknown_statuses_and_lists_of_other_kinds(iris):
    with jidomem.open() as memory:
        with pytest.raises(InvalidRequest) as refusal:
            memory.reader.ask("decisions", project="p", status="closed")
        assert "rejected" in refusal.value.hint
        with pytest.raises(InvalidRequest, match="status"):
            memory.reader.ask("open-tasks", project="p", status="rejected")


def test_the_status_of_a_memory_is_the_same_when_read_recalled_and_shown(iris):
    with jidomem.open() as memory:
        statuses = {name: memory.reader.get_memory("p", item)["status"] for name, item in iris.items()}
        hits = {hit.id: hit.metadata for hit in memory.recall("quagga", include_inactive=True, limit=100).entries}
        page = create_app(memory).test_client().get(f"/ui/p/memories/{iris['rejected']}").text

    assert statuses == {name: STATE.get(name, name) for name in iris}
    for name, item in iris.items():
        assert hits[item]["status"] == statuses[name]
        assert f"{hits[item]['time']:%Y-%m-%d}" == "2019-05-06"
    assert '<span class="status rejected">rejected</span>' in page
    assert '<span class="status active">' not in page


def test_counts_separate_decisions_by_status(iris):
    with jidomem.open() as memory:
        present, future = counts(memory.reader, "p"), counts(memory.reader, "p", as_of="2099-01-01")
        waiting = pending(memory.reader, "p")

    assert present["ArchitecturalDecision"] == future["ArchitecturalDecision"] == {
        "active": 4, "rejected": 2, "deprecated": 1, "proposed": 1, "pending": 1, "superseded": 2,
        "invalidated": 1, "expired": 1, "scheduled": 1,
    }  # fmt: skip
    assert waiting == 1


def timeline_states(memory, as_of):
    """The number of decisions in each state on the page."""
    moments = {"moment": as_of and format_timestamp(as_of), "valid_at": format_timestamp(as_of or now())}
    decision_named = {"kind": "ArchitecturalDecision"}
    read = memory.texts.read(Stream("p"), lambda file: overview(file, decision_named, **moments, after=None, count=1))
    return read.facets["state"]


def test_counts_queries_history_and_timeline_use_the_same_states(iris):
    with jidomem.open() as memory:
        reader = memory.reader
        moments = [None, *(reader.get_memory("p", iris[name])["recorded_at"] for name in ("withdrawn", "refused"))]
        for as_of in moments:
            rows = reader.ask("timeline", project="p", include_inactive=True, as_of=as_of)
            decisions = [row for row in rows if row["kind"].endswith("ArchitecturalDecision")]
            states = {row["item"]: row["status"] for row in decisions}
            changed = {row["item"]: row["after"] for row in reader.diff("p", "0", as_of)}
            facets = timeline_states(memory, as_of)
            ended = [states.pop(item) for item in [*states] if states[item] in active.ENDED]

            counted = Counter(states.values()) + Counter(ended)
            assert counts(reader, "p", as_of=as_of)["ArchitecturalDecision"] == counted
            assert facets == Counter(states.values()) + Counter({"ended": len(ended)})
            assert {item: changed[item] for item in states} == states
            assert {item: reader.get_memory("p", item, as_of=as_of)["status"] for item in states} == states


def test_a_withdrawal_is_no_active_memory_in_any_interface(iris):
    with jidomem.open() as memory:
        reader, client = memory.reader, create_app(memory).test_client()
        (marker,) = reader.get_memory("p", iris["withdrawn"])["invalidated_by"]
        rows = client.get("/projects/p/queries/timeline").json["rows"]
        facets = client.get("/ui/p/timeline.json").json["facets"]["state"]["values"]
        listed = client.get("/ui/p/timeline.json?state=withdrawal").json["days"]
        feed = [json.loads(line) for line in client.get("/projects/p/journal?limit=1000").text.splitlines()]
        of_agent = reader.ask("memories-of-agent", project="p", agent=rows[0]["agent"])
        each = {
            "timeline": {row["item"]: row["status"] for row in rows}[marker],
            "memories-of-agent": {row["item"]: row["status"] for row in of_agent}[marker],
            "history": {row["entry"]: row["status"] for row in reader.history("p", iris["withdrawn"])}[marker],
            "diff": {row["item"]: row["after"] for row in reader.diff("p", "0")}[marker],
            "memory": reader.get_memory("p", marker)["status"],
            "feed": {row["iri"]: row["status"] for entry in feed for row in entry["added"]}[marker],
        }
        counted = sum(states.get("active", 0) for states in counts(reader, "p").values())

    assert each == dict.fromkeys(each, "withdrawal")
    assert sum(row["status"] == "active" for row in rows) == counted
    assert {one["value"]: one["count"] for one in facets}["active"] == counted
    assert marker in [one["iri"] for day in listed for one in day["memories"]]


@pytest.mark.parametrize("status", ["rejected", "deprecated", "proposed"])
def test_a_decision_that_is_not_accepted_does_not_conflict_with_an_accepted_one(repository, status):
    with jidomem.open() as memory:
        first = memory.writer.submit_intent("p", decision_named("one", topic="store", status=status))
        accepted = memory.writer.submit_intent("p", decision_named("two", topic="store", status="accepted"))
        later = memory.writer.submit_intent("p", decision_named("three", topic="store", status=status))
        repeated = memory.writer.submit_intent("p", decision_named("three", topic="store", status=status))

        assert [first.status, accepted.status, later.status] == ["asserted"] * 3
        assert (repeated.status, repeated.iri) == ("deduplicated", later.iri)
        assert memory.reader.ask("conflicts", project="p") == []
        with pytest.raises(jidomem.errors.Conflict) as refusal:
            memory.writer.submit_intent("p", decision_named("four", topic="store"))
    assert [each.iri for each in refusal.value.conflicts] == [accepted.iri]


def test_a_decision_without_a_timestamp_is_listed_last(repository):
    with jidomem.open() as memory:
        dated = memory.writer.submit_intent("p", decision_named("dated")).iri
        graph = jidomem.rdf.vocab.graph_iri("p")
        memory.catch_up("p")
        undated = [
            (s.replace(dated, "urn:undated"), p, o.replace(dated, "urn:undated"))
            for s, p, o in memory.index.triples(graph)
            if p != jidomem.rdf.vocab.jido("hasTimestamp") and f"<{dated}>" == s
        ]
        stream, head = Stream("p"), memory.journal.head(Stream("p"))
        commit = commits.build(
            graph=graph,
            parents=head,
            recorded_at=format_timestamp(now()),
            committer=f"{BASE}agents/memory-writer",
            ontology_version="0.1.0",
            body=undated,
            nonce=bytes(32),
        )
        memory.journal.append(stream, head, commit)
        whole = memory.reader.ask("recent-decisions", project="p")
        memory.reader.ask_page("recent-decisions", project="p", limit=1)
        first = memory.reader.ask_page("recent-decisions", project="p", limit=1)
        second = memory.reader.ask_page("recent-decisions", project="p", limit=1, cursor=first.cursor)
        log = memory.reader.ask("decision-log", project="p")

    assert [(row["decision"], row["time"] is None) for row in whole] == [(dated, False), ("urn:undated", True)]
    assert [*first.rows, *second.rows] == whole
    assert [row["subject"] for row in log] == ["urn:undated", dated]


def test_memories_that_expire_between_two_pages_stay_on_the_second(repository):
    clock = [now()]
    with jidomem.open(sources=Sources(now=lambda: clock[0])) as memory:
        for number in range(3):
            end_date = clock[0] + timedelta(days=365)
            memory.writer.submit_intent("p", decision_named(f"n {number}", valid_until=end_date.isoformat()))
        first = memory.reader.ask_page("decisions", project="p", limit=2)
        clock[0] += timedelta(days=730)
        second = memory.reader.ask_page("decisions", project="p", limit=2, cursor=first.cursor)

        assert (len(first.rows), len(second.rows)) == (2, 1)
        assert memory.reader.ask("decisions", project="p") == []
