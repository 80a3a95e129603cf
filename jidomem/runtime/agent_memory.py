"""The memory of agents in a root: working memory, conversations, the entry store and their redaction.

Working memory is a value in the working state of the root. Turns of a conversation and entries are journalled in the
history of a project, and recall searches them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.base.clock import Sources, format_timestamp, parse_moment
from jidomem.base.words import slug, tokens
from jidomem.entries.store import NO_OPTIONS, Options, check_spelling
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound, TooLarge
from jidomem.index.search_tables import SearchFilter
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Term, iri, plain_value
from jidomem.read.conversations import EntryCache, turn, turns
from jidomem.recall.memories import ENTRIES, Entries, other_sessions, own
from jidomem.records.entry import Entry, ToolUse, Turn, WriteRequest, WriteResult
from jidomem.records.intent import Receipt
from jidomem.records.interfaces import StateStore, StateTables
from jidomem.records.named_query import moment_hint, moment_of, to_term
from jidomem.records.recall import RecallFilters, RecallRequest, RecallResult
from jidomem.working import Memory
from jidomem.working.container import RESERVED_SPACES, moment, refuse_stale, with_sources
from jidomem.working.memory import applied, unexpired
from jidomem.write.conversation import EntryChanges, SessionNotOpened, TurnTexts, conversation_of
from jidomem.write.writer import MemoryWriter

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem

TABLES = """
CREATE TABLE IF NOT EXISTS agents (project TEXT NOT NULL, agent TEXT NOT NULL, memory TEXT NOT NULL,
  PRIMARY KEY (project, agent)) WITHOUT ROWID;
