"""The review page: disagreements side by side, proposals and due memories, settled one by one or together."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Any

from jidomem.curation.review_queue import ENDING_ACTIONS, NEAR, QueueItem, queued, with_endings
from jidomem.curation.review_text import below, past_dates, restating
from jidomem.errors import Conflict, InvalidRequest, JidomemError
from jidomem.extras.web import cards
from jidomem.extras.web.cards import PageKind, PageRequest, compared
from jidomem.rdf.terms import plain_value
from jidomem.rdf.vocab import JIDO, SCOPE, UNDATED
from jidomem.read.memory_detail import has_ended
from jidomem.records.active import ACTIVE, PENDING
from jidomem.records.intent import INTENT_FIELDS, LIST_FIELDS, ONLY_FOR, Receipt
from jidomem.records.recall import vectors_notice
from jidomem.write.corrections import OWN, without_verified
from jidomem.write.settlement import ACCEPT_ONE, Settlement
from jidomem.write.triples import level_of

#: Fields of the form with the scope of the left memory, and of the right one.
_LEFT, _RIGHT = ("about", "scope"), ("other_about", "other_scope")
#: Field of the form of a merger -> field of an intent.
_MERGED: Mapping[str, str] = {
    "text": "summary",
    "topic": "topic",
    "merged_about": "about",
    "rationale": "rationale",
    "alternatives": "alternatives",
    "explanation": "detailed_explanation",
    "confidence": "confidence",
}
FIELDS = (*_LEFT, *_RIGHT, *_MERGED, "expires_on")
#: Fields of a merged memory that come from the form, or from the curator and the moment of the merger.
_NOT_COMBINED = frozenset((
    *_MERGED.values(), *OWN, "type", "applies_to_project", "asserted_by", "asserted_in", "timestamp", "idempotency_key",
))  # fmt: skip
_LEVELS = ("low", "medium", "high")

PropertyRow = Mapping[str, Any]


def where(properties: PropertyRow) -> dict[str, Any]:
    """Return the scope of a memory for the form; `scope` is None if its kind has none."""
    scope = properties.get("convention_scope")
    return {"about": "\n".join(properties.get("about", ())), "scope": scope and f"{JIDO}{scope}"}


def scope_change(left: PropertyRow, right: PropertyRow, form: PropertyRow) -> tuple[bool, dict[str, Any]]:
    """Return whether the left memory gets a new scope, or else the right one, and its fields.

    Raise InvalidRequest if both change, or neither, unless they are a near pair, which has no conflict.
    """
    ours, theirs = _otherwise(left, form, _LEFT), _otherwise(right, form, _RIGHT)
    if ours and theirs:
        raise InvalidRequest("both memories have a new scope", hint="change the scope of one of them")
    is_near = form.get("kind") == NEAR
    if not (ours or theirs or left.get("about") or right.get("about") or is_near):
        hint = "name the files the left one is about, or the right one"
        raise InvalidRequest("to keep both, one of them needs another scope", hint=hint)
    is_left = bool(ours) or (not theirs and (bool(left.get("about")) or is_near))
    return is_left, ours or theirs


def _otherwise(properties: PropertyRow, form: PropertyRow, names: tuple[str, str]) -> dict[str, Any]:
    about, scope = (form.get(name) for name in names)
    changed: dict[str, Any] = {}
    if about is not None and (places := _lines(about)) != list(properties.get("about", ())):
        changed["about"] = places
    if scope is not None and scope != where(properties)["scope"]:
        name = scope.removeprefix(JIDO)
        if name not in SCOPE or "convention_scope" not in properties:
            raise InvalidRequest(f"{scope[:100]!r} is not a scope of it", hint=f"one of: {', '.join(SCOPE)}")
        changed["convention_scope"] = name
    return changed


def merged(left: PropertyRow, right: PropertyRow, start: str | None = None) -> dict[str, Any]:
    """Return the initial values of the form of a merger: the texts of the side *start*, places and evidence of both.

    A text that one side alone has is carried over. A text in which the sides differ is empty until a side is chosen:
    two contradicting sentences, one after the other, would mean nothing.
    """
    both = {**right, **left}
    agreed = {name: value for name, value in both.items() if right.get(name, value) == value}
    chosen = {"left": both, "right": {**left, **right}}.get(start or "", agreed)
    if start not in (None, "left", "right"):
        raise InvalidRequest(f"start={start:.40} is not a side", hint="start=left or start=right")
    levels = [level_of(side["confidence"]) for side in (left, right) if "confidence" in side]
    return {
        "text": chosen.get("summary", ""),
        "topic": chosen.get("topic", both.get("topic", "")),
        "merged_about": "\n".join(_united(left, right, "about")),
        "rationale": chosen.get("rationale", ""),
        "alternatives": "\n".join(_alternatives(left, right, chosen.get("summary", ""))),
        "explanation": chosen.get("detailed_explanation", ""),
        "confidence": min(levels, key=_LEVELS.index, default=""),
        "evidence": _united(left, right, "evidence"),
        "left_out": combined(left, right)[1],
    }


def combined(left: PropertyRow, right: PropertyRow) -> tuple[dict[str, Any], list[tuple[str, Any]]]:
    """Return the fields of a merged memory that are not in the form, and what the right memory alone keeps.

    The merged memory is of the kind of the left one, and has its single values where both have one; lists are united.
    The second result has the name of a field, or the IRI of a property, and a value for each that it cannot have.
    """
    fields, left_out = dict[str, Any](), list[tuple[str, Any]]()
    kind = left["type"]
    for name in INTENT_FIELDS:
        if name in _NOT_COMBINED or name == "extra_triples" or name not in right:
            continue
        values = right[name] if name in LIST_FIELDS else [right[name]]
        if kind not in ONLY_FOR.get(name, (kind,)):
            left_out += [(name, value) for value in values]
        elif name in LIST_FIELDS:
            fields[name] = _united(left, right, name)
        elif name not in left:
            fields[name] = right[name]
        elif left[name] != right[name]:
            left_out.append((name, right[name]))
    ours, theirs = without_verified(left), [each for each in without_verified(right) if each[0] != UNDATED]
    present = {triple[0] for triple in ours}
    added = [each for each in theirs if kind == right["type"] and each[0] not in present]
    if added:
        fields["extra_triples"] = [*ours, *added]
    left_out += [(name, next(iter(value.values()))) for name, value in theirs if [name, value] not in [*ours, *added]]
    return fields, left_out


def together(left: PropertyRow, right: PropertyRow, form: PropertyRow) -> dict[str, Any]:
    """Return the fields of the merged memory, which supersedes both; raise InvalidRequest without a text."""
    merged_fields = merged(left, right)
    given = {name: form.get(name, merged_fields[name]).strip() for name in _MERGED}
    if not given["text"]:
        hint = "start from the left or the right one, or write the text"
        raise InvalidRequest("the merged memory has no text", hint=hint)
    fields: dict[str, Any] = {field: given[name] or None for name, field in _MERGED.items()}
    fields["about"], fields["alternatives"] = _lines(given["merged_about"]), _lines(given["alternatives"])
    if "alternatives" not in form:
        fields["alternatives"] = _alternatives(left, right, given["text"])
    fields["evidence"] = merged_fields["evidence"]
    exact = [side["confidence"] for side in (left, right) if "confidence" in side]
    level = fields["confidence"] or merged_fields["confidence"]
    fields["confidence"] = next((each for each in exact if level_of(each) == level), level)
    return combined(left, right)[0] | fields


def _alternatives(left: PropertyRow, right: PropertyRow, choice: str) -> list[str]:
    """Return the alternatives of both that are not the *choice* itself: each side may have rejected the other one."""
    folded = choice.casefold()
    return [each for each in _united(left, right, "alternatives") if each.casefold() not in folded]


def _united(left: PropertyRow, right: PropertyRow, name: str) -> list[str]:
    return [*dict.fromkeys([*left.get(name, ()), *right.get(name, ())])]


def _lines(text: str) -> list[str]:
    lines: Iterable[str] = (line.strip() for line in text.splitlines())
    return [*dict.fromkeys(line for line in lines if line)]


#: Items on one page.
COUNT = 50
#: Decisions on two memories in conflict: name -> (key, text).
OF_TWO: Mapping[str, tuple[str, str]] = {
    "left": ("l", "Keep the left"),
    "right": ("r", "Keep the right"),
    "both": ("b", "Keep both"),
    "merge": ("m", "Merge into a new one"),
}
#: Decisions on a proposal, or on a memory that is due.
OF_ONE: Mapping[str, tuple[str, str]] = {"accept": ("a", "Accept"), "reject": ("x", "Reject")}
#: The names of the writer for decisions on both.
_OF_BOTH = {"both": "keep-both", "merge": "supersede"}
#: The actions that fill the form of a merger -> the side that it starts from.
_STARTS: Mapping[str, Mapping[str, str]] = {f"start-{side}": {"start": side} for side in ("left", "right")}
#: What was done, in words.
_DONE: Mapping[str, str] = {
    "left": "kept the left one", "right": "kept the right one", "both": "kept both",
    "merge": "merged both into a new one", "accept": "accepted", "reject": "rejected",
}  # fmt: skip
#: Properties that are compared; technical ones are left out.
_COMPARED = (
    "summary", "topic", "about", "rationale", "detailedExplanation", "decisionStatus", "hasTaskStatus",
    "hasErrorStatus", "severityLevel", "assignedTo", "hasAlternative", "hasConfidence", "assertedBy", "hasTimestamp",
    "revisionReason", "expiresOn", "validFrom", "validUntil", "conventionName", "hasConventionScope",
    "hasEnforcementLevel", "derivedFrom",
)  # fmt: skip


def show(page: PageRequest) -> Mapping[str, Any]:
    """Return the page of the queue by priority, and the selected item in full, or what became of it."""
    page.memory.catch_up(page.project)
    shown: dict[str, Any] = {
        "total": None,
        "notice": "",
        "waiting": [],
        "next": None,
        "looked_at": None,
        "decided": [],
        "done": None,
        "made": None,
        "ended": [],
        "why_not": None,
        "together": [],
    }
    if page.as_of is not None:  # the queue has no past states
        return shown
    near, now = page.memory.near_pairs(page.project), page.memory.sources.now()
    read = partial(queued, page.memory.reader, page.project, now, near, curators=_curators(page))
    listed = read(limit=COUNT, cursor=page.given.get("cursor") or None)
    waiting = with_endings(page.memory.reader, page.project, listed.waiting)
    names = [page.memory.reader.resolve(page.project, page.given[name]) for name in _NAMES if page.given.get(name)]
    chosen = _chosen(waiting, names) if names else next(iter(waiting), None)
    if chosen is None and not all(has_ended(page.memory.reader.get_memory(page.project, name)) for name in names):
        further = _chosen(read().waiting, names)
        chosen = further and with_endings(page.memory.reader, page.project, [further])[0]
    why_not = cards.why_not_write(page)
    together = {} if why_not else {one.item: _together_ways(page, one) for one in waiting if one.kind not in _PAIRS}
    return {
        **shown,
        "total": listed.total,
        "notice": vectors_notice(page.memory.lag(page.project)),
        "waiting": [
            {
                **one.to_dict(),
                "below": below(one),
                "link": _link(page, one),
                "is_looked_at": one is chosen,
                "is_chosen_with_others": one.kind not in _PAIRS and bool(together.get(one.item)),
            }
            for one in waiting
        ],
        "next": page.link("review", cursor=listed.cursor) if listed.cursor else None,
        "looked_at": None if chosen is None else _looked_at(page, chosen),
        "decided": [] if chosen is not None else [cards.outcome_row(page, name) for name in names],
        "done": page.given.get("done"),
        "made": cards.row(page, page.given["made"]) if page.given.get("made") else None,
        "ended": [cards.row(page, item) for item in page.given.get("ended", "").split()[:2]],
        "why_not": why_not,
        "together": [way for way in OF_ONE if any(way in ways for ways in together.values())],
    }


#: The arguments with the selected item, and the kinds of items that are settled by themselves: each has two memories.
_NAMES, _PAIRS = ("item", "other"), ("conflict", NEAR)


def _curators(page: PageRequest) -> Collection[str]:
    return page.memory.writer.authority(page.project).curators


def _chosen(waiting: Iterable[QueueItem], names: Collection[str]) -> QueueItem | None:
    """Return the item of *waiting* that *names* are about, in any order; a proposal is named by itself, too."""
    fitting = [one for one in waiting if {*names} <= {one.item, one.other} or _is_proposed(one, names)]
    return next(iter(sorted(fitting, key=lambda one: {*names} != {one.item, one.other} - {None})), None)


def _is_proposed(one: QueueItem, names: Collection[str]) -> bool:
    return one.kind == "proposal" and one.item in names


def _together_ways(page: PageRequest, one: QueueItem) -> tuple[str, ...]:
    """Return the decisions that the caller may take on the item *one* together with others."""
    why_not = cards.why_not_correct(page, one.item, asserted=True)
    ways = ("accept", "reject") if why_not is None else ("reject",) if _is_own(page, one) else ()
    return tuple(way for way in ways if way in one.actions)


def _is_own(page: PageRequest, one: QueueItem) -> bool:
    """Return whether *one* is a proposal of the caller, who may reject it in any role that writes."""
    is_writer = one.kind == "proposal" and cards.why_not_write(page) is None
    return is_writer and plain_value(page.site.writer.agent_iri()) in one.agents


def _link(page: PageRequest, one: QueueItem) -> str:
    return page.link("review", item=one.item, other=one.other, cursor=page.given.get("cursor"))


def _looked_at(page: PageRequest, one: QueueItem) -> dict[str, Any]:
    reader, writer = page.memory.reader, page.memory.writer
    replaced = _replaced(page, one) if one.other is None else None
    sides = [reader.get_memory(page.project, item) for item in (one.item, one.other or replaced) if item]
    fields = [writer.restated(page.project, each["iri"]) for each in sides]
    compared_fields = [
        {name: each["properties"][name] for name in _COMPARED if name in each["properties"]} for each in sides
    ]
    for values, side in zip(compared_fields, fields, strict=True):
        values |= {"derivedFrom": side["evidence"]} if side.get("evidence") else {}  # texts in place of their IRIs
    why_not = cards.why_not_correct(page, *filter(None, (one.item, one.other)), asserted=True)
    offered = OF_TWO if one.other else OF_ONE
    if why_not:
        offered = {name: offered[name] for name in ("right", "reject") if name in offered and _is_own(page, one)}
    return {
        **one.to_dict(),
        "past": past_dates(one),
        "restate": restating(one) if one.is_redacted else None,
        "others": [
            {**each, "words": words, "link": page.link("review", item=each["item"])}
            for words, some in (("against", one.rivals), ("nearly the words of", one.near_proposals))
            for each in some
        ],
        "sides": [cards.memory_row(page, each) for each in sides],
        "rows": [*compared(compared_fields[0], compared_fields[-1])],
        "ways": {
            name: {"key": key, "text": text}
            for name, (key, text) in offered.items()
            if _action(name, sides[0]["status"]) in one.actions and (name != "merge" or one.actions != ENDING_ACTIONS)
        },
        "why_not": why_not,
        "beside": [where(each) for each in fields],
        "scopes": [f"{JIDO}{name}" for name in SCOPE],
        "merged": merged(fields[0], fields[1], page.given.get("start")) if one.other else None,
    }


def _replaced(page: PageRequest, one: QueueItem) -> str | None:
    """Return the memory whose text a proposal changes: the only active memory that it supersedes."""
    memories = (page.memory.reader.get_memory(page.project, item) for item in one.replaces)
    active = [each["iri"] for each in memories if each["status"] == ACTIVE]
    return active[0] if len(active) == 1 else None


def _action(way: str, status: str) -> str:
    """Return the writer's name of a decision; to keep a proposal means to supersede the other memory."""
    if way in OF_ONE:
        return way
    return {"left": "supersede" if status == PENDING else "accept", "right": "reject"}.get(way, _OF_BOTH.get(way, ""))


