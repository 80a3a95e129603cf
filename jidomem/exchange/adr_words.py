"""How decision records word things: their headings, statuses, dates, numbers, and how they name each other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from jidomem.exchange.adr_dates import ISO_DATE
from jidomem.exchange.adr_page import MARK, Line, parse_line
from jidomem.repository.record_files import number_of_name, record_name

#: What the headings of a record are called, by the part they play.
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
#: The parts of a record in the order in which a reader wants them: the decision first, the context after what follows
#: from the decision; `None` are sections that have a heading of their own.
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
_STATUS_WORD = re.compile(rf"({'|'.join(sorted(WORDS, key=len, reverse=True))})\b")
#: The fields that date a record, the one that says when it was decided first; and fields by their other names.
DATE_KEYS = (
    "decision date", "date decided", "decided", "decided on", "date", "date accepted", "accepted on", "approved on",
    "created", "created on", "creation date", "date created", "start date", "proposed on", "submitted",
)  # fmt: skip
KEY_ALIASES: Mapping[str, str] = {
    "decision status": "status", "current status": "status", "state": "status", "statut": "status",
    "estado": "status", "stato": "status", "datum": "date", "fecha": "date",
}  # fmt: skip
#: Headings of level 1 that are no titles.
UNTITLED = frozenset(
    ("summary", "meta", "metadata", "abstract", "introduction", "overview", "table of contents", "contents")
)
#: Front matter that only places the page on a website.
PLACEMENT = frozenset(
    ("parent", "grand_parent", "nav_order", "nav_exclude", "has_children", "has_toc", "layout", "permalink")
)

_PARTLY = r"(?:part(?:ly|ial(?:ly)?)|(?:mostly|largely)|in[ -]part)"
#: `superseded by` with its historic spellings, and the other words that tie one record to another; see `relation_of`.
RELATION = re.compile(
    rf"\b(?P<before>{_PARTLY}[ ,-]+)?"
    rf"(?:(?P<ended>super[cs]+e+ded(?P<within>[ ,-]+{_PARTLY}\b)?(?:[ -]+(?:by|in|with))?"
    r"|(?:replaced|obsoleted)[ -]+by)"
    r"|(?P<ends>super[cs]+e+d(?:es|s|ing)|replaces|obsoletes)"
    r"|(?P<amended>(?:amended|clarified|refined|extended)[ -]+by)|(?P<amends>amends|clarifies|refines|extends))\b\s*:?",
    re.IGNORECASE,
)
_IN_PART = re.compile(rf"{_PARTLY}\b[ ,:-]*", re.IGNORECASE)
_MENTION = re.compile(
    r"[\w./%-]+\.md\b|\bADR[\s_#-]*\d{1,8}\b|#\d{1,8}\b|(?:^|,|&|\band\b)\s*(\d{1,8})\b(?!\.\d)", re.IGNORECASE
)
KEY = re.compile(r"\W*([A-Za-z][A-Za-z _-]{0,40}?)\s*:\s*(.*)", re.DOTALL)
_NUMBERED = re.compile(
    r"\W*(?:(?:ADR|RFC|decision)[\s#_-]*(\d+)\W*?(?:[.:)\]]\s+|\s*[-–—]\s+|\s+)|(\d+)(?:[.:)]\s+|\s*[-–—]\s+)|(0\d+)\s+)(?=\S)",
    re.IGNORECASE,
)
_CHOSEN = re.compile(
    r"\W*chosen\s+(?:option|alternative)\W*?:[\s*_]*"
    r"(?:[\"“](?P<double>.+?)[\"”]|['‘](?P<single>.+?)['’]|(?P<plain>.+?))"
    r"(?:[^\w\"'”’]*because\b(?P<why>.*)|[\s*_]*(?:\.\s|\n|$))",
    re.IGNORECASE | re.DOTALL,
)
#: How a sentence gives a reason; "since" with a date or a version is none.
_REASON = re.compile(
    r"\b(?:because|since(?!\s+(?:then|v?\d|version|release|the (?:release|version|beginning|start)))|so that"
    r"|in order to|due to)\b",
    re.IGNORECASE,
)
URL = re.compile(r"https?://[^\s<>\"{}|\\^`]+")


@dataclass(frozen=True, slots=True)
class Reference:
    """One record naming another: `relation` is ends, ended, amends or amended; `href` is the address of a link."""

    relation: str
    text: str
    href: str
    line: int


def slug(text: str) -> str:
    """Return *text* as one lower-case word with dashes, to compare and to name by.

    >>> slug("Use `adr-log`, not a Wiki")
    'use-adr-log-not-a-wiki'
    """
    return re.sub(r"[^\w+#]+", "-", text.casefold()).strip("-")


def stem(path: str) -> str:
    """Return the name of a record by the path of its file, or of the folder of its own that it lies in.

    >>> stem("docs/adr/0007-use-oxigraph.md"), stem("../0008-use-a-log/")
    ('0007-use-oxigraph', '0008-use-a-log')
    """
    return record_name(path.rstrip("/"))


def title_of_name(path: str) -> str:
    """Return the title that the name of a file stands for.

    >>> title_of_name("rfcs/0007-use-a_queue.md")
    'Use a queue'
    """
    words = re.sub(r"^(?:(?:adr|rfc)[-_. ]*)?[\d._-]*(?=\D)", "", stem(path), flags=re.IGNORECASE)
    title = " ".join(re.split(r"[-_\s]+", words)).strip()
    return f"{title[:1].upper()}{title[1:]}" or stem(path)


def heading_name(title: str) -> str:
    """Return a heading as it is looked up: lower case, without numbering and colon."""
    return " ".join(re.sub(r"^[\W\d_]+|[\W_]+$", "", title.casefold()).split())


def part_of(title: str) -> str | None:
    """Return the part of a record that a heading opens, None for a heading of its own.

    >>> part_of("2. Decision Outcome:"), part_of("Positive Consequences"), part_of("Sidekiq")
    ('decision', 'consequences', None)
    """
    return _PART_OF.get(heading_name(title))


def is_title(heading: str) -> bool:
    """Return whether the first heading of a page is its title: `# Decisions` is, of a list of them."""
    return heading_name(heading) not in PART.keys() | UNTITLED or heading_name(heading) == "decisions"


def key_name(text: str) -> str:
    """Return the key of a field as it is looked up: lower case, words apart."""
    return re.sub(r"[\s_-]+", " ", text.strip().casefold())


def relation_of(found: re.Match[str]) -> str:
    """Return how what `RELATION` found ties two records: ends, ended, amends or amended.

    One that supersedes another in part amends it: the other one stands.
    """
    relation = str(found.lastgroup)
    is_partial = found["before"] or found["within"]
    return {"ends": "amends", "ended": "amended"}.get(relation, relation) if is_partial else relation


def status_word(line: Line) -> str:
    """Return the known status word a line opens with, `superseded` when it only names a successor, or nothing.

    A record that only names what amends it is accepted; one superseded, deprecated or rejected in part is `partly` so.
    """
    plain = re.sub(r"~~.*?~~", "", ISO_DATE.sub("", line.plain))
    relation = RELATION.search(plain)
    head = re.sub(r"^[\W_]+", "", plain[: relation.start()] if relation else plain).casefold()
    partly = _IN_PART.match(head)
    found = _STATUS_WORD.match(head[partly.end() :] if partly else head)
    if found:
        status = WORDS[found[1]]
        return f"partly {status}" if partly and status in ("deprecated", "rejected") else found[1]
    if head or relation is None:
        return ""
    if relation["before"] or relation["within"]:
        return "partly superseded" if relation["ended"] else ""
    return "accepted" if relation["amended"] else "superseded" if relation["ended"] else ""


def references(line: Line, text: str) -> Iterator[Reference]:
    """Yield the records that *text* (of *line*) names after each word that ties it to them."""
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
    """Return the number in a file's name, or else in the title of the record; a date is none.

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
    """Return the option a MADR outcome chose and the justification after it, both empty in any other text.

    >>> chosen('Chosen option: "Neutral, because …", because it fits best.')
    ('Neutral, because …', 'it fits best.')
    """
    found = _CHOSEN.match(outcome)
    if not found:
        return "", ""
    option = found["double"] or found["single"] or found["plain"] or ""
    why = found["why"] if found["why"] is not None else outcome[found.end() :]
    return parse_line(0, option).plain.replace("`", "").strip(), why.strip()


def gives_reason(text: str) -> bool:
    """Return whether words of *text* give a reason.

    >>> gives_reason("We use Meilisearch, because Lunr is deprecated."), gives_reason("In use since 2019.")
    (True, False)
    """
    return _REASON.search(text) is not None


def number_in(text: str) -> int | None:
    """Return the number *text* opens with, as in `ADR-0009`, `#9` and `9. Help scripts`."""
    found = re.match(r"\W*(?:ADR|decision|record)?[\s#_-]*(\d{1,8})(?!\d)", text, re.IGNORECASE)
    return int(found[1]) if found else None
