"""Messages between the server and its children: a length, then as many bytes."""

from __future__ import annotations

import os
import select
from time import monotonic

_HEAD = 8
#: What tells that the other end of a connection is closed; elsewhere than on Linux both ends have to be.
_HUNG_UP = getattr(select, "POLLRDHUP", 0)


class Ended(Exception):
    """The other side has closed its end, or died."""


class Late(Exception):
    """The other side has not answered in time."""


class Left(Exception):
    """Who asked has hung up, and nobody waits for the answer."""


def send(descriptor: int, data: bytes) -> None:
    """Write one message; raises Ended when nobody reads it any more."""
    view = memoryview(len(data).to_bytes(_HEAD, "big") + data)
    try:
        while view:
            view = view[os.write(descriptor, view) :]
    except OSError as error:
        raise Ended from error


def receive(descriptor: int, seconds: float | None = None, asker: int | None = None) -> bytes:
    """Return one message; raises Late after *seconds*, Ended when there will be none, and what `wait` does."""
    deadline = None if seconds is None else monotonic() + seconds
    size = int.from_bytes(_exactly(descriptor, _HEAD, deadline, asker), "big")
    return _exactly(descriptor, size, deadline, asker)


def _exactly(descriptor: int, size: int, deadline: float | None, asker: int | None) -> bytes:
    found = bytearray()
    while len(found) < size:
        if deadline is not None:
            wait(descriptor, deadline, asker)
        piece = os.read(descriptor, min(size - len(found), 1 << 20))
        if not piece:
            raise Ended
        found += piece
    return bytes(found)


def wait(descriptor: int, deadline: float, asker: int | None = None) -> None:
    """Return when something came, or will never come; raises Late at the *deadline*.

    Raises Left where *asker*, the connection of who asked, is closed at its other end.
    """
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    if asker is not None:
        poll.register(asker, _HUNG_UP)
    ready = {found for found, _ in poll.poll(max(0.0, deadline - monotonic()) * 1000)}
    if descriptor not in ready:
        raise Left if ready else Late


def has_left(asker: int) -> bool:
    """Return whether the connection *asker* is closed at its other end."""
    poll = select.poll()
    poll.register(asker, _HUNG_UP)
    return bool(poll.poll(0))
