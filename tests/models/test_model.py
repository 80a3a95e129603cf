"""The values that are exchanged with a language model."""

import math

import pytest

from jidomem.errors import InvalidRequest
from jidomem.records.interfaces import Fact, ModelPrompt, OutputLimits, Trait


@pytest.mark.parametrize("confidence", [-0.1, 1.1, math.nan, math.inf, True, "high", None])
def test_a_confidence_outside_0_to_1_is_refused(confidence):
    with pytest.raises(InvalidRequest, match=f"confidence={confidence!r} is not from 0 to 1"):
        Fact("works as a nurse", confidence=confidence)
    with pytest.raises(InvalidRequest, match="confidence"):
        Trait("likes", "tea", confidence=confidence)


@pytest.mark.parametrize("blank", ["", "  \n", None, 7])
def test_a_fact_or_trait_with_a_blank_text_is_refused(blank):
    with pytest.raises(InvalidRequest, match=r"text=.* is not a text"):
        Fact(blank)
    with pytest.raises(InvalidRequest, match=r"name=.* is not a text"):
        Trait(blank, "tea")
    with pytest.raises(InvalidRequest, match=r"value=.* is not a text"):
        Trait("likes", blank)


def test_a_fact_with_an_unknown_subject_is_refused():
    with pytest.raises(InvalidRequest, match="subject='bob' is nobody") as refusal:
        Fact("works as a nurse", subject="bob")

    assert refusal.value.hint == "use 'object' or 'agent'"


@pytest.mark.parametrize("bound", [0, -1, 1.5, True, None])
def test_a_limit_that_is_no_positive_whole_number_is_refused(bound):
    with pytest.raises(InvalidRequest, match=r"keywords=.* is not a whole number from 1"):
        OutputLimits(keywords=bound)


def test_a_prompt_text_begins_with_its_system_part():
    assert str(ModelPrompt("Answer.", "Which index?")) == "Answer.\n\nWhich index?"
