"""The contents of a folder: the commits in its files, verified as they are read, and the file of each.

A damaged file is reported with its cause, such as a merge of git, and the commands that restore it.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from shlex import quote
from time import time_ns
from types import MappingProxyType

from jidomem.base import disk
from jidomem.base.disk import FileStates
from jidomem.base.regex import lazy
from jidomem.errors import JournalDamaged
from jidomem.journal.commit import (
    ASIDE,
    EDITED,
    Commit,
    FormatError,
    UnknownFormat,
    file_name,
    is_pack,
    parse,
    short_id,
    stem,
)
from jidomem.journal.packs import Pack, PackEntry, PackRow, PackSet
from jidomem.records.intent import SHORT, CommitRef

FROM_ROOT = "from the root of the repository"
#: The command that restores the first version of the file `f` in git.
FIRST_VERSION = 'git checkout "$(git log --diff-filter=A --format=%h -1 -- "$f")" -- "$f"'
_LOOK = 1 << 20
_ITEM = re.compile(rb"\n<https://jido\.ai/memory/[0-9a-f-]{28}([0-9a-f]{8})>$", re.MULTILINE)
#: The beginnings of the lines that git leaves in a conflict.
_MARKS = (b"\n<<<<<<< ", b"\n=======", b"\n>>>>>>> ", b"\n||||||| ")


def beginning(path: str) -> bytes:
    """Return the first part of a damaged file, empty where it cannot be read."""
    try:
        return disk.read_part(path, 0, _LOOK)
    except OSError:
        return b""


def find_damage(path: str, data: bytes) -> tuple[str, str] | None:
    """Return the damage by git to a file that begins with *data*, and the repair; None for other damage."""
    lines = b"\n" + data
    marks = [at for mark in _MARKS if (at := lines.find(mark)) >= 0]
    line = lines.count(b"\n", 0, min(marks) + 1) if marks else None
    folder, name = path.rpartition("/")[::2]
    place = in_repository(folder)
    enter = f"{FROM_ROOT}: cd {quote(place)}" if place != folder else f"cd {quote(folder)}"
    if line is not None and ".redacted." in name:
        return (
            f"git left the marks of a conflict in line {line}: both branches redacted this commit, each otherwise",
            f"{enter} && git checkout --ours -- {name} && git add {name}"
            "   (then jidomem journal redact --again removes what the other branch removed)",
        )
    if line is not None:
        return (
            f"git left the marks of a conflict in line {line}: it took this file for another one, renamed, as it may"
            " where both branches were packed",
            f"{enter} && other=$(git rev-parse MERGE_HEAD) && git merge --abort"
            ' && git merge --no-edit -X find-renames=100% "$other"'
            "   (where that was committed: git checkout BRANCH -- the file, from the branch that wrote it)",
        )
    if b"\r\n" in data:
        return (
            "its line ends were rewritten: git did so where it was checked out (core.autocrlf), or an editor saved it",
            f"{enter} && echo '* -text' >> .gitattributes && git ls-files -z '*.ttl' | xargs -0 rm --"
            " && git checkout -- .   (jidomem init writes a .gitattributes that keeps git from it; if it was committed"
            f" like this: f={quote(name)}; {FIRST_VERSION})",
        )
    return None


def restoring(path: str, data: bytes) -> str:
    """Return the commands that restore a damaged file, and for a whole one that changes a memory in it.

    The file begins with *data*. A commit file is written once, so the first version in git is intact, even if the
    damage was committed since. A pack or a redacted commit may be rewritten.
    """
    items = {*_ITEM.findall(data)}
    item = items.pop().decode() if len(items) == 1 else "ID"
    change = f"   (if somebody edited it, change the memory: jidomem edit {item} --set FIELD=VALUE --reason TEXT)"
    change = "" if _is_cut(data) else change
    file, (root, *below) = in_repository(path), path.rsplit("/", 4)
    name = below[-1]
    if file == path:
        restored = f"tar xf BACKUP.tar -C {quote(root)} {quote('/'.join(below))} && jidomem journal verify"
        aside = f"if there is none: jidomem journal verify --quarantine {quote(name)} --reason TEXT"
        return f"restore the file from a backup: {restored}; {aside}{change}"
    if is_pack(name) or ".redacted." in name:
        return f"{FROM_ROOT}: git checkout HEAD -- {quote(file)} && jidomem journal verify{change}"
    return f"{FROM_ROOT}: f={quote(file)}; {FIRST_VERSION} && jidomem journal verify{change}"


def _is_cut(data: bytes) -> bool:
    """Return whether a file that begins with *data* lost its end: each commit ends with a line end."""
    return len(data) < _LOOK and not data.endswith(b"\n")


def in_repository(path: str) -> str:
    """Return *path* relative to the root of its repository; itself outside a repository."""
    folder = path
    while folder := folder.rpartition("/")[0]:
        if disk.exists(f"{folder}/.git"):
            return path[len(folder) + 1 :]
    return path


def each_file(path: str) -> list[str]:
    """Return the names of commits and packs in a folder; an empty list without a folder."""
    return [name for name in disk.names(path) if name.endswith(".ttl") and name[0] != "."]


def set_aside(path: str) -> Iterator[str]:
    """Yield the names of the quarantined files in a folder."""
    return (name for name in disk.names(path) if name.endswith(f".ttl{ASIDE}") and name[0] != ".")


#: The bytes of cached commits, for the read after the refresh that parsed them.
CACHED_BYTES = 16_000_000


class Contents:
    """The files of a folder: `packs`, `places` of commit files, and `broken`, those that do not verify."""

    def __init__(self, path: str, graph: str, seen: Callable[[Commit], object] | None = None) -> None:
        self.path = path
        self.graph = graph
        self._seen = seen  # called with every intact commit
        self.packs = PackSet(path)
        self.places: dict[str, set[str]] = {}  # id prefix -> names of commit files
        self.entries: dict[str, PackEntry] = {}  # by the name of a commit file
        self.broken: dict[str, JournalDamaged] = {}  # by the name of a file, or pack#stem
        self._marks = FileStates(path)
        self._asides: frozenset[str] | None = None  # first digits of the ids of quarantined commits
        self._cached: dict[str, Commit] = {}
        self._cached_bytes = 0
        self.own: dict[str, Commit] = {}  # the newest commit that this process wrote, for the next read, by its file

    def commit(self, key: str) -> Commit | None:
        """Return the commit of a stem, None if its file is damaged (see `broken`) or absent."""
        for _ in range(2):
            redacted, plain = f"{key}.redacted.ttl", f"{key}.ttl"
            if (commit := self._read_cached(redacted)) is not None or redacted in self.broken:
                return commit
            packed = self.packs.at(key)
            if packed and packed[0][1].redacted:
                return self.packed(*packed[0])
            if (commit := self._read_cached(plain)) is not None:
                return commit
            for pack, row in packed:
                if (commit := self.packed(pack, row)) is not None:
                    return commit
            if packed or plain in self.broken:
                return None
            self.update_packs()  # it may have been sealed since the listing
        return None

    def document(self, key: str) -> tuple[str, int, bytes] | None:
        """Return the file of the commit of a stem, the number of lines before it, and its document."""
        place = self._place(key)
        if isinstance(place, tuple):
            pack, row = place
            return pack.path, pack.lines_before(row), pack.document(row)
        return (place, 0, disk.read(place)) if place else None

    def data(self, key: str) -> bytes | None:
        """Return the document of the commit of a stem, unverified; None where it is absent."""
        place = self._place(key)
        if isinstance(place, tuple):
            return place[0].document(place[1])
        return disk.read(place) if place else None

    def _place(self, key: str) -> tuple[Pack, PackRow] | str | None:
        """Return the place of the commit of a stem: a row of a pack, or the path of a file of its own."""
        names = (f"{key}.redacted.ttl", f"{key}.ttl")
        packed = self.packs.at(key)
        loose = next((name for name in names if disk.exists(f"{self.path}/{name}")), None)
        if packed and (loose is None or (packed[0][1].redacted and loose == names[1])):
            return packed[0]
        return f"{self.path}/{loose}" if loose else None

    def find(self, identity: str) -> PackEntry | None:
        """Return the entry of the commit *identity*, None where it is absent or does not verify."""
        return self._loose(identity) or self.packs.find(identity)

    def has(self, identity: str) -> bool:
        """Return whether an intact commit has this id, or these first 12 digits of it."""
        return any(head.id.startswith(identity) for head in self._beginning(identity[:SHORT], self.files()))

    def named(self, prefix: str) -> list[CommitRef]:
        """Return the intact commits whose ids begin with *prefix*."""
        short = prefix[:SHORT]
        names = self.places.get(short, ()) if len(short) == SHORT else self.files()
        return sorted(head for head in self._beginning(short, names) if head.id.startswith(prefix))

    def _beginning(self, short: str, names: Iterable[str]) -> set[CommitRef]:
        """Return the commits in the files *names* whose ids begin with *short*, and all of packs that mention it."""
        candidates = [name for name in names if (short_id(name) or "").startswith(short)]
        commits = {entry.head for name in candidates if (entry := self.entry(name))}
        for pack in self.packs.listed():
            with suppress(FileNotFoundError):
                if self.packs.mentions(pack, short):
                    commits.update(row.head for row in self.packs.rows(pack).values())
        return commits

    def files(self) -> set[str]:
        """Return the names of the commit files now."""
        return {name for name in each_file(self.path) if not is_pack(name)}

    def update_packs(self) -> None:
        """Set the packs to those of the folder now."""
        self.packs.set_names(filter(is_pack, each_file(self.path)))

    def head(self, identity: str) -> CommitRef | None:
        """Return the commit *identity* as a head, None where it is absent or does not verify."""
        entry = self._loose(identity)
        return entry.head if entry is not None else self.packs.head(identity)

    def is_explained(self, identity: str) -> bool:
        """Return whether damage or quarantine of a file explains why the commit *identity* is absent."""
        if self.packs.broken or self.places.get(identity[:SHORT], set()) & self.broken.keys():
            return True
        if self._asides is None:
            self._asides = frozenset(short_id(name.removesuffix(ASIDE)) or "" for name in set_aside(self.path))
        return identity[:SHORT] in self._asides

    def forget_quarantined(self) -> None:
        """Drop the list of quarantined commits, which is read again when needed."""
        self._asides = None

    def unread(self) -> set[str]:
        """Return the paths of the files that could not be read."""
        return {f"{self.path}/{name.partition('#')[0]}" for name in (*self.broken, *self.packs.broken)}

    def damaged_paths(self, key: str) -> set[str]:
        """Return the paths of the damaged files with the commit of a stem; without any, the path of its own file."""
        names = (f"{key}.redacted.ttl", f"{key}.ttl", *(f"{pack.name}#{key}" for pack, _ in self.packs.at(key)))
        paths = {f"{self.path}/{name.partition('#')[0]}" for name in names if name in self.broken}
        return paths or {f"{self.path}/{key}.ttl"}

    def is_as_read(self) -> bool:
        """Return whether all broken files are certainly unchanged."""
        return all(map(self._marks.holds, self.broken)) and self.packs.is_as_read()

    def forget_damage(self) -> None:
        """Forget the damage of all files but the unchanged ones.

        The damage of commits in packs is forgotten: a new file may have an intact form.
        """
        unchanged = {name for name in self.broken if "#" not in name and self._marks.holds(name)}
        self.broken = {name: damage for name, damage in self.broken.items() if name in unchanged}

    def place(self, names: Iterable[str]) -> None:
        """Add these commit files."""
        for name in names:
            self.places.setdefault(name.partition("-")[2][:SHORT], set()).add(name)

    def remove(self, names: Iterable[str]) -> None:
        """Remove these commit files."""
        for name in names:
            self.places.get(name.partition("-")[2][:SHORT], set()).discard(name)
            self.entries.pop(name, None)
            self._take_cached(name)

    def entry(self, name: str) -> PackEntry | None:
        """Return the entry of the commit in a file, None where it is damaged or absent."""
        if name not in self.entries:
            commit = self.read(name)
            if commit is not None:
                self._cache_commit(name, commit)
        return self.entries.get(name)

    def _loose(self, identity: str) -> PackEntry | None:
        for name in sorted(self.places.get(identity[:SHORT], ())):
            entry = self.entry(name)
            if entry is not None and entry.head.id == identity:
                return entry
        return None

    def _read_cached(self, name: str) -> Commit | None:
        """Return the commit in a file, from the cache or from disk."""
        commit = self._take_cached(name)
        return self.read(name) if commit is None else commit

    def read(self, name: str) -> Commit | None:
        """Return the present commit in a file, verified; record damage, and that a file is absent."""
        self.entries.pop(name, None)
        if name in self.broken and self._marks.holds(name):
            return None
        now = time_ns()
        try:
            commit = parse(disk.read(f"{self.path}/{name}"))
        except FileNotFoundError:
            return None
        except OSError as error:
            self.broken[name] = self.damaged(name, f"cannot be read: {error.strerror}")
            self._marks.drop(name)
            return None  # no mark: no state of the file shows that it can be read again
        except FormatError as error:
            self.broken[name] = self.damaged(name, _worded(error), line=error.line)
            self._marks.note(name, now)
            return None
        fitting = file_name(commit.head, redacted=commit.redacted)
        if name != fitting or commit.graph != self.graph:
            problem = f"holds a commit to be named {fitting}, of the graph {commit.graph}: it was moved"
            back = f"cd {quote(self.path)} && mv -- {quote(name)} {fitting} && jidomem journal verify"
            hint = back if commit.graph == self.graph else ""
            self.broken[name] = self.damaged(name, problem, line=1, identity=commit.id, hint=hint)
            return None
        self.entries[name] = PackEntry(commit.head, commit.parents)
        if self._seen is not None:
            self._seen(commit)
        return commit

    def reread(self, name: str, *, is_edited: bool) -> None:
        """Read a file that may be damaged now, and record its damage; only the top of a pack unless it *is_edited*."""
        self._take_cached(name)
        if not is_pack(name):
            self.read(name)
            return
        self.packs.forget_tables()
        for pack in self.packs.listed():
            if is_edited and pack.name == name:
                with suppress(FileNotFoundError):
                    deque(map(partial(self.packed, pack), self.packs.rows(pack).values()), maxlen=0)

    def packed(self, pack: Pack, row: PackRow) -> Commit | None:
        """Return a commit of a pack, verified; record damage, and that a pack is absent."""
        name, line, now, is_settled = f"{pack.name}#{stem(row.head)}", None, time_ns(), True
        try:
            commit = parse(pack.document(row))
            if (PackEntry(commit.head, commit.parents), commit.redacted, commit.graph) == (
                row.entry,
                row.redacted,
                self.graph,
            ):
                if self._seen is not None:
                    self._seen(commit)
                return commit
            problem = f"holds the commit {commit.id} of the graph {commit.graph}, not what its table says"
        except FileNotFoundError:
            return None
        except OSError as error:
            problem, is_settled = f"cannot be read: {error.strerror}", False
        except FormatError as error:
            problem = _worded(error)
            with suppress(OSError):
                line = pack.lines_before(row) + (error.line or 1)
        self.broken[name] = self.damaged(name, problem, line=line, identity=row.head.id)
        if is_settled:
            self._marks.note(name, now)
        else:
            self._marks.drop(name)
        return None

    def has_intact_file(self, row: PackRow) -> bool:
        """Return whether an intact file has the commit of a pack; an unredacted file replaces no redacted row."""
        own = [file_name(row.head, redacted=True), *([] if row.redacted else [file_name(row.head)])]
        return any(self.entry(name) is not None for name in own)

    def line_of(self, name: str, identity: str | None) -> int | None:
        """Return the number of the first line of a file with *identity*; None where there is none."""
        with suppress(OSError):
            before, match, _ = disk.read(f"{self.path}/{name}").partition((identity or "\n").encode())
            return before.count(b"\n") + 1 if match and identity else None
        return None

    def damaged(
        self, name: str, problem: str, *, line: int | None = None, identity: str = "", hint: str = ""
    ) -> JournalDamaged:
        """Return the damage of a file, or of a commit in a pack."""
        path = f"{self.path}/{name.partition('#')[0]}"
        data = beginning(path)
        problem = problem.replace(EDITED, "hash mismatch: its end is missing") if _is_cut(data) else problem
        if not (hint or data) and (closed := disk.obstacle(path)):
            hint = f"{disk.repair(closed)} && jidomem journal verify"
        detail, hint = find_damage(path, data) or (problem, hint or restoring(path, data))
        return JournalDamaged(detail, path=path, line=line, commit=identity or short_id(name), hint=hint)

    def _cache_commit(self, name: str, commit: Commit) -> None:
        self._take_cached(name)
        self._cached[name] = commit
        self._cached_bytes += len(commit.data)
        while self._cached_bytes > CACHED_BYTES:
            self._take_cached(next(iter(self._cached)))

    def _take_cached(self, name: str) -> Commit | None:
        commit = self._cached.pop(name, None)
        self._cached_bytes -= 0 if commit is None else len(commit.data)
        return self.own.pop(name, commit)


def _worded(error: FormatError) -> str:
    """Return the message for a document that is no valid commit, in a file with the name of one."""
    message = str(error)
    return message if isinstance(error, UnknownFormat) or message.startswith(EDITED) else f"{EDITED}: {message}"


_LACKS = lazy("its parent ([0-9a-f]{64}) is not here")


def missing_parent_text(identity: str) -> str:
    """Return the message for a commit whose parent is not in the journal."""
    return f"its parent {identity} is not here"


def missing_parent(detail: str) -> str | None:
    """Return the id of the missing parent in a message of `missing_parent_text`; None for any other message."""
    match = _LACKS.search(detail)
    return match[1] if match else None


def parent_fault(entry: PackEntry, contents: Contents, near: Mapping[str, CommitRef] = MappingProxyType({})) -> str:
    """Return the fault of a commit against its parents, or an empty text; *near* is searched before *contents*."""
    parents = []
    for identity in entry.parents:
        parent = near.get(identity) or contents.head(identity)
        if parent is not None:
            parents.append(parent)
        elif not contents.is_explained(identity):
            return missing_parent_text(identity)
    if len(parents) < len(entry.parents):
        return ""  # the file of the parent is damaged itself
    if entry.head.position != 1 + max((parent.position for parent in parents), default=0):
        return f"its position {entry.head.position} does not follow from its parents"
    if any(parent.recorded_at >= entry.head.recorded_at for parent in parents):
        return f"it was recorded at {entry.head.recorded_at}, not after its parents"
    return ""


def unfit_commits(pack: Pack, contents: Contents, key: str = "") -> dict[str, JournalDamaged]:
    """Return the damage of the commits of a pack, or of its stem *key* alone, that do not follow from their parents.

    The commits are read again; damage of the bytes themselves is recorded in *contents*.
    """
    rows = contents.packs.rows(pack)
    inside, damage = {row.head.id: row.head for row in rows.values()}, dict[str, JournalDamaged]()
    for row in [rows[key]] if key in rows else rows.values():
        if not contents.has_intact_file(row):
            problem = parent_fault(row.entry, contents, inside)
            if contents.packed(pack, row) is not None and problem:
                name = f"{pack.name}#{stem(row.head)}"
                damage[name] = contents.damaged(name, problem, identity=row.head.id)
    return damage
