"""The rewriting of a folder: redaction, sealing and quarantine change its files, never the ids of its commits.

- Redaction replaces triples by their leaves: the new form of a commit is put in place before the old one is removed.
- Sealing replaces the commit files before the oldest head by packs with the same commits.
- Quarantine renames damaged files, which readers then ignore; their bytes stay on disk. It does so with a commit beyond
  the horizon, a hundred years after the clock of this machine: all later commits would have to be dated after it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from itertools import count
from typing import NamedTuple

from jidomem.base import disk
from jidomem.base.clock import format_timestamp
from jidomem.base.disk import INCOMING, move, prepare, writing
from jidomem.base.regex import lazy
from jidomem.errors import JournalDamaged, NotFound
from jidomem.journal.commit import (
    ASIDE,
    DESCRIPTION,
    Commit,
    FormatError,
    file_name,
    format_document,
    horizon,
    is_ordered,
    is_pack,
    is_redaction_record,
    parse,
    quarantine_name,
    salt_lines,
    short_id,
    stem,
    stem_of,
    too_late,
)
from jidomem.journal.packs import Pack, PackEntry, PackRow, place_pack, prepare_pack, write_pack
from jidomem.journal.stream import UNLISTED, Folder
from jidomem.journal.stream_files import set_aside
from jidomem.rdf.terms import Triple, iri, parse_literal, plain_value
from jidomem.rdf.vocab import THIS, TYPE, jido
from jidomem.records.intent import SHORT, CommitRef, Version

_SALT, _LEAF = "# salt ", "# leaf "


def is_redacted(document: bytes) -> bool:
    """Return whether triples were removed from a commit: its document has salts in place of the nonce."""
    return b"\n# nonce " not in document.partition(b"\n\n")[0]


def redacted_leaves(records: Iterable[Commit]) -> Mapping[str, frozenset[str]]:
    """Return the redacted leaves by the id of their commit; the leaves of a record count for each commit it names."""
    leaves_by_id: dict[str, frozenset[str]] = {}
    for record in records:
        own_iri = iri(record.iri)
        named = (parse_literal(o).text for s, p, o in record.triples if s == own_iri and p == jido("redactedLeaf"))
        redacted, joined = frozenset(named), dict[frozenset[str], frozenset[str]]()
        for s, p, commit in record.triples:
            if s == own_iri and p == jido("redacts"):
                identity = plain_value(commit).rpartition(":")[2]
                earlier = leaves_by_id.get(identity, frozenset())
                if earlier not in joined:  # commits with the same records share one set, which may be large
                    joined[earlier] = earlier | redacted
                leaves_by_id[identity] = joined[earlier]
    return leaves_by_id


def leaves(commit: Commit) -> dict[Triple, str]:
    """Return the leaf of each remaining triple of *commit*, in hexadecimal digits."""
    lines = _lines(commit)
    salts = _salts(commit, lines)
    return {
        triple: blake2b(line.encode(), digest_size=32, key=salts[line]).hexdigest() for triple, line in lines.items()
    }


def removed_leaves(commit: Commit) -> frozenset[str]:
    """Return the leaves of the triples that were removed from *commit* before."""
    head = salt_lines(commit.data.decode())
    return frozenset(line.removeprefix(_LEAF) for line in head if line.startswith(_LEAF))


def without(commit: Commit, removed: Collection[str]) -> Commit:
    """Return *commit* without the triples whose leaves are in *removed*; leaves of other commits are ignored.

    Raise FormatError for a triple of the commit's own description, and where no triple has such a leaf.
    """
    leaf_of, lines = leaves(commit), _lines(commit)
    salts = _salts(commit, lines)
    remaining = {triple for triple, leaf in leaf_of.items() if leaf not in removed}
    bare = removed_leaves(commit) | {leaf for leaf in leaf_of.values() if leaf in removed}
    own_iri = iri(commit.iri)
    if any(s == own_iri and (p in DESCRIPTION or p == TYPE) for s, p, _ in commit.triples - remaining):
        raise FormatError(f"what commit {commit.id} says of itself cannot be removed")
    head = [f"{_SALT}{salts[line].hex()}" for line in sorted(lines[triple] for triple in remaining)]
    head += [f"{_LEAF}{leaf}" for leaf in sorted(bare)]
    return parse(format_document(head, own_iri, remaining))


def _lines(commit: Commit) -> dict[Triple, str]:
    """Return the digest line of each triple."""
    own = iri(commit.iri)
    return {(s, p, o): f"{THIS if s == own else s} {p} {THIS if o == own else o} ." for s, p, o in commit.triples}


def _salts(commit: Commit, by_triple: Mapping[Triple, str]) -> dict[str, bytes]:
    """Return the salt of each digest line: derived from the nonce, or read from a redacted document."""
    lines, head = sorted(by_triple.values()), salt_lines(commit.data.decode())
    if commit.redacted:
        salts = (bytes.fromhex(line.removeprefix(_SALT)) for line in head if line.startswith(_SALT))
        return dict(zip(lines, salts, strict=True))
    nonce = bytes.fromhex(head[0].removeprefix("# nonce "))
    return {line: blake2b(line.encode(), digest_size=32, key=nonce).digest() for line in lines}


#: The most commits of a pack, and the bytes from which it takes no further commit.
COMMITS = 2_000
BYTES = 32_000_000
#: The number of files that are removed under one lock; other writers proceed in between.
SLICE = 64
PAUSE = 0.005  # seconds
#: The lock file of sealing, and the temporary file of a pack; git ignores both.
SEAL_LOCK = ".seal.lock"
SEALING = ".sealing.lock"


class PackBatch(NamedTuple):
    """Commit files, and the prepared pack that replaces them; `pack` is None where an existing pack has them."""

    files: tuple[str, ...]
    pack: str | None


def batches(folder: Folder, version: Version) -> Iterator[PackBatch]:
    """Yield the batches to seal of a folder at *version*: the commits before the oldest head, in stream order.

    Each file is read again. A damaged file is left, as damage of the folder, and so is a commit with two forms.
    """
    oldest = stem(version.heads[0]) if version.heads else ""
    names = sorted(name for name in folder.contents.files() if stem_of(name) < oldest)
    forms = Counter(map(stem_of, names))
    packed: list[str] = []
    sealed: dict[str, tuple[PackEntry, bool, bytes]] = {}
    size = 0
    for name in names:
        commit = folder.commit_in(name) if forms[stem_of(name)] == 1 else None
        if commit is None:
            continue
        if _is_packed(folder, commit):
            packed.append(name)
        elif not folder.contents.packs.at(stem_of(name)):
            sealed[name] = (PackEntry(commit.head, commit.parents), commit.redacted, commit.data)
            size += len(commit.data)
        if len(sealed) == COMMITS or size >= BYTES:
            yield _prepared(folder, sealed)
            sealed, size = {}, 0
    if len(sealed) > 1:
        yield _prepared(folder, sealed)
    if packed:
        yield PackBatch(tuple(packed), None)


def install_batch(folder: Folder, descriptor: int, batch: PackBatch) -> bool:
    """Install the pack of *batch*, the lock held; return whether its files can now be removed.

    Nothing is done if one of the files was removed or redacted in the meantime.
    """
    folder.refresh(holding=True)
    forms = {name: (f"{stem_of(name)}.ttl", f"{stem_of(name)}.redacted.ttl") for name in batch.files}
    if any([form for form in forms[name] if disk.exists(f"{folder.path}/{form}")] != [name] for name in forms):
        return False
    install(folder, descriptor, SEALING, batch.pack)
    return True


def install(folder: Folder, descriptor: int, beside: str, name: str | None) -> None:
    """Rename the prepared file *beside* to *name*, if any, and make all names durable, the lock held."""
    with writing(folder.path), folder.changing(descriptor, placed=[name] if name else []):
        if name and is_pack(name):
            place_pack(folder.path, beside, name)
        elif name:
            move(f"{folder.path}/{beside}", f"{folder.path}/{name}")
        disk.flush(folder.path)


def remove_sealed(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files whose commits are in a durable pack, the lock held."""
    folder.refresh(holding=True)
    with writing(folder.path), folder.changing(descriptor, removed=names):
        for name in names:
            disk.unlink(f"{folder.path}/{name}")


