"""The shipped ontology: every term is declared and documented, and the ontology is consistent."""

import re
import warnings
from pathlib import Path

import pyoxigraph as ox
import pytest
from turtle_style import PREFIXES, parse, serialise

from jidomem.base import files
from jidomem.rdf.terms import iri, parse_literal
from jidomem.rdf.vocab import CONVERSATION, JIDO, RDFS, XSD, jido, local_name
from jidomem.schema import ontology
from jidomem.schema.ontology import OWL

SKOS = "http://www.w3.org/2004/02/skos/core#"
ONTOLOGY = ontology.load()
FILES = [*files.ontology_files(), *files.shape_files()]
MODULES = ["core", "knowledge", "decision", "convention", "error", "task", "session", "agent", "project", "code"]
MODULES += ["conversation-history"]
#: The texts of a term, of which the last may be absent.
TEXTS = [iri(name) for name in (f"{RDFS}label", f"{SKOS}definition", f"{SKOS}example", f"{SKOS}scopeNote")]
SOURCES = {name: parse(path) for name in MODULES for path in files.ontology_files() if path.stem == name}


def strings(quad):
    return str(quad.subject), str(quad.predicate), str(quad.object)


def subjects(file):
    return {str(quad.subject) for quad in file}


def values(term, predicate):
    return [o for s, p, o in ONTOLOGY.triples if s == term and p == iri(predicate)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_is_valid_turtle_in_the_canonical_layout(path):  # E073
    assert path.read_text("utf-8") == serialise([quad.triple for quad in parse(path)])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_file_declares_every_prefix_it_uses_and_no_other(path):  # E073
    text = path.read_text("utf-8")
    header = dict(re.findall(r"^@prefix (\w+): +<(.*)> \.$", text, re.MULTILINE))
    body = re.sub(r'"(?:[^"\\]|\\.)*"|<[^>]*>|^@prefix.*$', "", text, flags=re.MULTILINE)
    assert set(header) == set(re.findall(r"\b(\w+):", body))
    assert header.items() <= PREFIXES.items()


def test_the_hub_imports_the_eleven_modules_and_each_names_its_version():
    hub = jido("JidoMemoryOntology")
    modules = [iri(f"https://jido.ai/ontology/{name}") for name in MODULES]

    assert sorted(values(hub, OWL + "imports")) == sorted(modules)
    assert {tuple(values(module, OWL + "versionInfo")) for module in [hub, *modules]} == {('"0.1.0"',)}
    assert values(modules[0], OWL + "versionIRI") == ["<https://jido.ai/ontology/core/0.1.0>"]
    assert ONTOLOGY.version == "0.1.0"


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_the_modules_whose_terms_it_uses(name):
    home = {term: module for module, file in SOURCES.items() for term in subjects(file)}
    used = {
        home[o]
        for _, _, o in map(strings, SOURCES[name])
        if o in home and not o.startswith("<https://jido.ai/ontology/")
    }

    module = iri(f"https://jido.ai/ontology/{name}")
    assert {local_name(imported) for imported in values(module, OWL + "imports")} == used - {name}


def test_each_term_has_a_label_a_definition_and_an_example_in_our_namespace():
    texts = {(s, p): [] for s in ONTOLOGY.declared for p in TEXTS}
    for s, p, o in ONTOLOGY.triples:
        if (s, p) in texts:
            texts[s, p].append(parse_literal(o))

    assert [term for term in ONTOLOGY.declared if not term.startswith((f"<{JIDO}", f"<{CONVERSATION}"))] == []
    assert [place for place, literals in texts.items() if place[1] != TEXTS[-1] and len(literals) != 1] == []
    assert [place for place, literals in texts.items() if any(each.language != "en" for each in literals)] == []
    definitions = [(term, texts[term, TEXTS[1]][0].text) for term in ONTOLOGY.declared]
    assert [each for each in definitions if not re.fullmatch(r"[A-Z].{15,}\.", each[1])] == []


def test_no_two_terms_share_a_definition_and_notes_name_declared_terms():
    definitions = [o for _, p, o in ONTOLOGY.triples if p == iri(SKOS + "definition")]
    texts = [parse_literal(o).text for _, p, o in ONTOLOGY.triples if p.startswith(f"<{SKOS}")]
    named = {jido(name) for text in texts for name in re.findall(r"(?<!:)jido:(\w+)", text)}

    assert len(set(definitions)) == len(definitions)
    assert named - ONTOLOGY.declared == set()


def test_the_ontology_holds_no_blank_nodes():
    assert [triple for triple in ONTOLOGY.triples if "_:" in (triple[0][:2], triple[2][:2])] == []


CLASSES = """
Entity; Agent Project WorkSession MemoryItem Evidence Justification < Entity; ConfidenceLevel; SourceType
Fact Assumption Hypothesis Discovery Risk Unknown < MemoryItem; EvidenceStrength
Decision Alternative TradeOff < MemoryItem; ArchitecturalDecision ImplementationDecision < Decision
Convention < MemoryItem; CodingStandard ArchitecturalConvention AgentRule ProcessConvention < Convention
ConventionScope; EnforcementLevel; Error RootCause LessonLearned < MemoryItem; Bug Failure Incident < Error; ErrorStatus
Task Milestone Plan < MemoryItem; TaskStatus; SessionStatus; SessionPhase; PrimaryAgent SubAgent < Agent; AgentRole
Capability; Repository Module Domain < Entity; CodeConcept SourceFile < Entity
ElixirModule AshResource DSL Command Event Projection Function < CodeConcept
"""


def test_the_documented_classes_are_declared_below_their_parents():  # E069, E070
    for group in re.split(r"[;\n]", CLASSES.strip()):
        names, _, parent = group.partition(" < ")
        for name in names.split():
            above = values(jido(name), RDFS + "subClassOf")
            assert jido(name) in ONTOLOGY.classes, name
            assert above == ([jido(parent)] if parent else []), name


def test_25_classes_and_the_deleted_marker_are_kinds_of_memory():  # E069, E070
    kinds = ONTOLOGY.subclasses(jido("MemoryItem")) - {jido("MemoryItem")}
    assert len(kinds - {jido("DeletedMarker")}) == 25
    assert {jido(name) for name in ("Fact", "Decision", "Task", "Convention", "Error", "LessonLearned")} <= kinds
    assert {jido(name) for name in ("Assumption", "Hypothesis", "Discovery", "Risk", "Unknown")} <= kinds


OBJECT_PROPERTIES = """
MemoryItem: assertedBy>Agent assertedIn>WorkSession appliesToProject>Project derivedFrom>Evidence
MemoryItem: supersededBy>MemoryItem invalidatedBy>MemoryItem hasConfidence>ConfidenceLevel hasSourceType>SourceType
MemoryItem: supersedes>MemoryItem invalidates>MemoryItem revives>MemoryItem coexistsWith>MemoryItem
MemoryItem: conflictsWith>MemoryItem hasAssertionStatus>AssertionStatus
Hypothesis: refines>Hypothesis
Evidence: confirms>Fact contradicts>MemoryItem hasEvidenceStrength>EvidenceStrength
Decision: hasAlternative>Alternative selectedAlternative>Alternative hasTradeOff>TradeOff justifiedBy>Justification
Convention: appliesToModule>Module appliesToDomain>Domain hasEnforcementLevel>EnforcementLevel
Convention: hasConventionScope>ConventionScope
AgentRule: governsAgent>Agent
Error: hasErrorStatus>ErrorStatus hasRootCause>RootCause producedLesson>LessonLearned relatedError>Error
Task: hasTaskStatus>TaskStatus dependsOn>Task blockedBy>Task partOfMilestone>Milestone partOfPlan>Plan
Task: assignedTo>Agent createdBy>Agent
WorkSession: hasStatus>SessionStatus hasPhase>SessionPhase continuesSession>WorkSession hasPreviousSession>WorkSession
WorkSession: hasParticipatingAgent>Agent hasPrimaryAgent>Agent
SessionEvent: ofSession>WorkSession toStatus>SessionStatus toPhase>SessionPhase causedBy>Agent
Agent: hasRole>AgentRole hasCapability>Capability spawnedSubAgent>SubAgent
SubAgent: reportsTo>Agent
Project: hasRepository>Repository hasModule>Module hasDomain>Domain
Entity: partOfProject>Project
CodeConcept: definedInFile>SourceFile partOfModule>ElixirModule
ElixirModule: implementsDSL>DSL
Module: hasFunction>Function
Command: emitsEvent>Event
Event: handledByProjection>Projection
Commit: parent>Commit committer>Agent
Submission: submittedBy>Agent answeredWith>MemoryItem
"""
DATA_PROPERTIES = """
MemoryItem: summary>string detailedExplanation>string rationale>string hasTimestamp>dateTime
MemoryItem: topic>string key>string context>string affectedModule>string localId>string verified>boolean
MemoryItem: value>string category>string
MemoryItem: confidenceValue>decimal trackedBy>anyURI validFrom>dateTime validUntil>dateTime expiresOn>dateTime
MemoryItem: conflictKey>string revisionReason>string accessCount>integer lastAccessed>dateTime
Decision: decisionStatus>string impactLevel>string
Convention: conventionName>string conventionDescription>string violationConsequence>string
Error: severityLevel>string errorCode>string
Task: taskCreatedAt>dateTime taskStartedAt>dateTime taskCompletedAt>dateTime
WorkSession: startedAt>dateTime endedAt>dateTime
SessionEvent: eventNumber>integer
Agent: agentName>string agentVersion>string agentDescription>string
Project: projectName>string projectVersion>string projectDescription>string
Repository: repoUrl>anyURI repoBranch>string
ElixirModule: moduleName>string
SourceFile: filePath>string
CodeConcept: codeSummary>string
Commit: journalFormat>integer position>integer ontologyVersion>string
"""


@pytest.mark.parametrize(
    ("table", "is_object", "base"), [(OBJECT_PROPERTIES, True, JIDO), (DATA_PROPERTIES, False, XSD)]
)
def test_every_property_has_its_domain_and_range(table, is_object, base):  # E071, E072
    for line in table.strip().splitlines():
        domain, _, pairs = line.partition(": ")
        for name, _, range_ in (pair.partition(">") for pair in pairs.split()):
            declared = ONTOLOGY.properties[jido(name)]
            assert (declared.is_object, declared.domain, declared.range) == (
                is_object,
                {jido(domain)},
                {iri(base + range_)},
            ), name


def test_properties_without_range_or_domain_are_declared_so():
    about, recorded = ONTOLOGY.properties[jido("about")], ONTOLOGY.properties[jido("recordedAt")]
    assert (about.is_object, about.range) == (None, frozenset())
    assert (recorded.domain, recorded.range) == (frozenset(), {iri(XSD + "dateTime")})


def test_a_property_is_functional_if_a_merge_of_branches_adds_no_second_value():
    functional = {local_name(name) for name, declared in ONTOLOGY.properties.items() if declared.functional}
    assert {"summary", "appliesToProject", "hasTimestamp", "hasConfidence", "filePath"} <= functional
    assert functional.isdisjoint({"assertedBy", "assertedIn", "supersededBy", "startedAt", "endedAt", "repoBranch"})


SAME_NAMES = "Fact Decision Task Convention Error LessonLearned key context affectedModule verified"


def test_names_of_earlier_vocabularies_are_aligned():  # E065, E069, E071
    for base in ("http://jidoka.ai/ontology#", "http://jidoka.ai/ontology/"):
        ours = dict.fromkeys(SAME_NAMES.split()) | {
            "Memory": "MemoryItem",
            "content": "summary",
            "timestamp": "hasTimestamp",
        }
        ours |= {"confidence": "confidenceValue", "source": "hasSourceType", "id": "localId"}
        for theirs, name in ours.items():
            assert ONTOLOGY.alignment[iri(base + theirs)] == jido(name or theirs)
    assert ONTOLOGY.alignment[jido("belongsTo")] == jido("partOfProject")
    assert set(ONTOLOGY.alignment.values()) <= ONTOLOGY.declared


def test_classes_are_aligned_with_classes_and_properties_with_properties():
    for foreign, ours in ONTOLOGY.alignment.items():
        assert (ours in ONTOLOGY.classes) == local_name(foreign)[0].isupper(), foreign


def test_the_ontology_and_its_alignments_are_consistent():  # E073
    closed = closure(files.ontology_files())
    errors = [
        str(o) for _, _, o in closed.triples((None, rdf("http://www.daml.org/2002/03/agents/agent-ont#error"), None))
    ]
    empty = [
        s for s in closed.subjects(rdf(OWL + "equivalentClass"), rdf(OWL + "Nothing")) if s != rdf(OWL + "Nothing")
    ]
    empty += [s for s in closed.subjects(rdf(RDFS + "subClassOf"), rdf(OWL + "Nothing")) if s != rdf(OWL + "Nothing")]
    assert (errors, empty) == ([], [])


def test_the_closure_reports_each_contradiction(tmp_path):
    (tmp_path / "data.ttl").write_text(
        f"@prefix jido: <{JIDO}> .\n<urn:a> a jido:Agent , jido:Project .\n"
        "<urn:m> jido:hasConfidence jido:High , jido:Low ."
    )
    reported = "\n".join(contradictions(closure([*files.ontology_files(), tmp_path / "data.ttl"])))
    assert "urn:a" in reported, reported
    assert "High" in reported, reported


def test_the_ontology_loads_into_the_graph_of_a_store():  # E073
    store, graph = ox.Store(), ox.NamedNode("https://jido.ai/graphs/ontology")
    for path in files.ontology_files():
        store.load(path=str(path), to_graph=graph)
    ask = f"ASK {{ GRAPH <{graph.value}> {{ <{JIDO}Bug> <{RDFS}subClassOf>+ <{JIDO}MemoryItem> }} }}"
    assert bool(store.query(ask))


def closure(paths: list[Path]):
    from owlrl import DeductiveClosure, OWLRL_Semantics
    from rdflib import Graph

    graph = Graph()
    for path in paths:
        graph.parse(path, format="turtle")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DeductiveClosure(OWLRL_Semantics).expand(graph)
    return graph


def contradictions(closed):
    """The errors of the ontology in its closure."""
    return [str(text) for text in closed.objects(None, rdf("http://www.daml.org/2002/03/agents/agent-ont#error"))]


def rdf(value):
    from rdflib import URIRef

    return URIRef(value)
