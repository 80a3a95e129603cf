"""The contract of providers as tests for any provider.

    class TestMyProvider(ProviderContract):
        def opened(self):
            return MyProvider(), {"address": "..."}

pytest collects them from the subclass; the module itself does not need pytest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from types import MappingProxyType
from typing import Any

from jidomem.errors import JidomemError
from jidomem.providers.dispatch import Providers, execute_directive
from jidomem.records.directive import (
    Answer,
    Done,
    MemoryQuery,
    MemoryUpsert,
    Missing,
    Opts,
    Provider,
    Scored,
    Searchable,
    State,
    StoredValue,
    forget,
    lookup,
)

#: Keys with characters that a provider may misinterpret.
STRANGE_KEYS = ("rag:cache", 'a "quoted" key', "a\nb\\c", "Grüße", "%", "a/b?c=d#e", "'; DROP TABLE x; --")


class ProviderContract(ABC):
    """The contract tests of a provider; a subclass opens it and names its values."""

    #: Two different values that the provider accepts.
    values: tuple[Any, Any] = ({"text": "the first", "n": [1, 2.5, None]}, {"text": "the second", "n": []})
    #: The options of every put, such as an embedding if each value must have one.
    put_opts: Opts = MappingProxyType({})
    #: A query that matches `values`, if the provider searches.
    search: Mapping[str, Any] | None = None

    @abstractmethod
    def opened(self) -> tuple[Provider, Opts]:
        """Return an empty provider, and the options to open it with."""

    def same(self, given: Any, got: Any) -> bool:
        """Return whether *got* equals *given*; override it for a provider that adds to values."""
        return bool(given == got) and type(given) is type(got)

    def fresh(self) -> tuple[Provider, State]:
        """Return the provider and its initial state."""
        provider, opts = self.opened()
        return provider, provider.init(opts)

    def put(self, provider: Provider, state: State, key: str, value: Any) -> State:
        """Return the state after storing *value* under *key*."""
        done = provider.put(state, key, value, self.put_opts)
        assert isinstance(done, Done)
        assert isinstance(done.details, Mapping)
        return done.state

    def existing_value(self, provider: Provider, state: State, key: str) -> Any:
        """Return the value under *key*, which must exist."""
        stored = provider.get(state, key, {})
        assert isinstance(stored, StoredValue), f"nothing is held under {key!r}"
        return stored.value

    def test_it_has_the_calls_of_the_contract(self) -> None:
        provider, _ = self.opened()
        assert isinstance(provider, Provider)

    def test_a_key_nobody_put_is_missing(self) -> None:
        provider, state = self.fresh()
        missing = provider.get(state, "absent", {})
        assert isinstance(missing, Missing)
        assert isinstance(provider.get(missing.state, "absent", {}), Missing)

    def test_what_is_put_is_got(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        state = self.put(provider, state, "b", self.values[1])
        assert self.same(self.values[0], self.existing_value(provider, state, "a"))
        assert self.same(self.values[1], self.existing_value(provider, state, "b"))

    def test_a_put_takes_the_place_of_the_last(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        state = self.put(provider, state, "a", self.values[1])
        assert self.same(self.values[1], self.existing_value(provider, state, "a"))
        assert not self.same(self.values[0], self.existing_value(provider, state, "a"))

    def test_putting_the_same_twice_changes_nothing(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        state = self.put(provider, state, "a", self.values[0])
        assert self.same(self.values[0], self.existing_value(provider, state, "a"))
        deleted = provider.delete(state, "a", {})
        assert isinstance(deleted, Done)
        assert isinstance(provider.get(deleted.state, "a", {}), Missing)

    def test_none_is_a_value_or_refused_and_never_missing(self) -> None:
        provider, state = self.fresh()
        try:
            state = self.put(provider, state, "nothing", None)
        except JidomemError:
            assert isinstance(provider.get(state, "nothing", {}), Missing)
        else:
            assert self.existing_value(provider, state, "nothing") is None

    def test_what_is_deleted_is_missing_and_the_rest_is_there(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        state = self.put(provider, state, "b", self.values[1])
        deleted = provider.delete(state, "a", {})
        assert isinstance(deleted, Done)
        assert isinstance(provider.get(deleted.state, "a", {}), Missing)
        assert self.same(self.values[1], self.existing_value(provider, deleted.state, "b"))

    def test_deleting_what_is_not_there_says_so(self) -> None:
        provider, state = self.fresh()
        outcome = provider.delete(state, "absent", {})
        assert isinstance(outcome, Missing)
        state = self.put(provider, outcome.state, "a", self.values[0])
        outcome = provider.delete(state, "a", {})
        assert isinstance(provider.delete(outcome.state, "a", {}), Missing)

    def test_what_was_deleted_may_be_put_again(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        state = provider.delete(state, "a", {}).state
        state = self.put(provider, state, "a", self.values[1])
        assert self.same(self.values[1], self.existing_value(provider, state, "a"))

    def test_a_key_is_taken_as_it_is(self) -> None:
        provider, state = self.fresh()
        for key in STRANGE_KEYS:
            state = self.put(provider, state, key, self.values[0])
            assert self.same(self.values[0], self.existing_value(provider, state, key)), key
            assert isinstance(provider.get(state, key + "x", {}), Missing), key
            state = provider.delete(state, key, {}).state
            assert isinstance(provider.get(state, key, {}), Missing), key

    def test_a_key_with_blanks_around_it_is_refused_or_is_another_key(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        with suppress(JidomemError):
            state = self.put(provider, state, " a ", self.values[1])
            assert self.same(self.values[1], self.existing_value(provider, state, " a "))
        assert self.same(self.values[0], self.existing_value(provider, state, "a"))

    def test_an_option_nobody_knows_is_refused_and_changes_nothing(self) -> None:
        provider, state = self.fresh()
        state = self.put(provider, state, "a", self.values[0])
        calls: Sequence[Callable[[Opts], object]] = (
            lambda opts: provider.get(state, "a", opts),
            lambda opts: provider.put(state, "a", self.values[1], {**self.put_opts, **opts}),
            lambda opts: provider.delete(state, "a", opts),
            lambda opts: provider.init({**self.opened()[1], **opts}),
        )
        for call in calls:
            assert "no_such_option" in _refusal(call, {"no_such_option": 1})
            assert self.same(self.values[0], self.existing_value(provider, state, "a"))

    def test_a_stored_value_is_a_copy(self) -> None:
        provider, state = self.fresh()
        if isinstance(self.values[0], dict):
            given = deepcopy(self.values[0])
            state = self.put(provider, state, "a", given)
            given["added"] = 1
            with suppress(TypeError):  # the returned value may be immutable
                self.existing_value(provider, state, "a")["added"] = 1
            assert "added" not in self.existing_value(provider, state, "a")

    def test_a_query_gives_at_most_the_limit_the_best_first(self) -> None:
        provider, state = self.fresh()
        if self.search is None:
            assert not isinstance(provider, Searchable), "say in `search` what finds `values`"
            return
        assert isinstance(provider, Searchable)
        for key, value in zip("ab", self.values, strict=True):
            state = self.put(provider, state, key, value)
        answer = provider.query(state, self.search, {})
        assert isinstance(answer, Answer)
        assert all(isinstance(row, Scored) for row in answer.rows)
        scores = [row.score for row in answer.rows]
        assert {row.key for row in answer.rows} == {"a", "b"}
        assert scores == sorted(scores, reverse=True)
        assert [row.key for row in provider.query(state, {**self.search, "top_k": 1}, {}).rows] == [answer.rows[0].key]

    def test_directives_reach_it_and_signals_answer(self) -> None:
        provider, opts = self.opened()
        providers = Providers()
        providers.register("mine", provider, opts)
        item = {"key": "a", "value": self.values[0]} | dict(self.put_opts)

        upserted = execute_directive(MemoryUpsert(items=[item], provider="mine"), providers)
        answer = execute_directive(lookup("a", provider="mine"), providers)
        deleted = execute_directive(forget("a", "absent", provider="mine"), providers)
        after = execute_directive(MemoryQuery(query={"key": "a"}, provider="mine"), providers)

        assert upserted.ok, upserted
        assert upserted.data["result"]["count"] == 1
        (row,) = answer.data["result"]
        assert row["key"] == "a"
        assert self.same(self.values[0], row["value"])
        assert deleted.ok
        assert (deleted.data["result"]["count"], deleted.data["result"]["missing"]) == (1, ["absent"])
        assert after.ok
        assert after.data["result"] == []


def _refusal(call: Callable[[Opts], object], opts: Opts) -> str:
    try:
        call(opts)
    except JidomemError as refusal:
        return f"{refusal.detail} {refusal.hint}"
    raise AssertionError(f"{opts} was not refused")
