"""One turn of a conversation, and the calls of tools in it, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jidomem.errors import InvalidRequest

_TOOL = ("name", "parameters", "result")
_HINT = 'write "tools": [{"name": "search", "parameters": {"query": "store"}, "result": "3 files"}]'


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool: what it was given and what it gave back, whatever JSON holds; None is nothing."""

    name: str
    parameters: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn as it was recorded: its IRI, its place in the conversation from 0, who said what, and when."""

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
        """Return what was said as `role` and `content`: the prompt as of the user, the answer as of the assistant.

        >>> Turn("", 0, prompt="Which index?", answer="Oxigraph.").messages()
        [{'role': 'user', 'content': 'Which index?'}, {'role': 'assistant', 'content': 'Oxigraph.'}]
        """
        said = {"user": self.prompt, "assistant": self.answer}
        return [{"role": role, "content": words} for role, words in said.items() if words is not None]

    def to_dict(self) -> dict[str, Any]:
        """Return the turn as plain values."""
        tools = [{"name": use.name, "parameters": use.parameters, "result": use.result} for use in self.tools]
        return {"iri": self.iri, "index": self.index, "prompt": self.prompt, "answer": self.answer,
                "asked_by": self.asked_by, "answered_by": self.answered_by, "tools": tools,
                "timestamp": self.timestamp, "recorded_at": self.recorded_at}  # fmt: skip


def uses(given: Iterable[Any]) -> list[ToolUse]:
    """Return the calls of tools that *given* spells; raises InvalidRequest for what is none."""
    found = []
    for each in given:
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str) or set(each) - set(_TOOL):
            raise InvalidRequest(f"{each!r:.200} is no call of a tool: it has {', '.join(_TOOL)}", hint=_HINT)
        found.append(ToolUse(**each))
    return found
