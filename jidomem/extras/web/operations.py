"""The pages of operation: agents and clients, the latest check, and the health of a project.

Curators see the counts of every agent, others their own.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

import jidomem
from jidomem.base.clock import format_timestamp, parse_moment
from jidomem.base.containers import grouped
from jidomem.check.overlay import BYTES, FOLDERS, own_files
from jidomem.check.report import RULES, SEVERITIES
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.extras.web import cards
from jidomem.extras.web.cards import PageKind, PageRequest, short
from jidomem.index.timeline import write_counts
from jidomem.journal.journal import NAMES, Stream
from jidomem.rdf.terms import iri, parse_literal
from jidomem.rdf.vocab import BASE, graph_iri, jido, local_name
from jidomem.records.policy import CURATORS, role_named
from jidomem.runtime.logs import ClientActivity, RefusedAt
from jidomem.serve import wire
from jidomem.serve.monitoring import standing
from jidomem.serve.server_state import HTTP, OTHERS


def of(page: PageRequest) -> tuple[list[RefusedAt], list[ClientActivity]]:
    """Return the refusals of this project and of no project, and the clients of this project, the latest first."""
    ledger = page.site.operation.ledger
    if ledger is not None and ledger.save():
        try:
            return ledger.log.read(page.project)
        except JidomemError:  # the log cannot be read: only the counts of this server are shown
            pass
    return _own_counts(page)


def counting_period(page: PageRequest) -> dict[str, Any]:
    """Return the start of the counting, and whether the counts are of all servers."""
    operation = page.site.operation
    return {"since": format_timestamp(operation.measures.since), "of_all": operation.ledger is not None}


def _own_counts(page: PageRequest) -> tuple[list[RefusedAt], list[ClientActivity]]:
    measures = page.site.operation.measures
    with measures.lock:
        counts, others = dict(measures.kinds.counts), dict(measures.kinds.others)
        activities = [
            ClientActivity(
                *client, HTTP, format_timestamp(visits.first), format_timestamp(visits.last), visits.requests
            )
            for client, visits in measures.clients.seen.items()
        ]
    refused = [RefusedAt(*each, HTTP, count) for each, count in counts.items()]
    refused += [RefusedAt("", "", OTHERS, code, HTTP, count) for code, count in others.items()]
    return refused, activities[::-1]


def sees_all(page: PageRequest) -> bool:
    """Return whether the caller sees all agents: a curator does, and without tokens every caller."""
    caller = page.site.caller
    return caller is None or role_named(caller.role) in CURATORS


def sees(page: PageRequest, agent: str) -> bool:
    """Return whether the caller sees *agent*, which is empty if it is unknown."""
    return sees_all(page) or (bool(agent) and page.site.is_own_or_curated(agent))


def can_view(page: PageRequest, project: str) -> bool:
    """Return whether a refusal in *project*, which may be empty, is shown on this page."""
    return project == page.project or (not project and not page.site.is_hidden())


#: The most agents and refusals in a list, and the days with writes that are shown.
MOST_AGENTS, REFUSED, DAYS = 100, 200, 14


def show_agents(page: PageRequest) -> Mapping[str, Any]:
    """Return the writes of each agent, in total and by day, as of the moment of the page, and the refusals."""
    page.memory.catch_up(page.project)
    activity = page.memory.texts.read_soon(
        Stream(page.project), lambda file: write_counts(file, moment=page.as_of, days=DAYS)
    )
    days = activity.days[::-1]
    listed = [*activity.agents.items()][:MOST_AGENTS]
    return {
        "days": [*days],
        "agents": [_agent(page, agent, count, activity.by_day.get(agent, {}), days) for agent, count in listed],
        "more": len(activity.agents) - len(listed),
        **_refusals(page),
        "sees_all": sees_all(page),
    }


def _agent(
    page: PageRequest, agent: str, count: int, by_day: Mapping[str, int], days: tuple[str, ...]
) -> dict[str, Any]:
    name = cards.agent(agent)
    link = page.link("timeline", agent=name) if name else None
    return {"agent": name, "count": count, "link": link, "by_day": [by_day.get(day, 0) for day in days]}


def _refusals(page: PageRequest) -> dict[str, Any]:
    """Return the refusals that the caller sees, the latest day first, then by count."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for each in of(page)[0]:
        if can_view(page, each.project) and sees(page, each.agent if each.agent != OTHERS else ""):
            counts[each.day, cards.agent(each.agent), each.code, each.interface] += each.times
    rows = sorted(counts.items(), key=lambda one: (one[0][0], one[1], one[0][1:]), reverse=True)
    refusals = [dict(zip(("day", "agent", "code", "interface"), key, strict=True), count=count) for key, count in rows]
    return {**counting_period(page), "refusals": refusals[:REFUSED], "more_refusals": len(refusals[REFUSED:])}


