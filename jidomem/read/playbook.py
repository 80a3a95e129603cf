"""The playbook: all named queries, shipped and of a root, and the methods of each role.

The last functions format values as JSON and as cells of CSV and TSV.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from jidomem.base import files
from jidomem.base.clock import json_value
from jidomem.errors import Failed, InvalidRequest, JidomemError, NotFound, nearest_names
from jidomem.rdf import sparql
from jidomem.rdf.sparql import refuse_graphs
from jidomem.records.named_query import ListOrder, NamedQuery, parse

#: The folder beside those of the roles with the queries of CI, where a row is a failure; agents do not use them.
GATES = "gates"

#: Short name -> name of the query, unless a root has a query of the short name.
SHORT_NAMES = {"tasks": "open-tasks", "errors": "open-errors", "last-session": "sessions"}


class Playbook:
    """Named queries by name and by `role/name`."""

    def __init__(self, overlays: Iterable[Path] = ()) -> None:
        """List the shipped query files, each parsed at its first use, and parse `<role>/<name>.rq` of *overlays*.

        Raises Failed `invalid_config` for a file of an overlay with a wrong header, a name that is taken, or a query
        that reaches outside.
        """
        #: Called before an unknown name is refused: it may load files that were added since.
        self.unknown: Callable[[], object] = lambda: None
        self._files = dict(_shipped_files())
        self._own: dict[str, NamedQuery] = {}
        for folder in overlays:
            for file in sorted(folder.glob("*/*.rq")):
                if file.parent.name != GATES:
                    self._add(file)

    def replace_queries(self, other: Playbook) -> None:
        """Replace the queries by those of *other*."""
        self._files, self._own = other._files, other._own

    def get(self, name: str) -> NamedQuery:
        """Return the query of that name, of that `role/name`, or of that short name.

        Raises NotFound `unknown_query`, with the nearest names; InvalidRequest if *name* is no text.
        """
        if not isinstance(name, str):
            raise InvalidRequest(f"name={name!r:.200} is not the name of a query", hint="list them: jidomem ask")
        if name in SHORT_NAMES and name not in self._files:
            return self._of(SHORT_NAMES[name])
        if name.rsplit("/", 1)[-1] not in self._files:
            self.unknown()
        if self._has(name):
            return self._of(name.rsplit("/", 1)[-1])
        near = nearest_names(name, self.names(), 3)
        near += [other for other in self.names(name.split("/", 1)[0]) if other not in near]
        hint = f"did you mean {' or '.join(near)}? " if near else ""
        hint += f"all {len(self._files)} are listed by: jidomem ask"
        raise NotFound(f"there is no query {name!r:.200}", hint=hint, code="unknown_query")

    def __contains__(self, name: object) -> bool:
        """Return whether `get` has a query for *name*."""
        return isinstance(name, str) and (self._has(name) or name in SHORT_NAMES)

    def names(self, role: str = "") -> list[str]:
        """Return the sorted names without roles, only those of *role* if it is given."""
        return sorted(name for name, file in self._files.items() if role in ("", file.parent.name))

    def roles(self) -> Mapping[str, list[NamedQuery]]:
        """Return the queries of each role, both sorted by name."""
        roles = sorted({file.parent.name for file in self._files.values()})
        return {role: [self._of(name) for name in self.names(role)] for role in roles}

    def __iter__(self) -> Iterator[NamedQuery]:
        """Return the queries, sorted by name."""
        return map(self._of, self.names())

    def orders(self) -> list[ListOrder]:
        """Return the order of each list that an index keeps."""
        return [order for query in self for order in (query.list_order, query.last) if order is not None]

    def orders_digest(self) -> str:
        """Return a digest that changes with every order, without parsing a query: that of the shipped files."""
        return _shipped_digest()

    def markdown(self) -> str:
        """Return the text of docs/reference/playbook.md: one Markdown table for each role."""
        return _INTRODUCTION + "".join(_section(role, queries) for role, queries in self.roles().items())

    def _has(self, name: str) -> bool:
        file = self._files.get(name.rsplit("/", 1)[-1])
        return file is not None and name in (file.stem, f"{file.parent.name}/{file.stem}")

    def _of(self, name: str) -> NamedQuery:
        return self._own[name] if name in self._own else _shipped(self._files[name])

    def _add(self, file: Path) -> None:
        """Add the query in *file*, which runs in a worker process and has no order, as lists are made in this one."""
        query = read(file)
        if query.list_order and query.list_order.pairs:
            hint = "leave out over:, and find them by a pattern"
            raise Failed(f"{file}: pairs are listed for shipped questions only", hint=hint, code="invalid_config")
        taken = self._files.setdefault(query.name, file)
        if taken is not file:
            raise Failed(
                f"{file}: the name {query.name!r} is taken by {taken.parent.name}/{taken.name}",
                hint="give the file another name",
                code="invalid_config",
            )
        self._own[query.name] = query._replace(is_isolated=True, list_order=None, contains=None, last=None)


def read(file: Path) -> NamedQuery:
    """Return the query in *file*; raises Failed or another error that names the file if it is malformed or refused.

    SERVICE, updates and FROM are refused.
    """
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        hint = "make it a readable file of UTF-8 text"
        raise Failed(f"{file}: {error}", hint=hint, code="invalid_config") from error
    query = parse(file.stem, file.parent.name, text)
    try:
        refuse_graphs(sparql.check(text))
    except JidomemError as error:
        where = f"{file}:{_line_of(text, error)}"
        raise type(error)(f"{where}: {error.detail}", hint=error.hint, code=error.code) from error
    return query


@cache  # shipped files do not change while a process runs
def _shipped_files() -> Mapping[str, Path]:
    return {file.stem: file for file in files.query_files() if file.parent.name != GATES}


@cache
def _shipped_digest() -> str:
    digest = blake2b(digest_size=16)
    for file in _shipped_files().values():
        text = file.read_bytes()
        digest.update(f"{file.name} {len(text)}\n".encode() + text)
    return digest.hexdigest()


@cache
def _shipped(file: Path) -> NamedQuery:
    return parse(file.stem, file.parent.name, file.read_text("utf-8"))  # a test checks all of them


def _line_of(text: str, refused: JidomemError) -> int:
    """Return the number of the line that causes the error: the end of the shortest beginning with the same error."""
    lines = text.splitlines()

    def is_refused(count: int) -> bool:
        try:
            refuse_graphs(sparql.check("\n".join(lines[:count])))
        except JidomemError as error:
            return error.code == refused.code
        return False

    return bisect_left(range(1, len(lines)), True, key=is_refused) + 1


_INTRODUCTION = """# Named queries

