"""What a term means: all that ontology and shapes say of it, and where that is declared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from jidomem import resources
from jidomem.errors import InvalidRequest, NotFound
from jidomem.govern.judged import targets
from jidomem.govern.report import Found
from jidomem.govern.sources import FileSource, by_subject, line_in
from jidomem.judge import SH, severity_of
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, iri, is_iri, parts
from jidomem.vocab import (
    CLASS_OF_TYPE,
    CONVERSATION,
    LABEL,
    PREFIXES,
    RDFS,
    SHAPE,
    TYPE,
    TYPE_ALIASES,
    jido,
    local_name,
)

_SKOS = "http://www.w3.org/2004/02/skos/core#"
_PREFIXES = {
    **PREFIXES,
    "conv": CONVERSATION,
    "shape": SHAPE,
    "sh": SH,
    "skos": _SKOS,
    "owl": "http://www.w3.org/2002/07/owl#",
}
_PROPERTY, _PATH = iri(SH + "property"), iri(SH + "path")
_MESSAGE, _SEVERITY, _SUBCLASS = iri(SH + "message"), iri(SH + "severity"), iri(RDFS + "subClassOf")


@dataclass(frozen=True, slots=True)
class Rule:
    """A shape that speaks of a term: its IRI, what it tells the author, how grave it is, and what it targets."""

    iri: str
    message: str
    severity: str
    target: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One term; lists are of IRIs, sorted. `path` and `line` say where it is declared."""

    iri: str
    kind: str
    label: str = ""
    definition: str = ""
    example: str = ""
    note: str = ""
    deprecated: bool = False
    functional: bool = False
    above: tuple[str, ...] = ()
    below: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    range: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    individuals: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    path: str | None = None
    line: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
        told: dict[str, Any] = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "rules"}
        told = {name: list(value) if isinstance(value, tuple) else value for name, value in told.items()}
        rules = [{name: getattr(rule, name) for name in Rule.__dataclass_fields__} for rule in self.rules]
        return {"name": short(iri(self.iri)), **told, "rules": rules}


def short(term: Term) -> str:
    """Return a term as people write it.

    >>> short(jido("Fact"))
    'jido:Fact'
    """
    text = bare(term)
    for prefix, space in _PREFIXES.items():
        if text.startswith(space) and "/" not in text[len(space) :] and text != space:
            return f"{prefix}:{text[len(space) :]}"
    return text


def find(schema: Schema, name: str) -> Term:
    """Return the term that *name* stands for: an IRI, `jido:topic`, `Decision`, or the `type` of an intent.

    Raises NotFound, with the nearest names, where there is none, and InvalidRequest where there are several.
    """
    known = schema.declared | {subject for subject, _, _ in schema.rules if is_iri(subject)}
    prefix, _, local = name.partition(":")
    written = name if prefix not in _PREFIXES else _PREFIXES[prefix] + local
    type_ = TYPE_ALIASES.get(name, name)
    for term in (f"<{written.strip('<>')}>", jido(name), jido(CLASS_OF_TYPE.get(type_, name))):
        if term in known:
            return term
    found = sorted(term for term in known if local_name(term) == name)
    if len(found) == 1:
        return found[0]
    if found:
        hint = f"give its IRI: {' or '.join(map(bare, found))}"
        raise InvalidRequest(f"{len(found)} terms are called {name!r}", hint=hint)
    names = {local_name(term).casefold(): term for term in sorted(known, reverse=True)}
    near = [short(names[each]) for each in get_close_matches(local_name(local or name).casefold(), names, n=3)]
    hint = f"did you mean {' or '.join(near)}?" if near else "list them with: jidomem ontology show"
    raise NotFound(f"there is no term {name!r}", hint=hint)


def entry(schema: Schema, term: Term, overlay: Sequence[Path] = ()) -> Entry:
    """Return what is said of *term*; *overlay* are the folders of the project's own terms and shapes."""
    said = [row for row in (*schema.triples, *schema.rules) if row[0] == term]
    declared = schema.properties.get(term)
    path, line = _place(term, overlay)
    classes = schema.individuals.get(term, frozenset())
    return Entry(
        iri=bare(term),
        kind=_kind(schema, term),
        label=_text(said, LABEL),
        definition=_text(said, iri(_SKOS + "definition")) or _text(said, iri(RDFS + "comment")),
        example=_text(said, iri(_SKOS + "example")),
        note=_text(said, iri(_SKOS + "scopeNote")),
        deprecated=term in schema.deprecated,
        functional=bool(declared and declared.functional),
        above=_listed(value for _, predicate, value in said if predicate == _SUBCLASS and is_iri(value)),
        below=_listed(s for s, p, o in schema.triples if (p, o) == (_SUBCLASS, term)),
        domain=_listed(declared.domain if declared else ()),
        range=_listed(declared.range if declared else ()),
        classes=_listed(classes),
        individuals=_listed(each for each, of in schema.individuals.items() if term in of),
        properties=_listed(each for each, of in schema.properties.items() if term in of.domain),
        rules=tuple(sorted(_rules(schema, term), key=lambda rule: (rule.target or "", rule.iri, rule.message))),
        path=path,
        line=line,
    )


