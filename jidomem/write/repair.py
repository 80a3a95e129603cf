"""A repair is the intent that would be accepted in the place of a refused one. Pure over rows.

A refusal lists the faults of form of every stage, not of one alone, and carries the repair where it is mechanical.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jidomem.errors import IntentRefused, JidomemError, Violation
from jidomem.rdf import vocab
from jidomem.rdf.terms import plain_value
from jidomem.records.intent import FIELDS, LIST_FIELDS, MemoryUpdateIntent
from jidomem.write import secrets, triples, validate
from jidomem.write.canonical import DECISIONS
from jidomem.write.normalize import Normal, normalize, resolve, without_names
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import Submission
from jidomem.write.triples import WRITER_AGENT

if TYPE_CHECKING:
    from jidomem.write.pipeline import Pipeline

#: So often mending and judging alternate.
ROUNDS = 6
#: The id of an intent that is judged only for its faults.
_NO_ID = "00000000-0000-7000-8000-000000000000"


def refusal_with_repair(
    pipeline: Pipeline, submission: Submission, refusal: IntentRefused, view: WriteSnapshot, now: datetime
) -> IntentRefused:
    """Return *refusal* with the faults of form of every stage, and with the repaired intent where there is one."""
    intent = submission.intent
    assert not isinstance(intent, JidomemError)
    values: Mapping[str, Any] = intent.to_dict() if isinstance(intent, MemoryUpdateIntent) else intent

    def judged_again(mended: Mapping[str, Any]) -> None:
        triples.read_back(pipeline.run_stages(replace(submission, intent=mended), view, now).triples)

    mended = mend(values, refusal, judged_again)
    faults = _unique(refusal.violations, _FormCheck(pipeline, submission, view, now).faults(values))
    if mended is None and faults == [*refusal.violations]:
        return refusal
    return IntentRefused(faults, fixed_intent=mended)


def mend(
    values: Mapping[str, Any], refusal: IntentRefused, judge: Callable[[Mapping[str, Any]], object]
) -> dict[str, Any] | None:
    """Return *values* mended so that *judge* accepts them, None when a person has to decide.

    One refusal may hide the next, so mending and judging alternate; the result has passed every stage.
    """
    mended = dict(values)
    for _ in range(ROUNDS):
        for violation in refusal.violations:
            if violation.repair is None:
                return None
            mended = violation.repair(mended)
        try:
            judge(mended)
        except IntentRefused as next_refusal:
            refusal = next_refusal
        except JidomemError:
            return None
        else:
            return {name: value for name, value in mended.items() if value not in (None, [])}
    return None


@dataclass(frozen=True, slots=True)
class _FormCheck:
    """The form of an intent, judged by every check: each looks at the fields that those before it left."""

    pipeline: Pipeline
    submission: Submission
    view: WriteSnapshot
    now: datetime

    def faults(self, values: Mapping[str, Any]) -> list[Violation]:
        """Return the faults of the intent *values*.

        A refused value is left out of the following checks, and is not reported as missing.
        """
        pipeline, view, project = self.pipeline, self.view, self.submission.project
        names = pipeline.memory_names(project)
        faults = faults_of(MemoryUpdateIntent.from_dict, values)
        meant = {violation.nearest for violation in faults if violation.repair is None}
        for violation in faults:
            values = violation.repair(values) if violation.repair is not None else values
        given = MemoryUpdateIntent(**{name: value for name, value in values.items() if name in FIELDS})
        faults += faults_of(self._normal, given)
        if kind := next((fault.nearest for fault in faults if fault.code == "unknown_type"), None):
            given = replace(given, type=kind)  # which the rest is judged as
            faults += faults_of(self._normal, given)
        intent = self._normal(_sound(pipeline.signed(given), self._normal)).intent
        if unknown := faults_of(resolve, intent, view, names.find):
            faults += unknown
            intent = without_names(intent)
        else:
            intent = resolve(intent, view, names.find)
        left_out = meant | {violation.field for violation in faults}
        if looks_secret := faults_of(pipeline.screened, secrets.screen(intent)):
            fields = {violation.field for violation in looks_secret}  # no other fault may show their values
            faults = [*(violation for violation in faults if violation.field not in fields), *looks_secret]
            intent, left_out = _without(fields, intent), left_out | fields
        missing = faults_of(validate.require_fields, intent, project)
        faults += [violation for violation in missing if violation.field not in left_out]
        faults += faults_of(validate.check_references, intent, view, pipeline.policy, names.listed)
        faults += faults_of(validate.check_extra_triples, intent, view, pipeline.schema)
        if not self.submission.options.as_it_was:
            faults += faults_of(validate.check_patterns, intent)
        left_out |= {violation.field for violation in faults}
        if intent.type is None:  # the rules of all kinds are judged
            left_out |= {*validate.ONLY_FOR, "extra_triples"}
            intent = replace(intent, type="unknown")
        whole = _filled(_without(left_out, intent), project)
        judged = faults_of(pipeline.describe, whole, self.submission.options, view, self.now)
        return faults + [violation for violation in judged if violation.field not in (None, *left_out)]

    def _normal(self, intent: MemoryUpdateIntent) -> Normal:
        schema, literal = self.pipeline.schema, self.pipeline.literal
        return normalize(intent, now=self.now, new_id=_no_id, schema=schema, literal=literal)


def _no_id() -> str:
    return _NO_ID


def faults_of(check: Callable[..., object], *arguments: Any) -> list[Violation]:
    """Return the faults for which *check* refuses *arguments*; an empty list where it accepts them."""
    try:
        check(*arguments)
    except IntentRefused as refusal:
        return [*refusal.violations]
    except JidomemError as error:  # a text that is too long
        return [Violation(error.code, error.detail, hint=error.hint)]
    return []


def _unique(first: Iterable[Violation], more: Iterable[Violation]) -> list[Violation]:
    """Return all violations, each once: of two of one shape about one field the first."""
    unique: dict[tuple[str | None, str], Violation] = {}
    for violation in (*first, *more):
        unique.setdefault((violation.field, violation.shape or violation.message), violation)
    return [*unique.values()]


def _sound(intent: MemoryUpdateIntent, normal: Callable[[MemoryUpdateIntent], Normal]) -> MemoryUpdateIntent:
    """Return *intent* without the values, and the entries of lists, that *normal* refuses."""
    kind = intent.type if not faults_of(normal, MemoryUpdateIntent(type=intent.type)) else None

    def is_sound(name: str, value: Any) -> bool:
        return not faults_of(normal, MemoryUpdateIntent(**{"type": kind, name: value}))

    values: dict[str, Any] = {}
    for name, value in intent.fields():
        if name in LIST_FIELDS and isinstance(value, (list, tuple)):
            values[name] = [entry for entry in value if is_sound(name, [entry])]
        elif is_sound(name, value):
            values[name] = value
    return MemoryUpdateIntent(**{**values, "type": kind})


def _without(fields: Collection[str | None], intent: MemoryUpdateIntent) -> MemoryUpdateIntent:
    """Return the normal *intent* without *fields* but its type, and with another id where that is one of them."""
    rest = {name: value for name, value in intent.fields() if name == "type" or name not in fields}
    return MemoryUpdateIntent(**{"iri": f"{vocab.BASE}memory/{_NO_ID}", **rest})


def _filled(intent: MemoryUpdateIntent, project: str) -> MemoryUpdateIntent:
    """Return *intent* with a value in each required field that is empty, so that shapes judge the others."""
    fields: dict[str, Any] = {
        "summary": "summary",
        "applies_to_project": f"{vocab.BASE}projects/{project}",
        "asserted_by": plain_value(WRITER_AGENT),
        "asserted_in": f"{vocab.BASE}sessions/{_NO_ID}",
        "confidence": "medium",
    }
    if intent.type in DECISIONS:
        fields["rationale"] = "rationale"
    return replace(intent, **{name: value for name, value in fields.items() if getattr(intent, name) is None})
