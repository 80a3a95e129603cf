"""The parts of the curator's pages: requests, labels, permissions, memories in lists, comparisons
and refusals.

`PageRequest` is the project, moment and arguments of a page, and makes links to other pages. A
`Screen` is one page: its address, its values and its action. `shown` makes text of agents harmless;
`compared` puts two memories side by side. A page offers only what its user may do, and names who
may do the rest.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.words import cut, excerpt
from jidomem.check import terms
from jidomem.errors import JidomemError, NotFound, PolicyDenied
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import BASE, REDACTED, local_name
from jidomem.read.memory_detail import short_id
from jidomem.records.active import ENDED
from jidomem.records.named_query import moment_of
from jidomem.runtime.root import Jidomem
from jidomem.schema.ontology import Schema
from jidomem.serve.server_state import RequestContext
from jidomem.write.writer import MemoryWriter


class NamedTerm(NamedTuple):
    """The label of a term and its IRI, None where the ontology does not have it."""

    text: str
    iri: str | None


def named(schema: Schema, name: str) -> NamedTerm:
    """Return what a term is called, by its IRI or its local name.

    >>> from jidomem.schema import ontology as schema
    >>> named(schema.load(), "detailedExplanation")
    NamedTerm(text='detailed explanation', iri='https://jido.ai/ontology#detailedExplanation')
    >>> named(schema.load(), "colour")
    NamedTerm(text='colour', iri=None)
    """
    return _names(schema).get(name) or NamedTerm(name, None)


@lru_cache(maxsize=4)
def _names(schema: Schema) -> Mapping[str, NamedTerm]:
    """Return the terms by IRI and by local name; ours before those of a root, which are called after them."""
    labels, names = terms.labels(schema), dict[str, NamedTerm]()
    for term in sorted(schema.declared, key=lambda term: (term not in schema.properties, term)):
        name = NamedTerm(labels.get(term) or local_name(term), plain_value(term))
        names[plain_value(term)] = name
        names.setdefault(local_name(term), name)
    return names


#: The argument every page takes, and hands on to every page it links to.
AS_OF = "as_of"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """One request for a page; `as_of` is the moment all of it is shown as of, None for now."""

    site: RequestContext
    project: str
    given: Mapping[str, str]
    as_of: str | None = None

    @classmethod
    def of(cls, site: RequestContext, project: str, given: Mapping[str, str]) -> PageRequest:
        """Return what is asked with the arguments *given*; raises InvalidRequest for a moment that is none."""
        return cls(site, project, given, moment_of(given.get(AS_OF) or None, AS_OF))

    @property
    def memory(self) -> Jidomem:
        """Return the open memory."""
        return self.site.memory

    @property
    def moment(self) -> dict[str, str]:
        """Return the moment as the reader takes it."""
        return {} if self.as_of is None else {AS_OF: self.as_of}

    @property
    def valid_at(self) -> str:
        """Return the moment at which memories are to hold in the world: that of the page, or now."""
        return self.as_of or format_timestamp(self.memory.sources.now())

    def term(self, name: str) -> NamedTerm:
        """Return what a term of the ontology is called, by its IRI or its local name."""
        return named(self.memory.schema, name)

    def link(self, *parts: str, **arguments: Any) -> str:
        """Return the address of another page of this project, at the same moment; what is None or empty is left out."""
        path = "/".join(quote(part, safe="") for part in ("ui", self.project, *parts))
        arguments_given = {AS_OF: self.as_of, **arguments}
        pairs = [(name, value) for name, value in arguments_given.items() if value not in (None, "", (), [])]
        return f"/{path}?{urlencode(pairs, doseq=True)}" if pairs else f"/{path}"


_READER = (
    "{} has the token of a reader, who changes nothing; ask who runs the server for one of the role agent or curator"
)


def why_not_write(page: PageRequest) -> str | None:
    """Return why who asks changes nothing here at all; None where it may."""
    caller = page.site.caller
    return _READER.format(caller.agent) if caller is not None and caller.role == "reader" else None


def why_not_curate(page: PageRequest) -> str | None:
    """Return why who asks may not judge what terms there are; None where it may."""
    return _refusal(page, lambda writer: writer.check_keeper(page.project, writer.agent, "judge proposed terms"))


def why_not_correct(page: PageRequest, *items: str, asserted: bool = False) -> str | None:
    """Return why who asks may not correct *items*, or not so that it is *asserted*; None where it may."""

    def check(writer: MemoryWriter) -> None:
        for item in items:
            writer.check_corrects(page.project, item, asserted=asserted)

    return _refusal(page, check)


def _refusal(page: PageRequest, check: Callable[[MemoryWriter], None]) -> str | None:
    if page.as_of is not None:  # nothing is done in the past, whoever asks
        return None
    if (why := why_not_write(page)) is not None:
        return why
    try:
        check(page.site.writer)
    except PolicyDenied as error:
        return f"{error.detail}; {error.hint}"
    return None


#: Signs that a browser acts on, or that turn the direction of what follows them.
_ACTING = frozenset(("Cc", "Cf", "Co", "Cs"))
#: Of these what people write with: new lines, tabs, joiners of scripts and of emoji.
_WRITTEN = frozenset("\n\t\u200c\u200d")
_PICTURES = 0x2400
_SHORT = 4_000
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def shown(text: object) -> str:
    r"""Return *text* with what cannot be seen, or acts, written out.

    >>> shown("a\x07b\u202ec")
    'a\u2407b⟨U+202E⟩c'
    """
    text_shown = str(text)
    if _is_plain(text_shown):
        return text_shown
    return "".join(each if _is_harmless(each) else _named(each) for each in text_shown)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _is_harmless(sign: str) -> bool:
    return _is_plain(sign) or sign in _WRITTEN or unicodedata.category(sign) not in _ACTING


def _named(sign: str) -> str:
    code = ord(sign)
    return chr(_PICTURES + code) if code < 0x20 else f"\u27e8U+{code:04X}\u27e9"


def short(text: object, length: int = 240) -> str:
    """Return the beginning of a long text on one line, cut at the end of a sentence where one is near."""
    return cut(str(text)[: max(length * 4, _SHORT)], length)[0]


def is_web(address: object) -> bool:
    """Return whether *address* leads to a page of the web, which alone becomes a link."""
    try:
        parsed = urlsplit(str(address))
    except ValueError:
        return False
    is_ours = str(address).startswith(BASE)  # names of ours lead nowhere
    return parsed.scheme in ("http", "https") and bool(parsed.netloc) and str(address).isprintable() and not is_ours


def display_name(value: object) -> str:
    """Return how people name a value: a memory by its short id, another of ours by its last part, a moment in words.

    >>> display_name("https://jido.ai/ontology#Planned")
    'Planned'
    """
    if isinstance(value, datetime):
        return f"{when(value)}:{value:%S} UTC"
    name = str(value)
    if name.startswith(f"{BASE}memory/"):
        return short_id(name)
    return local_name(name) if name.startswith(BASE) and local_name(name) else name


def words(name: object) -> str:
    """Return a name of ours as words, as a line begins with them.

    >>> words("ArchitecturalDecision"), words("DSL"), words("actionable_only")
    ('Architectural decision', 'DSL', 'Actionable only')
    """
    parts = _WORDS.sub(" ", str(name)).replace("_", " ").split()
    sentence = " ".join(part if part.isupper() else part.lower() for part in parts)
    return sentence[:1].upper() + sentence[1:]


def day(moment: object) -> str:
    """Return the day of a moment, in words a person reads: Saturday, 21 November 2026."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%A}, {at.day} {at:%B} {at.year}"


