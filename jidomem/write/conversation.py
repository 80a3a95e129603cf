"""The conversation history stores the entries and turns of agents verbatim, in the stream `history`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.json_values import is_unicode, to_json_value
from jidomem.base.words import slug
from jidomem.errors import IdempotencyMismatch, InvalidRequest, NotFound, PolicyDenied
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, date_time, integer, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import TYPE, conv, jido
from jidomem.records.entry import Entry, ToolUse
from jidomem.records.intent import Receipt
from jidomem.write import permissions, secrets
from jidomem.write.context import WritePart, project_node
from jidomem.write.normalize import check_size
from jidomem.write.pipeline import Pipeline
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.submission import UNCHANGED, AnySubmission, Decision, Outcome, commit_of, redacted

_IN_PARTS = "split it, or store a summary and the place of the full text"


def text(name: str, value: str, limit: int) -> Term:
    """Return the literal of a text; raises TooLarge over *limit* bytes of UTF-8, InvalidRequest for invalid Unicode."""
    if not is_unicode(value):
        raise InvalidRequest(f"{name} contains half of a surrogate pair, which is not a character", hint="leave it out")
    check_size(name, value, limit, instead=_IN_PARTS)
    return literal(value)


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back equal; raises InvalidRequest, which names a value JSON cannot hold."""
    return json.dumps(to_json_value(value, name), ensure_ascii=False, separators=(",", ":"))


ENTRY, ID, TEXT, AGENT = jido("Entry"), jido("entryId"), jido("entryText"), jido("agentId")
REMOVAL = jido("EntryRemoval")
SESSION, METADATA, REPLACES, OF = jido("sessionId"), jido("entryMetadata"), jido("replaces"), jido("entryOf")


def describe_entry(node: Term, entry: Entry, project: Term, limit: int) -> list[Triple]:
    """Return the triples of *entry*, with the subject *node*.

    Raises InvalidRequest for metadata that JSON cannot hold, TooLarge for a text of more than *limit* bytes.
    """
    rows = [
        (node, TYPE, ENTRY),
        (node, jido("partOfProject"), project),
        (node, ID, text("id", entry.id, limit)),
        (node, AGENT, text("agent_id", entry.agent_id, limit)),
        (node, TEXT, text("content", entry.content, limit)),
    ]
    if entry.session_id is not None:
        rows.append((node, SESSION, text("session_id", entry.session_id, limit)))
    if (agent := agent_of(entry)) is not None:
        rows.append((node, OF, agent))
    return [*rows, *_metadata_triples(node, entry, limit)]


def describe_removal(node: Term, before: Iterable[Term], project: Term) -> list[Triple]:
    """Return the triples, with the subject *node*, that record the removal of the entries *before*."""
    return [
        (node, TYPE, REMOVAL),
        (node, jido("partOfProject"), project),
        *((node, REPLACES, entry) for entry in before),
    ]


def agent_of(entry: Entry) -> Term | None:
    """Return the agent whose memory has *entry*, None if its name has no letter and no digit."""
    name = slug(entry.agent_id)
    return iri(f"{vocab.BASE}agents/{name}") if name else None


def active_entries(view: WriteSnapshot, key: str) -> list[Term]:
    """Return the entries with the id *key* that nothing replaced: more than one only after a merge of branches."""
    return [node for node in view.subjects(ID, literal(key)) if not view.subjects(REPLACES, node)]


def _metadata_triples(node: Term, entry: Entry, limit: int) -> Iterator[Triple]:
    """Yield the metadata as a whole, and the well-known ones by properties of their own."""
    if not entry.metadata:
        return
    yield node, METADATA, text("metadata", as_json(entry.metadata, "metadata"), limit)
    speaker, said_at = entry.metadata.get("speaker"), entry.metadata.get("timestamp")
    if isinstance(speaker, str) and speaker:
        yield node, jido("speaker"), literal(speaker)
    if isinstance(said_at, str) and (moment := parse_moment(said_at)) is not None:
        yield node, conv("timestamp"), date_time(format_timestamp(moment))


PART_OF = conv("partOfConversation")
_SESSIONS = f"{vocab.BASE}sessions/"
#: The property of a turn with the agent of the token that recorded it, if that neither asked nor answered.
_RECORDER = iri(f"{vocab.PROV}wasAttributedTo")


