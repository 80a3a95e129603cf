"""The log of a server: a line an event, whole whatever is in it, written by a thread nobody waits for."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Thread
from time import sleep, time
from typing import Any, TextIO

import orjson

LEVELS = ("debug", "info", "warning", "error")
FORMS = ("json", "text")
#: Lines that may wait for a reader who is slow; those after them are counted, and lost.
WAITING = 10_000
#: Seconds that lines are gathered, to be written together.
_GATHERED = 0.05
_PLAIN = re.compile(r"[A-Za-z0-9._:/@%+-]+")
Event = dict[str, Any]


class Log:
    """Lines about a server, of *level* and above, written to *sink* as JSON or as text for people."""

    def __init__(self, sink: TextIO, form: str = "json", level: str = "info") -> None:
        self._sink = sink
        self._write = _as_json if form == "json" else _as_text
        self._least = LEVELS.index(level)
        self._waiting: deque[Event] = deque()
        # Not an Event: a signal handler that closes the log while a line is told would wait for its own lock.
        self._wakes, self._is_closed = SimpleQueue[None](), False
        self.lost = 0
        self._told_lost = 0
        self._thread = Thread(target=self._work, name="jidomem-log", daemon=True)
        self._thread.start()

    def takes(self, level: str) -> bool:
        """Return whether what is of *level* is written."""
        return LEVELS.index(level) >= self._least

    def tell(self, level: str, event: str, said: Mapping[str, Any]) -> None:
        """Write one line, soon; what nobody reads in time is counted in `lost`."""
        if self.takes(level):
            if len(self._waiting) < WAITING:
                self._waiting.append({"time": time(), "level": level, "event": event, **said})
            else:
                self.lost += 1
            if self._wakes.empty():
                self._wakes.put(None)

    def close(self, seconds: float = 1.0) -> None:
        """Write what waits, unless that takes longer."""
        self._is_closed = True
        self._wakes.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while not self._is_closed or self._waiting:
            self._wakes.get()
            if not self._is_closed:
                sleep(_GATHERED)  # whoever tells more meanwhile need not wake this thread
            while not self._wakes.empty():
                self._wakes.get()
            told = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if (lost := self.lost) > self._told_lost:
                told.append({"time": time(), "level": "warning", "event": "lost", "lines": lost - self._told_lost})
                self._told_lost = lost
            with suppress(OSError, ValueError):  # nobody reads any more
                self._sink.write("".join(map(self._write, told)))
                self._sink.flush()


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _as_json(event: Event) -> str:
    """Return one line: ASCII, so that no sign in it is a line's end to anybody."""
    event["time"] = _moment(event["time"])
    data = orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE)
    return data.decode() if data.isascii() else json.dumps(event) + "\n"


def _as_text(event: Event) -> str:
    """Return one line for people; whatever is not plain is quoted and escaped as in JSON."""
    said = {name: value for name, value in event.items() if name not in ("time", "level", "event")}
    pairs = (f"{name}={_word(str(value))}" for name, value in said.items())
    return " ".join((_moment(event["time"]), event["level"], event["event"], *pairs)) + "\n"


def _word(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