def clock(moment: object) -> str:
    """Return the time of day of a moment, UTC."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at:%H:%M}"


def when(moment: object) -> str:
    """Return a moment to the minute, UTC: 21 November 2026, 08:00."""
    at = moment if isinstance(moment, datetime) else datetime.fromisoformat(str(moment))
    return f"{at.day} {at:%B} {at.year}, {at:%H:%M}"


def exact(moment: object) -> str:
    """Return a moment as it is written down."""
    return format_timestamp(moment) if isinstance(moment, datetime) else str(moment)


def is_moment(value: object) -> bool:
    """Return whether *value* is a moment."""
    return isinstance(value, datetime)


_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
#: Texts of more words are compared as wholes: telling them apart word by word takes the square of their number.
_MOST = 2_000
#: Signs of a text that are shown here.
_LONGEST = 4_000


class TextPart(NamedTuple):
    """A piece of a text, and whether the other one has it not."""

    text: str
    differs: bool


def compared(left: Mapping[str, Sequence[Any]], right: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Yield each property of either with its values on both sides, as parts of texts.

    >>> [row] = compared({"summary": ["use tabs"]}, {"summary": ["use spaces"]})
    >>> [part.text for part in row["right"] if part.differs]
    ['spaces']
    """
    for name in dict.fromkeys((*left, *right)):
        one, other = (" · ".join(map(display_name, side.get(name, ()))) for side in (left, right))
        ours, theirs = parts(_cut(one), _cut(other))
        yield {"name": name, "differs": one != other, "left": ours, "right": theirs}


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} … ({len(text):,} characters: see the memory itself)"


def parts(left: str, right: str) -> tuple[list[TextPart], list[TextPart]]:
    """Return both texts in parts, those marked that the other has not."""
    one, other = _TOKENS.findall(left), _TOKENS.findall(right)
    if len(one) + len(other) > _MOST:
        return [TextPart(left, left != right)], [TextPart(right, left != right)]
    ours, theirs = [], []
    for how, a, b, c, d in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        ours.append(TextPart("".join(one[a:b]), how != "equal"))
        theirs.append(TextPart("".join(other[c:d]), how != "equal"))
    return [part for part in ours if part.text], [part for part in theirs if part.text]


#: What is due within this time is said to be soon.
SOON = timedelta(days=14)
#: property -> what is said of its date once it is over, and before.
_DATES = {
    "expiresOn": ("to be reviewed since", "to be reviewed by"),
    "validUntil": ("held until", "holds until"),
}
#: How many characters of the text that answers a list shows.
_EXCERPT = 300
_AGENTS, _SESSIONS = f"{BASE}agents/", f"{BASE}sessions/"


