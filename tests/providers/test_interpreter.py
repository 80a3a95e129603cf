"""The dispatch: a directive is performed by the provider it names, and a signal reports the outcome."""

import ast
from pathlib import Path
from threading import Barrier, Thread

import pytest

import jidomem
from jidomem.errors import InvalidRequest, PolicyDenied
from jidomem.providers import InlineProvider, Providers, execute_directive
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import (
    Answer,
    Done,
    MemoryDelete,
    MemoryQuery,
    MemoryUpsert,
    Missing,
    Provider,
    Scored,
    Searchable,
    StoredValue,
    forget,
    lookup,
    recall,
    remember,
)


class Counting:
    """A foreign provider: its state counts its calls."""

    def __init__(self):
        self.seen = []

    def init(self, opts):
        if "refuse" in opts:
            raise InvalidRequest("it cannot be opened like that")
        if opts:
            raise InvalidRequest(f"unknown: {', '.join(opts)}")
        return (0, {})

    def _next(self, state, opts, call):
        self.seen.append((call, state[0], dict(opts)))
        if "no_such_option" in opts:
            raise InvalidRequest("there is no no_such_option", hint="leave it out")
        return state[0] + 1, dict(state[1])

    def get(self, state, key, opts):
        calls, kept = self._next(state, opts, "get")
        return StoredValue((calls, kept), kept[key]) if key in kept else Missing((calls, kept))

    def put(self, state, key, value, opts):
        calls, kept = self._next(state, opts, "put")
        if value == "poison":
            raise ZeroDivisionError("it went wrong half way")
        kept[key] = dict(value) if isinstance(value, dict) else value
        return Done((calls, kept), {"call": calls})

    def delete(self, state, key, opts):
        calls, kept = self._next(state, opts, "delete")
        if key == "poison":
            raise ZeroDivisionError("it went wrong half way")
        return Done((calls, kept)) if kept.pop(key, self) is not self else Missing((calls, kept))


class Searching(Counting):
    """It returns rows in its own order, and more than requested."""

    def query(self, state, query, opts):
        calls, kept = self._next(state, opts, "query")
        if query["text"] == "fail":
            raise PolicyDenied("you may not look", hint="ask a curator")
        return Answer((calls, kept), [Scored("low", 0.1, 1), Scored("high", 0.9, 2), Scored("high too", 0.9, 3)])


class TestTheProviderOfSomebodyElse(ProviderContract):
    def opened(self):
        return Counting(), {}

    def test_a_stored_value_is_a_copy(self):
        """It hands out what it holds."""


def registering(provider, **opts):
    providers = Providers()
    providers.register("mine", provider, opts)
    return providers


def clock_of(*moments):
    ticks = iter(moments)
    return lambda: next(ticks)


def test_a_provider_has_four_methods_and_an_optional_query():  # A104 A112
    assert isinstance(Counting(), Provider)
    assert not isinstance(Counting(), Searchable)
    assert isinstance(Searching(), Searchable)

    providers = registering(Searching())

    assert providers.names == ("inline", "mine")
    assert execute_directive(recall("anything", provider="mine", opts={"x": 1}), providers).ok
    with providers.locked("mine") as held:
        assert held.provider.seen == [("query", 0, {"x": 1})]


class RecordingProvider:
    """A provider that records the arguments of each call."""

    def __init__(self):
        self.given = []

    def init(self, opts):
        self.given.append(("init", dict(opts)))
        return "opened"

    def get(self, state, key, opts):
        self.given.append(("get", state, key, dict(opts)))
        return StoredValue(state, 1)

    def put(self, state, key, value, opts):
        self.given.append(("put", state, key, value, dict(opts)))
        return Done(state, {})

    def delete(self, state, key, opts):
        self.given.append(("delete", state, key, dict(opts)))
        return Done(state)

    def query(self, state, query, opts):
        self.given.append(("query", state, query["text"], dict(opts)))
        return Answer(state, [])