def _prepared(folder: Folder, sealed: dict[str, tuple[PackEntry, bool, bytes]]) -> PackBatch:
    name, data = write_pack(list(sealed.values()))
    with writing(folder.path):
        prepare_pack(f"{folder.path}/{SEALING}", name, data)
    return PackBatch(tuple(sealed), name)


def _is_packed(folder: Folder, commit: Commit) -> bool:
    """Return whether a pack has the identical document: a sealing was interrupted before the file was removed."""
    return any(pack.document(row) == commit.data for pack, row in folder.contents.packs.at(stem(commit.head)))


#: The most commits that are read ahead to find redaction records among them.
AT_ONCE = 1_000


class CommitForm(NamedTuple):
    """One form of a commit: its file, and the number of lines before it."""

    name: str
    before: int
    commit: Commit


def forms(folder: Folder, commit_id: str) -> list[CommitForm]:
    """Return every intact form of a commit in the files of *folder*."""
    return _forms_of(folder, commit_id)[0]


def _forms_of(folder: Folder, identity: str) -> tuple[list[CommitForm], list[str]]:
    """Return the intact forms of a commit, and the files in which a form is damaged."""
    sound: list[CommitForm] = []
    spoiled_in: list[str] = []
    for name, before, document in _documents(folder, identity):
        try:
            sound.append(CommitForm(name, before, parse(document)))
        except FormatError:
            spoiled_in.append(name)
    return sound, spoiled_in


