"""The memory of a project as a provider: upsert submits an intent, delete invalidates, query recalls or asks.

Keys are `jido:key`: a new value under a key supersedes the last one, which is never rewritten. A memory without a key
is addressed by its IRI.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Protocol, cast

from jidomem.base.clock import format_timestamp
from jidomem.base.json_values import is_unicode
from jidomem.errors import Conflict, InvalidRequest, JidomemError, NotFound
from jidomem.rdf.terms import iri, literal
from jidomem.rdf.vocab import JIDO
from jidomem.read.reader import MemoryReader
from jidomem.records import recall
from jidomem.records.active import valid_at
from jidomem.records.directive import TOP_K, Answer, Done, Missing, Opts, Scored, StoredValue, refuse_unknown
from jidomem.records.intent import Receipt
from jidomem.write.canonical import is_absolute
from jidomem.write.conflict import UniqueKey
from jidomem.write.corrections import OWN
from jidomem.write.writer import MemoryWriter

KEY = f"{JIDO}key"
#: The fields that are not part of a value: links, author, session and time of its memory.
_NOT_VALUE = frozenset((*OWN, "timestamp", "asserted_by", "asserted_in"))
_ACTIVE = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?key WHERE {{
  {which}
  ?item jido:hasAssertionStatus jido:Asserted ; jido:recordedAt ?recorded .
  FILTER NOT EXISTS {{ ?item jido:supersededBy|jido:invalidatedBy ?end }}
  {valid}
}} ORDER BY DESC(?recorded) ?item ?key
"""
_ABOUT = ("as_of", "valid_at", "include_inactive")


class Root(Protocol):
    """An open memory root, as `jidomem.open` returns it."""

    @property
    def writer(self) -> MemoryWriter:
        """Return the writer of the root."""

    @property
    def reader(self) -> MemoryReader:
        """Return the reader of the root."""

    @property
    def project(self) -> str:
        """Return the default project."""

    def recall(self, request: str, project: str | None = None, **more: Any) -> recall.MemoryRecall:
        """Return the active memories that match words of *request*."""


@dataclass(frozen=True, slots=True)
class _Graph:
    """One project of a root; the lock serialises upserts and deletes, so that a key has one holder."""

    root: Root
    project: str
    lock: Lock = field(default_factory=Lock)


