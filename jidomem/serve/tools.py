"""The tools an agent is offered over MCP, each of which does what the verb of that name does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jidomem.active import STATUSES
from jidomem.errors import IntentRefused, InvalidRequest, JidomemError, NotFound
from jidomem.govern.nearness import SHOWN
from jidomem.govern.recalled import markdown
from jidomem.intent import FIELDS
from jidomem.query import snake
from jidomem.read import Playbook
from jidomem.read.counts import counts, kept, pending
from jidomem.read.tables import plain
from jidomem.serve.desk import Desk
from jidomem.serve.tool import SET_BY_SERVER, Arguments, Told, Tool

#: How many rows a question is answered with, unless said otherwise: they are read by a model.
ROWS = 50
#: How many tokens of briefing the first recall of a client begins with that was not briefed.
OPENING = 600
_TEXT, _TRUTH, _WHOLE, _OBJECT = ({"type": kind} for kind in ("string", "boolean", "integer", "object"))
_TEXTS = {"type": "array", "items": _TEXT}
_LIST = {"type": "array"}
_MAYBE = {"type": ["string", "null"]}
_NAMED = ("type", "topic", "about", "rationale", "confidence", "evidence", "supersedes", "coexists_with")


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the intent that the arguments of `remember` are, but for its summary."""
    more = given.get("fields", {})
    for name in (*SET_BY_SERVER, "summary"):
        if name in more:
            hint = "give it as text" if name == "summary" else f"leave out {name}"
            raise InvalidRequest(f"{name} is not set here: the server works it out", hint=hint)
    for name in _NAMED:
        if name in more and name in given:
            raise InvalidRequest(f"{name} is given twice", hint="leave it out of fields")
    return {**more, **{name: given[name] for name in _NAMED if name in given}}


def _as_arguments(intent: Mapping[str, Any]) -> Arguments:
    """Return an intent as arguments of `remember`."""
    named = {name: intent[name] for name in _NAMED if name in intent}
    rest = {name: value for name, value in intent.items() if name not in (*_NAMED, *SET_BY_SERVER, "summary")}
    return {"text": intent.get("summary", ""), **named, **({"fields": rest} if rest else {})}


def _mended(given: Arguments, error: JidomemError) -> Arguments | None:
    """Return the arguments that put a mistake of form right; a contradiction is for the agent to decide."""
    if astray := [name for name in given if name not in REMEMBER.takes]:
        is_all = all(violation.field in (*astray, "text") for violation in error.violations)
        return _put_right(given, astray) if is_all else None
    if isinstance(error, IntentRefused) and error.fixed_intent:
        return _as_arguments(error.fixed_intent)
    return None


def _put_right(given: Arguments, astray: list[str]) -> Arguments | None:
    """Return arguments with those *astray* among the further fields, where all are fields of an intent."""
    more = given.get("fields", {})
    if not (isinstance(more, dict) and all(name in FIELDS and name not in (*SET_BY_SERVER, *more) for name in astray)):
        return None
    rest = {name: value for name, value in given.items() if name in REMEMBER.takes}
    moved = {name: given[name] for name in astray if name != "summary"}
    text = given.get("text", given.get("summary"))
    return None if text is None else {**rest, "text": text, **({"fields": {**more, **moved}} if moved else {})}


def _remember(desk: Desk, given: Arguments) -> Told:
    dry_run, fields = given.get("dry_run", False), _fields(given)
    who = desk.who() if dry_run else desk.begin()
    values = desk.kept(desk.writer.remember(desk.project, given["text"], dry_run=dry_run, **who, **fields)).to_dict()
    if values["status"] != "deduplicated":
        values["filled"] = {"applies_to_project": desk.project, **who, **values["filled"]}
    return Told(values)


