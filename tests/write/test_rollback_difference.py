"""The memories that a rollback withdraws and restates to restore those active at a moment."""

import pytest

from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import XSD, jido
from jidomem.write.rollback import Difference, rollback_diff
from jidomem.write.snapshot import WriteSnapshot

OLD, NEW, THIRD, FOURTH = (iri(f"urn:x:{name}") for name in ("old", "new", "third", "fourth"))
OF_OLD, OF_NEW = (iri(f"urn:x:{name}/alternatives/1") for name in ("old", "new"))


@pytest.fixture
def snapshot():
    snapshot = WriteSnapshot(lambda *pattern: [])
    snapshot.add([(item, jido("summary"), '"it"') for item in (OLD, NEW, THIRD, FOURTH, OF_OLD, OF_NEW)])
    snapshot.add([(OLD, jido("hasAlternative"), OF_OLD), (NEW, jido("hasAlternative"), OF_NEW)])
    return snapshot


def difference(snapshot, added, ended, intents=None):
    """Return the difference, with the content of a memory from *intents* or else its own IRI."""
    return rollback_diff(iter(added), iter(ended), snapshot, lambda item: (intents or {}).get(item, {"summary": item}))


def test_a_new_memory_is_withdrawn_and_an_ended_one_restated(snapshot):
    assert difference(snapshot, [], []) == Difference()
    assert difference(snapshot, [NEW, THIRD], [OLD, FOURTH]) == Difference((NEW, THIRD), (OLD, FOURTH))


def test_an_equal_memory_replaces_an_ended_one(snapshot):
    equal = {key: {"summary": "it"} for key in (OLD, NEW, THIRD, FOURTH)}
    assert difference(snapshot, [NEW], [OLD], equal) == Difference()
    assert difference(snapshot, [NEW, THIRD], [OLD], equal) == Difference((THIRD,), ())
    assert difference(snapshot, [NEW], [OLD, FOURTH], equal) == Difference((), (FOURTH,))


def test_author_time_and_relations_are_not_compared(snapshot):
    excluded = ("iri", "timestamp", "supersedes", "invalidates", "revives", "coexists_with", "reason", "asserted_by")
    for name in (*excluded, "asserted_in"):
        assert (
            difference(snapshot, [NEW], [OLD], {OLD: {"topic": "t", name: "a"}, NEW: {name: "b", "topic": "t"}})
            == Difference()
        )
    for name in ("summary", "topic", "about", "confidence"):
        assert difference(snapshot, [NEW], [OLD], {OLD: {name: "a"}, NEW: {name: "b"}}) == Difference((NEW,), (OLD,))
    orders = {OLD: {"a": 1, "b": 2}, NEW: {"b": 2, "a": 1}}
    assert difference(snapshot, [NEW], [OLD], orders) == Difference()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"@value": "2026-11-22T00:00:00Z", "@type": XSD + "dateTime"},
         {"@value": "2026-11-22T01:00:00.000000+01:00", "@type": XSD + "dateTime"}),
        ({"@value": "1.50", "@type": XSD + "decimal"}, {"@value": "1.5", "@type": XSD + "decimal"}),
    ],
)  # fmt: skip
def test_two_spellings_of_one_value_are_equal_and_different_values_are_not(snapshot, first, second):
    def intents(*objects):
        return {item: {"extra_triples": [["urn:x:p", each]]} for item, each in zip((OLD, NEW), objects, strict=True)}

    assert difference(snapshot, [NEW], [OLD], intents(first, second)) == Difference()
    as_text = {**second, "@type": XSD + "string"}
    later = {**first, "@value": first["@value"].replace("22T", "23T").replace("1.50", "1.51")}
    for different in (as_text, later, {"@id": "urn:x:it"}):
        assert difference(snapshot, [NEW], [OLD], intents(first, different)) == Difference((NEW,), (OLD,))


def test_a_memory_without_a_summary_is_lost(snapshot):
    without_summary = iri("urn:x:bare")
    assert difference(snapshot, [], [without_summary, OLD]) == Difference((), (OLD,), (without_summary,))


def test_an_alternative_is_withdrawn_and_restated_with_its_decision(snapshot):
    assert difference(snapshot, [], [OLD, OF_OLD]) == Difference((), (OLD,))
    assert difference(snapshot, [], [OF_OLD]) == Difference((), (OF_OLD,))
    assert difference(snapshot, [NEW, OF_NEW], []) == Difference((NEW, OF_NEW))
    equal = {OLD: {"summary": "it"}, NEW: {"summary": "it"}}
    assert difference(snapshot, [NEW, OF_NEW], [OLD, OF_OLD], equal) == Difference()


def test_only_an_alternative_named_by_its_decision_follows_it(snapshot):
    unlinked = iri("urn:x:old/alternatives/2")
    snapshot.add([(unlinked, jido("summary"), '"it"')])
    assert difference(snapshot, [], [OLD, unlinked]) == Difference((), (OLD, unlinked))
    equal = {key: {"summary": "it"} for key in (FOURTH, OF_NEW, unlinked)}
    assert difference(snapshot, [OF_NEW], [FOURTH], equal) == Difference((OF_NEW,), (FOURTH,))
    assert difference(snapshot, [unlinked], [FOURTH], equal) == Difference()
