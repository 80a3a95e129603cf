"""A submission is one write on its way through the pipeline, with its options.

A retry is an intent with an idempotency key that was answered before; it gets the first receipt.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from jidomem.errors import ConflictItem, IdempotencyMismatch, InvalidRequest, JidomemError, RequestRedacted
from jidomem.rdf.terms import Term, Triple, iri, literal, parse_literal, plain_value
from jidomem.rdf.vocab import BASE, TYPE, jido, local_name
from jidomem.records.intent import CONFLICT_KEY, CommitRef, MemoryUpdateIntent, Receipt, Version, digest
from jidomem.write import canonical
from jidomem.write.conflict import UniqueKey
from jidomem.write.normalize import check_size
from jidomem.write.snapshot import ENDS, WriteSnapshot

if TYPE_CHECKING:
    from jidomem.write.pipeline import Pipeline

IntentInput = MemoryUpdateIntent | Mapping[str, Any]
#: An intent, or the reason why it could not be read.
IntentOrError = IntentInput | JidomemError
#: The answer to a submission: the receipt of a durable commit, or the refusal.
Outcome = Receipt | JidomemError


REDACTED_ITEM, REDACTED_PROPERTY = jido("redactedItem"), jido("redactedProperty")
#: The beginning of the IRI of a redaction in another root, and the properties of its record.
REDACTION = "urn:jido:redaction:"
REDACTED_AT = jido("redactedAt")
REDACTION_PROPERTIES = (REDACTED_ITEM, REDACTED_PROPERTY, REDACTED_AT, jido("orderedBy"), jido("orderReason"))
#: The structural properties of a memory, which cannot be redacted.
STRUCTURAL = frozenset(
    map(jido, ("recordedAt", "recordedIn", "hasAssertionStatus", "supersedes", "supersededBy", "invalidates",
               "invalidatedBy", "appliesToProject", "hasTimestamp", "hasConfidence"))
)  # fmt: skip
#: The author and the session with which a memory that lost them is judged.
LOST_NODES = {"asserted_by": f"{BASE}agents/jidomem-redacted", "asserted_in": f"{BASE}sessions/jidomem-redacted"}


class Records(NamedTuple):
    """The records of a writer on a memory that it recorded elsewhere.

    `lost` are the subjects and properties of the statements that a redaction removed, which have placeholders in the
    intent; the records of these redactions are among the `rows`. `ended_by` are the memories that ended it elsewhere:
    one that is new here ends with them.
    """

    rows: Sequence[Triple] = ()
    lost: frozenset[tuple[Term, Term]] = frozenset()
    ended_by: frozenset[Term] = frozenset()


NO_RECORDS = Records()


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The options of a submitted intent.

    `blobs` has the blob id of each file that the intent is about (None: the present ones), `absent` the files that
    do not exist, each with the nearest existing path. With `propose` the intent waits for a curator. `restates`
    restates a memory that was active, beside the memories that it disagreed with then. `under` is a key that must
    be unique among active memories. The memories in `ending` are replaced by other members of the same commit and
    conflict with nothing, or their conflicts with the restated memory stay. With `relocates` the intent repeats a
    memory whose source was moved, with its confirmations. `imported` permits undeclared values, which earlier
    releases accepted, and keeps the author; `recorded` are the imported memories that a writer recorded before, by IRI,
    with its records on them: they are judged by the memories outside of it only.
    `respelt` has the entries of about that name a path in another form, and that path. `near` has the memories
    that the intent is near to, and for which it becomes a proposal. `request` is the digest by which a retry is
    recognised, by default that of the intent; with "" the intent leaves no receipt for a retry.
    """

    blobs: Mapping[str, str] | None = None
    propose: bool = False
    restates: bool = False
    under: UniqueKey | None = None
    ending: frozenset[str] = frozenset()
    relocates: bool = False
    absent: Mapping[str, str | None] = field(default_factory=dict)
    imported: bool = False
    recorded: Mapping[str, Records] = field(default_factory=dict)
    respelt: Mapping[str, str] = field(default_factory=dict)
    near: tuple[str, ...] = ()
    request: str | None = None

    def is_judged_by(self, intent: MemoryUpdateIntent, other: str) -> bool:
        """Return whether *intent* is judged by the memory *other*: not if both are of one import, recorded before."""
        return not (intent.iri in self.recorded and other in self.recorded)

    def is_open(self, intent: MemoryUpdateIntent, conflict: ConflictItem, view: WriteSnapshot) -> bool:
        """Return whether *conflict* is to be judged: not if it is among memories of one import, recorded before."""
        if conflict.kind != "stale_supersession":
            return conflict.iri not in self.ending and self.is_judged_by(intent, conflict.iri)
        ends = (view.objects(iri(conflict.iri), jido(link)) for link in ("supersededBy", "invalidatedBy"))
        return any(self.is_judged_by(intent, plain_value(end)) for some in ends for end in some)

    def has_judgement(self, item: str | None) -> bool:
        """Return whether the memory *item* was recorded before with the keys of its judgements."""
        return any(name == CONFLICT_KEY for _, name, _ in self.recorded.get(item or "", NO_RECORDS).rows)

    def attributed(self, intent: MemoryUpdateIntent) -> MemoryUpdateIntent:
        """Return *intent* without an author and a session that are placeholders of lost ones."""
        if not self.recorded.get(intent.iri or "", NO_RECORDS).lost:
            return intent
        known: dict[str, Any] = {name: None for name, node in LOST_NODES.items() if getattr(intent, name) == node}
        return replace(intent, **known)

    def _with_ends(self, given: Iterable[Triple], view: WriteSnapshot) -> list[Triple]:
        """Return the rows *given* with the ends of imported memories that a memory ended by them had ended elsewhere.

        As a proposal here, it ends none: what a withdrawn version had replaced would be active, or offered, again.
        """
        rows, done = [*given], set[Term]()
        for old, link, end in rows:
            if link not in ENDS:
                continue
            replaced = (*view.objects(old, jido("supersedes")), *view.objects(old, jido("invalidates")))
            for each in replaced if old not in done and view.is_proposed(old) else ():
                if old in self.recorded.get(plain_value(each), NO_RECORDS).ended_by and not view.has_ended(each):
                    rows.append((each, link, end))
            done.add(old)
        return rows

    def with_records(
        self, item: str, rows: Iterable[Triple], marks: Sequence[Triple], view: WriteSnapshot, literal: int
    ) -> tuple[list[Triple], list[Triple]]:
        """Return *rows* of the memory *item* without those that a redaction removed, with the ends of what it replaced
        elsewhere, and the records on it.

        The records are those from before, and the *marks* of other properties. Raises TooLarge for a text of more than
        *literal* bytes.
        """
        records, lost, _ = self.recorded.get(item, NO_RECORDS)
        for _, name, value in records:
            check_size(local_name(name), plain_value(value), literal)
        given = {name for _, name, _ in records}
        left = [row for row in self._with_ends(rows, view) if row[:2] not in lost]
        if lost:
            left = [row for row in left if _LOST_TERMS.isdisjoint(row)]
        new = (row for row in records if row[0] == iri(item) or _is_new(row, view))
        return left, [*new, *(mark for mark in marks if mark[1] not in given)]


