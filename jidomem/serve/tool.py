"""A tool of an agent: the schemas of what it takes and gives, and how a call of it is checked, answered and refused."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.govern.quoted import visible
from jidomem.serve.desk import Desk

Schema = Mapping[str, Any]
Arguments = dict[str, Any]
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "number": (int, float),
}  # fmt: skip


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

    `required` must be given, `always` is among the values. `reads` says that it changes nothing, `same` that doing it
    again changes nothing more. `mend` returns the arguments that would put a refusal right, where that is known.
    """

    name: str
    description: str
    takes: Schema
    gives: Schema
    does: Callable[[Desk, Arguments], Told]
    required: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    reads: bool = True
    same: bool = True
    mend: Callable[[Arguments, JidomemError], Arguments | None] = lambda given, error: None

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


def call(tool: Tool, desk: Desk, given: Arguments) -> Told:
    """Return what *tool* answers; a refusal is an answer, too, with what to call instead where that is known."""
    try:
        _check(tool, given)
        return tool.does(desk, given)
    except JidomemError as error:
        return _refused(tool, given, error)


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


def _refused(tool: Tool, given: Arguments, error: JidomemError) -> Told:
    """Return a refusal: the values every door shows, and `retry`, the arguments that would put it right."""
    values, retry = error.to_dict(), tool.mend(given, error)
    lines = [f"refused ({error.code}): {error.detail}"]
    if retry is not None:
        values["retry"] = retry
        lines.append(f"call {tool.name} with: {_json(retry)}")
    elif isinstance(error, Conflict):
        lines += _contradiction(tool, error)
    elif error.hint:
        lines.append(f"hint: {error.hint}")
    for violation in values.get("violations", ()) if retry is None else ():
        allowed = f" (allowed: {', '.join(violation['allowed'])})" if violation["allowed"] else ""
        lines.append(f"- {violation['message']}{allowed}")
    return Told(values, visible("\n".join(lines)), is_error=True)


def _contradiction(tool: Tool, error: Conflict) -> Iterator[str]:
    """Yield the memories that disagree, in full, and the choices of the agent as arguments of *tool*."""
    for found in error.conflicts:
        yield f"- {found.kind} with {found.iri}: {_json(error.items.get(found.iri, found.summary))}"
    if "supersedes" not in tool.takes:
        yield f"hint: {error.hint}"
        return
    yield "nothing was written; decide which of these holds, and call again with it, or ask:"
    for choice in error.choices:
        needs = "".join(f" and {_needed(tool, name)}" for name in choice.needs)
        yield f"- {_json(dict(choice.fields)) if choice.fields else choice.name}{needs}: {choice.effect}"


def _needed(tool: Tool, field: str) -> str:
    """Return the argument of *tool* that gives *field*."""
    if field == "reason":
        return "rationale"
    return field if field in tool.takes else f"{field} in fields"
