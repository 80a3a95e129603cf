"""The sources of a check: the triples of a file or a journal, with the line of each triple.

`brought` limits findings to those that a git range introduced.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from shlex import quote

import pyoxigraph as ox

from jidomem.base.containers import grouped
from jidomem.base.json_values import check_turtle
from jidomem.base.words import quoted
from jidomem.check.report import (
    CIRCLE,
    CLOSED_THERE,
    CONFLICT,
    CONSISTENT,
    DANGLING,
    FRESH,
    GATE,
    ORPHAN,
    PERMITTED,
    REPEATED,
    RULES,
    SUCCESSORS,
    Problem,
    UnplacedFinding,
)
from jidomem.errors import InvalidRequest, JournalDamaged
from jidomem.journal.branches import Revision
from jidomem.journal.commit import Commit
from jidomem.journal.journal import FileJournal, Stream
from jidomem.rdf.terms import Term, Triple, is_iri, moment_in, plain_value, short_parse_error
from jidomem.rdf.turtle import LocatedTriple, UnsupportedTurtle, statements
from jidomem.rdf.vocab import BASE, PREFIXES, TYPE, jido, local_name, short_id
from jidomem.records.active import OF_THE_IMPORT, is_record_of, separate_records
from jidomem.records.file_anchor import ANCHOR, anchors_of, plain_path
from jidomem.records.intent import CONFLICT_KEY, IDENTICAL, CommitRef
from jidomem.schema.ontology import OURS, Schema
from jidomem.write import secrets

#: The most characters of a summary in a finding.
_SHOWN = 100
_RECORDED_IN = jido("recordedIn")
_PREFIXES = "".join(f"@prefix {name}: <{space}> . " for name, space in PREFIXES.items())


class TripleSource:
    """The triples to check; `older` are those before the requested range, None without a range."""

    def __init__(self, triples: list[Triple], older: TripleSource | None = None) -> None:
        self.triples = triples
        self.older = older
        self.redacted: frozenset[Term] = frozenset()  # subjects in redacted commits

    @cached_property
    def about(self) -> dict[Term, list[Triple]]:
        """Return the triples by subject."""
        return grouped((triple[0], triple) for triple in self.triples)

    @cached_property
    def by_property(self) -> dict[Term, list[Triple]]:
        """Return the triples by property."""
        return grouped((triple[1], triple) for triple in self.triples)

    def of(self, *properties: Term) -> Iterator[Triple]:
        """Yield the triples of these properties."""
        for each in properties:
            yield from self.by_property.get(each, ())

    @cached_property
    def objects(self) -> set[Term]:
        """Return all objects of triples."""
        return set(map(itemgetter(2), self.triples))

    @cached_property
    def types(self) -> dict[Term, frozenset[Term]]:
        """Return the stated classes of every node that has one; equal sets are one object."""
        one: dict[frozenset[Term], frozenset[Term]] = {}
        kinds_of = grouped((subject, value) for subject, _, value in self.of(TYPE))
        return {node: one.setdefault(kinds := frozenset(classes), kinds) for node, classes in kinds_of.items()}

    def items(self, schema: Schema) -> int:
        """Return the number of memories."""
        every = {*self.types.values()}
        of_memories = {kinds for kinds in every if any(schema.is_a(cls, jido("MemoryItem")) for cls in kinds)}
        return sum(kinds in of_memories for kinds in self.types.values())

    def values(self, node: Term, predicate: Term) -> list[Term]:
        """Return the values of a property of *node*."""
        return [value for _, name, value in self.about.get(node, ()) if name == predicate]

    def is_ended(self, item: Term) -> bool:
        """Return whether an asserted memory superseded or invalidated *item*."""
        ends = (end for name in ("supersededBy", "invalidatedBy") for end in self.values(item, jido(name)))
        return any(jido("Asserted") in self.values(end, jido("hasAssertionStatus")) for end in ends)

    def without_ended_terms_of(self, schema: Schema) -> TripleSource:
        """Return the triples without what memories that have ended state by the root's own terms."""
        spaces = tuple(f"<{space}" for space in schema.namespaces.difference(OURS))
        own = {name for name in self.by_property if name.startswith(spaces)}
        rows = [*self.of(*own), *(row for row in self.of(TYPE) if row[2].startswith(spaces))] if spaces else []
        ended = {row for row in rows if self.is_ended(row[0])}
        return TripleSource([row for row in self.triples if row not in ended]) if ended else self

    def are_identical(self, items: Iterable[Term]) -> bool:
        """Return whether *items* have the same content: whether they share the conflict key of identical memories."""
        keys = [
            {key for key in self.values(item, CONFLICT_KEY) if plain_value(key).startswith(IDENTICAL)} for item in items
        ]
        return bool(keys) and bool(set.intersection(*keys))

    def recorded_at(self, node: Term) -> datetime | None:
        """Return the last moment at which *node* was recorded, or None."""
        moments = map(moment_in, self.values(node, jido("recordedAt")))
        return max((moment for moment in moments if moment is not None), default=None)

    def by_recording(self, items: Iterable[Term]) -> list[Term]:
        """Return *items*, the one recorded first first."""
        never = datetime.min.replace(tzinfo=UTC)
        return sorted(items, key=lambda item: (self.recorded_at(item) or never, item))

    def described(self, item: Term) -> str:
        """Return a memory in words: short id, summary, status, authors and day; a secret text is left out."""
        text = next(map(plain_value, self.values(item, jido("summary"))), "")
        shown = "its text looks secret" if secrets.find(text) else quoted(text, _SHOWN)[0]
        for name in ("hasTaskStatus", "hasErrorStatus"):
            shown += "".join(f", {local_name(status)}" for status in self.values(item, jido(name)))
        moment = self.recorded_at(item)
        facts = [
            ", ".join(map(local_name, self.values(item, jido("assertedBy")))),
            f"{moment:%Y-%m-%d}" if moment else "",
        ]
        return f"{short_id(plain_value(item))} {shown} ({', '.join(filter(None, facts))})"

    def placed(self, findings: Sequence[UnplacedFinding]) -> list[Problem]:
        """Return *findings* with their places."""
        raise NotImplementedError

    def naming(self, item: Term, path: str, *links: Term) -> tuple[Term, Term] | tuple[()]:
        """Return property and value of the statement by which *item* names the file *path*: about or one of *links*."""
        for link in (jido("about"), *links, ANCHOR):
            for value in self.values(item, link):
                if path in (plain_path(plain_value(value)), *(anchor.path for anchor in anchors_of([value]))):
                    return link, value
        return ()


