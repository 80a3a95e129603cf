"""What a file held when a memory about it was written: its path, and the id git gives its content.  Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from jidomem.terms import Term, Triple, bare, literal
from jidomem.vocab import jido

ANCHOR = jido("aboutBlob")
#: The blob id in an anchor that no longer tells what its file held: git's id of nothing.
NO_BLOB = "0" * 40
_WRITTEN = re.compile(r"((?:[0-9a-f]{40}|[0-9a-f]{64})) (.+)", re.DOTALL)
_LONGEST = 1024


class Anchor(NamedTuple):
    """A file by its path, from the folder the memory's paths begin at, and the blob id of what it held."""

    path: str
    blob: str

    def __str__(self) -> str:
        """Return the anchor as a memory keeps it."""
        return f"{self.blob} {self.path}"


def path_of(entry: str) -> str | None:
    """Return the path that an entry of `about` can name inside a repository, None where it can name none.

    >>> path_of("./src//a.py"), path_of("../secret"), path_of("https://jido.ai/x")
    ('src/a.py', None, None)
    """
    if not entry or len(entry) > _LONGEST or "\0" in entry or "://" in entry or entry.startswith(("/", "urn:")):
        return None
    path = posixpath.normpath(entry.strip())
    outside = path == "." or path == ".." or path.startswith("../")
    return None if outside or ".git" in path.casefold().split("/") else path


def anchors_of(terms: Iterable[Term]) -> list[Anchor]:
    """Return the anchors in the values of `jido:aboutBlob`, sorted; what is written otherwise is passed over."""
    found = (_WRITTEN.fullmatch(bare(term)) for term in terms)
    return sorted(Anchor(match[2], match[1]) for match in found if match and path_of(match[2]) == match[2])


def anchored(item: Term, about: Iterable[str], blobs: Mapping[str, str]) -> list[Triple]:
    """Return what *item* keeps of the files that *about* names; *blobs* has the blob id of each path that has one."""
    paths = dict.fromkeys(path for entry in about if (path := path_of(entry)) in blobs) if blobs else ()
    return [(item, ANCHOR, literal(str(Anchor(path, blobs[path])))) for path in paths if path]
