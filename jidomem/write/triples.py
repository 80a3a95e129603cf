"""The triples of an intent, and an intent from triples. Stage 4 of the pipeline; pure over rows.

`describe` returns the statements of a memory, `relate` its links to the memories that it replaces, `restate` the
intent of a memory. The triples of work sessions are built here too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pyoxigraph import RdfFormat, parse

from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import reachable
from jidomem.errors import IntentRefused, InvalidRequest, NotFound, Violation, nearest_names
from jidomem.rdf import vocab
from jidomem.rdf.terms import (
    Term,
    Triple,
    boolean,
    date_time,
    decimal,
    integer,
    iri,
    is_iri,
    literal,
    moment_in,
    ntriples_line,
    parse_literal,
    plain_value,
)
from jidomem.rdf.vocab import DECISIONS, ERRORS, TYPE, jido
from jidomem.records.active import FINISHED, is_due
from jidomem.records.intent import (
    CONFLICT_KEY,
    FIELD_PROPERTIES,
    JUDGED,
    JUDGED_AS,
    WRITER_ONLY,
    MemoryUpdateIntent,
    digest,
    judgement_keys,
    properties_of,
    with_own_properties,
)
from jidomem.records.policy import AgentPolicy, Policy
from jidomem.schema.ontology import Schema
from jidomem.write.canonical import expand, is_absolute, letters_and_digits, moment, nearest, put
from jidomem.write.snapshot import WriteSnapshot

#: The properties of the fields of an intent, by the form of their values.
TEXTS, NAMES, URLS = properties_of("text"), properties_of("name"), properties_of("url")
MOMENT_PROPERTIES, IRI_PROPERTIES = properties_of("moment"), properties_of("iri")
ASSERTED, PROPOSED = jido("Asserted"), jido("Proposed")
#: The agent that commits: the writer itself.
WRITER_AGENT = iri(vocab.BASE + "agents/memory-writer")


def describe(intent: MemoryUpdateIntent) -> list[Triple]:
    """Return the triples of the normal *intent*: the new memory, and its new evidence and alternatives."""
    assert intent.iri
    assert intent.type
    item = iri(intent.iri)
    triples = [(item, TYPE, iri(vocab.type_uri(intent.type))), *_provenance(intent, item)]
    for field, name in TEXTS.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), literal(value)))
    for field, name in NAMES.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), jido(value)))
    if intent.status is not None:
        triples += _status(intent, item)
    for entry in intent.about:
        triples.append((item, jido("about"), value_of(entry)))
    for other in intent.coexists_with:
        triples.append((item, jido("coexistsWith"), iri(other)))
    for field, name in URLS.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), literal(value, vocab.XSD + "anyURI")))
    for field, name in MOMENT_PROPERTIES.items():
        if value := getattr(intent, field):
            triples.append((item, jido(name), date_time(value)))
    if intent.evidence:
        triples += _evidence(intent, item)
    if intent.alternatives:
        triples += _alternatives(intent, item)
    triples += map(extra, intent.extra_triples)
    return list(dict.fromkeys(triples))


def relate(intent: MemoryUpdateIntent, status: Term, conflicting: Iterable[str] = ()) -> list[Triple]:
    """Return the links to the memories that *intent* replaces; a proposal names them but ends none."""
    assert intent.iri
    item = iri(intent.iri)
    links = [(item, jido("hasAssertionStatus"), status)]
    for field, inverse in (("supersedes", "supersededBy"), ("invalidates", "invalidatedBy")):
        for other in map(iri, getattr(intent, field)):
            links.append((item, jido(field), other))
            if status == ASSERTED:
                links.append((other, jido(inverse), item))
    for other in intent.revives:
        links.append((item, jido("revives"), iri(other)))
    for other in conflicting:
        links.append((item, jido("conflictsWith"), iri(other)))
    if intent.alternatives:
        links += [(node, jido("hasAssertionStatus"), status) for node in alternative_nodes(intent)]
    return links


def versions(item: Term, view: WriteSnapshot) -> list[str]:
    """Return a memory and all that it supersedes, at any distance."""
    others = reachable([item], lambda node: view.objects(node, jido("supersedes"))) - {item}
    return [*map(plain_value, (item, *sorted(others)))]


def end_keys(intent: MemoryUpdateIntent, view: WriteSnapshot) -> list[str]:
    """Return the keys of the judgement that the memories withdrawn by *intent* end, and those they had superseded.

    An earlier judgement that one of them stays is overruled, so the key of it is among them. Other active successors
    of those superseded, as a merge leaves them, are known, and stay.
    """
    found: list[str] = []
    for withdrawn in (iri(old) for old in intent.invalidates if not view.is_proposed(iri(old))):
        before = versions(withdrawn, view)
        others = {new for old in before for new in view.objects(iri(old), jido("supersededBy"))} - {*map(iri, before)}
        for other in reachable(others, lambda node: view.objects(node, jido("supersededBy"))):
            if view.is_current(other) and plain_value(other) not in intent.invalidates:
                found += judgement_keys(plain_value(other), stays=True)
        for old in before:
            (*_, stays), known = judgement_keys(old, stays=True), judgement_keys(old, stays=False)
            overruled = any(map(view.is_current, view.subjects(CONFLICT_KEY, literal(stays))))
            found += [*known, stays] if overruled else known
    return found


def judge_differently(item: Term, other: Term, view: WriteSnapshot) -> bool:
    """Return whether *item* and *other* say of one memory that it stays, and that it ends, unaware of each other."""
    first, second = (set(map(plain_value, view.objects(each, CONFLICT_KEY))) for each in (item, other))
    common = [key.partition(":")[0] for key in first & second]
    return common.count(JUDGED) > common.count(JUDGED_AS)


def is_judged_to_stay(item: Term, by: Term, view: WriteSnapshot) -> bool:
    """Return whether *by* has the judgement that *item* stays."""
    return literal(judgement_keys(plain_value(item), stays=True)[1]) in view.objects(by, CONFLICT_KEY)


def stubs(
    intent: MemoryUpdateIntent, view: WriteSnapshot, policy: Policy, now: datetime
) -> tuple[list[Triple], list[str]]:
    """Return the descriptions of the project, agents and session that this intent is the first to name.

    The session starts *now*, as the date of a memory may be that of an imported record. The second list has a warning
    for a session that has ended.
    """
    assert intent.applies_to_project
    assert intent.asserted_by
    assert intent.asserted_in
    project, author, session = iri(intent.applies_to_project), iri(intent.asserted_by), iri(intent.asserted_in)
    agents = (author, iri(intent.assigned_to)) if intent.assigned_to else (author,)
    triples = participant_stubs(agents, project, view, policy)
    known = view.properties(session)
    if not known:
        triples += session_stub(session, project, author, format_timestamp(now))
    return triples, [_HAS_ENDED.format(vocab.local_name(session))] if _ENDED_AT in known else []


_ENDED_AT = jido("endedAt")
_HAS_ENDED = "the session {0} has ended; open another one: jidomem agent session start NAME --continues {0}"


def participant_stubs(agents: Iterable[Term], project: Term, view: WriteSnapshot, policy: Policy) -> list[Triple]:
    """Return the declarations of the project and the agents that have none yet."""
    triples = [] if view.describes(project) else project_stub(project)
    for agent in dict.fromkeys(agents):
        if not view.types(agent):
            triples += agent_stub(agent, policy.agents.get(name_of(agent), AgentPolicy()))
    return triples


def project_stub(project: Term) -> list[Triple]:
    """Return the declaration of a project."""
    return [(project, TYPE, jido("Project")), (project, jido("projectName"), literal(name_of(project)))]


def agent_stub(agent: Term, policy: AgentPolicy) -> list[Triple]:
    """Return the declaration of a new agent."""
    return [
        (agent, TYPE, jido("Agent")),
        (agent, jido("agentName"), literal(name_of(agent))),
        (agent, jido("hasRole"), jido(policy.role)),
        *((agent, jido("hasCapability"), jido(name)) for name in policy.capabilities),
    ]


#: The least similarity of a new agent to the known one that may be meant.
_LIKE = 0.8


def misspelt_agents(agents: Iterable[str], view: WriteSnapshot) -> Iterator[str]:
    """Yield a warning for each of *agents* (IRIs) that is new and spelled nearly like one known here.

    Names that differ only in digits, such as `agent-1` and `agent-2`, are of two agents.
    """
    known: list[str] | None = None
    for agent in agents:
        if view.types(iri(agent)):
            continue
        known = known or [name_of(node) for node in view.subjects(TYPE, jido("Agent"))]
        name = name_of(iri(agent))
        if near := [each for each in nearest_names(name, known, likeness=_LIKE) if _letters(each) != _letters(name)]:
            yield f"agent {name} wrote nothing here yet; did you mean {near[0]!r}?"


def _letters(name: str) -> str:
    return re.sub(r"\d", "", name)


def session_stub(session: Term, project: Term, agent: Term, started_at: str, kind: str = "WorkSession") -> list[Triple]:
    """Return the declaration of a work session, or of another *kind* of it, active since *started_at*."""
    return [
        (session, TYPE, jido(kind)),
        (session, jido("hasStatus"), jido("Active")),
        (session, jido("startedAt"), date_time(started_at)),
        (session, jido("partOfProject"), project),
        (session, jido("hasPrimaryAgent"), agent),
    ]


def name_of(term: Term) -> str:
    """Return the plain name in the IRI of an agent, session or project."""
    return vocab.local_name(term)


def extra(triple: list[Any]) -> Triple:
    """Return the terms of a normalised extra triple."""
    subject, predicate, value = triple
    if "@id" in value:
        return iri(subject), iri(predicate), iri(value["@id"])
    return (
        iri(subject),
        iri(predicate),
        literal(value["@value"], value.get("@type", vocab.XSD + "string"), value.get("@language", "")),
    )


def names_a_thing(entry: str) -> bool:
    """Return whether a normalised entry, an IRI or a text, is an IRI."""
    return entry.startswith(("http://", "https://", "urn:")) and len(entry.split()) == 1


def value_of(entry: str) -> Term:
    """Return the term of a normalised entry, an IRI or a text."""
    return iri(entry) if names_a_thing(entry) else literal(entry)


def check_round_trip(triples: Iterable[Triple]) -> None:
    """Raise IntentRefused `invalid_iri` unless a strict parser reads exactly *triples* from their text."""
    built = set(triples)
    text = "\n".join(ntriples_line(triple) for triple in built)
    try:
        parsed = {(str(q.subject), str(q.predicate), str(q.object)) for q in parse(text, format=RdfFormat.N_TRIPLES)}
    except SyntaxError as error:
        bad = text.splitlines()[(error.lineno or 1) - 1]
        message = f"{error.msg}: {bad[:300]}"
        raise IntentRefused([Violation("invalid_iri", message, field="extra_triples", value=bad[:300])]) from error
    if parsed != built:
        changed = ntriples_line(sorted(built - parsed)[0])
        message = f"this does not read back as it was written: {changed[:300]}"
        raise IntentRefused([Violation("invalid_iri", message, field="extra_triples", value=changed[:300])])


def _provenance(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    triples = []
    for field, name in IRI_PROPERTIES.items():
        if (value := getattr(intent, field)) is not None:
            triples.append((item, jido(name), f"<{value}>"))
    confidence = intent.confidence
    if isinstance(confidence, float):
        triples.append((item, jido("confidenceValue"), decimal(confidence)))
    if confidence is not None:
        triples.append((item, jido("hasConfidence"), jido(vocab.CONFIDENCE[level_of(confidence)])))
    return triples


def level_of(confidence: str | float) -> str:
    """Return the level of a confidence: high from 0.8, medium from 0.5, else low."""
    if isinstance(confidence, str):
        return confidence
    return "high" if confidence >= 0.8 else "medium" if confidence >= 0.5 else "low"


def _status(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    assert intent.status
    if intent.type == "task":
        return [(item, jido("hasTaskStatus"), jido(intent.status))]
    if intent.type in ERRORS:
        return [(item, jido("hasErrorStatus"), jido(intent.status))]
    assert intent.type in DECISIONS
    return [(item, jido("decisionStatus"), literal(intent.status))]


def _evidence(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    """Return the evidence: an IRI as such, a text as a node with that label; equal texts have one node."""
    triples: list[Triple] = []
    for entry in intent.evidence:
        if not names_a_thing(entry):
            node = iri(f"{vocab.BASE}evidence/{digest(entry)}")
            triples += [(node, TYPE, jido("Evidence")), (node, vocab.LABEL, literal(entry))]
            triples.append((item, jido("derivedFrom"), node))
            continue
        if not entry.startswith((vocab.BASE, "urn:jido:")):
            triples.append((iri(entry), TYPE, jido("Evidence")))
        triples.append((item, jido("derivedFrom"), iri(entry)))
    return triples


def alternative_nodes(intent: MemoryUpdateIntent) -> list[Term]:
    """Return the IRIs of the alternatives of a decision, in order."""
    return [iri(f"{intent.iri}/alternatives/{n}") for n in range(1, len(intent.alternatives) + 1)]


def _alternatives(intent: MemoryUpdateIntent, item: Term) -> list[Triple]:
    """Return each alternative as a memory of its own, asserted with the decision."""
    triples: list[Triple] = []
    for node, text in zip(alternative_nodes(intent), intent.alternatives, strict=True):
        triples += [
            (item, jido("hasAlternative"), node),
            (node, TYPE, jido("Alternative")),
            (node, jido("summary"), literal(text)),
            (node, jido("hasTimestamp"), date_time(intent.timestamp))
            if intent.timestamp
            else (node, iri(vocab.UNDATED), boolean(True)),
            *_provenance(intent, node),
        ]
    return triples


_CLASS = plain_value(TYPE)
#: The properties of a field with one value, of which extra triples may add more.
_MAY_REPEAT: Mapping[str, str] = {"assignedTo": "assigned_to", "trackedBy": "tracked_by"}
#: The properties that the writer adds, also for later memories; they are not part of the intent.
_IMPLIED = {jido("idempotencyKey"), jido("supersededBy"), jido("invalidatedBy"), *map(jido, WRITER_ONLY)}
_IMPLIED |= {jido("hasConfidence"), jido("confidenceValue")}


def restated_in(view: WriteSnapshot, item: str) -> dict[str, Any]:
    """Return the intent that restates the memory *item*; raises NotFound when there is no such memory."""
    if not is_absolute(item) or not view.is_item(iri(item)):
        raise NotFound(f"{item} is not a memory of this project", hint="list them with: jidomem ask timeline")
    rows = view.about(iri(item))
    pointed = {value for _, predicate, value in rows if predicate in (jido("derivedFrom"), jido("hasAlternative"))}
    labels = {node: plain_value(text) for node in pointed if (text := _text_of(node, view))}
    return restate(iri(item), rows, labels)


def successor_links(view: WriteSnapshot, item: str) -> dict[str, list[str]]:
    """Return the links of a successor of *item*: it supersedes it, and replaces what a proposal was to replace."""
    if not view.is_proposed(iri(item)):
        return {"supersedes": [item]}
    old = restated_in(view, item)
    return {
        "supersedes": [item, *old.get("supersedes", ())],
        "invalidates": old.get("invalidates", []),
        "revives": [each for each in old.get("revives", ()) if not view.is_proposed(iri(each))],
    }


def with_other_triples(view: WriteSnapshot, item: str, changes: Mapping[str, Any], schema: Schema) -> Mapping[str, Any]:
    """Return *changes* of *item* with its extra triples that they do not replace.

    A property of the project replaces its own values, a type the kinds of the project; given extra triples replace all
    but the kinds.
    """
    if not changes.keys() & {"extra_triples", "type"} and not any(":" in name for name in changes):
        return changes
    given = with_own_properties(changes)
    triples = given.get("extra_triples") or []
    if not isinstance(triples, list):
        return given
    replaced = {schema.expand(name) or expand(name) or name for name in changes if name not in given}
    replaced |= {_CLASS for each in triples if isinstance(each, list) and each[:1] in (["rdf:type"], [_CLASS])}
    spaces = tuple(schema.namespaces) if "type" in changes else ()
    others = [
        [name, value]
        for name, value in restated_in(view, item).get("extra_triples", [])
        if name not in replaced
        and (not value.get("@id", "").startswith(spaces) if name == _CLASS else "extra_triples" not in changes)
    ]
    return {**given, "extra_triples": [*others, *triples]}


def restate(item: Term, rows: Iterable[Triple], label_of: Mapping[Term, str]) -> dict[str, Any]:
    """Return the intent of the memory *item* with the triples *rows*.

    *label_of* has the text of its evidence and alternatives, so that they are returned as texts. Triples without a
    field become extra triples.
    """
    values: dict[str, Any] = {"iri": plain_value(item)}
    rows = sorted(rows, key=_in_order)
    for _, predicate, value in rows:
        if predicate == TYPE and (kind := vocab.type_of(value)):
            values["type"] = kind
        elif predicate not in _IMPLIED:
            _add_value(values, predicate, value, label_of)
    _confidence(values, rows)
    if values.get("type") in DECISIONS and isinstance(values.get("status"), str):
        values["status"] = values["status"].lower()
    return values


def _text_of(node: Term, view: WriteSnapshot) -> str | None:
    """Return the text of a piece of evidence or an alternative; None for a node with an IRI of its own."""
    if "/alternatives/" in node:
        return view.first(node, jido("summary"))
    return view.first(node, vocab.LABEL) if node.startswith(f"<{vocab.BASE}evidence/") else None


def _in_order(row: Triple) -> tuple[Term, int, Term]:
    """Return the sort key of a row: by property, then alternatives by number, other rows by value."""
    _, predicate, value = row
    return predicate, len(value) if predicate == jido("hasAlternative") else 0, value


def _add_value(values: dict[str, Any], predicate: Term, value: Term, label_of: Mapping[Term, str]) -> None:
    """Add the value of one triple to its field, else to the extra triples."""
    name = vocab.local_name(predicate) if predicate.startswith(f"<{vocab.JIDO}") else ""
    plain = plain_value(value)
    written = FIELD_PROPERTIES.get(name)
    form = written.form if written is not None and _MAY_REPEAT.get(name) not in values else ""
    if form == "alternative" and not plain.startswith(f"{values['iri']}/alternatives/"):
        form = ""
    if written is None or not form:
        values.setdefault("extra_triples", []).append([plain_value(predicate), object_of(value)])
    elif form in ("text", "moment", "iri", "url"):
        values.setdefault(written.field, plain)
    elif form in ("name", "status"):
        values.setdefault(written.field, vocab.local_name(plain))
    elif form in ("memory", "entry"):
        values.setdefault(written.field, []).append(plain)
    else:  # evidence and alternatives
        values.setdefault(written.field, []).append(label_of.get(value, plain))


def object_of(term: Term) -> dict[str, str]:
    """Return a term in the object form of extra triples."""
    if is_iri(term):
        return {"@id": plain_value(term)}
    text, datatype, language = parse_literal(term)
    return {"@value": text, "@language": language} if language else {"@value": text, "@type": datatype}


def _confidence(values: dict[str, Any], rows: Iterable[Triple]) -> None:
    """Set the exact confidence if there is one, else the level."""
    values_by_property = {predicate: value for _, predicate, value in rows}
    if (exact := values_by_property.get(jido("confidenceValue"))) is not None:
        values["confidence"] = float(parse_literal(exact).text)
    elif (level := values_by_property.get(jido("hasConfidence"))) is not None:
        values["confidence"] = vocab.local_name(level).lower()


SINGLE_VALUED = frozenset(
    jido(each.name)
    for each in FIELD_PROPERTIES.values()
    if each.form in ("text", "moment", "iri", "name", "status", "confidence") and each.name not in _MAY_REPEAT
)


ENDED = ("Closed", "Abandoned")


def next_review(old: Mapping[str, Any], view: WriteSnapshot, now: datetime, command: str) -> str:
    """Return the moment of the next review: as long from now as it was from the last look at the memory to its review.

    A task keeps its deadline. Raises InvalidRequest if `needs_review_date`; *command* with a date confirms it then.
    """
    item, due = iri(old["iri"]), old["expires_on"]
    is_task = view.first(item, jido("hasTaskStatus")) is not None
    if needs_review_date(item, view, now):
        raise InvalidRequest(
            f"it was due by {due}" if is_task else f"its review was due on {due}, before its own date",
            hint=f"give the {'new date' if is_task else 'date of the next review'}: {command} --set expires_on=DATE",
        )
    return due if is_task else format_timestamp(now + _review_interval(old, view))


def _review_interval(old: Mapping[str, Any], view: WriteSnapshot) -> timedelta:
    """Return the time from the last look at a memory to its review.

    The last look was at the memory's timestamp, or at its recording if it carries on the timestamp of an earlier
    memory.
    """
    since, due = parse_moment(old.get("timestamp")), parse_moment(old["expires_on"])
    replaced = [*old.get("supersedes", ()), *old.get("revives", ())]
    times = {moment_in(time) for each in replaced for time in view.objects(iri(each), jido("hasTimestamp"))}
    if since in times:
        since = view.recorded_at(iri(old["iri"])) or since
    return due - since if since and due else timedelta()


def needs_review_date(item: Term, view: WriteSnapshot, now: datetime) -> bool:
    """Return whether *item* is confirmed or accepted only with a date: its review was due before its own date, or it
    is an open task and overdue.
    """
    due, status = view.first(item, jido("expiresOn")), view.first(item, jido("hasTaskStatus"))
    if due is None:
        return False
    if status is not None:
        moment = moment_in(due)
        return moment is not None and is_due(moment, now, is_task=True) and status not in map(jido, FINISHED)
    return _review_interval(restated_in(view, plain_value(item)), view) <= timedelta()


def session_state(session: Term, view: WriteSnapshot) -> str | None:
    """Return the status of a session, by its newest event, else by its declaration; None for an unknown session."""
    newest = (0, view.first(session, jido("hasStatus")))
    for event in view.subjects(jido("ofSession"), session):
        status = view.first(event, jido("toStatus"))
        if status is not None:
            newest = max(newest, (_number(event, view), status))
    return vocab.local_name(newest[1]) if newest[1] else None


def session_opening(
    session: Term, project: Term, agent: Term, at: str, *, continues: Term | None, view: WriteSnapshot
) -> list[Triple]:
    """Return the triples that open *session* at *at*; raises IntentRefused if it exists, NotFound for *continues*."""
    if view.describes(session):
        raise IntentRefused(
            [Violation("iri_exists", f"{session[1:-1]} was opened already", field="name", value=session[1:-1])],
            hint="choose another name, or move this one with: jidomem agent session phase|pause|resume|close",
        )
    triples = session_stub(session, project, agent, at)
    if continues is not None:
        if not view.describes(continues):
            raise NotFound(f"no session {continues[1:-1]}", hint="list them with: jidomem agent session list")
        triples += [(session, jido("continuesSession"), continues), (session, jido("hasPreviousSession"), continues)]
    return triples


def session_event(
    session: Term, agent: Term, at: str, *, status: str | None = None, phase: str | None = None, view: WriteSnapshot
) -> list[Triple]:
    """Return the event that gives *session* a status or a phase, and its end if the status ends it.

    Raises NotFound for an unknown session, IntentRefused for one that has ended.
    """
    now = session_state(session, view)
    if now is None:
        raise NotFound(f"no session {session[1:-1]}", hint="open it with: jidomem agent session start NAME")
    if now in ENDED:
        raise IntentRefused(
            [Violation("shape_violation", f"{session[1:-1]} has ended ({now})", field="session", value=session[1:-1])],
            hint="open a new one with: jidomem agent session start NAME --continues " + vocab.local_name(session),
        )
    number = 1 + max((_number(e, view) for e in view.subjects(jido("ofSession"), session)), default=0)
    event = iri(f"{session[1:-1]}/events/{number}")
    triples = [
        (event, TYPE, jido("SessionEvent")),
        (event, jido("ofSession"), session),
        (event, jido("eventNumber"), integer(number)),
        (event, jido("causedBy"), agent),
    ]
    if status is not None:
        triples.append((event, jido("toStatus"), jido(status)))
        if status in ENDED:
            started = view.first(session, jido("startedAt"))  # it may be later than the present: an agent may give it
            ended = max(at, moment(plain_value(started)) or at) if started else at
            triples.append((session, jido("endedAt"), date_time(ended)))
    if phase is not None:
        triples.append((event, jido("toPhase"), jido(phase)))
    return triples


def phase_of(name: str) -> str:
    """Return the phase that *name* (`review`, `ReviewPhase`) stands for; raises IntentRefused with the nearest one."""
    return _one_of("phase", name, {phase.removesuffix("Phase"): phase for phase in vocab.SESSION_PHASE})


def status_of(name: str) -> str:
    """Return the status that *name* (`paused`, `Paused`) stands for; raises IntentRefused with the nearest one."""
    return _one_of("status", name, {status: status for status in vocab.SESSION_STATUS})


def _one_of(field: str, name: str, known: Mapping[str, str]) -> str:
    """Return the value of *known* whose key or value is *name* in any spelling; raises IntentRefused."""
    forms = {letters_and_digits(form): value for short, value in known.items() for form in (short, value)}
    found = forms.get(letters_and_digits(name))
    if found is None:
        allowed = tuple(known.values())
        near = nearest(name, allowed)
        message = f"{field} is one of {', '.join(allowed)}, not {name!r}"
        repair = put(field, near) if near else None
        raise IntentRefused(
            [
                Violation(
                    "shape_violation", message, field=field, value=name, allowed=allowed, nearest=near, repair=repair
                )
            ]
        )
    return found


def _number(event: Term, view: WriteSnapshot) -> int:
    term = view.first(event, jido("eventNumber"))
    return int(parse_literal(term).text) if term else 0
