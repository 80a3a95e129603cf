"""Worker processes that can be killed: a pool for untrusted SPARQL queries, and one at a time for checks.

A worker opens the root itself and answers messages, each a length followed by as many bytes. It is
killed on a timeout, and when its client has disconnected.
"""

from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from threading import BoundedSemaphore, Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import BoundedDict
from jidomem.errors import Busy, InvalidRequest, JidomemError, QueryTimeout, TooLarge
from jidomem.index.results import AnswerLimits, Solutions, solutions
from jidomem.rdf import sparql
from jidomem.rdf.vocab import graphs_of

if TYPE_CHECKING:
    from jidomem.extras.servers.remote_index import RemoteIndex
    from jidomem.rdf.sparql import Dataset
    from jidomem.rdf.terms import Term
    from jidomem.runtime.user_config import RootLimits

_HEAD = 8
#: The poll event of a connection closed at its other end; only Linux has it.
_HUNG_UP = getattr(select, "POLLRDHUP", 0)


class Semaphore(Protocol):
    """A semaphore, such as `threading.BoundedSemaphore`."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Return whether a place was reserved, at once or within *timeout* seconds."""

    def release(self) -> None:
        """Release a place."""


#: A stored value: a text and data.
Value = tuple[str, bytes]


class BoundedMapping(Protocol):
    """A bounded mapping of names to values, such as a `BoundedDict`."""

    def get(self, name: str, /) -> Value | None:
        """Return the value of *name*, None if it is not stored."""

    def __setitem__(self, name: str, value: Value, /) -> None:
        """Store a value, which becomes the newest."""


class PeerClosed(Exception):
    """The other process has closed its end, or died."""


class PeerTimeout(Exception):
    """The other process has not answered in time."""


class CallerDisconnected(Exception):
    """The client of a request has disconnected."""


