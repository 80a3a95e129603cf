"""The reader: answers about a project's memory as plain Python values; it has no way to write.

The plain names of agents and sessions, by which a question may name them in place of their IRIs.

How much a project remembers: its memories counted by kind and status.

The policy of a project as it was at a moment, read from the changes its journal holds.

Work sessions: the status and the phase each is in, as its events have it.

How far a memory is trusted: as far as the least of its own source and of all it is derived from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from jidomem.base import clock
from jidomem.base.clock import format_timestamp
from jidomem.base.words import slug
from jidomem.errors import InvalidRequest, NotFound, nearest_names
from jidomem.index import OxigraphIndex, Solutions
from jidomem.index.disagreements import Ids
from jidomem.index.ordered_lists import ListCache
from jidomem.index.results import AnswerLimits
from jidomem.rdf import sparql
from jidomem.rdf.sparql import Dataset, dataset
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import Term, Triple, boolean, date_time, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, TRUST, TRUST_OF_SOURCE, TYPE, conv, graph_iri, graphs_of, jido, local_name
from jidomem.read import memory_detail
from jidomem.read.history import Records
from jidomem.read.lists import Apart, Cursor, Lists, Page, fingerprint, first_moment
from jidomem.read.playbook import Architect, Debugger, Planner, Playbook, Role, Rows
from jidomem.read.provenance import Shown, Why
from jidomem.records.active import ACTIVE, UNACCEPTED, validity
from jidomem.records.intent import Version
from jidomem.records.named_query import FOREVER, NamedQuery, to_term
from jidomem.records.policy import PRESETS, AccessPolicy, Change, Policy
from jidomem.schema.ontology import Schema

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex

#: How many names a hint lists where none is alike.
_LISTED = 10
#: Folder of the IRIs -> properties whose subjects, and properties whose objects, are such agents or sessions.
_SUBJECTS = {"agents": ((TYPE, jido("Agent")),), "sessions": ((jido("startedAt"), None),)}
_OBJECTS = {"agents": (jido("saidBy"), jido("entryOf")), "sessions": (conv("associatedWithSession"),)}


def named(index: OxigraphIndex, project: str, folder: str, name: str) -> str:
    """Return the IRI of the agent or session that *project* knows by the plain *name*; an IRI is returned as it is.

    Raises NotFound with the nearest names.
    """
    last = slug(name)
    if ":" in name or not last:
        return name
    node = iri(f"{BASE}{folder}/{last}")
    for graph in graphs_of(project):
        if any(index.triples(graph, None, None, node, most=1)) or any(index.triples(graph, node, most=1)):
            return plain_value(node)
    known = sorted(_known(index, project, folder))
    near = nearest_names(last, known, 3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"there are: {', '.join(known[:_LISTED])}{more}" if known else "nothing is recorded yet"
    raise NotFound(f"{project} has no {folder[:-1]} {name!r}", hint=hint)


def _known(index: OxigraphIndex, project: str, folder: str) -> set[str]:
    """Return the names of all agents, or sessions, of a project."""
    found: set[str] = set()
    for graph in graphs_of(project):
        for predicate, value in _SUBJECTS[folder]:
            found.update(plain_value(node) for node, _, _ in index.triples(graph, None, predicate, value))
        for predicate in _OBJECTS[folder]:
            found.update(plain_value(node) for _, _, node in index.triples(graph, None, predicate))
    start = f"{BASE}{folder}/"
    return {name.removeprefix(start) for name in found if name.startswith(start)}


_SECOND = timedelta(seconds=1)
_DATES = (jido("validFrom"), jido("validUntil"))
_STATES, _WITH_STATE = (jido("hasErrorStatus"), jido("hasTaskStatus")), (jido("Error"), jido("Task"))
_MEMORY = re.compile(re.escape(f"{BASE}memory/") + r"[0-9A-Za-z-]+")
#: The columns of named queries that name the memory which a row is about.
_OF_MEMORY = (
    "item", "decision", "task", "err", "conv", "fact", "lesson", "risk", "rule", "root", "subject", "related",
    "derived",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Result:
    """The answer to raw SPARQL: rows of `variables` (select), `truth` (ask) or `triples` (graph)."""

    kind: Literal["select", "ask", "graph"]
    variables: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    truth: bool | None = None
    triples: tuple[Triple, ...] = ()


class MemoryReader(Records):
    """Answers about the memory of one project at a time.

    Every answer is in a stated order that does not depend on the order of files. `as_of` takes a datetime or ISO 8601
    text, UTC unless it says otherwise, and a bare date is its midnight: what was recorded by then counts. So does
    `valid_at`, on the world's clock: a memory counts from its valid_from until before its valid_until. Lists show
    active memories (`jidomem.records.active`), valid now unless `valid_at` names a moment; `include_inactive` adds the
    others, and a list of decisions takes `status`: the decisions of that status alone, whether they are active or not.
    """

    def __init__(
        self,
        index: OxigraphIndex,
        playbook: Playbook,
        catch_up: Callable[[str], Version],
        schema: Schema,
        shelved: ListCache | None = None,
        past: Callable[[str, str], OxigraphIndex] | None = None,
        shown: Shown | None = None,
        apart: Apart | None = None,
        remote: RemoteIndex | None = None,
        now: Callable[[], datetime] = clock.now,
        projects: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Read from *index*; *catch_up* brings it up to a project's journal, or raises for a project there is not.

        Long lists are kept in *shelved* for the next process; *past* replays a project to a moment for raw SPARQL, and
        *apart* answers the questions that came with a root, in a process that can be stopped.
        Where there is a *remote* index it answers what it can: the named questions, and SPARQL about the present.
        *schema* has the rules that memories are held to, *shown* tells when and to whom one was shown, *projects* gives
        the projects that there are.
        """
        self.playbook = playbook
        self.index = index
        self._lists = Lists(index, shelved, apart, remote)
        self._ids = Ids(index)
        self._catch_up = catch_up
        self._past = past
        self._schema = schema
        self._shown = shown
        self._now = now
        self._projects = projects
        self.architect = Architect(self, "architect")
        self.planner = Planner(self, "planner")
        self.debugger = Debugger(self, "debugger")
        self.curator = Role(self, "curator")
        self.code = Role(self, "code")
        self.governance = Role(self, "governance")
        self.sessions = Role(self, "session")
        self.ci = Role(self, "ci")

    def judged_by(self, schema: Schema) -> None:
        """Tell of the rules of *schema* from now on."""
        self._schema = schema

    def ask(
        self,
        name: str,
        *,
        project: str | None = None,
        as_of: object = None,
        valid_at: object = None,
        include_inactive: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
        **params: object,
    ) -> Rows:
        """Return the rows of one named query; further parameters go by the names in its header, or in snake_case.

        Without a *project* it is the only one there is. Raises NotFound `unknown_query`, InvalidRequest for a
        parameter that does not fit, and without a project where there are several.
        """
        return self.ask_page(
            name,
            project=project,
            as_of=as_of,
            valid_at=valid_at,
            include_inactive=include_inactive,
            limit=limit,
            cursor=cursor,
            **params,
        ).rows

    def ask_page(
        self,
        name: str,
        *,
        project: str | None = None,
        as_of: object = None,
        valid_at: object = None,
        include_inactive: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
        **params: object,
    ) -> Page:
        """Return up to *limit* rows, and the cursor that gives the next ones as they were when the first was read."""
        self.playbook.get(name)  # before all is brought level for a question that there is not
        project = self._only_project() if project is None else project
        version = self._catch_up(project)
        query = self.playbook.get(name)
        values = self.with_iris(query, project, {_camel(key): value for key, value in params.items()}, as_of)
        values |= _reserved(query, project, as_of, valid_at, include_inactive)
        bindings = query.bind(values)
        question = fingerprint(query, project, bindings)
        start = Cursor.parse(cursor, question) if cursor is not None else None
        if limit is None and start is None:
            rows = self._lists.whole(query, project, _valid(bindings, self._valid_at(query, project, bindings)))
            return Page(self._marked(query, project, bindings, rows, bindings.get("asOf")), None)
        if start is None:
            versions = (version, *(self.index.mark(graph).version for graph in graphs_of(project)))
            newest = max(known.recorded_at or "" for known in versions)  # each stream has commits of its own
            valid = self._valid_at(query, project, bindings)
            start = Cursor(first_moment(bindings, newest), 0, question, valid_at=valid)
        then = _valid({**bindings, "asOf": start.as_of}, start.valid_at)
        page = self._lists.page(query, project, then, limit, start)
        return replace(page, rows=self._marked(query, project, bindings, page.rows, then.get("asOf")))

    def _only_project(self) -> str:
        """Return the project of a root that has one; raises InvalidRequest where there are several, or none."""
        there = self._projects()
        if len(there) != 1:
            named = f"there are the projects {', '.join(there)}" if there else "there is no project yet"
            raise InvalidRequest(f"no project is named, and {named}", hint=f"give project={(there or ['demo'])[0]!r}")
        return there[0]

    def _valid_at(self, query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> Term:
        """Return the moment at which memories are to hold where the caller names none; empty where that is open.

        It is now, or `as_of` where that is earlier: to the next full second, so that the pages of a second are alike.
        """
        is_open = "validAt" in bindings or bindings.get("includeInactive") == boolean(True)
        if is_open or not query.judges_validity or not self._has_dates(project):
            return ""
        moment = self._now()
        whole = moment if not moment.microsecond else moment.replace(microsecond=0) + _SECOND
        return min(bindings["asOf"], date_time(format_timestamp(whole)))

    def _marked(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], rows: Rows, as_of: Term | None
    ) -> Rows:
        """Return *rows* with what their memories are apart from the columns.

        That is the `state` of a task or an error in a list of all kinds, and in `conflicts_with` the memories with
        which one has an unsettled disagreement at *as_of*, which all pages of a list share.
        """
        rows = self._with_validity(query, project, bindings, rows)
        if {"item", "kind", "status"} <= {*query.columns}:
            rows = [row | self._state(project, row) for row in rows]
        column = next((name for name in query.columns if name in _OF_MEMORY), None)
        if column is None or as_of is None or "asOf" not in bindings:
            return rows
        valid_at = plain_value(bindings["validAt"]) if bindings.get("validAt") else None
        known = {row[column] for row in rows}
        rivals = self.conflicts_with(project, known, as_of=plain_value(as_of), valid_at=valid_at)
        return [row | {"conflicts_with": rivals[row[column]]} if row[column] in rivals else row for row in rows]

    def _state(self, project: str, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the state of the task or error that *row* shows; nothing for anything else."""
        has_state = any(self._schema.is_a(iri(row["kind"]), family) for family in _WITH_STATE)
        if not has_state or not _is_memory(row["item"]):
            return {}
        graph, name = graph_iri(project), iri(row["item"])
        state = next((term for link in _STATES for _, _, term in self.index.triples(graph, name, link)), None)
        return {} if state is None else {"state": local_name(state)}

    def conflicts_with(
        self, project: str, items: Collection[str], *, as_of: object = None, valid_at: object = None
    ) -> dict[str, list[str]]:
        """Return those of *items* that are in an unsettled disagreement, each with the memories it disagrees with."""
        query = self.playbook.get("conflicts")
        bindings = query.bind(_reserved(query, project, as_of, valid_at, include_inactive=False))
        bindings = _valid(bindings, self._valid_at(query, project, bindings))
        found: dict[str, set[str]] = {}
        for row in self._lists.disagreements(query, project, bindings, items):
            for one, other in ((row["a"], row["b"]), (row["b"], row["a"])):
                if one in items:
                    found.setdefault(one, set()).add(other)
        return {name: sorted(others) for name, others in found.items()}

    def _with_validity(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], rows: Rows) -> Rows:
        """Return *rows* with the status of memories of all kinds that are listed though they do not hold now."""
        is_judged = not {"item", "status"} <= {*query.columns} or "validAt" in bindings
        if is_judged or bindings.get("includeInactive") != boolean(True) or not self._has_dates(project):
            return rows
        graph, now = graph_iri(project), date_time(format_timestamp(self._now()))
        moment = plain_value(min(bindings.get("asOf", now), now))

        def status(row: Mapping[str, Any]) -> str:
            if row["status"] != ACTIVE or not _is_memory(row["item"]):
                return str(row["status"])
            since, until = ([_moment(each) for _, _, each in self.index.triples(graph, iri(row["item"]), by)]
                            for by in _DATES)  # fmt: skip
            return validity(max(since, default=None), min(until, default=None), moment)

        return [{**row, "status": status(row)} for row in rows]

    def _has_dates(self, project: str) -> bool:
        """Return whether any memory of *project* holds for a time only."""
        graph = graph_iri(project)
        return any(any(self.index.triples(graph, None, date, most=1)) for date in _DATES)

    def about_patterns(self, project: str) -> list[str] | None:
        """Return the memories about files named by a pattern, ended ones too; None where only a look at all tells."""
        self._catch_up(project)
        return self._lists.over(self.playbook.get("patterns"), project)

    def keep_lists(self, projects: Iterable[str]) -> None:
        """Throw away the lists kept on disk, and keep those of *projects* anew that are long."""
        self._lists.discard()
        for project in projects:
            self._catch_up(project)
            self._lists.keep(self.playbook, project)

    def with_iris(
        self, query: NamedQuery, project: str, values: Mapping[str, object], as_of: object = None
    ) -> dict[str, object]:
        """Return *values* with the IRI of each memory, agent and session that is given by a name; raises NotFound."""
        found = {**values}
        for param in query.params:
            value = values.get(param.name)
            if param.type == "item" and param.name in values:
                found[param.name] = memory_detail.resolve(self.index, self._ids, project, value, as_of)
            elif param.folder and isinstance(value, str):
                found[param.name] = named(self.index, project, param.folder, value)
        return found

    def select(self, project: str, sparql: str, *, infer: bool = False, as_of: object = None) -> Rows:
        """Return the rows of a SELECT over the project's graphs: variable to value, None where it is unbound.

        Internal: agents use the named functions, whose answers stay the same when the graph changes its form. With
        *infer*, `a` and `rdf:type` as predicates also match the superclasses of what is stated. Raises what `run`
        raises, and InvalidRequest `malformed_query` for what is no SELECT.
        """
        result = self.run(project, sparql, infer=infer, as_of=as_of)
        if result.kind != "select":
            hint = "write SELECT ... WHERE { ... }"
            raise InvalidRequest("select takes a SELECT query", hint=hint, code="malformed_query")
        return list(result.rows)

    def run(self, project: str, text: str, *, infer: bool = False, as_of: object = None) -> Result:
        """Return the answer to any reading SPARQL over the graphs of one project, the ontology among them.

        With *as_of* it runs on a memory replayed to that moment. Raises PolicyDenied for an update or SERVICE,
        TooLarge (also for a journal too long to be replayed), and InvalidRequest for what cannot be read.
        """
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._then(project, as_of)
        default, named = dataset(code, graphs_of(project))
        asked = sparql.with_superclasses(text) if infer else text
        found = index.query(asked, graphs=default, named=named)
        if isinstance(found, Solutions):
            rows = tuple(dict(zip(found.variables, map(to_value, row), strict=True)) for row in found.rows)
            return Result("select", variables=found.variables, rows=rows)
        return Result("ask", truth=found) if isinstance(found, bool) else Result("graph", triples=found)

    def serialized(
        self,
        project: str,
        text: str,
        *,
        rows_as: str = "json",
        graph_as: str = "turtle",
        as_of: object = None,
        bindings: Mapping[str, Term] | None = None,
        within: AnswerLimits | None = None,
        instead: Dataset | None = None,
    ) -> bytes:
        """Return the answer that `run` gives as bytes, rows and truths in *rows_as*, triples in *graph_as*.

        The variables in *bindings*, which the query selects, stand for these terms; *within* says how much is given,
        *instead* what is asked in place of what FROM and FROM NAMED say.

        Raises what `run` raises, and TooLarge `result_too_large` for an answer larger than is given at once.
        """
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._then(project, as_of)
        default, named = dataset(code, graphs_of(project), instead)
        return index.serialized(
            text,
            graphs=default,
            named=named,
            bindings=bindings,
            rows_as=rows_as,
            graph_as=graph_as,
            within=within or AnswerLimits(),
        ).data

    def _then(self, project: str, as_of: object) -> OxigraphIndex | RemoteIndex:
        """Return what holds a project's memory as it was at a moment: the index, unless one is asked for."""
        self._catch_up(project)
        if as_of is None:
            return self._lists.answering(None)
        moment = plain_value(to_term(as_of, "dateTime", "as_of"))
        if self._past is None:
            raise InvalidRequest("raw SPARQL knows the present only here", hint="leave out as_of")
        return self._past(project, moment)

    def get_memory(self, project: str, iri: str, *, as_of: object = None, valid_at: object = None) -> dict[str, Any]:
        """Return one memory: iri, type, class, status, properties, superseded_by, invalidated_by, commit, recorded_at.

        `status` is one of `jidomem.records.active.STATES`, such as active or superseded, and `properties` maps
        the local name of each property to its values. Raises NotFound with the nearest ids, and for a memory that does
        not hold at *valid_at*.
        """
        self._catch_up(project)
        return memory_detail.load_memory(
            self.index, project, iri, as_of, valid_at, lambda: format_timestamp(self._now())
        )

    def describe(self, project: str, iri: str, *, as_of: object = None, valid_at: object = None) -> list[Triple]:
        """Return the triples about one memory; raises what `get_memory` raises."""
        self._catch_up(project)
        return memory_detail.triples(self.index, project, iri, as_of, valid_at)

    def why(self, project: str, memory_id: str, *, as_of: object = None, valid_at: object = None) -> dict[str, Any]:
        """Return why one memory is there: who said it, when and where, on what it rests and which rules judged it.

        And what it replaced, what replaced it and is now `in_its_place`, what was `derived` from it directly or by way
        of others, its conflicts, and when it was `shown`, None where no read log is kept. The id is one that `resolve`
        takes. Raises what `get_memory` raises.
        """
        return Why(self, self._schema, self._shown, project, as_of=as_of, valid_at=valid_at).explain(memory_id)

    def resolve(self, project: str, short: str, *, as_of: object = None) -> str:
        """Return the IRI that *short* names, among the memories that were known at *as_of*.

        It is an IRI, a unique beginning or end, of 4 characters or more, of an id, or the id the memory had elsewhere;
        of an imported memory also its file, with a line or without, the number of its record, or its title.
        """
        self._catch_up(project)
        return self.find(project, short, as_of=as_of)

    def source_lines(self, project: str, path: str) -> frozenset[int]:
        """Return the lines of the file at *path* with which imported memories begin."""
        self._catch_up(project)
        found = memory_detail.sources(self.index, project)
        return frozenset(each.line for each in found if each.line is not None and each.path == path)

    def find(self, project: str, short: str, *, as_of: object = None) -> str:
        """Return what `resolve` does, among the memories that are indexed already."""
        return memory_detail.resolve(self.index, self._ids, project, short, as_of)


def _is_memory(value: object) -> bool:
    """Return whether *value* is the IRI of a memory: a question of a root may show anything as an item."""
    return isinstance(value, str) and _MEMORY.fullmatch(value) is not None


def _reserved(
    query: NamedQuery, project: str, as_of: object, valid_at: object, include_inactive: bool
) -> dict[str, object]:
    """Return the parameters every door has words for; one the query lacks is passed on, to be refused, if asked for."""
    values: dict[str, object] = {"project": project} if query.takes("project") else {}
    if as_of is not None:
        values["asOf"] = as_of
    if valid_at is not None:
        values["validAt"] = valid_at
    if include_inactive or query.takes("includeInactive"):
        values["includeInactive"] = include_inactive
    return values


def _valid(bindings: Mapping[str, Term], valid_at: Term) -> dict[str, Term]:
    """Return *bindings* with the moment at which memories are to hold, where there is one."""
    return {**bindings, "validAt": valid_at} if valid_at else {**bindings}


def _moment(term: Term) -> str:
    """Return a moment in its one written form; a store may have shortened it."""
    return plain_value(to_term(parse_literal(term).text, "dateTime", "a moment"))


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


_ENDED = "?end jido:hasAssertionStatus jido:Asserted"
_ANY = "jido:supersededBy|jido:invalidatedBy"
_UNLESS = "FILTER NOT EXISTS { ?item %s ?by . ?by jido:hasAssertionStatus jido:Asserted }"
_ASSERTED_FILTER = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Asserted }"
_PROPOSED = "FILTER EXISTS { ?item jido:hasAssertionStatus jido:Proposed }"
#: The proposals that a memory took the place of, as that which accepts one does: they were never active.
_ACCEPTED = "accepted"
#: Each is answered from one index of the store: a million memories take seconds, and minutes in one query of all.
_COUNTED = (
    ("all", "?item a ?kind"),
    ("invalidated", f"?item jido:invalidatedBy ?end ; a ?kind . {_ENDED}"),
    (
        "superseded",
        f"?item jido:supersededBy ?end ; a ?kind . {_ENDED} {_UNLESS % 'jido:invalidatedBy'} {_ASSERTED_FILTER}",
    ),
    (_ACCEPTED, f"?item jido:supersededBy ?end ; a ?kind . {_ENDED} {_UNLESS % 'jido:invalidatedBy'} {_PROPOSED}"),
    ("pending", f"?item jido:hasAssertionStatus jido:Proposed ; a ?kind {_UNLESS % _ANY}"),
    *((status, f"?item jido:decisionStatus {literal(status)} ; a ?kind {_ASSERTED_FILTER} {_UNLESS % _ANY}")
      for status in UNACCEPTED),
)  # fmt: skip
_COUNT = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?kind (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } } GROUP BY ?kind ORDER BY ?kind
"""
_PENDING = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT (COUNT(DISTINCT ?item) AS ?count) WHERE { GRAPH <%s> {
  ?item jido:hasAssertionStatus jido:Proposed .
  FILTER EXISTS { ?item jido:recordedAt ?at FILTER(?at <= %s) }
  FILTER NOT EXISTS {
    ?item jido:supersededBy|jido:invalidatedBy ?end
    FILTER EXISTS { ?end jido:hasAssertionStatus jido:Asserted }
    FILTER EXISTS { ?end jido:recordedAt ?endAt FILTER(?endAt <= %s) }
  }
} }
"""
#: What is kept word for word, and what of it was replaced: each is a range of one index, half a second for a million.
_COUNTED_KINDS = {
    "entries": "?kept a jido:Entry",
    "turns": "?kept a conv:ConversationTurn",
    "replaced": "?newer jido:replaces ?old",
}
_BY_THEN = " . ?%s jido:recordedAt ?at FILTER(?at <= %s)"
_COUNT_ENTRIES = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX conv: <https://jido.ai/ontology/conversation-history#>
SELECT (COUNT(%s) AS ?count) WHERE { GRAPH <%s> { %s } }
"""
_KINDS = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?kind WHERE { ?kind rdfs:subClassOf* jido:MemoryItem }
"""


