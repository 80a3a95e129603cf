"""Ask git about the repository a folder lies in, so that nothing its configuration names is run and nothing fetched."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from shlex import quote

from jidomem.errors import InvalidRequest

#: What a configuration found beside the files could have run: watchers, hooks, signatures.
_SET = ("core.fsmonitor=false", "core.quotePath=false", "core.hooksPath=/dev/null", "log.showSignature=false")
#: A hook says where the repository is, here the folder does; a clone may promise objects that it has elsewhere, and
#: name a program to get them with, so no protocol is allowed.
_SAID = ("-u", "GIT_DIR", "-u", "GIT_WORK_TREE", "-u", "GIT_INDEX_FILE", "-u", "GIT_PREFIX",
         "GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1", "LC_ALL=C")  # fmt: skip
_GIT = ("git", "--no-optional-locks", "--no-pager", *(word for each in _SET for word in ("-c", each)))
_SECONDS, _NOT_FOUND = 60.0, 127
#: What git prints where a repository belongs to another user: where it is, and the command that allows it.
_REFUSED = re.compile(
    rb"detected dubious ownership in repository at '([^\n]+)'\n.*?"
    rb"(git config --global --add safe\.directory [^\n]+)",
    re.DOTALL,
)


def ask(
    folder: Path, *words: str, seconds: float = _SECONDS, index: str | None = None, given: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Return what git answers in *folder*.

    Raises InvalidRequest where there is no git, no answer in time, or the repository belongs to another user.

    *index* is the file of what is staged, where it is another than usual; *given* is on its standard input.
    """
    said = ("env", *_SAID, *(() if index is None else (f"GIT_INDEX_FILE={index}",)))
    try:
        done = subprocess.run([*said, *_GIT, *words], cwd=folder, input=given, capture_output=True,
                              timeout=seconds, check=False)  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        raise InvalidRequest(f"git could not be asked about {folder}: {error}", hint="try it there: git log") from error
    if done.returncode == _NOT_FOUND:
        raise InvalidRequest("there is no git to ask about an earlier revision", hint="install git, and try again")
    if refused := _REFUSED.search(done.stderr):
        place, command = (part.decode("utf-8", "replace") for part in refused.groups())
        raise InvalidRequest(f"git refuses the repository {place}: it belongs to another user", hint=command)
    return done


def found(folder: Path, *words: str, index: str | None = None) -> bytes | None:
    """Return what git prints in *folder*; None where it fails."""
    done = ask(folder, *words, index=index)
    return done.stdout if done.returncode == 0 else None


def blob(folder: Path, ref: str, name: str) -> bytes | None:
    """Return what was in the file *name* of *folder* at a revision; None where it was not there.

    Raise InvalidRequest where git lists it and does not have it, as in a partial clone.
    """
    data = found(folder, "cat-file", "blob", f"{ref}:./{name}")
    if data is None and (listed := found(folder, "ls-tree", ref, f"./{name}")) and b" blob " in listed:
        raise InvalidRequest(
            f"git lists {name} in {ref!r} and does not have it: this clone is not whole, and nothing is fetched here",
            hint=f"let git fetch it: git -C {quote(str(folder))} archive {quote(ref)} > /dev/null",
        )
    return data


def content(path: Path, ref: str) -> bytes:
    """Return what was in the file *path* at a revision, nothing where it was not there; raises as `blob` does."""
    path = path.resolve()
    return blob(path.parent, ref, path.name) or b""


def blobs(folder: Path, ids: Sequence[str]) -> list[bytes]:
    """Return the contents of the blobs *ids*, in one call; raise InvalidRequest where git lacks one of them."""
    contents = available_blobs(folder, ids)
    for one in ids:
        if one not in contents:
            raise InvalidRequest(
                f"git lists the blob {one} and does not have it: this clone is not whole, and nothing is fetched here",
                hint=f"let git fetch it: git -C {quote(str(folder))} cat-file blob {one} > /dev/null",
            )
    return [contents[one] for one in ids]


def available_blobs(folder: Path, ids: Sequence[str]) -> dict[str, bytes]:
    """Return the contents, by their ids, of those of the blobs *ids* that git has, in one call; raises as `ask`."""
    if not ids:
        return {}
    answer = ask(folder, "cat-file", "--batch", given="".join(f"{one}\n" for one in ids).encode()).stdout
    contents, at = dict[str, bytes](), 0
    for one in ids:
        if (line_end := answer.find(b"\n", at)) < 0:
            break
        words = answer[at:line_end].split()
        at = line_end + 1
        if len(words) == 3:  # else it is missing, and the line says so
            begin, at = at, at + int(words[2]) + 1
            if words[1] == b"blob":
                contents[one] = answer[begin : at - 1]
    return contents


def complaint(folder: Path) -> str | None:
    """Return why git takes *folder* for part of no repository, in its words; None where it takes it for one."""
    done = ask(folder, "rev-parse", "--show-toplevel")
    return None if done.returncode == 0 else " ".join(done.stderr.decode("utf-8", "replace").split())
