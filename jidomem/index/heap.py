"""What the C library may keep of the memory that a store on disk has freed."""

from __future__ import annotations

import ctypes
from typing import Any

_LIBRARY: Any = ctypes.CDLL(None)
_TRIM_THRESHOLD = -1  # M_TRIM_THRESHOLD of glibc's malloc.h
KEPT = 1_000_000


def keep_little() -> None:
    """Let glibc give free memory back from KEPT bytes on: it else learns from large pieces to keep 64 MB a thread."""
    if hasattr(_LIBRARY, "mallopt"):
        _LIBRARY.mallopt(_TRIM_THRESHOLD, KEPT)
