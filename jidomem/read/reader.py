"""The reader: answers about the memory of a project as plain Python values; it cannot write.

Start at `MemoryReader.ask`. Named queries and raw SPARQL are answered in `named_queries`, single memories in
`memory_detail` and `provenance`, and the past in `history`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from jidomem.base import clock
from jidomem.base.clock import format_timestamp
from jidomem.errors import InvalidRequest
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Triple, plain_value
from jidomem.read import memory_detail
from jidomem.read.lists import Lists, Page, QueryRunner
from jidomem.read.named_queries import NamedQueries, RawSparql, resolve_name
from jidomem.read.playbook import Architect, Debugger, Planner, Playbook, Role, Rows
from jidomem.records.active import OUTCOME
from jidomem.records.intent import Version
from jidomem.records.named_query import to_term
from jidomem.schema.ontology import EffectiveRules

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.index.search_index import Texts
    from jidomem.read.history import History
    from jidomem.read.provenance import Shown

#: The most memories with one part of an id that are returned.
_MOST_IDS = 1_000


class MemoryReader(NamedQueries, RawSparql):
    """Answers about the memory of one project at a time.

    Every answer is in a stated order that does not depend on the order of files. `as_of` takes a
    datetime or ISO 8601 text, UTC by default, and a bare date is its midnight: what was recorded by
    then counts. So does `valid_at`, on the world's clock: a memory counts from its valid_from until
    before its valid_until. Lists show active memories (`jidomem.records.active`), valid now unless
    `valid_at` gives a moment; `include_inactive` adds the others, and a list of decisions takes
    `status`: the decisions of that status alone, whether they are active or not.
    """

    def __init__(
        self,
        index: OxigraphIndex,
        playbook: Playbook,
        catch_up: Callable[[str], Version],
        rules: EffectiveRules,
        texts: Callable[[], Texts] | None = None,
        past: Callable[[str, str], OxigraphIndex] | None = None,
        shown: Shown | None = None,
        runner: QueryRunner | None = None,
        remote: RemoteIndex | None = None,
        now: Callable[[], datetime] = clock.now,
        projects: Callable[[], Sequence[str]] = tuple,
        default_project: str | None = None,
    ) -> None:
        """Read from *index*; *catch_up* applies new commits of a project to it, and refuses an unknown project.

        Lists and short ids are read from the files of *texts*; *past* replays a project to a moment
        for raw SPARQL, and *runner* runs the queries that a root brings in a worker process. A
        *remote* index answers what it can: the named queries, and SPARQL about the present. *rules*
        has the schema in effect, *shown* when and to whom a memory was shown, *projects* all projects;
        *default_project* is the one of a named query that names none.
        """
        lists = Lists(index, playbook, texts, runner, remote)
        NamedQueries.__init__(self, index, playbook, lists, catch_up, rules, now, projects, default_project)
        RawSparql.__init__(self, index, remote, catch_up, past)
        self._shown = shown
        self.architect = Architect(self, "architect")
        self.planner = Planner(self, "planner")
        self.debugger = Debugger(self, "debugger")
        self.curator = Role(self, "curator")
        self.code = Role(self, "code")
        self.governance = Role(self, "governance")
        self.sessions = Role(self, "session")
        self.ci = Role(self, "ci")

    @cached_property
    def _history(self) -> History:
        from jidomem.read.history import History  # most processes ask for no history

        return History(self)

    def now(self) -> datetime:
        """Return the present moment, by the clock of the root."""
        return self._now()

    # Named queries

    def ask(self, name: str, *, project: str | None = None, **options: Any) -> Rows:
        """Return the rows of one named query.

        The options are as_of, valid_at, include_inactive, limit and cursor; the parameters of the
        query go by the names in its header, or in snake_case. The default project is that of the
        configuration, else the only one of the root. Raises NotFound `unknown_query`, InvalidRequest
        for a parameter that does not fit, and without a project if there are several and no default.
        """
        return self.ask_page(name, project=project, **options).rows

    def list_active_architectural_decisions(self, project_id: str, **options: Any) -> Rows:
        """Return decision and summary of each architectural decision; options are those of `ask`."""
        return self.ask("active-decisions", project=project_id, **options)

    def list_conventions(self, project_id: str, **options: Any) -> Rows:
        """Return conv, name and enforcement level of each convention."""
        return self.ask("conventions", project=project_id, **options)

    def list_open_tasks(self, project_id: str, *, actionable_only: bool = False, **options: Any) -> Rows:
        """Return task, summary and status of each task not completed; *actionable_only* drops abandoned ones."""
        return self.ask("open-tasks", project=project_id, actionable_only=actionable_only, **options)

    def list_open_errors(self, project_id: str, *, include_deferred: bool = True, **options: Any) -> Rows:
        """Return err, summary and severity (None if nobody stated it) of each error not resolved."""
        return self.ask("open-errors", project=project_id, include_deferred=include_deferred, **options)

    def list_facts_with_confidence(self, project_id: str, **options: Any) -> Rows:
        """Return fact, summary and confidence of each fact."""
        return self.ask("facts", project=project_id, **options)

    def list_active_sessions(self, project_id: str, **options: Any) -> Rows:
        """Return session and start of each work session that is active."""
        return self.ask("active-sessions", project=project_id, **options)

    def list_recent_lessons(self, project_id: str, **options: Any) -> Rows:
        """Return lesson, summary and time of each lesson learned, newest first."""
        return self.ask("recent-lessons", project=project_id, **options)

    def find_facts_about(self, project: str, topic: str, **options: Any) -> Rows:
        """Return subject, content, timestamp and confidence of each fact about *topic*, newest first.

        The topic is a text that the content contains, in any case. A confidence that was given as
        a level alone is 0.9, 0.6 or 0.3. Options are those of every named query.
        """
        return self.ask("facts-about", project=project, topic=topic, **options)

    def list_decisions(self, project: str, **options: Any) -> Rows:
        """Return subject, content and timestamp of each decision, oldest first."""
        return self.ask("decision-log", project=project, **options)

    def find_related(self, project: str, memory_id: str, **options: Any) -> Rows:
        """Return related and content of each item that shares a context with *memory_id*, itself left out.

        The id is an IRI, a unique part of the id, or the id the memory had elsewhere. Raises NotFound.
        """
        return self.ask("related", project=project, item=memory_id, **options)

    def get_conventions(self, project: str, **options: Any) -> Rows:
        """Return content and source of each convention that a person has verified.

        The source is user, agent, tool or document if that is stated, else `session:` and its name.
        """
        rows = self.ask("verified-conventions", project=project, **options)
        return [{"content": row["content"], "source": row["source"]} for row in rows]

    def find_errors_for_module(self, project: str, module_name: str, **options: Any) -> Rows:
        """Return subject, content and timestamp of each error about the module, its name or file, newest first."""
        return self.ask("errors-of-module", project=project, module=module_name, **options)

    def find_governing(self, project: str, file: str, **options: Any) -> Rows:
        """Return about, item, kind, summary, level, status and time of each memory that governs *file*.

        These are rules, decisions, errors and lessons. Those about the file come first, then those
        about the folders above it, nearest first, then the conventions about no place at all; those
        about a pattern such as src/*.py are listed by `patterns`. The file is a path as memories
        name it: relative, with forward slashes.
        """
        return self.ask("governing", project=project, file=file, **options)

    def select(self, project: str, sparql: str, *, infer: bool = False, as_of: object = None) -> Rows:
        """Return the rows of a SELECT over the project's graphs: variable to value, None if it is unbound.

        Internal: agents use the named functions, whose answers stay the same when the graph changes
        its form. With *infer*, `a` and `rdf:type` as predicates also match the superclasses of a
        stated class. Raises what `run` raises, and InvalidRequest `malformed_query` for another form.
        """
        result = self.run(project, sparql, infer=infer, as_of=as_of)
        if result.kind != "select":
            hint = "write SELECT ... WHERE { ... }"
            raise InvalidRequest("select takes a SELECT query", hint=hint, code="malformed_query")
        return list(result.rows)

    # One memory

    def get_memory(self, project: str, iri: str, *, as_of: object = None, valid_at: object = None) -> dict[str, Any]:
        """Return one memory: iri, type, class, status, properties, superseded_by, invalidated_by, commit, recorded_at.

        A task or error that ended or waits has an `outcome`. `status` is one of `jidomem.records.active.STATES`, such
        as active or superseded, or withdrawal for a marker, and `properties` maps the local name of each property to
        its values. Raises NotFound with the nearest ids, and for a memory that is not valid at *valid_at*.
        """
        self._catch_up(project)
        memory = memory_detail.load_memory(
            self.index, project, iri, as_of, valid_at, lambda: format_timestamp(self._now())
        )
        outcome = memory_detail.outcome(self.index, project, memory["iri"], as_of)
        return {**memory, OUTCOME: outcome} if outcome else memory

    def describe(self, project: str, iri: str, *, as_of: object = None, valid_at: object = None) -> list[Triple]:
        """Return the triples about one memory; raises what `get_memory` raises."""
        self._catch_up(project)
        return memory_detail.triples(self.index, project, iri, as_of, valid_at)

    def why(self, project: str, memory_id: str, *, as_of: object = None, valid_at: object = None) -> dict[str, Any]:
        """Return the provenance of one memory: author, time, session, evidence and the rules that judged it.

        Also the memories it replaced, those that replaced it and the one that is now
        `in_its_place`, those `derived` from it directly or not, its conflicts, and when it was
        `shown`, None without a read log. The id is one that `resolve` takes. Raises what
        `get_memory` raises.
        """
        from jidomem.read.provenance import Why  # as above

        why = Why(self, self._rules.schema, self._shown, project, as_of=as_of, valid_at=valid_at)
        return why.explain(memory_id)

    def resolve(self, project: str, short: str, *, as_of: object = None) -> str:
        """Return the IRI that *short* names, among the memories that were known at *as_of*.

        It is an IRI, a unique beginning or end, of 4 characters or more, of an id, or the id the
        memory had elsewhere; of an imported memory also its file, with a line or without, the
        number of its record, or its title.
        """
        self._catch_up(project)
        return self.find(project, short, as_of=as_of)

    def find(self, project: str, short: str, *, as_of: object = None) -> str:
        """Return the IRI that `resolve` returns, among the memories that are indexed already."""
        return memory_detail.resolve(self.index, self._lists.ids, Stream(project).project, short, as_of)

    def agent(self, project: str, name: str) -> str:
        """Return the IRI of the agent of *project* with this name or IRI; raises NotFound with the nearest names."""
        self._catch_up(project)
        return resolve_name(self.index, project, "agents", name)

    def ids(self, project: str, part: str) -> list[str]:
        """Return up to 1,000 memories that are indexed already whose id begins or ends with *part*, sorted.

        There are none while the file that has the ids is being built.
        """
        if not isinstance(part, str):
            raise InvalidRequest(f"part={part!r:.200} is not a text", hint="give the first or last characters of an id")
        return self._lists.ids_soon(Stream(project).project, part, _MOST_IDS)

    def whole_id(self, project: str, name: str) -> str:
        """Return the IRI of a memory from its IRI, which is not looked up, or from another name of it.

        Raises InvalidRequest for an IRI that is invalid.
        """
        if isinstance(name, str) and ":" in name and not memory_detail.is_place(name):
            return plain_value(to_term(name, "iri", "item"))
        return self.resolve(project, name)

    # The past

    def log(self, project: str, **options: Any) -> Page:
        """Return the commits of a project, newest first, and the cursor of the next ones.

        Each has version, recorded_at, commit, graph, committer and ontology; the agents and sessions
        of its contents; and `brought`, the number of items of each class. One that a person ordered,
        as a redaction, has that agent, the `reason`, and the ids of the commits that it `redacted`, or
        the files `set_aside`; with neither it redacted the working state.
        The options are those of `ask`; with `agent`, a name or an IRI, only commits of that agent.
        """
        return self._history.log(project, **options)

    def history(self, project: str, memory_id: str, *, as_of: object = None, valid_at: object = None) -> Rows:
        """Return the memories that one memory replaced, and those that replaced, withdrew or revived it, oldest first.

        Each has recorded, entry, kind, summary, status, agent, and its revision: the `event` (asserted,
        revised, confirmed, superseded, revived, withdrawn, proposed, accepted or rejected), its
        `reason`, its `changes` (field, before and after) from the version before it, the other
        memories that it `also_superseded`, and its `redactions`: recorded, agent and reason. The id is
        one that `resolve` takes. Raises NotFound if there was no such memory by then.
        """
        return self._history.of_memory(project, memory_id, as_of=as_of, valid_at=valid_at)

    def diff(self, project: str, since: object, until: object = None, *, valid_at: object = None) -> Rows:
        """Return each memory that was added, superseded or invalidated after *since* and by *until* (default: now).

        Both are moments or versions. Each row has change, item, kind, summary, the status before
        (None for a new one) and after, and `by`, the memory that ended it meanwhile. An added one has
        `recorded`, `agents`, and the `event`, `reason` and `changes` that `history` gives. Raises
        InvalidRequest if *since* is the later one, and what `moment` raises.
        """
        return self._history.diff(project, since, until, valid_at=valid_at)

    def redactions(self, project: str, since: object, until: object = None) -> Rows:
        """Return who redacted memories after *since* and by *until* (default: now).

        Both are moments or versions. Each row has item, recorded, agent and reason. Raises what
        `moment` raises.
        """
        return self._history.redactions(project, since, until)

    def moment(self, project: str, given: object, *, name: str = "as_of") -> str:
        """Return the moment *given* as the argument *name*, or that at which the memory had the version *given*.

        The number of a version is enough if no other branch has a commit of that number. Raises NotFound,
        and InvalidRequest if the version lacks commits recorded by then, on a branch that was merged later.
        """
        return self._history.moment(project, given, name)

    def version(self, project: str, as_of: object) -> Version:
        """Return the version a project's memory had at a moment."""
        return self._history.version(project, as_of)