AGENTS = PageKind("agents", "agents.html", show_agents, menu="Agents")


#: The most findings of one rule, and items, in a list.
MOST_FINDINGS = 50


def show_check(page: PageRequest) -> Mapping[str, Any]:
    """Return the latest check; `at` is None if there was none since the start of the server."""
    page.memory.catch_up(page.project)
    latest = page.memory.checks.latest.get(page.project)
    values: dict[str, Any] = {
        "at": None,
        "done": page.given.get("done"),
        "may_check": page.as_of is None,
        "overlay": _overlay(page),
        "preview": _preview(page),
    }
    if latest is None:
        return values
    report = json.loads(latest[1])
    problems = report["problems"]
    return {
        **values,
        **{name: report[name] for name in ("conforms", "judged", "counts", "unchecked", "notes", "untargeted")},
        "at": parse_moment(latest[0]),
        "rules": _by_rule(page, problems),
        "items": _by_item(page, problems),
        "waivers": [_waiver(page, each) for each in sorted(report["waivers"], key=lambda one: str(one["until"]))],
    }


def _overlay(page: PageRequest) -> dict[str, Any]:
    """Return the overlay files of the root, and the text of the selected one."""
    root = page.memory.settings.root
    files, chosen = own_files(root), page.given.get("file", "")
    known = chosen in files
    if chosen and not known and chosen not in FOLDERS:
        raise wire.unknown(f"there is no file {chosen[:100]!r} of terms or rules", chosen, (*FOLDERS, *files))
    text = (root / chosen).read_text("utf-8", "replace") if known else ""
    if len(text) > BYTES:
        hint = "change it where the memory is, and compare with: jidomem ontology diff --from now --to FOLDER"
        raise InvalidRequest(f"{chosen} is too large to be shown here", hint=hint)
    return {"folders": FOLDERS, "files": files, "chosen": chosen, "text": text}


def _preview(page: PageRequest) -> Mapping[str, Any] | None:
    name = page.given.get("preview")
    if not name:
        return None
    project, preview = page.memory.checks.previews.get(name) or ("", b"")
    if project != page.project:
        raise NotFound("the result of this preview is no longer stored", hint="run the preview again")
    values: dict[str, Any] = json.loads(preview)
    return {**values, **{key: [_placed(page, one) for one in values[key]] for key in ("problems", "failing")}}


