"""Key-value providers: in memory for the threads of a process, and in the working state of a root."""

import math
import os
import subprocess
import sys
from datetime import date
from enum import IntEnum
from threading import Barrier, Thread

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.errors import InvalidRequest
from jidomem.providers import KeyValueProvider, PersistentProvider, Providers, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.providers.stores import TABLES
from jidomem.records.directive import Missing, StoredValue, forget, lookup, remember
from jidomem.runtime.state import State


class TestKeyValue(ProviderContract):
    def opened(self):
        return KeyValueProvider(), {}


class TestPersistent(ProviderContract):
    @pytest.fixture(autouse=True)
    def _root(self, opened_state):
        self.state = opened_state(TABLES)

    def opened(self):
        return PersistentProvider(), {"state": self.state, "namespace": "architect"}


@pytest.fixture
def open_namespace(tmp_path):
    """Return a function that opens the provider on one file, each time with a new connection."""
    opened = []

    def provider(namespace="architect"):
        state = State(tmp_path, TABLES)
        opened.append(state)
        return PersistentProvider().init({"state": state, "namespace": namespace})

    yield provider
    for state in opened:
        state.close()


def test_concurrent_puts_and_deletes_of_one_table_are_all_performed():  # A110
    provider, start = KeyValueProvider(), Barrier(8)
    table = provider.init({})

    def work(name):
        start.wait()
        for n in range(200):
            provider.put(table, f"{name}-{n}", n, {})
            provider.put(table, "shared", name, {})
            if n % 2:
                provider.delete(table, f"{name}-{n}", {})

    threads = [Thread(target=work, args=(name,)) for name in "abcdefgh"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    assert sorted(table.values) == sorted(["shared", *(f"{name}-{n}" for name in "abcdefgh" for n in range(0, 200, 2))])
    assert isinstance(provider.get(table, "a-1", {}), Missing)


def test_the_key_value_provider_shares_no_data_and_writes_no_file(tmp_path, monkeypatch):  # A110
    monkeypatch.chdir(tmp_path)
    provider = KeyValueProvider()
    first = provider.init({})
    provider.put(first, "a", {1, 2}, {})

    assert provider.get(first, "a", {}) == StoredValue(first, {1, 2})
    assert isinstance(provider.get(provider.init({}), "a", {}), Missing)
    assert os.listdir(tmp_path) == []


def test_a_persistent_value_survives_a_killed_process(tmp_path):
    program = """
import sys
from pathlib import Path
from jidomem.providers import PersistentProvider
from jidomem.providers.stores import TABLES
from jidomem.runtime.state import State
provider = PersistentProvider()
state = provider.init({"state": State(Path(sys.argv[1]), TABLES), "namespace": "architect"})
provider.put(state, "plan", {"steps": ["test", None]}, {})
import os
os._exit(9)  # as if it was killed
"""
    result = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    state = State(tmp_path, TABLES)

    opened = PersistentProvider().init({"state": state, "namespace": "architect"})

    assert result.returncode == 9
    assert PersistentProvider().get(opened, "plan", {}) == StoredValue(opened, {"steps": ["test", None]})
    state.close()


def test_get_and_delete_of_an_empty_root_create_no_file(open_namespace, tmp_path):
    assert isinstance(PersistentProvider().get(open_namespace(), "a", {}), Missing)
    assert isinstance(PersistentProvider().delete(open_namespace(), "a", {}), Missing)
    assert os.listdir(tmp_path) == []


def test_namespaces_separate_equal_keys(open_namespace):
    provider, architect, planner = PersistentProvider(), open_namespace("architect"), open_namespace("planner")
    provider.put(architect, "goal", 1, {})
    provider.put(planner, "goal", 2, {})

    provider.delete(planner, "goal", {})

    assert provider.get(architect, "goal", {}) == StoredValue(architect, 1)
    assert isinstance(provider.get(planner, "goal", {}), Missing)


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"goals": {1, 2}}, "value['goals'] is a set"),
        ([1, (2, 3)], "value[1] is a tuple"),
        ({"at": date(2026, 11, 21)}, "value['at'] is a date"),
        ({"score": math.nan}, "value['score'] is nan"),
        ([math.inf], "value[0] is inf"),
        ({1: "a"}, "value has the key 1"),
        ({"level": Level.LOW}, "value['level'] is a Level"),
        ("\ud800", "half a surrogate pair"),
        (b"bytes", "value is a bytes"),
        pytest.param(10**5000, "value is a number with thousands of digits", id="more digits than are read"),
    ],
)
def test_a_value_without_a_json_form_is_refused_with_its_place(open_namespace, value, message):
    state = open_namespace()
    PersistentProvider().put(state, "a", "before", {})

    with pytest.raises(InvalidRequest) as refusal:
        PersistentProvider().put(state, "a", value, {})

    assert message in refusal.value.detail
    assert PersistentProvider().get(state, "a", {}) == StoredValue(state, "before")


def test_an_endlessly_nested_value_is_refused(open_namespace):
    endless = []
    endless.append(endless)

    with pytest.raises(InvalidRequest, match="value is nested too deep"):
        PersistentProvider().put(open_namespace(), "a", endless, {})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    state = State(tmp_path_factory.mktemp("root"), TABLES)
    yield PersistentProvider().init({"state": state, "namespace": "hypothesis"})
    state.close()


@settings(max_examples=40)
@given(key=st.text(min_size=1), value=JSON)
def test_any_json_value_is_returned_unchanged(opened, key, value):
    PersistentProvider().put(opened, key, value, {})
    stored = PersistentProvider().get(opened, key, {})

    assert (stored.value, repr(stored.value)) == (value, repr(value))


@pytest.mark.parametrize(
    ("opts", "message"),
    [
        ({}, "a kept provider needs a state and a namespace"),
        ({"state": State}, "a kept provider needs a state and a namespace"),
        ({"state": State, "namespace": 7}, "a kept provider needs a state and a namespace"),
        ({"state": State, "namespace": "a", "names": 1}, "the kept key-value provider has no 'names'"),
    ],
)
def test_invalid_options_of_the_persistent_provider_are_refused(opts, message):
    with pytest.raises(InvalidRequest, match=message) as refusal:
        PersistentProvider().init(opts)

    assert refusal.value.hint


def test_a_foreign_database_file_is_an_error_signal(tmp_path):  # A125
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "working.sqlite").write_text("no database, and long enough to be told from an empty one")
    providers = Providers()
    providers.register("kept", PersistentProvider(), {"state": State(tmp_path, TABLES), "namespace": "architect"})

    signals = [execute_directive(each, providers) for each in (remember("a", 1, provider="kept"),
               lookup("a", provider="kept"), forget("a", provider="kept"))]  # fmt: skip

    assert [signal.data["reason"]["code"] for signal in signals] == ["invalid_config"] * 3
