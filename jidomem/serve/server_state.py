"""The state of a running server: counters, log, index lag, flash messages and the context of a request.

Counters are bounded, and a `Ledger` adds them to the door log of the root every few seconds.
"""

from __future__ import annotations

import json
import re
import secrets
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import blake2b
from ipaddress import ip_address
from queue import SimpleQueue
from threading import BoundedSemaphore, Event, Lock
from time import monotonic, sleep, time
from typing import Any, NamedTuple, TextIO, TypeVar

import orjson
from flask import Response

from jidomem.base.background import BackgroundTask, PeriodicTask
from jidomem.base.bounded_dict import BoundedDict
from jidomem.base.clock import format_timestamp, now
from jidomem.base.words import slug
from jidomem.errors import JidomemError, NotFound, PolicyDenied, Unauthenticated, nearest_names
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.vocab import BASE
from jidomem.records.intent import Version
from jidomem.records.policy import CURATORS, role_named
from jidomem.runtime.logs import ClientActivity, DoorLog, RefusedAt
from jidomem.runtime.root import Jidomem
from jidomem.runtime.tokens import Keyring
from jidomem.runtime.user_config import EVERY, ApiToken
from jidomem.write.writer import MemoryWriter

#: The most messages that are stored.
MOST_FLASH_MESSAGES = 1_000


class FlashMessages:
    """The messages about the latest form posts of one server, shown by the page after the redirect.

    A message has a name that cannot be guessed, and only the page at its path shows it.
    """

    def __init__(self) -> None:
        self._messages = BoundedDict[str, tuple[str, Mapping[str, str]]](MOST_FLASH_MESSAGES)
        self._key, self._lock = secrets.token_bytes(32), Lock()

    def keep(self, path: str, message: Mapping[str, str]) -> str:
        """Return the name of a *message* for the page at *path*; an equal message has the same name."""
        name = blake2b(repr((path, *message.items())).encode(), key=self._key, digest_size=8).hexdigest()
        with self._lock:
            self._messages[name] = (path, message)
        return name

    def message(self, path: str, name: str) -> Mapping[str, str]:
        """Return the message *name* for the page at *path*; empty if it is unknown or no longer stored."""
        place, message = self._messages.get(name, ("", {}))
        return message if place == path else {}


