"""Fields as a query string and a form have them, read strictly: nothing that cannot be read is guessed or left out."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

from werkzeug.datastructures import MultiDict

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


def read(data: bytes, what: str) -> MultiDict[str, str]:
    """Return the values of each name, in their order; raises InvalidRequest for what `check` refuses."""
    check(data, what)
    pieces = filter(None, data.replace(b"+", b" ").split(b"&"))
    pairs = ((unquote_to_bytes(part).decode() for part in piece.partition(b"=")[::2]) for piece in pieces)
    return MultiDict([(name, value) for name, value in pairs])
