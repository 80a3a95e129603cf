"""The change feed over HTTP: commits as JSON lines, at once or by long polling, or as server-sent events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from jidomem.errors import Busy, InvalidRequest, JidomemError
from jidomem.journal.journal import Stream
from jidomem.read.history import FeedEntry, entries, version_of
from jidomem.records.intent import Version
from jidomem.runtime.worker_pool import is_disconnected
from jidomem.serve import wire
from jidomem.serve.memories import wait_for_version
from jidomem.serve.server_state import RequestContext
from jidomem.serve.wire import negotiate

NDJSON, EVENTS = "application/x-ndjson", "text/event-stream"
#: Commits in one answer: the default and the limit.
SOME, MOST = 1_000, 10_000
#: Bytes after which an answer ends.
BYTES = 8 * 1024 * 1024
#: The longest wait for an answer in seconds.
LONGEST = 30
#: Seconds between two polls of the journal, between two comments, and until the client must reopen a stream.
PAUSE, HEARTBEAT, LIFE = 0.1, 10.0, 300.0


def journal(site: RequestContext, project: str) -> Response:
    """Return the commits after a version: lines in one answer, or a stream of events."""
    form = negotiate({NDJSON: "lines", EVENTS: "events"})
    given = wire.arguments("after", "limit", "wait", "min_position")
    wait_for_version(site, project, given)
    limit, wait = _integer(given, "limit", 1, MOST), _integer(given, "wait", 0, LONGEST)
    site.memory.catch_up(project)  # raises for an unknown project
    after = (request.headers.get("Last-Event-ID") if form == "events" else None) or given.get("after", "0")
    feed = _Feed(site, project, version_of(site.memory.journal, Stream(project), after))
    if form == "lines":
        return _lines(feed, limit or SOME, wait or 0)
    if wait is not None:
        raise InvalidRequest("a stream of events has no parameter wait", hint="leave out wait")
    return _events(feed, limit)


def _integer(given: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    value = wire.whole(given, name)
    if value is not None and not least <= value <= most:
        raise InvalidRequest(f"{name}={value} is not from {least} to {most:,}", hint=f"give {name}={most} or less")
    return value


class _Feed:
    """The position of one reader, which has received the commits up to `version`."""

    def __init__(self, site: RequestContext, project: str, version: Version) -> None:
        self.site, self.project, self.version = site, project, version
        self._stream, self._seen = Stream(project), Version()
        self._asker = wire.client_descriptor()

    def next(self) -> Iterator[FeedEntry]:
        """Yield the new commits, and advance after each; raises the errors of `entries`."""
        memory = self.site.memory
        self._seen = memory.journal.head(self._stream)
        memory.catch_up(self.project)
        for entry in entries(memory.journal, memory.index, self._stream, self.version):
            yield entry
            self.version = entry.version

    def wait(self, seconds: float) -> bool:
        """Return whether new commits arrive within *seconds*; earlier if the server stops or the client disconnects.

        Raise Unauthenticated if the token of the reader was revoked.
        """
        deadline = monotonic() + seconds
        while not self.site.memory.journal.moved(self._stream, self._seen, PAUSE):
            if monotonic() > deadline or self.site.operation.stopping.is_set() or self.is_left():
                return False
            self.site.check_caller()
        return True

    def is_left(self) -> bool:
        return self._asker is not None and is_disconnected(self._asker)

    def place(self) -> None:
        """Reserve a place for a waiting reader; raise Busy `too_many_requests` if there is none."""
        if not self.site.operation.feeds.acquire(blocking=False):
            raise Busy(
                "too many readers are waiting for commits",
                hint="try again, or leave out wait",
                code="too_many_requests",
            )

    def leave(self) -> None:
        """Release the place."""
        self.site.operation.feeds.release()


def _lines(feed: _Feed, limit: int, wait: int) -> Response:
    """Return up to *limit* commits as lines, once there are any, with a link to the next ones."""
    body, more = _gathered(feed, limit)
    if wait and not body:
        feed.place()
        try:
            if feed.wait(wait):
                body, more = _gathered(feed, limit)
        finally:
            feed.leave()
    response = Response(body, content_type=NDJSON)
    if more:
        query = urlencode({**wire.once(request.args), "after": str(feed.version)})
        response.headers["Link"] = f'<{request.path}?{query}>; rel="next"'
    return response


def _gathered(feed: _Feed, limit: int) -> tuple[bytes, bool]:
    """Return the lines of the new commits, and whether there are more."""
    body = bytearray()
    for number, entry in enumerate(feed.next()):
        if number == limit or len(body) > BYTES:
            return bytes(body), True
        body += wire.dump(entry.to_dict()) + b"\n"
    return bytes(body), False


def _events(feed: _Feed, limit: int | None) -> Response:
    """Return a stream of events, which ends when the server stops, after *limit* events, or after LIFE seconds."""
    feed.place()
    response = Response(_feed_lines(feed, limit), content_type=EVENTS)
    response.call_on_close(feed.leave)
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"  # a reverse proxy must not buffer the stream
    return response


def _feed_lines(feed: _Feed, limit: int | None) -> Iterator[bytes]:
    end, count = monotonic() + LIFE, 0
    yield b"retry: 1000\n\n"
    try:
        while monotonic() < end and not feed.site.operation.stopping.is_set():
            for entry in islice(feed.next(), None if limit is None else limit - count):
                yield _event("commit", entry.to_dict(), str(entry.version))
                count += 1
            if count == limit:
                return
            if not feed.wait(HEARTBEAT):
                if feed.is_left():
                    return
                yield b": \n\n"
    except JidomemError as error:
        yield _event("refused", wire.described(error))


def _event(kind: str, value: Mapping[str, Any], identity: str | None = None) -> bytes:
    named = f"id: {identity}\n" if identity is not None else ""
    return f"{named}event: {kind}\ndata: ".encode() + wire.dump(value) + b"\n\n"
