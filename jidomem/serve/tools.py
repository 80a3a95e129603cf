"""The tools an agent is offered over MCP: what each takes and gives, and what it does at a desk."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from jidomem.errors import Conflict, IntentRefused, InvalidRequest, JidomemError
from jidomem.govern.quoted import visible
from jidomem.govern.recalled import markdown
from jidomem.read.counts import counts
from jidomem.read.tables import plain
from jidomem.serve.desk import Desk

Schema = Mapping[str, Any]
#: How many rows a question is answered with, unless said otherwise: they are read by a model.
ROWS = 50
#: How many tokens of briefing the first recall of a client begins with that was not briefed.
OPENING = 600
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "number": (int, float),
}  # fmt: skip
_TEXT, _TRUTH, _WHOLE, _OBJECT = ({"type": kind} for kind in ("string", "boolean", "integer", "object"))
_TEXTS = {"type": "array", "items": _TEXT}
_LIST = {"type": "array"}
_MAYBE = {"type": ["string", "null"]}


@dataclass(frozen=True, slots=True)
class Told:
    """The answer of a tool: its values, and the text where that is not the values themselves."""

    values: Mapping[str, Any]
    text: str | None = None
    is_error: bool = False

    def words(self) -> str:
        """Return the text of the answer, in which nothing hides."""
        return self.text if self.text is not None else visible(_json(self.values))


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: the schemas of its arguments and of its values by name, and what answers it.

    `reads` says that it changes nothing, `same` that doing it again changes nothing more.
    """

    name: str
    description: str
    takes: Schema
    gives: Schema
    does: Callable[[Desk, dict[str, Any]], Told]
    required: tuple[str, ...] = ()
    always: tuple[str, ...] = field(default=())
    reads: bool = True
    same: bool = True

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return {**_object(self.takes, self.required), "additionalProperties": False}

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its values."""
        return _object(self.gives, self.always)


def _object(properties: Schema, required: tuple[str, ...]) -> dict[str, Any]:
    found = {"type": "object", "properties": dict(properties)}
    return {**found, "required": list(required)} if required else found


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def call(tool: Tool, desk: Desk, given: dict[str, Any]) -> Told:
    """Return what *tool* answers; a refusal is an answer, too, with what to call instead where that is known."""
    try:
        _check(tool, given)
        return tool.does(desk, given)
    except JidomemError as error:
        return _refused(tool, desk, given, error)


def _check(tool: Tool, given: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for an argument that is unknown, missing, or of another type."""
    for name, value in given.items():
        if name not in tool.takes:
            near = get_close_matches(name, tool.takes, n=1, cutoff=0.5)
            known = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(tool.takes) or 'none'}"
            raise InvalidRequest(f"{tool.name} takes no argument {name!r}", hint=known)
        _check_type(name, value, tool.takes[name])
    for name in tool.required:
        if name not in given:
            raise InvalidRequest(f"{tool.name} needs {name}", hint=f"give {name}")


