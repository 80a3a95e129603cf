"""The Markdown of decision records: dates, front matter, headings and the vocabulary of statuses
and relations.

A page is a list of lines, and every position is a line of the file. Markdown is parsed, so a
heading or a status inside a code fence is text. YAML is composed, not constructed: a number keeps
its leading zeros (YAML reads 0012 as ten) and aliases are never expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise, zip_longest
from typing import NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from jidomem.base.clock import parse_moment
from jidomem.base.regex import lazy
from jidomem.repository.record_files import number_of_name, record_name

ISO_DATE = lazy(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?")
DAY_FIRST, MONTH_FIRST = "day first", "month first"
_MONTHS = {
    name: number
    for number, names in enumerate(
        ("jan january", "feb february", "mar march", "apr april", "may", "jun june", "jul july", "aug august",
         "sep sept september", "oct october", "nov november", "dec december"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_YEAR_FIRST = lazy(
    rf"(?<!\d)(?P<y>\d{{4}})[-/. ]+(?P<m>\d{{1,2}}|{_MONTH})\b[-/. ]+(?P<d>\d{{1,2}})(?!\d)", re.IGNORECASE
)
_DAY_FIRST = lazy(
    rf"(?<!\d)(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?: of)?[-/. ]+(?P<m>{_MONTH})\b[-/., ]+(?P<y>\d{{4}})(?!\d)",
    re.IGNORECASE,
)
_MONTH_FIRST = lazy(
    rf"\b(?P<m>{_MONTH})\b\.?[-/ ]+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?[-/, ]+(?P<y>\d{{4}})(?!\d)", re.IGNORECASE
)
_DOTTED = lazy(r"(?<![\d.])(?P<d>\d{1,2})\.(?P<m>\d{1,2})\.(?P<y>\d{4})(?!\d)")
_NUMBERS = lazy(r"(?<!\d)(\d{1,2})([-/])(\d{1,2})\2(\d{4})(?!\d)")
_IN_NAME = lazy(r"((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


def dates_in(text: str, others: Iterable[str] = ()) -> Iterator[str]:
    """Yield the dates in *text* as moments in UTC, those in ISO 8601 first.

    05/06/2022 is a date only if another date, such as 25/04/2022 in *text* or *others*, shows that the day comes first.

    >>> [*dates_in("25/04/2022: draft, 05/06/2022: accepted")], [*dates_in("05/06/2022")]
    (['2022-04-25T00:00:00Z', '2022-06-05T00:00:00Z'], [])
    """
    for match in ISO_DATE.finditer(text):
        if when := _moment(parse_moment(match[0])):
            yield when
    text = ISO_DATE.sub(" ", text)
    for pattern in (_YEAR_FIRST, _DAY_FIRST, _MONTH_FIRST, _DOTTED):
        for match in pattern.finditer(text):
            month = _MONTHS.get(match["m"].lower()) or (int(match["m"]) if match["m"].isdigit() else 0)
            if when := _date(int(match["y"]), month, int(match["d"])):
                yield when
    orders = _orders((text, *others))
    for match in _NUMBERS.finditer(text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        if len(orders) == 1 or first == second:
            month, day = (second, first) if DAY_FIRST in orders else (first, second)
            if when := _date(year, month, day):
                yield when


def ambiguous_in(text: str, others: Iterable[str] = ()) -> list[tuple[str, str, str]]:
    """Return the dates of *text* whose order of day and month is unclear, also from *others*: as written, and both
    readings.

    >>> ambiguous_in("05/01/2022"), ambiguous_in("05/01/2022", ["25/04/2022"])
    ([('05/01/2022', '2022-01-05', '2022-05-01')], [])
    """
    if len(_orders((text, *others))) == 1:
        return []
    ambiguous = []
    for each in _NUMBERS.finditer(text):
        first, second, year = int(each[1]), int(each[3]), int(each[4])
        day_first, month_first = _date(year, second, first), _date(year, first, second)
        if day_first and month_first and first != second:
            ambiguous.append((each[0], day_first[:10], month_first[:10]))
    return ambiguous


def ordered_dates(text: str) -> list[str]:
    """Return the numeric dates of *text* that show whether the day or the month comes first."""
    return [match[0] for match in _NUMBERS.finditer(text) if (int(match[1]) > 12) != (int(match[3]) > 12)]


def _orders(texts: Iterable[str]) -> set[str]:
    pairs = [(int(match[1]), int(match[3])) for each in texts for match in _NUMBERS.finditer(each)]
    match = {DAY_FIRST} if any(first > 12 for first, _ in pairs) else set()
    return match | ({MONTH_FIRST} if any(second > 12 for _, second in pairs) else set())


def date_of_name(name: str) -> str | None:
    """Return the date at the start of a file name, as a moment in UTC, or None.

    >>> date_of_name("20200924-use-a-queue"), date_of_name("0007-use-a-queue")
    ('2020-09-24T00:00:00Z', None)
    """
    match = _IN_NAME.match(name)
    return _date(int(match[1]), int(match[3]), int(match[4])) if match else None


def _date(year: int, month: int, day: int) -> str | None:
    try:
        return _moment(datetime(year, month, day, tzinfo=UTC))
    except ValueError:
        return None


def _moment(moment: datetime | None) -> str | None:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment and moment.year >= 1000 else None


_MARKDOWN = MarkdownIt("commonmark")
#: The placeholder of a link in the text of a line: its index in `links` between two NUL characters.
MARK = lazy("\x00(\\d+)\x00")


class MarkdownLine(NamedTuple):
    """One line of a paragraph, list item or field: its words, with a `MARK` for each link, and the links themselves.

    `number` counts from 0; `links` are (text, address); `whole` is True if the line is exactly one line of the file.
    """

    number: int
    text: str
    links: tuple[tuple[str, str], ...] = ()
    whole: bool = True

    @property
    def plain(self) -> str:
        """Return the words with each link replaced by its text."""
        return MARK.sub(lambda mark: self.links[int(mark[1])][0], self.text)


class Field(NamedTuple):
    """One key of the front matter, its values (one or a list; nested values as written) and its lines."""

    key: str
    values: tuple[str, ...]
    lines: range


class MarkdownSection(NamedTuple):
    """A heading and its lines: `own_end` is the line of the next heading, `end` that of the next heading of its level
    or above.
    """

    title: str
    level: int
    start: int
    body: int
    own_end: int
    end: int


class MarkdownPage(NamedTuple):
    """A file: its lines, where the Markdown begins, the front matter, and the headings in order."""

    lines: tuple[str, ...]
    start: int
    fields: tuple[Field, ...]
    sections: tuple[MarkdownSection, ...]
    tokens: tuple[Token, ...]
    fault: str = ""

    def text(self, start: int, end: int) -> str:
        """Return the lines from *start* to before *end* as written, without blank lines around them."""
        return "\n".join(self.lines[start:end]).strip()

    def lines_between(self, start: int, end: int) -> Iterator[MarkdownLine]:
        """Yield the lines of paragraphs and list items between two lines of the file: no headings, no code blocks."""
        for before, token in pairwise(self.tokens):
            if token.type == "inline" and token.map and before.type != "heading_open" and start <= token.map[0] < end:
                yield from _written(token)

    def items(self, start: int, end: int) -> Iterator[str]:
        """Yield the first words of each outermost list item between two lines of the file."""
        tokens = self.tokens
        for index, token in enumerate(tokens):
            if token.type == "list_item_open" and token.level == 1 and token.map and start <= token.map[0] < end:
                first = tokens[index + 2] if tokens[index + 1].type == "paragraph_open" else None
                if first and first.children:
                    yield _plain(first.children)


def parse_page(text: str) -> MarkdownPage:
    """Return *text* parsed. `fault` is why the front matter is invalid; its lines `key: value` are the fields then."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start, fields, fault = _front_matter(lines)
    tokens = _MARKDOWN.parse("\n" * start + "\n".join(lines[start:]))
    return MarkdownPage(tuple(lines), start, fields, tuple(_sections(tokens, len(lines))), tuple(tokens), fault)


