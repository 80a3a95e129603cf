"""The engine of recall: what answers a question best, of all that is looked through, whoever asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jidomem.candidate import Question, Ranked
from jidomem.index.text_file import Within
from jidomem.index.texts import Texts
from jidomem.journal.files import Stream
from jidomem.read.fusion import ranked
from jidomem.read.gathering import Asked, gather, together
from jidomem.read.profiles import chosen


@dataclass(frozen=True, slots=True)
class Answered:
    """What answers a question, the best first, the question as it was met, and by what it was ranked."""

    found: Sequence[Ranked]
    question: Question
    ranking: str


def answered(texts: Texts, streams: Sequence[Stream], asked: Asked, within: Within) -> Answered:
    """Return what of *streams* answers what is *asked*: gathered by words and by likeness, ranked as one."""
    gathered = [gather(texts, stream, asked, within) for stream in streams]
    question = together([question for _, question in gathered])
    candidates = [one for each, _ in gathered for one in each]
    profile = chosen(candidates)
    return Answered(ranked(candidates, question, profile), question, str(profile["name"]))
