"""The session of an MCP client: its agent, the work session of the memories it asserts, and its calls of tools.

`Tool` has the schemas of its input and output; `call` checks the arguments of a call, and reports refusals with the
arguments that would be accepted.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Lock, RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from jidomem.base.words import escape_in_json, misspelling_of, slug
from jidomem.errors import Conflict, InvalidRequest, JidomemError, PolicyDenied, Violation, nearest_names
from jidomem.records.active import REASON
from jidomem.records.intent import FIELD_ALIASES, INTENT_FIELDS, Receipt
from jidomem.runtime.agent_memory import AgentMemory
from jidomem.runtime.logs import GuardLog
from jidomem.runtime.root import Jidomem
from jidomem.runtime.user_config import ApiToken
from jidomem.serve.wire import for_callers, for_tools

if TYPE_CHECKING:
    from jidomem.extras.memoryos.memory_os import MemoryOS

Schema = Mapping[str, Any]
Arguments = dict[str, Any]
#: The fields of an intent that the server sets from the session of the client.
SET_BY_SERVER = ("applies_to_project", "asserted_by", "asserted_in")
#: Names that agents give to arguments -> the argument meant, where a tool has it.
_ALIASES: Mapping[str, str] = {
    name: argument
    for argument, names in (
        ("id", "iri memory memory_id"),
        ("query", "q text question search words"),
        ("limit", "top_k k n max_results count"),
        ("about", "file files path paths"),
        ("kinds", "types"),
    )
    for name in names.split()
}
#: The most allowed values that are listed, and how many of a longer list are named.
_MAX_LISTED, _NAMED = 12, 5
#: A field in a hint, unless the hint already says where it belongs.
_FIELD = re.compile(r"`([a-z_]+)`(?! in `)")
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "number": (int, float),
}  # fmt: skip
#: The time within which a client starts this server and gives its agent a briefing.
_STARTING = timedelta(minutes=5)
#: The time without a call after which a client over HTTP counts as disconnected, as in the SDK.
_IDLE = timedelta(minutes=30)


class ClientSession:
    """One agent of one memory. Its work session starts with the first write, and ends when the client disconnects."""

    def __init__(
        self,
        memory: Jidomem,
        agent: str,
        session: str | None = None,
        *,
        is_named: bool = False,
        caller: ApiToken | None = None,
        since: datetime | None = None,
        log_fault: Callable[[JidomemError, str], None] = lambda error, agent: None,
        log_commit: Callable[[str, ApiToken], None] = lambda commit, caller: None,
        holders: Callable[[], Collection[str]] = tuple,
    ) -> None:
        """Work for *agent*, whose name was given by the operator if *is_named*, or for the *caller*.

        A *session* given by the operator is neither opened nor closed here. With a briefing of its client after *since*
        the agent gets no other one. *log_fault* logs an error of which the
        caller is told the code only, *log_commit* a commit of the caller. *holders* returns the agents with a token.
        """
        self.memory = memory
        own = memory.writer
        if caller is None:
            self.writer = own.speaking_for(agent)
        else:
            self.writer = own.acting_as(
                caller.agent, caller.role, lambda commit: log_commit(commit, caller), holders=holders
            )
        self.agent = agent
        self._caller, self._is_named, self._log_fault = caller, is_named, log_fault
        log = memory.read_log
        #: Whether the agent has a briefing, of this session or of its client.
        self.is_briefed = (
            log is not None and since is not None and GuardLog(log, memory.project).is_briefed(agent, since)
        )
        self._session = session
        self._is_ours = session is None
        self._is_open = False
        self._note = memory.settings.own_note
        self._lock = Lock()

    @property
    def project(self) -> str:
        """Return the project of the session."""
        return self.memory.project

    def check_writes(self) -> None:
        """Raise PolicyDenied if the token of the caller is read-only."""
        if self._caller is not None:
            self._caller.check_writes()

    def check_own(self, agent: str, action: str, field: str) -> None:
        """Raise PolicyDenied as `ApiToken.check_own`; never without tokens."""
        if self._caller is not None:
            self._caller.check_own(agent, action, field)

    def shown(self, error: JidomemError) -> JidomemError:
        """Return *error* as the client may see it: one with a token without paths and commands of this machine."""
        shown = error if self._caller is None else for_callers(error, self.memory.place.name)
        if shown is not error:
            self._log_fault(error, self.agent)
        return shown

    def author(self) -> dict[str, str]:
        """Return author and session; raise PolicyDenied for a client that names itself as a curator."""
        if not self._is_named and self.writer.is_curator(self.project, self.agent):
            raise PolicyDenied(
                f"{self.agent} is a curator of {self.project}, and the name of a client does not prove that it is one",
                hint=f"start the server in a shell as: jidomem mcp --agent {self.agent};"
                " or, for another agent, with its name",
            )
        return {"asserted_by": self.agent, "asserted_in": self._name()}

    def working(self) -> AgentMemory:
        """Return the working memory; raise PolicyDenied as `author` does."""
        return self.memory.agent(self.author()["asserted_by"], project=self.project)

    def dialogue(self) -> MemoryOS:
        """Return the tiers of the agent; raises PolicyDenied as `working` does."""
        return self.memory.os(self.author()["asserted_by"], project=self.project)

    def begin(self) -> dict[str, str]:
        """Return author and session of a write, as `author`; in a strict project this opens the session first."""
        author = self.author()
        if self._is_ours and not self._is_open and self.memory.settings.policy.strict:
            with self._lock:
                if not self._is_open:
                    self.writer.start_session(self.project, author["asserted_in"], agent=self.agent)
                    self._is_open = True
        return author

    def record(self, receipt: Receipt) -> Receipt:
        """Return *receipt*; if it wrote, the session counts as open.

        The first one warns if the memory is the user's own, as the project has none.
        """
        if receipt.commit is None or receipt.status == "deduplicated":
            return receipt
        self._is_open = True
        note, self._note = self._note, ""
        return replace(receipt, warnings=(*receipt.warnings, note)) if note else receipt

    def opened(self) -> None:
        """Record that the session is open."""
        self._is_open = True

    def leave(self) -> None:
        """Close the session if it is open; errors go to standard error."""
        if not (self._is_open and self._is_ours):
            return
        self._is_open = False
        try:
            self.writer.move_session(self.project, self._name(), agent=self.agent, status="closed")
        except JidomemError as error:
            sys.stderr.write(f"jidomem: the session {self._name()} stays open: {error.detail}\n")

    def _name(self) -> str:
        with self._lock:
            if self._session is None:
                sources = self.memory.sources
                self._session = f"{self.agent}-{sources.now():%Y-%m-%d-%H%M%S}-{sources.new_id()[-6:]}"
            return self._session


class ClientSessions:
    """The sessions of one process: one for each agent, over HTTP for each agent of each connection."""

    def __init__(self, memory: Jidomem, agent: str | None = None, session: str | None = None) -> None:
        """Serve *memory*; *agent* and *session*, if given, apply to every client."""
        self.memory = memory
        self.log_fault: Callable[[JidomemError, str], None] = lambda error, agent: None
        self.log_commit: Callable[[str, ApiToken], None] = lambda commit, caller: None
        self.holders: Callable[[], Collection[str]] = tuple
        self._agent, self._session = agent, session
        self._sessions: dict[tuple[str, str | None, str | None], tuple[ClientSession, datetime]] = {}
        self._since = memory.sources.now() - _STARTING
        self._lock = RLock()  # a signal handler may close the sessions while its thread holds the lock

    def of(self, client: str | None, caller: ApiToken | None = None, connection: str | None = None) -> ClientSession:
        """Return the session of the *caller*, or, without tokens, of the agent named by the client.

        *connection* is the id of the session of the protocol over HTTP; in the revisions without one, and over standard
        input, an agent has one session.
        """
        if caller is not None:
            return self._client_session(caller.agent, True, caller, connection)
        named = slug(slug(client or "")[:64])
        agent = self._agent or named or self.memory.settings.agent
        return self._client_session(agent, self._agent is not None, None, connection)

    def _client_session(
        self, agent: str, is_named: bool, caller: ApiToken | None, connection: str | None
    ) -> ClientSession:
        key, now = (agent, None if caller is None else caller.digest, connection), self.memory.sources.now()
        with self._lock:
            session, _ = self._sessions.get(key, (None, now))
            if session is None:
                session = ClientSession(
                    self.memory,
                    agent,
                    self._session,
                    is_named=is_named,
                    caller=caller,
                    since=self._since if connection is None else now - _STARTING,
                    log_fault=self.log_fault,
                    log_commit=self.log_commit,
                    holders=self.holders,
                )
            self._sessions[key] = session, now
            return session

    def disconnect(self, connection: str) -> None:
        """Close the sessions of *connection*, which its client ended."""
        self._leave(lambda of, used: of == connection)

    def leave_idle(self) -> None:
        """Close the sessions without a call for a long time: their clients left without a word."""
        since = self.memory.sources.now() - _IDLE
        self._leave(lambda of, used: used < since)

    def leave(self) -> None:
        """Close every session that was opened."""
        self._leave(lambda of, used: True)

    def _leave(self, is_over: Callable[[str | None, datetime], bool]) -> None:
        with self._lock:
            over = [key for key, (_, used) in self._sessions.items() if is_over(key[-1], used)]
            sessions = [self._sessions.pop(key)[0] for key in over]
        for session in sessions:
            session.leave()


class ToolResult(NamedTuple):
    """The result of a tool: its values, and a text if it differs from their JSON."""

    values: Mapping[str, Any]
    text: str | None = None
    is_error: bool = False

    def words(self) -> str:
        """Return the text of the result, with invisible characters escaped."""
        return self.text if self.text is not None else escape_in_json(as_json(self.values))


class Tool(NamedTuple):
    """One tool: the schemas of its arguments and values by name, and its function.

    `required` arguments must be given, `always` values are always present. A tool that `reads` changes nothing; with
    `same`, a repeated call changes nothing more. `repair` returns the arguments that would repair a refusal, if known,
    `instead` those about what is in the place of ended memories that the arguments name.
    """

    name: str
    description: str
    takes: Schema
    gives: Schema
    does: Callable[[ClientSession, Arguments], ToolResult]
    required: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    reads: bool = True
    same: bool = True
    repair: Callable[[Arguments, JidomemError], Arguments | None] = lambda given, error: None
    instead: Callable[[Arguments, Conflict], Arguments] = lambda given, error: {}

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its arguments."""
        return {**_object(self.takes, self.required), "additionalProperties": False}

    def output_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of its values."""
        return _object(self.gives, self.always)


def _object(properties: Schema, required: tuple[str, ...]) -> dict[str, Any]:
    schema = {"type": "object", "properties": dict(properties)}
    return {**schema, "required": list(required)} if required else schema


def as_json(value: Any) -> str:
    """Return plain values as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def call(tool: Tool, session: ClientSession, given: Arguments) -> ToolResult:
    """Return the result of *tool*; a refusal is a result too, with the repaired call if known."""
    try:
        if not tool.reads:
            session.check_writes()
        given = {name: _whole(value, tool.takes.get(name, {})) for name, value in given.items()}
        if faults := [*_faults(tool, given)]:
            return _corrected(tool, session, given, faults)
        return tool.does(session, given)
    except JidomemError as error:
        retry = tool.repair(given, error)
        if retry is not None and (retry == given or any(_faults(tool, retry)) or _violations(tool, session, retry)):
            retry = None
        return _refused(tool, session.shown(error), retry, _instead(tool, session, given, error))