def _documents(folder: Folder, identity: str) -> Iterator[tuple[str, int, bytes]]:
    """Yield the documents of a commit in readable files: the file, the number of lines before it, the document."""
    head = folder.contents.head(identity)
    if head is None:
        return
    for name in (file_name(head), file_name(head, redacted=True)):
        with suppress(OSError):
            yield name, 0, disk.read(f"{folder.path}/{name}")
    for pack, row in folder.contents.packs.at(stem(head)):
        with suppress(OSError):
            yield pack.name, pack.lines_before(row), pack.document(row)


def late_commits(folder: Folder, last: str) -> dict[str, CommitRef]:
    """Return the commits of *folder* recorded after the moment *last*, by the name of their file, or pack#stem."""
    if folder.refresh().recorded_at <= last:
        return {}
    contents, heads = folder.contents, dict[str, CommitRef]()
    for name in contents.files():
        if (entry := contents.entry(name)) is not None:
            heads[name] = entry.head
    for pack in contents.packs.listed():
        heads |= {f"{pack.name}#{stem(row.head)}": row.head for row in contents.packs.rows(pack).values()}
    return {name: head for name, head in heads.items() if head.recorded_at > last}


def future_commits(folder: Folder, now: datetime) -> dict[str, JournalDamaged]:
    """Return an error for each commit of *folder* beyond the horizon, by the name of its file, or pack#stem."""
    late = sorted(late_commits(folder, horizon(now)).items())
    return {name: too_late(head, f"{folder.path}/{name.partition('#')[0]}", now) for name, head in late}


def heads_beyond(folder: Folder, now: datetime) -> list[JournalDamaged]:
    """Return an error for each head of *folder* beyond the horizon: no commit can follow it."""
    late = (head for head in folder.snapshot.version.heads if head.recorded_at > horizon(now))
    return [too_late(head, f"{folder.path}/{file_name(head)}", now) for head in late]


def redaction_records(folder: Folder) -> Iterator[Commit]:
    """Yield the commits that record a redaction (also of the working state) or a quarantine.

    Unreadable files, which are damage, are skipped.
    """
    stems: set[str] = set()
    for pack in folder.contents.packs.listed():
        with suppress(OSError):
            if any(map(is_ordered, disk.pieces(pack.path))):
                stems |= {
                    key for key, row in folder.contents.packs.rows(pack).items() if is_ordered(pack.document(row))
                }
    for name in folder.contents.files():
        with suppress(OSError):
            stems |= {stem_of(name)} if is_ordered(disk.read(f"{folder.path}/{name}")) else set()
    yield from folder.commits(sorted(stems), set())


def visible_commits(
    folder: Folder, keys: Iterable[str], missed: set[str], wanted: Callable[[bytes], bool] | None = None
) -> Iterator[Commit]:
    """Yield the commits of these stems as `Folder.commits` does, without the triples that a record among them redacts.

    With *wanted* only the commits whose document, not verified yet, it accepts when they are about to be read.

    A checkout may restore an unredacted file and remove the redacted one. A record is newer than the commits it names,
    so a reader of all commits up to the present reads it as well.
    """
    keys, late = list(keys), set[str]()
    if wanted is None and len(keys) <= AT_ONCE:  # a follower reads each file once
        read_ahead = list(_in_step(folder, keys, late))
        redacted = redacted_leaves(commit for commit, _ in read_ahead if is_redaction_record(commit.data))
        steps: Iterable[tuple[Commit, frozenset[str]]] = read_ahead
    else:
        records = [key for key in keys if is_redaction_record(folder.raw(key))]
        redacted = redacted_leaves(folder.commits(records, set()))
        steps = _in_step(folder, (key for key in keys if wanted is None or wanted(folder.raw(key))), late)
    for commit, before in steps:
        missed |= before
        shown = redacted[commit.id].intersection(leaves(commit).values()) if commit.id in redacted else ()
        if shown:
            with suppress(FormatError):  # a record cannot redact a commit's own description
                commit = without(commit, {*shown, *removed_leaves(commit)})
        yield commit
    missed |= late


