"""The named query: one question in one file with a typed header; reads the header and binds parameters."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple, Protocol

from jidomem.base.clock import format_timestamp, impossible_day, parse_moment
from jidomem.base.json_values import is_unicode
from jidomem.base.regex import lazy
from jidomem.base.words import misspelling_of
from jidomem.errors import Failed, InvalidRequest
from jidomem.rdf.statements import to_iri
from jidomem.rdf.terms import XSD, Term, boolean, date_time, decimal, integer, iri, literal, plain_value
from jidomem.rdf.vocab import BASE, CLASS_OF_TYPE, TYPE, TYPE_ALIASES, jido
from jidomem.records.active import STATUSES

#: The default of `asOf`: all that is recorded.
FOREVER = "9999-12-31T23:59:59.999999Z"
#: The default of a parameter whose variable stays unbound.
UNBOUND = ""
#: The default of `validAt` in a query of active memories only: the caller fills in the moment.
NOW = "now"
TYPES = ("iri", "item", "string", "integer", "decimal", "boolean", "dateTime", "project", "status", "kind")
#: The default of a parameter of the type `status`: no filter.
ANY = "any"

_HEADER = lazy(r"#\+\s*(\w+)\s*:\s*(.*?)\s*")
_KEYS = ("summary", "params", "columns", "order")
_OPTIONAL_KEYS = ("over", "unless", "due", "contains", "last", "inactive")
#: The names of columns that show memories in every query.
_MEMORY_COLUMNS = (
    "item", "decision", "task", "err", "conv", "fact", "lesson", "risk", "rule", "root", "subject",
    "related", "derived",
)  # fmt: skip
#: The variable of a memory that a query leaves out once it has ended.
_ENDED = lazy(r"\?(\w+)\s+jido:(?:supersededBy|invalidatedBy|hasAssertionStatus)\b")
_UNSTEADY = lazy(r"\b(NOW|RAND|UUID|STRUUID|BNODE)\s*\(", re.IGNORECASE)
_WHERE = lazy(r"^(?!#).*\bWHERE \{", re.MULTILINE)
_OVER = lazy(r"(?:\{ )?\?(\w+)\s.*")
_PAIRS = lazy(r"\?\w+( \?\w+)+")
#: The start of a pattern, and its further parts.
_NAME = r"(?:\w*:\w+|<[^<>\s]+>)"
_OPENING = lazy(
    rf"\?(?P<variable>\w+) (?P<path>a|a/rdfs:subClassOf\*|{_NAME}(?:\|{_NAME})*) (?P<value>\?\w+|{_NAME})(?![\w:])"
)
_PART = lazy(
    r" (?P<how>;|FILTER NOT EXISTS|OPTIONAL)(?: \{ \?(?P<of>\w+))? "
    rf"(?P<name>{_NAME}) (?P<value>\?\w+|{_NAME})(?: \}})?(?= |$)"
)
_PATH = lazy(rf"{_NAME}(?:\|{_NAME})*")
_UNLESS = lazy(rf"\?\w+ {_NAME} \?(\w+)")
_CONTAINS = lazy(r"\?(\w+) \?(\w+)")
_UNION = lazy(r"\{ [^{}]* \}(?: UNION \{ [^{}]* \})+")
_TOKEN = lazy(r'"(?:[^"\\\n]|\\.)*"|<[^<>"{}|^`\\\s]*>|#.*|[{}]|\w+|\S')
#: A term that stays as it is in a query: it has no escapes, which SPARQL decodes first, nor parts that it resolves.
_SIMPLE_IRI = r"<[a-z][a-z0-9+-]*:(?:[\w#?=&@+~:-]|/(?!\.)|\.)*>"
_WRITABLE = lazy(rf'{_SIMPLE_IRI}|"[^"\\\n\r]*"(?:\^\^{_SIMPLE_IRI})?', re.ASCII)
_PREFIX = lazy(r"PREFIX (\w*): <([^<>]*)>")
_PARAM = lazy(r"([A-Za-z]\w*)(?::([A-Za-z]+))?(?:=(\S+))?")
#: The parameters that have the same type and default in every query.
_WELL_KNOWN = {"project": ("project", None), "asOf": ("dateTime", FOREVER), "validAt": ("dateTime", UNBOUND)}
_PROJECTION = lazy(r"\bSELECT\b(.*?)(?:\bWHERE\b|\{)", re.IGNORECASE | re.DOTALL)
_DECLARED = lazy(r"\s*(?:PREFIX|BASE)\b", re.IGNORECASE)
_DECIMAL = lazy(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})")
_IRI = lazy(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_PROJECT = lazy(rf"(?:{re.escape(BASE)}projects/)?([a-z0-9][a-z0-9_-]{{0,63}})")


class QueryParameter(NamedTuple):
    """A parameter: its name, its type and, if it is optional, its default: a term, UNBOUND, or NOW.

    `variable` is its variable in the query: its name, but `?ofStatus` for the type `status`, which is also a column.
    """

    name: str
    type: str
    default: Term | None = None
    variable: str = ""

    @property
    def folder(self) -> str:
        """Return the folder of the IRIs of agents or sessions, which have names; empty for other parameters."""
        return FOLDERS.get(self.name, "") if self.type == "iri" else ""

    def __str__(self) -> str:
        """Return the parameter as callers write it: its name in snake case, and its type."""
        kind = "name" if self.folder else self.type
        return snake(self.name) if self.name in _WELL_KNOWN else f"{snake(self.name)}:{kind}"


class ListOrder(NamedTuple):
    """The candidates of a list in the order of its rows: the pattern of `over`, which starts with the listed variable.

    The pattern matches at least the nodes that the query can show, by statements about a node or by conditions that
    can only remove it later. Rows are sorted by that `variable`, or first by a moment `time`. The candidates are
    inserted at the offset `opening` of the text, in place of the text up to `closing`, and at the offsets `branches`.

    With `pairs` the list has disagreements (`jidomem.index.projection`), which no pattern finds in time: these
    variables are two memories, or only the other one in a query about one memory, and the kind of the disagreement.

    With `unless`, `?what property ?variable`, the query excludes nodes at which this property of an active memory
    points. With `due`, properties with moments, it excludes nodes of which all these moments are after `?validAt`. With
    `contains`, only nodes that contain a text are asked for. A list that `is_requested` has a parameter in its pattern:
    its nodes are not stored, but those of each request are read by a query of the pattern alone.
    """

    variable: str
    time: str | None
    newest_first: bool
    pattern: str
    prologue: str
    opening: int
    closing: int
    pairs: tuple[str, ...] = ()
    unless: str = ""
    contains: bool = False
    due: str = ""
    branches: tuple[int, ...] = ()
    is_requested: bool = False

    @property
    def is_of_commits(self) -> bool:
        """Return whether the list has commits, of all streams, as the pattern asks for the stream."""
        return "jido:inStream" in self.pattern

    @property
    def is_of_changes(self) -> bool:
        """Return whether the list has the memories recorded or ended after `?since`, as the pattern asks for that."""
        return "?news > ?since" in self.pattern

    @property
    def is_of_nodes(self) -> bool:
        """Return whether the list has nodes that match the pattern at any request, neither commits nor pairs."""
        return not (self.pairs or self.is_of_commits or self.is_of_changes or self.is_requested)

    @property
    def proposals(self) -> bool:
        """Return whether proposals are listed too, as the pattern asks for the assertion status."""
        return "hasAssertionStatus" in self.pattern

    @property
    def follows_evidence(self) -> bool:
        """Return whether the end of its evidence lists a node, as the pattern asks for that."""
        return "jido:derivedFrom ?" in self.pattern and "jido:invalidatedBy" in self.pattern

    @property
    def pointer(self) -> Term | None:
        """Return the property by which an active memory excludes its value; None without one."""
        return _expanded(self.unless.split(" ")[1], self.prologue) if self.unless else None

    @property
    def due_properties(self) -> tuple[Term, ...]:
        """Return the properties of `due`."""
        return tuple(_expanded(name, self.prologue) for name in self.due.split("|") if name)

    @property
    def openings(self) -> tuple[Opening, ...] | None:
        """Return the statements of which each listed node has at least one; None for a pattern of another form."""
        return _openings(self.variable, self.pattern, self.prologue)

    @property
    def conditions(self) -> NodeConditions | None:
        """Return the conditions for a node to be listed; None where only the engine can decide."""
        return _conditions(self.variable, self.time, self.pattern, self.prologue)


class ListSource(Protocol):
    """The lists that are kept in order: their orders, and a digest that is another one if an order is."""

    def orders(self) -> list[ListOrder]:
        """Return the order of each list."""

    def orders_digest(self) -> str:
        """Return the digest; it is compared at each read of a list."""


#: Properties, and the value of one of them, None for any; a value of `a` includes its subclasses.
Opening = tuple[tuple[Term, ...], Term | None]


class NodeConditions(NamedTuple):
    """The properties that a node has, with a value or None for any, those that it lacks, and its time property.

    A node without a time is listed, too.
    """

    has: tuple[tuple[Term, Term | None], ...] = ()
    lacks: tuple[Term, ...] = ()
    time: Term | None = None

    def times(self, statements: Mapping[Term, Sequence[Term]]) -> list[Term | None]:
        """Return the times of a node with these *statements*; an empty list for a node that is not listed."""
        has_all = all(
            name in statements if value is None else value in statements.get(name, ()) for name, value in self.has
        )
        if not has_all or any(name in statements for name in self.lacks):
            return []
        return [*(statements.get(self.time, ()) if self.time else ())] or [None]


@lru_cache(maxsize=256)
def _is_steady(text: str) -> bool:
    return not _UNSTEADY.search(text)


@lru_cache(maxsize=256)
def _assigned(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\bAS\s+[?$](\w+)", text, re.IGNORECASE))


@lru_cache(maxsize=256)
def _group(text: str) -> int | None:
    """Return the offset after the opening of the pattern of a query; None if the pattern is a subquery."""
    tokens = (token for token in _TOKEN.finditer(text) if not token[0].startswith("#"))
    place = next((token.end() for token in tokens if token[0] == "{"), None)
    return None if next(tokens, [""])[0].upper() == "SELECT" else place


@lru_cache(maxsize=256)
def _openings(variable: str, pattern: str, prologue: str) -> tuple[Opening, ...] | None:
    parts = pattern.strip("{ }").split(" } UNION { ") if _UNION.fullmatch(pattern) else [pattern]
    openings: list[Opening] = []
    for part in parts:
        match = _OPENING.match(part)
        if match is None or match["variable"] != variable:
            return None
        path = match["path"].removesuffix("/rdfs:subClassOf*").split("|")
        value = None if match["value"].startswith("?") else _expanded(match["value"], prologue)
        openings.append((tuple(_expanded(name, prologue) for name in path), value))
    return tuple(openings)


@lru_cache(maxsize=256)
def _conditions(variable: str, time: str | None, pattern: str, prologue: str) -> NodeConditions | None:
    opening = _OPENING.match(pattern)
    if opening is None or opening["variable"] != variable or opening["value"] == f"?{time}":
        return None
    has: list[tuple[Term, Term | None]] = []
    lacks, time_name, offset = list[Term](), None, opening.end()
    while part := _PART.match(pattern, offset):
        node, value, offset = part["of"] or variable, part["value"], part.end()
        if node != variable or (value.startswith("?") and len(re.findall(rf"\{value}\b", pattern)) > 1):
            return None
        name = _expanded(part["name"], prologue)
        if value == f"?{time}":
            time_name = name
        if part["how"] == ";":
            has.append((name, None if value.startswith("?") else _expanded(value, prologue)))
        elif part["how"] == "FILTER NOT EXISTS":
            lacks.append(name)
    if offset < len(pattern) or bool(time) != bool(time_name):
        return None
    return NodeConditions(tuple(has), tuple(lacks), time_name)


def _expanded(name: str, prologue: str) -> Term:
    if name == "a" or name.startswith("<"):
        return TYPE if name == "a" else name
    prefix, _, local = name.partition(":")
    return iri(dict(_PREFIX.findall(prologue)).get(prefix, prefix) + local)


class TextCondition(NamedTuple):
    """The condition that the text or the topic of the memory `variable` contains the value of `parameter`.

    The query decides again about those that meet it.
    """

    variable: str
    parameter: str


class NamedQuery(NamedTuple):
    """One question: its summary, parameters, columns, and the order of its rows (`-` for newest first).

    With `last`, an order by a node alone, the rows of the part of the query that opens with its pattern come last, in
    the order of these nodes; some of them are inserted there. A query with `is_isolated` is of a root and may not
    terminate, so it runs in a process that can be stopped. With `judges_inactive` a gate is about every memory.
    `memory_column` has the memory that a row is about: the first column with a usual name, or, in a query with the
    parameter `includeInactive`, with the variable of a memory that may have ended. It is None in other queries.
    """

    name: str
    role: str
    summary: str
    params: tuple[QueryParameter, ...]
    columns: tuple[str, ...]
    order: tuple[str, ...]
    text: str
    list_order: ListOrder | None = None
    contains: TextCondition | None = None
    last: ListOrder | None = None
    is_isolated: bool = False
    judges_inactive: bool = False
    memory_column: str | None = None

    def takes(self, name: str) -> bool:
        """Return whether the query has a parameter of that name."""
        for param in self.params:  # noqa: SIM110 - a generator would be a call for each parameter
            if name in (param.name, param.variable):
                return True
        return False

    @property
    def judges_validity(self) -> bool:
        """Return whether memories that are not valid now are left out by default."""
        return any(param.name == "validAt" and param.default == NOW for param in self.params)

    @property
    def is_steady(self) -> bool:
        """Return whether equal memories give equal answers: the query uses no clock and no randomness."""
        return _is_steady(self.text)

    def among(self, candidates: str) -> str:
        """Return the text of the query, restricted to *candidates*: a VALUES clause."""
        order = self.list_order or self.last
        assert order is not None
        parts, start = [self.text[: order.opening]], order.closing
        for branch in order.branches:
            parts.append(self.text[start:branch])
            start = branch
        return f" {candidates} ".join((*parts, self.text[start:]))

    def nodes(self, bindings: Mapping[str, Term]) -> NamedQuery | None:
        """Return the query for the nodes of a list that `is_requested`; None if a value cannot be in its text."""
        order = self.list_order
        assert order is not None
        values = {name: term for name, term in bindings.items() if re.search(rf"\?{name}\b", order.pattern)}
        if not all(map(_WRITABLE.fullmatch, values.values())):
            return None
        pattern = re.sub(r"\?(\w+)", lambda name: values.get(name[1], name[0]), order.pattern)
        columns = (order.variable, order.time or order.variable)
        text = f"{order.prologue} SELECT {' '.join(f'?{name}' for name in {*columns})} WHERE {{ {pattern} }}"
        return self._replace(text=text, params=(), columns=columns)

    def with_values(self, bindings: Mapping[str, Term]) -> str:
        """Return the text of the query with the values of its parameters: the engine plans joins by the text alone.

        All variables have to be bound beside that: the text lacks the project, by which nearly all memories are
        selected, values that need escapes, and parameters that a query of a root assigns.
        """
        place = _group(self.text)
        values = {
            param.variable: bindings[param.variable]
            for param in self.params
            if param.type != "project" and param.variable not in _assigned(self.text)
            and _WRITABLE.fullmatch(bindings.get(param.variable, ""))
        }  # fmt: skip
        if place is None or not values:
            return self.text
        names = " ".join(f"?{name}" for name in values)
        return f"{self.text[:place]} VALUES ({names}) {{ ({' '.join(values.values())}) }}{self.text[place:]}"

    def bind(self, values: Mapping[str, object], queries: Container[str] = ()) -> dict[str, Term]:
        """Return a term for every parameter, except one without value and default.

        Raises InvalidRequest for a parameter that is missing, unknown or of another type; it names the one of *queries*
        that lists the requested rows, such as completed-tasks for open-tasks with the status Completed.
        """
        known = [param.name for param in self.params]
        for name in values:
            if name not in known:
                missing = [param.name for param in self.params if param.default is None and param.name not in values]
                free = [each for each in (*known, "limit", "cursor") if each not in values]
                near = missing[:1] if len(missing) == 1 else [*filter(None, [misspelling_of(name, free)])]
                takes = ", ".join(snake(each) for each in (*known, "limit", "cursor") if each != "project")
                hint = f"did you mean {snake(near[0])!r}?" if near else f"it takes {takes}"
                if (other := f"{values[name]}-{self.name.partition('-')[2]}".lower()) in queries:
                    hint = f"the query {other} has these; {self.name} takes {takes}"
                raise InvalidRequest(f"{self.role}/{self.name} has no parameter {snake(name)!r:.200}", hint=hint)
        bound = {param.variable: self._bound(param, values) for param in self.params}
        if any(param.type == "status" and bound[param.variable] != UNBOUND for param in self.params):
            bound["includeInactive"] = boolean(True)  # inactive memories of this status are requested
        return {name: term for name, term in bound.items() if term not in (UNBOUND, NOW)}

    def _bound(self, param: QueryParameter, values: Mapping[str, object]) -> Term:
        if param.name in values:
            return to_term(values[param.name], param.type, snake(param.name))
        if param.default is None:
            hint = f"give `{snake(param.name)}`, {_described(param.type, param.name)}"
            raise InvalidRequest(f"{self.role}/{self.name} needs the parameter {snake(param.name)!r}", hint=hint)
        return param.default


_ARTICLE = {
    "iri": "an IRI such as https://jido.ai/agents/architect",
    "item": "the IRI of a memory, a unique part of its id, or the id it had elsewhere",
    "string": "a text",
    "integer": "a whole number",
    "decimal": "a number such as 17.5",
    "boolean": "true or false",
    "dateTime": "a date or time such as 2026-11-17 or 2026-11-17T09:00:00Z",
    "project": "a project id such as my_project (a-z, 0-9, - and _)",
    "status": f"one of {', '.join(STATUSES)}",
    "kind": "a kind of memory",
}


def snake(name: str) -> str:
    """Return the name of a parameter as callers write it.

    >>> snake("actionableOnly")
    'actionable_only'
    """
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)


#: A date is its midnight; a time without an offset is in UTC.
_MOMENT_EXAMPLES = ("2026-11-17", "2026-11-17T09:00:00Z", "2026-11-17T10:30+01:00")


def moment_hint(name: str) -> str:
    """Return the hint that shows the forms of dates and times for the parameter *name*.

    >>> moment_hint("as_of")
    'give one of: `as_of` 2026-11-17, `as_of` 2026-11-17T09:00:00Z, `as_of` 2026-11-17T10:30+01:00'
    """
    return "give one of: " + ", ".join(f"`{name}` {moment}" for moment in _MOMENT_EXAMPLES)


#: Parameter that takes a plain name -> the folder of its IRIs.
FOLDERS = {"agent": "agents", "session": "sessions"}


def _described(kind: str, name: str) -> str:
    if kind == "kind":
        return f"one of {', '.join(CLASS_OF_TYPE)}, or the IRI of another class"
    return f"the name of the {name}, or its IRI" if kind == "iri" and name in FOLDERS else _ARTICLE[kind]


def moment_of(value: object, name: str) -> str | None:
    """Return a moment in the one written form, None for None; raises InvalidRequest, which calls it *name*.

    >>> moment_of("2026-11-21", "as_of")
    '2026-11-21T00:00:00.000000Z'
    """
    return None if value is None else plain_value(to_term(value, "dateTime", name))


def judged_at(now: datetime, as_of: object, valid_at: object) -> str:
    """Return the moment at which validity and due dates are judged: *valid_at*, else *now* or an earlier *as_of*.

    >>> judged_at(datetime.fromisoformat("2026-11-21T00:00:00+00:00"), "2026-11-20", None)
    '2026-11-20T00:00:00.000000Z'
    """
    given, known = moment_of(valid_at, "valid_at"), moment_of(as_of, "as_of")
    return given or min(format_timestamp(now), known or FOREVER)


def to_term(value: object, kind: str, name: str) -> Term:
    """Return *value* as a term of the type *kind*, parsed from a text.

    Raises InvalidRequest for a value of another type; *name* is its name in the message.

    >>> to_term("5", "integer", "limit")
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    term = _term(value, kind)
    if term is None:
        if kind == "dateTime":
            reason = impossible_day(value)
            fault = f"{name}={value!r:.200} is not a date or time" + (f": {reason}" if reason else "")
            raise InvalidRequest(fault, hint=moment_hint(name))
        hint = f"give {name} as {_described(kind, name)}"
        raise InvalidRequest(f"{name}={value!r:.200} is not {_ARTICLE[kind]}", hint=hint)
    return term


