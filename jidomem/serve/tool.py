"""A tool of an agent: the schemas of what it takes and gives, and how a call of it is checked, answered and refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from jidomem.errors import Conflict, InvalidRequest, JidomemError, Violation
from jidomem.govern.quoted import visible
from jidomem.intent import FIELDS
from jidomem.serve.desk import Desk
from jidomem.serve.hints import for_tools
from jidomem.words import misspelling_of

Schema = Mapping[str, Any]
Arguments = dict[str, Any]
#: The fields of an intent that the server sets, from the session of its client.
SET_BY_SERVER = ("applies_to_project", "asserted_by", "asserted_in")
#: A field that a hint names, but for those whose place the hint names already.
_FIELD = re.compile(r"`([a-z_]+)`(?! in `)")
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
        if not tool.reads:
            desk.check_writes()
        if faults := [*_faults(tool, given)]:
            mended = _in_form(tool, given)
            if mended is not None and not _more_faults(tool, desk, mended, ()):
                return _refused(tool, _invalid(faults), mended)
            raise _invalid([*faults, *_more_faults(tool, desk, given, faults)])
        return tool.does(desk, given)
    except JidomemError as error:
        return _refused(tool, error, tool.mend(given, error))


def _in_form(tool: Tool, given: Arguments) -> Arguments | None:
    """Return the arguments with misspelt names and single texts for lists put right, None where that is not all."""
    mended: Arguments = {}
    for name, value in given.items():
        known = name if name in tool.takes or name in FIELDS else misspelling_of(name, tool.takes)
        if known is None or known not in tool.takes or known in mended or (known != name and known in given):
            return None
        takes_texts = tool.takes[known] == {**tool.takes[known], "type": "array", "items": {"type": "string"}}
        mended[known] = [value] if takes_texts and isinstance(value, str) else value
    return None if any(_faults(tool, mended)) else mended


def _invalid(faults: Sequence[Violation]) -> InvalidRequest:
    hints = dict.fromkeys(fault.remedy for fault in faults)
    return InvalidRequest("; ".join(fault.message for fault in faults), hint="; ".join(hints), violations=faults)


def _faults(tool: Tool, given: Mapping[str, Any]) -> Iterator[Violation]:
    """Yield each argument that is unknown, of another type, or missing."""
    for name, value in given.items():
        if name in tool.takes:
            yield from _faults_of_type(name, name, value, tool.takes[name])
            continue
        near = get_close_matches(name, tool.takes, n=1, cutoff=0.5)
        known = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(tool.takes) or 'none'}"
        if name in SET_BY_SERVER and "fields" in tool.takes:
            known, near = f"leave out {name}: the server sets it", []
        elif name in FIELDS and "fields" in tool.takes:
            known, near = f"give {_argument(tool, name)}", []
        message = f"{tool.name} takes no argument {name!r}"
        yield Violation("invalid_argument", message, field=name, nearest=near[0] if near else None, hint=known)
    for name in tool.required:
        if name not in given:
            yield Violation("invalid_argument", f"{tool.name} needs {name}", field=name, hint=f"give {name}")


def _faults_of_type(name: str, field: str, value: Any, schema: Schema) -> Iterator[Violation]:
    """Yield what of *value*, an argument or the part *name* of one, is of another type than *schema* says."""
    if "enum" in schema and value not in schema["enum"]:
        allowed = tuple(schema["enum"])
        message = f"{name} is one of {', '.join(allowed)}, not {value!r:.200}"
        yield Violation("invalid_argument", message, field=field, value=value, allowed=allowed)
    if "type" not in schema:
        return
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not any(isinstance(value, _TYPES[kind]) and (kind == "boolean") == isinstance(value, bool) for kind in kinds):
        kind = " or ".join(kinds)
        yield Violation("invalid_argument", f"{name} is no {kind}", field=field, hint=f"give {name} as {kind}")
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


def _more_faults(tool: Tool, desk: Desk, given: Arguments, faults: Sequence[Violation]) -> tuple[Violation, ...]:
    """Return what else would be refused of a call with *faults*, were its sound arguments tried."""
    at_fault = {fault.field for fault in faults}
    sound = {name: value for name, value in given.items() if name not in at_fault}
    if "dry_run" not in tool.takes or not sound.keys() >= {*tool.required}:
        return ()
    try:
        tool.does(desk, {**sound, "dry_run": True})
    except JidomemError as error:
        return error.violations
    return ()


def _refused(tool: Tool, error: JidomemError, retry: Arguments | None) -> Told:
    """Return a refusal: the values every door shows, and `retry`, the arguments that would put it right."""
    values = _in_arguments(tool, for_tools(error.to_dict()))
    if isinstance(error, Conflict):
        values["choices"] = [
            {**choice, "needs": [_plain_argument(tool, name) for name in choice["needs"]]}
            for choice in values["choices"]
        ]
    lines = [f"refused ({error.code}): {error.detail}"]
    if retry is not None:
        values |= {"retry": retry, "hint": f"call {tool.name} with the arguments in `retry`"}
        lines.append(f"call {tool.name} with: {_json(retry)}")
    elif isinstance(error, Conflict):
        lines += _contradiction(tool, error, values["hint"])
    elif error.hint:
        lines.append(f"hint: {values['hint']}")
    for violation in values.get("violations", ()) if retry is None else ():
        allowed = f" (allowed: {', '.join(violation['allowed'])})" if violation["allowed"] else ""
        hint = f"; {violation['hint']}" if violation["hint"] and not allowed else ""
        lines.append(f"- {violation['message']}{allowed}{hint}")
    return Told(values, visible("\n".join(lines)), is_error=True)


def _contradiction(tool: Tool, error: Conflict, hint: str) -> Iterator[str]:
    """Yield the memories that disagree, in full, and the choices of the agent as arguments of *tool*."""
    for found in error.conflicts:
        yield f"- {found.kind} with {found.iri}: {_json(error.items.get(found.iri, found.summary))}"
    if "supersedes" not in tool.takes:
        yield f"hint: {hint}"
        return
    yield "nothing was written; decide which of these holds, and call again with it, or ask:"
    for choice in error.choices:
        needs = "".join(f" and {_plain_argument(tool, name)}" for name in choice.needs)
        yield f"- {_json(dict(choice.fields)) if choice.fields else choice.name}{needs}: {choice.effect}"


def _in_arguments(tool: Tool, values: dict[str, Any]) -> dict[str, Any]:
    """Return the *values* of an error, the fields that its hints name as the arguments of *tool*."""
    named = {**values, "hint": _FIELD.sub(lambda match: _argument(tool, match[1]), values["hint"])}
    if "violations" in values:
        named["violations"] = [_in_arguments(tool, violation) for violation in values["violations"]]
    return named


def _argument(tool: Tool, field: str) -> str:
    """Return the argument of *tool* that gives *field*, in backquotes."""
    if field in tool.takes:
        return f"`{field}`"
    if field == "summary" and "text" in tool.takes:
        return "`text`"
    if field == "reason" and "rationale" in tool.takes:  # which says as well why a memory ends
        return "`rationale`"
    holder = next((name for name in ("fields", "set") if name in tool.takes), None)
    return f"`{field}` in `{holder}`" if holder else f"`{field}`"


def _plain_argument(tool: Tool, field: str) -> str:
    """Return the argument of *tool* that gives *field*, as a choice names it.

    A field of the further ones is named with the argument that holds it: `convention_name in fields`.
    """
    return _argument(tool, field).replace("`", "")
