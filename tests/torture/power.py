"""The possible states after a power cut: record the calls of jidomem.base.disk, and rebuild the folder from parts.

The calls really happen; the log says what a disk knew. A name (made, renamed, unlinked) lasts once its folder is
flushed, bytes last once their file is flushed; until then each may be there, missing or, for bytes, torn or zeroed,
whatever came before or after it.
"""

import os
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path

from jidomem.base import disk

CALLS = ("make_folder", "create", "open_file", "write", "overwrite", "fsync", "flush", "rename", "unlink")


@dataclass(frozen=True)
class Call:
    """One call: names are paths below the base, files go by number, a flush says which line of the journal made it."""

    kind: str  # folder, link, rename, unlink, write, flush, told, foreign
    path: str = ""
    to: str = ""
    file: int = 0
    offset: int = 0
    data: bytes = b""
    site: str = ""
    mtime: int = 0


class Recorder:
    """Wrap the calls of disk.py, perform them, and log those below *base*, which is durable itself."""

    def __init__(self, base, monkeypatch):
        self.base, self.log = Path(base), []
        self.real = {name: getattr(disk, name) for name in CALLS}
        self._numbers, self._open, self._next = {}, {}, 1
        for name in CALLS:
            monkeypatch.setattr(disk, name, getattr(self, name))
        keep_place(monkeypatch)

    def told(self, *ids):
        """Record that these commits were acknowledged."""
        self.log += [Call("told", commit) for commit in ids]

    def foreign(self):
        """Record that another program writes without flush: no cut is tried until the next receipt."""
        self.log.append(Call("foreign"))

    def _add(self, kind, path, **more):
        below = os.path.relpath(path, self.base)
        if not below.startswith(".."):
            folder = os.path.dirname(path)
            mtime = os.stat(folder).st_mtime_ns if kind in ("folder", "link", "rename", "unlink") else 0
            self.log.append(Call(kind, below, mtime=mtime, **more))

    def _file(self, path, *, new=False):
        if new or path not in self._numbers:
            self._numbers[path], self._next = self._next, self._next + 1
            self._add("link", path, file=self._numbers[path])
        return self._numbers[path]

    def make_folder(self, path):
        fresh = not os.path.exists(path)
        self.real["make_folder"](path)
        if fresh:
            self._add("folder", path)

    def create(self, path):
        descriptor = self.real["create"](path)
        self._open[descriptor] = [path, self._file(path, new=True), 0]
        return descriptor

    def open_file(self, path):
        descriptor = self.real["open_file"](path)
        self._open[descriptor] = [path, self._file(path), 0]
        return descriptor

    def write(self, descriptor, data):
        self.real["write"](descriptor, data)
        path, number, offset = self._open[descriptor]
        self._add("write", path, file=number, offset=offset, data=bytes(data))
        self._open[descriptor][2] += len(data)

    def overwrite(self, descriptor, data):
        self.real["overwrite"](descriptor, data)
        path, number, _ = self._open[descriptor]
        self._add("write", path, file=number, data=bytes(data))

    def fsync(self, descriptor):
        self.real["fsync"](descriptor)
        path, number, _ = self._open[descriptor]
        self._add("flush", path, file=number, site=_site())

    def flush(self, path):
        self.real["flush"](path)
        number = 0 if os.path.isdir(path) else self._file(path)
        self._add("flush", path, file=number, site=_site())

    def rename(self, source, target):
        self.real["rename"](source, target)
        number = self._numbers[target] = self._numbers.pop(source)
        self._add("rename", source, to=os.path.relpath(target, self.base), file=number)

    def unlink(self, path):
        self.real["unlink"](path)
        self._numbers.pop(path, None)
        self._add("unlink", path)


def keep_place(monkeypatch):
    """Give the folder after a cut the identity of the one before, so that its lock file is accepted."""
    monkeypatch.setattr(disk, "file_place", lambda path: "this disk")
    monkeypatch.setattr(disk, "ensure_local_marker", lambda path: None)


def _site():
    frame = sys._getframe(2)
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


