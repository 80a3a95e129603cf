"""The contract of a store of entries, as checks for any store.

    from jidomem.entries.conformance import CHECKS

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_my_store_keeps_the_contract(check):
        check(MyStore)

Each check takes a function that makes a fresh, empty store, and raises ContractBroken where the
store breaks the contract.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from jidomem.entries.store import list_entries, recall, resolve, write
from jidomem.errors import JidomemError
from jidomem.records.entry import Entry, WriteRequest, WriteResult
from jidomem.records.interfaces import NAMESPACE
from jidomem.records.recall import RecallRequest, RecallResult

Make = Callable[[], object]

#: The text of every entry and every request of a check, so that a store that searches finds it.
_TEXT = "The kettle is descaled on Fridays"


class ContractBroken(AssertionError):
    """A store that violates the contract."""


def it_has_the_three_operations(make: Make) -> None:
    """A store has recall, write and list_entries."""
    try:
        resolve(make())
    except TypeError as error:
        raise ContractBroken(str(error)) from error


def it_answers_with_results(make: Make) -> None:
    """The result of a recall contains its request, that of a write its request and the stored entry."""
    store, entry = make(), _entry("mem_kit_a")
    given = WriteRequest(entry, {"trace": "kit"})
    written: WriteResult = write(store, given)
    _same("the result of write has another request", written.request, given)
    _same("write stored the entry with another id", written.entry.id, entry.id)
    request = RecallRequest(agent_id="kit", query=_TEXT, limit=7, metadata={"trace": "kit"})
    _same("the result of recall has another request", recall(store, request).request, request)


def it_keeps_what_is_written(make: Make) -> None:
    """A written entry is recalled and listed with its id, agent, session and metadata."""
    store = make()
    entry = _entry("row/42", session_id="s", metadata={"tenant": "t-1", "tags": ["a", {"b": None}]})
    write(store, entry)
    for verb, entries in (("recall", _recall(store, session_id="s")), ("list_entries", list_entries(store))):
        _same(f"{verb} after one write returned other ids", _ids(entries), ["row/42"])
        for name in ("agent_id", "session_id", "metadata"):
            value = getattr(entries[0], name)
            _same(f"{verb} returned the entry with another {name}", value, getattr(entry, name))


def it_replaces_by_id(make: Make) -> None:
    """Writing an id again leaves one entry, the newer."""
    store = make()
    write(store, _entry("mem_kit_a", metadata={"version": 1}))
    write(store, _entry("mem_kit_a", metadata={"version": 2}))
    for verb, entries in (("recall", _recall(store)), ("list_entries", list_entries(store))):
        fault = f"{verb} after two writes of one id did not return only the newer: write has to replace by id"
        _same(fault, [one.metadata.get("version") for one in entries], [2])


def it_honours_the_limit(make: Make) -> None:
    """A recall returns at most the limit of the request; the caller does not truncate."""
    store = make()
    for number in range(4):
        write(store, _entry(f"mem_kit_{number}"))
    for limit in (1, 3):
        entries = _recall(store, limit=limit)
        if len(entries) > limit:
            raise ContractBroken(
                f"recall with limit={limit} returned {len(entries)} entries: apply the limit in the store"
            )
        _same(f"recall with limit={limit} returned too few of 4 matching entries", len(entries), limit)


def it_keeps_agents_apart(make: Make) -> None:
    """A recall returns no entries of other agents."""
    store = make()
    write(store, _entry("mem_kit_mine"))
    write(store, _entry("mem_kit_other", agent_id="other"))
    _only("recall of one agent returned entries of another", _recall(store), ["mem_kit_mine"])


def it_keeps_sessions_apart(make: Make) -> None:
    """With the scope `session` a recall returns only entries of that session."""
    store = _with_sessions(make)
    fault = "recall with scope='session' returned entries of no or another session"
    _only(fault, _recall(store, scope="session", session_id="s"), ["mem_kit_s"])
    _only(fault, _recall(store, scope="session", session_id="none"), [])
    _only(f"{fault}, without a session_id", _recall(store, scope="session"), [])


def it_shares_what_is_of_no_session(make: Make) -> None:
    """With the scope `agent` a recall returns entries without a session and those of the named session, no others."""
    store = _with_sessions(make)
    fault = "recall with scope='agent' returned other entries than those without a session"
    _only(fault, _recall(store), ["mem_kit_all"])
    _only(f"{fault} and those of the named one", _recall(store, session_id="s"), ["mem_kit_all", "mem_kit_s"])


def it_lists_everything(make: Make) -> None:
    """list_entries returns all entries, of all agents and sessions."""
    store = _with_sessions(make)
    write(store, _entry("mem_kit_x", agent_id="other"))
    fault = "list_entries did not return exactly all entries of the store"
    _only(fault, list_entries(store), ["mem_kit_all", "mem_kit_s", "mem_kit_t", "mem_kit_x"])


def it_finds_nothing_without_an_error(make: Make) -> None:
    """A new store is empty, and an empty result is not an error."""
    for verb, ask in (("recall", lambda store: _recall(store, agent_id="nobody")), ("list_entries", list_entries)):
        try:
            entries = ask(make())
        except JidomemError as error:
            raise ContractBroken(f"{verb} of an empty store raised: {error}") from error
        _same(f"{verb} of a new store returned entries", _ids(entries), [])


def it_ignores_what_it_does_not_know(make: Make) -> None:
    """Unknown options and metadata have no effect and raise no error."""
    given = make()
    store, opts = given if isinstance(given, tuple) else (given, {})
    more = {"kit-trace": "t-1", "kit-model": object()}
    seen = {**opts, **more}
    try:
        write((store, seen), WriteRequest(_entry("mem_kit_a"), {"kit-tenant": object()}))
        entries = _recall((store, seen), metadata={"kit-tenant": object()})
        listed = list_entries((store, seen))
    except JidomemError as error:
        raise ContractBroken(f"unknown options or metadata raised: {error}") from error
    _same("the options were changed", seen, {**opts, **more})
    _same("unknown options or metadata changed the recalled entries", _ids(entries), ["mem_kit_a"])
    _same("unknown options changed the listed entries", _ids(listed), ["mem_kit_a"])


def it_keeps_namespaces_apart(make: Make) -> None:
    """A request whose metadata names a namespace recalls only entries written in it.

    This check is not part of the contract: only a store for policies with a namespace has to pass it.
    """
    store = make()
    for name in ("red", "blue"):
        write(store, _entry(f"mem_kit_{name}", metadata={NAMESPACE: name}))
    write(store, _entry("mem_kit_none"))
    entries = _recall(store, metadata={NAMESPACE: "red"})
    _only("recall in a namespace returned entries outside it", entries, ["mem_kit_red"])


CHECKS: tuple[Callable[[Make], None], ...] = (
    it_has_the_three_operations,
    it_answers_with_results,
    it_keeps_what_is_written,
    it_replaces_by_id,
    it_honours_the_limit,
    it_keeps_agents_apart,
    it_keeps_sessions_apart,
    it_shares_what_is_of_no_session,
    it_lists_everything,
    it_finds_nothing_without_an_error,
    it_ignores_what_it_does_not_know,
)


def faults(make: Make, checks: Iterable[Callable[[Make], None]] = CHECKS) -> dict[str, str]:
    """Return the failures of the stores that *make* returns: name of a check -> failure; empty for a correct store.

    If an operation is missing, the other checks are skipped.
    """
    faults_of = {}
    for check in checks:
        try:
            check(make)
        except (ContractBroken, JidomemError, TypeError) as error:
            faults_of[check.__name__] = str(error)
            if check is it_has_the_three_operations:
                break
    return faults_of


def _entry(name: str, **more: Any) -> Entry:
    return Entry(**{"id": name, "agent_id": "kit", "content": _TEXT, **more})


def _with_sessions(make: Make) -> object:
    store = make()
    write(store, _entry("mem_kit_all"))
    for session in ("s", "t"):
        write(store, _entry(f"mem_kit_{session}", session_id=session))
    return store


def _recall(store: object, **more: Any) -> list[Entry]:
    result: RecallResult = recall(store, **{"agent_id": "kit", "query": _TEXT, "limit": 50, **more})
    return list(result.entries)


def _ids(entries: Iterable[Entry]) -> list[str]:
    return [one.id for one in entries]


def _only(fault: str, entries: Iterable[Entry], ids: list[str]) -> None:
    _same(fault, sorted(_ids(entries)), ids)


def _same(fault: str, given: object, wanted: object) -> None:
    if given != wanted:
        raise ContractBroken(f"{fault}: {given!r}, not {wanted!r}")
