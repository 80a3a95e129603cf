"""The memory policy in the definition of an agent."""

import json
from dataclasses import FrozenInstanceError, fields

import pytest

from jidomem.entries import FromContext, InvalidPolicy, MemoryPolicy, Spec
from jidomem.errors import InvalidRequest


def test_a_policy_has_these_fields_and_defaults():
    policy = MemoryPolicy()

    assert {field.name: getattr(policy, field.name) for field in fields(MemoryPolicy)} == {  # B062
        "enabled": True,
        "scope": "agent",
        "namespace": None,
        "capture": "manual",
        "inject": "instructions",
        "max_entries": 5,
        "metadata": {},
    }


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("enabled", [True, False]),
        ("scope", ["agent", "session"]),
        ("namespace", [None, "team", FromContext("tenant")]),
        ("capture", ["manual", "conversation", "off"]),
        ("inject", ["instructions", "context"]),
        ("max_entries", [1, 1_000]),
        ("metadata", [{}, {"model": "m", "deep": [1]}]),
    ],
)
def test_a_policy_accepts_these_values(name, values):
    assert [getattr(MemoryPolicy(**{name: value}), name) for value in values] == values  # B062


@pytest.mark.parametrize(
    ("fields_", "message", "hint"),
    [
        ({"enabled": "yes"}, "enabled='yes' is not a boolean", "give enabled=True or enabled=False"),
        ({"enabled": 1}, "enabled=1 is not a boolean", "give enabled=True or enabled=False"),
        ({"scope": "all"}, "scope='all' is unknown", "use one of: agent, session"),
        ({"capture": None}, "capture=None is unknown", "use one of: manual, conversation, off"),
        ({"inject": ["context"]}, "inject=['context'] is unknown", "use one of: instructions, context"),
        ({"max_entries": 0}, "max_entries=0 is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": 1_001}, "max_entries=1001 is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": True}, "max_entries=True is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": 2.0}, "max_entries=2.0 is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": "many"}, "max_entries='many' is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": "0"}, "max_entries='0' is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": "٣"}, "max_entries='٣' is not from 1 to 1,000", "give max_entries=5"),
        ({"max_entries": "-1"}, "max_entries='-1' is not from 1 to 1,000", "give max_entries=5"),
        ({"namespace": ""}, "namespace is missing or empty", "give a text, or leave it out"),
        ({"namespace": 7}, "namespace=7 is not a namespace", 'give a text, or {"context": KEY}'),
        ({"namespace": {"key": "t"}}, "namespace={'key': 't'} is not a namespace", 'give a text, or {"context": KEY}'),
        (
            {"namespace": {"context": ""}},
            "the key of a namespace is missing or empty",
            'give namespace={"context": "tenant"}',
        ),
        ({"metadata": None}, "metadata is None, not a mapping", "give metadata={...}, or leave it out"),
        ({"metadata": {"namespace": "t"}}, "metadata contains a namespace", "give namespace='t' beside it"),
        ({"max_entires": 3}, "there is no 'max_entires'", "did you mean 'max_entries'?"),
        ({"store": object}, "there is no 'store'", None),
    ],
)
def test_an_invalid_policy_is_refused_with_a_hint(fields_, message, hint):
    with pytest.raises(InvalidPolicy) as refused:
        MemoryPolicy.from_input(fields_)
    assert str(refused.value) == f"invalid memory policy: {message}"
    assert refused.value.hint == hint or hint is None
    assert isinstance(refused.value, ValueError)
    assert isinstance(refused.value, InvalidRequest)


def test_true_gives_the_defaults_and_false_or_none_no_policy():
    assert MemoryPolicy.from_input(True) == MemoryPolicy.from_input({}) == MemoryPolicy()  # B063
    assert MemoryPolicy.from_input(False) is MemoryPolicy.from_input(None) is None
    policy = MemoryPolicy(enabled=False)
    assert MemoryPolicy.from_input(policy) is policy


def test_a_mapping_is_parsed_and_digits_are_a_number():
    fields_ = {"scope": "session", "namespace": {"context": "tenant"}, "max_entries": "12", "metadata": {"model": "m"}}

    policy = MemoryPolicy.from_input(fields_)

    assert policy == MemoryPolicy(  # B063
        scope="session", namespace=FromContext("tenant"), max_entries=12, metadata={"model": "m"}
    )
    assert type(policy.max_entries) is int


@pytest.mark.parametrize("given", [7, "agent", [], ("scope", "agent"), 1, 0])
def test_other_values_are_refused(given):
    with pytest.raises(InvalidPolicy, match=r"(?m)^invalid memory policy: a \w+ is not a mapping$"):
        MemoryPolicy.from_input(given)  # B063


@pytest.mark.parametrize("namespace", [None, "team", FromContext("tenant")])
def test_a_policy_is_immutable_and_unchanged_by_json(namespace):
    policy = MemoryPolicy(namespace=namespace, inject="context", metadata={"deep": [1]})

    assert MemoryPolicy.from_input(json.loads(json.dumps(policy.to_dict()))) == policy  # B058
    policy.to_dict()["metadata"]["deep"].append(2)
    assert policy.metadata == {"deep": [1]}
    with pytest.raises(FrozenInstanceError):
        policy.enabled = False


def test_an_agent_definition_has_a_policy_and_no_store():
    assert [field.name for field in fields(Spec)] == ["id", "memory"]  # B058
    assert Spec("demo").memory is Spec("demo", False).memory is None
    assert Spec("demo", True).memory == MemoryPolicy()
    assert Spec("demo", {"scope": "session"}).memory == MemoryPolicy(scope="session")
    for bad in ("", None, 7):
        with pytest.raises(InvalidPolicy, match=r"^invalid memory policy: the id of the agent is ") as refused:
            Spec(bad)
        assert refused.value.hint == "give id as text"
    assert {Spec("demo", {"metadata": {"a": []}}), Spec("demo", {"metadata": {"a": []}})} == {
        Spec("demo", {"metadata": {"a": []}})
    }
