"""SHACL over everything, the ontology in view: the compiled judge, pyshacl on all it flags, and who was not judged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from jidomem import vocab
from jidomem.govern.report import AGREED, TARGETED, Found
from jidomem.govern.sources import Source
from jidomem.judge import EVERY_ITEM_IS_JUDGED, SH, Finding, Severity
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, iri, is_iri
from jidomem.vocab import RDF, TYPE, jido, local_name

_PATH, _INVERSE, _FIRST = iri(SH + "path"), iri(SH + "inversePath"), iri(RDF + "first")
_STEPS = {_PATH, _FIRST, _INVERSE, *(iri(SH + name) for name in ("zeroOrMorePath", "oneOrMorePath", "zeroOrOnePath"))}
_OBJECTS_OF, _SUBJECTS_OF = iri(SH + "targetObjectsOf"), iri(SH + "targetSubjectsOf")
_CLASS, _NODE = iri(SH + "targetClass"), iri(SH + "targetNode")
_TARGETS = (_CLASS, _NODE, _OBJECTS_OF, _SUBJECTS_OF)
_SHAPES = {iri(SH + "NodeShape"), iri(SH + "PropertyShape")}
_CLASSES = {iri(vocab.RDFS + "Class"), iri("http://www.w3.org/2002/07/owl#Class")}
_STEP = re.compile(r"(?<![\w^])(?:jido:([\w-]+)|<([^<>]+)>)")
#: What the writer says of an agent when it is first named; anybody may be named in passing.
_STUB = {TYPE, jido("agentName"), vocab.LABEL}
_OF_STUBS = {iri(vocab.SHAPE + "AgentHasARole"), iri(vocab.SHAPE + "AgentHasACapability")}


def shacl(source: Source, schema: Schema, *, reference: bool = False) -> list[Found]:
    """Return what the shapes find at every node they speak about, as pyshacl words it.

    The compiled judge looks at all of it and pyshacl at each node it flags; as the *reference* pyshacl judges alone.
    """
    if reference:
        found = schema.by_reference().judge(source.triples, in_check=True)
    else:
        found = schema.judge(source.triples, in_check=True)
        flagged = {each.focus for each in found if each.shape != EVERY_ITEM_IS_JUDGED}
        found = _confirmed(found, source, schema, flagged) if flagged else found
    return [as_found(_graded(each, source)) for each in found]


def _confirmed(found: list[Finding], source: Source, schema: Schema, flagged: set[Term]) -> list[Finding]:
    """Return the findings, those of *flagged* nodes as pyshacl has them; where the two differ a finding says so."""
    near = around(source, flagged, schema.rules)
    asked = schema.by_reference().judge(near, flagged, in_check=True)
    said = [each for each in asked if each.shape != EVERY_ITEM_IS_JUDGED]
    kept = [each for each in found if each.shape == EVERY_ITEM_IS_JUDGED]
    for each in sorted({*said} ^ {*found}.difference(kept), key=repr)[:1]:
        text = f"the compiled shapes and pyshacl differ on {bare(each.shape)} (pyshacl counts): please report this"
        said.append(Finding(each.focus, iri(AGREED), each.path, each.value, text, "violation"))
    return [*kept, *said]


def around(source: Source, nodes: Iterable[Term], rules: Iterable[Triple]) -> list[Triple]:
    """Return all that any path of *rules* can meet on its way from *nodes*, and what is said of it."""
    rules = list(rules)
    forward = {value for _, step, value in rules if step in _STEPS and is_iri(value)}
    backward = {value for _, step, value in rules if step in (_INVERSE, _OBJECTS_OF) and is_iri(value)}
    if any(step == _INVERSE and not is_iri(value) for _, step, value in rules):
        backward |= forward
    pointing: dict[Term, list[Triple]] = {}
    for triple in source.of(*backward):
        pointing.setdefault(triple[2], []).append(triple)
    kept: dict[Triple, None] = {}
    seen: set[Term] = set()
    todo = set(nodes)
    while todo:
        node = todo.pop()
        seen.add(node)
        own, to = source.about.get(node, ()), pointing.get(node, ())
        kept.update(dict.fromkeys([*own, *to]))
        met = {value for _, predicate, value in own if predicate in forward} | {subject for subject, _, _ in to}
        todo |= {other for other in met if other[0] != '"'} - seen
    return list(kept)


def _graded(finding: Finding, source: Source) -> Finding:
    """Return the finding, no more than a warning where it is about an agent that was only named in passing."""
    if finding.shape in _OF_STUBS and finding.focus.startswith(f"<{vocab.BASE}agents/"):
        said = {predicate for _, predicate, _ in source.about.get(finding.focus, ())}
        if said <= _STUB:
            severity: Severity = "warning"
            return Finding(finding.focus, finding.shape, finding.path, finding.value, finding.message, severity)
    return finding


def as_found(finding: Finding) -> Found:
    """Return a finding of SHACL as one of a check."""
    return Found(finding.focus, bare(finding.shape) if is_iri(finding.shape) else finding.shape, finding.severity,
                 finding.message, _property(finding), finding.value)  # fmt: skip


def _property(finding: Finding) -> Term | None:
    """Return the first step of the path, where it leads from the node: what has to be looked at there."""
    if finding.path is None:
        return TYPE if finding.shape == EVERY_ITEM_IS_JUDGED else None
    if is_iri(finding.path):
        return finding.path
    match = _STEP.search(finding.path)
    return None if match is None else jido(match[1]) if match[1] else iri(match[2])


def targets(rules: Iterable[Triple]) -> list[tuple[Term, Term, Term]]:
    """Return what each shape targets: the shape, the kind of target, the target; a class that is a shape is one.

    A shape is what is typed as one, or asks for something.
    """
    rules = list(rules)
    types: dict[Term, set[Term]] = {}
    for subject, predicate, value in rules:
        if predicate == TYPE:
            types.setdefault(subject, set()).add(value)
        elif predicate.startswith(f"<{SH}"):
            types.setdefault(subject, set()).update(_SHAPES)
    stated = [(subject, kind, value) for subject, kind, value in rules if kind in _TARGETS]
    return stated + [(node, _CLASS, node) for node, kinds in types.items() if kinds & _CLASSES and kinds & _SHAPES]


def idle(source: Source, rules: Iterable[Triple], schema: Schema | None = None) -> list[str]:
    """Return the shapes with a target that found nothing to judge, sorted; with *schema* its class tree counts."""
    kinds = {cls for of in source.types.values() for cls in of}
    kinds = above(kinds, source) if schema is None else {cls for kind in kinds for cls in schema.ancestors(kind)}
    found: dict[Term, bool] = {}
    for shape, kind, target in targets(rules):
        if kind == _CLASS:
            met = target in kinds
        elif kind == _NODE:
            met = True
        else:
            met = target in source.by_property
        found[shape] = found.get(shape, False) or met
    return sorted(bare(shape) if is_iri(shape) else shape for shape, met in found.items() if not met)


def above(classes: Collection[Term], source: Source) -> set[Term]:
    """Return *classes* and those above them in the data itself."""
    seen: set[Term] = set()
    todo = set(classes)
    while todo:
        cls = todo.pop()
        seen.add(cls)
        todo |= {*source.values(cls, iri(vocab.RDFS + "subClassOf"))} - seen
    return seen


def untargeted(source: Source, rules: Iterable[Triple], schema: Schema) -> dict[str, int]:
    """Return how many nodes of each class no shape speaks about, so that nothing conforms by being skipped."""
    aimed = targets(rules)
    classes = {target for _, kind, target in aimed if kind == _CLASS}
    of = {kinds: any(schema.is_a(cls, aim) for cls in kinds for aim in classes) for kinds in {*source.types.values()}}
    counted = Counter(_first(kinds) for kinds in source.types.values() if not of[kinds])
    return {local_name(cls): count for cls, count in sorted(counted.items())}


def _first(kinds: Collection[Term]) -> Term:
    """Return the class by which a node is counted, one of the ontology's where there is one."""
    return min(kinds, key=lambda cls: (not cls.startswith(f"<{vocab.JIDO}"), cls))


def aimless(rules: Iterable[Triple], schema: Schema) -> list[Found]:
    """Return the shapes that never find anything to judge, because what they target is not declared."""
    known: Mapping[Term, Collection[Term]] = {
        _CLASS: schema.classes, _OBJECTS_OF: schema.properties, _SUBJECTS_OF: schema.properties,
    }  # fmt: skip
    found = []
    for shape, kind, target in targets(rules):
        if kind in known and target not in known[kind]:
            name = target if target.startswith("_:") else bare(target)
            text = f"sh:{local_name(kind)} {name} is not declared: this shape never finds anything to judge"
            found.append(Found(shape, TARGETED, "violation", text, kind, target))
    return found
