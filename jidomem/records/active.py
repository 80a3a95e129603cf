"""The definition of an active memory, as a state of a memory and as the SPARQL filters of lists.

A memory is active when it is asserted, its decision status is accepted or absent, no asserted memory supersedes or
invalidates it, and it is valid: from its valid_from until before its valid_until. Every named query contains the lines
of `filters`, which a test compares; other queries are built from the functions here.

A memory that is similar to a new one is shown with its state, and with the choices between both.

Two conventions with a common conflict key conflict only if `Convention.clashes` is true as well.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, time
from typing import Any, NamedTuple

from jidomem.base.clock import format_timestamp
from jidomem.base.words import normal_text, quoted
from jidomem.errors import REASON as REASON
from jidomem.errors import Conflict
from jidomem.rdf.terms import Term, Triple, date_time, iri, plain_value
from jidomem.rdf.vocab import DECISION_STATUS, XSD, jido, local_name, short_id

#: The end of the interval of a node that nothing ends, and of one that is never active.
FOREVER = 2**62
NEVER = -1
Interval = tuple[int, int]
ACTIVE = "active"
ACCEPTED = "accepted"
#: The states of a proposal that no curator accepted; an accepted one is superseded by the accepted memory.
PENDING, REJECTED = "pending", "rejected"
#: The states of an asserted memory that is not active and has not ended, by its decision status.
UNACCEPTED = tuple(status for status in DECISION_STATUS if status != ACCEPTED)
INVALIDATED, SUPERSEDED = ENDED = "invalidated", "superseded"
#: The states of a memory that is not valid any more, or not yet.
EXPIRED, SCHEDULED = "expired", "scheduled"
#: The keys, and the words, of the moment at which a memory is due, and of the end of its validity.
DUE, UNTIL = "due", "until"
#: The key of the outcome of a task or an error.
OUTCOME = "outcome"
#: The state of an asserted marker, which withdraws a memory and is itself none.
WITHDRAWAL = "withdrawal"
#: The properties that differ if two branches import one source; they are no contradiction.
OF_THE_IMPORT = frozenset({jido("hasTimestamp"), jido("isUndated")})
_RECORDS, _RECORDED_IN = "/records/", jido("recordedIn")
#: The end of the IRI of another record of a memory, as a regular expression; empty for the memory itself.
OTHER_RECORD = f"(?:{_RECORDS}[0-9a-f]{{12}})?"
#: Every state of a memory; the first that applies is its state.
STATES = (*ENDED, PENDING, *UNACCEPTED, EXPIRED, SCHEDULED, ACTIVE)
#: Every status of a decision by which a list can be filtered: its own, that of its end, or that of a proposal.
STATUSES = (*DECISION_STATUS, PENDING, *ENDED)


def _separate_item(
    item: Term, records: Mapping[str, Collection[Triple]], single: Collection[Term]
) -> tuple[list[Triple], list[Triple]]:
    """Return the statements to remove and to add where several commits describe the memory *item* differently.

    *records* has the statements of each commit about *item* by its id, the earliest first. That record counts. Each
    other one with another value of a property *single* becomes a memory of its own, which *item* superseded; one
    without is no memory of its own, also if it was one before an earlier record came.
    """
    first, *others = records
    separate = [commit for commit in others if _is_separate(records[commit], records[first], single)]
    kept = {triple for commit in records if commit not in separate for triple in records[commit]}
    removed = [triple for commit in separate for triple in records[commit] if triple not in kept]
    added = list[Triple]()
    for commit in others:
        record = iri(f"{plain_value(item)}{_RECORDS}{commit[:12]}")
        own = [(record, name, value) for _, name, value in records[commit]]
        own += [(record, jido("supersededBy"), item), (record, jido("conflictsWith"), item)]
        (added if commit in separate else removed).extend(own)
    return removed, added


def _is_separate(record: Collection[Triple], first: Collection[Triple], single: Collection[Term]) -> bool:
    is_memory = any(name == jido("hasAssertionStatus") for _, name, _ in record)
    names = {name for _, name, _ in set(record).difference(first)}
    return is_memory and not names.isdisjoint(set(single) - OF_THE_IMPORT)


def separate_records(
    commits: Iterable[tuple[str, Collection[Triple]]], items: Collection[Term], single: Collection[Term]
) -> tuple[list[Triple], list[Triple]]:
    """Return the statements to remove and to add so that each record of the memories *items* has a node of its own.

    *commits* are the ids and statements of the commits that record them, the earliest first. Of a memory the earliest
    record counts; each other one with another value of a property *single* is a node that the memory superseded.
    """
    records: dict[Term, dict[str, list[Triple]]] = {}
    for commit, triples in commits:
        recorded = {subject for subject, name, _ in triples if name == _RECORDED_IN and subject in items}
        for triple in triples if recorded else ():
            if triple[0] in recorded:
                records.setdefault(triple[0], {}).setdefault(commit, []).append(triple)
    changes = [_separate_item(item, of_commits, single) for item, of_commits in records.items()]
    removed, added = ([triple for change in changes for triple in change[at]] for at in (0, 1))
    return removed, added


def is_record_of(record: Term, item: Term) -> bool:
    """Return whether *record* is another record of the memory *item*, made by `separate_records`."""
    return record.startswith(item[:-1] + _RECORDS)


def is_accepted(decision_status: str | None) -> bool:
    """Return whether a memory with this decision status, None without one, can be active.

    >>> is_accepted(None), is_accepted("accepted"), is_accepted("rejected")
    (True, True, False)
    """
    return decision_status in (None, ACCEPTED)


def state(
    decision_status: str | None,
    *,
    is_proposal: bool,
    is_withdrawn: bool = False,
    is_replaced: bool = False,
    is_marker: bool = False,
) -> str:
    """Return the state of a memory, or of the marker that withdraws one, apart from its validity.

    >>> state("proposed", is_proposal=False), state("proposed", is_proposal=True)
    ('proposed', 'pending')
    >>> state(None, is_proposal=True, is_withdrawn=True), state(None, is_proposal=True, is_replaced=True)
    ('rejected', 'superseded')
    """
    if is_withdrawn:
        return REJECTED if is_proposal else INVALIDATED
    if is_replaced:
        return SUPERSEDED
    if is_proposal:
        return PENDING
    if is_marker:
        return WITHDRAWAL
    return ACTIVE if decision_status is None or is_accepted(decision_status) else decision_status


def state_text(status: str, state: str | None) -> str:
    """Return the status of a memory, with the state of a task or error, as one text.

    >>> state_text("active", "Resolved"), state_text("active", "accepted"), state_text("rejected", "rejected")
    ('active, Resolved', 'active', 'rejected')
    """
    return status if not state or state in (ACCEPTED, status) else f"{status}, {state}"


def dates_text(due: datetime | None, until: datetime | None) -> list[str]:
    """Return the day on which a memory is due, and that until which it is valid, as texts, as far as it has them.

    A moment that is not midnight has its time, in UTC.

    >>> dates_text(datetime(2026, 12, 15), None), dates_text(None, datetime(2027, 1, 1, 9, 30))
    (['due 2026-12-15'], ['until 2027-01-01 09:30'])
    """
    named = ((DUE, due), (UNTIL, until))
    forms = ("%Y-%m-%d %H:%M", "%Y-%m-%d")
    return [f"{name} {moment.strftime(forms[moment.time() == time.min])}" for name, moment in named if moment]


def is_due(date: datetime, moment: datetime, *, is_task: bool) -> bool:
    """Return whether a deadline or review date has come at *moment*, both in UTC.

    A task due at midnight is due on that day, so it is overdue from the next midnight on.

    >>> [is_due(datetime(2026, 10, 9), datetime(2026, 10, 9, 8), is_task=is_task) for is_task in (True, False)]
    [False, True]
    """
    is_today = is_task and date == moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return date <= moment and not is_today


def not_due_today(moment: str) -> str:
    """Return the SPARQL that is true unless `?due` is the midnight with which the day of *moment* begins.

    With `?due <= moment` it is `is_due` of a task; queries about tasks contain it.
    """
    return f'?due != STRDT(CONCAT(SUBSTR(STR({moment}), 1, 10), "T00:00:00Z"), <{XSD}dateTime>)'


def validity(valid_from: str | None, valid_until: str | None, moment: str) -> str:
    """Return the validity of a memory at *moment*: active, scheduled or expired; moments are in their one written form.

    >>> validity("2026-01-01", None, "2025-06-01"), validity(None, "2026-01-01", "2026-01-01"), validity(None, None, "")
    ('scheduled', 'expired', 'active')
    """
    if valid_until is not None and valid_until <= moment:
        return EXPIRED
    return SCHEDULED if valid_from is not None and valid_from > moment else ACTIVE


def have_common_moment(starts: Iterable[datetime | None], ends: Iterable[datetime | None]) -> bool:
    """Return whether there is a moment from all *starts* until before all *ends*; None is an open bound.

    >>> have_common_moment([datetime(2026, 1, 1), None], [None, datetime(2026, 1, 1)])
    False
    """
    first, last = [each for each in starts if each], [each for each in ends if each]
    return not (first and last) or max(first) < min(last)


def filters(item: str = "item", end: str = "end", *, always: bool = False) -> str:
    """Return the lines that restrict a named query to active memories, for its variable *item*.

    The parameter `includeInactive` disables all but the validity, which `validAt` controls; with *always* a query has
    no such parameter. *end* is the name of the variables for the end of a memory.
    """
    opening, closing = ("FILTER NOT EXISTS ", "") if always else ("FILTER(?includeInactive || NOT EXISTS ", ")")
    return f"""\
  FILTER NOT EXISTS {{ ?{item} jido:validFrom ?from FILTER(?from > ?validAt) }}
  FILTER NOT EXISTS {{ ?{item} jido:validUntil ?until FILTER(?until <= ?validAt) }}
  {opening}{{ ?{item} jido:hasAssertionStatus jido:Proposed }}{closing}
  {opening}{{ ?{item} jido:decisionStatus ?standing FILTER(?standing != "accepted") }}{closing}
  {opening}{{
    ?{item} jido:supersededBy|jido:invalidatedBy ?{end}
    FILTER EXISTS {{ ?{end} jido:hasAssertionStatus jido:Asserted }}
    FILTER EXISTS {{ ?{end} jido:recordedAt ?{end}At FILTER(?{end}At <= ?asOf) }}
  }}{closing}
