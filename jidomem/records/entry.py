"""The entry of an agent in its own words, the requests to write entries, and the turn of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from jidomem.base import clock
from jidomem.base.json_values import freeze, is_unicode, thaw
from jidomem.errors import InvalidRequest, did_you_mean, hint_fields

PREFIX = "mem_"
#: The only status of a write.
OK = "ok"

IdGenerator = Callable[[str], str]
Refuse = Callable[[str, str], Exception]


class InvalidEntry(InvalidRequest, ValueError):
    """The value is no valid entry; the message names the field."""


class InvalidWrite(InvalidRequest, ValueError):
    """The value is no valid write request, or no valid result."""


def time_ordered(prefix: str) -> str:
    """Return *prefix* with a UUIDv7: later ids sort later."""
    return prefix + clock.new_id()


def entry_id(generator: IdGenerator = time_ordered) -> str:
    """Return a new id; raises InvalidEntry for a *generator* that returns no text."""
    new_id = generator(PREFIX)
    if fault_of_text(new_id):
        raise _invalid_entry(f"the id generator gave {new_id!r} for the prefix {PREFIX!r}", "return a text")
    return new_id


@hint_fields
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A text that *agent_id* stores, in one session or for all; `metadata` is stored unchanged.

    Two entries are equal if all five fields are. A given `id` stays.
    """

    id: str = field(default_factory=entry_id)
    agent_id: str = ""
    session_id: str | None = None
    content: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidEntry for an invalid field."""
        for name in ("id", "agent_id", "content"):
            if fault := fault_of_text(getattr(self, name)):
                raise _invalid_entry(f"{name} {fault}", f"give {name} as text")
        if self.session_id is not None and (fault := fault_of_text(self.session_id)):
            raise _invalid_entry(f"session_id {fault}", "give the name of a session, or leave it out")
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid_entry))

    @classmethod
    def new(cls, given: object = None, /, *, id_generator: IdGenerator = time_ordered, **more: Any) -> Entry:
        """Return the entry given as a mapping, keywords or both; keywords win over the mapping.

        An entry without an id gets one of *id_generator*. Raises InvalidEntry, also for an unknown key.
        """
        fields = fields_from(Entry, given, more, _invalid_entry)
        return Entry(**{"id": entry_id(id_generator), **fields} if "id" not in fields else fields)

    @classmethod
    def try_new(cls, given: object = None, /, **more: Any) -> Entry | InvalidEntry:
        """Return the result of `new`, or the error that it raises."""
        try:
            return cls.new(given, **more)
        except InvalidEntry as error:
            return error

    @classmethod
    def from_input(cls, given: object = None, /, **more: Any) -> Entry:
        """Return *given* if it is an entry, else the result of `new`."""
        return given if isinstance(given, Entry) and not more else cls.new(given, **more)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, which `from_input` reads back."""
        return {"id": self.id, "agent_id": self.agent_id, "session_id": self.session_id, "content": self.content,
                "metadata": thaw(self.metadata)}  # fmt: skip


