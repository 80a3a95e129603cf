"""Every constraint of every shipped shape: found when broken, satisfied at its limit, missed when removed."""

import random

import pytest
from conftest import examples
from deltas import CONSTRAINTS, RULES, delta, entailed

from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import SHAPE, local_name
from jidomem.schema.shacl import SH, PyshaclValidator
from jidomem.schema.shacl_compiler import CompiledValidator

TIMES = examples(20)
#: Constraints of shapes that other shapes refer to, with the constraint that is reported.
REPORTED_AS = {
    ("FactHasEvidence", "minCount"): {("PromotedHypothesisHasEvidence", "or")},
    ("FactSupersedesNoHypothesis", "not"): {("PromotedHypothesisHasEvidence", "or")},
    ("Hypothesis", "class"): set(),
    ("Moment", "datatype"): {("ItemHasOneTimestamp", "or")},
    ("Moment", "pattern"): {("ItemHasOneTimestamp", "or")},
    ("Yes", "in"): {("ItemHasOneTimestamp", "or")},
}


#: Constraints whose broken value is compared by another shape, which pyshacl must do.
IN_DOUBT = {("SessionEndIsATime", "datatype")}


class ByConstraint(PyshaclValidator):
    """pyshacl with the broken constraint component in the message of each finding."""

    def _finding(self, report, terms):
        (name,) = (local_name(str(value[1])) for subject, predicate, value in report[2]
                   if subject == report[1] and str(predicate) == SH + "sourceConstraintComponent")  # fmt: skip
        finding = super()._finding(report, terms)
        name = name.removesuffix("ConstraintComponent")
        return finding._replace(message=f"{name[0].lower()}{name[1:]}: {finding.message}")


REFERENCE = ByConstraint(RULES)
COMPILED = CompiledValidator(RULES)


def without(shape, parameter):
    return CompiledValidator([row for row in RULES if row[:2] != (iri(SHAPE + shape), iri(SH + parameter))])


def names(findings):
    return {(local_name(finding.shape), finding.message.split(":")[0]) for finding in findings}


def test_every_constraint_of_every_shape_is_compiled():
    assert COMPILED.left == frozenset()
    assert len(CONSTRAINTS) >= 69


@pytest.mark.parametrize(("shape", "parameter"), CONSTRAINTS)
def test_a_constraint_is_violated_when_broken_and_satisfied_at_its_limit_as_in_pyshacl(shape, parameter):
    rng, mutant = random.Random(f"{shape} {parameter}"), without(shape, parameter)
    expected = REPORTED_AS.get((shape, parameter), {(shape, parameter)})
    missed = doubts = 0
    for broken in (True, False):
        for _ in range(TIMES):
            rows = delta(rng, shape, parameter, broken)
            rows = [*rows, *entailed(rows)]
            compiled, (_, unsure) = set(COMPILED.findings(rows, None)), COMPILED.judged(rows, None)
            reference = REFERENCE.findings(rows, None)
            assert compiled == {f._replace(message=f.message.split(": ", 1)[1]) for f in reference}, rows
            assert names(reference) == (expected if broken else set()), rows
            missed += broken and set(mutant.findings(rows, None)) != compiled
            doubts += len(unsure)
    assert missed == TIMES
    assert (doubts > 0) == ((shape, parameter) in IN_DOUBT)
