"""The tools of a memory for function calling: their definitions for a model's API, and the execution of its calls.

    from jidomem.adapters.function_calling import FunctionTools
    with FunctionTools(memory) as tools:
        ... tools=tools.definitions("openai") ...
        ... tools.call(name, arguments).words() ...

They are the tools of `jidomem mcp`. A refusal is an answer for the model, with the arguments that would be accepted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from jidomem.errors import InvalidRequest, nearest_names
from jidomem.runtime.agent_memory import agent_of
from jidomem.runtime.root import Jidomem
from jidomem.serve.mcp.client_session import ClientSession, Tool, ToolResult, call
from jidomem.serve.mcp.tools import INSTRUCTIONS, TOOLSETS

T = TypeVar("T")
#: The definition of a tool in each API.
_FORMS: Mapping[str, Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]] = {
    "openai": lambda named, schema: {"type": "function", "function": {**named, "parameters": schema}},
    "openai-responses": lambda named, schema: {"type": "function", **named, "parameters": schema, "strict": False},
    "anthropic": lambda named, schema: {**named, "input_schema": schema},
}


class FunctionTools:
    """The tools of one agent in the project of an open memory.

    As a context manager it closes the work session of the agent, which its first write opened. `instructions` is text
    for the system prompt.
    """

    instructions = INSTRUCTIONS

    def __init__(
        self, memory: Jidomem, *, agent: str | None = None, session: str | None = None, toolset: str = "jidomem"
    ) -> None:
        """Offer a *toolset* of `jidomem mcp` to *agent*, by default the configured one.

        A *session* given here is neither opened nor closed. Raises InvalidRequest for an unknown toolset and for what
        is no open memory.
        """
        self.agent = agent_of(memory, agent, "FunctionTools")
        self._tools: Mapping[str, Tool] = {tool.name: tool for tool in _named(TOOLSETS, toolset, "toolset")}
        memory.expected_project = memory.project  # its first write creates it, and a read may come before
        self._session = ClientSession(memory, self.agent, session, is_named=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the work session, if a write opened it."""
        self._session.leave()

    def definitions(self, form: str) -> list[dict[str, Any]]:
        """Return the definitions for the parameter `tools` of an API.

        *form* is "openai" (chat completions, also of other vendors), "openai-responses" or "anthropic". Raises
        InvalidRequest for another one.
        """
        define = _named(_FORMS, form, "form")
        return [
            define({"name": tool.name, "description": tool.description}, tool.input_schema())
            for tool in self._tools.values()
        ]

    def call(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> ToolResult:
        """Return the result of a call, of which `words()` is the text for the model, and `is_error` says if it failed.

        *arguments* are an object, or its JSON. An unknown name and malformed arguments are results with an error.
        """
        tool = self._tools.get(name)
        if tool is None:
            near = nearest_names(name, self._tools, 1)
            return _malformed(f"there is no tool {name!r:.100}", f"call {' or '.join(near or self._tools)}")
        try:
            given = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments or {})
        except (ValueError, RecursionError) as error:
            return _malformed(f"the arguments of {name} are not JSON: {error}", "give one JSON object")
        if not isinstance(given, dict):
            return _malformed(f"the arguments of {name} are not an object", "give one JSON object")
        return call(tool, self._session, given)


def _named(values: Mapping[str, T], name: str, what: str) -> T:
    """Return the value of *name*; raises InvalidRequest that lists the names."""
    if not isinstance(name, str) or name not in values:
        raise InvalidRequest(f"{what}={name!r:.100} is unknown", hint=f"give one of {', '.join(values)}")
    return values[name]


def _malformed(detail: str, hint: str) -> ToolResult:
    error = InvalidRequest(detail, hint=hint)
    return ToolResult(error.to_dict(), f"refused ({error.code}): {detail}\nhint: {hint}", is_error=True)
