"""The children that answer SPARQL nobody vouches for: a few at once, kept warm, killed when one takes too long."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any

from jidomem import dataset as datasets
from jidomem import sparql
from jidomem.dataset import Dataset
from jidomem.errors import Busy, InvalidRequest, JidomemError, QueryTimeout, TooLarge
from jidomem.index.answers import Solutions, solutions
from jidomem.index.bounded import Bounds
from jidomem.runtime import frames
from jidomem.runtime.limits import Limits
from jidomem.terms import Term
from jidomem.vocab import graphs_of

if TYPE_CHECKING:  # most processes have none, and load nothing that speaks HTTP
    from jidomem.index.remote_index import RemoteIndex

_PATIENCE = 1.0  # seconds that a question of the root waits for its turn: most are short
_START = 60.0  # seconds until a child that does not say it is ready is given up
_ABORTED = -6  # what the engine's allocator does when there is no memory


class Pool:
    """Children of one root; each answers one query at a time, and what it opened stays open for the next."""

    def __init__(self, root: Path, limits: Limits, remote: RemoteIndex | None = None) -> None:
        """Answer as many queries at once as *limits* say, each within them; what *remote* answers is asked there."""
        self.limits = limits
        self._root = root
        self._remote = remote
        self._places = BoundedSemaphore(limits.queries)
        self._lock = Lock()
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._closed = False
        #: How many queries wait for one of those that are answered to end.
        self.waiting = 0

    @property
    def running(self) -> int:
        """Return how many queries are being answered."""
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
        """Return the answer to a query that was checked, as bytes; with *as_of* of a memory replayed to that moment.

        The variables in *bindings* stand for these terms, and *dataset* for what FROM says. Where as many are asked as
        can be answered at once, it waits *patience* seconds. Raises Busy `too_many_requests`, QueryTimeout after
        *seconds*, TooLarge `result_too_large`, InvalidRequest where *asker*, a connection, is closed at its other
        end, and what the reader raises.
        """
        asked = {"project": project, "text": text, "rows_as": rows_as, "graph_as": graph_as, "as_of": as_of}
        most, known = self.limits, {**(bindings or {})}
        bounds = {"memory": most.query_memory, "rows": most.query_rows, "size": most.query_answer}
        limit = most.query_seconds if seconds is None else min(seconds, most.query_seconds)
        if self._remote is not None and as_of is None and self._remote.answers(None):
            graphs = datasets.dataset(sparql.check(text), graphs_of(project), dataset)
            with self._turn(patience):
                return self._remote.serialized(
                    text,
                    graphs=graphs.default,
                    named=graphs.named,
                    bindings=known,
                    rows_as=rows_as,
                    graph_as=graph_as,
                    within=Bounds(most.query_rows, most.query_answer),
                    seconds=limit,
                ).data
        message = json.dumps({**asked, "bindings": known, "dataset": dataset, **bounds}).encode()
        while True:
            with self._child(patience) as child, suppress(_Gone):
                return child.ask(message, limit, most.query_memory, asker)

    def solutions(self, project: str, text: str, bindings: Mapping[str, Term] | None = None) -> Solutions:
        """Return the rows of a SELECT that was checked: a question or a gate of the root; raises what `answer` does."""
        return solutions(
            self.answer(project, text, rows_as="json", graph_as="turtle", bindings=bindings, patience=_PATIENCE)
        )

    def warm(self) -> None:
        """Start a child, so that the first query finds one; where that fails, the query will say why."""
        with suppress(JidomemError), self._child():
            pass

    def close(self) -> None:
        """Stop every child, whatever it does."""
        with self._lock:
            self._closed = True
            for child in self._busy:
                child.stop()  # whoever waits for its answer lets go of it
            for child in self._idle:
                child.kill()
            self._idle.clear()

    @contextmanager
    def _turn(self, patience: float) -> Iterator[None]:
        """Let one more be answered; raises Busy `too_many_requests` where it is none's turn."""
        if not self._place(patience):
            raise Busy(
                f"{self.limits.queries} ad hoc queries, or questions of the root, are being answered: no more at once",
                hint="ask again in a moment, or ask a shipped question",
                code="too_many_requests",
            )
        try:
            yield
        finally:
            self._places.release()

    @contextmanager
    def _child(self, patience: float = 0.0) -> Iterator[_Child]:
        """Give a child that lives; it is kept for the next query unless something went wrong with this one."""
        with self._turn(patience):
            child = self._taken()
            try:
                yield child
            except TooLarge:
                if self._closed:
                    raise stopping() from None
                raise
            finally:
                with self._lock:
                    self._busy.discard(child)
                    if child.is_sound and not self._closed:
                        self._idle.append(child)
                    else:
                        child.kill()

    def _place(self, patience: float) -> bool:
        """Return whether one more may be answered, at once or after *patience* seconds."""
        with self._lock:
            self.waiting += 1
        try:
            return self._places.acquire(timeout=patience)
        finally:
            with self._lock:
                self.waiting -= 1

    def _taken(self) -> _Child:
        """Return an idle child that still lives, else a new one."""
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.lives():
                    self._busy.add(child)
                    return child
                child.kill()
        child = _Child(self._root)
        with self._lock:
            if not self._closed:
                self._busy.add(child)
                return child
        child.kill()
        raise stopping()


