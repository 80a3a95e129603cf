"""Leftovers: files of a root, and sources of memories, in which a redacted text still stands: none is rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from jidomem.govern.spellings import Spelling, form_of
from jidomem.journal.disk import LARGEST
from jidomem.repository.worktree import plain_file

#: The folder that is built from the journal, and how the files of a journal are found.
_DERIVED, _JOURNAL, _ASIDE = "index", "projects", ".aside"
#: The folders of a root that a redaction throws away and makes anew.
DERIVED = ("cache/text", "cache/vectors", "cache/guard")
_STATE = ("state", "cache")
#: The form of a text that may stand in a file which is too large to be searched.
NOT_SEARCHED = "not searched"


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file in which a text stands: in which form, whether in its name, and what to do about it."""

    path: Path
    form: str
    in_name: bool
    hint: str
    line: int | None = None  # of a source of memories, where the text stands in one line


def leftovers(root: Path, texts: Iterable[str], project: str) -> list[Leftover]:
    """Return the files below *root*, but for the journal of *project* and what is derived, in which a text stands.

    A text in the name of a file or folder counts wherever that is, so does one in the name of *project*.
    """
    given = [Spelling(text, as_word=True) for text in texts]
    return [found for path in _paths(root) if (found := _leftover(root, path, given, project)) is not None]


def source_leftovers(base: Path, paths: Iterable[str], texts: Iterable[str]) -> list[Leftover]:
    """Return the sources of memories, files at *paths* below *base*, in which a text stands.

    There is one for each line, and one for a path that shows a text.
    """
    given = [Spelling(text, as_word=True) for text in texts]
    found: list[Leftover] = []
    for path in sorted(set(paths)):
        whole = base.resolve() / path
        if (data := plain_file(whole, LARGEST)) is None:
            continue
        if (form := form_of(path, given)) is not None:
            found.append(Leftover(whole, form, True, f"edit it, then rename it: mv {quote(path)} NEW-NAME"))
        text = data.decode("utf-8", "replace")
        hint = f"edit {quote(path)} before you import it again or end its redacted memory: that could record the text"
        forms = ((number, form_of(line, given)) for number, line in enumerate(text.splitlines(), 1))
        lines = [Leftover(whole, form, False, hint, number) for number, form in forms if form is not None]
        whole_form = None if lines else form_of(text, given)
        found += lines or ([Leftover(whole, whole_form, False, hint)] if whole_form is not None else [])
    return found


def _leftover(root: Path, path: Path, given: list[Spelling], project: str) -> Leftover | None:
    below = path.relative_to(root).parts
    if (form := form_of(below[-1], given)) is not None:
        return Leftover(path, form, True, _hint_of_name(below, path))
    own = below[:2] == (_JOURNAL, project) and path.suffix == ".ttl"
    if own or not path.is_file():
        return None
    try:
        if (size := path.stat().st_size) > LARGEST:
            return Leftover(path, NOT_SEARCHED, False, f"it has {size:,} bytes, search it: less {quote(str(path))}")
        form = form_of(path.read_bytes().decode("utf-8", "replace"), given)
    except OSError:  # it has gone
        return None
    return None if form is None else Leftover(path, form, False, _hint(below, path))


def _paths(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        if path.relative_to(root).parts[0] != _DERIVED:
            yield path


def _hint_of_name(below: tuple[str, ...], path: Path) -> str:
    if below[0] == _JOURNAL and len(below) == 2:
        return "the name of a project stays: import what it remembers into another one, and delete this one"
    return f"rename it: mv {quote(str(path))} NEW-NAME"


def _hint(below: tuple[str, ...], path: Path) -> str:
    if path.suffix == _ASIDE:
        return f"once nobody needs what was set aside: rm {quote(str(path))}"
    if below[0] == _JOURNAL:
        return f"it is of another project: jidomem redact --project {quote(below[1])} --text - --reason TEXT"
    if below[0] in _STATE:
        return "stop what uses this root, then redact it again, or delete the file"
    return "edit that file, or delete it"
