"""A backup: one tar file with a root as a folder, and a manifest with the digest of every file in it."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from jidomem.decoding import decode_json
from jidomem.errors import Failed, InvalidRequest
from jidomem.journal.disk import flush

MANIFEST = "manifest.json"
FORM = "jidomem backup 1"
#: A manifest is a line a file; a million memories are some hundred files.
_LONGEST = 64 << 20
_CHUNK = 1 << 20


def pack(folder: Path, file: Path, said: Mapping[str, Any]) -> str:
    """Return the digest of the manifest of *file*, made of all that is in *folder*, and of what is *said* of it.

    The same folder gives the same bytes. The file is durable and whole, or not there. Raises Failed where there is one
    of that name already, or nothing can be written.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
            manifest = _packed(folder, target, said)
            target.flush()
            os.fsync(target.fileno())
        os.link(draft, file)  # a rename would take the place of what is there
        flush(str(file.parent))
    except FileExistsError as error:
        raise Failed(f"{file} is there already", hint="name another file", code="write_failed") from error
    except OSError as error:
        hint = "make room there, or name another file"
        raise Failed(f"{error.filename or file}: {error.strerror}", hint=hint, code="write_failed") from error
    finally:
        draft.unlink(missing_ok=True)
    return blake2b(manifest, digest_size=32).hexdigest()


def unpack(file: Path, folder: Path) -> Mapping[str, Any]:
    """Return what *file* says of itself, once all that is in it lies in *folder*, an empty one, digest by digest.

    Raises InvalidRequest for what is no backup, and Failed where one was changed or cut short.
    """
    try:
        with file.open("rb") as source, tarfile.open(fileobj=source, mode="r:") as tar:
            said = _manifest(tar, file)
            left = dict(said["files"])
            for member in tar:
                if member.name != MANIFEST:
                    _extract(tar, member, folder, left, file)
    except (tarfile.TarError, EOFError) as error:
        raise _changed(file, str(error)) from error
    except OSError as error:
        hint = "name a file this user may read, and make room where it is to go"
        raise Failed(f"{error.filename or file}: {error.strerror}", hint=hint) from error
    if left:
        raise _changed(file, f"{min(left)} is not in it")
    return said


def _packed(folder: Path, target: BinaryIO, said: Mapping[str, Any]) -> bytes:
    """Write the manifest, then each file in the order of their names, to *target*; return the manifest."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(".lock"))
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    files = {name: (path.stat().st_size, digest(path)) for name, path in names.items()}
    manifest = (json.dumps({"form": FORM, **said, "files": files}, indent=1, sort_keys=True) + "\n").encode()
    with tarfile.open(fileobj=target, mode="w:", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(_member(MANIFEST, len(manifest)), BytesIO(manifest))
        for name, path in names.items():
            with path.open("rb") as source:
                tar.addfile(_member(name, files[name][0]), source)
    return manifest


def digest(path: Path) -> str:
    """Return the BLAKE2b digest of a file."""
    found = blake2b(digest_size=32)
    with path.open("rb") as source:
        for chunk in _chunks(source):
            found.update(chunk)
    return found.hexdigest()


def _member(name: str, size: int) -> tarfile.TarInfo:
    """Return the head of a file in the archive, which says nothing of when or by whom it was made."""
    member = tarfile.TarInfo(name)
    member.size, member.mode = size, 0o600
    return member


def _manifest(tar: tarfile.TarFile, file: Path) -> Mapping[str, Any]:
    first = tar.next()
    found = tar.extractfile(first) if first is not None and first.isreg() and first.name == MANIFEST else None
    try:
        said = decode_json(found.read(_LONGEST)) if found is not None else {}
        files = {_inside(name): (int(size), str(digest)) for name, (size, digest) in said["files"].items()}
        if said["form"] == FORM:
            return {**said, "files": files}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise InvalidRequest(f"{file} is no {FORM!r}", hint="name a file that jidomem backup wrote")


def _inside(name: str) -> str:
    """Return the name of a file in the archive; raises ValueError for one that leads out of it."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or path.as_posix() != name or not path.parts:
        raise ValueError(name)
    return name


def _extract(
    tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path, left: dict[str, tuple[int, str]], file: Path
) -> None:
    """Write one file of the archive, and take it out of what is *left*; raises Failed unless it is as it was."""
    source = tar.extractfile(member) if member.isreg() and member.name in left else None
    if source is None:
        raise _changed(file, f"{member.name} does not belong in it")
    size, expected = left.pop(member.name)
    found, target = blake2b(digest_size=32), folder / member.name
    target.parent.mkdir(parents=True, exist_ok=True)
    with source, target.open("xb") as written:
        for chunk in _chunks(source):
            found.update(chunk)
            written.write(chunk)
        if (written.tell(), found.hexdigest()) != (size, expected):
            raise _changed(file, f"{member.name} is not what it was")


def _chunks(source: Any) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _changed(file: Path, what: str) -> Failed:
    return Failed(f"{file} was changed or cut short: {what}; nothing was restored", hint="use another copy of it")
