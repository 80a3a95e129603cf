"""Items in order: finding, placing and reordering those of a list space, and the tasks among them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jidomem.errors import InvalidRequest, NotFound
from jidomem.frozen import FrozenList, freeze
from jidomem.spaces.names import OPEN, TASK_STATUSES

_NO_ID = object()


def id_of(item: Any) -> Any:
    """Return the id of an item, its key or attribute of that name; a thing no id equals if it has none."""
    held = item.get("id") if isinstance(item, Mapping) else getattr(item, "id", None)
    return _NO_ID if held is None else held


def placed(items: Sequence[Any], index: int, item: Any) -> list[Any]:
    """Return the items with one more at *index*: 0 is the front, beyond the end is the end; raise `InvalidRequest`."""
    if type(index) is not int or index < 0:
        raise InvalidRequest(f"an index is a whole number from 0, the front, not {index!r}", hint="0 is the front")
    return FrozenList([*items[:index], freeze(item), *items[index:]])


def without(items: Sequence[Any], item_id: Any, place: str) -> list[Any]:
    """Return the items without those of that id; raise `NotFound` if there is none."""
    _refuse_unknown(items, item_id, place)
    return FrozenList([item for item in items if id_of(item) != item_id])


def replaced(items: Sequence[Any], item_id: Any, fun: Callable[[Any], Any], place: str) -> Sequence[Any]:
    """Return the items with `fun(item)` in the place of those of that id; raise `NotFound` if there is none.

    Where *fun* gives back each item as it was, so are the items.
    """
    _refuse_unknown(items, item_id, place)
    after = FrozenList([freeze(fun(item)) if id_of(item) == item_id else item for item in items])
    return items if _same(items, after) else after


def reordered(items: Sequence[Any], ids: Sequence[Any], place: str) -> Sequence[Any]:
    """Return the items of *ids* in that order, then those not named in the order they had.

    Raise `NotFound` for an id there is not, `InvalidRequest` for one that stands twice.
    """
    if isinstance(ids, str) or not isinstance(ids, Sequence):
        raise InvalidRequest(
            f"the order of {place} is a list of ids, not {ids!r:.200}", hint='give the ids in order: ["t2", "t1"]'
        )
    if twice := [item_id for place_, item_id in enumerate(ids) if item_id in ids[:place_]]:
        raise InvalidRequest(f"{twice[0]!r} stands twice in the order of {place}", hint="name each id once")
    for item_id in ids:
        _refuse_unknown(items, item_id, place)
    named = [item for item_id in ids for item in items if id_of(item) == item_id]
    after = FrozenList([*named, *(item for item in items if id_of(item) not in ids)])
    return items if _same(items, after) else after


def new_task(text: str, status: str, task_id: str, items: Sequence[Any]) -> dict[str, str]:
    """Return a task to stand among *items*; raise `InvalidRequest` unless it is one and its id is free."""
    if any(id_of(item) == task_id for item in items):
        raise InvalidRequest(f"there is a task {task_id!r} already", hint="leave the id out to have one made")
    return as_task({"id": task_id, "text": text, "status": status})


def as_task(item: Any) -> dict[str, str]:
    """Return *item* if it is a task: an id, a text and a status, and nothing else; raise `InvalidRequest` if not."""
    if not isinstance(item, Mapping) or set(item) != {"id", "text", "status"}:
        raise InvalidRequest(
            f"a task has id, text and status and nothing else, not {item!r:.200}",
            hint='{"id": "t1", "text": "ship", "status": "open"}',
        )
    for name in ("id", "text"):
        if not isinstance(item[name], str):
            raise InvalidRequest(
                f"the {name} of a task is a text, not {item[name]!r:.200}", hint=f"give {name} as text"
            )
    if not item["id"]:
        raise InvalidRequest("the id of a task has at least one sign", hint="leave the id out to have one made")
    if item["status"] not in TASK_STATUSES:
        raise InvalidRequest(
            f"a task is {' or '.join(TASK_STATUSES)}, not {item['status']!r:.200}",
            hint=f"give status={OPEN!r}, or leave it out",
        )
    return {name: item[name] for name in ("id", "text", "status")}


def is_open(item: Any) -> bool:
    """Return whether an item is a task still to be done."""
    return isinstance(item, Mapping) and item.get("status") == OPEN


def merged(items: Sequence[Any], tasks: Sequence[Any]) -> list[Any]:
    """Return the items with each of *tasks* in the place of the one of its id, or at the end if there is none.

    Raise `InvalidRequest` for what is no task, and for two of one id.
    """
    given = [as_task(task) for task in tasks]
    by_id = {task["id"]: task for task in given}
    if len(by_id) < len(given):
        raise InvalidRequest("two of the tasks given have the same id", hint="give each task an id of its own")
    held = {id_of(item) for item in items if isinstance(id_of(item), str)}
    there = [by_id.get(id_of(item), item) if isinstance(id_of(item), str) else item for item in items]
    return [*there, *(task for task in given if task["id"] not in held)]


def _refuse_unknown(items: Sequence[Any], item_id: Any, place: str) -> None:
    if any(id_of(item) == item_id for item in items):
        return
    known = [repr(id_of(item)) for item in items if id_of(item) is not _NO_ID]
    hint = f"there are {', '.join(known[:10])}" if known else "no item there has an id" if items else "nothing is there"
    raise NotFound(f"no item of {place} has the id {item_id!r}", hint=hint)


def _same(before: Sequence[Any], after: Sequence[Any]) -> bool:
    return all(old is new for old, new in zip(before, after, strict=True))
