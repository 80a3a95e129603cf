"""The workers of a server: several processes that accept connections from one socket, and their supervisor.

    python -m jidomem.serve.workers DESCRIPTOR

The supervisor binds the socket, starts the workers with exec and replaces those that end; each opens the root itself. A
worker reads its options from the socket with that descriptor, and reports there that it is ready, or why it is not.
It ends when the supervisor has closed its end of the socket.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING, Any

from jidomem.base.background import PeriodicTask
from jidomem.errors import Failed, JidomemError
from jidomem.runtime.worker_pool import PREVIEWS, REPORTS
from jidomem.serve.listener import GRACE, is_stop, leave, signal_socket
from jidomem.serve.log import Log
from jidomem.serve.shared_state import MOST_WORKERS, SharedState

if TYPE_CHECKING:
    from jidomem.runtime.root import Jidomem
    from jidomem.runtime.tokens import Keyring
    from jidomem.serve.server_state import Operation

#: Seconds until a worker that ended is replaced: after a long life, and at most, after many short ones.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 30.0
_SHORT_LIFE = 10.0
#: Seconds that workers get to end, beyond those of their requests.
_CLOSING = 5.0
#: Seconds for which a worker waits for a connection before it looks whether it is stopping.
_ACCEPT = 1
_PIECE = 65_536


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The options of a server that each of its workers needs, as given to the supervisor."""

    root: str | None
    project: str | None
    agent: str | None
    session: str | None
    wait: float
    index: str | None
    hosts: list[str]
    origins: list[str]
    public_url: str | None
    log_form: str
    log_level: str
    read_only: bool = False


def default_workers() -> int:
    """Return the default number of workers: one less than the cores that this process may use, at least one."""
    return min(max(1, len(os.sched_getaffinity(0)) - 1), MOST_WORKERS)


class WorkerProcess:
    """A worker as its supervisor sees it: the process, the `link` to it, and the moment since when it is ready."""

    def __init__(
        self, number: int, options: ServerOptions, listening: socket.socket, shared: SharedState, *, is_new: bool
    ) -> None:
        """Start the process with exec, as a fork would share the threads and locks of this one.

        The worker of a server that *is_new* answers at once, others once their index has caught up.
        """
        self.number = number
        self.ready_at: float | None = None
        self._received = b""
        self.link, end = socket.socketpair()
        job = {
            "options": asdict(options),
            "supervisor": os.getpid(),
            "is_new": is_new,
            "number": number,
            "workers": shared.workers,
            "listening": listening.fileno(),
            "shared": shared.descriptor,
            "folder": str(shared.folder),
        }
        with end:
            # -P: a module in the working directory, maybe of a cloned repository, must not replace one of the library
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(end.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(end.fileno(), listening.fileno(), shared.descriptor),
            )
        with suppress(OSError):  # it has ended already
            self.link.sendall(json.dumps(job).encode() + b"\n")

    def receive(self) -> list[dict[str, Any]] | None:
        """Return the messages that have arrived; None once the process has closed its end."""
        try:
            data = self.link.recv(_PIECE)
        except OSError:
            return None
        if not data:
            return None
        *lines, self._received = (self._received + data).split(b"\n")
        return [json.loads(line) for line in lines]