"""
_PUT = "INSERT INTO agents VALUES (?, ?, ?) ON CONFLICT (project, agent) DO UPDATE SET memory = excluded.memory"
#: The most characters of a memory as JSON, which is always read and written as a whole.
MOST = 16 * 1024**2


def holders(state: StateStore, project: str) -> list[str]:
    """Return the agents that have a working memory in *project*, by name."""
    with state.reading() as store:
        if store is None:
            return []
        return [
            name for (name,) in store.execute("SELECT agent FROM agents WHERE project = ? ORDER BY agent", (project,))
        ]


def agent_of(memory: Jidomem, agent: str | None, adapter: str) -> str:
    """Return *agent*, by default the configured one; raises InvalidRequest for an invalid memory or name."""
    from jidomem.runtime.root import Jidomem

    if not isinstance(memory, Jidomem):
        given = repr(memory) if memory is None or isinstance(memory, str) else type(memory).__name__
        hint = f"{adapter}(jidomem.open({memory!r}))" if isinstance(memory, str) else f"{adapter}(jidomem.open())"
        raise InvalidRequest(f"{adapter} takes an open memory, not {given}", hint=hint)
    if agent is not None and not isinstance(agent, str):
        raise InvalidRequest(f"agent={agent!r} is not a name", hint='agent="planner"')
    return agent or memory.settings.agent


class AgentMemory:
    """The working memory of one agent in one project; its changes are serialised across processes.

    Every call raises the errors of `StateStore`.
    """

    def __init__(self, state: StateStore, project: str, agent: str, sources: Sources) -> None:
        """Use *state*; raises InvalidRequest for an agent's name without letters or digits."""
        self.project, self.agent = project, slug(agent)
        if not self.agent:
            raise InvalidRequest(f"agent={agent!r} is not a valid name of an agent", hint="give it letters or digits")
        self._state, self._sources = state, sources

    def get(self) -> Memory | None:
        """Return the memory of the agent without expired keys, None if it never had one.

        Its operations use the clock and the ids of the root.
        """
        with self._state.reading() as store:
            memory = None if store is None else self._read(store)
        return memory and unexpired(memory)

    def update(self, move: Callable[[Memory], Memory], *, expected_rev: int | None = None) -> Memory:
        """Apply *move* to the memory and return the result once it is durable; the first call gets an empty memory.
        A change also deletes the expired keys.

        Other changes wait meanwhile, so *move* should not take long. Raises RevisionConflict if the memory is not at
        *expected_rev* (0 before the first change), InvalidRequest if *move* returns no Memory or one without a JSON
        form, TooLarge for one of more than `MOST` characters; then nothing has changed.
        """
        with self._state.changing() as store:
            stored = self._read(store)
            before = self._new() if stored is None else stored
            refuse_stale(f"the memory of {self.agent!r}", expected_rev, before.rev)
            after = move(before)
            if not isinstance(after, Memory):
                hint = "let it return the memory: lambda memory: memory.world_put('language', 'en')"
                raise InvalidRequest(f"a change of a memory returns a Memory, not {after!r:.200}", hint=hint)
            if after is not stored:
                after = unexpired(with_sources(after, self._sources))
                rows = (self.project, self.agent, self._to_json(after))
                store.execute(_PUT, rows)
            return after

    def apply(self, changes: Sequence[Mapping[str, Any]], *, expected_rev: int | None = None) -> Memory:
        """Apply *changes*, data in the form of `jidomem.working.memory`, all of them or none; return the memory.

        Raises the errors of the changes and of `update`.
        """
        return self.update(lambda memory: applied(memory, changes, self._now()), expected_rev=expected_rev)

    def forget(self) -> bool:
        """Delete the memory, every byte of it; return whether it existed."""
        with self._state.changing() as store:
            sql = "DELETE FROM agents WHERE project = ? AND agent = ?"
            is_deleted = store.execute(sql, (self.project, self.agent)).rowcount > 0
        if is_deleted:
            self._state.scrub()
        return is_deleted

    def _new(self) -> Memory:
        return with_sources(Memory.new(now=self._now(), new_id=self._sources.new_id), self._sources)

    def _now(self) -> int:
        return moment(None, self._sources)

    def _to_json(self, memory: Memory) -> str:
        text = json.dumps(memory.to_dict(), ensure_ascii=False)
        if len(text) > MOST:
            raise TooLarge(
                f"the memory of {self.agent!r} would have {len(text):,} characters, more than {MOST:,}",
                hint="store large values elsewhere, and a pointer to them here: world['pointers']",
            )
        return text

    def _read(self, store: StateTables) -> Memory | None:
        sql = "SELECT memory FROM agents WHERE project = ? AND agent = ?"
        row = store.execute(sql, (self.project, self.agent)).fetchone()
        try:
            return None if row is None else with_sources(Memory.from_dict(json.loads(row[0])), self._sources)
        except (ValueError, TypeError, RecursionError, InvalidRequest) as error:
            raise self._state.damaged(f"the stored memory of {self.agent!r} is invalid: {error}") from error


