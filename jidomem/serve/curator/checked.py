"""The check: the latest report on the memory, by rule and by item, what is waived, and what a change would fail."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from jidomem.errors import InvalidRequest, NotFound
from jidomem.govern.preview import BYTES, FOLDERS, own_files
from jidomem.govern.report import RULES, SEVERITIES
from jidomem.serve import wire
from jidomem.serve.curator.asked import Asked
from jidomem.serve.curator.screen import Screen
from jidomem.serve.curator.text import short
from jidomem.terms import iri, parts
from jidomem.vocab import BASE, graph_iri, jido, local_name

#: Findings of one rule, and items, that are listed.
LISTED = 50


def show(asked: Asked) -> Mapping[str, Any]:
    """Return what the latest check found; `at` is None where none was made since the server began."""
    asked.memory.catch_up(asked.project)
    latest = asked.memory.checks.latest.get(asked.project)
    told: dict[str, Any] = {
        "at": None,
        "done": asked.given.get("done"),
        "may_check": asked.as_of is None,
        "overlay": _overlay(asked),
        "preview": _preview(asked),
    }
    if latest is None:
        return told
    report = json.loads(latest[1])
    problems = report["problems"]
    return {
        **told,
        **{name: report[name] for name in ("conforms", "judged", "counts", "unchecked", "notes", "untargeted")},
        "at": latest[0],
        "rules": _by_rule(asked, problems),
        "items": _by_item(asked, problems),
        "waivers": [_waiver(asked, each) for each in sorted(report["waivers"], key=lambda one: str(one["until"]))],
    }


def _overlay(asked: Asked) -> dict[str, Any]:
    """Return the files of terms and rules of the root's own, and what the one that is asked for says."""
    root = asked.memory.settings.root
    files, chosen = own_files(root), asked.given.get("file", "")
    known = chosen in files
    if chosen and not known and chosen not in FOLDERS:
        raise wire.unknown(f"there is no file {chosen[:100]!r} of terms or rules", chosen, (*FOLDERS, *files))
    text = (root / chosen).read_text("utf-8", "replace") if known else ""
    if len(text) > BYTES:
        hint = "change it where the memory is, and look with: jidomem ontology diff --from now --to FOLDER"
        raise InvalidRequest(f"{chosen} is larger than what is looked at here", hint=hint)
    return {"folders": FOLDERS, "files": files, "chosen": chosen, "text": text}


def _preview(asked: Asked) -> Mapping[str, Any] | None:
    """Return what a look at a change found, where it is asked for; raises NotFound where it is not kept any more."""
    name = asked.given.get("preview")
    if not name:
        return None
    project, found = asked.memory.checks.previews.get(name, ("", b""))
    if project != asked.project:
        raise NotFound("what was found about this change is not kept any more", hint="look at the change again")
    told: dict[str, Any] = json.loads(found)
    return {**told, **{key: [_placed(asked, one) for one in told[key]] for key in ("problems", "failing")}}


def _by_rule(asked: Asked, problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the findings of each rule, the grave rules first, then those that are broken most."""
    found = []
    for rule, group in groupby(sorted(problems, key=lambda one: str(one["rule"])), key=lambda one: str(one["rule"])):
        each = [*group]
        gravest = min((one["severity"] for one in each), key=SEVERITIES.index)
        found.append({
            "rule": rule,
            "name": local_name(rule),
            "asks": RULES.get(rule) or each[0]["message"],
            "severity": gravest,
            "count": len(each),
            "problems": [_placed(asked, one) for one in each[:LISTED]],
        })  # fmt: skip
    return sorted(found, key=lambda one: (SEVERITIES.index(one["severity"]), -one["count"], one["rule"]))


def _by_item(asked: Asked, problems: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items with the most findings."""
    counts: dict[str, list[str]] = {}
    for one in problems:
        counts.setdefault(one["item"], []).append(local_name(one["rule"]))
    most = sorted(counts.items(), key=lambda one: (-len(one[1]), one[0]))
    return [{"item": item, **_of_item(asked, item), "rules": sorted(rules)} for item, rules in most[:LISTED]]


def _placed(asked: Asked, problem: dict[str, Any]) -> dict[str, Any]:
    place = None if problem["path"] is None else f"{problem['path']}:{problem['line'] or 1}"
    return {**problem, **_of_item(asked, problem["item"]), "name": local_name(problem["rule"]), "place": place}


def _waiver(asked: Asked, waiver: dict[str, Any]) -> dict[str, Any]:
    return {**waiver, **_of_item(asked, waiver["item"]), "name": local_name(waiver["rule"])}


def _of_item(asked: Asked, item: str) -> dict[str, str | None]:
    """Return where a memory is shown, and what it says in short; nothing of what is none."""
    if not item.startswith(f"{BASE}memory/"):
        return {"link": None, "summary": None}
    said = asked.memory.index.triples(graph_iri(asked.project), iri(item), jido("summary"))
    text = next((parts(row[2]).text for row in said), None)
    return {"link": asked.link("memories", item), "summary": text and short(text)}


def act(asked: Asked, form: Mapping[str, str]) -> str:
    """Check the memory now, or look at what a change would fail, and return the page of what was found."""
    checks = asked.memory.checks
    if form["act"] == "check":
        checks.answer(asked.project, "json", wire.asker())
        return asked.link("check", done="check")
    if "term" in form:
        name, text = asked.memory.term_proposals(asked.project).accepted(form["term"])
    else:
        name, text = form.get("file", ""), form.get("turtle", "").replace("\r\n", "\n")
    return asked.link("check", preview=checks.preview(asked.project, name, text, wire.asker()))


CHECK = Screen(
    "check",
    "check.html",
    show,
    takes=("done", "preview", "file"),
    act=act,
    acts=("check", "preview"),
    fields=("file", "turtle", "term"),
    menu="Check",
    writes=False,
)