class GraphProvider:
    """Stores values as memories of a project, judged like every other intent and asserted by the writer's agent.

    Options: `memory`, an open root; `project`, by default the root's own. A value is a text, stored as a fact of medium
    confidence, or a mapping of the fields of an intent. A refusal of the writer is raised as it is.
    """

    def init(self, opts: Opts) -> _Graph:
        """Return the project; raises InvalidRequest without a root."""
        refuse_unknown(opts, ("memory", "project"), "the graph provider")
        root = opts.get("memory")
        if not all(hasattr(root, name) for name in ("writer", "reader", "recall")):
            hint = 'register("graph", GraphProvider(), {"memory": jidomem.open()})'
            raise InvalidRequest("a graph provider needs an open memory", hint=hint)
        opened = cast(Root, root)
        return _Graph(opened, opts.get("project") or opened.project)

    def get(self, state: _Graph, key: str, opts: Opts) -> StoredValue | Missing:
        """Return the fields of the active memory under *key*, with its `iri`, or Missing."""
        refuse_unknown(opts, (), "graph get")
        holders = _holders(state, key)
        if not holders:
            return Missing(state)
        intent = state.root.writer.restated(state.project, holders[0])
        value = {name: part for name, part in intent.items() if name not in _NOT_VALUE}
        extra = [triple for triple in value.pop("extra_triples", ()) if triple[0] != KEY]
        return StoredValue(state, {"iri": holders[0], **value, **({"extra_triples": extra} if extra else {})})

    def put(self, state: _Graph, key: str, value: Any, opts: Opts) -> Done:
        """Submit *value* in place of the memory under *key*, and return its receipt; the same value changes nothing.

        Raises the errors of `submit_intent`.
        """
        refuse_unknown(opts, (), "graph put")
        with state.lock:
            return Done(state, _submitted(state, key, value).to_dict())

    def delete(self, state: _Graph, key: str, opts: Opts) -> Done | Missing:
        """Withdraw the active memory under *key*, for the `reason` in *opts*, or return Missing."""
        refuse_unknown(opts, ("reason",), "graph delete")
        reason = opts.get("reason", f"{state.root.writer.agent} forgot {key!r}")
        with state.lock:
            holders = _holders(state, key)
            if not holders:
                return Missing(state)
            receipts = [state.root.writer.invalidate(state.project, item, reason=reason) for item in holders]
        return Done(state, receipts[0].to_dict())

    def query(self, state: _Graph, query: Mapping[str, Any], opts: Opts) -> Answer:
        """Return the memories with words of the `text`, or the rows of the named query `name` with its `params`.

        With a text, the other fields are options of `recall`; with a name, as_of, valid_at and include_inactive. Raises
        InvalidRequest for both, for neither and for an invalid text.
        """
        refuse_unknown(opts, (), "graph query")
        hint = 'give {"text": "which index?"} or {"name": "open-tasks"}'
        if ("text" in query) == ("name" in query):
            raise InvalidRequest("a query has either a text or the name of a named query", hint=hint)
        if not isinstance(question := query.get("text", query.get("name")), str):
            raise InvalidRequest(f"{question!r} is not a text", hint=hint)
        try:
            return Answer(state, _recalled(state, query) if "text" in query else _query_rows(state, query))
        except NotFound as error:
            return Answer(state, _empty_result(error))


def _submitted(state: _Graph, key: str, value: Any) -> Receipt:
    writer, intent, scheduled = state.root.writer, _fields(state, key, value), list[str]()
    while True:
        active = _holders(state, key)
        holders = [*dict.fromkeys([*active, *scheduled])]
        same = _existing_receipt(state, intent, holders)
        if same is not None:
            return same
        try:
            return writer.submit_intent(state.project, _replacing(intent, holders, key), under=UniqueKey(key))
        except Conflict as conflict:
            scheduled = [each.iri for each in conflict.conflicts if each.kind == "same_key"]
            if not scheduled and _holders(state, key) == active:  # else another process was first
                raise


def _fields(state: _Graph, key: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, (str, Mapping)):
        raise InvalidRequest(
            f"{key!r} cannot have a {type(value).__name__}: the graph stores memories",
            hint='give a text, or the fields of an intent: {"type": "decision", "summary": "...", "rationale": "..."}',
        )
    writer = state.root.writer
    intent = {
        "type": "fact",
        "applies_to_project": state.project,
        "asserted_by": writer.agent,
        "asserted_in": writer.session,
        "confidence": "medium",
        **({"summary": value} if isinstance(value, str) else value),
    }
    intent["extra_triples"] = _joined(intent.get("extra_triples"), [[KEY, {"@value": key}]])
    return intent


def _replacing(intent: Mapping[str, Any], holders: Sequence[str], key: str) -> dict[str, Any]:
    """Return the intent that supersedes *holders*; an `iri` read from one of them is left out."""
    fields = {name: part for name, part in intent.items() if name != "iri" or part not in holders}
    links = {"supersedes": _joined(fields.get("supersedes"), holders)}
    return {"reason": f"Put under {key!r} anew.", **fields, **links} if holders else {**fields, **links}


def _joined(given_items: object, added: Sequence[Any]) -> object:
    """Return the items of both lists, *given_items* first; any other value is returned for the writer to refuse."""
    if given_items is not None and not isinstance(given_items, (list, tuple)):
        return given_items
    listed = given_items or ()
    return [*listed, *(each for each in added if each not in listed)]


