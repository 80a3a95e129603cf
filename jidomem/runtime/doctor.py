"""The diagnostics of `jidomem status --doctor`: each has a state, a finding and a command that helps.

Those of the machine are about Python, packages, the disk and the port; those of a root about its
permissions, its journal, the index, stale caches and git.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import stat
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import chain
from pathlib import Path
from shlex import quote
from time import sleep
from typing import Literal

from jidomem.base.clock import format_timestamp, monotonic_time
from jidomem.base.disk import acquire_lock, describe, repair, unwritable
from jidomem.base.files import busy_error, is_locked
from jidomem.base.http_client import HttpClient, HttpFailure, HttpLimits, HttpOrigin
from jidomem.check.journal_integrity import compare_with_git, journal_findings
from jidomem.errors import BranchChanged, InvalidRequest, JidomemError, NotFound
from jidomem.index.follower import ON_DISK_BYTES, SNAPSHOT_COMMITS
from jidomem.index.snapshots import Clones
from jidomem.index.store import OxigraphIndex
from jidomem.journal.journal import LOOSE, FileJournal, Stream, future_commit
from jidomem.journal.rewrite import heads_beyond
from jidomem.journal.stream import LOCK
from jidomem.records.intent import Version
from jidomem.repository import git
from jidomem.runtime import settings
from jidomem.runtime.location import FolderPlace, SharedLocation, ignored_journal
from jidomem.runtime.model_choice import config_error, is_remote
from jidomem.runtime.root import INDEX, open_root
from jidomem.runtime.settings import Settings
from jidomem.runtime.tokens import Keyring

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding about *name*: `fail` if jidomem cannot work, `warn` if it may soon be unable to."""

    name: str
    level: Level
    detail: str
    hint: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the diagnostic as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def run_diagnostic(name: str, look: Callable[[], Iterable[Diagnostic]]) -> Iterator[Diagnostic]:
    """Yield the findings of *look*, or the error that prevents it."""
    try:
        yield from look()
    except JidomemError as error:
        yield Diagnostic(name, "fail", error.detail, error.hint)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        yield Diagnostic(name, "fail", f"{where}{error.strerror or error}", "give this user read access, and try again")


