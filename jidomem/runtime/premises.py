"""What doctor looks at of a root: who may use it, its journal, what is derived from it, what was left, and git."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote

from jidomem import ownership
from jidomem.errors import BranchChanged, InvalidRequest, NotFound
from jidomem.govern.branches import compare_with_git
from jidomem.govern.integrity import findings
from jidomem.index.clones import Clones
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.index.tail import LARGE, MANY
from jidomem.journal.files import LOOSE, FileJournal, Stream
from jidomem.moments import stamp
from jidomem.repository import git
from jidomem.runtime import settings
from jidomem.runtime.chosen import amiss, is_remote
from jidomem.runtime.keyring import Keyring
from jidomem.runtime.looks import Level, Look
from jidomem.runtime.root import INDEX, open_root
from jidomem.runtime.settings import Settings
from jidomem.version import Version

#: How far ahead of this clock a commit may be that another machine wrote.
_AHEAD = timedelta(seconds=5)


def permissions(root: Path) -> Iterator[Look]:
    """Yield which folders this user may not use, and whether others may write where only the user should."""
    folders = [root, *(path for path in root.glob("projects/**/") if path != root)]
    closed = [path for path in folders if not os.access(path, os.R_OK | os.X_OK)]
    user = f"uid {os.geteuid()}"
    if closed:
        yield Look("permissions", "fail", f"{closed[0]} cannot be read ({user})", f"chmod -R u+rwX {root}")
    elif fixed := ownership.unwritable([*folders, *_common_files(root)]):
        yield Look("permissions", "warn", ownership.describe(fixed), ownership.repair(fixed))
    elif any(path.stat().st_mode & stat.S_IWOTH for path in folders):
        yield Look("permissions", "warn", "every user of this machine may write here", f"chmod -R o-w {root}")
    else:
        yield Look("permissions", "ok", f"{root} can be read and written ({user})")


def _common_files(root: Path) -> Iterator[Path]:
    """Yield the folders and files of a root that every process which uses it has to write."""
    yield from root.glob("projects/*/*/.*lock")
    for name in ("state", "cache", "index"):
        yield from (path for path in (root / name, *root.glob(f"{name}/**/*.sqlite*")) if path.exists())


def configuration(root: Path) -> Iterator[Look]:
    """Yield whether the configuration, terms, rules and questions of the root can be used; raises what says why not."""
    with open_root(root) as memory:
        yield Look("config", "ok", f"project {memory.project}, ontology {memory.schema.version}, "
                                   f"{sum(1 for _ in memory.playbook)} questions")  # fmt: skip


def journal(found: FileJournal, *, full: bool) -> Iterator[Look]:
    """Yield for each stream whether it is sound: by a look, or with *full* by every byte."""
    streams = found.streams()
    known = {stream: found.verify(stream) if full else found.damage(stream) for stream in streams}
    # where git cannot be asked, `repository` says so
    compared = [
        each for each in compare_with_git(found, known) if each.kind != "unchecked" or _git_answers(found.folder)
    ]
    for stream, damage in known.items():
        name, at = f"{stream.project}/{stream.name}", found.head(stream)
        is_whole = not any((each.path or "").startswith(str(found.path(stream))) for each in compared)
        for error in (each for each in damage if not isinstance(each, BranchChanged)):  # those are findings
            yield Look("journal", "fail", f"{name}: {error.detail}", error.hint)
        for each in findings(found, stream) if full else ():
            yield Look("journal", "warn", f"{name}: {each.path or each.commit}: {each.detail}", each.hint)
        loose = found.loose(stream)
        if loose > LOOSE and found.is_tracked:
            yield Look("journal", "warn", f"{name} has {loose:,} commit files", "jidomem pack")
        if not damage and is_whole:
            yield Look("journal", "ok", f"{name} is at {at}: {'verified' if full else 'sound, by a quick look'}")
    for each in compared:
        level: Level = "fail" if each.severity == "violation" else "warn"
        where = f"{each.path}: " if each.path and each.kind != "stray" else ""  # its detail names the commits
        yield Look("journal", level, f"{where}{each.detail}", each.hint)
    if not streams:
        yield Look("journal", "ok", "nothing was written yet")


def _git_answers(folder: Path) -> bool:
    try:
        return git.complaint(folder) is None
    except InvalidRequest:
        return False


def clock(found: FileJournal, now: datetime) -> Iterator[Look]:
    """Yield whether the newest commit is of the future, as this clock has it."""
    newest = max((found.head(stream).recorded_at for stream in found.streams()), default="")
    if newest > stamp(now + _AHEAD):
        yield Look("clock", "warn", f"the newest commit is of {newest}, and this clock says {stamp(now)}",
                   "set the clock: timedatectl set-ntp true")  # fmt: skip
    else:
        yield Look("clock", "ok", f"{stamp(now)}, the newest commit is of {newest or 'no time yet'}")


def index(root: Path, found: FileJournal) -> Iterator[Look]:
    """Yield how the index is kept, and how much of the journal the next process has to read beyond it."""
    size, clones = _size(found), Clones(root / INDEX)
    if size <= LARGE:
        yield Look("index", "ok", f"in memory: the journal has {size:,} bytes")
        return
    snapshots = clones.snapshots()
    if not snapshots:
        yield Look("index", "warn", f"no snapshot: the next process reads all {size:,} bytes", "jidomem reindex")
        return
    marks = snapshots[0].marks
    held = {stream: marks[stream.graph].version if stream.graph in marks else None for stream in found.streams()}
    behind = sum(_behind(found, stream, version or Version()) for stream, version in held.items())
    told = f"on disk, {snapshots[0].size:,} bytes; the newest snapshot is {behind:,} commits behind"
    if behind > 2 * MANY:
        yield Look("index", "warn", told, "jidomem reindex")
    else:
        yield Look("index", "ok", told)


def _size(found: FileJournal) -> int:
    folders = [found.path(stream) for stream in found.streams()]
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*.ttl"))


def _behind(found: FileJournal, stream: Stream, held: Version) -> int:
    try:
        return sum(1 for _ in found.seen(stream).after(held))
    except NotFound:  # another branch
        return sum(1 for _ in found.seen(stream).after(Version()))


def leftovers(root: Path, found: FileJournal) -> Iterator[Look]:
    """Yield what killed processes left, and what was set aside."""
    live = [path for path in (root / INDEX / "live").glob("*") if path.is_dir()]
    used = Clones(root / INDEX).in_use()
    if len(live) > used:
        yield Look("leftovers", "ok", f"{len(live) - used} index clones of killed processes: the next one sweeps them")
    for stream in found.streams():
        folder = found.path(stream)
        for path in (*folder.glob(".incoming.lock"), *folder.glob(".sealing.lock")):
            yield Look("leftovers", "ok", f"{path}: of a writer that was killed, or writes now; never read")
        for path in folder.glob("*.aside"):
            yield Look("leftovers", "warn", f"{path} was set aside as damaged", "jidomem verify says why")
    yield Look("leftovers", "ok", f"{used} processes work on clones of the index")


def cache(root: Path) -> Iterator[Look]:
    """Yield how large what recall keeps is."""
    files = [path for path in (root / "cache").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    yield Look("cache", "ok", f"{len(files)} files, {size:,} bytes; may be deleted at any time")


def repository(root: Path, found: FileJournal) -> Iterator[Look]:
    """Yield whether git keeps the journal as it is, and leaves out what is derived."""
    if not found.is_tracked:
        yield Look("git", "ok", "in no repository")
        return
    try:
        if (complaint := git.complaint(root)) is not None:
            yield Look(
                "git", "warn", f"git cannot use the repository: {complaint}", f"git -C {quote(str(root))} status"
            )
            return
        text = git.found(root, "check-attr", "text", "--", "projects/p/memory/x.ttl")
        ignored = [name for name in ("index/x", "state/x", "cache/x") if git.found(root, "check-ignore", name) is None]
    except InvalidRequest as error:
        yield Look("git", "warn", error.detail, error.hint)
        return
    if text is None or not text.rstrip().endswith(b": unset"):
        yield Look("git", "warn", "git may rewrite the line ends of commits, which is damage",
                   f"echo 'projects/** -text' >> {root / '.gitattributes'}")  # fmt: skip
    if ignored:
        yield Look("git", "warn", f"git does not ignore {', '.join(name[:-1] for name in ignored)}",
                   f"jidomem init writes {root / '.gitignore'} where there is none")  # fmt: skip
    if text is not None and text.rstrip().endswith(b": unset") and not ignored:
        yield Look("git", "ok", "keeps the journal byte by byte, and nothing that is derived")


def models(given: Settings) -> Iterator[Look]:
    """Yield which models read and embed for memory, and what keeps them from being asked; nothing is sent to them."""
    reader, embedder = settings.models(given)
    for name, model in (("model", reader), ("embedder", embedder)):
        if model is None:
            yield Look(name, "ok", "none: memories are found by words")
        elif (why := amiss(model)) is not None:
            yield Look(name, "warn", f"{model.name} cannot be asked: {why.detail}", why.hint)
        else:
            yield Look(name, "ok", f"{model.name}{', over the network' if is_remote(model) else ''}")


def store(given: Settings, journal: FileJournal) -> Iterator[Look]:
    """Yield whether the triple store that the user chose answers as it has to; raises what `RemoteIndex.fit` raises."""
    if given.index:
        from jidomem.index.remote_index import RemoteIndex  # most users have none

        chosen = RemoteIndex(given.index, journal, OxigraphIndex(), ())
        fit = chosen.fit()
        part = "all questions" if fit.proven is None else f"{len(fit.proven)} named questions"
        yield Look("store", "ok", f"{chosen.shown} answers {part}")
        chosen.close()


def tokens(keyring: Keyring, where: str) -> Iterator[Look]:
    """Yield how many tokens there are for the root, and *where*; those that cannot be read were refused before."""
    count = len(keyring.tokens)
    yield Look("tokens", "ok", f"{count} for this root, in {where}" if count else f"none for this root ({where})")
