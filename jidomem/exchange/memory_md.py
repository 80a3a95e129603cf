"""The notes agents are given as Markdown (MEMORY.md, CLAUDE.md, AGENTS.md) as memories.  Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jidomem.exchange.foreign import Broken, ForeignEntry, Reading, not_utf8
from jidomem.exchange.mentions import EVERYWHERE, Find, mentions, scopes

#: A word of a heading -> what stands below it; the nearest heading decides, else what it says and where.
_KINDS: Mapping[str, str] = {
    "convention": "convention", "rule": "convention", "style": "convention", "guideline": "convention",
    "standard": "convention", "practice": "convention", "instruction": "convention", "principle": "convention",
    "preference": "convention", "decision": "decision", "todo": "task", "next steps": "task",
    "overview": "fact", "structure": "fact", "background": "fact",
    "lesson": "lesson_learned", "learning": "lesson_learned", "gotcha": "lesson_learned", "pitfall": "lesson_learned",
    "risk": "risk", "open question": "unknown",
}  # fmt: skip
#: Headings of what is to be done; "Common tasks" says how something is done.
_TASKS = re.compile(r"(?:open |current |remaining |pending )?tasks?:?", re.IGNORECASE)
#: How a rule begins, wherever it stands.
_BINDS = re.compile(r"(?:\W*)(?:always|never|do not|don['’]t|must|avoid|prefer)\b", re.IGNORECASE)
#: Pages that give instructions, of which those that hold nothing but rules are the second.
_INSTRUCTS = re.compile(r"(?:^|/)(?:(?:CLAUDE|AGENTS?|GEMINI)\.md|[^/]*\.mdc|[^/]*\.instructions\.md)$")
_RULES = re.compile(
    r"(?:^|/)(?:\.(?:cursor|windsurf|cline)rules|[^/]*\.mdc|[^/]*\.instructions\.md|copilot-instructions\.md"
    r"|\.(?:claude|windsurf)/rules/.*\.md)$"
)
#: Stands for the reason where there is none: nothing is made up for it.
NO_REASON = "The file gives no reason."
#: What is longer is told in the explanation, and its first sentence alone in the summary.
LONGEST = 300
_HEADING = re.compile(r"(#{1,6})\s+(.+?)\s*#*\s*$")
_ITEM = re.compile(r"(\s*)(?:[-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(.*)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
#: Where what is said first ends: at a blank line, a list or code.
_BEFORE_MORE = re.compile(r"(?<=\S)\n\s*\n|(?<=\S)\n\s*(?:[-*+]|\d+[.)])\s|\n\s*(?:`{3}|~{3})")
_RULE = re.compile(r"\s*([-*_])(\s*\1){2,}\s*$")
_IMPORT = re.compile(r"@[\w~./-]+$")


@dataclass(slots=True)
class _Block:
    """One note: where it begins, the headings above it, its lines, and whether it is a task that is done, or not."""

    line: int
    headings: tuple[str, ...]
    text: list[str] = field(default_factory=list)
    done: bool | None = None


@dataclass(frozen=True, slots=True)
class _Page:
    """What all notes of a page share: its name, the files it is for, whether it holds rules, and what finds files."""

    name: str
    scope: tuple[str, ...]
    is_rules: bool
    find: Find


def read(name: str, data: bytes, find: Find = lambda named: None) -> Reading:
    """Return a memory for each list entry and paragraph; what is below an entry, such as code, belongs to it.

    It is about the files it names, as far as *find* has them, and those that a page of instructions is for.
    """
    reading = Reading("ExternalDocumentSource")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reading.broken.append(Broken(name, not_utf8(f"not UTF-8 at byte {error.start}")))
        return reading
    is_rules = bool(_RULES.search(name))
    scope = scopes(name, text) if is_rules or _INSTRUCTS.search(name) else []
    page = _Page(name, tuple(scope), is_rules, find)
    for block in _blocks(_shown(text, reading)):
        words = " ".join(" ".join(block.text).split())
        if _IMPORT.fullmatch(words):
            reading.notes.append(f"{name}:{block.line}: {words} names another file: import it too, if it is wanted")
            reading.left_out["names another file"] += 1
        elif not re.search(r"\w", words):
            reading.left_out["has no words"] += 1
        else:
            reading.entries.append(_entry(page, block))
    return reading


def _shown(text: str, reading: Reading) -> list[str]:
    """Return the lines of a page; what it does not show, front matter and comments, is blank, so that lines count."""

    def blank(match: re.Match[str]) -> str:
        reading.left_out["is a comment" if match[0].startswith("<") else "is front matter"] += 1
        return "\n" * match[0].count("\n")

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = re.sub(r"\A---\n.*?\n---(?=\n|\Z)", blank, text, count=1, flags=re.DOTALL)
    return re.sub(r"<!--.*?(?:-->|\Z)", blank, text, flags=re.DOTALL).split("\n")


def _blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield the notes of a page: entries of lists at their outermost, and paragraphs, each with what belongs to it."""
    headings: list[tuple[int, str]] = []
    block: _Block | None = None
    fence, is_list = "", False
    for number, line in enumerate(lines, start=1):
        above = tuple(title for _, title in headings)
        opened = _FENCE.match(line)
        if fence or opened:
            if block is None:
                block, is_list = _Block(number, above), True
            block.text.append(line)
            if not fence:
                fence = opened[1] if opened else ""
            elif opened and opened[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
            continue
        heading, item = _HEADING.match(line), _ITEM.match(line)
        ends = bool(heading or _RULE.match(line) or (item and len(item[1]) < 2) or (not line.strip() and not is_list))
        ends = ends or bool(is_list and line[:1].strip() and not item and block and not block.text[-1].strip())
        if ends and block is not None:
            yield block
            block, is_list = None, False
        if heading:
            level = len(heading[1])
            headings = [*((depth, title) for depth, title in headings if depth < level), (level, heading[2])]
        elif item and len(item[1]) < 2:
            is_list = True
            block = _Block(number, above, [item[3]], item[2] in ("x", "X") if item[2] else None)
        elif block is not None:
            block.text.append(line)
        elif line.strip() and not _RULE.match(line):
            block = _Block(number, above, [line])
    if block is not None:
        yield block


def _entry(page: _Page, block: _Block) -> ForeignEntry:
    whole = "\n".join(re.sub(r"^\s*>\s?", "", line) for line in block.text).strip()
    first = " ".join(_BEFORE_MORE.split("\n" + whole, maxsplit=1)[0].split())
    summary = first.removesuffix(":") or " › ".join(block.headings) or "Note"
    if len(summary) > LONGEST:
        summary = _sentence(summary)
    kind = "task" if block.done is not None else _kind(block.headings, summary, page.is_rules)
    fields: dict[str, Any] = {
        "type": kind,
        "summary": summary,
        "evidence": [": ".join(filter(None, (page.name, " › ".join(block.headings))))],
    }
    if " ".join(whole.split()) != summary:
        fields["detailed_explanation"] = whole
    if kind == "decision":
        fields["rationale"] = NO_REASON
    if block.done:
        fields["status"] = "Completed"
    files = _files(page, " ".join((*block.headings, whole)), kind)
    return ForeignEntry(fields["evidence"][0], f"{page.name}:{block.line}", fields, files=files)


def _files(page: _Page, text: str, kind: str) -> tuple[str, ...]:
    """Return the files a note is about; a rule is not bound to those it names, but to all that its page is for."""
    named = mentions(text, page.find)
    wide = page.scope or ((EVERYWHERE,) if kind == "convention" and named else ())
    return tuple(dict.fromkeys((*named, *wide)))


def _kind(headings: tuple[str, ...], summary: str, is_rules: bool) -> str:
    for heading in reversed(headings):
        words = heading.casefold()
        if _TASKS.fullmatch(heading):
            return "task"
        for word, kind in _KINDS.items():
            if re.search(rf"\b{word}s?\b", words):
                return kind
    return "convention" if is_rules or _BINDS.match(summary) else "fact"


def _sentence(text: str) -> str:
    """Return the first sentence of *text*, or as many of its words as fit."""
    match = re.match(rf".{{20,{LONGEST}}}?[.!?](?=\s)", text)
    return match[0] if match else text[: LONGEST - 1].rsplit(" ", 1)[0] + "…"
