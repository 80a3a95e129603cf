"""What is in force of a project in the forms of those who have no journal.  Pure: memories in, bytes out.

Memories are the mappings that `MemoryReader.get_memory` gives. What was superseded, withdrawn or only proposed is no
part of either form: Turtle, JSON-LD and N-Quads hold all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from jidomem.anchor import anchors_of
from jidomem.exchange.mcp_memory import STATEMENT, Graph, observation_fact
from jidomem.terms import Term, literal
from jidomem.vocab import BASE, JIDO, jido, local_name

Memory = Mapping[str, Any]
#: What stands below which heading: the first class that a memory is of decides.
HEADINGS: Mapping[str, str] = {
    "Convention": "Conventions", "Decision": "Decisions", "Task": "Tasks", "Error": "Errors", "Risk": "Risks",
    "LessonLearned": "Lessons", "Unknown": "Open questions", "Fact": "Facts", "MemoryItem": "Further memories",
}  # fmt: skip
_MARKUP = re.compile(r"[\\`*_\[\]<>&#~|!]")
#: What at the start of a line would begin a block, and a task's box.
_BEGINS = re.compile(r"^([-+=]|\d+(?=[.)]))")
_DONE = frozenset({"Completed"})
_INSTEAD, _EVIDENCE, _SOURCE = "hasAlternative", "derivedFrom", "source"
#: Properties whose values are shown by their texts.
WORDED = (_INSTEAD, _EVIDENCE)
#: What is told of a memory by name, where it says it.
_NAMED = (
    ("about", "About"), ("topic", "Topic"), (_INSTEAD, "Instead of"), ("assignedTo", "Assigned to"),
    ("severity", "Severity"), ("enforcementLevel", "Enforcement"), (_SOURCE, "Source"), (_EVIDENCE, "Evidence"),
    ("validFrom", "Valid from"), ("validUntil", "Valid until"), ("expiresOn", "Expires on"),
)  # fmt: skip


def markdown(
    project: str,
    memories: Iterable[Memory],
    is_a: Callable[[Term, Term], bool],
    moment: str,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Return the memories as one Markdown page, a list for each of HEADINGS; *is_a* tells the classes of a class.

    Each entry says what is remembered, then why, of what, by whom and when, and the id to ask for more by. Alternatives
    and evidence are shown by their text in *texts*, the file that a memory was imported from by its path.
    """
    below: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for memory in _with_grounds(_told_once(memories, texts), texts):
        heading = next(title for cls, title in HEADINGS.items() if is_a(jido(memory["class"]), jido(cls)))
        below[heading].append(_entry(memory))
    front = f"---\nproject: {project}\nas_of: {moment}\nwritten_by: jidomem export\n---\n\n# The memory of {project}\n"
    return "".join([front, *(f"\n## {title}\n\n{''.join(said)}" for title, said in below.items() if said)]).encode()


def mcp_memory(project: str, memories: Iterable[Memory]) -> bytes:
    """Return the memories as the file of the reference MCP memory server: entities, then relations, a line each.

    What came from such a file goes back as it was. Any other memory is an observation of each thing it is about, of
    the project where it is about nothing.
    """
    graph = Graph()
    for memory in _told_once(memories):
        said = memory["properties"].get(local_name(STATEMENT))
        if said:
            graph.add(memory["iri"], json.loads(said[0]), _one(memory, "summary"))
            continue
        things = [(str(name), "subject") for name in memory["properties"].get("about", ())]
        for name, kind in things or [(project, "project")]:
            text = _told(memory)
            graph.add(memory["iri"], ["observation", name, kind, text], observation_fact(name, kind, text)["summary"])
    lines: list[dict[str, Any]] = [{"type": "entity", **one} for one in graph.plain_entities()]
    lines += [{"type": "relation", **one} for one in graph.plain_relations()]
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in lines).encode()


