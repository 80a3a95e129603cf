"""The journal compared with git: commits that HEAD has and the folder lacks, and commits of another branch."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress

from jidomem.errors import BranchChanged, InvalidRequest, JournalDamaged, NotFound
from jidomem.govern.integrity import Finding, gone
from jidomem.journal.files import FileJournal, Stream
from jidomem.journal.revisions import Revision, head_of
from jidomem.repository import git


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
    except InvalidRequest as error:
        return [Finding("unchecked", "warning", f"not compared with git: {error.detail}", error.hint)]
    changed = {
        error.detail: error for errors in damage.values() for error in errors if isinstance(error, BranchChanged)
    }
    return [*lost, *(_stray(each) for each in changed.values())]


def _streams(journal: FileJournal, head: Revision) -> list[Stream]:
    """Return the streams that a revision has."""
    listed = git.found(journal.folder, "ls-tree", "-r", "-d", "-z", "--name-only", head.ref, "./projects/") or b""
    found = list[Stream]()
    for row in filter(None, listed.split(b"\0")):
        with suppress(ValueError, NotFound):  # a folder that is none of ours
            project, name = os.fsdecode(row).split("/")[-2:]
            found.append(Stream(project, name))
    return sorted(found)


def _stray(error: BranchChanged) -> Finding:
    return Finding("stray", "violation", error.detail, error.hint, error.path, error.line, error.commit)
