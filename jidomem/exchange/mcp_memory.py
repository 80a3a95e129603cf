"""The graph of the reference MCP memory server (`memory.jsonl`) as facts.  Pure: bytes in, values out."""

from __future__ import annotations

from typing import Any

from jidomem.exchange.foreign import Broken, ForeignEntry, Reading, objects, text_of, wrong


def read(name: str, data: bytes) -> Reading:
    """Return a fact for each observation of an entity, for an entity without any, and for each relation."""
    reading = Reading("ToolSource")
    for place, line in objects(name, data, reading):
        kind = line.get("type")
        if kind == "entity":
            _entity(name, place, line, reading)
        elif kind == "relation":
            _relation(name, place, line, reading)
        else:
            reading.broken.append(Broken(place, wrong("a line is an entity or a relation")))
    return reading


def _entity(name: str, place: str, line: dict[str, Any], reading: Reading) -> None:
    entity, kind, said = text_of(line.get("name")), text_of(line.get("entityType")), line.get("observations")
    if not entity or not isinstance(said, list):
        reading.broken.append(Broken(place, wrong("an entity has a name and a list of observations")))
        return
    subject = f"{entity} ({kind})" if kind else entity
    texts = [f"{subject}: {text_of(each)}" for each in said if text_of(each)]
    if len(texts) < len(said):
        reading.broken.append(
            Broken(place, wrong(f"{len(said) - len(texts)} observations of {entity:.80} are no texts"))
        )
    if not said:
        texts = [f"{entity} is of the kind {kind}" if kind else f"{entity} is known"]
    for text in texts:
        fields = {"type": "fact", "summary": text, "about": [entity], "evidence": [f"{name}: entity {entity}"]}
        reading.entries.append(ForeignEntry(entity, place, fields))


def _relation(name: str, place: str, line: dict[str, Any], reading: Reading) -> None:
    source, target, relation = (text_of(line.get(part)) for part in ("from", "to", "relationType"))
    if not (source and target and relation):
        reading.broken.append(Broken(place, wrong("a relation has from, to and relationType")))
        return
    words = f"{source} {relation} {target}"
    evidence = [f"{name}: relation {words}"]
    fields = {"type": "fact", "summary": words, "about": list(dict.fromkeys((source, target))), "evidence": evidence}
    reading.entries.append(ForeignEntry(words, place, fields))