def row(page: PageRequest, item: str) -> dict[str, Any]:
    """Return one memory in short, as it was known at the moment asked for."""
    memory = page.memory.reader.get_memory(page.project, item, **page.moment)
    return memory_row(page, memory)


def memory_row(page: PageRequest, memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return in short a memory that was read."""
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
    """Return what is to be looked at: that it disagrees with others in force, and that its time is over, or soon."""
    if memory["status"] in ENDED:
        return []
    now = parse_moment(page.as_of) if page.as_of else page.memory.sources.now()
    assert now is not None
    marks = []
    rivals = page.memory.reader.ask("disagreements", project=page.project, item=memory["iri"], as_of=page.as_of)
    if rivals:
        marks.append({"kind": "conflict", "text": f"conflicts with {len({one['other'] for one in rivals})}"})
    for name, (over, soon) in _DATES.items():
        due = parse_moment(first(memory["properties"], name))
        if due is not None and due <= now:
            marks.append({"kind": "expired", "text": f"{over} {due:%Y-%m-%d}"})
        elif due is not None and due - now < SOON:
            marks.append({"kind": "expires", "text": f"{soon} {due:%Y-%m-%d}"})
    return marks


def agent(name: str) -> str:
    """Return what people call an agent: its name, or its IRI where it is none of ours."""
    return name.removeprefix(_AGENTS)


def first(properties: Mapping[str, Any], name: str) -> Any:
    """Return the first value of a property, None where it has none."""
    return next(iter(properties.get(name, ())), None)


def _stamped(moment: object) -> str:
    return format_timestamp(moment) if isinstance(moment, datetime) else str(moment or "")


#: What is refused so may be so for what others did.
_MEANWHILE = (400, 404, 409)


class RefusalNotice(JidomemError):
    """A refusal; `rows` have each memory it is about: text, address, reason and hint."""

    code = "conflict"

    def __init__(self, detail: str, *, hint: str, rows: Sequence[dict[str, Any]] = ()) -> None:
        super().__init__(detail, hint=hint)
        self.rows = rows


class ToFillIn(JidomemError):
    """A form that cannot be answered as it is filled in; `model` is what the page shows then, with each fault."""

    def __init__(self, error: JidomemError, model: Mapping[str, Any]) -> None:
        super().__init__(error.detail, hint=error.hint, code=error.code)
        self.model = model


def explained(page: PageRequest, error: JidomemError, *items: str | None) -> JidomemError:
    """Return *error*; where one of *items* was ended by somebody meanwhile, what became of each."""
    if error.http_status not in _MEANWHILE:
        return error
    rows = [row for item in items if item and (row := _ended(page, item))]
    if not rows:
        return error
    return RefusalNotice(
        "this was settled meanwhile, and nothing was done now", hint="look at what is in its place", rows=rows
    )


def _ended(page: PageRequest, item: str) -> dict[str, Any] | None:
    """Return what became of a memory; None where it is in force, waits, or is none."""
    reader = page.memory.reader
    try:
        memory = reader.get_memory(page.project, item)
        ends = [*memory["superseded_by"], *memory["invalidated_by"]]
        if not ends:
            return None
        end = memory_row(page, reader.get_memory(page.project, ends[0]))
    except NotFound:
        return None
    word = "replaced" if memory["superseded_by"] else "withdrawn"
    return {
        "text": first(memory["properties"], "summary") or REDACTED,
        "link": page.link("memories", item),
        "detail": f"{word} by {end['agent']}, {when(end['recorded_at'])} UTC: {end['summary']}",
        "hint": "",
        "further": end["link"],
    }


def refused_row(page: PageRequest, item: str, error: JidomemError) -> dict[str, Any]:
    """Return the refusal of one of several, with what it says."""
    why = explained(page, error, item)
    if isinstance(why, RefusalNotice):
        return dict(why.rows[0])
    try:
        text = row(page, item)["summary"]
    except JidomemError:
        return {"text": item, "link": None, "detail": error.detail, "hint": error.hint, "further": None}
    link = page.link("memories", item)
    return {"text": text, "link": link, "detail": error.detail, "hint": error.hint, "further": None}


#: Returns what a page shows, as plain values: its JSON twin gives them as they are. Parts of the path come by name.
Show = Callable[..., Mapping[str, Any]]
#: Does what a form asks, and returns the address of the page to go on with.
Act = Callable[..., str]


@dataclass(frozen=True, slots=True)
class Screen:
    """One kind of page.

    `path` is what follows the project in its address, with parts in braces; `takes` are its arguments besides as_of,
    with `is_open` there are more. `act` does one of `acts`, as the fields of a form say, which are `fields` besides the
    act itself; `several` of them may stand more than once, a line each. The past is not acted on; who may only read
    acts where that `writes` nothing. What stands in the menu has a `menu`, the others are reached from there.
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

    @property
    def name(self) -> str:
        """Return the first part of its path."""
        return self.path.partition("/")[0]