def test_a_provider_receives_directive_options_in_calls_and_its_own_in_init():  # A104
    provider, vector = RecordingProvider(), [1.0, 0.5]
    providers = registering(provider, tenant="t-1")
    directives = [
        lookup("a", provider="mine", opts={"depth": 1}),
        remember("a", 2, provider="mine", opts={"ttl": 3}),
        remember("a", 2, embedding=vector, provider="mine", opts={"ttl": 3}),
        forget("a", "b", provider="mine", opts={"reason": "old"}),
        recall("what?", provider="mine", opts={"depth": 4}),
        lookup("a", provider="mine"),
    ]

    assert all(execute_directive(each, providers).ok for each in directives)

    assert provider.given == [
        ("init", {"tenant": "t-1"}),
        ("get", "opened", "a", {"depth": 1}),
        ("put", "opened", "a", 2, {"ttl": 3}),
        ("put", "opened", "a", 2, {"ttl": 3, "embedding": tuple(vector)}),
        ("delete", "opened", "a", {"reason": "old"}),
        ("delete", "opened", "b", {"reason": "old"}),
        ("query", "opened", "what?", {"depth": 4}),
        ("get", "opened", "a", {}),
    ]


def test_a_provider_whose_init_fails_is_not_registered():  # A105
    providers = Providers()

    with pytest.raises(InvalidRequest, match="it cannot be opened like that"):
        providers.register("mine", Counting(), {"refuse": True})

    assert providers.names == ("inline",)
    providers.register("mine", Counting())
    assert providers.names == ("inline", "mine")


def test_a_provider_without_a_method_a_class_or_an_empty_name_is_refused():  # A104
    class Half:
        def init(self, opts): ...

        def get(self, state, key, opts): ...

    with pytest.raises(InvalidRequest, match="the provider 'half' lacks put, delete"):
        Providers().register("half", Half())
    with pytest.raises(InvalidRequest, match="is a class"):
        Providers().register("class", InlineProvider)
    with pytest.raises(InvalidRequest, match="'' is not a name"):
        Providers().register("", InlineProvider())


def test_each_call_receives_the_state_of_the_previous_call():  # A106
    provider = Counting()
    providers = registering(provider)

    execute_directive(MemoryUpsert(items=[{"key": k, "value": k} for k in "abc"], provider="mine"), providers)
    execute_directive(lookup("absent", provider="mine"), providers)
    execute_directive(forget("a", "absent", provider="mine"), providers)

    assert [at for _, at, _ in provider.seen] == [0, 1, 2, 3, 4, 5]


def test_a_failed_call_does_not_change_the_state():  # A106 A125
    provider = Counting()
    providers = registering(provider)
    items = [{"key": "a", "value": 1}, {"key": "b", "value": "poison"}, {"key": "c", "value": 3}]

    failed = execute_directive(MemoryUpsert(items=items, provider="mine"), providers)
    stored = execute_directive(lookup("a", provider="mine"), providers)
    missing = execute_directive(lookup("c", provider="mine"), providers)

    assert failed.data["status"] == "error"
    assert failed.data["result"] == {"count": 1, "items": [{"key": "a", "call": 1}]}
    assert failed.data["reason"]["code"] == "provider_failed"
    assert failed.data["reason"]["detail"] == "the provider 'mine' failed: ZeroDivisionError: it went wrong half way"
    assert [row["value"] for row in stored.data["result"]] == [1]
    assert missing.data["result"] == []
    assert [at for _, at, _ in provider.seen] == [0, 1, 1, 2]


def test_a_partly_failed_delete_reports_deleted_and_missing_keys():  # A125
    providers = registering(Counting())
    execute_directive(MemoryUpsert(items=[{"key": k, "value": k} for k in "ab"], provider="mine"), providers)

    failed = execute_directive(forget("a", "absent", "poison", "b", provider="mine"), providers)

    assert failed.data["result"] == {"count": 1, "items": [{"key": "a"}], "missing": ["absent"]}
    assert failed.data["reason"]["code"] == "provider_failed"
    assert execute_directive(lookup("b", provider="mine"), providers).data["result"][0]["value"] == "b"


