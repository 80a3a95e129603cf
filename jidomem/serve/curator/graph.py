"""The graph: what a memory, or what is known on a topic, replaced, rests on, needs and disagrees with, as a picture."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

from jidomem.errors import InvalidRequest, NotFound
from jidomem.index.overview import overview
from jidomem.journal.files import Stream
from jidomem.read.around import CONFLICTS, Around, Link, around, is_mentioned, on_topic
from jidomem.read.item import short_id
from jidomem.serve import wire
from jidomem.serve.curator import text, told
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.vocab import REDACTED, TYPE_OF_CLASS, jido, local_name

#: Links on one page: a hundred that all disagree with one another have ten times as many, which nobody can tell apart.
LINKS = 1_000
#: Nodes on one page; how far it reaches, unless told; and how many it begins with where nothing is asked.
MOST, DEPTH, NEWEST = 300, 2, 20
#: Links as they are drawn: family -> the properties that are of it. All others are of the family "other".
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "replaces": ("supersedes", "invalidates", "revives"),
    "rests": ("derivedFrom", "confirms", "justifiedBy", "hasRootCause", "producedLesson"),
    "needs": ("dependsOn", "blockedBy", "partOfPlan", "partOfMilestone"),
    "disagrees": (CONFLICTS, "conflictsWith", "contradicts"),
    "beside": ("coexistsWith", "hasAlternative", "selectedAlternative", "hasTradeOff"),
}
_FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
_DEPTHS = range(5)
#: What cytoscape puts into the page.
_SHEET = ".__________cytoscape_container { position: relative; }"
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def show(asked: Asked) -> Mapping[str, Any]:
    """Return the nodes around a memory, or all on a topic, or the newest, with the links between them."""
    memory, topic = asked.memory, asked.given.get("topic", "").strip()
    name, depth = asked.given.get("item", "").strip(), wire.whole(asked.given, "depth")
    if name and topic:
        raise InvalidRequest("a graph is around an item or a topic", hint="leave out one of item and topic")
    depth = DEPTH if depth is None else depth
    if depth not in _DEPTHS:
        raise InvalidRequest(f"depth={depth} is none", hint=f"give 0 to {_DEPTHS[-1]}: how many links away is shown")
    memory.catch_up(asked.project)
    starts = _starts(asked, name, topic)
    found = around(memory.index, memory.schema, asked.project, starts, as_of=asked.as_of, depth=depth, most=MOST)
    begun, links = {*starts}, defaultdict[str, list[Link]](list)
    for link in sorted(found.links, key=_rank)[:LINKS]:
        links[link.source].append(link)
    return {
        "item": starts[0] if name else None,
        "topic": topic or None,
        "depth": depth,
        "most": MOST,
        "links_left_out": max(0, len(found.links) - LINKS),
        "is_full": bool(topic) and len(found.nodes) == MOST and not begun <= found.nodes.keys(),
        "more": sum(1 for count in found.more.values() if count),
        "nodes": [_node(asked, found, node, is_start=node in begun, links=links[node]) for node in found.nodes],
    }


def _rank(link: Link) -> int:
    """Return the place of a link where there is no room for all: what disagrees is many times said."""
    family = _FAMILY.get(link.kind)
    return len(FAMILIES) if family is None or family == "disagrees" else [*FAMILIES].index(family)


def _starts(asked: Asked, name: str, topic: str) -> list[str]:
    """Return what the graph is around."""
    if name:
        return [_named(asked, name)]
    if topic:
        return on_topic(asked.memory.index, asked.project, topic)
    found = asked.memory.texts.read_soon(
        Stream(asked.project),
        lambda file: overview(file, {}, moment=asked.as_of, valid_at=asked.valid_at, after=None, count=NEWEST),
    )
    return [one.item for one in found.told]


def _named(asked: Asked, name: str) -> str:
    """Return the memory that *name* is short for, or the evidence it is; raises NotFound."""
    try:
        return asked.memory.reader.resolve(asked.project, name, as_of=asked.as_of)
    except NotFound:
        if ":" not in name or not is_mentioned(asked.memory.index, asked.project, name):
            raise
        return name


def _node(asked: Asked, found: Around, node: str, *, is_start: bool, links: Iterable[Link]) -> dict[str, Any]:
    """Return one node with its texts as they are shown: drawn on a canvas, no page makes them harmless any more."""
    said = found.nodes[node]
    is_memory = "properties" in said
    whole = told.first(said["properties"], "summary") or REDACTED if is_memory else said["text"]
    words = text.shown(text.short(whole or node, 400))
    return {
        "id": node,
        "label": text.short(words, 60),
        "text": words,
        "class": said["class"],
        "group": _group(asked, said["class"]),
        "status": said["status"] if is_memory else None,
        "short": short_id(node) if is_memory else None,
        "link": asked.link("memories", node) if is_memory else None,
        "graph": asked.link("graph", item=node),
        "more": found.more[node],
        "start": is_start,
        "links": [_link(asked, link) for link in links],
    }


def _group(asked: Asked, kind: str) -> str:
    """Return what a node is drawn as: its type, or that of the kind of memory it is of, or evidence."""
    family = asked.memory.schema.family(jido(kind))
    return TYPE_OF_CLASS.get(kind if family is None else local_name(family), "evidence")


def _link(asked: Asked, link: Link) -> dict[str, str]:
    known = asked.term(link.kind)
    words = known.text if known.iri else _WORDS.sub(" ", link.kind).lower()
    return {"to": link.target, "kind": link.kind, "text": words, "family": _FAMILY.get(link.kind, "other")}


GRAPH = Screen(
    "graph",
    "graph.html",
    show,
    takes=("item", "topic", "depth"),
    menu="Graph",
    scripts=("cytoscape.js", "cytoscape-dagre.js", "graph.js"),
    styles=("graph.css",),
    style_hashes=(f"sha256-{b64encode(sha256(_SHEET.encode()).digest()).decode()}",),
)
