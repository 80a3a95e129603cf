"""The parts of the curator's pages: requests, labels, permissions, memories in lists, comparisons and refusals.

`PageRequest` is the project, moment and arguments of a page, and makes links to other pages. A
`PageKind` is one page: its address, its values and its action. `name_invisible` makes text of agents harmless;
`compared` puts two memories side by side. A page offers only the actions of its user, and names the
roles that may do the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.words import cut, excerpt, is_legible
from jidomem.check import terms
from jidomem.errors import JidomemError, NotFound, PolicyDenied
from jidomem.index.timeline import Overview, TimelineEntry, overview
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import BASE, MARKER, REDACTED, jido, local_name, short_id
from jidomem.read.memory_detail import has_ended
from jidomem.records.active import is_due
from jidomem.records.named_query import moment_of
from jidomem.runtime.root import Jidomem
from jidomem.schema.ontology import Schema
from jidomem.serve.server_state import RequestContext
from jidomem.write.writer import MemoryWriter


class NamedTerm(NamedTuple):
    """The label of a term and its IRI, None if the ontology does not have it."""

    text: str
    iri: str | None


def named(schema: Schema, name: str) -> NamedTerm:
    """Return the label of a term, by its IRI or its local name.

    >>> from jidomem.schema import ontology as schema
    >>> named(schema.load(), "detailedExplanation")
    NamedTerm(text='detailed explanation', iri='https://jido.ai/ontology#detailedExplanation')
    >>> named(schema.load(), "DeletedMarker").text
    'withdrawal'
    >>> named(schema.load(), "colour")
    NamedTerm(text='colour', iri=None)
    """
    return _names(schema).get(name) or NamedTerm(name, None)


@lru_cache(maxsize=4)
def _names(schema: Schema) -> Mapping[str, NamedTerm]:
    """Return the terms by IRI and by local name; the shipped terms come before those of a root of the same name."""
    labels, names = terms.labels(schema), dict[str, NamedTerm]()
    for term in sorted(schema.declared, key=lambda term: (term not in schema.properties, term)):
        label = "withdrawal" if term == jido(MARKER) else labels.get(term)
        name = NamedTerm(label or local_name(term), plain_value(term))
        names[plain_value(term)] = name
        names.setdefault(local_name(term), name)
    return names


#: The argument of every page that is part of all its links.
AS_OF = "as_of"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request for a page; `as_of` is the moment of everything on the page, None for now."""

    site: RequestContext
    project: str
    given: Mapping[str, str]
    as_of: str | None = None

    @classmethod
    def of(cls, site: RequestContext, project: str, given: Mapping[str, str]) -> PageRequest:
        """Return the request with the arguments *given*; raise InvalidRequest for a malformed moment."""
        return cls(site, project, given, moment_of(given.get(AS_OF) or None, AS_OF))

    @property
    def memory(self) -> Jidomem:
        """Return the open memory."""
        return self.site.memory

    @property
    def moment(self) -> dict[str, str]:
        """Return the moment as an argument of the reader."""
        return {} if self.as_of is None else {AS_OF: self.as_of}

    @property
    def valid_at(self) -> str:
        """Return the moment of validity of memories: that of the page, or now."""
        return self.as_of or format_timestamp(self.memory.sources.now())

    def timeline(self, within: Mapping[str, str], count: int, after: TimelineEntry | None = None) -> Overview:
        """Return *count* memories *within* some facets, the newest first, *after* one; raises Busy without an index."""
        return self.memory.texts.read_soon(
            Stream(self.project),
            lambda file: overview(file, within, moment=self.as_of, valid_at=self.valid_at, after=after, count=count),
        )

    def term(self, name: str) -> NamedTerm:
        """Return the label of a term of the ontology, by its IRI or its local name."""
        return named(self.memory.schema, name)

    def link(self, *parts: str, **arguments: Any) -> str:
        """Return the address of another page of the project, at the same moment, without empty arguments."""
        path = "/".join(quote(part, safe="") for part in ("ui", self.project, *parts))
        arguments_given = {AS_OF: self.as_of, **arguments}
        pairs = [(name, value) for name, value in arguments_given.items() if value not in (None, "", (), [])]
        return f"/{path}?{urlencode(pairs, doseq=True)}" if pairs else f"/{path}"


_READER = "{} has the token of a reader, which is read-only; ask the operator for one of the role agent or curator"


