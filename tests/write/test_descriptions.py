"""Writes of things that are no memories: descriptions, answers to proposed terms, streams, and all in one commit."""

import pytest
from conftest import START, intent
from writing import GRAPH, codes, refusal, triples_of, values_of

import jidomem
from jidomem.errors import InvalidRequest, PolicyDenied
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import boolean, iri, literal, plain_value
from jidomem.rdf.vocab import BASE, TYPE, graph_iri, jido
from jidomem.records.policy import PolicyChange

FILE, TERM, CODE = iri("urn:x:a.py"), iri("urn:x:term"), graph_iri("p", "codebase")
ROWS = [(FILE, TYPE, jido("SourceFile")), (FILE, jido("filePath"), '"a.py"')]


def in_stream(memory, stream):
    """The content of a stream, without the descriptions of the writer and its commits."""
    memory.catch_up("p")
    own = (f"<{BASE}agents/memory-writer>",)
    found = set(memory.index.triples(Stream("p", stream).graph))
    return {row for row in found if row[0] not in own and "commit:" not in row[0] and "recorded" not in row[1]}


def test_what_is_described_is_kept_once_and_what_is_described_otherwise_is_left_as_it_is(memory):
    assert memory.writer.declare("p", ROWS) == []
    before = triples_of(memory)
    assert memory.writer.declare("p", ROWS) == []
    assert memory.writer.declare("p", [ROWS[0], (FILE, jido("filePath"), '"b.py"')]) == [plain_value(FILE)]
    assert triples_of(memory) == before >= set(ROWS)


def test_what_is_appended_is_kept_once_in_its_stream(memory):
    first = memory.writer.append("p", "codebase", ROWS)
    assert (first.status, bool(first.commit)) == ("asserted", True)
    assert memory.writer.append("p", "codebase", [ROWS[0]]).status == "deduplicated"
    more = (iri("urn:x:b.py"), TYPE, jido("SourceFile"))
    assert memory.writer.append("p", "codebase", [*ROWS, more]).status == "asserted"
    assert in_stream(memory, "codebase") == {*ROWS, more}


def test_a_stream_is_cleared_once_and_filled_again(memory):
    nothing = memory.writer.clear("p", "codebase")
    assert (nothing.status, nothing.iri, nothing.commit) == ("deduplicated", "", None)
    memory.writer.append("p", "codebase", ROWS)

    cleared = memory.writer.clear("p", "codebase")

    assert (cleared.status, cleared.iri, bool(cleared.commit)) == ("asserted", "", True)
    assert in_stream(memory, "codebase") == set()
    assert memory.writer.append("p", "codebase", ROWS).status == "asserted"
    assert in_stream(memory, "codebase") == set(ROWS)


@pytest.mark.parametrize(
    "row",
    [
        (TERM, TYPE, jido("TermAnswer")), (TERM, jido("answersProposal"), TERM), (TERM, jido("isAccepted"), TERM),
        (TERM, jido("answeredBy"), TERM), (TERM, jido("answerReason"), '"x"'),
    ],
)  # fmt: skip
def test_a_proposed_term_is_not_answered_by_triples(memory, row):
    error = refusal(memory.writer.append, "p", "system", [*ROWS, row])
    assert isinstance(error, PolicyDenied)
    assert error.detail == "a proposed term is answered by a curator, not by triples"
    assert error.hint == (
        "memory.term_proposals().accept(TERM) or .reject(TERM, reason=...), or: jidomem ontology accept TERM"
    )
    assert not memory.projects()


def test_an_answer_to_a_proposed_term_says_what_by_whom_and_why(memory):
    memory.writer.agent = "ana"
    answer, ana = iri(BASE + "term-answers/term"), iri(BASE + "agents/ana")
    memory.writer.answer_term("p", iri(BASE + "term-proposals/term"), accepted=True, reason=" it is used \n")
    memory.writer.answer_term("p", iri(BASE + "term-proposals/other"), accepted=False, reason=" ")
    other = iri(BASE + "term-answers/other")
    assert {row for row in in_stream(memory, "system") if row[0] in (answer, other)} == {
        (answer, TYPE, jido("TermAnswer")), (answer, jido("answersProposal"), iri(BASE + "term-proposals/term")),
        (answer, jido("isAccepted"), boolean(True)), (answer, jido("answeredBy"), ana),
        (answer, jido("answerReason"), literal("it is used")), (other, TYPE, jido("TermAnswer")),
        (other, jido("answersProposal"), iri(BASE + "term-proposals/other")),
        (other, jido("isAccepted"), boolean(False)),
        (other, jido("answeredBy"), ana),
    }  # fmt: skip


