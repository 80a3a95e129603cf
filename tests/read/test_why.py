"""The provenance of a memory: author, time, evidence, rules and later memories."""

import pytest
from conftest import START, decision, intent

from jidomem.errors import NotFound
from jidomem.rdf.vocab import JIDO
from jidomem.read import provenance

AGENT, SESSION = "https://jido.ai/agents/architect", "https://jido.ai/sessions/s-1"


def record(memory, **fields):
    return memory.writer.submit_intent("p", intent(**fields)).iri


def provenance_of(memory, item, **moment):
    return memory.reader.why("p", item, **moment)


def test_the_provenance_of_a_memory_has_author_time_and_evidence(memory):  # C115
    source = record(memory, summary="it was slow")
    receipt = memory.writer.submit_intent(
        "p",
        decision(evidence=["profile of Tuesday", source, "urn:log:7"], timestamp="2026-11-01", expires_on="2030-01-01"),
    )

    report = provenance_of(memory, receipt.iri)

    assert (report["summary"], report["rationale"], report["status"]) == ("Use Oxigraph", "it embeds", "active")
    assert (report["asserted_by"], report["asserted_in"], report["commit"]) == ([AGENT], [SESSION], receipt.commit)
    assert report["committer"] == "https://jido.ai/agents/memory-writer"
    assert report["timestamp"].isoformat() == "2026-11-01T00:00:00+00:00"
    assert report["recorded_at"] > START
    assert report["expires_on"].year == 2030
    rests_on = {each["iri"]: each.get("text") or each.get("summary") for each in report["evidence"]}
    assert sorted(rests_on.values(), key=str) == [None, "it was slow", "profile of Tuesday"]
    assert rests_on["urn:log:7"] is None
    assert rests_on[source] == "it was slow"


def test_the_rules_of_a_memory_are_the_shapes_of_its_class(memory):
    item = memory.writer.submit_intent("p", decision()).iri
    guess = record(memory, type="assumption", summary="a guess", expires_on="2030-01-01")

    judged = provenance_of(memory, item)["judged_by"]
    rules = {rule["rule"].rsplit("#")[1]: rule["severity"] for rule in judged["rules"]}
    guessed = {rule["rule"].rsplit("#")[1] for rule in provenance_of(memory, guess)["judged_by"]["rules"]}

    assert (judged["judge"], judged["ontology"], judged["rules_of"]) == ("compiled", "0.1.0", memory.schema.version)
    assert {"DecisionHasRationale", "ItemHasAnAuthor", "ItemHasOneSummary"} <= rules.keys()
    assert set(rules.values()) == {"violation"}
    assert "DecisionHasRationale" not in guessed
    assert "AssumptionHasAReviewDate" in guessed
    assert all(rule["message"] for rule in judged["rules"])


def test_replacements_of_a_memory_are_reported_in_both_directions(memory):
    old = record(memory, summary="one")
    new = memory.writer.revise("p", old, changes={"summary": "two"}, reason="newer").iri
    newest = memory.writer.revise("p", new, changes={"summary": "three"}, reason="newest").iri
    back = memory.writer.undo("p", old, reason="it was right").iri

    first, last = provenance_of(memory, old), provenance_of(memory, back)
    then = provenance_of(memory, old, as_of=memory.reader.get_memory("p", newest)["recorded_at"])

    assert [(each["how"], each["iri"], each["reason"]) for each in first["replaced_by"]] == [
        ("superseded_by", new, "newer")
    ]
    assert (first["in_its_place"], then["in_its_place"], last["in_its_place"]) == (back, newest, None)
    assert [each["iri"] for each in first["revived_by"]] == [back]
    assert then["revived_by"] == []
    assert {(each["how"], each["iri"], each["status"]) for each in last["replaced"]} == {
        ("supersedes", newest, "superseded"),
        ("revives", old, "superseded"),
    }


def test_derived_memories_are_reported_up_to_a_limit(memory, monkeypatch):
    root = record(memory, summary="root")
    direct = record(memory, summary="direct", evidence=[root])
    further = record(memory, summary="further", evidence=[direct])
    monkeypatch.setattr(provenance, "MAX_DERIVED", 1)

    bounded = provenance_of(memory, root)
    monkeypatch.setattr(provenance, "MAX_DERIVED", 2)
    whole = provenance_of(memory, root)

    assert [each["iri"] for each in bounded["derived"]] == [direct]
    assert [each["iri"] for each in whole["derived"]] == [direct, further]
    assert (bounded["more_derived"], whole["more_derived"]) == (True, False)
    assert whole["derived"][0] == {
        "iri": direct,
        "kind": f"{JIDO}Fact",
        "summary": "direct",
        "status": "active",
    }


def test_an_unknown_memory_is_refused_with_the_nearest(memory):
    item = record(memory)

    assert provenance_of(memory, item[-8:])["iri"] == item
    with pytest.raises(NotFound, match="p has no memory") as refusal:
        provenance_of(memory, item[:-1] + "f")
    assert item in refusal.value.hint