class SessionNotOpened(NotFound):
    """The session of a turn was never opened."""


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """The texts of one turn, at least one; agents are IRIs."""

    prompt: str | None
    answer: str | None
    asked_by: Term | None
    answered_by: Term | None
    tools: Sequence[ToolUse]
    timestamp: str

    def __post_init__(self) -> None:
        """Raise InvalidRequest for a value that is not a text, and for a turn without any text."""
        for name in ("prompt", "answer"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise InvalidRequest(
                    f"{name}={value!r:.80} is not a text", hint=f"give {name} as text, or leave it out"
                )
        for use in self.tools:
            if not isinstance(use, ToolUse) or not isinstance(use.name, str) or not use.name.strip():
                raise InvalidRequest(f"{use!r:.80} is not a call of a tool", hint='give ToolUse("grep", {...}, result)')
        if self.prompt is None and self.answer is None and not self.tools:
            raise InvalidRequest("the turn is empty", hint="give a prompt, an answer or the tools used")

    @property
    def agents(self) -> list[Term]:
        """Return the agents of the turn."""
        return [agent for agent in (self.asked_by, self.answered_by) if agent is not None]


def conversation_of(session: Term) -> Term:
    """Return the conversation of a work session.

    >>> conversation_of("<https://jido.ai/sessions/s-42>")
    '<https://jido.ai/conversations/s-42>'
    """
    name = plain_value(session)
    own = name.removeprefix(_SESSIONS)
    return iri(
        f"{vocab.BASE}conversations/{own if own != name else blake2b(name.encode(), digest_size=16).hexdigest()}"
    )


def next_index(conversation: Term, view: WriteSnapshot) -> int:
    """Return the index of the next turn: the number of present turns."""
    return len(view.subjects(PART_OF, conversation))


def describe_conversation(conversation: Term, session: Term, project: Term) -> list[Triple]:
    """Return the description of a new conversation."""
    return [
        (conversation, TYPE, conv("Conversation")),
        (conversation, conv("associatedWithSession"), session),
        (conversation, jido("partOfProject"), project),
    ]


def describe_turn(node: Term, index: int, conversation: Term, texts: TurnTexts, limit: int) -> list[Triple]:
    """Return the triples of *texts* as the turn *node*, at *index* in the conversation.

    Raises InvalidRequest for a value that JSON cannot hold, TooLarge for a text of more than *limit* bytes.
    """
    return [
        (conversation, conv("hasTurn"), node),
        (node, TYPE, conv("ConversationTurn")),
        (node, PART_OF, conversation),
        (node, conv("turnIndex"), integer(index)),
        (node, conv("timestamp"), date_time(texts.timestamp)),
        *_text_triples(node, "Prompt", texts.prompt, texts.asked_by, limit),
        *_text_triples(node, "Answer", texts.answer, texts.answered_by, limit),
        *(row for number, use in enumerate(texts.tools, start=1) for row in _tool_triples(node, number, use, limit)),
    ]


def _text_triples(turn: Term, kind: str, words: str | None, agent: Term | None, limit: int) -> Iterator[Triple]:
    if words is None:
        return
    part = iri(f"{plain_value(turn)}/{kind.lower()}")
    yield turn, conv(f"has{kind}"), part
    yield part, TYPE, conv(kind)
    yield part, conv(f"{kind.lower()}Text"), text(kind.lower(), words, limit)
    if agent is not None:
        yield part, jido("saidBy"), agent


def _tool_triples(turn: Term, number: int, use: ToolUse, limit: int) -> Iterator[Triple]:
    call, name = iri(f"{plain_value(turn)}/tools/{number}"), f"the tool {use.name}"
    yield turn, conv("involvesToolInvocation"), call
    yield call, TYPE, conv("ToolInvocation")
    yield call, conv("toolName"), text("the name of a tool", use.name, limit)
    if use.parameters is not None:
        parameters = as_json(use.parameters, f"parameters of {name}")
        yield call, conv("invocationParameters"), text(f"parameters of {name}", parameters, limit)
    if use.result is not None:
        result = iri(f"{plain_value(call)}/result")
        yield call, conv("hasResult"), result
        yield result, TYPE, conv("ToolResult")
        yield result, conv("resultData"), text(f"result of {name}", as_json(use.result, f"result of {name}"), limit)


HISTORY = "history"


class EntryChanges(NamedTuple):
    """Changes of entries, committed all or none: the entries to store, and the ids of those to remove."""

    stored: Sequence[Entry] = ()
    removed: Sequence[str] = ()


class _NewEntry(NamedTuple):
    entry: Entry
    author: Term
    project: Term

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.author, view, "agent_id")
        agent = agent_of(self.entry)
        node = _new_node("entries", pipeline, view)
        rows = describe_entry(node, self.entry, self.project, pipeline.literal)
        for before in active_entries(view, self.entry.id):
            _check_replaces(before, self.entry.id, pipeline, view)
            rows.append((node, REPLACES, before))
        rows += pipeline.stubs([] if agent is None else [agent], self.project, view)
        return _append_rows(node, rows, pipeline, view)