def _whole(value: Any, schema: Schema) -> Any:
    """Return 2.0 as 2 where *schema* takes an integer, as it is one in JSON Schema; any other value unchanged."""
    return (
        int(value) if isinstance(value, float) and value.is_integer() and "integer" in schema.get("type", "") else value
    )


def _instead(tool: Tool, session: ClientSession, given: Arguments, error: JidomemError) -> Arguments:
    """Return the call about what is in the place of ended memories if it would be accepted, at least with a reason."""
    if not isinstance(error, Conflict) or not (instead := tool.instead(given, error)):
        return {}
    try:
        _try(tool, session, instead)
    except JidomemError:
        return instead if REASON in instead.values() else {}
    return instead


def _corrected(tool: Tool, session: ClientSession, given: Arguments, faults: list[Violation]) -> ToolResult:
    """Return the refusal of a call with *faults*: the corrected call if it is accepted, else all that is wrong."""
    moved = _in_form(tool, given) or tool.repair(given, _invalid(faults))
    if moved is None or any(_faults(tool, moved)):
        sound = {name: value for name, value in given.items() if name not in {fault.field for fault in faults}}
        complete = sound.keys() >= {*tool.required}
        raise _invalid([*faults, *(_violations(tool, session, sound) if complete else ())])
    try:
        _try(tool, session, moved)
    except JidomemError as error:
        if error.violations:
            retry = tool.repair(moved, error)
            if retry is not None and not _violations(tool, session, retry):
                return _refused(tool, _invalid([*faults, *error.violations]), retry)
            found = {violation.field for violation in error.violations}
            raise _invalid([*(each for each in faults if each.field not in found), *error.violations]) from None
    return _refused(tool, _invalid(faults), moved)