def act(page: PageRequest, form: Mapping[str, str]) -> str:
    """Decide one item, or all selected ones, as in *form*, and return the address of the queue."""
    way, reason = form["act"], form.get("reason", "").strip() or None
    if "chosen" in form:
        return page.link("review", done=_together(page, way, form["chosen"].split("\n"), reason))
    item, other = form.get("item", ""), form.get("other") or None
    if not item:
        raise InvalidRequest("no item is selected", hint="select the items to be settled together")
    try:
        made = _settled(page, way, item, other, reason, form)
    except JidomemError as error:
        raise cards.explained(page, _on_page(error, way), item, other) from error
    return page.link("review", done=_DONE[way], made=made, ended=" ".join(_ended(way, item, other)))


def _together(page: PageRequest, way: str, chosen: list[str], reason: str | None) -> str:
    """Settle the *chosen* items in one commit, return the message; raises RefusalNotice with a row for each refusal."""
    if way not in OF_ONE:
        raise InvalidRequest(
            f"several items can only be accepted or rejected together, not {way!r}", hint="settle each by itself"
        )
    digest = page.site.caller.digest if page.site.caller else None
    lines, by = [*dict.fromkeys(chosen)], (digest, page.project, way, reason)
    # A form that is sent again waits for the first one, and then finds every line done. Its key is none of a line.
    form = (*by, "form", *lines)
    return page.site.operation.repeats.once(form, partial(_settled_together, page, way, lines, reason, by))


