"""Promotion: the importance of items, the decision, and the triples of promoted items."""

import re
from datetime import UTC, datetime
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem import Promotion, create_memory
from jidomem.errors import InvalidRequest
from jidomem.rdf.terms import Term
from jidomem.rdf.vocab import CLASS_OF_TYPE, GUIDE_TYPES, WRITER_TYPES
from jidomem.working.tiers import BOOSTS, EXTENDED_RULES, RULES, TYPE_OF_CATEGORY, PromotionDecision, PromotionRule

NOW = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
TYPE, JIDO = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "https://jido.ai/ontology#"
EVERY_BOOST = {"verified_by_user": True, "referenced_multiple_times": True, "high_confidence": True}


def item(kind, content="text", **fields):
    return {"type": kind, "content": content, **fields}


def jido(name: str) -> Term:
    return f"<{JIDO}{name}>"


@pytest.mark.parametrize(
    ("kind", "importance", "category"),
    [
        ("decision", 1.0, "decisions"),
        ("error", 0.9, "errors"),
        ("task_completed", 0.8, "tasks"),
        ("discovery", 0.7, "discoveries"),
        ("preference", 0.6, "conventions"),
        ("fact", 0.0, "facts"),
        ("lesson_learned", 0.0, "facts"),
        ("anything", 0.0, "facts"),
    ],
)
def test_the_importance_and_category_of_a_type_are_those_of_its_rule(kind, importance, category):
    # E051 E054 E058
    promotion = Promotion.new()
    assert (promotion.importance(item(kind)), promotion.category(item(kind))) == (importance, category)
    assert promotion.should_promote(item(kind)) is (importance >= 0.5)


def test_the_default_rules_are_those_of_the_guide():
    # E051
    assert dict(RULES) == {
        "decision": (1.0, "decisions", None),
        "error": (0.9, "errors", None),
        "task_completed": (0.8, "tasks", None),
        "discovery": (0.7, "discoveries", None),
        "preference": (0.6, "conventions", None),
    }


def test_a_promotion_has_a_replaceable_threshold_and_rules():
    # E052
    guide, custom = (
        Promotion.new(),
        Promotion.new(threshold=0.9, rules={"fact": PromotionRule(0.9, "facts"), "risk": (0.8, "risks")}),
    )

    assert (guide.threshold, guide.rules, guide.additive) == (0.5, RULES, False)
    assert (custom.threshold, dict(custom.rules)) == (
        0.9,
        {"fact": PromotionRule(0.9, "facts"), "risk": PromotionRule(0.8, "risks")},
    )
    assert [custom.should_promote(item(kind)) for kind in ("fact", "risk", "decision")] == [True, False, False]
    assert (custom.kind(item("risk")), custom.category(item("risk"))) == ("risk", "risks")
    assert Promotion().rules is RULES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.01}, "threshold: 1.01 is not a number from 0 to 1"),
        ({"threshold": -0.01}, "threshold: -0.01 is not a number from 0 to 1"),
        ({"threshold": "0.5"}, "threshold: '0.5' is not a number"),
        ({"threshold": True}, "threshold: True is not a number"),
        ({"rules": {"fact": PromotionRule(2.0, "facts")}}, "fact: 2.0 is not a number from 0 to 1"),
        ({"rules": {"fact": PromotionRule(0.5, "fact")}}, "'fact' is not a category of a rule"),
        ({"rules": {"fact": PromotionRule(0.5, "facts", "fakt")}}, "'fakt' is not a type of a rule"),
    ],
)
def test_an_invalid_rule_is_refused(options, message):
    # E052
    with pytest.raises(InvalidRequest, match=re.escape(message)) as refusal:
        Promotion.new(**options)
    assert refusal.value.hint in ("give 0.5", "did you mean 'facts'?", "did you mean 'fact'?")


def test_an_unknown_category_is_refused_with_the_nearest_or_all_categories():
    with pytest.raises(InvalidRequest) as refusal:
        Promotion.new(rules={"fact": PromotionRule(0.5, "xyz")})
    assert refusal.value.hint == f"use one of: {', '.join(TYPE_OF_CATEGORY)}"
    with pytest.raises(InvalidRequest) as refusal:
        Promotion.new(rules={"fact": PromotionRule(0.5, "fcts")})
    assert refusal.value.hint == "did you mean 'facts'?"


@pytest.mark.parametrize("threshold", [0, 0.5, 1])
def test_an_item_at_the_threshold_is_promoted(threshold):
    # E053
    rules = {"at": PromotionRule(threshold, "facts"), "below": PromotionRule(max(threshold - 0.001, 0), "facts")}
    promotion = Promotion.new(threshold, rules=rules)

    assert promotion.should_promote(item("at")) is True
    assert promotion.should_promote(item("below")) is (threshold == 0)
    assert "reaches the threshold" in promotion.decide(item("at"), force=True).reason


