"""One memory, assembled from its triples: properties, status and ends; and the lookup of its names.

A memory is named by its IRI, a part of its id, or the place it was imported from: file, line, number
or title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from jidomem.base.containers import grouped, reachable
from jidomem.base.regex import lazy
from jidomem.base.words import is_remark, normal_text, shortened
from jidomem.errors import NotFound, nearest_names
from jidomem.index.results import Solutions
from jidomem.index.store import OxigraphIndex
from jidomem.rdf.statements import own_value, to_value
from jidomem.rdf.terms import Term, Triple, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import (
    BASE,
    JIDO,
    MARKER,
    TYPE,
    family,
    graph_iri,
    jido,
    local_name,
    property_name,
    short_id,
    type_and_class,
)
from jidomem.records.active import ACTIVE, OVER, PENDING, WAITING, EndedDecision, is_accepted, state, validity
from jidomem.records.file_anchor import anchors_of, path_of
from jidomem.records.intent import CONFLICT_KEY
from jidomem.records.named_query import FOREVER, to_term
from jidomem.repository.record_files import number_of_name, record_name

_BLOB, _LINE, _KEY, _SUMMARY = jido("sourceBlob"), jido("sourceLine"), jido("localId"), jido("summary")
_NUMBER = lazy(r"(?:(?:adr|rfc)[-_. #]*|#)?0*(\d{1,5})", re.IGNORECASE)
_AT_LINE = lazy(r"(.+):(\d{1,7})")


class SourceName(NamedTuple):
    """A memory with the file and line that it was imported from, and its key there; a record has no line."""

    item: Term
    path: str
    line: int | None
    key: str

    @property
    def entry(self) -> tuple[str, str, int | None]:
        """Return the key that all versions of an entry share until it moves in its file; not unique."""
        return self.path, self.key, self.line

    def __str__(self) -> str:
        """Return `path:line`, or the path of a record."""
        return self.path if self.line is None else f"{self.path}:{self.line}"


def is_number(text: str) -> bool:
    """Return whether *text* may be the number of a record.

    >>> is_number("0016"), is_number("ADR-16"), is_number("0197a1b2")
    (True, True, False)
    """
    return bool(_NUMBER.fullmatch(text))


def is_place(text: str) -> bool:
    """Return whether *text* may be a file with a line, or a title, and no IRI.

    >>> is_place("AGENTS.md:64"), is_place("Use a queue: because"), is_place("https://jido.ai/memory/a")
    (True, True, False)
    """
    return any(map(str.isspace, text)) or ("://" not in text and bool(_AT_LINE.fullmatch(text)))


def named(index: OxigraphIndex, project: str, text: str) -> list[list[SourceName]]:
    """Return the entries of sources that *text* names, each with the memories imported from it.

    *text* is the number of a record, the path of a file or its end, with a line or without, or a title.
    """
    number = _NUMBER.fullmatch(text)

    def is_named(source: SourceName) -> bool:
        if number is not None:
            return source.line is None and number_of_name(record_name(source.path)) == int(number[1])
        return _is_at(source, text) or _is_titled(index, project, source.item, text)

    return _by_entry(filter(is_named, sources(index, project)))


def beginning_with(index: OxigraphIndex, project: str, text: str) -> list[list[SourceName]]:
    """Return the entries of files whose names begin with *text*, ignoring case, in the form of `named`."""
    starting = (
        each for each in sources(index, project) if record_name(each.path).casefold().startswith(text.casefold())
    )
    return _by_entry(starting)


def _by_entry(named_sources: Iterable[SourceName]) -> list[list[SourceName]]:
    """Return the memories of each entry, in the order of the files and their lines."""
    by_entry = grouped((source.entry, source) for source in named_sources)
    return [by_entry[entry] for entry in sorted(by_entry, key=lambda entry: (entry[0], entry[2] or 0, entry[1]))]


def nearest(index: OxigraphIndex, project: str, text: str, most: int) -> list[str]:
    """Return at most *most* names of sources similar to *text*, nearest first; if it is `path:line`, by line number."""
    names = {str(source): source for source in sources(index, project)}
    placed = _AT_LINE.fullmatch(text)
    if placed and (path := path_of(placed[1])) is not None:
        lines = {
            name: abs(source.line - int(placed[2]))
            for name, source in names.items()
            if source.line is not None and f"/{source.path}".endswith(f"/{path}")
        }
        if lines:
            return sorted(lines, key=lambda name: (lines[name], name))[:most]
    written = {record_name(source.path): name for name, source in names.items()} | {name: name for name in names}
    near = nearest_names(text, sorted(written), most)
    return [*dict.fromkeys(written[each] for each in near)]


def sources(index: OxigraphIndex, project: str) -> Iterator[SourceName]:
    """Yield each memory of *project* that was imported from a file, with its position in the file."""
    graph = graph_iri(project)
    for item, _, blob in index.triples(graph, None, _BLOB):
        for anchor in anchors_of([blob]):
            line = next((int(plain_value(value)) for _, _, value in index.triples(graph, item, _LINE)), None)
            key = next((plain_value(value) for _, _, value in index.triples(graph, item, _KEY)), "")
            yield SourceName(item, anchor.path, line, key)


def _is_at(source: SourceName, text: str) -> bool:
    """Return whether *text* is the path of the file of *source*, or the end of that path, with its line or without."""
    placed = _AT_LINE.fullmatch(text)
    given, line = (placed[1], int(placed[2])) if placed else (text, None)
    path = path_of(given)
    if path is None or (line is not None and line != source.line):
        return False
    return path == record_name(source.path) or f"/{source.path}".endswith(f"/{path}")


def _is_titled(index: OxigraphIndex, project: str, item: Term, text: str) -> bool:
    return any(
        normal_text(plain_value(value)) == normal_text(text)
        for _, _, value in index.triples(graph_iri(project), item, _SUMMARY)
    )


_COMMIT, _OURS = "urn:jido:commit:", f"<{JIDO}"
_OF, _WITH, _RECORDED = jido("appliesToProject"), jido("recordedIn"), jido("recordedAt")
_ENDS = {"superseded_by": jido("supersededBy"), "invalidated_by": jido("invalidatedBy")}
_LEAST = 4
STATES_OF_WORK = ("hasTaskStatus", "hasErrorStatus")
_LESSON = jido("LessonLearned")
#: The most versions of a memory that are read for its outcome.
_VERSIONS = 50
IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>\"{}|^`\\]*")
_HOW = (
    f"give its IRI, {_LEAST} or more characters of its id, or of an imported one its file, number or title; recall"
    " shows ids"
)
_ID = re.compile(r"[0-9A-Fa-f-]+")
_NEAREST_AMONG = 2_000
_SEVERAL, _NEAREST = 10, 3
_SOME = f"SELECT ?project ?item WHERE {{ ?item {jido('appliesToProject')} ?project }} LIMIT {_NEAREST_AMONG}"
#: Of memories with similar words: how many are named, how many characters of each, and the least share of words.
_MAX_ALIKE, _SUMMARY_CHARS, _MIN_SHARED_WORDS = 3, 60, 0.5
_SUMMARIES = f"""SELECT ?project ?item ?summary ?ended WHERE {{
?item {jido("appliesToProject")} ?project ; {jido("summary")} ?summary
BIND(EXISTS {{ ?item {jido("supersededBy")}|{jido("invalidatedBy")} ?end }} AS ?ended) }} LIMIT {_NEAREST_AMONG}"""


def load_memory(
    index: OxigraphIndex,
    project: str,
    item: str,
    as_of: object = None,
    valid_at: object = None,
    now: Callable[[], str] | None = None,
) -> dict[str, Any]:
    """Return one memory of *project* as plain values, as it was known at *as_of*.

    Its `status` is one of `jidomem.records.active.STATES`, or withdrawal for a marker; with the clock *now* it also
    judges validity in the world, at *valid_at* if given.
    Raises NotFound if the project had no such memory by then, or if the memory is not valid at *valid_at*.
    """
    return _load_item(index, project, item, as_of, valid_at).to_dict(now if valid_at is None else None)


def ended_decision(index: OxigraphIndex, project: str, item: str, as_of: object = None) -> EndedDecision | None:
    """Return a memory that ended, or was rejected, with the reason and its successor; None if it is no decision.

    The successor is the active memory that superseded it, or the active decision on its topic.
    """
    memory = load_memory(index, project, item, as_of)
    if family(memory["type"] or "") != "decision":
        return None
    values = memory["properties"]
    named = (memory["superseded_by"] or memory["invalidated_by"])[-1:]
    ends = [load_memory(index, project, end, as_of)["properties"] for end in named]
    ends += [] if is_accepted(values.get("decisionStatus", [None])[0]) else [values]  # it was rejected by a revision
    reasons = [*(end.get("revisionReason") or end.get("rationale") for end in ends), values.get("rationale")]
    reason = next(filter(None, reasons), [""])
    after = memory["superseded_by"] or _on_topic(index, project, values)
    now = [one for name in after if (one := load_memory(index, project, name, as_of))["status"] == ACTIVE][:1]
    successor = [text for one in now for text in (one["iri"], _summary_of(one))]
    return EndedDecision(item, _summary_of(memory), memory["status"], str(reason[0]), *successor)


def outcome(index: OxigraphIndex, project: str, item: str, as_of: object = None) -> dict[str, str]:
    """Return how a task or an error ended, or why it waits; empty for another memory.

    `state` is its state, `reason` that of the revision that ended it, or the newest one of a memory that waits.
    `lesson` is the newest active lesson that one of its versions produced, or that rests on one, `lesson_text` its
    summary. Without reason and lesson there is no outcome.
    """
    graph, reasons, lessons = graph_iri(project), list[Term](), list[Term]()

    def values(node: Term, *links: str) -> list[Term]:
        return [value for link in links for _, _, value in index.triples(graph, node, jido(link))]

    states = values(iri(item), *STATES_OF_WORK)
    if not states or local_name(plain_value(states[0])) not in (*OVER, *WAITING):
        return {}
    versions = [iri(item)]
    for version in islice(versions, _VERSIONS):  # it grows
        if values(version, *STATES_OF_WORK) == states:
            reasons += values(version, "revisionReason")
            versions += [each for each in values(version, "supersedes", "revives") if each not in versions]
        lessons += values(version, "producedLesson")
        lessons += [lesson for lesson, _, _ in index.triples(graph, None, jido("derivedFrom"), version)]
    state, texts = local_name(plain_value(states[0])), [parse_literal(reason).text for reason in reasons]
    texts = [text for text in texts if not is_remark(text)]
    lesson = _newest_lesson(index, project, map(plain_value, lessons), as_of)
    why = {"reason": texts[-1 if state in OVER else 0]} if texts else {}
    if lesson is not None:
        why |= {"lesson": lesson["iri"], "lesson_text": _summary_of(lesson)}
    return {"state": state, **why} if why else {}


def _newest_lesson(index: OxigraphIndex, project: str, items: Iterable[str], as_of: object) -> dict[str, Any] | None:
    """Return the newest active lesson among *items* and their successors, or None; other memories are not loaded."""
    graph, lessons = graph_iri(project), list[dict[str, Any]]()
    for item in reachable(
        map(iri, items), lambda node: (end for *_, end in index.triples(graph, node, _ENDS["superseded_by"]))
    ):
        if next(iter(index.triples(graph, item, TYPE, _LESSON)), None) is not None:
            with suppress(NotFound):  # it was recorded later
                lessons.append(load_memory(index, project, plain_value(item), as_of))
    active = (one for one in lessons if one["status"] == ACTIVE)
    return max(active, key=lambda one: (one["recorded_at"], one["iri"]), default=None)


def _summary_of(memory: Mapping[str, Any]) -> str:
    return str(memory["properties"].get("summary", [""])[0])


def _on_topic(index: OxigraphIndex, project: str, values: Mapping[str, Any]) -> list[str]:
    """Return the decisions on the topic of one with the properties *values*."""
    keys = [literal(key) for key in values.get("conflictKey", ()) if key.startswith("overlapping_decision:")]
    return [plain_value(row[0]) for key in keys for row in index.triples(graph_iri(project), None, CONFLICT_KEY, key)]


def has_ended(memory: Mapping[str, Any]) -> bool:
    """Return whether an asserted memory superseded or withdrew the *memory* of `load_memory` by then."""
    return bool(memory["superseded_by"] or memory["invalidated_by"])


def triples(
    index: OxigraphIndex, project: str, item: str, as_of: object = None, valid_at: object = None
) -> list[Triple]:
    """Return the triples of one memory of *project*, as it was known at *as_of*; raises what `load_memory` raises."""
    return _load_item(index, project, item, as_of, valid_at).triples


def has_successor(index: OxigraphIndex, project: str, item: str, known: Collection[str], as_of: object = None) -> bool:
    """Return whether a direct or indirect successor of *item* is among *known*."""
    seen, left = {item}, [*load_memory(index, project, item, as_of)["superseded_by"]]
    while left:
        name = left.pop()
        if name in known and name != item:
            return True
        if name not in seen:
            seen.add(name)
            left += load_memory(index, project, name, as_of)["superseded_by"]
    return False


#: Returns the IRIs of memories of a project whose id begins or ends with some characters; the integer limits them.
FindIds = Callable[[str, str, int], list[str]]


def resolve(index: OxigraphIndex, ids: FindIds, project: str, short: object, as_of: object = None) -> str:
    """Return the IRI of the memory that *short* names, among those known at *as_of*.

    *short* is an IRI, a unique beginning or end of an id, a beginning of a short id, or the id that the memory had
    elsewhere (the newest of several versions). An imported memory is also named by its file (with or without folders,
    line and extension), the number of its record, its title, or the beginning of the name of its file: the active
    version, else the newest.
    Raises InvalidRequest if *short* is not a text, NotFound for no match or several, which the hint lists.
    """
    text = parse_literal(to_term(short, "string", "item")).text
    if IRI.fullmatch(text) and _of_project(index, project, to_term(text, "iri", "iri")):
        return text
    by_part = partial(_by_part, ids)
    finders = (by_part, _by_local_id) if _ID.fullmatch(text) else (_by_local_id, by_part)
    moment = to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of")
    by_id = next(filter(None, (find(index, project, text, moment) for find in finders)), [])
    matches = dict.fromkeys(by_id, "")
    if is_number(text) or not matches:
        matches |= _by_source(index, project, named(index, project, text), moment)
    if not matches and len(text) >= _LEAST:
        matches = _by_source(index, project, beginning_with(index, project, text), moment)
    if len(matches) == 1:
        return next(iter(matches))
    if matches:
        listed = [f"{item} ({place})" if place else item for item, place in [*matches.items()][:_SEVERAL]]
        more = f", or {len(matches) - _SEVERAL} more" if len(matches) > _SEVERAL else ""
        hint = f"give one of: {', '.join(listed)}{more}"
        raise NotFound(f"{text!r:.200} names several memories", hint=hint, candidates=[*matches][:_SEVERAL])
    if as_of is not None:
        later = resolve(index, ids, project, text)
        raise _recorded_later(project, text, _recorded(index, project, iri(later)))
    raise _missing(index, project, text)


def _by_source(
    index: OxigraphIndex, project: str, entries: Iterable[Sequence[SourceName]], moment: Term
) -> dict[str, str]:
    """Return the memories of the imported *entries*, each with its file and line.

    They are the active ones, else the proposed ones, else the newest ended one of each entry.
    """
    candidates: list[tuple[int, str, str]] = []
    for versions in entries:
        known = [
            (_standing(index, project, each.item, moment), at, plain_value(each.item), str(each))
            for each in versions
            for at in _recorded(index, project, each.item)
            if at <= plain_value(moment)
        ]
        if known:
            standing, _, item, place = max(known)
            candidates.append((standing, item, place))
    best = max((standing for standing, _, _ in candidates), default=0)
    return {item: place for standing, item, place in candidates if standing == best}


def _standing(index: OxigraphIndex, project: str, item: Term, moment: Term) -> int:
    """Return 2 for an active memory, 1 for a pending one, and 0 for an ended one."""
    memory = _Item(index, project, plain_value(item), moment).to_dict(None)
    return 0 if has_ended(memory) else 1 if memory["status"] == PENDING else 2


def _by_part(ids: FindIds, index: OxigraphIndex, project: str, short: str, moment: Term) -> list[str]:
    if len(short) < _LEAST:
        return []
    spelled = (ids(project, signs, _SEVERAL) for signs in (short, short.lower()))
    items = next(filter(None, spelled), [])
    return [item for item in items if all(at <= plain_value(moment) for at in _recorded(index, project, iri(item)))]


def _by_local_id(index: OxigraphIndex, project: str, local: str, moment: Term) -> list[str]:
    """Return the newest memory of the project, at a moment, that had the id *local* in its source."""
    graph, known = graph_iri(project), []
    for item, _, _ in index.triples(graph, None, jido("localId"), literal(local)):
        if _of_project(index, project, item):
            known += [(at, plain_value(item)) for at in _recorded(index, project, item) if at <= plain_value(moment)]
    return [max(known)[1]] if known else []


def _recorded(index: OxigraphIndex, project: str, item: Term) -> list[str]:
    return [canonical_moment(moment) for _, _, moment in index.triples(graph_iri(project), item, _RECORDED)]


def _project(project: str) -> Term:
    return iri(f"{BASE}projects/{project}")


def _of_project(index: OxigraphIndex, project: str, item: Term) -> bool:
    """Return whether *item* is a memory of the project; if it names no project, that of its graph counts."""
    links = (row for link in (_OF, _WITH) for row in index.triples(graph_iri(project), item, link))
    return _is_of(project, grouped((link, term) for _, link, term in links))


def _is_of(project: str, properties: Mapping[Term, Sequence[Term]]) -> bool:
    projects = properties.get(_OF, ())
    return _project(project) in projects or (not projects and bool(properties.get(_WITH)))


def _missing(index: OxigraphIndex, project: str, unknown: str) -> NotFound:
    solutions = index.query(_SOME, graphs=[graph_iri(project)], bindings={"project": _project(project)})
    assert isinstance(solutions, Solutions)
    items = [plain_value(row[-1]) for row in solutions.rows if row[-1] is not None]
    near = {local_name(item): item for item in items}
    best = [near[name] for name in nearest_names(local_name(unknown), near, 3)]
    best = best or nearest(index, project, unknown, _NEAREST)
    if not best and (alike := _alike(index, project, unknown)):
        listed = " or ".join(f'{short_id(item)} "{shortened(summary, _SUMMARY_CHARS)[0]}"' for item, summary in alike)
        return NotFound(
            f"{project} has no memory {unknown!r:.200}",
            hint=f"did you mean {listed}?",
            candidates=[item for item, _ in alike],
        )
    hint = f"did you mean {' or '.join(best)}?" if best else _HOW
    return NotFound(f"{project} has no memory {unknown!r:.200}", hint=hint, candidates=best)


def _recorded_later(project: str, name: str, moments: Iterable[str]) -> NotFound:
    """Return the error for a memory that was first recorded after the requested moment; *moments* are recordings."""
    return NotFound(
        f"{project} has no memory {name!r:.200} as of then",
        hint=f"it was recorded at {min(moments)}: ask as of that moment or a later one",
    )


def _alike(index: OxigraphIndex, project: str, name: str) -> list[tuple[str, str]]:
    """Return the memories whose summaries share the most words with *name*, at least half of them: (IRI, summary).

    Ended memories come last.
    """
    words = set(normal_text(name).split())
    solutions = index.query(_SUMMARIES, graphs=[graph_iri(project)], bindings={"project": _project(project)})
    assert isinstance(solutions, Solutions)
    ranked: list[tuple[bool, float, str, str]] = []
    for *_, item, summary, ended in solutions.rows:
        text = parse_literal(summary or "").text
        shared = len(words.intersection(normal_text(text).split())) / len(words) if words else 0.0
        if shared >= _MIN_SHARED_WORDS:
            ranked.append((plain_value(ended or "") != "false", -shared, plain_value(item or ""), text))
    return [(item, text) for _, _, item, text in sorted(ranked)[:_MAX_ALIKE]]


def _load_item(index: OxigraphIndex, project: str, item: str, as_of: object, valid_at: object) -> _Item:
    memory = _Item(index, project, item, to_term(FOREVER if as_of is None else as_of, "dateTime", "as_of"))
    if valid_at is not None:
        memory.check_validity(to_term(valid_at, "dateTime", "valid_at"))
    return memory


class _Item:
    """One memory as it was known at one moment."""

    def __init__(self, index: OxigraphIndex, project: str, item: str, as_of: Term) -> None:
        self._index, self._graph, self._item = index, graph_iri(project), to_term(item, "iri", "iri")
        self._as_of = parse_literal(as_of).text
        triples = sorted(index.triples(self._graph, self._item))
        properties = grouped((predicate, term) for _, predicate, term in triples)
        if not _is_of(project, properties):
            raise _missing(index, project, item)
        if not properties.get(_RECORDED):
            detail = f"{item} is in the journal, but lacks the record of a writer, so it is not shown"
            raise NotFound(detail, hint="see what is wrong with it: jidomem check")
        if not any(map(self._by_then, properties[_RECORDED])):
            raise _recorded_later(project, item, map(canonical_moment, properties[_RECORDED]))
        self._ends = {name: list(self._enders(properties.get(link, ()))) for name, link in _ENDS.items()}
        self._properties = {link: terms for link, terms in properties.items() if link not in _ENDS.values()}
        self.triples = [(s, p, o) for s, p, o in triples if p not in _ENDS.values() or self._is_known(o)]

    def check_validity(self, moment: Term) -> None:
        """Raise NotFound unless the memory is valid at *moment*, in the time of the world."""
        since, until = (self._moments(name) for name in ("validFrom", "validUntil"))
        if any(bound > plain_value(moment) for bound in since) or any(bound <= plain_value(moment) for bound in until):
            period = " ".join([*(f"from {bound}" for bound in since), *(f"until {bound}" for bound in until)])
            raise NotFound(
                f"{plain_value(self._item)} is not valid at {plain_value(moment)}",
                hint=f"it is valid {period}: ask for a moment of that time, or for none",
            )

    def _moments(self, name: str) -> list[str]:
        return [canonical_moment(term) for term in self._properties.get(jido(name), [])]

    def to_dict(self, now: Callable[[], str] | None) -> dict[str, Any]:
        """Return the memory as plain values, its validity judged by the clock *now*."""
        classes = self._properties.pop(TYPE, [])
        kind, cls = type_and_class(classes)
        commits = [plain_value(term).removeprefix(_COMMIT) for term in self._properties.get(_WITH, [])]
        return {
            "iri": plain_value(self._item),
            "type": kind,
            "class": cls,
            "own_classes": [plain_value(each) for each in classes if not each.startswith(_OURS)],
            "status": self._status(now, is_marker=cls == MARKER),
            "properties": {
                property_name(p): [*map(to_value if p.startswith(_OURS) else own_value, terms)]
                for p, terms in self._properties.items()
            },
            **self._ends,
            "commit": commits[0] if commits else None,
            "recorded_at": to_value(self._properties[_RECORDED][0]),
        }

    def _status(self, now: Callable[[], str] | None, *, is_marker: bool) -> str:
        known = state(
            next((parse_literal(term).text for term in self._properties.get(jido("decisionStatus"), [])), None),
            is_proposal=jido("Proposed") in self._properties.get(jido("hasAssertionStatus"), []),
            is_withdrawn=bool(self._ends["invalidated_by"]),
            is_replaced=bool(self._ends["superseded_by"]),
            is_marker=is_marker,
        )
        since, until = (self._moments(name) for name in ("validFrom", "validUntil"))
        if known != ACTIVE or now is None or not (since or until):
            return known
        moment = min(self._as_of, now())
        return validity(max(since, default=None), min(until, default=None), moment)

    def _enders(self, ends: Iterable[Term]) -> Iterator[str]:
        """Yield those of *ends* that had ended the item by then; proposals end nothing."""
        for end in ends:
            asserted = any(self._index.triples(self._graph, end, jido("hasAssertionStatus"), jido("Asserted")))
            if asserted and any(map(self._by_then, self._recorded(end))):
                yield plain_value(end)

    def _is_known(self, end: Term) -> bool:
        """Return whether a link to *end* was recorded by then: with *end*, or else with the item itself."""
        recorded = self._recorded(end)
        return not recorded or any(map(self._by_then, recorded))

    def _recorded(self, node: Term) -> list[Term]:
        return [term for _, _, term in self._index.triples(self._graph, node, _RECORDED)]

    def _by_then(self, moment: Term) -> bool:
        return canonical_moment(moment) <= self._as_of


def canonical_moment(moment: Term) -> str:
    """Return a moment in its canonical form, in which two compare as texts; a store may have shortened it."""
    return plain_value(to_term(parse_literal(moment).text, "dateTime", "a moment"))
