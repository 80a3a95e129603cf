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
BY_A_CURATOR = {"asserted_by": "https://jido.ai/agents/ana"}


@pytest.fixture
def view():
    view = WriteSnapshot(lambda *pattern: [])
    view.add([(iri(item), TYPE, jido(kind)) for kind, item in KINDS.items()])
    return view


def fact(**fields):
    return MemoryUpdateIntent(**{"type": "fact", "summary": "it is so", **fields})


@pytest.mark.parametrize("field", ["supersedes", "revives"])
@pytest.mark.parametrize("kind", GUESSES)
def test_a_fact_made_of_a_guess_without_evidence_is_refused_with_what_the_guess_is(view, kind, field):
    (found,) = refusal(check_promotion, fact(**{field: ["0190", KINDS["Fact"], KINDS[kind]]}), view, False).violations
    article = {"Assumption": "an", "Hypothesis": "a"}[kind]
    assert found.message == (
        f"{KINDS[kind]} is {article} {kind.lower()}: it becomes a fact by evidence, or when a curator confirms it"
    )
    shape = "https://jido.ai/shapes#PromotedHypothesisHasEvidence" if kind == "Hypothesis" else None
    assert (found.code, found.field, found.shape) == ("shape_violation", "evidence", shape)


@pytest.mark.parametrize("kind", GUESSES)
def test_a_curator_makes_a_fact_of_a_guess_and_the_judgement_is_its_evidence(view, kind):
    given = fact(supersedes=[KINDS[kind]], **BY_A_CURATOR)
    assert check_promotion(given, view, True).evidence == ["judged by ana"]
    given = fact(supersedes=[KINDS[kind]], reason="seen it", **BY_A_CURATOR)
    assert check_promotion(given, view, True).evidence == ["judged by ana: seen it"]


@pytest.mark.parametrize(
    "fields",
    [
        {"supersedes": [KINDS["Hypothesis"]], "evidence": ["a log"]}, {"supersedes": [KINDS["Fact"]]}, {},
        {"supersedes": [KINDS["Hypothesis"]], "type": "risk"}, {"invalidates": [KINDS["Hypothesis"]]},
        {"supersedes": ["0190", MEMORY + "nobody"]},
    ],
)  # fmt: skip
def test_what_rests_on_evidence_or_is_made_of_no_guess_is_left_as_it_is(view, fields):
    for is_curator in (False, True):
        given = fact(**fields)
        assert check_promotion(given, view, is_curator) is given


def test_of_two_classes_a_guess_is_told_by_one_of_them(view):
    view.add([(iri(KINDS["Hypothesis"]), TYPE, jido("Assumption"))])
    (found,) = refusal(check_promotion, fact(supersedes=[KINDS["Hypothesis"]]), view, False).violations
    assert "is an assumption: " in found.message
