"""The values that are exchanged with a language model."""

import math

import pytest

from jidomem.errors import InvalidRequest
from jidomem.records.interfaces import Fact, ModelPrompt, OutputLimits, Trait


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf, True, "high", None])
def test_a_fact_and_a_trait_are_believed_from_0_to_1(confidence):
    with pytest.raises(InvalidRequest, match=f"confidence={confidence!r} is not from 0 to 1"):
        Fact("works as a nurse", confidence=confidence)
    with pytest.raises(InvalidRequest, match="confidence"):
        Trait("likes", "tea", confidence=confidence)


@pytest.mark.parametrize("empty", ["", "  \n", None, 7])
def test_a_fact_and_a_trait_say_something(empty):
    with pytest.raises(InvalidRequest, match=r"text=.* is not a text"):
        Fact(empty)
    with pytest.raises(InvalidRequest, match=r"name=.* is not a text"):
        Trait(empty, "tea")
    with pytest.raises(InvalidRequest, match=r"value=.* is not a text"):
        Trait("likes", empty)


def test_a_fact_is_about_the_one_who_asks_or_the_agent():
    with pytest.raises(InvalidRequest, match="subject='bob' is nobody") as refusal:
        Fact("works as a nurse", subject="bob")

    assert refusal.value.hint == "use 'object' or 'agent'"


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_a_bound_is_a_whole_number_from_1(bound):
    with pytest.raises(InvalidRequest, match=r"keywords=.* is not a whole number from 1"):
        OutputLimits(keywords=bound)


def test_a_prompt_is_one_text_with_the_words_of_the_program_first():
    assert str(ModelPrompt("Answer.", "Which index?")) == "Answer.\n\nWhich index?"
