"""Commits in the folder of a stream whose parents are on another git branch, and the commands that move them there.

A commit that git does not track yet stays in the folder when another branch is checked out, while its parents are
removed; `git cherry-pick` takes a commit without its parents. `Revision` reads the commits and files of an earlier
revision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote

from jidomem.base import disk
from jidomem.base.containers import grouped
from jidomem.errors import BranchChanged, InvalidRequest, JournalDamaged
from jidomem.journal.commit import Commit, FormatError, is_pack, parse, short_id, stem, stem_of
from jidomem.journal.stream import Folder
from jidomem.journal.stream_files import FIRST_VERSION, FROM_ROOT, each_file, in_repository, missing_parent
from jidomem.records.intent import SHORT, CommitRef
from jidomem.repository import git

_ROW = re.compile(rb"# commit ([0-9a-f]{64}) ([0-9T:.\-]+Z) ")


#: The beginning of the repair of a file whose first version a shallow clone lacks.
_UNSHALLOW = "the history is not here: git fetch --unshallow"


class Revision:
    """One revision of the repository that *folder* is in."""

    def __init__(self, folder: Path, ref: str) -> None:
        """Look *ref* up; raise InvalidRequest without a repository, or for an unknown revision."""
        self.name = self.ref = ref
        words = ("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")
        self._id = None if ref.startswith("-") else git.read_git(folder, *words)
        if self._id is None:
            hint = (
                "name a commit, branch or tag; in CI fetch it first (actions/checkout with fetch-depth: 0), one from"
                f" before a force push by: git fetch origin {quote(ref)}"
            )
            if (complaint := git.not_in_repository(folder)) is not None:
                hint = "--since compares with what git has: leave it out, or make a repository: git init"
                detail = f"--since: {folder} is in no git repository that may be read: {complaint}"
                raise InvalidRequest(detail, hint=hint)
            raise InvalidRequest(f"--since: git knows no revision {ref!r}", hint=hint)

    def is_new(self, folder: Path) -> Callable[[CommitRef], bool]:
        """Return a predicate: whether a commit of the journal in *folder* is missing in this revision."""
        known = self.commits(folder) if disk.exists(str(folder)) else {}
        return lambda head: stem(head) not in known

    def content(self, path: Path) -> bytes:
        """Return the content of a file in this revision, empty if absent; raise InvalidRequest if git lacks it."""
        return git.content(path, self.ref)

    def commits(self, folder: Path, unread: Collection[str] = ()) -> dict[str, str]:
        """Return the name of the file of each commit of a journal in *folder* in this revision, by stem.

        The folder need not exist now. Packs named in *unread* are left out. Two calls of git for any number of
        commits; raises InvalidRequest where git lacks a pack.
        """
        above, place = _existing(folder)
        listed = git.read_git(above, "ls-tree", "-z", self.ref, place) or b""
        files, packs = dict[str, str](), dict[str, str]()
        for row in filter(None, listed.split(b"\0")):
            fields, _, path = row.partition(b"\t")
            name = path.decode(errors="surrogateescape").rpartition("/")[2]
            if is_pack(name):
                packs |= {} if name in unread else {name: fields.split()[2].decode()}
            elif short_id(name):
                files[stem_of(name)] = name
        for name, data in zip(packs, git.blobs(above, [*packs.values()]), strict=True):
            files |= dict.fromkeys(_stems(data), name)
        return files

    def read(self, folder: Path, names: Iterable[str]) -> list[Commit]:
        """Return the intact commits in those of the files *names* of a journal in *folder* that are no packs.

        They are in the order of recording. Raises InvalidRequest where git lacks a file.
        """
        above, place = _existing(folder)
        refs = [f"{self.ref}:{place}{name}" for name in sorted(names) if not is_pack(name)]
        return [parse(data) for data in git.blobs(above, refs) if _is_commit(data)]

    def commits_after(self, base: Revision, folder: Path) -> int:
        """Return the number of commits of a journal in *folder* that this revision has and *base* lacks."""
        return 0 if base is self else len(self.commits(folder).keys() - base.commits(folder))

    def shared(self, folder: Path) -> Revision:
        """Return the merge base of this revision and HEAD: itself, if HEAD descends from it.

        Commits added to this revision after a branch left it were never removed from that branch. Raises InvalidRequest
        where a shallow clone lacks the merge base.
        """
        base = git.read_git(folder, "merge-base", self.ref, "HEAD")
        if base is None and git.read_git(folder, "rev-parse", "--is-shallow-repository") == b"true\n":
            raise InvalidRequest(
                f"--since: this clone is shallow, and lacks the commit at which the branch left {self.name!r}",
                hint="git fetch --unshallow; in CI: actions/checkout with fetch-depth: 0",
            )
        return self if base in (None, self._id) else _Known(base.decode().strip(), self.name)


def _existing(folder: Path) -> tuple[Path, str]:
    """Return the nearest folder that exists, from *folder* upwards, and the path from there to *folder*, for git."""
    above = next(parent for parent in (folder, *folder.parents) if disk.exists(str(parent)))
    return above, "/".join((".", *folder.relative_to(above).parts, ""))


class _Known(Revision):
    """An existing revision by its id, with its *name* as given."""

    def __init__(self, ref: str, name: str) -> None:
        self.ref, self.name, self._id = ref, name, None


def known_revision(ref: str) -> Revision:
    """Return the existing revision *ref*."""
    return _Known(ref, ref)


def head_of(folder: Path) -> Revision | None:
    """Return the revision HEAD of the repository of *folder*, None without a repository or before its first commit.

    Raises InvalidRequest if git cannot be run, refuses, or lacks that commit.
    """
    if git.read_git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is not None:
        return _Known("HEAD", "HEAD")
    complaint = git.not_in_repository(folder)
    if complaint is None and git.read_git(folder, "rev-parse", "--verify", "--quiet", "HEAD") is not None:
        complaint = "the commit that HEAD names is not there"
    if complaint is None or complaint.startswith("fatal: not a git repository"):
        return None
    raise InvalidRequest(f"{folder} could not be compared with git: {complaint}", hint="try it there: git log")


def uncommitted(folder: Path) -> int:
    """Return the number of commit files and packs of a stream, in the *folder* of a repository, that HEAD lacks."""
    try:
        listed = git.read_git(folder, "ls-tree", "-z", "--name-only", "HEAD", "./") or b""
    except InvalidRequest:  # git is missing
        return 0
    known = {name.rpartition("/")[2] for name in listed.decode(errors="surrogateescape").split("\0")}
    return len({*each_file(str(folder))} - known)


def _stems(pack: bytes) -> Iterator[str]:
    for identity, moment in _ROW.findall(pack.partition(b"\n@prefix ")[0]):
        yield stem(CommitRef(moment.decode(), identity.decode(), 1))


def vanished(before: Mapping[str, str], present: Collection[str]) -> dict[str, list[str]]:
    """Return the stems *before* that are not *present*, by the name of their former file."""
    return grouped((name, key) for key, name in sorted(before.items()) if key not in present)


#: The most branches, those with the newest commits first, that are searched for the parents of a commit.
BRANCHES = 50
#: The most ids of commits in a message.
_NAMED = 3


def explain(folder: Folder, damage: Sequence[JournalDamaged]) -> tuple[JournalDamaged, ...]:
    """Return *damage* with BranchChanged for each commit whose parent is missing here and on another branch.

    Damage is unchanged if HEAD has the parent, no branch has it, or git cannot be run. The hint to restore a file that
    git does not have becomes the one to quarantine it.
    """
    _hint_quarantine(Path(folder.path), [each for each in damage if FIRST_VERSION in each.hint])
    parents = {Path(each.path).name: parent for each in damage if (parent := missing_parent(each.detail))}
    parents = {name: parent for name, parent in parents.items() if not is_pack(name)}
    if not parents:
        return tuple(damage)
    try:
        changed = _changed(folder, parents, {Path(each.path).name: each for each in damage})
    except InvalidRequest:
        changed = {}
    return tuple(changed.get(Path(each.path).name, each) for each in damage)


def _hint_quarantine(place: Path, damage: Sequence[JournalDamaged]) -> None:
    """Set the hint of those of *damage* that git cannot restore.

    Their file is not in HEAD, was committed with the damage, or is no commit, or a shallow clone lacks its beginning.
    """
    listed = git.read_git(place, "ls-tree", "-z", "--name-only", "HEAD", "./") if damage else None
    known = {Path(name).name for name in (listed or b"").decode(errors="surrogateescape").split("\0")}
    is_shallow = bool(damage) and git.read_git(place, "rev-parse", "--is-shallow-repository") == b"true\n"
    names = known.intersection(Path(each.path).name for each in damage)
    faulty = set[str]() if is_shallow else _first_faulty(place, names)
    for each in damage:
        name = Path(each.path).name
        if name in known and is_shallow and not each.hint.startswith(_UNSHALLOW):
            each.hint = f"{_UNSHALLOW}; then {each.hint}"
        elif name in faulty and short_id(name) is None:
            each.hint = f"{FROM_ROOT}: git rm -- {quote(in_repository(each.path))}   (it is no commit of the journal)"
        elif name in faulty or name not in known:
            kind = "intact version" if name in faulty else "version"
            each.hint = (
                f"git has no {kind} of it; restore it from a copy, or set it aside: jidomem journal verify --quarantine"
                f" {short_id(name) or quote(name)} --reason TEXT   (then record the memory again)"
            )


def _first_faulty(place: Path, names: Collection[str]) -> set[str]:
    """Return those of the files *names* of a folder whose first version in git is no intact commit."""
    words = ("--diff-filter=A", "--format=:%H", "--name-only", "--", *sorted(f"./{name}" for name in names))
    refs, added = dict[str, str](), ""
    for row in (git.read_git(place, "log", *words) or b"").decode(errors="replace").splitlines() if names else ():
        added = row[1:] if row[:1] == ":" else added
        if (name := row.rpartition("/")[2]) in names:
            refs.setdefault(name, f"{added}:./{name}")
    contents = git.available_blobs(place, [*refs.values()])
    return {name for name, ref in refs.items() if ref in contents and not _is_commit(contents[ref])}


def _is_commit(data: bytes) -> bool:
    try:
        return bool(parse(data))
    except FormatError:
        return False


def _changed(folder: Folder, parents: dict[str, str], damage: dict[str, JournalDamaged]) -> dict[str, BranchChanged]:
    """Return the errors for the commits whose *parents* another branch has, by the names of their files."""
    place, errors = Path(folder.path), dict[str, BranchChanged]()
    current = (git.read_git(place, "symbolic-ref", "--quiet", "--short", "HEAD") or b"").decode().strip()
    listed = git.read_git(place, "for-each-ref", "--sort=-committerdate", f"--count={BRANCHES}",
                       "--format=%(refname:short)", "refs/heads") or b""  # fmt: skip
    for branch in ["HEAD", *(branch_name for branch_name in listed.decode().split() if branch_name != current)]:
        if not parents:
            break
        known = {stem[-SHORT:] for stem in known_revision(branch).commits(place)}
        names = [name for name, parent in parents.items() if parent[:SHORT] in known]
        if names and branch != "HEAD":
            error = _Move(folder, branch, names, known)
            errors |= {name: error.describe(damage[name], current) for name in names}
        parents = {name: parent for name, parent in parents.items() if name not in names}
        if branch == "HEAD" and parents:
            removed = _removed(place)
            for name, parent in [*parents.items()]:
                path = removed.get(parent[:SHORT])
                if path is not None and (before := _before_removal(place, path, name)):
                    damage[name].hint = (
                        f"{FROM_ROOT}: git checkout {before} -- {quote(path)} && jidomem journal verify"
                        "   (to undo what it recorded, then: jidomem edit ID --invalidate --reason TEXT)"
                    )
                    del parents[name]
    for name, parent in parents.items():
        if (at := _before_a_force_push(place, parent)) is not None:
            quarantine = damage[name].hint.rpartition("; ")[2]
            damage[name].hint = (
                f"{FROM_ROOT}: git checkout {at[0]} -- {quote(at[1])}   (no branch here has the parent, as after a"
                f" force push; look again with: jidomem journal verify); {quarantine}"
            )
    return errors


def _before_a_force_push(place: Path, identity: str) -> tuple[str, str] | None:
    """Return the revision that added a commit of *place*, and its path in the repository; None if git knows none."""
    words = ("--all", "--reflog", "-1", "--diff-filter=A", "--format=%H", "--name-only", "-z")
    listed = git.read_git(place, "log", *words, "--", f"./*-{identity[:SHORT]}*.ttl") or b""
    revision, *paths = listed.decode(errors="surrogateescape").strip("\0").split("\0")
    return (revision[:SHORT], paths[0].strip()) if paths else None


def _removed(place: Path) -> dict[str, str]:
    """Return the commit files that HEAD's history removed from *place*, by short id, as paths in the repository."""
    names = git.read_git(place, "log", "--diff-filter=D", "--name-only", "--format=", "-z", "HEAD", "--", "./") or b""
    paths = (path.strip() for path in names.decode(errors="surrogateescape").split("\0"))
    return {key: path for path in paths if (key := short_id(path.rpartition("/")[2]))}