def _by_rule(page: PageRequest, problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of each rule, the grave rules first, then those that are broken most."""
    rules = []
    for rule, group in groupby(sorted(problems, key=lambda one: str(one["rule"])), key=lambda one: str(one["rule"])):
        each = [*group]
        gravest = min((one["severity"] for one in each), key=SEVERITIES.index)
        rules.append({
            "rule": rule,
            "name": local_name(rule),
            "asks": RULES.get(rule) or each[0]["message"],
            "severity": gravest,
            "count": len(each),
            "problems": [_placed(page, one) for one in each[:MOST_FINDINGS]],
        })  # fmt: skip
    return sorted(rules, key=lambda one: (SEVERITIES.index(one["severity"]), -one["count"], one["rule"]))


def _by_item(page: PageRequest, problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    counts = grouped((one["item"], local_name(one["rule"])) for one in problems)
    most = sorted(counts.items(), key=lambda one: (-len(one[1]), one[0]))
    return [{"item": item, **_of_item(page, item), "rules": sorted(rules)} for item, rules in most[:MOST_FINDINGS]]


def _placed(page: PageRequest, problem: dict[str, Any]) -> dict[str, Any]:
    place = None if problem["path"] is None else f"{problem['path']}:{problem['line'] or 1}"
    return {**problem, **_of_item(page, problem["item"]), "name": local_name(problem["rule"]), "place": place}


def _waiver(page: PageRequest, waiver: dict[str, Any]) -> dict[str, Any]:
    return {**waiver, **_of_item(page, waiver["item"]), "name": local_name(waiver["rule"])}


def _of_item(page: PageRequest, item: str) -> dict[str, str | None]:
    """Return the page and the short text of a memory; None for any other thing."""
    if not item.startswith(f"{BASE}memory/"):
        return {"link": None, "summary": None}
    summaries = page.memory.index.triples(graph_iri(page.project), iri(item), jido("summary"))
    text = next((parse_literal(row[2]).text for row in summaries), None)
    return {"link": page.link("memories", item), "summary": text and short(text)}


def act(page: PageRequest, form: Mapping[str, str]) -> str:
    """Run a check, or a preview of a change, and return the page of its result."""
    checks = page.memory.checks
    if form["act"] == "check":
        checks.answer(page.project, "json", wire.client_descriptor())
        return page.link("check", done="check")
    if "term" in form:
        name, text = page.memory.term_proposals(page.project).accepted(form["term"])
    else:
        name, text = form.get("file", ""), form.get("turtle", "").replace("\r\n", "\n")
    return page.link("check", preview=checks.preview(page.project, name, text, wire.client_descriptor()))


CHECK = PageKind(
    "check", "check.html", show_check, takes=("done", "preview", "file"), act=act, acts=("check", "preview"),
    fields=("file", "turtle", "term"), menu="Check", writes=False,
)  # fmt: skip


#: The most clients in a list.
CLIENTS = 50


def show_health(page: PageRequest) -> Mapping[str, Any]:
    """Return the present state of the project, independent of the moment of the page."""
    memory, project = page.memory, page.project
    health = standing(memory, project)
    memory.catch_up(project)
    return {
        "jidomem": jidomem.__version__,
        "ontology": memory.schema.version,
        "standing": health.to_dict(),
        "last_commit": health.journal.recorded_at or None,
        "journal_bytes": sum(_bytes(memory.journal.path(Stream(project, name))) for name in NAMES),
        "snapshots": _snapshots(page),
        "on_disk": memory.follower.on_disk,
        "texts": memory.texts.status(Stream(project)),
        "vectors": memory.embedding and memory.embedding.status(project),
        "damage": [error.to_dict() for error in memory.damage(project)],
        "clients": _clients(page),
        **counting_period(page),
        "sees_all": sees_all(page),
    }


def _snapshots(page: PageRequest) -> list[dict[str, Any]]:
    """Return the snapshots of the index, which has all projects; none unless the caller may access all of them."""
    snapshots = [] if page.site.is_hidden() else page.memory.follower.snapshots()
    return [{"name": each.path.name, "bytes": each.size} for each in snapshots]


def _bytes(folder: Path) -> int:
    """Return the size of the files of a folder; files that vanish meanwhile are not counted."""
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _clients(page: PageRequest) -> list[dict[str, Any]]:
    """Return the clients of this project that the caller sees, the latest first."""
    clients = of(page)[1]
    shown = [one._asdict() for one in clients if one.project == page.project and sees(page, one.agent)]
    return [{**one, "agent": cards.agent(one["agent"])} for one in shown[:CLIENTS]]


HEALTH = PageKind("health", "health.html", show_health, menu="Health")