def _term(value: object, kind: str) -> Term | None:
    """Return the term, or None when *value* has another type."""
    if kind == "boolean":
        truth = {True: True, False: False, "true": True, "false": False}.get(value) if _is(value, bool, str) else None
        return None if truth is None else boolean(truth)
    if kind == "integer":
        digits = _is(value, int, str) and not isinstance(value, bool) and re.fullmatch(r"[+-]?[0-9]{1,30}", str(value))
        return integer(int(str(value))) if digits else None
    if kind == "decimal":
        text = plain_value(decimal(value)) if isinstance(value, float) else str(value)
        is_number = _is(value, int, float, str) and not isinstance(value, bool) and _DECIMAL.fullmatch(text)
        return literal(text, XSD + "decimal") if is_number else None
    if kind == "dateTime":
        moment = parse_moment(value)
        return None if moment is None else date_time(format_timestamp(moment))
    if not isinstance(value, str):
        return None
    if kind == "project":
        match = _PROJECT.fullmatch(value)
        return iri(f"{BASE}projects/{match[1]}") if match else None
    if not is_unicode(value):
        return None
    if kind in ("iri", "item"):
        return to_iri(iri(value)) if _IRI.fullmatch(value) else None
    if kind == "status":
        return literal(value) if value in STATUSES else None
    if kind == "kind":
        name = CLASS_OF_TYPE.get(TYPE_ALIASES.get(value, value))
        return jido(name) if name else to_iri(iri(value)) if _IRI.fullmatch(value) else None
    return literal(value)


