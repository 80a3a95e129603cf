"""Which regular expressions of a stranger are sure to end soon, whatever text they meet.

The engine goes back where several ways lead on, and cannot be stopped meanwhile. So a pattern has to begin in one
place, and to be left one way: what repeats without end is followed by what it cannot take itself, or stands alone.

>>> is_bounded("^[A-Z]+-[0-9]+$"), is_bounded("a*a*b"), is_bounded("(a+)+b")
(True, False, False)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache
from math import inf, prod

LONGEST = 200
#: How many ways there may be through a pattern, besides where one repetition ends.
WAYS = 100
_PARTS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?:|\{\d*,?\d*\}|.", re.DOTALL)
_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_NO_WIDTH = ("^", "$", r"\A", r"\Z", r"\b", r"\B")
#: What looks around, looks back or sets flags: `(?...` other than a plain group, and a number of a group.
_REFUSED = re.compile(r"\\.|\(\?(?!:)|\(\*", re.DOTALL)
_LIKE = re.IGNORECASE | re.DOTALL  # the widest that sh:flags can make of a class


@dataclass(frozen=True, slots=True)
class _Item:
    """One sign or class, with how often it may stand."""

    sign: str
    least: float = 1
    most: float = 1

    @property
    def varies(self) -> bool:
        return self.least != self.most


def is_bounded(pattern: str) -> bool:
    """Return whether *pattern* is a regular expression that ends in a time in proportion to the text."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    if len(pattern) > LONGEST or any(_is_refused(match[0]) for match in _REFUSED.finditer(pattern)):
        return False
    read = _read(_PARTS.findall(pattern))
    if read is None:
        return False
    items, ways, is_plain = read
    loose = [item for at, item in enumerate(items) if item.varies and not (is_plain and _is_left_one_way(items, at))]
    endless = [item for item in items if item.most == inf]
    begins = pattern.startswith(("^", r"\A")) and (is_plain or "|" not in pattern)
    if (endless and not begins) or (len(endless) > 1 and any(item.most == inf for item in loose)):
        return False
    return ways * prod(item.most - item.least + 1 for item in loose if item.most != inf) <= WAYS


def _is_refused(part: str) -> bool:
    return part.startswith("(") or part[1] in "123456789"


def _read(parts: list[str]) -> tuple[list[_Item], float, bool] | None:
    """Return the signs in a row, the ways that choices add, and whether there are none; None for what repeats these."""
    items: list[_Item] = []
    opened = [(0, 1)]  # of each group where it began, and how many choices it has so far
    ways, is_plain, at = 1.0, True, 0
    closed: tuple[int, int] | None = None
    while at < len(parts):
        part, at = parts[at], at + 1
        often = _often(part)
        if often is not None and (items or closed):
            at += at < len(parts) and parts[at] in ("?", "+")  # lazy or possessive: as many ways
            if closed is None:
                items[-1] = replace(items[-1], least=often[0], most=often[1])
                continue
            inside = items[closed[0] :]
            if often[1] > 1 and (closed[1] > 1 or any(item.varies for item in inside)):
                return None
            items[closed[0] :] = [_Item("", *often)]
            is_plain = False
        closed = None
        if part in ("(", "(?:"):
            opened.append((len(items), 1))
        elif part == ")":
            closed = opened.pop()
            ways *= closed[1]
        elif part == "|":
            opened[-1] = (opened[-1][0], opened[-1][1] + 1)
            is_plain = False
        elif often is None:
            items.append(_Item(part))
    return items, ways * opened[0][1], is_plain


def _often(part: str) -> tuple[float, float] | None:
    """Return how often at least and at most a quantifier lets something stand; None for what is none."""
    if part in ("*", "+", "?"):
        return (float(part == "+"), 1.0 if part == "?" else inf)
    counted = _COUNTED.fullmatch(part)
    if counted is None or not (counted[1] or counted[3]):
        return None
    least = float(counted[1] or 0)
    return least, (float(counted[3]) if counted[3] else inf) if counted[2] else least


def _is_left_one_way(items: list[_Item], at: int) -> bool:
    """Return whether what may come after an item is nothing that it could take itself."""
    for following in items[at + 1 :]:
        if following.sign in _NO_WIDTH:
            continue
        if _overlap(items[at].sign, following.sign):
            return False
        if following.least > 0:
            return True
    return True


@cache
def _overlap(one: str, other: str) -> bool:
    """Return whether there is a character that both are, in whichever case."""
    for sign, rest in ((one, other), (other, one)):
        if len(sign) == 1 and sign != ".":
            return any(re.fullmatch(rest, each, _LIKE) for each in (sign, sign.lower(), sign.upper()) if len(each) == 1)
    return re.search(f"(?=(?:{one}))(?:{other})", _everything(), _LIKE) is not None


@cache
def _everything() -> str:
    return "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