class FileSource(TripleSource):
    """A Turtle file, with relative IRIs resolved against `base`, if given."""

    def __init__(self, path: str, data: bytes, older: TripleSource | None = None, base: str | None = None) -> None:
        """Read the file; raise InvalidRequest, with file and line, if it is not Turtle."""
        self.path = path
        self.base = base
        data = data.removeprefix(BOM_UTF8)
        self._text = data.decode("utf-8", "replace")
        triples = read(path, data, base)
        if any(term.startswith("_:") for triple in triples for term in (triple[0], triple[2])):
            stated = [statement.triple for statement in self.statements_with_lines]
            triples = stated if len(stated) == len(triples) else triples
        super().__init__(list(dict.fromkeys(triples)), older)

    @cached_property
    def statements_with_lines(self) -> list[LocatedTriple]:
        """Return the statements with their lines; an empty list if the lines cannot be determined."""
        try:
            return statements(self._text, self.base or "")
        except UnsupportedTurtle:
            return []

    def placed(self, findings: Sequence[UnplacedFinding]) -> list[Problem]:
        """Return *findings* with their lines in the file."""
        by = by_subject(self.statements_with_lines) if findings else {}
        return [problem(each, self.path, line_in(by, each)) for each in findings]


class JournalSource(TripleSource):
    """The memory of a project as read from its journal, every byte verified; `damage` is the failed verification."""

    def __init__(
        self,
        journal: FileJournal,
        stream: Stream,
        is_new: Callable[[CommitRef], bool] | None = None,
        single: Collection[Term] = (),
    ) -> None:
        """Read the journal; *is_new* returns whether a commit belongs to the requested range.

        Of a node that several branches described, as they imported the same source, the earliest values of the
        properties *single* count; `overruled` has the later ones.
        """
        self._journal, self._stream = journal, stream
        self._commits: dict[CommitRef, list[Triple]] = {}
        self._terms: dict[Term, Term] = {}
        self._redacted_subjects: set[Term] = set()
        self.damage: tuple[JournalDamaged, ...] = journal.verify(stream, self._add)
        self._commits = {head: self._commits[head] for head in sorted(self._commits)}
        triples, self.overruled = _counted(self._commits.items(), single)
        older = None
        if is_new is not None:
            known = [(head, rows) for head, rows in self._commits.items() if not is_new(head)]
            older = TripleSource(_counted(known, single)[0])
        super().__init__(triples, older)
        self.redacted = frozenset(self._redacted_subjects)

    def _add(self, commit: Commit) -> None:
        if commit.redacted or commit.head not in self._commits:  # of two forms of a commit the redacted one counts
            self._redacted_subjects |= {subject for subject, _, _ in commit.triples} if commit.redacted else set()
            one = self._terms.setdefault
            self._commits[commit.head] = [(one(s, s), one(p, p), one(o, o)) for s, p, o in commit.triples]

    def commits(self) -> Iterable[tuple[CommitRef, list[Triple]]]:
        """Return the verified commits, each with its triples."""
        return self._commits.items()

    def placed(self, findings: Sequence[UnplacedFinding]) -> list[Problem]:
        """Return *findings* with the file of their commit and the line in it.

        One about several nodes is placed at a node that the requested range introduced, if it did not bring its item.
        """
        known = self.older.types if self.older is not None else ()
        parts = []
        for each in findings:
            new = next((node for node in each.beside if node not in known), None) if each.item in known else None
            parts.append(each if new is None else replace(each, item=new, property=None, value=None))
        stated = self._lines({part.item for part in parts})
        problems = []
        for each, part in zip(findings, parts, strict=True):
            path, by = self._chosen(stated.get(part.item, []), part)
            problems.append(problem(each, path, None if by is None else line_in(by, part)))
        return problems

    def _chosen(
        self, files: list[tuple[str, dict[Term, list[LocatedTriple]]]], finding: UnplacedFinding
    ) -> tuple[str | None, dict[Term, list[LocatedTriple]] | None]:
        """Return the file of a finding, among those with its item."""
        for rank in range(_RANKS):
            for path, by in reversed(files):
                if _at(by.get(finding.item, []), finding, rank) is not None:
                    return path, by
        return None, None

    def _lines(self, items: set[Term]) -> dict[Term, list[tuple[str, dict[Term, list[LocatedTriple]]]]]:
        files_of: dict[Term, list[tuple[str, dict[Term, list[LocatedTriple]]]]] = {}
        for head, rows in self._commits.items() if items else ():
            about = items & {subject for subject, _, _ in rows}
            place = self._journal.document(self._stream, head) if about else None
            if place is not None:
                path, before, document = place
                by = by_subject(statements_of(document.decode("utf-8", "replace"), about, before))
                for item in about:
                    files_of.setdefault(item, []).append((path, by))
        return files_of


