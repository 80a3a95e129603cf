"""The review queue as editable text, one line a memory, the parser of the edited lines, and the conflicting pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import takewhile
from types import MappingProxyType
from typing import Any, NamedTuple

from jidomem.base.words import slug
from jidomem.curation.review_queue import ENDING_ACTIONS, NEAR, WRITTEN, QueueItem, queue, with_rivals
from jidomem.errors import InvalidRequest, JidomemError
from jidomem.index.projection import OPPOSITE
from jidomem.rdf.statements import value_text
from jidomem.rdf.vocab import BASE, REDACTED, local_name, short_id
from jidomem.read.history import Rewording
from jidomem.read.reader import MemoryReader
from jidomem.records.active import ACTIVE, PENDING, SUPERSEDED
from jidomem.records.intent import Receipt
from jidomem.write.canonical import is_absolute
from jidomem.write.settlement import ACTIONS, OUTCOMES, Settlement
from jidomem.write.writer import MemoryWriter

Pair = tuple[str, str | None]
_SHORT_ID = re.compile("[0-9a-f]{8}")
#: The most characters of a text in a line, and how many of them are reserved for the label of a changed sentence.
_PLAIN, _BEFORE = 120, 10
#: The most refused settlements that are named.
NAMED = 10
#: The fields whose changes are shown as a rewording.
_REWORDED = frozenset(("summary", "rationale", "detailed_explanation", "status"))


class ReviewLine(NamedTuple):
    """One line of a review: the action on a pending item, and its reason."""

    number: int
    action: str
    waiting: QueueItem
    reason: str | None


def apply(
    writer: MemoryWriter, project: str, lines: Iterable[ReviewLine], *, dry_run: bool = False
) -> list[tuple[ReviewLine, Receipt | JidomemError]]:
    """Settle *lines* in one commit; return each with its receipt or its refusal."""
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


#: The effect of an action on two memories in conflict: the first proposed, and both active.
_OPPOSED: Mapping[str, str] = {
    "supersede": "it supersedes {other}",
    "keep-both": "both stay active",
    "reject": "{other} stays active",
}
_PAIR: Mapping[str, str] = {
    "accept": "{item} stays active, {other} is withdrawn",
    "reject": "{other} stays active, {item} is withdrawn",
    "supersede": "a new version of {item} replaces both",
    "keep-both": "both stay active, each in its own scope",
}
_NEAR: Mapping[str, str] = {**_PAIR, "keep-both": "both stay active"}
_JUDGED: Mapping[str, str] = {
    "accept": "{item} counts, {other} is undone",
    "reject": "{other} counts, {item} is undone",
}
_RECORDS: Mapping[str, str] = {"accept": "{item} stays as it is", "reject": "the text of {other} takes its place"}
#: The same where one of them is a withdrawal: the proposal, and the other one, of what the proposal was to replace.
_WITHDRAWING: Mapping[str, str] = {**_OPPOSED, "supersede": "{other} is withdrawn"}
_WITHDRAWN: Mapping[str, str] = {"supersede": "it takes the place of the withdrawal", "reject": "it stays withdrawn"}
_REASON = ' --reason "..."'
_ONE: Mapping[str, str] = {"accept": "it becomes or stays active", "reject": "it is withdrawn"}
_ENDED: Mapping[str, str] = {"accept": "it ended at its date", "reject": "it is withdrawn, as if it never held"}


def commands(one: QueueItem, place: str = "", agent: str | None = None) -> list[tuple[str, str]]:
    """Return the commands that settle the item *one*, each with its effect; *place* has options for all.

    A command for which *agent*, the name or IRI of the curator, needs a reason has a placeholder for it.
    """
    return [*_ways(one, place, agent).values()]


def _ways(one: QueueItem, place: str, agent: str | None = None) -> dict[str, tuple[str, str]]:
    """Return the `commands` by their action; `done` completes an overdue task, `restate` is `restating`."""
    if agent is not None:
        agent = agent if is_absolute(agent) else f"{BASE}agents/{slug(agent)}"
    item, other = short_id(one.item), short_id(one.other) if one.other else ""
    against = f" --against {other}" if one.other and one.kind != "proposal" else ""
    date = " --set expires_on=DATE" * one.needs_date
    done = f"jidomem edit{place} {item} --set status=Completed"
    ways = {"done": (done, "it is done")} if one.kind == "overdue" else {}
    ways |= {"restate": (restating(one, place), "it is complete again")} if one.is_redacted else {}
    for action in one.choices:
        options = f"{against}{date if action in _RESTATING else ''}"
        options += _REASON if _needs_reason(one, action, agent) else ""
        ways[action] = f"jidomem review{place} {action} {item}{options}", effect(one, action)
    if one.why == WRITTEN:
        confirm, undo = f"jidomem edit{place} {item} --confirm", f"jidomem edit{place} {other} --undo"
        for action, command in ("accept", confirm), ("reject", undo):
            ways[action] = command + _REASON * ways[action][0].endswith(_REASON), ways[action][1]
    if "accept" in ways and one.needs_date and not one.other:
        ways["accept"] = f"jidomem edit{place} {item} --confirm{date}", ways["accept"][1]
    if "accept" in ways and one.rivals and not one.other:
        rivals = [short_id(rival["item"]) for rival in one.rivals]
        judged = f"it is accepted, {' and '.join(rivals)} {'is' if len(rivals) == 1 else 'are'} rejected"
        command = f"jidomem review{place} supersede {item} --against {rivals[0]}{date}"
        if len(rivals) > 1:
            command = f"{ways['accept'][0]} && jidomem review{place} reject {' '.join(rivals)}"
        ways["accept"] = command, judged
    return ways


class Restated(NamedTuple):
    """How a message names the memories that lost a value of a field, the value, and what to do, with a placeholder."""

    memories: str
    lost: str
    action: str
    value: str


#: Each field of which a redaction leaves an active memory without a value.
RESTATED = {
    "rationale": Restated("active decisions", "a rationale", "say why", "TEXT"),
    "about": Restated("active rules", "a place that they had", "say where (PATH; ** is everywhere)", "PATH"),
    "forbids": Restated("active conventions", "a pattern that they had", "say what they forbid", "PATTERN"),
    "requires": Restated("active conventions", "a pattern that they had", "say what they require", "PATTERN"),
    "check_command": Restated("active conventions", "a check that they had", "say what checks them", "COMMAND"),
    "topic": Restated("active rules", "the topic that they had", "say on what", "TEXT"),
}


def restating(one: QueueItem, place: str = "") -> str:
    """Return the command that states again what *one* lost to a redaction: its summary, else a value of a field."""
    name = one.kind.removesuffix("_redacted")
    change = f"--set {name}={RESTATED[name].value}" if name in RESTATED else "--supersede TEXT"
    return f"jidomem edit{place} {short_id(one.item)} {change}"


def keep_both(one: QueueItem, place: str = "") -> str:
    """Return the command that keeps both memories of *one*, each in its own place, with a placeholder for one place."""
    against = f" --against {short_id(one.other)}" if one.other and one.kind != "proposal" else ""
    date = " --set expires_on=DATE" * one.needs_date
    return f"jidomem review{place} keep-both {short_id(one.item)}{against} --set about=PATH{date}"


#: The actions on a proposal or a pair that restate the memory.
_RESTATING = ("supersede", "keep-both")


def effect(one: QueueItem, action: str) -> str:
    """Return the effect of *action* on the item *one* and its other memory; empty if it does not settle *one*."""
    effects = _ENDED if one.kind == "no_longer_valid" else _ONE
    if one.other is not None:
        effects = {"proposal": _OPPOSED, NEAR: _NEAR}.get(one.kind, _PAIR)
    effects = {OPPOSITE: _JUDGED, WRITTEN: _RECORDS}.get(one.why, effects)
    if one.other is not None and one.kind == "proposal" and one.actions == ENDING_ACTIONS:
        effects = _WITHDRAWING if one.type == "deleted_marker" else _WITHDRAWN
    return effects.get(action, "").format(item=short_id(one.item), other=short_id(one.other) if one.other else "")


def _needs_reason(one: QueueItem, action: str, agent: str | None) -> bool:
    """Return whether *action* ends or changes an active memory of another author than *agent*."""
    of_item = () if one.kind == "proposal" or action == "accept" else one.agents
    of_other = one.other_agents if action == "supersede" or (action == "accept" and one.kind != "proposal") else ()
    return agent is not None and any(author != agent for author in (*of_item, *of_other))


def todo(
    waiting: Iterable[QueueItem], reworded: Mapping[str, Sequence[Rewording]] = MappingProxyType({}), place: str = ""
) -> str:
    """Return *waiting* as the text of a review: one line for each item, which begins with `skip`.

    The memories that a proposal ends are those of `with_endings`; *reworded* maps the IRI of a proposal to its
    rewordings of the memories that it is to replace. An action that needs a date or a path is not offered in the line,
    but as a command with the options *place*.
    """
    lines = [_HOW]
    for one in waiting:
        agents = ", ".join(map(local_name, one.agents))
        lines.append(
            f"# priority {one.tier}, {one.kind}: {_plain(one.why)}; "
            f"by {agents}, {one.days} days, {one.leaning} dependents"
        )
        lines.append(f"#   {_plain(one.summary)}")
        for each in reworded.get(one.item, ()):
            lines += [f"#   {_plain(line)}" for line in each.shortened(_PLAIN - _BEFORE).lines()]
        lines += [f"#   {line}" for line in below(one, is_reworded=bool(reworded.get(one.item)))]
        if one.place or one.source:
            lines.append(f"#   source: {_plain('; '.join(filter(None, (one.place, one.source))))}")
        if one.other:
            lines.append(f"#   against {one.other}: {_plain(one.other_summary or '')}")
        ways = {action: command for action, (command, _) in _ways(one, place).items()}
        in_line = [action for action in one.choices if "=DATE" not in ways[action]]
        in_shell = [command for action, command in ways.items() if action not in in_line]
        in_shell += [keep_both(one, place)] if one.may_be_parted else []
        lines.append(f"#   {' | '.join((*in_line, 'skip'))}")
        lines += [f"#   in a shell: {command}" for command in in_shell]
        lines.append(f"skip {one.item}{f' {one.other}' if one.other else ''}\n")
    return "\n".join(lines)


def below(one: QueueItem, *, is_reworded: bool = False) -> list[str]:
    """Return the memories that a proposal ends, the changed fields, the reason, and its marks, a line each."""
    lines = []
    for end in one.ends:
        lines.append(_plain(ending(end)))
        lines += map(_change_line, changed_fields(end, is_reworded=is_reworded))
    lines += [f"reason: {_plain(one.reason)}"] if one.reason else []
    return [*lines, *map(_plain, marks(one))]


def marks(one: QueueItem) -> list[str]:
    """Return the past dates of a proposal, and the proposals that conflict with it or are near to it, a line each."""
    others = {each["item"]: ("nearly the words of", each["summary"]) for each in one.near_proposals}
    others |= {each["item"]: ("against", each["summary"]) for each in one.rivals}
    lines = [f"{words} the proposal {short_id(item)}: {summary}" for item, (words, summary) in others.items()]
    return [*filter(None, [past_dates(one)]), *lines]


def past_dates(one: QueueItem) -> str:
    """Return the past dates of a proposal and what they mean for its acceptance; empty if there are none."""
    needs = "it needs a new date" if one.needs_date else "accepted, it is expired at once" if one.is_over else ""
    return "; ".join(filter(None, (*one.past_dates, needs))) if one.past_dates else ""


def ending(end: Mapping[str, Any]) -> str:
    """Return a memory of `QueueItem.ends` in words."""
    verb, status = "withdraws" if end["is_withdrawn"] else "replaces", end["status"]
    kind = "" if status == ACTIVE else " the proposal" if status == PENDING else f" the {status}"
    return f"{verb}{kind} {short_id(end['item'])}: {end['summary']}"


def _change_line(change: Mapping[str, Any]) -> str:
    values = (change[side] if isinstance(change[side], list) else [change[side]] for side in ("before", "after"))
    texts = (", ".join(str(value_text(each)) for each in some if each is not None) for some in values)
    was, now = (" ".join(text.split()) or "(none)" for text in texts)
    part = Rewording(was, now).shortened(_PLAIN // 2 - _BEFORE)
    return f"{change['field'].replace('_', ' ')}: {part.was} -> {part.now}"


def changed_fields(end: Mapping[str, Any], *, is_reworded: bool) -> list[Mapping[str, Any]]:
    """Return the changes of a memory of `QueueItem.ends`, without the texts if their rewording is shown.

    A proposal is not verified before it is accepted, so the lack of that mark is no change.
    """
    left_out = {"verified", *(_REWORDED if is_reworded else ())}
    return [change for change in end["changes"] if change["field"] not in left_out]


def without_settled(
    text: str, waiting: Iterable[QueueItem], end_of: Callable[[str], str | None], present: Callable[[str], str] = str
) -> tuple[str, dict[int, str]]:
    """Return the text of a review without the lines of items settled since, and these lines by their number.

    An interrupted review can thus be continued, and two curators do not undo each other's work. *end_of* returns the
    status of a memory that was superseded or withdrawn, else None: a line that names such a memory is settled, unless
    its item is still pending, also under its *present* name. A line with another action than the settlement says so.
    """
    known, names = _known_by(waiting)
    lines, settled = text.splitlines(), dict[int, str]()
    for number, line in enumerate(lines, start=1):
        words = _words(line)
        ids = _ids(words[1:])
        ends = [end for end in map(end_of, ids) if end is not None]
        if ends and _match(words[1:], known, names, present) is None:
            lines[number - 1] = ""
            end = end_of(ids[0])
            is_other = (end == SUPERSEDED) == (words[0] == "reject")
            settled[number] = f"{words[0]} {short_id(ids[0])}{f', which is {end}' if is_other else ''}"
    return "\n".join(lines), settled


def parse(text: str, waiting: Iterable[QueueItem], present: Callable[[str], str] = str) -> list[ReviewLine]:
    """Return the actions of the lines of a review, without those that skip; memories are named by IRI or short id.

    A proposal is named alone or with the memory that it conflicts with, two active memories both, in any order.
    *present* returns the IRI of the memory that a settlement put in the place of another, else its argument.

    Raises InvalidRequest, with the number of the line, for an unknown action, an item that is not pending, and an item
    in two lines.
    """
    known, names = _known_by(waiting)
    lines: list[ReviewLine] = []
    seen: set[frozenset[str | None]] = set()
    for number, line in enumerate(text.splitlines(), start=1):
        words = _words(line)
        if not words:
            continue
        action, named = words[0], words[1:]
        if action not in (*ACTIONS, "skip"):
            raise _bad(number, f"{action!r} is not an action", f"begin it with one of: {', '.join((*ACTIONS, 'skip'))}")
        if not named:
            raise _bad(number, f"{action} names no memory", "restore the line")
        match = _match(named, known, names, present)
        if match is None:
            raise _not_pending(number, action, named, known, names)
        one, count = match
        if (pair := frozenset((one.item, one.other))) in seen:
            raise _bad(number, f"{one.item} is in two lines", "leave one of them")
        seen.add(pair)
        if action not in (*one.actions, "skip"):
            raise _bad(number, f"{action} does not settle a {one.kind}", f"one of: {', '.join((*one.actions, 'skip'))}")
        if action != "skip":
            lines.append(ReviewLine(number, action, one, " ".join(named[count:]) or None))
    return lines


def _not_pending(
    number: int, action: str, named: Sequence[str], known: Mapping[Pair, QueueItem], names: Mapping[str, str]
) -> InvalidRequest:
    item = names.get(named[0], named[0])
    if pair := next((one for one in known.values() if item in (one.item, one.other) and one.kind != "proposal"), None):
        other = short_id(pair.item if item == pair.other else pair.other or "")
        return _bad(
            number,
            f"{named[0]} is pending with another memory",
            f"name both: {action} {short_id(item)} {other}; list the pending items: jidomem review",
        )
    hint = "restore the line, or remove it; list the pending items: jidomem review"
    return _bad(number, f"{' '.join(_ids(named) or named[:1])} is not pending", hint)


def _known_by(waiting: Iterable[QueueItem]) -> tuple[dict[Pair, QueueItem], dict[str, str]]:
    """Return the pending items by the names in their line, and the IRI of each unique short id."""
    known: dict[Pair, QueueItem] = {}
    for one in waiting:
        known |= {(one.item, None): one} if one.kind == "proposal" else {}
        known[one.item, one.other] = one
    items = {item for pair in known for item in pair if item is not None}
    taken = Counter(map(short_id, items))
    return known, {short_id(item): item for item in items if taken[short_id(item)] == 1}


def _words(line: str) -> list[str]:
    """Return the words of a line of a review; none if it is empty or a comment."""
    words = line.partition(" #")[0].split()
    return [] if words and words[0].startswith("#") else words


def _ids(named: Sequence[str]) -> list[str]:
    """Return the first words that may name memories: at most two IRIs or short ids."""
    return [*takewhile(lambda word: ":" in word or _SHORT_ID.fullmatch(word), named[:2])]


def _match(
    named: Sequence[str], known: Mapping[Pair, QueueItem], names: Mapping[str, str], present: Callable[[str], str]
) -> tuple[QueueItem, int] | None:
    """Return the pending item that the first words of a line name, a pair in their order, and the number of words."""
    words = [names.get(word, word) for word in named[:2]]
    for item, *other in (words, [present(word) if ":" in word else word for word in words]) if words else ():
        for each in other:
            if (item, each) in known:
                return known[item, each], 2
            reverse = known.get((each, item))
            if reverse is not None and reverse.kind != "proposal":
                return _reversed(reverse), 2
        one = known.get((item, None))
        if one is not None and (one.other is None or len(_ids(named)) < 2):
            return one, 1
    return None


def _reversed(one: QueueItem) -> QueueItem:
    assert one.other is not None
    return replace(
        one,
        item=one.other,
        summary=one.other_summary or "",
        agents=one.other_agents,
        other=one.item,
        other_summary=one.summary,
        other_agents=one.agents,
    )


_HOW = """\
# Each line begins with an action: replace skip by another one, and add a reason at the end of the line if it helps.
#   accept     activate a proposal; of two active memories withdraw the other one; confirm a due memory
#   reject     withdraw it
#   supersede  activate it in the place of the memory that it conflicts with
#   keep-both  activate it beside the memory that it conflicts with, each in its own scope; of a near pair let both stay
#   skip       leave it for later; so does removing the line
# If a line cannot be read, nothing is done. Empty the file to do nothing.
"""


def _plain(text: str) -> str:
    return " ".join(text.split())[:_PLAIN]


def _bad(number: int, what: str, hint: str) -> InvalidRequest:
    return InvalidRequest(f"line {number}: {what}; nothing was done", hint=hint)


class SettlementOutcome(NamedTuple):
    """The outcome of one settlement: its line in the review, if any, its action, its memory, and the effect on two."""

    number: int
    action: str
    item: str
    summary: str
    outcome: Receipt | JidomemError
    effect: str = ""

    @property
    def where(self) -> str:
        """Return the line as the prefix of a message."""
        return f"line {self.number}: " if self.number else ""


def settled_text(settled: SettlementOutcome) -> str:
    """Return the outcome for a memory, with the id of the resulting active memory if there is one, and the effect."""
    assert isinstance(settled.outcome, Receipt)
    would, item = "would be " if settled.outcome.commit is None else "", short_id(settled.item)
    outcome = OUTCOMES[settled.action]
    is_restated = not (would or outcome == "rejected" or (settled.action == "accept" and settled.effect))
    new = f" as {short_id(settled.outcome.iri)}" if is_restated else ""
    return f"{would}{outcome} {item}{new}{f' ({settled.effect})' if settled.effect else ''}"


def counted(settled: Sequence[SettlementOutcome]) -> str:
    """Return the number of settled and refused reviews, in words."""
    if not settled:
        return "nothing decided"
    refused = [short_id(each.item) for each in settled if isinstance(each.outcome, JidomemError)]
    done = Counter(OUTCOMES[each.action] for each in settled if isinstance(each.outcome, Receipt))
    is_dry = any(isinstance(each.outcome, Receipt) and each.outcome.commit is None for each in settled)
    counts = [f"{outcome} {count}" for outcome, count in sorted(done.items())]
    if refused:
        more = f" and {len(refused) - NAMED} more" if len(refused) > NAMED else ""
        counts.append(f"refused {len(refused)}: {', '.join(refused[:NAMED])}{more}")
    return ", ".join(counts) + "; dry run, nothing was written" * is_dry


def pending_pairs(
    reader: MemoryReader, project: str, now: datetime, place: str = "", agent: str | None = None
) -> list[dict[str, Any]]:
    """Return the present conflicts and proposals: kind, both memories with their summaries, and `settle`, the commands.

    A proposal has a row for each rival, and one without an other memory if it has none; two rival proposals have one.
    """
    waiting = with_rivals(reader, project, queue(reader, project, now))
    rows = [_pending_pair(one, place, agent) for one in waiting if one.kind == "conflict"]
    seen = set[str]()
    for one in waiting:
        if one.kind == "proposal":
            seen.add(one.item)
            row = _pending_pair(one, place, agent)
            rivals = [each for each in one.rivals if each["item"] not in seen]
            pairs = [{**row, "other": each["item"], "other_summary": each["summary"]} for each in rivals]
            rows += [row] if one.other or not one.rivals else pairs
    return rows


def _pending_pair(one: QueueItem, place: str, agent: str | None) -> dict[str, Any]:
    kind = one.why if one.kind == "conflict" else one.kind
    pair = _pair(kind, one.item, one.summary, one.other, one.other_summary)
    return {**pair, "settle": [command for command, _ in commands(one, place, agent)]}


def past_pairs(reader: MemoryReader, project: str, *, as_of: object, valid_at: object) -> list[dict[str, Any]]:
    """Return the conflicts and proposals of a moment as `pending_pairs` does, without commands.

    A pair has one row, with the first kind of its conflicts.
    """
    moments = {"as_of": as_of, "valid_at": valid_at}
    pairs: dict[tuple[str, str], dict[str, Any]] = {}
    for row in reader.ask("conflicts", project=project, **moments):
        pairs.setdefault(
            (row["a"], row["b"]), _pair(row["kind"], row["a"], row["a_summary"], row["b"], row["b_summary"])
        )
    proposals = [
        _pair("proposal", row["item"], row["summary"], row["conflict"], _summary(reader, project, row["conflict"]))
        for row in reader.ask("proposals", project=project, **moments)
    ]
    return [*pairs.values(), *proposals]


def _pair(kind: str, item: str, summary: str, other: str | None, other_summary: str | None) -> dict[str, Any]:
    named = {"kind": kind, "item": item, "summary": summary, "other": other, "other_summary": other_summary}
    return {**named, "settle": []}


def _summary(reader: MemoryReader, project: str, item: str | None) -> str | None:
    if item is None:
        return None
    summaries: list[str] = reader.get_memory(project, item)["properties"].get("summary", [])
    return summaries[0] if summaries else REDACTED
