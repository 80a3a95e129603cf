"""Text of others as quoted data: one line that nothing in it can end.  Pure."""

from __future__ import annotations

import json
import re

from jidomem.excerpt import cut

#: Bytes of UTF-8 that are counted as one token; English prose has about four, code and ids about three.
BYTES_A_TOKEN = 3
_FENCES = re.compile(r"`{3,}|~{3,}")


def tokens(text: str) -> int:
    """Return how many tokens *text* is counted as: one for every three bytes of UTF-8, rounded up.

    >>> tokens("four"), tokens("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def quoted(text: str, longest: int, *, blanks: bool = False) -> tuple[str, bool]:
    r"""Return *text* between quotation marks on one line, and whether it was cut to *longest* characters.

    What is no printable sign is written as a number, so that it can neither begin a line nor hide; a fence is none any
    more. White space is one blank, unless *blanks* are to be shown as they are, as those of a pattern.

    >>> quoted('say "hi"\n```', 100)
    ('"say \\"hi\\" \'\'\'"', False)
    >>> quoted("^puts ", 100, blanks=True)
    ('"^puts "', False)
    """
    kept, is_cut = cut(text, longest, blanks=blanks)
    plain = _FENCES.sub(lambda match: "'" * len(match[0]), kept)
    body = json.dumps(plain, ensure_ascii=False)[1:-1]
    shown = body if body.isprintable() else "".join(s if s.isprintable() else _numbered(s) for s in body)
    return f'"{shown}"', is_cut


def visible(text: str) -> str:
    r"""Return *text* with what is no printable sign written as JSON writes it; line ends stay.

    >>> visible("a\u202eb\n")
    'a\\u202eb\n'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in text)


def _numbered(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
