"""Stage 4: an intent as triples.  Pure: `describe` says what it is, `relate` what it replaces."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from pyoxigraph import RdfFormat, parse

from jidomem import vocab
from jidomem.conflict_keys import digest
from jidomem.errors import IntentRefused, Violation
from jidomem.intent import MemoryUpdateIntent
from jidomem.moments import stamp
from jidomem.policy import AgentPolicy, Policy
from jidomem.terms import Term, Triple, boolean, date_time, decimal, iri, line, literal
from jidomem.vocab import TYPE, jido
from jidomem.write.kinds import DECISIONS, ERRORS
from jidomem.write.view import View

#: Where each text field of an intent is written.
TEXTS: Mapping[str, str] = {
    "summary": "summary",
    "detailed_explanation": "detailedExplanation",
    "rationale": "rationale",
    "topic": "topic",
    "severity": "severityLevel",
    "convention_name": "conventionName",
    "reason": "revisionReason",
}
MOMENTS: Mapping[str, str] = {
    "timestamp": "hasTimestamp",
    "expires_on": "expiresOn",
    "valid_from": "validFrom",
    "valid_until": "validUntil",
}
IRIS: Mapping[str, str] = {
    "applies_to_project": "appliesToProject",
    "asserted_by": "assertedBy",
    "asserted_in": "assertedIn",
    "assigned_to": "assignedTo",
}
NAMES: Mapping[str, str] = {
    "convention_scope": "hasConventionScope",
    "enforcement_level": "hasEnforcementLevel",
    "source_type": "hasSourceType",
}
ASSERTED, PROPOSED = jido("Asserted"), jido("Proposed")


def describe(intent: MemoryUpdateIntent) -> list[Triple]:
    """Return what the normal *intent* says of the new memory, and of the evidence and alternatives it brings along."""
    assert intent.iri
    assert intent.type
    item = iri(intent.iri)
    triples = [(item, TYPE, iri(vocab.type_uri(intent.type))), *_provenance(intent, item)]
    for field, name in TEXTS.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), literal(value)))
    for field, name in NAMES.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), jido(value)))
    triples += _status(intent, item)
    triples += [(item, jido("about"), value_of(entry)) for entry in intent.about]
    triples += [(item, jido("coexistsWith"), iri(other)) for other in intent.coexists_with]
    if intent.tracked_by is not None:
        triples.append((item, jido("trackedBy"), literal(intent.tracked_by, vocab.XSD + "anyURI")))
    triples += [(item, jido(MOMENTS[f]), date_time(getattr(intent, f))) for f in MOMENTS if getattr(intent, f)]
    triples += _evidence(intent, item)
    triples += _alternatives(intent, item)
    triples += [extra(triple) for triple in intent.extra_triples]
    return list(dict.fromkeys(triples))


def relate(intent: MemoryUpdateIntent, status: Term, conflicting: Iterable[str] = ()) -> list[Triple]:
    """Return the links to what *intent* replaces; a proposal names it but ends nothing."""
    assert intent.iri
    item = iri(intent.iri)
    links = [(item, jido("hasAssertionStatus"), status)]
    for field, inverse in (("supersedes", "supersededBy"), ("invalidates", "invalidatedBy")):
        for other in map(iri, getattr(intent, field)):
            links.append((item, jido(field), other))
            if status == ASSERTED:
                links.append((other, jido(inverse), item))
    links += [(item, jido("revives"), iri(other)) for other in intent.revives]
    links += [(item, jido("conflictsWith"), iri(other)) for other in conflicting]
    links += [(node, jido("hasAssertionStatus"), status) for node in alternative_nodes(intent)]
    return links


def stubs(intent: MemoryUpdateIntent, view: View, policy: Policy, now: datetime) -> list[Triple]:
    """Return the descriptions of the project, agents and session this intent is the first to name.

    The session of a memory without a timestamp began *now*.
    """
    assert intent.applies_to_project
    assert intent.asserted_by
    assert intent.asserted_in
    triples: list[Triple] = []
    project = iri(intent.applies_to_project)
    if not view.describes(project):
        triples += project_stub(project)
    for agent in dict.fromkeys(filter(None, (intent.asserted_by, intent.assigned_to))):
        if not view.types(iri(agent)):
            triples += agent_stub(iri(agent), policy.agents.get(name_of(iri(agent)), AgentPolicy()))
    session = iri(intent.asserted_in)
    if not view.describes(session):
        triples += session_stub(session, project, iri(intent.asserted_by), intent.timestamp or stamp(now))
    return triples


def project_stub(project: Term) -> list[Triple]:
    """Return the declaration of a project."""
    return [(project, TYPE, jido("Project")), (project, jido("projectName"), literal(name_of(project)))]


def agent_stub(agent: Term, policy: AgentPolicy) -> list[Triple]:
    """Return the declaration of an agent nobody has named before."""
    return [
        (agent, TYPE, jido("Agent")),
        (agent, jido("agentName"), literal(name_of(agent))),
        (agent, jido("hasRole"), jido(policy.role)),
        *((agent, jido("hasCapability"), jido(name)) for name in policy.capabilities),
    ]


def session_stub(session: Term, project: Term, agent: Term, started_at: str, kind: str = "WorkSession") -> list[Triple]:
    """Return the declaration of a work session, or of another *kind* of it, active since *started_at*."""
    return [
        (session, TYPE, jido(kind)),
        (session, jido("hasStatus"), jido("Active")),
        (session, jido("startedAt"), date_time(started_at)),
        (session, jido("partOfProject"), project),
        (session, jido("hasPrimaryAgent"), agent),
    ]


def name_of(term: Term) -> str:
    """Return the plain name in the IRI of an agent, session or project."""
    return vocab.local_name(term)


def extra(triple: list[Any]) -> Triple:
    """Return the terms of a normalised extra triple."""
    subject, predicate, value = triple
    if "@id" in value:
        return iri(subject), iri(predicate), iri(value["@id"])
    return (
        iri(subject),
        iri(predicate),
        literal(value["@value"], value.get("@type", vocab.XSD + "string"), value.get("@language", "")),
    )


def names_a_thing(entry: str) -> bool:
    """Return whether an entry that is an IRI or text (as normalised) is an IRI."""
    return entry.startswith(("http://", "https://", "urn:")) and len(entry.split()) == 1


def value_of(entry: str) -> Term:
    """Return the term of an entry that is an IRI or text (as normalised)."""
    return iri(entry) if names_a_thing(entry) else literal(entry)


def read_back(triples: Iterable[Triple]) -> None:
    """Raise IntentRefused `invalid_iri` unless a strict parser reads exactly *triples* back."""
    built = set(triples)
    text = "\n".join(line(triple) for triple in built)
    try:
        parsed = {(str(q.subject), str(q.predicate), str(q.object)) for q in parse(text, format=RdfFormat.N_TRIPLES)}
    except SyntaxError as error:
        bad = text.splitlines()[(error.lineno or 1) - 1]
        message = f"{error.msg}: {bad[:300]}"
        raise IntentRefused([Violation("invalid_iri", message, field="extra_triples", value=bad[:300])]) from error
    if parsed != built:
        changed = line(sorted(built - parsed)[0])
        message = f"this does not read back as it was written: {changed[:300]}"
        raise IntentRefused([Violation("invalid_iri", message, field="extra_triples", value=changed[:300])])


def _provenance(intent: MemoryUpdateIntent, item: Term) -> Iterator[Triple]:
    """Yield who asserted *item*, where, how sure, for which project."""
    for field, name in IRIS.items():
        if (value := getattr(intent, field)) is not None:
            yield item, jido(name), iri(value)
    confidence = intent.confidence
    if isinstance(confidence, float):
        yield item, jido("confidenceValue"), decimal(confidence)
    if confidence is not None:
        yield item, jido("hasConfidence"), jido(vocab.CONFIDENCE[level_of(confidence)])


def level_of(confidence: str | float) -> str:
    """Return the level of a confidence: high from 0.8, medium from 0.5, else low."""
    if isinstance(confidence, str):
        return confidence
    return "high" if confidence >= 0.8 else "medium" if confidence >= 0.5 else "low"


def _status(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    if intent.status is None:
        return []
    if intent.type == "task":
        return [(item, jido("hasTaskStatus"), jido(intent.status))]
    if intent.type in ERRORS:
        return [(item, jido("hasErrorStatus"), jido(intent.status))]
    assert intent.type in DECISIONS
    return [(item, jido("decisionStatus"), literal(intent.status))]


def _evidence(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    """Return the evidence: an IRI as it is, a text as a node with that label, the same node for the same text."""
    triples: list[Triple] = []
    for entry in intent.evidence:
        term = value_of(entry)
        if term.startswith('"'):
            node = iri(f"{vocab.BASE}evidence/{digest(entry)}")
            triples += [(node, TYPE, jido("Evidence")), (node, vocab.LABEL, term)]
            term = node
        elif not entry.startswith((vocab.BASE, "urn:jido:")):
            triples.append((term, TYPE, jido("Evidence")))
        triples.append((item, jido("derivedFrom"), term))
    return triples


def alternative_nodes(intent: MemoryUpdateIntent) -> list[Term]:
    """Return the IRIs the alternatives of a decision get, in order."""
    return [iri(f"{intent.iri}/alternatives/{n}") for n in range(1, len(intent.alternatives) + 1)]


def _alternatives(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    """Return each alternative as a memory of its own, asserted with the decision."""
    triples: list[Triple] = []
    for node, text in zip(alternative_nodes(intent), intent.alternatives, strict=True):
        triples += [
            (item, jido("hasAlternative"), node),
            (node, TYPE, jido("Alternative")),
            (node, jido("summary"), literal(text)),
            (node, jido("hasTimestamp"), date_time(intent.timestamp))
            if intent.timestamp
            else (node, iri(vocab.UNDATED), boolean(True)),
            *_provenance(intent, node),
        ]
    return triples
