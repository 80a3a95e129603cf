"""Where else below a root a text stands: files that no redaction rewrites, as they are nobody's but their writer's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from jidomem.terms import literal

#: The folder that is built from the journal, and how the files of a journal are found.
_DERIVED, _JOURNAL = "index", "projects"
#: A text with fewer signs stands within others everywhere.
SHORT = 8


def leftovers(root: Path, texts: Iterable[str], project: str) -> list[Path]:
    """Return the files below *root*, but for the journal of *project* and what is derived, in which a text stands."""
    forms = [form for text in texts for form in _forms(text)]
    return [path for path in _files(root, project) if _holds(path, forms)]


def _forms(text: str) -> list[re.Pattern[bytes]]:
    """Return how files may write a text: as it is, in Turtle, or in JSON, in any case; short ones as a word."""
    written = {text, literal(text)[1:-1], json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    before, after = (rb"(?<![a-z0-9])", rb"(?![a-z0-9])") if len(text) < SHORT else (b"", b"")
    return [re.compile(before + re.escape(form.encode()) + after, re.IGNORECASE) for form in written]


def _files(root: Path, project: str) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        below = path.relative_to(root).parts
        own = below[:2] == (_JOURNAL, project) and path.suffix == ".ttl"
        if below[0] != _DERIVED and not own and path.is_file():
            yield path


def _holds(path: Path, forms: Iterable[re.Pattern[bytes]]) -> bool:
    try:
        data = path.read_bytes()
    except OSError:  # it has gone
        return False
    return any(form.search(data) for form in forms)
