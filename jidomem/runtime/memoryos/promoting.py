"""What personas know as memories of the project: intents with the pages they rest on, judged like every other."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from jidomem.errors import STOPPING, Conflict, IdempotencyMismatch, InvalidRequest, JidomemError
from jidomem.intent import MemoryUpdateIntent
from jidomem.memoryos.tiers import Tiers
from jidomem.memoryos.values import KnowledgeEntry, ObjectPersona, TraitEntry
from jidomem.models.claims import is_private
from jidomem.moments import stamp
from jidomem.runtime.memoryos.moves import AgentMoves
from jidomem.runtime.redacting import GONE
from jidomem.tiers.promotion import PromotionDecision
from jidomem.write.names import is_reference

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

_OUTCOME = {"deduplicated": "known", "proposed": "proposed"}
#: From which confidence on a fact becomes a memory of the project.
LEAST = 0.8


class FactPromoting:
    """Proposes facts of an agent's personas to the project, each once; one that is undone there stays undone."""

    def __init__(self, memory: Jidomem, moves: AgentMoves, session: str) -> None:
        self._memory, self._moves, self._session = memory, moves, session

    def promote(self, least: float = LEAST) -> list[PromotionDecision]:
        """Return what became of each fact that is believed as much as *least*, not private, and not yet proposed.

        Where nothing can be written now, since another writer is busy or the disk refuses, the rest is left for later.
        """
        if isinstance(least, bool) or not isinstance(least, int | float) or not 0 <= least <= 1 or math.isnan(least):
            raise InvalidRequest(f"least={least!r} is no number from 0 to 1", hint=f"give {LEAST}")
        done, found = {*self._moves.promoted()}, list[PromotionDecision]()
        while (due := _next(tiers := self._moves.tiers(), least, done)) is not None:
            done.add(due[1].id)
            found.append(self._promoted(*due, tiers))
            if (error := found[-1].error) is not None and error.code in STOPPING:
                break
        return found

    def _promoted(self, persona: ObjectPersona, fact: KnowledgeEntry, tiers: Tiers) -> PromotionDecision:
        """Return what became of one fact; that it was proposed is noted, whoever refused it may be asked again."""
        key, why = f"memoryos:{self._moves.agent}:{fact.id}", f"believed with {fact.confidence:g}"
        verdict = ("facts", key)
        try:
            receipt = self._memory.writer.submit_intent(self._moves.project, self._intent(persona, fact, tiers, key))
        except IdempotencyMismatch:  # it was promoted, and more is known of it since
            self._moves.note_promoted(fact.id, "")
            return PromotionDecision("known", why, fact.confidence, *verdict)
        except Conflict as conflict:
            same = [met.iri for met in conflict.conflicts if met.kind == "duplicate"]
            if len(same) < len(conflict.conflicts):
                return PromotionDecision("refused", conflict.detail, fact.confidence, *verdict, error=conflict)
            self._moves.note_promoted(fact.id, same[0])
            return PromotionDecision("known", why, fact.confidence, *verdict, iri=same[0])
        except JidomemError as refusal:
            return PromotionDecision("refused", refusal.detail, fact.confidence, *verdict, error=refusal)
        self._moves.note_promoted(fact.id, receipt.iri)
        outcome = _OUTCOME.get(receipt.status, "promoted")
        return PromotionDecision(outcome, why, fact.confidence, *verdict, iri=receipt.iri, receipt=receipt)

    def _intent(self, persona: ObjectPersona, fact: KnowledgeEntry, tiers: Tiers, key: str) -> MemoryUpdateIntent:
        of = f"{persona.type} {persona.identifier}"
        return MemoryUpdateIntent(
            type="fact",
            summary=f"{of}: {fact.text}",
            applies_to_project=self._moves.project,
            asserted_by=self._moves.agent,
            asserted_in=self._session,
            confidence=fact.confidence,
            evidence=[*_evidence(fact, tiers)],
            about=[of],
            timestamp=stamp(fact.created_at),
            idempotency_key=key,
        )


def _next(tiers: Tiers, least: float, done: Collection[str]) -> tuple[ObjectPersona, KnowledgeEntry] | None:
    """Return what is to be proposed next, as it is known now: it may have been redacted, or become private, since."""
    for persona in tiers.personas:
        for fact in persona.knowledge:
            if not fact.private and fact.confidence >= least and fact.id not in done and GONE not in fact.text:
                return persona, fact
    return None


def _evidence(fact: KnowledgeEntry, tiers: Tiers) -> Iterator[str]:
    """Yield what was said in the pages that a fact rests on.

    One that was added under an IRI, as that of a turn, is named by that. Of one that was evicted, and of one in which
    something private was said, the id is left.
    """
    entries: list[KnowledgeEntry | TraitEntry] = [*tiers.agent.traits]
    for persona in tiers.personas:
        entries += [*persona.knowledge, *persona.traits]
    private = {page_id for each in entries if each.private for page_id in each.evidence}
    for page_id in fact.evidence:
        page = tiers.page(page_id)
        if is_reference(page_id, prose=True):
            yield page_id
        elif page is None or page_id in private or is_private(page.text):
            yield f"page {page_id}"
        else:
            yield f"{stamp(page.timestamp)} {page.text}"
