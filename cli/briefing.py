"""`jidomem briefing`: what an agent should know first."""

from __future__ import annotations

import click

from jidomem.read.tables import plain
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.governing import path_of
from jidomem_cli.tables import form_of, show_json


@click.command(cls=Verb, formats=("md", "json"), as_of=True, valid_at=True)
@click.option("--agent", "who", envvar="JIDOMEM_AGENT", metavar="NAME",
              help="Who is briefed, else $JIDOMEM_AGENT: its tasks come first, and what is new to it.")  # fmt: skip
@click.option("--role", metavar="ROLE", help="Whose matters come first; else the role the agent is declared with.")
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="How long it may be (1500).")
@click.option("--about", multiple=True, metavar="PATH", help="A file that will be worked on; repeat it for more.")
@pass_door
def briefing(door: Door, who: str | None, role: str | None, budget_tokens: int | None, about: tuple[str, ...]) -> None:
    """Tell what an agent should know first: rules, tasks, errors, decisions, what waits and what is new.

    It fits into the budget, and says what was left out and how to ask for it. A token is counted for every three bytes.

    Examples:
      jidomem briefing
      jidomem briefing --agent architect --budget-tokens 800
      jidomem briefing --role Debugger --about src/a.py --json
    """
    memory = door.read()
    told = memory.briefing(
        agent=who,
        role=role,
        budget_tokens=budget_tokens,
        about=[path_of(memory, path) for path in about],
        as_of=door.as_of,
        valid_at=door.valid_at,
    )
    if form_of(door) == "json":
        show_json(plain(told.to_dict()))
    else:
        click.echo(told.text, nl=False)
