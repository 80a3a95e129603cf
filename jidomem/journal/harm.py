"""Harm to files of a journal, by git or by hand, and the commands that put it right, from the repository's root."""

from __future__ import annotations

import re
from shlex import quote

from jidomem.journal import disk
from jidomem.journal.names import is_pack

FROM_ROOT = "from the root of the repository"
_LOOK = 1 << 20
_ITEM = re.compile(rb"^<https://jido\.ai/memory/[0-9a-f-]{28}([0-9a-f]{8})>$", re.MULTILINE)
_MARKS = re.compile(rb"^(?:<<<<<<< |=======|>>>>>>> |\|{7} )", re.MULTILINE)


def beginning(path: str) -> bytes:
    """Return the first part of a damaged file, nothing where it cannot be read."""
    try:
        return disk.read_part(path, 0, _LOOK)
    except OSError:
        return b""


def harm(path: str, data: bytes) -> tuple[str, str] | None:
    """Return what git did to a file that begins with *data*, and the command for it; None if it was not git."""
    mark = _MARKS.search(data)
    marked = data.count(b"\n", 0, mark.start()) + 1 if mark else None
    folder, name = path.rpartition("/")[::2]
    place = in_repository(folder)
    enter = f"{FROM_ROOT}: cd {quote(place)}" if place != folder else f"cd {quote(folder)}"
    if marked is not None and ".redacted." in name:
        return (
            f"git left the marks of a conflict in line {marked}: both branches redacted this commit, each otherwise",
            f"{enter} && git checkout --ours -- {name} && git add {name}"
            "   (then jidomem redact --again takes out what the other branch did)",
        )
    if marked is not None:
        return (
            f"git left the marks of a conflict in line {marked}: it took this file for another one, renamed, as it may"
            " where both branches were packed",
            f"{enter} && other=$(git rev-parse MERGE_HEAD) && git merge --abort"
            ' && git merge --no-edit -X find-renames=100% "$other"'
            "   (where that was committed: git checkout BRANCH -- the file, from the branch that wrote it)",
        )
    if b"\r\n" in data:
        return (
            "its line ends were rewritten: git did so where it was checked out (core.autocrlf)",
            f"{enter} && echo '* -text' >> .gitattributes && git ls-files -z '*.ttl' | xargs -0 rm --"
            " && git checkout -- .   (jidomem init writes a .gitattributes that keeps git from it)",
        )
    return None


def restoring(path: str, data: bytes) -> str:
    """Return the commands that restore a damaged file as it was written, and the one that changes a memory in it.

    The file begins with *data*. A commit file is written once, so git first had it as it was, also where the damage
    was committed since. A pack or a redacted commit may be written anew.
    """
    items = {*_ITEM.findall(data)}
    item = items.pop().decode() if len(items) == 1 else "ID"
    change = f"   (then change the memory with: jidomem revise {item} --set FIELD=VALUE --reason TEXT)"
    file = in_repository(path)
    if file == path:
        return f"restore the file from a backup, then run: jidomem verify{change}"
    name = path.rpartition("/")[2]
    if is_pack(name) or ".redacted." in name:
        return f"{FROM_ROOT}: git checkout HEAD -- {quote(file)} && jidomem verify{change}"
    first = 'git checkout "$(git log --diff-filter=A --format=%h -1 -- "$f")" -- "$f"'
    return f"{FROM_ROOT}: f={quote(file)}; {first} && jidomem verify{change}"


def in_repository(path: str) -> str:
    """Return *path* as seen from the root of the repository it lies in; itself where it lies in none."""
    folder = path
    while folder := folder.rpartition("/")[0]:
        if disk.exists(f"{folder}/.git"):
            return path[len(folder) + 1 :]
    return path
