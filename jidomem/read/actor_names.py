"""The plain names of agents and sessions, by which a question may name them in place of their IRIs."""

from __future__ import annotations

from difflib import get_close_matches

from jidomem.errors import NotFound
from jidomem.index import OxigraphIndex
from jidomem.terms import bare, iri
from jidomem.vocab import BASE, TYPE, conv, graphs_of, jido
from jidomem.words import slug

#: How many names a hint lists where none is alike.
_LISTED = 10
#: Folder of the IRIs -> properties whose subjects, and properties whose objects, are such agents or sessions.
_SUBJECTS = {"agents": ((TYPE, jido("Agent")),), "sessions": ((jido("startedAt"), None),)}
_OBJECTS = {"agents": (jido("saidBy"), jido("entryOf")), "sessions": (conv("associatedWithSession"),)}


def named(index: OxigraphIndex, project: str, folder: str, name: str) -> str:
    """Return the IRI of the agent or session that *project* knows by the plain *name*; an IRI is returned as it is.

    Raises NotFound with the nearest names.
    """
    last = slug(name)
    if ":" in name or not last:
        return name
    node = iri(f"{BASE}{folder}/{last}")
    for graph in graphs_of(project):
        if any(index.triples(graph, None, None, node, most=1)) or any(index.triples(graph, node, most=1)):
            return bare(node)
    known = sorted(_known(index, project, folder))
    near = get_close_matches(last, known, n=3, cutoff=0.5)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"there are: {', '.join(known[:_LISTED])}{more}" if known else "nothing is recorded yet"
    raise NotFound(f"{project} has no {folder[:-1]} {name!r}", hint=hint)


def _known(index: OxigraphIndex, project: str, folder: str) -> set[str]:
    """Return the names of all agents, or sessions, of a project."""
    found: set[str] = set()
    for graph in graphs_of(project):
        for predicate, value in _SUBJECTS[folder]:
            found.update(bare(node) for node, _, _ in index.triples(graph, None, predicate, value))
        for predicate in _OBJECTS[folder]:
            found.update(bare(node) for _, _, node in index.triples(graph, None, predicate))
    start = f"{BASE}{folder}/"
    return {name.removeprefix(start) for name in found if name.startswith(start)}
