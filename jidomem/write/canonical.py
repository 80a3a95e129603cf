"""Closed vocabularies, defaults and families of the kinds of memory, and the written forms of values. Pure.

Names, IRIs and moments have one written form; the repairs here bring a value into it. `contradictions` are statements
that exclude each other by the axioms of a root's own terms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

from pyoxigraph import NamedNode

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import grouped, reachable
from jidomem.base.words import slug
from jidomem.errors import Repair, Violation, nearest_names
from jidomem.rdf import vocab
from jidomem.rdf.terms import Term, Triple, iri, plain_value
from jidomem.rdf.vocab import CONVENTIONS, DECISIONS, ERRORS, RDF, RDFS, TYPE
from jidomem.records.file_anchor import with_slashes

if TYPE_CHECKING:
    from jidomem.schema.ontology import Schema
    from jidomem.write.snapshot import WriteSnapshot

#: Other words for our states; refused like a misspelling, with our word as the nearest.
SYNONYMS: Mapping[str, tuple[str, ...]] = {
    "closed": ("Completed", "Resolved"),
    "done": ("Completed", "Resolved"),
    "finished": ("Completed", "Resolved"),
    "fixed": ("Resolved",),
    "new": ("Planned", "Reported", "proposed"),
    "open": ("Planned", "Reported", "proposed"),
    "started": ("InProgress", "Investigating"),
    "todo": ("Planned",),
    "wip": ("InProgress",),
    "cancelled": ("Abandoned", "rejected"),
    "canceled": ("Abandoned", "rejected"),
    "wontfix": ("Abandoned", "Deferred"),
}

#: Other words for our types; refused like a misspelling, with our word as the nearest.
TYPE_SYNONYMS: Mapping[str, str] = {
    "action": "task", "choice": "decision", "guideline": "convention", "handover": "fact", "idea": "hypothesis",
    "insight": "lesson_learned", "issue": "error", "learning": "lesson_learned", "memo": "fact", "memory": "fact",
    "note": "fact", "observation": "discovery", "open_question": "unknown", "preference": "fact", "problem": "error",
    "question": "unknown", "recap": "fact", "rule": "convention", "session": "fact", "session_summary": "fact",
    "standard": "coding_standard", "summary": "fact", "ticket": "task", "to_do": "task", "todo": "task",
}  # fmt: skip


@cache
def choices_of(kind: str | None) -> Mapping[str, tuple[str, ...]]:
    """Return the fields of *kind* that take one of a few names, with these names."""
    choices: dict[str, tuple[str, ...]] = {
        "severity": vocab.SEVERITY,
        "enforcement_level": vocab.ENFORCEMENT,
        "convention_scope": vocab.SCOPE,
        "source_type": vocab.SOURCE_TYPE,
    }
    if kind == "task":
        choices["status"] = vocab.TASK_STATUS
    elif kind in ERRORS:
        choices["status"] = vocab.ERROR_STATUS
    elif kind in DECISIONS:
        choices["status"] = vocab.DECISION_STATUS
    return choices


HAVE_DEFAULTS = frozenset(("task", *ERRORS, *CONVENTIONS))


def defaults_of(kind: str | None, values: Mapping[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return the defaults of *kind*: field -> (property of an equivalent extra triple, value)."""
    if kind == "task":
        return {"status": ("hasTaskStatus", "Planned")}
    if kind in ERRORS:
        return {"status": ("hasErrorStatus", "Reported"), "severity": ("severityLevel", "medium")}
    if kind in CONVENTIONS:
        return {
            "convention_name": ("conventionName", values["summary"]),
            "enforcement_level": ("hasEnforcementLevel", "Advisory"),
            "convention_scope": ("hasConventionScope", "ProjectScope"),
        }
    return {}


def other_kind(cls: Term, own: Term, schema: Schema) -> str | None:
    """Return the closest type of memory above *cls* that is not above the class *own*, None if there is none."""
    above = [each for each in schema.ancestors(cls) if vocab.type_of(each) and not schema.is_a(own, each)]
    closest = max(above, key=lambda each: (len(schema.ancestors(each)), each), default=None)
    return vocab.type_of(closest) if closest else None


