"""The words of texts: search words, excerpts, quotations and pieces. Pure."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

from jidomem.base.regex import lazy

#: The most characters of a word: a longer run of letters is cut, a longer name is found by its parts only.
LONGEST = 100
_LITTLE = """
a about after all also am an and any are as at be because been before being but by can could did do does doing done
during each for from further had has have having he her here hers him his how i if in into is it its itself just let me
more most my no nor not of on once only or other our ours out over own please same shall she should so some such than
that the their theirs them then there these they this those through to too under until up us use used using very was we
were what when where which while who whom whose why will with would you your yours
"""
#: English words that say little about the subject of a text, even where few texts have them.
TELL_LITTLE = frozenset(_LITTLE.split())
# Characters of a word besides letters and digits: the vowel marks of many scripts.
_SIGN = "(?:[^\\W_]|[\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u109f])"
_NAME = lazy(f"{_SIGN}+(?:[_.\\-/\\\\:]+{_SIGN}+)*")
_PLACES, _PIECES, _LINKS = lazy(r"[/\\:]+"), lazy(r"[/\\:.\-]+"), lazy(r"[_.\-/\\:]+")
_HUMPS = lazy(r"[0-9]+|[A-Z]{2,}s(?![^A-Z0-9])|[A-Z]+(?![^A-Z0-9])|[A-Z]?[^A-Z0-9]+")
_ACCENTS = dict.fromkeys(range(0x300, 0x370))
#: The separators in a topic: white space, underscores, and the dashes and hyphens of Unicode.
_LINK = r"[-\s_\u00ad\u2010-\u2015\u2212]"
_TOPIC_LINKS, _LINKS_AFTER_DIGIT = lazy(f"{_LINK}+"), lazy(rf"(?<=[0-9]){_LINK}+(?!{_LINK}|\Z)")
#: The characters of scripts without spaces between words, and Hangul, whose words have many endings.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
_UNSPACED = lazy(f"[{UNSPACED}]+")
#: Invisible marks: names that differ only in these look the same.
_UNSEEN = frozenset("\u034f\u180b\u180c\u180d\u180f") | {*map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))}


def words(text: str) -> Iterator[str]:
    """Yield the words of *text* in order; a name or path is followed by its parts.

    >>> list(words("Café: move IndexStore"))
    ['cafe', 'move', 'indexstore', 'index', 'store']
    >>> list(words("src/text_file.py"))
    ['srctextfilepy', 'textfilepy', 'textfile', 'src', 'text', 'file', 'py']
    """
    for name in names(text):
        yield from words_of(name)


def names(text: str) -> list[str]:
    """Return the words, identifiers and paths in *text*, as separated by spaces and other characters."""
    return _NAME.findall(_folded(text))


def words_of(name: str) -> Iterator[str]:
    """Yield a name of `names`, its path segments and pieces that have several parts, and its parts."""
    parts = _parts(name)
    if len(parts) > 1:
        pieces = dict.fromkeys((name, *_PLACES.split(name), *_PIECES.split(name)))
        for whole in dict.fromkeys(map(_joined, pieces)):
            if whole and len(whole) <= LONGEST:
                yield whole
    for part in parts:
        yield from _grams(part[:LONGEST])


def _folded(text: str) -> str:
    """Return *text* in compatibility form without the accents of Latin, Greek and Cyrillic letters; case is kept."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKD", text).translate(_ACCENTS))


def _joined(piece: str) -> str:
    """Return a piece of several parts as one word, whatever its spelling; groups of digits stay apart."""
    parts = _parts(piece)
    return ("_" if any(map(str.isdigit, parts)) else "").join(parts) if len(parts) > 1 else ""


def _parts(name: str) -> list[str]:
    return [part.casefold() for link in _LINKS.split(name) for part in _HUMPS.findall(link)]


def _grams(part: str) -> Iterator[str]:
    """Yield a part; in a script without spaces, each character and each pair of characters."""
    if part.isascii() or not _UNSPACED.search(part):
        yield part
        return
    place = 0
    for run in _UNSPACED.finditer(part):
        if run.start() > place:
            yield part[place : run.start()]
        yield from run[0]
        yield from (run[0][at : at + 2] for at in range(len(run[0]) - 1))
        place = run.end()
    if place < len(part):
        yield part[place:]


