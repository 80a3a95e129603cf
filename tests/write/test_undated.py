"""Undated memories: their time of assertion is unknown."""

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


def test_an_undated_memory_has_no_timestamp_and_any_other_has_one(memory):
    undated = memory.writer.submit_intent(PROJECT, UNDATED)
    dated = memory.writer.submit_intent(PROJECT, DECISION | {"summary": "Use a log", "topic": "log"})

    assert properties(memory, undated.iri)["isUndated"] == [True]
    assert "hasTimestamp" not in properties(memory, undated.iri)
    assert properties(memory, dated.iri)["hasTimestamp"]
    assert "isUndated" not in properties(memory, dated.iri)


def test_the_alternatives_of_an_undated_decision_are_undated_and_its_session_starts_at_the_commit(memory):
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


def test_a_date_given_later_replaces_the_undated_mark(memory):
    first = memory.writer.submit_intent(PROJECT, UNDATED)

    revised = memory.writer.revise(PROJECT, first.iri, changes={"summary": "Use one queue"}, reason="it is one")
    dated = memory.writer.revise(PROJECT, revised.iri, changes={"timestamp": "2018-03-02"}, reason="it was found")

    assert properties(memory, revised.iri)["isUndated"] == [True]
    assert properties(memory, dated.iri)["hasTimestamp"][0].year == 2018
    assert "isUndated" not in properties(memory, dated.iri)


def test_an_undated_mark_of_false_is_refused(memory):
    with pytest.raises(IntentRefused) as refusal:
        memory.writer.submit_intent(PROJECT, DECISION | {"extra_triples": [["jido:isUndated", False]]})

    assert "A memory says when it was asserted" in str(refusal.value)


def test_an_undated_memory_stays_undated_after_export_and_import(memory, tmp_path):
    item = memory.writer.submit_intent(PROJECT, UNDATED).iri
    data = exporting.turtle(PROJECT, [*memory.journal.read(Stream(PROJECT, "memory"))], memory.schema.version)

    with jidomem.open(tmp_path / "other") as other:
        report = import_document(other.writer, other.schema, PROJECT, "shop.ttl", data)
        second_report = import_document(other.writer, other.schema, PROJECT, "shop.ttl", data)

        assert (report.refusals, [entry.outcome for entry in second_report.entries]) == ([], [None])
        assert properties(other, item)["isUndated"] == [True]
        assert "hasTimestamp" not in properties(other, item)


NO_DATE = {"extra_triples": [["jido:isUndated", True]]}
PAST = {"timestamp": "2026-01-01", "valid_until": "2026-02-01"}


@pytest.mark.parametrize(
    ("first", "second", "is_conflict"),
    [
        (PAST, NO_DATE, False),  # it is over when the other is recorded
        (NO_DATE, PAST, False),
        (NO_DATE, {"valid_until": "2026-11-30"}, True),
        (NO_DATE, NO_DATE, True),
        (NO_DATE | {"valid_until": "2026-12-01"}, {"valid_from": "2027-01-01"}, False),
        ({"valid_from": "2027-01-01"}, NO_DATE, True),
    ],
)
def test_the_write_and_the_conflicts_query_date_an_undated_memory_from_its_recording(
    tmp_path, first, second, is_conflict
):
    def open_root(name, hour):
        return jidomem.open(tmp_path / name, project=PROJECT, sources=fixed_sources(START + timedelta(hours=hour)))

    def fact(number, dates):
        port = {"iri": f"urn:m:{number}", "topic": "port", "summary": f"port {number}", "applies_to_project": PROJECT}
        return intent(**port, **dates)

    with open_root("one", 0) as memory:
        memory.writer.submit_intent(PROJECT, fact(0, {}) | {"topic": "another"})
    shutil.copytree(tmp_path / "one" / "projects", tmp_path / "two" / "projects")
    with open_root("one", 1) as memory:
        memory.writer.submit_intent(PROJECT, fact(1, first))
        try:
            memory.writer.submit_intent(PROJECT, fact(2, second), dry_run=True)
            is_refused = False
        except Conflict:
            is_refused = True
    with open_root("two", 2) as memory:
        memory.writer.submit_intent(PROJECT, fact(2, second))
    shutil.copytree(tmp_path / "two" / "projects", tmp_path / "one" / "projects", dirs_exist_ok=True)
    with open_root("one", 3) as merged:
        conflicts = merged.ask("conflicts")

    assert (is_refused, len(conflicts)) == (is_conflict, is_conflict)


def test_an_undated_proposal_does_not_conflict_with_a_memory_that_ended_before_it(memory):
    memory.writer.submit_intent(PROJECT, DECISION | PAST | {"topic": "queue"})
    fields = DECISION | NO_DATE | {"topic": "queue", "summary": "Use a log"}
    proposal = memory.writer.submit_intent(PROJECT, fields, propose=True)
    assert proposal.status == "proposed"

    assert rivals(iri(proposal.iri), present_rows(memory.reader, PROJECT)) == []
