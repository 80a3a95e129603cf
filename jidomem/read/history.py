"""The history of a project: its log, its differences, the change feed and the revisions of a memory.

A rewording lists the sentences in which a proposal differs from the memory that it is to replace.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import grouped, reachable
from jidomem.base.words import answer, beginning, sentences
from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.tallies import AUTHORS
from jidomem.journal.commit import Commit, advance
from jidomem.rdf.terms import Term, iri, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, GRAPHS, JIDO, LABEL, MARKER, TYPE, conv, graph_iri, jido, local_name
from jidomem.read.lists import Page
from jidomem.read.playbook import Rows
from jidomem.records import intent
from jidomem.records.active import ACCEPTED, INVALIDATED, REJECTED, SUPERSEDED, state
from jidomem.records.intent import FIELD_PROPERTIES, WRITER_ONLY, CommitRef, Version, parse_version
from jidomem.records.named_query import FOREVER, to_term

if TYPE_CHECKING:
    from jidomem.index.store import OxigraphIndex
    from jidomem.journal.journal import FileJournal, Stream
    from jidomem.read.reader import MemoryReader

#: The properties with the text of a memory, without the reason of its revision.
_TEXTS = ("summary", "rationale", "detailedExplanation")
_STATES = ("decisionStatus", "hasTaskStatus", "hasErrorStatus")
#: How many characters of a long text are shown before the first difference.
_CHANGED_BEFORE = 40


@dataclass(frozen=True, slots=True)
class Rewording:
    """The sentences found only in the replaced memory, and those found only in the proposal; either may be empty."""

    was: str
    now: str

    @property
    def is_empty(self) -> bool:
        """Return whether both have the same sentences."""
        return not self.was and not self.now

    def lines(self) -> list[str]:
        """Return a line for each side that is not empty."""
        return [f"{name}: {text}" for name, text in (("was", self.was), ("now", self.now)) if text]

    def shortened(self, longest: int) -> Rewording:
        """Return a rewording of about *longest* characters a side at most, from shortly before the first difference."""
        if max(len(self.was), len(self.now)) <= longest:
            return self
        pairs = enumerate(zip(self.was, self.now, strict=False))
        same = next((at for at, (ours, theirs) in pairs if ours != theirs), min(len(self.was), len(self.now)))
        start = max(same - _CHANGED_BEFORE, 0)
        return Rewording(_shown(self.was, start, longest), _shown(self.now, start, longest))


def rewording(old: Mapping[str, Sequence[object]], new: Mapping[str, Sequence[object]]) -> Rewording:
    """Return the sentences, and the status, in which the properties *new* of a memory differ from *old*.

    >>> rewording({"summary": ["Use a queue. Never block."]}, {"summary": ["Use a queue. Block in tests only."]})
    Rewording(was='Never block.', now='Block in tests only.')
    """
    ours, theirs = _sentences(old), _sentences(new)
    was, now = _state(old), _state(new)
    if was != now:
        ours, theirs = [f"status: {was}", *ours], [f"status: {now}", *theirs]
    return Rewording(_missing(ours, theirs), _missing(theirs, ours))


def _state(properties: Mapping[str, Sequence[Any]]) -> str:
    """Return the status of a decision, task or error; "accepted" for any other memory."""
    values = (value for name in _STATES for value in properties.get(name, ()))
    return local_name(str(next(values, ACCEPTED)))


def rewordings(reader: MemoryReader, project: str, item: str, replaced: Sequence[str]) -> list[Rewording]:
    """Return the rewordings of *replaced* by the memory *item*, without empty ones; none if a memory is missing."""
    try:
        new = reader.get_memory(project, item)["properties"]
        changes = [rewording(reader.get_memory(project, each)["properties"], new) for each in replaced]
    except NotFound:
        return []
    return [each for each in changes if not each.is_empty]


def _sentences(properties: Mapping[str, Sequence[Any]]) -> list[str]:
    """Return the sentences of a memory, those of its summary first, without list marks and ellipses."""
    texts = (
        str(next(iter(properties.get("summary", ())), "")),
        answer({name: properties.get(name, ()) for name in _TEXTS}),
    )
    return [*filter(None, (each.removeprefix("- ").strip("… ") for text in texts for each in sentences(text)))]


def _missing(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Return the sentences of *ours* that *theirs* does not contain, without those that another of them contains."""
    whole = "\n".join(theirs)
    only = [each for each in dict.fromkeys(ours) if each not in whole]
    return " … ".join(each for each in only if not any(each != other and each in other for other in only))


