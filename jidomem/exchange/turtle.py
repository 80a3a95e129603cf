"""What a document of RDF says, hand-written or exported, as intents and declarations.  Pure: triples in, values out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

from jidomem import vocab
from jidomem.exchange.export import BOOKKEEPING, OWL
from jidomem.schema import Schema
from jidomem.terms import Term, Triple, bare, iri, is_iri, parts
from jidomem.vocab import TYPE, jido
from jidomem.words import slug
from jidomem.write.normalize import ITEM_LISTS
from jidomem.write.restate import restate

_SKIPPED = {iri(OWL + "Ontology"), jido("Commit"), jido("Submission"), jido("PolicyChange")}
#: What a memory says of the one that ended it, and the field of that one's intent that says so.
LINKS = {jido("supersededBy"): "supersedes", jido("invalidatedBy"): "invalidates"}
_NO_REASON = "The document it was imported from gives no reason."
_NOT_SAID = BOOKKEEPING | LINKS.keys()


@dataclass(frozen=True, slots=True)
class Statement:
    """One memory of a file: the intent that says it, and the line its description begins on, where that is clear.

    `assumed` are the fields that the file leaves open; one that was `proposed` there waits for a curator here, too.
    """

    intent: Mapping[str, Any]
    line: int | None
    assumed: frozenset[str] = frozenset()
    proposed: bool = False


@dataclass(frozen=True, slots=True)
class TurtleFile:
    """What a file says: its memories, each after all that it replaces; what else it describes; what is left out."""

    statements: tuple[Statement, ...]
    declarations: tuple[Triple, ...]
    notes: tuple[str, ...]


def read(rows: Sequence[Triple], schema: Schema, *, stand_in: Mapping[str, Any], text: str = "") -> TurtleFile:
    """Return what the triples of a document say; *text* is the document, if its lines are to be told.

    Foreign terms are mapped by the ontology's alignment, and *stand_in* gives the fields that memories in a foreign
    vocabulary have no term for (agent, session, project).
    """
    about, foreign = _described(rows, schema.alignment)
    kinds = {node: {value for _, p, value in rows if p == TYPE} for node, rows in about.items()}
    items = {node for node, of in kinds.items() if any(schema.is_a(cls, jido("MemoryItem")) for cls in of)}
    labels = _said_as_text(about, kinds)
    intents: dict[str, dict[str, Any]] = {}
    assumed: dict[str, frozenset[str]] = {}
    for node in items - labels.keys():
        said = restate(node, _of_one_class(about[node], schema), labels)
        intents[bare(node)] = {**stand_in, **_shortened(said)} if node in foreign else said
        assumed[bare(node)] = frozenset(stand_in.keys() - said.keys() if node in foreign else ())
    _link(intents, (triple for rows in about.values() for triple in rows))
    _give_reasons(intents, assumed)
    skipped = sorted(bare(node) for node, of in kinds.items() if of & _SKIPPED)
    rest = [node for node in about if node not in items and node not in labels and not kinds[node] & _SKIPPED]
    proposed = {
        bare(node) for node, said in about.items() if (node, jido("hasAssertionStatus"), jido("Proposed")) in said
    }
    lines = _lines(text)
    return TurtleFile(
        tuple(
            Statement(intents[node], _line_of(node, lines), assumed[node], node in proposed)
            for node in _in_order(intents)
        ),
        tuple(t for node in rest for t in about[node] if t[1] not in _NOT_SAID),
        tuple(f"{node}: left out, it describes a file or a journal and is no memory" for node in skipped),
    )


def mapped(triples: Sequence[Triple], schema: Schema) -> list[Triple]:
    """Return *triples* with the properties and classes of other vocabularies as ours, where they mean the same."""
    to = schema.alignment
    return [(s, to.get(p, p), to.get(o, o) if to.get(p, p) == TYPE else o) for s, p, o in triples]


def _described(rows: Iterable[Triple], alignment: Mapping[Term, Term]) -> tuple[dict[Term, list[Triple]], set[Term]]:
    """Return the triples by subject, foreign terms mapped, and the subjects that used one."""
    about: dict[Term, list[Triple]] = defaultdict(list)
    foreign = set()
    for subject, predicate, value in rows:
        ours = alignment.get(predicate, predicate)
        cls = alignment.get(value, value) if predicate == TYPE else value
        if (ours, cls) != (predicate, value):
            foreign.add(subject)
        about[subject].append(_sourced((subject, ours, cls)))
    return about, foreign


def _sourced(triple: Triple) -> Triple:
    """Return a source given as the text `session:NAME` as the session it names (decision C7)."""
    subject, predicate, value = triple
    if predicate == jido("hasSourceType") and not is_iri(value):
        kind, colon, name = parts(value).text.partition(":")
        if kind == "session" and colon:
            return subject, jido("assertedIn"), iri(f"{vocab.BASE}sessions/{slug(name)}")
    return triple


def _said_as_text(about: Mapping[Term, list[Triple]], kinds: Mapping[Term, set[Term]]) -> dict[Term, str]:
    """Return the text of the evidence and alternatives that an intent gives as text, by node."""
    texts = {}
    for node, rows in about.items():
        values = {predicate: value for _, predicate, value in rows}
        if "/alternatives/" in node and jido("Alternative") in kinds[node] and jido("summary") in values:
            texts[node] = parts(values[jido("summary")]).text
        elif node.startswith(f"<{vocab.BASE}evidence/") and vocab.LABEL in values:
            texts[node] = parts(values[vocab.LABEL]).text
    return texts


def _of_one_class(rows: list[Triple], schema: Schema) -> list[Triple]:
    """Return *rows* with the most specific class alone."""
    classes = {value for _, predicate, value in rows if predicate == TYPE}
    above = {cls for cls in classes if any(cls != other and schema.is_a(other, cls) for other in classes)}
    return [row for row in rows if row[1] != TYPE or row[2] not in above]


def _shortened(said: dict[str, Any]) -> dict[str, Any]:
    """Return *said* with the first line of a long content as its summary and all of it as the explanation."""
    summary = said.get("summary", "")
    if "\n" in summary.strip():
        said = {**said, "summary": summary.strip().splitlines()[0], "detailed_explanation": summary}
    return said


def _link(intents: dict[str, dict[str, Any]], rows: Iterable[Triple]) -> None:
    """Name in each intent what the file says was superseded or invalidated by it."""
    for subject, predicate, value in rows:
        if predicate in LINKS and (after := intents.get(bare(value))) is not None:
            named = after.setdefault(LINKS[predicate], [])
            if bare(subject) not in named:
                named.append(bare(subject))


def _give_reasons(intents: Mapping[str, dict[str, Any]], assumed: dict[str, frozenset[str]]) -> None:
    """Say of each memory that took the place of another agent's, and that gives no reason, that the file has none."""
    for node, said in intents.items():
        ended = (intents[old] for name in LINKS.values() for old in said.get(name, ()) if old in intents)
        if any(old.get("asserted_by") != said.get("asserted_by") for old in ended) and not said.get("reason"):
            said["reason"] = _NO_REASON
            assumed[node] |= {"reason"}


