"""What is true of derived files that were made here, and of none that came with a clone and says what it likes.

A file is known by its number on this disk and by when it was last changed, to the nanosecond. The system sets both, and
no checkout, archive or copy can choose them: so whatever names those of the file `here` was written beside it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from jidomem import ownership

_FILE = "here"


def place(folder: Path | str, file: str = _FILE) -> str:
    """Return what is to be said by all that is written in *folder*; nothing, where nothing was written yet."""
    with suppress(OSError):
        status = os.stat(os.path.join(folder, file), follow_symlinks=False)
        return f"{status.st_ino}-{status.st_ctime_ns}"
    return ""


def settle(folder: Path | str, file: str = _FILE) -> str:
    """Return what is to be said by what is written now in *folder*; raises OSError where nothing can be."""
    os.close(ownership.open_file(os.path.join(folder, file), os.O_RDONLY | os.O_NONBLOCK))
    return place(folder, file)


def number(place: str) -> int:
    """Return *place* as a number of 31 bits, for files that have room for no more."""
    return int.from_bytes(blake2b(place.encode(), digest_size=4).digest(), "big") >> 1
