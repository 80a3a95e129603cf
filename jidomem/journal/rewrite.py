"""Take triples out of a commit for good: bare leaves stay in their place, and with them its id.

Seal the closed past of a stream: many commit files go, one pack with the same commits comes.

Take what a redaction names out of every file of a stream: new forms first, the old ones last.

Set damage aside: the damaged bytes are kept under a name readers pass over, and nobody waits for them any more.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from itertools import count
from time import time_ns

from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal import disk
from jidomem.journal.commit import (
    ASIDE,
    DESCRIPTION,
    Commit,
    FormatError,
    aside_of,
    file_name,
    format_document,
    is_pack,
    is_redaction_record,
    parse,
    secrets_of,
    set_aside,
    short_id,
    stem,
    stem_of,
)
from jidomem.journal.disk import INCOMING, move, prepare, writing
from jidomem.journal.packs import Pack, PackEntry, PackRow, place_pack, prepare_pack, write_pack
from jidomem.journal.stream import Folder, beyond
from jidomem.journal.write_lock import NOTHING
from jidomem.rdf.terms import Triple, iri, parse_literal, plain_value
from jidomem.rdf.vocab import THIS, TYPE, jido
from jidomem.records.intent import SHORT, Version

_SALT, _LEAF = "# salt ", "# leaf "


def is_redacted(document: bytes) -> bool:
    """Return whether something was taken out of the commit of a document: it has salts where there was a nonce."""
    return b"\n# nonce " not in document.partition(b"\n\n")[0]


def recorded(orders: Iterable[Commit]) -> Mapping[str, frozenset[str]]:
    """Return the leaves that were redacted by the id of their commit; an order's leaves count for each it names."""
    found: dict[str, frozenset[str]] = defaultdict(frozenset)
    for order in orders:
        own = iri(order.iri)
        gone = frozenset(parse_literal(o).text for s, p, o in order.triples if s == own and p == jido("redactedLeaf"))
        for s, p, commit in order.triples:
            if s == own and p == jido("redacts"):
                found[plain_value(commit).rpartition(":")[2]] |= gone
    return found


def leaves(commit: Commit) -> dict[Triple, str]:
    """Return the leaf of each triple that is still in *commit*, in hexadecimal digits."""
    salts = _salts(commit)
    return {
        triple: blake2b(line.encode(), digest_size=32, key=salts[line]).hexdigest()
        for triple, line in _lines(commit).items()
    }


def taken_out(commit: Commit) -> frozenset[str]:
    """Return the leaves of the triples that were taken out of *commit* before."""
    said = secrets_of(commit.data.decode())
    return frozenset(line.removeprefix(_LEAF) for line in said if line.startswith(_LEAF))


def without(commit: Commit, gone: Collection[str]) -> Commit:
    """Return *commit* without the triples that have the leaves *gone*; those of other commits mean nothing here.

    Raise FormatError for a triple of the commit's own description, which stays, and where nothing is to be taken out.
    """
    found, salts, lines = leaves(commit), _salts(commit), _lines(commit)
    kept = {triple for triple, leaf in found.items() if leaf not in gone}
    bare = taken_out(commit) | {leaf for leaf in found.values() if leaf in gone}
    own = iri(commit.iri)
    if any(s == own and (p in DESCRIPTION or p == TYPE) for s, p, _ in commit.triples - kept):
        raise FormatError(f"what commit {commit.id} says of itself cannot be taken out")
    said = [f"{_SALT}{salts[line].hex()}" for line in sorted(lines[triple] for triple in kept)]
    return parse(format_document([*said, *(f"{_LEAF}{leaf}" for leaf in sorted(bare))], own, kept))


def _lines(commit: Commit) -> dict[Triple, str]:
    """Return the digest line of each triple."""
    own = iri(commit.iri)
    return {(s, p, o): f"{THIS if s == own else s} {p} {THIS if o == own else o} ." for s, p, o in commit.triples}