class _Gone(Exception):
    """A child was not there any more when it was asked."""


class _Child:
    """One process; `is_sound` while it waits for the next query."""

    def __init__(self, root: Path) -> None:
        """Start it with exec, never by a fork of what this process holds, and wait until it has opened the root."""
        command = [sys.executable, "-m", "jidomem.runtime.child", str(root)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin, self._process.stdout
        self.is_sound = False
        try:
            self._told(_START)
        except BaseException as error:
            self.kill()
            if isinstance(error, (frames.Ended, frames.Late)):
                raise QueryTimeout(
                    "the process that answers ad hoc queries could not be started",
                    hint="ask again; the server's standard error may say more",
                ) from error
            raise
        self.is_sound = True

    def lives(self) -> bool:
        """Return whether the process is there."""
        return self._process.poll() is None

    def ask(self, message: bytes, seconds: float, memory: int, asker: int | None) -> bytes:
        """Return the answer.

        Raises QueryTimeout where it does not come in time, TooLarge where the process died of it, which has so much
        *memory*, InvalidRequest where *asker* has hung up, and _Gone where it had died before it took the query.
        """
        self.is_sound = False
        try:
            self._hand_over(message)
            try:
                self._told(seconds, asker)
            except JidomemError:
                self.is_sound = True
                raise
            data = frames.receive(self._out.fileno(), seconds, asker)
        except frames.Ended:
            raise self._died(memory) from None
        except frames.Left:
            raise hung_up() from None
        except frames.Late:
            raise _late(seconds) from None
        self.is_sound = True
        return data

    def _hand_over(self, message: bytes) -> None:
        """Send the query, and wait until the process has it."""
        try:
            frames.send(self._in.fileno(), message)
            frames.receive(self._out.fileno(), _START)
        except (frames.Ended, frames.Late):
            raise _Gone from None

    def stop(self) -> None:
        """End the process at once."""
        self._process.kill()

    def kill(self) -> None:
        """End the process at once, and let go of it."""
        self.is_sound = False
        self.stop()
        self._process.wait()
        for pipe in (self._in, self._out):
            pipe.close()

    def _told(self, seconds: float, asker: int | None = None) -> None:
        """Return when the child says that it did what it was to do; raises the error it met."""
        told: dict[str, Any] = json.loads(frames.receive(self._out.fileno(), seconds, asker))
        if "error" in told:
            error = told["error"]
            raise JidomemError(error["detail"], hint=error["hint"], code=error["code"])

    def _died(self, memory: int) -> TooLarge:
        """Return why there is no answer of a process that ended."""
        code = self._process.wait()
        if code == _ABORTED:
            return out_of_memory(memory)
        return TooLarge(
            f"the process that answered the query was ended (status {code}), as the system does where memory runs out",
            hint="ask again; if it stays so, ask for less",
            code="result_too_large",
        )


def _late(seconds: float) -> QueryTimeout:
    return QueryTimeout(
        f"the query was not answered in {seconds:g} seconds, and was stopped",
        hint="ask for less: add LIMIT or a FILTER, or use a named query",
    )


def out_of_memory(most: int) -> TooLarge:
    """Return the refusal of a query that takes more than the *most* memory one may."""
    return TooLarge(
        f"the query took more than {most:,} bytes of memory, and was stopped",
        hint="ask for less: add LIMIT or a FILTER, and sort fewer rows",
        code="result_too_large",
    )


def hung_up() -> InvalidRequest:
    """Return why what somebody asked was stopped who does not wait for it any more."""
    return InvalidRequest("who asked has hung up, and it was stopped", hint="keep the connection open, and ask again")


def stopping() -> Busy:
    """Return the refusal of who asks a server that is stopping."""
    return Busy("the server is stopping", hint="ask again when it is there again")