@hint_fields
@dataclass(frozen=True, slots=True)
class WriteRequest:
    """An entry to store; `metadata` is the caller's, and a store may use or ignore it."""

    entry: Entry
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidEntry for a value that describes no entry, InvalidWrite for other faults."""
        object.__setattr__(self, "entry", Entry.from_input(self.entry))
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid_request))


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The answer to *request*: the stored entry, which may differ from the given one."""

    request: WriteRequest
    entry: Entry
    status: str = OK
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        """Raise InvalidWrite for an invalid request or status, InvalidEntry for an invalid entry."""
        if not isinstance(self.request, WriteRequest):
            raise _invalid_result(f"request={self.request!r} is no WriteRequest", "give the request that is answered")
        if self.status != OK:
            hint = f"a failed write raises an error; use {OK!r}"
            raise _invalid_result(f"status={self.status!r} is not a status", hint)
        object.__setattr__(self, "entry", Entry.from_input(self.entry))
        object.__setattr__(self, "metadata", frozen_metadata(self.metadata, _invalid_result))

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as plain values."""
        return {"entry": self.entry.to_dict(), "status": self.status, "metadata": thaw(self.metadata)}


def fields_from(cls: type, given: object, more: Mapping[str, Any], refuse: Refuse) -> dict[str, Any]:
    """Return the fields in *given*, a mapping or a value of the class *cls*, and in *more*.

    Raises the error that *refuse* makes of a fault and a hint; an unknown name has the nearest known one as hint.
    """
    known = [attribute.name for attribute in fields(cls)]
    if isinstance(given, cls):
        given = {name: getattr(given, name) for name in known}
    if given is not None and not isinstance(given, Mapping):
        raise refuse(f"a {type(given).__name__} is not a mapping", f"give a mapping with {', '.join(known)}")
    values = {**(given or {}), **more}
    for name in values:
        if name not in known:
            raise refuse(f"there is no {name!r}", did_you_mean(name, known, f"use {', '.join(known)}"))
    return values


def frozen_metadata(metadata: object, refuse: Refuse) -> Mapping[Any, Any]:
    """Return *metadata* frozen, including its dicts and lists.

    Raises the error that *refuse* makes of a fault and a hint, unless it is a finite mapping.
    """
    if not isinstance(metadata, Mapping):
        given = "None" if metadata is None else f"a {type(metadata).__name__}"
        raise refuse(f"metadata is {given}, not a mapping", "give metadata={...}, or leave it out")
    try:
        frozen: Mapping[Any, Any] = freeze(metadata)
    except InvalidRequest as error:
        raise refuse(f"metadata: {error.detail}", error.hint) from None
    return frozen


def fault_of_text(value: object) -> str:
    """Return the reason why *value* cannot be stored as a text; empty if it can."""
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not a text"
    if not is_unicode(value):
        return "contains half of a surrogate pair, which is not a character"
    return "" if value.strip() else "is missing or empty"


def _invalid_entry(detail: str, hint: str) -> InvalidEntry:
    return InvalidEntry(f"invalid memory entry: {detail}", hint=hint)


def _invalid_request(detail: str, hint: str) -> InvalidWrite:
    return InvalidWrite(f"invalid memory write request: {detail}", hint=hint)


def _invalid_result(detail: str, hint: str) -> InvalidWrite:
    return InvalidWrite(f"invalid memory write result: {detail}", hint=hint)


_TOOL = ("name", "parameters", "result")
_HINT = 'write "tools": [{"name": "search", "parameters": {"query": "store"}, "result": "3 files"}]'


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool: its parameters and its result, any JSON value; None for no value."""

    name: str
    parameters: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A recorded turn: its IRI, its index in the conversation from 0, its texts with their agents, and its time."""

    iri: str
    index: int
    prompt: str | None = None
    answer: str | None = None
    asked_by: str | None = None
    answered_by: str | None = None
    tools: tuple[ToolUse, ...] = ()
    timestamp: str = ""
    recorded_at: str = ""

    def messages(self) -> list[dict[str, str]]:
        """Return the texts as `role` and `content`: the prompt of the user, the answer of the assistant.

        >>> Turn("", 0, prompt="Which index?", answer="Oxigraph.").messages()
        [{'role': 'user', 'content': 'Which index?'}, {'role': 'assistant', 'content': 'Oxigraph.'}]
        """
        texts = {"user": self.prompt, "assistant": self.answer}
        return [{"role": role, "content": words} for role, words in texts.items() if words is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as plain values."""
        tools = [{"name": use.name, "parameters": use.parameters, "result": use.result} for use in self.tools]
        return {"iri": self.iri, "index": self.index, "prompt": self.prompt, "answer": self.answer,
                "asked_by": self.asked_by, "answered_by": self.answered_by, "tools": tools,
                "timestamp": self.timestamp, "recorded_at": self.recorded_at}  # fmt: skip


def tool_uses(values: Iterable[Any]) -> list[ToolUse]:
    """Return the calls of tools in *values*; raises InvalidRequest for an invalid one."""
    tools = []
    for value in values:
        if not isinstance(value, Mapping) or not isinstance(value.get("name"), str) or set(value) - set(_TOOL):
            raise InvalidRequest(f"{value!r:.200} is not a call of a tool: it has {', '.join(_TOOL)}", hint=_HINT)
        tools.append(ToolUse(**value))
    return tools
