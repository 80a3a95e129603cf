"""The MemoryWriter is the only way into a project's memory; each of its methods hands over to one part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, overload

from jidomem.base.clock import Sources, new_id
from jidomem.index.follower import IndexFollower
from jidomem.journal.journal import Stream
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, plain_value
from jidomem.rdf.vocab import jido
from jidomem.records.entry import Entry
from jidomem.records.intent import FIELD_ALIASES, Receipt, Version
from jidomem.records.policy import LITERAL_LIMIT, AccessPolicy, PolicyChange, role_named
from jidomem.schema.ontology import EffectiveRules
from jidomem.write import permissions
from jidomem.write.batch import Batches, IntentPlan, SubmissionResults
from jidomem.write.conflict import UniqueKey
from jidomem.write.context import WriteContext
from jidomem.write.conversation import ConversationWriter, EntryChanges, TurnTexts
from jidomem.write.corrections import Corrections
from jidomem.write.group_commit import CommitQueues, receipt_of
from jidomem.write.other_writes import Descriptions, PolicyChanges, WorkSessions
from jidomem.write.pipeline import Pipeline, no_blobs, none_absent
from jidomem.write.rollback import Rollback, Rollbacks
from jidomem.write.settlement import Settlement, Settlements
from jidomem.write.submission import Given, Outcome, Proposal, SubmitOptions
from jidomem.write.triples import WRITER_AGENT


class MemoryWriter:
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
        literal: int = LITERAL_LIMIT,
        blobs: Callable[[Iterable[str]], Mapping[str, str]] = no_blobs,
        absent: Callable[[Iterable[str]], Mapping[str, str | None]] = none_absent,
        projects: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Write to the journal of *follower* what *rules* accept.

        *agent* and *session* are the author of writes that name none, *owner* is the user who may name the first
        curator. A text has at most *literal* bytes. *find* returns the IRI that a short id, or another name, of a
        memory of a project stands for, else raises NotFound. *blobs* gives the blob ids of files that a memory is
        about, *absent* those that do not exist, each with the nearest existing path. *projects* returns
        the projects of the root: the first receipt of another one warns.
        """

        def listed(project: str) -> list[str]:
            rows = follower.index.triples(Stream(project).graph, None, jido("hasAssertionStatus"), None)
            return [plain_value(row[0]) for row in rows]

        pipeline = Pipeline(
            rules,
            sources.new_id,
            fresh_ids=sources.new_id is new_id,
            literal=literal,
            find=find,
            listed=listed,
            blobs=blobs,
            absent=absent,
        )
        self._build(WriteContext(agent, owner, session, pipeline, CommitQueues(follower, sources, rules, projects)))

    def _build(self, context: WriteContext) -> None:
        """Build the parts of the writer."""
        self._context = context
        self._pipeline, self._queues = context.pipeline, context.queues
        self._batches = Batches(context)
        self._corrections = Corrections(context)
        self._settlements = Settlements(context, self._corrections, self._batches)
        self._rollbacks = Rollbacks(context)
        self._policy = PolicyChanges(context)
        self._sessions = WorkSessions(context)
        self._descriptions = Descriptions(context, self._policy)
        self._conversation = ConversationWriter(context)

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
        self._build(replace(self._context, agent=name))

    @property
    def session(self) -> str:
        """Return the session of what is asserted without naming one: the one given, else one a day for the agent."""
        return self._context.session

    @property
    def literal(self) -> int:
        """Return how many bytes a text has at most."""
        return self._pipeline.literal

    @property
    def waiting(self) -> int:
        """Return how many submissions wait for their turn now."""
        return self._queues.waiting

    def acting_as(self, agent: str, role: str) -> Self:
        """Return this writer for *agent*, whom a server identified by a token, in *role*.

        The role counts in place of the one the project gives the agent; `agent` leaves it the one it has, but for that
        of a curator. An agent that is no curator speaks for itself alone. Raises InvalidRequest for an unknown role.
        """
        own_role = None if role == "agent" else role_named(role)
        speaker = permissions.Speaker(plain_value(self._pipeline.node(agent, "agents")), own_role)
        return self._with(replace(self._context, agent=agent, pipeline=replace(self._pipeline, speaker=speaker)))

    def speaking_for(self, agent: str) -> Self:
        """Return this writer with *agent* as the author of writes that name none, and in refusals."""
        return self._with(replace(self._context, agent=agent))

    def by_rule(self) -> Self:
        """Return this writer as it confirms what a rule of the policy says: in its own name, held to no other."""
        speaker = permissions.Speaker(plain_value(WRITER_AGENT), "MemoryWriter", by_rule=True)
        pipeline = replace(self._pipeline, speaker=speaker)
        return self._with(replace(self._context, agent=vocab.local_name(WRITER_AGENT), pipeline=pipeline))

    def agent_iri(self) -> Term:
        """Return the IRI of the agent of writes that name none; raises IntentRefused where its name is none."""
        return self._context.agent_node

    def session_iri(self, name: str) -> Term:
        """Return the IRI of a session, from its plain name or itself; raises IntentRefused where it is none."""
        return self._pipeline.node(name, "sessions")

    def spoken_by(self, name: str | None) -> Term | None:
        """Return the IRI of an agent or a person, None for nobody; raises IntentRefused where the name is none."""
        return None if name is None else self._pipeline.node(name, "agents")

    def refresh(self, project_id: str) -> Version:
        """Apply the commits of other writers to the index of *project_id*; return the version reached."""
        return self._queues.refresh(project_id)

    # intents

    def submit_intent(
        self,
        project_id: str,
        intent: Proposal,
        *,
        dry_run: bool = False,
        propose: bool = False,
        blobs: Mapping[str, str] | None = None,
        under: UniqueKey | None = None,
    ) -> Receipt:
        """Return the receipt of *intent*, durable when this returns; with *dry_run* judge it and append nothing.

        With *propose* it waits for a curator, and may disagree with active memories. *blobs* are the blob ids of files
        it is about, by path, in the place of those that they have now. A memory that is active *under* a key and not
        known there is a conflict, whoever wrote it meanwhile.

        Raises IntentRefused (with `violations` and, where mechanical, `fixed_intent`), Conflict, IdempotencyMismatch,
        NotFound `invalid_project` or `unknown_project`, Busy, Failed `write_failed` or JournalDamaged; then nothing
        was written.
        """
        queue = self._queues.of(project_id)
        submission = self._pipeline.submission(project_id, intent, SubmitOptions(blobs, propose, under=under))
        if dry_run:
            return queue.dry_run_one(self._pipeline, submission)
        return receipt_of(queue.submit(self._pipeline, [submission])[0])

    @overload
    def submit_many(  # type: ignore[overload-overlap]  # a collection is an iterable that is all there
        self,
        project_id: str,
        intents: Collection[Given],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: Literal[True],
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome]: ...

    @overload
    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: Literal[False] = False,
        propose: bool = False,
        imported: bool = False,
    ) -> SubmissionResults: ...

    def submit_many(
        self,
        project_id: str,
        intents: Iterable[Given],
        *,
        atomic: bool = False,
        propose: bool = False,
        imported: bool = False,
    ) -> list[Outcome] | SubmissionResults:
        """Return one receipt or refusal for each intent, in order; each is judged with those before it in view.

        All of a collection, such as a list, are submitted when this returns. Of any other iterable, such as a
        generator or a file's lines, the outcomes are an iterator: they are submitted as it is used up, and neither
        all intents nor all outcomes are held. An error in the place of an intent, why it could not be read, is its
        refusal.

        With *atomic* the first refusal is raised, its `position` saying which it was, and nothing at all is written.
        With *propose* each waits for a curator, as by `submit_intent`. Where they are *imported*, from an export of an
        earlier release or the like, an undeclared value is kept with a warning.
        """
        options = SubmitOptions(propose=propose, imported=imported)
        return self._batches.submit_many(project_id, intents, options, atomic=atomic)

    def submit_together(self, project_id: str, plan: IntentPlan, *, dry_run: bool = False) -> list[Outcome]:
        """Return one receipt or refusal for each intent of *plan*, in order, all accepted ones in one commit.

        The refusal of one stops no other. *plan* gets the outcomes so far, a list that grows as it is gone through,
        and is gone through again where another process wrote meanwhile. With *dry_run* nothing is appended.
        """
        return self._batches.submit_together(project_id, plan, dry_run=dry_run)

    def remember(self, project_id: str, text: str, *, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of *text* kept as a fact of medium confidence, unless *fields* say otherwise.

        What is missing is filled, and `filled` says with what: the project, the agent, and the session of the writer,
        else that of the day of the agent in *fields*.
        """
        agent = fields.get("asserted_by")
        defaults = {
            "type": "fact",
            "applies_to_project": project_id,
            "asserted_by": self.agent,
            "asserted_in": self._context.session_of(agent) if isinstance(agent, str) else self.session,
            "confidence": "medium",
        }
        meant = {FIELD_ALIASES.get(name) for name in fields}  # so that the fixed intent can rename the field
        filled = {name: value for name, value in defaults.items() if name not in fields and name not in meant}
        receipt = self.submit_intent(project_id, {"summary": text, **filled, **fields}, dry_run=dry_run)
        if receipt.status == "deduplicated":  # the memory that exists has its own author, session and confidence
            return receipt
        return replace(receipt, filled={**filled, **receipt.filled})

    # corrections and settlements

    def restated(self, project_id: str, item: str) -> dict[str, Any]:
        """Return the intent that would say the memory *item* again; raises NotFound when there is no such memory."""
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
        """Return the receipt of a memory that supersedes *item*: *changes* made, every other field carried over.

        *changes* are fields of an intent; one that is None is left out. Another summary is dated now unless `timestamp`
        is among them; any other change keeps the date. That the old one was verified says nothing of another text; a
        mere change of state says nothing of the files it is about, which are kept as they were. Raises what
        `submit_intent` raises.
        """
        return self._corrections.revise(project_id, item, changes=changes, reason=reason, dry_run=dry_run, under=under)

    def invalidate(self, project_id: str, item: str, *, reason: str, dry_run: bool = False, **fields: Any) -> Receipt:
        """Return the receipt of a marker that withdraws *item* for *reason*, putting nothing in its place."""
        return self._corrections.invalidate(project_id, item, reason=reason, dry_run=dry_run, **fields)

    def confirm(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that says the same as *item*, which was looked at again and takes its place.

        What was only proposed is asserted by it, with all that it was to replace. The next review, unless `expires_on`
        is among *fields*, comes after as long a time as the last; what a curator confirms is verified. Raises what
        `submit_intent` raises, and PolicyDenied or Conflict where a proposal would only be proposed again.
        """
        return self._corrections.confirm(project_id, item, reason=reason, dry_run=dry_run, **fields)

    def undo(
        self, project_id: str, item: str, *, reason: str | None = None, dry_run: bool = False, **fields: Any
    ) -> Receipt:
        """Return the receipt of a memory that says again what was superseded or invalidated, and revives it.

        *item* is what ended, or what ended it. What took its place is superseded by the new memory; the old one stays
        ended. A proposal that was accepted or rejected is pending again, as another proposal of the same. Raises
        InvalidRequest where nothing ended, or it is back already, and what `submit_intent` raises.
        """
        return self._corrections.undo(project_id, item, reason=reason, dry_run=dry_run, **fields)

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
        """Return the receipt of one correction: what every door does; raises InvalidRequest unless it is one.

        *changes* are fields to set, alone or beside `supersede` (another summary), `confirm` or `undo`. With another
        summary *reason* is the rationale of the new memory where the old one has a rationale, and a warning names the
        explaining fields that are carried over. *who* are fields that say who corrects, such as asserted_by. Raises
        Conflict, which names what took the place of *item*, where that is superseded already.
        """
        return self._corrections.correct(
            project_id,
            item,
            supersede=supersede,
            invalidate=invalidate,
            confirm=confirm,
            undo=undo,
            changes=changes,
            reason=reason,
            dry_run=dry_run,
            who=who,
        )

    def check_corrects(self, project_id: str, item: str, *, asserted: bool = False) -> None:
        """Raise PolicyDenied unless the writer's agent may correct *item*, and with *asserted* so that it counts."""
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
        """Return the receipt of what settles *item*: a proposal, what disagrees with *other*, or what is due.

        *accept* holds it: a proposal is asserted, what is due holds on, and *other* is withdrawn. *reject* withdraws
        it. *supersede* asserts it in the place of what it disagrees with, *keep-both* beside that, where it says where
        each applies; *changes* are fields that either says otherwise. Raises InvalidRequest for what cannot be settled
        so, such as an active memory on which nothing is pending, Conflict for what would not settle it, PolicyDenied
        for an agent that may only propose, and what `submit_intent` raises; nothing is kept then.
        """
        settlement = Settlement(item, action, other, reason, changes)
        return self._settlements.settle(project_id, settlement, dry_run=dry_run)

    def settle_many(
        self, project_id: str, settlements: Sequence[Settlement], *, dry_run: bool = False
    ) -> list[Outcome]:
        """Return one receipt or refusal for each of *settlements*, in order, in one commit of all that are accepted.

        Each is judged with those before it in view, and the refusal of one stops no other. With *dry_run* nothing is
        kept.
        """
        return self._settlements.settle_many(project_id, settlements, dry_run=dry_run)

    def roll_back(self, project_id: str, to: object, *, reason: str, dry_run: bool = False) -> Rollback:
        """Return what was done so that what was active at the moment *to* is active, and nothing else.

        What came since is withdrawn, what ended since is said again, in one commit and in a recovery session of its
        own; where all is as it was, nothing is written. With *dry_run* all is judged and nothing kept. Raises
        PolicyDenied unless the writer's agent is a curator or the project has none, InvalidRequest without a *reason*
        and for a moment that has not been, and what `submit_intent` raises.
        """
        return self._rollbacks.roll_back(project_id, to, reason=reason, dry_run=dry_run)

    # the policy

    def authority(self, project_id: str) -> AccessPolicy:
        """Return the policy of *project_id* as it is now: who may assert, propose or do nothing at all."""
        return self._context.authority(project_id)

    def change_policy(
        self, project_id: str, changes: Iterable[PolicyChange], *, reason: str | None = None, dry_run: bool = False
    ) -> Receipt:
        """Return the receipt of *changes* of the policy, recorded in one commit; its IRI is that of the first.

        Raises InvalidRequest for what says nothing, or one thing twice, and PolicyDenied unless an administrator
        changes it: the writer's agent, or whom a door knows to speak. While a project has none, every agent may.
        """
        return self._policy.change(project_id, changes, reason=reason, dry_run=dry_run)

    def check_keeper(self, project_id: str, agent: str, what: str, *, of_policy: bool = False) -> None:
        """Raise PolicyDenied unless *agent* may do *what* is for curators, or administrators where it is *of_policy*.

        While a project names none, whoever has its files may.
        """
        self._policy.check_keeper(project_id, agent, what, of_policy=of_policy)

    def is_curator(self, project_id: str, agent: str | None = None) -> bool:
        """Return whether *agent*, the writer's own unless given, may judge for the project."""
        return self._policy.is_curator(project_id, agent)

    # writes that are no intents

    def declare(self, project_id: str, rows: Sequence[Triple]) -> list[str]:
        """Append descriptions of agents, sessions, modules, files and other things that are no memories.

        Returns the IRIs that are described here already, but otherwise, and are left as they are. Raises IntentRefused.
        """
        return self._descriptions.declare(project_id, rows)

    def append(self, project_id: str, stream: str, rows: Sequence[Triple]) -> Receipt:
        """Return the receipt of *rows*, kept in one commit of a stream without memories: codebase, history or system.

        What is there already is not kept again. Raises IntentRefused for memories, which are proposed by intents, and
        for what the ontology or a shape forbids; PolicyDenied for an answer to a proposed term.
        """
        return self._descriptions.append(project_id, stream, rows)

    def answer_term(self, project_id: str, proposal: Term, *, accepted: bool, reason: str) -> Receipt:
        """Return the receipt of the answer to a proposed term; accepting it is not done here but kept.

        Raises PolicyDenied unless this agent is a curator, where the project has any, or takes back its own proposal.
        """
        return self._descriptions.answer_term(project_id, proposal, accepted=accepted, reason=reason)

    def clear(self, project_id: str, stream: str) -> Receipt:
        """Return the receipt of a commit from which on a stream without memories is empty; none where it was so.

        Its earlier commits stay in the journal, and are no longer read.
        """
        return self._descriptions.clear(project_id, stream)

    def keep_together(self, project_id: str, rows: Sequence[Triple], intents: Sequence[Proposal]) -> list[Receipt]:
        """Return the receipts of descriptions of what is no memory, and of *intents*, kept in one commit or not at all.

        Raises IntentRefused for what is described here already, but otherwise, and what `submit_intent` raises.
        """
        return self._descriptions.keep_together(project_id, rows, intents)

    def start_session(
        self, project_id: str, name: str, *, agent: str | None = None, continues: str | None = None
    ) -> Receipt:
        """Return the receipt of a new work session.

        Raises IntentRefused `iri_exists` when the name is taken, and for an agent a strict project has not heard of;
        NotFound when there is no session *continues*.
        """
        return self._sessions.start(project_id, name, agent=agent, continues=continues)

    def move_session(
        self,
        project_id: str,
        name: str,
        *,
        agent: str | None = None,
        status: str | None = None,
        phase: str | None = None,
    ) -> Receipt:
        """Return the receipt of an event that gives a session a status (such as paused) or a phase (such as review).

        Raises InvalidRequest where neither is given, NotFound for a session nobody opened, IntentRefused for one that
        has ended and for an unknown status or phase, and PolicyDenied for one of another agent, unless a curator moves
        it or nothing says who is one.
        """
        return self._sessions.move(project_id, name, agent=agent, status=status, phase=phase)

    def keep_entries(self, project_id: str, entries: Sequence[Entry]) -> list[Outcome]:
        """Return one receipt or refusal for each entry, in order, all that were kept being durable.

        An entry replaces what is kept under its id; many share a commit. Raises NotFound `invalid_project`.
        """
        return self._conversation.keep_entries(project_id, entries)

    def change_entries(self, project_id: str, plan: Callable[[], EntryChanges]) -> list[Receipt]:
        """Return the receipts of what *plan* says is to become of entries, kept in one commit or not at all.

        Nobody else writes between *plan*, which may read what is kept, and the commit; where the stream moved on all
        the same it is called again. An id nothing is kept under is removed by a receipt without a commit. The first
        refusal is raised, and what *plan* raises.
        """
        return self._conversation.change_entries(project_id, plan)

    def keep_turn(self, project_id: str, session: str, texts: TurnTexts) -> Receipt:
        """Return the receipt of a turn, kept as the next one of the conversation of *session*, a name or an IRI.

        Its place is the one thing `filled`. Raises NotOpened for a session nobody opened, InvalidRequest for what JSON
        does not hold, TooLarge, IntentRefused for what looks like a secret, and PolicyDenied for the words of another.
        """
        return self._conversation.keep_turn(project_id, session, texts)

    def refuse_words(self, texts: Mapping[str, str]) -> None:
        """Raise TooLarge, or IntentRefused for what looks like a secret, unless *texts* may be kept, by their names."""
        self._conversation.refuse_words(texts)