REMEMBER = Tool(
    "remember",
    "Keep one thing in the project's governed memory. Text alone is a fact of medium confidence. Nothing is"
    " overwritten: name in supersedes what it replaces. A refusal says what to call; a contradiction you decide.",
    {
        "text": {**_TEXT, "description": "The memory in one sentence."},
        "type": {
            **_TEXT,
            "description": "fact, decision (needs rationale), convention, task, error, lesson_learned, risk,"
            " assumption, hypothesis, discovery, unknown",
        },
        "rationale": {**_TEXT, "description": "Needed to replace another agent's."},
        "topic": {**_TEXT, "description": "Of a decision or fact, a phrase; facts: compared with about."},
        "about": {**_TEXTS, "description": "Files and things it concerns."},
        "confidence": {"type": ["string", "number"], "description": "low, medium, high or 0..1"},
        "evidence": _TEXTS,
        "supersedes": {**_TEXTS, "description": "Ids it replaces."},
        "coexists_with": {**_TEXTS, "description": "Ids it stands beside; give about."},
        "fields": {
            **_OBJECT,
            "description": "More, such as status, severity, assigned_to, expires_on, enforcement_level",
        },
        "dry_run": _TRUTH,
    },
    {"iri": _TEXT, "status": _TEXT, "version": _TEXT, "filled": _OBJECT, "conflicts": _LIST, "warnings": _LIST},
    _remember,
    required=("text",),
    always=("iri", "status"),
    reads=False,
    mend=_mended,
)


def _mended_revision(given: Arguments, error: JidomemError) -> Arguments | None:
    asked = given.get("set", {})
    if isinstance(error, IntentRefused) and error.fixed_intent:
        fixed = {name: error.fixed_intent.get(name) for name in asked}
        return {**given, "set": fixed} if None not in fixed.values() and fixed != asked else None
    return None


def _revise(desk: Desk, given: Arguments) -> Told:
    memory = desk.memory
    ways = {name: given[name] for name in ("supersede", "invalidate", "confirm", "undo", "reason") if name in given}
    changes = given.get("set", {})
    for name in (*SET_BY_SERVER, "reason"):
        if name in changes:
            hint = "give it beside set" if name == "reason" else f"leave out {name}"
            raise InvalidRequest(f"{name} is not set here", hint=hint)
    item, dry_run = memory.reader.resolve(desk.project, given["id"]), given.get("dry_run", False)
    receipt = desk.writer.correct(desk.project, item, changes=changes, dry_run=dry_run, who=desk.who(), **ways)
    return Told(desk.kept(receipt).to_dict())


def _why(desk: Desk, given: Arguments) -> Told:
    return Told(plain(desk.memory.reader.why(desk.project, given["id"], as_of=given.get("as_of"))))


def _recall(desk: Desk, given: Arguments) -> Told:
    asked = dict(given)
    result = desk.memory.recall(asked.pop("query"), agent_id=desk.agent, **asked)
    values, text = plain(result.to_dict()), markdown(result, show="why {}")
    if not desk.is_briefed:
        text = f"{_briefing(desk, {'budget_tokens': OPENING}).text}\n{text}"
    return Told(values, text)


def _briefing(desk: Desk, given: Arguments) -> Told:
    desk.is_briefed = True
    told = desk.memory.briefing(agent=desk.agent, **given).for_tools()
    return Told(plain(told.to_dict()), told.text)


def _ask(desk: Desk, given: Arguments) -> Told:
    memory, asked = desk.memory, dict(given)
    name, params = asked.pop("name", None), asked.pop("params", {})
    if name is None:
        if asked or params:
            raise InvalidRequest("the list of questions is given whole", hint="name a question, such as open-tasks")
        return Told({"questions": playbook(desk)})
    for taken in ("name", "self", "project", *(each for each in ASK.takes if each != "params")):
        if taken in params:
            raise InvalidRequest(f"{taken} is no parameter of a question", hint=f"give {taken} beside params")
    limit = SHOWN if name == "governing" else ROWS
    page = memory.reader.ask_page(name, project=desk.project, **{"limit": limit, **asked}, **params)
    values = {"rows": plain(page.rows), "cursor": page.cursor}
    if name == "governing":
        moment = {key: asked[key] for key in ("as_of", "include_inactive") if key in asked}
        values |= memory.governing_answer(params["file"], project=desk.project, **moment).to_dict()
    return Told(values)


def playbook(desk: Desk) -> list[dict[str, str]]:
    """Return the questions that can be asked by name, each with its parameters."""
    return [
        {"name": query.name, "answers": query.summary, "params": " ".join(map(str, query.params))}
        for query in desk.memory.playbook
    ]


def _mended_question(given: Arguments, error: JidomemError) -> Arguments | None:
    """Return the arguments with those that are parameters of the question among `params`."""
    astray = [name for name in given if name not in ASK.takes]
    try:
        query = Playbook().get(str(given.get("name")))
    except NotFound:
        return None
    known = {snake(param.name) for param in query.params}
    params = given.get("params", {})
    if not astray or not isinstance(params, dict) or not all(name in known for name in astray):
        return None
    if {violation.field for violation in error.violations} - {*astray}:
        return None
    rest = {name: value for name, value in given.items() if name in ASK.takes}
    return {**rest, "params": {**params, **{name: given[name] for name in astray}}}