def _is(value: object, *types: type) -> bool:
    return isinstance(value, types)


def parse(name: str, role: str, text: str) -> NamedQuery:
    """Return the query in *text*, the content of `<role>/<name>.rq`.

    Raises Failed `invalid_config`, with file and line, when the header is incomplete or does not fit the query.
    """
    file = f"{role}/{name}.rq"
    header = _header(file, text)
    line, words = header["params"]
    columns = tuple(header["columns"][1].split())
    params = tuple(_param(f"{file}:{line}", word) for word in words.split())
    order = tuple(header["order"][1].split())
    projected = _projected(file, text)
    _must_project(f"{file}:{line}", (param.variable for param in params), projected)
    _must_project(f"{file}:{header['columns'][0]}", columns, projected)
    _must_project(f"{file}:{header['order'][0]}", (word.lstrip("-") for word in order), set(columns))
    list_order = None
    if "over" in header:
        pattern, variables = header["over"][1], {f"?{param.variable}" for param in params}
        list_order = _list_order(f"{file}:{header['over'][0]}", pattern, order, text)
        is_ready = list_order.pairs or list_order.is_of_changes
        is_requested = not is_ready and bool(variables & {*re.findall(r"\?\w+", pattern)})
        list_order = list_order._replace(is_requested=is_requested)
    if "unless" in header:
        list_order = _unless(f"{file}:{header['unless'][0]}", header["unless"][1], list_order)
    if "due" in header:
        list_order = _due(f"{file}:{header['due'][0]}", header["due"][1], list_order, params)
    contains = None
    if "contains" in header:
        contains = _contains(f"{file}:{header['contains'][0]}", header["contains"][1], params)
        if list_order is None or list_order.variable != contains.variable:
            raise _bad(f"{file}:{header['contains'][0]}", "contains: has the variable that over: opens with")
        list_order = list_order._replace(contains=True)
    if "inactive" in header and (role, header["inactive"][1]) != ("gates", "true"):
        raise _bad(f"{file}:{header['inactive'][0]}", "inactive: is true, in a gate")
    last = _last(f"{file}:{header['last'][0]}", header["last"][1], text) if "last" in header else None
    memory_column = _memory_column(columns, params, text)
    return NamedQuery(name, role, header["summary"][1], params, columns, order, text, list_order, contains, last,
                      judges_inactive="inactive" in header, memory_column=memory_column)  # fmt: skip


