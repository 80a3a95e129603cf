"""The names of files in a stream's folder: commits, their redacted forms, and packs of many."""

from __future__ import annotations

import re
from collections.abc import Iterator

from jidomem.journal import disk
from jidomem.version import SHORT, Head

_COMMIT = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{12}(?:\.redacted)?\.ttl")
#: What the name of a damaged file ends with once it was set aside: readers pass it over.
ASIDE = ".aside"
_NUMBERED = re.compile(r"\.[0-9]+\.ttl\Z")
_PACK = re.compile(r"pack-[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[0-9a-f]{12}\.ttl")


def stem(head: Head) -> str:
    """Return the name of a commit without its form; stems sort as commits do.

    >>> stem(Head("2026-11-21T08:00:00.123456Z", "3fa9c1d20b7e" + "0" * 52, 1))
    '20261121T080000.123456Z-3fa9c1d20b7e'
    """
    return f"{compact(head.recorded_at)}-{head.id[:SHORT]}"


def file_name(head: Head, *, redacted: bool = False) -> str:
    """Return the name of a commit's file.

    >>> file_name(Head("2026-11-21T08:00:00.123456Z", "3fa9c1d20b7e" + "0" * 52, 1))
    '20261121T080000.123456Z-3fa9c1d20b7e.ttl'
    """
    return f"{stem(head)}{'.redacted' if redacted else ''}.ttl"


def pack_name(first: str, digest: str) -> str:
    """Return the name of a pack, of its first moment and its digest."""
    return f"pack-{compact(first)}-{digest[:SHORT]}.ttl"


def compact(moment: str) -> str:
    """Return a moment as file names write it."""
    return moment.replace("-", "").replace(":", "")


def stem_of(name: str) -> str:
    """Return what two forms of one commit share in the names of their files."""
    return name.removesuffix(".ttl").removesuffix(".redacted")


def short_id(name: str) -> str | None:
    """Return the first digits of the id that a file name claims, None for a name that claims none."""
    return stem_of(name).partition("-")[2] if _COMMIT.fullmatch(name) else None


def is_pack(name: str) -> bool:
    """Return whether a file claims to be a pack."""
    return _PACK.fullmatch(name) is not None


def each_file(path: str) -> Iterator[str]:
    """Yield the names in a folder that are, or claim to be, commits or packs; nothing where there is no folder."""
    return (name for name in disk.names(path) if name.endswith(".ttl") and name[0] != ".")


def aside_of(name: str) -> str:
    """Return the name of the file that was set aside under a name, less the number that tells it from another form.

    >>> aside_of("20261121T080000.123456Z-3fa9c1d20b7e.2.ttl")
    '20261121T080000.123456Z-3fa9c1d20b7e.ttl'
    """
    return _NUMBERED.sub(".ttl", name)


def set_aside(path: str) -> Iterator[str]:
    """Yield the names of the damaged files in a folder that were set aside."""
    return (name for name in disk.names(path) if name.endswith(f".ttl{ASIDE}") and name[0] != ".")