_LOST_TERMS = frozenset(map(iri, LOST_NODES.values()))


def _is_new(row: Triple, view: WriteSnapshot) -> bool:
    """Return whether the *row* of a redaction names a new memory, adds a property, or is of an unknown one."""
    subject, name, value = row
    if name == REDACTED_ITEM:
        return True
    return not view.types(subject) or (name == REDACTED_PROPERTY and value not in view.objects(subject, name))


DEFAULT_OPTIONS = SubmitOptions()


class Submission(NamedTuple):
    """An intent for a project, with its options; an error in the place of the intent is its refusal."""

    project: str
    intent: IntentOrError
    options: SubmitOptions = DEFAULT_OPTIONS


class OtherSubmission(Protocol):
    """A submission that is no intent: a description, an entry, a session, a change of policy and so on."""

    def decide(self, pipeline: Pipeline, view: WriteSnapshot, now: datetime) -> Decision:
        """Return the triples to append and the receipt, or raise the refusal."""


AnySubmission = Submission | OtherSubmission


class Decision(NamedTuple):
    """The triples to append for an accepted submission (none if it is known already), and the receipt.

    `nodes` are the subjects that are new to the project: the commit records its time on them. A receipt without a
    commit gets the commit of its block.
    """

    receipt: Receipt
    triples: tuple[Triple, ...] = ()
    nodes: tuple[Term, ...] = ()


UNCHANGED = Decision(Receipt("", None, Version(), "deduplicated"))
REFUSED = Decision(Receipt("", None, Version(), "refused"))


_KEY, _DIGEST, _RECEIPT = jido("idempotencyKey"), jido("requestDigest"), jido("receipt")


def request_digest(proposal: MemoryUpdateIntent, given: str | None = None) -> str:
    """Return the digest of a request: *given*, else that of the intent; a retry may come from a later session."""
    return _digest(proposal.to_dict()) if given is None else given


def correction_digest(way: str, item: str, reason: str | None, fields: Mapping[str, Any]) -> str:
    """Return the digest of a correction as given: its intent depends on the present state of memory."""
    return _digest({**fields, "way": way, "item": item, "reason": reason})