@pytest.mark.parametrize(
    ("fields", "boost"),
    [
        ({}, 0.0),
        ({"verified_by_user": True}, 0.1),
        ({"referenced_multiple_times": True}, 0.1),
        ({"high_confidence": True}, 0.05),
        ({"referenced_multiple_times": True, "high_confidence": True}, 0.1),
        ({"verified_by_user": False, "high_confidence": True}, 0.05),
        ({"verified_by_user": None, "referenced_multiple_times": False}, 0.0),
        (EVERY_BOOST, 0.1),
    ],
)
def test_only_the_first_boost_of_an_item_is_added(fields, boost):
    # E055 E056
    for kind, base in (("preference", 0.6), ("discovery", 0.7), ("anything", 0.0)):
        assert Promotion.new().importance(item(kind, **fields)) == pytest.approx(base + boost, abs=1e-12)
    assert dict(BOOSTS) == {"verified_by_user": 0.1, "referenced_multiple_times": 0.1, "high_confidence": 0.05}


def test_an_additive_promotion_adds_all_boosts():
    # E055
    assert Promotion.new(additive=True).importance(item("preference", **EVERY_BOOST)) == 0.85
    assert Promotion.new(additive=True).importance(item("preference", high_confidence=True)) == 0.65


def test_importance_is_at_most_one():
    # E054
    for additive in (False, True):
        promotion = Promotion.new(additive=additive)
        assert [promotion.importance(item(kind, **EVERY_BOOST)) for kind in ("decision", "error")] == [1.0, 1.0]


def test_a_sum_of_importances_is_rounded():
    # E054
    verified = item("discovery", verified_by_user=True)  # 0.7 + 0.1 is 0.7999999999999999
    assert Promotion.new().importance(verified) == 0.8
    assert Promotion.new(0.8).should_promote(verified) is True


@pytest.mark.parametrize("flag", ["verified_by_user", "referenced_multiple_times", "high_confidence"])
@pytest.mark.parametrize("value", ["false", 0, 1, []])
def test_a_flag_that_is_no_boolean_is_refused(flag, value):
    # E056
    with pytest.raises(InvalidRequest, match=f"^{flag}=.* is not a boolean"):
        Promotion.new(additive=True).importance(item("decision", **{flag: value}))


@pytest.mark.parametrize(
    ("kind", "fields", "promoted"),
    [
        *((kind, {}, True) for kind in ("decision", "error", "task_completed", "discovery", "preference")),
        ("fact", {}, False),
        ("anything", EVERY_BOOST, False),
        ("fact", {"verified_by_user": True}, False),
    ],
)
def test_the_default_threshold_promotes_exactly_the_types_with_a_rule(kind, fields, promoted):
    # E061
    assert Promotion.new(0.5).should_promote(item(kind, **fields)) is promoted
    assert bool(Promotion.new(0.5).promote(item(kind, **fields))) is promoted


def test_a_preference_is_promoted_at_its_importance_and_not_above():
    # E061
    assert Promotion.new(0.6).should_promote(item("preference")) is True
    assert Promotion.new(0.61).should_promote(item("preference")) is False
    assert Promotion.new(0.61).should_promote(item("preference", high_confidence=True)) is True
    assert Promotion.new(0.1).importance(item("anything", **EVERY_BOOST)) == 0.1


@pytest.mark.parametrize(
    ("kind", "cls"),
    [
        ("decision", "Decision"),
        ("error", "Error"),
        ("task_completed", "Task"),
        ("discovery", "Discovery"),
        ("preference", "Convention"),
    ],
)
def test_a_promoted_item_has_triples_of_class_content_and_time(kind, cls):
    # E057 E059 E060
    promoted = Promotion.new().promote(
        item(kind, "Use Oxigraph", timestamp=NOW), new_id=lambda: "01900000-0000-7000-8000-000000000001"
    )

    subject = "<https://jido.ai/memory/01900000-0000-7000-8000-000000000001>"
    assert promoted == [
        (subject, TYPE, jido(cls)),
        (subject, jido("summary"), '"Use Oxigraph"'),
        (subject, jido("hasTimestamp"), '"2026-11-21T08:00:00.000000Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'),
    ]


def test_an_unimportant_item_has_no_triples():
    # E057
    assert Promotion.new().promote(item("fact")) == []
    assert Promotion.new(0.7).promote(item("preference")) == []


def test_each_promotion_has_a_new_iri_and_the_current_time():
    # E060
    before = datetime.now(UTC)
    first, second = (Promotion.new().promote(item("error")) for _ in range(2))

    form = re.compile(r"<https://jido\.ai/memory/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}>")
    assert form.fullmatch(first[0][0])
    assert form.fullmatch(second[0][0])
    assert first[0][0] != second[0][0]
    assert before <= datetime.fromisoformat(first[2][2].split('"')[1]) <= datetime.now(UTC)