def counts(reader: MemoryReader, project: str, **moment: Any) -> dict[str, dict[str, int]]:
    """Return how many memories of each kind are in each state at a *moment*, or now: active, superseded, invalidated,
    pending, of which a curator has yet to accept or reject each, and by the status of decisions proposed, rejected,
    deprecated. A proposal that was accepted is counted as the memory that took its place. Validity in the world is not
    judged, but where `valid_at` asks for it.
    """
    if all(each is None for each in moment.values()):
        return _now(reader, project)
    found: dict[str, dict[str, int]] = {}
    for row in reader.ask("counts", project=project, **moment):
        found.setdefault(local_name(row["kind"]), {})[row["status"]] = row["items"]
    return found


def pending(reader: MemoryReader, project: str, *, as_of: object = None) -> int:
    """Return how many proposals are pending at the moment *as_of*, or now."""
    moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")
    (row,) = reader.select(project, _PENDING % (graph_iri(project), moment, moment))
    return int(row["count"])


def count_entries(reader: MemoryReader, project: str, *, as_of: object = None) -> dict[str, int]:
    """Return how many entries and turns the history of *project* holds at the moment *as_of*, or now."""
    moment = None if as_of is None else to_term(as_of, "dateTime", "as_of")
    found = {}
    for what, pattern in _COUNTED_KINDS.items():
        by, counted = ("newer", "DISTINCT ?old") if what == "replaced" else ("kept", "*")
        then = "" if moment is None else _BY_THEN % (by, moment)
        (row,) = reader.select(project, _COUNT_ENTRIES % (counted, graph_iri(project, "history"), pattern + then))
        found[what] = row["count"]
    return {"entries": found["entries"] - found["replaced"], "turns": found["turns"]}


