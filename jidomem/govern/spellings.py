"""Spellings of a text: the forms in which a name, an IRI, a file or an encoded value may hold it.  Pure."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

from jidomem.words import normal_text

#: A text of so many characters is looked for inside others, and across the ends of lines.
LONG = 8
AS_IT_IS = "as it is"
OTHER_FORM = "in other case, white space or Unicode form"
ESCAPED = "escaped"
PERCENT_ENCODED = "percent-encoded"
OVER_LINE_ENDS = "over line ends"
IN_A_NAME = "with the separators of a name"
OTHER_SEPARATORS = "with other separators"
#: Characters that are not seen: soft hyphen, zero-width spaces and joiners, byte order mark.
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_LINE_END = re.compile(r"[ \t]*-?[ \t]*\r?\n[ \t>|#*/]*")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_TOKEN = re.compile(r"[^\W_]+")
_WORD = re.compile("[a-z0-9]+")
#: What stands between the tokens of a name, and between the digits of a number; how many of them may.
_OF_NAMES, _OF_NUMBERS = r"[-._~+/:]", r"[\s().\-\u2010-\u2015/_+\u00b7]"
_FEWEST_DIGITS, _MOST_LETTERS = 7, 4
_NESTED = 3


@dataclass(frozen=True, slots=True)
class Spelling:
    """A text to be found in any of its forms; a short one *as_word* is not found within another word."""

    text: str
    as_word: bool = False
    word: str = field(init=False)  # its longest word: nothing but other separators stands without it
    _patterns: tuple[tuple[str, re.Pattern[str]], ...] = field(init=False)

    def __post_init__(self) -> None:
        folded = fold(self.text)
        object.__setattr__(self, "word", max(_WORD.findall(folded), key=len, default=""))
        object.__setattr__(self, "_patterns", tuple(_patterns(folded, self.as_word and len(self.text) < LONG)))

    def form_in(self, variants: Iterable[tuple[str, str]]) -> str | None:
        """Return in which form the text stands in what has these `variants`, None where it does not."""
        for of_variant, other in variants:
            for of_pattern, pattern in self._patterns:
                if pattern.search(other):
                    plainly = OTHER_FORM if of_variant == AS_IT_IS else of_variant
                    return of_pattern or plainly
        return None

    def may_stand_in(self, variants: Iterable[tuple[str, str]]) -> bool:
        """Return whether a document of these `variants` is worth a closer look."""
        numbers = [pattern for form, pattern in self._patterns if form == OTHER_SEPARATORS]
        return any(self.word in other or any(each.search(other) for each in numbers) for _, other in variants)


def fold(text: str) -> str:
    r"""Return *text* as texts are compared: in one case, Unicode form and white space, without what is not seen.

    >>> fold("Mu\u0308ller\u00a0 &\u200b Co")
    'müller & co'
    """
    return normal_text(text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_UNSEEN)))


def variants(text: str) -> Iterator[tuple[str, str]]:
    """Yield what *text* says, folded, with the form in which it says that: decoded, and with its lines joined."""
    yield AS_IT_IS, fold(text)
    decoded = text
    for _ in range(_NESTED):
        before, form = decoded, ""
        if "%" in decoded:
            decoded, form = unquote(decoded), PERCENT_ENCODED
            if "+" in before:
                yield form, fold(unquote(before.replace("+", " ")))
        if "\\" in decoded or "&" in decoded:
            decoded, form = html.unescape(_unescaped(decoded)), form or ESCAPED
        if decoded == before:
            break
        yield form, fold(decoded)
    if "\n" in decoded:
        for between in ("", " "):
            yield OVER_LINE_ENDS, fold(_LINE_END.sub(between, decoded))


def form_of(text: str, given: Iterable[Spelling]) -> str | None:
    """Return in which form one of the texts *given* stands in *text*, None where none does."""
    held = None
    for each in given:
        if each.text in text and each.form_in([(AS_IT_IS, fold(text))]):
            return AS_IT_IS
        held = held or [*variants(text)]
        if (form := each.form_in(held)) is not None:
            return form
    return None


def _patterns(folded: str, as_word: bool) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Yield the patterns of a folded text, each with the form that it shows; "" for the text itself."""
    if not folded:
        return
    tokens = _TOKEN.findall(folded)
    bare = "".join(tokens)
    letters = sum(map(str.isalpha, bare))
    is_number = len(bare) - letters >= _FEWEST_DIGITS and letters <= _MOST_LETTERS
    within = r"[^\W_]" if as_word else r"\d" if is_number or folded.isdigit() else r"(?!)"
    yield "", re.compile(rf"(?<!{within}){re.escape(folded)}(?!{within})")
    if is_number:
        prefix = "(?:00)?" if folded.startswith("+") else ""
        between = f"{_OF_NUMBERS}{{0,5}}+"
        yield OTHER_SEPARATORS, re.compile(rf"(?<![^\W_]){prefix}{between.join(bare)}(?![^\W_])")
    if len(tokens) > 1:
        between = f"{_OF_NAMES}{{{0 if len(bare) >= LONG else 1},3}}"
        yield IN_A_NAME, re.compile(rf"(?<![^\W_]){between.join(map(re.escape, tokens))}(?![^\W_])")


def _unescaped(text: str) -> str:
    """Return *text* with the escapes of JSON and Turtle read."""
    found = _ESCAPE.sub(lambda sign: chr(min(int(sign[1] or sign[2], 16), 0x10FFFF)) if sign[1] or sign[2]
                        else _PLAIN.get(sign[3], sign[3]), text)  # fmt: skip
    return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
