"""A receipt, told: the IRI as data, what came of it in words."""

from __future__ import annotations

import click

from jidomem import Jidomem, Receipt
from jidomem.runtime.settings import OWN
from jidomem_cli.door import Door, clean
from jidomem_cli.tables import short, show_json


def show_receipt(door: Door, memory: Jidomem, receipt: Receipt, outcome: str | None = None) -> None:
    """Print *receipt*, with *outcome* in place of its status if given; one without a commit was judged only."""
    if door.json:
        show_json(receipt.to_dict())
    else:
        click.echo(receipt.iri)
    told = f"{outcome or receipt.status}: {short(receipt.iri)} in project {memory.project}"
    door.say(f"would be {told}; nothing was kept" if receipt.commit is None else told)
    if memory.settings.found == OWN and receipt.commit is not None:
        door.say(f"kept in your own memory, {memory.settings.place}; a repository gets one with: jidomem init")
    if door.verbose:
        door.say(f"version {receipt.version}, commit {receipt.commit}, root {memory.settings.place}")
        for name, value in receipt.filled.items():
            door.say(f"filled in: {name} = {clean(str(value))}")
    for conflict in receipt.conflicts:
        door.warn(f"{conflict.kind}: {clean(conflict.why)}")
    for warning in receipt.warnings:
        door.warn(clean(warning))
