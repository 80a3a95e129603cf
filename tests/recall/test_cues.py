"""What a question asks for and what a text gives, told by English words."""

import pytest

from jidomem.recall.question import BEGINNING, contains_cue, is_of_itself, strip_names, wanted


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("When did the ship sail?", {"time"}),
        ("What year was it?", {"time"}),
        ("How many weeks is it away?", {"time", "number"}),
        ("How often does it rain?", {"number"}),
        ("What did you recommend for rust?", {"answerer"}),
        ("Why is the sea salt?", set()),
    ],
)
def test_what_a_question_asks_for_is_told_by_its_words(question, kinds):
    assert wanted(question) == kinds


def test_a_text_gives_what_stands_at_its_beginning():
    assert contains_cue("time", "It was on Sunday")
    assert contains_cue("number", "there were twelve, or 12")
    assert not contains_cue("time", "we went to Lisbon")
    assert is_of_itself("That is my boat")
    late = "x " * BEGINNING
    assert not any(contains_cue(kind, late + "I saw Lisbon on Sunday at 5") for kind in ("time", "number"))
    assert not is_of_itself(late + "I")


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
def test_a_question_is_compared_without_the_names_of_who_speaks(question, left):
    assert strip_names(question, ["ana lopez", "Bo", "user"]) == left
