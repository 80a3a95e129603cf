"""The nearness of a memory to a file, by the path that the memory is about, its force, and its conflicts in words.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from jidomem.base.containers import grouped
from jidomem.base.regex import lazy
from jidomem.base.words import quoted_name, words_of
from jidomem.rdf.vocab import local_name, short_id
from jidomem.records.file_anchor import plain_path
from jidomem.repository.worktree import matches

#: The default number of memories in a list for one file.
MOST_SHOWN = 10
#: The most near pairs of a project that are listed.
MOST_PAIRS = 100
#: The levels of conventions that govern every file if they name no place.
BINDING = ("Strict", "Required")
#: The forces of memories, the most binding first.
FORCES = ("strict", "required", "decision", "open error", "lesson", "advisory", "past error")
_OF_LEVEL = {"Strict": "strict", "Required": "required"}
_WILD = str.maketrans("", "", "*?[]{}!/.")
_FILE, _FOLDER, _PATTERN = 3, 2, 1


def force(kind: str, level: str | None, state: str | None, *, is_error: bool) -> str:
    """Return the force of a memory of the class *kind*: by its enforcement *level* if it is a convention, by its
    *state* if it is an error.

    >>> force("Convention", "Required", None, is_error=False), force("Bug", None, "Resolved", is_error=True)
    ('required', 'past error')
    >>> force("LessonLearned", None, None, is_error=False), force("ArchitecturalDecision", None, None, is_error=False)
    ('lesson', 'decision')
    """
    if level:
        return _OF_LEVEL.get(level, "advisory")
    if is_error:
        return "past error" if state in ("Resolved", "Deferred") else "open error"
    return "lesson" if kind in ("LessonLearned", "RootCause") else "decision"


def is_general(about: str | None) -> bool:
    """Return whether *about* names no specific place: it is empty, or a pattern that every file matches.

    >>> is_general(""), is_general("**/*"), is_general("**/*.py"), is_general("src")
    (True, True, False, False)
    """
    return not about or ("**" in about and not about.strip("*/"))


def is_note(about: str | None, level: str | None) -> bool:
    """Return whether a memory about *about* governs no file: it names none, and is no convention of a binding *level*.

    >>> is_note("**", "Advisory"), is_note("**", "https://jido.ai/ontology#Strict"), is_note("src", None)
    (True, False, False)
    """
    return is_general(about) and local_name(level or "") not in BINDING


def is_about(place: str, path: str) -> bool:
    """Return whether a memory about *place*, a file, a folder or a pattern, is about the file *path*.

    >>> is_about("src/", "src/a.py"), is_about("src/*.js", "src/a.py"), is_about(".", "src/a.py")
    (True, False, False)
    """
    plain, name = plain_path(place).removeprefix("./").rstrip("/"), plain_path(path)
    if is_general(plain) or plain == ".":
        return False
    return matches(plain, name) if "*" in plain else f"{name}/".startswith(f"{plain}/")


def nearness(path: str, about: str | None) -> tuple[int, int]:
    """Return the nearness of the place *about* to the file *path*; greater is nearer.

    The order is: the file itself and its module, its folder and those above it, the deepest first, patterns, those with
    the most literal characters first, and places that stand for everything.

    >>> places = [".", "src/**/*.py", "src", "**", "src/db/", "src/db/pool.py", "**/*.py"]
    >>> sorted(places, key=lambda about: nearness("src/db/pool.py", about), reverse=True)
    ['src/db/pool.py', 'src/db/', 'src', 'src/**/*.py', '**/*.py', '.', '**']
    """
    plain = plain_path(about or "").removeprefix("./").rstrip("/")
    if plain in ("", ".") or is_general(plain):
        return 0, 0
    if "*" in plain and matches(plain, path):
        return _PATTERN, len(plain.translate(_WILD))
    if path.startswith(f"{plain}/"):
        return _FOLDER, plain.count("/")
    return _FILE, 0


def disagreement(others: Sequence[str]) -> str:
    """Return the words for an open conflict with *others*; an empty text without any.

    >>> disagreement(["https://jido.ai/memory/0197a1b2-0000-7000-8000-00000000abcd"])
    'disagrees with 0000abcd'
    """
    return f"disagrees with {', '.join(quoted_name(short_id(other)) for other in others)}" if others else ""


def pair_count(count: int) -> str:
    """Return the number of near pairs in words; of more than MOST_PAIRS no more are listed.

    >>> pair_count(1), pair_count(2), pair_count(100)
    ('1 near pair', '2 near pairs', '100 or more near pairs')
    """
    return f"{count:,}{' or more' * (count >= MOST_PAIRS)} near pair{'s' * (count > 1)}"


def differing_note(count: int, where: str) -> str:
    """Return the words for near pairs that differ in a value, and *where* they are listed.

    >>> differing_note(1, "jidomem review"), differing_note(2, "jidomem review")
    ('1 near pair that differs in a value: jidomem review', '2 near pairs that differ in a value: jidomem review')
    """
    return f"{pair_count(count)} that differ{'s' * (count == 1)} in a value: {where}"


#: An identifier in capitals, with two digits or more, and the letters of those that are values, of a standard or money.
_IDENTIFIER = lazy(
    r"(?<![\w./:@#-])(?P<letters>[A-Z]{1,10}(?:-[A-Z]{1,5})*)(?:[-_]?(?:\d+[-_])*\d{3,}|-\d{2})(?![\w-]|[.,:]\d)"
)
_VALUES = frozenset(
    re.findall(
        r"\w+",
        "AES BASE CHF CP DDR DIN EC ED EN EPSG ES EUR GBP GPT H HS HTTP IEC IEEE IPV ISO JPY LATIN MD P PBKDF PS PY RC"
        " RFC RIPEMD RS RSA RTX SHA SQL TLS USD UTF V VP X",
    )
)
_THING = lazy(r"(?P<letters>(?:urn|https?):.*[:/#])[^:/#]+")


class Referents(NamedTuple):
    """The IRIs that a memory is about, and the identifiers in its summary and topic, by what such names begin with."""

    about: Mapping[str, frozenset[str]]
    named: Mapping[str, frozenset[str]]

    @property
    def codes(self) -> list[str]:
        """Return the identifiers as words of the search index."""
        return [next(words_of(name)) for names in self.named.values() for name in names]


def things(summary: str, topic: str, about: Iterable[str]) -> Referents:
    """Return the things that a memory with these fields is on."""
    iris, codes = map(_THING.fullmatch, about), _IDENTIFIER.finditer(f"{summary} {topic}")
    return Referents(
        _by_letters(match for match in iris if match),
        _by_letters(match for match in codes if match["letters"] not in _VALUES),
    )


def _by_letters(matches: Iterable[re.Match[str]]) -> dict[str, frozenset[str]]:
    alike = grouped((match["letters"], re.sub(r"(?<=[A-Z])[-_]?(?=\d)", "", match[0])) for match in matches)
    return {letters: frozenset(names) for letters, names in alike.items()}


def are_of_other_things(one: Referents, other: Referents) -> bool:
    """Return whether two memories are on other things of one kind: by the IRIs that both are about, else as they say.

    >>> first, second, third = (things(f"Claim {name} is paid", "", []) for name in ("CL-1003", "CL-1004", "CL1003"))
    >>> are_of_other_things(first, second), are_of_other_things(first, third)
    (True, False)
    """
    for names, others in zip(one, other, strict=True):
        if alike := names.keys() & others.keys():
            return all(names[letters].isdisjoint(others[letters]) for letters in alike)
    return False
