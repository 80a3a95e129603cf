"""The near pairs of a project: active memories of which one repeats the other or is on the same matter.

The pairs of near vectors are stored with the vectors; memories with one text have one vector. Here the pairs are judged
by their words, status and links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

from jidomem.index import OxigraphIndex
from jidomem.index.search_tables import SearchFilter, SearchIndexReader, SearchRow
from jidomem.index.vectors import Vectors
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.recall.neighbours import is_comparable, likeness_of_pairs
from jidomem.records.recall import NearPair
from jidomem.write import conflict
from jidomem.write.snapshot import WriteSnapshot

#: The likeness from which two memories are a near pair: higher than that of neighbours, as nobody has just written one
#: of them. On the labelled notes it lists 103 of 160 repetitions and contradictions, and a wrong pair for 12 memories.
LEAST = 0.85
#: The most pairs returned, and the most pairs of vectors examined.
MOST, EXAMINED = 100, 5_000
#: The most memories with one text that are compared: many may have the same sentence.
OF_ONE_TEXT = 4
_STEP = 1_000


def near_pairs(
    file: SearchIndexReader, stream: Stream, vectors: Vectors, index: OxigraphIndex, moment: str
) -> list[NearPair]:
    """Return up to MOST near pairs of *stream* that are active at *moment*, the nearest first.

    Memories that are related in *index* already, or coexist, are no pair.
    """
    view = WriteSnapshot(lambda s, p, o: index.triples(stream.graph, s, p, o))
    pairs: dict[tuple[str, str], NearPair] = {}
    for one, other, likeness in _active_pairs(file, stream, vectors, moment):
        if len(pairs) == MOST:
            break
        older, newer = sorted((one, other), key=lambda row: (row.recorded, row.number))
        names = newer.item, older.item
        if likeness >= LEAST and names not in pairs and not _are_related(*names, view):
            pairs[names] = NearPair(*names, round(likeness, 3) if likeness == 1.0 else min(round(likeness, 3), 0.999))
    return sorted(pairs.values(), key=lambda pair: (-pair.likeness, pair.item, pair.other))


def _active_pairs(
    file: SearchIndexReader, stream: Stream, vectors: Vectors, moment: str
) -> Iterator[tuple[SearchRow, SearchRow, float]]:
    """Yield the comparable pairs of memories with one text or near vectors, the nearest first, with their likeness."""
    within = SearchFilter(valid_at=moment)
    for near in _near_texts(file, stream, vectors):
        numbers = file.passages.numbers_of({digest for one, other, _ in near for digest in (one, other)})
        rows = {row.number: row for row in file.rows({each for some in numbers.values() for each in some}, within)}
        active = {known: [each for each in some if each in rows][:OF_ONE_TEXT] for known, some in numbers.items()}
        pairs = [
            (rows[left], rows[right], cosine)
            for one, other, cosine in near
            for left, right in product(active[one], active[other])
            if left != right and is_comparable(rows[left].types, rows[right].types)
        ]
        likeness = likeness_of_pairs(file, pairs)
        yield from ((one, other, like) for (one, other, _), like in zip(pairs, likeness, strict=True))


def _near_texts(
    file: SearchIndexReader, stream: Stream, vectors: Vectors
) -> Iterator[Sequence[tuple[bytes, bytes, float]]]:
    """Yield the texts that several memories have, then, in steps, those with near vectors: the digests and the cosine.

    A text that several memories have has one vector, and so is in no pair of vectors.
    """
    yield [(known, known, 1.0) for known in file.passages.repeated(EXAMINED)]
    for start in range(0, EXAMINED, _STEP):
        near = vectors.near_pairs(stream, _STEP, start)
        yield near
        if len(near) < _STEP:
            return


def _are_related(item: str, other: str, view: WriteSnapshot) -> bool:
    """Return whether one of two memories names the other, or an earlier version that it coexists with."""
    for one, another in ((iri(item), iri(other)), (iri(other), iri(item))):
        if any(value == another for _, _, value in view.about(one)) or another in conflict.coexisting(one, view):
            return True
    return False
