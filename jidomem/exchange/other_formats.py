"""The formats of other tools: beads issues, the graph of the reference MCP memory server, and Markdown. Pure.

Issues (`.beads/issues.jsonl`) become tasks and bugs, the graph (`memory.jsonl`) becomes facts. The exports `markdown`
and `export_mcp_memory` take memories as `MemoryReader.get_memory` returns them and contain only active memories;
Turtle, JSON-LD and N-Quads contain all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent
from types import MappingProxyType
from typing import Any

from jidomem.base.clock import parse_moment
from jidomem.base.json_values import parse_line
from jidomem.base.words import escape_invisible
from jidomem.errors import InvalidRequest
from jidomem.exchange.importer import ForeignEntry, ParsedFile, line_of, objects, text_of
from jidomem.rdf.terms import Term, literal
from jidomem.rdf.vocab import BASE, JIDO, MARKER, jido, local_name
from jidomem.records.file_anchor import anchors_of

_TASK = {"open": "Planned", "in_progress": "InProgress", "hooked": "InProgress", "pinned": "Planned",
         "blocked": "Blocked", "deferred": "Planned", "closed": "Completed"}  # fmt: skip
_ERROR = {"open": "Reported", "in_progress": "Investigating", "hooked": "Investigating", "pinned": "Reported",
          "blocked": "Investigating", "deferred": "Deferred", "closed": "Resolved"}  # fmt: skip
_SEVERITY = {0: "critical", 1: "high", 2: "medium", 3: "low", 4: "low"}
#: The parts of an issue that become its explanation, in this order.
_PARTS = {"description": "", "design": "Design", "acceptance_criteria": "Acceptance criteria", "notes": "Notes",
          "close_reason": "Closed because"}  # fmt: skip


def read_beads(name: str, data: bytes) -> ParsedFile:
    """Return the issues in a file of JSON lines, each after those it names; deleted ones are left out."""
    reading = ParsedFile("ToolSource", alone=True)
    issues: dict[str, tuple[str, dict[str, Any]]] = {}
    for place, issue in objects(name, data, reading):
        key, title, status = (text_of(issue.get(part)) for part in ("id", "title", "status"))
        if not key or not title:
            reading.refuse(place, "an issue has an id and a title", key)
        elif status == "tombstone":
            reading.left_out["deleted in beads"] += 1
        elif status not in _TASK:
            reading.refuse(place, f"status {status!r:.80} is none of {', '.join(_TASK)}", key)
        elif key in issues:
            reading.refuse(place, f"{key:.80} is already in {issues[key][0]}", key)
        else:
            issues[key] = place, issue
    for key in _in_order(issues):
        reading.entries.append(_issue_entry(name, key, *issues[key], issues, reading))
    return reading


def _issue_entry(
    name: str, key: str, place: str, issue: Mapping[str, Any], issues: Mapping[str, Any], reading: ParsedFile
) -> ForeignEntry:
    is_bug = _is_bug(issue)
    fields: dict[str, Any] = {
        "type": "bug" if is_bug else "task",
        "summary": text_of(issue["title"]),
        "detailed_explanation": _explained(issue) or None,
        "status": (_ERROR if is_bug else _TASK)[text_of(issue["status"])],
        "timestamp": _moment(issue.get("created_at")),
        "evidence": [f"{name}: {key}"],
    }
    if is_bug:
        priority = issue.get("priority")
        fields["severity"] = _SEVERITY.get(priority, "medium") if isinstance(priority, int) else "medium"
    elif assignee := text_of(issue.get("assignee")):
        fields["assigned_to"] = assignee
    if (url := text_of(issue.get("external_ref"))).startswith(("http://", "https://")):
        fields["tracked_by"] = url
    links = []
    _count_unread(issue, reading)
    for kind, other in _named(issue):
        if other not in issues:
            reading.notes.append(f"{place}: {key} names {other:.80} ({kind:.40}), which is not in the file")
            continue
        blocks = kind == "blocks" and not is_bug and not _is_bug(issues[other][1])
        links.append(("blockedBy" if blocks else "evidence" if kind == "discovered-from" else "about", other))
    known = {name: value for name, value in fields.items() if value is not None}
    return ForeignEntry(key, place, known, tuple(links), line=line_of(place))


def _is_bug(issue: Mapping[str, Any]) -> bool:
    return issue.get("issue_type") == "bug"


def _listed(value: Mapping[str, Any], name: str) -> list[Any]:
    listed = value.get(name)
    return listed if isinstance(listed, list) else []


def _named(issue: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for dependency in _listed(issue, "dependencies"):
        if isinstance(dependency, dict) and (other := text_of(dependency.get("depends_on_id"))):
            yield text_of(dependency.get("type")) or "blocks", other


def _count_unread(issue: Mapping[str, Any], reading: ParsedFile) -> None:
    """Count the parts of an issue that do not have the form of beads, and so are left out."""
    for name, part in (("dependencies", "depends_on_id"), ("labels", ""), ("comments", "text")):
        listed = issue.get(name)
        if listed is not None and not isinstance(listed, list):
            reading.left_out[f"{name} that are not a list"] += 1
            continue
        for entry in listed or ():
            if not part and not text_of(entry):
                reading.left_out["a label that is not a text"] += 1
            elif part and not (isinstance(entry, dict) and text_of(entry.get(part))):
                reading.left_out[f"an entry of {name} without {part}"] += 1


def _explained(issue: Mapping[str, Any]) -> str:
    parts = [
        f"{title}:\n{text}" if title else text for part, title in _PARTS.items() if (text := text_of(issue.get(part)))
    ]
    if names := [text_of(label) for label in _listed(issue, "labels") if text_of(label)]:
        parts.append(f"Labels: {', '.join(names)}")
    for comment in _listed(issue, "comments"):
        if isinstance(comment, dict) and (text := text_of(comment.get("text"))):
            parts.append(f"{text_of(comment.get('author')) or 'Comment'}: {text}")
    return "\n\n".join(parts)


def _moment(value: Any) -> str | None:
    return value if isinstance(value, str) and parse_moment(value) else None


def _in_order(issues: Mapping[str, tuple[str, dict[str, Any]]]) -> Sequence[str]:
    """Return the keys, each after those it names, except in cycles."""
    ordered: dict[str, None] = {}
    visited: set[str] = set()
    for first in issues:
        stack = [(first, False)]
        while stack:
            key, is_done = stack.pop()
            if is_done:
                ordered[key] = None
            elif key not in visited:
                visited.add(key)
                others = [other for _, other in _named(issues[key][1]) if other in issues and other not in visited]
                stack += [(key, True), *((other, False) for other in reversed(others))]
    return list(ordered)


#: The properties of a memory of the graph: its original statement, and each entity that it is about.
STATEMENT, NODE = JIDO + "graphStatement", JIDO + "graphNode"


def entity_fact(name: str, kind: str) -> dict[str, Any]:
    """Return the fields of the fact that an entity exists and has a kind."""
    return _fact(f"{name} is of the kind {kind}" if kind else f"{name} is known", [name], ["entity", name, kind])


def observation_fact(name: str, kind: str, text: str) -> dict[str, Any]:
    """Return the fields of the fact that *text* was observed of an entity."""
    subject = f"{name} ({kind})" if kind else name
    return _fact(f"{subject}: {text}", [name], ["observation", name, kind, text])


def relation_fact(source: str, target: str, relation: str) -> dict[str, Any]:
    """Return the fields of the fact that one entity is related to another."""
    ends = list(dict.fromkeys((source, target)))
    return _fact(f"{source} {relation} {target}", ends, ["relation", source, target, relation])


def _fact(summary: str, entities: list[str], statement: list[str]) -> dict[str, Any]:
    triples = [[STATEMENT, json.dumps(statement, ensure_ascii=False)], *([NODE, entity] for entity in entities)]
    return {"type": "fact", "summary": summary, "about": entities, "extra_triples": triples}


@dataclass(slots=True)
class Entity:
    """One entity: its kind, its observations, and the memories that state them."""

    kind: str = ""
    asserted_by: list[str] = field(default_factory=list)
    observations: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class EntityGraph:
    """Entities by name, and relations as (from, to, relationType), with the memories that state each."""

    entities: dict[str, Entity] = field(default_factory=dict)
    relations: dict[tuple[str, str, str], list[str]] = field(default_factory=dict)

    def add(self, item: str, statement: Sequence[str], summary: str) -> None:
        """Add the statement of the memory *item*. If its *summary* was edited, that is the observation."""
        match statement:
            case ["entity", name, kind]:
                self._entity(name, kind).asserted_by.append(item)
            case ["observation", name, kind, text]:
                observation = text if _same(summary, observation_fact(name, kind, text)["summary"]) else summary
                self._entity(name, kind).observations.setdefault(observation, []).append(item)
            case ["relation", source, target, relation]:
                self.relations.setdefault((source, target, relation), []).append(item)

    def _entity(self, name: str, kind: str) -> Entity:
        entity = self.entities.setdefault(name, Entity(kind))
        entity.kind = entity.kind or kind
        return entity

    def plain_entities(self, names: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Return the entities with these *names* (default: all) in the form of the reference server."""
        wanted = self.entities.keys() if names is None else self.entities.keys() & set(names)
        return [
            {"name": name, "entityType": entity.kind, "observations": [*entity.observations]}
            for name, entity in self.entities.items()
            if name in wanted
        ]

    def plain_relations(self, names: Iterable[str] | None = None) -> list[dict[str, str]]:
        """Return the relations that begin or end at an entity of these *names* (default: all)."""
        wanted = None if names is None else self.entities.keys() & set(names)
        ends = [one for one in self.relations if wanted is None or one[0] in wanted or one[1] in wanted]
        return [*map(plain_relation, ends)]