def parse_line(number: int, text: str) -> MarkdownLine:
    """Return *text*, the value of a field on line *number*, as a line of Markdown."""
    return MarkdownLine(number, *_pieces(_MARKDOWN.parseInline(text)[0].children or []))


#: A line `key: value` of front matter that cannot be parsed, one that may continue it, and a heading below it.
_PLAIN_FIELD = lazy(r"([A-Za-z][\w -]{0,40}?)[ \t]*:[ \t]+(\S.*)")
_CONTINUED = lazy(r"[A-Za-z][\w -]{0,40}?[ \t]*:(?:\s|\Z)|[ \t]+\S|- ")
_HEADING_BELOW = lazy(r"\n\n#{1,6} ")


def _front_matter(lines: Sequence[str]) -> tuple[int, tuple[Field, ...], str]:
    """Return the line after the front matter, 0 if there is none, its fields, and the fault if it is invalid.

    Invalid front matter ends at the first line without the form of a field if it is not closed, or only below a
    heading.
    """
    if lines[0].rstrip() != "---":
        return 0, (), ""
    end = next((n for n, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), None)
    fields, fault = _fields(lines[1:end]) if end else ((), "no line --- ends it")
    if end and not fault:
        return end + 1, fields, ""
    start = (end or 0) + 1
    if end is None or _HEADING_BELOW.search("\n".join(lines[:end])):
        start = next((n for n, line in enumerate(lines) if n and not _CONTINUED.match(line)), len(lines))
        fault = "no line --- ends it"
    plain = ((n, _PLAIN_FIELD.fullmatch(line)) for n, line in enumerate(lines[:start]))
    fields = tuple(Field(match[1], (match[2].strip(" \t\"'"),), range(n, n + 1)) for n, match in plain if match)
    return (start, fields, fault) if fields or end else (0, (), "")


