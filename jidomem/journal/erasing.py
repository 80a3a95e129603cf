"""Take what a redaction names out of every file of a stream: new forms first, the old ones last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from jidomem.journal import disk
from jidomem.journal.commit import Commit, FormatError, parse
from jidomem.journal.folder import Folder
from jidomem.journal.names import file_name, is_pack, stem, stem_of
from jidomem.journal.packs import Pack, Row, place_pack, prepare_pack, write_pack
from jidomem.journal.redaction import is_order, leaves, recorded, taken_out, without
from jidomem.journal.sealing import SEALING, changing
from jidomem.journal.writing import INCOMING, move, prepare

#: How many commits are held while it is looked whether one of them is an order.
AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a commit: in which file it is, after how many lines."""

    name: str
    before: int
    commit: Commit


def forms(folder: Folder, identity: str) -> list[Form]:
    """Return every form of a commit that is in a file of *folder*; what is damaged is left out."""
    return _parted(folder, identity)[0]


def _parted(folder: Folder, identity: str) -> tuple[list[Form], list[str]]:
    """Return every form of a commit that is sound, and the files in which there is a spoiled one."""
    sound: list[Form] = []
    spoiled_in: list[str] = []
    for name, before, document in _documents(folder, identity):
        try:
            sound.append(Form(name, before, parse(document)))
        except FormatError:
            spoiled_in.append(name)
    return sound, spoiled_in


def _documents(folder: Folder, identity: str) -> Iterator[tuple[str, int, bytes]]:
    """Yield what stands for a commit in each file that can be read: the file, after how many lines, the document."""
    head = folder.contents.head(identity)
    if head is None:
        return
    for name in (file_name(head), file_name(head, redacted=True)):
        with suppress(OSError):
            yield name, 0, disk.read(f"{folder.path}/{name}")
    for pack, row in folder.contents.shelf.at(stem(head)):
        with suppress(OSError):
            yield pack.name, pack.lines_before(row), pack.document(row)


def orders(folder: Folder) -> Iterator[Commit]:
    """Yield the commits that say of others that they were redacted, or of files that they were set aside.

    What cannot be read is damage, which others tell of.
    """
    met: set[str] = set()
    for pack in folder.contents.shelf.packs():
        with suppress(OSError):
            if any(map(is_order, disk.pieces(pack.path))):
                met |= {key for key, row in folder.contents.shelf.rows(pack).items() if is_order(pack.document(row))}
    for name in folder.contents.files():
        with suppress(OSError):
            met |= {stem_of(name)} if is_order(disk.read(f"{folder.path}/{name}")) else set()
    yield from folder.commits(sorted(met), set())


def served(folder: Folder, keys: Iterable[str], missed: set[str]) -> Iterator[Commit]:
    """Yield the commits of these stems as `Folder.commits` does, without what an order among them names.

    A file that shows it came back, as by a checkout, while that with the redacted form is gone; others tell of it. An
    order is recorded after what it names, so that who reads up to the present reads it as well.
    """
    keys, late = list(keys), set[str]()
    if len(keys) <= AT_ONCE:  # a follower reads each file once
        told = list(_in_step(folder, keys, late))
        gone = recorded(commit for commit, _ in told if is_order(commit.data))
        steps: Iterable[tuple[Commit, frozenset[str]]] = told
    else:
        steps = _in_step(folder, keys, late)
        gone = recorded(folder.commits([key for key in keys if is_order(folder.raw(key))], set()))
    for commit, before in steps:
        missed |= before
        shown = gone.get(commit.id, frozenset()).intersection(leaves(commit).values()) if commit.id in gone else ()
        if shown:
            with suppress(FormatError):  # an order that names what a commit says of itself is none
                commit = without(commit, {*shown, *taken_out(commit)})
        yield commit
    missed |= late


def _in_step(folder: Folder, keys: Iterable[str], late: set[str]) -> Iterator[tuple[Commit, frozenset[str]]]:
    """Yield the commits of these stems, each with the paths that were missed between it and the one before.

    *late* takes in those that were missed after the last. Who reads ahead can so tell a reader where damage begins.
    """
    for commit in folder.commits(keys, late):
        before = frozenset(late)
        late.clear()
        yield commit, before


def ordered(folder: Folder, orders: Iterable[str]) -> dict[str, bytes]:
    """Return the documents, by the ids of their commits, that the commits *orders*, by id, ask for and that are others.

    What cannot be read is damage, and what a commit says of itself stays: others tell of both.
    """
    heads = [head for identity in orders if (head := folder.contents.head(identity)) is not None]
    told, documents = folder.commits(map(stem, heads), set()), dict[str, bytes]()
    for identity, gone in recorded(told).items():
        for form in forms(folder, identity):
            if not gone.isdisjoint(leaves(form.commit).values()):
                with suppress(FormatError):
                    documents[identity] = without(form.commit, gone | taken_out(form.commit)).data
    return documents


