"""Every verb of the command line, from the tree of commands, with arguments with which it opens a root."""

from dataclasses import dataclass

import click

from jidomem_cli.main import cli

#: Verbs that open no root -> the reason.
ROOTLESS = {
    "demo": "makes a temporary root",
    "completion": "prints a script",
    "setup": "writes the files of a client",
    "access token list": "reads the user's own configuration",
    "access token remove": "changes the user's own configuration",
    "journal restore": "is for a shared root, not for a folder",
}
#: Arguments for verbs that would not open the root with the placeholders of `required_arguments`.
ARGUMENTS = {
    "init": ("{parent}",),
    "guard": ("a.py",),
    "journal rollback": ("--to", "2026-01-01T00:00:00Z", "--reason", "r"),
    "journal replay": ("--check",),
    "access policy grant": ("ana", "curator"),
    "agent working put": ("note", "1"),
    "root push": ("{root}",),
    "root pull": ("{root}",),
    "root migrate": ("{root}", "{free}"),
    "root backup": ("{free}",),
    "root restore": ("{backup}",),
    "root import code": ("{parent}",),
    "serve": ("--port", "{busy}"),
    "access trust": ("{root}",),
    "journal diff": ("--as-of", "0"),
    "check": (),
    "agent session phase": ("s-1", "review"),
    "review": (),
    "journal redact": ("--text", "nothing says this", "--reason", "r"),
    "access policy set": ("deny", "--kind", "fact"),
    "ontology propose": ("jido:x", "--kind", "class", "--definition", "d", "--reason", "r"),
}  # fmt: skip


@dataclass(frozen=True)
class Call:
    """A verb with its arguments."""

    verb: str
    arguments: tuple[str, ...]

    def words(self, **places):
        """Return the words of the command line, with *places* for their placeholders."""
        return [*self.verb.split(), *(word.format(**places) for word in self.arguments)]


def verbs(group=cli, path=()):
    """Yield the words of each verb and its command."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def required_arguments(command):
    """Yield arguments of the types that a command requires."""
    for each in command.params:
        if each.required or isinstance(each, click.Argument):
            yield from each.opts if isinstance(each, click.Option) else ()
            yield _value(each.type)


def _value(kind):
    if isinstance(kind, click.Choice):
        return kind.choices[0]
    return "{file}" if isinstance(kind, (click.Path, click.File)) else "x"


def calls():
    """Return every verb that opens a root, with arguments."""
    return [
        Call(verb, ARGUMENTS[verb] if verb in ARGUMENTS else tuple(required_arguments(command)))
        for verb, command in verbs()
        if verb not in ROOTLESS
    ]
