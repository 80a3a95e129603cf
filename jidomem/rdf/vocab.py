"""The terms of the ontology that Python needs by name; a test compares each of them with `ontology/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from jidomem.rdf.terms import Term, iri

JIDO = "https://jido.ai/ontology#"
CONVERSATION = "https://jido.ai/ontology/conversation-history#"
SHAPE = "https://jido.ai/shapes#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
PROV = "http://www.w3.org/ns/prov#"
BASE = "https://jido.ai/"
#: The property of a memory whose time of assertion is unknown.
UNDATED = JIDO + "isUndated"
PREFIXES: Mapping[str, str] = {"jido": JIDO, "rdf": RDF, "rdfs": RDFS, "xsd": XSD, "prov": PROV}

TYPE = iri(RDF + "type")
LABEL = iri(RDFS + "label")
THIS = "<urn:jido:this>"


@lru_cache(maxsize=4096)
def jido(name: str) -> Term:
    """Return the term of `jido:name`.

    >>> jido("Fact")
    '<https://jido.ai/ontology#Fact>'
    """
    return f"<{JIDO}{name}>"


def conv(name: str) -> Term:
    """Return the term of `conv:name`, of conversation history.

    >>> conv("Prompt")
    '<https://jido.ai/ontology/conversation-history#Prompt>'
    """
    return f"<{CONVERSATION}{name}>"


def local_name(term_or_iri: str) -> str:
    """Return the part after the last `#` or `/`, without angle brackets."""
    return term_or_iri.strip("<>").rstrip("/").rsplit("#", 1)[-1].rsplit("/", 1)[-1]


def property_name(term: str) -> str:
    """Return the local name of a property of this ontology, and the IRI of any other: two never share a name."""
    return term.strip("<>").removeprefix(JIDO)


#: The form of the ids that the writer mints, and of the IRIs of memories with such an id.
UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
MEMORY_IRI = re.compile(rf"{re.escape(BASE)}memory/{UUID}")
#: The characters of a short id: UUIDv7 ids begin alike, and differ in the last ones.
SHORT_ID_CHARS, _LEAST_ID_CHARS = 8, 4


def short_id(item: str) -> str:
    """Return the last eight characters of the id of *item*; the whole IRI if its id has less than the four to find it.

    >>> short_id("https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd"), short_id("urn:frozen:b1")
    ('0000abcd', 'urn:frozen:b1')
    """
    name = local_name(item).rpartition(":")[2]
    return name[-SHORT_ID_CHARS:] if len(name) >= _LEAST_ID_CHARS else item


#: The twelve types of the intent format, `unknown` of the reader's guide, and their subclasses.
CLASS_OF_TYPE: Mapping[str, str] = {
    "fact": "Fact", "assumption": "Assumption", "hypothesis": "Hypothesis", "discovery": "Discovery", "risk": "Risk",
    "unknown": "Unknown", "decision": "Decision", "architectural_decision": "ArchitecturalDecision",
    "implementation_decision": "ImplementationDecision", "convention": "Convention", "task": "Task",
    "error": "Error", "lesson_learned": "LessonLearned", "alternative": "Alternative", "trade_off": "TradeOff",
    "coding_standard": "CodingStandard", "architectural_convention": "ArchitecturalConvention",
    "agent_rule": "AgentRule", "process_convention": "ProcessConvention", "bug": "Bug", "failure": "Failure",
    "incident": "Incident", "root_cause": "RootCause", "milestone": "Milestone", "plan": "Plan",
    "deleted_marker": "DeletedMarker",
}  # fmt: skip
TYPE_OF_CLASS: Mapping[str, str] = {name: key for key, name in CLASS_OF_TYPE.items()}


def type_of(cls: str) -> str | None:
    """Return the type of the memories of a shipped class, a term or an IRI; None for any other class.

    >>> type_of("<https://jido.ai/ontology#Fact>"), type_of("https://example.org/kitchen#Fact")
    ('fact', None)
    """
    return TYPE_OF_CLASS.get(cls.strip("<>").removeprefix(JIDO))


def type_and_class(classes: Iterable[str]) -> tuple[str | None, str]:
    """Return the type, if any, and the class by which a memory of some classes is shown: the first that intents know.

    >>> type_and_class(["<https://example.org/kitchen#Recipe>", "<https://jido.ai/ontology#Fact>"]), type_and_class([])
    (('fact', 'Fact'), (None, 'MemoryItem'))
    """
    known = [*classes]
    kind = next(filter(None, map(type_of, known)), None)
    return kind, CLASS_OF_TYPE[kind] if kind else local_name(known[0]) if known else "MemoryItem"


TYPE_ALIASES: Mapping[str, str] = {"lesson": "lesson_learned"}
DECISIONS = frozenset(("decision", "architectural_decision", "implementation_decision"))
ERRORS = frozenset(("error", "bug", "failure", "incident"))
CONVENTIONS = frozenset(
    ("convention", "coding_standard", "architectural_convention", "agent_rule", "process_convention")
)


@lru_cache(maxsize=256)
def family(kind: str) -> str:
    """Return the kind directly below MemoryItem that *kind* belongs to.

    >>> family("coding_standard")
    'convention'
    """
    for name, kinds in (("decision", DECISIONS), ("convention", CONVENTIONS), ("error", ERRORS)):
        if kind in kinds:
            return name
    return kind


#: The twelve types of the writer protocol, and the eleven of the memory guide.
WRITER_TYPES: tuple[str, ...] = (
    "fact", "assumption", "hypothesis", "discovery", "risk", "decision", "architectural_decision",
    "implementation_decision", "convention", "task", "error", "lesson",
)  # fmt: skip
GUIDE_TYPES: tuple[str, ...] = (
    "fact", "assumption", "hypothesis", "discovery", "risk", "unknown", "decision", "task", "convention", "error",
    "lesson_learned",
)  # fmt: skip

#: The class of the memories that only withdraw others.
MARKER = "DeletedMarker"
#: The placeholder for a redacted summary in lists and messages.
REDACTED = "(redacted)"

CONFIDENCE = {"high": "High", "medium": "Medium", "low": "Low"}
TASK_STATUS = ("Planned", "InProgress", "Blocked", "Completed", "Abandoned")
ERROR_STATUS = ("Reported", "Investigating", "Resolved", "Deferred")
DECISION_STATUS = ("proposed", "accepted", "deprecated", "rejected")
SEVERITY = ("low", "medium", "high", "critical")
ENFORCEMENT = ("Advisory", "Required", "Strict")
SCOPE = ("GlobalScope", "ProjectScope", "AgentScope")
SOURCE_TYPE = ("UserSource", "AgentSource", "ToolSource", "ExternalDocumentSource")
#: The trust in each kind of source; a memory without a source is ordinary.
TRUST_OF_SOURCE: Mapping[str, str] = {
    "UserSource": "trusted", "AgentSource": "ordinary", "ToolSource": "ordinary", "ExternalDocumentSource": "untrusted",
}  # fmt: skip
TRUST = ("untrusted", "ordinary", "trusted")
SESSION_STATUS = ("Active", "Paused", "Closed", "Abandoned")
SESSION_PHASE = ("PlanningPhase", "ImplementationPhase", "DebuggingPhase", "ReviewPhase")
AGENT_ROLE = (
    "Planner", "Architect", "Implementer", "Reviewer", "Debugger", "MemoryWriter", "MemoryReader", "Curator",
    "Administrator",
)  # fmt: skip
CAPABILITY = ("CanPlan", "CanWriteCode", "CanReviewCode", "CanDebug", "CanWriteMemory", "CanQueryMemory")

#: The four graphs of a project: short name -> the last part of its IRI.
GRAPHS: Mapping[str, str] = {
    "context": "long-term-context",
    "codebase": "elixir-codebase",
    "history": "conversation-history",
    "system": "system-knowledge",
}
ONTOLOGY_GRAPH = BASE + "graphs/ontology"


@lru_cache(4096)
def graph_iri(project: str, graph: str = "context") -> str:
    """Return the IRI of one graph of *project*; short and long names are both accepted.

    >>> graph_iri("demo")
    'https://jido.ai/projects/demo/graphs/long-term-context'
    """
    return f"{BASE}projects/{project}/graphs/{GRAPHS.get(graph, graph)}"


@lru_cache(1024)
def graphs_of(project: str) -> tuple[str, ...]:
    """Return the IRIs of the graphs that queries on *project* read: its own, and that of the ontology."""
    return (*(graph_iri(project, name) for name in GRAPHS), ONTOLOGY_GRAPH)


@lru_cache(maxsize=256)
def type_uri(kind: str) -> str:
    """Return the class IRI of a memory type; `MemoryItem` for an unknown type."""
    return JIDO + CLASS_OF_TYPE.get(TYPE_ALIASES.get(kind, kind), "MemoryItem")