def _memory_column(columns: Sequence[str], params: Iterable[QueryParameter], text: str) -> str | None:
    lists_memories = any(param.name == "includeInactive" for param in params)
    names = {*_MEMORY_COLUMNS, *(_ENDED.findall(text) if lists_memories else ())}
    return next((name for name in columns if name in names), None)


def _header(file: str, text: str) -> dict[str, tuple[int, str]]:
    """Return each header key with its line number and its text."""
    header: dict[str, tuple[int, str]] = {}
    for number, row in enumerate(text.splitlines(), start=1):
        if not row.startswith("#+"):
            break
        match = _HEADER.fullmatch(row)
        if match is None or match[1] not in (*_KEYS, *_OPTIONAL_KEYS) or match[1] in header:
            raise _bad(f"{file}:{number}", f"{row!r} is not a header line, or stands twice")
        header[match[1]] = (number, match[2])
    missing = [key for key in _KEYS if key not in header or not (header[key][1] or key == "params")]
    if missing:
        raise _bad(f"{file}:{len(header) + 1}", f"the header has no {', '.join(missing)}")
    return header


def _list_order(where: str, pattern: str, order: tuple[str, ...], text: str) -> ListOrder:
    """Return the list order of a query; its rows are sorted by the listed variable, or by one moment and then by it."""
    match = _OVER.fullmatch(pattern)
    variable = match[1] if match else ""
    prologue = _prologue(text)
    if _PAIRS.fullmatch(pattern):
        return _of_pairs(where, pattern, order, text)
    group = _WHERE.search(text)
    if group is None:
        raise _bad(where, "over: needs a query that opens with WHERE {")
    first, *others = _branches(text, group.end())
    places = first, first
    if order[0] == variable:
        return ListOrder(variable, None, False, pattern, prologue, *places, branches=tuple(others))
    time = order[0].lstrip("-")
    if order[1:2] != (variable,) or not re.search(rf"\?{time}\b", pattern):
        raise _bad(where, "over: opens with a ?variable whose rows stand together in the order, or come after a ?time")
    return ListOrder(variable, time, order[0].startswith("-"), pattern, prologue, *places, branches=tuple(others))


