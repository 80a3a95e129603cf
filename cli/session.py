"""`jidomem session`: work sessions, opened, moved and closed."""

from __future__ import annotations

import click

from jidomem.read.sessions import COLUMNS, sessions
from jidomem_cli.door import ROWS, Door, Verb, Verbs, pass_door
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import show_rows

#: verb -> (the status it gives, what it does)
_MOVES = {
    "pause": ("Paused", "Pause a session."),
    "resume": ("Active", "Go on with a paused session."),
    "close": ("Closed", "Close a session that reached its end."),
    "abandon": ("Abandoned", "End a session that did not."),
}
_WRITES = ("agent", "wait")


@click.group(cls=Verbs)
def session() -> None:
    """Open, move and close work sessions; each keeps the line of what happened to it.

    Examples:
      jidomem session start evening --continues morning
      jidomem session phase evening review
      jidomem session close evening
    """


@session.command("start", writes=_WRITES)
@click.argument("name")
@click.option("--continues", metavar="NAME", help="The session it goes on from.")
@pass_door
def start(door: Door, name: str, continues: str | None) -> None:
    """Open the session NAME.

    Examples:
      jidomem session start s-7 --agent ana
    """
    memory = door.open()
    show_receipt(door, memory, memory.writer.start_session(memory.project, name, continues=continues))


@session.command("phase", writes=_WRITES)
@click.argument("name")
@click.argument("phase")
@pass_door
def phase(door: Door, name: str, phase: str) -> None:
    """Say what the session NAME is at: planning, implementation, debugging or review.

    Examples:
      jidomem session phase morning implementation
    """
    memory = door.open()
    show_receipt(door, memory, memory.writer.move_session(memory.project, name, phase=phase))


@session.command("list", formats=ROWS)
@click.option("--all", "ended", is_flag=True, help="Those that have ended, too.")
@pass_door
def list_sessions(door: Door, ended: bool) -> None:
    """List the sessions that have not ended, oldest first.

    Examples:
      jidomem session list --all
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

    help_text = f"{text}\n\nExamples:\n  jidomem session {verb} morning\n"
    return click.command(verb, cls=Verb, writes=_WRITES, help=help_text)(move)


for _verb in _MOVES:
    session.add_command(_move(_verb))