def normal_text(text: str) -> str:
    """Return *text* in the form in which texts are compared: casefolded, NFC, white space collapsed.

    >>> normal_text(" Use  Oxigraph ")
    'use oxigraph'
    """
    if text.isascii():
        return " ".join(text.casefold().split())
    folded = unicodedata.normalize("NFD", text).casefold()
    return " ".join(unicodedata.normalize("NFC", folded).split())


def misspelling_of(given: str, known: Iterable[str]) -> str | None:
    """Return the nearest of *known* of which *given* is a misspelling; None if there is none.

    A misspelling has one letter too many, missing, wrong or swapped with its neighbour; two in a name of eight letters.

    >>> misspelling_of("tpoic", ["type", "topic"]), misspelling_of("blocked_by", ["tracked_by"])
    ('topic', None)
    """
    slips = {name: edit_distance(given, name) for name in known if abs(len(name) - len(given)) < 3}
    best = min(slips, key=lambda name: (slips[name], name), default=None)
    if best is None or len(best) < 3 or slips[best] > (2 if min(len(best), len(given)) >= 8 else 1):
        return None
    return best


def edit_distance(one: str, other: str) -> int:
    """Return the number of letters to insert, delete, replace or swap with the next to turn *one* into *other*.

    >>> edit_distance("modles", "models"), edit_distance("opnai", "openai")
    (1, 1)
    """
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        now: list[int] = [row]
        for column, wanted in enumerate(other, 1):
            cost = min(last[column] + 1, now[-1] + 1, last[column - 1] + (letter != wanted))
            if row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == wanted:
                cost = min(cost, before[column - 2] + 1)
            now.append(cost)
        before, last = last, now
    return last[-1]


def topic_key(text: str) -> str:
    """Return the topic *text* in the form in which topics are compared: without case, dashes, underscores and spaces.

    After a digit these become a full stop, so that 1-10 differs from 11-0. A text without any letter or digit is
    compared as it is. The query facts-about does the same.

    >>> {topic_key(each) for each in ("Internal DNS zones", "internal-dns-zones", " internal_DNS‐Zones")}
    {'internaldnszones'}
    >>> topic_key("rails 5-1 2"), topic_key("--")
    ('rails5.1.2', '--')
    """
    plain = normal_text(text)
    return _TOPIC_LINKS.sub("", _LINKS_AFTER_DIGIT.sub(".", plain)) or plain


def fold_separators(text: str) -> str:
    """Return *text* without case, with a space for each run of dashes, underscores and white space.

    >>> fold_separators("Internal_DNS -- zones")
    'internal dns zones'
    """
    return _TOPIC_LINKS.sub(" ", text.casefold())


def slug(name: str) -> str:
    """Return the last part of the IRI of a plain name: NFC, casefolded, all but letters, digits and `._-` become `-`.

    A combining mark belongs to its letter, as the vowels of many scripts do.

    >>> slug("  The Architect "), slug("राम") == slug("रीम")
    ('the-architect', False)
    """
    return _slug(name) if len(name) <= 200 else _slug.__wrapped__(name)


@lru_cache(maxsize=1024)  # agents and sessions come again and again
def _slug(name: str) -> str:
    text = unicodedata.normalize("NFC", name).casefold()
    if text.isascii():
        return re.sub(r"[^\w.-]+", "-", text).strip("-.")
    slugged = " "
    for sign in text:
        stays = sign.isalnum() or sign in "._-" or (slugged[-1] not in " ._-" and _is_mark(sign))
        slugged += sign if stays else " " if sign not in _UNSEEN else ""
    return unicodedata.normalize("NFC", "-".join(slugged.split())).strip("-.")


def _is_mark(sign: str) -> bool:
    return unicodedata.category(sign) in ("Mn", "Mc") and sign not in _UNSEEN