class Conversation:
    """The conversation of the work session `session`; its IRI is `iri`."""

    def __init__(
        self,
        project: str,
        session: str,
        writer: MemoryWriter,
        index: OxigraphIndex,
        catch_up: Callable[[str], object],
        now: Callable[[], datetime],
        *,
        agent: str,
    ) -> None:
        """Use the conversation of *session*, a name or an IRI, in the history of *project*; *agent* answers."""
        node = writer.session_iri(session)
        self.project, self.session, self.iri = project, plain_value(node), plain_value(conversation_of(node))
        self._writer, self._index, self._catch_up, self._now = writer, index, catch_up, now
        self._agent = agent

    def record(
        self,
        prompt: str | None = None,
        answer: str | None = None,
        *,
        asked_by: str | None = None,
        answered_by: str | None = None,
        tools: Sequence[ToolUse] = (),
        timestamp: object = None,
        idempotency_key: str | None = None,
    ) -> Turn:
        """Record the next turn, durably: a prompt, its answer, and the tools used; return the turn.

        A retry of the same agent with the same *idempotency_key* in the same conversation gets the stored turn, or
        IdempotencyMismatch if it has other words. The default of *answered_by* is the agent of the conversation, of
        *timestamp* now. A session that is not open is opened. A memory derived from the turn names its `iri` as
        evidence. Raises InvalidRequest, TooLarge, IntentRefused, Busy and Failed; then nothing of the turn was stored.
        """
        for name, agent, words in (("asked_by", asked_by, prompt), ("answered_by", answered_by, answer)):
            if agent is not None and words is None:
                raise InvalidRequest(f"{name}={agent!r} without a text", hint=f"leave {name} out")
        agent = self._agent if answered_by is None else answered_by
        texts = TurnTexts(
            prompt,
            answer,
            self._writer.speaker_iri(asked_by),
            self._writer.speaker_iri(agent) if answer is not None else None,
            tuple(tools),
            self._moment(timestamp),
        )
        receipt = self._record(texts, agent, idempotency_key)
        self._catch_up(self.project)
        return turn(self._index, self.project, f"<{receipt.iri}>")

    def _record(self, texts: TurnTexts, agent: str, key: str | None) -> Receipt:
        """Store a turn, and return its receipt; a session that is not open is opened first."""
        with suppress(SessionNotOpened):
            return self._writer.keep_turn(self.project, self.session, texts, key)
        try:
            self._writer.start_session(self.project, self.session, agent=agent)
        except IntentRefused as refused:
            if refused.code != "iri_exists":  # another process has opened it meanwhile
                raise
        return self._writer.keep_turn(self.project, self.session, texts, key)

    def turns(self, last: int | None = None, *, as_of: object = None) -> list[Turn]:
        """Return the turns in order, or only the *last* ones, recorded by *as_of*.

        Raises InvalidRequest for a *last* that is not an integer from 0, and an invalid *as_of*.
        """
        if last is not None and (isinstance(last, bool) or not isinstance(last, int) or last < 0):
            raise InvalidRequest(f"last={last!r} is not a number of turns", hint="give last=10, or leave it out")
        moment = None if as_of is None else plain_value(to_term(as_of, "dateTime", "as_of"))
        try:
            self._catch_up(self.project)
        except NotFound as unknown:
            if unknown.code != "unknown_project":
                raise
            return []
        recorded = turns(self._index, self.project, f"<{self.iri}>", moment)
        return recorded if last is None else recorded[max(0, len(recorded) - last) :]

    def _moment(self, given: object) -> str:
        moment = self._now() if given is None else parse_moment(given)
        if moment is None:
            raise InvalidRequest(f"timestamp={given!r:.80} is not a date or time", hint=moment_hint("timestamp"))
        return format_timestamp(moment)


#: The options of the recall of memories that also apply to entries; `_HINTS` and `_ELSEWHERE` have the others.
_HONOURED = ("as_of", "since", "until", "budget_tokens", "explain")
_OPTIONS = ("project", "include_sessions", *_HONOURED)
#: Fields of a request, which are not options.
_OF_REQUEST = ("query", "limit", "scope", "agent_id", "session_id")
_ELSEWHERE = 'ask memory.recall("...", kinds=["entry"]), which supports it'
_HINTS = {
    "agent": "name it in the request, as agent_id",
    "session": "name it in the request, as session_id",
    "kinds": 'leave it out, or ask memory.recall("...", kinds=["entry", "turn"])',
}