def _shown(text: str, start: int, longest: int) -> str:
    head = "… " if start else ""
    text = text[start:].partition(" ")[2] if start else text
    return head + text if len(text) <= longest else f"{head}{beginning(text, longest)} …"


_DECIDED = jido("decisionStatus")
_ENDS = {jido("supersededBy"): SUPERSEDED, jido("invalidatedBy"): INVALIDATED}
_MARK, _PROPOSED = jido("hasAssertionStatus"), jido("Proposed")
_RECORDED, _SUMMARY = jido("recordedIn"), jido("summary")
_OF_ENDED = (TYPE, _SUMMARY, _MARK)


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One commit of the feed: `version` includes it and all entries before it, and is the cursor of the next entry.

    Each row of `added`, `superseded` and `invalidated` has iri, kind, summary, status and redacted; the latter two also
    have `by`, the memory that ended it.
    """

    version: Version
    commit: str
    recorded_at: str
    redacted: bool
    added: tuple[dict[str, Any], ...]
    superseded: tuple[dict[str, Any], ...]
    invalidated: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "version": str(self.version)}


def version_of(journal: FileJournal, stream: Stream, text: str) -> Version:
    """Return the version written as *text*; raises InvalidRequest if it is malformed, NotFound if it is unknown."""
    if text == "0":
        return Version()
    parsed = parse_version(text)
    if parsed is None:
        raise InvalidRequest(
            f"{text!r:.200} is not a version", hint="give the version of a line of the feed: 12-0a1b2c3d4e5f"
        )
    folder = journal.inspect(stream)
    matches = [folder.named(identity) for identity in parsed[1]]
    if not all(len(heads) == 1 for heads in matches):
        problem, hint = "it is another project's", "read from the beginning: leave it out"
        if parsed[0] > (head := journal.head(stream)).position:
            problem = f"it ends at {head}, as after the restore of an older backup"
            hint = f"go on from {text} once its lost commits are put back; if they are not, {hint}"
        detail = f"{stream.project} has no version {text}: {problem}, or its branch is not checked out"
        raise NotFound(detail, hint=hint)
    return Version.of(heads[0] for heads in matches)


def entries(journal: FileJournal, index: OxigraphIndex, stream: Stream, after: Version) -> Iterator[FeedEntry]:
    """Yield each commit that the version *after* does not include, once; *index* has applied the whole journal.

    No commit is omitted or repeated where branches were merged. Stops before a damaged commit; raises JournalDamaged if
    that is the first one, and NotFound if *after* is no longer in the journal.
    """
    missed, version = set[str](), after
    for commit in journal.read(stream, after, missed=missed):
        if missed:
            break
        version = advance(version, [commit])
        yield _feed_entry(commit, version, index)
    if missed and version == after:
        for damage in journal.damage(stream):
            raise damage


def _feed_entry(commit: Commit, version: Version, index: OxigraphIndex) -> FeedEntry:
    by_subject = _by_subject(commit)
    ended: dict[str, list[dict[str, Any]]] = {SUPERSEDED: [], INVALIDATED: []}
    for item, properties in by_subject.items():
        for predicate, status in _ENDS.items():
            for by in properties[predicate]:
                current = {each: [t[2] for t in index.triples(commit.graph, item, each)] for each in _OF_ENDED}
                is_rejected = status == INVALIDATED and _PROPOSED in current[_MARK]
                row = _feed_row(item, current, REJECTED if is_rejected else status, True)
                ended[status].append({**row, "by": plain_value(by)})
    lists = {name: tuple(rows) for name, rows in ended.items()}
    return FeedEntry(version, commit.id, commit.recorded_at, commit.redacted, tuple(recorded_in(commit)), **lists)


def recorded_in(commit: Commit) -> list[dict[str, Any]]:
    """Return a row of the feed for each memory that a commit records, with its status then."""
    own = iri(commit.iri)
    return [
        _feed_row(item, properties, _status(properties), commit.redacted)
        for item, properties in _by_subject(commit).items()
        if own in properties[_RECORDED] and properties[_MARK]
    ]


def _by_subject(commit: Commit) -> dict[Term, dict[Term, list[Term]]]:
    by_subject: dict[Term, dict[Term, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for subject, predicate, value in sorted(commit.triples):
        by_subject[subject][predicate].append(value)
    return by_subject


def _status(properties: Mapping[Term, list[Term]]) -> str:
    stated = parse_literal(properties[_DECIDED][0]).text if properties[_DECIDED] else None
    is_marker = jido(MARKER) in properties[TYPE]
    return state(stated, is_proposal=_PROPOSED in properties[_MARK], is_marker=is_marker)


def _feed_row(item: Term, properties: Mapping[Term, list[Term]], status: str, may_lack: bool) -> dict[str, Any]:
    """Return a memory as a row of the feed; one that *may_lack* a summary is redacted if it has none."""
    kinds, texts = properties.get(TYPE, []), properties.get(_SUMMARY, [])
    return {
        "iri": plain_value(item),
        "kind": local_name(plain_value(min(kinds))) if kinds else None,
        "summary": parse_literal(texts[0]).text if texts else None,
        "status": status,
        "redacted": may_lack and not texts,
    }


_LISTS = ("about", "evidence", "alternatives")
#: The properties about the recording of a version (author, time, reason, predecessors, source), not its content.
_NO_CONTENT = WRITER_ONLY | {
    "idempotencyKey", "hasTimestamp", "assertedBy", "assertedIn", "appliesToProject", "supersedes", "invalidates",
    "revives", "coexistsWith", "revisionReason", "localId", "sourceBlob", "sourceLine", "sourceDigest", "sourceState",
    "previousImport",
}  # fmt: skip
#: property -> the field of an intent that sets it, in the order in which changes are listed.
FIELD_OF_PROPERTY: Mapping[str, str] = {
    "class": "type",
    **{each.name: each.field for each in FIELD_PROPERTIES.values() if each.name not in _NO_CONTENT},
}
#: The prefixes of nodes with a text: evidence, turns of a conversation, entries of an agent.
_WORDED = tuple(f"{BASE}{folder}/" for folder in ("evidence", "turns", "entries"))
_ALTERNATIVE = "/alternatives/"
_EVIDENCE_TEXTS = f"""SELECT ?node ?text ?prompt ?answer {{ VALUES ?node {{ %s }}
  OPTIONAL {{ ?node {LABEL}|{jido("entryText")}|{jido("summary")} ?text }}
  OPTIONAL {{ ?node {conv("hasPrompt")}/{conv("promptText")} ?prompt }}
  OPTIONAL {{ ?node {conv("hasAnswer")}/{conv("answerText")} ?answer }} }}"""
#: How many nodes one query is about.
_BATCH = 1_000

Memory = Mapping[str, Any]


class _Reader(Protocol):
    """A reader of single memories and of SPARQL queries."""

    def get_memory(self, project: str, iri: str, *, as_of: object = None) -> dict[str, Any]:
        """Return one memory; raises NotFound."""

    def select(self, project: str, sparql: str) -> Rows:
        """Return the rows of a SELECT."""


class Revisions:
    """The revisions of memories of one project, as they were known at one moment."""

    def __init__(self, reader: _Reader, project: str, as_of: object = None) -> None:
        self._reader, self._project, self._as_of = reader, project, as_of

    def of(self, item: str, lineage: Container[str] | None = None, named: Container[str] = ()) -> dict[str, Any]:
        """Return the `event` that made a version, its `reason`, its `changes`, and the memories `also_superseded`.

        The changes, each with field, before and after, are those from the version that it replaced: the one with the
        same content, else the newest by its date, a superseded one before a revived one; the first version has none. A
        field that is not set is None. With *lineage*, only a memory in it is a version. The event is asserted, revised,
        confirmed, superseded (by a version of another memory), revived or withdrawn (by a marker, or of one of
        *named*), for a proposal also proposed, accepted or rejected; None if there is no such memory. Each other
        asserted memory that the version superseded has iri and summary.
        """
        memory = self._memory(item)
        if memory is None:
            return _event_row()
        superseded, withdrawn, revived = (
            sorted(filter(None, map(self._memory, _values(memory, name))), key=_date_and_iri, reverse=True)
            for name in ("supersedes", "invalidates", "revives")
        )
        back = {each["iri"] for each in revived}
        replaced = [
            each
            for each in (*superseded, *revived)
            if each["class"] != MARKER and back.isdisjoint(_values(each, "invalidates"))
        ]
        versions = [each for each in replaced if lineage is None or each["iri"] in lineage] or replaced
        changes = {each["iri"]: self.changes(each, memory) for each in (versions if revived else replaced)}
        restated = [] if revived else [each for each in replaced if _is_same(changes[each["iri"]])]
        before = next((each for each in versions if each in restated), versions[0] if versions else None)
        own_changes = [] if before is None else changes[before["iri"]]
        others = [each for each in replaced if each not in versions and (each in restated or _is_proposed(each))]
        return {
            "event": _event(
                memory, versions, _withdrawn(memory, withdrawn, named), own_changes, is_by_another=bool(others)
            ),
            "reason": reason(memory, [*superseded, *withdrawn, *revived]),
            "changes": own_changes,
            "also_superseded": [] if before is None or revived else _also_superseded(memory, before, replaced),
        }

    def _memory(self, item: str) -> Memory | None:
        try:
            return self._reader.get_memory(self._project, item, as_of=self._as_of)
        except NotFound:
            return None

    def changes(self, before: Memory, after: Memory) -> Rows:
        """Return the changes between two memories, each with field, before and after."""
        sides = (before, after)
        nodes = [node for each in sides for name in ("derivedFrom", "hasAlternative") for node in _values(each, name)]
        texts = node_texts(self._reader, self._project, nodes)
        old, new = (_content(each, texts) for each in sides)
        names = [*dict.fromkeys((*FIELD_OF_PROPERTY.values(), *sorted({*old, *new} - {*FIELD_OF_PROPERTY.values()})))]
        return [
            {"field": name, "before": old.get(name), "after": new.get(name)}
            for name in names
            if old.get(name) != new.get(name)
        ]


def _event_row(event: str | None = None, reason: str | None = None) -> dict[str, Any]:
    """Return what `Revisions.of` returns for an event without changes."""
    return {"event": event, "reason": reason, "changes": [], "also_superseded": []}


#: The values of a difference whose memory was recorded before it.
NO_EVENT: Mapping[str, Any] = {"recorded": None, "agents": [], **_event_row()}


def _event(
    memory: Memory, versions: Sequence[Memory], withdrawn: Sequence[Memory], changes: Rows, *, is_by_another: bool
) -> str:
    """Return the event that made *memory* of *versions*; *is_by_another* if it restates a memory outside of them."""
    if _is_proposed(memory):
        return "proposed"
    if memory["properties"].get("revives"):
        return "revived"
    if versions:
        if any(map(_is_proposed, versions)):
            return "accepted"
        return "confirmed" if _is_same(changes) else "superseded" if is_by_another else "revised"
    if withdrawn:
        return "rejected" if all(map(_is_proposed, withdrawn)) else "withdrawn"
    return "asserted"


def _withdrawn(memory: Memory, withdrawn: Sequence[Memory], named: Container[str]) -> Sequence[Memory]:
    """Return those of *withdrawn* by *memory* whose end is its event: all for a marker, else those of *named*."""
    return withdrawn if memory["class"] == MARKER else [each for each in withdrawn if each["iri"] in named]


def _is_same(changes: Rows) -> bool:
    """Return whether *changes* are those of a confirmation: the mark of a curator, and the date of the next review."""
    return all(change["field"] in ("verified", "expires_on") for change in changes)


def _also_superseded(memory: Memory, before: Memory, replaced: Sequence[Memory]) -> Rows:
    """Return the asserted memories among *replaced* that are no versions before the version *before* of *memory*."""
    if _is_proposed(memory):
        return []
    by_iri = {each["iri"]: each for each in replaced}
    earlier = reachable([before["iri"]], lambda one: _values(by_iri[one], "supersedes") if one in by_iri else ())
    return [
        {"iri": each["iri"], "summary": next(iter(each["properties"].get("summary", ())), None)}
        for each in replaced
        if each["iri"] not in earlier and not _is_proposed(each)
    ]


def _date_and_iri(memory: Memory) -> tuple[list[str], str]:
    """Return the date of a memory and its IRI, which an import keeps, unlike the time of recording."""
    return _values(memory, "hasTimestamp"), memory["iri"]


def _is_proposed(memory: Memory) -> bool:
    return jido("Proposed") in map(iri, _values(memory, "hasAssertionStatus"))


def reason(memory: Memory, replaced: Sequence[Memory] = ()) -> str | None:
    """Return why a memory replaced others: its reason, else its rationale unless a replaced memory had it too, or None.

    The rationale of a memory that replaced nothing is no reason of a change.
    """
    properties = memory["properties"]
    if given := next(iter(properties.get("revisionReason", ())), None):
        return str(given)
    own = next(iter(properties.get("rationale", ())), None)
    is_own = bool(replaced) and not any(own in each["properties"].get("rationale", ()) for each in replaced)
    return str(own) if own is not None and is_own else None


def node_texts(reader: _Reader, project: str, nodes: Iterable[str]) -> dict[str, str]:
    """Return the text of each of *nodes* that has one: a turn, an entry of an agent, evidence, an alternative."""
    worded = [iri(each) for each in dict.fromkeys(nodes) if each.startswith(_WORDED) or _ALTERNATIVE in each]
    texts: dict[str, str] = {}
    for at in range(0, len(worded), _BATCH):
        for row in reader.select(project, _EVIDENCE_TEXTS % " ".join(worded[at : at + _BATCH])):
            if text := "\n".join(filter(None, (row["text"], row["prompt"], row["answer"]))):
                texts[row["node"]] = text
    return texts


def _content(memory: Memory, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of a memory by field: a list for a field of several values, else one value."""
    properties = {**memory["properties"], "class": memory["own_classes"] or [memory["class"]]}
    content: dict[str, Any] = {}
    for name in sorted(
        properties.keys() - _NO_CONTENT, key=lambda name: ([*FIELD_OF_PROPERTY, name].index(name), name)
    ):
        values = [_plain(texts.get(str(value), value)) for value in properties[name]]
        field = FIELD_OF_PROPERTY.get(name, name)
        content.setdefault(field, sorted(values, key=str) if field in _LISTS or len(values) > 1 else values[0])
    return content