def _counted(
    commits: Collection[tuple[CommitRef, list[Triple]]], single: Collection[Term]
) -> tuple[list[Triple], list[Triple]]:
    """Return the distinct triples of *commits*, the oldest first, and those that an earlier commit overrules.

    A commit records each node that it describes. A node that a second one describes keeps the first values of the
    properties *single*; the records of a memory are separated as in the index.
    """
    triples: dict[Triple, None] = {}
    overruled: dict[Triple, None] = {}
    described: set[Term] = set()
    for _, rows in commits:
        own = {subject for subject, predicate, _ in rows if predicate == _RECORDED_IN}
        again = own & described
        described |= own
        if again:
            late = [triple for triple in rows if triple[0] in again and triple[1] in single]
            overruled |= dict.fromkeys(late)
            rows = [triple for triple in rows if triple not in overruled]
        triples |= dict.fromkeys(rows)
    late = [triple for triple in overruled if triple not in triples]
    items = {item for item, name, _ in late if name not in OF_THE_IMPORT}
    removed, added = separate_records(((head.id, rows) for head, rows in commits), items, single) if items else ((), ())
    gone = frozenset(removed)
    return [*(triple for triple in triples if triple not in gone), *added], late


def statements_of(document: str, about: Collection[Term], before: int) -> Iterator[LocatedTriple]:
    """Yield the statements about these nodes in a document of the journal, which has one block for each subject."""
    top, *blocks = document.split("\n\n")
    line = before + top.count("\n") + 3
    for block in blocks:
        first = block.partition("\n")[0]
        if first in about or first[0] != "<":
            for statement in statements(f"{_PREFIXES}{block}"):
                if statement.triple[0] in about:
                    yield LocatedTriple(statement.triple, statement.line + line - 1, statement.block + line - 1)
        line += block.count("\n") + 2