class EntryStore:
    """A durable store of entries; a later write under the same id replaces the entry, also that of another agent.

    Options: `project` selects the history (default: that of *project*); `as_of` a past state; `include_sessions=True`
    lets an agent recall entries of other sessions; `since` and `until` bound the time of storage, `budget_tokens` the
    length of all texts, and `explain=True` returns the parts of each score and their reasons. Other options of the
    recall of memories, and misspelt ones, are refused; other names are ignored.
    """

    def __init__(self, project: str, writer: MemoryWriter, memory: Jidomem) -> None:
        """Write by *writer*, and read from *memory*, an open root."""
        self.project = project
        self._writer = writer
        self._memory = memory

    def recall(self, request: RecallRequest, opts: Options = NO_OPTIONS) -> RecallResult:
        """Return the entries in scope: matches of the query, the best first, then the newest.

        So an agent with entries always gets some, up to the limit; `metadata["scores"]` has the score of each match by
        its id, `metadata["other_sessions"]` the number of entries in each session that was not searched.
        """
        filters, all_sessions = _filters(opts)
        if not self._is_there(opts):
            return RecallResult(request, [], {"scores": {}})
        project, now = self._project(opts), self._memory.now()
        within = SearchFilter(
            moment=moment_of(opts.get("as_of"), "as_of"),
            kinds=ENTRIES,
            since=moment_of(opts.get("since"), "since"),
            until=moment_of(opts.get("until"), "until"),
            own=own(request, every=all_sessions),
        )
        alike = self._memory.vector_query(request.query, project, within.moment, spoken=True)
        matches = self._entries(opts).recall(request, within, now, alike, explains=filters.explain)
        fitting = _fitting(matches.entries, filters.budget_tokens)
        named = {name: entry.id for name, entry in fitting.items() if name in matches.scores}
        metadata: dict[str, Any] = {"scores": {id_: matches.scores[name] for name, id_ in named.items()}}
        if filters.explain:
            metadata["parts"] = {id_: matches.parts[name] for name, id_ in named.items()}
            metadata["reasons"] = {id_: list(matches.reasons[name]) for name, id_ in named.items()}
        if filters.budget_tokens is not None:
            metadata["left_out"] = len(matches.entries) - len(fitting)
        if request.scope == "agent":
            metadata |= other_sessions(self._memory.texts, Stream(project, "history"), within)
        state = {"ranking": matches.ranking, **self._memory.lag(project)}
        return RecallResult(request, [*fitting.values()], {**metadata, **state})

    def scores(self, request: RecallRequest, nodes: Iterable[Term] | None = None) -> dict[Term, float]:
        """Return the scores of up to `limit` matching entries in scope, best first; of all sessions.

        Only the entries *nodes* are ranked, unless it is None.
        """
        if not self._is_there(NO_OPTIONS):
            return {}
        items = None if nodes is None else frozenset(map(plain_value, nodes))
        within = SearchFilter(kinds=ENTRIES, items=items, own=own(request, every=True))
        alike = self._memory.vector_query(request.query, self.project, None, spoken=True)
        answer = self._entries(NO_OPTIONS).ranked(request, within, self._memory.now(), alike)
        return {iri(one.found.candidate.passage.item): one.score for one in answer.ranked[: request.limit]}

    def write(self, request: WriteRequest, opts: Options = NO_OPTIONS) -> WriteResult:
        """Store the entry durably; it replaces an entry with the same id.

        Raises InvalidRequest for metadata without a JSON form, TooLarge, IntentRefused for a likely secret,
        PolicyDenied, Busy and Failed; then nothing was stored.
        """
        (result,) = self.write_many([request], opts)
        if isinstance(result, JidomemError):
            raise result
        return result

    def write_many(
        self, requests: Iterable[WriteRequest], opts: Options = NO_OPTIONS
    ) -> list[WriteResult | JidomemError]:
        """Return the outcome of each write, in order: its result, or its error.

        They share commits, each of which waits for the disk once.
        """
        pending = list(requests)
        outcomes = self._writer.keep_entries(self._project(opts), [request.entry for request in pending])
        results: list[WriteResult | JidomemError] = []
        for request, outcome in zip(pending, outcomes, strict=True):
            if isinstance(outcome, JidomemError):
                results.append(outcome)
                continue
            warned = {"warnings": list(outcome.warnings)} if outcome.warnings else {}
            metadata = {"iri": outcome.iri, "commit": outcome.commit, **warned}
            results.append(WriteResult(request, request.entry, metadata=metadata))
        return results

    def remove(self, ids: Iterable[str], opts: Options = NO_OPTIONS) -> int:
        """Remove the entries *ids*, and return how many existed; they stay in the history.

        All are withdrawn in one durable commit, or none. Raises PolicyDenied, Busy and Failed.
        """
        return len(self.change(lambda: EntryChanges(removed=tuple(dict.fromkeys(ids))), opts))

    def change(self, plan: Callable[[], EntryChanges], opts: Options = NO_OPTIONS) -> list[Receipt]:
        """Apply the changes of *plan* in one commit, all or none, and return their receipts.

        *plan* may read the entries: no other writer can change them before the commit. Raises the errors of `write` and
        of *plan*.
        """
        receipts = self._writer.change_entries(self._project(opts), plan)
        return [receipt for receipt in receipts if receipt.iri]

    def keyed(self, beginning: str, group: Callable[[str], str] = str) -> EntryCache:
        """Return a cache of this project's entries with the id prefix *beginning*, in groups named by *group*."""
        follower, history = self._memory.follower, Stream(self.project, "history")
        return EntryCache(self._memory.index, history.graph, beginning, lambda: follower.catch_up(history), group)

    def list_entries(self, opts: Options = NO_OPTIONS) -> list[Entry]:
        """Return the entries of all agents, in the order of their first writing."""
        return self._entries(opts).all_entries(moment_of(opts.get("as_of"), "as_of")) if self._is_there(opts) else []

    def _entries(self, opts: Options) -> Entries:
        return Entries(self._project(opts), self._memory.texts, self._memory.index)

    def _project(self, opts: Options) -> str:
        check_spelling(opts, _OPTIONS)
        return str(opts.get("project") or self.project)

    def _is_there(self, opts: Options) -> bool:
        """Return whether the project exists, after catching up; raises NotFound if an option named it."""
        try:
            self._memory.catch_up(self._project(opts))
        except NotFound as unknown:
            if unknown.code != "unknown_project" or opts.get("project"):
                raise
            return False
        return True


