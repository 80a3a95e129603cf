"""An assumption or a hypothesis becomes a fact by evidence, or by the judgement of a curator."""

import pytest
from writing import MEMORY, refusal

from jidomem import MemoryUpdateIntent
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import TYPE, jido
from jidomem.write.permissions import check_promotion
from jidomem.write.snapshot import WriteSnapshot

KINDS = {kind: MEMORY + kind.lower() for kind in ("Assumption", "Hypothesis", "Fact")}
GUESSES = [*KINDS][:2]
CURATOR = "https://jido.ai/agents/ana"


@pytest.fixture
def view():
    view = WriteSnapshot(lambda *pattern: [])
    view.add([(iri(item), TYPE, jido(kind)) for kind, item in KINDS.items()])
    return view


def fact(**fields):
    return MemoryUpdateIntent(**{"type": "fact", "summary": "it is so", **fields})


@pytest.mark.parametrize("field", ["supersedes", "revives"])
@pytest.mark.parametrize("kind", GUESSES)
def test_a_fact_that_replaces_a_guess_without_evidence_is_refused(view, kind, field):
    (violation,) = refusal(
        check_promotion, fact(**{field: ["0190", KINDS["Fact"], KINDS[kind]]}), view, None
    ).violations
    article = {"Assumption": "an", "Hypothesis": "a"}[kind]
    assert violation.message == (
        f"{KINDS[kind]} is {article} {kind.lower()}: it becomes a fact by evidence, or when a curator confirms it"
    )
    shape = "https://jido.ai/shapes#PromotedHypothesisHasEvidence" if kind == "Hypothesis" else None
    assert (violation.code, violation.field, violation.shape) == ("shape_violation", "evidence", shape)


@pytest.mark.parametrize("kind", GUESSES)
def test_a_guess_that_a_curator_promotes_gets_the_judgement_as_evidence(view, kind):
    fact_intent = fact(supersedes=[KINDS[kind]], asserted_by=CURATOR)
    assert check_promotion(fact_intent, view, CURATOR).evidence == ["judged by ana"]
    fact_intent = fact(supersedes=[KINDS[kind]], reason="seen it", asserted_by=CURATOR)
    assert check_promotion(fact_intent, view, CURATOR).evidence == ["judged by ana: seen it"]


@pytest.mark.parametrize(
    "fields",
    [
        {"supersedes": [KINDS["Hypothesis"]], "evidence": ["a log"]}, {"supersedes": [KINDS["Fact"]]}, {},
        {"supersedes": [KINDS["Hypothesis"]], "type": "risk"}, {"invalidates": [KINDS["Hypothesis"]]},
        {"supersedes": ["0190", MEMORY + "nobody"]},
    ],
)  # fmt: skip
def test_intents_with_evidence_or_without_a_guess_are_unchanged(view, fields):
    for curator in (None, CURATOR):
        fact_intent = fact(**fields)
        assert check_promotion(fact_intent, view, curator) is fact_intent


def test_a_guess_of_two_classes_is_named_by_one_of_them(view):
    view.add([(iri(KINDS["Hypothesis"]), TYPE, jido("Assumption"))])
    (violation,) = refusal(check_promotion, fact(supersedes=[KINDS["Hypothesis"]]), view, None).violations
    assert "is an assumption: " in violation.message
