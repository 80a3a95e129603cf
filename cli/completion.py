"""`jidomem completion`: the script that lets a shell complete verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.tables import show_json


@click.command(cls=Verb)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
@pass_door
def completion(door: Door, context: click.Context, shell: str) -> None:
    """Print the completion script of SHELL; load it in the shell's own start-up file.

    Examples:
      jidomem completion bash
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(context.find_root().command, {}, "jidomem", "_JIDOMEM_COMPLETE").source()
    show_json({"shell": shell, "script": script}) if door.json else click.echo(script)