def _status(desk: Desk, given: Arguments) -> Told:
    memory, project = desk.memory, desk.project
    version = memory.catch_up(project)
    held = counts(memory.reader, project)
    return Told({
        "project": project,
        "root": memory.settings.place,
        "agent": desk.agent,
        "version": str(version),
        "last_commit": version.recorded_at or None,
        "counts": held,
        "history": kept(memory.reader, project),
        "waiting": pending(memory.reader, project),
        "damage": [error.to_dict() for error in memory.damage(project)],
        "ontology_version": memory.schema.version,
    })  # fmt: skip


_ID = {**_TEXT, "description": "IRI or short id."}
_AS_OF = {**_TEXT, "description": "As known at this ISO moment."}
ASK = Tool(
    "ask",
    "Answer a named question, such as open-tasks, recent-decisions, conventions, facts-about (params topic);"
    f" {ROWS} rows by default. Without a name: list the questions.",
    {
        "name": _TEXT,
        "params": _OBJECT,
        "limit": _WHOLE,
        "cursor": {**_TEXT, "description": "From the page before."},
        "as_of": _AS_OF,
        "include_inactive": _TRUTH,
        "status": {"enum": [*STATUSES]},
    },
    {"rows": _LIST, "cursor": _MAYBE, "questions": _LIST},
    _ask,
    mend=_mended_question,
)
TOOLS: tuple[Tool, ...] = (
    REMEMBER,
    Tool(
        "revise",
        "Correct a memory by a further one, in one way: supersede (the true text), invalidate (needs"
        " reason), confirm, undo, or set fields such as a task's status.",
        {
            "id": _ID,
            "supersede": _TEXT,
            "invalidate": _TRUTH,
            "confirm": _TRUTH,
            "undo": _TRUTH,
            "set": {**_OBJECT, "description": 'Such as {"status": "Completed"}.'},
            "reason": _TEXT,
            "dry_run": _TRUTH,
        },
        {"iri": _TEXT, "status": _TEXT, "version": _TEXT, "conflicts": _LIST, "warnings": _LIST},
        _revise,
        required=("id",),
        always=("iri", "status"),
        reads=False,
        same=False,
        mend=_mended_revision,
    ),
    Tool(
        "recall",
        "Find active memories by words, best first.",
        {
            "query": _TEXT,
            "limit": _WHOLE,
            "kinds": {**_TEXTS, "description": 'Such as ["decision"]; "turn", "entry", "page": what was said.'},
            "about": {**_TEXTS, "description": "Files that rank higher."},
            "agent": _TEXT,
            "since": _TEXT,
            "budget_tokens": _WHOLE,
            "as_of": _AS_OF,
            "include_inactive": _TRUTH,
        },
        {"entries": _LIST, "metadata": _OBJECT, "inactive": _OBJECT},
        _recall,
        required=("query",),
        always=("entries", "metadata"),
    ),
    Tool(
        "why",
        "Tell who said a memory, when and on what evidence, what it replaced and what replaced it.",
        {"id": _ID, "as_of": _AS_OF},
        {"iri": _TEXT, "status": _TEXT, "summary": _TEXT, "evidence": _LIST},
        _why,
        required=("id",),
        always=("iri", "status", "evidence"),
    ),
    Tool(
        "briefing",
        "What to know before starting: binding rules, open tasks and errors, decisions, news.",
        {
            "about": {**_TEXTS, "description": "Files you will work on."},
            "task": _TEXT,
            "role": _TEXT,
            "budget_tokens": _WHOLE,
            "as_of": _AS_OF,
        },
        {"text": _TEXT, "tokens": _WHOLE, "sections": _LIST},
        _briefing,
        always=("text", "sections"),
    ),
    ASK,
    Tool(
        "status",
        "Which memory this is, what it holds, if it is sound.",
        {},
        {"project": _TEXT, "agent": _TEXT, "version": _TEXT, "counts": _OBJECT, "damage": _LIST},
        _status,
        always=("project", "agent", "version", "counts", "damage"),
    ),
)  # fmt: skip