def test_the_signal_of_an_invalid_directive_has_no_request_and_no_provider():
    signal = execute_directive("remember this", Providers())

    assert (signal.data["request_id"], signal.data["result"]) == (None, None)
    assert (signal.data["meta"]["provider"], signal.data["meta"]["directive"]) == (None, "str")


@pytest.mark.parametrize("outcome", [StoredValue(1, 2), Missing(1), Done(1), Scored("a", 1.0, 2), Answer(1, ())])
def test_an_outcome_is_immutable(outcome):
    with pytest.raises(AttributeError):
        setattr(outcome, type(outcome).__slots__[0], 7)


def test_a_lookup_of_a_key_accepts_a_limit():
    providers = Providers()
    execute_directive(remember("a", 1), providers)

    signal = execute_directive(MemoryQuery(query={"key": "a", "top_k": 3}), providers)

    assert signal.data["result"] == [{"key": "a", "score": 1.0, "value": 1}]


def test_a_provider_without_queries_reports_them_as_unsupported():  # A107
    signal = execute_directive(recall("anything"), Providers())

    assert signal.data["status"] == "error"
    assert signal.data["reason"]["code"] == "unsupported"
    assert "'inline' answers no queries" in signal.data["reason"]["detail"]


def test_a_stored_none_is_found_and_a_missing_key_is_not():  # A108
    providers = Providers()
    execute_directive(remember("nothing", None), providers)

    assert execute_directive(lookup("nothing"), providers).data["result"] == [
        {"key": "nothing", "score": 1.0, "value": None}
    ]
    assert execute_directive(lookup("absent"), providers).data["result"] == []


def test_a_directive_without_a_provider_is_performed_by_inline():  # A109
    providers = Providers()

    signal = execute_directive(remember("a", {1, 2}), providers)

    assert signal.data["meta"]["provider"] == "inline"
    with providers.locked("inline") as held:
        assert held.state == {"a": {1, 2}}


@pytest.mark.parametrize("top", [1, 2, 3])
def test_query_results_have_key_score_and_value_ordered_by_score_up_to_top_k(top):  # A123
    signal = execute_directive(recall("anything", top_k=top, provider="mine"), registering(Searching()))

    assert (
        signal.data["result"]
        == [
            {"key": "high", "score": 0.9, "value": 2},
            {"key": "high too", "score": 0.9, "value": 3},
            {"key": "low", "score": 0.1, "value": 1},
        ][:top]
    )


def test_a_signal_has_request_status_result_provider_and_latency():  # A121 A122 A124
    signal = execute_directive(
        recall("anything", request_id="req_7", provider="mine"),
        registering(Searching()),
        monotonic=clock_of(5.0, 5.0125),
    )

    assert signal.type == "jido.memory.result"
    assert signal.data.keys() == {"request_id", "status", "result", "meta"}
    assert (signal.data["request_id"], signal.data["status"]) == ("req_7", "ok")
    assert signal.data["meta"] == {"provider": "mine", "latency_ms": 12.5, "directive": "MemoryQuery"}


def test_the_signal_of_a_query_has_the_requested_reply_type():  # A116
    providers = Providers()
    memory_query = MemoryQuery(query={"key": "a"}, reply_signal_type="planner.recalled")
    failing = MemoryQuery(query={"text": "a"}, reply_signal_type="planner.recalled")

    assert [execute_directive(each, providers).type for each in (memory_query, failing)] == ["planner.recalled"] * 2


def test_the_signals_of_upsert_and_delete_count_their_items():  # A126 A119
    providers = Providers()
    items = [{"key": "a", "value": 1}, {"key": "b", "value": 2}]

    stored = execute_directive(MemoryUpsert(request_id="req_1", items=items), providers)
    deleted = execute_directive(MemoryDelete(request_id="req_2", keys=["a", "absent", "b"]), providers)

    assert (stored.type, stored.data["request_id"], stored.data["result"]) == (
        "jido.memory.result",
        "req_1",
        {"count": 2, "items": [{"key": "a"}, {"key": "b"}]},
    )
    assert (deleted.type, deleted.data["request_id"], deleted.data["result"]) == (
        "jido.memory.result",
        "req_2",
        {"count": 2, "items": [{"key": "a"}, {"key": "b"}], "missing": ["absent"]},
    )


