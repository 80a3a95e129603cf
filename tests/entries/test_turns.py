"""A run of an agent: recall before the prompt, capture after the turn, and writing by hand."""

import copy

import pytest

from jidomem.entries import (
    Entry,
    InMemoryStore,
    InvalidEntry,
    MemoryOff,
    MissingContext,
    MissingSession,
    MissingStore,
    Prompt,
    RecallRequest,
    RecallResult,
    Run,
    Spec,
    StoreError,
    WriteRequest,
    list_entries,
    write,
)
from jidomem.errors import InvalidRequest

ASKED = ({"role": "system", "content": "Be kind."}, {"role": "user", "content": "Which zone?"})


@pytest.fixture
def store():
    return InMemoryStore()


def spec(**policy):
    return Spec("demo", policy)


def remembered(store, *contents, **more):
    for content in contents:
        write(store, Entry(agent_id="demo", content=content, **more))


def test_the_policy_becomes_a_request_to_recall():
    run = Run(spec(scope="session", namespace="team", max_entries=3, metadata={"model": "m"}), session_id="s")

    assert run.recall_request("zone") == RecallRequest(  # B059, B060, B061
        agent_id="demo",
        query="zone",
        session_id="s",
        scope="session",
        limit=3,
        metadata={"model": "m", "namespace": "team"},
    )
    assert Run(spec(), session_id="s").recall_request("zone") == RecallRequest("demo", "zone", "s")


def test_the_policy_becomes_a_request_to_write():
    run = Run(spec(scope="session", namespace="team", metadata={"model": "m"}), session_id="s")

    made = run.write_request("hello", {"mood": ["good"]})

    assert made == WriteRequest(  # B059, B061
        Entry(
            id=made.entry.id,
            agent_id="demo",
            session_id="s",
            content="hello",
            metadata={"mood": ["good"], "namespace": "team"},
        ),
        {"model": "m", "namespace": "team"},
    )
    assert made.entry.id.startswith("mem_")


def test_what_is_written_with_the_scope_of_the_agent_is_shared_by_its_sessions(store):
    Run(spec(), store, "s").remember("hello")

    assert list_entries(store)[0].session_id is None
    assert [one.content for one in Run(spec(), store, "t").recall("x").entries] == ["hello"]


def test_each_session_has_a_memory_of_its_own_with_the_scope_of_the_session(store):
    Run(spec(scope="session"), store, "s").remember("hello")

    assert [one.content for one in Run(spec(scope="session"), store, "s").recall("x").entries] == ["hello"]
    assert Run(spec(scope="session"), store, "t").recall("x").entries == []


def test_a_definition_stays_as_it_is_whatever_store_a_run_is_given(store):
    definition = spec(capture="conversation", metadata={"a": [1]})
    before = copy.deepcopy(definition)

    for given in (store, (InMemoryStore, {"pid": store}), InMemoryStore()):
        run = Run(definition, given)
        run.remember("hello")
        run.before(ASKED)
        run.after("hi", "hello", request_id="r")

    assert definition == before  # B058
    assert len(list_entries(store)) == 4


@pytest.mark.parametrize(
    "run",
    [
        Run(Spec("demo"), InMemoryStore()),
        Run(Spec("demo", False), InMemoryStore()),
        Run(Spec("demo", {"enabled": False, "scope": "session"}), InMemoryStore()),
        Run(Spec("demo", {"scope": "session", "namespace": {"context": "tenant"}})),
    ],
)
def test_recall_without_a_policy_or_a_store_or_when_off_is_nothing_and_no_error(run):
    assert run.recall("zone") is None  # B064
    assert run.before(ASKED, {"a": 1}) == Prompt(ASKED, {"a": 1})
    assert run.after("hi", "hello", request_id="r") is None


def test_writing_by_hand_without_a_store_is_refused():
    with pytest.raises(MissingStore, match=r"(?m)^the memory of 'demo' has no store to write to$") as no:
        Run(spec()).remember("hello")  # B065
    assert no.value.hint == "give the run a store: Run(spec, store)"
    assert isinstance(no.value, InvalidRequest)
    assert isinstance(no.value, ValueError)


def test_the_scope_of_the_session_without_a_session_is_refused(store):
    run = Run(spec(scope="session", capture="conversation"), store)

    for ask in (
        lambda: run.recall("zone"),
        lambda: run.remember("hello"),
        lambda: run.before(ASKED),
        lambda: run.after("hi", "hello", request_id="r"),
    ):
        with pytest.raises(
            MissingSession, match=r"(?m)^the memory of 'demo' has the scope session, and the run has none$"
        ) as no:
            ask()  # B023, B065
        assert no.value.hint == "give the run a session_id, or define the memory with scope agent"
        assert isinstance(no.value, ValueError)
    assert list_entries(store) == []