def _plain(value: Any) -> Any:
    """Return the local name of a term of the ontology, any other value unchanged."""
    return local_name(value) if isinstance(value, str) and value.startswith(JIDO) else value


def _values(memory: Memory, name: str) -> list[str]:
    return [str(value) for value in memory["properties"].get(name, ())]


_COMMIT = "urn:jido:commit:"
_START = "0001-01-01T00:00:00.000000Z"
#: The number of a version: a date without hyphens has eight digits.
_NUMBER = re.compile("[0-9]{1,7}")
_LISTED = "give one that is listed by: jidomem journal log"
#: How many commits or memories one query is about.
_SOME = 200
_BROUGHT = f"""SELECT ?commit ?kind ?node ?agent ?session WHERE {{ VALUES ?commit {{ %s }}
?node {jido("recordedIn")} ?commit ; a ?kind .
OPTIONAL {{ ?node {jido("settledBy")} ?settler }}
OPTIONAL {{ ?node {"|".join(AUTHORS)} ?author }}
BIND(COALESCE(?settler, ?author) AS ?agent)
OPTIONAL {{ ?node {jido("assertedIn")}|{jido("ofSession")} ?session FILTER(!BOUND(?settler)) }} }}"""
_ORDERED = f"""SELECT ?commit ?agent ?reason ?redacted ?aside WHERE {{ VALUES ?commit {{ %s }}
OPTIONAL {{ ?commit {jido("orderedBy")} ?agent }}
OPTIONAL {{ ?commit {jido("orderReason")} ?reason }}
OPTIONAL {{ ?commit {jido("redacts")} ?redacted }}
OPTIONAL {{ ?commit {jido("setsAside")} ?aside }} }}
ORDER BY ?commit ?agent ?reason ?redacted ?aside"""
_REDACTIONS = f"""SELECT ?item ?recorded ?agent ?reason WHERE {{
?commit {jido("redactedItem")} ?item ; {jido("recordedAt")} ?here
  FILTER(?here > %s && ?here <= %s)
OPTIONAL {{ ?commit {jido("redactedAt")} ?elsewhere }} BIND(COALESCE(?elsewhere, ?here) AS ?recorded)
OPTIONAL {{ ?commit {jido("orderedBy")} ?agent }}
OPTIONAL {{ ?commit {jido("orderReason")} ?reason }} }} ORDER BY ?recorded ?item ?agent ?reason"""
_RECORDED_BY = f"""SELECT ?item ?recorded ?agent ?reason ?replaced ?proposed WHERE {{ VALUES ?item {{ %s }}
?item {jido("recordedAt")} ?recorded .
OPTIONAL {{ ?item {jido("settledBy")} ?settler }}
OPTIONAL {{ ?item {jido("assertedBy")} ?author }}
BIND(COALESCE(?settler, ?author) AS ?agent)
OPTIONAL {{ ?item {jido("revisionReason")} ?reason }}
OPTIONAL {{ ?item {jido("hasAssertionStatus")} ?proposed FILTER(?proposed = {jido("Proposed")}) }}
OPTIONAL {{ ?item {jido("supersedes")}|{jido("invalidates")}|{jido("revives")} ?replaced }} }}
ORDER BY ?item ?agent ?replaced"""
_BEFORE = f"""SELECT ?item ?old ?withdrawn ?date WHERE {{ VALUES ?item {{ %s }}
OPTIONAL {{ ?item {jido("supersedes")}|{jido("revives")} ?old }}
OPTIONAL {{ ?item {jido("invalidates")} ?withdrawn }}
OPTIONAL {{ ?item {jido("hasTimestamp")} ?date }} }} ORDER BY ?item ?old ?withdrawn ?date"""
_HEADS = f"""SELECT ?commit ?position ?recorded WHERE {{
?commit {jido("inStream")} %(graph)s ; {jido("position")} ?position ; {jido("recordedAt")} ?recorded
FILTER(?recorded <= %(moment)s)
FILTER NOT EXISTS {{ ?child {jido("parent")} ?commit
  FILTER EXISTS {{ ?child {jido("recordedAt")} ?then FILTER(?then <= %(moment)s) }} }} }}"""
