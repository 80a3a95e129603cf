"""A rewording: the sentences in which a proposal differs from the memory whose place it is to take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jidomem.errors import NotFound
from jidomem.excerpt import answer, beginning, sentences

if TYPE_CHECKING:
    from jidomem.read.reader import MemoryReader

#: The properties that say what a memory says, less the reason of its revision.
_TEXTS = ("summary", "rationale", "detailedExplanation")
#: How much of a long sentence is shown before the words that differ.
_BEFORE = 40


@dataclass(frozen=True, slots=True)
class Rewording:
    """The sentences that only the replaced memory has, and those that only the proposal has; either may be empty."""

    was: str
    now: str

    @property
    def is_empty(self) -> bool:
        """Return whether both say the same."""
        return not self.was and not self.now

    def lines(self) -> list[str]:
        """Return a line for each side that has words."""
        return [f"{name}: {text}" for name, text in (("was", self.was), ("now", self.now)) if text]

    def shortened(self, longest: int) -> Rewording:
        """Return it with at most about *longest* characters a side, beginning shortly before what differs."""
        if max(len(self.was), len(self.now)) <= longest:
            return self
        pairs = enumerate(zip(self.was, self.now, strict=False))
        same = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(self.was), len(self.now)))
        start = max(same - _BEFORE, 0)
        return Rewording(_shown(self.was, start, longest), _shown(self.now, start, longest))


def rewording(old: Mapping[str, Sequence[object]], new: Mapping[str, Sequence[object]]) -> Rewording:
    """Return how a memory with the properties *new* rewords one with the properties *old*.

    >>> rewording({"summary": ["Use a queue. Never block."]}, {"summary": ["Use a queue. Block in tests only."]})
    Rewording(was='Never block.', now='Block in tests only.')
    """
    ours, theirs = _sentences(old), _sentences(new)
    return Rewording(_missing(ours, theirs), _missing(theirs, ours))


def rewordings(reader: MemoryReader, project: str, item: str, replaced: Sequence[str]) -> list[Rewording]:
    """Return how the memory *item* rewords each of *replaced*, less those that say the same or are not here."""
    try:
        new = reader.get_memory(project, item)["properties"]
        found = [rewording(reader.get_memory(project, each)["properties"], new) for each in replaced]
    except NotFound:
        return []
    return [each for each in found if not each.is_empty]


def _sentences(said: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the sentences of a memory, those of its summary first, without the marks of cuts."""
    texts = (str(next(iter(said.get("summary", ())), "")), answer({name: said.get(name, ()) for name in _TEXTS}))
    return [*filter(None, (each.removeprefix("- ").strip("… ") for text in texts for each in sentences(text)))]


def _missing(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return the sentences of *ours* that *theirs* has nowhere; of one that stands in another only the longer."""
    whole = "\n".join(theirs)
    only = [each for each in dict.fromkeys(ours) if each not in whole]
    return " … ".join(each for each in only if not any(each != other and each in other for other in only))


def _shown(text: str, start: int, longest: int) -> str:
    head = "… " if start else ""
    text = text[start:].partition(" ")[2] if start else text
    return head + text if len(text) <= longest else f"{head}{beginning(text, longest)} …"
