"""The MemoryWriter writes all memories of a project; it is made of parts for the kinds of writes.

Redaction and quarantine append their own records to the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Literal, Self, TypedDict, Unpack, overload

from jidomem.base.clock import Sources, new_id
from jidomem.errors import Conflict, IntentRefused, JidomemError
from jidomem.index.follower import IndexFollower
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, plain_value
from jidomem.records.active import REASON
from jidomem.records.intent import (
    INTENT_FIELDS,
    Receipt,
    Version,
    intended_field,
    unknown_fields,
    with_accepted_names,
    with_own_properties,
)
from jidomem.records.policy import LITERAL_LIMIT, AccessPolicy, role_named
from jidomem.schema.ontology import EffectiveRules
from jidomem.write import permissions
from jidomem.write.batch import Batches, IntentPlan, SubmissionResults
from jidomem.write.conflict import NEARBY, UniqueKey
from jidomem.write.context import Similar, SimilarQuestion, SimilarSearch, WriteContext
from jidomem.write.conversation import ConversationWriter
from jidomem.write.corrections import Corrections
from jidomem.write.group_commit import CommitQueues, receipt_of
from jidomem.write.normalize import with_own_property
from jidomem.write.other_writes import Descriptions, WorkSessions
from jidomem.write.pipeline import Pipeline, no_blobs, none_absent
from jidomem.write.rollback import Rollbacks
from jidomem.write.settlement import Settlement, Settlements
from jidomem.write.submission import IntentInput, IntentOrError, Outcome, Records, SubmitOptions
from jidomem.write.triples import WRITER_AGENT

#: The seconds for which a receipt waits for similar memories after a search that was late, until one is in time.
_WITHIN_IF_LATE = 0.1
#: The warning of a memory that the policy would make a proposal if it is similar to another.
_NOT_COMPARED = "similar memories were not looked up in time: it is recorded without the comparison of on_similar"


class _ManyOptions(TypedDict, total=False):
    propose: bool
    imported: bool
    recorded: Mapping[str, Records] | None


class MemoryWriter(Descriptions, WorkSessions, ConversationWriter, Rollbacks):
    """All writes: intents, corrections, settlements, rollback, policy, sessions, entries and descriptions."""

    def __init__(
        self,
        follower: IndexFollower,
        rules: EffectiveRules,
        sources: Sources,
        *,
        agent: str,
        owner: str,
        session: str | None,
        find: Callable[[str, str], str],
        ids: Callable[[str, str], list[str]],
        literal: int = LITERAL_LIMIT,
        blobs: Callable[[Iterable[str]], Mapping[str, str]] = no_blobs,
        absent: Callable[[Iterable[str]], Mapping[str, str | None]] = none_absent,
        place: Callable[[str], str] = str,
        projects: Callable[[], Sequence[str]] = tuple,
        search: SimilarSearch | None = None,
    ) -> None:
        """Write to the journal of *follower*, under *rules*.

        *agent* and *session* are the author of writes that name none; *owner* is the user who may name the first
        curator. A text has at most *literal* bytes. *find* returns the IRI of the memory of a project that a short id
        or another name stands for, else raises NotFound; *ids* returns those whose id begins or ends with a text.
        *blobs* returns the blob ids of the files that a memory is about; *absent* returns the files that do not exist,
        each with the nearest existing path; *place* returns the path of a place named in another form. *projects*
        returns the projects of the root: the first receipt of a further project has a warning. *search* finds the
        memories that a new one is similar to.
        """
        pipeline = Pipeline(
            rules,
            sources.new_id,
            fresh_ids=sources.new_id is new_id,
            literal=literal,
            find=find,
            ids=ids,
            blobs=blobs,
            absent=absent,
            place=place,
        )
        queues = CommitQueues(follower, sources, rules, projects)
        self._build(WriteContext(agent, owner, session, pipeline, queues, search))

    def _build(self, context: WriteContext) -> None:
        self._context = context
        self._pipeline, self._queues = context.pipeline, context.queues
        self._batches = Batches(context)
        self._corrections = Corrections(context)
        self._settlements = Settlements(context, self._corrections, self._batches)

    def _with(self, context: WriteContext) -> Self:
        """Return a writer of the same queues with another author."""
        writer = object.__new__(type(self))
        writer._build(context)
        return writer

    # the author

    @property
    def agent(self) -> str:
        """Return the agent of writes that name none."""
        return self._context.agent

    @agent.setter
    def agent(self, name: str) -> None:
        self._build(self._context._replace(agent=name))

    @property
    def session(self) -> str:
        """Return the session of writes that name none: the configured session, else a daily session of the agent."""
        return self._context.session

    @property
    def literal(self) -> int:
        """Return the maximal number of bytes of a text."""
        return self._pipeline.literal

    @property
    def waiting(self) -> int:
        """Return the number of pending submissions."""
        return self._queues.waiting

    def acting_as(
        self,
        agent: str,
        role: str,
        on_commit: Callable[[str], object] | None = None,
        check: Callable[[], object] | None = None,
        holders: Callable[[], Collection[str]] = tuple,
    ) -> Self:
        """Return this writer for *agent*, which a server identified by a token, in *role*.

        *role* replaces the role that the project gives the agent; with `agent` that role stays, unless it is a
        curator's. An agent that is no curator writes in its own name only. *on_commit* is called with the id of each
        commit of this writer, whatever author it names. *check* is called before each submission is judged, also in
        the middle of a batch, and raises its refusal. *holders* returns the agents with a token: no other token but a
        curator's records what they asked. Raises InvalidRequest for an unknown role.
        """
        own_role = None if role == "agent" else role_named(role)
        node = plain_value(self._pipeline.node(agent, "agents"))
        speaker = permissions.AuthenticatedAgent(node, own_role, on_commit=on_commit, check=check, holders=holders)
        return self._with(self._context._replace(agent=agent, pipeline=replace(self._pipeline, speaker=speaker)))

    def speaking_for(self, agent: str) -> Self:
        """Return this writer with *agent* as the author of writes that name none, also in the texts of refusals."""
        return self._with(self._context._replace(agent=agent))

    def by_rule(self) -> Self:
        """Return this writer for confirmations by a rule of the policy: in its own name, exempt from other rules."""
        speaker = permissions.AuthenticatedAgent(plain_value(WRITER_AGENT), "MemoryWriter", by_rule=True)
        pipeline = replace(self._pipeline, speaker=speaker)
        return self._with(self._context._replace(agent=vocab.local_name(WRITER_AGENT), pipeline=pipeline))

    def agent_iri(self) -> Term:
        """Return the IRI of the agent of writes that name none; raises IntentRefused for an invalid name."""
        return self._context.agent_node

    def session_iri(self, name: str) -> Term:
        """Return the IRI of a session, given by its name or IRI; raises IntentRefused for an invalid name."""
        return self._pipeline.node(name, "sessions")

    def speaker_iri(self, name: str | None) -> Term | None:
        """Return the IRI of an agent or a person, None for None; raises IntentRefused for an invalid name."""
        return None if name is None else self._pipeline.node(name, "agents")

    def refresh(self, project_id: str) -> Version:
        """Apply the commits of other writers to the index of *project_id*; return the version reached."""
        return self._queues.refresh(project_id)

    # intents

    def submit_intent(
        self,
        project_id: str,
        intent: IntentInput,
        *,
        dry_run: bool = False,
        propose: bool = False,
        blobs: Mapping[str, str] | None = None,
        under: UniqueKey | None = None,
    ) -> Receipt:
        """Return the receipt of *intent*, which is then durable; with *dry_run* judge it and append nothing.

        With *propose* the memory waits for a curator, and may disagree with active memories. *blobs* are blob ids of
        the files that it is about, by path, in place of their present ones. An active memory *under* a unique key that
        is not among the known ones is a conflict, also when another writer added it in the meantime. Without such a
        key `similar` of the receipt has the active memories that the new one repeats or is near to.

        Raises IntentRefused (with `violations` and, for mechanical faults, `fixed_intent`), Conflict,
        IdempotencyMismatch, NotFound `invalid_project` or `unknown_project`, Busy, Failed `write_failed` or
        JournalDamaged; then nothing was written.
        """
        options = SubmitOptions(blobs, propose, under=under)
        search = self._context.search if under is None else None
        near: Similar = ()
        treatment = "off" if search is None else search.default
        if search is not None and self._pipeline.rules.policy.on_similar:
            treatment = search.treatment(intent)
        if search is not None and treatment == "propose":
            near = self._similar(search, project_id, intent, None)
            options = replace(options, near=tuple(each.id for each in near or ()))
        submission = self._pipeline.submission(project_id, intent, options)
        queue = self._queues.of(project_id)
        if dry_run:
            receipt, is_new = queue.dry_run_one(self._pipeline, submission), False
        else:
            (served,) = queue.submit(self._pipeline, [submission])
            receipt, is_new = served.receipt(), served.commit is not None
        if search is None or treatment == "off" or receipt.status == "deduplicated":
            return receipt
        if near is None and receipt.status == "asserted" and (is_new or dry_run):
            receipt = replace(receipt, warnings=(*receipt.warnings, _NOT_COMPARED))
        receipt = self._with_similar(search, project_id, intent, receipt)
        if receipt.status == "proposed" and is_new:
            search.judge(project_id, intent, receipt)
        return receipt

    def _compared(self, project_id: str, receipt: Receipt) -> Receipt:
        """Return the *receipt* of a correction with the memories similar to the new one; that of a dry run as it is."""
        search = self._context.search
        if search is None or receipt.commit is None or receipt.status == "deduplicated":
            return receipt
        intent = self.restated(project_id, receipt.iri)
        return receipt if search.treatment(intent) == "off" else self._with_similar(search, project_id, intent, receipt)

    def _with_similar(self, search: SimilarSearch, project_id: str, intent: IntentInput, receipt: Receipt) -> Receipt:
        """Return *receipt* with the memories similar to *intent*, and the warnings of those that ended."""
        similar, warnings = self._similar(search, project_id, intent, receipt), receipt.warnings
        for each in reversed(similar or ()):
            if each.note and each.warning:
                warnings = each.warning, *warnings
        if similar and warnings:  # a decision about the same file is among them already
            ids = {each.id for each in similar}
            warnings = tuple(each for each in warnings if each.partition(NEARBY)[0] not in ids)
        return replace(receipt, warnings=warnings, similar=similar)

    def _similar(self, search: SimilarSearch, project_id: str, intent: IntentInput, receipt: Receipt | None) -> Similar:
        """Return the memories similar to *intent*; None if they are not found in time, or too many searches run.

        They are searched in another thread, as an embedder may be slow and another process may lock the search file.
        An interrupt ends the wait for those of a durable memory, whose receipt is returned; the next one is raised.
        """
        if not search.slots.acquire(blocking=False):
            return None
        answer: SimpleQueue[Similar] = SimpleQueue()
        question = SimilarQuestion(
            answer.put, project_id, intent, receipt, lambda: self._queues.of(project_id).reading()
        )
        within = search.within
        if search.is_late and receipt is not None:
            within = min(within, _WITHIN_IF_LATE)
        try:
            try:
                search.idle.popitem()[0].put(question)  # to the thread that was busy last: the others end
            except KeyError:
                Thread(target=search.answer_all, args=(question,), name="jidomem-similar", daemon=True).start()
            return answer.get(timeout=within)
        except RuntimeError:  # at the limit of threads, or at the end of the program
            search.slots.release()
        except Empty:
            search.is_late = True
        except KeyboardInterrupt:
            if receipt is None or receipt.commit is None or search.was_interrupted:
                raise
            search.was_interrupted = True
        return None

    @overload
    def submit_many(  # type: ignore[overload-overlap]  # a collection is an iterable, too
        self,
        project_id: str,
        intents: Collection[IntentOrError],
        *,
        atomic: bool = False,
        **options: Unpack[_ManyOptions],
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[IntentOrError],
        *,
        atomic: Literal[True],
        **options: Unpack[_ManyOptions],
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[IntentOrError],
        *,
        atomic: Literal[False] = False,
        **options: Unpack[_ManyOptions],
    ) -> SubmissionResults: ...

    def submit_many(
        self,
        project_id: str,
        intents: Iterable[IntentOrError],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
        recorded: Mapping[str, Records] | None = None,
    ) -> list[Outcome] | SubmissionResults:
        """Return one receipt or refusal for each intent, in order; each is judged with those before it in view.

        A collection, such as a list, is submitted before this returns. For any other iterable, such as a generator or
        the lines of a file, the outcomes are an iterator that reads and submits the intents in pieces as it is
        consumed, so neither all intents nor all outcomes are in memory. An error in place of an intent, the reason why
        it could not be read, is its refusal.

        With *atomic* the first refusal is raised, with its `position`, and nothing is written. With *propose* each
        memory waits for a curator, as in `submit_intent`. No similar memories are looked up: a look-up costs as much as
        several intents, so `similar` of each receipt is None. With *imported*, for an export of an earlier release, an
        undeclared value gets a warning instead of a refusal, and each memory keeps its author. *recorded* are the
        memories of the export, by IRI, with the records of the writer on them: what was settled among them is not
        judged again.
        """
        options = SubmitOptions(propose=propose, imported=imported, recorded=recorded or {})
        return self._batches.submit_many(project_id, intents, options, atomic=atomic)

    def submit_together(self, project_id: str, plan: IntentPlan, *, dry_run: bool = False) -> list[Outcome]:
        """Return one receipt or refusal for each intent of *plan*, in order; the accepted ones share one commit.

        A refusal stops no other intent. *plan* gets the list of outcomes, which grows while its intents are consumed;
        it is called again if another process wrote in the meantime. With *dry_run* nothing is appended.
        """
        return self._batches.submit_together(project_id, plan, dry_run=dry_run)

    def remember(self, project_id: str, text: str, *, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of *text* as a fact of medium confidence; *fields* replace these defaults.

        `filled` names the defaults that were used: type and confidence, the project, the agent, and the session of the
        writer, else the daily session of the agent in *fields*.
        """
        defaults = {"type": "fact", "applies_to_project": project_id, "confidence": "medium"}
        filled = {**_left_out(defaults, fields), **self.authorship(fields)}
        try:
            receipt = self.submit_intent(project_id, {"summary": text, **filled, **fields}, dry_run=dry_run)
        except Conflict as error:
            replacing = error.conflicts[0].resolve_with
            if error.names_ended and any(replacing.values()):
                given = {**({"reason": REASON} if error.needs_reason else {}), **fields, **replacing}
                words = "".join(f", {name}={value!r}" for name, value in given.items())
                error.hint = f"{error.advice}: memory.writer.remember({project_id!r}, {text!r}{words})"
            raise
        if receipt.status == "deduplicated":  # the memory that exists has its own author, session and confidence
            return receipt
        return replace(receipt, filled={**filled, **receipt.filled})

    def authorship(self, fields: Mapping[str, Any]) -> dict[str, str]:
        """Return the agent and session of this writer for those that the *fields* of an intent leave out.

        The session is that of the writer, else the daily session of the agent in *fields*.
        """
        agent = fields.get("asserted_by")
        session = self._context.session_of(agent) if isinstance(agent, str) else self.session
        return _left_out({"asserted_by": self.agent, "asserted_in": session}, fields)

    # corrections and settlements

    def restated(self, project_id: str, item: str) -> dict[str, Any]:
        """Return the intent that would restate the memory *item*; raises NotFound when there is no such memory."""
        return self._corrections.restated(project_id, item)

    def revise(
        self,
        project_id: str,
        item: str,
        *,
        changes: Mapping[str, Any],
        reason: str | None,
        dry_run: bool = False,
        under: UniqueKey | None = None,
    ) -> Receipt:
        """Return the receipt of a memory that supersedes *item*, with *changes* and every other field carried over.

        *changes* are one or more fields of an intent, or properties by prefixed name or IRI; None removes one, and
        `extra_triples` replace all properties without a field, but for the own kinds. With another summary it has the
        present date unless `timestamp` is among *changes*; any other change keeps it. The mark of a verified memory is
        not carried over to another text. The blob ids of the files stay unless a text, the rationale or about changes.
        Raises what `submit_intent` raises.
        """
        with self._corrections.successor_hint(project_id, item, set=changes, reason=reason):
            receipt = self._corrections.revise(
                project_id, item, changes=changes, reason=reason, dry_run=dry_run, under=under
            )
        return self._compared(project_id, receipt) if under is None and "summary" in changes else receipt

    def invalidate(self, project_id: str, item: str, *, reason: str, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of a marker that withdraws *item* for *reason*, without a successor."""
        with self._corrections.successor_hint(project_id, item, invalidate=True, reason=reason):
            return self._corrections.invalidate(project_id, item, reason=reason, dry_run=dry_run, **fields)

    def confirm(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that restates *item*, after a look at it, and supersedes it.

        A confirmed proposal is asserted, and replaces the memories that it names. The next review comes after the same
        time as the last one, unless `expires_on` is among *fields*; a memory that a curator confirms is marked as
        verified. Raises what `submit_intent` raises, and PolicyDenied or Conflict where a proposal would only be
        proposed again.
        """
        with self._corrections.successor_hint(project_id, item, confirm=True, set=fields, reason=reason):
            return self._corrections.confirm(project_id, item, reason=reason, dry_run=dry_run, **fields)

    def undo(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that restates a superseded or invalidated memory, and revives it.

        *item* is the ended memory, or the one that ended it. The new memory supersedes the successor; the old memory
        stays ended. A proposal that was accepted or rejected is pending again, as a new proposal with the same
        content. Raises InvalidRequest where nothing ended or the memory is active again, and what `submit_intent`
        raises.
        """
        receipt = self._corrections.undo(project_id, item, reason=reason, dry_run=dry_run, **fields)
        return self._compared(project_id, receipt)

    def correct(
        self,
        project_id: str,
        item: str,
        *,
        supersede: str | None = None,
        invalidate: bool = False,
        confirm: bool = False,
        undo: bool = False,
        changes: Mapping[str, Any] | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        who: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Return the receipt of one correction, as all interfaces offer it; raises InvalidRequest unless one is chosen.

        *changes* are fields to set, alone or beside `supersede` (another summary), `confirm` or `undo`. With another
        summary *reason* becomes the rationale of the new memory if the old one has a rationale; warnings name the
        replaced rationale and the explaining fields that are carried over. *who* are the fields of the author, such as
        asserted_by. Raises Conflict, which names the successor, if *item* is superseded already.
        """
        kind = self.restated(project_id, item).get("type") if "due" in (changes or {}) else None
        changes = with_accepted_names(changes or {}, kind)
        fields = with_own_properties(changes)
        if any(name not in INTENT_FIELDS for name in fields):
            faults = unknown_fields(fields, self.restated(project_id, item).get("type"))
            raise IntentRefused([with_own_property(fault, self._pipeline.schema) for fault in faults])
        ways = {"supersede": supersede, "invalidate": invalidate, "confirm": confirm, "undo": undo}
        receipt = self._corrections.correct(project_id, item, ways, changes, reason, who or {}, dry_run=dry_run)
        return self._compared(project_id, receipt) if undo or supersede or "summary" in fields else receipt

    def check_corrects(self, project_id: str, item: str, *, asserted: bool = False) -> None:
        """Raise PolicyDenied unless the writer's agent may correct *item*, with *asserted* as more than a proposal."""
        self._corrections.check_corrects(project_id, item, asserted=asserted)

    def settle(
        self,
        project_id: str,
        item: str,
        action: str,
        *,
        other: str | None = None,
        reason: str | None = None,
        changes: Mapping[str, Any] | None = None,
        dry_run: bool = False,
    ) -> Receipt:
        """Return the receipt that settles *item*: a proposal, a disagreement with *other*, or a memory due for review.

        *accept* confirms it: a proposal is asserted, a due memory stays active, and *other* is withdrawn. *reject*
        withdraws it. *supersede* asserts it in place of the memories that it disagrees with, *keep-both* beside them,
        with a distinct scope; *changes* are fields to set with either. Raises InvalidRequest for a memory that cannot
        be settled so, such as an active one on which nothing is pending, or an *other* that neither disagrees with it
        nor is near to it, Conflict for a settlement that makes a conflict, PolicyDenied for an agent that may only
        propose, and what `submit_intent` raises; then nothing is written.
        """
        settlement = Settlement(item, action, other, reason, changes)
        (outcome,) = self._settlements.settle_many(project_id, [settlement], dry_run=dry_run)
        if isinstance(outcome, JidomemError):
            outcome.position = None  # the caller gave no list
        return receipt_of(outcome)

    def settle_many(
        self, project_id: str, settlements: Sequence[Settlement], *, dry_run: bool = False
    ) -> list[Outcome]:
        """Return one receipt or refusal for each of *settlements*, in order; the accepted ones share one commit.

        Each is judged with those before it in view, and a refusal stops no other. With *dry_run* nothing is written.
        """
        return self._settlements.settle_many(project_id, settlements, dry_run=dry_run)

    # the policy

    def authority(self, project_id: str) -> AccessPolicy:
        """Return the present policy of *project_id*: which agents may assert, propose or write nothing."""
        return self._context.authority(project_id)

    def has_value(self, project_id: str, predicate: Term, values: Iterable[Term]) -> bool:
        """Return whether a memory has one of *values* as this property, by look-ups that leave commits pending.

        A query would apply the commits to the index first, one after each write.
        """
        with self._context.queues.of(project_id).reading() as view:
            return any(view.subjects(predicate, value) for value in values)


def _left_out(defaults: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """Return those of *defaults* that *values* leave out.

    A field by another name, or a misspelt one, is not left out: its refusal can rename it.
    """
    fields = [name for name in values if ":" not in name]  # others are properties, which have their own refusal
    named = {name if name in INTENT_FIELDS else intended_field(name, INTENT_FIELDS)[0] for name in fields}
    return {name: value for name, value in defaults.items() if name not in named}
