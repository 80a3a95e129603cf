"""The id of a request: the one its sender gave it, in a form that cannot break a line, or one of ours."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

HEADER = "X-Request-Id"
_GIVEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/=+@-]{0,127}")
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")


#: Seeded by the system; nobody gains by guessing an id.
_RANDOM = Random()


def id_of(environ: Mapping[str, Any]) -> str:
    """Return the X-Request-Id of a request, else the trace id of its traceparent, else a new id.

    A header of another form counts as none.

    >>> id_of({"HTTP_X_REQUEST_ID": "build-7"})
    'build-7'
    """
    given = environ.get("HTTP_X_REQUEST_ID")
    if given is not None and _GIVEN.fullmatch(given):
        return str(given)
    trace = environ.get("HTTP_TRACEPARENT")
    if trace is not None and (match := _TRACE.fullmatch(trace)):
        return match[1]
    return f"{_RANDOM.getrandbits(128):032x}"