def why_not_write(page: PageRequest) -> str | None:
    """Return the reason why the caller may not write; None if it may."""
    caller = page.site.caller
    if page.site.operation.read_only:
        return "This server is for reading only"
    return _READER.format(caller.agent) if caller is not None and caller.role == "reader" else None


def why_not_curate(page: PageRequest) -> str | None:
    """Return the reason why the caller may not decide proposed terms; None if it may."""
    return _refusal(page, lambda writer: writer.check_curator(page.project, writer.agent, "judge proposed terms"))


def why_not_correct(page: PageRequest, *items: str, asserted: bool = False) -> str | None:
    """Return the reason why the caller may not correct *items*, or not with an assertion; None if it may."""

    def check(writer: MemoryWriter) -> None:
        for item in items:
            writer.check_corrects(page.project, item, asserted=asserted)

    return _refusal(page, check)


def _refusal(page: PageRequest, check: Callable[[MemoryWriter], None]) -> str | None:
    if page.as_of is not None:  # past states are read-only
        return None
    if (why := why_not_write(page)) is not None:
        return why
    try:
        check(page.site.writer)
    except PolicyDenied as error:
        return f"{error.detail}; {error.hint}"
    return None


_PICTURES = 0x2400
_MIN_CHARS_READ = 4_000
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def name_invisible(text: object) -> str:
    r"""Return *text* with invisible and control characters written out.

    >>> name_invisible("a\x07b\u202ec")
    'a\u2407b⟨U+202E⟩c'
    """
    plain = str(text)
    if _is_plain(plain):
        return plain
    return "".join(each if is_legible(each) else _named(each) for each in plain)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _named(sign: str) -> str:
    code = ord(sign)
    return chr(_PICTURES + code) if code < 0x20 else f"\u27e8U+{code:04X}\u27e9"


def short(text: object, length: int = 240) -> str:
    """Return the beginning of a long text on one line, cut at the end of a sentence if one is near."""
    return cut(str(text)[: max(length * 4, _MIN_CHARS_READ)], length)[0]


def is_http_url(address: object) -> bool:
    """Return whether *address* is a web address; only these become links."""
    try:
        parsed = urlsplit(str(address))
    except ValueError:
        return False
    is_ours = str(address).startswith(BASE)  # our IRIs lead to no page
    return parsed.scheme in ("http", "https") and bool(parsed.netloc) and str(address).isprintable() and not is_ours


def display_name(value: object) -> str:
    """Return the text for a value: the short id of a memory, the local name of a term, a moment in words.

    >>> display_name("https://jido.ai/ontology#Planned")
    'Planned'
    """
    if isinstance(value, datetime):
        return f"{format_minute(value)}:{value:%S} UTC"
    name = str(value)
    if name.startswith(f"{BASE}memory/"):
        return short_id(name)
    return local_name(name) if name.startswith(BASE) and local_name(name) else name


def words(name: object) -> str:
    """Return a local name as words, as at the start of a line.

    >>> words("ArchitecturalDecision"), words("DSL"), words("actionable_only")
    ('Architectural decision', 'DSL', 'Actionable only')
    """
    parts = _WORDS.sub(" ", str(name)).replace("_", " ").split()
    sentence = " ".join(part if part.isupper() else part.lower() for part in parts)
    return sentence[:1].upper() + sentence[1:]


def format_day(moment: object) -> str:
    """Return the day of a moment in words: Saturday, 21 November 2026."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%A}, {at.day} {at:%B} {at.year}"


def format_clock(moment: object) -> str:
    """Return the time of day of a moment, UTC."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%H:%M}"


def format_minute(moment: object) -> str:
    """Return a moment to the minute, UTC: 21 November 2026, 08:00."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at.day} {at:%B} {at.year}, {at:%H:%M}"


def format_exact(moment: object) -> str:
    """Return a moment in its written form."""
    return format_timestamp(moment) if isinstance(moment, datetime) else str(moment)


def is_moment(value: object) -> bool:
    """Return whether *value* is a moment."""
    return isinstance(value, datetime)


_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
#: The most words of texts that are compared word by word, in quadratic time; longer ones are compared as a whole.
_MOST = 2_000
#: Characters of a text that are shown side by side.
_MAX_COMPARED_CHARS = 4_000


class TextPart(NamedTuple):
    """A part of a text, and whether the other text lacks it."""

    text: str
    differs: bool


def compared(left: Mapping[str, Sequence[Any]], right: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each property of either memory with its values on both sides, as parts of texts.

    >>> [row] = compared({"summary": ["use tabs"]}, {"summary": ["use spaces"]})
    >>> [part["text"] for part in row["right"] if part["differs"]]
    ['spaces']
    """
    for name in dict.fromkeys((*left, *right)):
        one, other = (" · ".join(map(display_name, side.get(name, ()))) for side in (left, right))
        ours, theirs = parts(_cut(one), _cut(other))
        yield {"name": name, "differs": one != other, "left": [*map(TextPart._asdict, ours)],
               "right": [*map(TextPart._asdict, theirs)]}  # fmt: skip


