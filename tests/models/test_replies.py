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
def test_a_text_that_is_not_one_json_object_is_malformed(answer):
    with pytest.raises(MalformedAnswer):
        chat.parsed(answer)


@pytest.mark.parametrize("answer", ['{"a": 1}', ' \n{"a": 1} ', '```\n{"a": 1}\n```', '```json\n{"a": 1}\n```\n'])
def test_a_json_object_is_parsed_with_or_without_a_fence(answer):
    assert chat.parsed(answer) == {"a": 1}


@pytest.mark.parametrize(("read", "answer", "fault"), [
    (chat.parse_chain, {}, "chain is not a text"),
    (chat.parse_chain, {"chain": " \u200b"}, "chain is not a text"),
    (chat.parse_chain, {"chain": 3}, "chain is not a text"),
    (chat.keywords, {"keywords": "a, b"}, "keywords is not a list"),
    (chat.keywords, {"keywords": ["a", 1]}, "a value that is not a text"),
    (chat.summary, {"topics": []}, "topics is empty"),
    (chat.summary, {"topics": ["x"]}, r"topics\[0\] is not an object"),
    (chat.summary, {"topics": [{"theme": "x"}]}, r"topics\[0\].summary is not a text"),
])  # fmt: skip
def test_an_answer_without_its_requested_field_is_malformed(read, answer, fault):
    with pytest.raises(MalformedAnswer, match=fault):
        read(answer, OutputLimits())


@pytest.mark.parametrize("truth", [None, 1, "true"])
def test_a_continuation_that_is_no_boolean_is_malformed(truth):
    with pytest.raises(MalformedAnswer, match="continues is neither true nor false"):
        chat.parse_continues({"continues": truth})


@pytest.mark.parametrize(("invalid", "fault"), [
    ({"subject": "user"}, "subject"), ({"subject": ["object"]}, "subject"), ({"confidence": 1.5}, "confidence"),
    ({"confidence": "high"}, "confidence"), ({"confidence": None}, "confidence"), ({"confidence": True}, "confidence"),
    ({"page": 1}, "page"), ({"page": -1}, "page"), ({"page": "0"}, "page"), ({"page": True}, "page"),
    ({"private": "no"}, "private"), ({"text": ""}, "text"), ({"text": ["x"]}, "text"),
])  # fmt: skip
def test_an_invalid_fact_is_malformed_with_its_place(invalid, fault):
    with pytest.raises(MalformedAnswer, match=rf"facts\[1\].*{fault}"):
        chat.learned({"facts": [FACT, {**FACT, **invalid}], "traits": []}, OutputLimits(), 1)


@pytest.mark.parametrize("invalid", [{"name": ""}, {"value": None}, {"subject": "x"}, {"page": 2}])
def test_an_invalid_trait_is_malformed(invalid):
    with pytest.raises(MalformedAnswer, match=r"traits\[0\]"):
        chat.learned({"facts": [], "traits": [{**TRAIT, **invalid}]}, OutputLimits(), 1)


@pytest.mark.parametrize("answer", [{}, {"facts": []}, {"facts": {}, "traits": []}, {"facts": [1], "traits": []}])
def test_facts_and_traits_that_are_no_lists_of_objects_are_malformed(answer):
    with pytest.raises(MalformedAnswer):
        chat.learned(answer, OutputLimits(), 1)


def test_learned_facts_and_traits_are_limited_in_number_and_length():
    bounds = OutputLimits(facts=1, traits=1, statement=6)
    learned = chat.learned({"facts": [FACT] * 3, "traits": [TRAIT] * 3}, bounds, 1)

    assert [fact.text for fact in learned.facts] == ["likes…"]
    assert [trait.name for trait in learned.traits] == ["tone"]


def test_control_characters_are_removed_from_texts():
    assert chat.parse_chain({"chain": "a\u0000b\u202e\n c"}, OutputLimits()) == "a b c"


@pytest.mark.parametrize("scores", [None, [], [0.5], [0.1, 0.2, 0.3], [0.1, 2], [0.1, True], [0.1, "0.2"]])
def test_scores_that_are_not_one_number_from_0_to_1_for_each_fact_are_malformed(scores):
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
def test_any_json_answer_is_parsed_or_malformed(value):
    answers = {"chain": value, "continues": value, "keywords": value, "topics": value, "scores": value, "facts": value,
            "traits": value}  # fmt: skip
    for read in (
        lambda: chat.parse_chain(answers, OutputLimits()),
        lambda: chat.parse_continues(answers),
        lambda: chat.keywords(answers, OutputLimits()),
        lambda: chat.summary(answers, OutputLimits()),
        lambda: chat.learned(answers, OutputLimits(), 1),
        lambda: chat.scores(answers, 1),
    ):
        with suppress(MalformedAnswer):
            assert read() is not None
