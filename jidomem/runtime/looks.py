"""One thing an operator would look at: what was found, how bad it is, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from jidomem.errors import JidomemError

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Look:
    """What was found of the thing *name*: `fail` where jidomem cannot do its work, `warn` where it soon may not."""

    name: str
    level: Level
    detail: str
    hint: str = ""

    def to_dict(self) -> dict[str, str]:
        """Return the look as plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


def looked(name: str, look: Callable[[], Iterable[Look]]) -> Iterator[Look]:
    """Yield what *look* finds; where it cannot look, that is what is found."""
    try:
        yield from look()
    except JidomemError as error:
        yield Look(name, "fail", error.detail, error.hint)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        yield Look(name, "fail", f"{where}{error.strerror or error}", "let this user read it, and look again")
