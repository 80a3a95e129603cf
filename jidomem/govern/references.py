"""What points at nothing, and what nothing points at though it has no meaning by itself."""

from __future__ import annotations

import re

from jidomem import vocab
from jidomem.govern.report import DANGLING, ORPHAN, Found
from jidomem.govern.sources import Source
from jidomem.terms import bare
from jidomem.vocab import jido, local_name

#: What only jidomem mints: an IRI below these that nothing describes points at nothing.
_MINTED = tuple(f"<{vocab.BASE}{name}/" for name in ("memory", "agents", "sessions", "projects", "evidence"))
_GRAPHS = {jido("inStream"), jido("clears")}
_ONLY_POINTED_AT = re.compile(rf"<{vocab.BASE}(?:evidence/[^/]+|memory/[^/]+/alternatives/[^/]+)>")


def dangling(source: Source) -> list[Found]:
    """Return each reference to something jidomem mints that nothing describes: it is of no class."""
    missing = {value for value in source.objects - source.types.keys() if value.startswith(_MINTED)}
    found = []
    for subject, predicate, value in source.triples if missing else ():
        if value in missing and predicate not in _GRAPHS:
            text = f"jido:{local_name(predicate)} points at {bare(value)}, which nothing describes: name what is there,"
            text += " or bring in what describes it"
            found.append(Found(subject, DANGLING, "violation", text, predicate, value))
    return found


def orphans(source: Source) -> list[Found]:
    """Return the evidence and the alternatives that nothing points at."""
    alone = {node for node in source.types if node.startswith(_MINTED) and _ONLY_POINTED_AT.fullmatch(node)}
    alone -= source.objects
    text = "nothing points at this, and it says nothing by itself: name it where it belongs (jido:derivedFrom, " \
        "jido:hasAlternative)"  # fmt: skip
    return [Found(node, ORPHAN, "violation", text) for node in alone]
