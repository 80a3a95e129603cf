"""`jidomem agent conversation`: the conversation of a work session, recorded turn by turn.

`jidomem agent session`: work sessions, opened, moved and closed.

`jidomem agent working`: the working memory of an agent: its world, its tasks and its spaces.
"""

from __future__ import annotations

import json
from typing import Any, BinaryIO

import click

from jidomem.base.json_values import parse_json
from jidomem.errors import JidomemError, NotFound
from jidomem.read.derived import COLUMNS, sessions
from jidomem.runtime.agent_memory import AgentMemory
from jidomem.working import Memory, is_list, is_map
from jidomem_cli.fields import json_or_text
from jidomem_cli.options import ROWS, App, Command, CommandGroup, id_option, pass_app, timestamp_option
from jidomem_cli.output import show_json, show_receipt, show_result, show_rows

_TURN_COLUMNS = ("index", "timestamp", "asked_by", "prompt", "answered_by", "answer")


@click.group(cls=CommandGroup)
def conversation() -> None:
    """Record the turns of a work session verbatim, and list them.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem agent conversation show evening
    """


@conversation.command("show", formats=ROWS, as_of=True)
@click.argument("session")
@click.option("--last", type=click.IntRange(1), metavar="N", help="Only the last N turns.")
@pass_app
def show_conversation(app: App, session: str, last: int | None) -> None:
    """List the turns of the conversation of SESSION, in order.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem agent conversation show evening --last 10
    """
    turns = app.read().conversation(session).turns(last, as_of=app.as_of)
    show_rows(app, [turn.to_dict() for turn in turns], _TURN_COLUMNS)


@conversation.command("record", writes=("agent", "wait"))
@click.argument("session")
@click.option("--prompt", metavar="TEXT", help="Text of the prompt.")
@click.option("--answer", metavar="TEXT", help="Text of the answer.")
@click.option("--asked-by", "speaker", metavar="NAME", help="Author of the prompt.")
@timestamp_option
@pass_app
def record(
    app: App, session: str, prompt: str | None, answer: str | None, speaker: str | None, timestamp: str | None
) -> None:
    """Record the next turn of the conversation of SESSION, which is opened if it is new.

    A memory from the conversation names the turn as its evidence.

    Examples:
      jidomem agent conversation record evening --prompt "which index?" --asked-by ana --answer "Oxigraph"
    """
    memory = app.open()
    turn = memory.conversation(session).record(prompt, answer, asked_by=speaker, timestamp=timestamp)
    show_result(app, turn.to_dict(), turn.iri)


#: verb -> (the status it sets, its help)
_MOVES = {
    "pause": ("Paused", "Pause a session."),
    "resume": ("Active", "Resume a paused session."),
    "close": ("Closed", "Close a completed session."),
    "abandon": ("Abandoned", "Abandon an incomplete session."),
}
_SESSION_WRITES = ("agent", "wait")


@click.group(cls=CommandGroup)
def session() -> None:
    """Open, move and close work sessions; each records its events.

    Examples:
      jidomem agent session start evening --continues morning
      jidomem agent session phase evening review
      jidomem agent session close evening
    """


@session.command("start", writes=_SESSION_WRITES)
@click.argument("name")
@click.option("--continues", metavar="NAME", help="Session that it continues.")
@pass_app
def start(app: App, name: str, continues: str | None) -> None:
    """Open the session NAME.

    Examples:
      jidomem agent session start s-7 --agent ana
    """
    memory = app.open()
    show_receipt(app, memory, memory.writer.start_session(memory.project, name, continues=continues))


@session.command("phase", writes=_SESSION_WRITES)
@click.argument("name")
@click.argument("phase")
@pass_app
def phase(app: App, name: str, phase: str) -> None:
    """Set the phase of the session NAME: planning, implementation, debugging or review.

    Examples:
      jidomem agent session phase morning implementation
    """
    memory = app.open()
    show_receipt(app, memory, memory.writer.move_session(memory.project, name, phase=phase))


@session.command("list", formats=ROWS)
@click.option("--all", "ended", is_flag=True, help="Also finished ones.")
@pass_app
def list_sessions(app: App, ended: bool) -> None:
    """List the sessions that have not ended, oldest first.

    Examples:
      jidomem agent session list --all
    """
    memory = app.read()
    show_rows(app, sessions(memory.reader, memory.project, ended=ended), COLUMNS)


def _move(verb: str) -> click.Command:
    status, text = _MOVES[verb]

    @click.argument("name")
    @pass_app
    def move(app: App, name: str) -> None:
        memory = app.open()
        show_receipt(app, memory, memory.writer.move_session(memory.project, name, status=status))

    help_text = f"{text}\n\nExamples:\n  jidomem agent session {verb} morning\n"
    return click.command(verb, cls=Command, writes=_SESSION_WRITES, help=help_text)(move)


for _verb in _MOVES:
    session.add_command(_move(_verb))


_WORKING_WRITES = ("agent",)
_SPACE_COLUMNS = ("space", "at", "holds")
_AGENTS = ("agent", "rev", "updated_at", "open_tasks")


