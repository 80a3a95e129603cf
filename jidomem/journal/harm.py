"""What git does to files that it takes for text, and how that is put right."""

from __future__ import annotations

import re
from shlex import quote

from jidomem.journal import disk

_LOOK = 1 << 20
_MARKS = re.compile(rb"^(?:<<<<<<< |=======|>>>>>>> |\|{7} )", re.MULTILINE)


def harm(path: str) -> tuple[str, str] | None:
    """Return what git did to a damaged file, and the command that puts it right; None where it was not git."""
    try:
        data = disk.read_part(path, 0, _LOOK)
    except OSError:
        return None
    mark = _MARKS.search(data)
    marked = data.count(b"\n", 0, mark.start()) + 1 if mark else None
    folder, name = path.rpartition("/")[::2]
    if marked is not None and ".redacted." in name:
        return (
            f"git left the marks of a conflict in line {marked}: both branches redacted this commit, each otherwise",
            f"cd {quote(folder)} && git checkout --ours -- {name} && git add {name}"
            "   (then jidomem redact --again takes out what the other branch did)",
        )
    if marked is not None:
        return (
            f"git left the marks of a conflict in line {marked}: it took this file for another one, renamed, as it may"
            " where both branches were packed",
            f"cd {quote(folder)} && other=$(git rev-parse MERGE_HEAD) && git merge --abort"
            ' && git merge --no-edit -X find-renames=100% "$other"'
            "   (where that was committed: git checkout BRANCH -- the file, from the branch that wrote it)",
        )
    if b"\r\n" in data:
        return (
            "its line ends were rewritten: git did so where it was checked out (core.autocrlf)",
            f"cd {quote(folder)} && echo '* -text' >> .gitattributes && git ls-files -z '*.ttl' | xargs -0 rm --"
            " && git checkout -- .   (jidomem init writes a .gitattributes that keeps git from it)",
        )
    return None
