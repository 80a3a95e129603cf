"""Patterns a stranger may bring: those that end soon on any text, and none of those that do not."""

import re

import pytest

from jidomem.patterns import is_bounded

BOUNDED = [
    r"\S",
    r"^[A-Z]+-[0-9]+$",
    r"^[a-z]+@[a-z]+\.com$",
    r"^-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T",
    r"^([0-9a-f]{40}|[0-9a-f]{64}) [^/]",
    r"^(\d+)-(\d+)$",
    r"a{2,5}b",
    r"^(?:ab)+$",
    r"^[^\s]+ .*$",
    r"colou?r",
    r"^(draft|final)$",
    r"^\{x\}$",
    r"^.*$",
    r"^.*[.]$",
    r"^\w+\b \w+$",
]
ENDLESS = [
    r"(a+)+b",
    "a*" * 30 + "b",
    "^a*a*a*b",
    "a?" * 30 + "a" * 30,
    r"^(a|a)*b",
    "^" + "(a|ab)" * 9 + "b",
    r"a+b",
    r"^(a*)\1b",
    r"^.*.*x",
    r"^[a-f]+[e-z]+1*$",
    r"^\d+\w+\d+x",
    r"^(a|b?)*c",
    r"^((ab)+)+c",
    r"^(a{0,50}){0,50}b",
    r"^[a-z]+[A-Z]+[a-z]+x",
    "^[\U0001f600-\U0001f602]+[\U0001f602-\U0001f604]+x*$",
    r"^a+|a+b",
]


@pytest.mark.parametrize("pattern", BOUNDED)
def test_a_pattern_that_is_left_one_way_may_stand(pattern):
    assert is_bounded(pattern)


@pytest.mark.parametrize(
    "pattern", [*ENDLESS, "(", "(?=a+)b", "(?i)^a$", "^(?P<x>a)$", r"^(a)\1$", "x" * 201, r"^(a)(?(1)b|c)"]
)
def test_a_pattern_with_many_ways_through_may_not(pattern):
    assert not is_bounded(pattern)


def test_what_may_stand_ends_on_long_texts_that_almost_match():
    # no time is asserted: a pattern that is not bounded would not end before the test is killed
    seen = 0
    for pattern in BOUNDED:
        for sign in ("a", "A", "0", " ", ".", "ab", "0-", "-"):
            for flags in (0, re.IGNORECASE, re.DOTALL):
                seen += re.search(pattern, sign * 100_000 + "\n!", flags) is not None

    assert seen