def _told_once(memories: Iterable[Memory], texts: Mapping[str, str] = MappingProxyType({})) -> list[Memory]:
    """Return the memories, less those that withdraw others; what was rejected is told by its decision alone."""
    by_iri = {memory["iri"]: memory for memory in memories if memory["class"] != "DeletedMarker"}
    told = []
    for memory in by_iri.values():
        if others := memory["properties"].get(_INSTEAD, ()):
            words = [_one(by_iri[each], "summary") if each in by_iri else texts.get(each, each) for each in others]
            memory = {**memory, "properties": {**memory["properties"], _INSTEAD: words}}
        told.append(memory)
    folded = {each for memory in by_iri.values() for each in memory["properties"].get(_INSTEAD, ())}
    return [memory for memory in told if memory["iri"] not in folded]


def _with_grounds(memories: Iterable[Memory], texts: Mapping[str, str]) -> Iterator[Memory]:
    """Yield the memories with their source, and with evidence by the words that a reader knows it by.

    Evidence of ours that has no text is left out: its id is a hash. So is what repeats where the memory came from.
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
    """Return a piece of evidence as a reader knows it; an empty text for one that is known by a hash alone."""
    if node in summaries:
        return f"{summaries[node]} ({node})"
    return texts.get(node, "" if node.startswith(f"{BASE}evidence/") else node)


def _entry(memory: Memory) -> str:
    properties = memory["properties"]
    box = ""
    if memory["type"] == "task":
        box = "[x] " if _DONE & {local_name(str(value)) for value in properties.get("hasTaskStatus", ())} else "[ ] "
    more = [_one(memory, name) for name in ("rationale", "detailedExplanation")]
    more += [f"{word}: {'; '.join(map(_short, properties[name]))}" for name, word in _NAMED if properties.get(name)]
    who = _who_and_when(memory)
    how = [f"confidence {_short(value).lower()}" for value in properties.get("hasConfidence", ())]
    what = f"{_words(memory['class'])}, {', '.join([*who, *how])}, {memory['iri']}"
    paragraphs = [part for text in [*more, what] if text for part in re.split(r"\n\s*\n", text) if part.strip()]
    below = "".join(f"\n  {escaped(part)}\n" for part in paragraphs)
    return f"- {box}{escaped(_one(memory, 'summary'))}\n{below}\n"


def _who_and_when(memory: Memory) -> list[str]:
    """Return author and date; of a memory with an earlier date, or none, both the date and when it was recorded."""
    agents = ", ".join(map(_short, memory["properties"].get("assertedBy", ())))
    dated, recorded = _one(memory, "hasTimestamp")[:10], _one(memory, "recordedAt")[:10]
    if dated == recorded or not recorded:
        return [agents, dated or "date unknown"]
    return [f"dated {dated}" if dated else "date unknown", f"recorded {recorded} by {agents}"]


def escaped(text: str) -> str:
    r"""Return *text* on one line that Markdown shows as it is.

    >>> print(escaped("- use *one*\nstore"))
    \- use \*one\* store
    """
    line = _MARKUP.sub(r"\\\g<0>", " ".join(text.split()))
    return _BEGINS.sub(lambda found: f"\\{found[0]}" if not found[0][0].isdigit() else f"{found[0]}\\", line)


def _told(memory: Memory) -> str:
    why = _one(memory, "rationale")
    return f"{_words(memory['class'])}: {_one(memory, 'summary')}{f' ({why})' if why else ''}"


def _one(memory: Memory, name: str) -> str:
    return str(next(iter(memory["properties"].get(name, ())), ""))


def _short(value: Any) -> str:
    """Return an IRI of ours as the name at its end, anything else as it is."""
    return local_name(str(value)) if str(value).startswith((BASE, JIDO)) else str(value)


def _words(name: str) -> str:
    """Return the name of a class as words.

    >>> _words("ArchitecturalDecision")
    'Architectural decision'
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