def _before_removal(place: Path, path: str, child: str) -> str | None:
    """Return the revision before HEAD's history removed *path*; None if the file *child* was not there then."""
    top = (git.read_git(place, "rev-parse", "--show-toplevel") or b"").decode().strip()
    removal = (git.read_git(Path(top or place), "rev-list", "-1", "HEAD", "--", path) or b"").decode().strip()
    was_there = removal and git.read_git(place, "ls-tree", "--name-only", f"{removal}^", f"./{child}")
    return f"{removal[:SHORT]}^" if was_there else None


class _Move:
    """The commits of a folder that belong on another branch, and the command that moves them there."""

    def __init__(self, folder: Folder, branch: str, names: Sequence[str], known: Collection[str]) -> None:
        """Take the commits *names* and their descendants; the branch already has those with *known* ids."""
        self._place, self._branch = Path(folder.path), branch
        self._files = _with_descendants(folder, names)
        self._lacked = [name for name in self._files if short_id(name) not in known]
        # the branch gets copies of the ancestors that it lacks
        self._bases = [name for name in _ancestors(folder, self._files) if short_id(name) not in known]
        self._committed = self._list("ls-tree", "-z", "--name-only", "HEAD", "./")
        self._staged = self._list("ls-files", "-z", "--", ".") - self._committed
        #: Whether this branch and the other one both have the commits: git cherry-pick copied them.
        self._is_picked = not self._lacked and self._committed.issuperset(self._files)

    def _list(self, *words: str) -> set[str]:
        return {name for name in (git.read_git(self._place, *words) or b"").decode().split("\0") if name}

    def describe(self, damage: JournalDamaged, current: str) -> BranchChanged:
        """Return the error that replaces *damage*, while the branch *current* is checked out."""
        ids = [short_id(name) or name for name in self._files]
        project, stream = self._place.parts[-2:]
        named = ", ".join(ids[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
        many = f"{len(ids)} commits" if len(ids) > 1 else "1 commit"
        if self._is_picked:
            detail = (
                f"{many} of {project}/{stream} ({named}) {'are' if len(ids) > 1 else 'is'} on"
                f" {current or 'this revision'} without the parents, which are on the branch {self._branch}, as git"
                f" cherry-pick takes a commit: nothing is lost, and nothing can be written to {project}/{stream} until"
                " the parents come, or what was picked is taken out"
            )
            hint = f"bring the parents: git merge {quote(self._branch)}; or take it out here: {self._command()}"
            return BranchChanged(detail, damage=damage, branch=self._branch, commits=ids, hint=hint)
        detail = (
            f"{many} of {project}/{stream} ({named}) {'were' if len(ids) > 1 else 'was'} written on the branch"
            f" {self._branch} and stayed in the folder when {current or 'another revision'} was checked out: nothing is"
            f" lost, and nothing can be written to {project}/{stream} until"
        )
        if self._lacked:
            detail += f" {'they are' if len(ids) > 1 else 'it is'} moved to {self._branch}"
            hint = f"move to {self._branch}: {self._command()}"
        else:
            detail += f" the copies here are removed ({self._branch} has the originals)"
            hint = f"remove the copies: {self._command()}"
        return BranchChanged(detail, damage=damage, branch=self._branch, commits=ids, hint=hint)

    def _command(self) -> str:
        branch, lacked, bases = quote(self._branch), self._lacked, self._bases
        committed = [name for name in self._files if name in self._committed]
        copies = [name for name in self._files if name not in {*lacked, *committed}]
        loose = {name for name in each_file(str(self._place)) if name not in self._committed}
        steps = [f"cd {quote(str(self._place))}"]
        if staged := [name for name in copies if name in self._staged]:
            steps.append(f"git rm -qf -- {_short(staged)}")
        if untracked := [name for name in copies if name not in self._staged]:
            steps.append(f"rm -- {_short(untracked)}")
        moved = sorted({*lacked, *bases})
        listed = "'*.ttl'" if loose == {*moved} else '"$@"'  # no other file is uncommitted
        if lacked:
            steps += [f"set -- {_short(moved)}"] if listed == '"$@"' else []
            steps.append(f"git checkout -q {branch}")
            if brought := [name for name in moved if name in self._committed]:
                steps.append(f"git checkout -q '@{{-1}}' -- {listed if brought == moved else ' '.join(brought)}")
            steps += [f"git add -- {listed}", f"git commit -qm 'Memory: add what stayed behind' -- {listed}"]
            steps.append("git checkout -q -")
            if restored := [name for name in bases if name not in self._committed]:
                steps.append(f"git restore -s {branch} -- {' '.join(restored)}")
        if committed:
            own = '"$@"' if committed == moved else _short(committed)
            what = f"take out commits of {self._branch}" if self._is_picked else f"move commits to {self._branch}"
            steps += [f"git rm -q -- {own}", f"git commit -qm 'Memory: {what}' -- ."]
        return f"({' && '.join(steps)})"


def _short(names: Iterable[str]) -> str:
    """Return globs for the files *names*, each by the id in its name."""
    return " ".join(f"*-{name.partition('-')[2]}" for name in names)


def _with_descendants(folder: Folder, names: Sequence[str]) -> list[str]:
    entries = folder.contents.entries
    moved = {entries[name].head.id: name for name in names if name in entries}
    for name, entry in sorted(entries.items()):  # parents come before their children
        if not is_pack(name) and any(parent in moved for parent in entry.parents):
            moved[entry.head.id] = name
    return sorted({*names, *moved.values()})


def _ancestors(folder: Folder, names: Collection[str]) -> list[str]:
    entries = folder.contents.entries
    file_of = {entry.head.id: name for name, entry in entries.items() if not is_pack(name)}
    ancestors, pending = set[str](), [name for name in names if name in entries]
    while pending:
        before = {file_of[parent] for parent in entries[pending.pop()].parents if parent in file_of} - ancestors
        ancestors |= before
        pending += before
    return sorted(ancestors.difference(names))
