"""Messages between the server and its children: a length, then as many bytes."""

from __future__ import annotations

import os
import select
from time import monotonic

_HEAD = 8


class Ended(Exception):
    """The other side has closed its end, or died."""


class Late(Exception):
    """The other side has not answered in time."""


def send(descriptor: int, data: bytes) -> None:
    """Write one message; raises Ended when nobody reads it any more."""
    view = memoryview(len(data).to_bytes(_HEAD, "big") + data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Ended from error


def receive(descriptor: int, seconds: float | None = None) -> bytes:
    """Return one message; raises Late after *seconds*, and Ended when there will be none."""
    deadline = None if seconds is None else monotonic() + seconds
    size = int.from_bytes(_exactly(descriptor, _HEAD, deadline), "big")
    return _exactly(descriptor, size, deadline)


def _exactly(descriptor: int, size: int, deadline: float | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        if deadline is not None and not _readable(descriptor, deadline - monotonic()):
            raise Late
        piece = os.read(descriptor, min(size - len(found), 1 << 20))
        if not piece:
            raise Ended
        found += piece
    return bytes(found)


def _readable(descriptor: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(max(0.0, seconds) * 1000))