def _branches(text: str, start: int) -> list[int]:
    """Return where each branch of the UNION that *text* has at *start* opens, or *start*.

    The engine evaluates a branch whole, again for each candidate, that is joined with the candidates only outside.
    """
    opened, depth, is_union = list[int](), 0, True
    for token in _TOKEN.finditer(text, start):
        if token[0].startswith("#"):
            continue
        if depth == 0 and token[0] != ("{" if is_union else "UNION"):
            break
        if depth == 0 and is_union:
            opened.append(token.end())
        depth += (token[0] == "{") - (token[0] == "}")
        is_union = token[0] == "UNION"
    return opened or [start]


def _of_pairs(where: str, pattern: str, order: tuple[str, ...], text: str) -> ListOrder:
    """Return the list order of a query about conflicts, whose candidates go into an empty VALUES."""
    names = tuple(name[1:] for name in pattern.split())
    place = text.find(empty := f"VALUES ({pattern}) {{ }}")
    if place < 0 or order[: len(names)] != names:
        raise _bad(where, f"over: of pairs opens the order, and the query has {empty}")
    return ListOrder(names[0], None, False, "now", "", place, place + len(empty), names)


def _unless(where: str, pattern: str, list_order: ListOrder | None) -> ListOrder:
    """Return *list_order* with the pattern that excludes nodes."""
    match = _UNLESS.fullmatch(pattern)
    if list_order is None or list_order.pairs or match is None or match[1] != list_order.variable:
        raise _bad(where, "unless: is ?what PROPERTY ?variable, of the variable that over: opens with")
    return list_order._replace(unless=pattern)