"""


def valid_at(moment: datetime) -> str:
    """Return the SPARQL that excludes memories that are not valid at *moment*, by the clock of the root."""
    at = date_time(format_timestamp(moment))
    return f"""\
  FILTER NOT EXISTS {{ ?item jido:validFrom ?from FILTER(?from > {at}) }}
  FILTER NOT EXISTS {{ ?item jido:validUntil ?until FILTER(?until <= {at}) }}
"""


FINISHED = ("Completed", "Abandoned")


def accepted(item: str = "item") -> str:
    """Return the SPARQL that excludes decisions that are not accepted."""
    return f"""\
  FILTER NOT EXISTS {{ ?{item} jido:decisionStatus ?standing FILTER(?standing != "accepted") }}
"""


def unfinished(item: str = "item") -> str:
    """Return the SPARQL that excludes finished tasks, which nobody looks at again."""
    states = ", ".join(map(jido, FINISHED))
    return f"FILTER NOT EXISTS {{ ?{item} {jido('hasTaskStatus')} ?state FILTER(?state IN ({states})) }}"


def unended(item: str = "item") -> str:
    """Return the SPARQL that excludes memories that an asserted memory ended."""
    return f"""\
  FILTER NOT EXISTS {{
    ?{item} jido:supersededBy|jido:invalidatedBy ?end FILTER EXISTS {{ ?end jido:hasAssertionStatus jido:Asserted }}
  }}