class Supervisor:
    """The process that starts the workers of a server, and replaces those that end; it opens no root itself."""

    def __init__(self, listening: socket.socket, options: ServerOptions, count: int, *, needs_token: bool) -> None:
        """Prepare *count* workers that accept connections from *listening*."""
        self._listening, self._options = listening, options
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", _ACCEPT, 0))
        self.shared = SharedState.create(Path(tempfile.mkdtemp(prefix="jidomem-serve-")), count)
        if needs_token:
            self.shared.needs_token[0] = 1
        self._workers: dict[int, WorkerProcess] = {}
        #: The moments at which missing workers are started; the first one must have caught up before the others.
        self._due = dict.fromkeys(range(2, count + 1), float("inf"))
        self._short_lives: dict[int, int] = {}

    def __enter__(self) -> Supervisor:
        """Return the supervisor itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Let the workers finish their requests and end; kill those that take too long."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # no new connections
        for worker in self._workers.values():
            worker.link.close()
        end = monotonic() + GRACE + _CLOSING
        for worker in self._workers.values():
            try:
                worker.process.wait(max(0.0, end - monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
        self.shared.close()
        shutil.rmtree(self.shared.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the first worker, and return when it is ready; raise its error if it cannot start."""
        worker = self._start(1, is_new=True)
        while worker.ready_at is None:
            messages = worker.receive()
            if messages is None:
                status = worker.process.wait()
                detail = f"the worker process ended with status {status} before it was ready"
                raise Failed(detail, hint="its standard error may say more")
            for message in messages:
                if "error" in message:
                    error = message["error"]
                    raise JidomemError(error["detail"], hint=error["hint"], code=error["code"])
                self._take(worker, message)

    def run(self, log: Log) -> None:
        """Replace workers until a signal."""
        signals = signal_socket()
        for worker in self._workers.values():
            _log(log, "info", "worker_started", worker)
        while True:
            links = {worker.link: worker for worker in self._workers.values()}
            pause = max(0.0, min(self._due.values(), default=float("inf")) - monotonic())
            ready = select.select([signals, *links], (), (), min(pause, _LONGEST_PAUSE))[0]
            if signals in ready and is_stop(signals):
                return
            for worker in [links[link] for link in ready if link in links]:
                self._attend(worker, log)
            for number in [number for number, due in self._due.items() if due <= monotonic()]:
                del self._due[number]
                self._start(number)

    def _start(self, number: int, *, is_new: bool = False) -> WorkerProcess:
        worker = WorkerProcess(number, self._options, self._listening, self.shared, is_new=is_new)
        self._workers[number] = worker
        return worker

    def _attend(self, worker: WorkerProcess, log: Log) -> None:
        """Take the messages of *worker*; plan its successor if it has ended."""
        messages = worker.receive()
        if messages is None:
            self._remove(worker, log)
        for message in messages or ():
            if "error" in message:
                error = message["error"]
                _log(log, "error", "worker_refused", worker, code=error["code"], detail=error["detail"])
                continue
            self._take(worker, message)
            if "ready" in message:
                _log(log, "info", "worker_started", worker)

    def _take(self, worker: WorkerProcess, message: Mapping[str, Any]) -> None:
        if "ready" in message:
            worker.ready_at = monotonic()
            self.shared.set_pid(worker.number, worker.process.pid)
        else:  # the first one has caught up, and left a snapshot to the others if that took long
            self._due = {number: min(due, monotonic()) for number, due in self._due.items()}

    def _remove(self, worker: WorkerProcess, log: Log) -> None:
        """Remove *worker*, which has ended; after many short lives its successor is started later."""
        worker.link.close()
        worker.process.kill()  # without its link it cannot be stopped
        status = worker.process.wait()
        self.shared.set_pid(worker.number, 0)
        del self._workers[worker.number]
        is_short = worker.ready_at is None or monotonic() - worker.ready_at < _SHORT_LIFE
        lives = self._short_lives[worker.number] = self._short_lives.get(worker.number, 0) + 1 if is_short else 0
        self._due[worker.number] = monotonic() + min(_FIRST_PAUSE * 2 ** min(lives, 20), _LONGEST_PAUSE)
        if worker.number == 1:
            self._due = {number: min(due, self._due[1]) for number, due in self._due.items()}
        _log(log, "warning", "worker_ended", worker, status=status)


def _log(log: Log, level: str, event: str, worker: WorkerProcess, **more: Any) -> None:
    log.add(level, event, {"worker": worker.number, "pid": worker.process.pid, **more})