class _RemovedEntry(NamedTuple):
    entry_id: str
    agent: Term
    project: Term

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view)
        ended = active_entries(view, self.entry_id)
        if not ended:
            return UNCHANGED
        for before in ended:
            _check_replaces(before, self.entry_id, pipeline, view)
        node = _new_node("entries", pipeline, view)
        return _append_rows(node, describe_removal(node, ended, self.project), pipeline, view)


class _NewTurn(NamedTuple):
    session: Term
    texts: TurnTexts
    agent: Term
    project: Term
    key: str | None

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        pipeline.check_other_write("description", self.agent, view, "answered_by")
        if self.texts.asked_by is not None and pipeline.is_holder(self.texts.asked_by):
            pipeline.check_other_write("description", self.texts.asked_by, view, "asked_by")
        if not view.types(self.session):
            name = plain_value(self.session)
            raise SessionNotOpened(f"no session {name}", hint="open it with: jidomem agent session start NAME")
        conversation = conversation_of(self.session)
        if self.key is None:
            node = _new_node("turns", pipeline, view)
        else:
            node = self._node_of_key(conversation, self.key)
            if view.types(node):
                return self._retry(node, conversation, pipeline, view)
        index = next_index(conversation, view)
        rows = describe_turn(node, index, conversation, self.texts, pipeline.literal)
        rows += [] if view.types(conversation) else describe_conversation(conversation, self.session, self.project)
        agents = self.texts.agents
        if pipeline.speaker is not None and (recorder := iri(pipeline.speaker.agent)) not in agents:
            rows.append((node, _RECORDER, recorder))
            agents = [*agents, recorder]
        rows += pipeline.stubs(agents, self.project, view)
        decision = _append_rows(node, rows, pipeline, view)
        return decision._replace(receipt=replace(decision.receipt, filled={"index": index}))

    def _node_of_key(self, conversation: Term, key: str) -> Term:
        """Return the turn of an idempotency key: the same for each request of this agent in this conversation."""
        named = json.dumps([conversation, self.agent, key]).encode()
        return iri(f"{vocab.BASE}turns/{blake2b(named, digest_size=16).hexdigest()}")

    def _retry(self, node: Term, conversation: Term, pipeline: Pipeline, view: WriteSnapshot) -> Decision:
        """Return the decision for a turn that is stored.

        Raises IdempotencyMismatch if the stored one is another, RequestRedacted if it lost a text.
        """
        index = int(parse_literal(view.first(node, conv("turnIndex")) or literal("0")).text)
        given = {
            row
            for row in describe_turn(node, index, conversation, self.texts, pipeline.literal)
            if row[0] != conversation and row[1] != conv("timestamp")
        }
        properties = {predicate for _, predicate, _ in given} | _HAS_PARTS
        stored = {row for subject in {row[0] for row in given} for row in view.about(subject) if row[1] in properties}
        if given != stored and any(view.subjects(jido("redactedItem"), part) for part, _, _ in given):
            raise redacted(self.key or "", node)
        if given != stored:
            raise IdempotencyMismatch(
                f"the idempotency key {self.key!r} was used for another turn ({plain_value(node)})",
                hint="use a new key for a new turn, or send the first one unchanged",
            )
        return Decision(Receipt(plain_value(node), *commit_of(node, view), "deduplicated", {"index": index}))


