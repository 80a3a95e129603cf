"""The imported memories of a project, as its graph has them: each with its source and what became of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from jidomem.anchor import anchors_of
from jidomem.exchange.adr import record_iri
from jidomem.exchange.adr_words import stem
from jidomem.exchange.lineage import Version
from jidomem.exchange.mcp_memory import STATEMENT
from jidomem.exchange.sync_plan import key_in
from jidomem.index import OxigraphIndex
from jidomem.moments import parse_moment, stamp
from jidomem.repository.elsewhere import ADR, GRAPH, ISSUES, NOTES
from jidomem.terms import Term, bare, iri, is_iri
from jidomem.vocab import LABEL, REDACTED, TYPE, graph_iri, jido, local_name

LOCAL_ID, DIGEST, LINE = jido("localId"), jido("sourceDigest"), jido("sourceLine")
BLOB, PREVIOUS, STATE = jido("sourceBlob"), jido("previousImport"), jido("sourceState")
_STATUS, _ASSERTED, _PROPOSED = jido("hasAssertionStatus"), jido("Asserted"), jido("Proposed")
_ENDS = (jido("supersededBy"), jido("invalidatedBy"))
_REDACTED_ITEM = jido("redactedItem")
#: What became of a proposal to withdraw a memory.
_PENDING, _SETTLED, _RETURNED = "pending", "settled", "returned"
#: What an imported memory says, which somebody may edit here.
_CONTENT = (
    "summary", "detailedExplanation", "rationale", "topic", "decisionStatus", "hasTaskStatus", "hasErrorStatus",
    "severityLevel", "conventionName", "hasConventionScope", "hasEnforcementLevel",
)  # fmt: skip
#: The IRI of a record that version 0.1.0 imported, which says of its source only what it is about.
_OF_A_NAME = re.compile(r".*/memory/[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-")

Said = Mapping[Term, list[Term]]


def imported(index: OxigraphIndex, project: str) -> list[Version]:
    """Return the memories of *project* that carry their source."""
    graph = graph_iri(project)
    items = dict.fromkeys(subject for name in (DIGEST, BLOB) for subject, _, _ in index.triples(graph, None, name))
    redacted = (item for _, _, item in index.triples(graph, None, _REDACTED_ITEM))  # without a digest
    items |= dict.fromkeys(item for item in redacted if any(True for _ in index.triples(graph, item, LOCAL_ID)))
    records = (subject for subject, _, _ in index.triples(graph, None, TYPE, jido("ArchitecturalDecision")))
    items |= dict.fromkeys(subject for subject in records if _OF_A_NAME.match(subject))
    return [*filter(None, (_version(index, graph, project, item) for item in items))]


def _version(index: OxigraphIndex, graph: str, project: str, item: Term) -> Version | None:
    """Return *item* as a version; None for a decision that came from no record."""
    said = _said(index, graph, item)
    kind = _kind(said)
    path = next((anchor.path for anchor in anchors_of(said.get(BLOB, ()))), None)
    if path is None:
        path = _record_path(project, item, said) if kind == ADR else _path_in_evidence(index, graph, said)
    if path is None:
        return None
    ends = [end for link in _ENDS for end in said.get(link, ())]
    states = [value for end in ends for _, _, value in index.triples(graph, end, STATE)]
    withdrawals = [*_withdrawals(index, graph, item)]
    return Version(
        iri=bare(item),
        kind=kind,
        path=path,
        key="" if kind == ADR else key_in(path, bare(next(iter(said.get(LOCAL_ID, ())), '""'))),
        digest=next(map(bare, said.get(DIGEST, ())), None),
        summary=next(map(bare, said.get(jido("summary"), ())), REDACTED),
        content=frozenset((name, _plain(value)) for name in _CONTENT for value in said.get(jido(name), ())),
        is_asserted=_ASSERTED in said.get(_STATUS, ()),
        recorded=min(map(_moment, said.get(jido("recordedAt"), ())), default=""),
        supersedes=_iris(said, "supersedes"),
        revives=_iris(said, "revives"),
        previous=_iris(said, "previousImport"),
        ended_by=tuple(map(bare, ends)),
        is_withdrawn=jido("invalidatedBy") in said,
        withdrawn_as=next(map(bare, states), None),
        withdrawals=tuple(bare(marker) for marker, state in withdrawals if state == _PENDING),
        is_doubted=any(state != _RETURNED for _, state in withdrawals),
        returns=sum(state == _RETURNED for _, state in withdrawals),
        is_redacted=any(True for _ in index.triples(graph, None, _REDACTED_ITEM, item)),
    )


def _said(index: OxigraphIndex, graph: str, item: Term) -> Said:
    said: dict[Term, list[Term]] = {}
    for _, predicate, value in index.triples(graph, item):
        said.setdefault(predicate, []).append(value)
    return said


def _withdrawals(index: OxigraphIndex, graph: str, item: Term) -> Iterator[tuple[Term, str]]:
    """Yield the proposals of synchronisations to withdraw *item*, and what became of each.

    It is pending, settled, or a synchronisation withdrew it itself, as the source returned.
    """
    for marker, _, _ in index.triples(graph, None, jido("invalidates"), item):
        said = _said(index, graph, marker)
        if STATE not in said or _PROPOSED not in said.get(_STATUS, ()):
            continue
        ends = [end for link in _ENDS for end in said.get(link, ())]
        has_returned = any(True for end in ends for _ in index.triples(graph, end, STATE))
        yield marker, _RETURNED if has_returned else _SETTLED if ends else _PENDING


def _kind(said: Said) -> str:
    if iri(STATEMENT) in said:
        return GRAPH
    sources = {local_name(value) for value in said.get(jido("hasSourceType"), ())}
    return NOTES if "ExternalDocumentSource" in sources else ISSUES if "ToolSource" in sources else ADR


def _record_path(project: str, item: Term, said: Said) -> str | None:
    """Return the path of the record that *item*, whose IRI comes from its name or its path, is about."""
    paths = [bare(value) for value in said.get(jido("about"), ()) if not is_iri(value)]
    return next((path for path in paths if bare(item) in _iris_of(project, path)), None)


def _iris_of(project: str, path: str) -> Iterable[str]:
    return record_iri(project, stem(path)), record_iri(project, path)


def _path_in_evidence(index: OxigraphIndex, graph: str, said: Said) -> str:
    """Return the file that the evidence of a memory names, as `issues.jsonl: bd-1` does."""
    nodes = said.get(jido("derivedFrom"), ())
    labels = [bare(value) for node in nodes if is_iri(node) for _, _, value in index.triples(graph, node, LABEL)]
    return next((label.split(": ", 1)[0] for label in labels), "")


def _iris(said: Said, name: str) -> tuple[str, ...]:
    return tuple(map(bare, said.get(jido(name), ())))


def _plain(value: Term) -> str:
    return local_name(value) if is_iri(value) else bare(value)


def _moment(value: Term) -> str:
    """Return a moment in the one written form: an index leaves out the zeros at the end of its fraction."""
    moment = parse_moment(bare(value))
    return stamp(moment) if moment else bare(value)
