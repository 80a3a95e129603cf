"""Values in a plain mapping inside the state: pure, and gone with it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from jidomem.provider import Done, Found, Missing, Opts, only


class InlineProvider:
    """Keeps any Python values in memory; each call gives a new mapping and leaves the one it was given as it was.

    A put copies the mapping: right for what an agent has in hand. For many thousands of keys there is `KeyValue`.
    """

    def init(self, opts: Opts) -> Mapping[str, Any]:
        """Return a copy of the values that `data` gives, none unless it is given."""
        only(opts, ("data",), "the inline provider")
        return deepcopy(dict(opts.get("data", {})))

    def get(self, state: Mapping[str, Any], key: str, opts: Opts) -> Found | Missing:
        """Return a copy of the value under *key*, or that there is none."""
        only(opts, (), "inline get")
        return Found(state, deepcopy(state[key])) if key in state else Missing(state)

    def put(self, state: Mapping[str, Any], key: str, value: Any, opts: Opts) -> Done:
        """Keep a copy of *value* under *key*."""
        only(opts, (), "inline put")
        return Done({**state, key: deepcopy(value)})

    def delete(self, state: Mapping[str, Any], key: str, opts: Opts) -> Done | Missing:
        """Let go of the value under *key*, or say that there is none."""
        only(opts, (), "inline delete")
        if key not in state:
            return Missing(state)
        return Done({name: value for name, value in state.items() if name != key})