def read(path: str, data: bytes, base: str | None = None) -> list[Triple]:
    """Return the triples of a Turtle document; raise InvalidRequest, with file and line, if it is not Turtle.

    Relative IRIs are resolved against *base* (RFC 3986, section 5.1) and refused without one.
    """
    try:
        check_turtle(data)
        quads = ox.parse(data, format=ox.RdfFormat.TURTLE, rename_blank_nodes=False, base_iri=base)
        return [(str(quad.subject), str(quad.predicate), str(quad.object)) for quad in quads]
    except SyntaxError as error:
        hint = "correct that line and try again"
        raise InvalidRequest(f"{path}:{error.lineno}: {short_parse_error(error)}", hint=hint) from error


def line_of_error(error: InvalidRequest) -> int | None:
    """Return the line of an error that `read` raised."""
    return getattr(error.__cause__, "lineno", None)


def by_subject(stated: Iterable[LocatedTriple]) -> dict[Term, list[LocatedTriple]]:
    """Return statements by subject."""
    return grouped((statement.triple[0], statement) for statement in stated)


def line_in(by: Mapping[Term, list[LocatedTriple]], finding: UnplacedFinding) -> int | None:
    """Return the line of the triple at fault, else of the block of the item, else of a reference to it."""
    for rank in range(_RANKS):
        line = _at(by.get(finding.item, []), finding, rank)
        if line is not None:
            return line
    pointing = (statement.line for rows in by.values() for statement in rows if statement.triple[2] == finding.item)
    return next(pointing, None)


#: The ranks of a match of statement and finding, from the triple itself to any statement about the item.
_RANKS = 4


def _at(stated: Sequence[LocatedTriple], finding: UnplacedFinding, rank: int) -> int | None:
    """Return the line of the statement among *stated* that matches a finding with at least *rank*."""
    if rank < 2:
        fitting = [
            one.line
            for one in stated
            if one.triple[1] == finding.property and (rank == 1 or one.triple[2] == finding.value)
        ]
        return fitting[-1] if fitting else None
    blocks = [one.block for one in stated if rank == 3 or one.triple[1] == TYPE]
    return blocks[0] if blocks else None


def problem(finding: UnplacedFinding, path: str | None, line: int | None) -> Problem:
    """Return a finding with its place."""
    item = plain_value(finding.item) if is_iri(finding.item) else finding.item
    return Problem(item, finding.rule, finding.severity, finding.message, path, line)


def redacted_pairs(source: TripleSource) -> set[tuple[Term, Term]]:
    """Return the nodes and properties that lost a value by the records of redactions; of a memory also its records."""
    links = ((item, record) for record, _, item in source.of(jido("conflictsWith")) if is_record_of(record, item))
    records = grouped(links)
    return {
        (node, name)
        for order, _, item in source.of(jido("redactedItem"))
        for name in source.values(order, jido("redactedProperty"))
        for node in (item, *records.get(item, ()))
    }


def introduced(
    findings: Sequence[UnplacedFinding],
    source: TripleSource,
    judge: Callable[[TripleSource], Iterable[UnplacedFinding]] | None = None,
) -> list[UnplacedFinding]:
    """Return the *findings* that the requested range introduced; all of them without a range.

    For a finding about an older node whose statements the range changed, *judge* returns the findings before the range.
    A redaction in the range introduces those about the values that it removed.
    """
    older = source.older
    if older is None:
        return list(findings)
    own = _Own(source, older)
    lost = redacted_pairs(source) - redacted_pairs(older)
    is_introduced = [
        own.has_added(each) or own.may_have_introduced(each) or (each.item, each.property) in lost for each in findings
    ]
    touched = [
        judge is not None and not is_own and own.touches(each)
        for each, is_own in zip(findings, is_introduced, strict=True)
    ]
    if judge is not None and any(touched):
        before = {_named(each) for each in judge(older)}
        is_introduced = [
            is_own or (near and _named(each) not in before)
            for each, is_own, near in zip(findings, is_introduced, touched, strict=True)
        ]
    return [each for each, is_own in zip(findings, is_introduced, strict=True) if is_own]


