"""Which rules speak about a node: the shapes that target its classes, or the properties it has.  Pure over triples."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from jidomem.follow import Data
from jidomem.judge import severity_of
from jidomem.terms import Term, Triple, bare, is_iri


@dataclass(frozen=True, slots=True, order=True)
class Rule:
    """A shape that has something to say: its IRI, how grave breaking it is, and what it tells the author."""

    shape: str
    severity: str
    message: str


def about(shapes: Iterable[Triple], classes: Collection[Term], properties: Collection[Term]) -> list[Rule]:
    """Return the rules for a node of *classes*, those above included, that has *properties*."""
    data = Data(shapes)
    targets = {"targetClass": classes, "targetSubjectsOf": properties}
    found: set[Rule] = set()
    for node in data.about:
        said = data.shacl(node)
        if any(not set(of).isdisjoint(said.get(target, ())) for target, of in targets.items()):
            found.update(_rules(data, node))
    return sorted(found)


def _rules(data: Data, node: Term) -> Iterator[Rule]:
    """Yield *node*, where it has a message of its own, and the shapes of properties it names."""
    said = data.shacl(node)
    if "message" in said and is_iri(node):
        severity = severity_of(bare(said["severity"][0])) if "severity" in said else "violation"
        yield Rule(bare(node), severity, bare(said["message"][0]))
    for further in said.get("property", ()):
        yield from _rules(data, further)