def _filters(opts: Options) -> tuple[RecallFilters, bool]:
    """Return the filters by options, and whether all sessions are included; raises InvalidRequest."""
    check_spelling(opts, _OPTIONS)
    if of_request := [name for name in _OF_REQUEST if name in opts]:
        raise InvalidRequest(f"{of_request[0]} is not an option", hint=f"give {of_request[0]} in the request")
    all_sessions = opts.get("include_sessions", False)
    if not isinstance(all_sessions, bool):
        raise InvalidRequest(
            f"include_sessions={all_sessions!r} is not true or false", hint="give include_sessions=True"
        )
    for name in opts:
        if name in RecallFilters.__slots__ and name not in _HONOURED:
            raise InvalidRequest(f"a store of entries has no option {name}", hint=_HINTS.get(name, _ELSEWHERE))
    return RecallFilters(**{name: opts[name] for name in _HONOURED if opts.get(name) is not None}), all_sessions


def _fitting(entries: Mapping[str, Entry], budget: int | None) -> dict[str, Entry]:
    """Return the longest prefix of *entries* whose texts have at most *budget* tokens together."""
    if budget is None:
        return dict(entries)
    spent = accumulate(tokens(entry.content) for entry in entries.values())
    return {name: entry for (name, entry), sum_ in zip(entries.items(), spent, strict=True) if sum_ <= budget}


REDACTED_TEXT = "[redacted]"
_HOLDERS = "memoryos_holders"
Shows = Callable[[str], bool]


class _Change(NamedTuple):
    """A statement that redacts an entry of the working state, and the place and former content of that entry.

    Without a place it changes the revision of a holder only.
    """

    statement: str
    row: tuple[Any, ...]
    place: str = ""
    content: Any = None


