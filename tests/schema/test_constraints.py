"""Every constraint of every shipped shape: broken alone, held at its edge, and missed when it is dropped."""

import random
from dataclasses import replace

import pytest
from conftest import examples
from deltas import CONSTRAINTS, RULES, delta, entailed

from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import SHAPE, local_name
from jidomem.schema.shacl import SH, PyshaclValidator
from jidomem.schema.shacl_compiler import CompiledValidator

TIMES = examples(20)
#: Constraints of shapes that only serve another one, which is the one that is reported, or not.
REPORTED_AS = {
    ("FactHasEvidence", "minCount"): {("PromotedHypothesisHasEvidence", "or")},
    ("FactSupersedesNoHypothesis", "not"): {("PromotedHypothesisHasEvidence", "or")},
    ("Hypothesis", "class"): set(),
    ("Moment", "datatype"): {("ItemHasOneTimestamp", "or")},
    ("Moment", "pattern"): {("ItemHasOneTimestamp", "or")},
    ("Yes", "in"): {("ItemHasOneTimestamp", "or")},
}


#: Where a rule beside it compares what is broken, which is pyshacl's to do.
IN_DOUBT = {("SessionEndIsATime", "datatype")}


class ByConstraint(PyshaclValidator):
    """pyshacl, whose findings also say which constraint component was broken."""

    def _finding(self, report, terms):
        (name,) = (local_name(str(value[1])) for subject, predicate, value in report[2]
                   if subject == report[1] and str(predicate) == SH + "sourceConstraintComponent")  # fmt: skip
        found = super()._finding(report, terms)
        name = name.removesuffix("ConstraintComponent")
        return replace(found, message=f"{name[0].lower()}{name[1:]}: {found.message}")


REFERENCE = ByConstraint(RULES)
COMPILED = CompiledValidator(RULES)


def without(shape, parameter):
    return CompiledValidator([row for row in RULES if row[:2] != (iri(SHAPE + shape), iri(SH + parameter))])


def names(found):
    return {(local_name(finding.shape), finding.message.split(":")[0]) for finding in found}


def test_every_constraint_of_every_shape_is_compiled():
    assert COMPILED.left == frozenset()
    assert len(CONSTRAINTS) >= 69


@pytest.mark.parametrize(("shape", "parameter"), CONSTRAINTS)
def test_it_is_found_when_broken_alone_and_not_at_its_edge_as_pyshacl_finds_it(shape, parameter):
    rng, mutant = random.Random(f"{shape} {parameter}"), without(shape, parameter)
    expected = REPORTED_AS.get((shape, parameter), {(shape, parameter)})
    missed = doubts = 0
    for broken in (True, False):
        for _ in range(TIMES):
            rows = delta(rng, shape, parameter, broken)
            rows = [*rows, *entailed(rows)]
            found, (_, unsure) = set(COMPILED.findings(rows, None)), COMPILED.judged(rows, None)
            said = REFERENCE.findings(rows, None)
            assert found == {replace(f, message=f.message.split(": ", 1)[1]) for f in said}, rows
            assert names(said) == (expected if broken else set()), rows
            missed += broken and set(mutant.findings(rows, None)) != found
            doubts += len(unsure)
    assert missed == TIMES
    assert (doubts > 0) == ((shape, parameter) in IN_DOUBT)