def _fields(lines: Sequence[str]) -> tuple[tuple[Field, ...], str]:
    """Return the fields of the front matter, and the fault if it is no YAML mapping."""
    text = "\n".join(lines)
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        return (), " ".join(str(error).split()) or "nested too deeply"
    if node is None:
        return (), ""
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        return (), "it is not a list of `key: value` lines"
    starts = [key.start_mark.line + 1 for key, _ in node.value] + [len(lines) + 1]
    pairs = zip(node.value, starts, starts[1:], strict=False)
    return tuple(Field(str(key.value), _values(value, text), range(a, b)) for (key, value), a, b in pairs), ""


def _values(node: yaml.Node, text: str) -> tuple[str, ...]:
    """Return the scalars of *node*, or its text if it is nested deeper."""
    nodes = node.value if isinstance(node, yaml.SequenceNode) else [node]
    if all(isinstance(scalar, yaml.ScalarNode) for scalar in nodes):
        return tuple(scalar.value for scalar in nodes)
    return (text[node.start_mark.index : node.end_mark.index],)


def _sections(tokens: Sequence[Token], length: int) -> Iterator[MarkdownSection]:
    """Yield every heading that is not inside a quote or a list item."""
    opened = [
        (int(token.tag[1]), token.map[0], token.map[1], _plain(inline.children or []))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    for index, (level, start, body, title) in enumerate(opened):
        after = range(index + 1, len(opened))
        own_end = opened[index + 1][1] if after else length
        end = next((opened[other][1] for other in after if opened[other][0] <= level), length)
        yield MarkdownSection(title, level, start, body, own_end, end)


def _written(inline: Token) -> Iterator[MarkdownLine]:
    """Yield the lines of one paragraph; each break in it is a line of the file."""
    first, end = inline.map or [0, 1]
    rows: list[list[Token]] = [[]]
    for child in inline.children or []:
        if child.type in ("softbreak", "hardbreak"):
            rows.append([])
        else:
            rows[-1].append(child)
    for offset, row in enumerate(rows):
        yield MarkdownLine(first + offset, *_pieces(row), whole=end - first == len(rows))


def _pieces(row: Sequence[Token]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the words of one line with a mark for each link, and the links."""
    text = ""
    links: list[tuple[str, str]] = []
    href: str | None = None
    for token in row:
        if token.type == "link_open":
            href = str(token.attrGet("href"))
            links.append(("", href))
            text += f"\x00{len(links) - 1}\x00"
        elif token.type == "link_close":
            href = None
        elif token.type in ("text", "code_inline", "image"):
            if href is not None:
                links[-1] = (links[-1][0] + token.content, href)
            else:
                text += f"`{token.content}`" if token.type == "code_inline" else token.content
    return text, tuple(links)


def _plain(children: Sequence[Token]) -> str:
    """Return the words of a heading or list item without Markdown markup; line breaks become spaces."""
    words = (
        " " if child.type.endswith("break") else child.content for child in children if child.type != "html_inline"
    )
    return " ".join("".join(words).split())


#: The headings of each part of a record.
_HEADINGS: Mapping[str, tuple[str, ...]] = {
    "status": ("status", "decision status", "statut", "estado", "stato", "状态"),
    "date": ("date", "decision date", "datum", "fecha"),
    "changelog": (
        "changelog", "change log", "history", "revision history", "version history", "document history", "revisions",
    ),
    "reason": ("rationale", "decision rationale", "justification", "reason", "reasons", "reasoning", "why"),
    "context": (
        "context", "context and problem statement", "context and problem", "problem statement", "problem",
        "background", "motivation", "issue", "kontext", "contexte", "contexto", "contesto", "背景",
    ),
    "decision": (
        "decision", "decisions", "decision outcome", "outcome", "the decision", "resolution", "our decision",
        "final decision", "what we decided", "what was decided", "what we will do", "chosen option", "chosen solution",
        "decision and rationale", "decision made", "decision taken", "entscheidung", "décision", "decisión", "decisão",
        "decisione", "besluit", "решение", "决策", "決定",
    ),
    "drivers": ("decision drivers", "drivers", "forces"),
    "consequences": (
        "consequences", "consequence", "implications", "results", "konsequenzen", "conséquences", "consecuencias",
        "consequências", "conseguenze", "后果",
    ),
    "options": (
        "considered options", "options considered", "considered alternatives", "alternatives considered", "options",
        "alternatives",
    ),
    "pros": ("pros and cons of the options", "pros and cons of the alternatives", "pros and cons"),
    "links": ("links", "more information", "related decisions", "related adrs", "related", "references", "see also"),
}  # fmt: skip
PART = {name: part for part, names in _HEADINGS.items() for name in names}
#: Further headings, which do not make a page a decision record.
_FURTHER: Mapping[str, tuple[str, ...]] = {
    "consequences": (
        "positive consequences", "negative consequences", "neutral consequences", "impact", "trade-offs", "tradeoffs",
        "drawbacks", "risks", "benefits",
    ),
    "confirmation": ("confirmation", "validation", "compliance", "verification"),
    "proposal": (
        "proposal", "proposed solution", "proposed design", "proposed change", "proposed changes", "solution",
        "recommendation", "conclusion", "detailed design", "guide-level explanation", "summary", "abstract",
    ),
}  # fmt: skip
_PART_OF = PART | {name: part for part, names in _FURTHER.items() for name in names}
#: The parts of a record in reading order: the decision first, the context after the consequences; `None` stands for
#: sections with other headings.
ORDER = ("decision", "reason", "consequences", "confirmation", "proposal", None, "drivers", "context", "options",
         "pros", "links", "changelog", "status", "date")  # fmt: skip

_STATUS: Mapping[str, tuple[str, ...]] = {
    "accepted": (
        "accepted", "approved", "adopted", "agreed", "decided", "implemented", "active", "done", "final", "completed",
        "complete", "ratified", "merged", "akzeptiert", "angenommen", "accepté", "acceptée", "aceptado", "aceptada",
        "aceito", "aceita", "accettato", "已接受",
        "amended", "in effect", "in force", "in use", "enacted", "effective",
        "partly superseded", "partly deprecated", "partly rejected",
    ),
    "proposed": (
        "proposed", "draft", "on hold", "in progress", "in review", "under review", "in discussion",
        "under discussion", "pending", "open", "wip", "rfc", "deferred", "postponed", "work in progress", "incomplete",
        "proposal", "vorgeschlagen", "proposé", "proposée", "propuesto", "proposto", "entwurf", "提议",
        "placeholder", "tbd", "to be decided", "undecided", "suggested", "for discussion", "needs review",
    ),
    "deprecated": (
        "deprecated", "obsolete", "outdated", "retired", "reverted", "veraltet", "已废弃", "obsoleted", "replaced",
        "archived", "expired", "discontinued", "no longer relevant", "no longer valid",
    ),
    "rejected": (
        "rejected", "declined", "withdrawn", "abandoned", "cancelled", "not accepted", "abgelehnt", "rejeté", "rejetée",
        "rechazado", "rejeitado", "已拒绝", "denied", "dropped", "discarded", "won't do",
    ),
}  # fmt: skip
WORDS = {word: status for status, words in _STATUS.items() for word in words}
_STATUS_WORD = lazy(rf"({'|'.join(sorted(WORDS, key=len, reverse=True))})\b")
_DATE = (
    rf"(?:{ISO_DATE.pattern}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|(?:\d{{1,2}}(?:st|nd|rd|th|\.)? )?(?i:{_MONTH})\.?"
    r" (?:\d{1,2}(?:st|nd|rd|th)?,? )?\d{4}|\d{4})"
)
_NAME = (
    r"(?:the (?:[\w-]+ ){0,3}(?:team|group|board|council|committee)|[^\W\d_a-z][\w.'’-]*(?: [^\W\d_a-z][\w.'’-]*){0,3})"
)
#: A line without a key that is a status: its word, at most with a date, an author and a parenthesis.
_BARE_STATUS = lazy(
    rf"[\W_]*(?i:{'|'.join(map(re.escape, sorted(WORDS, key=len, reverse=True)))})"
    rf"(?:[\s*_,:–—-]+(?:(?:(?:on|until) )?{_DATE}|by @?{_NAME}(?:(?:, | and | & )@?{_NAME})*))*"
    r"(?:[\s*_?]*\([^()]*\))?[\s*_.!?]*"
)
#: The words before the date at which a status ends.
_UNTIL = lazy(rf"\b(?i:until|till|through|expires|expires on|ends|ends on|bis|bis zum|hasta)[\s*_:]+{_DATE}")
_LONGEST_STATUS = 100
#: Words after "accepted" in a status: the first say that the decision has ended, the others that it may not hold.
NO_LONGER = lazy(r"\b(?:no longer|not any ?more)\s+(?:valid|relevant|applicable|applies|in (?:force|effect|use))\b")
_IN_DOUBT = lazy(
    r"\b(?:no longer|pending|(?:in|under) review|on hold|deferred|postponed|provisional(?:ly)?|tentative(?:ly)?"
    r"|probably|maybe|perhaps|unconfirmed|to be (?:confirmed|reviewed|approved|decided)|tbc|tbd|draft|deprecated"
    r"|obsoleted?|outdated|retired|reverted|expired|discontinued|rejected|withdrawn|revoked|abandoned|cancelled"
    r"|subject to|if|unless|conditional(?:ly)?|(?:on|with|under) (?:the |one |some )?(?:conditions?|reservations?)"
    r"|provided|assuming|awaiting|contingent|depend(?:s|ing|ent) on|in principle|for now|not yet|(?<=-)ish"
    r"|vorbehaltlich|unter vorbehalt|vorläufig|falls|sofern|sous réserve|sujeto a|salvo)\b"
)
#: The fields that date a record, the date of the decision first; and the other names of fields.
DATE_KEYS = (
    "decision date", "date decided", "decided", "decided on", "date", "date accepted", "accepted on", "approved on",
    "created", "created on", "creation date", "date created", "start date", "proposed on", "submitted",
)  # fmt: skip
KEY_ALIASES: Mapping[str, str] = {
    "decision status": "status", "current status": "status", "state": "status", "statut": "status",
    "estado": "status", "stato": "status", "datum": "date", "fecha": "date",
}  # fmt: skip
#: Headings of level 1 that are not the title.
UNTITLED = frozenset(
    ("summary", "meta", "metadata", "abstract", "introduction", "overview", "table of contents", "contents")
)
#: Front matter that only places the page on a website.
PLACEMENT = frozenset(
    ("parent", "grand_parent", "nav_order", "nav_exclude", "has_children", "has_toc", "layout", "permalink")
)

_PARTLY = r"(?:part(?:ly|ial(?:ly)?)|(?:mostly|largely)|in[ -]part)"
#: `superseded by` with its historic spellings, and the other words for a relation between records; see `relation_of`.
RELATION = lazy(
    rf"\b(?P<before>{_PARTLY}[ ,-]+)?"
    rf"(?:(?P<ended>super[cs]+e+ded(?P<within>[ ,-]+{_PARTLY}\b)?(?:[ -]+(?:by|in|with))?"
    r"|(?:replaced|obsoleted)[ -]+by)"
    r"|(?P<ends>super[cs]+e+d(?:es|s|ing)|replaces|obsoletes)"
    r"|(?P<amended>(?:amended|clarified|refined|extended)[ -]+by)|(?P<amends>amends|clarifies|refines|extends))\b\s*:?",
    re.IGNORECASE,
)
_IN_PART = lazy(rf"{_PARTLY}\b[ ,:-]*", re.IGNORECASE)
_MENTION = lazy(
    r"[\w./%-]+\.md\b|\bADR[\s_#-]*\d{1,8}\b|#\d{1,8}\b|(?:^|,|&|\band\b)\s*(\d{1,8})\b(?!\.\d)", re.IGNORECASE
)
KEY = lazy(r"\W*([A-Za-z][A-Za-z _-]{0,40}?)\s*:\s*(.*)", re.DOTALL)
_NUMBERED = lazy(
    r"\W*(?:(?:ADR|RFC|decision)[\s#_-]*(\d+)\W*?(?:[.:)\]]\s+|\s*[-–—]\s+|\s+)|(\d+)(?:[.:)]\s+|\s*[-–—]\s+)|(0\d+)\s+)(?=\S)",
    re.IGNORECASE,
)
_CHOSEN = lazy(
    r"\W*chosen\s+(?:option|alternative)\W*?:[\s*_]*"
    r"(?:[\"“](?P<double>.+?)[\"”]|['‘](?P<single>.+?)['’]|(?P<plain>.+?))"
    r"(?:[^\w\"'”’]*because\b(?P<why>.*)|[\s*_]*(?:\.\s|\n|$))",
    re.IGNORECASE | re.DOTALL,
)
#: Words that introduce a reason; "since" before a date or a version does not.
_REASON = lazy(
    r"\b(?:because|since(?!\s+(?:then|v?\d|version|release|the (?:release|version|beginning|start)))|so that"
    r"|in order to|due to)\b",
    re.IGNORECASE,
)
URL = lazy(r"https?://[^\s<>\"{}|\\^`]+")


class Reference(NamedTuple):
    """A reference from one record to another: `relation` is ends, ended, amends or amended; `href` is the address of a
    link.
    """

    relation: str
    text: str
    href: str
    line: int


def slug(text: str) -> str:
    """Return *text* as one lower-case word with dashes, used for comparison and as a name.

    >>> slug("Use `adr-log`, not a Wiki")
    'use-adr-log-not-a-wiki'
    """
    return re.sub(r"[^\w+#]+", "-", text.casefold()).strip("-")


def stem(path: str) -> str:
    """Return the name of a record: that of its file, or of its folder if it has one of its own.

    >>> stem("docs/adr/0007-use-oxigraph.md"), stem("../0008-use-a-log/")
    ('0007-use-oxigraph', '0008-use-a-log')
    """
    return record_name(path.rstrip("/"))


def title_of_name(path: str) -> str:
    """Return the title implied by the name of a file.

    >>> title_of_name("rfcs/0007-use-a_queue.md")
    'Use a queue'
    """
    words = re.sub(r"^(?:(?:adr|rfc)[-_. ]*)?[\d._-]*(?=\D)", "", stem(path), flags=re.IGNORECASE)
    title = " ".join(re.split(r"[-_\s]+", words)).strip()
    return f"{title[:1].upper()}{title[1:]}" or stem(path)


def heading_name(title: str) -> str:
    """Return a heading normalised for lookup: lower case, without number and colon."""
    return " ".join(re.sub(r"^[\W\d_]+|[\W_]+$", "", title.casefold()).split())


def part_of(title: str) -> str | None:
    """Return the part of a record that a heading opens, or None for any other heading.

    >>> part_of("2. Decision Outcome:"), part_of("Positive Consequences"), part_of("Sidekiq")
    ('decision', 'consequences', None)
    """
    return _PART_OF.get(heading_name(title))


def is_title(heading: str) -> bool:
    """Return whether the first heading of a page is its title. `# Decisions`, the title of a list of decisions, is."""
    return heading_name(heading) not in PART.keys() | UNTITLED or heading_name(heading) == "decisions"


def key_name(text: str) -> str:
    """Return the key of a field normalised for lookup: lower case, words separated by spaces."""
    return re.sub(r"[\s_-]+", " ", text.strip().casefold())


def relation_of(match: re.Match[str]) -> str:
    """Return the relation that `RELATION` matched: ends, ended, amends or amended.

    A record that supersedes another in part only amends it: the other stays active.
    """
    relation = str(match.lastgroup)
    is_partial = match["before"] or match["within"]
    return {"ends": "amends", "ended": "amended"}.get(relation, relation) if is_partial else relation


def status_word(line: MarkdownLine) -> str:
    """Return the status word a line begins with, `superseded` if it only names a successor, or an empty text.

    A record that only names the record that amends it is accepted. One that is superseded, deprecated or rejected in
    part is `partly` so.
    """
    plain = re.sub(r"~~.*?~~", "", ISO_DATE.sub("", line.plain))
    relation = RELATION.search(plain)
    head = re.sub(r"^[\W_]+", "", plain[: relation.start()] if relation else plain).casefold()
    partly = _IN_PART.match(head)
    match = _STATUS_WORD.match(head[partly.end() :] if partly else head)
    if match:
        status = WORDS[match[1]]
        return f"partly {status}" if partly and status in ("deprecated", "rejected") else match[1]
    if head or relation is None:
        return ""
    if relation["before"] or relation["within"]:
        return "partly superseded" if relation["ended"] else ""
    return "accepted" if relation["amended"] else "superseded" if relation["ended"] else ""


def is_in_question(line: MarkdownLine) -> bool:
    """Return whether a question mark stands after the status word of *line*.

    >>> [is_in_question(parse_line(0, text)) for text in ("Accepted? (see #42)", "**Accepted** (?)", "Accepted (why?)")]
    [True, True, False]
    """
    head = re.sub(r"^[\W_]+", "", line.plain).casefold()
    match = _STATUS_WORD.match(head)
    return match is not None and re.match(r"[\W_]*\?", head[match.end() :]) is not None


def without_end(text: str) -> tuple[str, str]:
    """Return the text of a status without the words that say until when it holds, and these words.

    >>> without_end("Accepted 2026-01-02, trial until 2026-12-31")
    ('Accepted 2026-01-02, trial ', 'until 2026-12-31')
    """
    match = _UNTIL.search(text)
    return (text[: match.start()] + text[match.end() :], match[0]) if match else (text, "")


def is_bare_status(line: MarkdownLine) -> bool:
    """Return whether *line*, which has no key, is the status of the record.

    >>> lines = [parse_line(0, text) for text in ("*Rejected* on 2026-05-01", "Proposed", "Open files leak.", "Parked")]
    >>> [is_bare_status(line) for line in lines]
    [True, True, False, False]
    """
    is_relation = RELATION.match(line.text.lstrip("*_ "))
    return not is_relation and len(line.text) <= _LONGEST_STATUS and _BARE_STATUS.fullmatch(line.text) is not None


def status_doubt(line: MarkdownLine) -> re.Match[str] | None:
    """Return the words of the status *line* by which an accepted decision has ended or may not hold, or None."""
    plain = re.sub(r"~~.*?~~", "", line.plain)
    relation = RELATION.search(plain)
    head = (plain[: relation.start()] if relation else plain).casefold()
    return NO_LONGER.search(head) or _IN_DOUBT.search(head)


def references(line: MarkdownLine, text: str) -> Iterator[Reference]:
    """Yield a reference for each record named in *text* (of *line*) after a word for a relation."""
    verbs = list(RELATION.finditer(text))
    for verb, following in zip_longest(verbs, verbs[1:]):
        segment = ISO_DATE.sub("", text[verb.end() : following.start() if following else len(text)])
        words = MARK.sub(" ", segment)
        named = [line.links[int(mark[1])] for mark in MARK.finditer(segment)]
        named += [(mention[1] or mention[0], "") for mention in _MENTION.finditer(words.strip())]
        rest = words.strip(" \t.:;,()[]`*_-")
        if not named and rest.casefold() not in ("", "none", "null", "~", "n/a", "tbd"):
            named = [(rest, "")]
        relation = relation_of(verb)
        yield from (Reference(relation, name, href, line.number) for name, href in named)


def number_of(path: str, title: str) -> int | None:
    """Return the number in the name of a file, else in the title of the record; a date is not a number.

    >>> number_of("docs/rfc-12-use-a-queue.md", ""), number_of("20200924-use-a-queue.md", "Use a queue")
    (12, None)
    """
    named, titled = number_of_name(stem(path)), _NUMBERED.match(title)
    digits = next(filter(None, titled.groups()), "") if titled else ""
    return named if named is not None else int(digits) if digits else None


def unnumbered(title: str) -> str:
    """Return a title without its number.

    >>> unnumbered("ADR-0007: Use Oxigraph")
    'Use Oxigraph'
    """
    return _NUMBERED.sub("", title, count=1) if _NUMBERED.match(title) else title


def chosen(outcome: str) -> tuple[str, str]:
    """Return the option that a MADR outcome chose and its justification; both are empty for any other text.

    >>> chosen('Chosen option: "Neutral, because …", because it fits best.')
    ('Neutral, because …', 'it fits best.')
    """
    match = _CHOSEN.match(outcome)
    if not match:
        return "", ""
    option = match["double"] or match["single"] or match["plain"] or ""
    why = match["why"] if match["why"] is not None else outcome[match.end() :]
    return parse_line(0, option).plain.replace("`", "").strip(), why.strip()


def gives_reason(text: str) -> bool:
    """Return whether *text* contains words that introduce a reason.

    >>> gives_reason("We use Meilisearch, because Lunr is deprecated."), gives_reason("In use since 2019.")
    (True, False)
    """
    return _REASON.search(text) is not None


def number_in(text: str) -> int | None:
    """Return the number at the start of *text*, as in `ADR-0009`, `#9` and `9. Help scripts`."""
    match = re.match(r"\W*(?:ADR|decision|record)?[\s#_-]*(\d{1,8})(?!\d)", text, re.IGNORECASE)
    return int(match[1]) if match else None
