"""An assumption or a hypothesis becomes a fact by evidence, or by the judgement of a curator.  Pure over rows.

Mend an intent mechanically.  Pure: each violation brings its own repair; the writer judges the result again.

What a retry is told: the receipt that its key was first answered with, kept beside what it made.  Pure.

The stages in their order, for one intent: what comes out is what would be kept, or the reason it is not.  Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from jidomem.base.clock import parse_moment
from jidomem.errors import Conflict, ConflictItem, IdempotencyMismatch, IntentRefused, JidomemError, Violation
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import TYPE, jido, local_name
from jidomem.records.active import digest
from jidomem.records.intent import (
    FIELDS,
    LIST_FIELDS,
    CommitRef,
    MemoryUpdateIntent,
    Receipt,
    Version,
    file_anchor_triples,
)
from jidomem.records.policy import LITERAL_LIMIT, AgentPolicy, Policy
from jidomem.schema.ontology import EffectiveRules, Schema
from jidomem.write import canonical, conflict, ontology_check, permissions, secrets, triples, validate
from jidomem.write.canonical import DECISIONS, family, is_absolute
from jidomem.write.normalize import MOMENTS, KnownMemories, Normal, check_entries, normalize, resolve, without_names
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.triples import restated_in

_RULE = "https://jido.ai/shapes#PromotedHypothesisHasEvidence"
_GUESSES = frozenset((jido("Assumption"), jido("Hypothesis")))


def check_promotion(intent: MemoryUpdateIntent, view: WriteSnapshot, is_curator: bool) -> MemoryUpdateIntent:
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


ROUNDS = 6


def mend(
    values: Mapping[str, Any], refusal: IntentRefused, judge: Callable[[Mapping[str, Any]], object]
) -> dict[str, Any] | None:
    """Return *values* mended so that *judge* accepts them, None when a person has to decide.

    One refusal may hide the next, so mending and judging alternate; what comes back has passed every stage.
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


_KEY, _DIGEST, _RECEIPT = jido("idempotencyKey"), jido("requestDigest"), jido("receipt")


def request_of(proposal: MemoryUpdateIntent) -> str:
    """Return the digest of the request as it was made; a retry may come from a later session."""
    told = ("idempotency_key", "asserted_in")
    values = {name: value for name, value in proposal.to_dict().items() if name not in told}
    return digest(json.loads(json.dumps(values, default=str)))