_HAS_PARTS = {conv("hasPrompt"), conv("hasAnswer"), conv("involvesToolInvocation"), conv("hasResult"), jido("saidBy")}


class ConversationWriter(WritePart):
    """The writes of the conversation history: each is a small commit, judged by ontology and shapes only."""

    def keep_entries(self, project_id: str, entries: Sequence[Entry]) -> list[Outcome]:
        """Return one receipt or refusal for each entry, in order; all accepted entries are durable.

        An entry replaces the one with its id; many share a commit. Raises NotFound `invalid_project`.
        """
        submissions = [self._new_entry(project_id, entry) for entry in entries]
        served = self._context.queues.of(project_id, HISTORY).submit(self._context.pipeline, submissions)
        return [each.answer() for each in served]

    def change_entries(self, project_id: str, plan: Callable[[], EntryChanges]) -> list[Receipt]:
        """Return the receipts of the changes of entries that *plan* returns, in one commit or none.

        No other writer commits between *plan*, which may read the entries, and the commit; if the stream moved on all
        the same, *plan* is called again. The removal of an unknown id has a receipt without a commit. The first
        refusal is raised, and what *plan* raises.
        """

        def submissions(view: WriteSnapshot, now: datetime) -> Iterator[AnySubmission]:
            changes = plan()
            for entry in changes.stored:
                yield self._new_entry(project_id, entry)
            for entry_id in changes.removed:
                yield _RemovedEntry(entry_id, self._context.agent_node, project_node(project_id))

        return self._context.queues.of(project_id, HISTORY).submit_planned(self._context.pipeline, submissions)

    def keep_turn(self, project_id: str, session: str, texts: TurnTexts, key: str | None = None) -> Receipt:
        """Return the receipt of a turn, the next one in the conversation of *session*, a name or an IRI.

        `filled` has its index. A retry with the idempotency *key* of a stored turn gets the receipt of that turn.
        Raises IdempotencyMismatch if that turn is another, NotOpened for an unknown session, InvalidRequest for a value
        that JSON cannot hold, TooLarge, IntentRefused for a likely secret, and PolicyDenied for the words of another
        agent.
        """
        node = self._context.pipeline.node(session, "sessions")
        agent = texts.answered_by or self._context.agent_node
        turn = _NewTurn(node, texts, agent, project_node(project_id), key)
        return self._context.submit(project_id, turn, stream=HISTORY)

    def refuse_words(self, texts: Mapping[str, str]) -> None:
        """Raise TooLarge for a text that is too long, IntentRefused for a likely secret; *texts* are given by name."""
        pipeline = self._context.pipeline
        for name, value in texts.items():
            check_size(name, value, pipeline.literal, instead=_IN_PARTS)
        matches = ((name, secrets.find(value)) for name, value in texts.items())
        pipeline.screen_secrets((name, match) for name, match in matches if match is not None)

    def _new_entry(self, project_id: str, entry: Entry) -> _NewEntry:
        author = agent_of(entry) or self._context.agent_node
        return _NewEntry(entry, author, project_node(project_id))


def _check_replaces(before: Term, entry_id: str, pipeline: Pipeline, view: WriteSnapshot) -> None:
    """Raise PolicyDenied where the entry *before* is of an agent for which the speaker may not write."""
    owner = view.first(before, OF)
    try:
        permissions.check_author(owner and plain_value(owner), view, pipeline.policy, pipeline.speaker)
    except PolicyDenied:
        raise PolicyDenied(
            f"{entry_id!r} is the id of an entry of another agent", hint="leave id out, or give another one"
        ) from None


def _new_node(folder: str, pipeline: Pipeline, view: WriteSnapshot) -> Term:
    """Return the IRI of a new entry or turn; with `fresh_ids` it is not looked up."""
    node = iri(f"{vocab.BASE}{folder}/{pipeline.new_id()}")
    if pipeline.fresh_ids:
        view.add_new(node, ())
    return node


def _append_rows(node: Term, rows: list[Triple], pipeline: Pipeline, view: WriteSnapshot) -> Decision:
    decision = pipeline.append(rows, view, lambda row: False)
    return decision._replace(receipt=replace(decision.receipt, iri=plain_value(node)))