"""


def now(item: str = "item") -> str:
    """Return the SPARQL for the memories active now, apart from validity, by look-ups for each row."""
    return f"  FILTER EXISTS {{ ?{item} jido:hasAssertionStatus jido:Asserted }}\n{accepted(item)}{unended(item)}"


def now_by_scans(item: str = "item") -> str:
    """Return the same as `now` by hash joins of scans, for queries over all memories.

    The ends are few: looked up one by one, as in a join the engine would read the status of every memory.
    """
    return f"""\
  ?{item} jido:hasAssertionStatus jido:Asserted .
  MINUS {{ ?{item} jido:decisionStatus ?standing FILTER(?standing != "accepted") }}
  MINUS {{
    ?{item} jido:supersededBy|jido:invalidatedBy ?end FILTER EXISTS {{ ?end jido:hasAssertionStatus jido:Asserted }}
  }}
"""


#: The most characters of each text of an ended decision, and of an outcome.
_LONGEST_ENDED = 160


class EndedDecision(NamedTuple):
    """A decision that matches and is rejected, superseded or invalidated: its *reason* says why, if known.

    *successor* is the active decision that took its place, or that is on its topic; empty without one.
    """

    item: str
    text: str
    status: str
    reason: str = ""
    successor: str = ""
    successor_text: str = ""

    @property
    def words(self) -> str:
        """Return the decision in one line.

        >>> EndedDecision("x/0000abcd", "Use Redis", "rejected", "lost keys", "x/0000ffff", "Use Postgres").words
        'rejected decision 0000abcd: "Use Redis" (why: "lost keys"); now 0000ffff: "Use Postgres"'
        """
        why = f" (why: {quoted(self.reason, _LONGEST_ENDED)[0]})" if self.reason else ""
        newer = f"; now {short_id(self.successor)}: {quoted(self.successor_text, _LONGEST_ENDED)[0]}"
        now = newer if self.successor else ""
        return f"{self.status} decision {short_id(self.item)}: {quoted(self.text, _LONGEST_ENDED)[0]}{why}{now}"

    def to_dict(self) -> dict[str, str | None]:
        """Return the decision as plain JSON values."""
        successor = {"successor": self.successor or None, "successor_text": self.successor_text or None}
        return {"id": self.item, "text": self.text, "status": self.status, "reason": self.reason or None, **successor}


def outcome_text(outcome: Mapping[str, str]) -> str:
    """Return the state of a task or an error with its reason and its lesson, as far as *outcome* has them, as one text.

    >>> outcome_text({"state": "Resolved", "reason": "more time", "lesson": "x/0000abcd", "lesson_text": "Time grows"})
    'resolved: "more time"; lesson 0000abcd: "Time grows"'
    """
    why = f": {quoted(outcome['reason'], _LONGEST_ENDED)[0]}" if "reason" in outcome else ""
    if "lesson" in outcome:
        why += f"; lesson {short_id(outcome['lesson'])}: {quoted(outcome['lesson_text'], _LONGEST_ENDED)[0]}"
    return outcome["state"].lower() + why


@dataclass(frozen=True, slots=True)
class Inactive:
    """The matching memories that are left out because they are not active: their number by status.

    `better` is the number of them that match better than the first answer; None without an answer to compare with.
    `decision` is the best ended decision among them.
    """

    statuses: Mapping[str, int] = field(default_factory=dict, hash=False)
    better: int | None = None
    decision: EndedDecision | None = None

    @property
    def count(self) -> int:
        """Return the number of memories left out."""
        return sum(self.statuses.values())

    def notice(self, option: str = "include_inactive=true") -> str:
        """Return the sentence on the number of them and the *option* that shows them; empty for none.

        >>> Inactive({"pending": 1}, 1).notice("--include-inactive")
        '1 inactive record matches better than the first hit (1 pending): add --include-inactive'
        >>> Inactive({"pending": 1, "superseded": 2}, 1).notice("--all")
        '3 inactive records match, 1 of them better than the first hit (1 pending, 2 superseded): add --all'
        >>> Inactive({"rejected": 1}, 0).notice("--include-inactive")
        '1 inactive record matches, ranked below the first hit (1 rejected): add --include-inactive'
        >>> Inactive({"rejected": 1}).notice()
        '1 inactive record matches (1 rejected): add include_inactive=true'
        """
        if not self.count:
            return ""
        statuses = ", ".join(f"{count} {status}" for status, count in sorted(self.statuses.items()))
        records = "1 inactive record matches" if self.count == 1 else f"{self.count} inactive records match"
        return f"{records}{self._compared()} ({statuses}): add {option}"

    def _compared(self) -> str:
        if self.better is None:
            return ""
        if self.better == self.count:
            return " better than the first hit"
        if not self.better:
            return ", ranked below the first hit"
        return f", {self.better} of them better than the first hit"

    def to_dict(self, option: str = "include_inactive=true") -> dict[str, Any]:
        """Return the count, the statuses and the notice as plain values."""
        return {"count": self.count, "statuses": dict(self.statuses), "notice": self.notice(option),
                **({"decision": self.decision.to_dict()} if self.decision else {})}  # fmt: skip


_WILD = re.compile(r"[*?\[{]")


class Convention(NamedTuple):
    """The parts of a convention that can clash with another of the same name or topic: text, level and places.

    The places are the files, folders, patterns and things that it is about; without any it applies everywhere.
    """

    text: str
    level: str
    places: frozenset[str]

    @classmethod
    def of(cls, summary: str | None, level: str | None, about: Iterable[str]) -> Convention:
        """Return a convention from its fields; a level is compared by its local name (default: Advisory)."""
        places = frozenset(map(_extent, about))
        return cls(normal_text(summary or ""), local_name(level or "Advisory"), places)

    def clashes(self, other: Convention) -> bool:
        """Return whether both apply to one place and differ; a redacted text counts as different.

        >>> tabs, spaces = Convention.of("Use tabs", None, ["src"]), Convention.of("Use spaces", None, ["src/web"])
        >>> tabs.clashes(spaces), tabs.clashes(Convention.of("Use spaces", None, ["lib"]))
        (True, False)
        >>> tabs.clashes(Convention.of("use  tabs", None, [])), tabs.clashes(Convention.of("Use tabs", "Strict", []))
        (False, True)
        """
        is_same = bool(self.text) and (self.text, self.level) == (other.text, other.level)
        return not is_same and _overlap(self.places, other.places)


def _extent(place: str) -> str:
    """Return a place without redundant parts; for a pattern the folder where it starts, "" for everything.

    >>> _extent("./src/"), _extent("src/**/*.py"), _extent("**/*.py"), _extent(".")
    ('src', 'src', '', '')
    """
    literal_part = _WILD.split(normal_text(place), maxsplit=1)[0]
    if literal_part != normal_text(place):
        literal_part = literal_part.rpartition("/")[0]
    return "" if literal_part == "." else literal_part.removeprefix("./").strip("/")


def _overlap(some: Collection[str], others: Collection[str]) -> bool:
    """Return whether a place of *some* is, contains or is in one of *others*, or either is everywhere."""
    if not some or not others or "" in some or "" in others:
        return True
    return any(_is_within(one, other) or _is_within(other, one) for one in some for other in others)


def _is_within(inner: str, outer: str) -> bool:
    return inner.startswith(outer) and inner[len(outer) : len(outer) + 1] in ("", "/", ":", "#")


def overlapping_pairs(spans: Mapping[str, Interval]) -> Iterator[tuple[str, str, Interval]]:
    """Yield each two items whose intervals overlap, sorted, with the common interval.

    >>> [*overlapping_pairs({"urn:b": (0, 5), "urn:a": (4, 9), "urn:c": (5, 9)})][0]
    ('urn:a', 'urn:b', (4, 5))
    """
    running: list[tuple[int, str]] = []
    for since, until, item in sorted((since, until, item) for item, (since, until) in spans.items()):
        running = [entry for entry in running if entry[0] > since]
        for ends, other in running:
            first, second = sorted((item, other))
            yield first, second, (since, min(until, ends))
        running.append((until, item))


def valid_since(spans: Iterable[Interval], until: int) -> int:
    """Return the start of the last period, up to *until*, that *spans* cover without a gap; *until* if there is none.

    >>> valid_since([(1, 3), (3, FOREVER)], FOREVER), valid_since([(1, 2), (5, 9)], 9), valid_since([(1, 3)], 9)
    (1, 5, 9)
    """
    for since, end in sorted(spans, key=lambda span: span[1], reverse=True):
        if end < until:
            break
        until = min(since, until)
    return until


#: The states of a task or an error that has ended, and those of one that waits.
OVER = (*FINISHED, "Resolved")
WAITING = ("Blocked", "Deferred")
#: The states of a memory that says nothing any more.
_INACTIVE = frozenset([*ENDED, *UNACCEPTED, REJECTED])


def corrected_instead(refusal: Conflict, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments *given* of a correction of an ended memory, for the one in its place; empty without one.

    The arguments are `id`, `set`, `reason` and others of `MemoryWriter.correct`. What follows a withdrawn memory ends
    the withdrawal. A reason that is needed and not given is REASON.
    """
    replacing = refusal.conflicts[0].resolve_with
    if not refusal.names_ended or not any(replacing.values()) or given.get("undo"):
        return {}
    changes, call = given.get("set", {}), {**given, "id": refusal.successor or given["id"]}
    ends_others = "supersedes" in changes or not refusal.successor
    if ends_others:
        call["set"] = {**changes, **replacing}
    is_explained = given.get("reason") or (given.get("confirm") and not ends_others)
    is_unsaid = refusal.needs_reason and not is_explained
    return call | ({"reason": REASON} if is_unsaid else {})


