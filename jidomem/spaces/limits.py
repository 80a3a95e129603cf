"""Limits a memory may be given: how many spaces, how large one, how long a key is kept. None by itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from jidomem.errors import InvalidRequest, TooLarge
from jidomem.spaces.names import RESERVED_SPACES

#: Where the metadata of a memory keeps its limits, and that of a space the moments its transient keys end.
LIMITS_KEY = "jido.limits"
EXPIRES_KEY = "jido.expires_at"


@dataclass(frozen=True, slots=True)
class Limits:
    """How many custom spaces a memory may have, and how many bytes of JSON each of its spaces; None is no limit."""

    max_spaces: int | None = None
    max_space_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is not None and (type(value) is not int or value < 0):
                detail = f"{name} is a whole number from 0, or None for no limit, not {value!r}"
                raise InvalidRequest(detail, hint=f"pass {name}=100, or leave it out")

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Limits | None:
        """Return the limits that the metadata of a memory states, or None; raise `InvalidRequest` for what is none."""
        if LIMITS_KEY not in metadata:
            return None
        stated = metadata[LIMITS_KEY]
        if not isinstance(stated, Mapping) or stated.keys() - {"max_spaces", "max_space_bytes"}:
            raise InvalidRequest(
                f"{LIMITS_KEY!r} holds max_spaces and max_space_bytes, not {stated!r:.200}",
                hint="set limits with memory.limited(Limits(...))",
            )
        return cls(**stated)

    def stated(self) -> dict[str, int]:
        """Return the limits that are set, as metadata states them."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def refuse_space(self, name: str, names: Iterable[str]) -> None:
        """Raise `TooLarge` unless a memory with *names* may have *name* too."""
        customs = [held for held in names if held not in RESERVED_SPACES]
        if self.max_spaces is not None and name not in RESERVED_SPACES and len(customs) >= self.max_spaces:
            raise TooLarge(
                f"a space {name!r} would be one more than the {self.max_spaces} custom spaces this memory may have",
                hint="delete one with space_delete, keep it as a key of the world, or set other limits",
            )

    def refuse_size(self, name: str, after: object, *before: object) -> None:
        """Raise `TooLarge` unless the data of a space fits, or takes less than what it had before."""
        if self.max_space_bytes is None:
            return
        size = size_of(after)
        if size > self.max_space_bytes and size > sum(map(size_of, before)):
            raise TooLarge(
                f"space {name!r} would hold {size} bytes, more than the {self.max_space_bytes} it may",
                hint="keep a summary and a pointer to the rest, delete what is no longer needed, or set other limits",
            )


def size_of(data: object) -> int:
    """Return the bytes of *data* written as JSON; what has no such form counts as it is shown.

    >>> size_of({"a": [1, 2]})
    11
    """
    try:
        text = json.dumps(data, ensure_ascii=False, default=repr, separators=(",", ":"))
    except TypeError:  # keys of a kind JSON has none of
        text = repr(data)
    return len(text.encode("utf-8", "surrogatepass"))


def lapsed(metadata: Mapping[str, Any], now: int) -> list[Any]:
    """Return the keys of a space whose time is up at *now*."""
    return [key for key, end in metadata.get(EXPIRES_KEY, {}).items() if end <= now]


def expiring(metadata: Mapping[str, Any], key: Any, end: int | None) -> Mapping[str, Any]:
    """Return the metadata of a space in which *key* ends at *end*; with None it does not end."""
    ends = {held: moment for held, moment in metadata.get(EXPIRES_KEY, {}).items() if held != key}
    return _ending(metadata, ends if end is None else {**ends, key: end})


def kept(metadata: Mapping[str, Any], before: Any, after: Any) -> Mapping[str, Any]:
    """Return the metadata of a space whose data was *before*: a key that is gone or has another value ends no more."""
    if EXPIRES_KEY not in metadata:
        return metadata
    ends = metadata[EXPIRES_KEY].items()
    return _ending(metadata, {key: end for key, end in ends if key in after and after[key] is before.get(key)})


def refuse_ends(metadata: Mapping[str, Any], data: Any) -> None:
    """Raise `InvalidRequest` unless the ends that the metadata of a space states are moments of keys."""
    ends = metadata.get(EXPIRES_KEY, {})
    timed = isinstance(ends, Mapping) and all(type(end) is int for end in ends.values())
    if not timed or (ends and not isinstance(data, Mapping)):
        raise InvalidRequest(
            f"{EXPIRES_KEY!r} in the metadata of a map space holds a moment in milliseconds for each key that ends,"
            f" not {ends!r:.200}",
            hint="leave it to put_in_space(..., ttl_ms=...)",
        )


def _ending(metadata: Mapping[str, Any], ends: Mapping[Any, int]) -> Mapping[str, Any]:
    others = {name: value for name, value in metadata.items() if name != EXPIRES_KEY}
    return {**others, EXPIRES_KEY: ends} if ends else others
