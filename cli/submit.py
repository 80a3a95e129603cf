"""`jidomem submit`: intents as JSON, each answered with a receipt or a refusal."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from typing import Any, BinaryIO

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.errors import STOPPING, InvalidRequest
from jidomem_cli.complain import tell
from jidomem_cli.door import Door, Verb, clean, pass_door
from jidomem_cli.intents import read
from jidomem_cli.progress import Bar, bar
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import show_json

Outcome = Receipt | JidomemError


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.argument("file", type=click.File("rb"), default="-")
@click.option("--atomic", is_flag=True, help="All of them in one commit, or none.")
@click.option("--dry-run", is_flag=True, help="Judge each as if it were alone, and keep nothing.")
@pass_door
def submit(door: Door, file: BinaryIO, atomic: bool, dry_run: bool) -> int:
    """Submit the intents in FILE, or of standard input: one JSON object, an array, or one object a line.

    Of several each gets one line in order: the IRI it got, or why it was refused. The exit code is that of the first
    refusal. --agent and --session stand in for intents that do not say who asserts them, and where.

    Examples:
      jidomem submit intent.json
      jidomem submit --json --atomic intents.jsonl
      cat intents.jsonl | jidomem submit --dry-run --agent ana
    """
    if atomic and dry_run:
        raise InvalidRequest("--dry-run judges each intent alone, --atomic all together", hint="give one of the two")
    memory = door.open()
    batch = read(file)
    intents: Iterable[Any] = (_signed(intent, memory, door) for intent in batch.intents)
    if not batch.many:
        show_receipt(door, memory, memory.writer.submit_intent(memory.project, _only(intents), dry_run=dry_run))
        return 0
    told = _Told(door, bar(door, file, batch.intents))
    try:
        if atomic:
            for receipt in memory.writer.submit_many(memory.project, _sound(intents), atomic=True):
                told.tell(receipt)
        elif dry_run:
            _judge_each(memory, intents, told)
        else:
            _submit_each(memory, intents, told)
    finally:
        told.close()
    return told.finish()


def _submit_each(memory: Jidomem, intents: Iterable[Any], told: _Told) -> None:
    """Submit one after the other; where the machine refuses, no more than were submitted with that one."""
    with closing(memory.writer.submit_many(memory.project, iter(intents))) as outcomes:
        for outcome in outcomes:
            told.tell(outcome)
            if told.is_stopped and told.count == outcomes.submitted:
                return


def _judge_each(memory: Jidomem, intents: Iterable[Any], told: _Told) -> None:
    for intent in intents:
        try:
            told.tell(memory.writer.submit_intent(memory.project, *_sound([intent]), dry_run=True))
        except JidomemError as refusal:
            told.tell(refusal)
        if told.is_stopped:
            return


def _signed(intent: Any, memory: Jidomem, door: Door) -> Any:
    """Return *intent* with the agent and session of the options where it names none."""
    if not isinstance(intent, dict):
        return intent
    options = {
        "asserted_by": door.agent,
        "asserted_in": door.session or (memory.writer.session if door.agent else None),
    }
    return {**{name: value for name, value in options.items() if value}, **intent}


def _only(intents: Iterable[Any]) -> Any:
    (intent,) = _sound(intents)
    return intent


def _sound(intents: Iterable[Any]) -> list[Any]:
    """Return all intents; raises the first that could not be read."""
    found = []
    for position, intent in enumerate(intents):
        if isinstance(intent, JidomemError):
            intent.position = position
            raise intent
        found.append(intent)
    return found


class _Told:
    """The outcomes told so far: how many, the first refusal's exit code, and whether the machine refuses them all."""

    def __init__(self, door: Door, shown: Bar | None) -> None:
        self._door = door
        self._bar = shown
        self.count = self._kept = self._code = 0
        self.is_stopped = False

    def tell(self, outcome: Outcome) -> None:
        """Print an outcome."""
        if isinstance(outcome, JidomemError):
            self._refused(outcome)
        else:
            self._kept += 1
            show_json(outcome.to_dict()) if self._door.json else click.echo(outcome.iri)
        self.count += 1
        if self._bar:
            self._bar.show(self.count, self.count - self._kept)

    def close(self) -> None:
        """Leave the progress bar as it stands."""
        if self._bar:
            self._bar.close()

    def finish(self) -> int:
        """Say how many were kept, and return the exit code."""
        if self.is_stopped:
            self._door.warn(f"stopped after {self.count:,} intents; none after them was tried")
        self._door.say(f"{self._kept:,} of {self.count:,} accepted")
        return self._code

    def _refused(self, error: JidomemError) -> None:
        error.position = self.count
        self._code = self._code or error.exit_code
        self.is_stopped = self.is_stopped or error.code in STOPPING
        if not self._door.json:
            click.echo(f"refused: {error.code}: {clean(error.detail)}")
        tell(error, self._door)
