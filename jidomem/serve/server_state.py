"""The state of a running server: counters, index lag and the context of a request.

Counters are bounded, and a `Ledger` adds them to the interface log of the root every few seconds.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache, partial
from ipaddress import ip_address
from operator import add
from threading import BoundedSemaphore, Event, Lock
from time import monotonic
from typing import Any, NamedTuple, TypeVar

from jidomem.base.background import BackgroundTask, PeriodicTask
from jidomem.base.clock import format_timestamp, now
from jidomem.base.containers import BoundedDict
from jidomem.errors import JidomemError, JournalDamaged, NotFound, PolicyDenied, Unauthenticated, nearest_names
from jidomem.journal.journal import Stream
from jidomem.records.intent import SHORT, Version
from jidomem.runtime.logs import ClientActivity, InterfaceLog, RefusedAt
from jidomem.runtime.root import Jidomem
from jidomem.runtime.tokens import Keyring
from jidomem.runtime.user_config import EVERY, ApiToken
from jidomem.runtime.worker_pool import Semaphore
from jidomem.serve import wire
from jidomem.serve.log import Log
from jidomem.serve.shared_state import FIGURES, FileVerifier, FlashMessages, FormDeduplicator, SharedState
from jidomem.write.writer import MemoryWriter

#: The most kinds of refusals, and the most clients, that are counted separately.
REFUSALS, CLIENTS = 4_000, 500
#: The agent of refusals that are no longer counted separately.
OTHERS = "others"
#: The most characters of a name given by a client.
_MAX_NAME_CHARS = 100


class Refusal(NamedTuple):
    """A kind of refusal; project and agent are empty if unknown."""

    day: str
    project: str
    agent: str
    code: str


class ClientIdentity(NamedTuple):
    """A client of a project; `address` is the kind of its address."""

    project: str
    agent: str
    user_agent: str
    address: str


@dataclass(slots=True)
class ClientVisits:
    """The first and last request of a client, and their number."""

    first: datetime
    last: datetime
    requests: int = 0


class Refusals:
    """The numbers of refusals by kind; beyond the limit the oldest kinds are counted by code only."""

    def __init__(self) -> None:
        self.counts: dict[Refusal, int] = {}
        self.others: Counter[str] = Counter()  # by code

    def add(self, day: str, project: str | None, agent: str | None, code: str) -> None:
        """Count a refusal."""
        key = Refusal(day, _cut(project), _cut(agent), code)
        if key not in self.counts and len(self.counts) >= REFUSALS:
            oldest = next(iter(self.counts))
            self.others[oldest.code] += self.counts.pop(oldest)
        self.counts[key] = self.counts.get(key, 0) + 1


class Clients:
    """The latest clients."""

    def __init__(self) -> None:
        self.seen = BoundedDict[ClientIdentity, ClientVisits](CLIENTS)

    def add(self, at: datetime, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count a request."""
        key = ClientIdentity(_cut(project), _cut(agent), _cut(user_agent), kind_of(address))
        visits = self.seen.get(key) or ClientVisits(at, at)
        visits.last, visits.requests = at, visits.requests + 1
        self.seen[key] = visits


def _cut(text: str | None) -> str:
    return (text or "")[:_MAX_NAME_CHARS]


@lru_cache(1_000)
def kind_of(address: str) -> str:
    """Return the kind of an address; the address itself is stored nowhere.

    >>> kind_of("127.0.0.1"), kind_of("10.1.2.3"), kind_of("8.8.8.8")
    ('this machine', 'private network', 'elsewhere')
    """
    try:
        ip = ip_address(address)
    except ValueError:
        return "unknown"
    if ip.is_loopback:
        return "this machine"
    return "private network" if ip.is_private else "elsewhere"


#: The upper bounds of the buckets of a histogram, in seconds.
BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


#: The cells of a histogram: its counts by bucket, the last without a bound, and the sum of its seconds.
_CELLS = len(BOUNDS) + 2
#: The families of figures.
_REQUESTS, _REFUSALS, _ROUTES, _QUESTIONS, _COMMITS, _CALLS, _TOOLS, _GAUGES = (
    "requests", "refusals", "routes", "questions", "commits", "calls", "tools", "gauges",
)  # fmt: skip
Name = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    """A histogram of durations: `counts` by bucket, the last without a bound, and the sum of `seconds`."""

    counts: list[float]
    seconds: float


