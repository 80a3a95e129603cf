"""`jidomem working`: what an agent holds now, in its world, its tasks and its spaces."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from jidomem.errors import JidomemError, NotFound
from jidomem.intent import parse_json
from jidomem.runtime.agent import AgentMemory
from jidomem.spaces import Memory, is_list, is_map
from jidomem_cli.door import ROWS, Door, Verbs, pass_door
from jidomem_cli.fields import json_or_text
from jidomem_cli.tables import form_of, show_json, show_rows

_WRITES = ("agent",)
_COLUMNS = ("space", "at", "holds")
_AGENTS = ("agent", "rev", "updated_at", "open_tasks")


@click.group(cls=Verbs)
def working() -> None:
    """Show and change what an agent holds now: it may change and forget it, and nobody judges it.

    Examples:
      jidomem working put language en
      jidomem working add "ask about the index"
      jidomem working show
    """


@working.command("show", formats=ROWS, writes=_WRITES)
@pass_door
def show(door: Door) -> None:
    """Show what the agent holds; with --json the memory as it is.

    Examples:
      jidomem working put language en
      jidomem working show
      jidomem working show --json
    """
    kept = _kept(door, reads=True)
    memory = kept.get()
    if memory is None:
        raise NotFound(f"{kept.agent!r} holds nothing", hint="begin with: jidomem working put KEY VALUE")
    if form_of(door) == "json":
        show_json(memory.to_dict())
        return
    show_rows(door, [*_rows(memory)], _COLUMNS)


@working.command("list", formats=ROWS)
@pass_door
def list_agents(door: Door) -> None:
    """List the agents that hold something.

    Examples:
      jidomem working list
    """
    show_rows(door, door.read().agents(), _AGENTS)


@working.command("put", writes=_WRITES)
@click.argument("key")
@click.argument("value")
@pass_door
def put(door: Door, key: str, value: str) -> None:
    """Put VALUE, as JSON where it is that, else as text, under KEY of the agent's world.

    Examples:
      jidomem working put language en
      jidomem working put limits '{"files": 3}'
    """
    _change(door, {"do": "world_put", "key": key, "value": json_or_text(value)})


@working.command("drop", writes=_WRITES)
@click.argument("key")
@pass_door
def drop(door: Door, key: str) -> None:
    """Take KEY out of the agent's world.

    Examples:
      jidomem working drop language
    """
    _change(door, {"do": "world_delete", "key": key})


@working.command("tasks", formats=ROWS, writes=_WRITES)
@click.option("--all", "done", is_flag=True, help="Those that are done, too.")
@pass_door
def tasks(door: Door, done: bool) -> None:
    """List the agent's open tasks, the first to do first.

    Examples:
      jidomem working tasks --all
    """
    memory = _kept(door, reads=True).get()
    rows = [] if memory is None else memory.tasks() if done else memory.tasks_open()
    show_rows(door, rows, ("id", "text", "status"))


@working.command("add", writes=_WRITES)
@click.argument("text")
@click.option("--id", "name", metavar="ID", help="Its id; else one is made.")
@click.option("--first", is_flag=True, help="Before all others; else after them.")
@pass_door
def add(door: Door, text: str, name: str | None, first: bool) -> None:
    """Give the agent a task.

    Examples:
      jidomem working add "ask about the index" --id t1
    """
    where = {"do": "tasks_insert", "index": 0} if first else {"do": "tasks_add"}
    _change(door, {**where, "text": text, **({"id": name} if name else {})})


@working.command("done", writes=_WRITES)
@click.argument("task")
@pass_door
def done(door: Door, task: str) -> None:
    """Say that the agent's TASK, an id, is done.

    Examples:
      jidomem working add "ask about the index" --id t1
      jidomem working done t1
    """
    _change(door, {"do": "tasks_complete", "id": task})


@working.command("change", writes=_WRITES)
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--expected-rev", type=click.IntRange(0), metavar="N", help="Only if the memory is at revision N.")
@pass_door
def change(door: Door, file: BinaryIO, expected_rev: int | None) -> None:
    """Make the changes in FILE, or of standard input, a JSON array: all of them or none.

    Examples:
      jidomem working change changes.json
      echo '[{"do": "ensure_space", "space": "plans", "data": []}]' | jidomem working change
    """
    _change(door, *_listed(parse_json(file.read())), expected_rev=expected_rev)


@working.command("forget", writes=_WRITES)
@pass_door
def forget(door: Door) -> None:
    """Let the agent hold nothing any more.

    Examples:
      jidomem working forget
    """
    kept = _kept(door)
    told = kept.forget()
    if door.json:
        show_json({"agent": kept.agent, "forgotten": told})
    else:
        door.say(f"{kept.agent} {'holds nothing any more' if told else 'held nothing'}")


def _kept(door: Door, *, reads: bool = False) -> AgentMemory:
    return (door.read(look=False) if reads else door.open()).agent()


def _change(door: Door, *changes: Any, expected_rev: int | None = None) -> None:
    kept = _kept(door)
    try:
        memory = kept.apply(changes, expected_rev=expected_rev)
    except JidomemError as refusal:
        refusal.position = None  # its words name the change, and it is no intent
        raise
    if door.json:
        show_json({"agent": kept.agent, "rev": memory.rev})
    else:
        door.say(f"{kept.agent} is at revision {memory.rev}")


def _listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _rows(memory: Memory) -> Any:
    """Yield what is held, a row each."""
    for name, space in memory.spaces.items():
        pairs = space.data.items() if is_map(space) else enumerate(space.data) if is_list(space) else [("", space.data)]
        for at, held in pairs:
            text = held if isinstance(held, str) else json.dumps(held, ensure_ascii=False)
            yield {"space": name, "at": str(at), "holds": text}
