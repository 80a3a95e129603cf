"""The playbook: each named question with a form of its parameters, its answer as a table, and the SPARQL it is."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from jidomem.active import STATUSES
from jidomem.errors import InvalidRequest, JidomemError, NotFound
from jidomem.query import NamedQuery, Param, snake, to_term
from jidomem.serve import wire
from jidomem.serve.curator.asked import AS_OF, Asked
from jidomem.serve.curator.refusals import ToFillIn
from jidomem.serve.curator.screen import Screen
from jidomem.terms import parts

#: Rows on one page.
COUNT = 100
#: Parameters that every page has a place of its own for.
_GIVEN = ("project", "asOf", "validAt", "includeInactive")
_PAGE = ("limit", "cursor", "include_inactive", "valid_at")
_INPUTS = {"integer": "number", "boolean": "checkbox", "dateTime": "datetime-local"}


def show_all(asked: Asked) -> Mapping[str, Any]:
    """Return the questions by role."""
    by_role = groupby(sorted(asked.memory.playbook, key=lambda one: (one.role, one.name)), lambda one: one.role)
    return {"roles": [{"role": role, "queries": [_listed(asked, one) for one in queries]} for role, queries in by_role]}


def _listed(asked: Asked, query: NamedQuery) -> dict[str, str]:
    return {"name": query.name, "summary": query.summary, "link": asked.link("playbook", query.name)}


def show(asked: Asked, name: str) -> Mapping[str, Any]:
    """Return one question with its parameters; with its answer where none that it needs is missing.

    Raises ToFillIn where one is not of its type, or names no memory.
    """
    query = asked.memory.playbook.get(name)
    own = {key: value for key, value in asked.given.items() if key not in (AS_OF, *_PAGE) and value != ""}
    faults = _faults(asked, query, own)
    params = [_param(param, own, faults) for param in query.params if param.name not in _GIVEN]
    missing = [each["name"] for each in params if each["required"] and each["name"] not in own]
    page = None
    if not missing and not faults:
        page = asked.memory.reader.ask_page(
            name,
            project=asked.project,
            as_of=asked.as_of,
            valid_at=asked.given.get("valid_at") or None,
            include_inactive=wire.flag(asked.given, "include_inactive"),
            limit=wire.whole(asked.given, "limit") or COUNT,
            cursor=asked.given.get("cursor"),
            **own,
        )
    further = {**asked.given, "cursor": page.cursor} if page and page.cursor else None
    model = {
        "name": query.name,
        "role": query.role,
        "summary": query.summary,
        "params": params,
        "missing": missing,
        "takes_inactive": query.takes("includeInactive"),
        "inactive": wire.flag(asked.given, "include_inactive"),
        "columns": [*query.columns],
        "rows": None if page is None else page.rows,
        "next": asked.link("playbook", name, **further) if further else None,
        "csv": asked.link("playbook", f"{name}.csv", **own, include_inactive=asked.given.get("include_inactive")),
        "json": asked.link("playbook", f"{name}.json", **asked.given),
        "sparql": query.text,
    }
    if faults:
        raise ToFillIn(next(iter(faults.values())), model)
    return model


def _faults(asked: Asked, query: NamedQuery, own: Mapping[str, str]) -> dict[str, JidomemError]:
    """Return why what is given for a parameter is none, by its name."""
    found: dict[str, JidomemError] = {}
    for param in query.params:
        name = snake(param.name)
        if param.name in _GIVEN or name not in own:
            continue
        try:
            given = asked.memory.reader.with_iris(query, asked.project, {param.name: own[name]}, asked.as_of)
            to_term(given[param.name], param.type, name)
        except (InvalidRequest, NotFound) as error:
            found[name] = error
    return found


def _param(param: Param, own: Mapping[str, str], faults: Mapping[str, JidomemError]) -> dict[str, Any]:
    """Return one parameter as a field of the form."""
    name, default = snake(param.name), param.default
    told = parts(default).text if default else ""
    return {
        "name": name,
        "type": param.type,
        "input": _INPUTS.get(param.type, "text"),
        "choices": STATUSES if param.type == "status" else (),
        "required": default is None,
        "default": told,
        "value": own.get(name, ""),
        "fault": faults[name].to_dict() if name in faults else None,
    }


PLAYBOOK = Screen("playbook", "playbook.html", show_all, menu="Playbook")
QUESTION = Screen("playbook/{name}", "question.html", show, is_open=True)
