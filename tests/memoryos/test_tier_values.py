"""The values of the four tiers: their validation, and their round trip through JSON."""

import json
from dataclasses import FrozenInstanceError, fields, replace

import pytest
from conftest import START
from hypothesis import given
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest
from jidomem.extras.memoryos.values import (
    AgentPersona,
    DialoguePage,
    DialogueSegment,
    KnowledgeEntry,
    ObjectPersona,
    SystemEntry,
    SystemMemory,
    Tiers,
    TraitEntry,
)

PAGE = DialoguePage("p1", "planner", "Which index?", "Oxigraph.", START)
IN_SEGMENT = replace(PAGE, segment_id="s1")
SEGMENT = DialogueSegment("s1", "planner", "the index", START, START, pages=(IN_SEGMENT,))
FACT = KnowledgeEntry("k1", "Ana uses Oxigraph", START, evidence=["p1"])
TRAIT = TraitEntry("t1", "tone", "terse", START)

text = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)
name = text.filter(str.strip)
moment = st.datetimes().map(lambda when: when.replace(tzinfo=START.tzinfo))
share = st.floats(0, 1)
vector = st.none() | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=4).map(tuple)
names = st.lists(name, max_size=3).map(tuple)
profile = st.dictionaries(text, st.none() | text | st.integers() | st.lists(st.booleans()), max_size=3)
talk = st.one_of(st.just({}), st.fixed_dictionaries({"object_type": name, "object_identifier": name}))
page = st.builds(
    lambda whom, **given: DialoguePage(**given, **whom), talk, id=name, agent_id=name, query=text, response=text,
    timestamp=moment, meta_chain=st.none() | text, continues=st.none() | name, segment_id=st.none() | name,
    embedding=vector, keywords=st.frozensets(name, max_size=3), analysed=st.booleans(),
)  # fmt: skip
segment = st.builds(
    lambda own, agent_id, pages, **given: DialogueSegment(
        own, agent_id, pages=tuple(replace(each, agent_id=agent_id, segment_id=own) for each in pages), **given
    ),
    name, name, st.lists(page, max_size=3), topic_summary=text, created_at=moment, last_accessed=moment,
    embedding=vector, keywords=st.frozensets(name, max_size=3),
    heat_score=st.floats(allow_nan=False, allow_infinity=False), visit_count=st.integers(8, 2**70),
    visits_taught=st.integers(0, 8),
)  # fmt: skip
fact = st.builds(KnowledgeEntry, name, name, moment, share, st.booleans(), names, vector, st.none() | share)
trait = st.builds(TraitEntry, name, name, name, moment, share, st.booleans(), names, vector)
facts, traits = st.lists(fact, max_size=2).map(tuple), st.lists(trait, max_size=2).map(tuple)
value = st.one_of(
    page, segment, fact, trait,
    st.builds(ObjectPersona, name, name, name, profile, facts, traits),
    st.builds(AgentPersona, name, profile, traits),
    st.builds(SystemEntry, name, name, name, share, moment, vector, names),
)  # fmt: skip


@given(value)
def test_a_value_of_any_tier_survives_json(stored):
    assert type(stored).from_dict(json.loads(json.dumps(stored.to_dict()))) == stored


# D001 D002
def test_each_tier_refuses_values_of_another_kind():
    persona, entry = ObjectPersona("planner", "user", "ana"), SystemEntry("y1", "it embeds", "planner", 0.9, START)
    page = replace(PAGE, id="p0")
    tiers = Tiers("planner", stm=[page], mtm=[SEGMENT], personas=[persona])

    assert (tiers.stm, tiers.mtm, tiers.personas, tiers.agent) == (
        (page,), (SEGMENT,), (persona,), AgentPersona("planner"))  # fmt: skip
    assert SystemMemory(entries=[entry]).entries == (entry,)
    for tier, invalid, kind in (
        ("stm", SEGMENT, "DialoguePage"), ("leaving", entry, "DialoguePage"),
        ("mtm", PAGE, "DialogueSegment"), ("personas", tiers.agent, "ObjectPersona"),
    ):  # fmt: skip
        with pytest.raises(InvalidRequest, match=f"a stored {kind} is a mapping, not"):
            Tiers("planner", **{tier: [invalid]})
    with pytest.raises(InvalidRequest, match="a stored SystemEntry is a mapping, not"):
        SystemMemory(entries=[PAGE])


# D005 D014
def test_page_and_segment_have_the_published_fields():
    def of(kind):
        return {each.name for each in fields(kind)}

    assert of(DialoguePage) >= {"query", "response", "timestamp", "meta_chain", "agent_id"}
    assert of(DialogueSegment) >= {"topic_summary", "embedding", "keywords", "heat_score", "visit_count",
                                   "last_accessed", "agent_id"}  # fmt: skip


# D021 D028 D032
def test_personas_and_system_entries_have_the_published_fields():
    def of(kind):
        return {each.name for each in fields(kind)}

    assert of(ObjectPersona) >= {"type", "identifier", "profile", "agent_id", "knowledge", "traits"}
    assert of(AgentPersona) >= {"profile", "agent_id", "traits"}
    assert of(SystemEntry) >= {"content", "embedding", "source_agent_id", "importance_score", "creation_timestamp"}


# D006 D008
def test_a_new_page_has_no_segment_and_no_chain():
    assert (PAGE.segment_id, PAGE.meta_chain, PAGE.id) == (None, None, "p1")


# D015 D016
def test_a_new_segment_has_no_keywords_visits_or_heat():
    bare = DialogueSegment("s1", "planner", "the index", START, START)

    assert (bare.pages, bare.keywords, bare.visit_count, bare.heat_score) == ((), frozenset(), 0, 0.0)
    assert replace(bare, keywords=["index", "index"]).keywords == {"index"}
    assert (SEGMENT.pages, SEGMENT.page_count) == ((IN_SEGMENT,), 1)


