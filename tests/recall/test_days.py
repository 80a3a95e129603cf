"""The days that a text names, absolute and relative to its own date."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.recall.question import DateRange, requested_days, spoken_of

WEDNESDAY = date(2026, 11, 18)


def parsed_days(text, text_date=WEDNESDAY, years=()):
    return [
        f"{each.first} {each.last}" if len(each) > 1 else f"{each.first}" for each in spoken_of(text, text_date, years)
    ]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("on 2025-03-09 we met", ["2025-03-09"]),
        ("on 9 March 2025", ["2025-03-09"]),
        ("on the 9th of March, 2025", ["2025-03-09"]),
        ("on March 9th, 2025", ["2025-03-09"]),
        ("on 09.03.2025", ["2025-03-09"]),
        ("on 3/25/2025", ["2025-03-25"]),
        ("in March 2025", ["2025-03-01 2025-03-31"]),
        ("in Sept 2025", ["2025-09-01 2025-09-30"]),
        ("in the winter of 2025", ["2025-12-01 2026-02-28"]),
        ("in 2025", ["2025-01-01 2025-12-31"]),
        ("from May 3 to June 4, 2025", ["2026-05-03", "2025-06-04"]),
        ("yesterday", ["2026-11-17"]),
        ("today or tomorrow", ["2026-11-18", "2026-11-19"]),
        ("last week", ["2026-11-09 2026-11-15"]),
        ("next weekend", ["2026-11-28 2026-11-29"]),
        ("last Friday", ["2026-11-13"]),
        ("next Wednesday", ["2026-11-25"]),
        ("this Monday", ["2026-11-16"]),
        ("last month", ["2026-10-01 2026-10-31"]),
        ("next year", ["2027-01-01 2027-12-31"]),
        ("three days ago", ["2026-11-15"]),
        ("a couple of days ago", ["2026-11-15 2026-11-17"]),
        ("two weeks ago", ["2026-11-02 2026-11-08"]),
        ("6 months ago", ["2026-05-01 2026-05-31"]),
        ("in December", ["2026-12-01 2026-12-31"]),
        ("in January", ["2027-01-01 2027-01-31"]),
        ("we may march back before this", []),
        ("31 April 2025 is no day", ["2025-04-01 2025-04-30"]),
        ("99999 years ago", []),
        ("", []),
    ],
)
def test_the_days_named_in_a_text_are_parsed(text, days):
    assert parsed_days(text) == days


@pytest.mark.parametrize(
    ("question", "days", "subject"),
    [
        ("what did I say on 3 March?", ["2026-03-03", "2025-03-03"], ""),
        ("What did Ana tell you on March 3rd 2026?", ["2026-03-03"], "ana"),
        ("what did we talk about on Saturday?", ["2026-11-14"], ""),
        ("what was said on Wednesday?", ["2026-11-11"], ""),
        ("what did I say on the 3rd?", ["2026-11-03"], ""),
        ("what did I say on the 20th?", ["2026-10-20"], ""),
        ("what happened between 1 and 3 May 2026?", ["2026-05-01 2026-05-03"], ""),
        ("what happened from 30 April to 3 May?", ["2026-04-30 2026-05-03"], ""),
        ("what did I say 3-5 May?", ["2026-05-03 2026-05-05"], ""),
        ("what did I say since 10 November?", ["2026-11-10 2026-11-18"], ""),
        ("what did I say after yesterday?", ["2026-11-18"], ""),
        ("what did I say before 3 May 2026?", ["0001-01-01 2026-05-02"], ""),
        ("what did I say until Monday?", ["0001-01-01 2026-11-16"], ""),
        ("what did I say in the second week of May 2026?", ["2026-05-08 2026-05-14"], ""),
        ("what did I say in the last week of February 2024?", ["2024-02-23 2024-02-29"], ""),
        ("what happened after the outage on 3 May 2026?", ["2026-05-03"], "outage"),
        ("3 May 2026", [], ""),
        ("what did I say on the 99th?", [], "99th"),
        ("what did I say before?", [], ""),
        ("what should I do today?", ["2026-11-18"], "should"),
    ],
)
def test_the_days_for_which_a_question_asks_and_its_subject_are_parsed(question, days, subject):
    asked, words = requested_days(question, WEDNESDAY, (2025, 2026))

    assert [f"{each.first} {each.last}" if len(each) > 1 else f"{each.first}" for each in asked] == days
    assert words == {*subject.split()}


def test_relative_days_need_the_date_of_the_text():
    assert parsed_days("yesterday, two weeks ago and last month", text_date=None) == []
    assert parsed_days("in May", text_date=None) == []
    assert parsed_days("on 3 May", text_date=None, years=(2024, 2025)) == ["2024-05-03", "2025-05-03"]
    assert parsed_days("on 3 May", years=(2024,)) == ["2024-05-03"]


def test_a_range_of_days_computes_overlap_and_distance():
    week = DateRange(date(2025, 3, 3), date(2025, 3, 9))

    assert (len(week), week.shared(DateRange(date(2025, 3, 9), date(2025, 3, 20)))) == (7, 1)
    assert week.shared(DateRange(date(2025, 3, 10), date(2025, 3, 20))) == 0
    assert [week.days_from(date(2025, 3, day)) for day in (1, 3, 9, 12)] == [-2, 0, 0, 3]


@given(st.text(alphabet="0123456789 ./-agodysweklstMayJune", max_size=60), st.dates(), st.booleans())
def test_any_text_is_parsed_into_valid_ranges_of_days(text, text_date, is_known):
    for each in spoken_of(text, text_date if is_known else None, (text_date.year,)):
        assert each.first <= each.last


@given(st.dates(date(1950, 1, 1), date(2090, 12, 31)), st.integers(1, 300))
def test_a_day_is_parsed_equally_from_each_date_format(day, ago):
    forms = [f"{day.isoformat()}", f"{day.day} {day:%B} {day.year}", f"{day:%B} {day.day}, {day.year}",
             f"{day.day}.{day.month}.{day.year}"]  # fmt: skip

    assert {tuple(spoken_of(form)) for form in forms} == {(DateRange(day, day),)}
    back = day - timedelta(days=ago)
    assert spoken_of(f"{ago} days ago", day) == [DateRange(back, back)]


def test_a_text_of_thousands_of_dates_is_parsed_completely():
    text = "".join(f"{1900 + number % 100}-0{1 + number % 9}-1{number % 10}, " for number in range(5_000))

    assert len(spoken_of(text)) == 900  # a comparison of all pairs would take minutes


def test_may_at_the_beginning_of_a_question_is_a_month_only_without_a_subject():
    day = date(2026, 11, 18)
    assert [one.first for one in spoken_of("Did we move in May?", day)] == [date(2026, 5, 1)]
    assert [one.first for one in spoken_of("May was warm.", day)] == [date(2026, 5, 1)]
    assert spoken_of("May I move? So be it. May we go?", day) == []