@pytest.mark.parametrize("policy", [None, False, {"enabled": False}, {"capture": "off"}])
def test_writing_by_hand_into_a_memory_that_is_off_is_refused(store, policy):
    with pytest.raises(MemoryOff, match=r"(?m)^the memory of 'demo' is off$") as no:
        Run(Spec("demo", policy), store).remember("hello")
    assert no.value.hint == 'define it with {"capture": "manual"}'
    assert isinstance(no.value, ValueError)
    assert list_entries(store) == []


def test_a_conversation_is_kept_as_one_entry_a_completed_turn(store):
    run = Run(spec(capture="conversation", namespace="team"), store, "s")

    first = run.after("Which zone?", "Chicago.", request_id="r-1", source="chat")
    run.after("Sure?", "Yes.", request_id="r-2")

    assert [one.content for one in list_entries(store)] == [  # B066
        "User: Which zone?\nAssistant: Chicago.",
        "User: Sure?\nAssistant: Yes.",
    ]
    said = {"class": "episodic", "kind": "conversation", "namespace": "team"}
    assert [one.metadata for one in list_entries(store)] == [
        {**said, "source": "chat", "request_id": "r-1"},
        {**said, "source": "agent", "request_id": "r-2"},
    ]
    assert first.entry == list_entries(store)[0]
    assert first.entry.agent_id == "demo"  # B061


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_a_turn_that_was_not_completed_is_not_kept(store, answer):
    assert Run(spec(capture="conversation"), store).after("hi", answer, request_id="r") is None  # B066
    assert list_entries(store) == []


@pytest.mark.parametrize(
    ("user", "assistant", "who"), [(None, "x", "user"), ("x", 7, "assistant"), ("x", [], "assistant")]
)
def test_a_turn_is_of_texts(store, user, assistant, who):
    kind = type(user if who == "user" else assistant).__name__
    with pytest.raises(
        InvalidEntry, match=f"(?m)^invalid memory entry: the text of {who} is a {kind}, not a text$"
    ) as no:
        Run(spec(capture="conversation"), store).after(user, assistant, request_id="r")
    assert no.value.hint == f"give {who} as text"
    assert list_entries(store) == []


@pytest.mark.parametrize("capture", ["manual", "off"])
def test_no_turn_is_kept_unless_the_policy_says_conversation(store, capture):
    assert Run(spec(capture=capture), store).after("hi", "hello", request_id="r") is None  # B062
    assert list_entries(store) == []


def test_what_is_recalled_becomes_one_message_of_the_system(store):
    remembered(store, "User prefers Chicago time", "Two\nlines\u2028and three")

    prompt = Run(spec(), store).before(ASKED, {"a": 1})

    said = "Relevant memory:\n- Two\n  lines\n  and three\n- User prefers Chicago time"
    assert prompt == Prompt((ASKED[0], {"role": "system", "content": said}, ASKED[1]), {"a": 1})  # B067


@pytest.mark.parametrize(
    ("roles", "place"), [(["user"], 0), (["system", "system", "user", "system"], 2), (["assistant", "user"], 0)]
)
def test_the_message_stands_after_those_the_system_opened_with(store, roles, place):
    remembered(store, "hello")

    prompt = Run(spec(), store).before([{"role": role, "content": "x"} for role in roles])

    assert prompt.messages[place] == {"role": "system", "content": "Relevant memory:\n- hello"}  # B067
    assert [message["role"] for message in prompt.messages] == [*roles[:place], "system", *roles[place:]]


def test_what_is_recalled_becomes_data_only_where_the_policy_says_so(store):
    remembered(store, "a", "b")

    prompt = Run(spec(inject="context", max_entries=1), store).before(ASKED, {"a": 1})

    assert prompt.messages == ASKED
    entries = [list_entries(store)[1].to_dict()]
    assert prompt.context == {"a": 1, "memory": {"entries": entries, "count": 1}}  # B067


@pytest.mark.parametrize("inject", ["instructions", "context"])
def test_nothing_is_added_where_nothing_is_found(store, inject):
    assert Run(spec(inject=inject), store).before(ASKED, {"a": 1}) == Prompt(ASKED, {"a": 1})  # B067