The playbook is the set of named queries, by the role that uses them. Run one with `memory.ask("open-tasks")` or
`jidomem ask open-tasks`. Each answer is about one project and lists [active](../time.md#active) memories.

- `tasks` and `errors` are short for `open-tasks` and `open-errors`, `last-session` for `sessions`.
- `include_inactive` returns all rows of the pattern, active or not.
- `status` lists the decisions of one status: `jidomem ask decisions --status rejected`.
- `as_of` answers as of a moment of the journal, `valid_at` as of a moment in the world.
- Rows come in the stated order (`-`: descending), which is total.

This page is generated from the files under `queries/`.
"""


def _section(role: str, queries: Iterable[NamedQuery]) -> str:
    rows = "".join(
        f"| `{query.name}` | {query.summary} | {' '.join(str(param) for param in query.params)} "
        f"| {' '.join(query.columns)} | {' '.join(query.order)} |\n"
        for query in queries
    )
    return f"\n## {role}\n\n| name | answers | parameters | columns | order |\n|---|---|---|---|---|\n{rows}"


Rows = list[dict[str, Any]]


class QueryReader(Protocol):
    """A reader that answers named queries."""

    playbook: Playbook

    def ask(self, name: str, *, project: str, **options: Any) -> Rows:
        """Return the rows of one named query."""


class Role:
    """The queries of one role as methods: `reader.curator.items_without_project("my_project", limit=5)`.

    Each takes the project, and the keyword arguments of `ask`.
    """

    def __init__(self, reader: QueryReader, role: str) -> None:
        self._reader = reader
        self._role = role

    @cached_property
    def _names(self) -> dict[str, str]:
        return {name.replace("-", "_"): name for name in self._reader.playbook.names(self._role)}

    def __getattr__(self, name: str) -> Callable[..., Rows]:
        if name.startswith("_") or name not in self._names:
            near = nearest_names(name, getattr(self, "_names", ()))
            raise AttributeError(f"no query {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return partial(self._ask, self._names[name])

    def __dir__(self) -> list[str]:
        return sorted([*super().__dir__(), *self._names])

    def _ask(self, name: str, project: str, **options: Any) -> Rows:
        return self._reader.ask(name, project=project, **options)


class Architect(Role):
    """The queries of an architect."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the active architectural decisions; *moment* is as_of, valid_at or both."""
        return {"decisions": self._ask("active-decisions", project, **moment)}


class Planner(Role):
    """The queries of a planner."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the open tasks and the active conventions."""
        return {
            "tasks": self._ask("open-tasks", project, **moment),
            "conventions": self._ask("conventions", project, **moment),
        }


class Debugger(Role):
    """The queries of a debugger."""

    def context(self, project: str, **moment: Any) -> dict[str, Rows]:
        """Return the open errors, and the lessons learned, newest first."""
        return {
            "errors": self._ask("open-errors", project, **moment),
            "lessons": self._ask("recent-lessons", project, **moment),
        }


_ESCAPED = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}


def cell(value: Any) -> Any:
    """Return *value* for a cell: an empty text for None; a list, mapping or boolean as JSON."""
    value = json_value(value)
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict, bool)) else value


def tsv_line(cells: Iterable[Any]) -> str:
    r"""Return *cells* as one line, with tabs, line ends and backslashes escaped.

    >>> tsv_line(["a\tb", 1])
    'a\\tb\t1'
    """
    return "\t".join(re.sub(r"[\\\t\n\r]", lambda match: _ESCAPED[match[0]], str(cell)) for cell in cells)