_OWL = "http://www.w3.org/2002/07/owl#"
_DISJOINT = {iri(f"{_OWL}{name}") for name in ("disjointWith", "propertyDisjointWith")}
_ALL_DISJOINT = {iri(f"{_OWL}{name}") for name in ("AllDisjointClasses", "AllDisjointProperties")}
_EQUIVALENT = {iri(f"{_OWL}{name}") for name in ("equivalentClass", "equivalentProperty")}
_BELOW = {iri(f"{RDFS}{name}") for name in ("subClassOf", "subPropertyOf")} | _EQUIVALENT
_INVERSE, _ON, _ONLY = (iri(f"{_OWL}{name}") for name in ("inverseOf", "onProperty", "allValuesFrom"))
_DOMAIN, _RANGE = iri(RDFS + "domain"), iri(RDFS + "range")
_MEMBERS, _FIRST, _REST = iri(_OWL + "members"), iri(RDF + "first"), iri(RDF + "rest")


class _Axioms(NamedTuple):
    """The terms above each term, the disjoint pairs, and the irreflexive and the asymmetric properties.

    `of_subject` and `of_object` have the classes that the inverse of a property implies for its ends, and `only` the
    property and the class of each restriction of its values.
    """

    above: Mapping[Term, set[Term]]
    disjoint: set[frozenset[Term]]
    irreflexive: set[Term]
    asymmetric: set[Term]
    of_subject: Mapping[Term, list[Term]]
    of_object: Mapping[Term, list[Term]]
    only: Mapping[Term, tuple[Term, Term]]

    def exclude(self, one: Term, two: Term) -> bool:
        """Return whether two classes, or two properties, are disjoint or below disjoint ones."""
        above = self.above.get(two, ())
        return any(frozenset((each, other)) in self.disjoint for each in self.above.get(one, ()) for other in above)


@lru_cache(maxsize=8)
def _axioms(schema: Schema) -> _Axioms:
    rows = schema.triples
    up = [(one, two) for one, name, two in rows if name in _BELOW]
    up += [(two, one) for one, name, two in rows if name in _EQUIVALENT]
    steps, of_types = grouped(up), grouped((two, one) for one, name, two in rows if name == TYPE)
    disjoint = {frozenset((one, two)) for one, name, two in rows if name in _DISJOINT}
    lists = {(one, name): two for one, name, two in rows if name in (_MEMBERS, _FIRST, _REST)}
    for node in (each for kind in _ALL_DISJOINT for each in of_types.get(kind, ())):
        cells = reachable(
            [lists.get((node, _MEMBERS), node)], lambda cell: [lists[cell, _REST]] if (cell, _REST) in lists else []
        )
        members = [lists[cell, _FIRST] for cell in cells if (cell, _FIRST) in lists]
        disjoint |= {frozenset(pair) for pair in combinations(members, 2)}
    above = {
        term: reachable([term], lambda each: steps.get(each, ())) for term in (*schema.classes, *schema.properties)
    }
    inverses = [(one, over) for one, name, two in rows if name == _INVERSE for over in above.get(two, ())]
    inverses += [(two, over) for one, name, two in rows if name == _INVERSE for over in above.get(one, ())]
    domains, ranges = (grouped((one, two) for one, name, two in rows if name == end) for end in (_DOMAIN, _RANGE))
    of_property, classes = ({one: two for one, name, two in rows if name == part} for part in (_ON, _ONLY))
    return _Axioms(
        above,
        disjoint,
        {*of_types.get(iri(_OWL + "IrreflexiveProperty"), ())},
        {*of_types.get(iri(_OWL + "AsymmetricProperty"), ())},
        grouped((one, cls) for one, back in inverses for cls in ranges.get(back, ())),
        grouped((one, cls) for one, back in inverses for cls in domains.get(back, ())),
        {node: (of_property[node], cls) for node, cls in classes.items() if node in of_property},
    )