def redacted_ids(folder: Folder) -> list[str]:
    """Return the ids of the commits that are in some file in their redacted form."""
    found = {row.head.id for pack in folder.contents.shelf.packs() for row in _rows(folder, pack) if row.redacted}
    loose = (folder.contents.entry(name) for name in sorted(folder.contents.files()) if ".redacted." in name)
    return sorted(found.union(entry.head.id for entry in loose if entry is not None))


def _rows(folder: Folder, pack: Pack) -> Iterable[Row]:
    with suppress(FileNotFoundError):
        return folder.contents.shelf.rows(pack).values()
    return ()


def lay(folder: Folder, descriptor: int, gone: Mapping[str, frozenset[str]]) -> list[str]:
    """Lay forms without the leaves *gone* beside all that still show one, the turn in hand; return the old names.

    *gone* goes by the id of the commit. What one form has lost already, the others lose as well; a spoiled one goes
    where another stands for it. Raise JournalDamaged, and lay nothing, where a pack that is to be written anew has a
    commit that is spoiled.
    """
    files: dict[str, bytes] = {}
    old: list[str] = []
    packs: dict[str, dict[str, bytes]] = {}
    for identity, named in gone.items():
        found, hidden = _parted(folder, identity)
        out = named.union(*(taken_out(form.commit) for form in found))
        for form in found:
            if not out.isdisjoint(leaves(form.commit).values()):
                clean = without(form.commit, out)
                if is_pack(form.name):
                    packs.setdefault(form.name, {})[stem(clean.head)] = clean.data
                else:
                    name = file_name(clean.head, redacted=True)
                    files[name] = clean.data
                    old += [] if form.name == name else [form.name]
        for name in hidden if found else ():
            if is_pack(name):
                packs.setdefault(name, {})
            elif name not in files:
                old.append(name)
    left_out = {name: _left_out(folder, name) for name in packs}
    for name, data in files.items():
        _lay(folder, descriptor, INCOMING, name, data)
    for name, documents in packs.items():
        anew = repacked(folder, name, left_out[name], documents)
        if anew is not None:
            _lay(folder, descriptor, SEALING, *anew)
        old.append(name)
    return old


def remove(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files others stand for, and what writers that were killed left beside their place, the turn in hand."""
    with changing(folder, descriptor, gone=names):
        for name in (*names, INCOMING, SEALING):
            with suppress(FileNotFoundError):
                disk.unlink(f"{folder.path}/{name}")
        disk.flush(folder.path)


def spoiled(folder: Folder, name: str) -> set[str]:
    """Return the stems of the commits of the pack *name* that do not verify, read anew; the damage is noted."""
    pack, rows = _named(folder, name)
    return {key for key, row in rows.items() if folder.contents.packed(pack, row) is None}


def alone(folder: Folder, name: str, keys: Iterable[str]) -> dict[str, bytes]:
    """Return the documents of commits in the pack *name* that no sound file stands for, by what theirs are named."""
    pack, rows = _named(folder, name)
    found = [row for row in map(rows.__getitem__, keys) if not folder.contents.stands_beside(row)]
    return {file_name(row.head, redacted=row.redacted): pack.document(row) for row in found}


def repacked(
    folder: Folder, name: str, left_out: Collection[str], documents: Mapping[str, bytes]
) -> tuple[str, bytes] | None:
    """Return the pack *name* without some stems, and with redacted *documents* in place of theirs; None if empty."""
    pack, rows = _named(folder, name)
    taken = [
        (row.entry, row.redacted or key in documents, documents.get(key) or pack.document(row))
        for key, row in rows.items()
        if key not in left_out
    ]
    return write_pack(taken) if taken else None


def _named(folder: Folder, name: str) -> tuple[Pack, Mapping[str, Row]]:
    """Return the pack *name* and its table."""
    pack = next(pack for pack in folder.contents.shelf.packs() if pack.name == name)
    return pack, folder.contents.shelf.rows(pack)


def _left_out(folder: Folder, name: str) -> set[str]:
    """Return what is spoiled in a pack, and sound in a file beside; raise JournalDamaged for what is not."""
    keys = spoiled(folder, name)
    for file in alone(folder, name, keys):
        raise folder.contents.broken[f"{name}#{stem_of(file)}"]
    return keys


def _lay(folder: Folder, descriptor: int, beside: str, name: str, data: bytes) -> None:
    """Put a file in place, *beside* being where it is written; one of that name is replaced in one step."""
    is_new = not disk.exists(f"{folder.path}/{name}")
    with changing(folder, descriptor, came=[name] if is_new else []):
        if is_pack(name):
            prepare_pack(f"{folder.path}/{beside}", name, data)
            place_pack(folder.path, beside, name)
        else:
            prepare(f"{folder.path}/{beside}", data)
            move(f"{folder.path}/{beside}", f"{folder.path}/{name}")
    if not is_new:
        folder.contents.remove([name])  # what was read of it
        folder.contents.place([name])
