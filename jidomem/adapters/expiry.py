"""How long items last: until so many minutes after they were written, or were read last where reading counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any

from jidomem.errors import InvalidRequest, JidomemError, MemoryClosed
from jidomem.providers.kv import TABLES
from jidomem.read.keyed import Keyed
from jidomem.runtime.root import Jidomem

_KNOWN = ("refresh_on_read", "omit_expired", "default_ttl", "sweep_interval_minutes")
_READ = """INSERT INTO key_values VALUES (?, ?, ?)
           ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"""
#: Minutes between two sweeps, unless said otherwise.
_EACH = 5.0


class Expiry:
    """When the items of one store are over. When they were read is working state of the root, and in no journal."""

    def __init__(self, memory: Jidomem, name: str, config: Mapping[str, Any]) -> None:
        """Know of items by *name*, as LangGraph's TTL *config* has it; raises InvalidRequest for what that has not."""
        if unknown := {*config} - {*_KNOWN}:
            raise InvalidRequest(f"ttl takes no {', '.join(sorted(unknown))}", hint=f"give of {', '.join(_KNOWN)}")
        for name in ("default_ttl", "sweep_interval_minutes"):
            if (said := config.get(name)) is not None and (
                isinstance(said, bool) or not isinstance(said, (int, float))
            ):
                raise InvalidRequest(f"{name}={said!r} is no number of minutes", hint=f"{name}=60")
        self._now = memory.sources.now
        self._config = config
        self._name = name
        self._state = memory.place.state("working", TABLES) if config.get("refresh_on_read") else None
        self._stop = Event()
        self._thread: Thread | None = None

    def omits(self, one: Keyed) -> bool:
        """Return whether an item is not to be told of."""
        return bool(self._config.get("omit_expired")) and self.is_over(one)

    def is_over(self, one: Keyed) -> bool:
        """Return whether an item has lived as long as it may."""
        minutes = _minutes(one)
        if minutes is None:
            return False
        now = self._now()
        with suppress(OverflowError):  # longer than the calendar goes
            over = now - timedelta(minutes=minutes)
            return datetime.fromisoformat(one.recorded) < over and self._last_read(one) < over
        return False

    def read(self, found: Iterable[Keyed], refresh: bool) -> None:
        """Note that items were read, where they last longer for it; one that is over stays over where it is omitted."""
        read = [one for one in found if _minutes(one) is not None] if refresh and self._state is not None else []
        if read and self._state is not None:
            with self._state.changing() as store:
                store.executemany(_READ, [(self._name, one.node, json.dumps(self._now().isoformat())) for one in read])

    def start(self, sweep: Callable[[], int], each: float | None) -> Future[None]:
        """Return a future: until it is cancelled, or `stop` is called, *sweep* is called every so many minutes."""
        future: Future[None] = Future()
        if not self._config:
            future.set_result(None)
            return future
        future.add_done_callback(lambda done: self._stop.set() if done.cancelled() else None)
        if self._thread is not None and self._thread.is_alive():
            return future
        minutes = float(each or self._config.get("sweep_interval_minutes") or _EACH)
        self._stop.clear()

        def go_on() -> None:
            while not self._stop.wait(60 * minutes):
                try:
                    sweep()
                except MemoryClosed:
                    return
                except JidomemError:
                    continue  # the next one tries again

        self._thread = Thread(target=go_on, name="jidomem-item-sweeper", daemon=True)
        self._thread.start()
        return future

    def stop(self, timeout: float | None) -> bool:
        """Return whether nothing is swept any more, once that has come to its end."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout)
        return self._thread is None or not self._thread.is_alive()

    def _last_read(self, one: Keyed) -> datetime:
        asked = "SELECT value FROM key_values WHERE namespace = ? AND key = ?"
        row = None
        if self._state is not None:
            with self._state.reading() as store:
                row = None if store is None else store.execute(asked, (self._name, one.node)).fetchone()
        return datetime.fromisoformat(one.recorded if row is None else json.loads(row[0]))


def _minutes(one: Keyed) -> float | None:
    """Return how many minutes an item lasts, None where it does not end."""
    found = one.metadata.get("ttl") if '"ttl":' in one.said else None
    return found if isinstance(found, float) else None
