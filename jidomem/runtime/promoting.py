"""Promoting one value of a session: as an intent, judged like every other, in the place of what was known of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from jidomem.errors import Conflict, JidomemError
from jidomem.intent import MemoryUpdateIntent, Receipt
from jidomem.runtime.promoted import Promoted
from jidomem.tiers import renewal, value
from jidomem.tiers.promotion import Promotion, PromotionDecision
from jidomem.words import normal_text, topic_key
from jidomem.write.conflict import Under
from jidomem.write.normalize import normalize

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

_ADDS, _REPLACES = "A session says more of it.", "A session holds something else under its key."
_EXPLAINS = "detailed_explanation"
_OUTCOME = {"deduplicated": "known", "proposed": "proposed"}


@dataclass(frozen=True, slots=True)
class Promoting:
    """What moves values of one session of an agent into the long-term memory of a project."""

    memory: Jidomem
    project: str
    agent: str
    session_id: str
    promotion: Promotion
    kept: Promoted

    def promote(self, key: str, held: Any, *, force: bool) -> PromotionDecision:
        """Return what became of the value *held* under *key*; what is refused says why, and by whom.

        A memory of that key, or one of its type and content, is known: if it says all of it nothing is written, else
        it is superseded. With *force* the value is important enough.
        """
        verdict = PromotionDecision("refused", "", 0.0, "facts")
        try:
            item = value.item_of(held, session_id=self.session_id, now=self.memory.sources.now())
            verdict = self.promotion.decide(item, force=force)
            if verdict.outcome != "discarded":
                verdict = self._keep(key, held, item, verdict)
        except JidomemError as refusal:
            verdict = replace(verdict, outcome="refused", reason=refusal.detail, error=refusal)
        return replace(verdict, key=key)

    def _keep(self, key: str, held: Any, item: Mapping[str, Any], verdict: PromotionDecision) -> PromotionDecision:
        new, alike = self._normal(key, item, verdict), list[str]()
        while True:
            before = [found.iri for found in self.kept.under(key)]
            try:
                return self._written(key, held, new, verdict, before, alike)
            except Conflict as conflict:
                if [found.iri for found in self.kept.under(key)] != before:
                    continue  # another process was first
                found = [each.iri for each in conflict.conflicts if each.kind == "duplicate"]
                if alike or len(found) < len(conflict.conflicts):
                    raise
                alike = found  # they differ in case or white space alone

    def _written(
        self,
        key: str,
        held: Any,
        new: Mapping[str, Any],
        verdict: PromotionDecision,
        before: Sequence[str],
        alike: Sequence[str],
    ) -> PromotionDecision:
        """Return what became of *new*, the fields of the value, in the place of those *before* it under the key.

        Those that are *alike* are said to say it. Raises Conflict where another process put something there meanwhile.
        """
        under, known = Under(key, frozenset(before)), {iri: self._restated(iri) for iri in before}
        same = [iri for iri, old in known.items() if _is_same(new, old)]
        for iri in (*(found.iri for found in self.kept.saying(new["type"], new["summary"])), *alike):
            old = self._restated(iri)
            if iri not in known and _is_same(new, old) and _on_one_matter(new, old):
                known[iri], same = old, [*same, iri]
        # what other keys stand for too goes on without this one
        shared = [iri for iri, old in known.items() if iri not in same and len(renewal.keys_of(old)) > 1]
        ended = [iri for iri in known if iri not in shared]
        said = (under, held, new)
        receipt = self._added(*said, known[same[0]], ended) if same else self._submitted(*said, ended)
        for iri in shared:
            changed = {**renewal.without(key, known[iri]), **self._who()}
            self.memory.writer.revise(self.project, iri, changes=changed, reason=_REPLACES)
        outcome = _OUTCOME.get(receipt.status, "updated" if known else "promoted")
        because = "".join(f"; {warning}" for warning in receipt.warnings) if outcome == "proposed" else ""
        return replace(verdict, outcome=outcome, reason=f"{verdict.reason}{because}", iri=receipt.iri, receipt=receipt)

    def _submitted(self, under: Under, held: Any, new: Mapping[str, Any], ended: list[str]) -> Receipt:
        """Return the receipt of a new memory, in the place of those that end."""
        instead = {"supersedes": ended, "reason": _REPLACES} if ended else {}
        extras = [*new["extra_triples"], *value.kept_value(under.key, held, new["summary"], new.get(_EXPLAINS))]
        who = {**self._who(), "applies_to_project": self.project}
        said = {"confidence": "medium", **new, **who, **instead, "extra_triples": extras}
        return self.memory.writer.submit_intent(self.project, said, under=under)

    def _added(
        self, under: Under, held: Any, new: Mapping[str, Any], old: Mapping[str, Any], ended: list[str]
    ) -> Receipt:
        """Return the receipt of *old* saying what *new* says besides; what it says already is not written again.

        Its content may differ in case and white space: it stays as it is, unless the memory is of this key alone.
        """
        if renewal.keys_of(old) != [under.key]:
            new = {**new, **{name: old[name] for name in ("summary", _EXPLAINS) if name in new and name in old}}
        explanation = new.get(_EXPLAINS, old.get(_EXPLAINS))
        extras = [*new["extra_triples"], *value.kept_value(under.key, held, new["summary"], explanation)]
        changed = renewal.changes({**new, "extra_triples": extras}, old)
        if not changed and len(ended) == 1:
            return Receipt(old["iri"], None, self.memory.writer.refresh(self.project), "deduplicated")
        changed |= {"supersedes": ended, **self._who()}
        return self.memory.writer.revise(self.project, old["iri"], changes=changed, reason=_ADDS, under=under)

    def _normal(self, key: str, item: Mapping[str, Any], verdict: PromotionDecision) -> dict[str, Any]:
        """Return the fields that *item* gives, in their one written form; raises IntentRefused for what has none."""
        given = value.fields_of(item, self.promotion.kind(item), verdict.category)
        given["extra_triples"] = [*given["extra_triples"], value.extra(value.KEY, key)]
        sources, schema = self.memory.sources, self.memory.schema
        normal = normalize(MemoryUpdateIntent(**given), now=sources.now(), new_id=sources.new_id, schema=schema).intent
        fields = {name: found for name, found in normal.to_dict().items() if name in given}
        return {"summary": "", **fields, "extra_triples": [triple[1:] for triple in normal.extra_triples]}

    def _restated(self, iri: str) -> dict[str, Any]:
        return self.memory.writer.restated(self.project, iri)

    def _who(self) -> dict[str, str]:
        return {"asserted_by": self.agent, "asserted_in": self.session_id}


def _is_same(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether *old* has the type and the content of *new*, in whatever case; it may explain more."""
    mine, theirs = (normal_text(value.core(each["summary"], each.get(_EXPLAINS))) for each in (new, old))
    return mine == theirs and new["type"] == old.get("type")


def _on_one_matter(new: Mapping[str, Any], old: Mapping[str, Any]) -> bool:
    """Return whether *new* names no other topic, and nothing else that it is about, than *old*."""
    is_topic = not new.get("topic") or topic_key(new["topic"]) == topic_key(old.get("topic") or "")
    return is_topic and new.get("about") in (None, [], old.get("about"))