def _in_step(folder: Folder, keys: Iterable[str], late: set[str]) -> Iterator[tuple[Commit, frozenset[str]]]:
    """Yield the commits of these stems, each with the unreadable paths between it and the previous one.

    *late* collects the paths after the last commit, so that reading ahead still shows where damage begins.
    """
    for commit in folder.commits(keys, late):
        before = frozenset(late)
        late.clear()
        yield commit, before


def pending_redactions(folder: Folder, records: Iterable[str]) -> dict[str, bytes]:
    """Return the redacted documents, by commit id, that the redaction *records*, by id, still require.

    Unreadable files, which are damage, are skipped, and so is a commit's own description, which stays.
    """
    heads = [head for identity in records if (head := folder.contents.head(identity)) is not None]
    commits, documents = folder.commits(map(stem, heads), set()), dict[str, bytes]()
    for identity, redacted in redacted_leaves(commits).items():
        for form in forms(folder, identity):
            if not redacted.isdisjoint(leaves(form.commit).values()):
                with suppress(FormatError):
                    documents[identity] = without(form.commit, redacted | removed_leaves(form.commit)).data
    return documents


def redacted_ids(folder: Folder) -> list[str]:
    """Return the ids of the commits with a redacted form in some file."""
    packed = {row.head.id for pack in folder.contents.packs.listed() for row in _rows(folder, pack) if row.redacted}
    loose = (folder.contents.entry(name) for name in sorted(folder.contents.files()) if ".redacted." in name)
    return sorted(packed.union(entry.head.id for entry in loose if entry is not None))


def _rows(folder: Folder, pack: Pack) -> Iterable[PackRow]:
    with suppress(FileNotFoundError):
        return folder.contents.packs.rows(pack).values()
    return ()


def write_redacted(folder: Folder, descriptor: int, removed: Mapping[str, frozenset[str]]) -> list[str]:
    """Write forms without the leaves *removed*, by commit id, beside those with one; return the old names.

    The lock is held. A leaf missing in one form is removed from the others as well; a damaged form is removed if there
    is an intact one. Raise JournalDamaged, before anything is written, if a pack to be rewritten has a damaged commit
    that is intact in no file.
    """
    files: dict[str, bytes] = {}
    old: list[str] = []
    packs: dict[str, dict[str, bytes]] = {}
    for identity, requested in removed.items():
        intact, damaged_in = _forms_of(folder, identity)
        all_removed = requested.union(*(removed_leaves(form.commit) for form in intact))
        for form in intact:
            if not all_removed.isdisjoint(leaves(form.commit).values()):
                redacted = without(form.commit, all_removed)
                if is_pack(form.name):
                    packs.setdefault(form.name, {})[stem(redacted.head)] = redacted.data
                else:
                    name = file_name(redacted.head, redacted=True)
                    files[name] = redacted.data
                    old += [] if form.name == name else [form.name]
        for name in damaged_in if intact else ():
            if is_pack(name):
                packs.setdefault(name, {})
            elif name not in files:
                old.append(name)
    left_out = {name: _replaceable_stems(folder, name) for name in packs}
    for name, data in files.items():
        _replace_file(folder, descriptor, INCOMING, name, data)
    for name, documents in packs.items():
        rewritten = repack(folder, name, left_out[name], documents)
        if rewritten is not None:
            _replace_file(folder, descriptor, SEALING, *rewritten)
        old.append(name)
    return old


def remove(folder: Folder, descriptor: int, names: Sequence[str]) -> None:
    """Remove files whose commits are in other files, and the leftovers of killed writers, the lock held."""
    with writing(folder.path), folder.changing(descriptor, removed=names):
        for name in (*names, INCOMING, SEALING):
            with suppress(FileNotFoundError):
                disk.unlink(f"{folder.path}/{name}")
        disk.flush(folder.path)