def _now(reader: MemoryReader, project: str) -> dict[str, dict[str, int]]:
    kinds = {row["kind"] for row in reader.select(project, _KINDS)}
    found: dict[str, dict[str, int]] = {}
    for status, pattern in _COUNTED:
        text = _COUNT % ("*" if status == "all" else "DISTINCT ?item", graph_iri(project), pattern)
        for row in reader.select(project, text):
            if row["kind"] in kinds:
                of = found.setdefault(local_name(row["kind"]), {})
                of[status] = of.get(status, 0) + row["count"]
    return {kind: told for kind, of in sorted(found.items()) if (told := _by_status(of))}


def _by_status(of: dict[str, int]) -> dict[str, int]:
    """Return the counts without those of all: what neither ended nor is pending is active."""
    ended = {status: count for status, count in of.items() if status not in ("all", _ACCEPTED)}
    active = of["all"] - sum(ended.values()) - of.get(_ACCEPTED, 0)
    return {"active": active, **ended} if active else ended


def authority(reader: MemoryReader, project: str, policy: Policy, *, as_of: object = None) -> AccessPolicy:
    """Return who may assert, propose or do nothing at all in *project*, on top of what the root's *policy* brings."""
    rows = reader.ask("policy-changes", project=project, as_of=as_of)
    roles = {name: agent.role for name, agent in policy.agents.items()}
    return AccessPolicy(tuple(map(_change, rows)), PRESETS[policy.preset], roles)


