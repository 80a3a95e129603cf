"""`jidomem agent conversation`: what was said in a work session, recorded turn by turn and read back.

`jidomem agent session`: work sessions, opened, moved and closed.

`jidomem agent working`: what an agent holds now, in its world, its tasks and its spaces.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from jidomem.errors import JidomemError, NotFound
from jidomem.read.derived import COLUMNS, sessions
from jidomem.records.intent import parse_json
from jidomem.runtime.agent_memory import AgentMemory
from jidomem.working import Memory, is_list, is_map
from jidomem_cli.fields import json_or_text
from jidomem_cli.options import ROWS, Door, Verb, Verbs, pass_door
from jidomem_cli.output import form_of, show_json, show_receipt, show_rows

_TURN_COLUMNS = ("index", "timestamp", "asked_by", "prompt", "answered_by", "answer")


@click.group(cls=Verbs)
def conversation() -> None:
    """Record what is said in a work session, word for word, and read it back.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem agent conversation show evening
    """


@conversation.command("show", formats=ROWS, as_of=True)
@click.argument("session")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N turns; else all.")
@pass_door
def show_conversation(door: Door, session: str, last: int | None) -> None:
    """List the turns of the conversation of SESSION, in their order.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem agent conversation show evening --last 10
    """
    turns = door.read().conversation(session).turns(last, as_of=door.as_of)
    show_rows(door, [turn.to_dict() for turn in turns], _TURN_COLUMNS)


@conversation.command("record", writes=("agent", "wait"))
@click.argument("session")
@click.option("--prompt", metavar="TEXT", help="What was asked.")
@click.option("--answer", metavar="TEXT", help="What was answered.")
@click.option("--asked-by", metavar="NAME", help="Who asked; nobody unless given.")
@click.option("--timestamp", metavar="MOMENT", help="When it was said; now unless given.")
@pass_door
def record(
    door: Door, session: str, prompt: str | None, answer: str | None, asked_by: str | None, timestamp: str | None
) -> None:
    """Record the next turn of the conversation of SESSION, which is opened where nobody has opened it.

    What is remembered of it names the turn as its evidence.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --asked-by ana --answer "Oxigraph"
    """
    memory = door.open()
    said = memory.conversation(session).record(prompt, answer, asked_by=asked_by, timestamp=timestamp)
    if door.json:
        show_json(said.to_dict())
    else:
        click.echo(said.iri)


#: verb -> (the status it gives, what it does)
_MOVES = {
    "pause": ("Paused", "Pause a session."),
    "resume": ("Active", "Go on with a paused session."),
    "close": ("Closed", "Close a session that reached its end."),
    "abandon": ("Abandoned", "End a session that did not."),
}
_SESSION_WRITES = ("agent", "wait")


@click.group(cls=Verbs)
def session() -> None:
    """Open, move and close work sessions; each keeps the line of what happened to it.

    Examples:
      jidomem agent session start evening --continues morning
      jidomem agent session phase evening review
      jidomem agent session close evening
    """


@session.command("start", writes=_SESSION_WRITES)
@click.argument("name")
@click.option("--continues", metavar="NAME", help="The session it goes on from.")
@pass_door
def start(door: Door, name: str, continues: str | None) -> None:
    """Open the session NAME.

    Examples:
      jidomem agent session start s-7 --agent ana
    """
    memory = door.open()
    show_receipt(door, memory, memory.writer.start_session(memory.project, name, continues=continues))


@session.command("phase", writes=_SESSION_WRITES)
@click.argument("name")
@click.argument("phase")
@pass_door
def phase(door: Door, name: str, phase: str) -> None:
    """Say what the session NAME is at: planning, implementation, debugging or review.

    Examples:
      jidomem agent session phase morning implementation
    """
    memory = door.open()
    show_receipt(door, memory, memory.writer.move_session(memory.project, name, phase=phase))


@session.command("list", formats=ROWS)
@click.option("--all", "ended", is_flag=True, help="Those that have ended, too.")
@pass_door
def list_sessions(door: Door, ended: bool) -> None:
    """List the sessions that have not ended, oldest first.

    Examples:
      jidomem agent session list --all
    """
    memory = door.read()
    show_rows(door, sessions(memory.reader, memory.project, ended=ended), COLUMNS)


def _move(verb: str) -> click.Command:
    status, text = _MOVES[verb]

    @click.argument("name")
    @pass_door
    def move(door: Door, name: str) -> None:
        memory = door.open()
        show_receipt(door, memory, memory.writer.move_session(memory.project, name, status=status))

    help_text = f"{text}\n\nExamples:\n  jidomem agent session {verb} morning\n"
    return click.command(verb, cls=Verb, writes=_SESSION_WRITES, help=help_text)(move)


for _verb in _MOVES:
    session.add_command(_move(_verb))


_WORKING_WRITES = ("agent",)
_SPACE_COLUMNS = ("space", "at", "holds")
_AGENTS = ("agent", "rev", "updated_at", "open_tasks")


@click.group(cls=Verbs)
def working() -> None:
    """Show and change what an agent holds now: it may change and forget it, and nobody judges it.

    Examples:
      jidomem agent working put language en
      jidomem agent working add "ask about the index"
      jidomem agent working show
    """


@working.command("show", formats=ROWS, writes=_WORKING_WRITES)
@pass_door
def show_working(door: Door) -> None:
    """Show what the agent holds; with --json the memory as it is.

    Examples:
      jidomem agent working put language en
      jidomem agent working show
      jidomem agent working show --json
    """
    kept = _agent_memory(door, reads=True)
    memory = kept.get()
    if memory is None:
        raise NotFound(f"{kept.agent!r} holds nothing", hint="begin with: jidomem agent working put KEY VALUE")
    if form_of(door) == "json":
        show_json(memory.to_dict())
        return
    show_rows(door, [*_rows(memory)], _SPACE_COLUMNS)


@working.command("list", formats=ROWS)
@pass_door
def list_agents(door: Door) -> None:
    """List the agents that hold something.

    Examples:
      jidomem agent working list
    """
    show_rows(door, door.read().agents(), _AGENTS)


@working.command("put", writes=_WORKING_WRITES)
@click.argument("key")
@click.argument("value")
@pass_door
def put(door: Door, key: str, value: str) -> None:
    """Put VALUE, as JSON where it is that, else as text, under KEY of the agent's world.

    Examples:
      jidomem agent working put language en
      jidomem agent working put limits '{"files": 3}'
    """
    _change(door, {"do": "world_put", "key": key, "value": json_or_text(value)})


@working.command("drop", writes=_WORKING_WRITES)
@click.argument("key")
@pass_door
def drop(door: Door, key: str) -> None:
    """Take KEY out of the agent's world.

    Examples:
      jidomem agent working drop language
    """
    _change(door, {"do": "world_delete", "key": key})


@working.command("tasks", formats=ROWS, writes=_WORKING_WRITES)
@click.option("--all", "done", is_flag=True, help="Those that are done, too.")
@pass_door
def tasks(door: Door, done: bool) -> None:
    """List the agent's open tasks, the first to do first.

    Examples:
      jidomem agent working tasks --all
    """
    memory = _agent_memory(door, reads=True).get()
    rows = [] if memory is None else memory.tasks() if done else memory.tasks_open()
    show_rows(door, rows, ("id", "text", "status"))


@working.command("add", writes=_WORKING_WRITES)
@click.argument("text")
@click.option("--id", "name", metavar="ID", help="Its id; else one is made.")
@click.option("--first", is_flag=True, help="Before all others; else after them.")
@pass_door
def add(door: Door, text: str, name: str | None, first: bool) -> None:
    """Give the agent a task.

    Examples:
      jidomem agent working add "ask about the index" --id t1
    """
    where = {"do": "tasks_insert", "index": 0} if first else {"do": "tasks_add"}
    _change(door, {**where, "text": text, **({"id": name} if name else {})})


@working.command("done", writes=_WORKING_WRITES)
@click.argument("task")
@pass_door
def done(door: Door, task: str) -> None:
    """Say that the agent's TASK, an id, is done.

    Examples:
      jidomem agent working add "ask about the index" --id t1
      jidomem agent working done t1
    """
    _change(door, {"do": "tasks_complete", "id": task})


@working.command("change", writes=_WORKING_WRITES)
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--expected-rev", type=click.IntRange(0), metavar="N", help="Only if the memory is at revision N.")
@pass_door
def change(door: Door, file: BinaryIO, expected_rev: int | None) -> None:
    """Make the changes in FILE, or of standard input, a JSON array: all of them or none.

    Examples:
      jidomem agent working change changes.json
      echo '[{"do": "ensure_space", "space": "plans", "data": []}]' | jidomem agent working change
    """
    _change(door, *_listed(parse_json(file.read())), expected_rev=expected_rev)


@working.command("forget", writes=_WORKING_WRITES)
@pass_door
def forget(door: Door) -> None:
    """Let the agent hold nothing any more.

    Examples:
      jidomem agent working forget
    """
    kept = _agent_memory(door)
    told = kept.forget()
    if door.json:
        show_json({"agent": kept.agent, "forgotten": told})
    else:
        door.say(f"{kept.agent} {'holds nothing any more' if told else 'held nothing'}")


def _agent_memory(door: Door, *, reads: bool = False) -> AgentMemory:
    return (door.read(look=False) if reads else door.open()).agent()


def _change(door: Door, *changes: Any, expected_rev: int | None = None) -> None:
    kept = _agent_memory(door)
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
