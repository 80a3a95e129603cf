"""Stage 2 validates an intent: its fields, its references, the terms of the ontology, and the shapes.

It does no I/O and reads only the snapshot that is passed in. `check_terms` requires that every term is declared,
and used where the ontology allows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import combinations

from jidomem.base.regex import unsearchable
from jidomem.base.words import misspelling_of
from jidomem.errors import IntentRefused, Violation, nearest_names, proposing
from jidomem.rdf import vocab
from jidomem.rdf.statements import NUMERIC
from jidomem.rdf.terms import XSD, Term, Triple, iri, is_iri, parse_literal, plain_value
from jidomem.rdf.vocab import DECISIONS, TYPE, jido
from jidomem.records.active import FINISHED, OTHER_RECORD, REASON
from jidomem.records.file_anchor import with_slashes
from jidomem.records.intent import FIELD_PROPERTIES, INTENT_FIELDS, ONLY_FOR, WRITER_ONLY, MemoryUpdateIntent
from jidomem.records.policy import Policy
from jidomem.schema.ontology import OURS, EffectiveRules, Schema
from jidomem.schema.shacl import DEEPEST
from jidomem.write import canonical
from jidomem.write.canonical import RESERVED, is_absolute, is_ours, is_reserved, nearest, other_kind, put, swap
from jidomem.write.normalize import ITEM_LISTS, LIFTED, PATTERNS, check_size, is_written
from jidomem.write.snapshot import WriteSnapshot

REQUIRED = ("type", "summary", "applies_to_project", "asserted_by", "asserted_in", "confidence")
#: The characters from which a summary is too long to be one, and the warning of it.
LONG_SUMMARY, LONG_SUMMARY_WARNING = (
    1_000,
    "summary has {:,} characters: lists and briefings show its beginning only; give details in `rationale` or"
    " `detailed_explanation`",
)
_QUOTED = re.compile("`([a-z_]+)`")
#: The properties that an extra triple about a memory cannot use, with the field to use instead.
OWN_FIELD: Mapping[str, str] = {
    **{each.name: each.field for each in FIELD_PROPERTIES.values() if each.as_extra == "refused"},
    "supersededBy": "supersedes",
    "invalidatedBy": "invalidates",
}
#: The properties of a memory that a caller does not set by an extra triple; other things have a summary, too.
WRITER_TERMS = frozenset(map(jido, {*WRITER_ONLY, *OWN_FIELD} - {"summary"}))
#: Fields with one value that no shape counts: a second value, in an extra triple, would pass the shapes.
_SINGLE_VALUED = frozenset(
    ("topic", "convention_name", "convention_scope", "source_type", "rationale", "detailed_explanation")
) | {"expires_on", "valid_from", "valid_until"}
#: The classes of the writer's own records that are no memories, and those of them that an exported file may contain.
WRITER_RECORDS = frozenset(map(jido, ("Commit", "Submission", "SessionEvent", "PolicyChange", "Redaction")))
EXPORTED_RECORDS = frozenset((jido("SessionEvent"),))


def require_fields(intent: MemoryUpdateIntent, project: str) -> None:
    """Raise IntentRefused unless required fields are set, the project is *project*, and a decision has a rationale."""
    violations = [_missing(name, project) for name in REQUIRED if getattr(intent, name) is None]
    given, own_iri = intent.applies_to_project, f"{vocab.BASE}projects/{project}"
    if given not in (None, own_iri):
        nearest = misspelling_of(vocab.local_name(given or ""), (project,))
        violations.append(
            Violation(
                "project_mismatch",
                f"the intent applies to {given}, but was submitted to project {project!r}",
                field="applies_to_project",
                value=given,
                allowed=(own_iri, project),
                nearest=nearest,
                repair=put("applies_to_project", own_iri) if nearest else None,
            )
        )
    for name in ("reason", "rationale"):
        if getattr(intent, name) == REASON:
            message = f"{name} is {REASON!r}, which stands in a choice for your own words"
            hint = f"give `{name}`: one sentence that says why"
            violations.append(Violation("missing_rationale", message, field=name, value=REASON, hint=hint))
    if intent.type in DECISIONS and intent.rationale is None:
        message, hint = "a decision says why: give it a rationale", "give `rationale`: why it was decided so"
        violations.append(Violation("missing_rationale", message, field="rationale", hint=hint))
    for name, kinds in ONLY_FOR.items():
        if intent.type and getattr(intent, name) not in (None, []) and intent.type not in kinds:
            violations.append(
                Violation(
                    "shape_violation",
                    f"{name} does not apply to a {intent.type}: leave it out, or say it in the summary",
                    field=name,
                    value=getattr(intent, name),
                    allowed=tuple(sorted(kinds)),
                    hint=f"leave out `{name}`, or give `type` as one of: {', '.join(sorted(kinds))}",
                )
            )
    if violations:
        raise IntentRefused(violations)


def _missing(name: str, project: str) -> Violation:
    """Return the violation for an empty required field: its values where they are few, and how to fill it."""
    own_iri = f"{vocab.BASE}projects/{project}"
    allowed, value = {
        "type": (vocab.WRITER_TYPES, "what kind of memory it is"),
        "summary": ((), "the memory in one sentence"),
        "applies_to_project": ((own_iri, project), f"{project!r}, the project it is submitted to"),
        "asserted_by": ((), "the name of the agent that asserts it"),
        "asserted_in": ((), "the name of the work session, such as 2026-11-21-review"),
        "confidence": (tuple(vocab.CONFIDENCE), "low, medium, high or a number from 0 to 1"),
    }[name]
    return Violation(
        "missing_required_fields",
        f"{name} is missing",
        field=name,
        allowed=allowed,
        repair=put(name, project) if name == "applies_to_project" else None,
        hint=f"give `{name}`: {value}",
    )


def check_references(
    intent: MemoryUpdateIntent,
    view: WriteSnapshot,
    rules: EffectiveRules,
    ids: Callable[[str], list[str]],
    *,
    is_recorded: bool = False,
) -> None:
    """Raise IntentRefused unless the IRI is new and every named thing in the namespaces of jidomem exists.

    *ids* returns the memories whose id begins or ends with a text, to name the nearest one in a refusal. What a memory
    that *is_recorded* elsewhere revives may end by a later one of the import.
    """
    violations = [*_own_iri(intent, view, rules.schema)]
    for field in ITEM_LISTS:
        for other in getattr(intent, field):
            if other == intent.iri:
                violations.append(
                    Violation("unknown_reference", f"a memory cannot name itself in {field}", field=field, value=other)
                )
            elif not is_absolute(other) or not view.is_item(iri(other)):
                violations.append(_unknown_item(field, other, ids))
            if len(violations) > Violation.MOST:  # each look-up of a near id costs as much as a short query
                raise IntentRefused(violations)
    for other in () if is_recorded else intent.revives:
        if is_absolute(other) and view.is_item(iri(other)) and not view.has_ended(iri(other)):
            message = f"{other} has not ended: there is nothing to revive"
            violations.append(Violation("shape_violation", message, field="revives", value=other))
    for field, another in combinations(("supersedes", "invalidates", "coexists_with"), 2):
        for other in sorted({*getattr(intent, field)} & {*getattr(intent, another)}):
            message = f"{other} is named in {field} and in {another}: say which"
            violations.append(Violation("shape_violation", message, field=another, value=other))
    for field in ("evidence", "about"):
        for other in getattr(intent, field):
            if is_ours(other) and not view.describes(iri(other)):
                violations.append(_unknown_item(field, other, ids))
    if intent.asserted_in is not None and intent.asserted_in in (intent.asserted_by, intent.assigned_to):
        message = f"{intent.asserted_in} cannot be a session and an agent"
        violations.append(Violation("shape_violation", message, field="asserted_in", value=intent.asserted_in))
    if rules.policy.strict:
        violations += _undeclared(intent, view, rules.policy)
    if violations:
        raise IntentRefused(violations)


def check_extra_triples(intent: MemoryUpdateIntent, view: WriteSnapshot, schema: Schema) -> None:
    """Raise IntentRefused unless the extra triples describe the new memory, or things without other description."""
    violations = []
    own = vocab.type_uri(intent.type or "")
    for subject, predicate, value in intent.extra_triples:
        name = vocab.local_name(predicate) if predicate.startswith(vocab.JIDO) else ""
        if is_reserved(predicate) and not predicate.startswith(vocab.JIDO):
            violations.append(
                broken_triple(predicate, f"{predicate} is not a property: it is in a namespace of jidomem")
            )
        if iri(predicate) == TYPE and iri(value.get("@id", "")) in WRITER_RECORDS:
            violations.append(broken_triple(value["@id"], f"only the writer creates {value['@id']}"))
        elif iri(predicate) in _properties_of_classes(WRITER_RECORDS, schema):
            message = f"{predicate} is a property of records that only the writer creates"
            violations.append(broken_triple(predicate, message))
        if subject != intent.iri:
            if is_reserved(subject) or view.is_item(iri(subject)):
                violations.append(
                    broken_triple(subject, f"{subject} is not this memory: an extra triple cannot describe another one")
                )
            elif name and (name in OWN_FIELD or name in WRITER_ONLY):
                violations.append(broken_triple(subject, f"jido:{name} is a property of memories only"))
        elif name in OWN_FIELD:
            violations.append(broken_triple(predicate, f"jido:{name} has a field of its own: use {OWN_FIELD[name]}"))
        elif name in WRITER_ONLY:
            violations.append(broken_triple(predicate, f"jido:{name} is set by the writer only: leave it out"))
        elif (field := LIFTED.get(predicate)) in _SINGLE_VALUED and getattr(intent, field) is not None:
            message = f"jido:{name} is given twice: {field} is {getattr(intent, field)!r:.200} already"
            violations.append(broken_triple(predicate, message))
        elif iri(predicate) == TYPE and value.get("@id", "").startswith(vocab.JIDO) and value["@id"] != own:
            violations.append(broken_triple(value["@id"], "a memory has the class of its type: set type instead"))
        elif iri(predicate) == TYPE and (kind := other_kind(iri(value.get("@id", "")), iri(own), schema)):
            message = f"{value['@id']} is a subclass of {kind}, and this is a {intent.type}: set type to {kind!r}"
            violations.append(broken_triple(value["@id"], message))
        if is_ours(value.get("@id", "")) and not view.describes(iri(value["@id"])) and value["@id"] != intent.iri:
            violations.append(_unknown_item("extra_triples", value["@id"], lambda _: []))
    if violations:
        raise IntentRefused(violations)


def check_patterns(intent: MemoryUpdateIntent) -> None:
    """Raise IntentRefused, with the message of RE2, for a pattern of a convention that the guard cannot run."""
    violations = []
    for _, predicate, value in intent.extra_triples:
        name, pattern = vocab.local_name(predicate), value.get("@value", "")
        if predicate in PATTERNS and (why := unsearchable(pattern)) is not None:
            violations.append(
                broken_triple(pattern, f"jido:{name} {pattern!r:.200} is not a pattern: {why}; {why.hint}")
            )
    if violations:
        raise IntentRefused(violations)


def check_separators(intent: MemoryUpdateIntent) -> None:
    """Raise IntentRefused for a path in about with the separators of Windows; a namespace is no such path."""
    violations = []
    for entry in intent.about:
        path = with_slashes(entry)
        if path == entry or not {".", ":", "*"} & {*path}:
            continue
        is_relative = ":" not in path
        message = f"about names paths with slashes, below the folder that contains the memory, not {entry}"
        hint = f"write it so: {path}" if is_relative else "give the path of a file relative to that folder: src/a.py"
        repair = swap("about", entry, path) if is_relative else None
        violations.append(Violation("invalid_argument", message, field="about", value=entry, hint=hint, repair=repair))
    if violations:
        raise IntentRefused(violations)


def check_declared(rows: Iterable[Triple], schema: Schema, literal: int, classes: frozenset[Term]) -> None:
    """Raise IntentRefused when *rows* describe memories or instances of the classes *classes*, or end a memory.

    Raises TooLarge for a text of more than *literal* bytes.
    """
    class_properties = _properties_of_classes(classes, schema)
    for subject, predicate, value in rows:
        name = vocab.local_name(predicate)
        is_reserved_iri = subject.startswith(
            ("<urn:jido:", f"<{vocab.BASE}memory/", f"<{vocab.BASE}submissions/", f"<{vocab.BASE}policies/")
        )
        is_item = predicate == TYPE and (schema.is_a(value, jido("MemoryItem")) or value in classes)
        if is_reserved_iri or is_item or predicate in WRITER_TERMS or predicate in class_properties:
            term = plain_value(value if predicate == TYPE else predicate).replace(vocab.JIDO, "jido:")
            statement = f"a {term}" if predicate == TYPE else term
            message = f"{plain_value(subject)} {statement}: only the writer states this"
            raise IntentRefused([broken_triple(plain_value(subject), message)])
        if not is_iri(value):
            check_size(f"{plain_value(subject)} {name}", parse_literal(value).text, literal)


@lru_cache(maxsize=16)
def _properties_of_classes(classes: frozenset[Term], schema: Schema) -> frozenset[Term]:
    properties = schema.properties.items()
    return frozenset(term for term, declared in properties if declared.domain and declared.domain <= classes)


def judge_shapes(triples: Sequence[Triple], view: WriteSnapshot, schema: Schema) -> list[str]:
    """Return the warnings of the shapes on *triples*; raise IntentRefused when a shape is violated.

    The validator gets the triples of the intent, the known triples of their subjects, the types of the nodes that they
    point at, and what the sequences of shapes lead to: its cost does not depend on the number of memories.
    """
    described, targets, focus = dict[Term, None](), dict[Term, None](), dict[Term, None]()
    for subject, predicate, value in triples:
        described[subject] = None
        if value[0] == "<":
            targets[value] = None
        if predicate in schema.properties or (predicate == TYPE and value in schema.classes):
            focus[subject] = None
    violations, warnings = list[Violation](), list[str]()
    known = view.about_all(described, targets)
    if steps := schema.sequence_steps:
        known += view.along([*triples, *known], steps, {*described}, DEEPEST)
    for finding in schema.judge([*triples, *known], focus):
        if finding.severity != "violation":
            if field_of(finding.path) != "assigned_to" or not {*map(jido, FINISHED)} & {row[2] for row in triples}:
                warnings.append(finding.message)
            continue
        named = next((name for name in _QUOTED.findall(finding.message) if name in INTENT_FIELDS), None)
        given, field = plain_value(finding.value) if finding.value else None, named or field_of(finding.path)
        allowed = tuple(map(plain_value, schema.listed(finding.shape, finding.path)))
        near = nearest(given, allowed) if given else None
        violations.append(
            Violation(
                "shape_violation",
                finding.message + _place_of_shape(finding.shape, schema),
                field=field,
                shape=plain_value(finding.shape),
                value=given,
                allowed=allowed,
                nearest=near,
                repair=swap(field, given, near) if field and near else None,
                hint=finding.message.partition(": ")[2].rstrip(".")
                or _of_property(finding.path, schema, {row[1] for row in triples}),
            )
        )
    if violations:
        raise IntentRefused(violations)
    return warnings


def _of_property(path: str | None, schema: Schema, given: Collection[Term] | None = None) -> str:
    """Return the hint to correct a property without a field of its own, or give it if it is not *given*; else empty."""
    name = (path or "").strip("<>")
    verb = "correct" if given is None or iri(name) in given else "give"
    return f"{verb} `{schema.compact(iri(name))}`" if field_of(name) == "extra_triples" and is_absolute(name) else ""


def _place_of_shape(shape: Term, schema: Schema) -> str:
    """Return the name and the file of a shape of the root, empty for a shipped one."""
    path = schema.shape_files.get(shape)
    return f" (shape {vocab.local_name(shape)}, {path} of the root)" if path else ""


@lru_cache(maxsize=1024)
def field_of(path: str | None) -> str | None:
    """Return the field of an intent that is written as the property *path*, else `extra_triples`; None for no path."""
    if not path:
        return None
    return _FIELD_OF_NAME.get(vocab.local_name(path), "extra_triples")


_FIELD_OF_NAME: Mapping[str, str] = {
    **OWN_FIELD,
    **{vocab.local_name(term): field for term, field in LIFTED.items()},
    "derivedFrom": "evidence",
}


def _own_iri(intent: MemoryUpdateIntent, view: WriteSnapshot, schema: Schema) -> Iterable[Violation]:
    own = intent.iri or ""
    memory = vocab.BASE + "memory/"
    if own.startswith(RESERVED) and not re.fullmatch(rf"{memory}[^/]+{OTHER_RECORD}", own):
        message = f"{own} is in a namespace of jidomem: leave iri out, or use {memory}<id> or your own namespace"
        yield Violation("invalid_iri", message, field="iri", value=own, repair=put("iri", None))
    elif view.properties(iri(own)) or iri(own) in schema.classes or iri(own) in schema.properties:
        yield _iri_in_use(own, view, schema)


def _iri_in_use(own: str, view: WriteSnapshot, schema: Schema) -> Violation:
    """Return the violation for the IRI of a memory, of another described thing, or of a term of the ontology."""
    if view.is_item(iri(own)):
        message = "is in this memory already: a memory is never rewritten; leave iri out and name it in supersedes"
        return Violation("iri_exists", f"{own} {message}", field="iri", value=own)
    kinds = ", ".join(sorted(map(schema.compact, view.types(iri(own))))) or "a term of the ontology"
    message, hint = f"{own} is in use already, as {kinds}", "leave out `iri`, or give another one"
    return Violation("iri_exists", message, field="iri", value=own, hint=hint)


#: The characters from which on a name is part of an id, and a whole one; those compared at either end of a misspelt
#: id, and its likeness.
_PART, _WHOLE_ID, _END, _MISSPELT = 6, 30, 12, 0.9


def _unknown_item(field: str, other: str, ids: Callable[[str], list[str]]) -> Violation:
    """Return the violation for an unknown memory, with the one that it abbreviates or misspells."""
    tail = other.lower().removeprefix(vocab.BASE + "memory/")
    matches = ids(tail) if len(tail) >= _PART else []
    if not matches and len(tail) >= _WHOLE_ID:
        # a misspelt id has an intact end; comparing it with all memories would take seconds
        alike = {vocab.local_name(iri): iri for iri in (*ids(tail[:_END]), *ids(tail[-_END:]))}
        matches = [alike[name] for name in nearest_names(tail, alike, likeness=_MISSPELT)]
    match = matches[0] if len(matches) == 1 else None
    message = f"{other} is not a memory of this project" + (f"; did you mean {match}?" if match else "")
    if len(matches) > 1:
        message += f"; it could be {', '.join(matches[:5])}"
    return Violation(
        "unknown_reference",
        message,
        field=field,
        value=other,
        allowed=tuple(matches[:5]),
        nearest=match,
        repair=swap(field, other, match) if match else None,
        hint="" if match else f"find it with recall, and name it in `{field}` by its id",
    )


def _undeclared(intent: MemoryUpdateIntent, view: WriteSnapshot, policy: Policy) -> Iterable[Violation]:
    """Yield a violation for each undeclared agent and session of a strict project; its policy may declare agents."""
    for field in ("asserted_by", "assigned_to"):
        if (value := getattr(intent, field)) is not None:
            yield from undeclared_agent(field, value, view, policy)
    if (value := intent.asserted_in) is not None and not view.types(iri(value)):
        yield _not_declared(
            "asserted_in", value, f"open it with: jidomem agent session start {vocab.local_name(value)}"
        )


def undeclared_agent(field: str, agent: str, view: WriteSnapshot, policy: Policy) -> Iterable[Violation]:
    """Yield a violation if the project is strict and does not declare *agent*, an IRI."""
    name = vocab.local_name(agent)
    if policy.strict and name not in policy.agents and not view.types(iri(agent)):
        yield _not_declared(field, agent, f"declare it in config.toml: [agents.{name}]")


def _not_declared(field: str, value: str, hint: str) -> Violation:
    message = f"{value} is not declared, and this project is strict"
    return Violation("unknown_reference", message, field=field, value=value, hint=hint)


def broken_triple(value: str, message: str) -> Violation:
    """Return the violation for a forbidden extra triple."""
    return Violation("shape_violation", message, field="extra_triples", value=value)


_NONE: frozenset[Term] = frozenset()
_RDFS, _OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
_AXIOMS = frozenset(iri(_RDFS + name) for name in ("subClassOf", "subPropertyOf"))
_AXIOMS |= {iri(_OWL + name) for name in ("equivalentClass", "equivalentProperty", "disjointWith", "sameAs")}
#: The property that names a proposed term, which is not declared yet.
_PROPOSED_TERM = jido("proposedTerm")
_ITEM = frozenset((jido("MemoryItem"),))


def declare_objects(intent: MemoryUpdateIntent, view: WriteSnapshot, schema: Schema) -> list[Triple]:
    """Return type declarations for the new things that extra triples point at, by the range of the property."""
    described = {triple[0] for triple in intent.extra_triples if iri(triple[1]) == TYPE}
    triples = []
    for _, predicate, value in intent.extra_triples:
        target = value.get("@id")
        declared = schema.properties.get(iri(predicate))
        classes = declared.range if declared else frozenset()
        if not target or target in described or is_ours(target) or len(classes) != 1 or view.types(iri(target)):
            continue
        (cls,) = classes
        closed = any(cls in kinds for kinds in schema.individuals.values())
        if cls in schema.classes and not closed and not schema.is_a(cls, jido("MemoryItem")):
            triples.append((iri(target), TYPE, cls))
    return triples


def check_terms(
    triples: list[Triple], view: WriteSnapshot, schema: Schema, policy: Policy, *, keep_values: bool = False
) -> list[str]:
    """Return warnings; raise IntentRefused unless every term is declared and used where the ontology allows it.

    With *keep_values* an undeclared value is a warning.
    """
    types: dict[Term, frozenset[Term]] = {}
    for subject, predicate, value in triples:
        if predicate == TYPE:
            types[subject] = types.get(subject, _NONE) | {value}
    warnings: dict[str, None] = {}
    violations = _second_values(triples, types, schema)

    kinds = {node: given | view.types(node) for node, given in types.items()}
    if schema.namespaces.difference(OURS):
        violations += canonical.contradictions(triples, kinds, view, schema)

    def kinds_of(node: Term) -> frozenset[Term]:
        return kinds.get(node) or view.types(node)

    individuals = schema.individuals
    for subject, predicate, value in triples:
        if predicate != TYPE:
            kind: frozenset[Term] | str  # the classes of an IRI, or the datatype or language tag of a literal
            if value[0] != "<":
                kind = value[value.rindex('"') + 1 :]
            else:
                kind = kinds.get(value) or view.types(value)
                kind = kind | individuals[value] if value in individuals else kind
            if _conforms(schema, predicate, kinds.get(subject) or view.types(subject), kind):
                continue
        problem = _term_problem((subject, predicate, value), kinds_of, schema, policy, warnings)
        if problem is None:
            problem = _value_problem((subject, predicate, value), kinds_of, types, schema)
            if problem is not None and keep_values:
                warnings[f"{problem.message}: kept as it was"] = None
                problem = None
        if problem is None and predicate != TYPE:
            problem = _place_problem((subject, predicate, value), kinds_of, schema)
        if problem is not None:
            violations.append(problem)
    if violations:
        raise IntentRefused(violations)
    return list(warnings)


def check_axioms(rows: Iterable[Triple], schema: Schema) -> None:
    """Raise IntentRefused for rows that relate a term of the ontology to another one as the ontology does not.

    Queries follow rdfs:subClassOf in every graph, so such a row would change their answers.
    """
    terms = schema.declared
    for row in rows:
        if row[1] in _AXIOMS and row[0] in terms and row not in schema.triples:
            name = plain_value(row[0]).replace(vocab.JIDO, "jido:")
            message = f"{name} is a term of the ontology: its relations to others belong in ontology/, not in memory"
            raise IntentRefused([broken_triple(plain_value(row[2]), message)])


def check_appended(rows: Iterable[Triple], view: WriteSnapshot, schema: Schema) -> None:
    """Raise IntentRefused for a malformed literal, and for a second value of a property that has one value."""
    violations = []
    for subject, predicate, value in rows:
        declared = schema.properties.get(predicate)
        if not is_iri(value) and not is_written(*parse_literal(value)[:2]):
            text, datatype, _ = parse_literal(value)
            violations.append(broken_triple(text, f"{text[:80]!r} is not written as a {datatype} is"))
        elif declared is not None and declared.functional and view.objects(subject, predicate):
            message = f"{plain_value(predicate)} has one value, and {plain_value(subject)} has one already"
            violations.append(_misplaced((subject, predicate, value), message, schema))
    if violations:
        raise IntentRefused(violations)


@lru_cache(maxsize=8)
def _functional(schema: Schema) -> frozenset[Term]:
    return frozenset(term for term, declared in schema.properties.items() if declared.functional)


def _second_values(triples: Iterable[Triple], types: Mapping[Term, frozenset[Term]], schema: Schema) -> list[Violation]:
    """Return a violation for each further value of a property that has only one.

    The values of a memory's fields are counted by a shape instead.
    """
    first_values: dict[tuple[Term, Term], Term] = {}
    single_valued, violations = _functional(schema), list[Violation]()
    items = {subject for subject, given in types.items() if schema.fits(given, _ITEM)}
    for triple in triples:
        subject, predicate, value = triple
        if predicate not in single_valued or (subject in items and field_of(predicate) != "extra_triples"):
            continue
        if first_values.setdefault((subject, predicate), value) != value:
            message = f"{plain_value(predicate)} has one value, and {plain_value(subject)} was given another"
            violations.append(_misplaced(triple, message, schema))
    return violations


@lru_cache(maxsize=4096)
def _conforms(schema: Schema, predicate: Term, classes: frozenset[Term], kind: frozenset[Term] | str) -> bool:
    """Return whether a triple certainly conforms to domain and range, and its property is not deprecated."""
    declared = schema.properties.get(predicate)
    if declared is None or predicate in schema.deprecated:
        return False
    if declared.domain and classes and not schema.fits(classes, declared.domain):
        return False
    if not declared.range:
        return not declared.is_object if isinstance(kind, str) else bool(kind)
    if isinstance(kind, str):
        return (kind.removeprefix("^^") or iri(XSD + "string")) in declared.range
    return not any(cls.startswith(f"<{XSD}") for cls in declared.range) and schema.fits(kind, declared.range)


def _term_problem(
    triple: Triple,
    kinds_of: Callable[[Term], frozenset[Term]],
    schema: Schema,
    policy: Policy,
    warnings: dict[str, None],
) -> Violation | None:
    """Return the violation of an undeclared property or class; add a warning for a deprecated or foreign one."""
    subject, predicate, value = triple
    term = predicate
    if predicate == TYPE:
        if not is_iri(value):
            return broken_triple(plain_value(value), "a class is an IRI")
        term = value
    known = schema.classes if predicate == TYPE else schema.properties.keys()
    word = "class" if predicate == TYPE else "property"
    if term in known:
        if term in schema.deprecated:
            instead = schema.replacement(term)
            use = f": use {plain_value(instead)}" if instead else ""
            warnings[f"{plain_value(term)} is deprecated{use}"] = None
        return None
    if not plain_value(term).startswith(tuple(schema.namespaces)) and not policy.strict:
        if not plain_value(term).startswith((vocab.RDF, vocab.RDFS)):
            warnings[f"{plain_value(term)} is a {word} of a foreign vocabulary: kept, not judged"] = None
        return None
    fitting = known if predicate == TYPE else _properties_of(kinds_of(subject), schema)
    return _undeclared_term(term, word, schema.misspelt(term, fitting), schema)


def _properties_of(classes: frozenset[Term], schema: Schema) -> list[Term]:
    return [
        term
        for term, declared in schema.properties.items()
        if declared.is_object is not None and (not declared.domain or schema.fits(classes, declared.domain))
    ]


def _value_problem(
    triple: Triple, kinds_of: Callable[[Term], frozenset[Term]], types: Mapping[Term, frozenset[Term]], schema: Schema
) -> Violation | None:
    """Return the violation of a text for an IRI, or of a value in our namespaces that nothing declares or describes."""
    _, predicate, value = triple
    declared = schema.properties.get(predicate)
    if value[0] == '"' and declared is not None and declared.is_object and not declared.range:
        name, text = schema.compact(predicate), plain_value(value)
        message = f"{name} is an object property: its value is an IRI, not {text[:80]!r}"
        return _misplaced(triple, message, schema, hint=f"give an IRI, or a name with a declared prefix, in `{name}`")
    if predicate in (TYPE, _PROPOSED_TERM) or value in schema.subjects or value in types:
        return None
    if not value.startswith(tuple(f"<{space}" for space in schema.namespaces)) or kinds_of(value):
        return None
    range_ = declared.range if declared is not None else _NONE
    individuals = [each for each, kinds in schema.individuals.items() if not range_ or schema.fits(kinds, range_)]
    field = field_of(plain_value(predicate))
    return _undeclared_term(value, "value", schema.misspelt(value, individuals), schema, field)


def _undeclared_term(term: Term, word: str, near: Term | None, schema: Schema, field: str | None = None) -> Violation:
    """Return the violation for an undeclared *term*, used as a *word*, with the declared term that it misspells."""
    field, hint = field or "extra_triples", ""
    if near is not None and field == "extra_triples":
        hint = f"write {schema.compact(near)} for {schema.compact(term)}"
    elif word == "value" and near is None:
        hint = f"declare it in ontology/*.ttl of the root, or correct `{field}` and resubmit"
    elif word == "class" and near is None:
        hint = f"give a declared kind in `type`, or {proposing(plain_value(term))}"
    return Violation(
        "unknown_term",
        f"{plain_value(term)} is not a declared {word}" + (f"; did you mean {plain_value(near)}?" if near else ""),
        field=field,
        value=plain_value(term),
        nearest=plain_value(near) if near else None,
        repair=_spelling_repair(field, (plain_value(term), schema.compact(term)), plain_value(near)) if near else None,
        hint=hint,
    )


def _spelling_repair(field: str, old: Iterable[str], new: str) -> Callable[[Mapping[str, object]], dict[str, object]]:
    """Return the repair that writes *new* for each of the names *old* in *field*."""
    return lambda values: reduce(lambda fields, name: swap(field, name, new)(fields), old, dict(values))


def _place_problem(triple: Triple, kinds_of: Callable[[Term], frozenset[Term]], schema: Schema) -> Violation | None:
    """Return the violation of the domain or range of a declared property."""
    subject, predicate, value = triple
    declared = schema.properties.get(predicate)
    if declared is None:
        return None
    name, domain, range_, classes = plain_value(predicate), declared.domain, declared.range, kinds_of(subject)
    if domain and classes and not schema.fits(classes, domain):
        if classes.isdisjoint(schema.classes):
            return _of_undeclared_class(subject, min(classes), name, schema)
        message = f"{name} is a property of {_or_joined(domain)}, and {plain_value(subject)} is not one"
        kinds = " or ".join(sorted(schema.compact(cls) for cls in domain)) if schema.fits(classes, _ITEM) else ""
        repair = "" if name.startswith(vocab.JIDO) else "; a correction keeps it: empty it, or change its domain first"
        hint = f"give {kinds} as `type`, or leave out `{schema.compact(predicate)}`{repair}" if kinds else ""
        return _misplaced(triple, message, schema, hint=hint)
    if not range_:
        return None
    listed = [term for term, kinds in schema.individuals.items() if range_ & kinds]
    if not is_iri(value):
        given = parse_literal(value)
        message = f"{name} takes {_or_joined(range_)}, not {given.text[:80]!r}"
        is_text = field_of(name) == "extra_triples" and given.datatype in NUMERIC and iri(XSD + "string") in range_
        hint = f'give `{schema.compact(predicate)}` as text: "{given.text[:80]}"' if is_text else ""
        return None if iri(given.datatype) in range_ else _misplaced(triple, message, schema, listed, hint)
    if any(cls.startswith(f"<{XSD}") for cls in range_):
        return _misplaced(triple, f"{name} takes {_or_joined(range_)}, not the IRI {plain_value(value)}", schema)
    classes = kinds_of(value) | schema.individuals.get(value, _NONE)
    if schema.fits(classes, range_) or (jido("Evidence") in range_ and schema.fits(classes, _ITEM)):
        return None
    message = f"{name} takes {_or_joined(range_)}, and {plain_value(value)} is not one"
    is_known = classes or listed or value.startswith(f"<{vocab.JIDO}")
    return _misplaced(triple, message, schema, listed) if is_known else None


def _of_undeclared_class(subject: Term, cls: Term, name: str, schema: Schema) -> Violation:
    """Return the violation of a thing that has a property of memories or others, whose class is undeclared."""
    kind = plain_value(cls)
    message = f"{kind} is not a declared class, so {plain_value(subject)}, which has {name}, is nothing that is stored"
    hint = f"declare it in ontology/*.ttl of the root, below a type: <{kind}> rdfs:subClassOf jido:Fact; or give a type"
    return Violation("unknown_term", message, field="type", value=kind, hint=hint)


def _misplaced(triple: Triple, message: str, schema: Schema, listed: Sequence[Term] = (), hint: str = "") -> Violation:
    """Return the violation of a triple of a property whose values are the terms *listed*, if any."""
    path, value = plain_value(triple[1]), plain_value(triple[2])
    allowed = sorted(schema.compact(term).removeprefix("jido:") for term in listed)
    near = schema.misspelt(iri(value), listed) if field_of(path) == "extra_triples" else None
    names = value, schema.compact(iri(value))
    repair = _spelling_repair("extra_triples", names, plain_value(near)) if near else None
    if near is not None:
        hint, message = f"write {schema.compact(near)} for {value}", f"{message}; did you mean {plain_value(near)}?"
    return Violation(
        "shape_violation",
        message,
        field=field_of(path),
        value=value,
        allowed=tuple(allowed),
        nearest=plain_value(near) if near else None,
        repair=repair,
        hint=hint or ("" if allowed else _of_property(path, schema)),
    )


def _or_joined(classes: Iterable[Term]) -> str:
    return " or ".join(sorted(vocab.local_name(cls) for cls in classes))
