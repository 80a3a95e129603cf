"""Searchable documents, read from the index: a memory, an entry of an agent, or a turn of a conversation.

A document has the texts by field, the columns that searches filter by, and the verbatim text with its speakers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from jidomem.base.containers import grouped
from jidomem.base.words import LONGEST_TEXT, is_remark
from jidomem.rdf.terms import Term, Triple, is_iri, moment_text, parse_literal, plain_value
from jidomem.rdf.vocab import JIDO, LABEL, TYPE, XSD, conv, jido, local_name
from jidomem.records.active import ACTIVE, is_record_of, state
from jidomem.records.interfaces import FIELD_WEIGHTS, NAMESPACE

#: field -> properties of the memory with its texts.
_MEMORY_FIELDS = {
    "summary": ("summary", "conventionName"),
    "topic": ("topic",),
    "about": ("about",),
    "rationale": ("rationale",),
    "explanation": ("detailedExplanation", "revisionReason"),
}
#: field -> the property that links to another node, and the property of that node with the text.
_LEADS = {"evidence": (jido("derivedFrom"), LABEL), "alternatives": (jido("hasAlternative"), jido("summary"))}
_RECORDED, _STATUS, _ALTERNATIVE = jido("recordedAt"), jido("hasAssertionStatus"), jido("hasAlternative")
_ENDS = (jido("supersededBy"), jido("invalidatedBy"))
_PROPOSED = jido("Proposed")


class TripleReader(Protocol):
    """The index, or a cached part of it, from which documents are built."""

    def triples(
        self, graph: str, subject: Term | None = None, predicate: Term | None = None, value: Term | None = None, /
    ) -> Iterator[Triple]:
        """Return the triples of *graph* that match."""


class Document(NamedTuple):
    """A memory, entry or turn: `texts` are in the order of FIELD_WEIGHTS; all moments are in one form.

    `ended` is when an asserted memory first superseded or withdrew it, `successors` superseded it. `inactive` is the
    other reason why it is not active: pending, or a decision status. `rejected` is when an asserted memory first
    withdrew the proposal. `about` has the IRIs it is about. `text` is the verbatim text that is embedded, up to a
    length: that of a memory has no evidence and alternatives, which would hide that it repeats another one. A text of a
    conversation has its speakers, time, conversation (`talk`) and `place`, the sort key within the conversation.
    """

    item: str
    types: tuple[str, ...]
    recorded: str
    ended: str | None = None
    rejected: str | None = None
    inactive: str | None = None
    agent: str = ""
    session: str = ""
    confidence: str = ""
    valid_from: str | None = None
    valid_until: str | None = None
    successors: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    text: str = ""
    speakers: tuple[str, ...] = ()
    said_at: str = ""
    talk: str = ""
    place: str = ""


def touched_memories(index: TripleReader, graph: str, changes: Mapping[Term, Collection[Term]]) -> list[Term]:
    """Return the memories that may have to be read again after *changes*: node -> properties with new values."""
    nodes = set(changes)
    for node, names in changes.items():
        links = [link for link, by in _LEADS.values() if by in names]
        links += _ENDS if _STATUS in names or _RECORDED in names else ()
        for link in links:
            nodes.update(item for item, _, _ in index.triples(graph, None, link, node))
    return sorted(nodes)


def other_records(index: TripleReader, graph: str, items: Collection[Term]) -> dict[Term, Term]:
    """Return the further records of the memories *items* that branches wrote differently, each with its memory."""
    rows = (row for item in items for row in index.triples(graph, None, jido("conflictsWith"), item))
    return {record: item for record, _, item in rows if is_record_of(record, item)}


def memory_document(index: TripleReader, graph: str, item: Term) -> Document | None:
    """Return the document of *item*; None if it is no memory, has no summary, or is an alternative of a decision."""
    statements = grouped((predicate, term) for _, predicate, term in sorted(index.triples(graph, item)))
    recorded = _earliest(statements.get(_RECORDED, ()))
    if recorded is None or jido("summary") not in statements or _STATUS not in statements:
        return None
    if jido("Alternative") in statements.get(TYPE, ()) and any(index.triples(graph, None, _ALTERNATIVE, item)):
        return None
    ends = {
        end: at for link in _ENDS for end in statements.get(link, ()) if (at := _end_recorded_at(index, graph, end))
    }
    texts = {
        name: [_text(term) for by in names for term in statements.get(jido(by), ())]
        for name, names in _MEMORY_FIELDS.items()
    }
    for name, (link, by) in _LEADS.items():
        texts[name] = [
            _text(t) for node in statements.get(link, ()) for _, _, t in sorted(index.triples(graph, node, by))
        ]
    texts["explanation"] += _project_texts(statements)
    texts = {name: [text for text in values if not is_remark(text)] for name, values in texts.items()}

    def value(name: str) -> str:
        return plain_value(statements.get(jido(name), ('""',))[0])

    return Document(
        item=plain_value(item),
        types=tuple(map(plain_value, statements.get(TYPE, ()))),
        recorded=recorded,
        ended=min(ends.values(), default=None),
        rejected=rejected_at(index, graph, statements),
        inactive=_inactive(statements),
        agent=value("assertedBy"),
        session=value("assertedIn"),
        confidence=local_name(value("hasConfidence")),
        valid_from=max(_moments(statements.get(jido("validFrom"), ())), default=None),
        valid_until=_earliest(statements.get(jido("validUntil"), ())),
        successors=tuple(plain_value(end) for end in statements.get(_ENDS[0], ()) if end in ends),
        about=tuple(map(plain_value, statements.get(jido("about"), ()))),
        texts=tuple("\n".join(texts[name]) for name in FIELD_WEIGHTS),
        text="\n".join(text for name in _MEMORY_FIELDS if name != "about" for text in texts[name])[:LONGEST_TEXT],
        said_at=_earliest(statements.get(jido("hasTimestamp"), ())) or recorded,
    )


def _inactive(statements: dict[Term, list[Term]]) -> str | None:
    """Return why a memory that nothing ended is not active: pending, or its decision status; None if it is active."""
    stated = next((parse_literal(term).text for term in statements.get(jido("decisionStatus"), ())), None)
    known = state(stated, is_proposal=_PROPOSED in statements[_STATUS])
    return None if known == ACTIVE else known


def rejected_at(index: TripleReader, graph: str, statements: Mapping[Term, Collection[Term]]) -> str | None:
    """Return when an asserted memory first withdrew the proposal with these *statements*; None for another memory."""
    ends = statements.get(_ENDS[1], ()) if _PROPOSED in statements.get(_STATUS, ()) else ()
    return min(filter(None, (_end_recorded_at(index, graph, end) for end in ends)), default=None)


def _end_recorded_at(index: TripleReader, graph: str, end: Term) -> str | None:
    """Return when the memory *end* was recorded; None if it is not asserted."""
    if not any(index.triples(graph, end, _STATUS, jido("Asserted"))):
        return None
    return _recorded(index, graph, end)


def _project_texts(statements: dict[Term, list[Term]]) -> Iterator[str]:
    for predicate, terms in statements.items():
        if not predicate.startswith(f"<{JIDO}"):
            yield from (parse_literal(term).text for term in terms if not is_iri(term) and _is_words(term))


def _is_words(term: Term) -> bool:
    value = parse_literal(term)
    return bool(value.language) or value.datatype == XSD + "string"


def _text(term: Term) -> str:
    """Return the text of a literal, or the local name of an IRI."""
    return local_name(term) if is_iri(term) else parse_literal(term).text


ENTRY = jido("Entry")
_ID, _TEXT, _REPLACES = jido("entryId"), jido("entryText"), jido("replaces")
#: The fields of a memory that an entry has: its text is in the place of the summary.
_ENTRY_FIELDS = {"summary": _TEXT, "about": jido("speaker")}
#: The metadata with the session of an entry that has none of its own, and with its position in there.
_SESSION, _POSITION, _LAST = "session", "position", 10**12


def touched_entries(index: TripleReader, graph: str, nodes: Iterable[Term]) -> list[Term]:
    """Return the entries and turns, sorted, that may have to be read again after *nodes* got new statements."""
    entries = set(nodes)
    for node in [*entries]:
        entries.update(replaced for _, _, replaced in index.triples(graph, node, _REPLACES))
        entries.update(_duplicates(index, graph, node))
    return sorted(entries)


def namespace(given: Any) -> str:
    """Return a namespace, or None, in the form in which searches compare it."""
    return json.dumps(given, sort_keys=True, default=repr)


def entry_document(index: TripleReader, graph: str, node: Term) -> Document | None:
    """Return the document of the entry *node*; None if it is no entry or was redacted."""
    statements = properties_of(index, graph, node)
    if ENTRY not in statements.get(TYPE, ()) or not {_ID, _TEXT, jido("agentId")} <= statements.keys():
        return None
    recorded = _earliest(statements.get(_RECORDED, ()))
    if recorded is None:
        return None

    def value(name: str) -> str:
        return plain_value(statements.get(jido(name), ('""',))[0])

    newer = _replacements(index, graph, node, recorded)
    metadata = json.loads(value("entryMetadata") or "{}")
    namespace_key = namespace(metadata.get(NAMESPACE))
    return Document(
        item=plain_value(node),
        types=tuple(map(plain_value, statements[TYPE])),
        recorded=recorded,
        ended=min(filter(None, newer.values()), default=None),
        agent=value("agentId"),
        session=value("sessionId"),
        successors=tuple(map(plain_value, newer)),
        about=(namespace_key,),
        texts=tuple(
            plain_value(statements[_ENTRY_FIELDS[name]][0]) if _ENTRY_FIELDS.get(name) in statements else ""
            for name in FIELD_WEIGHTS
        ),
        text=plain_value(statements[_TEXT][0])[:LONGEST_TEXT],
        speakers=tuple(map(plain_value, statements.get(_ENTRY_FIELDS["about"], ()))),
        said_at=_earliest(statements.get(conv("timestamp"), ())) or recorded,
        talk=_talk(value("agentId"), namespace_key, value("sessionId") or metadata.get(_SESSION)),
        place=f"{_entry_place(metadata.get(_POSITION))}{recorded} {plain_value(node)}",
    )


def _talk(agent: str, namespace_key: str, session: Any) -> str:
    """Return the key of a conversation: agent, namespace and session; "" without a session."""
    if isinstance(session, bool) or not isinstance(session, (str, int)) or session == "":
        return ""
    return json.dumps([agent, namespace_key, session])


def _entry_place(position: Any) -> str:
    """Return the prefix of a sort key that puts entries with a position before those without."""
    is_one = isinstance(position, int) and not isinstance(position, bool) and 0 <= position < _LAST
    return f"{position:012d} " if is_one else ""


def _replacements(index: TripleReader, graph: str, node: Term, recorded: str) -> dict[Term, str | None]:
    """Return the entries that replaced *node*, or newer ones of its id from a merged branch, with their moments."""
    newer = {other: _recorded(index, graph, other) for other, _, _ in index.triples(graph, None, _REPLACES, node)}
    if newer:
        return newer
    duplicates = ((other, _recorded(index, graph, other)) for other in _duplicates(index, graph, node))
    return {other: at for other, at in duplicates if at is not None and (at, other) > (recorded, node)}


def _duplicates(index: TripleReader, graph: str, node: Term) -> Iterator[Term]:
    """Yield the other entries of the same id that nothing replaces: merged branches may bring some."""
    for _, _, key in index.triples(graph, node, _ID):
        for other, _, _ in index.triples(graph, None, _ID, key):
            if other != node and next(index.triples(graph, None, _REPLACES, other), None) is None:
                yield other


def _recorded(index: TripleReader, graph: str, node: Term) -> str | None:
    return _earliest(at for _, _, at in index.triples(graph, node, _RECORDED))


def _earliest(moments: Iterable[Term]) -> str | None:
    return min(_moments(moments), default=None)


def _moments(terms: Iterable[Term]) -> Iterator[str]:
    return filter(None, map(moment_text, terms))


TURN = conv("ConversationTurn")
#: The most tool calls of a turn that are searchable, and the most characters of a call's parameters or result.
CALLS, CALL_CHARACTERS = 20, 1_000
_BY, _CALL = jido("saidBy"), conv("involvesToolInvocation")
_TEXTS = conv("promptText"), conv("answerText")


def turn_document(index: TripleReader, graph: str, node: Term) -> Document | None:
    """Return the document of the turn *node*; None if it is no turn."""
    statements = properties_of(index, graph, node)
    recorded = _earliest(statements.get(_RECORDED, ()))
    if TURN not in statements.get(TYPE, ()) or recorded is None:
        return None
    parts = [
        properties_of(index, graph, part)
        for name in ("Prompt", "Answer")
        for part in statements.get(conv(f"has{name}"), ())
    ]
    spoken = [plain_value(text) for part in parts for name in _TEXTS for text in part.get(name, ())]
    agents = [plain_value(agent) for part in parts for agent in part.get(_BY, ())]
    names = tuple(dict.fromkeys(map(local_name, agents)))
    talk = next(iter(statements.get(conv("partOfConversation"), ())), "")
    tool_texts = _tool_texts(index, graph, statements.get(_CALL, []))
    texts = {"summary": "\n".join(spoken), "about": "\n".join(names), "evidence": "\n".join(tool_texts)}
    return Document(
        item=plain_value(node),
        types=tuple(map(plain_value, statements[TYPE])),
        recorded=recorded,
        agent=agents[-1] if agents else "",
        session=_session(index, graph, talk),
        texts=tuple(texts.get(name, "") for name in FIELD_WEIGHTS),
        text="\n\n".join(spoken)[:LONGEST_TEXT],
        speakers=names,
        said_at=_earliest(statements.get(conv("timestamp"), ())) or recorded,
        talk=plain_value(talk) if talk else "",
        place=f"{_turn_place(statements)}{recorded} {plain_value(node)}",
    )


def _tool_texts(index: TripleReader, graph: str, calls: list[Term]) -> Iterator[str]:
    for call in sorted(calls)[:CALLS]:
        statements = properties_of(index, graph, call)
        results = [properties_of(index, graph, result) for result in statements.get(conv("hasResult"), ())]
        yield from map(plain_value, statements.get(conv("toolName"), ()))
        yield from (
            plain_value(parameter)[:CALL_CHARACTERS] for parameter in statements.get(conv("invocationParameters"), ())
        )
        yield from (
            plain_value(data)[:CALL_CHARACTERS] for result in results for data in result.get(conv("resultData"), ())
        )


def _session(index: TripleReader, graph: str, talk: Term) -> str:
    """Return the work session of a conversation, or ""."""
    rows = index.triples(graph, talk, conv("associatedWithSession")) if talk else ()
    return next((plain_value(session) for _, _, session in rows), "")


def _turn_place(statements: dict[Term, list[Term]]) -> str:
    number = next(iter(map(plain_value, statements.get(conv("turnIndex"), ()))), "")
    return f"{int(number):012d} " if number.isdecimal() else ""


def properties_of(index: TripleReader, graph: str, node: Term) -> dict[Term, list[Term]]:
    """Return the values of each property of *node*."""
    return grouped((predicate, term) for _, predicate, term in index.triples(graph, node))


def history_document(index: TripleReader, graph: str, node: Term) -> Document | None:
    """Return the document of the entry or turn *node*; None if it is neither or was redacted."""
    return entry_document(index, graph, node) or turn_document(index, graph, node)


class DocumentReader(NamedTuple):
    """The functions that read the searchable documents of a graph from the index."""

    #: The nodes to be read again after changes: node -> properties with new values.
    touched: Callable[[TripleReader, str, Mapping[Term, Collection[Term]]], list[Term]]
    document: Callable[[TripleReader, str, Term], Document | None]


#: The streams with searchable documents, each in a file of its own.
READERS: Mapping[str, DocumentReader] = {
    "memory": DocumentReader(touched_memories, memory_document),
    "history": DocumentReader(touched_entries, history_document),
}