def _existing_receipt(state: _Graph, intent: Mapping[str, Any], holders: Sequence[str]) -> Receipt | None:
    """Return the receipt if one of *holders* has exactly the content of *intent*, else None."""
    if not holders:
        return None
    # a refused intent may still be accepted as a replacement; if not, the submission raises the reason
    with suppress(JidomemError):
        without_iri = {name: part for name, part in intent.items() if name != "iri"}
        judged = state.root.writer.submit_intent(state.project, without_iri, dry_run=True)
        return judged if judged.status == "deduplicated" and judged.iri in holders else None
    return None


def _holders(state: _Graph, key: str) -> list[str]:
    """Return the active memories under *key*, the newest first: several after a merge of two branches."""
    items = [row["item"] for row in _active_rows(state, f"?item jido:key {_quoted(key)} .")]
    if not items and is_absolute(key):
        items = [row["item"] for row in _active_rows(state, f"VALUES ?item {{ {iri(key)} }}")]
    return items


def _keys_of(state: _Graph, items: Iterable[str]) -> dict[str, str]:
    named = " ".join(iri(item) for item in dict.fromkeys(items) if is_absolute(item))
    rows = _active_rows(state, f"VALUES ?item {{ {named} }} ?item jido:key ?key .") if named else []
    return {row["item"]: row["key"] for row in reversed(rows)}


def _active_rows(state: _Graph, which: str) -> list[dict[str, Any]]:
    try:
        reader = state.root.reader
        return reader.select(state.project, _ACTIVE.format(which=which, valid=valid_at(reader.now())))
    except NotFound as error:
        return _empty_result(error)


def _empty_result(error: NotFound) -> list[Any]:
    """Return the empty result of a project that was never written; raises any other *error*."""
    if error.code != "unknown_project":
        raise error
    return []


def _quoted(key: str) -> str:
    if key != key.strip() or not is_unicode(key):
        fault = "has blanks around it" if key != key.strip() else "holds half a surrogate pair"
        tidy = key.strip().encode("utf-8", "replace").decode()
        raise InvalidRequest(f"key={key!r} {fault}, which the graph does not store", hint=f"use the key {tidy!r}")
    return literal(key)


def _recalled(state: _Graph, query: Mapping[str, Any]) -> list[Scored]:
    known = ("text", "top_k", "agent_id", "session_id", "scope", *recall.RecallFilters.__slots__)
    refuse_unknown(query, known, "a query for a text")
    more = {name: value for name, value in query.items() if name not in ("text", "top_k")}
    recalled = state.root.recall(query["text"], state.project, limit=query.get("top_k", TOP_K), **more)
    keys = _keys_of(state, [hit.id for hit in recalled.entries])
    return [Scored(keys.get(hit.id, hit.id), hit.score, _plain(hit.to_dict())) for hit in recalled.entries]


def _query_rows(state: _Graph, query: Mapping[str, Any]) -> list[Scored]:
    """Return the rows of a named query, each by the key of the memory in its first column, all with score 1.0."""
    refuse_unknown(query, ("name", "params", *_ABOUT, "top_k"), "a query by name")
    params = query.get("params", {})
    about = {name: query[name] for name in _ABOUT if name in query}
    reserved = {"project", "limit", "cursor", *_ABOUT}
    if not isinstance(params, Mapping) or not all(isinstance(name, str) and name not in reserved for name in params):
        hint = 'write {"name": "...", "params": {"item": "..."}, "as_of": "..."}'
        raise InvalidRequest("params are the query's own parameters", hint=hint)
    reader = state.root.reader
    first = reader.playbook.get(query["name"]).columns[0]
    rows = reader.ask(query["name"], project=state.project, limit=query.get("top_k"), **about, **params)
    keys = _keys_of(state, [str(row[first]) for row in rows])
    return [Scored(keys.get(str(row[first]), str(row[first])), 1.0, _plain(row)) for row in rows]


def _plain(value: Any) -> Any:
    """Return *value* with its moments as text, so that it can be stored as JSON."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return format_timestamp(value) if isinstance(value, datetime) else value
