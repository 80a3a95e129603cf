"""`jidomem briefing`: what an agent should know first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from jidomem.clients import dialects
from jidomem.clients.setups import CLIENTS
from jidomem.read.tables import plain
from jidomem.runtime.guard_log import GuardLog
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.hook import CLIENTS as HOOKED
from jidomem_cli.hook import answering
from jidomem_cli.paths import Paths
from jidomem_cli.tables import form_of, show_json


@click.command(cls=Verb, formats=("md", "json"), as_of=True, valid_at=True)
@click.option("--agent", "who", envvar="JIDOMEM_AGENT", metavar="NAME",
              help="Who is briefed, else $JIDOMEM_AGENT: its tasks come first, and what is new to it.")  # fmt: skip
@click.option("--role", metavar="ROLE", help="Whose matters come first; else the role the agent is declared with.")
@click.option("--budget-tokens", type=click.IntRange(1), metavar="N", help="How long it may be (1500).")
@click.option("--about", multiple=True, metavar="PATH", help="A file that will be worked on; repeat it for more.")
@click.option("--task", metavar="TEXT", help="The work to be done, in words: memories that match come early.")
@click.option("--hook", type=click.Choice(HOOKED), help="Answer a client that calls this when a session begins.")
@pass_door
def briefing(
    door: Door, who: str | None, role: str | None, budget_tokens: int | None, about: tuple[str, ...],
    task: str | None, hook: str | None,
) -> None:  # fmt: skip
    """Tell what an agent should know first: rules that bind, then what is near to its files and task, then the rest.

    It fills the budget, and says what was left out and how to ask for it. A token is counted for every three bytes.

    Examples:
      jidomem briefing
      jidomem briefing --agent architect --budget-tokens 800
      jidomem briefing --about src/a.py --task "retry failed uploads"
      jidomem briefing --role Debugger --about src/a.py --json
    """
    if hook is not None:
        answering(
            door, hook, "briefing", lambda said: _begun(door, said, who or CLIENTS[hook].agent, role, budget_tokens)
        )
        return
    memory = door.read()
    told = memory.briefing(
        agent=who,
        role=role,
        budget_tokens=budget_tokens,
        about=Paths(memory.settings.root, memory.tree).each(about),
        task=task,
        as_of=door.as_of,
        valid_at=door.valid_at,
    )
    if form_of(door) == "json":
        show_json(plain(told.to_dict()))
    else:
        click.echo(told.text, nl=False)


def _begun(
    door: Door, said: Mapping[str, Any], agent: str, role: str | None, budget_tokens: int | None
) -> Mapping[str, Any]:
    """Return the briefing of *agent* as context; nothing where nothing is remembered."""
    memory = door.open()
    if not memory.settings.root.is_dir() or memory.project not in memory.projects():
        return {}
    if said.get("source") == "compact" and memory.read_log is not None:  # what it was shown it has lost
        GuardLog(memory.read_log, memory.project).forget_shown(dialects.session_of(said) or "")
    told = memory.briefing(agent=agent, role=role, budget_tokens=budget_tokens)
    return {"context": told.text} if any(section.entries or section.left_out for section in told.sections) else {}
