"""Memories whose time of assertion is unknown."""

import shutil
from datetime import timedelta

import pytest
from conftest import START, fixed_sources, intent

import jidomem
from jidomem.curation.review_queue import present_rows
from jidomem.errors import Conflict, IntentRefused
from jidomem.exchange import documents as exporting
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.write.conflict import rivals

PROJECT = "shop"
DECISION = {
    "type": "decision",
    "summary": "Use a queue",
    "rationale": "Orders come in bursts",
    "alternatives": ["Use a table"],
    "applies_to_project": PROJECT,
    "asserted_by": "ana",
    "asserted_in": "s1",
    "confidence": "high",
}
UNDATED = DECISION | {"extra_triples": [["jido:isUndated", True]]}


def properties(memory, iri):
    return memory.reader.get_memory(PROJECT, iri)["properties"]


def test_a_memory_that_says_so_has_no_timestamp_and_all_others_have_the_moment_of_writing(memory):
    undated = memory.writer.submit_intent(PROJECT, UNDATED)
    dated = memory.writer.submit_intent(PROJECT, DECISION | {"summary": "Use a log", "topic": "log"})

    assert properties(memory, undated.iri)["isUndated"] == [True]
    assert "hasTimestamp" not in properties(memory, undated.iri)
    assert properties(memory, dated.iri)["hasTimestamp"]
    assert "isUndated" not in properties(memory, dated.iri)


def test_what_comes_with_an_undated_decision_is_undated_and_its_session_began_when_it_was_written(memory):
    receipt = memory.writer.submit_intent(PROJECT, UNDATED)

    rows = memory.reader.select(
        PROJECT,
        "PREFIX jido: <https://jido.ai/ontology#> SELECT ?undated ?began WHERE { ?item jido:hasAlternative ?other ; "
        "jido:assertedIn/jido:startedAt ?began . ?other jido:isUndated ?undated "
        "FILTER NOT EXISTS { ?other jido:hasTimestamp ?at } }",
    )
    (row,) = rows
    assert row["undated"] is True
    assert row["began"].date() == properties(memory, receipt.iri)["recordedAt"][0].date()


def test_a_date_that_becomes_known_settles_that_nobody_knew_it(memory):
    first = memory.writer.submit_intent(PROJECT, UNDATED)

    same = memory.writer.revise(PROJECT, first.iri, changes={"summary": "Use one queue"}, reason="it is one")
    dated = memory.writer.revise(PROJECT, same.iri, changes={"timestamp": "2018-03-02"}, reason="it was found")

    assert properties(memory, same.iri)["isUndated"] == [True]
    assert properties(memory, dated.iri)["hasTimestamp"][0].year == 2018
    assert "isUndated" not in properties(memory, dated.iri)


def test_only_yes_says_that_a_memory_is_undated(memory):
    with pytest.raises(IntentRefused) as refusal:
        memory.writer.submit_intent(PROJECT, DECISION | {"extra_triples": [["jido:isUndated", False]]})

    assert "A memory says when it was asserted" in str(refusal.value)


def test_an_undated_memory_stays_undated_in_an_export(memory, tmp_path):
    item = memory.writer.submit_intent(PROJECT, UNDATED).iri
    data = exporting.turtle(PROJECT, [*memory.journal.read(Stream(PROJECT, "memory"))], memory.schema.version)

    with jidomem.open(tmp_path / "other") as other:
        report = import_document(other.writer, other.schema, PROJECT, "shop.ttl", data)
        again = import_document(other.writer, other.schema, PROJECT, "shop.ttl", data)

        assert (report.refusals, [entry.outcome for entry in again.entries]) == ([], [None])
        assert properties(other, item)["isUndated"] == [True]
        assert "hasTimestamp" not in properties(other, item)


NO_DATE = {"extra_triples": [["jido:isUndated", True]]}
PAST = {"timestamp": "2026-01-01", "valid_until": "2026-02-01"}


@pytest.mark.parametrize(
    ("first", "second", "disagree"),
    [
        (PAST, NO_DATE, False),  # it is over when the other is recorded
        (NO_DATE, PAST, False),
        (NO_DATE, {"valid_until": "2026-11-30"}, True),
        (NO_DATE, NO_DATE, True),
        (NO_DATE | {"valid_until": "2026-12-01"}, {"valid_from": "2027-01-01"}, False),
        ({"valid_from": "2027-01-01"}, NO_DATE, True),
    ],
)
def test_a_write_and_the_list_of_conflicts_count_an_undated_memory_from_its_recording(
    tmp_path, first, second, disagree
):
    def opened(name, hour):
        return jidomem.open(tmp_path / name, project=PROJECT, sources=fixed_sources(START + timedelta(hours=hour)))

    def fact(number, dates):
        port = {"iri": f"urn:m:{number}", "topic": "port", "summary": f"port {number}", "applies_to_project": PROJECT}
        return intent(**port, **dates)

    with opened("one", 0) as memory:
        memory.writer.submit_intent(PROJECT, fact(0, {}) | {"topic": "another"})
    shutil.copytree(tmp_path / "one" / "projects", tmp_path / "two" / "projects")
    with opened("one", 1) as memory:
        memory.writer.submit_intent(PROJECT, fact(1, first))
        try:
            memory.writer.submit_intent(PROJECT, fact(2, second), dry_run=True)
            is_refused = False
        except Conflict:
            is_refused = True
    with opened("two", 2) as memory:
        memory.writer.submit_intent(PROJECT, fact(2, second))
    shutil.copytree(tmp_path / "two" / "projects", tmp_path / "one" / "projects", dirs_exist_ok=True)
    with opened("one", 3) as merged:
        listed = merged.ask("conflicts")

    assert (is_refused, len(listed)) == (disagree, disagree)


def test_a_proposal_without_a_date_has_no_conflict_with_what_ended_before_it_was_made(memory):
    memory.writer.submit_intent(PROJECT, DECISION | PAST | {"topic": "queue"})
    other = DECISION | NO_DATE | {"topic": "queue", "summary": "Use a log"}
    proposal = memory.writer.submit_intent(PROJECT, other, propose=True)
    assert proposal.status == "proposed"

    assert rivals(iri(proposal.iri), present_rows(memory.reader, PROJECT)) == []