def _in_order(intents: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the memories by time, each after what it names; those of a cycle last, for the writer to refuse."""
    before = {
        node: {other for field in ITEM_LISTS for other in said.get(field, ())} & intents.keys()
        for node, said in intents.items()
    }
    after: dict[str, list[str]] = defaultdict(list)
    for node, others in before.items():
        for other in others:
            after[other].append(node)
    ready = [(str(intents[node].get("timestamp", "")), node) for node, others in before.items() if not others]
    heapify(ready)
    ordered: dict[str, None] = {}
    while ready:
        _, node = heappop(ready)
        ordered[node] = None
        for other in after[node]:
            before[other].discard(node)
            if not before[other]:
                heappush(ready, (str(intents[other].get("timestamp", "")), other))
    return [*ordered, *sorted(intents.keys() - ordered.keys())]


def _lines(text: str) -> dict[str, int]:
    """Return the number of the first line that begins with a name, an IRI or what follows a prefix and a colon."""
    found: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        for word in line.split(None, 1)[:1]:
            found.setdefault(word[1:-1] if word[0] == "<" else ":" + word.partition(":")[2], number)
    return found


def _line_of(node: str, lines: Mapping[str, int]) -> int | None:
    """Return the number of the line that begins the description of *node*."""
    found = [lines[name] for name in (node, ":" + vocab.local_name(node)) if name in lines]
    return min(found, default=None)
