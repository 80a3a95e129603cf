"""A retry is an intent with an idempotency key that was answered before: it gets the first receipt. Pure over rows."""

from __future__ import annotations

import json

from jidomem.errors import ConflictItem, IdempotencyMismatch
from jidomem.rdf.terms import Term, Triple, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import TYPE, jido, local_name
from jidomem.records.active import digest
from jidomem.records.intent import CommitRef, MemoryUpdateIntent, Receipt, Version
from jidomem.write import canonical
from jidomem.write.snapshot import WriteSnapshot

_KEY, _DIGEST, _RECEIPT = jido("idempotencyKey"), jido("requestDigest"), jido("receipt")


def request_digest(proposal: MemoryUpdateIntent) -> str:
    """Return the digest of a request as it was made; a retry may come from a later session."""
    ignored = ("idempotency_key", "asserted_in")
    values = {name: value for name, value in proposal.to_dict().items() if name not in ignored}
    return digest(json.loads(json.dumps(values, default=str)))


def retry_triples(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the triples of *node* by which a retry with the same key gets *receipt*."""
    answer = {name: value for name, value in receipt.to_dict().items() if name not in ("commit", "version")}
    return [
        (node, _KEY, literal(intent.idempotency_key or "")),
        (node, _DIGEST, literal(request)),
        (node, _RECEIPT, literal(json.dumps(answer, ensure_ascii=False, sort_keys=True))),
    ]


def submission_triples(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the record *node* of an intent with a key whose answer is a memory that exists already."""
    return [
        (node, TYPE, jido("Submission")),
        (node, jido("submittedBy"), iri(intent.asserted_by or "")),
        (node, jido("answeredWith"), iri(receipt.iri)),
        *retry_triples(node, intent, request, receipt),
    ]


def first_receipt(intent: MemoryUpdateIntent, request: str, view: WriteSnapshot) -> Receipt | None:
    """Return the receipt that the key of *intent* was first answered with.

    Raises IdempotencyMismatch when the key was used for another request.
    """
    if not intent.idempotency_key or not intent.asserted_by:
        return None
    agent = iri(intent.asserted_by)
    for node in view.subjects(_KEY, literal(intent.idempotency_key)):
        if agent not in (*view.objects(node, jido("assertedBy")), *view.objects(node, jido("submittedBy"))):
            continue
        if view.first(node, _DIGEST) != literal(request):
            raise IdempotencyMismatch(
                f"idempotency_key {intent.idempotency_key!r} was used for another intent ({plain_value(node)})",
                hint="use a new key for a new intent, or resubmit the first intent unchanged",
            )
        first = json.loads(parse_literal(view.first(node, _RECEIPT) or literal("{}")).text)
        commit, version = commit_of(node, view)
        conflicts = tuple(ConflictItem(**each) for each in first["conflicts"])
        warnings = tuple(first["warnings"])
        return Receipt(first["iri"], commit, version, first["status"], first["filled"], conflicts, warnings)
    return None


def commit_of(node: Term, view: WriteSnapshot) -> tuple[str | None, Version]:
    """Return the commit that *node* was recorded in; None for a node of the block that is being built."""
    commit = view.first(node, jido("recordedIn"))
    position = view.first(commit, jido("position")) if commit else None
    recorded_at = view.first(commit, jido("recordedAt")) if commit else None
    if not (commit and position and recorded_at):
        return None, Version()
    moment = canonical.moment(plain_value(recorded_at)) or ""  # a store may have shortened it
    head = CommitRef(moment, local_name(commit).rsplit(":", 1)[-1], int(parse_literal(position).text))
    return head.id, Version((head,))
