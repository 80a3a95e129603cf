"""The review queue of a curator: proposals, disagreements, due memories and near pairs, the most urgent first.

`review_cache` has the facts behind the queue. `settle_by_rule` applies the rules of the policy.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any, cast

from jidomem.base.clock import format_timestamp
from jidomem.base.containers import reachable
from jidomem.base.words import TELL_LITTLE
from jidomem.curation.review_cache import ReviewCache, review_cache, rows_about
from jidomem.errors import JidomemError
from jidomem.index.projection import OPPOSITE, STALE, VALUE
from jidomem.rdf.terms import Term, iri, moment_in, plain_value
from jidomem.rdf.vocab import CLASS_OF_TYPE, REDACTED, family, graph_iri, jido
from jidomem.read.history import Revisions, reason
from jidomem.read.lists import Cursor, PagePosition, page_size
from jidomem.read.reader import MemoryReader
from jidomem.records.active import is_due, is_record_of
from jidomem.records.differences import differences
from jidomem.records.intent import IDENTICAL, Receipt
from jidomem.records.named_query import to_term
from jidomem.records.policy import AccessPolicy, PolicyChange
from jidomem.records.recall import NearPair
from jidomem.write import conflict
from jidomem.write.permissions import check_waits
from jidomem.write.settlement import (
    ACTIONS,
    Settlement,
    ended_by,
    ends_strict_convention,
    identical_proposals,
    newer_proposal,
)
from jidomem.write.snapshot import WriteSnapshot
from jidomem.write.triples import needs_review_date
from jidomem.write.writer import MemoryWriter

#: Reason for a review -> its question.
QUESTIONS = {
    "review_due": "Does it still hold? It was to be looked at again by then.",
    "overdue": "Is it done? It was due by then.",
    "no_longer_valid": "What holds now? It said that it would hold until then.",
    "basis_withdrawn": "Does it still hold? It rests on a withdrawn memory.",
    "no_review_date": "When is it looked at again? It is assumed, and nobody set a date.",
    "check_waits": "May its check stop edits? It does so once a curator accepts it.",
    "redacted": "Is it to be withdrawn? Its summary was redacted on {}.",
    "rationale_redacted": "Why does it hold? Its rationale was redacted on {}.",
    "about_redacted": "Which files is it about? A place was redacted on {}; without another it applies to no file.",
    "forbids_redacted": "What does it forbid? A pattern was redacted on {}, and stops no edit.",
    "requires_redacted": "What does it require? A pattern was redacted on {}, and stops no edit.",
    "check_command_redacted": "Which command checks it? One was redacted on {}, and stops no edit.",
    "topic_redacted": "What is its topic? It was redacted on {}.",
}

#: After so many days an item moves up a tier, unless it is a near pair.
OVERDUE = 30
#: The kind of a pair of active memories that say nearly the same, and of two records of one memory.
NEAR, WRITTEN = "near", "written_differently"
_BINDING = ("decision", "convention")
_OF_DUE = ("accept", "reject")
_OF_OPPOSED = ("supersede", "keep-both", "reject")
#: The actions on a proposal to withdraw what was replaced since, or to change what was withdrawn since.
ENDING_ACTIONS = ("supersede", "reject")
_MARKER = jido("DeletedMarker")
_OF_ONE = ("accept", "reject", "supersede")  # a predecessor has one successor, a property one value: not both can stay


@dataclass(frozen=True, slots=True)
class QueueItem:
    """One item of the queue.

    The tier is 1 for a conflict, 2 for a binding proposal, 3 for another, 4 for a due memory, 5 for a near pair.
    `agents` asserted or confirmed the item, `other_agents` the other one. `leaning` is the number of dependents,
    `actions` are the ways to settle the item. `source` is its evidence, `place` the file and line of an imported entry.
    `replaces` are the memories that a proposal supersedes once it is accepted. `is_apart` is True if both can stay
    active unchanged; `is_identical` is True if both have the same content. `type` is the type of the memory.
    `likeness`, from 0 to 1, and `differences`, the values in which they differ, are those of a near pair.
    `past_dates` says in words which dates of a proposal are over; with `needs_date` the item is asserted again only
    with a new date of review. `near_proposals` are the pending ones in nearly the words of a proposal; `with_endings`
    adds those that conflict with it as `rivals`, each with item and summary; the `reason` of a proposal that ends
    memories, and these as `ends`: each has item, summary, status, is_withdrawn, and for a replaced one the `changes`,
    as in the history.
    """

    tier: int
    kind: str
    item: str
    summary: str
    other: str | None
    other_summary: str | None
    why: str
    agents: tuple[str, ...]
    since: datetime
    days: int
    leaning: int
    actions: tuple[str, ...]
    source: str | None = None
    place: str | None = None
    replaces: tuple[str, ...] = ()
    is_apart: bool = False
    type: str | None = None
    is_identical: bool = False
    likeness: float | None = None
    differences: tuple[str, ...] = ()
    other_agents: tuple[str, ...] = ()
    reason: str | None = None
    ends: tuple[Mapping[str, Any], ...] = ()
    rivals: tuple[Mapping[str, str], ...] = ()
    near_proposals: tuple[Mapping[str, str], ...] = ()
    past_dates: tuple[str, ...] = ()
    needs_date: bool = False

    @property
    def is_redacted(self) -> bool:
        """Return whether the item is a memory that lost its summary, or a value of a field, to a redaction."""
        return self.kind.endswith("redacted")

    @property
    def is_over(self) -> bool:
        """Return whether the item is a proposal that is valid no more."""
        return any(each.startswith(_UNTIL) for each in self.past_dates)

    @property
    def choices(self) -> tuple[str, ...]:
        """Return the actions that settle the item as it is: both of a conflict stay active only if they are apart."""
        may_both_stay = self.is_apart or self.kind == NEAR
        return tuple(action for action in self.actions if action != "keep-both" or may_both_stay)

    @property
    def may_be_parted(self) -> bool:
        """Return whether both memories can stay once one of them gets another place than the other."""
        return "keep-both" in self.actions and "keep-both" not in self.choices

    @property
    def file(self) -> str | None:
        """Return the file that a proposal was imported from; None for anything else."""
        return self.place.rpartition(":")[0] or self.place if self.place and self.kind == "proposal" else None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as plain JSON values."""
        values = {**asdict(self), "since": self.since.isoformat()}
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True, slots=True)
class Queue:
    """A page of the queue, the cursor of the next page (None after the last), and the number of all items."""

    waiting: list[QueueItem]
    cursor: str | None
    total: int


