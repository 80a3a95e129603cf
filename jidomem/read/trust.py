"""How far a memory is trusted: as far as the least of its own source and of all it is derived from."""

from __future__ import annotations

from jidomem.read.reader import MemoryReader
from jidomem.terms import iri
from jidomem.vocab import TRUST, TRUST_OF_SOURCE, graph_iri, local_name

_STEP = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?source ?from ?by ?status WHERE { GRAPH <%s> { VALUES ?item { %s }
  OPTIONAL { ?item jido:hasSourceType ?source }
  OPTIONAL { { ?item jido:derivedFrom ?from }
    UNION { ?from jido:hasAlternative ?item FILTER(STRSTARTS(STR(?item), CONCAT(STR(?from), "/alternatives/"))) } }
  OPTIONAL { ?item jido:confirmedBy ?by }
  OPTIONAL { ?item jido:hasAssertionStatus ?status }
} } ORDER BY ?item ?source ?from ?by ?status
"""


def trust(reader: MemoryReader, project: str, item: str) -> tuple[str, str]:
    """Return untrusted, ordinary or trusted, and the memory or evidence that it is no more by.

    What a curator has lent their word to is trusted, whatever it was derived from. An alternative is trusted no further
    than its decision. Raises NotFound for no memory.
    """
    start = reader.resolve(project, item)
    levels: dict[str, str] = {}
    waiting = {start}
    while waiting:
        rows = reader.select(project, _STEP % (graph_iri(project), " ".join(map(iri, sorted(waiting)))))
        confirmed = {row["item"] for row in rows if row["by"]}
        for row in rows:
            unsaid = "ordinary" if row["status"] else "trusted"  # evidence without a source takes nothing away
            said = TRUST_OF_SOURCE.get(local_name(row["source"] or ""), unsaid)
            level = "trusted" if row["item"] in confirmed else said
            levels[row["item"]] = min(level, levels.get(row["item"], level), key=TRUST.index)
        waiting = {row["from"] for row in rows if row["from"] and row["item"] not in confirmed} - levels.keys()
    least = min(levels.values(), key=TRUST.index)
    return least, min(node for node, level in levels.items() if level == least)