def _change(row: dict[str, Any]) -> Change:
    same = {
        name: row[name] for name in ("agent", "kind", "path", "scope", "allows", "confirms", "days", "reason", "by")
    }
    roles: dict[str, Any] = {name: row[name] and local_name(row[name]) for name in ("role", "grants")}
    return Change(**same, **roles, recorded=row["recorded"].isoformat(), node=row["change"])


COLUMNS = ("session", "status", "phase", "agent", "start", "end")
_SESSIONS = """
PREFIX jido: <https://jido.ai/ontology#>
PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#>
SELECT ?session ?status ?phase ?agent ?start ?end WHERE {%s
  ?session a/rdfs:subClassOf* jido:WorkSession ; jido:startedAt ?start ; jido:hasStatus ?opened .
  OPTIONAL { ?session jido:hasPrimaryAgent ?agent }
  OPTIONAL { ?session jido:endedAt ?end }
  OPTIONAL {
    ?moved jido:ofSession ?session ; jido:eventNumber ?n ; jido:toStatus ?now .
    FILTER NOT EXISTS { ?later jido:ofSession ?session ; jido:eventNumber ?m ; jido:toStatus ?x . FILTER(?m > ?n) }
  }
  OPTIONAL {
    ?turned jido:ofSession ?session ; jido:eventNumber ?k ; jido:toPhase ?phase .
    FILTER NOT EXISTS { ?after jido:ofSession ?session ; jido:eventNumber ?l ; jido:toPhase ?y . FILTER(?l > ?k) }
  }
  BIND(COALESCE(?now, ?opened) AS ?status)
} ORDER BY ?start ?session
"""