#: The most kinds of refusals, and the most clients, that are counted separately.
REFUSALS, CLIENTS = 4_000, 500
#: The agent of refusals that are no longer counted separately.
OTHERS = "others"
#: The most characters of a name given by a client.
_LONGEST = 100


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
class Visits:
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
        self.seen = BoundedDict[ClientIdentity, Visits](CLIENTS)

    def add(self, at: datetime, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count a request."""
        key = ClientIdentity(_cut(project), _cut(agent), _cut(user_agent), kind_of(address))
        visits = self.seen.get(key) or Visits(at, at)
        visits.last, visits.requests = at, visits.requests + 1
        self.seen[key] = visits


def _cut(text: str | None) -> str:
    return (text or "")[:_LONGEST]


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


class Histogram:
    """A histogram of durations: `counts` by bucket, the last without a bound, and the sum of `seconds`."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds


class Measures:
    """The counters of one server; any thread may add to them, and readers acquire `lock`."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.began = monotonic()
        self.since = now()
        self.under_way = 0
        self.requests: Counter[tuple[str, str, int]] = Counter()  # by route, method and status
        self.refusals: Counter[str] = Counter()  # by code
        self.kinds = Refusals()
        self.clients = Clients()
        self.routes: dict[str, Histogram] = {}
        self.questions: dict[str, Histogram] = {}
        self.commits = Histogram()
        self.calls: Counter[tuple[str, str, str]] = Counter()  # by method of MCP, tool (if any) and outcome
        self.tools: dict[str, Histogram] = {}

    def begun(self) -> None:
        """Count the start of a request."""
        with self.lock:
            self.under_way += 1

    def ended(self, route: str, method: str, status: int, seconds: float, question: str | None = None) -> None:
        """Count the end of a request; *question* is its named query."""
        with self.lock:
            self.under_way -= 1
            self.requests[route, method, status] += 1
            _histogram(self.routes, route).add(seconds)
            if question is not None:
                _histogram(self.questions, question).add(seconds)

    def called(self, method: str, tool: str, outcome: str, seconds: float) -> None:
        """Count a request of MCP; *tool* is empty if it calls none."""
        with self.lock:
            self.calls[method, tool, outcome] += 1
            if tool:
                _histogram(self.tools, tool).add(seconds)

    def refused(self, code: str, agent: str | None = None, project: str | None = None) -> None:
        """Count the refusal of a request, or of one intent among several."""
        day = format_timestamp(now())[:10]
        with self.lock:
            self.refusals[code] += 1
            self.kinds.add(day, project, agent, code)

    def client_seen(self, project: str, agent: str | None, user_agent: str, address: str) -> None:
        """Count a request for *project* by client."""
        with self.lock:
            self.clients.add(now(), project, agent, user_agent, address)

    def committed(self, seconds: float) -> None:
        """Count a commit that was durable after *seconds*."""
        with self.lock:
            self.commits.add(seconds)


def _histogram(known: dict[str, Histogram], name: str) -> Histogram:
    histogram = known.get(name)
    if histogram is None:
        histogram = known[name] = Histogram()
    return histogram


#: The interfaces, as the door log names them.
HTTP, MCP_HTTP, MCP_STDIO = "HTTP", "MCP over HTTP", "MCP over standard input"
_SECONDS, _LAST = 5.0, 2.0
T = TypeVar("T")


class Ledger:
    """A periodic task that adds the counters of one server to the door log of the root."""

    def __init__(self, log: DoorLog, door: str, measures: Measures) -> None:
        """Add the counts of *measures* at *door* to *log*, from now on."""
        self.log, self._door, self._measures = log, door, measures
        self._lock = Lock()
        self._refused: dict[Refusal, int] = {}
        self._others: dict[str, int] = {}
        self._counted: dict[ClientIdentity, int] = {}
        self._task = PeriodicTask(_SECONDS, self.keep, "jidomem-ledger", runs_at_end=True)

    def keep(self) -> bool:
        """Add the counts since the last call, and return whether they could be written."""
        with self._lock:
            with self._measures.lock:
                refused = dict(self._measures.kinds.counts)
                others = dict(self._measures.kinds.others)
                seen = {client: (visits.requests, format_timestamp(visits.first), format_timestamp(visits.last))
                        for client, visits in self._measures.clients.seen.items()}  # fmt: skip
            rows = [RefusedAt(*each, self._door, more) for each, more in _more(refused, self._refused)]
            rows += [RefusedAt("", "", OTHERS, code, self._door, more) for code, more in _more(others, self._others)]
            counts = {client: requests for client, (requests, _, _) in seen.items()}
            clients = [
                ClientActivity(*each, self._door, *seen[each][1:], more) for each, more in _more(counts, self._counted)
            ]
            if rows or clients:
                try:
                    self.log.add(rows, clients)
                except JidomemError:  # such as a full disk or a slow writer: the next call adds them
                    return False
            self._refused, self._others, self._counted = refused, others, counts
            return True

    def close(self) -> None:
        """Add the last counts, unless a signal interrupted the counting."""
        self._task.stop(_LAST)


def _more(now: dict[T, int], before: dict[T, int]) -> list[tuple[T, int]]:
    """Return the growth of each count; a count that was dropped meanwhile started again at 0."""
    grown = ((each, count, before.get(each, 0)) for each, count in now.items())
    return [(each, count - was if count > was else count) for each, count, was in grown if count != was]


LEVELS = ("debug", "info", "warning", "error")
FORMS = ("json", "text")
#: The most lines that wait for a slow reader; further lines are counted, and lost.
WAITING = 10_000
#: Seconds for which lines are collected, to be written together.
_GATHERED = 0.05
_PLAIN = re.compile(r"[A-Za-z0-9._:/@%+-]+")
LogEvent = dict[str, Any]


class Log:
    """The log of a server: lines of *level* and above, written to *sink* by a thread, as JSON or as text."""

    def __init__(self, sink: TextIO, form: str = "json", level: str = "info") -> None:
        self._sink = sink
        self._write = _as_json if form == "json" else _as_text
        self._least = LEVELS.index(level)
        self._waiting: deque[LogEvent] = deque()
        # Not an Event: a signal handler that closes the log during `add` would deadlock on the lock of the Event.
        self._wake_ups, self._is_closed = SimpleQueue[None](), False
        self.lost = 0
        self._reported_lost = 0
        self._task = BackgroundTask("jidomem-log", daemon=True)
        self._task.start(self._work)

    def is_logged(self, level: str) -> bool:
        """Return whether lines of *level* are written."""
        return LEVELS.index(level) >= self._least

    def add(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        """Queue one line; a line beyond the limit is counted in `lost`."""
        if self.is_logged(level):
            if len(self._waiting) < WAITING:
                self._waiting.append({"time": time(), "level": level, "event": event, **fields})
            else:
                self.lost += 1
            if self._wake_ups.empty():
                self._wake_ups.put(None)

    def close(self, seconds: float = 1.0) -> None:
        """Write the queued lines, for at most *seconds*."""
        self._is_closed = True
        self._wake_ups.put(None)
        self._task.wait(seconds)

    def _work(self) -> None:
        while not self._is_closed or self._waiting:
            self._wake_ups.get()
            if not self._is_closed:
                sleep(_GATHERED)  # lines that arrive meanwhile need no wake-up
            while not self._wake_ups.empty():
                self._wake_ups.get()
            events = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if (lost := self.lost) > self._reported_lost:
                lines = lost - self._reported_lost
                events.append({"time": time(), "level": "warning", "event": "lost", "lines": lines})
                self._reported_lost = lost
            with suppress(OSError, ValueError):  # the reader has closed the stream
                self._sink.write("".join(map(self._write, events)))
                self._sink.flush()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _as_json(event: LogEvent) -> str:
    """Return one line in ASCII, so that no character in it ends the line for any reader."""
    event["time"] = _moment(event["time"])
    data = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    return data.decode() if data.isascii() else json.dumps(event) + "\n"


def _as_text(event: LogEvent) -> str:
    """Return one line for people; values with special characters are quoted and escaped as in JSON."""
    fields = {name: value for name, value in event.items() if name not in ("time", "level", "event")}
    pairs = (f"{name}={_word(str(value))}" for name, value in fields.items())
    return " ".join((_moment(event["time"]), event["level"], event["event"], *pairs)) + "\n"


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text)


#: The most form posts that are stored, and the errors of a post that was done before.
MOST_FORM_POSTS = 1_000
_DONE_ALREADY = (400, 404, 409)


class _FormPost:
    """A form post; `result` is None until it is done."""

    __slots__ = ("lock", "result")

    def __init__(self) -> None:
        self.lock = Lock()
        self.result: str | None = None


class FormDeduplicator:
    """The latest form posts of one server: a post that arrives twice is done once."""

    def __init__(self) -> None:
        self._posts = BoundedDict[Hashable, _FormPost](MOST_FORM_POSTS)
        self._lock = Lock()

    def once(self, key: Hashable, do: Callable[[], str]) -> str:
        """Return the result of *do*; if *do* is refused and the post *key* was done before, the earlier result.

        A second post of the same key waits for the first. Raises the error of *do* if there is no earlier result.
        """
        with self._lock:
            post = self._posts.get(key) or _FormPost()
            self._posts[key] = post
        with post.lock:
            try:
                post.result = do()
            except JidomemError as error:
                if post.result is None or error.http_status not in _DONE_ALREADY:
                    raise
            return post.result


#: Seconds for which a readiness check is valid, and for which it is still used during the next check.
FRESH, LASTS = 1.0, 4.0


@dataclass(frozen=True, slots=True)
class IndexLag:
    """The versions of a project's memory in the journal and in the index, and `behind`, the commits in between.

    `behind` counts the commits of all four graphs that the index has not applied.
    """

    project: str
    journal: Version
    index: Version
    behind: int

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        return {"journal": str(self.journal), "index": str(self.index), "behind": self.behind}


def standing(memory: Jidomem, project: str) -> IndexLag:
    """Return the lag of the index for *project*, without applying commits."""
    memory_of = Stream(project)
    behind = sum(_behind(memory, Stream(project, name)) for name in NAMES)
    journal = memory.journal.head(memory_of)
    return IndexLag(project, journal, memory.index.mark(memory_of.graph).version, behind)


def _behind(memory: Jidomem, stream: Stream) -> int:
    applied, folder = memory.index.mark(stream.graph).version, memory.journal.inspect(stream)
    try:
        return sum(1 for _ in folder.after(applied))
    except NotFound:  # another branch was checked out: all commits are missing
        return sum(1 for _ in folder.after(Version()))


class Readiness:
    """The readiness of a server, checked at most once a second, by one thread at a time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found = False
        self._at = -LASTS

    def look(self, is_ready: Callable[[], bool]) -> bool:
        """Return the latest answer of *is_ready*, at most a second old; False if a check takes too long."""
        if monotonic() - self._at >= FRESH and self._lock.acquire(blocking=False):
            try:
                self._found = is_ready()
                self._at = monotonic()
            finally:
                self._lock.release()
        return self._found and monotonic() - self._at < LASTS


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
    for project in memory.projects():
        with suppress(JidomemError, OSError, RuntimeError):  # the index stays behind, as `standing` reports
            memory.catch_up(project)


#: The part of the connections that may wait for new commits: one in so many.
SHARE = 4


class Operation:
    """One running server: its counters, its log, if any, and its latest form posts; `stopping` is set at the end."""

    def __init__(self, log: Log | None = None, *, connections: int = 64) -> None:
        self.measures = Measures()
        self.log = log
        self.catch_up, self.readiness = CatchUpTask(), Readiness()
        self.repeats = FormDeduplicator()
        self.flash_messages = FlashMessages()
        self.ledger: Ledger | None = None
        self.stopping = Event()
        self.feeds = BoundedSemaphore(max(1, connections // SHARE))

    def keep_counts(self, log: DoorLog, door: str) -> None:
        """Add the refusals and clients at *door* to *log* until `close`."""
        self.ledger = Ledger(log, door, self.measures)

    def stop(self) -> None:
        """Set `stopping`, which ends streams."""
        self.stopping.set()
        self.log_event("info", "stopping", {"under_way": self.measures.under_way})

    def close(self) -> None:
        """Log the end, and write the last counts and lines."""
        self.log_event("info", "stopped", {})
        if self.ledger is not None:
            self.ledger.close()
        if self.log is not None:
            self.log.close()

    def log_event(self, level: str, event: str, fields: Mapping[str, Any]) -> None:
        """Write one line to the log, if there is one."""
        if self.log is not None:
            self.log.add(level, event, fields)


@dataclass(frozen=True, slots=True)
class RequestContext:
    """One memory and the token of the caller; without tokens `caller` is None, and any local process may call.

    `operation` is the server, `public_url` the origin that clients use, if it differs from that of the server.
    """

    memory: Jidomem
    keyring: Keyring | None = None
    caller: ApiToken | None = None
    operation: Operation = field(default_factory=Operation)
    public_url: str | None = None

    def check_caller(self) -> None:
        """Raise Unauthenticated if the token was revoked meanwhile; long requests call this between their parts."""
        if self.caller is not None and self.keyring is not None and not self.keyring.has(self.caller):
            raise Unauthenticated("this token was revoked", hint="ask the operator of the server for another one")

    @property
    def writer(self) -> MemoryWriter:
        """Return the writer with the rights of the caller; raise Unauthenticated if the token was revoked."""
        self.check_caller()
        writer = self.memory.writer
        return writer if self.caller is None else writer.acting_as(self.caller.agent, self.caller.role)

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
        return self._unknown(f"no project {project!r} here", project)

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
        if self.caller is None:
            return True
        return _iri(agent) == _iri(self.caller.agent) or role_named(self.caller.role) in CURATORS

    def listener(self, agent: str | None) -> str | None:
        """Return *agent*, by default the caller; raise PolicyDenied if it is neither, and the caller no curator."""
        if self.caller is None or agent is None or self.is_own_or_curated(agent):
            return agent or (self.caller.agent if self.caller else None)
        raise PolicyDenied(
            f"{self.caller.agent} may not listen for {agent}", hint=f"leave agent out, or give {self.caller.agent}"
        )

    def check_own(self, agent: str) -> None:
        """Raise PolicyDenied unless the caller may read the working memory of *agent*."""
        if self.caller is not None and not self.is_own_or_curated(agent):
            detail = f"{self.caller.agent} may not read the working memory of {agent}"
            raise PolicyDenied(detail, hint=f"ask for that of {self.caller.agent}")


def _iri(agent: str) -> str:
    return agent if ":" in agent else f"{BASE}agents/{slug(agent)}"


#: The handler of a route, called with the context and the parts of the path by name.
Answer = Callable[..., Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, its handler, and its description in OpenAPI.

    `takes` are the query parameters with their descriptions; `is_open` if the named query has further ones. `reads`
    and `gives` are the media types of the body and of the answer, with the names of their schemas; `statuses`
    describes each success. A route that `writes` refuses a read-only token. A `public` route needs no token;
    `has_details` if its answer is longer for callers with one.
    """

    method: str
    path: str
    answer: Answer
    summary: str
    gives: Mapping[str, str] = field(default_factory=lambda: {"application/json": "Object"})
    takes: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reads: Mapping[str, str] = field(default_factory=dict)
    statuses: Mapping[int, str] = field(default_factory=lambda: {200: "The answer."})
    is_open: bool = False
    writes: bool = False
    public: bool = False
    has_details: bool = False
