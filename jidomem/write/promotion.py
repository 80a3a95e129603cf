"""An assumption or a hypothesis becomes a fact by evidence, or by the judgement of a curator.  Pure over rows."""

from __future__ import annotations

from dataclasses import replace

from jidomem.errors import IntentRefused, Violation
from jidomem.intent import MemoryUpdateIntent
from jidomem.terms import iri
from jidomem.vocab import jido, local_name
from jidomem.write.names import is_absolute
from jidomem.write.view import View

_RULE = "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
_GUESSES = frozenset((jido("Assumption"), jido("Hypothesis")))


def borne_out(intent: MemoryUpdateIntent, view: View, is_curator: bool) -> MemoryUpdateIntent:
    """Return the normal *intent*; a fact made of a guess rests on its evidence, or on the curator's judgement.

    Raises IntentRefused where it has neither.
    """
    if intent.type != "fact" or intent.evidence:
        return intent
    named = [iri(other) for other in (*intent.supersedes, *intent.revives) if is_absolute(other)]
    guesses = [(other, view.types(other) & _GUESSES) for other in named]
    kinds = {other: local_name(min(kind)).lower() for other, kind in guesses if kind}
    if not kinds:
        return intent
    if is_curator:
        agent = local_name(intent.asserted_by or "")
        return replace(intent, evidence=[f"judged by {agent}" + (f": {intent.reason}" if intent.reason else "")])
    other, kind = next(iter(kinds.items()))
    message = f"{other[1:-1]} is an {kind}: " if kind == "assumption" else f"{other[1:-1]} is a {kind}: "
    message += "it becomes a fact by evidence, or when a curator says so"
    shape = _RULE if kind == "hypothesis" else None
    hint = "give `evidence`: the texts, IRIs or memories that show it"
    raise IntentRefused([Violation("shape_violation", message, field="evidence", shape=shape, hint=hint)])
