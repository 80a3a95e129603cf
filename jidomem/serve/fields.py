"""Fields as a query string and a form have them, read strictly: nothing that cannot be read is guessed or left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from urllib.parse import unquote_to_bytes

from jidomem.errors import InvalidRequest

_WRONG = re.compile(rb"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)


def check(data: bytes, what: str) -> None:
    """Raise InvalidRequest unless *data*, which *what* names, is percent-encoded UTF-8."""
    if wrong := _WRONG.search(data):
        raise InvalidRequest(
            f"{what} has {wrong[0].decode('latin-1')!r} at byte {wrong.start()}, and a percent sign is followed by two"
            " hexadecimal digits",
            hint="write a percent sign as %25",
        )
    try:
        unquote_to_bytes(data).decode()
    except UnicodeDecodeError:
        raise InvalidRequest(f"{what} is not UTF-8", hint="percent-encode the bytes of UTF-8: %C3%A9 for é") from None


def read(data: bytes, what: str) -> dict[str, list[str]]:
    """Return the values of each name, in their order; raises InvalidRequest for what `check` refuses."""
    check(data, what)
    found: dict[str, list[str]] = {}
    for piece in filter(None, data.replace(b"+", b" ").split(b"&")):
        name, _, value = (unquote_to_bytes(part).decode() for part in piece.partition(b"="))
        found.setdefault(name, []).append(value)
    return found


def once(found: Mapping[str, Sequence[str]], several: Collection[str] = ()) -> None:
    """Raise InvalidRequest for a name that stands more than once, and is none of *several*."""
    for name, values in found.items():
        if len(values) > 1 and name not in several:
            raise InvalidRequest(f"{name} is given {len(values)} times", hint=f"give {name} once")
