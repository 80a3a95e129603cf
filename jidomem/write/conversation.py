"""Texts and JSON as literals: whole and as they were given, or refused by name.  Pure.

An agent's entry as triples: kept word for word, never judged for what it says.  Pure over rows.

A turn of a conversation as triples: prompt, answer and calls of tools, word for word.  Pure over rows.

The writing of what is kept word for word, in the stream of the conversation history: entries and turns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from typing import Any

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.json_values import is_unicode, to_json_value
from jidomem.base.words import slug
from jidomem.errors import InvalidRequest, NotFound, PolicyDenied
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, date_time, integer, iri, literal, plain_value
from jidomem.rdf.vocab import TYPE, conv, jido
from jidomem.records.entry import Entry, ToolUse
from jidomem.records.intent import Receipt, Version
from jidomem.records.policy import AgentPolicy
from jidomem.write import permissions, secrets, triples
from jidomem.write.group_commit import JudgeFn, Outcome
from jidomem.write.normalize import check_size
from jidomem.write.pipeline import Decision
from jidomem.write.rollback import Recovery
from jidomem.write.snapshot import WriteSnapshot


def text(name: str, value: str, most: int) -> Term:
    """Return the literal of a text; raises TooLarge over *most* bytes of UTF-8, InvalidRequest for what is no text."""
    if not is_unicode(value):
        raise InvalidRequest(f"{name} holds half of a surrogate pair, which is no sign", hint="leave it out")
    check_size(name, value, most, instead="keep it in parts, or keep a summary and where the whole is")
    return literal(value)


def as_json(value: Any, name: str) -> str:
    """Return *value* as JSON that reads back as the same; raises InvalidRequest, naming what JSON does not hold."""
    return json.dumps(to_json_value(value, name), ensure_ascii=False, separators=(",", ":"))


ENTRY, ID, TEXT, AGENT = jido("Entry"), jido("entryId"), jido("entryText"), jido("agentId")
REMOVAL = jido("EntryRemoval")
SESSION, METADATA, REPLACES, OF = jido("sessionId"), jido("entryMetadata"), jido("replaces"), jido("entryOf")


def describe_entry(node: Term, entry: Entry, project: Term, most: int) -> list[Triple]:
    """Return what *entry* says, under the name *node*.

    Raises InvalidRequest for metadata that JSON does not hold, TooLarge for a text of more than *most* bytes.
    """
    rows = [
        (node, TYPE, ENTRY),
        (node, jido("partOfProject"), project),
        (node, ID, text("id", entry.id, most)),
        (node, AGENT, text("agent_id", entry.agent_id, most)),
        (node, TEXT, text("content", entry.content, most)),
    ]
    if entry.session_id is not None:
        rows.append((node, SESSION, text("session_id", entry.session_id, most)))
    if (agent := agent_of(entry)) is not None:
        rows.append((node, OF, agent))
    return [*rows, *_metadata_triples(node, entry, most)]


def removed(node: Term, before: Iterable[Term], project: Term) -> list[Triple]:
    """Return what tells, under the name *node*, that the entries *before* were taken back."""
    return [
        (node, TYPE, REMOVAL),
        (node, jido("partOfProject"), project),
        *((node, REPLACES, entry) for entry in before),
    ]


def agent_of(entry: Entry) -> Term | None:
    """Return the agent whose memory *entry* is in, None where its name has no letter and no digit."""
    name = slug(entry.agent_id)
    return iri(f"{vocab.BASE}agents/{name}") if name else None


def active_entries(view: WriteSnapshot, key: str) -> list[Term]:
    """Return what is kept under *key* and nothing has replaced: more than one only where two branches were merged."""
    return [node for node in view.subjects(ID, literal(key)) if not view.subjects(REPLACES, node)]


def _metadata_triples(node: Term, entry: Entry, most: int) -> Iterator[Triple]:
    """Yield what the metadata say, whole, and the well-known of them by properties of their own."""
    if not entry.metadata:
        return
    yield node, METADATA, text("metadata", as_json(entry.metadata, "metadata"), most)
    speaker, said_at = entry.metadata.get("speaker"), entry.metadata.get("timestamp")
    if isinstance(speaker, str) and speaker:
        yield node, jido("speaker"), literal(speaker)
    if isinstance(said_at, str) and (moment := parse_moment(said_at)) is not None:
        yield node, conv("timestamp"), date_time(format_timestamp(moment))


PART_OF = conv("partOfConversation")
_SESSIONS = f"{vocab.BASE}sessions/"


class NotOpened(NotFound):
    """The session in which something is said was never opened."""


@dataclass(frozen=True, slots=True)
class TurnTexts:
    """What is said in one turn: something is, and agents are IRIs."""

    prompt: str | None
    answer: str | None
    asked_by: Term | None
    answered_by: Term | None
    tools: Sequence[ToolUse]
    timestamp: str

    def __post_init__(self) -> None:
        """Raise InvalidRequest for what is no text, and where nothing is said."""
        for name in ("prompt", "answer"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, str) and value):
                raise InvalidRequest(f"{name}={value!r:.80} is no text", hint=f"give {name} as text, or leave it out")
        for use in self.tools:
            if not isinstance(use, ToolUse) or not isinstance(use.name, str) or not use.name.strip():
                raise InvalidRequest(f"{use!r:.80} is no call of a tool", hint='give ToolUse("grep", {...}, result)')
        if self.prompt is None and self.answer is None and not self.tools:
            raise InvalidRequest("nothing is said in this turn", hint="give a prompt, an answer or the tools used")

    @property
    def agents(self) -> list[Term]:
        """Return who spoke."""
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
    """Return the place of the next turn: as many as there are come before it."""
    return len(view.subjects(PART_OF, conversation))


def opened(conversation: Term, session: Term, project: Term) -> list[Triple]:
    """Return the description of a conversation nobody has said anything in before."""
    return [
        (conversation, TYPE, conv("Conversation")),
        (conversation, conv("associatedWithSession"), session),
        (conversation, jido("partOfProject"), project),
    ]


def describe_turn(node: Term, index: int, conversation: Term, said: TurnTexts, most: int) -> list[Triple]:
    """Return what was *said* as the turn *node*, the one at *index* in the conversation.

    Raises InvalidRequest for what JSON does not hold, TooLarge for a text of more than *most* bytes.
    """
    return [
        (conversation, conv("hasTurn"), node),
        (node, TYPE, conv("ConversationTurn")),
        (node, PART_OF, conversation),
        (node, conv("turnIndex"), integer(index)),
        (node, conv("timestamp"), date_time(said.timestamp)),
        *_spoken(node, "Prompt", said.prompt, said.asked_by, most),
        *_spoken(node, "Answer", said.answer, said.answered_by, most),
        *(row for number, use in enumerate(said.tools, start=1) for row in _used(node, number, use, most)),
    ]


def _spoken(turn: Term, kind: str, words: str | None, agent: Term | None, most: int) -> Iterator[Triple]:
    """Yield what was said as the prompt or the answer of a turn, and by whom."""
    if words is None:
        return
    part = iri(f"{plain_value(turn)}/{kind.lower()}")
    yield turn, conv(f"has{kind}"), part
    yield part, TYPE, conv(kind)
    yield part, conv(f"{kind.lower()}Text"), text(kind.lower(), words, most)
    if agent is not None:
        yield part, jido("saidBy"), agent


def _used(turn: Term, number: int, use: ToolUse, most: int) -> Iterator[Triple]:
    """Yield the call of a tool, with what it gave back."""
    call, name = iri(f"{plain_value(turn)}/tools/{number}"), f"the tool {use.name}"
    yield turn, conv("involvesToolInvocation"), call
    yield call, TYPE, conv("ToolInvocation")
    yield call, conv("toolName"), text("the name of a tool", use.name, most)
    if use.parameters is not None:
        said = as_json(use.parameters, f"parameters of {name}")
        yield call, conv("invocationParameters"), text(f"parameters of {name}", said, most)
    if use.result is not None:
        result = iri(f"{plain_value(call)}/result")
        yield call, conv("hasResult"), result
        yield result, TYPE, conv("ToolResult")
        yield result, conv("resultData"), text(f"result of {name}", as_json(use.result, f"result of {name}"), most)


#: The stream of what is kept word for word.
HISTORY = "history"


@dataclass(frozen=True, slots=True)
class EntryChanges:
    """What is to become of entries, all of it or nothing: those that are kept, and the ids of those taken back."""

    kept: Sequence[Entry] = ()
    removed: Sequence[str] = ()


class HistoryWriter(Recovery):
    """The verbs of writing what nobody judges: each is a small commit of the history, held to ontology and shapes."""

    def keep_entries(self, project_id: str, entries: Sequence[Entry]) -> list[Outcome]:
        """Return one receipt or refusal for each entry, in order, all that were kept being durable.

        An entry replaces what is kept under its id; many share a commit. Raises NotFound `invalid_project`.
        """
        return self._line(project_id, HISTORY).submit([self._keeps(project_id, entry) for entry in entries])

    def change_entries(self, project_id: str, plan: Callable[[], EntryChanges]) -> list[Receipt]:
        """Return the receipts of what *plan* says is to become of entries, kept in one commit or not at all.

        Nobody else writes between *plan*, which may read what is kept, and the commit; where the stream moved on all
        the same it is called again. An id nothing is kept under is removed by a receipt without a commit. The first
        refusal is raised, and what *plan* raises.
        """

        def judges(view: WriteSnapshot) -> Iterator[JudgeFn]:
            changes = plan()
            yield from (self._keeps(project_id, entry) for entry in changes.kept)
            yield from (self._removes(project_id, entry_id) for entry_id in changes.removed)

        return self._line(project_id, HISTORY).submit_planned(judges)

    def keep_turn(self, project_id: str, session: str, said: TurnTexts) -> Receipt:
        """Return the receipt of a turn, kept as the next one of the conversation of *session*, a name or an IRI.

        Its place is the one thing `filled`. Raises NotOpened for a session nobody opened, InvalidRequest for what JSON
        does not hold, TooLarge, IntentRefused for what looks like a secret, and PolicyDenied for the words of another.
        """
        project, place = iri(f"{vocab.BASE}projects/{project_id}"), self.session_iri(session)

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view, said.answered_by)
            if not view.types(place):
                raise NotOpened(f"no session {plain_value(place)}", hint="open it with: jidomem session start NAME")
            node = self._new("turns", view)
            conversation = conversation_of(place)
            index = next_index(conversation, view)
            rows = describe_turn(node, index, conversation, said, self.literal)
            rows += [] if view.types(conversation) else opened(conversation, place, project)
            judged = self._kept(node, [*rows, *self._stubs(said.agents, project, view)], view)
            return replace(judged, receipt=replace(judged.receipt, filled={"index": index}))

        return self._submit(project_id, judge, HISTORY)

    def refuse_words(self, texts: Mapping[str, str]) -> None:
        """Raise TooLarge, or IntentRefused for what looks like a secret, unless *texts* may be kept, by their names."""
        for name, text in texts.items():
            check_size(
                name, text, self._stages.literal, instead="keep it in parts, or keep a summary and where the whole is"
            )
        self._stages.screened(
            (name, found) for name, text in texts.items() if (found := secrets.find(text)) is not None
        )

    def session_iri(self, name: str) -> Term:
        """Return the IRI of a session, from its plain name or itself; raises IntentRefused where it is none."""
        return self._node(name, "sessions")

    def spoken_by(self, name: str | None) -> Term | None:
        """Return the IRI of an agent or a person, None for nobody; raises IntentRefused where the name is none."""
        return None if name is None else self._node(name, "agents")

    def _keeps(self, project_id: str, entry: Entry) -> JudgeFn:
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            agent = agent_of(entry)
            self._check_besides("description", view, agent)
            node = self._new("entries", view)
            rows = describe_entry(node, entry, project, self.literal)
            for before in active_entries(view, entry.id):
                self._check_replaces(before, entry.id, view)
                rows.append((node, REPLACES, before))
            return self._kept(node, [*rows, *self._stubs(filter(None, [agent]), project, view)], view)

        return judge

    def _removes(self, project_id: str, entry_id: str) -> JudgeFn:
        project = iri(f"{vocab.BASE}projects/{project_id}")

        def judge(view: WriteSnapshot, now: datetime) -> Decision:
            self._check_besides("description", view)
            ended = active_entries(view, entry_id)
            if not ended:
                return Decision(Receipt("", None, Version(), "deduplicated"))
            for before in ended:
                self._check_replaces(before, entry_id, view)
            node = self._new("entries", view)
            return self._kept(node, removed(node, ended, project), view)

        return judge

    def _check_replaces(self, before: Term, entry_id: str, view: WriteSnapshot) -> None:
        """Raise PolicyDenied where *before*, kept under *entry_id*, is of one the speaker may not speak for."""
        owner = view.first(before, OF)
        try:
            permissions.check_speaks(owner and plain_value(owner), view, self._stages.policy, self._stages.speaker)
        except PolicyDenied:
            raise PolicyDenied(
                f"{entry_id!r} is the id of an entry of another agent", hint="leave id out, or give another one"
            ) from None

    def _new(self, folder: str, view: WriteSnapshot) -> Term:
        """Return the name of what is kept for the first time; an id that is never given twice is not looked up."""
        node = iri(f"{vocab.BASE}{folder}/{self._sources.new_id()}")
        if self._stages.fresh_ids:
            view.add_new(node, ())
        return node

    def _stubs(self, agents: Iterable[Term], project: Term, view: WriteSnapshot) -> list[Triple]:
        """Return the declarations of the agents and the project that are named for the first time."""
        found = [] if view.describes(project) else triples.project_stub(project)
        for agent in dict.fromkeys(agents):
            if not view.types(agent):
                found += triples.agent_stub(agent, self._policy.agents.get(triples.name_of(agent), AgentPolicy()))
        return found

    def _kept(self, node: Term, rows: list[Triple], view: WriteSnapshot) -> Decision:
        """Return *rows*, which tell of the new *node*, as they pass what is asked of all that is no memory."""
        judged = self._stages.append(rows, view, lambda triple: False)
        return replace(judged, receipt=replace(judged.receipt, iri=plain_value(node)))
