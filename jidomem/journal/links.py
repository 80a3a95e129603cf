"""Hold the commits of a folder against their parents there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from jidomem.errors import JournalDamaged
from jidomem.journal.contents import Contents
from jidomem.journal.names import stem
from jidomem.journal.packs import Entry, Pack
from jidomem.version import Head

_LACKS = re.compile("its parent ([0-9a-f]{64}) is not here")


def lacks(identity: str) -> str:
    """Return the words for a commit whose parent is not in the journal."""
    return f"its parent {identity} is not here"


def lacking(detail: str) -> str | None:
    """Return the id of the parent that is not in the journal, by the words of `lacks`; None where that is not said."""
    found = _LACKS.search(detail)
    return found[1] if found else None


def broken(entry: Entry, contents: Contents, near: Mapping[str, Head] = MappingProxyType({})) -> str:
    """Return what does not fit between a commit and its parents, or nothing; *near* are looked at before *contents*."""
    parents = []
    for identity in entry.parents:
        parent = near.get(identity) or contents.head(identity)
        if parent is not None:
            parents.append(parent)
        elif not contents.explains(identity):
            return lacks(identity)
    if len(parents) < len(entry.parents):
        return ""  # what the parent is in is damaged itself
    if entry.head.position != 1 + max((parent.position for parent in parents), default=0):
        return f"its position {entry.head.position} does not follow from its parents"
    if any(parent.recorded_at >= entry.head.recorded_at for parent in parents):
        return f"it was recorded at {entry.head.recorded_at}, not after its parents"
    return ""


def unfit(pack: Pack, contents: Contents, key: str = "") -> dict[str, JournalDamaged]:
    """Return what of a pack, or of its commit of the stem *key*, does not fit its parents, all of it read again.

    What is spoiled itself is noted in *contents*.
    """
    rows = contents.shelf.rows(pack)
    inside, found = {row.head.id: row.head for row in rows.values()}, dict[str, JournalDamaged]()
    for row in [rows[key]] if key in rows else rows.values():
        if not contents.stands_beside(row):
            problem = broken(row.entry, contents, inside)
            if contents.packed(pack, row) is not None and problem:
                name = f"{pack.name}#{stem(row.head)}"
                found[name] = contents.damaged(name, problem, identity=row.head.id)
    return found
