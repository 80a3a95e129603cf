"""The horizon: a moment long after the clock of this machine, beyond which no commit is followed by another.

A commit is recorded after its parents. One that is dated to the end of the calendar, as a hostile branch may bring it,
would leave no moment for the next, and one of the next century would date all that is written after it.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from jidomem.errors import JournalDamaged
from jidomem.journal.folder import Folder
from jidomem.journal.names import file_name, stem
from jidomem.moments import stamp
from jidomem.version import SHORT, Head

#: How far ahead a clock may have been that was put right since: far enough for one that starts in 1970.
AHEAD = timedelta(days=36_525)
_LAST = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)


def horizon(now: datetime) -> str:
    """Return the last moment at which a commit is followed by another.

    >>> horizon(datetime(2026, 11, 21, 8, tzinfo=UTC))
    '2126-11-22T08:00:00.000000Z'
    """
    return stamp(now + min(AHEAD, max(_LAST - now, timedelta())))


def too_late(head: Head, path: str, now: datetime) -> JournalDamaged:
    """Return the error for a commit beyond the horizon in the file *path*."""
    return JournalDamaged(
        f"it is recorded at {head.recorded_at}, more than 100 years after the clock of this machine ({stamp(now)}):"
        " nothing can be recorded after it",
        path=path,
        commit=head.id,
        hint=f"take back the merge that brought it, or: jidomem verify --quarantine {head.id[:SHORT]} --reason TEXT;"
        " where the clock is wrong, set that",
    )


def beyond(folder: Folder, now: datetime) -> dict[str, JournalDamaged]:
    """Return an error for each commit of *folder* beyond the horizon, by the name of its file, or pack#stem."""
    if folder.look().recorded_at <= (last := horizon(now)):
        return {}
    contents, found = folder.contents, dict[str, Head]()
    for name in contents.files():
        if (entry := contents.entry(name)) is not None:
            found[name] = entry.head
    for pack in contents.shelf.packs():
        found |= {f"{pack.name}#{stem(row.head)}": row.head for row in contents.shelf.rows(pack).values()}
    late = {name: head for name, head in sorted(found.items()) if head.recorded_at > last}
    return {name: too_late(head, f"{folder.path}/{name.partition('#')[0]}", now) for name, head in late.items()}


def moment_after(now: datetime, *heads: Head) -> str:
    """Return the moment of the commit after *heads*: now, or a microsecond after the newest where the clock went back.

    Raise JournalDamaged where the newest is beyond the horizon.
    """
    newest = max(heads, default=None)
    if newest is None or stamp(now) > newest.recorded_at:
        return stamp(now)
    if newest.recorded_at > horizon(now):
        raise too_late(newest, file_name(newest), now)
    moment = datetime.strptime(newest.recorded_at, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
    return stamp(moment + timedelta(microseconds=1))
