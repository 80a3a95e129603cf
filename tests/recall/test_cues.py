"""The kind of answer that a question expects and a text has, by English words."""

import pytest

from jidomem.recall.question import (
    BEGINNING,
    answer_kinds,
    contains_cue,
    is_instruction,
    is_of_itself,
    past_verbs,
    question_share,
    strip_names,
)


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When did the ship sail?", {"time"}),
        ("What year was it?", {"time"}),
        ("How many weeks is it away?", {"time", "number"}),
        ("How often does it rain?", {"number"}),
        ("What did you recommend for rust?", {"answerer"}),
        ("Why is the sea salt?", set()),
        ("How do I sail?", {"help", "choice"}),
        ("Can you show me how to sail?", {"help"}),
        ("Can you name the boats that I had?", set()),
        ("Could you sum up our conversations?", set()),
    ],
)
def test_the_expected_kind_of_answer_follows_from_the_words_of_a_question(question, kinds):
    assert answer_kinds(question) == kinds


def test_a_cue_counts_only_at_the_beginning_of_a_text():
    assert contains_cue("time", "It was on Sunday")
    assert contains_cue("number", "there were twelve, or 12")
    assert not contains_cue("time", "we went to Lisbon")
    assert is_of_itself("That is my boat")
    late = "x " * BEGINNING
    assert not any(contains_cue(kind, late + "I saw Lisbon on Sunday at 5") for kind in ("time", "number"))
    assert not is_of_itself(late + "I")


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 0), ("I sail.", 0), ("Do you sail?", 1), ("I sail. Do you?", 0.5), ("No! Do you sail? Why?", 18 / 21)],
)
def test_the_question_share_is_that_of_sentences_with_a_question_mark(text, share):
    assert question_share(text) == pytest.approx(share, abs=0.04)
    assert question_share("x " * BEGINNING + "Why?") == 0


def test_past_tense_verbs_are_counted_by_their_form():
    assert past_verbs("She Sailed home, and was glad; it rained.") == 3
    assert past_verbs("I need the red bed, indeed, and feed them.") == 0
    assert past_verbs("x " * BEGINNING + "went") == 0


def test_an_instruction_begins_with_an_instruction_word():
    assert all(map(is_instruction, ("Always give units.", " please never guess", "When I ask for maps, give scales")))
    assert not any(map(is_instruction, ("It always rains.", "When I was young", "Alwaysness", "")))


@pytest.mark.parametrize(
    ("question", "left"),
    [
        ("When did Ana move?", "When did move?"),
        ("What is Bo's boat called, Ana?", "What is boat called, ?"),
        ("ana wrote it", "ana wrote it"),
        ("Ana?", "Ana?"),
        ("Which User wrote it?", "Which User wrote it?"),
    ],
)
def test_speaker_names_are_removed_from_a_question(question, left):
    assert strip_names(question, ["ana lopez", "Bo", "user"]) == left
