"""A page whose commands and programs are run in their order, and beside each of which stands what it prints.

Ids, digests, moments and the folder are other ones each time: those a page shows stand for those of a run, the same one
always for the same one, also in commands. A line `...` stands for any lines. `# exit 3` ends a command that fails so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

#: The folder above the one a page works in, as it shows it.
HOME = "/home/ana"
_MOMENT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{8}T\d{6}\.\d{6}Z|\d{4}-\d\d-\d\d"
_ID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|[0-9a-f]{12}|[0-9a-f]{8}"
_PASSING = re.compile(rf"(?<![0-9a-zA-Z])(?:(?P<moment>{_MOMENT})|(?P<id>{_ID}))(?![0-9a-zA-Z])")
_BLOCK = re.compile(r"^(?P<fence>`{3,})(console|python|text)\n(.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)
_EXIT = re.compile(r"\s+# exit (\d+)$")


@dataclass(frozen=True)
class Step:
    """One command, or one program, of a page, and what the page says it prints."""

    language: str
    code: str
    shown: str | None  # None: it says nothing of that
    start: int
    end: int  # where in the page stands what it prints

    @property
    def exit(self) -> int:
        """The exit code that the page gives it."""
        found = _EXIT.search(self.code)
        return int(found[1]) if found else 0


def steps(page: str) -> list[Step]:
    """Return the commands and programs of *page*, in order; a block of text is what the program above it prints."""
    found: list[Step] = []
    for block in _BLOCK.finditer(page):
        if block[2] == "console":
            found += _commands(block[3], block.start(3))
        elif block[2] == "python":
            found.append(Step("python", block[3], None, block.end(), block.end()))
        elif found and found[-1].language == "python":
            found[-1] = Step("python", found[-1].code, block[3], block.start(3), block.end(3))
    return found


def _commands(text: str, start: int) -> list[Step]:
    found = []
    for each in re.finditer(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        code = re.sub(r"^> ", "", each[1], flags=re.MULTILINE).rstrip("\n")
        found.append(Step("console", code, each[2], start + each.start(2), start + each.end(2)))
    return found


@dataclass
class Names:
    """Which id, digest or moment of a run stands for which of the page."""

    home: str
    known: dict[str, str] = field(default_factory=dict)

    def given(self, text: str) -> str:
        """Return *text* of the page with the ids, moments and the folder of this run."""
        return _PASSING.sub(lambda found: self.known.get(found[0], found[0]), text).replace(HOME, self.home)

    def fits(self, shown: str, printed: str) -> bool:
        """Return whether *printed* is what *shown* says, and learn from it which id stands for which."""
        groups: dict[str, str] = {}
        pattern = "".join(self._line(line, groups) for line in shown.replace(HOME, self.home).splitlines(True))
        found = re.fullmatch(pattern, printed)
        if found:
            for number, name in groups.items():
                self.learn(name, found[number])
        return bool(found)

    def learn(self, name: str, value: str) -> None:
        """Let *value* of the run stand for *name* of the page; an IRI and a digest give their short ids, too."""
        self.known[name] = value
        if "-" in name and len(name) == 36:
            self.known[name[-8:]] = value[-8:]
        elif len(name) == 64:
            self.known[name[:12]] = value[:12]

    def _line(self, line: str, groups: dict[str, str]) -> str:
        if line.strip() == "...":
            return "(?:.*\n)*?"
        parts, done = [], 0
        for found in _PASSING.finditer(line):
            parts += [re.escape(line[done : found.start()]), self._passing(found, groups)]
            done = found.end()
        return "".join([*parts, re.escape(line[done:])])

    def _passing(self, match: re.Match[str], groups: dict[str, str]) -> str:
        if match["id"] in self.known:
            return re.escape(self.known[match["id"]])
        number = f"g{len(groups)}"
        known = next((key for key, name in groups.items() if name == match["id"]), None)
        if known:
            return f"(?P={known})"
        groups[number] = match[0]
        return f"(?P<{number}>{_like(match[0])})"


def _like(name: str) -> str:
    """Return a pattern for whatever has the form of *name*, an id or a moment."""
    kind = r"\d" if _PASSING.fullmatch(name)["moment"] else "[0-9a-f]"  # type: ignore[index]
    return re.sub(r"[0-9a-f]+", lambda part: f"{kind}{{{len(part[0])}}}", name.replace(".", r"\."))


def rewritten(page: str, run: Callable[[Step, Names], str], names: Names) -> str:
    """Return *page* with what each step prints as *run* gives it; what fits already stays as it stands."""
    done, parts = 0, []
    for step in steps(page):
        printed = run(step, names)
        if step.shown is None:
            continue
        parts.append(page[done : step.start])
        if names.fits(step.shown, printed):
            parts.append(step.shown)
        else:
            _pair(step.shown, printed, names)
            parts.append(_shown(printed, names))
        done = step.end
    return "".join([*parts, page[done:]])


def _pair(shown: str, printed: str, names: Names) -> None:
    """Learn which id stands for which from their order, where what is shown no longer fits."""
    for kind in ("id", "moment"):
        ours, theirs = ([each[kind] for each in _PASSING.finditer(text) if each[kind]] for text in (shown, printed))
        for name, value in zip(ours, theirs, strict=False):
            if name not in names.known and len(name) == len(value):
                names.learn(name, value)


def _shown(printed: str, names: Names) -> str:
    back: Mapping[str, str] = {value: name for name, value in names.known.items()}
    for found in _PASSING.finditer(printed):
        if found[0] not in back:
            names.learn(found[0], found[0])
    return _PASSING.sub(lambda found: back.get(found[0], found[0]), printed).replace(names.home, HOME)
