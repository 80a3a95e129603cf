"""The pipeline takes an intent through its stages: normalise, validate, conflict, triples.

`Pipeline.run` writes nothing: it reads the snapshot that is passed in, and looks names up by `find` and `ids`. It
returns the decision, the triples to append, or raises the refusal of the first stage that refuses. A refusal lists the
faults of form of every stage and, for mechanical faults, has the repaired intent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from jidomem.base.clock import parse_moment
from jidomem.errors import Conflict, ConflictItem, IntentRefused, JidomemError, NotFound, Violation
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, literal, plain_value
from jidomem.rdf.vocab import DECISIONS, TYPE, family, jido
from jidomem.records.active import FINISHED, is_due
from jidomem.records.file_anchor import file_anchor_triples
from jidomem.records.intent import (
    CONFLICT_KEY,
    INTENT_FIELDS,
    LIST_FIELDS,
    ONLY_FOR,
    MemoryUpdateIntent,
    Receipt,
    Version,
    accepted_names,
)
from jidomem.records.policy import LITERAL_LIMIT, AgentPolicy, Policy
from jidomem.schema.ontology import EffectiveRules, Schema
from jidomem.write import canonical, conflict, permissions, secrets, triples, validate
from jidomem.write.normalize import (
    MOMENT_FIELDS,
    FieldNormalizer,
    NormalIntent,
    check_entries,
    normalize,
    resolve,
    with_own_property,
    without_names,
)
from jidomem.write.snapshot import WriteSnapshot, links_to_ended
from jidomem.write.submission import (
    DEFAULT_OPTIONS,
    UNCHANGED,
    AnySubmission,
    Decision,
    IntentOrError,
    Submission,
    SubmitOptions,
    commit_of,
    first_receipt,
    request_digest,
    retry_triples,
    submission_triples,
)
from jidomem.write.triples import WRITER_AGENT, restated_in

_EVIDENCE = jido("Evidence")
#: The prefix of the warning with the reason why a memory is only proposed.
PROPOSED_PREFIX = "proposed, not asserted: "
STATUS_NAMES = {triples.ASSERTED: "asserted", triples.PROPOSED: "proposed"}
_STORED_ELSEWHERE = "leave it out, and say where it is stored; if it is not a secret, word it differently"
WRITER_POLICY = AgentPolicy("MemoryWriter", ("CanWriteMemory", "CanQueryMemory"))

#: Conflicts that are refused under every policy.
_NEVER_ACCEPTED = ("stale_supersession", "same_key")
#: The number of conflicting memories that a refusal gives in full.
_SHOWN_WHOLE = 10


def _no_ids(project: str, part: str) -> list[str]:
    return []


def _find_none(project: str, name: str) -> str:
    raise NotFound(f"{name!r} is not the IRI of a memory", hint="give its IRI")


def no_blobs(paths: Iterable[str]) -> Mapping[str, str]:
    """Return no blob id, for a root outside of a repository."""
    return {}


def none_absent(paths: Iterable[str]) -> Mapping[str, str | None]:
    """Return no absent file, for a root outside of a repository."""
    return {}


class Draft(NamedTuple):
    """An intent in its one written form, with the given `proposal`, the fields `filled` in, and warnings.

    `request` is the digest that identifies a retry, empty for an intent that leaves no receipt for one.
    """

    proposal: MemoryUpdateIntent
    intent: MemoryUpdateIntent
    filled: Mapping[str, Any]
    warnings: Sequence[str]
    request: str


class Statements(NamedTuple):
    """The triples of an intent, the declarations of things that it is the first to name, and warnings on both."""

    described: list[Triple]
    declared: list[Triple]
    warnings: Sequence[str]


class Comparison(NamedTuple):
    """The result of stage 3: the status of an intent, its conflicts, the marks of a proposal, and warnings."""

    status: Term
    conflicts: Sequence[ConflictItem]
    marks: Sequence[Triple]
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """The rules and look-ups for judging submissions.

    With `fresh_ids` a new id is unique by itself and is not looked up. `speaker` is the agent identified by a token. A
    text has at most `literal` bytes. `find` returns the IRI of the memory that a short id or another name stands for,
    else raises NotFound; `ids` returns the IRIs of those whose id begins or ends with a text. `blobs` returns the blob
    ids of files, `absent` the files that do not exist, each with the nearest existing path, `place` the path of a place
    named in another form.
    """

    rules: EffectiveRules
    new_id: Callable[[], str]
    fresh_ids: bool = False
    speaker: permissions.AuthenticatedAgent | None = None
    literal: int = LITERAL_LIMIT
    find: Callable[[str, str], str] = _find_none
    ids: Callable[[str, str], list[str]] = _no_ids
    blobs: Callable[[Iterable[str]], Mapping[str, str]] = no_blobs
    absent: Callable[[Iterable[str]], Mapping[str, str | None]] = none_absent
    place: Callable[[str], str] = str

    @property
    def schema(self) -> Schema:
        """Return the present ontology and shapes."""
        return self.rules.schema

    @property
    def policy(self) -> Policy:
        """Return the present policy of the root."""
        return self.rules.policy

    @property
    def sender(self) -> str | None:
        """Return the agent of the token, None without one."""
        return self.speaker.agent if self.speaker is not None else None

    def is_holder(self, agent: Term) -> bool:
        """Return whether *agent* has a token, which tells what it says from what others say of it."""
        return self.speaker is not None and any(self.node(name, "agents") == agent for name in self.speaker.holders())

    def check_speaker(self) -> None:
        """Raise the refusal of the `check` of the speaker, called before each submission is judged."""
        if self.speaker is not None and self.speaker.check is not None:
            self.speaker.check()

    def submission(self, project: str, intent: IntentOrError, options: SubmitOptions = DEFAULT_OPTIONS) -> Submission:
        """Return the submission of *intent*, with the blob ids of the files that it is about unless *options* has them.

        It reads files, so it is called before the submission waits for the lock, but for an intent that depends on the
        outcomes before it: that one is made under the lock.
        """
        about = paths_about(intent) if getattr(intent, "about", True) else ()
        return Submission(project, intent, self._with_files(about, options) if about else options)

    def _with_files(self, about: Sequence[str], options: SubmitOptions) -> SubmitOptions:
        """Return *options* with the blob ids of the files in *about*, the absent ones, and the paths to respell."""
        respelt = {entry: path for entry in about if (path := self.place(entry)) != entry}
        about = [respelt.get(entry, entry) for entry in about]
        blobs = self.blobs(about) if options.blobs is None else options.blobs
        absent = self.absent(path for path in about if path not in blobs)
        return replace(options, blobs=blobs, absent=absent, respelt=respelt)

    def run(self, submission: AnySubmission, view: WriteSnapshot, now: datetime, *, repairs: bool = True) -> Decision:
        """Return the triples to append for *submission* and its receipt, or raise the first refusal of a stage.

        With *repairs* a refusal has the faults of form of all stages, and the repaired intent if it passes every
        stage.
        """
        if not isinstance(submission, Submission):
            return submission.decide(self, view, now)
        options = submission.options
        try:
            draft = self._normalise(submission, view, now)
            permissions.check_author(draft.intent.asserted_by, view, self.rules.policy, self.speaker)
            if draft.request and (first := first_receipt(draft.intent, draft.request, view, self.sender)) is not None:
                return Decision(first)
            draft, permission = self._validate(draft, submission, view)
            intent, statements = draft.intent, self.describe(draft.intent, options, view, now)
            keys = conflict.keys(intent)
            same = None if options.restates else conflict.identical(intent, keys, view)
            if same is None or not options.is_judged_by(intent, same):
                comparison = self._compare(intent, keys, statements, permission, options, view, now)
                if comparison.status == triples.PROPOSED:
                    same = conflict.proposed_already(intent, keys, view)
            if same is not None and options.is_judged_by(intent, same):
                return self._deduplicated(draft, same, view)
            return self._decide(draft, keys, statements, comparison, options, view, now)
        except IntentRefused as refusal:
            if not repairs:
                raise
            raise refusal_with_repair(self, submission, refusal, view, now) from None

    def _normalise(self, submission: Submission, view: WriteSnapshot, now: datetime) -> Draft:
        """Stage 1: return the intent in its one written form, without secrets."""
        proposal = submission.intent
        if isinstance(proposal, JidomemError):
            raise proposal
        if not isinstance(proposal, MemoryUpdateIntent):
            proposal = MemoryUpdateIntent.from_dict(proposal)
        given = proposal  # its digest is that of a retry, whether the files are still there or not
        if respelt := submission.options.respelt:
            proposal = replace(proposal, about=[respelt.get(path, path) for path in proposal.about])
        if not submission.options.restates:
            check_entries(proposal)
        with_author = self.with_author(proposal)
        normal = normalize(with_author, now=now, new_id=self.new_id, schema=self.rules.schema, literal=self.literal)
        intent, filled = normal.intent, dict(normal.filled)
        warnings = self.screen_secrets(secrets.screen(intent))
        if self.fresh_ids and "iri" in filled:
            view.add_new(iri(intent.iri or ""), ())
        if with_author is not proposal:
            filled["asserted_by"] = intent.asserted_by
        request = request_digest(given, submission.options.request) if intent.idempotency_key else ""
        return Draft(proposal, intent, filled, warnings, request)

    def _validate(
        self, draft: Draft, submission: Submission, view: WriteSnapshot
    ) -> tuple[Draft, permissions.Permission]:
        """Stage 2: return the intent with memories named by their IRIs, and the permission of its author.

        Its fields and references are checked here, its terms and the shapes by `describe`.
        """
        project, options, schema = submission.project, submission.options, self.rules.schema
        intent = resolve(draft.intent, view, partial(self.find, project))
        permission = permissions.permitted(intent, view, self.rules, self.speaker)
        ids, is_recorded = partial(self.ids, project), intent.iri in options.recorded
        if not is_recorded:
            intent = permissions.check_promotion(intent, view, permission.judge if permission.is_curator else None)
        validate.require_fields(intent, project)
        attributed = options.attributed(intent) if is_recorded else intent
        validate.check_references(attributed, view, self.rules, ids, is_recorded=is_recorded)
        if intent.about and not (options.restates or options.imported):
            validate.check_separators(intent)
        if intent.extra_triples:
            validate.check_extra_triples(intent, view, schema)
            if not options.restates:
                validate.check_patterns(intent)
        resolved = {} if intent.evidence == draft.intent.evidence else {"evidence": intent.evidence}
        return draft._replace(intent=intent, filled={**draft.filled, **resolved}), permission

    def _compare(
        self,
        intent: MemoryUpdateIntent,
        keys: Mapping[str, str],
        statements: Statements,
        permission: permissions.Permission,
        options: SubmitOptions,
        view: WriteSnapshot,
        now: datetime,
    ) -> Comparison:
        """Stage 3: return whether the intent is asserted or proposed beside the active memories; raises Conflict."""
        conflicts, close = conflict.detect(intent, keys, view, now, self._is_functional, options.under)
        conflicts = conflicts and [one for one in conflicts if options.is_open(intent, one, view)]
        status = self._status(intent, conflicts, statements.described, options, view)
        confirmed = permissions.confirmations(intent, view) if options.relocates else ()
        proposed_because, marks = permissions.proposal_reason(
            statements.described, intent, permission, view, waits=status == triples.PROPOSED, confirmed=confirmed
        )
        if options.near and proposed_because is None and status == triples.ASSERTED:
            proposed_because, near_marks = permissions.near_reason(intent, options.near, view)
            marks = marks if proposed_because is None else near_marks
        warnings = [] if proposed_because is None else [f"{PROPOSED_PREFIX}{proposed_because}"]
        status = triples.PROPOSED if warnings else status
        if status == triples.ASSERTED and intent.iri not in options.recorded:
            permissions.check_reason(intent, statements.described, view)
        if intent.extra_triples:
            is_asserted, policy = status == triples.ASSERTED, self.rules.policy
            warnings += permissions.check_warnings(intent, permission.judge, view, policy, is_asserted=is_asserted)
        if permission.judge not in (None, intent.asserted_by):
            marks = [*marks, *permissions.settlement(intent, permission.judge or "", view, self.rules.policy)]
        return Comparison(status, conflicts, marks, [*warnings, *close])

    def _decide(
        self,
        draft: Draft,
        keys: Iterable[str],
        statements: Statements,
        comparison: Comparison,
        options: SubmitOptions,
        view: WriteSnapshot,
        now: datetime,
    ) -> Decision:
        """Stage 4: return the triples to append and the receipt."""
        intent, conflicts = draft.intent, comparison.conflicts
        warnings = [*draft.warnings, *statements.warnings, *comparison.warnings]
        if not options.restates:
            warnings += [*_moment_warnings(draft.proposal, intent, now), *links_to_ended(intent, view)]
            if len(intent.summary or "") >= validate.LONG_SUMMARY:
                warnings.append(validate.LONG_SUMMARY_WARNING.format(len(intent.summary or "")))
        if intent.assigned_to:
            warnings += triples.misspelt_agents([intent.assigned_to], view)
        warnings += _absent_warnings(options.absent) if options.absent else ()
        if "\\" in "".join(intent.about) and not (options.restates or options.imported):
            warnings += canonical.separator_warnings(intent.about)
        warnings += [f"about names {path}: it is stored as {near}" for path, near in options.respelt.items()]
        rows, item = [*statements.described, *statements.declared], intent.iri or ""
        if not options.imported and (intent.supersedes or intent.revives):
            is_proposed = comparison.status == triples.PROPOSED
            rows, confirming = permissions.with_first_author(intent, rows, view, is_proposed=is_proposed)
            if draft.proposal.timestamp is None:  # else it is a correction, which carries the date of the memory
                warnings += confirming
        status = STATUS_NAMES[comparison.status]
        receipt = Receipt(item, None, Version(), status, draft.filled, tuple(conflicts), tuple(warnings))
        rows += triples.relate(intent, comparison.status, [each.iri for each in conflicts] if conflicts else ())
        records = comparison.marks
        if options.recorded:
            rows, records = options.with_records(item, rows, records, view, self.literal)
            warnings += self.screen_secrets(secrets.screen_rows(records))
        rows += [*self._key_triples(intent, keys, options, view), *records]
        if draft.request:
            rows += retry_triples(iri(receipt.iri), intent, draft.request, receipt)
        return self.decision(receipt, rows, view)

    def node(self, name: str, folder: str) -> Term:
        """Return the IRI of an agent or session, given by IRI or name; raises IntentRefused `invalid_iri`."""
        field, normalizer = folder.removesuffix("s"), FieldNormalizer(self.rules.schema, self.literal)
        name = normalizer.reference(field, normalizer.text(field, name), folder)
        if normalizer.violations:
            raise IntentRefused(normalizer.violations)
        return iri(name)

    def stubs(self, agents: Iterable[Term], project: Term, view: WriteSnapshot) -> list[Triple]:
        """Return the declarations of the project and the agents that have none yet."""
        return triples.participant_stubs(agents, project, view, self.rules.policy)

    def check_other_write(self, thing: str, agent: Term, view: WriteSnapshot, field: str = "agent") -> None:
        """Raise PolicyDenied unless *agent*, given as *field*, may write *thing*, which is no memory."""
        permissions.check_other_write(thing, plain_value(agent), view, self.rules.policy, self.speaker, field)

    def with_author(self, proposal: MemoryUpdateIntent) -> MemoryUpdateIntent:
        """Return *proposal* with the agent of the token as its author, if it names none."""
        if self.speaker is None or self.speaker.by_rule or proposal.asserted_by is not None:
            return proposal
        return replace(proposal, asserted_by=self.speaker.agent)

    def declare(self, rows: Sequence[Triple], view: WriteSnapshot) -> tuple[Decision | None, list[Term]]:
        """Return the decision on *rows*, descriptions of things that are no memories.

        Also returns the subjects that already have a different description here; these stay as they are. Raises
        IntentRefused for memories, commits and rows that the ontology or a shape forbids.
        """
        subjects = dict.fromkeys(subject for subject, _, _ in rows)
        forbidden = validate.WRITER_RECORDS - validate.EXPORTED_RECORDS
        validate.check_declared(rows, self.rules.schema, self.literal, forbidden)
        validate.check_axioms(rows, self.rules.schema)
        looks_secret = self.screen_secrets(secrets.screen_rows(rows))
        known = {subject: set(view.about(subject)) for subject in subjects if view.types(subject)}
        differing = [
            subject
            for subject in known
            # typed literals are left out: a store may write them in another form
            if not {row for row in rows if row[0] == subject and "^^<" not in row[2]} <= known[subject]
        ]
        new = [row for row in rows if row[0] not in known]
        if not new:
            return None, differing
        warnings = [*looks_secret, *validate.check_terms(new, view, self.rules.schema, self.rules.policy)]
        warnings += validate.judge_shapes(new, view, self.rules.schema)
        receipt = Receipt(plain_value(new[0][0]), None, Version(), "asserted", {}, (), tuple(warnings))
        return self.decision(receipt, new, view), differing

    def append(self, rows: Sequence[Triple], view: WriteSnapshot, known: Callable[[Triple], bool]) -> Decision:
        """Return the decision on *rows* for a graph without memories, of which the *known* triples are not appended.

        Raises IntentRefused for memories, commits and rows that the ontology or a shape forbids.
        """
        validate.check_declared(rows, self.rules.schema, self.literal, validate.WRITER_RECORDS)
        validate.check_axioms(rows, self.rules.schema)
        looks_secret = self.screen_secrets(secrets.screen_rows(rows))
        new = [row for row in rows if not known(row)]
        if not new:
            return UNCHANGED
        warnings = [*looks_secret, *validate.check_terms(new, view, self.rules.schema, self.rules.policy)]
        validate.check_appended(new, view, self.rules.schema)
        own_subjects = {
            s for s, p, o in new if p in self.rules.schema.properties or (p == TYPE and o in self.rules.schema.classes)
        }
        if judged := [row for row in new if row[0] in own_subjects]:
            warnings += validate.judge_shapes(judged, view, self.rules.schema)
        return self.decision(Receipt("", None, Version(), "asserted", {}, (), tuple(warnings)), new, view)

    def decision(self, receipt: Receipt, rows: Sequence[Triple], view: WriteSnapshot) -> Decision:
        """Return the decision to append *rows*, with the declaration of the writer if the project has none yet."""
        writer = [] if view.types(WRITER_AGENT) else triples.agent_stub(WRITER_AGENT, WRITER_POLICY)
        everything = tuple(dict.fromkeys([*rows, *writer]))
        new = dict.fromkeys([subject for subject, predicate, _ in everything if predicate == TYPE])
        return Decision(receipt, everything, tuple([node for node in new if not view.types(node)]))

    def describe(
        self, intent: MemoryUpdateIntent, options: SubmitOptions, view: WriteSnapshot, now: datetime
    ) -> Statements:
        """Stage 2, continued: return the statements of the intent.

        Raises IntentRefused for statements that the ontology or a shape forbids.
        """
        described = [
            (subject, predicate, value)
            for subject, predicate, value in triples.describe(intent)
            # a memory that is named as evidence keeps the class of its type
            if not (value == _EVIDENCE and predicate == TYPE and view.is_item(subject))
        ]
        schema, item = self.rules.schema, iri(intent.iri or "")
        if intent.about and intent.iri not in options.recorded:
            described += file_anchor_triples(item, intent.about, options.blobs or {})
        if intent.extra_triples:
            described += validate.declare_objects(intent, view, schema)
        declared, ended = triples.stubs(intent, view, self.rules.policy, now)
        links = [triple for triple in triples.relate(intent, triples.ASSERTED) if triple[0] == item]
        try:
            keep_values = options.imported or options.restates
            warnings = validate.check_terms(described, view, schema, self.rules.policy, keep_values=keep_values)
            warnings += validate.judge_shapes([*described, *declared, *links], view, self.rules.schema)
            warnings += [] if keep_values else ended
        except IntentRefused as refusal:  # the author does not know the new id
            faults = [replace(fault, message=fault.message.replace(plain_value(item), "this memory"))
                      for fault in refusal.violations]  # fmt: skip
            raise IntentRefused(faults) from None
        return Statements(described, declared, warnings)

    def screen_secrets(self, matches: Iterable[tuple[str, secrets.SecretMatch]]) -> list[str]:
        """Return warnings of likely secrets if the policy is to warn; raise IntentRefused if it is to refuse them."""
        policy = self.rules.policy.secrets
        violations = [] if policy == "off" else secrets.refusals(matches)
        if violations and policy == "refuse":
            raise IntentRefused([replace(violation, hint=_STORED_ELSEWHERE) for violation in violations])
        return [violation.message for violation in violations] if violations else []

    def _status(
        self,
        intent: MemoryUpdateIntent,
        conflicts: Sequence[ConflictItem],
        described: Sequence[Triple],
        options: SubmitOptions,
        view: WriteSnapshot,
    ) -> Term:
        """Return asserted or proposed, by the policy for conflicts of the kind; raise Conflict if it is to refuse."""
        if not conflicts or options.restates:
            return triples.PROPOSED if options.propose else triples.ASSERTED
        on_conflict = self.rules.policy.on_conflict.get(family(intent.type or ""), "refuse")
        policy = "propose" if options.propose else on_conflict
        if policy == "refuse" or any(each.kind in _NEVER_ACCEPTED for each in conflicts):
            items = {each.iri: _full_fields(each.iri, view) for each in conflicts[:_SHOWN_WHOLE]}
            conflicts = [
                conflict.with_differing_fields(each, intent, items[each.iri]) if each.iri in items else each
                for each in conflicts
            ]
            replacing = replace(intent, **conflicts[0].resolve_with)
            needs_reason = bool(faults_of(permissions.check_reason, replacing, described, view))
            raise Conflict(conflicts, items=items, needs_reason=needs_reason)
        return triples.PROPOSED if policy == "propose" else triples.ASSERTED

    def _is_functional(self, prop: Term) -> bool:
        declared = self.rules.schema.properties.get(prop)
        return declared is not None and declared.functional

    def _key_triples(
        self, intent: MemoryUpdateIntent, keys: Iterable[str], options: SubmitOptions, view: WriteSnapshot
    ) -> list[Triple]:
        """Return the conflict keys of *intent*, by which later submissions find it."""
        all_keys = [*keys]
        for slot in conflict.value_keys(intent, self._is_functional).items() if intent.extra_triples else ():
            all_keys += slot
        if intent.invalidates and not options.has_judgement(intent.iri):
            all_keys += triples.end_keys(intent, view)
        return [(iri(intent.iri or ""), CONFLICT_KEY, literal(key)) for key in all_keys]

    def _deduplicated(self, draft: Draft, same: str, view: WriteSnapshot) -> Decision:
        """Return the receipt of the identical memory *same*; a retry with its key gets the same receipt."""
        intent = draft.intent
        commit, version = commit_of(iri(same), view)
        authors = sorted(map(vocab.local_name, view.objects(iri(same), jido("assertedBy"))))
        text = f"{same} of {' and '.join(authors)} says this already: nothing was added; to agree: jidomem edit {same}"
        is_own = vocab.local_name(intent.asserted_by or "") in authors
        receipt = Receipt(same, commit, version, "deduplicated", warnings=() if is_own else (f"{text} --confirm",))
        if not draft.request:
            return Decision(receipt)
        node = iri(f"{vocab.BASE}submissions/{self.new_id()}")
        return self.decision(receipt, submission_triples(node, intent, draft.request, receipt), view)


def _absent_warnings(files: Mapping[str, str | None]) -> Iterator[str]:
    for path, nearest in files.items():
        lack = "no file matches it" if "*" in path else "there is no such file"
        yield f"about names {path}, and {lack}" + (f"; did you mean {nearest}?" if nearest else "")


def _moment_warnings(proposal: MemoryUpdateIntent, intent: MemoryUpdateIntent, now: datetime) -> Iterator[str]:
    """Yield a warning for each likely mistake in a moment of *proposal*: an end in the past, a future timestamp."""
    is_over, is_task = intent.status in FINISHED, family(intent.type or "") == "task"
    due = "overdue" if is_task else "due for review at once"
    for name, word in (("valid_until", "valid no more"), ("expires_on", due)):
        end = parse_moment(getattr(intent, name))
        if end is not None and is_due(end, now, is_task=is_task and name == "expires_on") and not is_over:
            yield f"{name} {getattr(intent, name)} is in the past: this memory is {word}"
    timestamp = parse_moment(intent.timestamp) if proposal.timestamp is not None else None
    if timestamp is not None and timestamp > now + timedelta(days=1):
        yield f"timestamp {intent.timestamp} is in the future; if this is true only from then on: give `valid_from`"


def _full_fields(item: str, view: WriteSnapshot) -> dict[str, Any]:
    """Return all fields of a memory, with full moments: a store may have shortened them."""
    fields = restated_in(view, item)
    moments = {name: canonical.moment(fields[name]) for name in MOMENT_FIELDS if name in fields}
    return fields | {name: moment for name, moment in moments.items() if moment}


def paths_about(proposal: IntentOrError) -> list[str]:
    """Return the texts in the about of *proposal*, which may be any value."""
    about: Any = proposal.get("about") if isinstance(proposal, Mapping) else getattr(proposal, "about", None)
    return [entry for entry in about if isinstance(entry, str)] if about and isinstance(about, (list, tuple)) else []


#: The most rounds of repair and judgement.
ROUNDS = 6
#: The id of an intent that is judged for its faults only.
_NO_ID = "00000000-0000-7000-8000-000000000000"


def refusal_with_repair(
    pipeline: Pipeline, submission: Submission, refusal: IntentRefused, view: WriteSnapshot, now: datetime
) -> IntentRefused:
    """Return *refusal* with the faults of form of every stage, and with the repaired intent if there is one."""
    intent = submission.intent
    assert not isinstance(intent, JidomemError)
    values: Mapping[str, Any] = intent.to_dict() if isinstance(intent, MemoryUpdateIntent) else accepted_names(intent)

    def judged_again(repaired: Mapping[str, Any]) -> None:
        again = pipeline.run(submission._replace(intent=repaired), view, now, repairs=False)
        triples.check_round_trip(again.triples)

    if (named := [with_own_property(fault, pipeline.schema) for fault in refusal.violations]) != [*refusal.violations]:
        refusal = IntentRefused(named)
    repaired = repaired_values(values, refusal, judged_again)
    faults = _unique(refusal.violations, _FormCheck(pipeline, submission, view, now).faults(values))
    if repaired is None and faults == [*refusal.violations]:
        return refusal
    return IntentRefused(faults, fixed_intent=repaired)


def repaired_values(
    values: Mapping[str, Any], refusal: IntentRefused, judge: Callable[[Mapping[str, Any]], object]
) -> dict[str, Any] | None:
    """Return *values* repaired so that *judge* accepts them, None when a person has to decide.

    One refusal may hide the next, so repair and judgement alternate; the result has passed every stage.
    """
    repaired = dict(values)
    for _ in range(ROUNDS):
        for violation in refusal.violations:
            if violation.repair is None:
                return None
            repaired = violation.repair(repaired)
        try:
            judge(repaired)
        except IntentRefused as next_refusal:
            refusal = next_refusal
        except JidomemError:
            return None
        else:
            return {name: value for name, value in repaired.items() if value not in (None, [])}
    return None


class _FormCheck(NamedTuple):
    """The faults of form of an intent, found by every check: each sees the fields that earlier checks accepted."""

    pipeline: Pipeline
    submission: Submission
    view: WriteSnapshot
    now: datetime

    def faults(self, values: Mapping[str, Any]) -> list[Violation]:
        """Return the faults of the intent *values*.

        A refused value is left out of the following checks, and is not reported as missing.
        """
        pipeline, view, project = self.pipeline, self.view, self.submission.project
        find, values = partial(pipeline.find, project), accepted_names(values)
        faults = [with_own_property(one, pipeline.schema) for one in faults_of(MemoryUpdateIntent.from_dict, values)]
        intended = {violation.nearest for violation in faults if violation.repair is None}
        for violation in faults:
            values = violation.repair(values) if violation.repair is not None else values
        given = MemoryUpdateIntent(**{name: value for name, value in values.items() if name in INTENT_FIELDS})
        faults += faults_of(self._normal, given)
        if kind := next((fault.nearest for fault in faults if fault.code == "unknown_type"), None):
            given = replace(given, type=kind)  # the following checks use this type
            faults += faults_of(self._normal, given)
        intent = self._normal(_valid_part(pipeline.with_author(given), self._normal)).intent
        unknown = faults_of(resolve, intent, view, find)
        faults += unknown
        intent = without_names(intent) if unknown else resolve(intent, view, find)
        left_out = intended | {violation.field for violation in faults}
        if looks_secret := faults_of(pipeline.screen_secrets, secrets.screen(intent)):
            fields = {violation.field for violation in looks_secret}  # no other fault may show their values
            faults = [*(violation for violation in faults if violation.field not in fields), *looks_secret]
            intent, left_out = _without(fields, intent), left_out | fields
        missing = faults_of(validate.require_fields, intent, project)
        faults += [violation for violation in missing if violation.field not in left_out]
        faults += faults_of(validate.check_references, intent, view, pipeline.rules, partial(pipeline.ids, project))
        faults += faults_of(validate.check_extra_triples, intent, view, pipeline.schema)
        if not self.submission.options.restates:
            faults += faults_of(validate.check_patterns, intent)
        left_out |= {violation.field for violation in faults}
        if intent.type is None:  # the rules of all kinds are judged
            left_out |= {*ONLY_FOR, "extra_triples"}
            intent = replace(intent, type="unknown")
        complete = _filled(_without(left_out, intent), project)
        judged = faults_of(pipeline.describe, complete, self.submission.options, view, self.now)
        return faults + [violation for violation in judged if violation.field not in (None, *left_out)]

    def _normal(self, intent: MemoryUpdateIntent) -> NormalIntent:
        schema, literal = self.pipeline.schema, self.pipeline.literal
        return normalize(intent, now=self.now, new_id=lambda: _NO_ID, schema=schema, literal=literal)


def faults_of(check: Callable[..., object], *arguments: Any) -> list[Violation]:
    """Return the faults for which *check* refuses *arguments*; an empty list if it accepts them."""
    try:
        check(*arguments)
    except IntentRefused as refusal:
        return [*refusal.violations]
    except JidomemError as error:  # a text that is too long
        return [Violation(error.code, error.detail, field=getattr(error, "field", None), hint=error.hint)]
    return []


def _unique(first: Iterable[Violation], more: Iterable[Violation]) -> list[Violation]:
    """Return all violations, each once: of two with one field and shape the first; extra triples are many fields."""
    unique: dict[tuple[str | None, str], Violation] = {}
    for violation in (*first, *more):
        shape = violation.shape if violation.field != "extra_triples" else None
        unique.setdefault((violation.field, shape or violation.message), violation)
    return [*unique.values()]


def _valid_part(intent: MemoryUpdateIntent, normal: Callable[[MemoryUpdateIntent], NormalIntent]) -> MemoryUpdateIntent:
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
    """Return the normal *intent* without *fields* except its type; a removed iri is replaced by a placeholder."""
    own = f"{vocab.BASE}memory/{_NO_ID}" if "iri" in fields else intent.iri
    rows = [(own if subject == intent.iri else subject, *row) for subject, *row in intent.extra_triples]
    rest = {**dict(intent.fields()), "extra_triples": rows, "iri": own}
    return MemoryUpdateIntent(**{name: rest[name] for name in rest if name in ("type", "iri") or name not in fields})


def _filled(intent: MemoryUpdateIntent, project: str) -> MemoryUpdateIntent:
    """Return *intent* with a value in each empty required field, so that shapes judge the others."""
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