def _try(tool: Tool, session: ClientSession, given: Arguments) -> None:
    """Call *tool* without writing, if it can; raises what the call would raise."""
    if "dry_run" in tool.takes:
        tool.does(session, {**given, "dry_run": True})


def _violations(tool: Tool, session: ClientSession, given: Arguments) -> tuple[Violation, ...]:
    """Return the violations of a call with sound arguments; a contradiction is left to the agent."""
    try:
        _try(tool, session, given)
    except JidomemError as error:
        return error.violations
    return ()


def _in_form(tool: Tool, given: Arguments) -> Arguments | None:
    """Return the arguments in the places and of the types that the tool takes; None if faults remain."""
    repaired: Arguments = {}
    inner: Arguments = {}
    for name, value in given.items():
        place = (name,) if name in tool.takes else _place(tool, name)
        if len(place) == 1 and place[0] != name and place[0] in given:
            place = (_holder(tool), name)
        if not place or not place[0] or place[-1] in (repaired if len(place) == 1 else inner):
            return None
        if len(place) > 1:
            inner[name] = value
            continue
        repaired[place[0]] = _of_type(value, tool.takes[place[0]])
    if inner:
        repaired_fields = repaired.get(_holder(tool), {})
        if not isinstance(repaired_fields, dict) or repaired_fields.keys() & inner.keys():
            return None
        repaired[_holder(tool)] = {**repaired_fields, **inner}
    return None if repaired == given or any(_faults(tool, repaired)) else repaired


