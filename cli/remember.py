"""`jidomem remember`: keep one thing with no ceremony."""

from __future__ import annotations

from typing import Any

import click

from jidomem import JidomemError
from jidomem_cli.complain import as_options, tell
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import as_named_here, given, intent_options
from jidomem_cli.receipts import show_receipt

_CHECKS = {"forbids": "jido:forbidsPattern", "requires": "jido:requiresPattern", "check_command": "jido:checkCommand"}


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.argument("text")
@intent_options()
@click.option("--forbids", multiple=True, metavar="PATTERN", help="What no file may hold that a convention governs.")
@click.option("--requires", multiple=True, metavar="PATTERN", help="What every such file holds.")
@click.option("--check-command", multiple=True, metavar="COMMAND", help="What fails where such a file breaks it.")
@click.option("--dry-run", is_flag=True, help="Judge it and keep nothing.")
@pass_door
def remember(door: Door, /, text: str, dry_run: bool, **fields: Any) -> int:
    """Keep TEXT and print the IRI it got: a fact of medium confidence, unless options say otherwise.

    Examples:
      jidomem remember "the build needs Rust 1.80"
      jidomem remember "Ship the importer" --type task --assigned-to ana --about importer.py
      jidomem remember "Use Oxigraph 0.5" --type decision --topic store --rationale "it is faster" --supersedes 1a2b3c4d
      jidomem remember "No print" --type convention --enforcement-level Strict --about "src/**" --forbids "print[(]"
    """
    memory = door.open()
    patterns = [(name, value) for name in _CHECKS for value in fields.pop(name)]
    flags = {value: f"--{name.replace('_', '-')}" for name, value in patterns}
    checks = [[_CHECKS[name], {"@value": value}] for name, value in patterns]
    fields |= {"extra_triples": checks} if checks else {}
    values = as_named_here(memory, given(fields))
    try:
        receipt = memory.writer.remember(memory.project, text, dry_run=dry_run, **values)
    except JidomemError as refusal:
        if not text.strip():
            refusal.hint = 'say what to remember: jidomem remember "the build needs Rust 1.80"'
        if at_fault := [flags[each.value] for each in refusal.violations if each.value in flags]:
            refusal.hint = refusal.hint.replace("`extra_triples`", " and ".join(dict.fromkeys(at_fault)))
        tell(refusal, door, options=as_options if text.strip() else None)
        return refusal.exit_code
    show_receipt(door, memory, receipt)
    return 0
