"""The memories to withdraw and to restate, so that exactly those active at a moment are active."""

import pytest

from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import XSD, jido
from jidomem.write.rollback import Difference, rollback_diff
from jidomem.write.snapshot import WriteSnapshot

OLD, NEW, THIRD, FOURTH = (iri(f"urn:x:{name}") for name in ("old", "new", "third", "fourth"))
OF_OLD, OF_NEW = (iri(f"urn:x:{name}/alternatives/1") for name in ("old", "new"))


@pytest.fixture
def view():
    view = WriteSnapshot(lambda *pattern: [])
    view.add([(item, jido("summary"), '"it"') for item in (OLD, NEW, THIRD, FOURTH, OF_OLD, OF_NEW)])
    view.add([(OLD, jido("hasAlternative"), OF_OLD), (NEW, jido("hasAlternative"), OF_NEW)])
    return view


def found(view, came, gone, intents=None):
    """The difference if *intents* has the content of a memory, else its own IRI."""
    return rollback_diff(iter(came), iter(gone), view, lambda item: (intents or {}).get(item, {"summary": item}))


def test_what_came_is_withdrawn_and_what_is_gone_is_said_again(view):
    assert found(view, [], []) == Difference()
    assert found(view, [NEW, THIRD], [OLD, FOURTH]) == Difference((NEW, THIRD), (OLD, FOURTH))


def test_what_holds_the_same_stands_for_what_is_gone_one_for_one(view):
    same = {key: {"summary": "it"} for key in (OLD, NEW, THIRD, FOURTH)}
    assert found(view, [NEW], [OLD], same) == Difference()
    assert found(view, [NEW, THIRD], [OLD], same) == Difference((THIRD,), ())
    assert found(view, [NEW], [OLD, FOURTH], same) == Difference((), (FOURTH,))


def test_who_said_it_and_when_and_in_whose_place_is_not_what_a_memory_holds(view):
    by = ("iri", "timestamp", "supersedes", "invalidates", "revives", "coexists_with", "reason", "asserted_by")
    for name in (*by, "asserted_in"):
        assert (
            found(view, [NEW], [OLD], {OLD: {"topic": "t", name: "a"}, NEW: {name: "b", "topic": "t"}}) == Difference()
        )
    for name in ("summary", "topic", "about", "confidence"):
        assert found(view, [NEW], [OLD], {OLD: {name: "a"}, NEW: {name: "b"}}) == Difference((NEW,), (OLD,))
    orders = {OLD: {"a": 1, "b": 2}, NEW: {"b": 2, "a": 1}}
    assert found(view, [NEW], [OLD], orders) == Difference()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"@value": "2026-11-22T00:00:00Z", "@type": XSD + "dateTime"},
         {"@value": "2026-11-22T01:00:00.000000+01:00", "@type": XSD + "dateTime"}),
        ({"@value": "1.50", "@type": XSD + "decimal"}, {"@value": "1.5", "@type": XSD + "decimal"}),
    ],
)  # fmt: skip
def test_two_spellings_of_one_value_hold_the_same_and_other_values_do_not(view, one, other):
    def intents(*objects):
        return {item: {"extra_triples": [["urn:x:p", each]]} for item, each in zip((OLD, NEW), objects, strict=True)}

    assert found(view, [NEW], [OLD], intents(one, other)) == Difference()
    as_text = {**other, "@type": XSD + "string"}
    later = {**one, "@value": one["@value"].replace("22T", "23T").replace("1.50", "1.51")}
    for another in (as_text, later, {"@id": "urn:x:it"}):
        assert found(view, [NEW], [OLD], intents(one, another)) == Difference((NEW,), (OLD,))


def test_what_has_no_summary_any_more_is_lost(view):
    bare = iri("urn:x:bare")
    assert found(view, [], [bare, OLD]) == Difference((), (OLD,), (bare,))


def test_an_alternative_goes_and_comes_with_its_decision(view):
    assert found(view, [], [OLD, OF_OLD]) == Difference((), (OLD,))
    assert found(view, [], [OF_OLD]) == Difference((), (OF_OLD,))
    assert found(view, [NEW, OF_NEW], []) == Difference((NEW, OF_NEW))
    same = {OLD: {"summary": "it"}, NEW: {"summary": "it"}}
    assert found(view, [NEW, OF_NEW], [OLD, OF_OLD], same) == Difference()


def test_only_what_a_decision_names_is_an_alternative_of_it(view):
    stray = iri("urn:x:old/alternatives/2")
    view.add([(stray, jido("summary"), '"it"')])
    assert found(view, [], [OLD, stray]) == Difference((), (OLD, stray))
    same = {key: {"summary": "it"} for key in (FOURTH, OF_NEW, stray)}
    assert found(view, [OF_NEW], [FOURTH], same) == Difference((OF_NEW,), (FOURTH,))
    assert found(view, [stray], [FOURTH], same) == Difference()