def _salts(commit: Commit) -> dict[str, bytes]:
    """Return the salt of each digest line: made from the nonce, or kept since that was dropped."""
    lines, said = sorted(_lines(commit).values()), secrets_of(commit.data.decode())
    if commit.redacted:
        kept = (bytes.fromhex(line.removeprefix(_SALT)) for line in said if line.startswith(_SALT))
        return dict(zip(lines, kept, strict=True))
    nonce = bytes.fromhex(said[0].removeprefix("# nonce "))
    return {line: blake2b(line.encode(), digest_size=32, key=nonce).digest() for line in lines}


#: The most commits of a pack, and how many bytes it may have before it takes no further one.
COMMITS = 2_000
BYTES = 32_000_000
#: How many files go in one turn: others write in between.
SLICE = 64
PAUSE = 0.005  # seconds
#: Held by whoever seals a stream, and where a pack is written before it is renamed; git ignores both.
SEAL_LOCK = ".seal.lock"
SEALING = ".sealing.lock"


@dataclass(frozen=True, slots=True)
class PackBatch:
    """Commit files and the pack, written and durable but not in place, that stands for them; none where one does."""

    files: tuple[str, ...]
    pack: str | None


def batches(folder: Folder, version: Version) -> Iterator[PackBatch]:
    """Yield what can be sealed of a folder at *version*: all before the oldest head, in the order of the stream.

    Each file is read now, whatever was known of it. One that is not sound stays where it is, damage of the folder from
    then on, and so does a commit that is there in two forms.
    """
    oldest = stem(version.heads[0]) if version.heads else ""
    names = sorted(name for name in folder.contents.files() if stem_of(name) < oldest)
    forms = Counter(map(stem_of, names))
    again: list[str] = []
    sealed: dict[str, tuple[PackEntry, bool, bytes]] = {}
    size = 0
    for name in names:
        commit = folder.commit_in(name) if forms[stem_of(name)] == 1 else None
        if commit is None:
            continue
        if _is_packed(folder, commit):
            again.append(name)
        elif not folder.contents.shelf.at(stem_of(name)):
            sealed[name] = (PackEntry(commit.head, commit.parents), commit.redacted, commit.data)
            size += len(commit.data)
        if len(sealed) == COMMITS or size >= BYTES:
            yield _prepared(folder, sealed)
            sealed, size = {}, 0
    if len(sealed) > 1:
        yield _prepared(folder, sealed)
    if again:
        yield PackBatch(tuple(again), None)


def put_in_place(folder: Folder, descriptor: int, batch: PackBatch) -> bool:
    """Put a pack beside the files it stands for, the turn in hand; return whether these can go now.

    Nothing is done where one of them is no longer what it was: gone, or redacted meanwhile.
    """
    folder.look(holding=True)
    forms = {name: (f"{stem_of(name)}.ttl", f"{stem_of(name)}.redacted.ttl") for name in batch.files}
    if any([form for form in forms[name] if disk.exists(f"{folder.path}/{form}")] != [name] for name in forms):
        return False
    settle(folder, descriptor, SEALING, batch.pack)
    return True


def settle(folder: Folder, descriptor: int, beside: str, name: str | None) -> None:
    """Put a file that was prepared *beside* in its place, if any, and make all names durable, the turn in hand."""
    with changing(folder, descriptor, came=[name] if name else []):
        if name and is_pack(name):
            place_pack(folder.path, beside, name)
        elif name:
            move(f"{folder.path}/{beside}", f"{folder.path}/{name}")
        disk.flush(folder.path)