def plain_relation(one: tuple[str, str, str]) -> dict[str, str]:
    """Return a relation in the form of the reference server."""
    return {"from": one[0], "to": one[1], "relationType": one[2]}


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()


def read_mcp_memory(name: str, data: bytes) -> ParsedFile:
    """Return a fact for each observation of an entity, for an entity without any, and for each relation.

    A file with one JSON object with `entities` and `relations`, as other servers write it, is read too.
    """
    reading = ParsedFile("ToolSource")
    for place, line in _whole(name, data) or objects(name, data, reading):
        kind = line.get("type")
        if kind == "entity":
            _entity(name, place, line, reading)
        elif kind == "relation":
            _relation(name, place, line, reading)
        else:
            reading.refuse(place, "a line is an entity or a relation")
    return reading


def _whole(name: str, data: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the entities and relations of a graph that is one JSON object; an empty list for any other file."""
    if b'"entities"' not in data:
        return []
    try:
        graph = parse_line(1, data.removeprefix(b"\xef\xbb\xbf"))
    except InvalidRequest:
        return []
    if not isinstance(graph, dict):
        return []
    return [
        (f"{name}: {kind} {number}", {**each, "type": kind})
        for kind, part in (("entity", "entities"), ("relation", "relations"))
        for number, each in enumerate(_listed(graph, part), start=1)
        if isinstance(each, dict)
    ]


def _entity(name: str, place: str, line: dict[str, Any], reading: ParsedFile) -> None:
    entity, kind, observations = text_of(line.get("name")), text_of(line.get("entityType")), line.get("observations")
    if not entity or not isinstance(observations, list):
        reading.refuse(place, "an entity has a name and a list of observations", entity)
        return
    facts = [observation_fact(entity, kind, text_of(each)) for each in observations if text_of(each)]
    if len(facts) < len(observations):
        reading.refuse(place, f"{len(observations) - len(facts)} observations of {entity:.80} are not texts", entity)
    for fact in facts if observations else [entity_fact(entity, kind)]:
        fields = {**fact, "evidence": [f"{name}: entity {entity}"]}
        reading.entries.append(ForeignEntry(entity, place, fields, line=line_of(place)))


def _relation(name: str, place: str, line: dict[str, Any], reading: ParsedFile) -> None:
    source, target, relation = (text_of(line.get(part)) for part in ("from", "to", "relationType"))
    if not (source and target and relation):
        reading.refuse(place, "a relation has from, to and relationType")
        return
    fact = relation_fact(source, target, relation)
    fields = {**fact, "evidence": [f"{name}: relation {fact['summary']}"]}
    reading.entries.append(ForeignEntry(fact["summary"], place, fields, line=line_of(place)))


Memory = Mapping[str, Any]
#: Class of a memory -> its heading; the first matching class decides.
HEADINGS: Mapping[str, str] = {
    "Convention": "Conventions", "Decision": "Decisions", "Task": "Tasks", "Error": "Errors", "Risk": "Risks",
    "LessonLearned": "Lessons", "Unknown": "Open questions", "Fact": "Facts", "MemoryItem": "Further memories",
}  # fmt: skip
_MARKUP = re.compile(r"[\\`*_\[\]<>&#~|!]")
#: The line that opens fenced code, unless it closes it too: its indent and its mark.
_FENCE = re.compile(r"(\s*)(`{3,}(?!.*`)|~{3,}(?!.*~~~))")
#: A line of a text that begins a list item, a heading, a table row, a quotation or code.
_BLOCK = re.compile(r"\s*(?:[-*+•]\s+|\d+[.)]\s|#{1,6}\s|[|>]|```|~~~)")
_BULLET, _HEADING = re.compile(r"\A\s*[-*+•]\s+"), re.compile(r"\A\s*#{1,6}\s+")
#: The beginnings of a line that Markdown would parse as a list or a heading.
_BEGINS = re.compile(r"^([-+=]|\d+(?=[.)]))")
_DONE = frozenset({"Completed"})
_INSTEAD, _EVIDENCE, _SOURCE = "hasAlternative", "derivedFrom", "source"
#: Properties whose values are shown as texts.
WORDED = (_INSTEAD, _EVIDENCE)
#: The properties that are shown with a label, and the label.
_NAMED = (
    ("about", "About"), ("topic", "Topic"), (_INSTEAD, "Instead of"), ("assignedTo", "Assigned to"),
    ("hasTaskStatus", "Status"), ("hasErrorStatus", "Status"), ("severityLevel", "Severity"),
    ("hasEnforcementLevel", "Enforcement"), (_SOURCE, "Source"), (_EVIDENCE, "Evidence"),
    ("validFrom", "Valid from"), ("validUntil", "Valid until"), ("expiresOn", "Expires on"),
)  # fmt: skip


def markdown(
    project: str,
    memories: Iterable[Memory],
    is_a: Callable[[Term, Term], bool],
    moment: str,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return the memories as one Markdown page with a list for each of HEADINGS; *is_a* is the subclass test.

    Each entry has the summary, the reasons, the sources, author and date, and the IRI. Alternatives and evidence are
    shown by their text in *texts*, the file that a memory was imported from by its path.
    """
    below: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for memory in _with_grounds(_without_withdrawals(memories, texts), texts):
        heading = next(title for cls, title in HEADINGS.items() if is_a(jido(memory["class"]), jido(cls)))
        below[heading].append(_markdown_entry(memory))
    front = f"---\nproject: {project}\nas_of: {moment}\nwritten_by: jidomem export\n---\n\n# The memory of {project}\n"
    parts = (f"\n## {title}\n\n{''.join(paragraphs)}" for title, paragraphs in below.items() if paragraphs)
    return escape_invisible("".join([front, *parts])).encode()


def export_mcp_memory(
    project: str, memories: Iterable[Memory], summaries: Mapping[str, str] = MappingProxyType({})
) -> bytes:
    """Return the memories as the file of the reference MCP memory server: entities, then relations, one a line.

    Statements imported from such a file are exported unchanged. Any other memory becomes an observation of each entity
    it is about, or of the project if it is about none. An entity that is a memory has the name that *summaries* gives
    its IRI, as that names nothing elsewhere.
    """
    graph = EntityGraph()
    for memory in _without_withdrawals(memories):
        statements = memory["properties"].get(local_name(STATEMENT))
        if statements:
            graph.add(memory["iri"], json.loads(statements[0]), _one(memory, "summary"))
            continue
        names = map(str, memory["properties"].get("about", ()))
        things = [(summaries.get(name, name), "subject") for name in names]
        for name, kind in things or [(project, "project")]:
            text = _memory_text(memory)
            graph.add(memory["iri"], ["observation", name, kind, text], observation_fact(name, kind, text)["summary"])
    lines: list[dict[str, Any]] = [{"type": "entity", **one} for one in graph.plain_entities()]
    lines += [{"type": "relation", **one} for one in graph.plain_relations()]
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines).encode()


