"""`jidomem submit`: intents as JSON, each answered with a receipt or a refusal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

import click

from jidomem import Jidomem, JidomemError, Receipt
from jidomem.errors import InvalidRequest
from jidomem_cli.complain import tell
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.intents import read
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import clean, show_json

CHUNK = 1_000
#: Refusals that say nothing about an intent: the next one would meet the same.
_MACHINE = ("busy", "write_failed", "journal_damaged", "invalid_config", "invalid_project", "unknown_project")
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
    if atomic:
        told = _Told(door)
        told.tell(memory.writer.submit_many(memory.project, _sound(intents), atomic=True))
        return told.finish()
    return _in_chunks(door, memory, iter(intents), dry_run)


def _in_chunks(door: Door, memory: Jidomem, intents: Iterator[Any], dry_run: bool) -> int:
    """Submit a thousand at a time, tell each, and return the exit code of the first refusal."""
    told = _Told(door)
    while chunk := list(islice(intents, CHUNK)):
        outcomes = _outcomes(memory, chunk, dry_run)
        told.tell(outcomes)
        if any(isinstance(outcome, JidomemError) and outcome.code in _MACHINE for outcome in outcomes):
            door.warn(f"stopped after {told.count:,} intents; none after them was tried")
            break
    return told.finish()


def _outcomes(memory: Jidomem, chunk: Sequence[Any], dry_run: bool) -> list[Outcome]:
    """Return one outcome for each of *chunk*, where what could not be read is its own refusal."""
    sound = [intent for intent in chunk if not isinstance(intent, JidomemError)]
    if dry_run:
        judged = iter([_judged(memory, intent) for intent in sound])
    else:
        judged = iter(memory.writer.submit_many(memory.project, sound))
    return [intent if isinstance(intent, JidomemError) else next(judged) for intent in chunk]


def _judged(memory: Jidomem, intent: Any) -> Outcome:
    try:
        return memory.writer.submit_intent(memory.project, intent, dry_run=True)
    except JidomemError as refusal:
        return refusal


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
    """The outcomes told so far: how many, and the first refusal's exit code."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self.count = self._kept = self._code = 0
        self._shows_progress = sys.stderr.isatty() and not door.quiet and not sys.stdout.isatty()

    def tell(self, outcomes: Sequence[Outcome]) -> None:
        """Print each outcome, in order."""
        for outcome in outcomes:
            if isinstance(outcome, JidomemError):
                self._refused(outcome)
            else:
                self._kept += 1
                show_json(outcome.to_dict()) if self._door.json else click.echo(outcome.iri)
            self.count += 1
        if self._shows_progress:
            click.echo(f"\r{self.count:,} submitted, {self.count - self._kept:,} refused", err=True, nl=False)

    def finish(self) -> int:
        """Say how many were kept, and return the exit code."""
        if self._shows_progress:
            click.echo(err=True)
        self._door.say(f"{self._kept:,} of {self.count:,} accepted")
        return self._code

    def _refused(self, error: JidomemError) -> None:
        error.position = self.count
        self._code = self._code or error.exit_code
        if not self._door.json:
            click.echo(f"refused: {error.code}: {clean(error.detail)}")
        tell(error, self._door)