def _due(where: str, properties: str, list_order: ListOrder | None, params: Iterable[QueryParameter]) -> ListOrder:
    """Return *list_order* with the properties before whose moments a node is not listed."""
    if list_order is None or not _PATH.fullmatch(properties) or "validAt" not in {param.name for param in params}:
        raise _bad(where, "due: is PROPERTY|PROPERTY ..., of a query with over: and the parameter validAt")
    return list_order._replace(due=properties)


def _contains(where: str, pattern: str, params: Iterable[QueryParameter]) -> TextCondition:
    match = _CONTAINS.fullmatch(pattern)
    if match is None or match[2] not in {param.variable for param in params}:
        raise _bad(where, "contains: is ?memory ?parameter")
    return TextCondition(match[1], match[2])


def _last(where: str, pattern: str, text: str) -> ListOrder:
    """Return the order of the nodes whose rows come last; they are inserted before the opening of the pattern."""
    match = _OPENING.match(pattern)
    place = text.find(match[0], text.find("\n#+ last:") + len("\n#+ last: ") + len(pattern)) if match else -1
    if match is None or place < 0:
        raise _bad(where, "last: opens with ?variable PROPERTY ?value, as a part of the query does")
    return ListOrder(match["variable"], None, False, pattern, _prologue(text), place, place)