def test_the_first_line_of_a_content_is_its_summary_and_all_lines_its_explanation():
    # E059
    promoted = Promotion.new().promote(item("error", " torn file \nat line 4\n", timestamp=NOW))
    assert [(row[1], row[2]) for row in (promoted[1], promoted[3])] == [
        (jido("summary"), '"torn file"'),
        (jido("detailedExplanation"), '"torn file \\nat line 4"'),
    ]


def test_a_content_that_is_no_text_is_promoted_as_json():
    # E059
    promoted = Promotion.new().promote(item("error", {"code": 7, "about": "büro"}))
    assert promoted[1][2] == '"{\\"about\\": \\"büro\\", \\"code\\": 7}"'


def test_a_typed_memory_is_promoted():
    # E057
    memory = create_memory("decision", "Use Oxigraph", {"timestamp": NOW})
    sure = create_memory("discovery", "tabs", {"confidence": 0.8})
    unsure = create_memory("discovery", "tabs", {"confidence": 0.79, "metadata": {"referenced_multiple_times": True}})
    verified = create_memory("discovery", "tabs", {"verified": True})

    assert [row[2] for row in Promotion.new().promote(memory)][1:2] == ['"Use Oxigraph"']
    assert Promotion.new().promote(memory)[2][2].startswith('"2026-11-21T08:00:00.000000Z"')
    assert [Promotion.new().importance(each) for each in (sure, unsure, verified)] == [0.75, 0.8, 0.8]


def test_the_decision_on_an_item_is_discarded_promoted_or_updated():
    # E062
    promotion = Promotion.new()

    discarded, new, known = (
        promotion.decide(item("fact")),
        promotion.decide(item("error")),
        promotion.decide(item("error", high_confidence=True), known="urn:e:1"),
    )

    assert discarded == PromotionDecision(
        "discarded",
        "importance 0 of 'fact' is below the threshold 0.5; no rule names that type: EXTENDED_RULES name more, "
        'and promote="force" needs none',
        0.0,
        "facts",
    )
    assert new == PromotionDecision("promoted", "importance 0.9 of 'error' reaches the threshold 0.5", 0.9, "errors")
    assert (known.outcome, known.iri, known.importance) == ("updated", "urn:e:1", 0.95)
    assert promotion.decide(item("fact"), known="urn:e:1").outcome == "discarded"


def test_the_reason_of_a_decision_names_importance_threshold_and_force():
    # E062
    high = Promotion.new(0.95)
    assert high.decide(item("error")).reason == "importance 0.9 of 'error' is below the threshold 0.95"
    assert high.decide(item("error"), force=True).reason == "importance 0.9 of 'error', forced"
    assert high.decide(item("error"), force=True).outcome == "promoted"
    assert high.decide(item("decision"), force=True).reason == "importance 1 of 'decision' reaches the threshold 0.95"


def test_the_extended_rules_contain_the_default_rules_and_every_type():
    # E051
    promotion = Promotion.new(rules=EXTENDED_RULES)

    assert {kind: EXTENDED_RULES[kind] for kind in RULES} == dict(RULES)
    for kind in (*GUIDE_TYPES, *WRITER_TYPES):
        assert promotion.should_promote(item(kind)), kind
        assert promotion.kind(item(kind)) == ("lesson_learned" if kind == "lesson" else kind)
    assert set(TYPE_OF_CATEGORY.values()) <= set(CLASS_OF_TYPE)
    assert set(TYPE_OF_CATEGORY) == {rule.category for rule in EXTENDED_RULES.values()}


def test_rules_are_immutable():
    for rules in (RULES, EXTENDED_RULES, BOOSTS, Promotion.new(rules={"a": PromotionRule(1, "facts")}).rules):
        assert isinstance(rules, MappingProxyType)


@pytest.mark.parametrize("item_", ["text", None, 5, ["decision"]])
def test_an_item_that_is_no_mapping_is_refused(item_):
    with pytest.raises(InvalidRequest, match="an item is a mapping, not"):
        Promotion.new().should_promote(item_)


@pytest.mark.parametrize("kind", [None, 5, ["fact"]])
def test_a_type_that_is_no_text_is_refused(kind):
    with pytest.raises(InvalidRequest, match="is not a type of item"):
        Promotion.new().decide(item(kind))


@given(
    st.sampled_from([*EXTENDED_RULES, "other"]),
    st.fixed_dictionaries({}, optional=dict.fromkeys(BOOSTS, st.booleans())),
)
def test_a_boost_never_decreases_the_importance(kind, flags):
    # E054 E055
    first, every = Promotion.new(rules=EXTENDED_RULES), Promotion.new(rules=EXTENDED_RULES, additive=True)
    plain = item(kind)
    boosted = {**plain, **flags}
    assert 0 <= first.importance(plain) <= first.importance(boosted) <= every.importance(boosted) <= 1
    assert first.importance(boosted) - first.importance(plain) <= 0.1 + 1e-9
