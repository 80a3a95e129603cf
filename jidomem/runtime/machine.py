"""What doctor looks at of the machine: Python and packages, the disk, its file system, and the port to serve at."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from jidomem.runtime.looks import Level, Look

#: Bytes that are free: below the first nothing may be written soon, below the second it is time to look after it.
_LEAST, _FEW = 64 * 1024**2, 1024**3
_INODES = 1_000
#: File systems on which another machine may write, too, and whose locks may hold on this one alone.
_NETWORK = frozenset(("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "fuse.sshfs", "lustre"))
_SECONDS = 2.0


def programs() -> Iterator[Look]:
    """Yield the versions of Python, jidomem and what it needs, and which extras are there."""
    own = version("jidomem")
    yield Look("python", "ok", f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")
    needed, extras = list[str](), dict[str, list[str]]()
    for each in requires("jidomem") or ():
        name = re.match(r"[A-Za-z0-9._-]+", each)
        extra = re.search(r"extra == [\"']([^\"']+)", each)
        if name is not None:
            (extras.setdefault(extra[1], []) if extra else needed).append(name[0])
    found = {each: _installed(each) for each in needed}
    missing = [each for each, at in found.items() if at is None]
    there = ", ".join(f"{each} {at}" for each, at in found.items() if at)
    if missing:
        yield Look("packages", "fail", f"missing: {', '.join(missing)}", "pip install --force-reinstall jidomem")
    else:
        yield Look("packages", "ok", f"jidomem {own}, {there}")
    for each in sorted(extras.keys() - {"test", "bench"}):
        lacking = [one for one in extras[each] if _installed(one) is None]
        said = f"[{each}] is not installed: pip install 'jidomem[{each}]'" if lacking else f"[{each}] is installed"
        yield Look("extras", "ok", said)


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def disk(root: Path) -> Iterator[Look]:
    """Yield how much can still be written where *root* is."""
    free, names = shutil.disk_usage(root).free, os.statvfs(root)
    level: Level = "fail" if free < _LEAST else "warn" if free < _FEW else "ok"
    yield Look("disk", level, f"{free:,} bytes are free", "" if level == "ok" else f"make room: du -sh {root}/*")
    if names.f_files and names.f_favail < _INODES:
        yield Look("disk", "warn", f"room for {names.f_favail} more files", "make room: remove files on that disk")


def file_system(root: Path) -> Iterator[Look]:
    """Yield whether the file system of *root* does what a journal needs; it is asked, and nothing is written."""
    kind = _kind(root)
    if kind in _NETWORK:
        yield Look("file system", "warn", f"{kind}, a file system of the network: its locks and flushes may not hold",
                   "keep the root on a disk of this machine, and serve it: jidomem serve")  # fmt: skip
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.fsync(descriptor)
    except OSError as error:
        yield Look("file system", "fail", f"{kind} cannot lock and flush: {error.strerror}", "keep the root elsewhere")
        return
    finally:
        os.close(descriptor)
    if os.pathconf(root, "PC_LINK_MAX") < 2:
        yield Look("file system", "warn", f"{kind} has no hard links: every process reads the whole journal",
                   "keep a large root on another file system")  # fmt: skip
    elif kind not in _NETWORK:
        yield Look("file system", "ok", f"{kind}: locks, flushes and hard links")


def _kind(path: Path) -> str:
    """Return the name of the file system *path* is on."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines():
        said, _, of = line.partition(" - ")
        at = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), said.split()[4])
        if len(at) >= len(best) and path.is_relative_to(at):
            best, kind = at, of.split()[0]
    return kind


def port(host: str, number: int) -> Iterator[Look]:
    """Yield whether `jidomem serve` may listen at a port, or does so."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((host, number))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                yield Look("port", "warn", f"{host}:{number} cannot be served: {error.strerror}", "give another --host")
            elif _serves(host, number):
                yield Look("port", "ok", f"{host}:{number} is served by jidomem")
            else:
                yield Look("port", "warn", f"something else listens at {host}:{number}",
                           "give another one: jidomem serve --port 0")  # fmt: skip
        else:
            yield Look("port", "ok", f"{host}:{number} is free")


def _serves(host: str, number: int) -> bool:
    """Return whether what listens there answers as jidomem does."""
    asked = HTTPConnection(host, number, timeout=_SECONDS)
    try:
        asked.request("GET", "/healthz", headers={"Host": "localhost"})
        answer = asked.getresponse()
        return "X-Request-Id" in answer.headers and json.loads(answer.read(1_000)) == {"status": "ok"}
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        asked.close()
