"""The notes agents are given as Markdown (MEMORY.md, CLAUDE.md, AGENTS.md) as memories.  Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.exchange.adr_words import gives_reason
from jidomem.exchange.foreign import Broken, ForeignEntry, Reading, not_utf8
from jidomem.exchange.mentions import Find, globs, mentions, scopes
from jidomem.exchange.note_statements import IMPORT, Statement, read_statements

#: A word of a heading -> what stands below it; the nearest heading decides, else what it says and where.
_KINDS: Mapping[str, str] = {
    "convention": "convention", "rule": "convention", "style": "convention", "guideline": "convention",
    "standard": "convention", "practice": "convention", "principle": "convention",
    "preference": "convention", "decision": "decision", "todo": "task", "next steps": "task",
    "overview": "fact", "structure": "fact", "background": "fact",
    "lesson": "lesson_learned", "learning": "lesson_learned", "gotcha": "lesson_learned", "pitfall": "lesson_learned",
    "risk": "risk", "open question": "unknown",
}  # fmt: skip
#: Headings of what is to be done; "Common tasks" says how something is done.
_TASKS = re.compile(r"(?:open |current |remaining |pending )?tasks?:?", re.IGNORECASE)
#: Pages that give instructions, of which those that hold nothing but rules are the second.
_INSTRUCTS = re.compile(r"(?:^|/)(?:(?:CLAUDE|AGENTS?|GEMINI)\.md|[^/]*\.mdc|[^/]*\.instructions\.md)$")
_RULES = re.compile(
    r"(?:^|/)(?:\.(?:cursor|windsurf|cline)rules|[^/]*\.mdc|[^/]*\.instructions\.md|copilot-instructions\.md"
    r"|\.(?:claude|windsurf)/rules/.*\.md)$"
)
#: Stands for the reason where there is none: nothing is made up for it.
NO_REASON = "The file gives no reason."
#: The largest page that is read, in bytes: a page made to be slow costs the parser some 40 s at this size.
_LARGEST = 1_000_000
#: Check boxes below such words are asked of each change; elsewhere they are tasks.
_CHECKLIST = re.compile(
    r"check-?lists?|\bbefore\b|\bwhen(?:ever)?\b|\bensure\b|\bverify\b|\breview|\bpull request|\bPRs?\b|\bdone\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Page:
    """What all notes of a page share: its name, the files it is for, whether it holds rules, and what finds files."""

    name: str
    scope: tuple[str, ...]
    is_rules: bool
    find: Find


def read(name: str, data: bytes, find: Find = lambda named: None) -> Reading:
    """Return a memory for each statement of a page, with the headings, lead-ins and parents that its meaning needs.

    It is about the files it names, as far as *find* has them, and those that a page of instructions is for.
    """
    reading = Reading("ExternalDocumentSource")
    if len(data) > _LARGEST:
        error = InvalidRequest(
            f"{len(data):,} bytes, more than the {_LARGEST:,} that a page of notes may have",
            hint="split the file into smaller ones, and import those",
        )
        reading.broken.append(Broken(name, error))
        return reading
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reading.broken.append(Broken(name, not_utf8(f"not UTF-8 at byte {error.start}")))
        return reading
    is_rules = bool(_RULES.search(name))
    scope = scopes(name, text) if is_rules or _INSTRUCTS.search(name) else []
    page = _Page(name, tuple(scope), is_rules, find)
    statements, left_out = read_statements(text)
    for line, reason in left_out:
        reading.leave_out(f"{name}:{line}", reason)
    for statement in statements:
        words = statement.text
        if IMPORT.fullmatch(words):
            reading.notes.append(f"{name}:{statement.line}: {words} names another file: import it too, if it is wanted")
            reading.leave_out(f"{name}:{statement.line}", "names another file")
        else:
            reading.entries.append(_entry(page, statement))
    return reading


def _entry(page: _Page, statement: Statement) -> ForeignEntry:
    kind = _kind(statement, page.is_rules)
    path = " › ".join(statement.headings)
    fields: dict[str, Any] = {
        "type": kind,
        "summary": statement.summary,
        "evidence": [": ".join(filter(None, (page.name, path)))],
    }
    if statement.explanation:
        fields["detailed_explanation"] = statement.explanation
    if kind == "decision":
        fields["rationale"] = statement.text if gives_reason(statement.text) else NO_REASON
    if kind == "task" and statement.is_done:
        fields["status"] = "Completed"
    files = _files(page, " ".join((*statement.headings, statement.raw)))
    return ForeignEntry(
        fields["evidence"][0],
        f"{page.name}:{statement.line}",
        fields,
        files=files,
        headings=statement.headings,
        line=statement.line,
    )


def _files(page: _Page, text: str) -> tuple[str, ...]:
    """Return the files a note is about: those it names, by name or by a pattern, and those that its page is for."""
    return tuple(dict.fromkeys((*mentions(text, page.find), *globs(text, page.find), *page.scope)))


def _kind(statement: Statement, is_rules: bool) -> str:
    if statement.is_done is not None:
        is_list = _CHECKLIST.search(" ".join((*statement.headings, *statement.context)))
        return "convention" if is_list else "task"
    kind = _kind_below(statement)
    if kind in (None, "fact"):
        return "convention" if is_rules or statement.binds else "fact"
    return kind


def _kind_below(statement: Statement) -> str | None:
    """Return the kind that the nearest heading names; that of the page is none if there is another one."""
    for heading in reversed(statement.headings[statement.is_titled :] or statement.headings):
        if _TASKS.fullmatch(heading):
            return "task"
        for word, kind in _KINDS.items():
            if re.search(rf"\b{word}s?\b", heading.casefold()):
                return kind
    return None
