"""What was done on pages, told on the page that is shown then: under a name nobody guesses, at its address alone."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from threading import Lock

#: So many are remembered.
REMEMBERED = 1_000


class Deeds:
    """The latest deeds of one server."""

    def __init__(self) -> None:
        self._deeds: dict[str, tuple[str, Mapping[str, str]]] = {}
        self._key, self._lock = secrets.token_bytes(32), Lock()

    def keep(self, path: str, said: Mapping[str, str]) -> str:
        """Return the name under which the page at *path* finds what was *said* of a deed; the same for the same."""
        name = blake2b(repr((path, *said.items())).encode(), key=self._key, digest_size=8).hexdigest()
        with self._lock:
            self._deeds[name] = (path, said)
            if len(self._deeds) > REMEMBERED:
                del self._deeds[next(iter(self._deeds))]
        return name

    def told(self, path: str, name: str) -> Mapping[str, str]:
        """Return what was said of the deed *name* to the page at *path*; nothing where it is none, or forgotten."""
        place, said = self._deeds.get(name, ("", {}))
        return said if place == path else {}