def main(descriptor: int) -> None:
    """Be a worker until the supervisor, at the other end of *descriptor*, stops it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # from a terminal, which sends it to the supervisor as well
    with socket.socket(fileno=descriptor) as supervisor:
        received = b""
        while not received.endswith(b"\n"):
            if not (data := supervisor.recv(_PIECE)):
                return
            received += data
        _end_with_the_supervisor(supervisor, is_bound=True)
        job = json.loads(received)
        shared = SharedState(job["shared"], Path(job["folder"]), job["number"], job["workers"])
        try:
            _serve(job, shared, supervisor)
        except JidomemError as error:
            _send(supervisor, {"error": error.to_dict()})
            sys.exit(1)


def _end_with_the_supervisor(supervisor: socket.socket, *, is_bound: bool) -> None:
    """Set whether this process is killed at once when the supervisor ends, by SIGIO; a server stops by itself."""
    flags = fcntl.fcntl(supervisor, fcntl.F_GETFL)
    fcntl.fcntl(supervisor, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(supervisor, fcntl.F_SETFL, flags | os.O_ASYNC if is_bound else flags & ~os.O_ASYNC)
    if is_bound and select.select([supervisor], (), (), 0)[0]:  # it ended before
        sys.exit(0)


def _send(supervisor: socket.socket, message: Mapping[str, Any]) -> None:
    with suppress(OSError):  # it has ended, as the server soon notices
        supervisor.sendall(json.dumps(message, default=str).encode() + b"\n")


def _serve(job: Mapping[str, Any], shared: SharedState, supervisor: socket.socket) -> None:
    # imported here, as the supervisor needs none of it
    import jidomem
    from jidomem.serve import server
    from jidomem.serve.app import create_app
    from jidomem.serve.server_state import HTTP, Operation, catch_up

    given = ServerOptions(**job["options"])
    with jidomem.open(
        given.root, project=given.project, agent=given.agent, session=given.session, wait=given.wait, index=given.index
    ) as memory:
        memory.expected_project = None  # as for a single process
        limits, keyring = memory.settings.limits, memory.place.keyring()
        _share(memory, keyring, shared)
        sink = open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")  # noqa: SIM115 - open until the end
        log = Log(sink, given.log_form, given.log_level, shared)
        operation = Operation(log, connections=limits.connections, shared=shared, read_only=given.read_only)
        operation.keep_counts(memory.interface_log, HTTP)
        app = create_app(
            memory,
            hosts=given.hosts,
            keyring=keyring,
            operation=operation,
            origins=given.origins,
            public_url=given.public_url,
        )
        if not job["is_new"]:
            catch_up(memory, memory.projects())  # the others answer meanwhile
        _end_with_the_supervisor(supervisor, is_bound=False)
        _send(supervisor, {"ready": True})
        if shared.number == 1:
            operation.catch_up.follow(memory)
            begin = partial(_begin, memory, supervisor, operation, keyring)
            Thread(target=begin, name="jidomem-begin", daemon=True).start()
        operation.reread(memory)
        task = PeriodicTask(_CATCH_UP_SECONDS, _CatchUp(memory, operation).run, "jidomem-catch-up")

        def stop() -> None:
            operation.stopping.set()
            task.stop(_CLOSING)
            memory.stop()

        with socket.socket(fileno=job["listening"]) as listening:
            server.serve(app, listening, stop, limits, operation, supervisor)
        operation.flush()
    if os.getppid() != job["supervisor"]:  # it was killed
        shutil.rmtree(shared.folder, ignore_errors=True)
    leave()


def _share(memory: Jidomem, keyring: Keyring, shared: SharedState) -> None:
    """Use the limits, reports and flags of all workers in place of those of this process."""
    memory.embeds_for = None
    memory.pool.share(shared.queries(memory.settings.limits.queries), shared.workers)
    memory.checks.share(shared.check(), shared.values("report", REPORTS), shared.values("preview", PREVIEWS))
    keyring.share_need(shared.needs_token)


def _begin(memory: Jidomem, supervisor: socket.socket, operation: Operation, keyring: Keyring) -> None:
    """Catch up, so that the other workers start from its snapshot; then start a worker for the first query."""
    from jidomem.serve.monitoring import log_missing_tokens  # imported here, as the supervisor does not need it
    from jidomem.serve.server_state import catch_up

    catch_up(memory, memory.projects())
    log_missing_tokens(operation, memory, keyring)
    _send(supervisor, {"caught_up": True})
    memory.pool.warm()


#: Seconds between two runs of the periodic task of a worker, and the number of runs after which it lists the projects.
_CATCH_UP_SECONDS, _RUNS_PER_LISTING = 1.0, 30


class _CatchUp:
    """The periodic task of a worker: it applies the commits of the other ones, and publishes its gauges."""

    def __init__(self, memory: Jidomem, operation: Operation) -> None:
        self._memory, self._operation = memory, operation
        self._projects: list[str] = []
        self._count = 0

    def run(self) -> None:
        """Apply new commits and publish the gauges; a shared root is left to reads, as each run would be a request."""
        from jidomem.serve.monitoring import publish_gauges
        from jidomem.serve.server_state import catch_up

        if self._count % _RUNS_PER_LISTING == 0 and not self._memory.place.is_shared:
            self._projects = self._memory.projects()
        self._count += 1
        catch_up(self._memory, self._projects)
        if self._operation.verifier is not None:
            self._operation.verifier.follow()
        publish_gauges(self._operation, self._memory, self._projects)


if __name__ == "__main__":
    main(int(sys.argv[1]))
