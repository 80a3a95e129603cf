"""What each sign of an answer is worth, by what is looked through: talk of people, talk with a machine, or memories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jidomem import cues
from jidomem.candidate import Candidate, Profile

#: Talk of people: short turns, each understood by what was said around it. Who is named in a question spoke mostly.
#: Fitted to six talks of two kinds (a logit of each turn against all others), each left out in turn, then rounded:
#: rounding changes R@10 by less than half a point. docs/recall.md says what leaving out each sign costs.
PEOPLE: Profile = {
    "name": "people-2",
    "coverage": 1.5,
    "coverage_around": 2.5,
    "reply": 0.5,
    "likeness": 5.0,
    "likeness_around": 6.0,
    "speaker": 3.0,
    "date": 6.0,
    "event": 1.5,
    "gives_time": 1.5,
    "gives_number": 1.5,
    "itself": 1.5,
    "length": 0.25,
}
#: Talk with a machine: long messages, of which those of the person say what there is to remember; what was said around
#: them tells nothing (it costs 10 points of R@5), and how often a word is repeated does. Fitted to six talks likewise.
ASSISTANT: Profile = {
    "name": "assistant-2",
    "lexical": 2.0,
    "likeness": 7.0,
    "told": 2.0,
    "answered": 1.5,
    "brief": 2.0,
}
#: What was not said by anybody: the words, how often they are there and whether, of a note also in those beside it, and
#: likeness. Half or twice of each finds the same: docs/recall.md.
MEMORIES: Profile = {
    "name": "memories-1",
    "lexical": 2.0,
    "coverage": 1.0,
    "coverage_around": 1.0,
    "likeness": 6.0,
}
PROFILES: Mapping[str, Profile] = {str(one["name"]): one for one in (PEOPLE, ASSISTANT, MEMORIES)}
#: Where a machine said so much of what was found, or more, it is talk with a machine.
MACHINE = 0.2


def chosen(candidates: Sequence[Candidate]) -> Profile:
    """Return the profile for *candidates*: by who said them, if anybody said half of them."""
    said = [one for one in candidates if one.passage.speakers]
    if 2 * len(said) < len(candidates) or not said:
        return MEMORIES
    return ASSISTANT if sum(map(answered, said)) >= MACHINE * len(said) else PEOPLE


def answered(one: Candidate) -> bool:
    """Return whether a machine said it, by the name it goes by."""
    return any(name.casefold() in cues.ANSWERING for name in one.passage.speakers)
