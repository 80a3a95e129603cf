"""Set damage aside: the damaged bytes are kept under a name readers pass over, and nobody waits for them any more."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from itertools import count

from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal import disk
from jidomem.journal.erasing import alone, repacked, spoiled
from jidomem.journal.folder import Folder
from jidomem.journal.horizon import beyond
from jidomem.journal.names import ASIDE, aside_of, file_name, set_aside, short_id
from jidomem.journal.packs import prepare_pack
from jidomem.journal.sealing import SEALING, changing, settle, take_away
from jidomem.journal.sight import NOTHING
from jidomem.journal.writing import INCOMING, move, prepare, writing
from jidomem.version import SHORT

#: What stands for the moment of a commit that is missing.
_NO_MOMENT = "00000000T000000.000000Z"
_MISSING = re.compile(r"its parent ([0-9a-f]{64}) is not here")


def put_aside(folder: Folder, descriptor: int, which: str) -> str:
    """Set the damage *which* aside, an id or the name of a file, the lock in hand; return the name of the commit file.

    What was set aside before, but perhaps not recorded, is left as it is. Raise NotFound, naming what is damaged,
    where it is none of it.
    """
    damaged = folder.damaged()
    for name, found in damaged.items():
        missing = _MISSING.search(found.detail)
        if missing and _means(which, missing[1]):
            return _replaced(folder, descriptor, f"{_NO_MOMENT}-{missing[1][:SHORT]}.ttl", b"")
        if missing is None and (which == name.partition("#")[0] or _means(which, found.commit or "")):
            if name in folder.contents.shelf.broken:
                raise found  # all that is in it would go with it
            return _put_aside(folder, descriptor, name)
    for name in set_aside(folder.path):
        file = name.removesuffix(ASIDE)
        if which in (name, file) or _means(which, short_id(file) or ""):
            return file
    ids = [missing[1] if (missing := _MISSING.search(d.detail)) else d.commit or n for n, d in damaged.items()]
    hint = f"damaged are: {', '.join(dict.fromkeys(ids))}" if ids else "nothing is; see: jidomem verify"
    raise NotFound(f"{which} is not damaged in {folder.path}", hint=hint)


def put_late_aside(folder: Folder, descriptor: int, which: str, now: datetime) -> list[str]:
    """Set all commits beyond the horizon of *now* aside where *which* is one of them, the lock in hand.

    Return the names of their files, as `put_aside` does; none where *which* is none of them.
    """
    names: list[str] = []
    while late := beyond(folder, now):
        known = {name.partition("#")[0] for name in late}
        if not names and which not in known and not any(_means(which, each.commit or "") for each in late.values()):
            break
        names.append(_put_aside(folder, descriptor, next(iter(late))))
        with writing(folder.path):  # these commits were sound: the version that is known still has them
            disk.overwrite(descriptor, NOTHING.dump())
        folder.forget()
    return names


def _put_aside(folder: Folder, descriptor: int, name: str) -> str:
    """Set a file, or a commit of a pack (pack#stem), aside; return the name of the commit file."""
    pack, _, key = name.partition("#")
    if key:
        return _taken_out(folder, descriptor, pack, key)
    kept = _free(folder, name)
    with changing(folder, descriptor, gone=[name]):
        disk.rename(f"{folder.path}/{name}", f"{folder.path}/{kept}{ASIDE}")
    return kept


def _means(which: str, identity: str) -> bool:
    """Return whether *which* is an id, or a beginning of one of 8 digits at least, that *identity* agrees with."""
    return len(which) >= 8 and bool(identity) and (identity.startswith(which) or which.startswith(identity))


def _replaced(folder: Folder, descriptor: int, name: str, data: bytes) -> str:
    """Keep *data* as what was set aside under *name*, or where that has other bytes under the next; return which."""
    kept = _free(folder, name, data)
    with changing(folder, descriptor):
        prepare(f"{folder.path}/{INCOMING}", data)
        move(f"{folder.path}/{INCOMING}", f"{folder.path}/{kept}{ASIDE}")
    return kept


def _free(folder: Folder, name: str, data: bytes | None = None) -> str:
    """Return the first of name.ttl, name.2.ttl and so on under which nothing but *data* was set aside."""
    for number in count(2):
        path = f"{folder.path}/{name}{ASIDE}"
        if not disk.exists(path) or _has(path, data):
            break
        name = f"{aside_of(name).removesuffix('.ttl')}.{number}.ttl"
    return name


def _has(path: str, data: bytes | None) -> bool:
    with suppress(OSError):
        return disk.read(path) == data
    return False


def _taken_out(folder: Folder, descriptor: int, pack: str, key: str) -> str:
    """Set one commit of a pack aside: another pack, of the others, takes its place.

    What else is spoiled in it gets a file of its own, unless a sound one stands for it: no pack takes it on. Where that
    is spoiled, too, what the pack had is set aside beside it.
    """
    rows = folder.contents.shelf.rows(next(each for each in folder.contents.shelf.packs() if each.name == pack))
    name = file_name(rows[key].head, redacted=rows[key].redacted)
    keys = spoiled(folder, pack) - {key}
    files, others = alone(folder, pack, keys), repacked(folder, pack, {*keys, key}, {})
    data = disk.read_part(f"{folder.path}/{pack}", rows[key].offset, rows[key].size)
    name = _replaced(folder, descriptor, name, data)
    for file in files:
        if not disk.exists(f"{folder.path}/{file}"):
            prepare(f"{folder.path}/{INCOMING}", files[file])
            settle(folder, descriptor, INCOMING, file)
        elif not _has(f"{folder.path}/{file}", files[file]):
            _replaced(folder, descriptor, file, files[file])
    if others:
        prepare_pack(f"{folder.path}/{SEALING}", *others)
    settle(folder, descriptor, SEALING, others[0] if others else None)
    take_away(folder, descriptor, [pack])
    return name


def asides(folder: Folder) -> list[JournalDamaged]:
    """Return what was set aside, by file name, as the damage it is."""
    return [folder.contents.damaged(name, "set aside") for name in sorted(set_aside(folder.path))]