def test_a_segment_is_analysed_once_all_its_pages_are():
    half = replace(SEGMENT, pages=(replace(IN_SEGMENT, analysed=True), replace(IN_SEGMENT, id="p2")))

    assert (half.interactions, half.analysed) == (1, False)
    assert replace(half, pages=half.pages[:1]).analysed
    assert not replace(half, pages=()).analysed


def test_the_visits_of_a_segment_are_counted_since_it_was_learned():
    assert replace(SEGMENT, visit_count=5, visits_taught=3).visits == 2
    with pytest.raises(InvalidRequest, match="segment s1 was retrieved 2 times, and visits_taught is 3"):
        replace(SEGMENT, visit_count=2, visits_taught=3)


# D003
def test_a_blank_agent_id_is_refused_for_every_kind():
    for value, blank in ((PAGE, ""), (SEGMENT, " "), (ObjectPersona("a", "user", "ana"), None), (AgentPersona("a"), 7)):
        with pytest.raises(InvalidRequest, match=r"^agent_id of a \w+ is a text that is not blank"):
            replace(value, agent_id=blank, **({"pages": ()} if value is SEGMENT else {}))


# D003
def test_a_page_of_another_agent_or_segment_is_refused_in_a_segment():
    for other in (replace(IN_SEGMENT, agent_id="coder"), replace(IN_SEGMENT, segment_id="s2"), PAGE):
        with pytest.raises(InvalidRequest, match=f"page p1 of {other.agent_id} is in segment"):
            replace(SEGMENT, pages=(other,))


# D022
def test_a_persona_has_facts_with_evidence_and_traits_with_name_and_value():
    persona = ObjectPersona("planner", "user", "ana", {"language": "pt"}, [FACT], [TRAIT])

    assert (persona.knowledge[0].evidence, persona.traits[0].text) == (("p1",), "tone: terse")
    assert persona.key == ("user", "ana")


# D027 D035
def test_confidence_and_importance_outside_0_to_1_are_refused_and_confidence_defaults_to_1():
    assert (FACT.confidence, TRAIT.confidence) == (1.0, 1.0)
    for invalid in (-0.1, 1.1, float("nan"), True, "1"):
        for change in ((FACT, "confidence"), (FACT, "importance"), (TRAIT, "confidence")):
            with pytest.raises(InvalidRequest, match=f"{change[1]} of a .* is a number from 0 to 1"):
                replace(change[0], **{change[1]: invalid})
        with pytest.raises(InvalidRequest, match="importance_score of a SystemEntry is a number from 0 to 1"):
            SystemEntry("y1", "Oxigraph embeds", "planner", invalid, START)


# D004 D024
def test_a_persona_of_any_type_has_any_profile_mapping():
    service = ObjectPersona("planner", "service", "billing", {"owner": {"team": "core"}, "ports": [80, 443]})

    assert service.profile == {"owner": {"team": "core"}, "ports": [80, 443]}


@pytest.mark.parametrize(
    ("field", "invalid", "message"),
    [
        ("id", "", "id of a DialoguePage is a text that is not blank"),
        ("query", None, "query of a DialoguePage is a text"),
        ("response", "\udc80", "response of a DialoguePage is a text"),
        ("timestamp", "yesterday", "timestamp of a DialoguePage is a moment"),
        ("meta_chain", 3, "meta_chain of a DialoguePage is a text"),
        ("embedding", [], "embedding of a DialoguePage is a list of numbers"),
        ("embedding", [True], "embedding of a DialoguePage is a list of numbers"),
        ("embedding", [float("nan")], "embedding of a DialoguePage has a value that is not a finite number"),
        ("embedding", ["one"], "embedding of a DialoguePage has a value that is not a finite number"),
        ("embedding", "0.1", "embedding of a DialoguePage is a list"),
        ("keywords", "index", "keywords of a DialoguePage is a list"),
        ("keywords", [" "], "keywords of a DialoguePage is a text that is not blank"),
        ("analysed", 1, "analysed of a DialoguePage is True or False"),
        ("object_type", "user", "page p1 names its other party incompletely"),
    ],
)
def test_an_invalid_field_of_a_page_is_refused_with_its_name(field, invalid, message):
    with pytest.raises(InvalidRequest, match=message) as refusal:
        replace(PAGE, **{field: invalid})

    assert refusal.value.hint


def test_a_value_is_immutable_and_independent_of_its_arguments():
    profile, numbers = {"goals": ["ship"]}, [1, 2]
    persona = AgentPersona("planner", profile)
    page = replace(PAGE, embedding=numbers)

    profile["goals"].append("rest")
    numbers.append(3)

    assert (persona.profile, page.embedding) == ({"goals": ["ship"]}, (1.0, 2.0))
    with pytest.raises(TypeError, match="cannot be changed in place"):
        persona.profile["goals"].append("rest")
    with pytest.raises(FrozenInstanceError):
        page.query = "another"


def test_a_stored_value_with_an_unknown_or_missing_field_is_refused():
    stored = PAGE.to_dict()

    with pytest.raises(InvalidRequest, match="a DialoguePage has no 'heat'"):
        DialoguePage.from_dict({**stored, "heat": 1})
    del stored["query"], stored["meta_chain"]
    with pytest.raises(InvalidRequest, match=r"(?m)the stored DialoguePage lacks query$"):
        DialoguePage.from_dict(stored)
    with pytest.raises(InvalidRequest, match="a stored DialoguePage is a mapping"):
        DialoguePage.from_dict([])
