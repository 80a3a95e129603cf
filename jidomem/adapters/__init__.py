"""The adapters: a root behind LangGraph's `BaseStore` and Claude's memory tool.

They import the opened root. Start with `langgraph`.
"""

from __future__ import annotations

from jidomem.errors import InvalidRequest
from jidomem.runtime.root import Jidomem


def agent_of(memory: Jidomem, agent: str | None, adapter: str) -> str:
    """Return *agent*, by default the configured one; raises InvalidRequest for an invalid memory or name."""
    if not isinstance(memory, Jidomem):
        given = repr(memory) if memory is None or isinstance(memory, str) else type(memory).__name__
        hint = f"{adapter}(jidomem.open({memory!r}))" if isinstance(memory, str) else f"{adapter}(jidomem.open())"
        raise InvalidRequest(f"{adapter} takes an open memory, not {given}", hint=hint)
    if agent is not None and not isinstance(agent, str):
        raise InvalidRequest(f"agent={agent!r} is not a name", hint='agent="planner"')
    return agent or memory.settings.agent
