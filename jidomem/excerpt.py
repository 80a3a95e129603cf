"""The text that answers for a memory: its decision and reasons first, the context last, cut at a sentence.  Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: How many characters an excerpt has at most where nothing else is asked for.
EXCERPT = 800
#: The properties that answer, in the order in which a reader wants them.
ANSWERS = ("rationale", "detailedExplanation", "revisionReason")
#: Texts that the import and the review write where nobody gives a reason.
_REMARK = re.compile(r"The \w+ gives no reason\.|(?:accepted|rejected) in review\b[^.]*")
#: Code is shown as it is written: a fenced block, and a span within a paragraph.
_CODE = (
    r"(?P<code>^[ \t]*(?P<fence>`{3,}|~{3,})[^\n`]*(?:\n(?:.*?\n)??[ \t]*(?P=fence)[`~]*[ \t]*$|\n.*\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?![ \t]*\n)){1,2000}?(?<!`)(?P=ticks)(?!`))"
)
_HIDDEN = re.compile(
    rf"{_CODE}|<!--.*?(?:-->|\Z)|!\[[^\[\]\n]{{0,300}}\]\([^()\n]{{0,1000}}\)", re.DOTALL | re.MULTILINE
)
_LINK = re.compile(
    rf"{_CODE}|\[(?P<words>[^\[\]\n]{{0,300}})\](?:\([^()\n]{{0,1000}}\)|\[[^\[\]\n]{{0,300}}\])",
    re.DOTALL | re.MULTILINE,
)
_FENCE = re.compile(r"\s*(?:`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.*?)[\s#:]*$")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")
_STRONG = re.compile(r"(?<!\S)(\*\*|__)(?=\S)([^*\n]{1,200}?)(?<=\S)\1(?![\w/*])")
#: Of a long text so many times as much is read as is shown.
_READ = 40
#: Where a sentence may end, and how the text before ends where it does not: with an abbreviation, a letter, a number.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]`*_]*\s+(?=[\"'“‘(\[`*_<]*[A-Z0-9`$@#❌✅])|(?<=[。！？])\s*")
_NO_END = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|resp|incl|no|nr|fig|sec|ca|dr|mr|ms|mrs|st|al|ver|v)\."
    r"|(?:^|\s)[A-Za-z]\.|^\W*\d+\.)[\"'”’)\]`*_]*$",
    re.IGNORECASE,
)
#: What a sentence has that says what was decided, and what one has that may say so.
_DECIDES = re.compile(
    r"^(?!for (?:instance|example)|if\b|once\b|in (?:the )?future|later\b).*?"
    r"(?:\bwe (?:will|shall|are going to|have (?:decided|agreed|chosen)|decided|agreed|chose|opted|elect)\b"
    r"|\b(?:decided|agreed|opted) (?:to|that|on|against|for|in favou?r)\b|\bdecision (?:is|was) (?:to|that)\b"
    r"|\b(?:was|were|is|are|been) (?:decided|agreed|chosen|selected|adopted)\b)",
    re.IGNORECASE,
)
_MAY_DECIDE = re.compile(
    r"\b(?:will|shall|should|must|won['’]t|decided|agreed|chosen|chose|elect|going to|are using)\b|^- "
    r"|^(?:do not|don['’]t|never|always|add|adopt|allow|avoid|create|drop|expose|introduce|keep|make|merge|migrate|move"
    r"|put|remove|rename|replace|require|split|stop|store|switch|update|use)\b",
    re.IGNORECASE,
)
_BESIDE = re.compile(r"(?:positive |negative )?(?:consequences?|context|links?|status|background)\b.*:$", re.IGNORECASE)
#: How much of one line is read for its sentences.
_LONGEST_LINE = 20_000


def answer(said: Mapping[str, Sequence[object]]) -> str:
    """Return the text of a memory with the properties *said* that stands beside its summary, as it was written.

    >>> answer({"summary": ["Use Oxigraph"], "rationale": ["It embeds."], "detailedExplanation": ["It embeds. Fast."]})
    'It embeds. Fast.'
    """
    summary = " ".join(str(next(iter(said.get("summary", ())), "")).split())
    found: list[str] = []
    for name in ANSWERS if "invalidates" in said else ANSWERS[:2]:  # the reason of another correction is no text of it
        for value in said.get(name, ()):
            text = str(value).strip()
            words = " ".join(text.split())
            if not text or words == summary or is_remark(text):
                continue
            found = [other for other in found if not words.startswith(" ".join(other.split()))]
            if not any(words in " ".join(other.split()) for other in found):
                found.append(text)
    return "\n\n".join(found)


def is_remark(text: str) -> bool:
    """Return whether *text* was written in place of a reason that nobody gave.

    >>> is_remark("accepted in review, beside what it disagrees with"), is_remark("measured under load")
    (True, False)
    """
    return _REMARK.fullmatch(text.strip()) is not None


def excerpt(said: Mapping[str, Sequence[object]], longest: int = EXCERPT) -> str:
    """Return `answer` as plain words on one line of at most *longest* characters; nothing where there is none.

    What the summary says already is not said again. Where the sentence that decides would be cut off, the excerpt
    begins with it, after an ellipsis.

    >>> told = "It grew. It was slow, as many said. We will use one queue."
    >>> excerpt({"rationale": [told]}, 40), excerpt({"rationale": [told]}, 60)
    ('… We will use one queue.', 'It grew. It was slow, as many said. We will use one queue.')
    """
    return opening(answer_sentences(said, longest), longest).text


def answer_sentences(said: Mapping[str, Sequence[object]], longest: int = EXCERPT) -> list[str]:
    """Return the sentences of `answer`, as many as are read for an excerpt of *longest*, without the summary."""
    parts = [*sentences(answer(said)[: _READ * longest])]
    summary = " ".join(str(next(iter(said.get("summary", ())), "")).split()).rstrip(".:… ")
    if parts and summary and parts[0].rstrip(".:… ") == summary:
        del parts[0]
    return parts


def shortened(text: str, longest: int) -> tuple[str, bool]:
    """Return *text* on one line of at most *longest* characters, and whether something was left out.

    It begins with the sentence that decides where that would be left out.
    """
    words = " ".join(text.split())
    if len(words) <= longest:
        return words, False
    start = opening([*_split(words)], longest)
    return start.text, start.is_cut


@dataclass(frozen=True, slots=True)
class Opening:
    """The first sentences of a text on one line, from the one that decides where that would be left out.

    `place` is that of the first, `places` are those of the sentences that are whole.
    """

    text: str
    is_cut: bool
    place: int
    places: range


def opening(parts: Sequence[str], longest: int) -> Opening:
    """Return the opening of the sentences *parts* of at most *longest* characters."""
    text, count = _joined(parts, longest)
    place = _deciding(parts) if count < len(parts) else 0
    if place and len(" ".join(parts[:place])) >= len(text) - 2:
        rest, count = _joined(parts[place:], longest - 2)
        return Opening(f"… {rest}", True, place, range(place, place + count))
    return Opening(text, count < len(parts), 0, range(count))


def _deciding(parts: Sequence[str]) -> int:
    """Return the place of the sentence that decides where the first of *parts* says nothing of it, else 0."""
    first = next((part for part in parts if not part.endswith(":")), "")
    if _MAY_DECIDE.search(first):
        return 0
    for place, part in enumerate(parts):
        if _BESIDE.match(part):
            return 0
        if _DECIDES.search(part) and not _ITEM.match(part):
            return place
    return 0


def cut(text: str, longest: int, *, blanks: bool = False) -> tuple[str, bool]:
    """Return *text* on one line of at most *longest* characters, and whether something of it was left out.

    It ends with a sentence where one ends in its second half, else with a word, and then with an ellipsis. Where it is
    not too long, *blanks* stay as they are.

    >>> cut("Use one queue. It keeps the order of events.", 30)
    ('Use one queue. …', True)
    >>> cut("Use one queue a project", 12)
    ('Use one …', True)
    """
    words = " ".join(text.split())
    if blanks and len(text) <= longest:
        return text, False
    return (words, False) if len(words) <= longest else (_joined([*_split(words)], longest)[0], True)


def sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences, headings and list entries of Markdown as plain words; addresses of links are left out.

    >>> [*sentences("## Why\n\n* it is [small](https://a.example), e.g. here\n* fast. And cheap.")]
    ['Why:', '- it is small, e.g. here', '- fast.', 'And cheap.']
    """
    block: list[str] = []
    is_code = False
    shown = _HIDDEN.sub(lambda found: found["code"] or "", text)
    for line in _LINK.sub(lambda found: found["code"] or found["words"], shown).split("\n"):
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
    """Yield the sentences of *text*, which stands on one line; code, brackets and abbreviations end none.

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
    """Yield the sentences of one paragraph."""
    yield from line_sentences(" ".join(words.split()))


def _joined(parts: Sequence[str], longest: int) -> tuple[str, int]:
    """Return as many of *parts* as fit on one line, and how many of them are whole."""
    whole = " ".join(parts)
    if len(whole) <= longest:
        return whole, len(parts)
    room, count = longest - 2, 0
    while len(" ".join(parts[: count + 1])) <= room:
        count += 1
    while count and parts[count - 1].endswith(":"):  # a heading, or the sentence that leads to a list
        count -= 1
    text = " ".join(parts[:count])
    return (f"{text} …", count) if len(text) >= room // 2 else (f"{beginning(whole, room)} …", count)


def beginning(text: str, longest: int, width: Callable[[str], int] = len) -> str:
    """Return as much of the beginning of *text* as has a *width* of at most *longest*, to the end of a word.

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