def _check_type(name: str, value: Any, schema: Schema) -> None:
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not any(isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        raise InvalidRequest(f"{name} is no {' or '.join(kinds)}", hint=f"give {name} as {' or '.join(kinds)}")
    if isinstance(value, list):
        for entry in value:
            _check_type(f"an entry of {name}", entry, schema["items"])
    for part in schema.get("required", ()):
        if part not in value:
            raise InvalidRequest(f"{name} has no {part}", hint=f"give {', '.join(schema['required'])}")
        _check_type(f"{part} of {name}", value[part], schema["properties"][part])


def _refused(tool: Tool, desk: Desk, given: dict[str, Any], error: JidomemError) -> Told:
    """Return a refusal: the values every door shows, and `retry`, the arguments that would put it right."""
    values, retry = error.to_dict(), _retry(tool, given, error)
    lines = [f"refused ({error.code}): {error.detail}"]
    if retry is not None:
        values["retry"] = retry
        lines.append(f"call {tool.name} with: {_json(retry)}")
    elif error.hint:
        lines.append(f"hint: {error.hint}")
    for conflict in values.get("conflicts", ()):
        lines.append(
            f"- {conflict['kind']} with {conflict['iri']}: {json.dumps(conflict['summary'], ensure_ascii=False)}"
        )
        lines.append(f"  to settle it add: {json.dumps(conflict['resolve_with'], ensure_ascii=False)}")
    for violation in values.get("violations", ()) if retry is None else ():
        allowed = f" (allowed: {', '.join(violation['allowed'])})" if violation["allowed"] else ""
        lines.append(f"- {violation['message']}{allowed}")
    return Told(values, visible("\n".join(lines)), is_error=True)


def _retry(tool: Tool, given: dict[str, Any], error: JidomemError) -> dict[str, Any] | None:
    if tool is not REMEMBER:
        return None
    if isinstance(error, IntentRefused) and error.fixed_intent:
        return _as_arguments(error.fixed_intent)
    if isinstance(error, Conflict) and len(error.conflicts) == 1 and error.conflicts[0].resolve_with:
        return _as_arguments({**_fields(given), "summary": given["text"], **error.conflicts[0].resolve_with})
    return None


# -- remember ----------------------------------------------------------------------------------------------------------

#: Fields of an intent that the server works out, and one that has a name of its own here.
_WORKED_OUT = ("applies_to_project", "asserted_by", "asserted_in")
_NAMED = ("type", "topic", "about", "rationale", "confidence", "evidence", "supersedes", "coexists_with")


def _fields(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the intent that the arguments of `remember` are, but for its summary."""
    more = given.get("fields", {})
    for name in (*_WORKED_OUT, "summary"):
        if name in more:
            hint = "give it as text" if name == "summary" else f"leave out {name}"
            raise InvalidRequest(f"{name} is not set here: the server works it out", hint=hint)
    for name in _NAMED:
        if name in more and name in given:
            raise InvalidRequest(f"{name} is given twice", hint="leave it out of fields")
    return {**more, **{name: given[name] for name in _NAMED if name in given}}


def _as_arguments(intent: Mapping[str, Any]) -> dict[str, Any]:
    """Return an intent as arguments of `remember`."""
    named = {name: intent[name] for name in _NAMED if name in intent}
    rest = {name: value for name, value in intent.items() if name not in (*_NAMED, *_WORKED_OUT, "summary")}
    return {"text": intent.get("summary", ""), **named, **({"fields": rest} if rest else {})}


def _remember(desk: Desk, given: dict[str, Any]) -> Told:
    memory, dry_run = desk.memory, given.get("dry_run", False)
    fields, who = memory.reader.with_whole_ids(desk.project, _fields(given)), desk.who()
    values = desk.kept(memory.writer.remember(desk.project, given["text"], dry_run=dry_run, **who, **fields)).to_dict()
    return Told({**values, "filled": {"applies_to_project": desk.project, **who, **values["filled"]}})


REMEMBER = Tool(
    "remember",
    "Keep one thing in the project's governed memory. With text alone it is a fact of medium confidence. Nothing is"
    " overwritten: name in supersedes what it replaces. A refusal says what to call instead.",
    {
        "text": {**_TEXT, "description": "The memory in one sentence."},
        "type": {
            **_TEXT,
            "description": "fact, decision (needs rationale), convention, task, error, lesson_learned, risk,"
            " assumption, hypothesis, discovery, unknown",
        },
        "rationale": _TEXT,
        "topic": {**_TEXT, "description": "What a decision or fact is about, in a phrase; same topics are compared."},
        "about": {**_TEXTS, "description": "Files, modules, things it concerns."},
        "confidence": {"type": ["string", "number"], "description": "low, medium, high or 0..1"},
        "evidence": _TEXTS,
        "supersedes": {**_TEXTS, "description": "Ids it replaces."},
        "coexists_with": _TEXTS,
        "fields": {
            **_OBJECT,
            "description": "Further fields: status, severity, assigned_to, expires_on, enforcement_level, ...",
        },
        "dry_run": _TRUTH,
    },
    {"iri": _TEXT, "status": _TEXT, "version": _TEXT, "filled": _OBJECT, "conflicts": _LIST, "warnings": _LIST},
    _remember,
    required=("text",),
    always=("iri", "status"),
    reads=False,
)


# -- the others --------------------------------------------------------------------------------------------------------


def _revise(desk: Desk, given: dict[str, Any]) -> Told:
    memory = desk.memory
    ways = {name: given[name] for name in ("supersede", "invalidate", "confirm", "undo", "reason") if name in given}
    changes = memory.reader.with_whole_ids(desk.project, given.get("set", {}))
    for name in (*_WORKED_OUT, "reason"):
        if name in changes:
            hint = "give it beside set" if name == "reason" else f"leave out {name}"
            raise InvalidRequest(f"{name} is not set here", hint=hint)
    item, dry_run = memory.reader.resolve(desk.project, given["id"]), given.get("dry_run", False)
    receipt = memory.writer.correct(desk.project, item, changes=changes, dry_run=dry_run, who=desk.who(), **ways)
    return Told(desk.kept(receipt).to_dict())


def _why(desk: Desk, given: dict[str, Any]) -> Told:
    return Told(plain(desk.memory.reader.why(desk.project, given["id"], as_of=given.get("as_of"))))


def _recall(desk: Desk, given: dict[str, Any]) -> Told:
    asked = dict(given)
    result = desk.memory.recall(asked.pop("query"), agent_id=desk.agent, **asked)
    values, text = plain(result.to_dict()), markdown(result)
    if not desk.is_briefed:
        text = f"{_briefing(desk, {'budget_tokens': OPENING}).text}\n{text}"
    return Told(values, text)


def _briefing(desk: Desk, given: dict[str, Any]) -> Told:
    desk.is_briefed = True
    told = desk.memory.briefing(agent=desk.agent, **given)
    return Told(plain(told.to_dict()), told.text)


def _ask(desk: Desk, given: dict[str, Any]) -> Told:
    memory, asked = desk.memory, dict(given)
    name, params = asked.pop("name", None), asked.pop("params", {})
    if name is None:
        if asked or params:
            raise InvalidRequest("the list of questions is given whole", hint="name a question, such as open-tasks")
        return Told({"questions": playbook(desk)})
    for taken in ("name", "self", "project", *(each for each in ASK.takes if each != "params")):
        if taken in params:
            raise InvalidRequest(f"{taken} is no parameter of a question", hint=f"give {taken} beside params")
    page = memory.reader.ask_page(name, project=desk.project, **{"limit": ROWS, **asked}, **params)
    return Told({"rows": plain(page.rows), "cursor": page.cursor})


def playbook(desk: Desk) -> list[dict[str, str]]:
    """Return the questions that can be asked by name, each with its parameters."""
    return [
        {"name": query.name, "answers": query.summary, "params": " ".join(map(str, query.params))}
        for query in desk.memory.playbook
    ]


def _status(desk: Desk, given: dict[str, Any]) -> Told:
    memory, project = desk.memory, desk.project
    version = memory.catch_up(project)
    held = counts(memory.reader, project)
    return Told({
        "project": project,
        "root": str(memory.settings.root),
        "agent": desk.agent,
        "version": str(version),
        "last_commit": version.recorded_at or None,
        "counts": held,
        "waiting": sum(states.get("proposed", 0) for states in held.values()),
        "damage": [error.to_dict() for error in memory.damage(project)],
        "ontology_version": memory.schema.version,
    })  # fmt: skip


_ID = {**_TEXT, "description": "IRI or short id."}
_AS_OF = {**_TEXT, "description": "As known at this ISO moment."}
ASK = Tool(
    "ask",
    "Answer a named question, such as open-tasks, recent-decisions, conventions, facts-about (params topic);"
    f" {ROWS} rows unless limit says otherwise. Without a name: list the questions.",
    {
        "name": _TEXT,
        "params": _OBJECT,
        "limit": _WHOLE,
        "cursor": {**_TEXT, "description": "From the page before."},
        "as_of": _AS_OF,
        "include_inactive": {**_TRUTH, "description": "Superseded, withdrawn and proposed, too."},
    },
    {"rows": _LIST, "cursor": _MAYBE, "questions": _LIST},
    _ask,
)
TOOLS: tuple[Tool, ...] = (
    REMEMBER,
    Tool(
        "revise",
        "Correct a memory by a further one, in one way: supersede (the text that is true instead), invalidate (needs"
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
    ),
    Tool(
        "recall",
        "Find memories by words, the best first; what is no longer in force is left out.",
        {
            "query": _TEXT,
            "limit": _WHOLE,
            "kinds": {**_TEXTS, "description": 'Such as ["decision"].'},
            "about": {**_TEXTS, "description": "Files that rank higher."},
            "budget_tokens": _WHOLE,
            "as_of": _AS_OF,
            "include_inactive": _TRUTH,
        },
        {"entries": _LIST, "metadata": _OBJECT},
        _recall,
        required=("query",),
        always=("entries", "metadata"),
    ),
    Tool(
        "why",
        "Explain a memory: who said it when and on what evidence, what it replaced and what replaced it.",
        {"id": _ID, "as_of": _AS_OF},
        {"iri": _TEXT, "status": _TEXT, "summary": _TEXT, "evidence": _LIST},
        _why,
        required=("id",),
        always=("iri", "status", "evidence"),
    ),
    Tool(
        "briefing",
        "What to know before starting: strict conventions, open tasks and errors, decisions, what is new.",
        {
            "about": {**_TEXTS, "description": "Files you will work on."},
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
        "Which memory this is, what it holds, and whether it is sound.",
        {},
        {"project": _TEXT, "agent": _TEXT, "version": _TEXT, "counts": _OBJECT, "damage": _LIST},
        _status,
        always=("project", "agent", "version", "counts", "damage"),
    ),
)  # fmt: skip