def _without_withdrawals(memories: Iterable[Memory], texts: Mapping[str, str] = MappingProxyType({})) -> list[Memory]:
    """Return the memories without withdrawals; a rejected alternative is shown only with its decision."""
    by_iri = {memory["iri"]: memory for memory in memories if memory["class"] != MARKER}
    exported = []
    for memory in by_iri.values():
        if others := memory["properties"].get(_INSTEAD, ()):
            words = [_one(by_iri[each], "summary") if each in by_iri else texts.get(each, each) for each in others]
            memory = {**memory, "properties": {**memory["properties"], _INSTEAD: words}}
        exported.append(memory)
    folded = {each for memory in by_iri.values() for each in memory["properties"].get(_INSTEAD, ())}
    return [memory for memory in exported if memory["iri"] not in folded]


def _with_grounds(memories: Iterable[Memory], texts: Mapping[str, str]) -> Iterator[Memory]:
    """Yield the memories with their source, and with their evidence as readable texts.

    Evidence without a text is left out, since its IRI is a hash; so is evidence that repeats the source.
    """
    listed = list(memories)
    summaries = {memory["iri"]: _one(memory, "summary") for memory in listed}
    for memory in listed:
        properties = memory["properties"]
        line = _one(memory, "sourceLine")
        files = [anchor.path for anchor in anchors_of(map(literal, properties.get("sourceBlob", ())))]
        grounds = [_ground(node, texts, summaries) for node in properties.get(_EVIDENCE, ())]
        repeated = {_one(memory, "localId")} if files else set()
        shown = {
            _SOURCE: [f"{path}:{line}" if line else path for path in files],
            _EVIDENCE: [text for text in grounds if text and text not in repeated],
        }
        yield {**memory, "properties": {**properties, **shown}}


