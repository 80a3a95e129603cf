"""The reasoner of the check finds the contradictions that the unmodified owlrl finds."""

import inspect
import re

from conftest import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from owlrl import OWLRL_Semantics

from jidomem.check.reasoning import _errors, rule_groups
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import RDF, RDFS, TYPE
from jidomem.schema.ontology import OWL
from jidomem.schema.shacl import as_graph

SAME, DIFFERENT = iri(OWL + "sameAs"), iri(OWL + "differentFrom")
NODES, CLASSES, PROPERTIES = ([iri(f"urn:{kind}:{number}") for number in range(4)] for kind in "ncp")
nodes, classes, properties = map(st.sampled_from, (NODES, CLASSES, PROPERTIES))
about_nodes = st.one_of(
    st.tuples(nodes, st.sampled_from([SAME, DIFFERENT]), nodes),
    st.tuples(nodes, properties, st.one_of(nodes, st.sampled_from(['"a"', '"b"']))),
    st.tuples(nodes, st.just(TYPE), classes),
)
about_classes = st.tuples(
    classes,
    st.sampled_from([iri(RDFS + "subClassOf"), *(iri(OWL + name) for name in ("disjointWith", "equivalentClass"))]),
    classes | st.just(iri(OWL + "Nothing")),
)
about_properties = st.one_of(
    st.tuples(
        properties,
        st.just(TYPE),
        st.sampled_from(
            [
                iri(OWL + name)
                for name in (
                    "FunctionalProperty",
                    "InverseFunctionalProperty",
                    "IrreflexiveProperty",
                    "AsymmetricProperty",
                    "SymmetricProperty",
                    "TransitiveProperty",
                )
            ]
        ),
    ),
    st.tuples(
        properties,
        st.sampled_from(
            [
                iri(RDFS + "subPropertyOf"),
                *(iri(OWL + name) for name in ("propertyDisjointWith", "inverseOf", "equivalentProperty")),
            ]
        ),
        properties,
    ),
    st.tuples(properties, st.sampled_from([iri(RDFS + "domain"), iri(RDFS + "range")]), classes),
)
statement_lists = st.lists(st.one_of(about_nodes, about_nodes, about_classes, about_properties), max_size=14)


def by_owlrl(rows):
    closure = OWLRL_Semantics(as_graph(rows, {}), False, False, rdfs=False)
    closure.closure()
    return tuple(sorted(set(closure.error_messages)))


def all_different(*members):
    """The statements that no two of *members* are the same."""
    cells = [iri(f"urn:cell:{number}") for number in range(len(members))] + [iri(RDF + "nil")]
    lists = [(cells[at], iri(RDF + name), value) for at, member in enumerate(members)
             for name, value in (("first", member), ("rest", cells[at + 1]))]  # fmt: skip
    whole = iri("urn:all")
    return [(whole, TYPE, iri(OWL + "AllDifferent")), (whole, iri(OWL + "distinctMembers"), cells[0]), *lists]


def some_values(of, term, cls):
    """The statements that a class holds all nodes with a value of *cls*."""
    return [(of, iri(OWL + "onProperty"), term), (of, iri(OWL + "someValuesFrom"), cls)]


#: A contradiction that only the rules about the schema find: class 0 is below class 1 once class 2 is below class 3.
BELOW = iri(RDFS + "subClassOf")
VALUES = [*some_values(CLASSES[0], PROPERTIES[0], CLASSES[2]), *some_values(CLASSES[1], PROPERTIES[0], CLASSES[3])]
VALUES += [(CLASSES[1], iri(OWL + "disjointWith"), CLASSES[0]), (NODES[0], TYPE, CLASSES[0])]


@given(statement_lists, st.integers(0, 14))
@example([*VALUES, (CLASSES[2], BELOW, CLASSES[3])], len(VALUES))
@example([*VALUES, (PROPERTIES[1], iri(RDFS + "subPropertyOf"), BELOW), (CLASSES[2], PROPERTIES[1], CLASSES[3])], 7)
@example([(CLASSES[2], BELOW, CLASSES[3]), *VALUES[:2], *VALUES[3:], VALUES[2]], 6)
@example([(NODES[0], DIFFERENT, NODES[0])], 0)
@example([(NODES[0], SAME, NODES[1]), (NODES[1], SAME, NODES[2]), (NODES[2], DIFFERENT, NODES[0])], 1)
@example([(PROPERTIES[0], TYPE, iri(OWL + "FunctionalProperty")), (NODES[1], DIFFERENT, NODES[2]),
          *((NODES[0], PROPERTIES[0], each) for each in NODES[1:3])], 2)  # fmt: skip
@example([*all_different(*NODES), (NODES[0], SAME, NODES[1])], 8)
@example([(CLASSES[0], iri(OWL + "disjointWith"), CLASSES[1]), (PROPERTIES[0], iri(RDFS + "domain"), CLASSES[1]),
          (NODES[0], TYPE, CLASSES[0]), (NODES[0], PROPERTIES[0], NODES[1])], 2)  # fmt: skip
@settings(max_examples=examples(40))
def test_the_reasoner_reports_the_contradictions_of_owlrl_for_any_statements(rows, axioms):
    assert _errors(tuple(rows[:axioms]), tuple(rows[axioms:])) == by_owlrl(rows)


def test_each_group_of_rules_is_keyed_by_the_terms_its_rules_match():
    groups = rule_groups()

    for name in {name for names in groups.values() for name in names}:
        source = inspect.getsource(getattr(OWLRL_Semantics, name))
        named = {
            each for each in re.findall(r"\b\w+ == (?:OWL|RDFS|RDF)\.(\w+)", source) if each not in ("type", "Thing")
        }
        given = {(term[1] if isinstance(term, tuple) else term) for term, names in groups.items() if name in names}
        ours = {"differentFrom"} if name == "_equality" else set()
        assert {re.split("[#/]", term)[-1] for term in given} == named | ours
