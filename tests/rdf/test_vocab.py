"""Terms of the ontology in Python: each is declared, and closed vocabularies are equal."""

from pathlib import Path

import pyoxigraph as ox
import pytest

from jidomem.base import files
from jidomem.rdf import vocab
from jidomem.rdf.terms import parse_literal
from jidomem.rdf.vocab import JIDO, jido, local_name
from jidomem.schema import ontology

ONTOLOGY = ontology.load()


def members(cls):
    return {local_name(term) for term, classes in ONTOLOGY.individuals.items() if jido(cls) in classes}


def allowed_values(shape):
    """Return the plain strings that *shape* lists."""
    store = ox.Store()
    for path in files.shape_files():
        store.load(path=str(path), format=ox.RdfFormat.TURTLE)
    rows = store.query(
        "PREFIX sh: <http://www.w3.org/ns/shacl#> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>"
        f"SELECT ?text {{ <{vocab.SHAPE}{shape}> sh:in/rdf:rest*/rdf:first ?text }}"
    )
    return {row["text"].value for row in rows}


@pytest.mark.parametrize(
    ("cls", "names"),
    [
        ("ConfidenceLevel", vocab.CONFIDENCE.values()),
        ("TaskStatus", vocab.TASK_STATUS),
        ("ErrorStatus", vocab.ERROR_STATUS),
        ("EnforcementLevel", vocab.ENFORCEMENT),
        ("ConventionScope", vocab.SCOPE),
        ("SourceType", vocab.SOURCE_TYPE),
        ("SessionStatus", vocab.SESSION_STATUS),
        ("SessionPhase", vocab.SESSION_PHASE),
        ("AgentRole", vocab.AGENT_ROLE),
        ("Capability", vocab.CAPABILITY),
        ("EvidenceStrength", ("WeakEvidence", "ModerateEvidence", "StrongEvidence")),
        ("AssertionStatus", ("Asserted", "Proposed")),
    ],
)
def test_a_closed_vocabulary_has_the_same_members_in_python_and_in_the_ontology(cls, names):
    assert members(cls) == set(names)


@pytest.mark.parametrize(
    ("shape", "names"),
    [
        ("DecisionStatusIsKnown", vocab.DECISION_STATUS),
        ("SeverityIsKnown", vocab.SEVERITY),
        ("ImpactLevelIsKnown", vocab.SEVERITY),
    ],
)
def test_a_list_of_plain_values_is_the_same_in_python_and_in_its_shape(shape, names):
    assert allowed_values(shape) == set(names)


@pytest.mark.parametrize("kind", sorted(vocab.CLASS_OF_TYPE))
def test_a_memory_type_names_a_declared_subclass_of_memory_item(kind):  # C042, C071, E065
    cls = f"<{vocab.type_uri(kind)}>"
    assert cls == jido(vocab.CLASS_OF_TYPE[kind])
    assert cls in ONTOLOGY.classes
    assert ONTOLOGY.is_a(cls, ontology.ITEM)


def test_every_subclass_of_memory_item_has_a_type():  # C042
    kinds = ONTOLOGY.subclasses(ontology.ITEM) - {ontology.ITEM}
    assert {local_name(cls) for cls in kinds} == set(vocab.CLASS_OF_TYPE.values()) == set(vocab.TYPE_OF_CLASS)


def test_the_guide_has_eleven_types_and_the_writer_twelve_and_lesson_is_an_alias():  # E064, C071
    assert vocab.GUIDE_TYPES == (
        "fact", "assumption", "hypothesis", "discovery", "risk", "unknown", "decision", "task", "convention", "error",
        "lesson_learned",
    )  # fmt: skip
    assert {local_name(vocab.type_uri(kind)) for kind in vocab.WRITER_TYPES} == {
        "Fact", "Assumption", "Hypothesis", "Discovery", "Risk", "Decision", "ArchitecturalDecision",
        "ImplementationDecision", "Convention", "Task", "Error", "LessonLearned",
    }  # fmt: skip
    assert vocab.type_uri("lesson") == vocab.type_uri("lesson_learned") == JIDO + "LessonLearned"


def test_an_unknown_type_has_the_class_memory_item():  # E065
    assert vocab.type_uri("mystery") == "https://jido.ai/ontology#MemoryItem"
    assert vocab.type_uri("fact") == "https://jido.ai/ontology#Fact"


def test_the_documentation_has_a_definition_and_an_example_of_each_guide_type():  # E068
    docs = Path(__file__).parents[2] / "docs"
    page = (docs / "reference" / "ontology.md").read_text("utf-8")
    texts = {(s, local_name(p)): parse_literal(o).text for s, p, o in ONTOLOGY.triples if "skos" in p}
    for kind in vocab.GUIDE_TYPES:
        cls = f"<{vocab.type_uri(kind)}>"
        row = f"| `{kind}` | `jido:{local_name(cls)}` | {texts[cls, 'definition']} | {texts[cls, 'example']} |"
        assert row in page.splitlines()