def definitions(schema: Schema) -> dict[Term, str]:
    """Return what each term means, found in one walk through the ontology."""
    defines = iri(_SKOS + "definition")
    return {term: parts(text).text for term, predicate, text in schema.triples if predicate == defines}


def labels(schema: Schema) -> dict[Term, str]:
    """Return what people call each term, in English where that is said."""
    said = [(term, text) for term, predicate, text in schema.triples if predicate == LABEL]
    in_order = sorted(said, key=lambda row: (row[1].endswith("@en"), row[1]))
    return {term: parts(text).text for term, text in in_order}


def terms(schema: Schema) -> list[Term]:
    """Return the declared terms: classes, properties, individuals, each sorted."""
    others = schema.individuals.keys() - schema.classes - schema.properties.keys()
    return [*sorted(schema.classes), *sorted(schema.properties), *sorted(others)]


def tree(schema: Schema) -> Iterator[tuple[int, Term]]:
    """Yield every class below the one it belongs to, with its depth; one with two classes above it comes twice."""
    below: dict[Term, list[Term]] = {}
    for cls, predicate, above in sorted(schema.triples):
        if predicate == _SUBCLASS and cls in schema.classes and above in schema.classes:
            below.setdefault(above, []).append(cls)

    seen = set[Term]()

    def walk(cls: Term, path: tuple[Term, ...]) -> Iterator[tuple[int, Term]]:
        seen.add(cls)
        yield len(path), cls
        for each in below.get(cls, ()):
            if each not in (*path, cls):
                yield from walk(each, (*path, cls))

    placed = {each for of in below.values() for each in of}
    for top in (*sorted(schema.classes - placed), *sorted(schema.classes & placed)):
        if top not in seen:  # in a circle none is the top
            yield from walk(top, ())


def described(schema: Schema, chosen: Iterable[Term]) -> list[Triple]:
    """Return the triples about *chosen* terms, and the unnamed parts of what they say."""
    rows = [*schema.triples, *schema.rules]
    todo, seen = set(chosen), set[Term]()
    while todo:
        seen |= todo
        todo = {value for subject, _, value in rows if subject in todo and value.startswith("_:")} - seen
    return [row for row in rows if row[0] in seen]


def _kind(schema: Schema, term: Term) -> str:
    kinds = {"class": schema.classes, "property": schema.properties, "individual": schema.individuals}
    return next((name for name, of in kinds.items() if term in of), "shape")


def _rules(schema: Schema, term: Term) -> Iterator[Rule]:
    """Yield the rules that judge a class or one above it, those about a property, or what a shape itself says."""
    above = schema.ancestors(term) if term in schema.classes else frozenset((term,))
    said: dict[Term, list[tuple[Term, Term]]] = {}
    for shape, predicate, value in schema.rules:
        said.setdefault(shape, []).append((predicate, value))
    grades = {shape: severity_of(bare(value)) for shape, predicate, value in schema.rules if predicate == _SEVERITY}
    for shape, _, target in targets(schema.rules):
        for part in (shape, *(value for predicate, value in said[shape] if predicate == _PROPERTY)):
            rows = said.get(part, ())
            if target in above or term in (shape, part) or (_PATH, term) in rows:
                rule = part if is_iri(part) else shape
                grade = grades.get(part, grades.get(shape, "violation"))
                yield from (
                    Rule(bare(rule), bare(value), grade, bare(target) if is_iri(target) else None)
                    for predicate, value in rows
                    if predicate == _MESSAGE
                )


def _place(term: Term, overlay: Sequence[Path]) -> tuple[str | None, int | None]:
    """Return the file that declares *term*, and its line."""
    own = [
        path for folder in overlay for name in ("ontology", "shapes") for path in sorted(folder.glob(f"{name}/*.ttl"))
    ]
    for path in (*resources.ontology(), *resources.shapes(), *own):
        data = path.read_bytes()
        if local_name(term).encode() in data:
            source = FileSource(str(path), data)
            if TYPE in {predicate for _, predicate, _ in source.about.get(term, ())}:
                return str(path), line_in(by_subject(source.stated), Found(term, "", "info", "", TYPE))
    return None, None


def _text(said: Iterable[Triple], predicate: Term) -> str:
    texts = sorted(
        (value for _, verb, value in said if verb == predicate), key=lambda text: (not text.endswith("@en"), text)
    )
    return bare(texts[0]) if texts else ""


def _listed(found: Iterable[Term]) -> tuple[str, ...]:
    return tuple(sorted(bare(term) for term in found if is_iri(term)))
