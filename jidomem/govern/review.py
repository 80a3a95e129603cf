"""What waits for a curator, the most pressing first, and the rules by which some of it is settled without one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from jidomem.authority import Authority, Change
from jidomem.errors import JidomemError
from jidomem.govern.due import QUESTIONS
from jidomem.govern.waiting import Kept, asked, kept
from jidomem.index.rivals import STALE, VALUE
from jidomem.intent import Receipt
from jidomem.moments import parse_moment
from jidomem.query import to_term
from jidomem.read.pages import Cursor, page_size
from jidomem.read.reader import MemoryReader
from jidomem.read.walk import Place
from jidomem.terms import bare, iri
from jidomem.vocab import CLASS_OF_TYPE, REDACTED, graph_iri
from jidomem.write import conflict
from jidomem.write.kinds import family
from jidomem.write.settlement import ACTIONS, Settlement
from jidomem.write.view import View
from jidomem.write.writer import MemoryWriter

#: What waits this long moves up a tier.
OVERDUE = 30
_BINDING = ("decision", "convention")
_OF_DUE = ("accept", "reject")
_OF_OPPOSED = ("supersede", "keep-both", "reject")
_OF_ONE = ("accept", "reject", "supersede")  # what both took the place of has one successor, what both gave one value


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing to settle: tier 1 keeps agents from working, 2 waits to bind them, 3 waits, 4 is to be looked at.

    `leaning` counts the memories that rest on it or wait for it; `actions` are the ways to settle it. `source` is the
    evidence that it was given, and `place` of an imported entry its file and line. `replaces` are the memories that a
    proposal takes the place of once it is accepted. `is_apart` says whether it and `other` already apply to different
    files or scopes, so that both can be kept as they are. `type` is the kind of memory.
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

    @property
    def file(self) -> str | None:
        """Return the file that a proposal was imported from; None for anything else."""
        return self.place.rpartition(":")[0] or self.place if self.place and self.kind == "proposal" else None

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        lists = {name: [*getattr(self, name)] for name in ("agents", "actions", "replaces")}
        return {**asdict(self), "since": self.since.isoformat(), **lists}


@dataclass(frozen=True, slots=True)
class Queue:
    """Some of what waits, the cursor that gives what comes after it, None after the last, and how many wait in all."""

    waiting: list[Waiting]
    cursor: str | None
    total: int


def queue(reader: MemoryReader, project: str, now: datetime) -> list[Waiting]:
    """Return all that waits for a curator in *project*: by tier, then what most leans on, then the oldest.

    Proposals imported from a file stay together, in the order of the file, in the tier of the most pressing of them:
    after the others of that tier, the file imported last first. What has waited for a month is a tier higher, so that
    nothing stays at the end for ever.
    """
    return queued(reader, project, now).waiting


def queued(
    reader: MemoryReader, project: str, now: datetime, *, limit: int | None = None, cursor: str | None = None
) -> Queue:
    """Return what `queue` does, up to *limit* of it, after what was given with the *cursor*.

    Days are counted as when the first page was read; what was settled since is not in those that follow.
    Raises InvalidRequest for a limit or a cursor that is none.
    """
    size, question = None if limit is None else page_size(limit), f"review by place {project}"
    start = Cursor.parse(cursor, question) if cursor is not None else None
    now = (parse_moment(bare(start.as_of)) or now) if start else now
    at_hand = kept(reader, project)
    graph = graph_iri(project)
    view = View(lambda s, p, o: reader.index.triples(graph, s, p, o))
    said = [*_disagreements(reader, project, view), *_proposals(reader, project, at_hand, view)]
    known = at_hand.known([*dict.fromkeys(_named(said))])
    found = [row for row in said if row["item"] in known] + _due(at_hand, now)
    leaning = at_hand.leaning([*dict.fromkeys(_named(found))])
    groups = _groups(found, known, now)
    ordered = sorted((_place(row, known, leaning, now, groups), number) for number, row in enumerate(found))
    after = json.loads(start.place.key) if start else []
    left = [(place, number) for place, number in ordered if place > after]
    rows = [found[number] for _, number in left[:size]]
    known |= at_hand.known([*dict.fromkeys(_named(rows))])  # what is due is known by its dates
    waiting = [_waiting(row, known, leaning, now) for row in rows if row["item"] in known]
    if len(left) == len(rows):
        return Queue(waiting, None, len(found))
    place = Place(json.dumps(left[len(rows) - 1][0]))
    return Queue(waiting, str(Cursor(to_term(now, "dateTime", "now"), len(rows), question, place)), len(found))


def _named(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield row["item"]
        if row["other"]:
            yield row["other"]


def settle_by_rule(
    writer: MemoryWriter, reader: MemoryReader, project: str, rules: Authority, now: datetime, *, dry_run: bool = False
) -> list[tuple[Waiting, Change, Receipt | JidomemError]]:
    """Return what the confirmations of the policy settle, each with its rule and its receipt or refusal.

    A rule never asserts what ends or disagrees with something in force, nor what rests on an untrusted source. What it
    confirms is asserted by the memory writer, and the reason names the rule.
    """
    proposals = [one for one in queue(reader, project, now) if one.kind == "proposal"]
    waiting, items = [one for one in proposals if one.other is None], [one.item for one in proposals]
    known = kept(reader, project).known(items)
    ends = {row["item"] for row in asked(reader, project, _ENDING, items)}
    said_by = _said_by(known)
    judge = writer.by_rule()
    chosen: list[tuple[Waiting, Change]] = []
    for one in waiting:
        about = known[one.item]
        if one.item in ends or about["quarantined"]:
            continue
        rule = next((rule for rule in rules.confirmations if _confirms(rule, one, about, said_by)), None)
        if rule is not None:
            chosen.append((one, rule))
    settled: list[tuple[Waiting, Change, Receipt | JidomemError]] = []
    done: set[str] = set()
    while chosen:  # of identical proposals the first that is accepted settles the others
        batch: dict[str, tuple[Waiting, Change]] = {}
        for pair in chosen:
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
        chosen = [(one, rule) for one, rule in chosen
                  if one.item not in tried and known[one.item]["identical"] not in done]  # fmt: skip
    return settled


_ENDING = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT DISTINCT ?item ?any WHERE { GRAPH <%s> { VALUES ?item { %s } ?item jido:supersedes|jido:invalidates ?any } }
ORDER BY ?item ?any
"""


