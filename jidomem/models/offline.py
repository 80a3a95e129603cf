"""The language model that needs no network: rules and counts of words, the same answer to the same text always."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

from jidomem.embedder import Embedder, Vector
from jidomem.errors import InvalidRequest, ModelUnavailable
from jidomem.model import AGENT, OBJECT, Bounds, Fact, Known, Learned, Page, Prompt, Segment, Trait
from jidomem.models.dialogue import at_least_one, said, so_far
from jidomem.models.hashed import HashedStems
from jidomem.models.importance import importance
from jidomem.models.keywords import keywords
from jidomem.models.prompts import final_prompt
from jidomem.models.summary import summary
from jidomem.stems import Stemmer

if TYPE_CHECKING:
    from jidomem.models.claims import Claim

#: A page goes on with the one before it if it comes within this time,
GAP = timedelta(hours=1)
#: and this share of the keywords of both is in both, or it has fewer than so many and cannot stand alone.
SHARED, FEW = 0.05, 3


class OfflineModel:
    """Reads dialogue by rule; vectors are those of *embedder*, or hashes of stems.

    What people say of themselves is found in English only; of other languages it gives keywords, summaries and chains.
    """

    name = "offline-1"

    def __init__(
        self,
        embedder: Embedder | None = None,
        *,
        bounds: Bounds | None = None,
        gap: timedelta = GAP,
        shared: float = SHARED,
    ) -> None:
        if not isinstance(gap, timedelta) or gap < timedelta():
            raise InvalidRequest(f"gap={gap!r} is no span of time", hint="give timedelta(hours=1), or leave it out")
        if isinstance(shared, bool) or not isinstance(shared, int | float) or not 0 <= shared <= 1:
            raise InvalidRequest(f"shared={shared!r} is not from 0 to 1", hint=f"give {SHARED}, or leave it out")
        self._embedder = embedder or HashedStems()
        self._bounds = bounds or Bounds()
        self._gap, self._shared = gap, shared
        self._stemmer = Stemmer()
        # of a page they are asked for when it is described, and when it is held against the one before and after it
        self._keywords = lru_cache(8)(lambda text: keywords(self._stemmer, text, self._bounds.keywords))

    @property
    def embedder(self) -> Embedder:
        """Return what makes its vectors."""
        return self._embedder

    def generate_meta_chain(self, pages: Sequence[Page]) -> str:
        """Return the sentences that tell most of the chain so far, and of the last page; half the room for each."""
        chain, new = so_far(pages)
        *before, last = new
        earlier = [chain, *said(before)] if chain else said(before)
        room = self._bounds.chain
        told = summary(self._stemmer, said([last]), room // 2 if earlier else room)
        return " ".join(filter(None, (summary(self._stemmer, earlier, room - len(told) - 1), told)))

    def continues(self, previous: Page, page: Page) -> bool:
        """Return whether *page* comes soon after *previous* and shares keywords with it, or has hardly any."""
        if abs(page.timestamp - previous.timestamp) > self._gap:
            return False
        own, earlier = ({*self.extract_keywords("\n".join(said([each])))} for each in (page, previous))
        return len(own) < FEW or len(own & earlier) >= self._shared * len(own | earlier)

    def calculate_embedding(self, text: str) -> Vector:
        """Return the vector of *text*."""
        return self.calculate_embeddings([text])[0]

    def calculate_embeddings(self, texts: Sequence[str]) -> Sequence[Vector]:
        """Return one vector for each of *texts*, in their order."""
        return self._embedder.generate(texts) if texts else []

    def extract_keywords(self, text: str) -> tuple[str, ...]:
        """Return the words of *text* that are long and said often, one for each stem, the one that tells most first.

        >>> OfflineModel().extract_keywords("Which index do we use? The indexes are kept by Oxigraph.")
        ('index', 'oxigraph', 'kept')
        """
        return self._keywords(text)

    def generate_segment_summary(self, pages: Sequence[Page]) -> str:
        """Return the sentences of *pages* that tell most of what all of them are about, in their order."""
        return summary(self._stemmer, said(at_least_one(pages)), self._bounds.summary)

    def extract_traits(self, segment: Segment) -> Learned:
        """Return what those who talk say of themselves; said again, it is believed more and not told twice."""
        from jidomem.models.claims import claims  # its rules take a while to be read, and most who ask teach nothing

        facts: dict[tuple[str, str], Fact] = {}
        traits: dict[tuple[str, str, str], Trait] = {}
        for number, page in enumerate(segment.pages):
            for subject, text in ((OBJECT, page.query), (AGENT, page.response)):
                for claim in claims(text, self._bounds.statement, asks=subject == OBJECT):
                    _add_fact(facts, claim, subject, number)
                    _add_trait(traits, claim, subject, number)
        return Learned(tuple(facts.values())[: self._bounds.facts], tuple(traits.values())[: self._bounds.traits])

    def rate_importance(self, facts: Sequence[str]) -> tuple[float, ...]:
        """Return for each of *facts* how much it has of what matters to others: rules, dangers, what all share."""
        from jidomem.models.claims import is_private

        return tuple(0.0 if is_private(fact) else importance(fact) for fact in facts)

    def generate_final_prompt(
        self,
        query: str,
        stm: Sequence[Page],
        mtm: Sequence[Page],
        lpm: Sequence[Known],
        system_memory: Sequence[str],
    ) -> Prompt:
        """Return *query* and what each tier has on it as what a language model is asked; nothing is sent."""
        return final_prompt(query, stm, mtm, lpm, system_memory)

    def answer(self, prompt: Prompt) -> str:
        """Raise ModelUnavailable: rules write no answers."""
        raise ModelUnavailable(
            "there is no chat model to answer", hint="give a ChatModel, or put the prompt to a model of your own"
        )


def _add_fact(facts: dict[tuple[str, str], Fact], claim: Claim, subject: str, page: int) -> None:
    key = (subject, claim.text.casefold())
    new = Fact(claim.text, claim.confidence, subject, page, claim.private)
    if first := facts.get(key):
        new = replace(first, confidence=_believed(first, new), private=first.private or new.private)
    facts[key] = new


def _add_trait(traits: dict[tuple[str, str, str], Trait], claim: Claim, subject: str, page: int) -> None:
    if claim.trait is None:
        return
    key = (subject, claim.trait, claim.value.casefold())
    new = Trait(claim.trait, claim.value, claim.confidence, subject, page, claim.private)
    if first := traits.get(key):
        new = replace(first, confidence=_believed(first, new), private=first.private or new.private)
    traits[key] = new


def _believed(first: Fact | Trait, again: Fact | Trait) -> float:
    """Return how far what was said twice is believed: more than either, and never wholly."""
    return round(1 - (1 - first.confidence) * (1 - again.confidence), 3)
