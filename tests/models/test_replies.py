"""The validation of answers of language models, with errors that do not repeat the answer."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.models import chat
from jidomem.models.chat import MalformedAnswer
from jidomem.records.interfaces import OutputLimits

FACT = {"subject": "object", "text": "likes tea", "confidence": 0.9, "page": 0, "private": False}
TRAIT = {"subject": "agent", "name": "tone", "value": "dry", "confidence": 0.9, "page": 0, "private": False}


@pytest.mark.parametrize("answer", [
    "", "no", "[1]", "null", '{"a": 1} trailing', '{"a": NaN}', '{"a": "\\ud800"}', '```\n{"a": 1}', '{"a": 1}' * 2,
    "{" * 300_000, 'text ```json\n{"a": 1}\n```',
])  # fmt: skip
def test_what_is_not_one_json_object_is_malformed(answer):
    with pytest.raises(MalformedAnswer):
        chat.parsed(answer)


@pytest.mark.parametrize("answer", ['{"a": 1}', ' \n{"a": 1} ', '```\n{"a": 1}\n```', '```json\n{"a": 1}\n```\n'])
def test_one_json_object_is_read_in_a_fence_or_without(answer):
    assert chat.parsed(answer) == {"a": 1}


@pytest.mark.parametrize(("read", "found", "fault"), [
    (chat.parse_chain, {}, "chain is not a text"),
    (chat.parse_chain, {"chain": " \u200b"}, "chain is not a text"),
    (chat.parse_chain, {"chain": 3}, "chain is not a text"),
    (chat.keywords, {"keywords": "a, b"}, "keywords is not a list"),
    (chat.keywords, {"keywords": ["a", 1]}, "a value that is not a text"),
    (chat.summary, {"topics": []}, "topics is empty"),
    (chat.summary, {"topics": ["x"]}, r"topics\[0\] is not an object"),
    (chat.summary, {"topics": [{"theme": "x"}]}, r"topics\[0\].summary is not a text"),
])  # fmt: skip
def test_an_answer_without_what_was_asked_for_is_malformed(read, found, fault):
    with pytest.raises(MalformedAnswer, match=fault):
        read(found, OutputLimits())


@pytest.mark.parametrize("truth", [None, 1, "true"])
def test_whether_a_talk_goes_on_is_true_or_false(truth):
    with pytest.raises(MalformedAnswer, match="continues is neither true nor false"):
        chat.parse_continues({"continues": truth})


@pytest.mark.parametrize(("wrong", "fault"), [
    ({"subject": "user"}, "subject"), ({"subject": ["object"]}, "subject"), ({"confidence": 1.5}, "confidence"),
    ({"confidence": "high"}, "confidence"), ({"confidence": None}, "confidence"), ({"confidence": True}, "confidence"),
    ({"page": 1}, "page"), ({"page": -1}, "page"), ({"page": "0"}, "page"), ({"page": True}, "page"),
    ({"private": "no"}, "private"), ({"text": ""}, "text"), ({"text": ["x"]}, "text"),
])  # fmt: skip
def test_a_fact_that_is_none_is_malformed_with_its_place(wrong, fault):
    with pytest.raises(MalformedAnswer, match=rf"facts\[1\].*{fault}"):
        chat.learned({"facts": [FACT, {**FACT, **wrong}], "traits": []}, OutputLimits(), 1)


@pytest.mark.parametrize("wrong", [{"name": ""}, {"value": None}, {"subject": "x"}, {"page": 2}])
def test_a_trait_that_is_none_is_malformed(wrong):
    with pytest.raises(MalformedAnswer, match=r"traits\[0\]"):
        chat.learned({"facts": [], "traits": [{**TRAIT, **wrong}]}, OutputLimits(), 1)


@pytest.mark.parametrize("found", [{}, {"facts": []}, {"facts": {}, "traits": []}, {"facts": [1], "traits": []}])
def test_facts_and_traits_are_two_lists_of_objects(found):
    with pytest.raises(MalformedAnswer):
        chat.learned(found, OutputLimits(), 1)


def test_no_more_is_believed_than_is_bounded_and_texts_are_cut():
    bounds = OutputLimits(facts=1, traits=1, statement=6)
    learned = chat.learned({"facts": [FACT] * 3, "traits": [TRAIT] * 3}, bounds, 1)

    assert [fact.text for fact in learned.facts] == ["likes…"]
    assert [trait.name for trait in learned.traits] == ["tone"]


def test_what_does_not_show_is_taken_out_of_texts():
    assert chat.parse_chain({"chain": "a\u0000b\u202e\n c"}, OutputLimits()) == "a b c"


@pytest.mark.parametrize("scores", [None, [], [0.5], [0.1, 0.2, 0.3], [0.1, 2], [0.1, True], [0.1, "0.2"]])
def test_scores_are_as_many_numbers_from_0_to_1_as_there_are_facts(scores):
    with pytest.raises(MalformedAnswer, match="scores"):
        chat.scores({"scores": scores}, 2)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["text", "name", "value", "subject", "confidence", "page", "private", "theme", "summary"]),
        inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150)
@given(JSON)
def test_whatever_is_answered_is_read_or_malformed(found):
    told = {"chain": found, "continues": found, "keywords": found, "topics": found, "scores": found, "facts": found,
            "traits": found}  # fmt: skip
    for read in (
        lambda: chat.parse_chain(told, OutputLimits()),
        lambda: chat.parse_continues(told),
        lambda: chat.keywords(told, OutputLimits()),
        lambda: chat.summary(told, OutputLimits()),
        lambda: chat.learned(told, OutputLimits(), 1),
        lambda: chat.scores(told, 1),
    ):
        with suppress(MalformedAnswer):
            assert read() is not None