def queue(
    reader: MemoryReader, project: str, now: datetime, near: Sequence[NearPair] = (), *, by: str | None = None
) -> list[QueueItem]:
    """Return all items awaiting a curator in *project*: by tier, then by most dependents, then oldest first.

    The pairs *near* come last, the nearest first. With *by*, the name or IRI of an agent, only its proposals are
    returned; raises NotFound with the nearest names for an unknown one.

    Proposals imported from a file stay together, in the order of the file, in the tier of the most urgent of them:
    after the others of that tier, the most recently imported file first. After a month an item moves up a tier.
    """
    return queued(reader, project, now, near, by=by).waiting


def queued(
    reader: MemoryReader,
    project: str,
    now: datetime,
    near: Sequence[NearPair] = (),
    *,
    limit: int | None = None,
    cursor: str | None = None,
    by: str | None = None,
    curators: Collection[str] = (),
) -> Queue:
    """Return a page of `queue`: up to *limit* items after those of the page with the *cursor*.

    With *curators*, the IRIs of agents, strict conventions whose check waits for one of them are among the due items.

    Days are counted at the time of the first page; items settled since are left out of later pages.
    Raises InvalidRequest for an invalid limit or cursor, NotFound for an unknown agent.
    """
    if by is not None:
        near, by = (), reader.agent(project, by)
    size, question = None if limit is None else page_size(limit), f"review by place {project} {by or ''}"
    start = Cursor.parse(cursor, question) if cursor is not None else None
    now = (moment_in(start.as_of) or now) if start else now
    cache = review_cache(reader, project)
    view = present_rows(reader, project)
    proposed = reader.rows("proposals", project)
    alike = _alike(proposed)
    if by is not None:
        proposed = [row for row in proposed if iri(by) in view.objects(iri(row["item"]), jido("assertedBy"))]
    proposals = _proposals(proposed, cache, view)
    candidates = proposals if by is not None else [*_disagreements(reader, project, view), *proposals]
    known = cache.places([*dict.fromkeys(_named(candidates))])
    opposed = {frozenset((row["item"], row["other"])) for row in candidates}
    apart = [pair for pair in near if frozenset((pair.item, pair.other)) not in opposed]
    due = [_due_row(row, _OF_DUE) for row in cache.due(now)]
    due += [*_unaccepted_checks(view, curators, now), *_redacted(reader, project, view, now)]
    others = [] if by is not None else [*due, *_near(cache, apart)]
    queue_rows = [*(row for row in candidates if row["item"] in known), *others]
    leaning = cache.dependent_counts([*dict.fromkeys(_named(queue_rows))])
    groups = _groups(queue_rows, known, now)
    ordered = sorted((_place(row, known, leaning, now, groups), number) for number, row in enumerate(queue_rows))
    after = json.loads(start.place.key) if start else []
    left = [(place, number) for place, number in ordered if place > after]
    rows = [queue_rows[number] for _, number in left[:size]]
    known |= cache.facts_of([*dict.fromkeys(_named(rows))])
    waiting = [
        replace(_waiting(row, known, leaning, now, view), near_proposals=_near_proposals(row, alike, view))
        for row in rows
        if row["item"] in known
    ]
    if len(left) == len(rows):
        return Queue(waiting, None, len(queue_rows))
    place = PagePosition(json.dumps(left[len(rows) - 1][0]))
    return Queue(waiting, str(Cursor(to_term(now, "dateTime", "now"), len(rows), question, place)), len(queue_rows))