#: The most characters of an excerpt (default).
EXCERPT = 800
#: The properties with the text beside the summary, in the order in which a reader wants them.
ANSWERS = ("rationale", "detailedExplanation", "revisionReason")
#: Placeholder texts that the import and the review write when no reason is given.
_REMARK = lazy(r"The \w+ gives no reason\.|(?:accepted|rejected) in review\b[^.]*")
#: Code, which is shown as written: fenced blocks, and spans within a paragraph.
_CODE = (
    r"(?P<code>^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*(?:\n(?:.*?\n)??[ \t]*(?P=fence)[`~]*[ \t]*$|\n.*\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t]*\n)){1,2000}?(?<!`)(?P=ticks)(?!`))"
)
_HIDDEN = lazy(rf"{_CODE}|<!--.*?(?:-->|\Z)|!\[[^\[\]\n]{{0,300}}\]\([^()\n]{{0,1000}}\)", re.DOTALL | re.MULTILINE)
_MARKDOWN_LINK = lazy(
    rf"{_CODE}|\[(?P<words>[^\[\]\n]{{0,300}})\](?:\([^()\n]{{0,1000}}\)|\[[^\[\]\n]{{0,300}}\])",
    re.DOTALL | re.MULTILINE,
)
_FENCE = lazy(r"\s*(?:`{3,}|~{3,})")
_HEADING = lazy(r"\s{0,3}#{1,6}\s+(.*?)[\s#:]*$")
_ITEM = lazy(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_STRONG = lazy(r"(?<!\S)(\*\*|__)(?=\S)([^*\n]{1,200}?)(?<=\S)\1(?![\w/*])")
#: How many times the length of an excerpt is read of a long text.
_READ = 40
#: A possible end of a sentence, and texts before it that end none: abbreviations, single letters, numbers.
_END = lazy(r"(?<=[.!?…])[\"'”’)\]`*_]*\s+(?=[\"'“‘(\[`*_<]*[A-Z0-9`$@#❌✅])|(?<=[。！？])\s*")
_NO_END = lazy(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|no|nr|fig|sec|ca|dr|mr|ms|mrs|st|al|ver|v)\."
    r"|(?:^|\s)[A-Za-z]\.|^\W*\d+\.)[\"'”’)\]`*_]*$",
    re.IGNORECASE,
)
#: The words of a sentence that states a decision, and of one that may.
_DECIDES = lazy(
    r"^(?!for (?:instance|example)|if\b|once\b|in (?:the )?future|later\b).*?"
    r"(?:\bwe (?:will|shall|are going to|have (?:decided|agreed|chosen)|decided|agreed|chose|opted|elect)\b"
    r"|\b(?:decided|agreed|opted) (?:to|that|on|against|for|in favou?r)\b|\bdecision (?:is|was) (?:to|that)\b"
    r"|\b(?:was|were|is|are|been) (?:decided|agreed|chosen|selected|adopted)\b)",
    re.IGNORECASE,
)
_MAY_DECIDE = lazy(
    r"\b(?:will|shall|should|must|won['’]t|decided|agreed|chosen|chose|elect|going to|are using)\b|^- "
    r"|^(?:do not|don['’]t|never|always|add|adopt|allow|avoid|create|drop|expose|introduce|keep|make|merge|migrate|move"
    r"|put|remove|rename|replace|require|split|stop|store|switch|update|use)\b",
    re.IGNORECASE,
)
_BESIDE = lazy(r"(?:positive |negative )?(?:consequences?|context|links?|status|background)\b.*:$", re.IGNORECASE)
#: The most characters of a line that are split into sentences.
_LONGEST_LINE = 20_000


def answer(properties: Mapping[str, Sequence[object]]) -> str:
    """Return the text of a memory beside its summary, as it was written.

    >>> answer({"summary": ["Use Oxigraph"], "rationale": ["It embeds."], "detailedExplanation": ["It embeds. Fast."]})
    'It embeds. Fast.'
    """
    summary = " ".join(str(next(iter(properties.get("summary", ())), "")).split())
    texts: list[str] = []
    for name in (
        ANSWERS if "invalidates" in properties else ANSWERS[:2]
    ):  # the reason of another correction is not a text of this memory
        for value in properties.get(name, ()):
            text = str(value).strip()
            words = " ".join(text.split())
            if not text or words == summary or is_remark(text):
                continue
            texts = [other for other in texts if not words.startswith(" ".join(other.split()))]
            if not any(words in " ".join(other.split()) for other in texts):
                texts.append(text)
    return "\n\n".join(texts)


def is_remark(text: str) -> bool:
    """Return whether *text* is a placeholder for a reason that was not given.

    >>> is_remark("accepted in review, beside what it disagrees with"), is_remark("measured under load")
    (True, False)
    """
    return _REMARK.fullmatch(text.strip()) is not None