def _cut(text: str) -> str:
    beginning = text[:_MAX_COMPARED_CHARS]
    return text if text == beginning else f"{beginning} … ({len(text):,} characters: see the memory itself)"


def parts(left: str, right: str) -> tuple[list[TextPart], list[TextPart]]:
    """Return both texts in parts; those that the other text lacks are marked."""
    one, other = _TOKENS.findall(left), _TOKENS.findall(right)
    if len(one) + len(other) > _MOST:
        return [TextPart(left, left != right)], [TextPart(right, left != right)]
    ours, theirs = [], []
    for how, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        ours.append(TextPart("".join(one[a:b]), how != "equal"))
        theirs.append(TextPart("".join(other[c:d]), how != "equal"))
    return [part for part in ours if part.text], [part for part in theirs if part.text]


#: Dates within this time are marked as due soon.
SOON = timedelta(days=14)
#: property -> the text of its badge when the date is over, and before.
_DATES = {"expiresOn": ("review due since", "review due"), "validUntil": ("valid until", "valid until")}
#: The most characters of the rationale or explanation in a list.
_EXCERPT = 300
_AGENTS, _SESSIONS = f"{BASE}agents/", f"{BASE}sessions/"


def row(page: PageRequest, item: str) -> dict[str, Any]:
    """Return the row of one memory, as of the moment of the page."""
    memory = page.memory.reader.get_memory(page.project, item, **page.moment)
    return memory_row(page, memory)


