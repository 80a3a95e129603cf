"""The file anchor: a file that a memory is about, by its path and the blob id of its content. Pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote

from jidomem.base.regex import lazy
from jidomem.rdf.terms import Term, Triple, literal, plain_value
from jidomem.rdf.vocab import jido

ANCHOR = jido("aboutBlob")
#: The blob id in an anchor whose file content was redacted: the null id of git.
NO_BLOB = "0" * 40
_ANCHOR_FORM = lazy(r"((?:[0-9a-f]{40}|[0-9a-f]{64})) (.+)", re.DOTALL)
_MAX_PATH_CHARS = 1024
_REDUNDANT = re.compile(r"^\./|/\.?/|[^./]/\.\./|//")


class Anchor(NamedTuple):
    """A file by its path, relative to the base folder of paths, and the blob id of its content."""

    path: str
    blob: str

    def __str__(self) -> str:
        """Return the anchor in its stored form."""
        return f"{self.blob} {self.path}"


def path_of(entry: str) -> str | None:
    """Return the path inside a repository that an entry of `about` names, None for another entry.

    >>> path_of("./src//a.py"), path_of("../secret"), path_of("https://jido.ai/x")
    ('src/a.py', None, None)
    """
    if not entry or len(entry) > _MAX_PATH_CHARS or "\0" in entry or "://" in entry or entry.startswith(("/", "urn:")):
        return None
    path = posixpath.normpath(entry.strip())
    outside = path == "." or path == ".." or path.startswith("../")
    return None if outside or ".git" in path.casefold().split("/") else path


#: A path with the separators of Windows; a backslash before another sign escapes it, as in a pattern.
_WINDOWS = lazy(r"(?:[A-Za-z]:)?[\\/]*[\w.@+ -]+(?:[\\/]+(?:[\w.@+ -]+|\*\*|\*\.[\w.]+))*[\\/]*")


def with_slashes(text: str) -> str:
    r"""Return a path with the separators of Windows with slashes, and any other text unchanged.

    >>> with_slashes(r"src\a.py"), with_slashes(r"src\**\*.py"), with_slashes(r"src/\[id\].py"), with_slashes("a/b")
    ('src/a.py', 'src/**/*.py', 'src/\\[id\\].py', 'a/b')
    """
    return text.replace("\\", "/") if "\\" in text and _WINDOWS.fullmatch(text) else text


_ADDRESS = re.compile(r"^file:/+(?:localhost/)?")
_LINES = lazy(r"(?:#L?\d+(?:-L?\d+)?|:\d+(?:[:,-]\d+)*)$")


def plain_forms(entry: str) -> list[str]:
    r"""Return the paths that *entry* may name, itself first: it may be a `file:` address, or have an `@` or lines.

    >>> plain_forms("@src/a.py:12-14"), plain_forms("file:///src/a%20b.py"), plain_forms(r"src\a.py")
    (['@src/a.py:12-14', 'src/a.py:12-14', 'src/a.py'], ['/src/a b.py'], ['src/a.py'])
    """
    path = unquote(_ADDRESS.sub("/", entry)) if entry.startswith("file:/") else with_slashes(entry)
    bare = path.removeprefix("@")
    return [*dict.fromkeys((path, bare, _LINES.sub("", bare)))]


def is_outside(text: str) -> bool:
    """Return whether *text* is a path outside the folder to which the paths of a memory are relative.

    >>> is_outside("/etc/passwd"), is_outside("a/../../b"), is_outside("a/../b"), is_outside("and so on ...")
    (True, True, False, False)
    """
    return text.startswith("/") or (".." in text and f"{posixpath.normpath(text)}/".startswith("../"))


def anchors_of(terms: Iterable[Term]) -> list[Anchor]:
    """Return the anchors in the values of `jido:aboutBlob`, sorted; malformed values are ignored."""
    matches = (_ANCHOR_FORM.fullmatch(plain_value(term)) for term in terms)
    return sorted(Anchor(match[2], match[1]) for match in matches if match and path_of(match[2]) == match[2])


def file_anchor_triples(item: Term, about: Iterable[str], blobs: Mapping[str, str]) -> list[Triple]:
    """Return the anchors of *item* for the files in *about*; *blobs* has the blob ids of files by path."""
    paths = dict.fromkeys(path for entry in about if (path := path_of(entry)) in blobs) if blobs else ()
    return [(item, ANCHOR, literal(str(Anchor(path, blobs[path])))) for path in paths if path]


def plain_path(text: str) -> str:
    """Return a path without redundant parts, and any other text unchanged; a trailing slash stays.

    >>> plain_path("./src//a.py"), plain_path("src/../lib/"), plain_path("https://x.org//a"), plain_path("../a")
    ('src/a.py', 'lib/', 'https://x.org//a', '../a')
    """
    if ":" in text or not _REDUNDANT.search(text):
        return text
    path = posixpath.normpath(text)
    if path == "." or path.startswith("../"):
        return text
    return path + "/" * text.endswith("/")
