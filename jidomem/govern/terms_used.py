"""Terms that are used and not declared, deprecated or foreign, and literals not written as their datatype has it."""

from __future__ import annotations

from collections.abc import Iterator

from jidomem import vocab
from jidomem.govern.report import CURRENT, DECLARED, WRITTEN, Found
from jidomem.govern.sources import Source
from jidomem.judge import Severity
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, iri, parts
from jidomem.vocab import TYPE
from jidomem.write.extra import is_written

#: What any memory may use without an ontology of its own: RDF itself, and what the journal's format says.
_ANYWHERE = tuple(f"<{space}" for space in (vocab.RDF, vocab.RDFS, vocab.PROV, "http://www.w3.org/2002/07/owl#"))
_WRITTEN_SO = {
    "dateTime": "2026-01-31T08:00:00Z",
    "date": "2026-01-31",
    "boolean": "true",
    "decimal": "0.85",
    "integer": "7",
}
_REPLACED = ("<http://purl.org/dc/terms/isReplacedBy>", iri(vocab.RDFS + "seeAlso"))


def terms_used(source: Source, schema: Schema, *, strict: bool = False) -> list[Found]:
    """Return the use of each term that is undeclared or deprecated; of a foreign one its first, unless *strict*."""
    spaces = tuple(f"<{space}" for space in schema.namespaces)
    doubtful: dict[tuple[Term, str], str] = {}
    known = {"class": schema.classes, "property": schema.properties.keys(), "value": {s for s, _, _ in schema.triples}}
    for term, role in _used(source, spaces):
        if term in schema.deprecated:
            doubtful[term, role] = "deprecated"
        elif term not in known[role]:
            doubtful[term, role] = "undeclared" if term.startswith(spaces) or strict else "foreign"
    if not doubtful:
        return []
    found: list[Found] = []
    for triple in sorted(source.triples):
        for term, role in _roles(triple, spaces):
            how = doubtful.get((term, role))
            if how == "foreign":
                del doubtful[term, role]
            if how is not None:
                found.append(_found(triple, term, role, how, schema))
    return found


def _used(source: Source, spaces: tuple[str, ...]) -> set[tuple[Term, str]]:
    """Return every term that is used, and as what."""
    used = {(predicate, "property") for predicate in source.by_property if not predicate.startswith(_ANYWHERE)}
    used |= {(cls, "class") for of in source.types.values() for cls in of if not cls.startswith(_ANYWHERE)}
    classes = {cls for of in source.types.values() for cls in of}
    values = {value for value in source.objects - classes if value.startswith(spaces)}
    return used | {(value, "value") for value in values - source.types.keys()}


def _roles(triple: Triple, spaces: tuple[str, ...]) -> Iterator[tuple[Term, str]]:
    _, predicate, value = triple
    if predicate == TYPE:
        yield value, "class"
        return
    yield predicate, "property"
    if value.startswith(spaces):
        yield value, "value"


def _found(triple: Triple, term: Term, role: str, how: str, schema: Schema) -> Found:
    subject, predicate, value = triple
    if how == "deprecated":
        instead = next((o for s, p, o in schema.triples if s == term and p in _REPLACED), None)
        text = f"{bare(term)} is deprecated" + (f": use {bare(instead)}" if instead else "")
        return Found(subject, CURRENT, "warning", text, predicate, value)
    if how == "foreign":
        text = f"{bare(term)} is a {role} of a foreign vocabulary: kept, not judged (said once, for its first use)"
        return Found(subject, DECLARED, "info", text, predicate, value)
    near = schema.nearest(term)
    text = f"{bare(term)} is not a declared {role}" + (
        f"; did you mean {bare(near)}?" if near else "; ask for it with: jidomem ontology propose"
    )
    severity: Severity = "violation"
    return Found(subject, DECLARED, severity, text, predicate, value)


def literals(source: Source) -> list[Found]:
    """Return the literals that are not written as their datatype has it."""
    texts: dict[Term, str] = {}
    for value in source.objects:
        if value[0] == '"' and value[-1] == ">":
            said = parts(value)
            if not is_written(said.text, said.datatype):
                texts[value] = (
                    f"{said.text[:80]!r} is not written as a {vocab.local_name(said.datatype)} is: write it so"
                )
                if example := _WRITTEN_SO.get(vocab.local_name(said.datatype)):
                    texts[value] += f", as in {example}"
    rows = [triple for triple in source.triples if triple[2] in texts] if texts else []
    return [Found(subject, WRITTEN, "violation", texts[value], predicate, value) for subject, predicate, value in rows]
