"""What a retry is told: the receipt that its key was first answered with, kept beside what it made.  Pure."""

from __future__ import annotations

import json

from jidomem.conflict_keys import digest
from jidomem.errors import ConflictItem, IdempotencyMismatch
from jidomem.intent import MemoryUpdateIntent, Receipt
from jidomem.terms import Term, Triple, bare, iri, literal, parts
from jidomem.version import Head, Version
from jidomem.vocab import TYPE, jido, local_name
from jidomem.write import names
from jidomem.write.view import View

_KEY, _DIGEST, _RECEIPT = jido("idempotencyKey"), jido("requestDigest"), jido("receipt")


def request_of(proposal: MemoryUpdateIntent) -> str:
    """Return the digest of the request as it was made; a retry may come from a later session."""
    told = ("idempotency_key", "asserted_in")
    values = {name: value for name, value in proposal.to_dict().items() if name not in told}
    return digest(json.loads(json.dumps(values, default=str)))


def kept(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the triples of *node* that let a retry with the same key be told *receipt*; none without a key."""
    if not intent.idempotency_key:
        return []
    told = {name: value for name, value in receipt.to_dict().items() if name not in ("commit", "version")}
    return [
        (node, _KEY, literal(intent.idempotency_key)),
        (node, _DIGEST, literal(request)),
        (node, _RECEIPT, literal(json.dumps(told, ensure_ascii=False, sort_keys=True))),
    ]


def submission(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return what *node* keeps of an intent with a key that a memory there is already was the answer to."""
    return [
        (node, TYPE, jido("Submission")),
        (node, jido("submittedBy"), iri(intent.asserted_by or "")),
        (node, jido("answeredWith"), iri(receipt.iri)),
        *kept(node, intent, request, receipt),
    ]


def first_receipt(intent: MemoryUpdateIntent, request: str, view: View) -> Receipt | None:
    """Return the receipt this key was first answered with; raise IdempotencyMismatch when it was for something else."""
    if not intent.idempotency_key or not intent.asserted_by:
        return None
    agent = iri(intent.asserted_by)
    for node in view.subjects(_KEY, literal(intent.idempotency_key)):
        if agent not in (*view.objects(node, jido("assertedBy")), *view.objects(node, jido("submittedBy"))):
            continue
        if view.first(node, _DIGEST) != literal(request):
            raise IdempotencyMismatch(
                f"idempotency_key {intent.idempotency_key!r} was used for another intent ({bare(node)})",
                hint="use a new key for a new intent, or resubmit the first intent unchanged",
            )
        told = json.loads(parts(view.first(node, _RECEIPT) or literal("{}")).text)
        commit, version = commit_of(node, view)
        conflicts = tuple(ConflictItem(**found) for found in told["conflicts"])
        return Receipt(told["iri"], commit, version, told["status"], told["filled"], conflicts, tuple(told["warnings"]))
    return None


def commit_of(node: Term, view: View) -> tuple[str | None, Version]:
    """Return the commit *node* was recorded in; None for what the block being built adds."""
    commit = view.first(node, jido("recordedIn"))
    position = view.first(commit, jido("position")) if commit else None
    recorded_at = view.first(commit, jido("recordedAt")) if commit else None
    if not (commit and position and recorded_at):
        return None, Version()
    moment = names.moment(bare(recorded_at)) or ""  # a store may have shortened it
    head = Head(moment, local_name(commit).rsplit(":", 1)[-1], int(parts(position).text))
    return head.id, Version((head,))
