"""One connection: requests in, answers out, one after the other, until either side has done."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from time import perf_counter
from typing import Any

from jidomem.errors import JidomemError
from jidomem.runtime.limits import Limits
from jidomem.serve import head, requestid, watch, wire
from jidomem.serve.body import Body
from jidomem.serve.gate import HEADERS
from jidomem.serve.operation import Operation
from jidomem.serve.pace import Gone, Link, TooSlow
from jidomem.serve.reply import App, Reply, run
from jidomem.serve.turn import Turn

#: How much that nobody reads any more is still taken in: a client that first sends everything would not see the answer.
_DRAINED = 16 * 1024 * 1024


class Connection:
    """What one thread attends to."""

    def __init__(self, link: Link, app: App, about: dict[str, Any], limits: Limits, operation: Operation) -> None:
        """Answer by *app* the requests that come by *link*, each of which is told what is known *about* them all."""
        self.link, self._app, self._about = link, app, about
        self._limits, self._operation = limits, operation
        self._is_answering = False

    def attend(self, idles: Callable[[bool], None], keeps: Callable[[], bool]) -> None:
        """Answer until the connection ends, however it does; never raises.

        *idles* is told whether the next request is waited for, *keeps* tells whether one may come.
        """
        try:
            idles(True)
            came = self.link.begin()
            while came:
                idles(False)
                turn = self._answer(came, keeps)
                if not turn.may_go_on():
                    break
                idles(True)
                came = turn.rest() or self.link.begin()
        except (Gone, TooSlow):
            pass
        except Exception as error:  # the answer broke off, which the client sees, and why is for who runs the server
            watch.broke(self._operation, error)
        finally:
            self.link.close(abort=self._is_answering)  # what was sent of an answer is not taken for whole

    def _answer(self, came: bytes, keeps: Callable[[], bool]) -> Turn:
        """Answer one request, of which *came* came already, and return the turn it was."""
        turn, began, named = Turn(self.link, self._limits, came), perf_counter(), {}
        try:
            request = turn.request()
            named = head.headers(request)
            environ = head.environ(request, named)
        except JidomemError as refusal:
            self._refuse(refusal, requestid.id_of(named), began, turn)
            self.link.end(_DRAINED)
            return turn
        body = Body(turn, head.length(environ))
        reply = Reply(
            turn,
            is_bare=environ["REQUEST_METHOD"] == "HEAD",
            keeps=lambda: keeps() and not (turn.waits() or body.failed or body.is_long()),
        )
        self._is_answering = True
        own = {"wsgi.input": body, wire.CONNECTION: self.link.fileno()}
        run(self._app, {**self._about, **environ, **own}, reply)
        self._is_answering = False
        if not (turn.is_kept() and body.drain()) and (not turn.at_end or self.link.has_more()):
            self.link.end(_DRAINED)
        return turn

    def turn_away(self, refusal: JidomemError) -> None:
        """Say *refusal* to who cannot be attended to; nothing is waited for."""
        self._refuse(refusal, requestid.id_of({}), perf_counter(), Turn(self.link, self._limits))
        self.link.end(0)

    def _refuse(self, refusal: JidomemError, name: str, began: float, turn: Turn) -> None:
        """Answer a request called *name*, which no application sees, with *refusal*."""
        status = refusal.http_status
        watch.unread(self._operation, refusal, name, self._about["REMOTE_ADDR"], perf_counter() - began)
        document = wire.dump({**wire.described(refusal), "request_id": name})
        headers = {
            "Content-Type": wire.PROBLEM,
            "Content-Length": str(len(document)),
            requestid.HEADER: name,
            **HEADERS,
        }
        reply = Reply(turn, is_bare=False, keeps=lambda: False)
        reply.start(f"{status} {HTTPStatus(status).phrase}", [*headers.items(), *wire.retry(refusal)])
        reply.write(document)
        reply.end()
