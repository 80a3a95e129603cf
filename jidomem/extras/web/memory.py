"""The pages of memories: one memory with its sources and corrections, the graph around it, and the timeline."""

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
from jidomem.extras.web.cards import AS_OF, PageKind, PageRequest
from jidomem.index.store import write_triples
from jidomem.index.timeline import FACETS, STATES, Facets, TimelineEntry, among
from jidomem.journal.journal import Stream
from jidomem.rdf.statements import value_text
from jidomem.rdf.terms import Triple
from jidomem.rdf.turtle import turtle
from jidomem.rdf.vocab import BASE, REDACTED, TYPE_OF_CLASS, jido, local_name, short_id
from jidomem.read.memory_detail import has_ended
from jidomem.read.provenance import CONFLICTS, Neighbourhood, NodeLink, is_mentioned, neighbourhood, on_topic
from jidomem.records.active import EXPIRED
from jidomem.records.recall import RecallRequest
from jidomem.serve import wire
from jidomem.serve.server_state import RequestContext

#: The corrections of a memory: name -> text.
ACTS: Mapping[str, str] = {
    "supersede": "Supersede with a new text",
    "invalidate": "Withdraw without replacement",
    "confirm": "Confirm",
    "undo": "Restore",
}
#: The links of a memory -> heading.
_LINKED: Mapping[str, str] = {
    "evidence": "Evidence",
    "replaced": "Replaces",
    "replaced_by": "Replaced by",
    "revived_by": "Restored by",
    "upheld_by": "Upheld by",
    "conflicts": "Conflicts with",
    "derived": "Derived from it",
}
#: Properties with a place of their own on the page.
_SHOWN_PROPERTIES = frozenset((
    *("summary", "hasConfidence", "assertedBy", "assertedIn", "derivedFrom", "supersedes", "invalidates", "revives"),
    *("recordedAt", "recordedIn", "appliesToProject", "hasAssertionStatus", "conflictKey", "requestDigest", "receipt"),
))  # fmt: skip


def show_memory(page: PageRequest, id: str) -> Mapping[str, Any]:  # noqa: A002 - the name of the part of the path
    """Return the page of one memory, by its IRI or a unique part of its id."""
    reader = page.memory.reader
    item = reader.resolve(page.project, id, as_of=page.as_of)
    memory = reader.get_memory(page.project, item, **page.moment)
    why = reader.why(page.project, item, **page.moment)
    why_not = cards.why_not_correct(page, item)
    return {
        **cards.memory_row(page, memory),
        "says": "summary" in memory["properties"],
        "committer": why["committer"],
        "commit": why["commit"],
        "judged_by": why["judged_by"],
        "linked": [
            {"title": title, "rows": [_linked(page, one) for one in why[name]]}
            for name, title in _LINKED.items()
            if why[name]
        ],
        "history": _history(page, item),
        "rationale": cards.first(memory["properties"], "rationale"),
        "properties": _properties(memory["properties"]),
        "acts": {} if page.as_of or why_not else {name: ACTS[name] for name in _possible(memory)},
        "why_not": why_not or _renewal(page, memory),
        "done": page.given.get("done"),
        "whole": wire.flag(page.given, "whole"),
    }


def _properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in properties if name not in (*_SHOWN_PROPERTIES, *ANSWERS)]
    return {name: [*map(value_text, properties[name])] for name in (*ANSWERS, *names) if name in properties}