def test_a_term_is_answered_by_a_curator_or_taken_back_by_who_proposed_it(memory):
    memory.writer.change_policy("p", [PolicyChange(grants="Curator", agent="rita")])
    own, strange = (iri(BASE + f"term-proposals/{name}") for name in ("own", "strange"))
    memory.writer.append(
        "p", "system", [(own, TYPE, jido("TermProposal")), (own, jido("proposedBy"), iri(BASE + "agents/bob"))]
    )
    memory.writer.agent = "bob"
    for proposal, accepted, word in ((own, True, "accept"), (strange, False, "reject"), (strange, True, "accept")):
        error = refusal(memory.writer.answer_term, "p", proposal, accepted=accepted, reason="x")
        assert f"{word} terms" in error.detail
    assert memory.writer.answer_term("p", own, accepted=False, reason="x").status == "asserted"
    memory.writer.agent = "rita"
    assert memory.writer.answer_term("p", strange, accepted=True, reason="x").status == "asserted"


def test_descriptions_and_intents_are_kept_in_one_commit(memory):
    known, first, second = memory.writer.keep_together("p", ROWS, [intent(), intent(summary="two")])
    assert {known.commit, first.commit, second.commit} == {first.commit}
    assert set(ROWS) <= triples_of(memory)
    same, third = memory.writer.keep_together("p", ROWS, [intent(summary="three")])
    assert (same.status, same.iri, third.status) == ("deduplicated", "", "asserted")
    assert [r.status for r in memory.writer.keep_together("p", (), [intent(summary="four")])] == ["asserted"]


def test_what_is_described_here_otherwise_keeps_all_of_it_out(memory):
    memory.writer.declare("p", ROWS)
    before = triples_of(memory)
    for value in ('"b.py"', '"' + "x" * 99 + '"'):
        rows = [ROWS[0], (FILE, jido("filePath"), value)]
        error = refusal(memory.writer.keep_together, "p", rows, [intent()])
        message = f"urn:x:a.py is described here already, and without {plain_value(jido('filePath'))} {value[:80]}"
        assert (codes(error), error.violations[0].message) == (["iri_exists"], message)
        assert error.violations[0].value == plain_value(FILE)
    assert refusal(memory.writer.keep_together, "p", ROWS, [intent(summary=None)]).code == "missing_required_fields"
    assert triples_of(memory) == before


def test_who_only_reads_describes_nothing(memory):
    memory.writer.change_policy("p", [PolicyChange(grants="MemoryReader", agent="rob")])
    memory.writer.agent = "rob"
    tries = [
        lambda: memory.writer.declare("p", ROWS), lambda: memory.writer.append("p", "codebase", ROWS),
        lambda: memory.writer.clear("p", "codebase"), lambda: memory.writer.keep_together("p", ROWS, []),
    ]  # fmt: skip
    for attempt in tries:
        assert "description" in refusal(attempt).detail
    for attempt in (
        lambda: memory.writer.start_session("p", "s"), lambda: memory.writer.move_session("p", "s", phase="review"),
    ):  # fmt: skip
        assert "session" in refusal(attempt).detail


def test_a_session_moves_to_something(memory):
    error = refusal(memory.writer.move_session, "p", "s")
    assert isinstance(error, InvalidRequest)
    assert (error.detail, error.hint) == (
        "a session moves to a status or to a phase",
        "give `status` (such as paused) or `phase` (such as review)",
    )


def test_what_is_remembered_is_filled_with_what_is_missing_and_says_so(memory):
    memory.writer.agent = "ana"
    receipt = memory.writer.remember("p", "it rained", confidence="high")
    filled = {"type": "fact", "applies_to_project": "p", "asserted_by": "ana", "asserted_in": f"ana-{START:%Y-%m-%d}"}
    assert filled.items() <= receipt.filled.items()
    assert {"iri", "timestamp", *filled} == set(receipt.filled)
    assert values_of(memory, receipt.iri, "hasConfidence") == [jido("High")]
    medium = memory.writer.remember("p", "it snowed")
    assert (medium.filled["confidence"], values_of(memory, medium.iri, "hasConfidence")) == ("medium", [jido("Medium")])
    before = len([*memory.index.triples(GRAPH)])
    assert memory.writer.remember("p", "it hailed", dry_run=True).commit is None
    assert len([*memory.index.triples(GRAPH)]) == before


def test_a_value_is_known_after_its_write_whichever_process_wrote_it(memory):
    summaries = ["written here", "written elsewhere", "written by none"]

    def known():
        return [memory.writer.has_value("p", jido("summary"), [literal(each)]) for each in summaries]

    assert known() == [False, False, False]
    memory.writer.submit_intent("p", intent(summary=summaries[0]))
    assert known() == [True, False, False]
    with jidomem.open(memory.settings.root, project="p") as other:
        other.writer.submit_intent("p", intent(summary=summaries[1]))
    assert known() == [True, True, False]
    assert memory.writer.has_value("p", jido("summary"), map(literal, reversed(summaries)))
    assert not memory.writer.has_value("p", jido("topic"), map(literal, summaries))
