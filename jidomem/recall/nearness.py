"""The nearness of a memory to a file, by the path that the memory is about. Pure."""

from __future__ import annotations

from jidomem.rdf.vocab import local_name
from jidomem.repository.worktree import matches
from jidomem.write.canonical import plain_path

#: How many memories a list shows of one file where all of them are not asked for.
MOST_SHOWN = 10
#: The levels of conventions that bind every file where they name no place in particular.
BINDING = ("Strict", "Required")
_WILD = str.maketrans("", "", "*?[]{}!/.")
_FILE, _FOLDER, _PATTERN = 3, 2, 1


def is_general(about: str | None) -> bool:
    """Return whether *about* names no place in particular: nothing, or a pattern that every file matches.

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
    """Return how near the place *about* is to the file *path*; the greater is the nearer.

    The file itself and the module it holds come first, then its folder and those above it, the deepest first, then
    patterns, those with the most literal characters first, then what is about the whole.

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
