"""What a shared root says of itself: its configuration, terms, rules and questions, in one file of its log.

It is one file so that a change of several is one: whoever opens the root has all of them as they were at one moment.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from jidomem.decoding import decode_json
from jidomem.errors import Failed, InvalidRequest
from jidomem.journal.disk import LARGEST
from jidomem.shared.copies import copying
from jidomem.shared.log import SharedLog, check_file

NAME = "root.json"
_ALONE = ("config.toml", "baseline.toml")
_BELOW = ("ontology", "shapes", "queries")
_ASIDE = ".ttl.aside"
#: Which of them a copy in a home has: the tag of NAME.
_TAG = "root.tag"

Files = Mapping[str, str]


def load(log: SharedLog) -> dict[str, str]:
    """Return the text of each file of the root, by its path; raises Failed where they cannot be read."""
    return _read(log)[0]


def change(log: SharedLog, how: Callable[[Files], Files]) -> None:
    """Keep what *how* makes of the latest files of the root; raises InvalidRequest for a path that is none of one."""
    while True:
        files, tag = _read(log)
        changed = how(files)
        for path in changed:
            check(path)
        data = json.dumps({"files": dict(sorted(changed.items()))}, ensure_ascii=False, indent=0).encode()
        if changed == files or log.put(NAME, data, tag) is not None:
            return


def bring(log: SharedLog, home: Path) -> str:
    """Lay the files of the root out in *home*, the copy on this machine, where they changed since; return their tag.

    Raises Failed `write_failed` where they cannot be written there.
    """
    tag_file = home / _TAG
    with copying(str(home), log.name):
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _text(tag_file) == (there := _read(log)[1] or ""):
            return there
        with _alone(home):
            files, tag = _read(log)
            tag_file.unlink(missing_ok=True)
            for path in {*_there(home)} - files.keys():
                (home / path).unlink(missing_ok=True)
            for path, text in files.items():
                write(home / path, text)
            write(tag_file, tag or "")
            return tag or ""


def of_folder(folder: Path) -> dict[str, str]:
    """Return the files in *folder* that a shared root has; raises InvalidRequest for one that is no text."""
    found = {}
    for path in sorted(_there(folder)):
        try:
            if (size := (folder / path).stat().st_size) > LARGEST:
                raise ValueError(f"it has {size:,} bytes, more than {LARGEST:,}")
            found[path] = (folder / path).read_text("utf-8")
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{folder / path}: {error}", hint="a root has texts: take it out") from error
        check(path)
    return found


def overlay_files(folder: Path) -> Iterator[Path]:
    """Yield the files below the folders of an overlay of the root in *folder*, sorted; no link is followed."""
    for name in _BELOW:
        if not (folder / name).is_symlink():
            yield from sorted(
                Path(at, file)
                for at, _, files in os.walk(folder / name)
                for file in files
                if not Path(at, file).is_symlink() and Path(at, file).is_file()
            )


def check(path: str) -> None:
    """Raise InvalidRequest unless *path* is one of a file that a shared root has."""
    check_file(path)
    first, _, rest = path.partition("/")
    is_aside = first == "projects" and path.endswith(_ASIDE) and path.count("/") == 3
    if not (path in _ALONE or (first in _BELOW and rest) or is_aside):
        hint = f"there is {', '.join(_ALONE)} and what is in {', '.join(f'{name}/' for name in _BELOW)}"
        raise InvalidRequest(f"{path} is no file of a shared root", hint=hint)


def _read(log: SharedLog) -> tuple[dict[str, str], str | None]:
    found = log.get(NAME)
    if found is None:
        return {}, None
    try:
        files = decode_json(found.data)["files"]
        for path, text in files.items():
            check(path)
            if not isinstance(text, str):
                raise ValueError(f"{path} is no text")
    except (ValueError, KeyError, TypeError, AttributeError, InvalidRequest) as error:
        raise Failed(
            f"{NAME} of {log.name} cannot be read: {error}",
            hint="put the files there again, from a folder that has them: jidomem root push FOLDER",
            code="invalid_config",
        ) from error
    return files, found.tag


def _there(folder: Path) -> Iterator[str]:
    """Yield the paths of the files in *folder* that a shared root has; nothing of a link, and nothing hidden."""
    tops = [*(folder / name for name in _ALONE), *folder.glob(f"projects/*/*/*{_ASIDE}")]
    for path in (*tops, *overlay_files(folder)):
        inner = path.relative_to(folder)
        if path.is_file() and not path.is_symlink() and not any(part[0] == "." for part in inner.parts):
            yield inner.as_posix()


def _text(path: Path) -> str | None:
    with suppress(OSError, ValueError):
        return path.read_text("utf-8")
    return None


def write(path: Path, text: str) -> None:
    """Put a file in place in one step; raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.new")
    draft.write_text(text, "utf-8", newline="")
    draft.replace(path)


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    descriptor = os.open(home / ".root.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