@click.group(cls=CommandGroup)
def working() -> None:
    """Show and change the working memory of an agent, which is neither validated nor reviewed.

    Examples:
      jidomem agent working put language en
      jidomem agent working add "ask about the index"
      jidomem agent working show
    """


@working.command("show", formats=ROWS, writes=_WORKING_WRITES)
@pass_app
def show_working(app: App) -> None:
    """Show the working memory of the agent; --json prints it as stored.

    Examples:
      jidomem agent working put language en
      jidomem agent working show
      jidomem agent working show --json
    """
    agent_memory = _agent_memory(app, reads=True)
    memory = agent_memory.get()
    if memory is None:
        raise NotFound(
            f"{agent_memory.agent!r} has no working memory", hint="begin with: jidomem agent working put KEY VALUE"
        )
    if app.form == "json":
        show_json(memory.to_dict())
        return
    show_rows(app, [*_rows(memory)], _SPACE_COLUMNS)


@working.command("list", formats=ROWS)
@pass_app
def list_agents(app: App) -> None:
    """List the agents with a working memory.

    Examples:
      jidomem agent working list
    """
    show_rows(app, app.read().agents(), _AGENTS)


@working.command("put", writes=_WORKING_WRITES)
@click.argument("key")
@click.argument("value")
@pass_app
def put(app: App, key: str, value: str) -> None:
    """Set KEY in the agent's world to VALUE, as JSON if it parses, else as text.

    Examples:
      jidomem agent working put language en
      jidomem agent working put limits '{"files": 3}'
    """
    _change(app, {"do": "world_put", "key": key, "value": json_or_text(value)})


@working.command("drop", writes=_WORKING_WRITES)
@click.argument("key")
@pass_app
def drop(app: App, key: str) -> None:
    """Remove KEY from the agent's world.

    Examples:
      jidomem agent working drop language
    """
    _change(app, {"do": "world_delete", "key": key})


@working.command("tasks", formats=ROWS, writes=_WORKING_WRITES)
@click.option("--all", "done", is_flag=True, help="Also finished ones.")
@pass_app
def tasks(app: App, done: bool) -> None:
    """List the agent's open tasks, in order.

    Examples:
      jidomem agent working tasks --all
    """
    memory = _agent_memory(app, reads=True).get()
    rows = [] if memory is None else memory.tasks() if done else memory.tasks_open()
    show_rows(app, rows, ("id", "text", "status"))


@working.command("add", writes=_WORKING_WRITES)
@click.argument("text")
@id_option
@click.option("--first", is_flag=True, help="Insert before all other tasks.")
@pass_app
def add(app: App, text: str, id_: str | None, first: bool) -> None:
    """Add a task of the agent.

    Examples:
      jidomem agent working add "ask about the index" --id t1
    """
    where = {"do": "tasks_insert", "index": 0} if first else {"do": "tasks_add"}
    _change(app, {**where, "text": text, **({"id": id_} if id_ else {})})


@working.command("done", writes=_WORKING_WRITES)
@click.argument("task")
@pass_app
def done(app: App, task: str) -> None:
    """Complete the agent's TASK, given by its id.

    Examples:
      jidomem agent working add "ask about the index" --id t1
      jidomem agent working done t1
    """
    _change(app, {"do": "tasks_complete", "id": task})


@working.command("change", writes=_WORKING_WRITES)
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--expected-rev", type=click.IntRange(0), metavar="N", help="Only if the memory is at revision N.")
@pass_app
def change(app: App, file: BinaryIO, expected_rev: int | None) -> None:
    """Apply the changes in FILE or standard input, a JSON array: all of them or none.

    Examples:
      jidomem agent working change changes.json
      echo '[{"do": "ensure_space", "space": "plans", "data": []}]' | jidomem agent working change
    """
    changes = parse_json(file.read())
    _change(app, *(changes if isinstance(changes, list) else [changes]), expected_rev=expected_rev)


@working.command("forget", writes=_WORKING_WRITES)
@pass_app
def forget(app: App) -> None:
    """Delete the working memory of the agent.

    Examples:
      jidomem agent working forget
    """
    agent_memory = _agent_memory(app)
    existed = agent_memory.forget()
    show_result(
        app,
        {"agent": agent_memory.agent, "forgotten": existed},
        message=f"{agent_memory.agent} {'no longer has a working memory' if existed else 'had no working memory'}",
    )


def _agent_memory(app: App, *, reads: bool = False) -> AgentMemory:
    return (app.read(warn_of_damage=False) if reads else app.open()).agent()


def _change(app: App, *changes: Any, expected_rev: int | None = None) -> None:
    agent_memory = _agent_memory(app)
    try:
        memory = agent_memory.apply(changes, expected_rev=expected_rev)
    except JidomemError as refusal:
        refusal.position = None  # the message names the change; positions count intents
        raise
    show_result(
        app,
        {"agent": agent_memory.agent, "rev": memory.rev},
        message=f"{agent_memory.agent} is at revision {memory.rev}",
    )


def _rows(memory: Memory) -> Any:
    for name, space in memory.spaces.items():
        pairs = space.data.items() if is_map(space) else enumerate(space.data) if is_list(space) else [("", space.data)]
        for at, value in pairs:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield {"space": name, "at": str(at), "holds": text}
