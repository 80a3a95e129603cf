"""Hold a commit of a folder against its parents there."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from jidomem.journal.contents import Contents
from jidomem.journal.packs import Entry
from jidomem.version import Head


def broken(entry: Entry, contents: Contents, near: Mapping[str, Head] = MappingProxyType({})) -> str:
    """Return what does not fit between a commit and its parents, or nothing; *near* are looked at before *contents*."""
    parents = []
    for identity in entry.parents:
        parent = near.get(identity) or contents.head(identity)
        if parent is not None:
            parents.append(parent)
        elif not contents.explains(identity):
            return f"its parent {identity} is not here"
    if len(parents) < len(entry.parents):
        return ""  # what the parent is in is damaged itself
    if entry.head.position != 1 + max((parent.position for parent in parents), default=0):
        return f"its position {entry.head.position} does not follow from its parents"
    if any(parent.recorded_at >= entry.head.recorded_at for parent in parents):
        return f"it was recorded at {entry.head.recorded_at}, not after its parents"
    return ""