def newest(reader: MemoryReader, project: str, waiting: Sequence[Waiting]) -> list[Waiting]:
    """Return those of *waiting* in whose place no other one of them would stand once it is accepted."""
    items = [one.item for one in waiting]
    replaced = {row["any"] for row in asked(reader, project, _ENDING, items) if row["any"] != row["item"]}
    return [one for one in waiting if one.item not in replaced]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a review: what to do with what waits, and why."""

    number: int
    action: str
    waiting: Waiting
    reason: str | None


def apply(
    writer: MemoryWriter, project: str, lines: Iterable[Line], *, dry_run: bool = False
) -> list[tuple[Line, Receipt | JidomemError]]:
    """Return each of *lines* with its receipt or its refusal: one commit of all that are not refused."""
    lines = list(lines)
    settlements = [
        Settlement(
            line.waiting.item,
            line.action,
            other=line.waiting.other if line.waiting.kind != "proposal" else None,
            reason=line.reason,
        )
        for line in lines
    ]
    return [*zip(lines, writer.settle_many(project, settlements, dry_run=dry_run), strict=True)]


def _disagreements(reader: MemoryReader, project: str, view: View) -> list[dict[str, Any]]:
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader.ask("conflicts", project=project):
        pair = pairs.setdefault((row["a"], row["b"]), {
            "kind": "conflict", "item": row["a"], "summary": row["a_summary"], "other": row["b"],
            "other_summary": row["b_summary"], "why": row["kind"], "actions": ACTIONS,
        })  # fmt: skip
        if row["kind"] in (STALE, VALUE):
            pair["actions"] = _OF_ONE
        pair["is_apart"] = conflict.are_apart(iri(row["a"]), iri(row["b"]), view)
    return [*pairs.values()]


def _proposals(reader: MemoryReader, project: str, at_hand: Kept, view: View) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    rows = reader.ask("proposals", project=project)
    rivals: dict[str, dict[str, None]] = {}
    for row in rows:
        rivals.setdefault(row["item"], {}).update({row["conflict"]: None} if row["conflict"] else {})
    for item, known in rivals.items():
        known.update(dict.fromkeys(map(bare, conflict.rivals(iri(item), view))))
    in_force = at_hand.in_force([*dict.fromkeys(rival for some in rivals.values() for rival in some)])
    for row in rows:
        entry = found.setdefault(row["item"], {
            "kind": "proposal", "item": row["item"], "summary": row["summary"], "other": None, "other_summary": None,
            "why": "proposed", "actions": _OF_DUE,
        })  # fmt: skip
        rival = next((rival for rival in rivals[row["item"]] if rival in in_force), None)
        if rival is not None:
            entry |= {"other": rival, "other_summary": in_force[rival], "why": "disagrees with what is in force"}
            entry |= {"actions": _OF_OPPOSED, "is_apart": conflict.are_apart(iri(row["item"]), iri(rival), view)}
    alternatives = [item for item in found if item.rpartition("/alternatives/")[0] in found]
    return [entry for item, entry in found.items() if item not in alternatives]


def _due(at_hand: Kept, now: datetime) -> list[dict[str, Any]]:
    return [
        {**row, "kind": row["reason"], "summary": None, "other": None, "other_summary": None,
         "why": QUESTIONS[row["reason"]], "actions": _OF_DUE}
        for row in at_hand.due(now)
    ]  # fmt: skip


def _since(row: Mapping[str, Any], known: Mapping[str, Any]) -> datetime:
    """Return since when *row* waits."""
    if "reason" in row:
        return cast(datetime, row["due"] or row["recorded"])
    since: datetime = known[row["item"]]["since"]
    return max(since, known.get(row["other"], known[row["item"]])["since"]) if row["kind"] == "conflict" else since


def _days(row: Mapping[str, Any], known: Mapping[str, Any], now: datetime) -> int:
    return max((now - _since(row, known)).days, 0)


def _tier(row: Mapping[str, Any], known: Mapping[str, Any], now: datetime) -> int:
    if row["kind"] == "proposal":
        binds = row["other"] is not None or family(known[row["item"]]["type"] or "") in _BINDING
        tier = 2 if binds else 3
    else:
        tier = 1 if row["kind"] == "conflict" else 4
    return max(tier - (_days(row, known, now) >= OVERDUE), 1)


def _file(row: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    """Return the file that a proposal was imported from."""
    return known[row["item"]]["path"] if row["kind"] == "proposal" else None


def _groups(
    rows: Iterable[Mapping[str, Any]], known: Mapping[str, Any], now: datetime
) -> dict[str, tuple[int, datetime]]:
    """Return for each file the tier of the most pressing proposal from it, and the moment of the newest."""
    found: dict[str, tuple[int, datetime]] = {}
    for row in rows:
        if file := _file(row, known):
            tier, since = _tier(row, known, now), _since(row, known)
            before = found.get(file, (tier, since))
            found[file] = min(tier, before[0]), max(since, before[1])
    return found


def _place(
    row: Mapping[str, Any],
    known: Mapping[str, Any],
    leaning: Mapping[str, int],
    now: datetime,
    groups: Mapping[str, tuple[int, datetime]],
) -> list[int | str]:
    """Return the sort key of *row*: one of a file is placed by its file, of *groups*."""
    names = [row["item"], row["other"] or "", row["kind"]]
    if file := _file(row, known):
        tier, newest = groups[file]
        return [tier, 1, -_microseconds(newest), 0, file, known[row["item"]]["line"] or 0, *names]
    return [_tier(row, known, now), 0, -_lean(row, leaning), _microseconds(_since(row, known)), "", 0, *names]


def _microseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _lean(row: Mapping[str, Any], leaning: Mapping[str, int]) -> int:
    return leaning.get(row["item"], 0) + leaning.get(row["other"] or "", 0)


def _waiting(row: Mapping[str, Any], known: Mapping[str, Any], leaning: Mapping[str, int], now: datetime) -> Waiting:
    about = known[row["item"]]
    return Waiting(
        tier=_tier(row, known, now),
        kind=row["kind"],
        item=row["item"],
        summary=row["summary"] or about["summary"] or REDACTED,
        other=row["other"],
        other_summary=row["other_summary"],
        why=about["because"] or row["why"] if row["why"] == "proposed" else row["why"],
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
    )


def _said_by(known: Mapping[str, Mapping[str, Any]]) -> dict[str, Counter[str]]:
    """Return for each key of what is proposed the agents who say it."""
    found: dict[str, Counter[str]] = {}
    for about in known.values():
        for key in about["keys"]:
            found.setdefault(key, Counter()).update([*about["agents"]])
    return found


def _confirms(rule: Change, one: Waiting, about: Mapping[str, Any], said_by: Mapping[str, Counter[str]]) -> bool:
    kind = about["type"] or ""
    if kind not in CLASS_OF_TYPE or (rule.kind is not None and rule.kind not in (kind, family(kind))):
        return False
    if rule.confirms == "restated":
        return len(said_by.get(about["identical"], ())) > 1
    alone = all(key.startswith("identical:") or said_by[key].total() == 1 for key in about["keys"])
    return alone and one.days >= (rule.days or 1)