def _settled_together(
    page: PageRequest, way: str, lines: list[str], reason: str | None, by: tuple[str | None, ...]
) -> str:
    rows = []
    settlements = [Settlement(line.partition(" ")[0], way, reason=reason) for line in lines]
    _check_single(page, [each.item for each in settlements])
    outcomes = page.site.writer.settle_many(page.project, settlements)
    for line, settlement, outcome in zip(lines, settlements, outcomes, strict=True):
        try:
            page.site.operation.repeats.once((*by, line), partial(_iri, outcome))
        except JidomemError as error:
            if error.http_status in (401, 403) or error.http_status >= 500:
                raise  # the other items would get the same error
            rows.append(cards.refused_row(page, settlement.item, _on_page(error, way)))
    if rows:
        done = len(lines) - len(rows)
        raise cards.RefusalNotice(
            f"{len(rows)} of {len(lines)} could not be settled; {_DONE[way]}: {done} together",
            hint="settle these one by one",
            rows=rows,
        )
    return f"{_DONE[way]}, {len(lines)} together"


def _check_single(page: PageRequest, items: Collection[str]) -> None:
    """Raise InvalidRequest for an active memory that is not due: of a pair, a decision on one is one on both."""
    memories = [page.memory.reader.get_memory(page.project, item) for item in items]
    active = [each["iri"] for each in memories if each["status"] != PENDING and not has_ended(each)]
    if not active:
        return
    now = page.memory.sources.now()
    waiting = queued(page.memory.reader, page.project, now, curators=_curators(page)).waiting
    single = {one.item for one in waiting if one.kind not in _PAIRS}
    if others := [each for each in active if each not in single]:
        raise InvalidRequest(
            f"{', '.join(others)} cannot be accepted or rejected with others: a conflict or near pair is settled by"
            " itself; nothing was changed",
            hint="select the pair below, and keep one of the two, or both",
        )


