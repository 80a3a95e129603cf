"""What may be put on top of a version: a commit of the same stream, made on it, and after it."""

from __future__ import annotations

from jidomem.journal.commit import Commit, FormatError
from jidomem.journal.folder import Folder
from jidomem.version import Version


def check_follows(graph: str, expected: Version, commit: Commit) -> None:
    """Raise FormatError unless *commit* belongs to *graph*, is whole, and follows from *expected*."""
    if commit.graph != graph:
        raise FormatError(f"a commit of {commit.graph} does not belong in {graph}")
    if commit.parents != tuple(sorted(expected.ids)) or commit.position != expected.position + 1:
        raise FormatError(f"commit {commit.id} does not follow from {expected}")
    if commit.recorded_at <= expected.recorded_at:
        raise FormatError(
            f"commit {commit.id} of {commit.recorded_at} is not after its parents: {expected.recorded_at}"
        )
    if commit.redacted:
        raise FormatError(f"commit {commit.id} is redacted: only a whole one can be appended")


def sound(folder: Folder) -> Version:
    """Return the version of a folder now, its heads read here; raise JournalDamaged while there is damage."""
    version = folder.look()
    if not folder.is_grounded() and not folder.is_damaged:
        folder.read_anew()
        version = folder.sight.version
    while folder.is_damaged:
        for found in folder.damage():
            raise found
        version = folder.look()  # it was healed since
    return version