def _ground(node: str, texts: Mapping[str, str], summaries: Mapping[str, str]) -> str:
    """Return a piece of evidence as readable text, or an empty text if only a hash is known."""
    if node in summaries:
        return f"{summaries[node]} ({node})"
    return texts.get(node, "" if node.startswith(f"{BASE}evidence/") else node)


def _markdown_entry(memory: Memory) -> str:
    properties = memory["properties"]
    box = ""
    if memory["type"] == "task":
        box = "[x] " if _DONE & {local_name(str(value)) for value in properties.get("hasTaskStatus", ())} else "[ ] "
    more = [_one(memory, name) for name in ("rationale", "detailedExplanation")]
    more += [f"{word}: {'; '.join(map(_short, properties[name]))}" for name, word in _NAMED if properties.get(name)]
    author = _author_and_date(memory)
    confidence = [f"confidence {_short(value).lower()}" for value in properties.get("hasConfidence", ())]
    origin = f"{_words(memory['class'])}, {', '.join([*author, *confidence])}, {memory['iri']}"
    below = "".join(f"\n{indent(block, '  ')}\n" for text in [*more, origin] for block in _blocks(text))
    return f"- {box}{escaped(_one(memory, 'summary'))}\n{below}\n"


def _blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs and the fenced code of a text as Markdown; code is unchanged.

    A list item, heading or table row is a line of a paragraph. A dash stands for the mark of a list, so that the entry
    remains one item of the page, also for an import. A fence without an end encloses the rest of the text.
    """
    lines: list[str] = []
    rest, is_heading = iter(text.splitlines()), False
    for line in rest:
        fence = _FENCE.match(line)
        if lines and (fence or not line.strip()):
            yield "\\\n".join(map(escaped, lines))
            lines = []
        if fence:
            yield "\n".join(_code(fence, line, rest))
        elif line.strip():
            starts = is_heading or not lines or _BLOCK.match(line)
            shown = _HEADING.sub("", _BULLET.sub("– ", line))
            lines[len(lines) if starts else -1 :] = [shown if starts else f"{lines[-1]} {shown}"]
        is_heading = bool(_HEADING.match(line))
    if lines:
        yield "\\\n".join(map(escaped, lines))


def _code(fence: re.Match[str], line: str, rest: Iterator[str]) -> Iterator[str]:
    """Yield the lines of code from the opening *fence* in *line* to its end in *rest*, without the fence's indent."""
    margin, mark = fence.groups()
    yield line.strip()
    for line in rest:
        end = line.strip()
        if end.startswith(mark) and not end.strip(mark[0]):
            break
        yield line.removeprefix(margin) if line.startswith(margin) else line.lstrip(" ")
    yield mark


