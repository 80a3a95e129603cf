r"""Regular expressions: our own, compiled at first use, and those from untrusted sources, run by RE2.

RE2 takes a time linear in the text, whatever the pattern. As in Python's `re`, `\d`, `\w` and `\s` match characters of
every script there; `\b` knows ASCII letters only, and `$` matches at the very end only.

>>> compiled(r"^(feat|fix): \w+$").search("fix: Größe") is not None
True
"""

from __future__ import annotations

import re
from functools import partial
from typing import Any, cast


def lazy(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern of Python's `re` that is compiled when it is first used: most processes use few of a module.

    >>> lazy("a+").findall("banana")
    ['a', 'a', 'a']
    """
    return cast("re.Pattern[str]", _UnusedPattern(pattern, flags))


class _UsedPattern:
    """A compiled pattern: an object with its attributes, so that a use costs no more than that of the pattern."""


class _UnusedPattern(_UsedPattern):
    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self._compile = pattern, partial(re.compile, pattern, flags)

    def __getattr__(self, name: str) -> Any:
        pattern = self._compile()
        for each in dir(re.Pattern):
            if not each.startswith("__"):
                setattr(self, each, getattr(pattern, each))
        self.__class__ = _UsedPattern  # type: ignore[assignment]
        return getattr(pattern, name)


MAX_PATTERN_CHARS = 1_000
FLAGS = "ims"
_OUTSIDE = lazy(r"\\.|\[\^?\]?|\{,\d+\}|.", re.DOTALL)
_INSIDE = lazy(r"\\.|\[:\^?\w+:\]|.", re.DOTALL)
_WORD = r"\p{L}\p{N}_"
_SPACE = r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_NO_SPACE = (
    r"\x00-\x08\x0e-\x1b!-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}"
)
_DIGITS = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}"}
#: Python's character classes in the syntax of RE2, outside brackets and inside.
_ESCAPES = _DIGITS | {
    r"\w": f"[{_WORD}]",
    r"\W": f"[^{_WORD}]",
    r"\s": f"[{_SPACE}]",
    r"\S": f"[^{_SPACE}]",
    r"\Z": r"\z",
}
_ESCAPES_IN_CLASS = _DIGITS | {r"\w": _WORD, r"\s": _SPACE, r"\S": _NO_SPACE}
#: The hint for each construct that RE2 lacks, by its error message.
_INSTEAD = (
    (r"operator: \(\?(<?[=!])", "it looks around: say what may stand there, or use a second pattern"),
    (r"sequence: \\[1-9]|operator: \(\?P", "it refers back to a group: write out what the group may be"),
    (r"operator: \(\?\(", "it asks whether a group took part: write the cases with | between them"),
    (r"operator: \(\?>|bad repetition", "write a plain * or + or ?: none ever goes back"),
    (r"operator: \(\?", "leave it out; flags are i, m and s"),
    (r"sequence: \\[uUN]", r"write the sign itself, or its number as \x{e9}"),
    (r"repetition size", "repeat it at most 1,000 times in all, or without end"),
)


class Unsearchable(ValueError):
    """A pattern that RE2 cannot run: the reason, and in `hint` the pattern to use instead."""

    def __init__(self, why: str, hint: str) -> None:
        super().__init__(why)
        self.hint = hint


def compiled(pattern: str, flags: str = "") -> Any:
    """Compile *pattern* with RE2; raises Unsearchable.

    *flags* are any of i (ignore case), m (`^` and `$` match at every line) and s (`.` matches line ends).
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        raise Unsearchable(f"it has more than {MAX_PATTERN_CHARS:,} characters", "split it into several patterns")
    if unknown := set(flags) - set(FLAGS):
        raise Unsearchable(f"there is no flag {min(unknown)!r}", f"flags are of {', '.join(FLAGS)}")
    import re2  # imported here, as most processes use no pattern

    options = re2.Options()
    options.log_errors, options.never_capture = False, True
    written = _to_re2(pattern)
    try:
        return re2.compile(f"(?{flags}){written}" if flags else written, options)
    except (re2.error, UnicodeError) as error:
        message = error.args[0].decode("utf-8", "replace") if isinstance(error, re2.error) else str(error)
        instead = (hint for known, hint in _INSTEAD if re.search(known, message))
        raise Unsearchable(
            message, next(instead, "correct the pattern: https://github.com/google/re2/wiki/Syntax")
        ) from error


def unsearchable(pattern: str) -> Unsearchable | None:
    """Return the reason why *pattern* cannot be run; None if it can."""
    try:
        compiled(pattern)
    except Unsearchable as error:
        return error
    return None


#: Lines that have hardly a character in common.
_LINES = ("import os", "}", "42", "- \u00dcber", "\t;")


def matches_every_line(pattern: str) -> bool:
    """Return whether *pattern* matches lines that have nothing in common; raises Unsearchable.

    >>> [matches_every_line(pattern) for pattern in (".*", "[^ ]", "(print)?", "^$", "[a-z]", "import .*")]
    [True, True, True, False, False, False]
    """
    search = compiled(pattern, "m").search
    return all(search(line.encode()) for line in _LINES)


def _to_re2(pattern: str) -> str:
    parts, at, inside = [], 0, False
    while at < len(pattern):
        match = (_INSIDE if inside else _OUTSIDE).match(pattern, at)
        character, at = match[0], match.end()  # type: ignore[index, union-attr]  # one of them matches any sign
        if character == r"\Q" or (inside and character == r"\W"):
            raise Unsearchable(f"it has {character}{' in brackets' if inside else ''}", "write the characters out")
        if character.startswith("{,"):
            character = f"{{0{character[1:]}"
        parts.append((_ESCAPES_IN_CLASS if inside else _ESCAPES).get(character, character))
        inside = character != "]" if inside else character.startswith("[")
    return "".join(parts)
