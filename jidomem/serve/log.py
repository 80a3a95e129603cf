"""The log of a server: a line for each event, as JSON or as text, written by a thread of its own."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from select import PIPE_BUF
from time import sleep, time
from typing import Any, TextIO

import orjson

from jidomem.base.background import BackgroundTask
from jidomem.serve.shared_state import SharedState

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

    def __init__(
        self, sink: TextIO, form: str = "json", level: str = "info", shared: SharedState | None = None
    ) -> None:
        """Write to *sink*, in turn with the other workers of *shared*, if any; their lines have a number."""
        self._sink, self._shared = sink, shared
        self._fields = {"worker": shared.number} if shared is not None and shared.number else {}
        self.on_lost: Callable[[], None] | None = None
        self._write = as_json if form == "json" else _as_text
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
                self._waiting.append({"time": time(), "level": level, "event": event, **self._fields, **fields})
            else:
                self.lost += 1
                if self.on_lost is not None:
                    self.on_lost()
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
                events.append({
                    "time": time(), "level": "warning", "event": "lost", **self._fields, "lines": lines,
                })  # fmt: skip
                self._reported_lost = lost
            with suppress(OSError, ValueError):  # the reader has closed the stream
                self._write_lines([*map(self._write, events)])

    def _write_lines(self, lines: list[str]) -> None:
        """Write *lines*; those of a worker in pieces that a pipe takes whole, so that a killed one leaves no part."""
        pieces = ["".join(lines)]
        if self._shared is not None:
            pieces = [""]
            for line in lines:
                if len(pieces[-1]) + len(line) > PIPE_BUF:
                    pieces.append("")
                pieces[-1] += line
        for piece in pieces:
            with nullcontext() if self._shared is None else self._shared.log_lock():
                self._sink.write(piece)
                self._sink.flush()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def as_json(event: LogEvent) -> str:
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