def memory_row(page: PageRequest, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the short form of a memory that was read."""
    properties = memory["properties"]
    return {
        "iri": memory["iri"],
        "id": short_id(memory["iri"]),
        "link": page.link("memories", memory["iri"]),
        "class": memory["class"],
        "status": memory["status"],
        "summary": first(properties, "summary") or REDACTED,
        "excerpt": excerpt(properties, _EXCERPT),
        "topic": first(properties, "topic"),
        "confidence": str(first(properties, "hasConfidence") or "").rpartition("#")[2],
        "agent": agent(first(properties, "assertedBy") or ""),
        "session": str(first(properties, "assertedIn") or "").removeprefix(_SESSIONS),
        "time": _stamped(first(properties, "hasTimestamp")),
        "recorded_at": _stamped(memory["recorded_at"]),
        "badges": badges(page, memory),
    }


def badges(page: PageRequest, memory: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the badges of a memory: conflicts, and dates that are over, or soon."""
    if has_ended(memory):
        return []
    now = parse_moment(page.as_of) if page.as_of else page.memory.sources.now()
    assert now is not None
    marks = []
    rivals = page.memory.reader.ask("disagreements", project=page.project, item=memory["iri"], as_of=page.as_of)
    if rivals:
        marks.append({"kind": "conflict", "text": f"conflicts with {len({one['other'] for one in rivals})}"})
    for name, (over, soon) in _DATES.items():
        due = parse_moment(first(memory["properties"], name))
        is_task = name == "expiresOn" and "hasTaskStatus" in memory["properties"]
        if due is not None and is_due(due, now, is_task=is_task):
            marks.append({"kind": "expired", "text": f"{over} {due:%Y-%m-%d}"})
        elif due is not None and due - now < SOON:
            marks.append({"kind": "expires", "text": f"{soon} {due:%Y-%m-%d}"})
    return marks


def agent(name: str) -> str:
    """Return the name of an agent, or its IRI if it is of another namespace."""
    return name.removeprefix(_AGENTS)


def first(properties: Mapping[str, Any], name: str) -> Any:
    """Return the first value of a property, None if it has none."""
    return next(iter(properties.get(name, ())), None)


def _stamped(moment: object) -> str:
    return format_timestamp(moment) if isinstance(moment, datetime) else str(moment or "")


#: Statuses of refusals that another session may have caused.
_MEANWHILE = (400, 404, 409)


class RefusalNotice(JidomemError):
    """A refusal; `rows` have each memory concerned: text, address, reason and hint."""

    code = "conflict"

    def __init__(self, detail: str, *, hint: str, rows: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(detail, hint=hint)
        self.rows = rows


class InvalidForm(JidomemError):
    """A form with invalid values; `model` is the model of the page with each fault."""

    def __init__(self, error: JidomemError, model: Mapping[str, Any]) -> None:
        super().__init__(error.detail, hint=error.hint, code=error.code)
        self.model = model


def explained(page: PageRequest, error: JidomemError, *items: str | None) -> JidomemError:
    """Return *error*, or, if another session ended one of *items* meanwhile, the notice with their successors."""
    if error.http_status not in _MEANWHILE:
        return error
    rows = [row for item in items if item and (row := _ended(page, item))]
    if not rows:
        return error
    return RefusalNotice(
        "another session has decided this already; nothing was changed", hint="follow the link to its end", rows=rows
    )


def _ended(page: PageRequest, item: str) -> dict[str, Any] | None:
    """Return the row of an ended memory with its successor; None for any other."""
    reader = page.memory.reader
    try:
        memory = reader.get_memory(page.project, item)
        ends = [*memory["superseded_by"], *memory["invalidated_by"]]
        if not ends:
            return None
        end = reader.get_memory(page.project, ends[0])
    except NotFound:
        return None
    words = ("accepted", "rejected") if _was_proposed(memory) else ("replaced", "withdrawn")
    word, row = words[not memory["superseded_by"]], memory_row(page, end)
    by = agent(first(end["properties"], "settledBy") or "") or row["agent"]
    return {
        "text": first(memory["properties"], "summary") or REDACTED,
        "link": page.link("memories", item),
        "detail": f"{word} by {by}, {format_minute(row['recorded_at'])} UTC: {row['summary']}",
        "hint": "",
        "further": row["link"],
    }


def _was_proposed(memory: Mapping[str, Any]) -> bool:
    return any(local_name(each) == "Proposed" for each in memory["properties"].get("hasAssertionStatus", ()))


def outcome_row(page: PageRequest, item: str) -> dict[str, Any]:
    """Return the row of a memory that is not in the review: what ended it, or else its status."""
    if ended := _ended(page, item):
        return ended
    memory = row(page, item)
    detail = f"{memory['status']}, and nothing is pending on it"
    return {"text": memory["summary"], "link": memory["link"], "detail": detail, "hint": "", "further": None}


def refused_row(page: PageRequest, item: str, error: JidomemError) -> dict[str, Any]:
    """Return the row of one refusal among several."""
    why = explained(page, error, item)
    if isinstance(why, RefusalNotice):
        return dict(why.rows[0])
    try:
        text = row(page, item)["summary"]
    except JidomemError:
        return {"text": item, "link": None, "detail": error.detail, "hint": error.hint, "further": None}
    link = page.link("memories", item)
    return {"text": text, "link": link, "detail": error.detail, "hint": error.hint, "further": None}


#: Returns the model of a page as plain values, which are also its JSON; parts of the path are passed by name.
Show = Callable[..., Mapping[str, Any]]
#: Performs the action of a form, and returns the address of the next page.
Act = Callable[..., str]


@dataclass(frozen=True, slots=True)
class PageKind:
    """One kind of page.

    `path` is the address below the project, with parts in braces; `takes` are its arguments besides as_of,
    and `is_open` allows others. `act` performs one of `acts`; a form has the field `act` and those in
    `fields`; fields in `several` may be repeated, one value per line. Past states are read-only. A read-only
    token may act if the screen does not write (`writes`). Screens with a `menu` are in the menu. An action in `redraws`
    writes nothing: the page is shown again with the values of the form, and with further arguments.
    """

    path: str
    template: str
    show: Show
    takes: tuple[str, ...] = ()
    act: Act | None = None
    acts: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    menu: str | None = None
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    style_hashes: tuple[str, ...] = ()
    is_open: bool = False
    several: tuple[str, ...] = ()
    writes: bool = True
    redraws: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the first part of its path."""
        return self.path.partition("/")[0]
