"""How much a statement matters to agents that were not there, by the words it has."""

from __future__ import annotations

import re

#: What makes a statement matter, and how much each does; together they never come to more than 1.
CUES: tuple[tuple[float, re.Pattern[str]], ...] = tuple(
    (weight, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for weight, words in (
        (0.6, "must|always|never|mandatory|required|requires|forbidden|prohibited|policy|policies|rules?|standards?"
              "|conventions?|decided|agreed|do not|don't|only"),
        (0.6, "critical|crucial|important|urgent|security|secure|vulnerab\\w+|breach|outages?|downtime|data loss"
              "|emergency|incidents?|deadlines?|breaking|deprecated|legal|compliance|allerg\\w+|fail(?:s|ed|ure|ures)?"),
        (0.4, "everyone|everybody|all (?:teams|users|agents|projects|services|customers)|company|organi[sz]ation|team"
              "|production|customers?|clients?|releases?|deploy\\w*|migrat\\w+|launch\\w*"),
        (0.2, "\\d[\\d.,:-]*|\\w+_\\w+|\\w+\\.\\w+"),
    )
)  # fmt: skip
BASE = 0.2
_PERSONAL = re.compile(
    r"(?:(?:really )?(?:likes?|loves?|enjoys?|prefers?|dislikes?|hates?|wants?|hopes?|plans?|feels?|is going|would like"
    r"|went|watched|played|bought|ate|has been)|does not like|i (?:like|love|want|feel|prefer))\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(r"\b(?:maybe|perhaps|probably|might|possibly|not sure)\b", re.IGNORECASE)


def importance(statement: str) -> float:
    """Return from 0 to 1 how much *statement* matters to others: rules and dangers do, what somebody likes does not.

    >>> importance("Deploys must go through staging"), importance("likes green tea")
    (0.808, 0.1)
    """
    unimportant = 1 - BASE
    for weight, pattern in CUES:
        if pattern.search(statement):
            unimportant *= 1 - weight
    personal = 0.5 if _PERSONAL.match(statement.lstrip()) else 1.0
    hedged = 0.6 if _HEDGED.search(statement) else 1.0
    return round((1 - unimportant) * personal * hedged, 3)