class Broken(InlineProvider):
    def get(self, state, key, opts):
        return state[key]

    def put(self, state, key, value, opts):
        return None


@pytest.mark.parametrize(
    ("directive", "code", "message"),
    [
        (recall("a", provider="nowhere"), "not_found", "no provider 'nowhere'"),
        (recall("fail", provider="searching"), "policy_denied", "you may not look"),
        (recall("a", provider="searching", opts={"no_such_option": 1}), "invalid_argument", "no_such_option"),
        (remember("a", 1, provider="broken"), "provider_failed", "answered put with NoneType, not Done"),
        (lookup("a", provider="broken"), "provider_failed", "KeyError: 'a'"),
        (MemoryQuery(query={"key": "a", "text": "b"}), "invalid_argument", "a query for a key has no 'text'"),
        (remember("a", 1, embedding=[1.0]), "invalid_argument", "inline put has no 'embedding'"),
        ("remember this", "invalid_argument", "str is not a directive"),
        (None, "invalid_argument", "NoneType is not a directive"),
    ],
)
def test_a_failure_is_an_error_signal_with_its_reason(directive, code, message):  # A125
    providers = Providers()
    providers.register("searching", Searching())
    providers.register("broken", Broken())

    signal = execute_directive(directive, providers)

    assert (signal.type, signal.data["status"]) == ("jido.memory.result", "error")
    assert signal.data["reason"]["code"] == code
    assert message in signal.data["reason"]["detail"]
    assert signal.data["reason"]["hint"]


def test_an_unknown_provider_is_refused_with_the_nearest_name():
    reason = execute_directive(lookup("a", provider="inlin"), Providers()).data["reason"]

    assert reason["hint"] == "did you mean 'inline'?"


def test_a_repeated_registration_replaces_the_provider():
    providers = registering(Counting())
    execute_directive(remember("a", 1, provider="mine"), providers)

    providers.register("mine", InlineProvider(), {"data": {"a": 2}})

    assert execute_directive(lookup("a", provider="mine"), providers).data["result"][0]["value"] == 2


def test_concurrent_directives_are_all_performed():
    providers, start = Providers(), Barrier(4)

    def store(name):
        start.wait()
        for n in range(100):
            execute_directive(remember(f"{name}-{n}", n), providers)

    threads = [Thread(target=store, args=(name,)) for name in "abcd"]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    with providers.locked("inline") as held:
        assert len(held.state) == 400


def imported_modules(*paths):
    """Each jidomem module that the modules import, directly or indirectly."""
    package, modules, pending = Path(jidomem.__file__).parent, set(), [*paths]
    while pending:
        for node in ast.walk(ast.parse(pending.pop().read_text("utf-8"))):
            names = [alias.name for alias in getattr(node, "names", ())] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                below = package.joinpath(*name.split(".")[1:])
                file = below.with_suffix(".py") if below.with_suffix(".py").is_file() else below / "__init__.py"
                if name.startswith("jidomem.") and file.is_file() and name not in modules:
                    modules.add(name)
                    pending.append(file)
    return modules


@pytest.mark.parametrize("folder", ["working"])
def test_working_memory_imports_no_provider(folder):  # A113
    modules = sorted((Path(jidomem.__file__).parent / folder).glob("*.py"))

    reached = imported_modules(*modules)

    assert f"jidomem.{folder}" in {f"jidomem.{path.parent.name}" for path in modules}
    assert "jidomem.records.directive" in reached
    assert {name for name in reached if name.startswith("jidomem.providers")} == set()


def test_directives_import_no_provider():  # A113 A114
    package = Path(jidomem.__file__).parent

    reached = imported_modules(package / "records" / "directive.py")
    assert not any(name.startswith("jidomem.providers") for name in reached)
    assert "jidomem.providers.dispatch" in imported_modules(package / "providers" / "conformance.py")