def damaged_stems(folder: Folder, name: str) -> set[str]:
    """Return the stems of the commits of the pack *name* that do not verify when read again, and record the damage."""
    pack, rows = _pack_named(folder, name)
    return {key for key, row in rows.items() if folder.contents.packed(pack, row) is None}


def only_in_pack(folder: Folder, name: str, keys: Iterable[str]) -> dict[str, bytes]:
    """Return the documents of commits that are intact only in the pack *name*, by their file names."""
    pack, rows = _pack_named(folder, name)
    packed_rows = [row for row in map(rows.__getitem__, keys) if not folder.contents.has_intact_file(row)]
    return {file_name(row.head, redacted=row.redacted): pack.document(row) for row in packed_rows}


def repack(
    folder: Folder, name: str, left_out: Collection[str], documents: Mapping[str, bytes]
) -> tuple[str, bytes] | None:
    """Return the pack *name* without some stems, and with redacted *documents* in place of theirs; None if empty."""
    pack, rows = _pack_named(folder, name)
    entries = [
        (row.entry, row.redacted or key in documents, documents.get(key) or pack.document(row))
        for key, row in rows.items()
        if key not in left_out
    ]
    return write_pack(entries) if entries else None


def _pack_named(folder: Folder, name: str) -> tuple[Pack, Mapping[str, PackRow]]:
    pack = next(pack for pack in folder.contents.packs.listed() if pack.name == name)
    return pack, folder.contents.packs.rows(pack)


def _replaceable_stems(folder: Folder, name: str) -> set[str]:
    """Return the damaged commits of a pack that are intact in a file; raise JournalDamaged for any other."""
    keys = damaged_stems(folder, name)
    for file in only_in_pack(folder, name, keys):
        raise folder.contents.broken[f"{name}#{stem_of(file)}"]
    return keys


def _replace_file(folder: Folder, descriptor: int, beside: str, name: str, data: bytes) -> None:
    """Write a file *beside* and rename it to *name*, replacing a file of that name atomically."""
    is_new = not disk.exists(f"{folder.path}/{name}")
    with writing(folder.path), folder.changing(descriptor, placed=[name] if is_new else []):
        if is_pack(name):
            prepare_pack(f"{folder.path}/{beside}", name, data)
            place_pack(folder.path, beside, name)
        else:
            prepare(f"{folder.path}/{beside}", data)
            move(f"{folder.path}/{beside}", f"{folder.path}/{name}")
    if not is_new:
        folder.contents.remove([name])  # the cached entry of the old content
        folder.contents.place([name])


#: The moment in the file name of a missing commit.
NO_MOMENT = "00000000T000000.000000Z"
_MISSING = lazy(r"its parent ([0-9a-f]{64}) is not here")


def quarantine(folder: Folder, descriptor: int, name_or_id: str) -> str:
    """Quarantine the damage *name_or_id*, an id or a file name, the lock held; return the name of the commit file.

    A file that is quarantined already, but perhaps not recorded, is left. Raise NotFound, with the present damage, for
    another name.
    """
    damaged = folder.damaged()
    for name, error in damaged.items():
        missing = _MISSING.search(error.detail)
        if missing and _ids_agree(name_or_id, missing[1]):
            return _write_quarantined(folder, descriptor, f"{NO_MOMENT}-{missing[1][:SHORT]}.ttl", b"")
        if missing is None and (name_or_id == name.partition("#")[0] or _ids_agree(name_or_id, error.commit or "")):
            if name in folder.contents.packs.broken:
                raise error  # its other commits would be lost, too
            return _quarantine_file(folder, descriptor, name)
    for name in set_aside(folder.path):
        file = name.removesuffix(ASIDE)
        if name_or_id in (name, file) or _ids_agree(name_or_id, short_id(file) or ""):
            return file
    ids = [missing[1] if (missing := _MISSING.search(d.detail)) else d.commit or n for n, d in damaged.items()]
    hint = f"damaged are: {', '.join(dict.fromkeys(ids))}" if ids else "nothing is; see: jidomem journal verify"
    raise NotFound(f"{name_or_id} is not damaged in {folder.path}", hint=hint)


#: The most that the clocks of two machines are expected to differ by.
CLOCK_ERROR = timedelta(minutes=5)


