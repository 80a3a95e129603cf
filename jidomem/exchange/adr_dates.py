"""The dates that decision records write, in the forms people write them in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from jidomem.moments import parse_moment

ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
DAY_FIRST, MONTH_FIRST = "day first", "month first"
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR_FIRST = re.compile(
    rf"(?<!\d)(?P<y>\d{{4}})[-/. ]+(?P<m>\d{{1,2}}|{_MONTH})\b[-/. ]+(?P<d>\d{{1,2}})(?!\d)", re.IGNORECASE
)
_DAY_FIRST = re.compile(
    rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[-/. ]+(?P<m>{_MONTH})\b[-/., ]+(?P<y>\d{{4}})(?!\d)",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"\b(?P<m>{_MONTH})\b\.?[-/ ]+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[-/, ]+(?P<y>\d{{4}})(?!\d)", re.IGNORECASE
)
_DOTTED = re.compile(r"(?<![\d.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?!\d)")
_NUMBERS = re.compile(r"(?<!\d)(\d{1,2})([-/])(\d{1,2})\2(\d{4})(?!\d)")
_IN_NAME = re.compile(r"((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


def dates_in(text: str, others: Iterable[str] = ()) -> Iterator[str]:
    """Yield the dates in *text* as moments in UTC, those in ISO 8601 first.

    05/06/2022 is a date only where another, such as 25/04/2022 in *text* or *others*, shows that the day comes first.

    >>> [*dates_in("25/04/2022: draft, 05/06/2022: accepted")], [*dates_in("05/06/2022")]
    (['2022-04-25T00:00:00Z', '2022-06-05T00:00:00Z'], [])
    """
    for found in ISO_DATE.finditer(text):
        if when := _moment(parse_moment(found[0])):
            yield when
    text = ISO_DATE.sub(" ", text)
    for pattern in (_YEAR_FIRST, _DAY_FIRST, _MONTH_FIRST, _DOTTED):
        for found in pattern.finditer(text):
            month = _MONTHS.get(found["m"].lower()) or (int(found["m"]) if found["m"].isdigit() else 0)
            if when := _date(int(found["y"]), month, int(found["d"])):
                yield when
    orders = _orders((text, *others))
    for found in _NUMBERS.finditer(text):
        first, second, year = int(found[1]), int(found[3]), int(found[4])
        if len(orders) == 1 or first == second:
            month, day = (second, first) if DAY_FIRST in orders else (first, second)
            if when := _date(year, month, day):
                yield when


def ambiguous_in(text: str, others: Iterable[str] = ()) -> list[tuple[str, str, str]]:
    """Return the dates of *text* of which neither it nor *others* shows the order: as written, and both readings.

    >>> ambiguous_in("05/01/2022"), ambiguous_in("05/01/2022", ["25/04/2022"])
    ([('05/01/2022', '2022-01-05', '2022-05-01')], [])
    """
    if len(_orders((text, *others))) == 1:
        return []
    found = []
    for each in _NUMBERS.finditer(text):
        first, second, year = int(each[1]), int(each[3]), int(each[4])
        day_first, month_first = _date(year, second, first), _date(year, first, second)
        if day_first and month_first and first != second:
            found.append((each[0], day_first[:10], month_first[:10]))
    return found


def ordered_dates(text: str) -> list[str]:
    """Return the dates of *text* in numbers that show whether the day or the month comes first."""
    return [found[0] for found in _NUMBERS.finditer(text) if (int(found[1]) > 12) != (int(found[3]) > 12)]


def _orders(texts: Iterable[str]) -> set[str]:
    """Return which orders of day and month the dates of *texts* show."""
    pairs = [(int(found[1]), int(found[3])) for each in texts for found in _NUMBERS.finditer(each)]
    found = {DAY_FIRST} if any(first > 12 for first, _ in pairs) else set()
    return found | ({MONTH_FIRST} if any(second > 12 for _, second in pairs) else set())


def date_of_name(name: str) -> str | None:
    """Return the date that a file name begins with, as a moment in UTC; None where it begins with none.

    >>> date_of_name("20200924-use-a-queue"), date_of_name("0007-use-a-queue")
    ('2020-09-24T00:00:00Z', None)
    """
    found = _IN_NAME.match(name)
    return _date(int(found[1]), int(found[3]), int(found[4])) if found else None


def _date(year: int, month: int, day: int) -> str | None:
    try:
        return _moment(datetime(year, month, day, tzinfo=UTC))
    except ValueError:
        return None


def _moment(found: datetime | None) -> str | None:
    return found.strftime("%Y-%m-%dT%H:%M:%SZ") if found and found.year >= 1000 else None