def named_merge(
    findings: Iterable[UnplacedFinding], source: TripleSource, revision: Revision | None
) -> list[UnplacedFinding]:
    """Return *findings*; one about nodes of which the range since *revision* brought only some also names the merge
    that makes the others known to its branch.
    """
    known = source.older.types if source.older is not None else {}
    merge = f"   (first, on a branch that lacks one of them: git merge {quote(revision.name)})" if revision else ""
    return [
        replace(each, message=each.message + merge)
        if each.beside and len({node in known for node in (each.item, *each.beside)}) > 1
        else each
        for each in findings
    ]


def newly_broken(findings: Iterable[UnplacedFinding], earlier: Iterable[UnplacedFinding]) -> list[UnplacedFinding]:
    """Return the *findings* that are not among those of the *earlier* rules on the same statements."""
    before = {replace(_named(each), message="") for each in earlier}
    return [each for each in findings if replace(_named(each), message="") not in before]


class _Own:
    """The statements that a git range added, and the nodes whose statements it changed."""

    def __init__(self, source: TripleSource, older: TripleSource) -> None:
        now, before = {*source.triples}, {*older.triples}
        self._types = source.types
        self._known = {subject for subject, _, _ in now}
        self._added = grouped((triple[0], triple) for triple in now - before)
        self._changed = {node for subject, _, value in now ^ before for node in (subject, value)}

    def has_added(self, finding: UnplacedFinding) -> bool:
        """Return whether the range added the statement at fault, or the node."""
        return any(self._has_added(node, finding) for node in (finding.item, *finding.beside))

    def touches(self, finding: UnplacedFinding) -> bool:
        """Return whether the range changed statements about a node of a finding."""
        return not self._changed.isdisjoint((finding.item, finding.value, *finding.beside))

    def may_have_introduced(self, finding: UnplacedFinding) -> bool:
        """Return whether the origin of a gate finding is unknown, since it names no property.

        Such a finding counts if the range changed any statement about its item, or if that is in another graph.
        """
        if not finding.rule.startswith(GATE) or finding.property is not None:
            return False
        return self.touches(finding) or finding.item not in self._known

    def _has_added(self, node: Term, finding: UnplacedFinding) -> bool:
        rows = self._added.get(node, ())
        if node not in self._types:
            return bool(rows)
        return any(
            predicate == TYPE or (predicate == finding.property and finding.value in (None, value, node))
            for _, predicate, value in rows
        )


def _named(finding: UnplacedFinding) -> UnplacedFinding:
    """Return a finding in a form comparable between files: with empty names for blank nodes."""
    item, value = ("_:" if term and term.startswith("_:") else term for term in (finding.item, finding.value))
    return replace(finding, item=item or "", value=value)


#: The namespace of IRIs that the journal describes.
_OURS = f"<{BASE}"
#: Rules that a commit which is missing can break: most compare memories with each other.
_OF_OTHERS = frozenset(
    (DANGLING, ORPHAN, CIRCLE, SUCCESSORS, CONFLICT, CONSISTENT, CLOSED_THERE, FRESH, PERMITTED, REPEATED)
)


def independent_of_damage(findings: Iterable[UnplacedFinding], source: TripleSource) -> list[UnplacedFinding]:
    """Return the *findings* that do not depend on the damaged part of the journal.

    A commit that cannot be read may describe a node, end a memory, or record a redaction.
    """

    def is_known(node: Term | None) -> bool:
        return node is None or not node.startswith(_OURS) or node in source.types

    return [
        each
        for each in findings
        if each.rule not in _OF_OTHERS
        and (each.property is not None or each.rule in RULES)
        and all(map(is_known, (each.item, each.value)))
        and each.item not in source.redacted
    ]
