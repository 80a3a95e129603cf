"""One memory: what it says and rests on, who said it, what it replaced and what replaced it, and its correction.

The graph: what a memory, or what is known on a topic, replaced, rests on, needs and disagrees with, as a picture.

The timeline: what was learnt, by day, narrowed by kind, agent, session and state, or found by words.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import groupby
from typing import Any

from flask import Response

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.words import ANSWERS
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.extras.web import cards
from jidomem.extras.web.cards import AS_OF, PageRequest, Screen
from jidomem.index.results import write_triples
from jidomem.index.timeline import FACETS, STATES, Facets, TimelineEntry, among, overview
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import Triple
from jidomem.rdf.turtle import turtle
from jidomem.rdf.vocab import BASE, REDACTED, TYPE_OF_CLASS, jido, local_name
from jidomem.read.memory_detail import short_id
from jidomem.read.provenance import CONFLICTS, Around, NodeLink, around, is_mentioned, on_topic
from jidomem.records.active import ENDED
from jidomem.records.recall import RecallRequest
from jidomem.serve import wire
from jidomem.serve.server_state import RequestContext

#: What is done with a memory: name -> what the form says it does.
ACTS: Mapping[str, str] = {
    "supersede": "Supersede it by another text",
    "invalidate": "Withdraw it, with nothing in its place",
    "confirm": "Confirm that it holds",
    "undo": "Bring back what was ended",
}
#: What explains a memory -> what is said over it.
_LINKED: Mapping[str, str] = {
    "evidence": "It rests on",
    "replaced": "It replaced",
    "replaced_by": "It was replaced by",
    "revived_by": "It was brought back by",
    "conflicts": "It disagrees with",
    "derived": "Concluded from it",
}
#: What the page tells in places of its own.
_SHOWN_PROPERTIES = frozenset((
    *("summary", "hasConfidence", "assertedBy", "assertedIn", "derivedFrom", "supersedes", "invalidates", "revives"),
    *("recordedAt", "recordedIn", "appliesToProject", "hasAssertionStatus", "conflictKey", "requestDigest", "receipt"),
))  # fmt: skip


def show_memory(asked: PageRequest, id: str) -> Mapping[str, Any]:  # noqa: A002 - the name of the part of the path
    """Return all that is known of one memory, by its IRI or a unique part of its id."""
    reader = asked.memory.reader
    item = reader.resolve(asked.project, id, as_of=asked.as_of)
    found = reader.get_memory(asked.project, item, **asked.moment)
    why = reader.why(asked.project, item, **asked.moment)
    why_not = cards.why_not_correct(asked, item)
    return {
        **cards.memory_row(asked, found),
        "says": "summary" in found["properties"],
        "committer": why["committer"],
        "commit": why["commit"],
        "judged_by": why["judged_by"],
        "linked": [
            {"title": title, "rows": [_linked(asked, one) for one in why[name]]}
            for name, title in _LINKED.items()
            if why[name]
        ],
        "properties": _properties(found["properties"]),
        "acts": {} if asked.as_of or why_not else {name: ACTS[name] for name in _possible(found["status"])},
        "why_not": why_not,
        "done": asked.given.get("done"),
        "whole": wire.flag(asked.given, "whole"),
    }


def _properties(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the page lists of a memory, the texts that answer first."""
    names = [name for name in said if name not in (*_SHOWN_PROPERTIES, *ANSWERS)]
    return {name: said[name] for name in (*ANSWERS, *names) if name in said}


