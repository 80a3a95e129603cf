"""Values under keys: in memory for as long as the process lives, or kept in a file beside the journal."""

from __future__ import annotations

import json
from copy import deepcopy
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.keeping import Keeping
from jidomem.plain import plain
from jidomem.provider import Done, Found, Missing, Opts, only

#: What the file of a `KeptProvider` must have.
TABLES = """
CREATE TABLE IF NOT EXISTS key_values (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
"""
_KEEP = """INSERT INTO key_values VALUES (?, ?, ?)
           ON CONFLICT (namespace, key) DO UPDATE SET value = excluded.value"""


@dataclass(slots=True)
class _Table:
    """Values in memory, and whose turn it is."""

    values: dict[str, Any] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


class KeyValueProvider:
    """Keeps any Python values in memory; threads take turns, and nothing outlives the process."""

    def init(self, opts: Opts) -> _Table:
        """Return an empty table."""
        only(opts, (), "the key-value provider")
        return _Table()

    def get(self, state: _Table, key: str, opts: Opts) -> Found | Missing:
        """Return a copy of the value under *key*, or that there is none."""
        only(opts, (), "key-value get")
        with state.lock:
            return Found(state, deepcopy(state.values[key])) if key in state.values else Missing(state)

    def put(self, state: _Table, key: str, value: Any, opts: Opts) -> Done:
        """Keep a copy of *value* under *key*."""
        only(opts, (), "key-value put")
        kept = deepcopy(value)
        with state.lock:
            state.values[key] = kept
        return Done(state)

    def delete(self, state: _Table, key: str, opts: Opts) -> Done | Missing:
        """Let go of the value under *key*, or say that there is none."""
        only(opts, (), "key-value delete")
        with state.lock:
            if key not in state.values:
                return Missing(state)
            del state.values[key]
        return Done(state)


@dataclass(frozen=True, slots=True)
class _Namespace:
    """The keys of one name in a file."""

    file: Keeping
    name: str


class KeptProvider:
    """Keeps values that have a form in JSON in a file; what was put is there after a crash.

    Options: `state`, the file; `namespace`, whose keys these are (the same key under another is another).
    """

    def init(self, opts: Opts) -> _Namespace:
        """Return the namespace; nothing is opened before the first call. Raises InvalidRequest where there is none."""
        only(opts, ("namespace", "state"), "the kept key-value provider")
        file, name = opts.get("state"), opts.get("namespace")
        if file is None or not isinstance(name, str):
            hint = "memory.providers() of an open memory has one, named 'kept'"
            raise InvalidRequest("a kept provider needs a state and a namespace", hint=hint)
        return _Namespace(file, _text("namespace", name))

    def get(self, state: _Namespace, key: str, opts: Opts) -> Found | Missing:
        """Return the value under *key*, or that there is none."""
        only(opts, (), "kept get")
        asked = "SELECT value FROM key_values WHERE namespace = ? AND key = ?"
        with state.file.reading() as store:
            row = store.execute(asked, (state.name, _text("key", key))).fetchone() if store else None
        return Missing(state) if row is None else Found(state, json.loads(row[0]))

    def put(self, state: _Namespace, key: str, value: Any, opts: Opts) -> Done:
        """Keep *value* under *key*; raises InvalidRequest, which names the place, for what JSON has no form for."""
        only(opts, (), "kept put")
        row = (state.name, _text("key", key), _written(value))
        with state.file.changing() as store:
            store.execute(_KEEP, row)
        return Done(state)

    def delete(self, state: _Namespace, key: str, opts: Opts) -> Done | Missing:
        """Let go of the value under *key*, or say that there is none."""
        only(opts, (), "kept delete")
        gone = "DELETE FROM key_values WHERE namespace = ? AND key = ?"
        with state.file.reading() as store:
            if store is None:
                return Missing(state)
        with state.file.changing() as store:
            count = store.execute(gone, (state.name, _text("key", key))).rowcount
        return Done(state) if count else Missing(state)


def _text(name: str, given: str) -> str:
    text: str = plain(given, name)
    return text


def _written(value: Any) -> str:
    return json.dumps(plain(value, "value"), ensure_ascii=False, separators=(",", ":"))
