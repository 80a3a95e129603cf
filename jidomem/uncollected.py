"""Where so much is made that is kept that looking through it for garbage would be a good part of the work."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_HELD = Lock()


@contextmanager
def uncollected(wanted: bool = True) -> Iterator[None]:
    """Look for no garbage meanwhile, in any thread, where that is *wanted* and nobody holds it off already.

    Whoever comes while another holds it off goes on as it is: so there is always an end, after which it is made up for.
    """
    if not (wanted and gc.isenabled() and _HELD.acquire(blocking=False)):
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        _HELD.release()
