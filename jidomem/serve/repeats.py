"""What forms have done: one that is sent twice, as by an impatient hand, does nothing twice and is told the same."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from threading import Lock

from jidomem.errors import JidomemError

#: So many are remembered; and what is answered to who asks for what is done already.
REMEMBERED = 1_000
_DONE_ALREADY = (400, 404, 409)


class _Deed:
    """Something that is done once; `told` is what came of it, None until it is done."""

    __slots__ = ("lock", "told")

    def __init__(self) -> None:
        self.lock = Lock()
        self.told: str | None = None


class Repeats:
    """The latest deeds of one server."""

    def __init__(self) -> None:
        self._deeds: dict[Hashable, _Deed] = {}
        self._lock = Lock()

    def once(self, key: Hashable, do: Callable[[], str]) -> str:
        """Return what *do* returns; where it is refused and was done before under the same *key*, what came of it then.

        Whoever comes with the same key meanwhile waits. Raises what *do* raises where it was not done before.
        """
        with self._lock:
            deed = self._deeds.pop(key, None) or _Deed()
            self._deeds[key] = deed
            if len(self._deeds) > REMEMBERED:
                del self._deeds[next(iter(self._deeds))]
        with deed.lock:
            try:
                deed.told = do()
            except JidomemError as error:
                if deed.told is None or error.http_status not in _DONE_ALREADY:
                    raise
            return deed.told
