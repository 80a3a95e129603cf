"""What long-term memory holds of what was promoted: by its key, by its content, by its IRI."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from jidomem.errors import NotFound
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.moments import parse_moment, stamp
from jidomem.terms import Term, bare, iri, literal
from jidomem.vocab import TYPE, graph_iri, jido, type_of, type_uri

_STATUS, _ASSERTED = jido("hasAssertionStatus"), jido("Asserted")
_ENDS = (jido("supersededBy"), jido("invalidatedBy"))


@dataclass(frozen=True, slots=True)
class Held:
    """A memory in force: what it says, the keys it was promoted under, and the values that are given back for them."""

    iri: str
    type: str
    summary: str
    explanation: str | None
    keys: tuple[str, ...]
    values: tuple[str, ...]


class Promoted:
    """The memories in force of a project, the newest first."""

    def __init__(self, index: OxigraphIndex, project: str, catch_up: Callable[[str], object]) -> None:
        self._index, self._project, self._catch_up = index, project, catch_up
        self._graph = graph_iri(project)

    def under(self, *keys: str) -> list[Held]:
        """Return the memories that were promoted under one of *keys*."""
        return self._held(lambda: (item for key in keys for item in self._with(jido("key"), literal(key))))

    def saying(self, kind: str, summary: str) -> list[Held]:
        """Return the memories of the type *kind* with this summary, to the letter."""
        found = self._held(lambda: self._with(jido("summary"), literal(summary)))
        return [held for held in found if type_uri(held.type) == type_uri(kind)]

    def named(self, items: Iterable[str]) -> list[Held]:
        """Return the memories *items*, in their order."""
        order = {item: place for place, item in enumerate(items)}
        return sorted(self._held(lambda: map(iri, order)), key=lambda held: order[held.iri])

    def _held(self, items: Callable[[], Iterable[Term]]) -> list[Held]:
        """Return those of *items* that are in force, and were not redacted."""
        try:
            self._catch_up(self._project)
        except NotFound:  # nothing was ever written
            return []
        found = [self._read(item) for item in dict.fromkeys(items()) if self._in_force(item)]
        found.sort(key=lambda each: (each[0], each[1].iri), reverse=True)
        return [held for _, held in found if held.summary]

    def _with(self, predicate: Term, value: Term) -> Iterable[Term]:
        return (item for item, _, _ in self._index.triples(self._graph, None, predicate, value))

    def _in_force(self, item: Term) -> bool:
        ends = (end for link in _ENDS for _, _, end in self._index.triples(self._graph, item, link))
        return self._is_asserted(item) and not any(map(self._is_asserted, ends))

    def _is_asserted(self, item: Term) -> bool:
        return next(iter(self._index.triples(self._graph, item, _STATUS, _ASSERTED)), None) is not None

    def _read(self, item: Term) -> tuple[str, Held]:
        """Return when *item* was recorded, and what it says."""
        said: dict[Term, list[str]] = {}
        for _, predicate, term in sorted(self._index.triples(self._graph, item)):
            said.setdefault(predicate, []).append(bare(term))

        def texts(name: str) -> list[str]:
            return said.get(jido(name), [])

        kinds = filter(None, map(type_of, said.get(TYPE, ())))
        moments = filter(None, map(parse_moment, texts("recordedAt")))
        held = Held(
            iri=bare(item),
            type=next(kinds, ""),
            summary=next(iter(texts("summary")), ""),
            explanation=next(iter(texts("detailedExplanation")), None),
            keys=tuple(texts("key")),
            values=tuple(texts("value")),
        )
        return max(map(stamp, moments)), held
