"""Shapes compiled once into closures over triples; what is not covered, or in doubt, is pyshacl's to judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from jidomem.constraints import BUILD, COVERED, Doubt, Shape
from jidomem.follow import DEEPEST, Data, Left, follow
from jidomem.judge import ONE_AT_A_TIME, SH, Finding, Judge, severity_of
from jidomem.patterns import Unsearchable
from jidomem.terms import Term, Triple, bare, iri, is_iri
from jidomem.vocab import TYPE

_TARGETS = ("targetClass", "targetSubjectsOf")
#: What a shape may say besides its constraints, and what it may say more than once.
_BESIDE = {"path", "message", "severity", "name", "description", "order", "group", *_TARGETS}
_MANY = {"property", *_TARGETS}
_NODE_SHAPE, _PROPERTY_SHAPE = iri(SH + "NodeShape"), iri(SH + "PropertyShape")


class CompiledJudge:
    """Shapes as closures, and pyshacl beside them for what is `left` (the shapes not covered) or in doubt.

    The shapes are well formed: those of an overlay are held to the SHACL of SHACL when they are loaded.
    """

    def __init__(self, rules: Iterable[Triple]) -> None:
        shapes = Data(rules)
        self._by: dict[str, dict[Term, list[Shape]]] = {target: {} for target in _TARGETS}
        self.left = frozenset(node for node in shapes.about if not self._take(shapes, node))
        self._speaking = lru_cache(maxsize=1024)(self._of)  # memories of one kind are alike
        self.pyshacl, self._rest = Judge(shapes.triples, linear=True), Judge(shapes.triples, self.left, linear=True)

    def _take(self, shapes: Data, node: Term) -> bool:
        """Keep the shape *node* by its targets; return whether it is covered, or has none."""
        said, types = shapes.shacl(node), set(shapes.objects(node, TYPE))
        if said and types - {_PROPERTY_SHAPE if "path" in said else _NODE_SHAPE}:
            return False  # it may be a class, and so what it is about
        if not any(name.startswith("target") for name in said):
            return True
        try:
            shape = _shape(shapes, node)
        except (Left, Unsearchable):
            return False
        for target, by in self._by.items():
            for term in said.get(target, ()):
                by.setdefault(term, []).append(shape)
        return True

    def judged(self, triples: Iterable[Triple], focus: set[Term] | None) -> tuple[set[Finding], set[Term]]:
        """Return what the compiled shapes find, and the nodes that only the reference can judge, or word."""
        data, found, unsure = Data(triples), set[Finding](), set[Term]()
        for node in data.about if focus is None else focus:
            shapes = self._about(data, node)
            try:
                if all(shape.conforms(data, node) for shape in shapes):
                    continue
                broken = [finding for shape in shapes for finding in shape.broken(data, node)]
            except Doubt:
                unsure.add(node)
                continue
            if all(finding.message for finding in broken):
                found.update(broken)
            else:
                unsure.add(node)
        return found, unsure

    def _about(self, data: Data, node: Term) -> Collection[Shape]:
        """Return the shapes that speak about *node*."""
        of_subject = self._by["targetSubjectsOf"]
        return self._speaking(
            tuple(data.types(node)), tuple([prop for prop in data.about.get(node, ()) if prop in of_subject])
        )

    def _of(self, types: tuple[Term, ...], props: tuple[Term, ...]) -> Collection[Shape]:
        """Return the shapes that speak about a node of such types that has such properties."""
        of_class, of_subject = self._by.values()
        found = {shape: None for cls in types for shape in of_class.get(cls, ())}
        return tuple(found | {shape: None for prop in props for shape in of_subject[prop]})

    def findings(self, triples: Iterable[Triple], focus: set[Term] | None) -> list[Finding]:
        """Return what SHACL finds, as `Judge.findings` does, asking it about what is left or in doubt."""
        triples = list(triples)
        found, unsure = self.judged(triples, focus)
        if unsure:
            found.update(self.reference(triples, unsure))
        if self.left:
            with ONE_AT_A_TIME:
                found.update(self._rest.findings(triples, focus))
        return list(found)

    def reference(self, triples: Iterable[Triple], focus: set[Term] | None) -> list[Finding]:
        """Return what pyshacl finds."""
        with ONE_AT_A_TIME:
            return self.pyshacl.findings(triples, focus)

    def confirmed(self, triples: Iterable[Triple], focus: set[Term] | None) -> list[Finding]:
        """Return the findings, those of pyshacl where a rule is violated; where they differ, a finding says so."""
        triples = list(triples)
        found = self.findings(triples, focus)
        if all(finding.severity != "violation" for finding in found):
            return found
        said = self.reference(triples, focus)
        for finding in sorted(set(said) ^ set(found), key=repr)[:1]:
            text = f"The compiled shapes and pyshacl differ on {finding.shape} (pyshacl counts): please report this."
            grave = any(other.severity == "violation" for other in said)
            said.append(replace(finding, message=text, severity="violation" if grave else "warning"))
        return said


def _shape(rules: Data, node: Term, within: Term = "", depth: int = 0) -> Shape:
    """Return *node* compiled, named or by the name of what it is *within*; raise Left for what is not covered."""
    said = rules.shacl(node)
    unknown = said.keys() - _BESIDE - set(COVERED) or any(len(said[each]) > 1 for each in said.keys() - _MANY)
    shared = not is_iri(node) and [value for _, _, value in rules.triples].count(node) > 1
    name = node if is_iri(node) else within
    if unknown or shared or not name or depth > DEEPEST:
        raise Left(node)
    path, values = follow(rules, said["path"][0]) if "path" in said else (None, None)
    given = {each: _given(rules, each, said[each][0], name, depth + 1) for each in BUILD if each in said}
    return Shape(
        name=name,
        path=path,
        values=values,
        checks=tuple(BUILD[each](value) for each, value in given.items()),
        properties=tuple(_shape(rules, each, name, depth + 1) for each in said.get("property", ())),
        message="".join(map(bare, said.get("message", ()))),
        severity=severity_of("".join(said.get("severity", ()))),
    )


def _given(rules: Data, parameter: str, value: Term, name: Term, depth: int) -> Any:
    """Return what the check of *parameter* is built from."""
    if parameter in ("not", "node"):
        return _shape(rules, value, name, depth)
    if parameter in ("and", "or"):
        return [_shape(rules, each, name, depth) for each in rules.members(value)]
    if parameter == "in":
        return frozenset(rules.members(value))
    if not parameter.endswith(("Count", "Length")):
        return value
    if (limit := int(bare(value))) < 0:
        raise Left(value)
    return limit