class Asked(InMemoryStore):
    """A store that notes which requests it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def recall(self, request, opts):
        self.asked.append(request)
        return super().recall(request, opts)


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        ([("user", "old"), ("assistant", "x"), ("user", "new"), ("tool", "y")], ["new"]),
        ([("user", "old"), ("user", " "), ("user", None), ("user", [{"type": "image"}])], ["old"]),
        ([("system", "x"), ("assistant", "y")], []),
        ([], []),
        ([("user", "half \ud800 sign")], ["half  sign"]),
        ([("user", "old"), ("user", "\ud800")], ["old"]),
        ([("user", " " * 70_000 + "late ")], ["late"]),
        ([("user", "ä" * 40_000)], ["ä" * 32_768]),
        ([("user", "x" + "ä" * 40_000)], ["x" + "ä" * 32_767]),
    ],
)
def test_the_newest_text_of_the_user_is_looked_for(messages, asked):
    store = Asked()

    Run(spec(), store).before([{"role": role, "content": content} for role, content in messages])

    assert [request.query for request in store.asked] == asked  # B059


def test_a_prompt_is_put_together_without_changing_what_was_given(store):
    remembered(store, "hello")
    messages, context = [dict(message) for message in ASKED], {"a": 1}

    prompt = Run(spec(inject="context"), store).before(messages, context)
    Run(spec(), store).before(messages, context)

    assert (tuple(messages), context) == (ASKED, {"a": 1})
    assert "memory" in prompt.context


def test_a_namespace_keeps_apart_what_one_agent_remembers(store):
    Run(spec(namespace="red"), store).remember("red")
    Run(spec(namespace={"context": "tenant"}), store, context={"tenant": "blue"}).remember("blue")
    Run(spec(), store).remember("none")

    def found(run):
        return [one.content for one in run.recall("x").entries]

    assert found(Run(spec(namespace="red"), store)) == ["red"]  # B068
    assert found(Run(spec(namespace={"context": "t"}), store, context={"t": "blue"})) == ["blue"]
    assert found(Run(spec(namespace="green"), store)) == []
    assert found(Run(spec(), store)) == ["none", "blue", "red"]


@pytest.mark.parametrize(
    ("context", "told"),
    [({}, "is missing"), ({"tenant": None}, "is missing"), ({"tenant": ""}, "is missing or empty"),
     ({"tenant": 7}, "is a int, not a text"), ({"tenants": "t"}, "is missing")],
)  # fmt: skip
def test_a_namespace_that_the_context_does_not_say_is_refused_and_nothing_is_written(store, context, told):
    run = Run(spec(namespace={"context": "tenant"}, capture="conversation"), store, context=context)

    for ask in (
        lambda: run.recall("zone"),
        lambda: run.remember("hello"),
        lambda: run.after("hi", "hello", request_id="r"),
    ):
        with pytest.raises(MissingContext) as no:
            ask()
        assert str(no.value) == f"the namespace of 'demo' is context['tenant'], which {told}"  # B068
        assert no.value.hint == "give the run context={'tenant': ...}"
        assert isinstance(no.value, ValueError)
    assert list_entries(store) == []


def test_an_entry_of_another_namespace_than_the_runs_is_refused(store):
    run = Run(spec(namespace="red"), store)

    with pytest.raises(
        InvalidEntry, match=r"(?m)^invalid memory entry: namespace='blue' is not that of this run, 'red'$"
    ):
        run.remember("hello", {"namespace": "blue"})
    assert list_entries(store) == []
    assert run.remember("hello", {"namespace": "red"}).entry.metadata == {"namespace": "red"}
    with pytest.raises(InvalidEntry, match=r"(?m)^invalid memory entry: metadata is a list, not a mapping$"):
        run.remember("hello", [])


class Mixing(InMemoryStore):
    """A store that knows nothing of namespaces."""

    def recall(self, request, opts):
        return RecallResult(request, self.list_entries(opts)[: request.limit])


def test_a_store_that_mixes_up_namespaces_is_found_out_before_anything_of_another_is_told():
    store = Mixing()
    Run(spec(namespace="red"), store).remember("red")
    assert [one.content for one in Run(spec(namespace="red"), store).recall("x").entries] == ["red"]

    with pytest.raises(
        StoreError, match=r"(?m)^the store returned 'mem_.*', which is not in the namespace 'blue'$"
    ) as no:
        Run(spec(namespace="blue"), store).before(ASKED)
    assert no.value.reason.entries == store.list_entries()
    assert no.value.hint == "filter in the store by request.covers(entry)"


def test_what_a_store_gives_is_not_cut_again():
    class Generous(InMemoryStore):
        def recall(self, request, opts):
            return RecallResult(request, self.list_entries(opts))

    store = Generous()
    remembered(store, *"abc")

    assert len(Run(spec(max_entries=1), store).recall("x").entries) == 3  # B043


def test_a_store_that_fails_is_told_and_no_prompt_is_made_of_it():
    class Down(InMemoryStore):
        def recall(self, request, opts):
            raise OSError("no connection")

    with pytest.raises(StoreError, match=r"(?m)^Down could not recall: OSError: no connection$"):
        Run(spec(), Down()).before(ASKED)