def contradictions(
    triples: Iterable[Triple], kinds: Mapping[Term, frozenset[Term]], view: WriteSnapshot, schema: Schema
) -> Iterator[Violation]:
    """Yield the violations of statements that exclude each other by the axioms of the ontology.

    *kinds* are the classes of the subjects. Statements of memories that have ended contradict nothing.
    """
    axioms = _axioms(schema)

    def violation(term: Term, message: str, hint: str) -> Violation:
        value = plain_value(term)
        return Violation("shape_violation", message, field="extra_triples", value=value, hint=hint)

    for node, given in kinds.items():
        for one, two in combinations(sorted(given), 2):
            if axioms.exclude(one, two):
                names = f"{schema.compact(one)} and {schema.compact(two)}"
                message = f"{names} are disjoint classes, and {plain_value(node)} is of both"
                yield violation(two, message, "leave out the class that it is not")

    def kinds_of(node: Term) -> Iterable[Term]:
        return kinds.get(node) or view.types(node) if node[0] == "<" else ()

    stated = {*triples}
    for subject, predicate, target in triples:
        above = axioms.above.get(predicate, set())
        if subject == target and above & (axioms.irreflexive | axioms.asymmetric):
            name = schema.compact(predicate)
            message = f"{name} cannot point at its own subject, {plain_value(subject)}"
            yield violation(target, message, f"correct `{name}`")
        elif (directed := above & axioms.asymmetric) and target[0] == "<":
            name, one, other = schema.compact(predicate), plain_value(subject), plain_value(target)
            for back in (each for each, over in axioms.above.items() if over & directed):
                known = view.objects(target, back) if not view.has_ended(target) else ()
                if subject in known or (target, back, subject) in stated:
                    message = f"{name} has one direction, and {other} points back at {one}"
                    yield violation(target, message, f"correct `{name}`")
        implied = [(subject, cls) for each in above for cls in axioms.of_subject.get(each, ())]
        implied += [(target, cls) for each in above for cls in axioms.of_object.get(each, ())]
        restrictions = (axioms.only.get(node) for kind in kinds_of(subject) for node in axioms.above.get(kind, ()))
        implied += [(target, each[1]) for each in restrictions if each is not None and each[0] in above]
        for node, cls in implied:
            for kind in sorted(kind for kind in kinds_of(node) if axioms.exclude(kind, cls)):
                name, other = schema.compact(predicate), schema.compact(cls)
                message = (
                    f"{name} implies that {plain_value(node)} is a {other}, and as a {schema.compact(kind)} it is none"
                )
                yield violation(target, message, f"correct `{name}`")
    for (_, target), predicates in grouped(((row[0], row[2]), row[1]) for row in stated).items():
        for pair in combinations(sorted(predicates), 2):
            if axioms.exclude(*pair):
                one, two = map(schema.compact, pair)
                message = f"{one} and {two} are disjoint properties, and both have the value {plain_value(target)}"
                yield violation(target, message, f"correct `{two}`")