def take_away(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files for which what is durable stands, the turn in hand."""
    folder.look(holding=True)
    with changing(folder, descriptor, gone=names):
        for name in names:
            disk.unlink(f"{folder.path}/{name}")


@contextmanager
def changing(folder: Folder, descriptor: int, came: Sequence[str] = (), gone: Sequence[str] = ()) -> Iterator[None]:
    """Change which files hold the commits of a folder, and keep in the lock file what that comes to.

    Of a damaged folder nothing is kept: its version is not what the names of its files stand for once it is healed.
    """
    seen, kept = folder.sight, folder.doubted()
    since = seen.since or time_ns()
    with writing(folder.path):
        disk.overwrite(descriptor, kept.dump())  # believed by nobody until it is true again
        yield
    sight = folder.rearranged(came, gone, seen, since)
    with suppress(OSError):
        disk.overwrite(descriptor, (sight if kept is not NOTHING else NOTHING).dump())


def _prepared(folder: Folder, sealed: dict[str, tuple[PackEntry, bool, bytes]]) -> PackBatch:
    name, data = write_pack(list(sealed.values()))
    with writing(folder.path):
        prepare_pack(f"{folder.path}/{SEALING}", name, data)
    return PackBatch(tuple(sealed), name)


def _is_packed(folder: Folder, commit: Commit) -> bool:
    """Return whether a pack has the very same document: a sealing was cut short before the file was removed."""
    return any(pack.document(row) == commit.data for pack, row in folder.contents.shelf.at(stem(commit.head)))


#: How many commits are held while it is looked whether one of them is an order.
AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class CommitForm:
    """One form of a commit: in which file it is, after how many lines."""

    name: str
    before: int
    commit: Commit


def forms(folder: Folder, identity: str) -> list[CommitForm]:
    """Return every form of a commit that is in a file of *folder*; what is damaged is left out."""
    return _parted(folder, identity)[0]


def _parted(folder: Folder, identity: str) -> tuple[list[CommitForm], list[str]]:
    """Return every form of a commit that is sound, and the files in which there is a spoiled one."""
    sound: list[CommitForm] = []
    spoiled_in: list[str] = []
    for name, before, document in _documents(folder, identity):
        try:
            sound.append(CommitForm(name, before, parse(document)))
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
            if any(map(is_redaction_record, disk.pieces(pack.path))):
                met |= {
                    key
                    for key, row in folder.contents.shelf.rows(pack).items()
                    if is_redaction_record(pack.document(row))
                }
    for name in folder.contents.files():
        with suppress(OSError):
            met |= {stem_of(name)} if is_redaction_record(disk.read(f"{folder.path}/{name}")) else set()
    yield from folder.commits(sorted(met), set())


def served(folder: Folder, keys: Iterable[str], missed: set[str]) -> Iterator[Commit]:
    """Yield the commits of these stems as `Folder.commits` does, without what an order among them names.

    A file that shows it came back, as by a checkout, while that with the redacted form is gone; others tell of it. An
    order is recorded after what it names, so that who reads up to the present reads it as well.
    """
    keys, late = list(keys), set[str]()
    if len(keys) <= AT_ONCE:  # a follower reads each file once
        told = list(_in_step(folder, keys, late))
        gone = recorded(commit for commit, _ in told if is_redaction_record(commit.data))
        steps: Iterable[tuple[Commit, frozenset[str]]] = told
    else:
        steps = _in_step(folder, keys, late)
        gone = recorded(folder.commits([key for key in keys if is_redaction_record(folder.raw(key))], set()))
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


def _rows(folder: Folder, pack: Pack) -> Iterable[PackRow]:
    with suppress(FileNotFoundError):
        return folder.contents.shelf.rows(pack).values()
    return ()


def write_redacted(folder: Folder, descriptor: int, gone: Mapping[str, frozenset[str]]) -> list[str]:
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


def _named(folder: Folder, name: str) -> tuple[Pack, Mapping[str, PackRow]]:
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


#: What stands for the moment of a commit that is missing.
_NO_MOMENT = "00000000T000000.000000Z"
_MISSING = re.compile(r"its parent ([0-9a-f]{64}) is not here")


def quarantine(folder: Folder, descriptor: int, which: str) -> str:
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
    hint = f"damaged are: {', '.join(dict.fromkeys(ids))}" if ids else "nothing is; see: jidomem journal verify"
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