#: Free bytes of a disk: below the first, writes may soon fail; below the second, a warning is due.
_LEAST, _FEW = 64 * 1024**2, 1024**3
_INODES = 1_000
#: File systems to which other machines may write, and whose locks may not apply to them.
_NETWORK = frozenset(("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "lustre"))
_SECONDS = 2.0
#: The bytes of a commit that the store of a shared root is given to see whether it has room.
_PROBED = 65_536


def programs() -> Iterator[Diagnostic]:
    """Yield the versions of Python, jidomem and its dependencies, and the installed extras."""
    own = version("jidomem")
    yield Diagnostic("python", "ok", f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    needed, extras = list[str](), dict[str, list[str]]()
    for each in requires("jidomem") or ():
        name = re.match(r"[A-Za-z0-9._-]+", each)
        extra = re.search(r"extra == [\"']([^\"']+)", each)
        if name is not None:
            (extras.setdefault(extra[1], []) if extra else needed).append(name[0])
    versions = {each: _installed(each) for each in needed}
    missing = [each for each, at in versions.items() if at is None]
    there = ", ".join(f"{each} {at}" for each, at in versions.items() if at)
    if missing:
        yield Diagnostic("packages", "fail", f"missing: {', '.join(missing)}", "pip install --force-reinstall jidomem")
    else:
        yield Diagnostic("packages", "ok", f"jidomem {own}, {there}")
    for each in sorted(extras.keys() - {"test", "bench"}):
        lacking = [one for one in extras[each] if _installed(one) is None]
        detail = f"[{each}] is not installed: pip install 'jidomem[{each}]'" if lacking else f"[{each}] is installed"
        yield Diagnostic("extras", "ok", detail)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def disk(root: Path) -> Iterator[Diagnostic]:
    """Yield the free space on the disk of *root*."""
    free, names = shutil.disk_usage(root).free, os.statvfs(root)
    level: Level = "fail" if free < _LEAST else "warn" if free < _FEW else "ok"
    yield Diagnostic("disk", level, f"{free:,} bytes are free", "" if level == "ok" else f"make room: du -sh {root}/*")
    if names.f_files and names.f_favail < _INODES:
        yield Diagnostic("disk", "warn", f"room for {names.f_favail} more files", "free some space on that disk")


def file_system(root: Path) -> Iterator[Diagnostic]:
    """Yield whether the file system of *root* is suitable for a journal, by its type; nothing is written."""
    kind = _kind(root)
    if kind in _NETWORK:
        yield Diagnostic(
            "file system",
            "warn",
            f"{kind}, a file system of the network: its locks and flushes may not work",
            "put the root on a disk of this machine, and serve it: jidomem serve",
        )
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        acquire_lock(descriptor, wait=False, shared=True)
        os.fsync(descriptor)
    except OSError as error:
        yield Diagnostic(
            "file system",
            "fail",
            f"{kind} cannot lock and flush: {error.strerror}",
            "put the root on another file system",
        )
        return
    finally:
        os.close(descriptor)
    if os.pathconf(root, "PC_LINK_MAX") < 2:
        yield Diagnostic("file system", "warn", f"{kind} has no hard links: every process reads the whole journal",
                   "keep a large root on another file system")  # fmt: skip
    elif kind not in _NETWORK:
        yield Diagnostic("file system", "ok", f"{kind}: locks, flushes and hard links")


def _kind(path: Path) -> str:
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        mount, _, of = line.partition(" - ")
        at = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), mount.split()[4])
        if len(at) >= len(best) and path.is_relative_to(at):
            best, kind = at, of.split()[0]
    return kind


def port(host: str, number: int) -> Iterator[Diagnostic]:
    """Yield whether `jidomem serve` can listen at a port, or already does."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, number))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                yield Diagnostic(
                    "port", "warn", f"{host}:{number} cannot be served: {error.strerror}", "give another --host"
                )
            elif _serves(host, number):
                yield Diagnostic("port", "ok", f"{host}:{number} is served by jidomem")
            else:
                yield Diagnostic("port", "warn", f"another program listens at {host}:{number}",
                           "give another one: jidomem serve --port 0")  # fmt: skip
        else:
            yield Diagnostic("port", "ok", f"{host}:{number} is free")


def _serves(host: str, number: int) -> bool:
    limits = HttpLimits(_SECONDS, _SECONDS, monotonic_time() + _SECONDS, 1_000)
    client = HttpClient(HttpOrigin(False, host, number))
    answer = client.request("GET", "/healthz", {"Host": "localhost"}, b"", limits)
    if isinstance(answer, HttpFailure) or not answer.header("x-request-id"):
        return False
    try:
        return bool(json.loads(answer.body) == {"status": "ok"})
    except ValueError:
        return False


def permissions(root: Path) -> Iterator[Diagnostic]:
    """Yield the folders that this user cannot use, and those that others may write to but should not."""
    folders = [root, *(path for path in root.glob("projects/**/") if path != root)]
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    unread = [path for path in root.glob("projects/*/*/*.ttl") if not os.access(path, os.R_OK)]
    user = f"uid {os.geteuid()}"
    for path in root.glob(f"projects/*/*/{LOCK}"):
        if _stays_locked(path):
            error = busy_error(path, _SECONDS)
            yield Diagnostic("lock", "warn", error.detail.partition(";")[0], error.hint.partition("; ")[2])
    if closed:
        yield Diagnostic("permissions", "fail", f"{closed[0]} cannot be read ({user})", f"chmod -R u+rwX {root}")
    elif unread:
        yield Diagnostic("permissions", "fail", f"{unread[0]} cannot be read ({user})", repair(unread))
    elif fixed := unwritable([*folders, *_common_files(root)]):
        yield Diagnostic("permissions", "warn", describe(fixed), repair(fixed))
    elif any(path.stat().st_mode & stat.S_IWOTH for path in folders):
        yield Diagnostic("permissions", "warn", "every user of this machine may write here", f"chmod -R o-w {root}")
    else:
        yield Diagnostic("permissions", "ok", f"{root} can be read and written ({user})")


def _stays_locked(path: Path) -> bool:
    """Return whether a lock is not free at any of many looks; commits have it for milliseconds each."""
    end = monotonic_time() + _SECONDS
    while is_locked(path):
        if monotonic_time() > end:
            return True
        sleep(0.01)
    return False


def _common_files(root: Path) -> Iterator[Path]:
    """Yield the folders and files of a root that every process which uses it must write to."""
    yield from root.glob("projects/*/*/.*lock")
    for name in ("state", "cache", "index"):
        yield from (path for path in (root / name, *root.glob(f"{name}/**/*.sqlite*")) if path.exists())


def configuration(root: Path) -> Iterator[Diagnostic]:
    """Yield whether the configuration, terms, shapes and queries of the root are valid; raise the first error."""
    with open_root(root) as memory:
        yield Diagnostic("config", "ok", f"project {memory.project}, ontology {memory.schema.version}, "
                                   f"{sum(1 for _ in memory.playbook)} questions")  # fmt: skip


def journal(files: FileJournal, *, full: bool) -> Iterator[Diagnostic]:
    """Yield for each stream whether it is sound: as the next write judges it, or with *full* by reading every byte."""
    streams = files.streams()
    if not full and _size(files) <= ON_DISK_BYTES:  # a process that writes reads all of it
        deque(chain.from_iterable(map(files.read, streams)), maxlen=0)
    known = {stream: files.verify(stream) if full else files.damage(stream) for stream in streams}
    # without git, `repository` has this finding
    compared = [
        each for each in compare_with_git(files, known) if each.kind != "unchecked" or _git_answers(files.folder)
    ]
    noted = journal_findings(files, streams) if full else {}
    for stream, damage in known.items():
        name, at = f"{stream.project}/{stream.name}", files.head(stream)
        is_whole = not any((each.path or "").startswith(str(files.path(stream))) for each in compared)
        for error in (each for each in damage if not isinstance(each, BranchChanged)):  # these are findings
            yield Diagnostic("journal", "fail", f"{name}: {error.detail}", error.hint)
        for each in noted.get(stream, ()):
            yield Diagnostic("journal", "warn", f"{name}: {each.path or each.commit}: {each.detail}", each.hint)
        loose = files.loose(stream)
        if loose > LOOSE and files.is_tracked:
            yield Diagnostic("journal", "warn", f"{name} has {loose:,} commit files", "jidomem journal pack")
        if not damage and is_whole:
            yield Diagnostic("journal", "ok", f"{name} is at {at}: {'verified' if full else 'sound, by a quick look'}")
    for each in compared:
        level: Level = "fail" if each.severity == "violation" else "warn"
        where = f"{each.path}: " if each.path and each.kind != "stray" else ""  # that detail names the commits
        yield Diagnostic("journal", level, f"{where}{each.detail}", each.hint)
    if not streams:
        yield Diagnostic("journal", "ok", "nothing was written yet")


def _git_answers(folder: Path) -> bool:
    try:
        return git.not_in_repository(folder) is None
    except InvalidRequest:
        return False


def clock(files: FileJournal, now: datetime) -> Iterator[Diagnostic]:
    """Yield the commits of each stream that are in the future by this clock, or the time of the newest commit."""
    ahead = [each for stream in files.streams() if (each := future_commit(files, [stream], now)) is not None]
    for first in ahead:
        late = heads_beyond(files.inspect(first.stream), now)
        why = f"every write is refused: {late[0].detail}" if late else first.hint
        yield Diagnostic("clock", "fail" if late else "warn", f"{first.detail}: {why}", first.repair(files))
    if not ahead:
        newest = max((files.head(stream).recorded_at for stream in files.streams()), default="")
        last = f"the newest commit is dated {newest}" if newest else "there is no commit yet"
        yield Diagnostic("clock", "ok", f"{format_timestamp(now)}, {last}")


def index(root: Path, files: FileJournal) -> Iterator[Diagnostic]:
    """Yield where the index is, and how many commits the next process must read beyond the snapshot."""
    size, clones = _size(files), Clones(root / INDEX)
    if size <= ON_DISK_BYTES:
        yield Diagnostic("index", "ok", f"in memory: the journal has {size:,} bytes")
        return
    snapshots = clones.snapshots()
    if not snapshots:
        yield Diagnostic(
            "index", "warn", f"no snapshot: the next process reads all {size:,} bytes", "jidomem root reindex"
        )
        return
    marks = snapshots[0].marks
    versions = {stream: marks[stream.graph].version if stream.graph in marks else None for stream in files.streams()}
    behind = sum(_behind(files, stream, version or Version()) for stream, version in versions.items())
    detail = f"on disk, {snapshots[0].size:,} bytes; the newest snapshot is {behind:,} commits behind"
    if behind > 2 * SNAPSHOT_COMMITS:
        yield Diagnostic("index", "warn", detail, "jidomem root reindex")
    else:
        yield Diagnostic("index", "ok", detail)


def _size(files: FileJournal) -> int:
    folders = [files.path(stream) for stream in files.streams()]
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.ttl"))


def _behind(files: FileJournal, stream: Stream, version: Version) -> int:
    try:
        return sum(1 for _ in files.inspect(stream).after(version))
    except NotFound:  # the version is of another branch
        return sum(1 for _ in files.inspect(stream).after(Version()))


def stale_cache_files(root: Path, files: FileJournal) -> Iterator[Diagnostic]:
    """Yield the files left by killed processes, and the quarantined ones."""
    live = [path for path in (root / INDEX / "live").glob("*") if path.is_dir()]
    used = Clones(root / INDEX).in_use()
    if len(live) > used:
        yield Diagnostic(
            "leftovers", "ok", f"{len(live) - used} index clones of killed processes: the next one sweeps them"
        )
    for stream in files.streams():
        folder = files.path(stream)
        for path in (*folder.glob(".incoming.lock"), *folder.glob(".sealing.lock")):
            yield Diagnostic(
                "leftovers", "ok", f"{path}: left by a killed writer, or in use by a running one; never read"
            )
        for path in folder.glob("*.aside"):
            yield Diagnostic(
                "leftovers", "warn", f"{path} was quarantined as damaged", "jidomem journal verify has the reason"
            )
    yield Diagnostic("leftovers", "ok", f"{used} processes work on clones of the index")


def cache(root: Path) -> Iterator[Diagnostic]:
    """Yield the size of the caches of recall."""
    files = [path for path in (root / "cache").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    yield Diagnostic("cache", "ok", f"{len(files)} files, {size:,} bytes; may be deleted at any time")


def repository(root: Path, files: FileJournal) -> Iterator[Diagnostic]:
    """Yield whether git stores the journal, byte for byte, and ignores derived files."""
    if not files.is_tracked:
        yield Diagnostic("git", "ok", "in no repository")
        return
    try:
        if (complaint := git.not_in_repository(root)) is not None:
            yield Diagnostic(
                "git", "warn", f"git cannot use the repository: {complaint}", f"git -C {quote(str(root))} status"
            )
            return
        text = git.read_git(root, "check-attr", "text", "--", "projects/p/memory/x.ttl")
        ignored = [
            name for name in ("index/x", "state/x", "cache/x") if git.read_git(root, "check-ignore", name) is None
        ]
        rule = ignored_journal(root)
    except InvalidRequest as error:
        yield Diagnostic("git", "warn", error.detail, error.hint)
        return
    if text is None or not text.rstrip().endswith(b": unset"):
        yield Diagnostic("git", "warn", "git may rewrite the line ends of commits, which is damage",
                   f"echo 'projects/** -text' >> {root / '.gitattributes'}")  # fmt: skip
    if ignored:
        yield Diagnostic("git", "warn", f"git does not ignore {', '.join(name[:-1] for name in ignored)}",
                   f"jidomem init writes {root / '.gitignore'} where there is none")  # fmt: skip
    if rule is not None:
        yield Diagnostic("git", "warn", f"git ignores the journal, so no clone has the memory: {rule[0]}", rule[1])
    if text is not None and text.rstrip().endswith(b": unset") and not ignored and rule is None:
        yield Diagnostic("git", "ok", "stores the journal byte by byte, and ignores derived files")


def models(given: Settings) -> Iterator[Diagnostic]:
    """Yield the chosen models, with faults of their configuration; no request is sent to them."""
    reader, embedder = settings.models(given)
    reranker = settings.reranker(given)
    for name, model in (("model", reader), ("embedder", embedder), *([("reranker", reranker)] if reranker else [])):
        if model is None:
            yield Diagnostic(name, "ok", "none: memories are found by words")
        elif (why := config_error(model)) is not None:
            yield Diagnostic(name, "warn", f"{model.name} cannot be used: {why.detail}", why.hint)
        else:
            yield Diagnostic(name, "ok", f"{model.name}{', over the network' if is_remote(model) else ''}")


def store(given: Settings, journal: FileJournal) -> Iterator[Diagnostic]:
    """Yield whether the triple store chosen by the user answers correctly; raises the errors of `RemoteIndex.fit`."""
    if given.index:
        from jidomem.extras.servers.remote_index import RemoteIndex  # imported here, as most users have no store

        chosen = RemoteIndex(given.index, journal, OxigraphIndex(), ())
        fit = chosen.fit()
        part = "all questions" if fit.proven is None else f"{len(fit.proven)} named questions"
        yield Diagnostic("store", "ok", f"{chosen.shown} answers {part}")
        chosen.close()


def writes(place: FolderPlace | SharedLocation) -> Iterator[Diagnostic]:
    """Yield that the store of a shared root takes commits, by one that is undone; raise its refusal."""
    if isinstance(place, SharedLocation):
        place.log.check_writable(_PROBED)
        yield Diagnostic("writes", "ok", f"{place.name} takes commits")


def tokens(keyring: Keyring, where: str) -> Iterator[Diagnostic]:
    """Yield the number of tokens for the root, and *where* they are; unreadable tokens were refused before."""
    count = len([token for token in keyring.tokens if keyring.has(token)])
    if keyring.is_needed and not count:
        detail = f"none is valid for this root, in {where}: its servers refuse every request"
        yield Diagnostic("tokens", "warn", detail, "jidomem access token add AGENT")
        return
    yield Diagnostic("tokens", "ok", f"{count} for this root, in {where}" if count else f"none for this root ({where})")