def _on_page(error: JidomemError, way: str) -> JidomemError:
    """Return *error*, of a conflict or rivals with a hint for the controls of the page in place of commands."""
    if isinstance(error, Conflict) and way == "both":
        error.hint = "say of one of them where it applies, and the other one does not: other files, or another scope"
    elif way == "accept" and "--set expires_on=" in error.hint:
        error.hint = "select it, and give the new date"
    elif error.hint.startswith(ACCEPT_ONE):
        error.hint = "accept one of them alone, then reject the others"
    elif isinstance(error, Conflict):
        error.hint = (
            "select it below: it is shown beside the memory that it conflicts with, to keep one of them or both"
        )
    return error


def _iri(outcome: Receipt | JidomemError) -> str:
    if isinstance(outcome, JidomemError):
        raise outcome
    return outcome.iri


def _settled(
    page: PageRequest, way: str, item: str, other: str | None, reason: str | None, form: Mapping[str, str]
) -> str:
    """Decide one item, and return the IRI of the resulting memory."""
    writer, project = page.site.writer, page.project
    status = page.memory.reader.get_memory(project, item)["status"]
    changes: Mapping[str, Any] | None = None
    if way not in OF_ONE and other is None:
        raise InvalidRequest(f"{way} needs two memories, and there is one", hint="accept or reject it")
    if way == "merge" and other is not None:
        changes = together(writer.restated(project, item), writer.restated(project, other), form)
    elif way == "both" and other is not None:
        is_left, changes = scope_change(writer.restated(project, item), writer.restated(project, other), form)
        if not is_left and status == PENDING:
            raise InvalidRequest(
                "the left one is a proposal, which this would assert", hint="say where the left one applies"
            )
        item, other = (item, other) if is_left else (other, item)
    if way == "accept" and (date := form.get("expires_on", "").strip()):
        return writer.correct(project, item, confirm=True, changes={"expires_on": date}, reason=reason).iri
    rival = None if status == PENDING else other  # a proposal itself names all memories it contradicts
    receipt = writer.settle(project, item, _action(way, status), other=rival, reason=reason, changes=changes)
    return receipt.iri


def _ended(way: str, item: str, other: str | None) -> list[str]:
    """Return the memories ended by a decision, which can be restored."""
    ended = {"left": (other,), "both": (), "merge": (item, other)}.get(way, (item,))
    return [each for each in ended if each]


REVIEW = PageKind(
    "review", "review.html", show, takes=("item", "other", "start", "cursor", "done"), act=act,
    acts=(*OF_TWO, *OF_ONE, *_STARTS), redraws=_STARTS,
    fields=("item", "other", "kind", "reason", "chosen", *FIELDS), several=("chosen",), menu="Review",
)  # fmt: skip