def excerpt(properties: Mapping[str, Sequence[object]], longest: int = EXCERPT) -> str:
    """Return `answer` as plain words on one line of at most *longest* characters; "" if it is empty.

    The summary is not repeated. If the sentence that states the decision would be cut off, the excerpt begins with that
    sentence, after an ellipsis.

    >>> told = "It grew. It was slow, as many said. We will use one queue."
    >>> excerpt({"rationale": [told]}, 40), excerpt({"rationale": [told]}, 60)
    ('… We will use one queue.', 'It grew. It was slow, as many said. We will use one queue.')
    """
    return opening(answer_sentences(properties, longest), longest).text


def answer_sentences(properties: Mapping[str, Sequence[object]], longest: int = EXCERPT) -> list[str]:
    """Return the sentences of `answer` that are read for an excerpt of *longest* characters, without the summary."""
    parts = [*sentences(answer(properties)[: _READ * longest])]
    summary = " ".join(str(next(iter(properties.get("summary", ())), "")).split()).rstrip(".:… ")
    if parts and summary and parts[0].rstrip(".:… ") == summary:
        del parts[0]
    return parts


def shortened(text: str, longest: int) -> tuple[str, bool]:
    """Return *text* on one line of at most *longest* characters, and whether something was left out.

    It begins with the sentence that states the decision if that would be left out.
    """
    words = " ".join(text.split())
    if len(words) <= longest:
        return words, False
    start = opening([*_split(words)], longest)
    return start.text, start.is_cut


class OpeningText(NamedTuple):
    """The first sentences of a text on one line, from the one that states the decision if that would be left out.

    `place` is the index of the first sentence, `places` are the indices of the sentences that are complete.
    """

    text: str
    is_cut: bool
    place: int
    places: range


def opening(parts: Sequence[str], longest: int) -> OpeningText:
    """Return the opening of the sentences *parts* of at most *longest* characters."""
    text, count = _join_parts(parts, longest)
    place = _deciding(parts) if count < len(parts) else 0
    if place and len(" ".join(parts[:place])) >= len(text) - 2:
        rest, count = _join_parts(parts[place:], longest - 2)
        return OpeningText(f"… {rest}", True, place, range(place, place + count))
    return OpeningText(text, count < len(parts), 0, range(count))


def _deciding(parts: Sequence[str]) -> int:
    """Return the index of the sentence that states the decision, 0 if the first of *parts* does or none does."""
    first = next((part for part in parts if not part.endswith(":")), "")
    if _MAY_DECIDE.search(first):
        return 0
    for place, part in enumerate(parts):
        if _BESIDE.match(part):
            return 0
        if _DECIDES.search(part) and not _ITEM.match(part):
            return place
    return 0


def one_line(text: str) -> str:
    """Return *text* on one line, without unprintable characters."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def cut(text: str, longest: int, *, blanks: bool = False) -> tuple[str, bool]:
    """Return *text* on one line of at most *longest* characters, and whether something was left out.

    It ends after a sentence if one ends in its second half, else after a word, and then with an ellipsis. *blanks*
    keeps the white space of a text that is not too long.

    >>> cut("Use one queue. It keeps the order of events.", 30)
    ('Use one queue. …', True)
    >>> cut("Use one queue a project", 12)
    ('Use one …', True)
    """
    words = " ".join(text.split())
    if blanks and len(text) <= longest:
        return text, False
    return (words, False) if len(words) <= longest else (_join_parts([*_split(words)], longest)[0], True)


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences, headings and list items of Markdown as plain words, without the addresses of links.

    >>> [*sentences("## Why\n\n* it is [small](https://a.example), e.g. here\n* fast. And cheap.")]
    ['Why:', '- it is small, e.g. here', '- fast.', 'And cheap.']
    """
    block: list[str] = []
    is_code = False
    shown = _HIDDEN.sub(lambda match: match["code"] or "", text)
    for line in _MARKDOWN_LINK.sub(lambda match: match["code"] or match["words"], shown).split("\n"):
        heading, item, fence = _HEADING.match(line), _ITEM.match(line), _FENCE.match(line)
        if fence or heading or item or not line.strip() or is_code:
            yield from _split(" ".join(block))
            block = []
        if fence:
            is_code = not is_code
        elif heading and not is_code:
            yield f"{heading[1]}:"
        elif item and not is_code:
            marker = item[0].strip()
            block = [marker if marker[0].isdigit() else "-", _STRONG.sub(r"\2", line[item.end() :])]
        elif line.strip():
            block.append(line if is_code else _STRONG.sub(r"\2", line.removeprefix(">")))
    yield from _split(" ".join(block))


