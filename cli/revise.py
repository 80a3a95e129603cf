"""`jidomem revise`: correct one memory by a further one; nothing is ever rewritten."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from jidomem import JidomemError
from jidomem.decoding import decode_json
from jidomem.errors import InvalidRequest
from jidomem.intent import LIST_FIELDS
from jidomem_cli.complain import as_changes, tell
from jidomem_cli.door import Door, Verb, pass_door
from jidomem_cli.fields import REASON, as_named_here, own_words, whole_id
from jidomem_cli.receipts import show_receipt
from jidomem_cli.tables import short


@click.command(cls=Verb, writes=("agent", "session", "wait"))
@click.argument("item", metavar="IRI")
@click.option("--supersede", metavar="TEXT", help="What is true instead.")
@click.option("--invalidate", is_flag=True, help="It was wrong, or holds no longer; put nothing in its place.")
@click.option("--confirm", is_flag=True, help="It was looked at again and still holds; a proposal is accepted.")
@click.option("--undo", is_flag=True, help="Say again what it superseded or withdrew; or itself, if it has ended.")
@click.option("--set", "changes", multiple=True, metavar="FIELD=VALUE", help="Change a field; repeat it for more.")
@click.option("--reason", metavar="TEXT", help="Why; needed to invalidate.", callback=own_words)
@click.option("--idempotency-key", metavar="TEXT", help="A retry with the same key gets the first receipt again.")
@click.option("--dry-run", is_flag=True, help="Judge it and keep nothing.")
@pass_door
def revise(
    door: Door,
    item: str,
    supersede: str | None,
    invalidate: bool,
    confirm: bool,
    undo: bool,
    changes: tuple[str, ...],
    reason: str | None,
    idempotency_key: str | None,
    dry_run: bool,
) -> int:
    """Supersede the memory IRI with a changed one, every other field carried over; withdraw, confirm or undo it.

    Examples:
      jidomem revise 1a2b3c4d --supersede "Use Oxigraph 0.5" --reason "faster loading"
      jidomem revise 1a2b3c4d --undo --reason "it lost data"
      jidomem revise 5e6f7a8b --set status=Completed --set assigned_to=ana
      jidomem revise 9c0d1e2f --confirm --set expires_on=2030-01-01 --dry-run
      jidomem revise 9c0d1e2f --invalidate --reason "measured wrongly"
    """
    memory = door.open()
    whole = whole_id(memory, item)
    try:
        receipt = memory.writer.correct(
            memory.project,
            whole,
            supersede=supersede,
            invalidate=invalidate,
            confirm=confirm,
            undo=undo,
            changes=as_named_here(memory, _fields(changes)),
            reason=reason,
            dry_run=dry_run,
            who={"idempotency_key": idempotency_key} if idempotency_key else {},
        )
    except InvalidRequest:
        raise
    except JidomemError as refusal:
        tell(refusal, door, options=partial(_withdrawals, reason=reason) if invalidate else as_changes)
        return refusal.exit_code
    show_receipt(door, memory, receipt)
    return 0


def _withdrawals(fields: Mapping[str, Any], *, reason: str | None) -> str:
    """Return the commands that withdraw what *fields* name instead, ready to paste."""
    words = ("--invalidate", "--reason", shlex.quote(reason) if reason else REASON)
    items = fields.get("invalidates", ())
    return "; ".join(f"jidomem revise {shlex.quote(short(item))} {' '.join(words)}" for item in items)


def _fields(changes: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields to change; a list is what all its mentions give, and an empty value leaves a field out."""
    fields: dict[str, Any] = {}
    for change in changes:
        name, equals, value = change.partition("=")
        if not equals or not name:
            raise InvalidRequest(f"{change!r} sets no field", hint="write FIELD=VALUE, such as status=Completed")
        name = name.replace("-", "_")
        if name in LIST_FIELDS:
            fields.setdefault(name, []).extend(_triples(value) if name == "extra_triples" else _entries(value))
        else:
            fields[name] = value or None
    return fields


def _entries(value: str) -> list[str]:
    """Return the entries of a list: those of a JSON list of texts, else *value* itself, none where it is empty."""
    try:
        entries = decode_json(value) if value.startswith("[") else None
    except ValueError:
        entries = None
    if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
        return entries
    return [value] if value else []


def _triples(value: str) -> list[Any]:
    """Return the extra triples in a JSON list, which is one of them or holds several; none where it is empty."""
    if not value:
        return []
    try:
        triples = decode_json(value)
    except ValueError as error:
        hint = """write extra_triples='["jido:impactLevel", "high"]'"""
        raise InvalidRequest(f"{value!r} is no JSON list", hint=hint) from error
    is_list = isinstance(triples, list) and all(isinstance(triple, list) for triple in triples)
    return triples if is_list else [triples]