def _linked(page: PageRequest, one: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a link: another memory, a text, or an address."""
    if "text" in one:
        return {"link": None, "text": one["text"] or one["iri"], "is_text": one["text"] is not None}
    return {
        "link": page.link("memories", one["iri"]),
        "how": str(one.get("how") or one.get("kind") or "").replace("_", " "),
        "text": one["summary"] or (REDACTED if one.get("status") else one["iri"]),
        "status": one.get("status"),
        "reason": one.get("reason"),
    }


def _history(page: PageRequest, item: str) -> list[dict[str, Any]]:
    """Return the versions and events of a memory with their reasons, oldest first; none if there is only one."""
    rows = page.memory.reader.history(page.project, item, **page.moment)
    return [{**one, "link": page.link("memories", one["entry"])} for one in rows] if len(rows) > 1 else []


def _possible(memory: Mapping[str, Any]) -> tuple[str, ...]:
    if has_ended(memory):
        return ("undo",)
    return ("supersede", "invalidate") if memory["status"] == EXPIRED else ("supersede", "invalidate", "confirm")


def _renewal(page: PageRequest, memory: Mapping[str, Any]) -> str | None:
    """Return how an expired memory is renewed, which its page cannot: a form has no date; None for any other."""
    if page.as_of is not None or memory["status"] != EXPIRED:
        return None
    command = f"jidomem edit {short_id(memory['iri'])} --confirm --set valid_until=DATE --reason TEXT"
    return f"valid until {cards.first(memory['properties'], 'validUntil')}; to renew it, in a shell: {command}"


def act(page: PageRequest, form: Mapping[str, str], id: str) -> str:  # noqa: A002 - the name of the part of the path
    """Correct the memory by *form*, and return the page of its successor."""
    way, reason = form["act"], form.get("reason", "").strip()
    if not reason:
        raise InvalidRequest("a correction needs a reason", hint="give the reason")
    text = form.get("summary", "").strip()
    if way == "supersede" and not text:
        raise InvalidRequest("there is no new text", hint="write the new text")
    item = page.memory.reader.resolve(page.project, id)
    ways: dict[str, Any] = {"supersede": text} if way == "supersede" else {way: True}
    if way == "supersede" and (rationale := form.get("rationale", "").strip()):
        ways["changes"] = {"rationale": rationale}  # else the reason takes the place of that of the old text
    try:
        receipt = page.site.writer.correct(page.project, item, reason=reason, **ways)
    except JidomemError as error:
        raise (error if way == "undo" else cards.explained(page, error, item)) from error
    return page.link("memories", item if way == "invalidate" else receipt.iri, done=way)


def turtle_of(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return one memory as Turtle."""
    return wire.document(turtle(_triples(site, project, id)).encode(), "text/turtle")


def linked_of(site: RequestContext, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return one memory as JSON-LD."""
    return wire.document(write_triples(_triples(site, project, id), "jsonld", {}), "application/ld+json")


def _triples(site: RequestContext, project: str, name: str) -> list[Triple]:
    page = PageRequest.of(site, project, wire.arguments(AS_OF))
    item = page.memory.reader.resolve(project, name, as_of=page.as_of)
    return page.memory.reader.describe(project, item, **page.moment)


MEMORY = PageKind(
    "memories/{id}", "memory.html", show_memory, takes=("done", "whole"), act=act, acts=tuple(ACTS),
    fields=("reason", "summary", "rationale"),
)  # fmt: skip


#: Links on one page: a hundred memories in mutual conflict have ten times as many.
LINKS = 1_000
#: Nodes on one page, the default depth, and the number of newest memories without a start.
MOST, DEPTH, NEWEST = 300, 2, 20
#: The kinds of links that are drawn: family -> its properties. All others are of the family "other".
FAMILIES: Mapping[str, tuple[str, ...]] = {
    "replaces": ("supersedes", "invalidates", "revives"),
    "rests": ("derivedFrom", "confirms", "justifiedBy", "hasRootCause", "producedLesson"),
    "needs": ("dependsOn", "blockedBy", "partOfPlan", "partOfMilestone"),
    "disagrees": (CONFLICTS, "conflictsWith", "contradicts"),
    "beside": ("coexistsWith", "hasAlternative", "selectedAlternative", "hasTradeOff"),
}
_FAMILY = {name: family for family, names in FAMILIES.items() for name in names}
_DEPTHS = range(5)
#: The style that cytoscape inserts into the page.
_SHEET = ".__________cytoscape_container { position: relative; }"
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


def show_graph(page: PageRequest) -> Mapping[str, Any]:
    """Return the nodes around a memory, or all memories on a topic, or the newest ones, with the links between them."""
    memory, topic = page.memory, page.given.get("topic", "").strip()
    name, depth = page.given.get("item", "").strip(), wire.integer(page.given, "depth")
    if name and topic:
        raise InvalidRequest("a graph is around an item or a topic", hint="leave out one of item and topic")
    depth = DEPTH if depth is None else depth
    if depth not in _DEPTHS:
        raise InvalidRequest(f"depth={depth} is none", hint=f"give 0 to {_DEPTHS[-1]}: how many links away is shown")
    memory.catch_up(page.project)
    starts = _starts(page, name, topic)
    around = neighbourhood(memory.index, memory.schema, page.project, starts, as_of=page.as_of, depth=depth, most=MOST)
    start_nodes, links = {*starts}, defaultdict[str, list[NodeLink]](list)
    for link in sorted(around.links, key=_rank)[:LINKS]:
        links[link.source].append(link)
    return {
        "item": starts[0] if name else None,
        "topic": topic or None,
        "depth": depth,
        "most": MOST,
        "links_left_out": max(0, len(around.links) - LINKS),
        "is_full": bool(topic) and len(around.nodes) == MOST and not start_nodes <= around.nodes.keys(),
        "more": sum(1 for count in around.more.values() if count),
        "nodes": [_node(page, around, node, is_start=node in start_nodes, links=links[node]) for node in around.nodes],
    }


def _rank(link: NodeLink) -> int:
    """Return the rank of a link if there are too many: conflicts come last, as they are the most numerous."""
    family = _FAMILY.get(link.kind)
    return len(FAMILIES) if family is None or family == "disagrees" else [*FAMILIES].index(family)


def _starts(page: PageRequest, name: str, topic: str) -> list[str]:
    if name:
        return [_named(page, name)]
    if topic:
        return on_topic(page.memory.index, page.project, topic)
    return [one.item for one in page.timeline({}, NEWEST).entries]


def _named(page: PageRequest, name: str) -> str:
    """Return the memory for which *name* is short, or the evidence that it names; raises NotFound."""
    try:
        return page.memory.reader.resolve(page.project, name, as_of=page.as_of)
    except NotFound:
        if ":" not in name or not is_mentioned(page.memory.index, page.project, name):
            raise
        return name


def _node(
    page: PageRequest, around: Neighbourhood, node: str, *, is_start: bool, links: Iterable[NodeLink]
) -> dict[str, Any]:
    """Return one node with its texts made harmless, as a canvas does not escape them."""
    values = around.nodes[node]
    is_memory = "properties" in values
    whole = cards.first(values["properties"], "summary") or REDACTED if is_memory else values["text"]
    words = cards.name_invisible(cards.short(whole or node, 400))
    return {
        "id": node,
        "label": cards.short(words, 60),
        "text": words,
        "class": values["class"],
        "group": _group(page, values["class"]),
        "status": values["status"] if is_memory else None,
        "short": short_id(node) if is_memory else None,
        "link": page.link("memories", node) if is_memory else None,
        "graph": page.link("graph", item=node),
        "more": around.more[node],
        "start": is_start,
        "links": [_link(page, link) for link in links],
    }


def _group(page: PageRequest, kind: str) -> str:
    """Return the style of a node: the type of its class of memory, or evidence."""
    family = page.memory.schema.family(jido(kind))
    return TYPE_OF_CLASS.get(kind if family is None else local_name(family), "evidence")


def _link(page: PageRequest, link: NodeLink) -> dict[str, str]:
    known = page.term(link.kind)
    words = known.text if known.iri else _WORDS.sub(" ", link.kind).lower()
    return {"to": link.target, "kind": link.kind, "text": words, "family": _FAMILY.get(link.kind, "other")}


GRAPH = PageKind(
    "graph", "graph.html", show_graph, takes=("item", "topic", "depth"), menu="Graph",
    scripts=("cytoscape.js", "cytoscape-dagre.js", "graph.js"), styles=("graph.css",),
    style_hashes=(f"sha256-{b64encode(sha256(_SHEET.encode()).digest()).decode()}",),
)  # fmt: skip


#: Memories on one page, and values of a facet that are listed.
COUNT, LISTED = 50, 12
#: The number of matches of a search, and the larger one for rare states.
MOST_HITS, MOST_HITS_OF_STATE = COUNT, 4 * COUNT
_PREFIX = {"agent": f"{BASE}agents/", "session": f"{BASE}sessions/"}
_AFTER = "after"


def show_timeline(page: PageRequest) -> Mapping[str, Any]:
    """Return the memories of one page by day, and the count of each value of each facet."""
    chosen = {name: page.given[name] for name in FACETS if page.given.get(name)}
    if chosen.get("state", STATES[0]) not in STATES:
        raise InvalidRequest(f"state={chosen['state']!r:.200} is none", hint=f"give one of: {', '.join(STATES)}")
    page.memory.catch_up(page.project)
    within = {name: _full(name, value) for name, value in chosen.items()}
    words = page.given.get("q", "").strip()
    if words:
        return _by_words(page, words, chosen, within)
    timeline = page.timeline(within, COUNT, _after(page.given.get(_AFTER)))
    last = timeline.entries[-1] if timeline.more else None
    return {
        "q": "",
        "chosen": chosen,
        "found": None,
        "days": _by_day([cards.row(page, one.item) for one in timeline.entries], timeline.days),
        "facets": {name: _facet(page, name, timeline.facets, chosen) for name in FACETS},
        "next": last and _narrowed(page, {_AFTER: f"{last.recorded} {last.item}"}),
    }


def _by_words(page: PageRequest, words: str, chosen: Mapping[str, str], within: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the best matches of recall that pass the filters, and the counts of their facets."""
    state = chosen.get("state")
    limit = MOST_HITS if state in (None, "active") else MOST_HITS_OF_STATE
    request = RecallRequest(agent_id=page.memory.settings.agent, query=words, limit=limit)
    narrowed: dict[str, Any] = {name: chosen[name] for name in ("agent", "session") if name in chosen}
    if "kind" in chosen:
        narrowed["kinds"] = [chosen["kind"]]
    recalled = page.memory.recall(
        request,
        page.project,
        as_of=page.as_of,
        include_inactive=state != "active",
        min_score=0.0,
        explain=True,
        **narrowed,
    )
    reasons = {hit.id: hit.reasons for hit in recalled.entries}
    items = [*reasons]
    fitting, facets = page.memory.texts.read_soon(
        Stream(page.project), lambda file: among(file, items, within, moment=page.as_of, valid_at=page.valid_at)
    )
    listed = [{**cards.row(page, item), "reasons": reasons[item]} for item in fitting[:COUNT]]
    return {
        "q": words,
        "chosen": chosen,
        "found": {"count": len(items), "fitting": len(fitting), "more": bool(recalled.metadata["more"])},
        "days": [{"day": None, "count": len(fitting), "memories": listed}],
        "facets": {name: _facet(page, name, facets, chosen) for name in FACETS},
        "next": None,
    }


def _by_day(listed: Iterable[dict[str, Any]], days: Mapping[str, int]) -> list[dict[str, Any]]:
    by_day = groupby(listed, lambda row: row["recorded_at"][:10])
    return [{"day": day, "count": days.get(day, 0), "memories": [*rows]} for day, rows in by_day]


def _facet(page: PageRequest, name: str, facets: Facets, chosen: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of one facet, the most frequent first, each with the address of its page."""
    counted, now = facets[name], chosen.get(name)
    values: list[dict[str, Any]] = [
        {"value": _short(name, value), "count": count} for value, count in counted.items() if value
    ]
    listed = [each for number, each in enumerate(values) if number < LISTED or each["value"] == now]
    if now is not None and all(each["value"] != now for each in listed):
        listed.append({"value": now, "count": 0})
    for each in listed:
        each["chosen"] = each["value"] == now
        each["link"] = _narrowed(page, {name: None if each["chosen"] else each["value"]})
    return {"values": listed, "more": max(0, len(values) - len(listed))}


def _narrowed(page: PageRequest, changed: Mapping[str, str | None]) -> str:
    filters: dict[str, str | None] = {name: page.given.get(name) for name in (*FACETS, "q")}
    return page.link("timeline", **{**filters, **changed})


def _after(text: str | None) -> TimelineEntry | None:
    """Return the position of a page; raise InvalidRequest for a malformed one."""
    if not text:
        return None
    recorded, _, item = text.partition(" ")
    at = parse_moment(recorded)
    if at is None or not item:
        raise InvalidRequest(f"after={text[:200]!r} is not a place", hint="follow the link to the next page")
    return TimelineEntry(item, format_timestamp(at))


def _full(name: str, value: str) -> str:
    return value if ":" in value or name not in _PREFIX else _PREFIX[name] + value


def _short(name: str, value: str) -> str:
    return value.removeprefix(_PREFIX.get(name, ""))


TIMELINE = PageKind("timeline", "timeline.html", show_timeline, takes=(*FACETS, "q", _AFTER), menu="Timeline")
