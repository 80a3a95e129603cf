"""What one Markdown decision record says, Nygard or MADR, with or without front matter.  Text in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from jidomem.exchange.adr_page import Line, Page, Section, parse_line, parse_page
from jidomem.exchange.adr_words import (
    ISO_DATE,
    KEY,
    PART,
    PLACEMENT,
    RELATION,
    URL,
    WORDS,
    Reference,
    chosen,
    heading_name,
    key_name,
    moment,
    number_of,
    references,
    slug,
    status_word,
    stem,
    unnumbered,
)

Severity = Literal["info", "warning", "error"]

#: Stands for the reason where a record has no words that could be one: nothing is made up for it.
NO_REASON = "The record gives no reason."


@dataclass(frozen=True, slots=True)
class Note:
    """Something about one file that a person should know; `line` counts from 1."""

    path: str
    line: int | None
    message: str
    severity: Severity


@dataclass(frozen=True, slots=True)
class Record:
    """A decision record as its file has it; `status` is a decision status or `superseded`."""

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


def read_record(path: str, content: bytes, largest: int) -> tuple[Record | None, tuple[Note, ...]]:
    """Return the record in a file, or None when it holds none, and what is to be said about it.

    One with a text of more than *largest* bytes, which no memory takes, is none.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return None, (Note(path, None, f"not UTF-8 at byte {error.start}; skipped", "error"),)
    reading = _Reading(path, parse_page(text))
    record = reading.record(largest)
    return record, tuple(sorted(reading.notes, key=lambda note: note.line or 0))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One piece of metadata, wherever it stood: its key, its value, and the lines of the file that say nothing else."""

    key: str
    value: Line
    lines: range
    source: str


class _Reading:
    """One pass over a page. What another field says in full is `used`; all other lines become the explanation."""

    def __init__(self, path: str, page: Page) -> None:
        self.path = path
        self.page = page
        self.notes: list[Note] = []
        self.used: set[int] = set()
        self.title_at = next((s for s in page.sections if s.level == 1 and heading_name(s.title) not in PART), None)
        parts = [
            (s, PART[heading_name(s.title)])
            for s in page.sections
            if s is not self.title_at and heading_name(s.title) in PART
        ]
        top = min((s.level for s, _ in parts), default=0)
        self.parts = {part: s for s, part in reversed(parts) if s.level == top}
        self.top = [s for s in page.sections if s is not self.title_at and s.level == top]
        self.entries = tuple(self._entries())

    def note(self, severity: Severity, message: str, line: int | None = None) -> None:
        self.notes.append(Note(self.path, None if line is None else line + 1, message, severity))

    def record(self, largest: int) -> Record | None:
        """Return the record, or None, with the reason in the notes."""
        title = self._title()
        if not title:
            return None
        named = tuple(self._references())
        status = self._status()
        if status == "accepted" and any(reference.relation == "ended" for reference in named):
            status = "superseded"
        date = self._date()
        self._front_matter()
        rationale = self._rationale()
        number = number_of(self.path, self.title_at.title if self.title_at else "")
        record = Record(
            path=self.path,
            title=title,
            number=number,
            status=status,
            date=date,
            rationale=rationale,
            explanation=self._explanation(),
            alternatives=self._alternatives(),
            evidence=self._evidence(),
            references=named,
        )
        large = max(len(text.encode()) for text in (title, rationale, record.explanation))
        if large > largest:
            said = f"a text of {large:,} bytes is more than the {largest:,} a memory takes; skipped"
            self.note("error", f"{said} (literal below [limits] of your own config.toml sets how many)")
            return None
        return record

    # -- what stands where ---------------------------------------------------------------------------------------

    def _entries(self) -> Iterator[_Entry]:
        """Yield the metadata in order of precedence: front matter, lines below the title, sections."""
        for field in self.page.fields:
            for value in field.values:
                yield _Entry(key_name(field.key), parse_line(field.lines.start, value), field.lines, "front matter")
        first = self.top[0].start if self.top else len(self.page.lines)
        for line in self.page.said(self.title_at.body if self.title_at else self.page.start, first):
            yield _entry(line, "line")
        for part in ("status", "date"):
            if section := self.parts.get(part):
                said = list(self.page.said(section.body, section.end))
                blank = sum(not text.strip() for text in self.page.lines[section.body : section.end])
                alone = len(said) == section.end - section.body - blank == 1
                lines = range(section.start, section.end) if alone else range(0)
                for line in said:
                    yield _Entry(part, line, lines, part)
        for section in self.top:
            if RELATION.fullmatch(section.title.strip()):
                for line in self.page.said(section.body, section.end):
                    yield _Entry(key_name(section.title), line, range(0), "section")
        if section := self.parts.get("links"):
            for line in self.page.said(section.body, section.end):
                yield _entry(line, "section")

    def _title(self) -> str:
        """Return the title without its number, or nothing when this is no decision record."""
        field = next((field for field in self.page.fields if key_name(field.key) == "title" and field.values), None)
        found = self.parts.keys()
        if not ("decision" in found or ("context" in found and found & {"status", "options", "consequences"})):
            looks = re.match(r"(adr[-_ ]?)?\d", stem(self.path), re.IGNORECASE) and self.title_at
            why = "no 'Decision' or 'Decision Outcome' section" if any(map(str.strip, self.page.lines)) else "empty"
            self.note("warning" if looks else "info", f"not a decision record ({why}); skipped")
            return ""
        if self.title_at and self.title_at.title:
            self.used |= set(range(self.title_at.start, self.title_at.body))
            title = self.title_at.title
        elif field:
            self.used |= set(field.lines)
            title = field.values[0].strip()
        else:
            title = ""
        if re.fullmatch(r"\{.*\}|<.*>|\[.*\]|NUMBER\. TITLE", title):
            self.note("info", f"a template, not a decision record (title {title!r}); skipped")
            return ""
        if not title:
            self.note("warning", "not a decision record (no title: write '# Title' above its sections); skipped")
        return unnumbered(title)

    # -- status, date, references --------------------------------------------------------------------------------

    def _status(self) -> str:
        """Return the status the record gives itself; the last word counts where a section has several."""
        entries = [entry for entry in self.entries if entry.key == "status" and entry.value.plain.strip()]
        entries = [entry for entry in entries if entry.source == entries[0].source]
        if not entries:
            self.note("info", "no status; read as accepted")
            return "accepted"
        found = [(entry, word) for entry in entries for word in [status_word(entry.value)] if word]
        if not found:
            plain = _short(entries[0].value.plain)
            self.note("warning", f"unknown status {plain!r}; read as proposed", entries[0].value.number)
            return "proposed"
        entry, word = found[-1]
        if len({other for _, other in found} - {"superseded"}) > 1:
            words = ", ".join(other for _, other in found)
            self.note("warning", f"several statuses ({words}); the last counts", entry.value.number)
        status = WORDS.get(word, word)
        if status != word:
            self.note("info", f"status {word!r} is read as {status}", entry.value.number)
        elif word in WORDS and entry.value.plain.casefold().strip(" .") == status:
            self._use(entry)
        return status

    def _date(self) -> str | None:
        """Return the moment of the decision; a date that is not ISO 8601 stays in the text and is noted."""
        dates = [e for e in self.entries if e.key in ("date", "decision date", "date decided", "decided")]
        dated = [e for e in dates if e.value.plain.strip()]
        for entry in [*dated, *(e for e in reversed(self.entries) if e.key == "status")]:
            found = ISO_DATE.search(entry.value.plain)
            when = moment(found[0]) if found else None
            if when:
                if found and entry.value.plain.strip() == found[0] and entry.key != "status":
                    self._use(entry)
                return when
        for entry in dated[:1]:
            plain = _short(entry.value.plain)
            self.note("warning", f"date {plain!r} is not ISO 8601 (2016-02-12); kept as text", entry.value.number)
        return None

    def _use(self, entry: _Entry) -> None:
        """Take the lines of *entry* out of the explanation, with one blank line where there was one on either side."""
        self.used |= set(entry.lines)
        around = [*self.page.lines[: entry.lines.start][-1:], *self.page.lines[entry.lines.stop :][:1]]
        if entry.lines and len(around) == 2 and not any(map(str.strip, around)):
            self.used.add(entry.lines.stop)

    def _references(self) -> Iterator[Reference]:
        """Yield every record this one says it ends, is ended by, amends or is amended by."""
        for entry in self.entries:
            if entry.key == "status":
                yield from references(entry.value, entry.value.text)
            elif RELATION.fullmatch(entry.key):
                yield from references(entry.value, f"{entry.key} {entry.value.text}")
            elif not entry.key and RELATION.match(entry.value.text.lstrip("*_ ")):
                yield from references(entry.value, entry.value.text)

    # -- texts ---------------------------------------------------------------------------------------------------

    def _front_matter(self) -> None:
        """Leave out what only places the page on a website, saying so; a fault leaves all of it in the text."""
        if self.page.fault:
            self.note("warning", f"front matter cannot be read: {_short(self.page.fault)}; kept as text", 0)
        placed = [field for field in self.page.fields if field.key in PLACEMENT]
        if placed:
            self.note("info", f"left out: {', '.join(field.key for field in placed)}", placed[0].lines.start)
        self.used |= {line for field in placed for line in field.lines}

    def _part(self, part: str) -> str:
        section = self.parts.get(part)
        return self.page.text(section.body, section.end) if section else ""

    def _chosen(self) -> tuple[str, str]:
        """Return the option a MADR outcome chose and the justification that follows it."""
        section = self.parts.get("decision")
        return chosen(self.page.text(section.body, section.own_end)) if section else ("", "")

    def _rationale(self) -> str:
        """Return why: the record's own reason, a MADR justification, else the context; nothing is made up."""
        option, why = self._chosen()
        if why and "reason" not in self.parts:
            return "\n\n".join([why, *self._arguments(option)])
        for part in ("reason", "context", "drivers", "consequences"):
            if text := self._part(part):
                self.used |= set(range(self.parts[part].start, self.parts[part].end))
                return text
        text = self._part("decision")
        self.note("warning", f"no reason is given; {'the decision stands for it' if text else 'none is made up'}")
        return text or NO_REASON

    def _arguments(self, option: str) -> Iterator[str]:
        """Yield the pros and cons of *option*, where the options are discussed one by one."""
        for discussed in (self.parts[part] for part in ("options", "pros") if part in self.parts):
            for section in self.page.sections:
                text = self.page.text(section.body, section.end)
                if discussed.start < section.start < discussed.end and slug(section.title) == slug(option) and text:
                    yield text

    def _explanation(self) -> str:
        """Return every line that no other field says in full, as written; kept front matter comes first, fenced."""
        page = self.page
        matter = [page.lines[n] for n in range(1, max(1, page.start - 1)) if n not in self.used]
        matter = [line for line in matter if line.strip() and not line.startswith("#")]
        body = "\n".join(page.lines[n] for n in range(page.start, len(page.lines)) if n not in self.used).strip()
        return "\n\n".join(filter(None, ["\n".join(["```yaml", *matter, "```"]) if matter else "", body]))

    def _alternatives(self) -> tuple[str, ...]:
        """Return the considered options, as plain text, without the chosen one."""
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
        """Return what a `Technical Story:` (or ticket, or issue) points to: its address, else its words."""
        section: Section | None = self.parts.get("context")
        said = [_entry(line, "") for line in self.page.said(section.body, section.end)] if section else []
        found: list[str] = []
        for entry in [*self.entries, *said]:
            if entry.key in ("technical story", "ticket", "issue"):
                plain = entry.value.plain.strip(" |")
                urls = [href for _, href in entry.value.links if URL.match(href)] or URL.findall(plain)
                found += urls or ([plain] if plain else [])
        return tuple(dict.fromkeys(found))


def _entry(line: Line, source: str) -> _Entry:
    """Return a line of the text as metadata; its key is empty when it is not of the form `key: value`."""
    lines = range(line.number, line.number + 1) if line.whole else range(0)
    found = KEY.match(line.text)
    if found and "\x00" not in found[0][: found.start(2)]:
        return _Entry(key_name(found[1]), Line(line.number, found[2], line.links, line.whole), lines, source)
    return _Entry("", line, lines, source)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}…"
