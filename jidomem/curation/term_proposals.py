"""The ontology terms that agents propose, and that a curator accepts into the project's ontology or rejects."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyoxigraph as ox

from jidomem.base.clock import new_id
from jidomem.check.overlay import check_overlay
from jidomem.check.terms import find
from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.follower import IndexFollower
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, Triple, iri, literal, ntriples_line, plain_value
from jidomem.rdf.turtle import turtle
from jidomem.rdf.vocab import BASE, LABEL, RDF, RDFS, TYPE, XSD, jido, local_name
from jidomem.schema.ontology import OURS, OWL, Schema
from jidomem.write.canonical import is_absolute, is_reserved
from jidomem.write.writer import MemoryWriter

#: The file of the root's ontology/ that accepted terms are written to.
FILE = "accepted.ttl"
TERM_KINDS = ("class", "property")
_STREAM = "system"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
_DEFINITION = iri(_SKOS + "definition")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_WRITTEN = "# Written by `jidomem ontology accept`; what you say yourself belongs into another file beside it.\n"

#: Rewrites the file at a path below the root with the result of a function of its text (None if there is no file).
ChangeFile = Callable[[str, Callable[[str | None], str]], None]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The proposal of one term: the triples that would declare it, its author and reason, and its outcome."""

    iri: str
    term: str
    declaration: tuple[Triple, ...]
    by: str
    reason: str
    proposed_at: str
    outcome: str = "waiting"
    answered_by: str | None = None
    answer: str | None = None
    answered_at: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the proposal as plain JSON values, its declaration as N-Triples."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {**fields, "declaration": "\n".join(map(ntriples_line, self.declaration))}


