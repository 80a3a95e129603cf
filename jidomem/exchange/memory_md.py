"""Notes for agents in Markdown (MEMORY.md, CLAUDE.md, AGENTS.md), parsed as memories. Pure.

`mentions` returns the files of the repository that a page names, `scopes` the files that its front matter applies to.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from posixpath import dirname
from typing import Any, NamedTuple

from jidomem.base.json_values import decode_json
from jidomem.base.regex import lazy
from jidomem.errors import InvalidRequest
from jidomem.exchange.adr_markdown import gives_reason
from jidomem.exchange.importer import ForeignEntry, ParsedFile, UnreadableEntry, not_utf8
from jidomem.exchange.note_page import FRONT_MATTER, parse_page, text_of
from jidomem.exchange.note_statements import IMPORT, NoteStatement, read_statements

#: Returns the path of the file or folder that a page calls by a name, or None if the repository has none.
Find = Callable[[str], str | None]
#: The most files that one entry is about.
MOST = 12
#: Stands for every file of the repository.
EVERYWHERE = "**"
#: The longest word that may be a path, the longest list of patterns that is read, and the most patterns of it.
_LONGEST, _FRONT_MOST, _GLOBS_MOST = 1024, 16_384, 200
#: Pages are untrusted, so the patterns are possessive and bounded: no match backtracks without limit.
_FENCED = lazy(r"^[ \t]*+(`{3,}+|~{3,}+).*?^[ \t]*+\1", re.DOTALL | re.MULTILINE)
_NAMED = lazy(r"`([^`\n]+)`|\]\(<?([^)\s>]{1,1024}+)>?[^)\n]{0,1024}+\)")
#: A web address, also outside brackets or as the target of a reference link.
_ADDRESS = lazy(r"https?://[^\s)>\]\"'`]{1,1024}+")
_PLACE_IN = lazy(r"(?::\d+(?:[-:]\d+)*|#[\w-]+)$")
_GLOBS = lazy(r"^(?:globs|applyTo|paths)[ \t]*:[ \t]*(.*(?:\n[ \t]*-[ \t].*)*)", re.MULTILINE)
_BRACES = lazy(r"\{([^{}]*)\}")
#: Pages of instructions for their own folder, and folders of agents, whose pages are for the folder above.
_FOR_ITS_FOLDER = lazy(r"(?:^|/)(?:CLAUDE|AGENTS?|GEMINI)\.md$")
_OF_AN_AGENT = lazy(r"(?:^|/)\.(?:agents?|claude|clinerules|codex|copilot|cursor|gemini|windsurf)(?:/|$)")
_HIDDEN = lazy(r"(?:^|/)\.")
#: A pattern of file names without a folder, as `*.pb.go`, `test_*.py`; the extension excludes `*args`.
_GLOB = lazy(r"[\w.-]*\*[\w.-]*\.\w[\w.-]*")

#: A path without backticks: with folders, and an extension or a slash at its end. A pattern is none.
_PLAIN = r"(?<![\w/@:.$~%\\*-])(?:[\w.+-]{1,255}+/){1,32}+(?:[\w+-][\w.+-]{0,254}+)?+(?![\w/*?{\[<@])"
_PLAIN_PATH = lazy(_PLAIN)
_EXTENSION = lazy(r"(?:/|[^/]\.\w{1,16})\Z")

#: Files that a rule exempts: "outside `a.py`", "except in `a.py` and `b.py`", "only `a.py` may", "`a.py` is exempt".
_FILE_NAME = rf"(?:`[^`\n]{{1,1024}}+`|\[[^\]\n]{{0,256}}+\]\([^)\n]{{1,1024}}+\)|{_PLAIN})"
_FILE_NAMES = rf"{_FILE_NAME}(?:(?:,\s|\s)\s?(?:(?:and|or|nor)\s(?:in\s)?)?{_FILE_NAME}){{0,12}}+"
_EXEMPTS = (
    r"\b(?:outside|except(?:ing)?|with the exception of|other than|apart from|aside from|excluding|besides|unless"
    r"|but not|(?:any|every)where but)"
)
_BETWEEN = (
    r"(?:\s(?:of|for|from|in|within|inside|under|by|the|those|files?|code|tests|folder|modules?|it|is|are)){0,4}+"
)
_ALLOWED = r"(?:may|can|could|should|must|shall|is allowed|are allowed|is permitted|are permitted)"
_EXEMPTED = lazy(
    rf"{_EXEMPTS}{_BETWEEN}\s{_FILE_NAMES}"
    rf"|\bonly{_BETWEEN}\s{_FILE_NAMES}(?=\s{_ALLOWED}\b)"
    rf"|{_FILE_NAMES}(?=\s(?:is|are)\sexempt)",
    re.IGNORECASE,
)


def mentions(text: str, find: Find) -> list[str]:
    """Return the files that *text* names in backticks or links to and that *find* returns, each once, at most MOST.

    *find* also gets web addresses.

    >>> here = {"src/a.py": "src/a.py", "tools/": "tools"}
    >>> mentions("See `src/a.py:12`, run `make -C tools/` and read [why](docs/no.md)", here.get)
    ['src/a.py', 'tools']
    """
    paths = dict.fromkeys(filter(None, (_existing_path(word, find) for word in _words(text))))
    return list(islice(paths, MOST))


def plain_paths(text: str, find: Find) -> list[str]:
    """Return the files that *text* names without backticks and that *find* returns, each once, at most MOST.

    >>> here = {"src/a.py": "src/a.py", "docs/": "docs", "read/write": "read/write"}
    >>> plain_paths("See src/a.py. All of docs/ is read/write, src/A.py and x.org/src/a.py are not.", here.get)
    ['src/a.py', 'docs']
    """
    plain = _ADDRESS.sub(" ", _NAMED.sub(" ", _FENCED.sub("", text)))
    words = (match[0].rstrip(".-+") for match in _PLAIN_PATH.finditer(plain))
    paths = dict.fromkeys(filter(None, (find(word) for word in words if _EXTENSION.search(word))))
    return list(islice(paths, MOST))


def globs(text: str, find: Find) -> list[str]:
    """Return the patterns of file names that *text* has in backticks, as patterns of paths, at most MOST.

    *find* gets each with `**/` before it, and returns it if a file matches.

    >>> there = {"**/*.pb.go": "**/*.pb.go"}
    >>> globs("Never edit `*.pb.go`; `*args` and `*.example.com` are no files", there.get)
    ['**/*.pb.go']
    """
    words = (word for braced in _words(text) for word in _expanded(braced))
    named = dict.fromkeys(f"**/{word}" for word in words if _GLOB.fullmatch(word))
    return list(islice(filter(None, map(find, named)), MOST))


def scopes(name: str, text: str) -> list[str]:
    r"""Return the files that a page of instructions is for: those of its front matter, else its folder.

    A page at the top has no scope, since it is for all files. The folder of an agent (`.cursor`, `.claude`) stands for
    the folder above it, and so does `.github` for `copilot-instructions.md`, but not for an `AGENTS.md` in it.

    >>> scopes("web/AGENTS.md", "# Web"), scopes("web/.cursor/rules/a.mdc", "# A"), scopes("AGENTS.md", "# All")
    (['web'], ['web'], [])
    >>> scopes(".github/workflows/AGENTS.md", "# CI"), scopes(".github/copilot-instructions.md", "# All")
    (['.github/workflows'], [])
    >>> scopes(".cursor/rules/css.mdc", "---\nglobs: src/**/*.css,*.{sass,scss}\n---\n")
    ['src/**/*.css', '**/*.sass', '**/*.scss']
    """
    hidden = _OF_AN_AGENT if _FOR_ITS_FOLDER.search(name) else _HIDDEN
    folder = hidden.split(dirname(name), maxsplit=1)[0].rstrip("/")
    front = FRONT_MATTER.match(text.replace("\r\n", "\n"))
    globs_match = _GLOBS.search(front[1] or front[2]) if front else None
    globs = (
        [_anywhere(glob) for glob in islice(_listed(globs_match[1][:_FRONT_MOST]), _GLOBS_MOST)] if globs_match else []
    )
    if not globs or EVERYWHERE in globs or "**/*" in globs:
        return [folder] if folder else []
    return list(dict.fromkeys(f"{folder}/{glob}" if folder else glob for glob in globs))


def _words(text: str) -> Iterator[str]:
    """Yield possible paths: each word of inline code, the target of each link, and web addresses."""
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
    """Return the path that *word* names; a pattern counts if the folder it begins with exists."""
    if "://" in word:
        return find(word)
    plain = _PLACE_IN.sub("", word).lstrip("/")
    if not any(sign in plain for sign in "*?{"):
        is_plain_word = "/" not in word and "." not in word and not word[:1].isupper()
        return find(plain) if plain.strip("/.") and not is_plain_word else None
    folder = dirname(re.split(r"[*?{]", plain)[0] + ".")
    return plain if folder and "{" not in plain and find(folder) == folder else None


def _listed(globs: str) -> Iterator[str]:
    """Yield each pattern of a list in front matter: quoted or not, in brackets, separated by commas or line breaks."""
    for part in re.split(r",(?![^{}]*\})|\n", globs):
        glob = re.sub(r"^\s*-\s", "", part).strip(" \t[]\"'")
        if glob:
            yield from _expanded(glob)


def _expanded(glob: str) -> Iterator[str]:
    """Yield the patterns that a pattern with braces stands for."""
    braces = _BRACES.search(glob)
    if braces is None:
        yield glob
        return
    for choice in braces[1].split(","):
        yield from _expanded(glob[: braces.start()] + choice.strip() + glob[braces.end() :])


def _anywhere(glob: str) -> str:
    """Return *glob* in the form of memories, where a pattern without a folder matches files in every folder."""
    glob = glob.removeprefix("./").lstrip("/")
    return glob if "/" in glob or glob == EVERYWHERE else f"**/{glob}" if glob != "*" else EVERYWHERE


#: A word of a heading -> the kind of the statements below it; the nearest heading decides.
_KINDS: Mapping[str, str] = {
    "convention": "convention", "rule": "convention", "style": "convention", "guideline": "convention",
    "standard": "convention", "practice": "convention", "principle": "convention",
    "preference": "convention", "decision": "decision", "todo": "task", "next steps": "task",
    "overview": "fact", "structure": "fact", "background": "fact",
    "lesson": "lesson_learned", "learning": "lesson_learned", "gotcha": "lesson_learned", "pitfall": "lesson_learned",
    "risk": "risk", "open question": "unknown",
}  # fmt: skip
#: Headings above open tasks; "Common tasks" is a heading above instructions.
_TASKS = lazy(r"(?:open |current |remaining |pending )?tasks?:?", re.IGNORECASE)
#: Pages of instructions, and among them pages that contain only rules.
_INSTRUCTS = lazy(r"(?:^|/)(?:(?:CLAUDE|AGENTS?|GEMINI)\.md|[^/]*\.mdc|[^/]*\.instructions\.md)$")
_RULES = lazy(
    r"(?:^|/)(?:\.(?:cursor|windsurf|cline)rules|[^/]*\.mdc|[^/]*\.instructions\.md|copilot-instructions\.md"
    r"|\.(?:claude|windsurf)/rules/.*\.md)$"
)
#: The line of an export with type, author, date and IRI of a memory.
_ORIGIN = lazy(r", confidence \w+, \S+$")
#: The rationale of a decision whose page states none.
NO_REASON = "The file gives no reason."
#: The largest page that is read, in bytes: the parser needs some 40 s for the worst page of this size.
_LARGEST = 1_000_000
#: Check boxes below such words are a checklist for each change; all others are tasks.
_CHECKLIST = lazy(
    r"check-?lists?|\bbefore\b|\bwhen(?:ever)?\b|\bensure\b|\bverify\b|\breview|\bpull request|\bPRs?\b|\bdone\b",
    re.IGNORECASE,
)


class _Page(NamedTuple):
    """The context of the notes of a page: name, files, whether it has rules, a file finder."""

    name: str
    scope: tuple[str, ...]
    is_rules: bool
    find: Find


def read(name: str, data: bytes, find: Find = lambda named: None) -> ParsedFile:
    """Return a memory for each statement of a page, with the headings, lead-ins and parents that its meaning needs.

    Its files are those it names, as far as *find* returns them, and those that a page of instructions is for.
    """
    reading = ParsedFile("ExternalDocumentSource")
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
    if _is_json(text):
        hint = "record a conversation turn by turn: memory.conversation(session).record()"
        reading.broken.append(UnreadableEntry(name, InvalidRequest("JSON, not a page of notes", hint=hint)))
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
            reading.notes.append(f"{name}:{statement.line}: {words} names another file: import it too, if needed")
            reading.leave_out(f"{name}:{statement.line}", "names another file")
        else:
            reading.entries.append(_entry(page, statement))
    return reading


def _is_json(text: str) -> bool:
    r"""Return whether *text* is a JSON object or list, or has one in its first line.

    >>> _is_json('{"role": "user"}\n{"role": "assistant"}\n'), _is_json("[docs](docs/) are here"), _is_json("[]")
    (True, False, True)
    """
    whole = text.strip()
    return whole[:1] in ("{", "[") and any(map(_is_decodable, (whole, whole.partition("\n")[0])))


def _is_decodable(text: str) -> bool:
    try:
        decode_json(text)
    except ValueError:
        return False
    return True


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
        fields["rationale"] = _reason(statement)
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


def _reason(statement: NoteStatement) -> str:
    """Return the rationale of a decision: its own text if that gives a reason, else the first paragraph below it.

    In an export the paragraph comes first. One with a label, such as `Topic:`, gives no reason.
    """
    own = statement.text if gives_reason(statement.text) else ""
    texts = (text_of(block) for block in parse_page(statement.more).blocks if block.type == "paragraph")
    reasons = (text for text in texts if not text.label and not _ORIGIN.search(text.plain))
    below = next(("\n".join(text.lines) for text in reasons), "")
    return (below or own if _ORIGIN.search(statement.more) else own or below) or NO_REASON


def _files(page: _Page, text: str) -> tuple[str, ...]:
    """Return the files a note is about: those it names, by name or pattern, and does not exempt; those its page is
    for.
    """
    text = _EXEMPTED.sub(" ", text)
    named = (*mentions(text, page.find), *plain_paths(text, page.find))[:MOST]
    return tuple(dict.fromkeys((*named, *globs(text, page.find), *page.scope)))


def _kind(statement: NoteStatement, is_rules: bool) -> str:
    if statement.is_done is not None:
        is_list = _CHECKLIST.search(" ".join((*statement.headings, *statement.context)))
        return "convention" if is_list else "task"
    kind = _kind_below(statement)
    if kind in (None, "fact"):
        return "convention" if is_rules or statement.binds else "fact"
    return kind


def _kind_below(statement: NoteStatement) -> str | None:
    """Return the kind that the nearest heading implies; the title of the page counts only without other headings."""
    for heading in reversed(statement.headings[statement.is_titled :] or statement.headings):
        if _TASKS.fullmatch(heading):
            return "task"
        for word, kind in _KINDS.items():
            if re.search(rf"\b{word}s?\b", heading.casefold()):
                return kind
    return None