def redact_working_state(
    state: StateStore, project: str, shows: Shows, *, dry_run: bool = False
) -> dict[str, list[tuple[str, Any]]]:
    """Redact each text for which *shows* returns True in the working state of *project*, every byte of it.

    A value becomes `REDACTED_TEXT`, a key is removed with its value, and each revision increases. Texts stay if they
    cannot be changed, for example while another process writes. Returns place and former content of the changed
    entries, by kind; with *dry_run*, of those that would change, and nothing is changed.
    """
    changes: dict[str, list[_Change]] = {}
    with suppress(JidomemError):
        with state.reading() as store:
            if store is None:
                return {}
            if dry_run:
                changes = _changes(store, project, shows)
        if not dry_run:
            with state.changing() as store:
                statements = _changes(store, project, shows)
                for change in chain.from_iterable(statements.values()):
                    store.execute(change.statement, change.row)
            changes = statements
            if any(statements.values()):
                state.scrub()
    entries = {kind: [(each.place, each.content) for each in of if each.place] for kind, of in changes.items()}
    return {kind: of for kind, of in entries.items() if of}


def _changes(store: StateTables, project: str, shows: Shows) -> dict[str, list[_Change]]:
    """Return the statements that redact the texts, by the kind of entry."""
    kinds = {
        "working memories": _memories,
        "stored values": _redacted_values,
        "pages or parts of MemoryOS": _tiers,
        "pending directives": _redacted_directives,
        "settings and notes": _notes,
        "jobs": _jobs,
    }
    return {kind: [*changes(store, project, shows)] for kind, changes in kinds.items()}