def last_moment(now: datetime) -> str:
    """Return the last moment that a clock right within `CLOCK_ERROR` may show at *now*."""
    return format_timestamp(now + min(CLOCK_ERROR, datetime.max.replace(tzinfo=UTC) - now))


def quarantine_late(folder: Folder, descriptor: int, which: str, now: datetime) -> list[str]:
    """Quarantine the commit *which* if it is recorded later than *now*, with all that are recorded after it.

    If it is beyond the horizon, all beyond it are quarantined. The lock is held. Return the names of their files, as
    `_quarantine_file` does; an empty list if *which* is no such commit.
    """
    late = late_commits(folder, last_moment(now))
    named = [at for name, at in late.items() if which == name.partition("#")[0] or _ids_agree(which, at.id)]
    if not named:
        return []
    first, names = min(min(named).recorded_at, horizon(now)), list[str]()
    while late := {name: at for name, at in late_commits(folder, last_moment(now)).items() if at.recorded_at >= first}:
        names.append(_quarantine_file(folder, descriptor, min(late)))
        with writing(folder.path):  # these commits were intact: the known version still has them
            disk.overwrite(descriptor, UNLISTED.dump())
        folder.forget()
    return names


def _quarantine_file(folder: Folder, descriptor: int, name: str) -> str:
    """Quarantine a file, or a commit of a pack (pack#stem); return the name of the commit file."""
    pack, _, key = name.partition("#")
    if key:
        return _quarantine_packed(folder, descriptor, pack, key)
    free_name = _free_name(folder, name)
    with writing(folder.path), folder.changing(descriptor, removed=[name]):
        disk.rename(f"{folder.path}/{name}", f"{folder.path}/{free_name}{ASIDE}")
    return free_name


def _ids_agree(which: str, identity: str) -> bool:
    """Return whether *which*, of at least 8 digits, and *identity* agree: one is a prefix of the other."""
    return len(which) >= 8 and bool(identity) and (identity.startswith(which) or which.startswith(identity))


def _write_quarantined(folder: Folder, descriptor: int, name: str, data: bytes) -> str:
    """Write *data* as the quarantined file of *name*, or of the next free number; return the name."""
    free_name = _free_name(folder, name, data)
    with writing(folder.path), folder.changing(descriptor):
        prepare(f"{folder.path}/{INCOMING}", data)
        move(f"{folder.path}/{INCOMING}", f"{folder.path}/{free_name}{ASIDE}")
    return free_name


def _free_name(folder: Folder, name: str, data: bytes | None = None) -> str:
    """Return the first of name.ttl, name.2.ttl and so on that is not quarantined with bytes other than *data*."""
    for number in count(2):
        path = f"{folder.path}/{name}{ASIDE}"
        if not disk.exists(path) or _has_bytes(path, data):
            break
        name = f"{quarantine_name(name).removesuffix('.ttl')}.{number}.ttl"
    return name


def _has_bytes(path: str, data: bytes | None) -> bool:
    with suppress(OSError):
        return disk.read(path) == data
    return False


def _quarantine_packed(folder: Folder, descriptor: int, pack: str, key: str) -> str:
    """Quarantine one commit of a pack, and replace the pack by one of the other commits.

    No pack takes on damaged commits: each gets a file of its own unless an intact file has it. If that file is damaged
    as well, the bytes of the pack are quarantined beside it.
    """
    _, rows = _pack_named(folder, pack)
    name = file_name(rows[key].head, redacted=rows[key].redacted)
    keys = damaged_stems(folder, pack) - {key}
    files, rest = only_in_pack(folder, pack, keys), repack(folder, pack, {*keys, key}, {})
    data = disk.read_part(f"{folder.path}/{pack}", rows[key].offset, rows[key].size)
    name = _write_quarantined(folder, descriptor, name, data)
    for file in files:
        if not disk.exists(f"{folder.path}/{file}"):
            prepare(f"{folder.path}/{INCOMING}", files[file])
            install(folder, descriptor, INCOMING, file)
        elif not _has_bytes(f"{folder.path}/{file}", files[file]):
            _write_quarantined(folder, descriptor, file, files[file])
    if rest:
        prepare_pack(f"{folder.path}/{SEALING}", *rest)
    install(folder, descriptor, SEALING, rest[0] if rest else None)
    remove_sealed(folder, descriptor, [pack])
    return name
