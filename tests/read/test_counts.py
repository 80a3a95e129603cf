"""The counts of the present and those as of a moment are computed differently, and agree."""

from random import Random

from click.testing import CliRunner
from conftest import fixed_sources, intent
from hypothesis import given, settings
from hypothesis import strategies as st
from reader_world import new_index, reader_of
from test_query_law import CONTEXT, Scribe, at, drawn_history

import jidomem
from jidomem.entries import Entry, WriteRequest
from jidomem.journal.journal import Stream
from jidomem.read.derived import count_entries, counts
from jidomem.serve.app import create_app
from jidomem_cli.main import cli

ACCEPTED = """PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?item { ?item jido:hasAssertionStatus jido:Proposed ; jido:supersededBy ?end .
?end jido:hasAssertionStatus jido:Asserted
FILTER NOT EXISTS { ?item jido:invalidatedBy ?by . ?by jido:hasAssertionStatus jido:Asserted } }"""
#: Ensured by the writer.
OURS = {"foreign": False, "left_out": ""}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_what_there_is_now_is_what_there_is_as_of_the_last_moment(seed):
    scribe, index = Scribe(), new_index()
    for number, news in enumerate(drawn_history(Random(seed))):
        ours = [{**piece, **OURS} if isinstance(piece, dict) else piece for piece in news]
        index.apply(CONTEXT, str(number), scribe.commit(number, ours)[CONTEXT])
    reader = reader_of(index)

    now = counts(reader, "demo", as_of=None, valid_at=None)

    assert now == counts(reader, "demo", as_of=at(59))
    accepted = reader.select("demo", ACCEPTED)
    assert sum(sum(of.values()) for of in now.values()) + len(accepted) == len(
        {name for name, cls in scribe.known if cls != "Evidence"}
    )


def test_accepted_proposals_are_not_counted_as_superseded(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        for number in range(3):
            memory.writer.submit_intent("p", intent(summary=f"fact {number}"), propose=True)
        memory.writer.submit_intent("p", intent(summary="an old fact", iri="urn:old"))
        memory.writer.submit_intent("p", intent(summary="a new fact", supersedes=["urn:old"]))
        assert counts(memory.reader, "p") == {"Fact": {"active": 1, "superseded": 1, "pending": 3}}

        for row in memory.reader.ask("proposals", project="p"):
            memory.writer.confirm("p", row["item"])

        assert counts(memory.reader, "p") == {"Fact": {"active": 4, "superseded": 1}}
        now = memory.reader.ask("timeline", project="p", limit=1)[0]["recorded"]
        assert counts(memory.reader, "p", as_of=now) == counts(memory.reader, "p")


def test_what_the_history_holds_is_counted_now_and_as_of_a_moment_at_every_door(root):
    with jidomem.open(root, project="p", sources=fixed_sources()) as memory:
        memory.writer.remember("p", "one fact")
        assert count_entries(memory.reader, "p") == {"entries": 0, "turns": 0}
        for content in ("we ship on Friday", "or on Monday"):
            memory.entries.write(WriteRequest(Entry(id="plan", agent_id="ana", content=content)))
        memory.conversation("s-1").record("when?", "On Friday.")
        then = memory.journal.head(Stream("p", "history")).recorded_at
        memory.entries.write(WriteRequest(Entry(id="plan", agent_id="ana", content="on Tuesday")))
        memory.entries.write(WriteRequest(Entry(agent_id="ben", content="the kettle")))
        memory.conversation("s-1").record("really?")

        told = create_app(memory).test_client().get("/projects/p").json["history"]
        assert count_entries(memory.reader, "p") == told == {"entries": 2, "turns": 2}
        assert count_entries(memory.reader, "p", as_of=then) == {"entries": 1, "turns": 1}
    shown = CliRunner().invoke(cli, ["status", "--root", str(root), "--project", "p"]).stdout
    assert "history                  2 entries, 2 turns" in shown
