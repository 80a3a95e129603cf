"""An entry as it is looked through: its text and who said it, read from the index, as memories are by `documents`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from jidomem.index.answers import Solutions
from jidomem.index.documents import Document
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.lexical import FIELDS
from jidomem.moments import parse_moment, stamp
from jidomem.pieces import LONGEST
from jidomem.recall import NAMESPACE
from jidomem.terms import Term, bare
from jidomem.vocab import TYPE, conv, jido

ENTRY = jido("Entry")
_ID, _TEXT, _RECORDED, _REPLACES = jido("entryId"), jido("entryText"), jido("recordedAt"), jido("replaces")
#: The fields of a memory that an entry has: its text stands where a summary does.
_SAYS = {"summary": _TEXT, "about": jido("speaker")}
#: What of the metadata tells the session an entry was said in where it has none of its own, and its place in there.
_SESSION, _POSITION, _LAST = "session", "position", 10**12
_ITEMS = f"SELECT ?entry ?at WHERE {{ ?entry {_TEXT} ?text ; a {ENTRY} ; {_RECORDED} ?at }}"


def items(index: OxigraphIndex, graph: str) -> list[tuple[Term, Term]]:
    """Return every entry of *graph*, oldest first, each after the moment it was recorded."""
    found = index.query(_ITEMS, graphs=[graph])
    assert isinstance(found, Solutions)
    return sorted((row[1] or "", row[0] or "") for row in found.rows)


def touched(index: OxigraphIndex, graph: str, nodes: Iterable[Term]) -> list[Term]:
    """Return the entries that may have to be looked at again once something new was said of *nodes*, sorted."""
    found = set(nodes)
    for node in [*found]:
        found.update(before for _, _, before in index.triples(graph, node, _REPLACES))
        found.update(_beside(index, graph, node))
    return sorted(found)


def namespace(given: Any) -> str:
    """Return how a namespace, or None for none, is looked for."""
    return json.dumps(given, sort_keys=True, default=repr)


def document(index: OxigraphIndex, graph: str, node: Term) -> Document | None:
    """Return the entry *node* as it is looked through; None for what is none, or was redacted."""
    said: dict[Term, list[Term]] = {}
    for _, predicate, term in index.triples(graph, node):
        said.setdefault(predicate, []).append(term)
    if ENTRY not in said.get(TYPE, ()) or _TEXT not in said:
        return None
    recorded = _first(said.get(_RECORDED, ()))
    if recorded is None:
        return None

    def one(name: str) -> str:
        return bare(said.get(jido(name), ('""',))[0])

    newer = _newer(index, graph, node, recorded)
    metadata = json.loads(one("entryMetadata") or "{}")
    within = namespace(metadata.get(NAMESPACE))
    return Document(
        item=bare(node),
        types=tuple(map(bare, said[TYPE])),
        recorded=recorded,
        ended=min(filter(None, newer.values()), default=None),
        inactive=None,
        agent=one("agentId"),
        session=one("sessionId"),
        confidence="",
        valid_from=None,
        valid_until=None,
        successors=tuple(map(bare, newer)),
        about=(within,),
        texts=tuple(bare(said[_SAYS[name]][0]) if _SAYS.get(name) in said else "" for name in FIELDS),
        text=bare(said[_TEXT][0])[:LONGEST],
        speakers=tuple(map(bare, said.get(_SAYS["about"], ()))),
        said_at=_first(said.get(conv("timestamp"), ())) or recorded,
        talk=_talk(one("agentId"), within, one("sessionId") or metadata.get(_SESSION)),
        place=f"{_place(metadata.get(_POSITION))}{recorded} {bare(node)}",
    )


def _talk(agent: str, within: str, session: Any) -> str:
    """Return what is the same for all that an agent kept of one session in one namespace, nothing outside of any."""
    if isinstance(session, bool) or not isinstance(session, (str, int)) or session == "":
        return ""
    return json.dumps([agent, within, session])


def _place(position: Any) -> str:
    """Return what sorts entries that have a position by it, before those that have none."""
    is_one = isinstance(position, int) and not isinstance(position, bool) and 0 <= position < _LAST
    return f"{position:012d} " if is_one else ""


def _newer(index: OxigraphIndex, graph: str, node: Term, recorded: str) -> dict[Term, str | None]:
    """Return what replaced *node*, also a newer entry of its id that another branch brought, each with its moment."""
    newer = {found: _recorded(index, graph, found) for found, _, _ in index.triples(graph, None, _REPLACES, node)}
    if newer:
        return newer
    beside = ((found, _recorded(index, graph, found)) for found in _beside(index, graph, node))
    return {found: at for found, at in beside if at is not None and (at, found) > (recorded, node)}


def _beside(index: OxigraphIndex, graph: str, node: Term) -> Iterator[Term]:
    """Yield the other entries of the same id that nothing replaces: there are some where branches were merged."""
    for _, _, key in index.triples(graph, node, _ID):
        for found, _, _ in index.triples(graph, None, _ID, key):
            if found != node and next(index.triples(graph, None, _REPLACES, found), None) is None:
                yield found


def _recorded(index: OxigraphIndex, graph: str, node: Term) -> str | None:
    return _first(at for _, _, at in index.triples(graph, node, _RECORDED))


def _first(moments: Iterable[Term]) -> str | None:
    """Return the earliest of *moments*, in its one written form."""
    return min((stamp(at) for at in map(parse_moment, map(bare, moments)) if at is not None), default=None)
