"""The counts of the present, without a search file and with one, and those as of a moment agree."""

from random import Random

import pytest
from click.testing import CliRunner
from conftest import decision, fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of
from test_query_law import CONTEXT, Scribe, at, drawn_history

import jidomem
from jidomem.entries import Entry, WriteRequest
from jidomem.journal.journal import Stream
from jidomem.read.derived import count_entries, counts, pending
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

#: Ensured by the writer.
OURS = {"foreign": False, "left_out": ""}


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_current_counts_equal_the_counts_as_of_the_last_moment(seed):
    scribe, index = Scribe(), new_index()
    for number, news in enumerate(drawn_history(Random(seed))):
        ours = [{**piece, **OURS} if isinstance(piece, dict) else piece for piece in news]
        index.apply(CONTEXT, str(number), scribe.commit(number, ours)[CONTEXT])
    reader = reader_of(index, projected=False)

    now = counts(reader, "demo", as_of=None, valid_at=None)

    assert now == counts(reader_of(index), "demo")
    assert now == counts(reader, "demo", as_of=at(59))
    known = {name for name, cls in scribe.known if cls != "Evidence"}
    assert sum(sum(of.values()) for of in now.values()) == len(known)


def test_an_accepted_proposal_is_counted_as_superseded(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        for number in range(3):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}"), propose=True)
        memory.writer.submit_intent("p", intent(summary="an old fact", iri="urn:old"))
        memory.writer.submit_intent("p", intent(summary="a new fact", supersedes=["urn:old"]))
        assert counts(memory.reader, "p") == {"Fact": {"active": 1, "superseded": 1, "pending": 3}}

        for row in memory.reader.ask("proposals", project="p"):
            memory.writer.confirm("p", row["item"])

        assert counts(memory.reader, "p") == {"Fact": {"active": 4, "superseded": 4}}
        rows = memory.reader.ask("counts", project="p")
        assert [(row["status"], row["items"]) for row in rows] == [("active", 4), ("superseded", 4)]
        assert len(memory.reader.ask("facts", project="p", include_inactive=True)) == 8
        now = memory.reader.ask("timeline", project="p", limit=1)[0]["recorded"]
        assert counts(memory.reader, "p", as_of=now) == counts(memory.reader, "p")


@pytest.mark.parametrize("as_of", [None, "2089-01-01"])
def test_the_alternatives_of_a_settled_proposal_are_not_counted_as_pending(root, as_of):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        fields = decision(summary="Use Kafka", topic="events", alternatives=["Webhooks", "Nothing"])
        proposal = memory.writer.submit_intent("p", fields, propose=True)
        assert pending(memory.reader, "p", as_of=as_of) == 1
        assert counts(memory.reader, "p", as_of=as_of) == {"ArchitecturalDecision": {"pending": 1}}

        memory.writer.confirm("p", proposal.iri)

        assert pending(memory.reader, "p", as_of=as_of) == 0
        assert not any("pending" in states for states in counts(memory.reader, "p", as_of=as_of).values())
    shown = CliRunner().invoke(cli, ["status", "--root", str(root), "--project", "p"]).stdout
    assert "Alternative              2 listed by decisions, also by ended ones\n" in shown
    assert "wait" not in shown
    assert "pending review" not in shown


def test_entries_and_turns_are_counted_now_and_as_of_a_moment_in_every_interface(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        memory.writer.remember("p", "one fact")
        assert count_entries(memory.reader, "p") == {"entries": 0, "turns": 0}
        for content in ("we ship on Friday", "or on Monday"):
            memory.entries.write(WriteRequest(Entry(id="plan", agent_id="ana", content=content)))
        memory.conversation("s-1").record("when?", "On Friday.")
        moment = memory.journal.head(Stream("p", "history")).recorded_at
        memory.entries.write(WriteRequest(Entry(id="plan", agent_id="ana", content="on Tuesday")))
        memory.entries.write(WriteRequest(Entry(agent_id="ben", content="the kettle")))
        memory.conversation("s-1").record("really?")

        reported = create_app(memory).test_client().get("/projects/p").json["history"]
        assert count_entries(memory.reader, "p") == reported == {"entries": 2, "turns": 2}
        assert count_entries(memory.reader, "p", as_of=moment) == {"entries": 1, "turns": 1}
    shown = CliRunner().invoke(cli, ["status", "--root", str(root), "--project", "p"]).stdout
    assert "history                  2 entries, 2 turns" in shown
