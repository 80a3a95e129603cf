"""The nesting of brackets in Turtle that others wrote: a parser takes hours for a million in each other."""

from __future__ import annotations

import re

#: How many brackets may stand in each other.
DEEPEST = 100
#: A bracket is group 1; texts in their four forms, IRIs, comments and escaped signs are passed over.
_PIECE = re.compile(
    rb"""
      (<<|>>|[\[\]()])
    | \"{3} (?: [^"\\] | \\. | "{1,2}(?!") )*+ (?: \"{3} | \Z )
    | '{3} (?: [^'\\] | \\. | '{1,2}(?!') )*+ (?: '{3} | \Z )
    | " [^"\\\n]*+ (?: \\. [^"\\\n]*+ )*+ "?
    | ' [^'\\\n]*+ (?: \\. [^'\\\n]*+ )*+ '?
    | < [^<>"\s]*+ >?
    | \# [^\n]*+
    | \\.
    """,
    re.DOTALL | re.VERBOSE,
)
_OPENING = (b"[", b"(", b"<<")


def too_deep(turtle: bytes) -> int | None:
    """Return the line from which on brackets stand in more than DEEPEST others, None where they nowhere do.

    >>> too_deep(b"<urn:a> <urn:b> " + b"[ a " * 1_000)
    1
    >>> too_deep(b'<urn:a> <urn:b> "' + b"[" * 1_000 + b'" .')
    """
    if sum(map(turtle.count, _OPENING)) <= DEEPEST:
        return None
    depth = 0
    for piece in _PIECE.finditer(turtle):
        if piece[1]:
            depth += 1 if piece[1] in _OPENING else -1
            if depth > DEEPEST:
                return turtle.count(b"\n", 0, piece.start()) + 1
    return None
