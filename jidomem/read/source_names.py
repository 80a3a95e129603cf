"""The names of a source: what an imported memory is called by where it came from, its file, line, number or title."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from jidomem.anchor import anchors_of, path_of
from jidomem.index import OxigraphIndex
from jidomem.repository.record_files import number_of_name, record_name
from jidomem.terms import Term, bare
from jidomem.vocab import graph_iri, jido
from jidomem.words import normal_text

_BLOB, _LINE, _KEY, _SUMMARY = jido("sourceBlob"), jido("sourceLine"), jido("localId"), jido("summary")
_NUMBER = re.compile(r"(?:(?:adr|rfc)[-_. #]*|#)?0*(\d{1,5})", re.IGNORECASE)
_AT_LINE = re.compile(r"(.+):(\d{1,7})")


@dataclass(frozen=True, slots=True)
class SourceName:
    """A memory with the file and line that it was imported from, and its key there; a record has no line."""

    item: Term
    path: str
    line: int | None
    key: str

    @property
    def entry(self) -> tuple[str, str, int | None]:
        """Return what all versions of an entry share, as far as it was not moved; others may share it."""
        return self.path, self.key, self.line

    def __str__(self) -> str:
        """Return the file and line, as a person names it."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


def is_number(text: str) -> bool:
    """Return whether *text* may be the number of a record.

    >>> is_number("0016"), is_number("ADR-16"), is_number("0197a1b2")
    (True, True, False)
    """
    return bool(_NUMBER.fullmatch(text))


def is_place(text: str) -> bool:
    """Return whether *text* may be a file with a line, or a title, and no IRI.

    >>> is_place("AGENTS.md:64"), is_place("Use a queue: because"), is_place("https://jido.ai/memory/a")
    (True, True, False)
    """
    return any(map(str.isspace, text)) or ("://" not in text and bool(_AT_LINE.fullmatch(text)))


def named(index: OxigraphIndex, project: str, text: str) -> list[list[SourceName]]:
    """Return the entries of sources that *text* names, each with the memories that were imported from it.

    It is the number of a record, the path of a file or the end of that, with a line or without, or a title.
    """
    number = _NUMBER.fullmatch(text)
    found: dict[tuple[str, str, int | None], list[SourceName]] = defaultdict(list)
    for source in sources(index, project):
        if number is not None:
            is_named = source.line is None and number_of_name(record_name(source.path)) == int(number[1])
        else:
            is_named = _is_at(source, text) or _is_titled(index, project, source.item, text)
        if is_named:
            found[source.entry].append(source)
    return [found[entry] for entry in sorted(found, key=lambda entry: (entry[0], entry[2] or 0, entry[1]))]


def beginning_with(index: OxigraphIndex, project: str, text: str) -> list[list[SourceName]]:
    """Return the entries of sources in files whose names begin with *text*, in any case, as `named` does."""
    found: dict[tuple[str, str, int | None], list[SourceName]] = defaultdict(list)
    for source in sources(index, project):
        if record_name(source.path).casefold().startswith(text.casefold()):
            found[source.entry].append(source)
    return [found[entry] for entry in sorted(found, key=lambda entry: (entry[0], entry[2] or 0, entry[1]))]


def nearest(index: OxigraphIndex, project: str, text: str, most: int) -> list[str]:
    """Return at most *most* names of sources that are like *text*, the nearest first: of a file with a line by that."""
    names = {str(source): source for source in sources(index, project)}
    placed = _AT_LINE.fullmatch(text)
    if placed and (path := path_of(placed[1])) is not None:
        lines = {
            name: abs(source.line - int(placed[2]))
            for name, source in names.items()
            if source.line is not None and f"/{source.path}".endswith(f"/{path}")
        }
        if lines:
            return sorted(lines, key=lambda name: (lines[name], name))[:most]
    written = {record_name(source.path): name for name, source in names.items()} | {name: name for name in names}
    found = get_close_matches(text, sorted(written), n=most)
    return [*dict.fromkeys(written[each] for each in found)]


def sources(index: OxigraphIndex, project: str) -> Iterator[SourceName]:
    """Yield each memory of *project* that was imported from a file, with its place there."""
    graph = graph_iri(project)
    for item, _, blob in index.triples(graph, None, _BLOB):
        for anchor in anchors_of([blob]):
            line = next((int(bare(value)) for _, _, value in index.triples(graph, item, _LINE)), None)
            key = next((bare(value) for _, _, value in index.triples(graph, item, _KEY)), "")
            yield SourceName(item, anchor.path, line, key)


def _is_at(source: SourceName, text: str) -> bool:
    """Return whether *text* is the path of the file of *source*, or the end of it, with its line or without."""
    placed = _AT_LINE.fullmatch(text)
    given, line = (placed[1], int(placed[2])) if placed else (text, None)
    path = path_of(given)
    if path is None or (line is not None and line != source.line):
        return False
    return path == record_name(source.path) or f"/{source.path}".endswith(f"/{path}")


def _is_titled(index: OxigraphIndex, project: str, item: Term, text: str) -> bool:
    return any(
        normal_text(bare(value)) == normal_text(text)
        for _, _, value in index.triples(graph_iri(project), item, _SUMMARY)
    )