def _of_type(value: Any, schema: Schema) -> Any:
    """Return *value* as the type of *schema* that it was meant as, and any other value unchanged.

    A text may be written JSON, or the one entry of a list; a list of texts may be the words of one.
    """
    kinds = schema.get("type", "string")
    if isinstance(value, str) and "string" not in kinds:
        with suppress(ValueError):
            meant = json.loads(value.lower() if kinds == "boolean" else value)
            if not [*_faults_of_type("", "", meant, schema)]:
                return meant
        return [value] if kinds == "array" else value
    words = isinstance(value, list) and all(isinstance(each, str) for each in value)
    return " ".join(value) if words and kinds == "string" else value


def _holder(tool: Tool) -> str:
    """Return the argument of *tool* that takes fields of an intent, "" if it has none."""
    return next((name for name in ("fields", "set") if name in tool.takes), "")


def _place(tool: Tool, name: str) -> tuple[str, ...]:
    """Return where *tool* takes what is given as the unknown argument *name*: an argument, and a field in it, or ()."""
    holder = _holder(tool)
    field = name if name in INTENT_FIELDS else FIELD_ALIASES.get(name, "")
    if field in SET_BY_SERVER:
        return ()
    if holder and field:
        place = _place_of_field(tool, field)
        return place if len(place) == 1 else (holder, name)
    if near := misspelling_of(name, tool.takes):
        return (near,)
    if (alias := _ALIASES.get(name)) in tool.takes:
        return (str(alias),)
    return (holder, name) if holder else ()