def retry_triples(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the triples of *node* that let a retry with the same key be told *receipt*; none without a key."""
    if not intent.idempotency_key:
        return []
    told = {name: value for name, value in receipt.to_dict().items() if name not in ("commit", "version")}
    return [
        (node, _KEY, literal(intent.idempotency_key)),
        (node, _DIGEST, literal(request)),
        (node, _RECEIPT, literal(json.dumps(told, ensure_ascii=False, sort_keys=True))),
    ]


def submission(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return what *node* keeps of an intent with a key that a memory there is already was the answer to."""
    return [
        (node, TYPE, jido("Submission")),
        (node, jido("submittedBy"), iri(intent.asserted_by or "")),
        (node, jido("answeredWith"), iri(receipt.iri)),
        *retry_triples(node, intent, request, receipt),
    ]


def first_receipt(intent: MemoryUpdateIntent, request: str, view: WriteSnapshot) -> Receipt | None:
    """Return the receipt this key was first answered with; raise IdempotencyMismatch when it was for something else."""
    if not intent.idempotency_key or not intent.asserted_by:
        return None
    agent = iri(intent.asserted_by)
    for node in view.subjects(_KEY, literal(intent.idempotency_key)):
        if agent not in (*view.objects(node, jido("assertedBy")), *view.objects(node, jido("submittedBy"))):
            continue
        if view.first(node, _DIGEST) != literal(request):
            raise IdempotencyMismatch(
                f"idempotency_key {intent.idempotency_key!r} was used for another intent ({plain_value(node)})",
                hint="use a new key for a new intent, or resubmit the first intent unchanged",
            )
        told = json.loads(parse_literal(view.first(node, _RECEIPT) or literal("{}")).text)
        commit, version = commit_of(node, view)
        conflicts = tuple(ConflictItem(**found) for found in told["conflicts"])
        return Receipt(told["iri"], commit, version, told["status"], told["filled"], conflicts, tuple(told["warnings"]))
    return None


def commit_of(node: Term, view: WriteSnapshot) -> tuple[str | None, Version]:
    """Return the commit *node* was recorded in; None for what the block being built adds."""
    commit = view.first(node, jido("recordedIn"))
    position = view.first(commit, jido("position")) if commit else None
    recorded_at = view.first(commit, jido("recordedAt")) if commit else None
    if not (commit and position and recorded_at):
        return None, Version()
    moment = canonical.moment(plain_value(recorded_at)) or ""  # a store may have shortened it
    head = CommitRef(moment, local_name(commit).rsplit(":", 1)[-1], int(parse_literal(position).text))
    return head.id, Version((head,))


WRITER_AGENT = iri(vocab.BASE + "agents/memory-writer")
_EVIDENCE = jido("Evidence")
#: The id of an intent that is judged only for its faults.
_NO_ID = "00000000-0000-7000-8000-000000000000"
_STORED_ELSEWHERE = (
    "leave it out, and say where it is kept instead; if it is none, say it in other words,"
    ' or set secrets = "warn" in config.toml'
)
_WRITER_POLICY = AgentPolicy("MemoryWriter", ("CanWriteMemory", "CanQueryMemory"))

#: What is refused whatever the policy does with disagreement.
_NEVER_ACCEPTED = ("stale_supersession", "same_key")
#: What the guard holds files to.
_CHECKS = {f"{vocab.JIDO}{name}" for name in ("forbidsPattern", "requiresPattern", "checkCommand")}
#: How many of the memories that disagree a refusal gives in full.
_SHOWN_WHOLE = 10

Proposal = MemoryUpdateIntent | Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """How an intent is submitted: the blob id of each file it is about, and whether it is proposed, not asserted.

    With *as_it_was* it says again what was in force, which stands as it stood, beside what it disagreed with then.
    It is to be the one of a key *under* which other memories are known. What is *ending*, as others of its commit take
    its place, disagrees with nothing. One that *relocates* says what it supersedes said, of a source that was moved,
    and is confirmed as that was. The files that it names and that are *absent* come with the nearest that is there.
    One that is *imported* may have undeclared values, which earlier releases accepted.
    """

    blobs: Mapping[str, str] = field(default_factory=dict)
    propose: bool = False
    as_it_was: bool = False
    under: conflict.UniqueKey | None = None
    ending: frozenset[str] = frozenset()
    relocates: bool = False
    absent: Mapping[str, str | None] = field(default_factory=dict)
    imported: bool = False


PLAINLY = SubmitOptions()


def abouts(proposal: Proposal) -> list[str]:
    """Return the texts that *proposal*, which may be anything, says it is about."""
    said: Any = None
    if isinstance(proposal, (MemoryUpdateIntent, Mapping)):
        said = proposal.about if isinstance(proposal, MemoryUpdateIntent) else proposal.get("about")
    return [entry for entry in said if isinstance(entry, str)] if isinstance(said, (list, tuple)) else []


@dataclass(frozen=True, slots=True)
class Decision:
    """What passed the stages: the triples to keep (none for what is known already), and the receipt.

    `nodes` are what the memory learns of for the first time: the commit records its time on them. A receipt without
    a commit gets the block's.
    """

    receipt: Receipt
    triples: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()


@dataclass(frozen=True, slots=True)
class Stages:
    """What judging needs besides the rows: the ontology and shapes, the policy, and where ids come from.

    With *fresh_ids* an id is never given twice, by whomever, so that it need not be looked up. *speaker* is who a door
    knows to speak, by a token. A text has at most *literal* bytes.
    """

    law: EffectiveRules
    new_id: Callable[[], str]
    fresh_ids: bool = False
    speaker: permissions.Speaker | None = None
    literal: int = LITERAL_LIMIT

    @property
    def schema(self) -> Schema:
        """Return the ontology and the shapes in force."""
        return self.law.schema

    @property
    def policy(self) -> Policy:
        """Return the policy of the root in force."""
        return self.law.policy

    def judge(
        self,
        project: str,
        proposal: Proposal,
        view: WriteSnapshot,
        now: datetime,
        known: KnownMemories,
        manner: SubmitOptions = PLAINLY,
    ) -> Decision:
        """Return what is to be kept of *proposal*; a refusal lists every fault of form, not of one stage alone.

        It carries the mended intent where one passes every stage. *known* are the memories that it may name.
        """
        try:
            return self.run(project, proposal, view, now, known, manner)
        except IntentRefused as refusal:
            values = proposal.to_dict() if isinstance(proposal, MemoryUpdateIntent) else proposal

            def judged_again(mended: Mapping[str, Any]) -> None:
                triples.read_back(self.run(project, mended, view, now, known, manner).triples)

            mended = mend(values, refusal, judged_again)
            faults = _together(refusal.violations, self._faults(project, values, view, now, known, manner))
            if mended is None and faults == [*refusal.violations]:
                raise
            raise IntentRefused(faults, fixed_intent=mended) from None

    def run(
        self,
        project: str,
        proposal: Proposal,
        view: WriteSnapshot,
        now: datetime,
        known: KnownMemories,
        manner: SubmitOptions = PLAINLY,
    ) -> Decision:
        """Return what is to be kept of *proposal*; the first stage that refuses it ends the way."""
        if not isinstance(proposal, MemoryUpdateIntent):
            proposal = MemoryUpdateIntent.from_dict(proposal)
        if not manner.as_it_was:
            check_entries(proposal)
        signed = self._signed(proposal)
        normal = normalize(signed, now=now, new_id=self.new_id, schema=self.schema, literal=self.literal)
        intent = normal.intent
        looks_secret = self.screened(secrets.screen(intent))
        if self.fresh_ids and "iri" in normal.filled:
            view.add_new(iri(intent.iri or ""), ())
        request = request_of(proposal) if intent.idempotency_key else ""
        permissions.check_speaks(intent.asserted_by, view, self.policy, self.speaker)
        if (first := first_receipt(intent, request, view)) is not None:
            return Decision(first)
        intent = resolve(intent, view, known.find)
        allowed = permissions.permitted(intent, view, self.policy, self.speaker)
        intent = check_promotion(intent, view, allowed.is_curator)
        validate.require_fields(intent, project)
        validate.check_references(intent, view, self.policy, known.listed)
        validate.check_extra_triples(intent, view, self.schema)
        if not manner.as_it_was:
            validate.check_patterns(intent)
        described, declared, warnings = self._described(intent, view, now, manner)
        keys = conflict.keys(intent)
        if not manner.as_it_was and (same := conflict.identical(intent, keys, view)) is not None:
            return self._deduplicated(intent, same, request, view)
        conflicts, close = conflict.detect(intent, keys, view, self._is_functional, manner.under)
        conflicts = [each for each in conflicts if each.kind == "stale_supersession" or each.iri not in manner.ending]
        status = self._settle(intent, conflicts, described, manner, view)
        waits = status == triples.PROPOSED
        confirmed = permissions.confirmations(intent, view) if manner.relocates else ()
        held_back, marks = permissions.proposal_reason(
            described, intent, allowed, view, waits=waits, confirmed=confirmed
        )
        if held_back is not None:
            status, warnings = triples.PROPOSED, [*warnings, f"proposed, not asserted: {held_back}"]
        if status == triples.ASSERTED:
            validate.check_reason(intent, described, view)
        elif (same := conflict.proposed_already(intent, keys, view)) is not None:
            return self._deduplicated(intent, same, request, view)
        if status == triples.ASSERTED and self._check_waits(intent, view):
            warnings = [
                *warnings,
                "its check waits for a curator: the guard applies it once one accepts or confirms it",
            ]
        receipt = Receipt(
            iri=intent.iri or "",
            commit=None,
            version=Version(),
            status=vocab.local_name(status).lower(),
            filled={
                **normal.filled,
                **({} if signed is proposal else {"asserted_by": intent.asserted_by}),
                **({} if intent.evidence == normal.intent.evidence else {"evidence": intent.evidence}),
            },
            conflicts=tuple(conflicts),
            warnings=(
                *looks_secret,
                *warnings,
                *close,
                *(() if manner.as_it_was else _odd_moments(proposal, intent, now)),
                *_absent(manner.absent),
            ),
        )
        kept = [*described, *declared, *triples.relate(intent, status, [c.iri for c in conflicts])]
        kept += [*self._keys(intent, keys), *marks]
        kept += retry_triples(iri(receipt.iri), intent, request, receipt)
        return self.judged(receipt, kept, view)

    def _signed(self, proposal: MemoryUpdateIntent) -> MemoryUpdateIntent:
        """Return *proposal* as said by whom a door knows to speak, where it names nobody."""
        if self.speaker is None or self.speaker.by_rule or proposal.asserted_by is not None:
            return proposal
        return replace(proposal, asserted_by=self.speaker.agent)

    def declare(self, rows: Sequence[Triple], view: WriteSnapshot) -> tuple[Decision | None, list[Term]]:
        """Return what is to be kept of *rows*, descriptions of things that are no memories.

        With it come the subjects described here already, but otherwise: they are left as they are. Raises
        IntentRefused for memories, commits and what the ontology or a shape forbids.
        """
        subjects = dict.fromkeys(subject for subject, _, _ in rows)
        validate.check_declared(rows, self.schema, self.literal, validate.WRITERS_OWN - validate.BROUGHT_ALONG)
        ontology_check.check_axioms(rows, self.schema)
        looks_secret = self.screened(secrets.screen_rows(rows))
        known = {subject: set(view.about(subject)) for subject in subjects if view.types(subject)}
        otherwise = [
            subject
            for subject in known
            # typed literals are left out: a store may write them in another form
            if not {row for row in rows if row[0] == subject and "^^<" not in row[2]} <= known[subject]
        ]
        new = [row for row in rows if row[0] not in known]
        if not new:
            return None, otherwise
        warnings = [*looks_secret, *ontology_check.check_terms(new, view, self.schema, self.policy)]
        warnings += self.judge_shapes(new, view)
        receipt = Receipt(plain_value(new[0][0]), None, Version(), "asserted", {}, (), tuple(warnings))
        return self.judged(receipt, new, view), otherwise

    def append(self, rows: Sequence[Triple], view: WriteSnapshot, held: Callable[[Triple], bool]) -> Decision:
        """Return what is to be kept of *rows* in a graph without memories: what is not *held* there.

        Raises IntentRefused for memories, commits and what the ontology or a shape forbids.
        """
        validate.check_declared(rows, self.schema, self.literal, validate.WRITERS_OWN)
        ontology_check.check_axioms(rows, self.schema)
        looks_secret = self.screened(secrets.screen_rows(rows))
        new = [row for row in rows if not held(row)]
        if not new:
            return Decision(Receipt("", None, Version(), "deduplicated"))
        warnings = [*looks_secret, *ontology_check.check_terms(new, view, self.schema, self.policy)]
        ontology_check.check_appended(new, view, self.schema)
        ours = {s for s, p, o in new if p in self.schema.properties or (p == TYPE and o in self.schema.classes)}
        warnings += self.judge_shapes([row for row in new if row[0] in ours], view) if ours else []
        return self.judged(Receipt("", None, Version(), "asserted", {}, (), tuple(warnings)), new, view)

    def judged(self, receipt: Receipt, kept: Sequence[Triple], view: WriteSnapshot) -> Decision:
        """Return *kept*, with the writer's own declaration where this memory has none yet."""
        writer = [] if view.types(WRITER_AGENT) else triples.agent_stub(WRITER_AGENT, _WRITER_POLICY)
        everything = tuple(dict.fromkeys([*kept, *writer]))
        new = dict.fromkeys(subject for subject, predicate, _ in everything if predicate == TYPE)
        return Decision(receipt, everything, tuple(node for node in new if not view.types(node)))

    def judge_shapes(self, kept: list[Triple], view: WriteSnapshot) -> list[str]:
        """Return the warnings of the shapes on what *kept* says in declared terms; raises IntentRefused."""
        declared = (s for s, p, o in kept if p in self.schema.properties or (p == TYPE and o in self.schema.classes))
        focus = dict.fromkeys(declared)
        return validate.judge_shapes(kept, focus, view, self.schema.judge)

    def _faults(
        self,
        project: str,
        values: Mapping[str, Any],
        view: WriteSnapshot,
        now: datetime,
        known: KnownMemories,
        manner: SubmitOptions,
    ) -> list[Violation]:
        """Return the faults of form of an intent, of every check: each looks at what those before it left.

        A value that is refused is left out of what is checked next, and is not reported as missing.
        """

        def normal(intent: MemoryUpdateIntent) -> Normal:
            return normalize(intent, now=now, new_id=lambda: _NO_ID, schema=self.schema, literal=self.literal)

        found = _faults_of(MemoryUpdateIntent.from_dict, values)
        meant = {violation.nearest for violation in found if violation.repair is None}
        for violation in found:
            values = violation.repair(values) if violation.repair is not None else values
        given = MemoryUpdateIntent(**{name: value for name, value in values.items() if name in FIELDS})
        found += _faults_of(normal, given)
        if kind := next((fault.nearest for fault in found if fault.code == "unknown_type"), None):
            given = replace(given, type=kind)  # which the rest is judged as
            found += _faults_of(normal, given)
        intent = normal(_sound(self._signed(given), normal)).intent
        if unknown := _faults_of(resolve, intent, view, known.find):
            found += unknown
            intent = without_names(intent)
        else:
            intent = resolve(intent, view, known.find)
        left_out = meant | {violation.field for violation in found}
        if looks_secret := _faults_of(self.screened, secrets.screen(intent)):
            fields = {violation.field for violation in looks_secret}  # no other fault may show their values
            found = [*(violation for violation in found if violation.field not in fields), *looks_secret]
            intent, left_out = _without(fields, intent), left_out | fields
        missing = _faults_of(validate.require_fields, intent, project)
        found += [violation for violation in missing if violation.field not in left_out]
        found += _faults_of(validate.check_references, intent, view, self.policy, known.listed)
        found += _faults_of(validate.check_extra_triples, intent, view, self.schema)
        if not manner.as_it_was:
            found += _faults_of(validate.check_patterns, intent)
        left_out |= {violation.field for violation in found}
        if intent.type is None:  # the rules of all kinds are judged
            left_out |= {*validate.ONLY_FOR, "extra_triples"}
            intent = replace(intent, type="unknown")
        whole = _filled(_without(left_out, intent), project)
        judged = _faults_of(self._described, whole, view, now, manner)
        found += [violation for violation in judged if violation.field not in (None, *left_out)]
        return found

    def _described(
        self, intent: MemoryUpdateIntent, view: WriteSnapshot, now: datetime, manner: SubmitOptions
    ) -> tuple[list[Triple], list[Triple], list[str]]:
        """Return what the intent says, the stubs it declares and the warnings.

        Raises IntentRefused for what the ontology or a shape forbids.
        """
        described = [
            (subject, predicate, value)
            for subject, predicate, value in triples.describe(intent)
            # a memory that is named as evidence keeps the class of its type
            if not (value == _EVIDENCE and predicate == TYPE and view.is_item(subject))
        ]
        described += file_anchor_triples(iri(intent.iri or ""), intent.about, manner.blobs)
        described += ontology_check.declare_objects(intent, view, self.schema)
        declared = triples.stubs(intent, view, self.policy, now)
        item = iri(intent.iri or "")
        links = [triple for triple in triples.relate(intent, triples.ASSERTED) if triple[0] == item]
        try:
            was_kept = manner.imported or manner.as_it_was
            warnings = ontology_check.check_terms(described, view, self.schema, self.policy, keep_values=was_kept)
            warnings += self.judge_shapes([*described, *declared, *links], view)
        except IntentRefused as refusal:  # an id that was only just made says nothing to its author
            faults = [replace(fault, message=fault.message.replace(plain_value(item), "this memory"))
                      for fault in refusal.violations]  # fmt: skip
            raise IntentRefused(faults) from None
        return described, declared, warnings

    def screened(self, found: Iterable[tuple[str, secrets.SecretMatch]]) -> list[str]:
        """Return warnings of likely secrets where the policy says so; raise IntentRefused where it refuses them."""
        if self.policy.secrets == "off":
            return []
        violations = secrets.refusals(found)
        if violations and self.policy.secrets == "refuse":
            raise IntentRefused([replace(violation, hint=_STORED_ELSEWHERE) for violation in violations])
        return [violation.message for violation in violations]

    def _settle(
        self,
        intent: MemoryUpdateIntent,
        conflicts: Sequence[ConflictItem],
        described: Sequence[Triple],
        manner: SubmitOptions,
        view: WriteSnapshot,
    ) -> Term:
        """Return asserted or proposed by the policy of the kind; raise Conflict where the policy refuses."""
        if not conflicts or manner.as_it_was:
            return triples.PROPOSED if manner.propose else triples.ASSERTED
        policy = "propose" if manner.propose else self.policy.on_conflict.get(family(intent.type or ""), "refuse")
        if policy == "refuse" or any(found.kind in _NEVER_ACCEPTED for found in conflicts):
            shown = conflicts[:_SHOWN_WHOLE]
            items = {found.iri: _in_full(found.iri, view) for found in shown}
            replacing = replace(intent, **conflicts[0].resolve_with)
            needs_reason = bool(_faults_of(validate.check_reason, replacing, described, view))
            raise Conflict(conflicts, items=items, needs_reason=needs_reason)
        return triples.PROPOSED if policy == "propose" else triples.ASSERTED

    def _check_waits(self, intent: MemoryUpdateIntent, view: WriteSnapshot) -> bool:
        """Return whether *intent* brings a check for the guard that counts only once a curator accepts it."""
        said = {predicate for subject, predicate, _ in intent.extra_triples if subject == intent.iri}
        if said.isdisjoint(_CHECKS):
            return False
        curators = permissions.authority(view, self.policy).curators
        return bool(curators) and intent.asserted_by not in curators

    def _is_functional(self, prop: Term) -> bool:
        declared = self.schema.properties.get(prop)
        return declared is not None and declared.functional

    def _keys(self, intent: MemoryUpdateIntent, keys: Iterable[str]) -> list[Triple]:
        """Return the keys by which a later disagreement with *intent* is found."""
        found = [*keys]
        for slot in conflict.value_keys(intent, self._is_functional).items():
            found += slot
        return [(iri(intent.iri or ""), jido("conflictKey"), literal(key)) for key in found]

    def _deduplicated(self, intent: MemoryUpdateIntent, same: str, request: str, view: WriteSnapshot) -> Decision:
        """Return the receipt of the memory that says the same; a key is kept, so that a retry is told the same."""
        commit, version = commit_of(iri(same), view)
        authors = sorted(map(vocab.local_name, view.objects(iri(same), jido("assertedBy"))))
        said = f"{same} of {' and '.join(authors)} says this already: nothing was added, and your word for it"
        others = [f"{said} is not recorded; to record it, confirm that memory"]
        is_own = vocab.local_name(intent.asserted_by or "") in authors
        receipt = Receipt(same, commit, version, "deduplicated", warnings=() if is_own else tuple(others))
        if not intent.idempotency_key:
            return Decision(receipt)
        node = iri(f"{vocab.BASE}submissions/{self.new_id()}")
        return self.judged(receipt, submission(node, intent, request, receipt), view)


def _absent(files: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a warning for each file that is named and not there."""
    for path, near in files.items():
        yield f"about names {path}, and there is no such file" + (f"; did you mean {near}?" if near else "")


def _odd_moments(proposal: MemoryUpdateIntent, intent: MemoryUpdateIntent, now: datetime) -> Iterator[str]:
    """Yield a warning for each moment of *proposal* that is likely a mistake: an end in the past, a time to come."""
    for name, word in (("valid_until", "valid no more"), ("expires_on", "due for review at once")):
        end = parse_moment(getattr(intent, name))
        if end is not None and end <= now:
            yield f"{name} {getattr(intent, name)} is in the past: this memory is {word}"
    said = parse_moment(intent.timestamp)
    if proposal.timestamp is not None and said is not None and said > now + timedelta(days=1):
        yield f"timestamp {intent.timestamp} is in the future: it says when this came to be known"


def _faults_of(check: Callable[..., object], *given: Any) -> list[Violation]:
    """Return the faults for which *check* refuses what is *given*; none where it refuses nothing."""
    try:
        check(*given)
    except IntentRefused as refusal:
        return [*refusal.violations]
    except JidomemError as error:  # a text that is too long
        return [Violation(error.code, error.detail, hint=error.hint)]
    return []


def _together(first: Iterable[Violation], more: Iterable[Violation]) -> list[Violation]:
    """Return all violations, each once: of two of one shape about one field the first."""
    found: dict[tuple[str | None, str], Violation] = {}
    for violation in (*first, *more):
        found.setdefault((violation.field, violation.shape or violation.message), violation)
    return [*found.values()]


def _sound(intent: MemoryUpdateIntent, normal: Callable[[MemoryUpdateIntent], Normal]) -> MemoryUpdateIntent:
    """Return *intent* without the values, and the entries of lists, that *normal* refuses."""
    kind = intent.type if not _faults_of(normal, MemoryUpdateIntent(type=intent.type)) else None

    def is_sound(name: str, value: Any) -> bool:
        return not _faults_of(normal, MemoryUpdateIntent(**{"type": kind, name: value}))

    values: dict[str, Any] = {}
    for name, value in intent.fields():
        if name in LIST_FIELDS and isinstance(value, (list, tuple)):
            values[name] = [entry for entry in value if is_sound(name, [entry])]
        elif is_sound(name, value):
            values[name] = value
    return MemoryUpdateIntent(**{**values, "type": kind})


def _without(fields: Collection[str | None], intent: MemoryUpdateIntent) -> MemoryUpdateIntent:
    """Return the normal *intent* with nothing in *fields* but its type, and another id where that is one of them."""
    rest = {name: value for name, value in intent.fields() if name == "type" or name not in fields}
    return MemoryUpdateIntent(**{"iri": f"{vocab.BASE}memory/{_NO_ID}", **rest})


def _filled(intent: MemoryUpdateIntent, project: str) -> MemoryUpdateIntent:
    """Return *intent* with something in each required field that is empty, so that shapes judge the others."""
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


def _in_full(item: str, view: WriteSnapshot) -> dict[str, Any]:
    """Return all fields of a memory, its moments as they were written: a store may have shortened them."""
    said = restated_in(view, item)
    return {name: (canonical.moment(value) or value) if name in MOMENTS else value for name, value in said.items()}
