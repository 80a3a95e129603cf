"""What the journal tells: the log of commits, what changed between two moments, and what became of one memory."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from typing import Any

from jidomem import version
from jidomem.errors import InvalidRequest, NotFound
from jidomem.moments import stamp
from jidomem.query import FOREVER, to_term
from jidomem.read import source_names
from jidomem.read.functions import Functions, Rows
from jidomem.read.pages import Page
from jidomem.read.revisions import Revisions
from jidomem.terms import Term, bare, iri
from jidomem.version import Head, Version
from jidomem.vocab import GRAPHS, graph_iri, jido, local_name

_COMMIT = "urn:jido:commit:"
_START = "0001-01-01T00:00:00.000000Z"
#: The number of a version: a date without hyphens has eight digits.
_NUMBER = re.compile("[0-9]{1,7}")
#: How many commits are asked about at once.
_SOME = 200
_BROUGHT = f"""SELECT ?commit ?kind ?node ?agent ?session WHERE {{ VALUES ?commit {{ %s }}
?node {jido("recordedIn")} ?commit ; a ?kind .
OPTIONAL {{ ?node {jido("assertedBy")}|{jido("causedBy")}|{jido("setBy")} ?agent }}
OPTIONAL {{ ?node {jido("assertedIn")}|{jido("ofSession")} ?session }} }}"""
_ORDERED = f"SELECT ?commit ?agent WHERE {{ VALUES ?commit {{ %s }} ?commit {jido('orderedBy')} ?agent }}"
_RECORDED = f"""SELECT ?item ?recorded ?agent ?reason ?replaced ?proposed WHERE {{ VALUES ?item {{ %s }}
?item {jido("recordedAt")} ?recorded .
OPTIONAL {{ ?item {jido("assertedBy")} ?agent }}
OPTIONAL {{ ?item {jido("revisionReason")} ?reason }}
OPTIONAL {{ ?item {jido("hasAssertionStatus")} ?proposed FILTER(?proposed = {jido("Proposed")}) }}
OPTIONAL {{ ?item {jido("supersedes")}|{jido("invalidates")}|{jido("revives")} ?replaced }} }}
ORDER BY ?item ?agent ?replaced"""
_HEADS = f"""SELECT ?commit ?position ?recorded WHERE {{
?commit {jido("inStream")} %(graph)s ; {jido("position")} ?position ; {jido("recordedAt")} ?recorded
FILTER(?recorded <= %(moment)s)
FILTER NOT EXISTS {{ ?child {jido("parent")} ?commit
  FILTER EXISTS {{ ?child {jido("recordedAt")} ?then FILTER(?then <= %(moment)s) }} }} }}"""
_AT_POSITION = f"""SELECT ?commit ?recorded WHERE {{
?commit {jido("inStream")} %s ; {jido("position")} %d ; {jido("recordedAt")} ?recorded }} ORDER BY DESC(?recorded)"""


class Records(Functions):
    """What happened to a project's memory, and when; moments and options are those of `ask`."""

    @abstractmethod
    def ask_page(self, name: str, *, project: str, **options: Any) -> Page:
        """Return a page of the rows of one named query."""

    @abstractmethod
    def select(self, project: str, sparql: str) -> Rows:
        """Return the rows of a SELECT over the project's graphs."""

    def log(self, project: str, **options: Any) -> Page:
        """Return the commits of a project, newest first, and the cursor of the next ones.

        Each has version, recorded_at, commit, graph, committer and ontology; the agents and sessions of what it
        brought, and the agents that ordered it, as a redaction; and `brought`, how many of each class.
        """
        page = self.ask_page("commits", project=project, **options)
        commits = [row["commit"] for row in page.rows]
        brought: dict[str, Rows] = {commit: [] for commit in commits}
        ordered: dict[str, list[str]] = {commit: [] for commit in commits}
        for at in range(0, len(commits), _SOME):
            some = " ".join(map(iri, commits[at : at + _SOME]))
            for row in self.select(project, _BROUGHT % some):
                brought[row["commit"]].append(row)
            for row in self.select(project, _ORDERED % some):
                ordered[row["commit"]].append(row["agent"])
        entries = [_entry(row, brought[row["commit"]], ordered[row["commit"]]) for row in page.rows]
        return Page(entries, page.cursor)

    @abstractmethod
    def get_memory(self, project: str, iri: str, *, as_of: object = None, valid_at: object = None) -> dict[str, Any]:
        """Return one memory."""

    @abstractmethod
    def resolve(self, project: str, short: str, *, as_of: object = None) -> str:
        """Return the IRI that *short* names, among the memories that were known at *as_of*."""

    def whole_id(self, project: str, name: str) -> str:
        """Return the IRI of a memory from its IRI, which is not looked up here, or from another name of it."""
        return name if ":" in name and not source_names.is_place(name) else self.resolve(project, name)

    def history(self, project: str, memory_id: str, *, as_of: object = None, valid_at: object = None) -> Rows:
        """Return what went before one memory and what replaced, withdrew or revived it, oldest first.

        Each has recorded, entry, kind, summary, status, agent, and what `Revisions` tells of it: the `event` (asserted,
        revised, confirmed, revived, withdrawn, proposed, accepted or rejected), its `reason`, and its `changes`: field,
        before and after. The id is one that `resolve` takes. Raises NotFound where there was no such memory by then.
        """
        item = self.resolve(project, memory_id, as_of=as_of)
        self.get_memory(project, item, as_of=as_of)
        rows = self.ask("history", project=project, item=item, as_of=as_of, valid_at=valid_at)
        revisions = Revisions(self, project, as_of)
        return [{**row, **revisions.of(row["entry"])} for row in rows]

    def diff(self, project: str, since: object, until: object = None, *, valid_at: object = None) -> Rows:
        """Return each memory that was added, superseded or invalidated after *since* and by *until*, now if left out.

        Both are moments or versions. Each row has change, item, kind, summary, the status before (None for one that
        is new) and after, and `by`, what ended it meanwhile. One that was added has `recorded`, when, `agents`, by
        whom, and the `event`, `reason` and `changes` that `history` gives. Raises InvalidRequest where *since* is the
        later one, and what `moment` raises.
        """
        first, last = self.moment(project, since), self.moment(project, until or FOREVER)
        if first > last:
            raise InvalidRequest(f"{since} is after {until}", hint="give the earlier moment first")
        rows = self.ask("changes", project=project, since=first, as_of=last, valid_at=valid_at)
        added = self._revised(project, [row["item"] for row in rows if not row["before"]], last)
        none: dict[str, Any] = {"recorded": None, "agents": [], "event": None, "reason": None, "changes": []}
        return [
            {"change": row["after"] if row["before"] else "added", **row, **added.get(row["item"], none)}
            for row in rows
        ]

    def _revised(self, project: str, items: list[str], as_of: str) -> dict[str, dict[str, Any]]:
        """Return of each of *items* when and by whom it was recorded, and why and how it revised others."""
        found: dict[str, dict[str, Any]] = {}
        revisions = Revisions(self, project, as_of)
        for at in range(0, len(items), _SOME):
            for row in self.select(project, _RECORDED % " ".join(map(iri, items[at : at + _SOME]))):
                own = found.setdefault(row["item"], {"recorded": row["recorded"], "agents": []})
                own["agents"] = _each((*own["agents"], row["agent"]))
                if "changes" not in own:
                    is_revision = row["replaced"] is not None
                    first = {"event": "asserted", "reason": row["reason"], "changes": []}
                    own |= revisions.of(row["item"]) if is_revision or row["proposed"] else first
        return found

    def moment(self, project: str, given: object) -> str:
        """Return the moment *given* is, or of the newest commit of the version it is; raises InvalidRequest, NotFound.

        A version stands for all that was recorded by then, on whichever branch; its number alone stands for it where
        no other branch has a commit of that number.
        """
        if given == "0":
            return _START
        if isinstance(given, str) and _NUMBER.fullmatch(given):
            return self._numbered(project, int(given))
        named = version.read(given) if isinstance(given, str) else None
        if named is None:
            try:
                return bare(to_term(given, "dateTime", "as_of"))
            except InvalidRequest as error:
                error.hint += ", or a version that is listed by: jidomem log"
                raise
        position, ids = named
        for row in self.select(project, _AT_POSITION % (iri(graph_iri(project)), position)):
            if row["commit"].removeprefix(_COMMIT).startswith(tuple(ids)):
                return stamp(row["recorded"])
        raise NotFound(f"{project} has no version {given}", hint="give one that is listed by: jidomem log")

    def _numbered(self, project: str, position: int) -> str:
        """Return the moment of the only commit at *position*; raises NotFound where there is none, or several."""
        rows = self.select(project, _AT_POSITION % (iri(graph_iri(project)), position))
        if len(rows) == 1:
            return stamp(rows[0]["recorded"])
        versions = [f"{position}-{row['commit'].removeprefix(_COMMIT)[: version.SHORT]}" for row in rows]
        if versions:
            raise NotFound(f"{project} has several versions {position}", hint=f"give one of: {', '.join(versions)}")
        raise NotFound(f"{project} has no version {position}", hint="give one that is listed by: jidomem log")

    def version(self, project: str, as_of: object) -> Version:
        """Return the version a project's memory had at a moment."""
        moment: Term = to_term(as_of, "dateTime", "as_of")
        rows = self.select(project, _HEADS % {"graph": iri(graph_iri(project)), "moment": moment})
        return Version.of(_head(row) for row in rows)


def _head(row: dict[str, Any]) -> Head:
    return Head(stamp(row["recorded"]), row["commit"].removeprefix(_COMMIT), row["position"])


def _entry(row: dict[str, Any], brought: Rows, ordered: list[str]) -> dict[str, Any]:
    """Return a commit, told by what it brought and the agents that ordered it."""
    kinds = Counter(local_name(kind) for kind, _ in {(found["kind"], found["node"]) for found in brought})
    graph = next(name for name, long in GRAPHS.items() if row["stream"].endswith(f"/{long}"))
    return {
        "version": str(Version((_head(row),))),
        "recorded_at": row["recorded"],
        "commit": row["commit"].removeprefix(_COMMIT),
        "graph": graph,
        "committer": row["committer"],
        "ontology": row["ontology"],
        "agents": _each((*ordered, *(found["agent"] for found in brought))),
        "sessions": _each(found["session"] for found in brought),
        "brought": dict(sorted(kinds.items())),
    }


def _each(names: Iterable[str | None]) -> list[str]:
    return sorted({name for name in names if name})
