"""Which files of a repository a page names, and which its front matter says it is for.  Text in, paths out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice
from posixpath import dirname

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
    found = dict.fromkeys(filter(None, (_found(word, find) for word in _words(text))))
    return list(islice(found, MOST))


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
    said = _GLOBS.search(front[1]) if front else None
    globs = [_anywhere(glob) for glob in islice(_listed(said[1][:_FRONT_MOST]), _GLOBS_MOST)] if said else []
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
    yield from (found[0].rstrip(".,;:") for found in _ADDRESS.finditer(plain))


def _found(word: str, find: Find) -> str | None:
    """Return the path that *word* names; a pattern counts where the folder it begins at is there."""
    if "://" in word:
        return find(word)
    plain = _PLACE_IN.sub("", word).lstrip("/")
    if not any(sign in plain for sign in "*?{"):
        is_plain_word = "/" not in word and "." not in word and not word[:1].isupper()
        return find(plain) if plain.strip("/.") and not is_plain_word else None
    folder = dirname(re.split(r"[*?{]", plain)[0] + ".")
    return plain if folder and "{" not in plain and find(folder) == folder else None


def _listed(said: str) -> Iterator[str]:
    """Yield each pattern of a list as front matter has it: quoted or not, in brackets, by commas or one a line."""
    for part in re.split(r",(?![^{}]*\})|\n", said):
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