def _prologue(text: str) -> str:
    return " ".join(row for row in text.splitlines() if row.startswith("PREFIX "))


def _param(where: str, word: str) -> QueryParameter:
    match = _PARAM.fullmatch(word)
    if match is None:
        raise _bad(where, f"{word!r} is not a parameter")
    name, kind, default = match.groups()
    defaults = _WELL_KNOWN.get(name, ("string", None))
    kind, default = kind or defaults[0], defaults[1] if default is None else default
    if kind not in TYPES:
        raise _bad(where, f"{kind!r} is not a type; there are {', '.join(TYPES)}")
    if (kind, default) == ("status", ANY):
        default = UNBOUND
    is_now = (name, default) == ("validAt", NOW)
    term = default if is_now or default in (None, UNBOUND) else _term(default, kind)
    if default is not None and term is None:
        raise _bad(where, f"the default {default!r} is not {_ARTICLE[kind]}")
    return QueryParameter(name, kind, term, f"of{name[:1].upper()}{name[1:]}" if kind in ("status", "kind") else name)


def _projected(file: str, text: str) -> set[str]:
    code = "\n".join("" if row.startswith("#") else row for row in text.splitlines())
    match = _PROJECTION.search(code)
    if match is None:
        rows = (n for n, row in enumerate(code.splitlines(), 1) if row.strip() and not _DECLARED.match(row))
        raise _bad(f"{file}:{next(rows, 1)}", "this is not a SELECT query")
    return set(re.findall(r"[?$](\w+)", match[1]))


def _must_project(where: str, names: Iterable[str], projected: set[str]) -> None:
    missing = [name for name in names if name not in projected]
    if missing:
        raise _bad(where, f"the query does not select {', '.join('?' + name for name in missing)}")


def _bad(where: str, what: str) -> Failed:
    keys = "#+ summary:, #+ params: name:type=default ..., #+ columns:, #+ order: (#+ over:, #+ contains:)"
    hint = f"a query file opens with {keys}"
    return Failed(f"{where}: {what}", hint=hint, code="invalid_config")