class SharedCounters:
    """Named rows of numbers in one piece of memory: one process changes them, others may read them.

    The first cell is the size of the directory, which follows the cells: a line of JSON for each row, with its name and
    the number of its cells. A row beyond the memory is one that nobody reads.
    """

    def __init__(self, memory: memoryview | None = None) -> None:
        """Use *memory*, which may have figures, or memory of this process."""
        memory = memoryview(bytearray(FIGURES)) if memory is None else memory
        self.cells: memoryview[float] = memory[: FIGURES // 2].cast("d")
        self._directory = memory[FIGURES // 2 :]
        self._rows: dict[Name, int] = {}
        self._sizes: dict[Name, int] = {}
        self._end, self._free = 0, 1 + _CELLS
        self._refresh()

    def row(self, name: Name, size: int = 1) -> int:
        """Return the first cell of the row *name*, which is added with *size* cells if it is missing."""
        place = self._rows.get(name)
        return self._add(name, size) if place is None else place

    def rows(self, family: str) -> dict[Name, list[float]]:
        """Return the cells of each row whose name begins with *family*, by the rest of its name."""
        self._refresh()
        return {
            name[1:]: [*self.cells[place : place + self._sizes[name]]]
            for name, place in [*self._rows.items()]
            if name[0] == family
        }

    def _add(self, name: Name, size: int) -> int:
        line = json.dumps([name, size]).encode() + b"\n"
        end = self._end + len(line)
        if end > len(self._directory) or self._free + size > len(self.cells):
            return 1
        self._directory[self._end : end] = line
        self.cells[0] = end  # from here on readers see the row
        self._refresh()
        return self._rows[name]

    def _refresh(self) -> None:
        """Read the rows that were added to the directory."""
        size = int(self.cells[0])
        for line in bytes(self._directory[self._end : size]).splitlines():
            words, cells = json.loads(line)
            name = tuple(words)
            self._rows[name], self._sizes[name] = self._free, cells
            self._free += cells
        self._end = size


class ServerTotals(NamedTuple):
    """The figures of a server, of all its workers: counts, and histograms by name."""

    requests: Mapping[Name, float]  # by route, method and status
    refusals: Mapping[str, float]  # by code
    calls: Mapping[Name, float]  # by method of MCP, tool (if any) and outcome
    routes: Mapping[str, Histogram]
    questions: Mapping[str, Histogram]
    tools: Mapping[str, Histogram]
    commits: Histogram
    under_way: float
    lost_lines: float


class ServerMeasures:
    """The counters of one server; any thread may add to them, and readers acquire `lock`.

    Those of a worker are in memory that its server shares, and continue those of the worker that it replaces.
    """

    def __init__(self, shared: SharedState | None = None) -> None:
        self.lock = Lock()
        self.began = monotonic() if shared is None else shared.began
        self.since = now() if shared is None else shared.since
        self.kinds = Refusals()
        self.clients = Clients()
        #: When the token of each id was last used here.
        self.used: dict[str, datetime] = {}
        self._shared = shared
        self._figures = SharedCounters(None if shared is None else shared.figures(shared.number))
        self._others = {} if shared is None else _figures_of_others(shared)
        for name in self._figures.rows(_GAUGES):
            self._figures.cells[self._figures.row((_GAUGES, *name))] = 0
        self._under_way = self._figures.row((_GAUGES, "under way"))
        self._commits = self._figures.row((_COMMITS,), _CELLS)
        self._lost = self._figures.row(("lost lines",))

    def begun(self) -> None:
        """Count the start of a request."""
        with self.lock:
            self._figures.cells[self._under_way] += 1

    def ended(self, route: str, method: str, status: int, seconds: float, question: str | None = None) -> None:
        """Count the end of a request; *question* is its named query."""
        figures = self._figures
        with self.lock:
            figures.cells[self._under_way] -= 1
            figures.cells[figures.row((_REQUESTS, route, method, str(status)))] += 1
            self._observe(figures.row((_ROUTES, route), _CELLS), seconds)
            if question is not None:
                self._observe(figures.row((_QUESTIONS, question), _CELLS), seconds)

    def called(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a request of MCP; *tool* is empty if it calls none."""
        with self.lock:
            self._figures.cells[self._figures.row((_CALLS, method, tool, outcome))] += 1
            if tool:
                self._observe(self._figures.row((_TOOLS, tool), _CELLS), seconds)

    def refused(self, code: str, agent: str | None = None, project: str | None = None) -> None:
        """Count the refusal of a request, or of one intent among several."""
        day = format_timestamp(now())[:10]
        with self.lock:
            self._figures.cells[self._figures.row((_REFUSALS, code))] += 1
            self.kinds.add(day, project, agent, code)

    def client_seen(self, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count a request for *project* by client."""
        with self.lock:
            self.clients.add(now(), project, agent, user_agent, address)

    def token_used(self, token: str) -> None:
        """Note that the token of that id was used now."""
        with self.lock:
            self.used[token] = now()

    def committed(self, seconds: float) -> None:
        """Count a commit that was durable after *seconds*."""
        with self.lock:
            self._observe(self._commits, seconds)

    def line_lost(self) -> None:
        """Count a line of the log that was dropped; without the lock, as a signal handler may log."""
        self._figures.cells[self._lost] += 1

    @property
    def under_way(self) -> int:
        """Return the number of requests of this process that are under way."""
        return int(self._figures.cells[self._under_way])

    def set_gauge(self, name: Name, value: float) -> None:
        """Set a figure of this worker for the other ones."""
        with self.lock:
            self._figures.cells[self._figures.row((_GAUGES, *name))] = value

    def gauges_of_others(self) -> list[dict[Name, float]]:
        """Return the figures that each other worker has set, by name."""
        live = {} if self._shared is None else self._shared.pids()
        return [
            {name: cells[0] for name, cells in figures.rows(_GAUGES).items()}
            for number, figures in self._others.items()
            if number in live
        ]

    def totals(self) -> ServerTotals:
        """Return the sums over all workers; readers acquire `lock`."""
        under_way = sum(each.get(("under way",), 0) for each in self.gauges_of_others())
        return ServerTotals(
            {name: count for name, (count,) in self._sums(_REQUESTS).items()},
            {code: count for (code,), (count,) in self._sums(_REFUSALS).items()},
            {name: count for name, (count,) in self._sums(_CALLS).items()},
            self._histograms(_ROUTES),
            self._histograms(_QUESTIONS),
            self._histograms(_TOOLS),
            self._histograms(_COMMITS)[""],
            under_way + self.under_way,
            self._sums("lost lines")[()][0],
        )

    def _observe(self, row: int, seconds: float) -> None:
        cells = self._figures.cells
        cells[row + bisect_left(BOUNDS, seconds)] += 1
        cells[row + _CELLS - 1] += seconds

    def _sums(self, family: str) -> dict[Name, list[float]]:
        sums: dict[Name, list[float]] = {}
        for figures in (self._figures, *self._others.values()):
            for name, cells in figures.rows(family).items():
                sums[name] = [*map(add, sums[name], cells)] if name in sums else cells
        return sums

    def _histograms(self, family: str) -> dict[str, Histogram]:
        sums = self._sums(family)
        return {"".join(name): Histogram(cells[:-1], cells[-1]) for name, cells in sums.items()}


def _figures_of_others(shared: SharedState) -> dict[int, SharedCounters]:
    numbers = (number for number in range(1, shared.workers + 1) if number != shared.number)
    return {number: SharedCounters(shared.figures(number)) for number in numbers}


#: The interfaces, as the interface log names them.
HTTP, MCP_HTTP, MCP_STDIO = "HTTP", "MCP over HTTP", "MCP over standard input"
_SECONDS, _LAST = 5.0, 2.0
#: The least time between two moments of use of one token that are written.
_USES = timedelta(minutes=1)
T = TypeVar("T")


class Ledger:
    """A periodic task that adds the counters of one server to the interface log of the root."""

    def __init__(self, log: InterfaceLog, interface: str, measures: ServerMeasures) -> None:
        """Add the counts of *measures* at *interface* to *log*, from now on."""
        self.log, self._interface, self._measures = log, interface, measures
        self._lock = Lock()
        self._refused: dict[Refusal, int] = {}
        self._others: dict[str, int] = {}
        self._counted: dict[ClientIdentity, int] = {}
        self._used: dict[str, datetime] = {}
        self._between = _USES
        self._task = PeriodicTask(_SECONDS, self.save, "jidomem-ledger", runs_at_end=True)

    def save(self) -> bool:
        """Add the counts since the last call, and return whether they could be written."""
        with self._lock:
            with self._measures.lock:
                refused = dict(self._measures.kinds.counts)
                others = dict(self._measures.kinds.others)
                seen = {client: (visits.requests, format_timestamp(visits.first), format_timestamp(visits.last))
                        for client, visits in self._measures.clients.seen.items()}  # fmt: skip
                used = dict(self._measures.used)
            due = {token: at for token, at in used.items() if self._is_due(at, self._used.get(token))}
            place = self._interface
            rows = [RefusedAt(*each, place, more) for each, more in _more(refused, self._refused)]
            rows += [RefusedAt("", "", OTHERS, code, place, more) for code, more in _more(others, self._others)]
            counts = {client: requests for client, (requests, _, _) in seen.items()}
            news = _more(counts, self._counted)
            clients = [ClientActivity(*each, place, *seen[each][1:], more) for each, more in news]
            if rows or clients or due:
                try:
                    self.log.add(rows, clients, {token: format_timestamp(at) for token, at in due.items()})
                except JidomemError:  # such as a full disk or a slow writer: the next call adds them
                    return False
            self._refused, self._others, self._counted = refused, others, counts
            self._used |= due
            return True

    def _is_due(self, at: datetime, written: datetime | None) -> bool:
        """Return whether the use of a token *at* a moment is to be written, after the one *written* before."""
        return written is None or (at > written and at - written >= self._between)

    def close(self) -> None:
        """Add the last counts, unless a signal interrupted the counting."""
        self._between = timedelta()
        self._task.stop(_LAST)


def _more(now: dict[T, int], before: dict[T, int]) -> list[tuple[T, int]]:
    """Return the growth of each count; a count that was dropped meanwhile started again at 0."""
    grown = ((each, count, before.get(each, 0)) for each, count in now.items())
    return [(each, count - was if count > was else count) for each, count, was in grown if count != was]


#: Seconds for which a readiness check is valid, and for which it is still used during the next check.
FRESH, LASTS = 1.0, 4.0


class Readiness:
    """The readiness of a server, checked at most once a second, by one thread at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found = False
        self._at = -LASTS
        self._faults: dict[str, str] = {}
        self.locked: dict[Stream, tuple[float, Version]] = {}  # since when, at which version

    def latest(self, is_ready: Callable[[], bool]) -> bool:
        """Return the latest answer of *is_ready*, at most a second old; False if a check takes too long."""
        if monotonic() - self._at >= FRESH and self._lock.acquire(blocking=False):
            try:
                self._found = is_ready()
                self._at = monotonic()
            finally:
                self._lock.release()
        return self._found and monotonic() - self._at < LASTS

    def has_changed_to(self, fault: str, part: str = "") -> bool:
        """Return whether *fault*, the reason why a write (of a *part*) would fail, is another one than before."""
        before, self._faults[part] = self._faults.get(part, ""), fault
        return fault not in ("", before)


class CatchUpTask:
    """Applies pending commits to the index in the background, one run at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._task = BackgroundTask("jidomem-catch-up", daemon=True)

    def follow(self, memory: Jidomem) -> None:
        """Start with the commits of a shared root, and make checkpoints of it from now on."""
        if memory.place.is_shared:
            self.wait(memory, 0)
        memory.place.keep_checkpoints(lambda: [memory.catch_up(project) for project in memory.projects()])

    def wait(self, memory: Jidomem, seconds: float) -> None:
        """Return once the index has caught up with the journal, or after *seconds*."""
        with self._lock:
            self._task.start(partial(_catch_up, memory))
        self._task.wait(seconds)


def _catch_up(memory: Jidomem) -> None:
    catch_up(memory, memory.projects())


def catch_up(memory: Jidomem, projects: Iterable[str]) -> None:
    """Apply all commits of *projects* to the index; a fault is left to the reads of its project."""
    for project in projects:
        with suppress(JidomemError, OSError, RuntimeError):  # the index stays behind, as `standing` reports
            memory.catch_up(project)


#: Seconds after which a query or a commit loses its turn.
LONGEST_TURN = 0.05


class Turns:
    """The turns of named queries and commits, one at a time and in the order of their arrival.

    Threads that run at once in one interpreter take it from each other: each takes longer, and none finds the page that
    another has just read. What takes longer than *longest* seconds loses its turn, so that it delays no other.
    """

    def __init__(self, longest: float = LONGEST_TURN) -> None:
        self._longest = longest
        self._lock = Lock()
        self._waiting: deque[Lock] = deque()
        self._current: Lock | None = None
        self._since = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn, and end it afterwards."""
        own = self._wait()
        try:
            yield
        finally:
            with self._lock:
                if self._current is own:
                    self._current = None
                    if self._waiting:
                        self._begin(self._waiting.popleft()).release()

    def _wait(self) -> Lock:
        """Return a lock that stands for this turn, once it has begun; a thread that waits acquires its own twice."""
        own = Lock()
        own.acquire()
        with self._lock:
            if self._current is None:
                return self._begin(own)
            self._waiting.append(own)
        while not own.acquire(timeout=self._longest):
            with self._lock:
                if own not in self._waiting:  # it has just begun
                    break
                if self._waiting[0] is own and monotonic() - self._since >= self._longest:
                    return self._begin(self._waiting.popleft())
        return own

    def _begin(self, turn: Lock) -> Lock:
        self._current, self._since = turn, monotonic()
        return turn


#: The part of the connections that may wait for new commits: one in so many.
SHARE = 4


class Operation:
    """One running server: its counters, its log, if any, and its latest form posts; `stopping` is set at the end.

    The server of a worker has *shared* state. With *read_only* it refuses every write.
    """

    def __init__(
        self,
        log: Log | None = None,
        *,
        connections: int = 64,
        shared: SharedState | None = None,
        read_only: bool = False,
    ) -> None:
        self.shared, self.read_only = shared, read_only
        self.measures = ServerMeasures(shared)
        self.log = log
        if log is not None:
            log.on_lost = self.measures.line_lost
        self.catch_up, self.readiness, self.turns = CatchUpTask(), Readiness(), Turns()
        self.repeats, self.flash_messages = FormDeduplicator(shared), FlashMessages(shared)
        self.ledger: Ledger | None = None
        self.verifier: FileVerifier | None = None
        self.stopping = Event()
        feeds = max(1, connections // SHARE)
        self.connections: Semaphore = BoundedSemaphore(connections)
        self.feeds: Semaphore = BoundedSemaphore(feeds)
        if shared is not None:
            self.connections, self.feeds = shared.connections(connections), shared.feeds(feeds)

    def keep_counts(self, log: InterfaceLog, interface: str) -> None:
        """Add the refusals and clients at *interface* to *log* until `close`."""
        self.ledger = Ledger(log, interface, self.measures)

    def reread(self, memory: Jidomem) -> None:
        """Read the files of the journal again, slowly, until `flush`; of several workers the first one does."""
        seconds = memory.settings.limits.reread_seconds if self.shared is None or self.shared.number == 1 else None
        self.verifier = FileVerifier(memory.journal, seconds, lambda one: self.damage(memory, one.project), self.shared)

    def stop(self) -> None:
        """Set `stopping`, which ends streams."""
        self.stopping.set()
        self.log_event("info", "stopping", {"under_way": self.measures.under_way})

    def close(self) -> None:
        """Log the end, and write the last counts and lines."""
        self.log_event("info", "stopped", {})
        self.flush()

    def flush(self) -> None:
        """Write the last counts and lines."""
        for part in (self.verifier, self.ledger, self.log):
            if part is not None:
                part.close()

    def log_fault(self, error: JidomemError, agent: str = "", request_id: str = "") -> None:
        """Log the reason of an error of which *agent*, on another machine, is told the code only."""
        fields = {"request_id": request_id, "agent": agent, "code": error.code}
        described = {"detail": error.detail, "hint": error.hint}
        self.log_event("warning", "fault", {**{name: text for name, text in fields.items() if text}, **described})

    def damage(self, memory: Jidomem, project: str) -> tuple[JournalDamaged, ...]:
        """Return the damage that stops writes of *project*, reported to the log and the workers when it changes."""
        damage = memory.damage(project)
        if self.readiness.has_changed_to("\n".join(sorted({each.path for each in damage})), project):
            if self.shared is None or self.shared.number == 1:
                fields = {"project": project, "count": len(damage), "detail": damage[0].detail, "hint": damage[0].hint}
                self.log_event("warning", "damaged", fields)
            if self.verifier is not None:
                self.verifier.report(project, damage)
        return damage

    def log_commit(self, commit: str, caller: ApiToken, request_id: str) -> None:
        """Log a commit of *caller*, whatever author it names; without *request_id*, one at the end of the server."""
        request = {"request_id": request_id} if request_id else {}
        fields = {**request, "agent": caller.agent, "token": caller.id, "commit": commit[:SHORT]}
        self.log_event("info", "commit", fields)

    def log_event(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        """Write one line to the log, if there is one."""
        if self.log is not None:
            self.log.add(level, event, fields)


_READ_ONLY = "write to another server of this memory, or where its files are; the operator started this one --read-only"


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One memory and the token of the caller; without tokens `caller` is None, and any local process may call.

    `operation` is the server, `public_url` the origin that clients use, if it differs from that of the server.
    `request_id` is that of the request.
    """

    memory: Jidomem
    keyring: Keyring | None = None
    caller: ApiToken | None = None
    operation: Operation = field(default_factory=Operation)
    public_url: str | None = None
    request_id: str = ""

    def visible_error(self, error: JidomemError) -> JidomemError:
        """Return *error* as the caller may see it: one with a token without paths and commands of this machine."""
        shown = error if self.caller is None else wire.for_callers(error, self.memory.place.name)
        if shown is not error or (self.caller is None and error.http_status >= 500):
            self.operation.log_fault(error, self.caller.agent if self.caller else "", self.request_id)
        return shown

    def check_writes(self) -> None:
        """Raise PolicyDenied if the server, or the token of the caller, is for reading only."""
        if self.operation.read_only:
            raise PolicyDenied("this server is for reading only", hint=_READ_ONLY)
        if self.caller is not None:
            self.caller.check_writes()

    def check_caller(self) -> None:
        """Raise Unauthenticated if the token was revoked meanwhile; long requests call this between their parts."""
        if self.caller is not None and self.keyring is not None and not self.keyring.has(self.caller):
            raise Unauthenticated(
                "this token was revoked, or has expired", hint="ask the operator of the server for another one"
            )

    @property
    def writer(self) -> MemoryWriter:
        """Return the writer with the rights of the caller; raise Unauthenticated if the token was revoked."""
        self.check_caller()
        writer = self.memory.writer
        if self.caller is None:
            return writer
        log_commit = partial(self.operation.log_commit, caller=self.caller, request_id=self.request_id)
        holders = self.keyring.agents if self.keyring is not None else tuple
        return writer.acting_as(self.caller.agent, self.caller.role, log_commit, self.check_caller, holders)

    def projects(self) -> list[str]:
        """Return the projects that the caller may access."""
        return [name for name in self.memory.projects() if self.caller is None or self.caller.reaches(name)]

    def default(self) -> str:
        """Return the default project; raise NotFound if the caller may not access it."""
        name = self.memory.project
        if self.caller is not None and not self.caller.reaches(name):
            raise self._unknown("your token does not reach the default project", "")
        return name

    def check(self, project: str) -> None:
        """Raise NotFound unless the caller may access *project*, with the message for an unknown project."""
        if self.caller is not None and not self.caller.reaches(Stream(project).project):
            raise self.unknown(project)

    def unknown(self, project: str) -> NotFound:
        """Return the error for the unknown *project*, which names only projects that the caller may access."""
        return self._unknown(f"no project {project!r:.200} here", project)

    def _unknown(self, detail: str, name: str) -> NotFound:
        there = self.projects()
        near = nearest_names(name, there, 3) or there
        return NotFound(
            detail,
            hint=f"use one of: {', '.join(near) or 'none yet'}; another one needs a token that names it",
            code="unknown_project",
        )

    def is_hidden(self) -> bool:
        """Return whether there may be projects that the caller may not access."""
        return self.caller is not None and EVERY not in self.caller.projects

    def is_own_or_curated(self, agent: str) -> bool:
        """Return whether the caller is *agent* or a curator; True without tokens."""
        return self.caller is None or self.caller.acts_for(agent)

    def listener(self, agent: str | None) -> str | None:
        """Return *agent*, by default the caller; raise PolicyDenied if it is neither, and the caller no curator."""
        if self.caller is None or agent is None or self.is_own_or_curated(agent):
            return agent or (self.caller.agent if self.caller else None)
        raise PolicyDenied(
            f"{self.caller.agent} may not listen for {agent}", hint=f"leave agent out, or give {self.caller.agent}"
        )

    def check_own(self, agent: str, action: str, field: str) -> None:
        """Raise PolicyDenied as `ApiToken.check_own`; never without tokens."""
        if self.caller is not None:
            self.caller.check_own(agent, action, field)