def _memories(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    rows = store.execute("SELECT agent, memory FROM agents WHERE project = ?", (project,)).fetchall()
    for agent, text in rows:
        memory = json.loads(text)
        if shows(agent):
            yield _Change("DELETE FROM agents WHERE project = ? AND agent = ?", (project, agent), agent, memory)
        elif (redacted := _memory(memory, shows)) is not None:
            change = "UPDATE agents SET memory = ? WHERE project = ? AND agent = ?"
            spaces = {name: each for name, each in memory["spaces"].items() if each != redacted["spaces"].get(name)}
            yield _Change(change, (_json(redacted), project, agent), agent, spaces or memory["metadata"])


def _memory(memory: dict[str, Any], shows: Shows) -> dict[str, Any] | None:
    """Return a memory without the shown texts, None if there are none."""
    spaces = {}
    for name, space in memory["spaces"].items():
        if name in RESERVED_SPACES or not shows(name):
            redacted = {**space, "data": _without(space["data"], shows), "metadata": _without(space["metadata"], shows)}
            spaces[name] = {**redacted, "rev": space["rev"] + 1} if redacted != space else space
    redacted = {**memory, "spaces": spaces, "metadata": _without(memory["metadata"], shows)}
    return {**redacted, "rev": memory["rev"] + 1} if redacted != memory else None


def _redacted_values(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    rows = store.execute("SELECT namespace, key, value FROM key_values").fetchall()
    for namespace, key, text in rows:
        if not namespace.startswith(f"{project}/"):
            continue
        value, place = json.loads(text), f"{namespace} {key}"
        if shows(key) or shows(namespace):
            yield _Change("DELETE FROM key_values WHERE namespace = ? AND key = ?", (namespace, key), place, value)
        elif (redacted := _without(value, shows)) != value:
            redacted = _bare(redacted) if key.startswith("memoryos:") else redacted  # an archived segment
            change = "UPDATE key_values SET value = ? WHERE namespace = ? AND key = ?"
            yield _Change(change, (_json(redacted), namespace, key), place, value)


def _tiers(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    """Yield the changes of parts of tiers that show a text, and of the revisions of their holders; drop vectors."""
    sql = "SELECT holder, kind, id, place, held FROM memoryos_parts WHERE project = ?"
    moved: dict[str, None] = {}
    for holder, kind, id_, place, text in store.execute(sql, (project,)).fetchall():
        value, row, name = json.loads(text), (project, holder, kind, id_), f"{holder} {kind} {id_}"
        if shows(holder) or any(map(shows, _names(id_, place))):
            yield _Change(f"DELETE FROM memoryos_parts WHERE {_PART}", row, name, value)
        elif (redacted := _without(value, shows)) != value:
            change = f"UPDATE memoryos_parts SET held = ?, vector = NULL, rev = {_NEXT} WHERE {_PART}"
            yield _Change(change, (_json(redacted), project, holder, *row), name, value)
        else:
            continue
        moved[holder] = None
    for holder in moved:
        yield _Change(f"UPDATE {_HOLDERS} SET rev = rev + 1 WHERE project = ? AND holder = ?", (project, holder))
        if shows(holder):
            yield _Change(f"DELETE FROM {_HOLDERS} WHERE project = ? AND holder = ?", (project, holder))


_PART = "project = ? AND holder = ? AND kind = ? AND id = ?"
_NEXT = "(SELECT rev + 1 FROM memoryos_holders WHERE project = ? AND holder = ?)"


def _names(*written: str) -> Iterator[str]:
    """Yield the texts in an id: some ids are lists in JSON."""
    for text in written:
        parts = json.loads(text) if text.startswith("[") else text
        yield from _names(*parts) if isinstance(parts, list) else [text]


def _redacted_directives(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    """Yield the changes of pending directives that show a text; their vectors are dropped."""
    rows = store.execute(
        "SELECT holder, request, directive FROM memoryos_asked WHERE project = ?", (project,)
    ).fetchall()
    for holder, request, text in rows:
        directive = json.loads(text)
        if (redacted := _without(directive, shows)) != directive:
            redacted["items"] = [
                {**item, "embedding": None, "value": _bare(item["value"])} for item in redacted["items"]
            ]
            change = "UPDATE memoryos_asked SET directive = ? WHERE project = ? AND holder = ? AND request = ?"
            yield _Change(change, (_json(redacted), project, holder, request), f"{holder} {request}", directive)


def _notes(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    sql = "SELECT kind, name, held FROM memoryos_notes WHERE project = ?"
    for kind, name, text in store.execute(sql, (project,)).fetchall():
        row, value = (project, kind, name), json.loads(text)
        if shows(name):
            change = "DELETE FROM memoryos_notes WHERE project = ? AND kind = ? AND name = ?"
            yield _Change(change, row, f"{kind} {name}", value)
        elif (redacted := _without(value, shows)) != value:
            change = "UPDATE memoryos_notes SET held = ? WHERE project = ? AND kind = ? AND name = ?"
            yield _Change(change, (_json(redacted), *row), f"{kind} {name}", value)


def _jobs(store: StateTables, project: str, shows: Shows) -> Iterator[_Change]:
    """Yield the changes of jobs: their errors may quote a text; their subjects are only ids."""
    for job, agent, error in store.execute(
        "SELECT id, agent, error FROM jobs WHERE project = ?", (project,)
    ).fetchall():
        if shows(agent):
            yield _Change("DELETE FROM jobs WHERE id = ?", (job,), agent, error)
        elif error is not None and shows(error):
            yield _Change("UPDATE jobs SET error = ? WHERE id = ?", (REDACTED_TEXT, job), agent, error)


def _bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if key == "embedding" else _bare(each) for key, each in value.items()}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _without(value: Any, shows: Shows) -> Any:
    if isinstance(value, str):
        return REDACTED_TEXT if shows(value) else value
    if isinstance(value, list):
        return [_without(each, shows) for each in value]
    if isinstance(value, dict):
        return {key: _without(each, shows) for key, each in value.items() if not shows(key)}
    return value


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