class TermProposals:
    """The terms proposed in one project of a root, pending or answered."""

    def __init__(
        self,
        root: Path,
        change: ChangeFile,
        project: str,
        schema: Schema,
        writer: MemoryWriter,
        follower: IndexFollower,
    ) -> None:
        """Read and record the proposals of *project*; *change* rewrites a file of *root*."""
        self._root, self._change, self._schema, self._writer, self._follower = root, change, schema, writer, follower
        self._stream = Stream(project, _STREAM)

    def propose(
        self,
        term: str,
        *,
        kind: str,
        definition: str,
        reason: str,
        parents: Sequence[str] = (),
        domain: Sequence[str] = (),
        range_: Sequence[str] = (),
        label: str | None = None,
    ) -> Proposal:
        """Record and return the proposal of *term*, an IRI or a plain name in the project's own namespace.

        A repeated proposal returns the first one. Raises InvalidRequest for a term that is declared, or is proposed
        with another declaration, and for a declaration in which `check_overlay` finds a fault.
        """
        node = self._named(term)
        rows = self._declared(node, kind, parents, domain, range_, label or _spoken(local_name(node)), definition)
        if not reason.strip():
            raise InvalidRequest("a proposal needs a reason", hint="say why the term is needed")
        for other in self.waiting():
            if other.term == plain_value(node):
                if set(other.declaration) == set(rows):
                    return other
                hint = f"a curator has to settle it first: jidomem ontology reject '{other.term}' --reason TEXT"
                raise InvalidRequest(f"{other.term} is proposed with another declaration, by {other.by}", hint=hint)
        self._refuse_faults(rows)
        own = iri(f"{BASE}term-proposals/{new_id()}")
        text = "\n".join(sorted(map(ntriples_line, rows)))
        proposal = [
            (own, TYPE, jido("TermProposal")),
            (own, jido("proposedTerm"), node),
            (own, jido("proposedDeclaration"), literal(text)),
            (own, jido("proposedBy"), self._writer.agent_iri()),
            (own, jido("proposalReason"), literal(reason.strip())),
        ]
        self._writer.append(self._stream.project, _STREAM, proposal)
        return next(each for each in self.waiting() if each.iri == plain_value(own))

    def all(self) -> list[Proposal]:
        """Return every proposal of the project, oldest first."""
        self._follower.catch_up(self._stream)
        answers = {answer["answersProposal"]: answer for answer in self._described("TermAnswer").values()}
        proposed = self._described("TermProposal")
        proposals = [self._read(node, properties, answers.get(node)) for node, properties in proposed.items()]
        return sorted(proposals, key=lambda each: (each.proposed_at, each.iri))

    def waiting(self) -> list[Proposal]:
        """Return the pending proposals, oldest first."""
        return [each for each in self.all() if each.outcome == "waiting"]

    def accept(self, term: str, *, reason: str = "") -> Proposal:
        """Accept and return the proposal of *term*: its declaration is written to ontology/accepted.ttl.

        Raises PolicyDenied unless the agent is a curator or the project has none, NotFound without a pending proposal
        of that name, and InvalidRequest if the declaration now has a fault.
        """
        self._check_curator("accept terms")
        proposal = self._find(term)
        self._refuse_faults(proposal.declaration)
        self._change(f"ontology/{FILE}", lambda text: _extended(text, proposal.declaration))
        return self._answer(proposal, True, reason)

    def accepted(self, term: str) -> tuple[str, str]:
        """Return the path of the file of terms, as `preview` takes it, and its text if *term* were accepted."""
        folder = self._root / "ontology"
        name = f"{folder.name}/{FILE}" if (folder / FILE).exists() else folder.name
        text = (folder / FILE).read_text("utf-8") if (folder / FILE).exists() else None
        return name, _extended(text, self._find(term).declaration)

    def reject(self, term: str, *, reason: str) -> Proposal:
        """Reject and return the proposal of *term*; its author may do so too. Raises as `accept`."""
        proposal = self._find(term)
        if iri(proposal.by) != self._writer.agent_iri():
            self._check_curator("reject terms")
        if not reason.strip():
            raise InvalidRequest("a rejection needs a reason", hint="say why the term is rejected")
        return self._answer(proposal, False, reason)

    def _named(self, term: str) -> Term:
        """Return the IRI of a new term; raises InvalidRequest if it is declared already, or invalid."""
        if _NAME.fullmatch(term):
            spaces = sorted(self._schema.namespaces.difference(OURS))
            space = spaces[0] if len(spaces) == 1 else f"urn:project:{self._stream.project}#"
            term = space + term
        node = iri(term.strip("<>"))
        if not is_absolute(plain_value(node)) or (is_reserved(plain_value(node)) and node not in self._schema.declared):
            hint = (
                "give a plain name, such as Recipe, or an IRI of your own, such as https://example.org/kitchen#Recipe"
            )
            raise InvalidRequest(f"{term!r:.200} is not a name for a new term", hint=hint)
        if node in self._schema.declared:
            raise InvalidRequest(
                f"{plain_value(node)} is declared", hint=f"read it: jidomem ontology show '{plain_value(node)}'"
            )
        return node

    def _declared(
        self, node: Term, kind: str, parents: Sequence[str], domain: Sequence[str], range_: Sequence[str], label: str,
        definition: str,
    ) -> list[Triple]:  # fmt: skip
        if kind not in TERM_KINDS:
            raise InvalidRequest(f"{kind!r:.200} is not a kind of term", hint=f"one of {', '.join(TERM_KINDS)}")
        if not definition.strip():
            raise InvalidRequest("a term has a definition that stands alone", hint="say in a sentence what it means")
        if kind == "class" and (domain or range_):
            raise InvalidRequest("a class has no domain and no range", hint="leave them out, or give kind='property'")
        ranges = [_datatype(name) or find(self._schema, name) for name in range_]
        type_ = OWL + "Class"
        if kind == "property":
            values = [each.startswith(f"<{XSD}") for each in ranges]
            type_ = RDF + "Property" if not ranges else OWL + ("DatatypeProperty" if all(values) else "ObjectProperty")
        above = RDFS + ("subClassOf" if kind == "class" else "subPropertyOf")
        rows = [(node, TYPE, iri(type_)), (node, LABEL, literal(label.strip(), language="en"))]
        rows += [(node, _DEFINITION, literal(definition.strip(), language="en"))]
        rows += [(node, iri(above), find(self._schema, name)) for name in parents]
        rows += [(node, iri(RDFS + "domain"), find(self._schema, name)) for name in domain]
        return [*rows, *((node, iri(RDFS + "range"), each) for each in ranges)]

    def _refuse_faults(self, rows: Sequence[Triple]) -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "ontology" / FILE
            path.parent.mkdir()
            path.write_text(turtle(rows), "utf-8")
            report = check_overlay(self._root, [path])
        faults = [each.message for each in report.problems if each.severity == "violation"] + report.unchecked
        if faults:
            raise InvalidRequest(f"the declaration has faults: {'; '.join(faults)}", hint="propose another declaration")

    def _check_curator(self, what: str) -> None:
        self._writer.check_curator(self._stream.project, self._writer.agent, what)

    def _find(self, term: str) -> Proposal:
        waiting = self.waiting()
        for proposal in waiting:
            if term.strip("<>") in (proposal.term, proposal.iri, local_name(proposal.term)):
                return proposal
        names = ", ".join(local_name(each.term) for each in waiting) or "none"
        raise NotFound(
            f"there is no pending term {term!r:.200}", hint=f"pending: {names}; see jidomem ontology proposals"
        )

    def _answer(self, proposal: Proposal, accepted: bool, reason: str) -> Proposal:
        self._writer.answer_term(self._stream.project, iri(proposal.iri), accepted=accepted, reason=reason)
        return next(each for each in self.all() if each.iri == proposal.iri)

    def _described(self, cls: str) -> dict[str, dict[str, Term]]:
        """Return the properties of each node of a class: node -> local name -> value."""
        index, graph = self._follower.index, self._stream.graph
        nodes = [row[0] for row in index.triples(graph, None, TYPE, jido(cls))]
        return {node: {local_name(p): o for _, p, o in index.triples(graph, node)} for node in nodes}

    def _read(self, node: Term, properties: dict[str, Term], answer: dict[str, Term] | None) -> Proposal:
        texts = {name: plain_value(value) for name, value in properties.items()}
        rows = tuple(
            (str(each.subject), str(each.predicate), str(each.object))
            for each in ox.parse(texts["proposedDeclaration"], format=ox.RdfFormat.N_TRIPLES)
        )
        by, reason, at = (texts[name] for name in ("proposedBy", "proposalReason", "recordedAt"))
        pending = Proposal(plain_value(node), texts["proposedTerm"], rows, by, reason, at)
        if answer is None:
            return pending
        answered = {name: plain_value(value) for name, value in answer.items()}
        return replace(
            pending,
            outcome="accepted" if answered["isAccepted"] == "true" else "rejected",
            answered_by=answered["answeredBy"],
            answer=answered.get("answerReason"),
            answered_at=answered["recordedAt"],
        )


def _datatype(name: str) -> Term | None:
    """Return the datatype named *name*, such as xsd:integer; None for the name of a class."""
    local = name.removeprefix("xsd:").removeprefix(XSD)
    return iri(XSD + local) if local != name and _NAME.fullmatch(local) else None


def _spoken(name: str) -> str:
    """Return the words of a name.

    >>> _spoken("hasCookedFor")
    'has cooked for'
    """
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r" \1", name).lower()


def _extended(text: str | None, rows: Sequence[Triple]) -> str:
    quads = ox.parse(text, format=ox.RdfFormat.TURTLE) if text is not None else ()
    known = [(str(each.subject), str(each.predicate), str(each.object)) for each in quads]
    return _WRITTEN + turtle({*known, *rows}, {"owl": OWL, "skos": _SKOS})
