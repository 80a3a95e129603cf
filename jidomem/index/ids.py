"""The ids of the memories of a project: which begin or end with some signs."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from heapq import nsmallest
from sys import maxsize
from threading import Lock

from jidomem.index.bounded import Bounds
from jidomem.index.oxigraph import OxigraphIndex
from jidomem.terms import Term, Triple, is_iri
from jidomem.vocab import jido

_OF = jido("appliesToProject")
_EVERY = f"SELECT ?item WHERE {{ ?item {_OF} %s }}"


class _Kept:
    """The IRIs of the memories of a project, one a line, and those that are new since they were looked up."""

    def __init__(self) -> None:
        self.lines: bytes | None = None  # before they are looked up
        self.news: deque[bytes] = deque()


class Ids:
    """Follows an index: the ids of a project are looked up when one is first asked for, and each new one is heard of.

    To look them up takes as long as one question to the index, and to search them a twentieth of that. Any thread may
    ask; one at a time is answered.
    """

    def __init__(self, index: OxigraphIndex) -> None:
        """Follow *index* from now on."""
        self._index = index
        self._kept: dict[tuple[str, Term], _Kept] = {}
        self._lock = Lock()
        index.observers.append(self)

    def named(self, graph: str, project: Term, signs: str, most: int) -> list[str]:
        """Return up to *most* memories of *project* in *graph* whose id begins or ends with *signs*, sorted.

        The id is what stands after the last `/`, `#` or `:` of its IRI.
        """
        if not signs or any(sign.isspace() or sign in "<>/#:" for sign in signs):
            return []
        with self._lock:
            lines = self._level(graph, project)
        return [item.decode() for item in nsmallest(most, _named(lines, signs.encode(errors="surrogatepass")))]

    def applied(self, graph: str, triples: Collection[Triple]) -> None:
        """Remember which memories are new."""
        for (of_graph, project), kept in [*self._kept.items()]:
            if of_graph == graph:
                kept.news.extend(f"{s}\n".encode() for s, p, o in triples if p == _OF and o == project and is_iri(s))

    def reset(self, graph: str) -> None:
        """Forget what is known of *graph*."""
        for key in [key for key in [*self._kept] if key[0] == graph]:
            self._kept.pop(key, None)

    def _level(self, graph: str, project: Term) -> bytes:
        """Return all there are, one a line; what comes while they are looked up may be there twice."""
        kept = self._kept.setdefault((graph, project), _Kept())  # first: from here on it hears of what is new
        if kept.lines is None:
            within = Bounds(maxsize, maxsize)
            found = self._index.serialized(_EVERY % project, graphs=[graph], rows_as="tsv", within=within)
            kept.lines = found.data
        new = [kept.news.popleft() for _ in range(len(kept.news))]
        if new:
            kept.lines += b"".join(new)
        return kept.lines


def _named(lines: bytes, signs: bytes) -> set[bytes]:
    """Return the IRIs of *lines* whose last part begins or ends with *signs*."""
    found, at = set(), lines.find(signs)
    while at >= 0:
        end = lines.index(b"\n", at)
        start = lines.rfind(b"\n", 0, at) + 1
        item = lines[start + 1 : end - 1]
        last = item[max(map(item.rfind, (b"/", b"#", b":"))) + 1 :]
        if lines[start : start + 1] == b"<" and (last.startswith(signs) or last.endswith(signs)):
            found.add(item)
        at = lines.find(signs, end)
    return found