_COMMITS = f"""SELECT ?commit ?position ?recorded WHERE {{
?commit {jido("inStream")} %s ; {jido("position")} ?position ; {jido("recordedAt")} ?recorded FILTER(%s) }}
ORDER BY DESC(?recorded)"""


class History:
    """The log, the differences and the versions of a project's memory, by queries of *reader*."""

    def __init__(self, reader: MemoryReader) -> None:
        self._reader = reader

    def log(self, project: str, **options: Any) -> Page:
        """Return the commits of a project, or of one `agent`, newest first, with the number of items of each class."""
        name = "commits" if options.get("agent") is None else "commits-of-agent"
        given = {key: value for key, value in options.items() if key != "agent" or value is not None}
        page = self._reader.ask_page(name, project=project, **given)
        commits = [row["commit"] for row in page.rows]
        brought = grouped((row["commit"], row) for row in self._rows_about(project, _BROUGHT, commits))
        ordered = grouped((row["commit"], row) for row in self._rows_about(project, _ORDERED, commits))
        entries = [
            _history_entry(row, brought.get(row["commit"], []), ordered.get(row["commit"], [])) for row in page.rows
        ]
        return Page(entries, page.cursor)

    def _rows_about(self, project: str, query: str, nodes: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Yield the rows of *query* about *nodes*, of which one query names some."""
        for at in range(0, len(nodes), _SOME):
            yield from self._reader.select(project, query % " ".join(map(iri, nodes[at : at + _SOME])))

    def of_memory(self, project: str, memory_id: str, *, as_of: object, valid_at: object) -> Rows:
        """Return the versions of one memory, oldest first, each with its event, reason, changes and redactions."""
        item = self._reader.resolve(project, memory_id, as_of=as_of)
        self._reader.get_memory(project, item, as_of=as_of)
        rows = self._reader.ask("history", project=project, item=item, as_of=as_of, valid_at=valid_at)
        revisions = Revisions(self._reader, project, as_of)
        redactions = grouped((each.pop("item"), each) for each in self.redactions(project, "0", as_of))
        before, replaced, dates = self._predecessors(project, [row["entry"] for row in rows])
        lineage, named = _lineage(item, before), _lineage(item, replaced)
        return [
            {**row, **revisions.of(row["entry"], lineage, named), "redactions": redactions.get(row["entry"], [])}
            for row in _oldest_first(rows, before, dates)
        ]

    def _predecessors(
        self, project: str, entries: Iterable[str]
    ) -> tuple[dict[str, set[str]], dict[str, set[str]], dict[str, Any]]:
        """Return for each of *entries* those that it ended or revived, those but for withdrawals, and its date."""
        replaced: dict[str, set[str]] = {entry: set() for entry in entries}
        withdrawn: dict[str, set[str]] = {entry: set() for entry in replaced}
        dates: dict[str, Any] = {}
        for each in self._reader.select(project, _BEFORE % " ".join(map(iri, replaced))):
            others = replaced.keys() - {each["item"]}
            replaced[each["item"]] |= {each["old"]} & others
            withdrawn[each["item"]] |= {each["withdrawn"]} & others
            dates[each["item"]] = each["date"]
        return {entry: olds | withdrawn[entry] for entry, olds in replaced.items()}, replaced, dates

    def redactions(self, project: str, since: object, until: object) -> Rows:
        """Return a row for each memory redacted between two moments: item, recorded, agent and reason.

        An imported one was recorded when it was made. Agent and reason are None if they were redacted themselves.
        """
        moments = (self.moment(project, since), self.moment(project, until or FOREVER))
        return self._reader.select(project, _REDACTIONS % tuple(to_term(each, "dateTime", "as_of") for each in moments))

    def diff(self, project: str, since: object, until: object, *, valid_at: object) -> Rows:
        """Return the memories that changed after *since* and by *until* (None: now)."""
        first, last = self.moment(project, since), self.moment(project, until or FOREVER)
        if first > last:
            raise InvalidRequest(f"{since} is after {until}", hint="give the earlier moment first")
        rows = self._reader.ask("changes", project=project, since=first, as_of=last, valid_at=valid_at)
        added = self._revised(project, [row["item"] for row in rows if not row["before"]], last)
        return [
            {"change": row["after"] if row["before"] else "added", **row, **added.get(row["item"], NO_EVENT)}
            for row in rows
        ]

    def _revised(self, project: str, items: list[str], as_of: str) -> dict[str, dict[str, Any]]:
        """Return for each of *items* its recording time, agents, event, reason and changes."""
        revised: dict[str, dict[str, Any]] = {}
        revisions = Revisions(self._reader, project, as_of)
        for row in self._rows_about(project, _RECORDED_BY, items):
            own = revised.setdefault(row["item"], {"recorded": row["recorded"], "agents": []})
            own["agents"] = _each((*own["agents"], row["agent"]))
            if "changes" not in own:
                is_first = row["replaced"] is None and not row["proposed"]
                own |= _event_row("asserted", row["reason"]) if is_first else revisions.of(row["item"])
        return revised

    def moment(self, project: str, given: object, name: str = "as_of") -> str:
        """Return the moment *given* as the argument *name*, or that at which the memory had the version *given*.

        Raises InvalidRequest if it never had: a commit recorded before the newest one of the version is not in it.
        """
        if given == "0":
            return _START
        text = given if isinstance(given, str) else ""
        is_number = _NUMBER.fullmatch(text)
        if not is_number and intent.parse_version(text) is None:
            try:
                return plain_value(to_term(given, "dateTime", name))
            except InvalidRequest as error:
                error.hint += ", or a version that is listed by: jidomem journal log; with a git revision compare by:"
                error.hint += " jidomem journal diff --since REV"
                raise
        version = self._numbered(project, int(text)) if is_number else self._named(project, text)
        moment = version.recorded_at
        others = [str(Version((head,))) for head in self.version(project, moment).heads if head not in version.heads]
        if others:
            raise InvalidRequest(
                f"{project} had the version {version} at no moment: {others[0]} was recorded before it, on a branch"
                " that was merged later",
                hint=f"give the moment {moment}, which includes {others[0]}; or compare with a git revision:"
                " jidomem journal diff --since REV",
            )
        return moment

    def _numbered(self, project: str, position: int) -> Version:
        """Return the only commit at *position* as a version; raises NotFound if there is none, or several."""
        versions = [Version((head,)) for head in self._commits(project, f"?position = {position}")]
        if len(versions) == 1:
            return versions[0]
        if versions:
            hint = f"give one of: {', '.join(map(str, versions))}"
            raise NotFound(f"{project} has several versions {position}", hint=hint)
        raise NotFound(f"{project} has no version {position}", hint=_LISTED)

    def _named(self, project: str, text: str) -> Version:
        """Return the version *text*; raises NotFound if it is unknown."""
        position, ids = intent.parse_version(text) or (0, [])
        condition = " || ".join(f"STRSTARTS(STR(?commit), '{_COMMIT}{each}')" for each in ids)
        heads = self._commits(project, condition)
        version = Version.of(heads if len(ids) > 1 else (head for head in heads if head.position == position))
        if version.position != position or len(version.heads) != len(ids):
            raise NotFound(f"{project} has no version {text}", hint=_LISTED)
        return version

    def _commits(self, project: str, condition: str) -> list[CommitRef]:
        """Return the commits of a project's memory that meet a *condition* on ?commit or ?position, newest first."""
        return [*map(_head, self._reader.select(project, _COMMITS % (iri(graph_iri(project)), condition)))]

    def version(self, project: str, as_of: object) -> Version:
        """Return the version a project's memory had at a moment."""
        moment: Term = to_term(as_of, "dateTime", "as_of")
        rows = self._reader.select(project, _HEADS % {"graph": iri(graph_iri(project)), "moment": moment})
        return Version.of(_head(row) for row in rows)


def _lineage(item: str, before: Mapping[str, Set[str]]) -> set[str]:
    """Return the versions before *item*, and those after any of them; *before* has the predecessors of each."""
    after = grouped((old, entry) for entry, olds in before.items() for old in olds)
    earlier = reachable([item], lambda entry: before.get(entry, ()))
    return reachable(earlier, lambda entry: after.get(entry, ()))


def _oldest_first(rows: Rows, before: Mapping[str, Set[str]], dates: Mapping[str, Any]) -> Rows:
    """Return *rows* of versions, each with its date; within a commit a version follows those it replaced."""
    ordered: Rows = []
    for _, same in groupby(rows, key=lambda row: row["recorded"]):
        by_entry = grouped((row["entry"], {**row, "date": dates.get(row["entry"])}) for row in same)
        levels = TopologicalSorter({entry: before[entry] & by_entry.keys() for entry in by_entry})
        with suppress(CycleError):
            levels.prepare()
        while levels.is_active() and (ready := levels.get_ready()):
            ordered += [row for entry in sorted(ready) for row in by_entry.pop(entry)]
            levels.done(*ready)
        ordered += [row for in_circle in by_entry.values() for row in in_circle]
    return ordered


def _head(row: dict[str, Any]) -> CommitRef:
    return CommitRef(format_timestamp(row["recorded"]), row["commit"].removeprefix(_COMMIT), row["position"])


def _history_entry(row: dict[str, Any], brought: Rows, ordered: Rows) -> dict[str, Any]:
    """Return the log entry of a commit: counts of its *brought* rows; from *ordered*, its reason and redactions."""
    kinds = Counter(local_name(kind) for kind, _ in {(item["kind"], item["node"]) for item in brought})
    graph = next(name for name, long in GRAPHS.items() if row["stream"].endswith(f"/{long}"))
    return {
        "version": str(Version((_head(row),))),
        "recorded_at": row["recorded"],
        "commit": row["commit"].removeprefix(_COMMIT),
        "graph": graph,
        "committer": row["committer"],
        "ontology": row["ontology"],
        "agents": _each((*(each["agent"] for each in ordered), *(item["agent"] for item in brought))),
        "sessions": _each(item["session"] for item in brought),
        "brought": dict(sorted(kinds.items())),
        "redacted": [each.removeprefix(_COMMIT) for each in _each(each["redacted"] for each in ordered)],
        "set_aside": _each(each["aside"] for each in ordered),
        "reason": next((each["reason"] for each in ordered), None),
    }


def _each(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name})
