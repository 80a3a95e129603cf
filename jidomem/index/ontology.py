"""The ontology graph of a store: its whole content, and the mark that says which ontology that is."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b
from typing import Any

import pyoxigraph as ox

from jidomem.index.document import HOLDS, MARKS
from jidomem.terms import Triple, line
from jidomem.vocab import ONTOLOGY_GRAPH


@lru_cache(maxsize=2)  # a process that opens many roots has one ontology
def written(triples: tuple[Triple, ...]) -> tuple[bytes, str]:
    """Return *triples* as N-Triples, in one order, and their digest."""
    text = "\n".join(sorted(map(line, triples))).encode()
    return text, blake2b(text, digest_size=16).hexdigest()


def put(store: Any, text: bytes, digest: str) -> None:
    """Make *text* all that the ontology graph holds, unless *digest* says it is already; the mark is set last."""
    node, holds, marks = ox.NamedNode(ONTOLOGY_GRAPH), ox.NamedNode(HOLDS), ox.NamedNode(MARKS)
    mark = ox.Quad(node, holds, ox.Literal(digest), marks)
    if mark in store:
        return
    others = list(store.quads_for_pattern(node, holds, None, marks))
    for old in others:
        store.remove(old)
    if others:  # in one step: somebody may be asking
        store.update(f"CLEAR SILENT GRAPH {node}; INSERT DATA {{ GRAPH {node} {{ {text.decode()} }} }}")
    else:
        store.clear_graph(node)
        store.load(text, ox.RdfFormat.N_TRIPLES, to_graph=node)
    store.add(mark)
