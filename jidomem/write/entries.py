"""An agent's entry as triples: kept word for word, never judged for what it says.  Pure over rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jidomem import vocab
from jidomem.entry import Entry
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, Triple, date_time, iri, literal
from jidomem.vocab import TYPE, conv, jido
from jidomem.words import slug
from jidomem.write.literals import as_json, text
from jidomem.write.view import View

ENTRY, ID, TEXT, AGENT = jido("Entry"), jido("entryId"), jido("entryText"), jido("agentId")
REMOVAL = jido("EntryRemoval")
SESSION, METADATA, REPLACES, OF = jido("sessionId"), jido("entryMetadata"), jido("replaces"), jido("entryOf")


def described(node: Term, entry: Entry, project: Term, most: int) -> list[Triple]:
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
    return [*rows, *_besides(node, entry, most)]


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


def held(view: View, key: str) -> list[Term]:
    """Return what is kept under *key* and nothing has replaced: more than one only where two branches were merged."""
    return [node for node in view.subjects(ID, literal(key)) if not view.subjects(REPLACES, node)]


def _besides(node: Term, entry: Entry, most: int) -> Iterator[Triple]:
    """Yield what the metadata say, whole, and the well-known of them by properties of their own."""
    if not entry.metadata:
        return
    yield node, METADATA, text("metadata", as_json(entry.metadata, "metadata"), most)
    speaker, said_at = entry.metadata.get("speaker"), entry.metadata.get("timestamp")
    if isinstance(speaker, str) and speaker:
        yield node, jido("speaker"), literal(speaker)
    if isinstance(said_at, str) and (moment := parse_moment(said_at)) is not None:
        yield node, conv("timestamp"), date_time(stamp(moment))
