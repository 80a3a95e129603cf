"""`jidomem conversation`: what was said in a work session, recorded turn by turn and read back."""

from __future__ import annotations

import click

from jidomem_cli.door import ROWS, Door, Verbs, pass_door
from jidomem_cli.tables import show_json, show_rows

_COLUMNS = ("index", "timestamp", "asked_by", "prompt", "answered_by", "answer")


@click.group(cls=Verbs)
def conversation() -> None:
    """Record what is said in a work session, word for word, and read it back.

    Examples:
      jidomem conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem conversation show evening
    """


@conversation.command("show", formats=ROWS, as_of=True)
@click.argument("session")
@click.option("--last", type=click.IntRange(1), metavar="N", help="The last N turns; else all.")
@pass_door
def show(door: Door, session: str, last: int | None) -> None:
    """List the turns of the conversation of SESSION, in their order.

    Examples:
      jidomem conversation record evening --prompt "which index?" --answer "Oxigraph"
      jidomem conversation show evening --last 10
    """
    turns = door.read().conversation(session).turns(last, as_of=door.as_of)
    show_rows(door, [turn.to_dict() for turn in turns], _COLUMNS)


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
      jidomem conversation record evening --prompt "which index?" --asked-by ana --answer "Oxigraph"
    """
    memory = door.open()
    said = memory.conversation(session).record(prompt, answer, asked_by=asked_by, timestamp=timestamp)
    if door.json:
        show_json(said.to_dict())
    else:
        click.echo(said.iri)
