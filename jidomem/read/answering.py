"""The engine of recall: what answers a question best, of all that is looked through, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jidomem.candidate import Question, Ranked
from jidomem.index.held_texts import Readable
from jidomem.index.text_file import Within
from jidomem.journal.files import Stream
from jidomem.read.fusion import ranked
from jidomem.read.gathering import Alike, Asked, gather, together
from jidomem.read.profiles import chosen


@dataclass(frozen=True, slots=True)
class Source:
    """What is looked through: texts of a stream, and what makes likeness to them known, if anything."""

    texts: Readable
    stream: Stream
    within: Within
    alike: Alike | None = None


@dataclass(frozen=True, slots=True)
class Answered:
    """What answers a question, the best first, the question as it was met, and by what it was ranked."""

    found: Sequence[Ranked]
    question: Question
    ranking: str


def answered(sources: Sequence[Source], asked: Asked) -> Answered:
    """Return what of *sources* answers what is *asked*: gathered by words and by likeness, ranked as one."""
    gathered = [gather(one.texts, one.stream, replace(asked, alike=one.alike), one.within) for one in sources]
    question = together([question for _, question in gathered])
    candidates = [one for each, _ in gathered for one in each]
    profile = chosen(candidates)
    return Answered(ranked(candidates, question, profile), question, str(profile["name"]))
