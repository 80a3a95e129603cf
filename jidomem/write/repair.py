"""Mend an intent mechanically.  Pure: each violation brings its own repair; the writer judges the result again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jidomem.errors import IntentRefused, JidomemError

ROUNDS = 6


def mend(
    values: Mapping[str, Any], refusal: IntentRefused, judge: Callable[[Mapping[str, Any]], object]
) -> dict[str, Any] | None:
    """Return *values* mended so that *judge* accepts them, None when a person has to decide.

    One refusal may hide the next, so mending and judging alternate; what comes back has passed every stage.
    """
    mended = dict(values)
    for _ in range(ROUNDS):
        for violation in refusal.violations:
            if violation.repair is None:
                return None
            mended = violation.repair(mended)
        try:
            judge(mended)
        except IntentRefused as next_refusal:
            refusal = next_refusal
        except JidomemError:
            return None
        else:
            return {name: value for name, value in mended.items() if value not in (None, [])}
    return None
