"""The parser of one Markdown decision record, Nygard or MADR, with or without front matter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from jidomem.exchange.adr_markdown import (
    DATE_KEYS,
    ISO_DATE,
    KEY,
    KEY_ALIASES,
    NO_LONGER,
    ORDER,
    PART,
    PLACEMENT,
    RELATION,
    URL,
    WORDS,
    MarkdownLine,
    MarkdownPage,
    MarkdownSection,
    Reference,
    ambiguous_in,
    chosen,
    date_of_name,
    dates_in,
    gives_reason,
    heading_name,
    is_bare_status,
    is_in_question,
    is_title,
    key_name,
    number_of,
    ordered_dates,
    parse_line,
    parse_page,
    part_of,
    references,
    slug,
    status_doubt,
    status_word,
    stem,
    title_of_name,
    unnumbered,
    without_end,
)
from jidomem.repository.record_files import RecordLikelihood, is_record_name, is_request, judge

Severity = Literal["info", "warning", "error"]
_SKIPPED = "; skipped"

#: The rationale of a record that states none.
NO_REASON = "The record gives no reason."
_LONGEST_TITLE = 500
_PLACEHOLDER = re.compile(
    r"^\{.*\}$|^<.*>$|^\[.*\]$|NUMBER\. TITLE|\{(?:short |adr[-_ ]?)?(?:title|number|name)[^}]*\}", re.IGNORECASE
)
_TABLE_KEYS = frozenset(("status", "date", *DATE_KEYS, *KEY_ALIASES))
#: Parts that some records nest below the decision, and that are not part of it.
_APART = ("consequences", "confirmation", "options", "pros", "drivers", "links")


class RecordNote(NamedTuple):
    """A note on one file; `line` counts from 1."""

    path: str
    line: int | None
    message: str
    severity: Severity

    @property
    def is_skip(self) -> bool:
        """Return whether the note is the reason why a file without a record was skipped."""
        return self.message.endswith(_SKIPPED) and self.severity != "error"

    @property
    def reason(self) -> str:
        """Return the message without "; skipped"."""
        return self.message.removesuffix(_SKIPPED)


class Record(NamedTuple):
    """A decision record as parsed from its file; `status` is a decision status or `superseded`."""

    path: str
    title: str
    number: int | None
    status: str
    date: str | None
    rationale: str
    explanation: str
    alternatives: tuple[str, ...]
    evidence: tuple[str, ...]
    references: tuple[Reference, ...]
    #: The date that the file gives without the help of other records, which may show the order of day and month.
    own_date: str | None = None
    #: The date until which the decision holds by its status.
    valid_until: str | None = None


def read_record(
    path: str, content: bytes, largest: int, dates: Sequence[str] = ()
) -> tuple[Record | None, tuple[RecordNote, ...]]:
    """Return the record in a file, or None if there is none, and the notes on it.

    A record with a text of more than *largest* bytes is refused. *dates* of other records of its folder show whether
    the day or the month comes first, if its own dates do not.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, (RecordNote(path, None, f"not UTF-8 at byte {error.start}; skipped", "error"),)
    reading = _Reading(path, parse_page(text), dates)
    record = reading.record(largest)
    return record, tuple(sorted(reading.notes, key=lambda note: note.line or 0))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One piece of metadata: its key, its value, and the lines of the file that contain nothing else."""

    key: str
    value: MarkdownLine
    lines: range
    source: str

    @property
    def dates(self) -> str:
        """Return the text with the dates of the value, without that of the end of a status."""
        return without_end(self.value.plain)[0]


class _Reading:
    """One pass over a page. `used` are the lines that another field contains in full; all others become the
    explanation.
    """

    def __init__(self, path: str, page: MarkdownPage, dates: Sequence[str] = ()) -> None:
        self.path = path
        self.page = page
        self.dates = dates
        self.notes: list[RecordNote] = []
        self.used: set[int] = set()
        self.title_at = self._title_section()
        parts = [
            (s, PART[heading_name(s.title)])
            for s in page.sections
            if s is not self.title_at and heading_name(s.title) in PART
        ]
        others = (s.level for s in page.sections if s is not self.title_at and part_of(s.title))
        top = min((s.level for s, _ in parts), default=min(others, default=0))
        self.parts = {part: s for s, part in reversed(parts) if s.level == top}
        below = {part: section for section, part in reversed(parts) if part in ("status", "date", "changelog")}
        self.parts = {**below, **self.parts}  # these may stand below another heading
        self.top = [s for s in page.sections if s is not self.title_at and s.level == top]
        self.entries = tuple(self._entries())

    def note(self, severity: Severity, message: str, line: int | None = None) -> None:
        self.notes.append(RecordNote(self.path, None if line is None else line + 1, message, severity))

    def record(self, largest: int) -> Record | None:
        """Return the record, or None with the reason in the notes."""
        title = self._title()
        if not title:
            return None
        named = tuple(self._references())
        status = self._status()
        if status == "accepted" and any(reference.relation == "ended" for reference in named):
            status = "superseded"
        date, own_date = self._date()
        self._front_matter()
        rationale = self._rationale()
        number = number_of(self.path, self.title_at.title if self.title_at else "")
        record = Record(
            path=self.path, title=title, number=number, status=status, date=date, rationale=rationale,
            explanation=self._explanation(), alternatives=self._alternatives(), evidence=self._evidence(),
            references=named, own_date=own_date, valid_until=self._end(),
        )  # fmt: skip
        large = max(len(text.encode()) for text in (title, rationale, record.explanation))
        if large > largest:
            problem = f"a text of {large:,} bytes exceeds the limit of {largest:,} bytes; skipped"
            self.note("error", f"{problem} (the limit is literal in [limits] of your own config.toml)")
            return None
        return record

    # -- structure -----------------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[_Entry]:
        """Yield the metadata in order of precedence: front matter, lines below the title, sections."""
        for field in self.page.fields:
            for value in field.values:
                key = key_name(field.key)
                key = KEY_ALIASES.get(key, key)
                yield _Entry(key, parse_line(field.lines.start, value), field.lines, "front matter")
        first = self.top[0].start if self.top else len(self.page.lines)
        ahead = [*self.page.lines_between(self.title_at.body if self.title_at else self.page.start, first)]
        yield from _entries_of(ahead)
        for heading in self.page.sections:
            key, colon, value = heading.title.partition(":")
            if colon and key_name(key) in ("status", "date") and heading is not self.title_at:
                yield _Entry(key_name(key), MarkdownLine(heading.start, value.strip()), range(0), "heading")
        for part in ("status", "date"):
            if section := self.parts.get(part):
                section_lines = list(self.page.lines_between(section.body, section.end))
                blank = sum(not text.strip() for text in self.page.lines[section.body : section.end])
                alone = len(section_lines) == section.end - section.body - blank == 1
                lines = range(section.start, section.end) if alone else range(0)
                for line in section_lines:
                    yield _Entry(part, line, lines, part)
        for section in self.top:
            if RELATION.fullmatch(section.title.strip()):
                for line in self.page.lines_between(section.body, section.end):
                    yield _Entry(key_name(section.title), line, range(0), "section")
        if section := self.parts.get("links"):
            for line in self.page.lines_between(section.body, section.end):
                yield _entry(line, "section")
        for line in ahead if self.title_at and self.top else ():
            if not KEY.match(line.text) and is_bare_status(line):
                yield _Entry("status", line, range(line.number, line.number + 1) if line.whole else range(0), "bare")

    def _title_section(self) -> MarkdownSection | None:
        """Return the heading that is the title: the first of level 1, else the first, unless it names a part."""
        sections = self.page.sections
        ahead = [section for section in sections if section.level == 1]
        if not ahead and not any(key_name(field.key) == "title" for field in self.page.fields):
            ahead = list(sections[:1])
        return next((s for s in ahead[:1] if is_title(s.title)), None)

    def _title(self) -> str:
        """Return the title without its number, or an empty text if the page is not a decision record."""
        if reason := self._lacks():
            looks = is_record_name(self.path) and self.title_at
            self.note("warning" if looks else "info", f"not a decision record ({reason}){_SKIPPED}")
            return ""
        field = next((field for field in self.page.fields if key_name(field.key) == "title" and field.values), None)
        entry = next((entry for entry in self.entries if entry.key in ("title", "name") and entry.value.plain), None)
        if self.title_at and self.title_at.title:
            self.used |= set(range(self.title_at.start, self.title_at.body))
            title = self.title_at.title
        elif field:
            self.used |= set(field.lines)
            title = field.values[0].strip()
        else:
            title = entry.value.plain.strip() if entry else title_of_name(self.path)
            self.note("info", f"no '# Title' above its sections; titled {_short(title)!r}")
        if _PLACEHOLDER.search(title[:_LONGEST_TITLE]):
            self.note("info", f"a template, not a decision record (title {title!r}){_SKIPPED}")
            return ""
        return unnumbered(title)

    def _lacks(self) -> str:
        """Return the reason why the page is not a decision record, or an empty text if it is.

        Its sections make it one. A page in a folder of records is one in any form; so is a page with the name of a
        record that has a status or another part of a record.
        """
        sections = self.parts.keys()
        if "decision" in sections or ("context" in sections and sections & {"status", "options", "consequences"}):
            return ""
        title = range(self.title_at.start, self.title_at.body) if self.title_at else range(0)
        if not any(line.strip() for number, line in enumerate(self.page.lines) if number not in title):
            return "only a title" if title else "empty"
        if judge(self.path)[0] is RecordLikelihood.CERTAIN:
            return ""
        if is_record_name(self.path) and (sections or any(entry.key == "status" for entry in self.entries)):
            return ""
        return "no 'Decision' or 'Decision Outcome' section"

    # -- status, date, references --------------------------------------------------------------------------------

    def _status(self) -> str:
        """Return the status of the record; of several words in a section the last counts."""
        entries = [entry for entry in self.entries if entry.key == "status" and entry.value.plain.strip()]
        entries = [entry for entry in entries if entry.source == entries[0].source]
        if not entries and is_request(self.path):
            self.note("info", "no status; a request for comments is read as proposed")
            return "proposed"
        if not entries and (self.page.fault or not self._decides()):
            lack = "the front matter cannot be read" if self.page.fault else "no decision section"
            self.note("warning", f"no status, and {lack}; read as proposed")
            return "proposed"
        if not entries:
            self.note("info", "no status; read as accepted")
            return "accepted"
        statuses = [(entry, word) for entry in entries for word in [status_word(entry.value)] if word]
        if not statuses:
            plain = _short(entries[0].value.plain)
            self.note("warning", f"unknown status {plain!r}; read as proposed", entries[0].value.number)
            return "proposed"
        entry, word = statuses[-1]
        if len({WORDS.get(other, other) for _, other in statuses} - {"superseded"}) > 1:
            words = ", ".join(other for _, other in statuses)
            self.note("warning", f"several statuses ({words}); the last counts", entry.value.number)
        status = WORDS.get(word, word)
        if is_in_question(entry.value):
            self.note("warning", f"status {_short(entry.value.plain)!r} is read as proposed", entry.value.number)
            return "proposed"
        if status == "accepted" and not word.startswith("partly") and (match := status_doubt(entry.value)) is not None:
            status = "deprecated" if NO_LONGER.fullmatch(match[0]) else "proposed"
            self.note("warning", f"status {_short(entry.value.plain)!r} is read as {status}", entry.value.number)
        elif status != word:
            self.note("info", f"status {word!r} is read as {status}", entry.value.number)
        elif word in WORDS and entry.value.plain.casefold().strip(" .") == status:
            self._use(entry)
        return status

    def _decides(self) -> bool:
        """Return whether the record states a decision: in a section of its own, or in a line with such a key."""
        sections = any(
            self.page.text(section.body, section.end) for section in self.top if part_of(section.title) == "decision"
        )
        return sections or any(part_of(entry.key) == "decision" and entry.value.plain.strip() for entry in self.entries)

    def _end(self) -> str | None:
        """Return the date until which the decision holds by its status, such as that of a trial."""
        values = [(entry.value, status_word(entry.value)) for entry in self.entries if entry.key == "status"]
        ends = [without_end(value.plain)[1] for value, word in values if WORDS.get(word, word) in ("accepted", "")]
        return next((when for end in ends for when in dates_in(end, self.dates)), None)

    def _date(self) -> tuple[str | None, str | None]:
        """Return the date of the decision, and the date that the file gives without other records.

        The date is that of its date fields, its status, its first change or its file name.
        """
        keys = [
            key for key in DATE_KEYS if any(entry.key == key and entry.value.plain.strip() for entry in self.entries)
        ]
        dated = [entry for key in keys for entry in self.entries if entry.key == key and entry.value.plain.strip()]
        section = self.parts.get("changelog")
        changes = [*self.page.lines_between(section.body, section.end)] if section else []
        entries = [*dated, *(each for each in reversed(self.entries) if each.key == "status")]
        own = [*(entry.value.plain for entry in dated), *(line.plain for line in changes)]
        every = own if any(map(ordered_dates, own)) else [*own, *self.dates]
        first = next((number for number, each in enumerate(entries) if any(dates_in(each.dates, every))), None)
        date = self._moment(entries, changes, every)
        before = entries if first is None else entries[:first]
        self._note_ambiguous([*(each.value for each in before), *(changes if first is None else ())], every, date)
        if first is not None:
            entry = entries[first]
            if ISO_DATE.fullmatch(entry.value.plain.strip()) and entry.key != "status":
                self._use(entry)
        elif dated and not ambiguous_in(dated[0].value.plain, every):
            plain = _short(dated[0].value.plain)
            self.note("warning", f"date {plain!r} is not ISO 8601 (2016-02-12); kept as text", dated[0].value.number)
        return date, self._moment(entries, changes, own)

    def _moment(self, entries: Iterable[_Entry], changes: Iterable[MarkdownLine], every: Sequence[str]) -> str | None:
        """Return the first date of *entries*, else the oldest of *changes*, else that of the file name."""
        for entry in entries:
            if when := next(dates_in(entry.dates, every), None):
                return when
        changed = [when for line in changes for when in dates_in(line.plain, every)]
        return min(changed, default=None) or date_of_name(stem(self.path))

    def _note_ambiguous(self, lines: Iterable[MarkdownLine], every: Sequence[str], used: str | None) -> None:
        """Add a note on each date of *lines* whose order of day and month is unclear, with the date *used* instead."""
        instead = f"{used[:10]} is used" if used else "the date of the first commit of the file is used"
        for line in lines:
            for written, day_first, month_first in ambiguous_in(line.plain, every):
                readings = f"date {written} can be {day_first} or {month_first}"
                self.note("warning", f"{readings}: neither is used, {instead}; write one of the two", line.number)

    def _use(self, entry: _Entry) -> None:
        """Remove the lines of *entry* from the explanation, with the blank line after them if there is one on either
        side.
        """
        self.used |= set(entry.lines)
        around = [*self.page.lines[: entry.lines.start][-1:], *self.page.lines[entry.lines.stop :][:1]]
        if entry.lines and len(around) == 2 and not any(map(str.strip, around)):
            self.used.add(entry.lines.stop)

    def _references(self) -> Iterator[Reference]:
        """Yield every reference to a record that this one ends, is ended by, amends or is amended by."""
        for entry in self.entries:
            if entry.key == "status":
                yield from references(entry.value, entry.value.text)
            elif RELATION.fullmatch(entry.key):
                yield from references(entry.value, f"{entry.key} {entry.value.text}")
            elif not entry.key and RELATION.match(entry.value.text.lstrip("*_ ")):
                yield from references(entry.value, entry.value.text)

    # -- texts ---------------------------------------------------------------------------------------------------

    def _front_matter(self) -> None:
        """Leave out front matter that only places the page on a website, with a note."""
        if self.page.fault:
            fault = _short(self.page.fault)
            self.note("warning", f"front matter cannot be read: {fault}; only its lines `key: value` count", 0)
        placed = [field for field in self.page.fields if field.key in PLACEMENT]
        if placed:
            self.note("info", f"left out: {', '.join(field.key for field in placed)}", placed[0].lines.start)
        self.used |= {line for field in placed for line in field.lines}

    def _part(self, part: str) -> str:
        section = self.parts.get(part)
        return self.page.text(section.body, section.end) if section else ""

    def _chosen(self) -> tuple[str, str]:
        """Return the option that a MADR outcome chose and its justification."""
        section = self.parts.get("decision")
        return chosen(self.page.text(section.body, section.own_end)) if section else ("", "")

    def _rationale(self) -> str:
        """Return the text of the decision and the reasons given. Nothing is invented.

        A record without a decision uses its proposal, else its consequences, drivers or context, else the paragraphs
        that give a reason.
        """
        decision = self._take_decision() or self._take("proposal")
        reason = self._take("reason")
        has_reason = reason or self._chosen()[1] or any(map(self._part, ("context", "drivers", "consequences")))
        if not (has_reason or gives_reason(decision) or self._reasons()):
            stands = "the decision is used instead" if decision else "none is invented"
            self.note("warning", f"no reason is given; {stands}")
        texts = [text for text in (decision, reason) if text]
        if not texts:
            lent = next(filter(None, map(self._take, ("consequences", "drivers", "context"))), "")
            texts = [lent or self._take_reasons() or NO_REASON]
        return "\n\n".join(texts)

    def _reasons(self) -> list[range]:
        """Return the lines of the paragraphs that give a reason, and of the sections titled "Why ..."."""
        lines, start = self.page.lines, self.page.start
        ends = [n for n in range(start, len(lines)) if not lines[n].strip() or n in self.used]
        blocks = [range(first + 1, end) for first, end in pairwise([start - 1, *ends, len(lines)])]
        reasons = [block for block in blocks if gives_reason("\n".join(lines[n] for n in block))]
        whys = [range(s.body, s.end) for s in self.page.sections if re.match(r"why\b", s.title, re.IGNORECASE)]
        return [*reasons, *(why for why in whys if self.page.text(why.start, why.stop))]

    def _take_reasons(self) -> str:
        texts = []
        for block in self._reasons():
            if self.used.isdisjoint(block):
                texts.append("\n".join(self.page.lines[n] for n in block).strip())
                self.used |= set(block)
        return "\n\n".join(texts)

    def _take(self, part: str) -> str:
        """Return the text of the first section of *part* that has text, and remove it from the explanation."""
        for section in self.top:
            text = self.page.text(section.body, section.end)
            if text and part_of(section.title) == part:
                self.used |= set(range(section.start, section.end))
                return text
        return ""

    def _take_decision(self) -> str:
        """Return the text of the decision sections, each up to the first nested section of another part."""
        texts = []
        for section in self.top:
            if part_of(section.title) == "decision":
                end = next((below.start for below in self._apart(section)), section.end)
                if text := self.page.text(section.body, end):
                    self.used |= set(range(section.start, end))
                    texts.append(text)
        return "\n\n".join(texts)

    def _apart(self, decision: MarkdownSection) -> Iterator[MarkdownSection]:
        """Yield the sections nested in *decision* that are another part of the record, such as its consequences."""
        for section in self.page.sections:
            if decision.start < section.start < decision.end and part_of(section.title) in _APART:
                yield section

    def _explanation(self) -> str:
        """Return every line that no other field contains in full, as written; sections have the order of ORDER.

        The lines below the title follow the context; remaining front matter comes last, fenced.
        """
        page = self.page
        decisions = [section for section in self.top if part_of(section.title) == "decision"]
        opened = {s.start: s for s in [*self.top, *(below for each in decisions for below in self._apart(each))]}
        cuts = {page.start, len(page.lines), *opened, *(section.end for section in opened.values())}
        blocks = []
        for start, end in pairwise(sorted(cuts)):
            text = "\n".join(page.lines[n] for n in range(start, end) if n not in self.used).strip()
            part = part_of(opened[start].title) if start in opened else None
            is_head = start == page.start and start not in opened
            blocks.append((ORDER.index("context" if is_head else part), is_head, start, text))
        matter = [page.lines[n] for n in range(1, page.start) if n not in self.used]
        matter = [line for line in matter if line.strip() not in ("", "---", "...") and not line.startswith("#")]
        fenced = "\n".join(["```yaml", *matter, "```"]) if matter else ""
        ordered = [text for *_, text in sorted(blocks)]
        return "\n\n".join(filter(None, [*ordered, fenced]))

    def _alternatives(self) -> tuple[str, ...]:
        """Return the considered options as plain text, without the chosen one."""
        options: list[str] = []
        for section in (self.parts[part] for part in ("options", "pros") if part in self.parts and not options):
            options = list(self.page.items(section.body, section.own_end))
            below = [s for s in self.page.sections if section.start < s.start < section.end]
            options = options or [s.title for s in below if s.level == below[0].level]
        options = [option for option in dict.fromkeys(options) if option]
        choice = self._chosen()[0]
        taken = [option for option in options if slug(option) == slug(choice)]
        taken = taken or [o for o in options if slug(re.split(r" [-–—(]|[,:;] ", o)[0]) == slug(choice)]
        if choice and options and not taken:
            self.note("info", f"the chosen option {_short(choice)!r} is not among the considered ones")
        return tuple(option for option in options if option not in taken[:1])

    def _evidence(self) -> tuple[str, ...]:
        """Return the targets of `Technical Story:` (or ticket, or issue): the address, else the words."""
        section: MarkdownSection | None = self.parts.get("context")
        listed = [_entry(line, "") for line in self.page.lines_between(section.body, section.end)] if section else []
        sources: list[str] = []
        for entry in [*self.entries, *listed]:
            if entry.key in ("technical story", "ticket", "issue"):
                plain = entry.value.plain.strip(" |")
                urls = [href for _, href in entry.value.links if URL.match(href)] or URL.findall(plain)
                sources += urls or ([plain] if plain else [])
        return tuple(dict.fromkeys(sources))


def _entries_of(lines: Iterable[MarkdownLine]) -> Iterator[_Entry]:
    """Yield the metadata of some lines: `key: value`, a key with its value on the next line, rows of a table."""
    rows: list[MarkdownLine] = []
    key: _Entry | None = None
    for line in lines:
        if line.text.lstrip().startswith("|"):
            rows.append(line)
            continue
        yield from _rows(rows)
        rows, entry = [], _entry(line, "line")
        if key and not entry.key and entry.value.number == key.value.number + 1:
            yield replace(key, value=entry.value, lines=range(0))
        key = entry if entry.key and not entry.value.plain.strip() else None
        yield entry
    yield from _rows(rows)


def _rows(rows: Sequence[MarkdownLine]) -> Iterator[_Entry]:
    """Yield the metadata of a table: the keys are in its head if that contains known keys, else in its first column."""
    cells = [[cell.strip(" *_`") for cell in re.split(r"(?<!\\)\|", row.text.strip().strip("|"))] for row in rows]
    keys = [key_name(cell) for cell in cells[0]] if cells else []
    in_head = len(set(keys) & _TABLE_KEYS) > 1 or (len(keys) != 2 and bool(set(keys) & _TABLE_KEYS))
    for row, values in zip(rows, cells, strict=True):
        if set("".join(values)) <= set("-: "):
            continue
        pairs = zip(keys, values, strict=False) if in_head else [(key_name(values[0]), " ".join(values[1:]))]
        for key, value in pairs if not (in_head and row is rows[0]) else ():
            yield _Entry(key, MarkdownLine(row.number, value, row.links, row.whole), range(0), "table")


def _entry(line: MarkdownLine, source: str) -> _Entry:
    """Return a line of text as metadata; its key is empty unless the line has the form `key: value`."""
    lines = range(line.number, line.number + 1) if line.whole else range(0)
    match = KEY.match(line.text)
    if match and "\x00" not in match[0][: match.start(2)]:
        key = key_name(match[1])
        return _Entry(
            KEY_ALIASES.get(key, key), MarkdownLine(line.number, match[2], line.links, line.whole), lines, source
        )
    return _Entry("", line, lines, source)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}…"
