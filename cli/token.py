"""`jidomem token`: who may ask a served memory, as whom, in which role and for which projects."""

from __future__ import annotations

import click

from jidomem.errors import InvalidRequest
from jidomem.runtime.keyring import take_back
from jidomem.runtime.own import EVERY, ROLES, Token, read
from jidomem.runtime.settings import address_of, own_config
from jidomem_cli.door import ROWS, Door, Verbs, pass_door
from jidomem_cli.tables import show_json, show_rows

_COLUMNS = ("id", "agent", "role", "projects", "root", "added")


@click.group(cls=Verbs)
def token() -> None:
    """Say who may ask a served memory: with a token, as an agent in a role, for some of its projects.

    They are kept in your own configuration, by a digest alone, or with the memory where that is shared: then every
    server believes them. A server takes in a change with the next request, of a shared memory seconds later.

    Examples:
      jidomem token add ana --role curator
      jidomem token list
    """


@token.command("add")
@click.argument("agent")
@click.option("--role", type=click.Choice(ROLES), default="agent", show_default=True, help="What it may do.")
@click.option("--project", "projects", multiple=True, metavar="ID", help="What it reaches; repeat it for more.")
@click.option("--all-projects", is_flag=True, help="It reaches every project there is or will be.")
@pass_door
def add(door: Door, agent: str, role: str, projects: tuple[str, ...], all_projects: bool) -> None:
    """Give out a token for AGENT. It is printed this once, and kept nowhere.

    Without --project it reaches the project of this root.

    Examples:
      jidomem token add ana
      jidomem token add ci --role reader --all-projects
      jidomem token add rita --role curator --project p --project q
    """
    if all_projects and projects:
        raise InvalidRequest("it reaches all projects or the ones named", hint="leave out --project or --all-projects")
    with door.open() as memory:
        memory.writer.acting_as(agent, role)  # raises for what would be refused with each request
        keyring = memory.place.keyring()
        reached = (EVERY,) if all_projects else projects or (memory.project,)
        secret, made = keyring.give_out(agent, role, reached, memory.sources)
    if door.json:
        show_json({"token": secret, **_told(made)})
        return
    click.echo(secret)
    door.say(f"{agent} has it as {role}, for {', '.join(made.projects)}; it is not shown again")
    door.say(f"take it back with: jidomem token remove {made.id}")


@token.command("list", formats=ROWS)
@pass_door
def list_tokens(door: Door) -> None:
    """List the tokens given out, for every folder or for the shared root named, without what they are.

    Examples:
      jidomem token list
    """
    shared = address_of(door.root) is not None
    tokens = door.open().place.keyring().tokens if shared else read(own_config()).tokens
    show_rows(door, [_told(each) for each in tokens], _COLUMNS)


@token.command("remove")
@click.argument("id_", metavar="ID")
@pass_door
def remove(door: Door, id_: str) -> None:
    """Take back the token ID: from now on it is none.

    Examples:
      jidomem token remove 1f2e3d4c
    """
    shared = address_of(door.root) is not None
    gone = door.open().place.keyring().take_back(id_) if shared else take_back(own_config(), id_)
    if door.json:
        show_json(_told(gone))
    else:
        door.say(f"taken back: {gone.id}, of {gone.agent}, for {gone.root}")


def _told(each: Token) -> dict[str, object]:
    return {
        "id": each.id,
        "agent": each.agent,
        "role": each.role,
        "projects": list(each.projects),
        "root": each.root,
        "added": each.added,
    }
