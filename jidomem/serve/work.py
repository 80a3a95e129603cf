"""The tools by which an agent, over MCP, reads and changes what it holds now, and records what is said."""

from __future__ import annotations

from typing import Any

from jidomem.serve.desk import Desk
from jidomem.serve.tool import Arguments, Told, Tool
from jidomem.spaces import Memory
from jidomem.spaces.changes import CHANGES
from jidomem.turn import uses


def held(desk: Desk) -> dict[str, Any]:
    """Return what the agent at *desk* holds; an empty memory where it never held anything."""
    return _told(desk.working().get())


def _told(memory: Memory | None) -> dict[str, Any]:
    if memory is None:
        return {"rev": 0, "world": {}, "tasks": [], "spaces": {}}
    spaces = {name: told["data"] for name, told in memory.to_dict()["spaces"].items()}
    return {"rev": memory.rev, "world": spaces.pop("world"), "tasks": spaces.pop("tasks"), "spaces": spaces}


def _work(desk: Desk, given: Arguments) -> Told:
    if "changes" not in given:
        return Told(held(desk))
    return Told(_told(desk.working().apply(given["changes"], expected_rev=given.get("expected_rev"))))


_OBJECT, _LIST, _WHOLE = {"type": "object"}, {"type": "array"}, {"type": "integer"}
WORKING = Tool(
    "working",
    "What you hold now and may change or forget: world (facts by key), tasks in the order of their priority, spaces of"
    " your own. It lasts from run to run; what the project should know, remember. Without changes it shows all.",
    {
        "changes": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"do": {"type": "string", "enum": list(CHANGES)}},
                "required": ["do"],
            },
            "description": "Done all or not at all: "
            + "; ".join(
                f"{name}({', '.join((*needed, *(f'{each}?' for each in more)))})"
                for name, (needed, more) in CHANGES.items()
            ),
        },
        "expected_rev": {**_WHOLE, "description": "Refuse if rev is another one."},
    },
    {"rev": _WHOLE, "world": _OBJECT, "tasks": _LIST, "spaces": _OBJECT},
    _work,
    always=("rev", "world", "tasks", "spaces"),
    reads=False,
    same=False,
)


def _said(desk: Desk, given: Arguments) -> Told:
    asked = dict(given)
    tools = uses(asked.pop("tools", ()))
    who = desk.begin()
    said = desk.memory.conversation(who["asserted_in"], desk.project, writer=desk.writer, agent=who["asserted_by"])
    turn = said.record(**asked, tools=tools)
    desk.opened()
    return Told(turn.to_dict())


SAID = Tool(
    "said",
    "Record one turn of this conversation, word for word: what you were asked, what you answered, the tools you called."
    " Name its iri in evidence of what you remember of it.",
    {
        "prompt": {"type": "string"},
        "answer": {"type": "string"},
        "asked_by": {"type": "string", "description": "Who asked."},
        "tools": {
            "type": "array",
            "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "description": "name, parameters and result of each call.",
        },
    },
    {"iri": {"type": "string"}, "index": _WHOLE},
    _said,
    always=("iri", "index"),
    reads=False,
    same=False,
)
