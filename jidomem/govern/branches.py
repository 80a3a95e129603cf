"""The journal held against git: commits that HEAD has and the folder lacks, and commits that stayed behind.

A commit that git does not track yet stays in the folder when another branch is checked out, and its parents go: there
it is damage, and it belongs on the branch that has them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from shlex import quote

from jidomem.errors import InvalidRequest, JournalDamaged, NotFound
from jidomem.govern.integrity import Finding, gone
from jidomem.govern.since import Revision, head_of
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.links import lacking
from jidomem.journal.names import is_pack, short_id
from jidomem.repository import git
from jidomem.version import SHORT

#: So many branches, those with the newest commits first, are searched for the parents of a commit.
BRANCHES = 50


def compare_with_git(
    journal: FileJournal, damage: Mapping[Stream, Sequence[JournalDamaged]], project: str | None = None
) -> list[Finding]:
    """Return what git knows of the streams of a root, or of one project, that their files do not show.

    *damage* is that of the streams that are there. A warning says where git could not be asked.
    """
    if not journal.is_tracked:
        return []
    try:
        head = head_of(journal.folder)
        if head is None:
            return []
        streams = [each for each in _streams(journal, head) if project in (None, each.project)]
        lost = [each for one in streams for each in gone(journal, one, [head], damage.get(one, ()))]
        strays = [each for one in damage for each in left_behind(journal, one, damage[one])]
    except InvalidRequest as error:
        return [Finding("unchecked", "warning", f"not compared with git: {error.detail}", error.hint)]
    return [*lost, *strays]


def _streams(journal: FileJournal, head: Revision) -> list[Stream]:
    """Return the streams that a revision has."""
    listed = git.found(journal.folder, "ls-tree", "-r", "-d", "-z", "--name-only", head.ref, "./projects/") or b""
    found = list[Stream]()
    for row in filter(None, listed.split(b"\0")):
        with suppress(ValueError, NotFound):  # a folder that is none of ours
            project, name = os.fsdecode(row).split("/")[-2:]
            found.append(Stream(project, name))
    return sorted(found)


def left_behind(journal: FileJournal, stream: Stream, damage: Iterable[JournalDamaged]) -> list[Finding]:
    """Return a finding for each branch whose commits stayed in the folder of a stream when another was checked out.

    Raises InvalidRequest where git cannot be asked.
    """
    parents = {Path(each.path).name: parent for each in damage if (parent := lacking(each.detail))}
    parents = {name: parent for name, parent in parents.items() if not is_pack(name)}
    if not parents or not journal.is_tracked:
        return []
    found = list[Finding]()
    branches = git.found(journal.folder, "for-each-ref", "--sort=-committerdate", f"--count={BRANCHES}",
                         "--format=%(refname:short)", "refs/heads") or b""  # fmt: skip
    for branch in branches.decode().split():
        known = {stem[-SHORT:] for stem in Revision(journal.folder, branch).commits(journal.path(stream))}
        names = [name for name, parent in parents.items() if parent[:SHORT] in known]
        if names:
            files = _with_descendants(journal, stream, names)
            there = [each for each in files if short_id(each) in known]
            bases = [each for each in _ancestors(journal, stream, files) if short_id(each) not in known]
            found.append(_stray(journal, stream, branch, files, there, bases))
            parents = {name: parent for name, parent in parents.items() if name not in names}
    return found


def _stray(
    journal: FileJournal,
    stream: Stream,
    branch: str,
    files: Sequence[str],
    there: Collection[str],
    bases: Sequence[str],
) -> Finding:
    """Return the finding for *files* that belong on a branch, which has those that are *there* already.

    The *bases* are commits of this branch which those follow and the other branch lacks: it gets a copy of each.
    """
    folder = f"projects/{stream.project}/{stream.name}/"
    listed = git.found(journal.folder, "ls-files", "-z", "--", *(folder + name for name in files)) or b""
    tracked = {os.fsdecode(path).rpartition("/")[2] for path in listed.split(b"\0") if path}
    lacked = [name for name in files if name not in there]

    def paths(names: Iterable[str]) -> str:
        return " ".join(quote(folder + name) for name in names)

    steps = [f"cd {quote(str(journal.folder))}"]
    if apart := sorted(tracked.intersection(lacked)):
        steps += ["apart=$(mktemp -d)", f'cp {paths(apart)} "$apart"']
    if tracked:
        own = paths(sorted(tracked))
        steps += [f"git rm -q -- {own}", f"git commit -q -m 'Memory: move commits to {branch}' -- {own}"]
    if spare := [name for name in there if name not in tracked]:
        steps += [f"rm -- {paths(spare)}"]
    if lacked:
        added = paths(sorted([*lacked, *bases]))
        if bases:
            steps += ["base=$(mktemp -d)", f'cp {paths(bases)} "$base"']
        steps += [f"git checkout -q {quote(branch)}", *([f'cp "$apart"/* {folder}'] if apart else [])]
        steps += [f'cp "$base"/* {folder}'] if bases else []
        steps += [f"git add -- {added}", f"git commit -q -m 'Memory: add what stayed behind' -- {added}"]
        steps += ["git checkout -q -", *([f'cp "$base"/* {folder}'] if bases else [])]
    many = f"{len(files)} commits of {stream.project}/{stream.name} were" if len(files) > 1 else "this commit was"
    return Finding(
        "stray",
        "violation",
        f"{many} written on the branch {branch}, which has what comes before, and stayed behind when another branch"
        " was checked out: nobody can write here until that is moved",
        f"move it to {branch}: {' && '.join(steps)}",
        f"{journal.path(stream)}/{files[0]}",
        commit=short_id(files[0]),
    )


def _with_descendants(journal: FileJournal, stream: Stream, names: Sequence[str]) -> list[str]:
    """Return *names* and the files of all commits that come after those."""
    entries = journal.seen(stream).contents.entries
    moved = {entries[name].head.id: name for name in names if name in entries}
    for name, entry in sorted(entries.items()):  # parents come before their children
        if not is_pack(name) and any(parent in moved for parent in entry.parents):
            moved[entry.head.id] = name
    return sorted({*names, *moved.values()})


def _ancestors(journal: FileJournal, stream: Stream, names: Collection[str]) -> list[str]:
    """Return the files that are here of all commits that come before those of *names*."""
    entries = journal.seen(stream).contents.entries
    file_of = {entry.head.id: name for name, entry in entries.items() if not is_pack(name)}
    found, left = set[str](), [name for name in names if name in entries]
    while left:
        before = {file_of[parent] for parent in entries[left.pop()].parents if parent in file_of} - found
        found |= before
        left += before
    return sorted(found.difference(names))