def _place_of_field(tool: Tool, field: str) -> tuple[str, ...]:
    """Return the argument of *tool* for *field*, after the one that holds it, if any; () if it takes none."""
    if field in tool.takes:
        return (field,)
    for other, name in (
        ("summary", "text"),
        ("summary", "supersede"),
        ("reason", "rationale"),
        ("rationale", "reason"),
    ):
        if field == other and name in tool.takes:  # the rationale is also the reason of a revision
            return (name,)
    holder = _holder(tool)
    return (holder, field) if holder else ()


def _invalid(faults: Sequence[Violation]) -> InvalidRequest:
    hints = dict.fromkeys(fault.remedy for fault in faults)
    return InvalidRequest("; ".join(fault.message for fault in faults), hint="; ".join(hints), violations=faults)


def _faults(tool: Tool, given: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield a violation for each argument that is unknown, missing or of another type."""
    for name, value in given.items():
        if name in tool.takes:
            yield from _faults_of_type(name, name, value, tool.takes[name])
            continue
        place, near = _place(tool, name), None
        known = f"it takes {_taken(tool, name)}"
        if FIELD_ALIASES.get(name, name) in SET_BY_SERVER:
            known = f"leave out {name}: the server sets it"
        elif len(place) == 1 and misspelling_of(name, place):
            known, near = f"did you mean {place[0]!r}?", place[0]
        elif len(place) == 1 or name in INTENT_FIELDS:
            known = f"give {_named(place)}" if place else known
        message = f"{tool.name} takes no argument {name!r:.200}"
        yield Violation("invalid_argument", message, field=name, nearest=near, hint=known)
    for name in tool.required:
        if name not in given:
            yield Violation("invalid_argument", f"{tool.name} needs {name}", field=name, hint=f"give {name}")


def _faults_of_type(name: str, field: str, value: Any, schema: Schema) -> Iterator[Violation]:
    """Yield the type errors of *value*, an argument or the part *name* of one."""
    if "enum" in schema and value not in schema["enum"]:
        allowed = tuple(schema["enum"])
        message = f"{name} is one of {', '.join(allowed)}, not {value!r:.200}"
        if len(allowed) > _MAX_LISTED:
            message = f"{name} is {value!r:.200}, none of its {len(allowed)} values"
        yield Violation("invalid_argument", message, field=field, value=value, allowed=allowed)
    if "type" not in schema:
        return
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not any(isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        kind = " or ".join(kinds)
        yield Violation("invalid_argument", f"{name} is not of type {kind}", field=field, hint=f"give {name} as {kind}")
        return
    if isinstance(value, list) and "items" in schema:
        for entry in value:
            yield from _faults_of_type(f"an entry of {name}", field, entry, schema["items"])
    for part in schema.get("required", ()):
        if part in value:
            yield from _faults_of_type(f"{part} of {name}", field, value[part], schema["properties"][part])
        else:
            hint = f"give {', '.join(schema['required'])}"
            yield Violation("invalid_argument", f"{name} has no {part}", field=field, hint=hint)


def _nearest(value: object, allowed: Sequence[str]) -> list[str]:
    """Return *allowed*, of a long list only the names nearest to *value*, or else the first."""
    if len(allowed) <= _MAX_LISTED:
        return [*allowed]
    return nearest_names(value, allowed, _NAMED) or [*allowed[:_NAMED]]


def _taken(tool: Tool, name: str) -> str:
    """Return the arguments of *tool* as text; of many those near to *name*."""
    named = _nearest(name, [*tool.takes])
    more = f" ... (all {len(tool.takes)}: the definition of {tool.name})" if len(named) < len(tool.takes) else ""
    return f"{', '.join(named) or 'none'}{more}"


def _shortened(tool: Tool, violation: dict[str, Any]) -> dict[str, Any]:
    """Return a violation with the near ones of a long list of allowed values, and with where all are."""
    allowed = violation["allowed"]
    named = _nearest(violation["field" if violation["code"] == "unknown_field" else "value"], allowed)
    if len(named) == len(allowed) or violation["nearest"]:
        return {**violation, "allowed": named}
    place = f"the definition of {tool.name}" if violation["code"] == "invalid_argument" else "memory://ontology"
    near = f"such as {', '.join(named)}; all {len(allowed)}: {place}"
    return {**violation, "allowed": named, "hint": "; ".join(filter(None, (violation["hint"], near)))}


def _refused(tool: Tool, error: JidomemError, retry: Arguments | None, instead: Arguments | None = None) -> ToolResult:
    """Return a refusal: the values of every interface, and `retry`, the arguments that would be accepted.

    The hint names the call *instead*, which the agent decides on after it has read what that is about.
    """
    values = _in_arguments(tool, for_tools(error.to_dict()))
    if isinstance(error, Conflict):
        values["choices"] = [
            {**choice, "needs": [_plain_argument(tool, name) for name in choice["needs"]]}
            for choice in values["choices"]
        ]
        if instead:
            values["hint"] = f"{error.advice}: the tool {tool.name} with {as_json(instead)}"
        elif error.hints_choices or error.names_ended:
            values |= for_tools({"hint": error.choices_text(lambda name: _plain_argument(tool, name))})
    whole = values.get("violations", ())
    values |= {"violations": [_shortened(tool, each) for each in whole]} if whole else {}
    lines = [f"refused ({error.code}): {error.detail}"]
    if retry is not None:
        values |= {"retry": retry, "hint": f"call {tool.name} with the arguments in `retry`"}
        lines.append(f"call {tool.name} with: {as_json(retry)}")
    elif isinstance(error, Conflict):
        lines += _contradiction(tool, error, values, has_choices=not instead)
    elif error.hint:
        lines.append(f"hint: {values['hint']}")
    for violation, given in zip(values["violations"], whole, strict=True) if whole and retry is None else ():
        few = 0 < len(given["allowed"]) <= _MAX_LISTED
        allowed = f" (allowed: {', '.join(violation['allowed'])})" if few else ""
        hint = f"; {violation['hint']}" if violation["hint"] and not allowed else ""
        hint = "" if hint.endswith("?") and hint in violation["message"] else hint
        lines.append(f"- {violation['message']}{allowed}{hint}")
    return ToolResult(values, escape_in_json("\n".join(lines)), is_error=True)


def _contradiction(tool: Tool, error: Conflict, values: Mapping[str, Any], *, has_choices: bool) -> Iterator[str]:
    """Yield the conflicting memories in full, and the choices of the agent as arguments of *tool*."""
    for conflict in error.conflicts:
        yield f"- {conflict.kind} with {conflict.iri}: {as_json(error.items.get(conflict.iri, conflict.summary))}"
    if not has_choices or "supersedes" not in tool.takes:
        yield f"hint: {values['hint']}"
        return
    yield "nothing was written; decide which of these holds, and call again with it, or ask:"
    for choice in values["choices"]:
        given = [as_json(choice["fields"])] if choice["fields"] else []
        yield f"- {' and '.join([*given, *choice['needs']]) or choice['choice']}: {choice['effect']}"
    yield from (f"- {words}" for words in error.keeping)


def _in_arguments(tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
    """Return the *values* of an error, with the fields in its hints as arguments of *tool*."""
    named = {**values, "hint": _FIELD.sub(lambda match: _argument(tool, match[1]), values["hint"])}
    if "violations" in values:
        named["violations"] = [_in_arguments(tool, violation) for violation in values["violations"]]
    return named


def _argument(tool: Tool, field: str) -> str:
    return _named(() if field in SET_BY_SERVER else _place_of_field(tool, field)) or f"`{field}`"


def _named(place: tuple[str, ...]) -> str:
    return " in ".join(f"`{name}`" for name in reversed(place))


def _plain_argument(tool: Tool, field: str) -> str:
    """Return the argument of *tool* for *field*, as a choice names it.

    A further field is shown with its argument: `convention_name in fields`.
    """
    return _argument(tool, field).replace("`", "")
