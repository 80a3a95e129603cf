"""One turn of a conversation, and the calls of tools in it, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