def line_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text on one line; code, brackets and abbreviations do not end a sentence.

    >>> list(line_sentences("Use uv, e.g. `a. B`. Never pip."))
    ['Use uv, e.g. `a. B`.', 'Never pip.']
    """
    begin = seen = ticks = opened = 0
    for match in _END.finditer(text, 0, _LONGEST_LINE):
        piece = text[seen : match.end()]
        ticks, opened, seen = ticks + piece.count("`"), opened + piece.count("(") - piece.count(")"), match.end()
        if ticks % 2 or opened > 0 or _NO_END.search(text[max(begin, match.start() - 20) : match.start()]):
            continue
        yield text[begin : match.end()].strip()
        begin, opened = match.end(), 0
    if text[begin:].strip():
        yield text[begin:].strip()


def _split(words: str) -> Iterator[str]:
    yield from line_sentences(" ".join(words.split()))


def _join_parts(parts: Sequence[str], longest: int) -> tuple[str, int]:
    """Return the *parts* that fit on one line, and how many of them are complete."""
    whole = " ".join(parts)
    if len(whole) <= longest:
        return whole, len(parts)
    room, count = longest - 2, 0
    while len(" ".join(parts[: count + 1])) <= room:
        count += 1
    while count and parts[count - 1].endswith(":"):  # a heading, or the sentence before a list
        count -= 1
    text = " ".join(parts[:count])
    return (f"{text} …", count) if len(text) >= room // 2 else (f"{beginning(whole, room)} …", count)


def beginning(text: str, longest: int, width: Callable[[str], int] = len) -> str:
    """Return the longest beginning of *text* with a *width* of at most *longest* that ends after a word.

    A word that takes more than half of it is cut.

    >>> beginning("Use one queue", 9), beginning("Use src/queue.py", 9)
    ('Use one', 'Use src/q')
    """
    if width(text) <= longest:
        return text
    head = text[: max(longest, 0)]
    while head and width(head) > longest:
        head = head[:-1]
    words = head if text[len(head)].isspace() else head.rpartition(" ")[0]
    return words.rstrip() if width(words) * 2 >= longest else head.rstrip()


#: Bytes of UTF-8 per token: English prose has about four, code and ids about three.
BYTES_A_TOKEN = 3
_FENCES = lazy(r"`{3,}|~{3,}")


def tokens(text: str) -> int:
    """Return the estimated number of tokens of *text*: one for every three bytes of UTF-8, rounded up.

    >>> tokens("four"), tokens("")
    (2, 0)
    """
    return -(-len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN)


def quoted(text: str, longest: int, *, blanks: bool = False) -> tuple[str, bool]:
    r"""Return *text* in quotation marks on one line, and whether it was cut to *longest* characters.

    Characters that are not printable are escaped as numbers, so that they can neither break the line nor hide, and
    backquotes are replaced, so that no code fence remains. White space is collapsed, unless *blanks* keeps it.

    >>> quoted('say "hi"\n```', 100)
    ('"say \\"hi\\" \'\'\'"', False)
    >>> quoted("^puts ", 100, blanks=True)
    ('"^puts "', False)
    """
    shortened_text, is_cut = cut(text, longest, blanks=blanks)
    plain = _FENCES.sub(lambda match: "'" * len(match[0]), shortened_text)
    body = json.dumps(plain, ensure_ascii=False)[1:-1]
    shown = (sign if sign.isprintable() and is_legible(sign) else _numbered(sign) for sign in body)
    return f'"{body if body.isascii() and body.isprintable() else "".join(shown)}"', is_cut


def quoted_name(text: str) -> str:
    """Return a name or a path, quoted unless it is plain."""
    return text if not text or re.fullmatch(r"[\w./@+-]{1,120}", text) else quoted(text, 120)[0]


def escape_in_json(text: str) -> str:
    r"""Return *text* with non-printable characters escaped as in JSON; line ends stay.

    >>> escape_in_json("a\u202eb\n")
    'a\\u202eb\n'
    """

    def shown(sign: str) -> str:
        return sign if sign == "\n" or (sign.isprintable() and is_legible(sign)) else json.dumps(sign)[1:-1]

    return _OTHERS.sub(lambda run: "".join(map(shown, run[0])), text)


#: Unicode categories of characters that are invisible, or control a terminal or the direction of text.
_INVISIBLE = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))
#: The characters of these that texts need: line ends, tabs, joiners of scripts and of emoji.
_NEEDED = frozenset("\n\t\u200c\u200d")
_BLANK = frozenset("\u115f\u1160\u3164\uffa0")
#: Runs of the characters that may be invisible; few texts have any.
_OTHERS = lazy(r"[^\x20-\x7e]+")


def is_legible(sign: str) -> bool:
    """Return whether a character may be shown to people as it is."""
    if sign.isprintable():  # the plane of tags and selectors can hide a whole text
        return sign not in _BLANK and not "\U000e0000" <= sign <= "\U000e0fff"
    return sign in _NEEDED or unicodedata.category(sign) not in _INVISIBLE


def escape_invisible(text: str) -> str:
    r"""Return *text* with invisible characters, and those that control a terminal, escaped as in Python.

    >>> print(escape_invisible("a\u202eb\x1b[2J"))
    a\u202eb\x1b[2J
    """
    return _OTHERS.sub(lambda run: "".join(s if is_legible(s) else ascii(s)[1:-1] for s in run[0]), text)


def without_invisible(text: str) -> str:
    r"""Return *text* without invisible characters; tabs and line ends stay.

    >>> without_invisible("gh\u200bp_\u200d\n")
    'ghp_\n'
    """
    return text if text.isascii() else _OTHERS.sub(_visible_part, text)


def _visible_part(run: re.Match[str]) -> str:
    characters = (sign for sign in run[0] if sign in "\n\t\r" or (is_legible(sign) and sign not in _NEEDED))
    return "".join(sign for sign in characters if not "\ufe00" <= sign <= "\ufe0f")  # selectors of the form of a sign


def _numbered(sign: str) -> str:
    code = ord(sign)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


#: The most characters of a text that are stored with its words, and of a piece, beyond which models do not read.
LONGEST_TEXT, PIECE = 8_000, 500
_ENDS = lazy(r"\n\s*\n|\n|(?<=[.!?。！？])\s+")


def chunk_text(text: str) -> list[str]:
    """Return the pieces of *text*, which end at paragraphs or sentences where these are short enough.

    A piece does not name the speaker: with names, all texts of one person would be similar to each other, and to each
    question that names the person.

    >>> chunk_text("Short. And whole.")
    ['Short. And whole.']
    >>> [len(piece) for piece in chunk_text("a" * 499 + ". " + "b" * 750)]
    [500, 500, 250]
    """
    pieces: list[str] = []
    for part in _sentences(text[:LONGEST_TEXT]):
        if pieces and len(pieces[-1]) + 1 + len(part) <= PIECE:
            pieces[-1] += f" {part}"
        else:
            pieces.append(part)
    return pieces


def _sentences(text: str) -> Iterator[str]:
    text = text.strip()
    if len(text) <= PIECE:
        yield from [text] if text else []
        return
    for part in filter(None, map(str.strip, _ENDS.split(text))):
        yield from (part[at : at + PIECE] for at in range(0, len(part), PIECE))


def digest(text: str) -> bytes:
    """Return the digest of a text, 16 bytes."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


#: The end of a statement that says since when, or until when, it holds.
STILL = lazy(r" (?:(?:right )?now|currently|nowadays|these days|at the moment|again|any ?more|any longer)$", re.I)
_SIBILANT, _PLURAL = lazy("(?:x|ch|sh|ss|zz)es$"), lazy("[^siu]s$")


@lru_cache(8_192)  # consecutive texts share most of their words
def singular(word: str) -> str:
    """Return an English *word* without its plural ending, and any other word unchanged.

    >>> [singular(word) for word in ("memories", "boxes", "dogs", "bus", "glass")]
    ['memory', 'box', 'dog', 'bus', 'glass']
    """
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if _SIBILANT.search(word):
        return word[:-2]
    return word[:-1] if _PLURAL.search(word) else word