_ABSOLUTE = re.compile(r"(?:https?://|urn:)[^\x00-\x20<>\"{}|\\^`\x7f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
_MAX_IRI_CHARS = 2048
_SHORT_ID = re.compile("[0-9a-f]{8}")
_LOOKS_ABSOLUTE = re.compile(r"\s*<?\s*(?:https?:/|urn:)", re.IGNORECASE)
_CURIE = re.compile(r"([a-z]+):([A-Za-z_][\w-]*)")
_FOLDERS = ("memory", "agents", "projects", "sessions", "evidence", "submissions", "policies")
#: The namespaces in which only jidomem mints IRIs, and all those in which no user may.
MINTED = (*(f"{vocab.BASE}{folder}/" for folder in _FOLDERS), "urn:jido:")
RESERVED = (*MINTED, vocab.JIDO, vocab.SHAPE, vocab.BASE + "graphs/")
_OTHER_DATES = (
    "%Y/%m/%d", "%d.%m.%Y", "%Y.%m.%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%B %d %Y",
)  # fmt: skip


def moment(text: str) -> str | None:
    """Return an ISO 8601 date or moment as UTC to the microsecond, None for anything else; a naive one is UTC.

    >>> moment("2026-11-21")
    '2026-11-21T00:00:00.000000Z'
    """
    parsed = parse_moment(text)
    return format_timestamp(parsed) if parsed and parsed.year >= 1000 else None


def other_date(text: str) -> str | None:
    """Return the moment of a date in another common form, if it is unambiguous, else None.

    >>> other_date("21.11.2026")
    '2026-11-21T00:00:00.000000Z'
    """
    for form in _OTHER_DATES:
        try:
            return moment(datetime.strptime(" ".join(text.split()), form).date().isoformat())
        except ValueError:
            continue
    return None


def letters_and_digits(value: str) -> str:
    """Return the letters and digits of a name in lower case, without prefix or namespace.

    >>> letters_and_digits("jido:In-Progress")
    'inprogress'
    """
    return re.sub(r"[^a-z0-9]", "", vocab.local_name(value).rsplit(":", 1)[-1].casefold())


def type_key(value: str) -> str:
    """Return the name of a memory type in snake case.

    >>> type_key("ArchitecturalDecision"), type_key("architectural decision")
    ('architectural_decision', 'architectural_decision')
    """
    name = vocab.local_name(value).rsplit(":", 1)[-1]
    return re.sub(r"[\s_-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)).casefold()


def nearest(value: str, allowed: Iterable[str]) -> str | None:
    """Return the one of *allowed* that *value* begins or resembles most, without case and separators; else None."""
    given, squashed = letters_and_digits(value), {letters_and_digits(name): name for name in allowed}
    begun = [name for name in squashed if len(given) > 2 and name.startswith(given)]
    near = begun if len(begun) == 1 else nearest_names(given, squashed, likeness=0.7)
    return squashed[near[0]] if near else None


def unique(entries: Iterable[str]) -> list[str]:
    """Return *entries* in order, each once."""
    return list(dict.fromkeys(entries))


def expand(text: str) -> str | None:
    """Return the IRI of a prefixed name, None for anything else.

    >>> expand("jido:Fact")
    'https://jido.ai/ontology#Fact'
    """
    curie = _CURIE.fullmatch(text)
    return vocab.PREFIXES[curie[1]] + curie[2] if curie and curie[1] in vocab.PREFIXES else None


def is_reference(text: str, *, prose: bool = False) -> bool:
    """Return whether *text* is meant as an IRI; with *prose*, where other texts are valid, only a single word is."""
    if ":" not in text and "<" not in text:
        return False
    if expand(text.strip()) is not None:
        return True
    if prose and len(text.split()) != 1:
        return False
    return bool(_LOOKS_ABSOLUTE.match(text)) or bool(re.fullmatch(r"\s*<[^<>]*>\s*", text))


def separator_warnings(about: Iterable[str]) -> Iterator[str]:
    r"""Yield a warning for each path with the separators of Windows in *about*, unless its parts are as of a namespace.

    >>> [*separator_warnings([r"App\Models", r"src\parser"])]
    ['about names src\\parser: it is stored so, and paths have slashes: src/parser']
    """
    for entry in about:
        path = with_slashes(entry)
        if path != entry and not all(part[:1].isupper() for part in path.split("/")):
            yield f"about names {entry}: it is stored so, and paths have slashes: {path}"


def is_short_id(text: str) -> bool:
    """Return whether *text* has the form of the short id of a memory."""
    return _SHORT_ID.fullmatch(text) is not None


def is_ours(text: str) -> bool:
    """Return whether *text* is an IRI that only jidomem mints."""
    return text.startswith(MINTED)


def is_reserved(text: str) -> bool:
    """Return whether *text* is an IRI in a namespace of jidomem, including the ontology."""
    return text.startswith(RESERVED)


def is_absolute(text: str) -> bool:
    """Return whether *text* is an absolute http, https or urn IRI in its written form, of at most 2048 characters."""
    return len(text) <= _MAX_IRI_CHARS and _is_written(text)


@lru_cache(maxsize=1024)  # several stages check each reference
def _is_written(text: str) -> bool:
    if vocab.MEMORY_IRI.fullmatch(text):  # most references
        return True
    return text == written(text) and _ABSOLUTE.fullmatch(text) is not None and _parses(text)


def _parses(text: str) -> bool:
    """Return whether *text* is an IRI by RFC 3987, with its host and percent encoding."""
    try:
        NamedNode(text)
    except ValueError:
        return False
    return True


def written(text: str) -> str:
    """Return the one written form of *text*: no brackets or spaces, lower-case scheme, host and folders.

    >>> written("<HTTPS://Jido.ai/Agents/ Architect>")
    'https://jido.ai/agents/architect'
    """
    bare = "".join(text.split()).strip("<>")
    match = re.fullmatch(r"(?i)(https?)://?([^/?#]*)(.*)", bare)
    if not match:
        return "urn:" + bare[4:] if bare[:4].lower() == "urn:" else bare
    scheme, host, rest = match[1].lower(), match[2].lower(), match[3]
    if host == "jido.ai":
        scheme = "https"
        folder, slash, name = rest[1:].partition("/")
        if slash and folder.lower() in _FOLDERS:
            rest = f"/{folder.lower()}/{_written_name(folder.lower(), name)}"
    return f"{scheme}://{host}{rest}"


def _written_name(folder: str, name: str) -> str:
    """Return the last part of an IRI of ours: agents and sessions as slugs, memories in lower case."""
    if folder in ("agents", "sessions"):
        return slug(name) or name
    return name.lower() if folder == "memory" else name


def put(field: str, value: Any) -> Repair:
    """Return the repair that sets *field* to *value*."""
    return lambda values: {**values, field: value}


def swap(field: str, old: Any, new: Any) -> Repair:
    """Return the repair that replaces *old* by *new* everywhere in *field*, a list or a single value."""

    def mended(entry: Any) -> Any:
        if isinstance(entry, (list, tuple)):
            return [mended(part) for part in entry]
        if isinstance(entry, Mapping):
            return {key: mended(part) for key, part in entry.items()}
        return new if isinstance(entry, str) and entry.strip() == old else entry

    return lambda values: {**values, field: mended(values.get(field))}
