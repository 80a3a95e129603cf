"""`sh:pattern` as pyshacl judges it, but run by RE2: shapes are handed to it with a parameter of ours in its place."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from jidomem.patterns import Unsearchable, compiled
from jidomem.terms import Term, Triple, bare, iri

_PATTERN = iri("http://www.w3.org/ns/shacl#pattern")
_OURS = iri("urn:jido:shacl:pattern")


def by_re2(rules: Iterable[Triple]) -> list[Triple]:
    """Return *rules*, each `sh:pattern` by the name that pyshacl knows as ours."""
    _teach()
    return [(s, _ours(p), o) for s, p, o in rules]


def _ours(predicate: Term) -> Term:
    return _OURS if predicate == _PATTERN else predicate


@cache
def _teach() -> None:
    """Have pyshacl know our parameter, once; what it does with `sh:pattern` for others is left alone."""
    from pyshacl.constraints import ALL_CONSTRAINT_PARAMETERS, CONSTRAINT_PARAMETERS_MAP
    from pyshacl.constraints.core.string_based_constraints import (
        PatternConstraintComponent,
        SH_flags,
        StringBasedConstraintBase,
    )
    from pyshacl.errors import ReportableRuntimeError
    from rdflib import URIRef

    ours = URIRef(bare(_OURS))

    class Pattern(PatternConstraintComponent):  # type: ignore[misc]  # pyshacl has no types
        def __init__(self, shape: Any) -> None:
            StringBasedConstraintBase.__init__(self, shape)
            self.string_rules = list(shape.objects(ours))
            self.flags = next(iter(shape.objects(SH_flags)), None)
            flags = "" if self.flags is None else str(self.flags)
            try:
                self.compiled_cache = {each: compiled(str(each), flags) for each in self.string_rules}
            except Unsearchable as error:
                raise ReportableRuntimeError(f"RE2 does not run the pattern of {shape.node}: {error}") from error

    CONSTRAINT_PARAMETERS_MAP[ours] = Pattern
    ALL_CONSTRAINT_PARAMETERS.append(ours)