def send(descriptor: int, data: bytes) -> None:
    """Write one message; raise PeerClosed if the other process has closed its end."""
    view = memoryview(len(data).to_bytes(_HEAD, "big") + data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise PeerClosed from error


def receive(descriptor: int, seconds: float | None = None, asker: int | None = None) -> bytes:
    """Read one message; raise PeerTimeout after *seconds*, PeerClosed at the end of the stream, and as `wait` does."""
    deadline = None if seconds is None else monotonic() + seconds
    size = int.from_bytes(_exactly(descriptor, _HEAD, deadline, asker), "big")
    return _exactly(descriptor, size, deadline, asker)


def _exactly(descriptor: int, size: int, deadline: float | None, asker: int | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        if deadline is not None:
            wait(descriptor, deadline, asker)
        piece = os.read(descriptor, min(size - len(data), 1 << 20))
        if not piece:
            raise PeerClosed
        data += piece
    return bytes(data)


def wait(descriptor: int, deadline: float, asker: int | None = None) -> None:
    """Wait until *descriptor* has bytes or is at its end; raise PeerTimeout at the *deadline*.

    Raises CallerDisconnected if *asker*, the connection of the client, is closed at its other end.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    if asker is not None:
        poll.register(asker, _HUNG_UP)
    ready = {ready_descriptor for ready_descriptor, _ in poll.poll(max(0.0, deadline - monotonic()) * 1000)}
    if descriptor not in ready:
        raise CallerDisconnected if ready else PeerTimeout


def is_disconnected(asker: int) -> bool:
    """Return whether the connection *asker* is closed at its other end."""
    poll = select.poll()
    poll.register(asker, _HUNG_UP)
    return bool(poll.poll(0))


_PATIENCE = 1.0  # seconds that a query of the root waits for a free place: most queries are short
_START = 60.0  # seconds that a worker has to report that it is ready
_END = 5.0  # seconds that a worker has to close its root
_ABORTED = -6  # the exit status when the allocator of the engine has no memory


class Pool:
    """The workers of one root for queries; each answers one query at a time, and keeps the root open."""

    def __init__(self, root: Path, limits: RootLimits, remote: RemoteIndex | None = None) -> None:
        """Answer queries within *limits*; queries that a *remote* index can answer are sent there."""
        self.limits = limits
        self._root = root
        self._remote = remote
        self._places: Semaphore = BoundedSemaphore(limits.queries)
        self._most_idle = limits.queries
        self._lock = Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._stale: set[Worker] = set()  # the busy workers that started before the last `renew`
        self._renewals = 0
        self._closed = False
        #: The number of queries that wait for a free place.
        self.waiting = 0

    def share(self, places: Semaphore, servers: int) -> None:
        """Use *places* for queries, those of several *servers* of the root, and a part of the idle workers."""
        self._places, self._most_idle = places, max(1, self.limits.queries // servers)

    @property
    def running(self) -> int:
        """Return the number of running queries."""
        return len(self._busy)

    def answer(
        self,
        project: str,
        text: str,
        *,
        rows_as: str,
        graph_as: str,
        as_of: str | None = None,
        bindings: Mapping[str, Term] | None = None,
        dataset: Dataset | None = None,
        seconds: float | None = None,
        patience: float = 0.0,
        asker: int | None = None,
    ) -> bytes:
        """Return the answer to a checked query, as bytes; with *as_of* from a memory replayed to that moment.

        *bindings* are the terms of variables, *dataset* replaces FROM. The query waits for a free place for
        *patience* seconds. Raises Busy `too_many_requests`, QueryTimeout after *seconds*, TooLarge `result_too_large`,
        InvalidRequest if *asker*, a connection, is closed at its other end, and the errors of the reader.
        """
        query = {"project": project, "text": text, "rows_as": rows_as, "graph_as": graph_as, "as_of": as_of}
        most, known = self.limits, {**(bindings or {})}
        bounds = {"memory": most.query_memory, "rows": most.query_rows, "size": most.query_answer}
        limit = most.query_seconds if seconds is None else min(seconds, most.query_seconds)
        if self._remote is not None and as_of is None and self._remote.answers(None):
            graphs = sparql.dataset(sparql.check(text), graphs_of(project), dataset)
            with self._reserve_place(patience):
                return self._remote.serialized(
                    text,
                    graphs=graphs.default,
                    named=graphs.named,
                    bindings=known,
                    rows_as=rows_as,
                    graph_as=graph_as,
                    within=AnswerLimits(most.query_rows, most.query_answer),
                    seconds=limit,
                ).data
        job = {"job": "query", **query, "bindings": known, "dataset": dataset, **bounds}
        while True:
            with self._worker(patience) as worker, suppress(WorkerExited):
                try:
                    return worker.ask(job, limit, asker)
                except PeerClosed:
                    status = worker.exit_status()
                    if status == _ABORTED:
                        raise out_of_memory(most.query_memory) from None
                    raise _died("answered the query", status, "retry; if this persists, ask for less") from None
                except CallerDisconnected:
                    raise hung_up() from None
                except PeerTimeout:
                    raise QueryTimeout(
                        f"the query was not answered in {limit:g} seconds, and was stopped",
                        hint="ask for less: add LIMIT or a FILTER, or use a named query",
                    ) from None

    def solutions(self, project: str, text: str, bindings: Mapping[str, Term] | None = None) -> Solutions:
        """Return the rows of a checked SELECT: a query or a gate of the root; raises the errors of `answer`."""
        return solutions(
            self.answer(project, text, rows_as="json", graph_as="turtle", bindings=bindings, patience=_PATIENCE)
        )

    def warm(self) -> None:
        """Start a worker for the first query; an error is raised by that query."""
        with suppress(JidomemError), self._worker():
            pass

    def renew(self) -> None:
        """Stop the idle workers, and let those that are busy or starting end after their query.

        Their index may have a redacted text.
        """
        with self._lock:
            self._renewals += 1
            self._stale |= self._busy
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.kill()

    def close(self) -> None:
        """Stop every worker, even a busy one."""
        with self._lock:
            self._closed = True
            for worker in self._busy:
                worker.stop()  # the thread that waits for its answer closes it
            for worker in self._idle:
                worker.kill()
            self._idle.clear()

    @contextmanager
    def _reserve_place(self, patience: float) -> Iterator[None]:
        """Reserve a place for a running query; raise Busy `too_many_requests` if none is free."""
        if not self._place(patience):
            raise Busy(
                f"{self.limits.queries} ad hoc queries, or queries of the root, run at once at most",
                hint="try again, or use a shipped query",
                code="too_many_requests",
            )
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def _worker(self, patience: float = 0.0) -> Iterator[Worker]:
        """Yield a live worker, which is kept for the next query unless this one fails."""
        with self._reserve_place(patience):
            worker = self._idle_worker()
            try:
                yield worker
            except TooLarge:
                if self._closed:
                    raise stopping() from None
                raise
            finally:
                with self._lock:
                    self._busy.discard(worker)
                    is_kept = worker.is_sound and not self._closed and worker not in self._stale
                    if is_kept and len(self._idle) < self._most_idle:
                        self._idle.append(worker)
                    elif worker not in self._stale:
                        worker.kill()
                if worker in self._stale:
                    self._stale.discard(worker)
                    worker.end()  # it deletes its index

    def _place(self, patience: float) -> bool:
        """Return whether a place for a query is free, at once or within *patience* seconds."""
        with self._lock:
            self.waiting += 1
        try:
            return self._places.acquire(timeout=patience)
        finally:
            with self._lock:
                self.waiting -= 1

    def _idle_worker(self) -> Worker:
        """Return an idle worker that is alive, else a new one."""
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.is_alive():
                    self._busy.add(worker)
                    return worker
                worker.kill()
        renewals, worker = self._renewals, Worker(self._root)
        try:
            worker.wait_ready(_START)
        except (PeerClosed, PeerTimeout) as error:
            worker.kill()
            raise QueryTimeout(
                "the process that answers ad hoc queries could not be started",
                hint="ask again; the server's standard error may say more",
            ) from error
        except BaseException:
            worker.kill()
            raise
        with self._lock:
            if not self._closed:
                self._busy.add(worker)
                if self._renewals != renewals:
                    self._stale.add(worker)
                return worker
        worker.kill()
        raise stopping()


class WorkerExited(Exception):
    """The worker had ended before it received the job."""


class Worker:
    """One worker process; `is_sound` while it waits for the next job."""

    def __init__(self, root: Path) -> None:
        """Start the process with exec, as a fork would share the threads and locks of this process."""
        import subprocess  # most processes start no worker

        # -P: a module in the working directory, maybe of a cloned repository, must not replace one of the library
        command = [sys.executable, "-P", "-m", "jidomem.runtime.worker", str(root)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.is_sound = False

    def wait_ready(self, seconds: float, asker: int | None = None) -> None:
        """Wait until the worker has opened the root; raises the errors of `ask` except WorkerExited."""
        self._wait_done(seconds, asker)
        self.is_sound = True

    def is_alive(self) -> bool:
        """Return whether the process is alive."""
        return self._process.poll() is None

    def ask(self, job: Mapping[str, Any], seconds: float, asker: int | None) -> bytes:
        """Return the answer to *job*, and raise the error that the worker reports.

        Raises PeerTimeout if it is not finished in time, PeerClosed if the process died during the job,
        CallerDisconnected if *asker* is closed at its other end, and WorkerExited if the process had ended before it
        received the job.
        """
        self.is_sound = False
        try:
            send(self._in.fileno(), json.dumps(job).encode())
            receive(self._out.fileno(), _START)
        except (PeerClosed, PeerTimeout):
            raise WorkerExited from None
        try:
            self._wait_done(seconds, asker)
        except JidomemError:
            self.is_sound = True
            raise
        data = receive(self._out.fileno(), seconds, asker)
        self.is_sound = True
        return data

    def exit_status(self) -> int:
        """Return the exit status of the process, which has closed its end."""
        return self._process.wait()

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()

    def kill(self) -> None:
        """Kill the process, and close its pipes."""
        self.is_sound = False
        self.stop()
        self._process.wait()
        for pipe in (self._in, self._out):
            pipe.close()

    def end(self) -> None:
        """Let the process close the root and exit, or kill it if that takes too long or it has a job."""
        import subprocess

        if self.is_sound:
            self._in.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_END)
        self.kill()

    def _wait_done(self, seconds: float, asker: int | None) -> None:
        """Wait until the worker has finished its job; raises the error it reports."""
        message: dict[str, Any] = json.loads(receive(self._out.fileno(), seconds, asker))
        if "error" in message:
            error = message["error"]
            raise JidomemError(error["detail"], hint=error["hint"], code=error["code"])


def _died(work: str, status: int, hint: str) -> TooLarge:
    text = f"the process that {work} was ended (status {status}), probably because memory ran out"
    return TooLarge(text, hint=hint, code="result_too_large")


def out_of_memory(most: int) -> TooLarge:
    """Return the error for a query that needs more than *most* bytes of memory."""
    return TooLarge(
        f"the query took more than {most:,} bytes of memory, and was stopped",
        hint="ask for less: add LIMIT or a FILTER, and sort fewer rows",
        code="result_too_large",
    )


def hung_up() -> InvalidRequest:
    """Return the error for a request whose client has disconnected."""
    return InvalidRequest(
        "the client has disconnected, and the request was stopped", hint="keep the connection open, and try again"
    )


def stopping() -> Busy:
    """Return the error for a request to a stopping server."""
    return Busy("the server is stopping", hint="try again after its start")


SECONDS = 600.0
#: Seconds that a preview of changed terms or shapes may take, and the number of previews that are stored.
PREVIEW_SECONDS, PREVIEWS = 120.0, 20
#: The most projects whose latest report is stored.
REPORTS = 1_000


class Checks:
    """The checks of one root, one at a time; a request during one is refused."""

    def __init__(self, root: Path, now: Callable[[], datetime], *, seconds: float = SECONDS) -> None:
        """Limit each check to *seconds*."""
        self._now = now
        self.seconds, self.preview_seconds = seconds, min(seconds, PREVIEW_SECONDS)
        #: project -> the time and the JSON of its latest report, for the life of this process.
        self.latest: BoundedMapping = BoundedDict[str, Value](REPORTS)
        #: name -> project and findings of `preview`, the latest ones.
        self.previews: BoundedMapping = BoundedDict[str, Value](PREVIEWS)
        self._root = root
        self._place: Semaphore = BoundedSemaphore(1)
        self._lock = Lock()
        self._worker: Worker | None = None
        self._closed = False

    def share(self, place: Semaphore, latest: BoundedMapping, previews: BoundedMapping) -> None:
        """Use *place* for the running check, and store reports and previews where several servers see them."""
        self._place, self.latest, self.previews = place, latest, previews

    def answer(self, project: str, form: str, asker: int | None = None) -> bytes:
        """Return the report on the memory of *project* as `json`, `sarif` or `junit`.

        Raises Busy `too_many_requests` during another check, QueryTimeout after the stated seconds, TooLarge if the
        process was killed, InvalidRequest if *asker*, a connection, is closed at its other end, and the errors of the
        check.
        """
        report = self._run({"job": "check", "project": project, "form": form}, self.seconds, asker)
        if form == "json":
            self.latest[project] = (format_timestamp(self._now()), report)
        return report

    def preview(self, project: str, name: str, text: str, asker: int | None = None) -> str:
        """Store in `previews` which checks of *project* would fail with *text* as a file of terms; return its name.

        The root is not changed. Raises the errors of `check.overlay.copy_with_overlay` and `answer`.
        """
        from tempfile import TemporaryDirectory

        from jidomem.check.overlay import copy_with_overlay  # imported here, as most processes do not need it

        with TemporaryDirectory(prefix="jidomem-") as folder:
            file = copy_with_overlay(self._root, Path(folder), name, text)
            job = {"job": "preview", "project": project, "folder": folder, "file": file}
            findings = self._run(job, self.preview_seconds, asker)
        made = os.urandom(8).hex()
        self.previews[made] = (project, findings)
        return made

    def close(self) -> None:
        """Stop a running check."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.stop()

    def _run(self, job: Mapping[str, Any], seconds: float, asker: int | None) -> bytes:
        """Run *job* in a worker of its own and return the answer; no other check runs at the same time."""
        if not self._place.acquire(blocking=False):
            hint = "ask again in a minute, or run it where the memory is: jidomem check"
            raise Busy("a check is already running", hint=hint, code="too_many_requests")
        try:
            with self._lock:
                if self._closed:
                    raise stopping()
                worker = self._worker = Worker(self._root)
            try:
                return self._answer(worker, job, seconds, asker)
            finally:
                self._worker = None
                worker.end()
        finally:
            self._place.release()

    def _answer(self, worker: Worker, job: Mapping[str, Any], seconds: float, asker: int | None) -> bytes:
        deadline = monotonic() + seconds
        try:
            worker.wait_ready(seconds, asker)
            return worker.ask(job, max(0.0, deadline - monotonic()), asker)
        except (PeerClosed, WorkerExited):
            status = worker.exit_status()
            hint = "run it where the memory is: jidomem check; the server's standard error may say more"
            raise stopping() if self._closed else _died("made the check", status, hint) from None
        except CallerDisconnected:
            raise hung_up() from None
        except PeerTimeout:
            raise QueryTimeout(
                f"the check did not finish in {seconds:g} seconds, and was stopped",
                hint="run it where the memory is: jidomem check; what a change would fail: jidomem ontology diff",
            ) from None
