"""The filters of a search for LangGraph's items, with the meaning that its SqliteStore gives them.  Pure over values.

A filter compares what SQLite makes of a part of the value: nothing, a number (truths are 1 and 0) or a text, as lists
and objects are by their JSON. Numbers come before texts, and nothing is equal to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import orjson

_KEY = re.compile(r"[a-zA-Z0-9_.-]+")
_NUMBER = re.compile(r"[ \t\n\v\f\r]*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")
_NUMBERS, _TEXTS, _BYTES = 1, 2, 3
_LARGEST = 2**63

#: What stands for a value: its rank and itself; None for nothing.
_Comparable = tuple[int, Any] | None
_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "$eq": lambda a, b: bool(a == b),
    "$ne": lambda a, b: bool(a != b),
    "$gt": lambda a, b: bool(a > b),
    "$gte": lambda a, b: bool(a >= b),
    "$lt": lambda a, b: bool(a < b),
    "$lte": lambda a, b: bool(a <= b),
}
_IN_ORDER = ("$gt", "$gte", "$lt", "$lte")

Passes = Callable[[Any], bool]


def passes(filters: Mapping[str, Any] | None) -> Passes:
    """Return what tells whether a value passes all *filters*; raises ValueError for a key or an operator there is not.

    >>> matches = passes({"type": "report", "score": {"$gte": 3}})
    >>> [matches({"type": "report", "score": score}) for score in (2, 3.5, None)]
    [False, True, False]
    """
    conditions = [condition for key, asked in (filters or {}).items() for condition in _conditions(key, asked)]
    return lambda value: all(condition(value) for condition in conditions)


def _conditions(key: str, asked: Any) -> Iterable[Passes]:
    steps = _steps(key)
    if isinstance(asked, Mapping):
        return [_condition(steps, operator, operand) for operator, operand in asked.items()]
    if isinstance(asked, (str, int, float)) or asked is None:
        return [_condition(steps, "$eq", asked)]
    text = _TEXTS, orjson.dumps(asked).decode()
    return [lambda value: _extracted(value, steps) == text]


def _steps(key: str) -> list[str]:
    """Return the names that lead to a part of the value."""
    steps = key.split(".")
    if not _KEY.fullmatch(key) or "" in steps:
        raise ValueError(
            f"Invalid filter key: {key!r}. Filter keys must contain only alphanumeric characters, underscores, dots"
            " between names, and hyphens."
        )
    return steps


def _condition(steps: list[str], operator: str, operand: Any) -> Passes:
    holds = _OPERATORS.get(operator)
    if holds is None:
        raise ValueError(f"Unsupported operator: {operator}")
    if operand is None and operator in ("$eq", "$ne"):
        return lambda value: (_extracted(value, steps) is None) == (operator == "$eq")
    other = _operand(operand)
    as_number = operator in _IN_ORDER and isinstance(operand, (int, float))

    def condition(value: Any) -> bool:
        one = _extracted(value, steps)
        if one is None or other is None:
            return False
        return holds(_as_number(one) if as_number else one, other)

    return condition


def _extracted(value: Any, steps: list[str]) -> _Comparable:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return None
        value = value[step]
    if isinstance(value, str):
        return _TEXTS, value
    if isinstance(value, (int, float)):
        return _NUMBERS, float(value) if not -_LARGEST <= value < _LARGEST else value + 0
    return None if value is None else (_TEXTS, orjson.dumps(value).decode())


def _operand(value: Any) -> _Comparable:
    if isinstance(value, str):
        return _TEXTS, value
    if isinstance(value, (int, float)):
        number = float(value)
        return None if number != number else (_NUMBERS, number)
    return _BYTES, orjson.dumps(value)


def _as_number(one: tuple[int, Any]) -> tuple[int, float]:
    """Return a number, or the one a text begins with."""
    rank, value = one
    if rank == _TEXTS:
        found = _NUMBER.match(value)
        value = found[1] if found else 0
    return _NUMBERS, float(value)
