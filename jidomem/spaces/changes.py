"""Changes of a memory as data: what those outside send is checked by name, and done all together or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from jidomem.errors import InvalidRequest, JidomemError
from jidomem.spaces.memory import Memory

_KEY, _VALUE, _SPACE, _ID = "key", "value", "space", "id"
#: What is done -> the fields it needs and those it may have, in the order in which the method of that name takes the
#: former; the latter go by their names.
CHANGES: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "world_put": ((_KEY, _VALUE), ("ttl_ms",)),
    "world_delete": ((_KEY,), ()),
    "tasks_add": (("text",), (_ID, "status")),
    "tasks_insert": (("index", "text"), (_ID, "status")),
    "tasks_complete": ((_ID,), ()),
    "tasks_remove": ((_ID,), ()),
    "tasks_reorder": (("ids",), ()),
    "ensure_space": ((_SPACE, "data"), ()),
    "space_delete": ((_SPACE,), ()),
    "put_in_space": ((_SPACE, _KEY, _VALUE), ("ttl_ms",)),
    "delete_from_space": ((_SPACE, _KEY), ()),
    "append_to_space": ((_SPACE, "item"), ()),
    "prepend_to_space": ((_SPACE, "item"), ()),
    "insert_in_space": ((_SPACE, "index", "item"), ()),
    "remove_from_space": ((_SPACE, _ID), ()),
}
#: The most changes at once: each looks at all that its space holds, and others wait meanwhile.
MOST = 1_000
_TEXT, _WHOLE = (str, "text"), (int, "whole number")
_KINDS: Mapping[str, tuple[type, str]] = {
    _KEY: _TEXT, _SPACE: _TEXT, _ID: _TEXT, "text": _TEXT, "status": _TEXT, "ids": (list, "list"),
    "index": _WHOLE, "ttl_ms": _WHOLE,
}  # fmt: skip


def applied(memory: Memory, changes: Sequence[Mapping[str, Any]], now: int | None = None) -> Memory:
    """Return *memory* after *changes*, one after the other: each says what to `do`, and has the fields of that.

    Raises what the methods of `Memory` raise, naming the change; *memory* is as it was.

    >>> task = {"do": "tasks_add", "text": "ship", "id": "t1"}
    >>> applied(Memory(id="mem_1"), [task, {"do": "tasks_complete", "id": "t1"}]).tasks()
    [{'id': 't1', 'text': 'ship', 'status': 'done'}]
    """
    if isinstance(changes, str | bytes) or not isinstance(changes, Sequence):
        raise InvalidRequest(f"changes are a list, not {changes!r:.200}", hint=_HINT)
    if len(changes) > MOST:
        raise InvalidRequest(
            f"{len(changes):,} changes are more than the {MOST:,} that are done at once",
            hint="send the rest by another call; a space is given as a whole by ensure_space",
        )
    for number, change in enumerate(changes, 1):
        try:
            memory = _done(memory, change, now)
        except JidomemError as error:
            error.position, error.detail = number - 1, f"change {number}: {error.detail}"
            error.args = (error.detail,)
            raise
    return memory


_HINT = 'send [{"do": "world_put", "key": "language", "value": "en"}]'


def _done(memory: Memory, change: Mapping[str, Any], now: int | None) -> Memory:
    if not isinstance(change, Mapping):
        raise InvalidRequest(f"a change is a mapping, not {change!r:.200}", hint=_HINT)
    name = change.get("do")
    if not isinstance(name, str) or name not in CHANGES:
        near = get_close_matches(str(name), CHANGES, n=1, cutoff=0.5)
        known = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(CHANGES)}"
        raise InvalidRequest(f"do={name!r:.200} is no change of a memory", hint=known)
    needed, optional = CHANGES[name]
    for field in change:
        if field not in ("do", *needed, *optional):
            takes = ", ".join((*needed, *optional))
            raise InvalidRequest(f"{name} takes no {field!r:.200}", hint=f"it takes {takes}")
    for field in needed:
        if field not in change:
            raise InvalidRequest(f"{name} needs {field}", hint=f"give {', '.join(needed)}")
    for field, value in change.items():
        if field in _KINDS and type(value) is not _KINDS[field][0]:
            raise InvalidRequest(
                f"{field} of {name} is no {_KINDS[field][1]}: {value!r:.200}",
                hint=f"give {field} as a {_KINDS[field][1]}",
            )
    given = {field: change[field] for field in optional if field in change}
    after: Memory = getattr(memory, name)(*(change[field] for field in needed), now=now, **given)
    return after