def _author_and_date(memory: Memory) -> list[str]:
    """Return author and date; if the memory has an earlier date or none, both the date and the recorded date."""
    agents = ", ".join(map(_short, memory["properties"].get("assertedBy", ())))
    dated, recorded = _one(memory, "hasTimestamp")[:10], _one(memory, "recordedAt")[:10]
    if dated == recorded or not recorded:
        return [agents, dated or "date unknown"]
    return [f"dated {dated}" if dated else "date unknown", f"recorded {recorded} by {agents}"]


def escaped(text: str) -> str:
    r"""Return *text* on one line, escaped so that Markdown shows it unchanged.

    >>> print(escaped("- use *one*\nstore"))
    \- use \*one\* store
    """
    line = _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
    return _BEGINS.sub(lambda found: f"\\{found[0]}" if not found[0][0].isdigit() else f"{found[0]}\\", line)


def _memory_text(memory: Memory) -> str:
    why = _one(memory, "rationale")
    return f"{_words(memory['class'])}: {_one(memory, 'summary')}{f' ({why})' if why else ''}"


def _one(memory: Memory, name: str) -> str:
    return str(next(iter(memory["properties"].get(name, ())), ""))


def _short(value: Any) -> str:
    """Return the last part of an IRI of ours, any other value unchanged."""
    return local_name(str(value)) if str(value).startswith((BASE, JIDO)) else str(value)


def _words(name: str) -> str:
    """Return the name of a class as words.

    >>> _words("ArchitecturalDecision")
    'Architectural decision'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
