"""The notes that agents are given as Markdown (MEMORY.md, CLAUDE.md, AGENTS.md), read as memories.
Pure.

`mentions` returns the files of the repository that a page names, `scopes` those that its front
matter is for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from posixpath import dirname
from typing import Any

from jidomem.errors import InvalidRequest
from jidomem.exchange.adr_markdown import gives_reason
from jidomem.exchange.importer import ForeignEntry, Reading, UnreadableEntry, not_utf8
from jidomem.exchange.note_statements import IMPORT, NoteStatement, read_statements

#: Returns the path of what a page calls so, None where the repository has no such file or folder.
Find = Callable[[str], str | None]
#: How many files one entry is about: a page that lists more is about none of them in particular.
MOST = 12
#: Stands for every file of the repository.
EVERYWHERE = "**"
#: The longest word that may be a path, how much of a list of patterns is read, and how many are taken from it.
_LONGEST, _FRONT_MOST, _GLOBS_MOST = 1024, 16_384, 200
#: Nothing is tried again that was taken once, nor looked for without an end: others wrote what is read.
_FENCED = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+).*?^[ \t]*+\1", re.DOTALL | re.MULTILINE)
_NAMED = re.compile(r"`([^`\n]+)`|\]\(<?([^)\s>]{1,1024}+)>?[^)\n]{0,1024}+\)")
#: The web address of a file, also where it stands alone or is the target of a reference link.
_ADDRESS = re.compile(r"https?://[^\s)>\]\"'`]{1,1024}+")
_PLACE_IN = re.compile(r"(?::\d+(?:[-:]\d+)*|#[\w-]+)$")
_GLOBS = re.compile(r"^(?:globs|applyTo|paths)[ \t]*:[ \t]*(.*(?:\n[ \t]*-[ \t].*)*)", re.MULTILINE)
_FRONT = re.compile(r"\A\ufeff?---\n(.*?)\n---(?=\n|\Z)", re.DOTALL)
_BRACES = re.compile(r"\{([^{}]*)\}")
#: Pages of instructions for the folder they lie in, and the folders of agents, whose pages are for the folder above.
_FOR_ITS_FOLDER = re.compile(r"(?:^|/)(?:CLAUDE|AGENTS?|GEMINI)\.md$")
_OF_AN_AGENT = re.compile(r"(?:^|/)\.(?:agents?|claude|clinerules|codex|copilot|cursor|gemini|windsurf)(?:/|$)")
_HIDDEN = re.compile(r"(?:^|/)\.")
#: A pattern of names without a folder, as `*.pb.go`, `test_*.py`; it has an ending, so that `*args` is none.
_GLOB = re.compile(r"[\w.-]*\*[\w.-]*\.\w[\w.-]*")


def mentions(text: str, find: Find) -> list[str]:
    """Return what *text* names in backticks or links to, as far as the repository has it, each once, at most MOST.

    *find* is given web addresses, too.

    >>> here = {"src/a.py": "src/a.py", "tools/": "tools"}
    >>> mentions("See `src/a.py:12`, run `make -C tools/` and read [why](docs/no.md)", here.get)
    ['src/a.py', 'tools']
    """
    paths = dict.fromkeys(filter(None, (_existing_path(word, find) for word in _words(text))))
    return list(islice(paths, MOST))


def globs(text: str, find: Find) -> list[str]:
    """Return the patterns of file names that *text* has in backticks, as patterns of paths, at most MOST.

    *find* is given each with `**/` before it, and returns it where a file is called so.

    >>> there = {"**/*.pb.go": "**/*.pb.go"}
    >>> globs("Never edit `*.pb.go`; `*args` and `*.example.com` are no files", there.get)
    ['**/*.pb.go']
    """
    words = (word for braced in _words(text) for word in _expanded(braced))
    named = dict.fromkeys(f"**/{word}" for word in words if _GLOB.fullmatch(word))
    return list(islice(filter(None, map(find, named)), MOST))


def scopes(name: str, text: str) -> list[str]:
    r"""Return the files a page of instructions is for: what its front matter says, else the folder it lies in.

    A page at the top names none, as it is for all of them. The folder of an agent (`.cursor`, `.claude`) stands for the
    folder it lies in, and so does `.github` for `copilot-instructions.md`, but not for an `AGENTS.md` in it.

    >>> scopes("web/AGENTS.md", "# Web"), scopes("web/.cursor/rules/a.mdc", "# A"), scopes("AGENTS.md", "# All")
    (['web'], ['web'], [])
    >>> scopes(".github/workflows/AGENTS.md", "# CI"), scopes(".github/copilot-instructions.md", "# All")
    (['.github/workflows'], [])
    >>> scopes(".cursor/rules/css.mdc", "---\nglobs: src/**/*.css,*.{sass,scss}\n---\n")
    ['src/**/*.css', '**/*.sass', '**/*.scss']
    """
    hidden = _OF_AN_AGENT if _FOR_ITS_FOLDER.search(name) else _HIDDEN
    folder = hidden.split(dirname(name), maxsplit=1)[0].rstrip("/")
    front = _FRONT.match(text.replace("\r\n", "\n"))
    globs_match = _GLOBS.search(front[1]) if front else None
    globs = (
        [_anywhere(glob) for glob in islice(_listed(globs_match[1][:_FRONT_MOST]), _GLOBS_MOST)] if globs_match else []
    )
    if not globs or EVERYWHERE in globs or "**/*" in globs:
        return [folder] if folder else []
    return list(dict.fromkeys(f"{folder}/{glob}" if folder else glob for glob in globs))


def _words(text: str) -> Iterator[str]:
    """Yield what may be a path: each word of code within a line, the target of each link, and web addresses."""
    plain = _FENCED.sub("", text)
    for code, address in _NAMED.findall(plain):
        words = code.split()
        for word in words or [address]:
            word = word.strip("\"'(),;=")
            is_path = "/" in word or "." in word.strip(".") or len(words) == 1
            if is_path and len(word) <= _LONGEST and "://" not in word and not word.startswith(("@", "-", "~", "$")):
                yield word
    yield from (match[0].rstrip(".,;:") for match in _ADDRESS.finditer(plain))


def _existing_path(word: str, find: Find) -> str | None:
    """Return the path that *word* names; a pattern counts where the folder it begins at is there."""
    if "://" in word:
        return find(word)
    plain = _PLACE_IN.sub("", word).lstrip("/")
    if not any(sign in plain for sign in "*?{"):
        is_plain_word = "/" not in word and "." not in word and not word[:1].isupper()
        return find(plain) if plain.strip("/.") and not is_plain_word else None
    folder = dirname(re.split(r"[*?{]", plain)[0] + ".")
    return plain if folder and "{" not in plain and find(folder) == folder else None


def _listed(globs: str) -> Iterator[str]:
    """Yield each pattern of a list as front matter has it: quoted or not, in brackets, by commas or one a line."""
    for part in re.split(r",(?![^{}]*\})|\n", globs):
        glob = re.sub(r"^\s*-\s", "", part).strip(" \t[]\"'")
        if glob:
            yield from _expanded(glob)


def _expanded(glob: str) -> Iterator[str]:
    """Yield the patterns that one with braces stands for."""
    braces = _BRACES.search(glob)
    if braces is None:
        yield glob
        return
    for choice in braces[1].split(","):
        yield from _expanded(glob[: braces.start()] + choice.strip() + glob[braces.end() :])


def _anywhere(glob: str) -> str:
    """Return *glob* as patterns of memories are: without a folder it stands for files in every folder."""
    glob = glob.removeprefix("./").lstrip("/")
    return glob if "/" in glob or glob == EVERYWHERE else f"**/{glob}" if glob != "*" else EVERYWHERE


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
    """The context of the notes of a page: name, files, whether it has rules, a file finder."""

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
        reading.broken.append(UnreadableEntry(name, error))
        return reading
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        reading.broken.append(UnreadableEntry(name, not_utf8(f"not UTF-8 at byte {error.start}")))
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


def _entry(page: _Page, statement: NoteStatement) -> ForeignEntry:
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


def _kind(statement: NoteStatement, is_rules: bool) -> str:
    if statement.is_done is not None:
        is_list = _CHECKLIST.search(" ".join((*statement.headings, *statement.context)))
        return "convention" if is_list else "task"
    kind = _kind_below(statement)
    if kind in (None, "fact"):
        return "convention" if is_rules or statement.binds else "fact"
    return kind


def _kind_below(statement: NoteStatement) -> str | None:
    """Return the kind that the nearest heading names; that of the page is none if there is another one."""
    for heading in reversed(statement.headings[statement.is_titled :] or statement.headings):
        if _TASKS.fullmatch(heading):
            return "task"
        for word, kind in _KINDS.items():
            if re.search(rf"\b{word}s?\b", heading.casefold()):
                return kind
    return None