def _digest(request: Mapping[str, Any]) -> str:
    ignored = ("idempotency_key", "asserted_in")
    values = {name: value for name, value in request.items() if name not in ignored}
    return digest(json.loads(json.dumps(values, default=str)))


def retry_triples(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the triples of *node* that let a retry with the same key get *receipt*."""
    answer = {name: value for name, value in receipt.to_dict().items() if name not in ("commit", "version")}
    return [
        (node, _KEY, literal(intent.idempotency_key or "")),
        (node, _DIGEST, literal(request)),
        (node, _RECEIPT, literal(json.dumps(answer, ensure_ascii=False, sort_keys=True))),
    ]


def submission_triples(node: Term, intent: MemoryUpdateIntent, request: str, receipt: Receipt) -> list[Triple]:
    """Return the record *node* of an intent with a key that was answered with an existing memory."""
    return [
        (node, TYPE, jido("Submission")),
        (node, jido("submittedBy"), iri(intent.asserted_by or "")),
        (node, jido("answeredWith"), iri(receipt.iri)),
        *retry_triples(node, intent, request, receipt),
    ]


def first_receipt(
    intent: MemoryUpdateIntent, request: str, view: WriteSnapshot, sender: str | None = None
) -> Receipt | None:
    """Return the receipt of the first intent with the key of *intent*; None without a key, and for a new one.

    *sender* is the agent of the token: a memory that it wrote for its author is settled by it.
    Raises IdempotencyMismatch when the key was used for another request, RequestRedacted for one whose digest is gone.
    """
    if not intent.idempotency_key or not intent.asserted_by:
        return None
    agent = iri(intent.asserted_by)
    for node in view.subjects(_KEY, literal(intent.idempotency_key)):
        by = [view.objects(node, jido(name)) for name in ("submittedBy", "settledBy", "assertedBy")]
        owner = next(filter(None, by), [])  # none if the name of the agent was redacted, whom nothing names any more
        is_sent = bool(sender) and iri(sender or "") in by[1] and agent in by[2]
        if agent not in owner and not is_sent and (owner or view.types(agent)):
            continue
        first_request = view.first(node, _DIGEST)
        if first_request is None:
            raise redacted(intent.idempotency_key, node)
        if first_request != literal(request):
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


def redacted(key: str, node: Term) -> RequestRedacted:
    """Return the refusal of a request with the idempotency *key* of *node*, whose texts were redacted."""
    return RequestRedacted(
        f"the first request with the idempotency key {key!r} was redacted ({plain_value(node)})",
        hint="do not send that request again, under this or another key: it would store the redacted text again",
    )


def commit_of(node: Term, view: WriteSnapshot) -> tuple[str | None, Version]:
    """Return the commit that recorded *node*; None for a node of the block under construction."""
    commit = view.first(node, jido("recordedIn"))
    position = view.first(commit, jido("position")) if commit else None
    recorded_at = view.first(commit, jido("recordedAt")) if commit else None
    if not (commit and position and recorded_at):
        return None, Version()
    moment = canonical.moment(plain_value(recorded_at)) or ""  # a store may have shortened it
    head = CommitRef(moment, local_name(commit).rsplit(":", 1)[-1], int(parse_literal(position).text))
    return head.id, Version((head,))


def undone_already(item: str, by: Term, changes: Collection[str], view: WriteSnapshot) -> Receipt:
    """Return the receipt of *by*, which undid *item* before; raise InvalidRequest for *changes* of fields."""
    text, hint = f"{item} is undone already, by {plain_value(by)}", f"to redo it: jidomem edit {plain_value(by)} --undo"
    if changes:
        raise InvalidRequest(text, hint=hint)
    return Receipt(plain_value(by), *commit_of(by, view), "deduplicated", warnings=(f"{text}; {hint}",))


class Retry(NamedTuple):
    """How a correction of *agent* with the idempotency *key* is recognised when it is sent again, by its *request*.

    One without a key is not recognised. *sender* is the agent of the token.
    """

    agent: str = ""
    key: str = ""
    request: str = ""
    sender: str | None = None

    def first(self, view: WriteSnapshot) -> Receipt | None:
        """Return the receipt of the first one; None for a new one.

        Raises IdempotencyMismatch when the key was used for another request.
        """
        return first_receipt(self._intent, self.request, view, self.sender)

    def triples(self, receipt: Receipt) -> list[Triple]:
        """Return the triples that let a retry get *receipt*."""
        return retry_triples(iri(receipt.iri), self._intent, self.request, receipt) if self.key else []

    @property
    def _intent(self) -> MemoryUpdateIntent:
        return MemoryUpdateIntent(idempotency_key=self.key, asserted_by=self.agent)