def sessions(reader: MemoryReader, project: str, *, ended: bool = False) -> Rows:
    """Return the sessions that have not ended, or with *ended* all of them, oldest first."""
    return [row for row in reader.select(project, _SESSIONS % "") if ended or row["end"] is None]


def session(reader: MemoryReader, project: str, name: str) -> dict[str, object]:
    """Return one session, by its name or IRI; raises NotFound when nobody opened it."""
    node = to_term(name if ":" in name else f"{BASE}sessions/{name}", "iri", "session")
    for row in reader.select(project, _SESSIONS % f" VALUES ?session {{ {node} }}"):
        return row
    raise NotFound(f"{project} has no session {name!r}", hint="open it first, or list them: jidomem session list --all")


_STEP = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?source ?from ?by ?status WHERE { GRAPH <%s> { VALUES ?item { %s }
  OPTIONAL { ?item jido:hasSourceType ?source }
  OPTIONAL { { ?item jido:derivedFrom ?from }
    UNION { ?from jido:hasAlternative ?item FILTER(STRSTARTS(STR(?item), CONCAT(STR(?from), "/alternatives/"))) } }
  OPTIONAL { ?item jido:confirmedBy ?by }
  OPTIONAL { ?item jido:hasAssertionStatus ?status }
} } ORDER BY ?item ?source ?from ?by ?status
"""


def trust(reader: MemoryReader, project: str, item: str) -> tuple[str, str]:
    """Return untrusted, ordinary or trusted, and the memory or evidence that it is no more by.

    What a curator has lent their word to is trusted, whatever it was derived from. An alternative is trusted no further
    than its decision. Raises NotFound for no memory.
    """
    start = reader.resolve(project, item)
    levels: dict[str, str] = {}
    waiting = {start}
    while waiting:
        rows = reader.select(project, _STEP % (graph_iri(project), " ".join(map(iri, sorted(waiting)))))
        confirmed = {row["item"] for row in rows if row["by"]}
        for row in rows:
            unsaid = "ordinary" if row["status"] else "trusted"  # evidence without a source takes nothing away
            said = TRUST_OF_SOURCE.get(local_name(row["source"] or ""), unsaid)
            level = "trusted" if row["item"] in confirmed else said
            levels[row["item"]] = min(level, levels.get(row["item"], level), key=TRUST.index)
        waiting = {row["from"] for row in rows if row["from"] and row["item"] not in confirmed} - levels.keys()
    least = min(levels.values(), key=TRUST.index)
    return least, min(node for node, level in levels.items() if level == least)
