"""Memory that is free, given back to the machine."""

from __future__ import annotations

import ctypes
from typing import Any

_LIBRARY: Any = ctypes.CDLL(None)


def give_back() -> None:
    """Let the C library return what it keeps for later, where it can: glibc else holds what a closed store had."""
    if hasattr(_LIBRARY, "malloc_trim"):
        _LIBRARY.malloc_trim(0)
