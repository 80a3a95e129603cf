"""Shapes compiled once into closures over triples; what is not covered, or in doubt, is pyshacl's to judge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from jidomem.constraints import BUILD, COVERED, Broken, Doubt, Shape, flag, kind_of
from jidomem.follow import FIRST, Data, Left, follow, shown
from jidomem.judge import ONE_AT_A_TIME, SH, UNNAMED, Finding, Judge, severity_of
from jidomem.terms import Term, Triple, bare, iri, parts
from jidomem.vocab import RDFS, TYPE, local_name

_SUBCLASS, _CLASS = iri(RDFS + "subClassOf"), iri(RDFS + "Class")
_COMPONENT = iri(SH + "ConstraintComponent")
_TARGETS = ("targetNode", "targetClass", "targetSubjectsOf", "targetObjectsOf")
#: What a shape may say besides its constraints.
_BESIDE = {"path", "message", "severity", "deactivated", "name", "description", "order", "group", "defaultValue",
           "flags", "qualifiedValueShape", *_TARGETS}  # fmt: skip
_ONCE = {"path", "severity", "deactivated", "flags", "datatype", "nodeKind", "in", "minLength", "maxLength", "minCount",
         "maxCount", "uniqueLang", "qualifiedValueShape", "qualifiedMinCount", "qualifiedMaxCount"}  # fmt: skip
_OF_PROPERTIES = {"minCount", "maxCount", "lessThan", "lessThanOrEquals", "uniqueLang", "qualifiedValueShape"}
#: The deepest nesting of shapes that is compiled; pyshacl gives up at 15.
_DEEPEST = 12


class CompiledJudge:
    """Shapes as closures, and pyshacl beside them for what is `left` (the shapes not covered) or in doubt."""

    def __init__(self, rules: Iterable[Triple]) -> None:
        self.rules = tuple(rules)
        self.pyshacl = Judge(self.rules)
        self._by: dict[tuple[str, Term], list[Shape]] = {}
        compiler, left = _Compiler(self.rules), set()
        for node, targets in compiler.targets().items():
            try:
                shape = compiler.shape(node)
            except Left:
                left.add(node)
                continue
            for target in targets:
                self._by.setdefault(target, []).append(shape)
        self.left = frozenset(left)
        self._named = {node for kind, node in self._by if kind == "targetNode"}
        self._saying = [target for target in self._by if target[0] == "targetSubjectsOf"]
        self._pointing = [target for target in self._by if target[0] == "targetObjectsOf"]
        self._rest = Judge(self.rules, only=self.left)

    def judged(self, triples: Iterable[Triple], focus: Collection[Term] | None) -> dict[Term, list[Broken] | None]:
        """Return what each node that a compiled shape speaks about breaks, None where only the reference can tell."""
        data, judged = Data(triples), dict[Term, list[Broken] | None]()
        for node, shapes in self._targeted(data, focus).items():
            try:
                judged[node] = [broken for shape in shapes for broken in shape.broken(data, node)]
            except Doubt:
                judged[node] = None
        return judged

    def findings(self, triples: Iterable[Triple], focus: Collection[Term] | None) -> list[Finding]:
        """Return what SHACL finds, as `Judge.findings` does, asking it about what is left, in doubt or unworded."""
        triples, found, unsure = list(triples), dict[Finding, None](), set[Term]()
        for node, broken in self.judged(triples, focus).items():
            if broken is None or not all(each.finding.message for each in broken):
                unsure.add(node)
            else:
                found |= dict.fromkeys(each.finding for each in broken)
        with ONE_AT_A_TIME:
            if unsure:
                found |= dict.fromkeys(self.pyshacl.findings(triples, unsure))
            if self.left:
                found |= dict.fromkeys(self._rest.findings(triples, None if focus is None else set(focus)))
        return list(found)

    def reference(self, triples: Iterable[Triple], focus: Collection[Term] | None) -> list[Finding]:
        """Return what pyshacl finds."""
        with ONE_AT_A_TIME:
            return self.pyshacl.findings(triples, None if focus is None else set(focus))

    def confirmed(self, triples: Iterable[Triple], focus: Collection[Term] | None) -> list[Finding]:
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

    def _targeted(self, data: Data, focus: Collection[Term] | None) -> dict[Term, dict[Shape, None]]:
        """Return the shapes that speak about each node, of *focus* alone where it is given."""
        by, found = self._by, dict[Term, dict[Shape, None]]()
        for node in data.nodes() | self._named if focus is None else focus:
            said = data.about.get(node, {})
            about: list[tuple[str, Term]] = [("targetNode", node)]
            about += [("targetClass", cls) for kind in said.get(TYPE, ()) for cls in data.above(kind)]
            about += [target for target in self._saying if target[1] in said]
            about += [target for target in self._pointing if data.subjects(target[1], node)]
            if shapes := {shape: None for target in about for shape in by.get(target, ())}:
                found[node] = shapes
        return found


class _Compiler:
    """Reads a shapes graph; `shape` raises Left for what is not covered, or is not well formed."""

    def __init__(self, rules: Iterable[Triple]) -> None:
        self.rules = Data(rules)
        self._custom = any(value == _COMPONENT for _, _, value in self.rules.triples)
        self._done: dict[Term, tuple[Shape, int]] = {}
        self._open: dict[Term, int] = {}

    def targets(self) -> dict[Term, list[tuple[str, Term]]]:
        """Return what each shape with a target, stated or implied by its being a class, is about."""
        classes = {_CLASS, iri("http://www.w3.org/2002/07/owl#Class"), *self.rules.subjects(_SUBCLASS, _CLASS)}
        referring = {FIRST, *(iri(SH + name) for name in ("property", "node", "not", "qualifiedValueShape"))}
        referred = {value for _, predicate, value in self.rules.triples if predicate in referring}
        shapes = {iri(SH + "NodeShape"), iri(SH + "PropertyShape")}
        found: dict[Term, list[tuple[str, Term]]] = {}
        for node, said in list(self.rules.about.items()):
            targets = [(kind, value) for kind in _TARGETS for value in said.get(iri(SH + kind), ())]
            types = set(said.get(TYPE, ()))
            if types & classes and (types & shapes or node in referred or referring & said.keys()):
                targets.append(("targetClass", node))
            if targets:
                found[node] = targets
        return found

    def shape(self, node: Term) -> Shape:
        """Return the shape *node*, and what it refers to, compiled."""
        if node in self._open or self._custom or kind_of(node) == "Literal":
            raise Left(node)
        if node not in self._done:
            self._open[node] = 0
            try:
                shape = self._compile(node, self.rules.about.get(node, {}))
            finally:
                height = self._open.pop(node) + 1
            if height > _DEEPEST:
                raise Left(node)
            self._done[node] = shape, height
        shape, height = self._done[node]
        for outer in list(self._open)[-1:]:
            self._open[outer] = max(self._open[outer], height)
        return shape

    def _compile(self, node: Term, said: Mapping[Term, list[Term]]) -> Shape:
        named = {local_name(predicate): values for predicate, values in said.items() if predicate.startswith(f"<{SH}")}
        path, (severity,) = named.get("path", [None])[0], named.get("severity", [f"<{SH}Violation>"])[:1]
        wrong_kind = iri(SH + ("NodeShape" if path else "PropertyShape")) in said.get(TYPE, ())
        counted = bool({"qualifiedMinCount", "qualifiedMaxCount"} & named.keys())
        if wrong_kind or counted != ("qualifiedValueShape" in named) or named.keys() - _BESIDE - set(COVERED):
            raise Left(node)
        if (not path and _OF_PROPERTIES & named.keys()) or any(len(named[name]) > 1 for name in _ONCE & named.keys()):
            raise Left(node)
        constraints = [(name, BUILD[name](self, named, value)) for name in COVERED for value in named.get(name, ())]
        message = [parts(each).text for each in named.get("message", ()) if kind_of(each) == "Literal"]
        return Shape(
            name=self._named(node),
            path=shown(self.rules, path) if path else None,
            values=follow(self.rules, path) if path else None,
            constraints=() if any(map(flag, named.get("deactivated", ()))) else tuple(constraints),
            message=message[0] if len(message) == 1 else "",
            severity=severity_of(bare(severity)),
        )

    def _named(self, node: Term) -> Term:
        """Return the rule, or the one with a name that an unnamed one is part of, as `Judge` names it."""
        seen = set()
        while node.startswith("_:") and node not in seen:
            seen.add(node)
            parents = {subject for subject, _, value in self.rules.triples if value == node}
            node = min(parents, key=lambda term: (kind_of(term), term), default=node)
        return UNNAMED if node in seen else node
