"""docs/reference/ontology.md, written from ontology/*.ttl as jidomem reads them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from docs.generate.tables import code, table
from jidomem.check import terms
from jidomem.check.terms import TermEntry, short
from jidomem.rdf import vocab
from jidomem.rdf.terms import iri
from jidomem.schema.ontology import load

_TERMS = """\
# The ontology: every term

The terms of version {version}, generated from `ontology/*.ttl`. [Ontology](../ontology.md) describes the modules and how a project adds
its own terms; `jidomem ontology show TERM` prints a term with its rules.

## Memory types

{types}"""
_HEADS = {
    "class": ("Classes", ["class", "below", "is", "such as", "not to be confused"]),
    "property": ("Properties", ["property", "of", "takes", "says", "note"]),
    "individual": ("Values", ["value", "of", "is", "such as", "note"]),
}


def pages() -> dict[str, str]:
    """Return the page, by its name."""
    schema = load()
    entries = [terms.entry(schema, term) for term in terms.glossary_terms(schema)]
    text = _TERMS.format(version=schema.version, types=_types(entries))
    for name in sorted({_module(entry) for entry in entries}):
        text += f"\n## {name}\n" + "".join(_terms([each for each in entries if _module(each) == name]))
    return {"reference/ontology.md": text}


def _types(entries: Iterable[TermEntry]) -> str:
    by_class = {entry.iri: entry for entry in entries}
    rows = []
    for name in vocab.GUIDE_TYPES:
        entry = by_class[vocab.type_uri(name)]
        rows.append([code(name), code(_name(entry.iri)), entry.definition, entry.example])
    return table(["type", "class", "meaning", "example"], rows)


def _module(entry: TermEntry) -> str:
    return Path(entry.path or "").stem


def _terms(entries: Iterable[TermEntry]) -> Iterable[str]:
    for kind, (title, head) in _HEADS.items():
        rows = table(head, (_row(each) for each in entries if each.kind == kind))
        if rows:
            yield f"\n### {title}\n\n{rows}"


def _row(entry: TermEntry) -> list[str]:
    name = code(_name(entry.iri)) + (" (deprecated)" if entry.deprecated else "")
    if entry.kind == "property":
        of, takes = _names(entry.domain), _names(entry.range) + (", one at most" if entry.functional else "")
        return [name, of, takes.removeprefix(", "), entry.definition, entry.note]
    above = entry.above if entry.kind == "class" else entry.classes
    return [name, _names(above), entry.definition, entry.example, entry.note]


def _names(terms: Iterable[str]) -> str:
    return ", ".join(code(_name(each)) for each in terms)


def _name(term_: str) -> str:
    return short(iri(term_))
