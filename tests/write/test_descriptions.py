"""Writes other than memories: descriptions, answers to proposed terms, streams, and commits that hold several."""

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
    """Return the triples of a stream, without those that describe the writer and its commits."""
    memory.catch_up("p")
    writer_subjects = (f"<{BASE}agents/memory-writer>",)
    rows = set(memory.index.triples(Stream("p", stream).graph))
    return {
        row for row in rows if row[0] not in writer_subjects and "commit:" not in row[0] and "recorded" not in row[1]
    }


def test_a_repeated_description_is_stored_once_and_a_different_one_is_reported_and_not_stored(memory):
    assert memory.writer.declare("p", ROWS) == []
    before = triples_of(memory)
    assert memory.writer.declare("p", ROWS) == []
    assert memory.writer.declare("p", [ROWS[0], (FILE, jido("filePath"), '"b.py"')]) == [plain_value(FILE)]
    assert triples_of(memory) == before >= set(ROWS)


def test_appended_triples_are_stored_once_in_their_stream(memory):
    first = memory.writer.append("p", "codebase", ROWS)
    assert (first.status, bool(first.commit)) == ("asserted", True)
    assert memory.writer.append("p", "codebase", [ROWS[0]]).status == "deduplicated"
    another = (iri("urn:x:b.py"), TYPE, jido("SourceFile"))
    assert memory.writer.append("p", "codebase", [*ROWS, another]).status == "asserted"
    assert in_stream(memory, "codebase") == {*ROWS, another}


def test_a_stream_is_cleared_once_and_appended_to_again(memory):
    noop = memory.writer.clear("p", "codebase")
    assert (noop.status, noop.iri, noop.commit) == ("deduplicated", "", None)
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
def test_an_appended_answer_to_a_proposed_term_is_denied_with_the_curators_command(memory, row):
    error = refusal(memory.writer.append, "p", "system", [*ROWS, row])
    assert isinstance(error, PolicyDenied)
    assert error.detail == "a proposed term is answered by a curator, not by triples"
    assert error.hint == (
        "memory.term_proposals().accept(TERM) or .reject(TERM, reason=...), or: jidomem ontology accept TERM"
    )
    assert not memory.projects()


def test_a_term_answer_records_the_proposal_verdict_agent_and_reason(memory):
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


def test_a_term_proposal_is_answered_by_a_curator_or_rejected_by_its_own_proposer(memory):
    memory.writer.change_policy("p", [PolicyChange(grants="Curator", agent="rita")])
    own_proposal, other_proposal = (iri(BASE + f"term-proposals/{name}") for name in ("own", "strange"))
    memory.writer.append(
        "p",
        "system",
        [(own_proposal, TYPE, jido("TermProposal")), (own_proposal, jido("proposedBy"), iri(BASE + "agents/bob"))],
    )
    memory.writer.agent = "bob"
    for proposal, accepted, verb in (
        (own_proposal, True, "accept"),
        (other_proposal, False, "reject"),
        (other_proposal, True, "accept"),
    ):
        error = refusal(memory.writer.answer_term, "p", proposal, accepted=accepted, reason="x")
        assert f"{verb} terms" in error.detail
    assert memory.writer.answer_term("p", own_proposal, accepted=False, reason="x").status == "asserted"
    memory.writer.agent = "rita"
    assert memory.writer.answer_term("p", other_proposal, accepted=True, reason="x").status == "asserted"


def test_descriptions_and_intents_are_recorded_in_one_commit(memory):
    described, first, second = memory.writer.keep_together("p", ROWS, [intent(), intent(summary="two")])
    assert {described.commit, first.commit, second.commit} == {first.commit}
    assert set(ROWS) <= triples_of(memory)
    repeated, third = memory.writer.keep_together("p", ROWS, [intent(summary="three")])
    assert (repeated.status, repeated.iri, third.status) == ("deduplicated", "", "asserted")
    assert [r.status for r in memory.writer.keep_together("p", (), [intent(summary="four")])] == ["asserted"]


def test_a_conflicting_description_refuses_the_descriptions_and_intents_with_it(memory):
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


def test_a_memory_reader_is_denied_descriptions_and_sessions(memory):
    memory.writer.change_policy("p", [PolicyChange(grants="MemoryReader", agent="rob")])
    memory.writer.agent = "rob"
    calls = [
        lambda: memory.writer.declare("p", ROWS), lambda: memory.writer.append("p", "codebase", ROWS),
        lambda: memory.writer.clear("p", "codebase"), lambda: memory.writer.keep_together("p", ROWS, []),
    ]  # fmt: skip
    for call in calls:
        assert "description" in refusal(call).detail
    for call in (
        lambda: memory.writer.start_session("p", "s"), lambda: memory.writer.move_session("p", "s", phase="review"),
    ):  # fmt: skip
        assert "session" in refusal(call).detail


def test_a_session_move_without_status_or_phase_is_refused(memory):
    error = refusal(memory.writer.move_session, "p", "s")
    assert isinstance(error, InvalidRequest)
    assert (error.detail, error.hint) == (
        "a session moves to a status or to a phase",
        "give `status` (such as paused) or `phase` (such as review)",
    )


def test_remember_fills_missing_fields_and_reports_them(memory):
    memory.writer.agent = "ana"
    receipt = memory.writer.remember("p", "it rained", confidence="high")
    filled = {"type": "fact", "applies_to_project": "p", "asserted_by": "ana", "asserted_in": f"ana-{START:%Y-%m-%d}"}
    assert filled.items() <= receipt.filled.items()
    assert {"iri", "timestamp", *filled} == set(receipt.filled)
    assert values_of(memory, receipt.iri, "hasConfidence") == [jido("High")]
    unrated = memory.writer.remember("p", "it snowed")
    assert (unrated.filled["confidence"], values_of(memory, unrated.iri, "hasConfidence")) == (
        "medium",
        [jido("Medium")],
    )
    before = len([*memory.index.triples(GRAPH)])
    assert memory.writer.remember("p", "it hailed", dry_run=True).commit is None
    assert len([*memory.index.triples(GRAPH)]) == before


def test_a_value_is_found_after_its_write_by_any_process(memory):
    summaries = ["written here", "written elsewhere", "written by none"]

    def known_values():
        return [memory.writer.has_value("p", jido("summary"), [literal(text)]) for text in summaries]

    assert known_values() == [False, False, False]
    memory.writer.submit_intent("p", intent(summary=summaries[0]))
    assert known_values() == [True, False, False]
    with jidomem.open(memory.settings.root, project="p") as second_process:
        second_process.writer.submit_intent("p", intent(summary=summaries[1]))
    assert known_values() == [True, True, False]
    assert memory.writer.has_value("p", jido("summary"), map(literal, reversed(summaries)))
    assert not memory.writer.has_value("p", jido("topic"), map(literal, summaries))