#: The relations of a memory to a near statement: it says the same, or something on the same matter.
REPEATS, NEAR = "repeats", "near"


class SimilarMemory(NamedTuple):
    """A memory near to the one that was written, with their likeness from 0 to 1; active, unless it said the same.

    `relation` is repeats if both say the same, else near; `asserted_by` is its author. `differences` are the values in
    which the new memory differs from it, such as `5 / 20 threads`. `status` is that of a task, an error or a decision,
    or how it ended, `note` says that in words, and `replaced_by` is the memory in its place; empty without.
    """

    id: str
    text: str
    likeness: float
    relation: str
    asserted_by: str
    differences: tuple[str, ...] = ()
    status: str = ""
    note: str = ""
    replaced_by: str = ""

    @property
    def is_inactive(self) -> bool:
        """Return whether it ended or, as a decision, was not accepted."""
        return self.status in _INACTIVE

    @property
    def warning(self) -> str:
        """Return a warning of a memory that says the same and ended, was rejected or is over; empty for others."""
        if self.relation != REPEATS or not self.note:
            return ""
        verb = "said the same and" if self.likeness == 1.0 else "said nearly the same and"
        return f"{self.id} {verb if self.is_inactive else 'says the same,'} {self.note}"

    def to_dict(self) -> dict[str, Any]:
        """Return the memory as plain JSON values, without an empty status, note and successor."""
        values = {name: getattr(self, name) for name in self._fields} | {"differences": list(self.differences)}
        left_out = "note" if self.relation == REPEATS else ""  # a warning has it
        return {name: value for name, value in values.items() if value != "" and name != left_out}


def similar_choices(
    similar: SimilarMemory, *, supersede: str, confirm: str, keep: str, invalidate: str
) -> dict[str, str]:
    """Return the choices between a new memory and a *similar* one, each with what to call; the likely one comes first.

    Only a memory that says the same is confirmed, unless it ended, or was not accepted: either the new one ends, too,
    or it holds, in the place of what was in the place of the other.
    """
    if similar.is_inactive:
        takes = f"if yours takes the place of {similar.replaced_by}: {supersede}"
        return {
            "invalidate": f"if that is still so, and yours may end: {invalidate}",
            **({"supersede": takes} if similar.replaced_by else {}),
            "keep": f"if yours holds again: {keep}",
        }
    is_over, is_same = similar.status in OVER, similar.relation == REPEATS
    return {
        **({"confirm": f"if it says the same, and yours may end: {confirm}"} if is_same else {}),
        "supersede": f"if yours takes its place: {supersede}",
        "keep": f"{'if yours is to be done apart from it' if is_over else 'if both hold'}: {keep}",
    }
