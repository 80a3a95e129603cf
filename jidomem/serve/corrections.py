"""Corrections over HTTP: one memory superseded, withdrawn, confirmed, brought back or changed, by a further one."""

from __future__ import annotations

from typing import Any

from flask import Response, request

from jidomem.errors import InvalidRequest
from jidomem.serve import wire
from jidomem.serve.site import Site

_WHO = {"asserted_by": str, "asserted_in": str}
TAKES = {
    "supersede": str, "invalidate": bool, "confirm": bool, "undo": bool, "set": dict, "reason": str, **_WHO,
}  # fmt: skip


def revise(site: Site, project: str, id: str) -> Response:  # noqa: A002 - the name of the part of the path
    """Return the receipt of the memory that corrects one."""
    dry_run = wire.flag(wire.arguments("dry_run"), "dry_run")
    values = wire.json_object(TAKES)
    who: dict[str, Any] = {name: values.pop(name) for name in _WHO if name in values}
    if key := request.headers.get("Idempotency-Key"):
        who["idempotency_key"] = key
    changes = values.pop("set", {})
    if taken := [*(changes.keys() & (*_WHO, "idempotency_key", "reason"))]:
        raise InvalidRequest(f"set cannot set {taken[0]}", hint=f"give {taken[0]} beside set")
    item = site.memory.reader.resolve(project, id)
    receipt = site.writer.correct(project, item, changes=changes, dry_run=dry_run, who=who, **values)
    return wire.answer(receipt.to_dict(), 200 if dry_run or receipt.status == "deduplicated" else 201)
