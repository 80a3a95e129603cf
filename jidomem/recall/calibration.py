"""The score of a recalled text: the probability that it answers the question. Pure.

The sum of a ranking has no scale of its own; its log odds are a line, fitted for each ranking to questions with known
answers, without an answer, and of other projects (`python -m bench.calibration`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp


@dataclass(frozen=True, slots=True)
class Calibration:
    """The line of log odds over the sum of a ranking."""

    slope: float
    intercept: float

    def probability(self, total: float) -> float:
        """Return the probability of a text with this sum.

        >>> Calibration(1.0, -2.0).probability(2.0)
        0.5
        """
        odds = self.slope * total + self.intercept
        return 1 / (1 + exp(-odds)) if odds >= 0 else exp(odds) / (1 + exp(odds))


#: The name of the ranking by words alone.
WORDS = "words"
#: Ranking -> its calibration with vectors and without.
CALIBRATIONS: Mapping[str, tuple[Calibration, Calibration]] = {
    WORDS: (Calibration(3.58, -4.04), Calibration(3.58, -4.04)),
    "memories-2": (Calibration(0.530, -6.57), Calibration(0.701, -5.83)),
    "people-2": (Calibration(0.457, -7.63), Calibration(0.471, -7.43)),
    "assistant-2": (Calibration(0.593, -7.25), Calibration(0.420, -5.22)),
    "tasks-1": (Calibration(0.171, -3.74), Calibration(0.095, -3.24)),
}


def calibration(ranking: str, *, has_vectors: bool) -> Calibration:
    """Return the calibration of a ranking."""
    with_vectors, alone = CALIBRATIONS[ranking]
    return with_vectors if has_vectors else alone