@dataclass
class Disk:
    """The certain and the possible content of a disk: filled by replaying calls."""

    names: dict = field(default_factory=lambda: {"": {}})  # folder -> name -> file number, 0 for a folder
    times: dict = field(default_factory=dict)
    content: dict = field(default_factory=dict)  # file number -> bytes
    moves: list = field(default_factory=list)  # calls on names that no flush has covered yet
    writes: dict = field(default_factory=dict)  # file number -> writes that no flush has covered yet

    def replay(self, call):
        if call.kind in ("folder", "link", "rename", "unlink"):
            self.moves.append(call)
        elif call.kind == "write":
            self.writes.setdefault(call.file, []).append(call)
        elif call.kind == "flush" and call.file:
            self.content[call.file] = _written(self.content.get(call.file, b""), self.writes.pop(call.file, ()))
        elif call.kind == "flush":
            folder = "" if call.path == "." else call.path
            for move in [move for move in self.moves if os.path.dirname(move.path) == folder]:
                self.moves.remove(move)
                _move(self.names, self.times, move)

    def image(self, keep_move, keep_writes):
        """Return the folder after a cut: path -> bytes, None for a folder; and the times of folders.

        *keep_move* says of a move whether it lasted; *keep_writes* gives the bytes of a file from its number, what it
        surely held, and its writes.
        """
        names, times = {folder: dict(held) for folder, held in self.names.items()}, dict(self.times)
        for move in self.moves:
            if keep_move(move):
                _move(names, times, move)
        tree, folders = {}, [""]
        while folders:
            folder = folders.pop()
            for name, number in names.get(folder, {}).items():
                path = os.path.join(folder, name)
                if number == 0:
                    tree[path] = None
                    folders.append(path)
                else:
                    tree[path] = keep_writes(number, self.content.get(number, b""), self.writes.get(number, []))
        return tree, {folder: time for folder, time in times.items() if folder in tree}


def _move(names, times, call):
    folder, name = os.path.split(call.path)
    held = names.setdefault(folder, {})
    if call.kind == "folder":
        held[name] = 0
    elif call.kind == "link":
        held[name] = call.file
    elif call.kind == "unlink":
        held.pop(name, None)
    else:  # the new name is of the file that was renamed, whatever the old one still stood for on the disk
        held.pop(name, None)
        held[os.path.basename(call.to)] = call.file
    times[folder] = max(times.get(folder, 0), call.mtime)


def _written(content, writes):
    for call in writes:
        content = content[: call.offset].ljust(call.offset, b"\0") + call.data + content[call.offset + len(call.data) :]
    return content


def _torn(content, writes, chance, zeroed):
    """The content with the last write in part; the rest is unchanged or zeros."""
    *before, last = writes
    cut = chance.randrange(len(last.data)) if last.data else 0
    rest = b"\0" * (len(last.data) - cut) if zeroed else b""
    torn = Call("write", offset=last.offset, data=last.data[:cut] + rest)
    return _written(_written(content, before), [torn])


def images(state, chance, randoms=3):
    """Yield possible states after a cut: all or none of the pending calls, one alone, all but one, torn, and random."""

    def whole(number, content, writes):
        return _written(content, writes)

    def nothing(number, content, writes):
        return content

    def torn(number, content, writes):
        return _torn(content, writes, chance, chance.random() < 0.5) if writes else content

    def any_of(number, content, writes):
        lasting = [call for call in writes if chance.random() < 0.5]
        return torn(number, content, lasting) if chance.random() < 0.5 else _written(content, lasting)

    for keep_writes in (whole, nothing, torn):
        yield state.image(lambda move: True, keep_writes)
    yield state.image(lambda move: False, nothing)
    for one in state.moves:
        yield state.image(lambda move, one=one: move is one, whole)
        yield state.image(lambda move, one=one: move is not one, whole)
    for one in state.writes:
        yield state.image(lambda move: True, lambda n, c, w, one=one: c if n == one else _written(c, w))
    for _ in range(randoms if state.moves or state.writes else 0):
        yield state.image(lambda move: chance.random() < 0.5, any_of)


def every_image(log, seed, randoms=3):
    """Yield (number of calls, acknowledged commits, folder, times) for a cut after each of the calls."""
    state, acknowledged, seen, chance, foreign = Disk(), [], set(), random.Random(seed), False
    for number, call in enumerate(log, 1):
        state.replay(call)
        if call.kind == "told":
            acknowledged.append(call.path)
        foreign = (foreign or call.kind == "foreign") and call.kind != "told"
        for tree, times in () if foreign else images(state, chance, randoms):
            key = hash(
                (tuple(sorted(tree.items(), key=lambda item: item[0])), tuple(sorted(times.items())), len(acknowledged))
            )
            if key not in seen:
                seen.add(key)
                yield number, list(acknowledged), tree, times


def restore(folder, tree, times):
    """Write the state after a cut to *folder*."""
    for path in sorted(tree):
        target = folder / path
        if tree[path] is None:
            target.mkdir()
        else:
            target.write_bytes(tree[path])
    for path, time in times.items():
        os.utime(folder / path, ns=(time, time))
