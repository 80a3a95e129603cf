"""The answers to named queries: parameters bound, rows listed page by page, and their memories annotated.

Raw SPARQL is asked here too, over the graphs of one project, now or replayed to a moment.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from jidomem.base.clock import format_timestamp
from jidomem.base.regex import lazy
from jidomem.base.words import misspelling_of, slug
from jidomem.errors import InvalidRequest, NotFound, nearest_names
from jidomem.index.results import AnswerLimits, Solutions
from jidomem.index.store import OxigraphIndex
from jidomem.rdf import sparql
from jidomem.rdf.sparql import Dataset, dataset
from jidomem.rdf.statements import to_value
from jidomem.rdf.terms import Term, Triple, boolean, date_time, iri, literal, moment_in, plain_value
from jidomem.rdf.vocab import (
    BASE,
    CLASS_OF_TYPE,
    JIDO,
    MARKER,
    PREFIXES,
    TYPE,
    conv,
    graph_iri,
    graphs_of,
    jido,
    local_name,
)
from jidomem.read import memory_detail
from jidomem.read.lists import Cursor, Lists, Page, fingerprint, first_moment, is_in_order
from jidomem.read.playbook import Playbook, Rows
from jidomem.records.active import ACTIVE, DUE, OUTCOME, OVER, STATES, UNTIL, WAITING, WITHDRAWAL, validity
from jidomem.records.intent import Version
from jidomem.records.named_query import NamedQuery, to_term
from jidomem.schema.ontology import EffectiveRules

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex

#: The most names that a hint lists if none is similar.
_LISTED = 10
#: Folder of the IRIs -> properties whose subjects, and whose objects, are such agents or sessions.
_SUBJECTS = {"agents": ((TYPE, jido("Agent")),), "sessions": ((jido("startedAt"), None),)}
_OBJECTS = {"agents": (jido("saidBy"), jido("entryOf")), "sessions": (conv("associatedWithSession"),)}
#: The same of properties of entries whose values are names as any text.
_TEXTS = {"agents": (), "sessions": (jido("sessionId"),)}
_SECOND = timedelta(seconds=1)
#: The beginnings of an IRI; `urn:x` is no name with a prefix.
_SCHEMES = ("http://", "https://", "urn:")
_PREFIXED_NAME = lazy(r"(?!urn:)[A-Za-z][\w.-]*:[A-Za-z_][\w-]*")
_DATES = (jido("validFrom"), jido("validUntil"))
#: The parameter that restricts a list to memories whose due date is over.
_OVERDUE = "overdueOnly"
#: The keys of the dates of a memory in a row -> its property.
_SHOWN_DATES = {DUE: jido("expiresOn"), UNTIL: jido("validUntil")}
#: The rows from which on the dates of all memories are read at once: one takes 7 us, and all of 80,000 take 100 ms.
_MANY = 10_000
_STATES, _WITH_STATE = tuple(map(jido, memory_detail.STATES_OF_WORK)), (jido("Error"), jido("Task"))
_OUTCOMES = frozenset(map(jido, (*OVER, *WAITING)))
#: The columns with the state of a memory.
_STATUSES = ("status", "before", "after")
#: The key of the status of an inactive memory in a list without a column `status`.
MEMORY_STATUS = "memory_status"


class NamedQueries:
    """The named queries of a playbook, answered for one project at a time."""

    def __init__(
        self,
        index: OxigraphIndex,
        playbook: Playbook,
        lists: Lists,
        catch_up: Callable[[str], Version],
        rules: EffectiveRules,
        now: Callable[[], datetime],
        projects: Callable[[], Sequence[str]],
        default_project: str | None,
    ) -> None:
        """Answer from *lists*, and look up in *index* how the memories of a row are annotated."""
        self._default_project = default_project
        self.index, self.playbook, self._lists = index, playbook, lists
        self._catch_up, self._rules, self._now, self._projects = catch_up, rules, now, projects

    def ask_page(
        self,
        name: str,
        before_batch: Callable[[], None] | None = None,
        /,
        *,
        project: str | None = None,
        as_of: object = None,
        valid_at: object = None,
        include_inactive: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
        **params: object,
    ) -> Page:
        """Return up to *limit* rows, all by default, and the cursor of the next page.

        The options are those of `ask`. All pages of a list show the moment at which the first one was read.
        A long list is read in batches, and an error of *before_batch* ends it.
        """
        self.playbook.get(name)  # an unknown query is refused before the index catches up
        project = self._project() if project is None else project
        version = self._catch_up(project)
        query = self.playbook.get(name)
        values = self.with_iris(query, project, {_camel(key): value for key, value in params.items()}, as_of)
        values |= _common_parameters(query, project, as_of, valid_at, include_inactive)
        bindings = query.bind(values, self.playbook)
        question = fingerprint(query, project, bindings)
        start = Cursor.parse(cursor, question) if cursor is not None else None
        if limit is None and start is None:
            moment = self._default_valid_at(query, project, bindings)
            rows = self._lists.whole(query, project, _at(_listing(query, bindings), moment))
            return Page(self._annotate(query, project, bindings, rows, bindings.get("asOf")), None)
        if start is None:
            versions = [version, *(self.index.mark(graph).version for graph in graphs_of(project))]
            newest = max(each.recorded_at or "" for each in versions)
            moment = self._default_valid_at(query, project, bindings)
            start = Cursor(first_moment(bindings, newest), 0, question, valid_at=moment)
        bound = _at({**_listing(query, bindings), "asOf": start.as_of}, start.valid_at)
        page = self._lists.page(query, project, bound, limit, start, before_batch)
        return page._replace(rows=self._annotate(query, project, bindings, page.rows, start.as_of))

    def batches(self, name: str, size: int = 1_000, /, *, cursor: str | None = None, **options: Any) -> Iterator[Rows]:
        """Yield the rows of `ask`, all as of the first: *size* at a time of a list that is in order, else at once.

        The first batch is empty only if there are no rows.
        """
        limit = None if self.playbook.get(name).list_order is None else size
        while True:
            page = self.ask_page(name, limit=limit, cursor=cursor, **options)
            yield page.rows
            if page.cursor is None:
                return
            cursor, limit = page.cursor, size if is_in_order(page.cursor) else None

    def rows(self, name: str, project: str) -> Rows:
        """Return all present rows of a query, without annotations."""
        self._catch_up(project)
        query, bindings = self._bound(name, project)
        return self._lists.whole(query, project, bindings)

    def newest(
        self, name: str, project: str, count: int, also: Collection[str] = (), **moment: object
    ) -> tuple[Rows, bool]:
        """Return the rows of a list of memories about the *count* recorded last and *also*, and whether it has more.

        They have no annotations. *moment* is as_of and valid_at as in `ask`.
        """
        self._catch_up(project)
        query, bindings = self._bound(name, project, **moment)
        return self._lists.newest(query, project, bindings, count, also)

    def longest_due(self, project: str, count: int, **moment: object) -> Rows:
        """Return the rows of `stale` about at least the *count* memories that are longest due, without annotations."""
        self._catch_up(project)
        query, bindings = self._bound("stale", project, **moment)
        return self._lists.longest_due(query, project, bindings, count)

    def _bound(
        self, name: str, project: str, as_of: object = None, valid_at: object = None
    ) -> tuple[NamedQuery, Mapping[str, Term]]:
        """Return the query of this name, and its parameters for a list of what is active at a moment."""
        query = self.playbook.get(name)
        bindings = query.bind(_common_parameters(query, project, as_of, valid_at, include_inactive=False))
        moment = self._default_valid_at(query, project, bindings)
        return query, {**bindings, "validAt": moment} if moment else bindings

    def counted_at_once(self, name: str, project: str) -> Rows | None:
        """Return the present rows of a query that counts memories; None without an up-to-date search file."""
        self._catch_up(project)
        query, bindings = self._bound(name, project)
        return self._lists.counted_at_once(query, project, bindings)

    def _project(self) -> str:
        """Return the default project, else the only one there is; raises InvalidRequest if there are others."""
        if self._default_project is not None:
            return self._default_project
        projects = self._projects()
        if len(projects) != 1:
            known = f"there are the projects {', '.join(projects)}" if projects else "there is no project yet"
            hint = f"give project={(projects or ['demo'])[0]!r}"
            raise InvalidRequest(f"no project is named, and {known}", hint=hint)
        return projects[0]

    def _default_valid_at(self, query: NamedQuery, project: str, bindings: Mapping[str, Term]) -> Term:
        """Return the moment at which memories have to be valid if the caller gives none; empty if any will do.

        It is now, or `as_of` if that is earlier, rounded up to a second so that requests of one
        second share their cached pages. A query that uses the clock, or lists what is overdue, is always given one.
        """
        if "validAt" in bindings or not query.takes("validAt"):
            return ""
        is_open = bindings.get("includeInactive") == boolean(True) or not query.judges_validity
        if not _needs_moment(query, bindings) and (is_open or not self._has_dates(project)):
            return ""
        moment = self._now()
        whole = moment if not moment.microsecond else moment.replace(microsecond=0) + _SECOND
        return min(bindings["asOf"], date_time(format_timestamp(whole)))

    def _annotate(
        self, query: NamedQuery, project: str, bindings: Mapping[str, Term], rows: Rows, as_of: Term | None
    ) -> Rows:
        """Return *rows* with the annotations of their memories beside the columns of the query.

        They are its dates (`due`, `until`), the validity, the `state` and the `outcome` of tasks and errors, the
        `memory_status` of inactive memories in a list without it, and `conflicts_with`: the memories in an unsettled
        disagreement with one at *as_of*, the moment that all pages of a list share.
        """
        if "kind" in query.columns:
            rows = [*map(_as_withdrawal, rows)]
        rows = self._with_validity(query, project, bindings, rows)
        if {"item", "kind", "status"} <= {*query.columns}:
            rows = [row | self._state(project, row) for row in rows]
        column = query.memory_column
        if column is not None and DUE not in query.columns:
            rows = self._with_dates(project, rows, column)
        if column is not None:
            rows = self._with_outcomes(project, rows, column, as_of)
        if column is None or as_of is None or "asOf" not in bindings:
            return rows
        if bindings.get("includeInactive") == boolean(True):
            moment = self._moment_of(bindings)
            rows = [row | self._memory_status(project, row, row[column], as_of, moment) for row in rows]
        valid_at = plain_value(bindings["validAt"]) if bindings.get("validAt") else None
        items = {row[column] for row in rows}
        rivals = self.conflicts_with(project, items, as_of=plain_value(as_of), valid_at=valid_at)
        return [row | {"conflicts_with": rivals[row[column]]} if row[column] in rivals else row for row in rows]

    def _with_dates(self, project: str, rows: Rows, column: str) -> Rows:
        """Return *rows* with the dates of the memories that have them; a column of the query stays as it is."""
        graph, dates = graph_iri(project), dict[object, dict[str, Any]]()
        for key, property_ in _SHOWN_DATES.items():
            if len(rows) >= _MANY:
                found = self.index.triples(graph, None, property_)
            elif not any(self.index.triples(graph, None, property_, most=1)):
                continue
            else:
                items = (iri(str(row[column])) for row in rows if _may_be_memory(row[column]))
                found = (triple for item in items for triple in self.index.triples(graph, item, property_))
            for item, _, moment in found:
                dates.setdefault(plain_value(item), {})[key] = moment_in(moment)
        return [{**row, **{key: each for key, each in dates.get(row[column], {}).items() if key not in row}}
                for row in rows] if dates else rows  # fmt: skip

    def _with_outcomes(self, project: str, rows: Rows, column: str, as_of: Term | None) -> Rows:
        """Return *rows* with the outcomes of the tasks and errors in *column* that ended or wait."""
        graph, names = graph_iri(project), {row[column] for row in rows}
        items = [None] if len(rows) >= _MANY else [iri(str(name)) for name in names if _may_be_memory(name)]
        read = (self.index.triples(graph, item, link) for item in items for link in _STATES)
        ended = {plain_value(item) for triples in read for item, _, state in triples if state in _OUTCOMES}
        moment = None if as_of is None else plain_value(as_of)
        outcomes = {item: memory_detail.outcome(self.index, project, item, moment) for item in names & ended}
        return [{**row, OUTCOME: outcomes[row[column]]} if outcomes.get(row[column]) else row for row in rows]

    def _with_validity(self, query: NamedQuery, project: str, bindings: Mapping[str, Term], rows: Rows) -> Rows:
        """Return *rows* with the status of memories that are not valid now, in lists of all kinds and in histories."""
        if {"item", "before", "after"} <= {*query.columns} and "validAt" not in bindings and self._has_dates(project):
            after, before = self._moment_of(bindings), plain_value(bindings["since"])
            return [{**row, "after": self._status(project, row["after"], row["item"], after),
                     "before": row["before"] and self._status(project, row["before"], row["item"], before)}
                    for row in rows]  # fmt: skip
        column = "entry" if "entry" in query.columns else "item"
        has_status = {column, "status"} <= {*query.columns}
        lists_all = bindings.get("includeInactive") == boolean(True) or not query.takes("includeInactive")
        if not (has_status and lists_all and self._has_dates(project)):
            return rows
        moment = self._moment_of(bindings)
        return [{**row, "status": self._status(project, row["status"], row[column], moment)} for row in rows]

    def _moment_of(self, bindings: Mapping[str, Term]) -> str:
        """Return the moment at which the status of listed memories is judged: `valid_at`, now or an earlier `as_of`."""
        if valid_at := bindings.get("validAt"):
            return plain_value(valid_at)
        now = date_time(format_timestamp(self._now()))
        return plain_value(min(bindings.get("asOf", now), now))

    def _memory_status(
        self, project: str, row: Mapping[str, Any], item: object, as_of: Term, moment: str
    ) -> dict[str, str]:
        """Return the status of an inactive memory whose *row* has none; empty for another one."""
        if row.get("status") in (*STATES, WITHDRAWAL) or not _may_be_memory(item):
            return {}
        try:
            status = memory_detail.load_memory(self.index, project, str(item), plain_value(as_of))["status"]
        except NotFound:  # the row of a query of the root may be about anything
            return {}
        status = self._status(project, status, item, moment)
        return {} if status == ACTIVE else {MEMORY_STATUS: status}

    def _status(self, project: str, status: object, entry: object, moment: str) -> str:
        if status != ACTIVE or not _may_be_memory(entry):
            return str(status)
        graph, item = graph_iri(project), iri(str(entry))
        since, until = (
            [memory_detail.canonical_moment(term) for _, _, term in self.index.triples(graph, item, date)]
            for date in _DATES
        )
        return validity(max(since, default=None), min(until, default=None), moment)

    def _state(self, project: str, row: Mapping[str, Any]) -> dict[str, str]:
        """Return the state of the task or error in *row*; empty for another kind."""
        has_state = any(self._rules.schema.is_a(iri(row["kind"]), family) for family in _WITH_STATE)
        if not has_state or not _may_be_memory(row["item"]):
            return {}
        graph, item = graph_iri(project), iri(row["item"])
        states = (term for link in _STATES for _, _, term in self.index.triples(graph, item, link))
        state = next(states, None)
        return {} if state is None else {"state": local_name(state)}

    def _has_dates(self, project: str) -> bool:
        """Return whether a memory of *project* is valid for a limited time."""
        graph = graph_iri(project)
        return any(any(self.index.triples(graph, None, date, most=1)) for date in _DATES)

    def conflicts_with(
        self, project: str, items: Collection[str], *, as_of: object = None, valid_at: object = None
    ) -> dict[str, list[str]]:
        """Return those of *items* in an unsettled disagreement, each with the memories it disagrees with."""
        query, bindings = self._bound("conflicts", project, as_of, valid_at)
        rivals: dict[str, set[str]] = {}
        for row in self._lists.disagreements(query, project, bindings, items):
            for one, other in ((row["a"], row["b"]), (row["b"], row["a"])):
                if one in items:
                    rivals.setdefault(one, set()).add(other)
        return {name: sorted(others) for name, others in rivals.items()}

    def about_patterns(self, project: str) -> list[str] | None:
        """Return the memories about files that a pattern names, inactive ones too; None if no list has them."""
        self._catch_up(project)
        return self._lists.over(self.playbook.get("patterns"), project)

    def with_iris(
        self, query: NamedQuery, project: str, values: Mapping[str, object], as_of: object = None
    ) -> dict[str, object]:
        """Return *values* with the IRI of each memory, agent, session and kind given by a name, and of prefixed names.

        Raises NotFound, and InvalidRequest for a kind that is none or an undeclared prefix.
        """
        resolved = {**values}
        for param in query.params:
            value = values.get(param.name)
            if param.type == "item" and param.name in values:
                resolved[param.name] = memory_detail.resolve(self.index, self._lists.ids, project, value, as_of)
            elif param.folder and isinstance(value, str) and self._is_name(value):
                resolved[param.name] = resolve_name(self.index, project, param.folder, value)
            elif param.type == "kind" and isinstance(value, str):
                resolved[param.name] = self._kind(value, param.name)
            elif param.type == "iri" and isinstance(value, str) and _PREFIXED_NAME.fullmatch(value):
                resolved[param.name] = self._expanded(value, param.name)
        return resolved

    def _is_name(self, text: str) -> bool:
        """Return whether *text* is the name of an agent or session, which may have a colon, and no IRI."""
        prefix, colon, _ = text.partition(":")
        is_iri = text.startswith(_SCHEMES) or (colon and prefix in {**PREFIXES, **self._rules.schema.prefixes})
        return not is_iri and bool(slug(text))

    def _expanded(self, name: str, param: str) -> str:
        """Return the IRI of the prefixed *name*; raise InvalidRequest if its prefix is undeclared."""
        prefix, _, local = name.partition(":")
        spaces = {**PREFIXES, **self._rules.schema.prefixes}
        if prefix in spaces:
            return spaces[prefix] + local
        near = misspelling_of(prefix, spaces)
        message = f"{param}={name!r:.200} has an undeclared prefix" + (
            f"; did you mean '{near}:{local}'?" if near else ""
        )
        raise InvalidRequest(message, hint=f"give an IRI, or a name with a prefix of {', '.join(spaces)}")

    def _kind(self, name: str, param: str) -> str:
        """Return the IRI of a kind of memory, or *name* if it is the IRI of a class of another vocabulary."""
        schema = self._rules.schema
        if (cls := schema.kind_named(name)) is not None:
            return plain_value(cls)
        if name.startswith(_SCHEMES):
            return name
        kinds = [*map(schema.compact, schema.all_own_kinds), *CLASS_OF_TYPE]
        near = misspelling_of(name, kinds)
        message = f"{param}={name!r:.200} is not a kind of memory" + (f"; did you mean {near!r}?" if near else "")
        raise InvalidRequest(message, hint=f"give one of {', '.join(kinds)}, or the IRI of another class")


def resolve_name(index: OxigraphIndex, project: str, folder: str, name: str) -> str:
    """Return the IRI of the agent or session of *project* with this name or IRI; of a session of entries, its name.

    Raises NotFound with the nearest names, InvalidRequest for an invalid IRI.
    """
    if not isinstance(name, str):
        raise InvalidRequest(
            f"{folder[:-1]}={name!r:.200} is not a name", hint=f"give a name, or the IRI, of the {folder[:-1]}"
        )
    plain, graphs = name.removeprefix(f"{BASE}{folder}/"), graphs_of(project)
    last = slug(plain)
    with suppress(ValueError):  # half a surrogate pair, or invalid percent encoding
        given = ((graph, of, literal(plain)) for graph in graphs for of in _TEXTS[folder])
        if any(any(index.triples(graph, None, of, text, most=1)) for graph, of, text in given):
            return plain
        for node in nodes_of(folder, plain):
            for graph in graphs:
                if any(index.triples(graph, None, None, node, most=1)) or any(index.triples(graph, node, most=1)):
                    return plain_value(node)
    known = sorted(_names(index, project, folder))
    near = nearest_names(last, known, 3)
    if near:
        hint = f"did you mean {' or '.join(near)}?"
    else:
        more = f", and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
        hint = f"there are: {', '.join(known[:_LISTED])}{more}" if known else "nothing is recorded yet"
    raise NotFound(f"{project} has no {folder[:-1]} {name!r:.200}", hint=hint)


def nodes_of(folder: str, name: str) -> Iterator[Term]:
    """Yield the IRIs that an agent or session of this *name* may have; raises InvalidRequest for an invalid one."""
    if name.startswith(_SCHEMES):
        yield to_term(name, "iri", folder[:-1])
        return
    yield iri(f"{BASE}{folder}/{slug(name)}")
    with suppress(InvalidRequest):
        yield to_term(name, "iri", folder[:-1])


def _names(index: OxigraphIndex, project: str, folder: str) -> set[str]:
    """Return the plain names of all agents, or sessions, of *project*, those of its entries too."""
    nodes, texts = set[str](), set[str]()
    for graph in graphs_of(project):
        for predicate, value in _SUBJECTS[folder]:
            nodes.update(plain_value(node) for node, _, _ in index.triples(graph, None, predicate, value))
        for predicate in _OBJECTS[folder]:
            nodes.update(plain_value(node) for _, _, node in index.triples(graph, None, predicate))
        for predicate in _TEXTS[folder]:
            texts.update(plain_value(text) for _, _, text in index.triples(graph, None, predicate))
    start = f"{BASE}{folder}/"
    return texts | {node.removeprefix(start) for node in nodes if node.startswith(start)}


def text_columns(query: NamedQuery, *, include_inactive: bool) -> tuple[str, ...]:
    """Return the columns of *query* as CSV or TSV: also `memory_status` if inactive memories may be listed."""
    has_status = "status" in query.columns and "task" not in query.columns  # a task has a status of its own
    is_added = include_inactive and query.memory_column and not has_status
    return (*query.columns, MEMORY_STATUS) if is_added else query.columns


def _common_parameters(
    query: NamedQuery, project: str, as_of: object, valid_at: object, include_inactive: bool
) -> dict[str, object]:
    """Return the parameters that all queries share; a given one that *query* lacks is passed on to be refused."""
    values: dict[str, object] = {"project": project} if query.takes("project") else {}
    if as_of is not None:
        values["asOf"] = as_of
    if valid_at is not None:
        values["validAt"] = valid_at
    if include_inactive or query.takes("includeInactive"):
        values["includeInactive"] = include_inactive
    return values


def _at(bindings: Mapping[str, Term], valid_at: Term) -> dict[str, Term]:
    """Return *bindings* with the moment at which memories have to be valid, unless it is empty."""
    return {**bindings, "validAt": valid_at} if valid_at else {**bindings}


def _needs_moment(query: NamedQuery, bindings: Mapping[str, Term]) -> bool:
    """Return whether *query* compares the moment of validity also where all memories are listed."""
    return not query.is_steady or bindings.get(_OVERDUE) == boolean(True)


def _listing(query: NamedQuery, bindings: Mapping[str, Term]) -> Mapping[str, Term]:
    """Return *bindings* without the moment of validity, which is only that of their status, if all are listed."""
    is_open = bindings.get("includeInactive") == boolean(True) and not _needs_moment(query, bindings)
    return {name: term for name, term in bindings.items() if name != "validAt"} if is_open else bindings


def _as_withdrawal(row: dict[str, Any]) -> dict[str, Any]:
    """Return *row* with the status withdrawal for that of a marker that would be active."""
    if row["kind"] != JIDO + MARKER:
        return row
    return {name: WITHDRAWAL if name in _STATUSES and value == ACTIVE else value for name, value in row.items()}


def _may_be_memory(value: object) -> bool:
    """Return whether *value* may name a memory: an author may choose any IRI, and a query of a root show anything."""
    return isinstance(value, str) and memory_detail.IRI.fullmatch(value) is not None


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


class Result(NamedTuple):
    """The answer to raw SPARQL: rows of `variables` (select), `truth` (ask) or `triples` (graph)."""

    kind: Literal["select", "ask", "graph"]
    variables: tuple[str, ...] = ()
    rows: tuple[dict[str, Any], ...] = ()
    truth: bool | None = None
    triples: tuple[Triple, ...] = ()


class RawSparql:
    """Read-only SPARQL over the graphs of one project at a time, including the ontology."""

    def __init__(
        self,
        index: OxigraphIndex,
        remote: RemoteIndex | None,
        catch_up: Callable[[str], Version],
        past: Callable[[str, str], OxigraphIndex] | None,
    ) -> None:
        """Query *index*, or *remote* if it answers ad-hoc queries; *past* replays a project to a moment."""
        self.index, self._remote, self._catch_up, self._past = index, remote, catch_up, past

    def run(self, project: str, text: str, *, infer: bool = False, as_of: object = None) -> Result:
        """Return the answer to any reading SPARQL over the graphs of one project, the ontology among them.

        With *as_of* it runs on a memory replayed to that moment. Raises PolicyDenied for an update
        or SERVICE, TooLarge (also for a journal too long to be replayed), and InvalidRequest for a
        malformed query.
        """
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._index_at(project, as_of)
        default, named = dataset(code, graphs_of(project))
        query = sparql.with_superclasses(text) if infer else text
        answer = index.query(query, graphs=default, named=named)
        if isinstance(answer, Solutions):
            rows = tuple(dict(zip(answer.variables, map(to_value, row), strict=True)) for row in answer.rows)
            return Result("select", variables=answer.variables, rows=rows)
        return Result("ask", truth=answer) if isinstance(answer, bool) else Result("graph", triples=answer)

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

        The variables in *bindings*, which the query selects, have these terms; *within* limits the
        size of the answer, *instead* replaces the FROM and FROM NAMED of the query.

        Raises what `run` raises, and TooLarge `result_too_large` for an answer beyond the limits.
        """
        text = sparql.without_service_prefixes(text)
        code = sparql.check(text)
        index = self._index_at(project, as_of)
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

    def _index_at(self, project: str, as_of: object) -> OxigraphIndex | RemoteIndex:
        """Return the index with the memory of *project* now, or replayed to *as_of*."""
        self._catch_up(project)
        if as_of is None:
            return self._remote if self._remote is not None and self._remote.answers(None) else self.index
        moment = plain_value(to_term(as_of, "dateTime", "as_of"))
        if self._past is None:
            raise InvalidRequest("raw SPARQL can only query the present here", hint="leave out as_of")
        return self._past(project, moment)