def _linked(asked: PageRequest, one: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a memory is linked with: another memory, or a text or an address it rests on."""
    if "text" in one:
        return {"link": None, "text": one["text"] or one["iri"], "is_text": one["text"] is not None}
    return {
        "link": asked.link("memories", one["iri"]),
        "how": str(one.get("how") or one.get("kind") or "").replace("_", " "),
        "text": one["summary"] or (REDACTED if one.get("status") else one["iri"]),
        "status": one.get("status"),
        "reason": one.get("reason"),
    }


def _possible(status: str) -> tuple[str, ...]:
    return ("undo",) if status in ENDED else ("supersede", "invalidate", "confirm")


def act(asked: PageRequest, form: Mapping[str, str], id: str) -> str:  # noqa: A002 - the name of the part of the path
    """Correct the memory as *form* says, and return the page of what took its place."""
    way, reason = form["act"], form.get("reason", "").strip()
    if not reason:
        raise InvalidRequest("a correction has a reason", hint="say why, so that those who come after can follow")
    text = form.get("summary", "").strip()
    if way == "supersede" and not text:
        raise InvalidRequest("there is no text to supersede it by", hint="write what holds instead")
    item = asked.memory.reader.resolve(asked.project, id)
    ways: dict[str, Any] = {"supersede": text} if way == "supersede" else {way: True}
    try:
        receipt = asked.site.writer.correct(asked.project, item, reason=reason, **ways)
    except JidomemError as error:
        raise (error if way == "undo" else cards.explained(asked, error, item)) from error
    return asked.link("memories", item if way == "invalidate" else receipt.iri, done=way)


def turtle_of(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what is said of one memory as Turtle."""
    return wire.document(turtle(_triples(site, project, id)).encode(), "text/turtle")


def linked_of(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return what is said of one memory as JSON-LD."""
    return wire.document(write_triples(_triples(site, project, id), "jsonld", {}), "application/ld+json")


def _triples(site: RequestContext, project: str, name: str) -> list[Triple]:
    asked = PageRequest.of(site, project, wire.arguments(AS_OF))
    item = asked.memory.reader.resolve(project, name, as_of=asked.as_of)
    return asked.memory.reader.describe(project, item, **asked.moment)


MEMORY = Screen(
    "memories/{id}",
    "memory.html",
    show_memory,
    takes=("done", "whole"),
    act=act,
    acts=tuple(ACTS),
    fields=("reason", "summary"),
)


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


def show_graph(asked: PageRequest) -> Mapping[str, Any]:
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
    begun, links = {*starts}, defaultdict[str, list[NodeLink]](list)
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


def _rank(link: NodeLink) -> int:
    """Return the place of a link where there is no room for all: what disagrees is many times said."""
    family = _FAMILY.get(link.kind)
    return len(FAMILIES) if family is None or family == "disagrees" else [*FAMILIES].index(family)


def _starts(asked: PageRequest, name: str, topic: str) -> list[str]:
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


def _named(asked: PageRequest, name: str) -> str:
    """Return the memory that *name* is short for, or the evidence it is; raises NotFound."""
    try:
        return asked.memory.reader.resolve(asked.project, name, as_of=asked.as_of)
    except NotFound:
        if ":" not in name or not is_mentioned(asked.memory.index, asked.project, name):
            raise
        return name


def _node(asked: PageRequest, found: Around, node: str, *, is_start: bool, links: Iterable[NodeLink]) -> dict[str, Any]:
    """Return one node with its texts as they are shown: drawn on a canvas, no page makes them harmless any more."""
    said = found.nodes[node]
    is_memory = "properties" in said
    whole = cards.first(said["properties"], "summary") or REDACTED if is_memory else said["text"]
    words = cards.shown(cards.short(whole or node, 400))
    return {
        "id": node,
        "label": cards.short(words, 60),
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


def _group(asked: PageRequest, kind: str) -> str:
    """Return what a node is drawn as: its type, or that of the kind of memory it is of, or evidence."""
    family = asked.memory.schema.family(jido(kind))
    return TYPE_OF_CLASS.get(kind if family is None else local_name(family), "evidence")


def _link(asked: PageRequest, link: NodeLink) -> dict[str, str]:
    known = asked.term(link.kind)
    words = known.text if known.iri else _WORDS.sub(" ", link.kind).lower()
    return {"to": link.target, "kind": link.kind, "text": words, "family": _FAMILY.get(link.kind, "other")}


GRAPH = Screen(
    "graph",
    "graph.html",
    show_graph,
    takes=("item", "topic", "depth"),
    menu="Graph",
    scripts=("cytoscape.js", "cytoscape-dagre.js", "graph.js"),
    styles=("graph.css",),
    style_hashes=(f"sha256-{b64encode(sha256(_SHEET.encode()).digest()).decode()}",),
)


#: Memories on one page, and values of a facet that are listed.
COUNT, LISTED = 50, 12
#: So many are found by words, of which those are told that fit; more where few may be in the state that is asked for.
FOUND, FOUND_OF_STATE = COUNT, 4 * COUNT
_PREFIX = {"agent": f"{BASE}agents/", "session": f"{BASE}sessions/"}
_AFTER = "after"


def show_timeline(asked: PageRequest) -> Mapping[str, Any]:
    """Return the memories of one page by day, and how many there are of each value of each facet."""
    chosen = {name: asked.given[name] for name in FACETS if asked.given.get(name)}
    if chosen.get("state", STATES[0]) not in STATES:
        raise InvalidRequest(f"state={chosen['state']!r} is none", hint=f"give one of: {', '.join(STATES)}")
    asked.memory.catch_up(asked.project)
    within = {name: _whole(name, value) for name, value in chosen.items()}
    words = asked.given.get("q", "").strip()
    if words:
        return _by_words(asked, words, chosen, within)
    stream, after = Stream(asked.project), _after(asked.given.get(_AFTER))
    found = asked.memory.texts.read_soon(
        stream,
        lambda file: overview(file, within, moment=asked.as_of, valid_at=asked.valid_at, after=after, count=COUNT),
    )
    return {
        "q": "",
        "chosen": chosen,
        "found": None,
        "days": _by_day([cards.row(asked, one.item) for one in found.told], found.days),
        "facets": {name: _facet(asked, name, found.facets, chosen) for name in FACETS},
        "next": _further(asked, found.told[-1]) if found.more else None,
    }


def _by_words(
    asked: PageRequest, words: str, chosen: Mapping[str, str], within: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the best of what recall finds that fits, and how many of what it found have each value of each facet."""
    state = chosen.get("state")
    limit = FOUND if state in (None, "active") else FOUND_OF_STATE
    request = RecallRequest(agent_id=asked.memory.settings.agent, query=words, limit=limit)
    narrowed: dict[str, Any] = {name: chosen[name] for name in ("agent", "session") if name in chosen}
    if "kind" in chosen:
        narrowed["kinds"] = [chosen["kind"]]
    found = asked.memory.recall(
        request, asked.project, as_of=asked.as_of, include_inactive=state != "active", **narrowed
    )
    items = [hit.id for hit in found.entries]
    fitting, facets = asked.memory.texts.read_soon(
        Stream(asked.project), lambda file: among(file, items, within, moment=asked.as_of, valid_at=asked.valid_at)
    )
    listed = [cards.row(asked, item) for item in fitting[:COUNT]]
    return {
        "q": words,
        "chosen": chosen,
        "found": {"count": len(items), "fitting": len(fitting), "more": bool(found.metadata["more"])},
        "days": [{"day": None, "count": len(fitting), "memories": listed}],
        "facets": {name: _facet(asked, name, facets, chosen) for name in FACETS},
        "next": None,
    }


def _by_day(listed: Iterable[dict[str, Any]], days: Mapping[str, int]) -> list[dict[str, Any]]:
    by_day = groupby(listed, lambda row: row["recorded_at"][:10])
    return [{"day": day, "count": days.get(day, 0), "memories": [*rows]} for day, rows in by_day]


def _facet(asked: PageRequest, name: str, facets: Facets, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of one facet, the most frequent first, each with the page it leads to."""
    counted, now = facets[name], chosen.get(name)
    values: list[dict[str, Any]] = [
        {"value": _short(name, value), "count": count} for value, count in counted.items() if value
    ]
    listed = [each for number, each in enumerate(values) if number < LISTED or each["value"] == now]
    if now is not None and all(each["value"] != now for each in listed):
        listed.append({"value": now, "count": 0})
    for each in listed:
        each["chosen"] = each["value"] == now
        each["link"] = _narrowed(asked, {name: None if each["chosen"] else each["value"]})
    return {"values": listed, "more": max(0, len(values) - len(listed))}


def _narrowed(asked: PageRequest, changed: Mapping[str, str | None]) -> str:
    kept: dict[str, str | None] = {name: asked.given.get(name) for name in (*FACETS, "q")}
    return asked.link("timeline", **{**kept, **changed})


def _further(asked: PageRequest, last: TimelineEntry) -> str:
    return _narrowed(asked, {_AFTER: f"{last.recorded} {last.item}"})


def _after(text: str | None) -> TimelineEntry | None:
    """Return what a page goes on after; raises InvalidRequest for what is none."""
    if not text:
        return None
    recorded, _, item = text.partition(" ")
    at = parse_moment(recorded)
    if at is None or not item:
        raise InvalidRequest(f"after={text[:200]!r} is no place", hint="follow the link to the next page")
    return TimelineEntry(item, format_timestamp(at))


def _whole(name: str, value: str) -> str:
    return value if ":" in value or name not in _PREFIX else _PREFIX[name] + value


def _short(name: str, value: str) -> str:
    return value.removeprefix(_PREFIX.get(name, ""))


TIMELINE = Screen("timeline", "timeline.html", show_timeline, takes=(*FACETS, "q", _AFTER), menu="Timeline")