def proposals_in(
    reader: MemoryReader, project: str, now: datetime, rows: Sequence[Mapping[str, Any]]
) -> list[QueueItem]:
    """Return the items of the queue for the *rows* of the named query `proposals`, in their order.

    Their dependents are not counted.
    """
    cache, view = review_cache(reader, project), present_rows(reader, project)
    candidates = _proposals(rows, cache, view)
    known = cache.facts_of([*dict.fromkeys(_named(candidates))])
    return [_waiting(row, known, {}, now, view) for row in candidates if row["item"] in known]


def _named(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield row["item"]
        if row["other"]:
            yield row["other"]


def settle_by_rule(
    writer: MemoryWriter,
    reader: MemoryReader,
    project: str,
    rules: AccessPolicy,
    now: datetime,
    *,
    dry_run: bool = False,
) -> list[tuple[QueueItem, PolicyChange, Receipt | JidomemError]]:
    """Settle proposals by the confirmations of the policy; return each with its rule and its receipt or refusal.

    A rule never accepts a proposal that ends or contradicts an active memory, or that is derived from an untrusted
    source. The memory writer asserts the confirmed memories, and the reason names the rule.
    """
    proposals = [one for one in queue(reader, project, now) if one.kind == "proposal"]
    waiting = acceptable(reader, project, proposals)[""]
    items = [one.item for one in proposals]
    known = review_cache(reader, project).facts_of(items)
    ends = {row["item"] for row in rows_about(reader, project, _ENDING, items)}
    agents_by_key = _asserting_agents(known)
    judge = writer.by_rule()
    confirmed: list[tuple[QueueItem, PolicyChange]] = []
    for one in waiting:
        about = known[one.item]
        if one.item in ends or about["quarantined"]:
            continue
        rule = next((rule for rule in rules.confirmations if _confirms(rule, one, about, agents_by_key)), None)
        if rule is not None:
            confirmed.append((one, rule))
    settled: list[tuple[QueueItem, PolicyChange, Receipt | JidomemError]] = []
    done: set[str] = set()
    while confirmed:  # the first accepted one of identical proposals settles the others
        batch: dict[str, tuple[QueueItem, PolicyChange]] = {}
        for pair in confirmed:
            batch.setdefault(known[pair[0].item]["identical"], pair)
        settlements = [
            Settlement(one.item, "accept", reason=f"by rule: {rule} ({rule.node or 'the root'})")
            for one, rule in batch.values()
        ]
        outcomes = judge.settle_many(project, settlements, dry_run=dry_run)
        for (key, pair), outcome in zip(batch.items(), outcomes, strict=True):
            settled.append((*pair, outcome))
            done |= {key} if isinstance(outcome, Receipt) else set()
        tried = {one.item for one, _ in batch.values()}
        confirmed = [(one, rule) for one, rule in confirmed
                     if one.item not in tried and known[one.item]["identical"] not in done]  # fmt: skip
    return settled


_ENDING = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?item WHERE { GRAPH <%s> { VALUES ?item { %s } ?item jido:supersedes|jido:invalidates ?any } }
ORDER BY ?item
"""


def present_rows(reader: MemoryReader, project: str) -> WriteSnapshot:
    """Return the present rows of the index about *project*, in the form that conflicts are judged by."""
    graph = graph_iri(project)
    return WriteSnapshot(lambda s, p, o: reader.index.triples(graph, s, p, o))


#: Reason why a proposal is not accepted together with others -> what it means for *n* of them.
LEFT: Mapping[str, str] = {
    "version": "skipped: a newer version or a withdrawal is pending",
    "conflict": "left, in conflict with active memories",
    "rival": "left, in conflict with each other: accept one",
    "near": "left, in nearly the words of another proposal: accept those that are to stay",
    "date": "left: its date is over, so it needs a new one",
    "past": "left: valid no more, so it would be expired at once",
    "strict": "left, each changes or ends a Strict convention; accept it by its id",
}


def acceptable(reader: MemoryReader, project: str, waiting: Sequence[QueueItem]) -> dict[str, list[QueueItem]]:
    """Return the proposals of *waiting* that can be accepted together, as "", and the others by their key in `LEFT`."""
    view, proposals = present_rows(reader, project), [one for one in waiting if one.kind == "proposal"]
    latest = {one.item for one in newest(reader, project, proposals)}
    found: dict[str, list[QueueItem]] = {"": [], **{key: [] for key in LEFT}}
    for one in with_rivals(reader, project, proposals):
        is_so = {
            "version": one.item not in latest,
            "conflict": one.other is not None,
            "rival": bool(one.rivals),
            "near": bool(one.near_proposals),
            "date": one.needs_date,
            "past": one.is_over,
            "strict": ends_strict_convention(iri(one.item), view),
        }
        key = next((key for key, is_left in is_so.items() if is_left), "")
        found[key].append(one)
    return found


def newest(reader: MemoryReader, project: str, waiting: Sequence[QueueItem]) -> list[QueueItem]:
    """Return those of *waiting* that no pending proposal supersedes or withdraws, and that have no newer version."""
    view, newer = present_rows(reader, project), newer_versions(reader, project, waiting)
    return [
        one for one in waiting if one.item not in newer and not conflict.is_replaced_by_proposal(iri(one.item), view)
    ]


def newer_versions(reader: MemoryReader, project: str, waiting: Sequence[QueueItem]) -> dict[str, str]:
    """Return the newest pending version of each proposal of *waiting* that has a newer one."""
    view = present_rows(reader, project)
    newer = {one.item: newer_proposal(iri(one.item), view) for one in waiting if one.kind == "proposal"}
    return {item: plain_value(other) for item, other in newer.items() if other is not None}


def with_endings(reader: MemoryReader, project: str, waiting: Sequence[QueueItem]) -> list[QueueItem]:
    """Return `with_rivals`, with the memories that each proposal is to end, the changes, and the reason."""
    view, revisions = present_rows(reader, project), Revisions(reader, project)
    ended = [ended_by(iri(one.item), view) if one.kind == "proposal" else {} for one in waiting]
    return [
        replace(one, **_endings(reader, project, one.item, olds, revisions, view)) if olds else one
        for one, olds in zip(with_rivals(reader, project, waiting), ended, strict=True)
    ]


def with_rivals(reader: MemoryReader, project: str, waiting: Sequence[QueueItem]) -> list[QueueItem]:
    """Return *waiting*, with the pending proposals that each proposal conflicts with."""
    rivals = opposed_proposals(reader, project, waiting)
    return [replace(one, rivals=tuple(rivals[one.item])) for one in waiting]


def _endings(
    reader: MemoryReader, project: str, item: str, ended: Mapping[Term, bool], revisions: Revisions, view: WriteSnapshot
) -> dict[str, Any]:
    memory, memories = reader.get_memory(project, item), [reader.get_memory(project, plain_value(old)) for old in ended]
    ends = [
        {"item": old["iri"], "summary": next(iter(old["properties"].get("summary", ())), REDACTED),
         "status": old["status"], "is_withdrawn": is_withdrawn,
         "changes": [] if is_withdrawn else revisions.changes(old, memory)}
        for old, is_withdrawn in zip(memories, ended.values(), strict=True)
    ]  # fmt: skip
    first = plain_value(conflict.first_proposed(iri(item), view))
    why = memory if first == item else reader.get_memory(project, first)
    return {"ends": tuple(ends), "reason": reason(why, memories)}


def opposed_proposals(
    reader: MemoryReader, project: str, waiting: Sequence[QueueItem]
) -> dict[str, list[dict[str, str]]]:
    """Return for each of *waiting* the pending proposals that conflict with it, each as its item and summary.

    A proposal that another one supersedes or withdraws has none, and is none.
    """
    view = present_rows(reader, project)
    is_replaced = cache(partial(conflict.is_replaced_by_proposal, view=view))
    proposals = [iri(one.item) for one in waiting if one.kind == "proposal"]
    rivals = {
        plain_value(item): sorted(
            plain_value(rival) for rival in conflict.proposed_rivals(item, view) if not is_replaced(rival)
        )
        for item in proposals
        if not is_replaced(item)
    }
    known = review_cache(reader, project).facts_of([*{rival for some in rivals.values() for rival in some}])
    summary_of = {item: about["summary"] or REDACTED for item, about in known.items()}
    return {
        one.item: [{"item": rival, "summary": summary_of.get(rival, REDACTED)} for rival in rivals.get(one.item, ())]
        for one in waiting
    }


def _disagreements(reader: MemoryReader, project: str, view: WriteSnapshot) -> list[dict[str, Any]]:
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader.rows("conflicts", project):
        pair = pairs.setdefault((row["a"], row["b"]), {
            "kind": "conflict", "item": row["a"], "summary": row["a_summary"], "other": row["b"],
            "other_summary": row["b_summary"], "why": row["kind"], "actions": ACTIONS,
        })  # fmt: skip
        if row["kind"] in (STALE, VALUE):
            is_withdrawal = any(_MARKER in view.types(iri(row[side])) for side in ("a", "b"))
            pair["actions"] = _OF_DUE if is_withdrawal else _OF_ONE
        pair["actions"] = _OF_DUE if row["kind"] == OPPOSITE else pair["actions"]
        pair["is_apart"] = conflict.are_apart(iri(row["a"]), iri(row["b"]), view)
    return [*pairs.values(), *_written_differently(reader, project, view)]


def _written_differently(reader: MemoryReader, project: str, view: WriteSnapshot) -> Iterator[dict[str, Any]]:
    """Yield the rows of active memories that branches wrote differently, against each other record."""
    for record, _, item in reader.index.triples(graph_iri(project), None, jido("conflictsWith")):
        if is_record_of(record, item) and view.is_current(item):
            pair = [reader.get_memory(project, plain_value(each)) for each in (item, record)]
            changes = Revisions(reader, project).changes(*pair)
            texts = [_differing_text(pair[at], changes, side) for at, side in enumerate(("before", "after"))]
            yield {"kind": "conflict", "item": pair[0]["iri"], "summary": texts[0], "other": pair[1]["iri"],
                   "other_summary": texts[1], "why": WRITTEN, "actions": _OF_DUE}  # fmt: skip


def _differing_text(memory: Mapping[str, Any], changes: Iterable[Mapping[str, Any]], side: str) -> str:
    """Return the summary of a record, and its values of other fields with one value that *changes* names."""
    other = [one for one in changes if one["field"] != "summary" and isinstance(one[side], str)]
    texts = (f"{one['field']}: {one[side]}" for one in other)
    return "; ".join([*memory["properties"].get("summary", (REDACTED,)), *texts])


def _proposals(rows: Sequence[Mapping[str, Any]], cache: ReviewCache, view: WriteSnapshot) -> list[dict[str, Any]]:
    proposals: dict[str, dict[str, Any]] = {}
    rivals: dict[str, dict[str, None]] = {}
    for row in rows:
        rivals.setdefault(row["item"], {}).update({row["conflict"]: None} if row["conflict"] else {})
    opposed = cache.rivals(rivals, view)
    for item, known in rivals.items():
        known.update(dict.fromkeys(opposed[item][0]))
    summaries = cache.active_summaries([*dict.fromkeys(rival for some in rivals.values() for rival in some)])
    places = (end for item in rivals for end in opposed[item][1] if end not in summaries)
    in_place = cache.facts_of([*dict.fromkeys(places)])
    summaries = {**{end: about["summary"] or REDACTED for end, about in in_place.items()}, **summaries}
    for row in rows:
        entry = proposals.setdefault(row["item"], {
            "kind": "proposal", "item": row["item"], "summary": row["summary"], "other": None, "other_summary": None,
            "why": "proposed", "actions": _OF_DUE,
        })  # fmt: skip
        ends = opposed[row["item"]][1]
        rival = next((each for each in rivals[row["item"]] if each in ends or each in summaries), None)
        if rival is not None:
            why = "it was made on a memory that ended since" if rival in ends else "disagrees with an active memory"
            entry |= {"other": rival, "other_summary": summaries[rival], "why": why}
            is_near = rival not in opposed[row["item"]][0]  # by its words only, so both may stay
            is_apart = is_near or conflict.are_apart(iri(row["item"]), iri(rival), view)
            is_apart |= rival in ends and bool(view.objects(iri(rival), jido("invalidates")))  # such as an incident
            is_withdrawal = any(_MARKER in view.types(iri(each)) for each in (row["item"], rival))
            entry |= {"actions": ENDING_ACTIONS if is_withdrawal else _OF_OPPOSED, "is_apart": is_apart}
    return [*proposals.values()]


_WORD = re.compile(r"\w+")


def _alike(rows: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], dict[str, str]]:
    """Return the summaries of the proposals of *rows* by their words, without those that tell little."""
    by_words: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        by_words.setdefault(_telling(row["summary"]), {})[row["item"]] = row["summary"]
    return by_words


def _telling(summary: str) -> tuple[str, ...]:
    return tuple(word for word in _WORD.findall(summary.casefold()) if word not in TELL_LITTLE)


def _near_proposals(
    row: Mapping[str, Any], alike: Mapping[tuple[str, ...], Mapping[str, str]], view: WriteSnapshot
) -> tuple[Mapping[str, str], ...]:
    """Return the other pending proposals in nearly the words of the proposal of *row*, about the same places.

    Identical ones are accepted with it, and of two versions the newer one counts: neither is returned.
    """
    others = alike.get(_telling(row["summary"] or ""), {}) if row["kind"] == "proposal" else {}
    item, types = iri(row["item"]), view.types(iri(row["item"]))
    near = [
        {"item": other, "summary": summary}
        for other, summary in others.items()
        if other != row["item"]
        and _MARKER not in types
        and {*view.objects(item, jido("about"))} == {*view.objects(iri(other), jido("about"))}
        and iri(other) not in identical_proposals(item, view)
        and not any(conflict.is_replaced_by_proposal(each, view) for each in (item, iri(other)))
    ]
    return tuple(near)


def _unaccepted_checks(view: WriteSnapshot, curators: Collection[str], now: datetime) -> list[dict[str, Any]]:
    """Return the rows of active strict conventions whose check waits for one of *curators*."""
    strict = view.subjects(jido("hasEnforcementLevel"), jido("Strict")) if curators else ()
    items = [item for item in strict if view.is_current(item) and check_waits(item, view, curators)]
    return [_due_row(_undated(item, "check_waits", view, now), _OF_DUE) for item in items]


def _redacted(reader: MemoryReader, project: str, view: WriteSnapshot, now: datetime) -> list[dict[str, Any]]:
    """Return the rows of active memories and pending proposals whose summary was redacted, and of active decisions and
    conventions that lost a value of a field, also before they were restated, since the last redaction.
    """
    since: dict[Term, datetime] = {}
    for order, _, item in reader.index.triples(graph_iri(project), None, jido("redactedItem")):
        since[item] = max(view.recorded_at(order) or now, since.get(item, datetime.min.replace(tzinfo=UTC)))
    for item, moment in [*since.items()]:
        for later in reachable([item], lambda node: view.objects(node, jido("supersededBy"))):
            since.setdefault(later, moment)
    rows = []
    for item in sorted(since):
        is_emptied = not view.objects(item, jido("summary")) and (view.is_current(item) or view.is_pending(item))
        lost = ["rationale"] if view.has_lost(item, "rationale") else view.lost_fields(item)
        if is_emptied or lost:
            row = _undated(item, "redacted" if is_emptied else f"{lost[0]}_redacted", view, now)
            rows.append(_due_row({**row, "recorded": since[item]}, ("reject",)))
    return rows


def _undated(item: Term, reason: str, view: WriteSnapshot, now: datetime) -> dict[str, Any]:
    return {"item": plain_value(item), "reason": reason, "due": None, "recorded": view.recorded_at(item) or now}


def _due_row(row: Mapping[str, Any], actions: tuple[str, ...]) -> dict[str, Any]:
    kind, empty = row["reason"], dict.fromkeys(("summary", "other", "other_summary"))
    why = QUESTIONS[kind].format(row["recorded"].date())
    return {**row, **empty, "kind": kind, "why": why, "actions": actions}


def _near(cache: ReviewCache, pairs: Sequence[NearPair]) -> list[dict[str, Any]]:
    summaries = cache.active_summaries([*dict.fromkeys(item for pair in pairs for item in (pair.item, pair.other))])
    rows = []
    for pair in pairs:
        if pair.item in summaries and pair.other in summaries:
            rows.append({
                "kind": NEAR, "item": pair.item, "summary": summaries[pair.item], "other": pair.other,
                "other_summary": summaries[pair.other], "likeness": pair.likeness, "why": "", "actions": ACTIONS,
            })  # fmt: skip
    return rows


def _since(row: Mapping[str, Any], known: Mapping[str, Any]) -> datetime:
    if "reason" in row:
        return cast(datetime, row["due"] or row["recorded"])
    since: datetime = known[row["item"]]["since"]
    is_pair = row["kind"] in ("conflict", NEAR)
    return max(since, known.get(row["other"], known[row["item"]])["since"]) if is_pair else since


def _days(row: Mapping[str, Any], known: Mapping[str, Any], now: datetime) -> int:
    return max((now - _since(row, known)).days, 0)


def _tier(row: Mapping[str, Any], known: Mapping[str, Any], now: datetime) -> int:
    if row["kind"] == NEAR:
        return 5
    if row["kind"] == "proposal":
        binds = row["other"] is not None or family(known[row["item"]]["type"] or "") in _BINDING
        tier = 2 if binds else 3
    else:
        tier = 1 if row["kind"] == "conflict" else 4
    return max(tier - (_days(row, known, now) >= OVERDUE), 1)


def _file(row: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    return known[row["item"]]["path"] if row["kind"] == "proposal" else None


def _groups(
    rows: Iterable[Mapping[str, Any]], known: Mapping[str, Any], now: datetime
) -> dict[str, tuple[int, datetime]]:
    """Return for each file the tier of its most urgent proposal, and the moment of its newest one."""
    groups: dict[str, tuple[int, datetime]] = {}
    for row in rows:
        if file := _file(row, known):
            tier, since = _tier(row, known, now), _since(row, known)
            before = groups.get(file, (tier, since))
            groups[file] = min(tier, before[0]), max(since, before[1])
    return groups


def _place(
    row: Mapping[str, Any],
    known: Mapping[str, Any],
    leaning: Mapping[str, int],
    now: datetime,
    groups: Mapping[str, tuple[int, datetime]],
) -> list[int | str]:
    """Return the sort key of *row*; a proposal imported from a file has that of its group."""
    names = [row["item"], row["other"] or "", row["kind"]]
    if file := _file(row, known):
        tier, newest = groups[file]
        return [tier, 1, -_microseconds(newest), 0, file, known[row["item"]]["line"] or 0, *names]
    if row["kind"] == NEAR:
        return [_tier(row, known, now), 0, -round(row["likeness"] * 1e6), 0, "", 0, *names]
    return [_tier(row, known, now), 0, -_lean(row, leaning), _microseconds(_since(row, known)), "", 0, *names]


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _lean(row: Mapping[str, Any], leaning: Mapping[str, int]) -> int:
    return leaning.get(row["item"], 0) + leaning.get(row["other"] or "", 0)


#: The beginning of the words of a proposal that is valid no more.
_UNTIL = "valid until"
_PAST: Mapping[str, str] = {"validUntil": f"{_UNTIL} {{}}", "expiresOn": "its review was due on {}"}


def _past_dates(item: Term, view: WriteSnapshot, now: datetime) -> tuple[str, ...]:
    """Return in words the dates of the proposal *item* that are over *now*."""
    deadline = {"expiresOn": "it was due by {}"} if view.objects(item, jido("hasTaskStatus")) else {}
    texts = {**_PAST, **deadline}
    dates = [(name, moment_in(date)) for name in texts for date in view.objects(item, jido(name))]
    past = [(name, date) for name, date in dates if date is not None and is_due(date, now, is_task=name in deadline)]
    return tuple(texts[name].format(format_timestamp(date).removesuffix("T00:00:00.000000Z")) for name, date in past)


def _waiting(
    row: Mapping[str, Any], known: Mapping[str, Any], leaning: Mapping[str, int], now: datetime, view: WriteSnapshot
) -> QueueItem:
    about, why, unequal = known[row["item"]], row["why"], tuple[str, ...]()
    if row["kind"] == NEAR:
        levels = [known[each]["level"] for each in (row["other"], row["item"]) if each in known]
        unequal = (f"{' / '.join(levels)} enforcement",) * (len({*levels}) > 1)
        unequal += tuple(map(str, differences(row["other_summary"], row["summary"])))
        why = f"differs in {'; '.join(unequal)}" if unequal else "says nearly the same"
    return QueueItem(
        tier=_tier(row, known, now),
        kind=row["kind"],
        item=row["item"],
        summary=row["summary"] or about["summary"] or REDACTED,
        other=row["other"],
        other_summary=row["other_summary"],
        why=about["because"] or why if why == "proposed" else why,
        agents=tuple(about["agents"]),
        since=_since(row, known),
        days=_days(row, known, now),
        leaning=_lean(row, leaning),
        actions=tuple(row["actions"]),
        source="; ".join(about["sources"]) or None,
        place=f"{about['path']}:{about['line']}" if about["line"] else about["path"],
        replaces=tuple(about["replaces"]),
        is_apart=bool(row.get("is_apart")),
        type=about["type"],
        is_identical=row["other"] in known and known[row["other"]]["identical"] == about["identical"],
        likeness=row.get("likeness"),
        differences=unequal,
        other_agents=tuple(known[row["other"]]["agents"]) if row["other"] in known else (),
        past_dates=_past_dates(iri(row["item"]), view, now) if row["kind"] == "proposal" else (),
        needs_date=needs_review_date(iri(row["item"]), view, now),
    )


def _asserting_agents(known: Mapping[str, Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return for each conflict key the agents of the proposals that have it, with their number."""
    agents_by_key: dict[str, Counter[str]] = {}
    for about in known.values():
        for key in about["keys"]:
            agents_by_key.setdefault(key, Counter()).update([*about["agents"]])
    return agents_by_key


def _confirms(
    rule: PolicyChange, one: QueueItem, about: Mapping[str, Any], agents_by_key: Mapping[str, Counter[str]]
) -> bool:
    kind = about["type"] or ""
    if kind not in CLASS_OF_TYPE or (rule.kind is not None and rule.kind not in (kind, family(kind))):
        return False
    if rule.confirms == "restated":
        return len(agents_by_key.get(about["identical"], ())) > 1
    alone = all(key.startswith(IDENTICAL) or agents_by_key[key].total() == 1 for key in about["keys"])
    return alone and one.days >= (rule.days or 1)
