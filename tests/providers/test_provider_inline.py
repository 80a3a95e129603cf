"""The inline provider: its state is a plain mapping."""

import pytest

from jidomem.errors import InvalidRequest
from jidomem.providers import InlineProvider
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import StoredValue


class TestInline(ProviderContract):
    def opened(self):
        return InlineProvider(), {}


def test_a_call_does_not_change_the_state_it_receives():  # A109
    provider = InlineProvider()
    first = provider.init({"data": {"kept": [1]}})

    second = provider.put(first, "new", {1, 2}, {}).state
    third = provider.delete(second, "kept", {}).state

    assert (first, second, third) == ({"kept": [1]}, {"kept": [1], "new": {1, 2}}, {"new": {1, 2}})
    assert provider.get(second, "new", {}) == StoredValue(second, {1, 2})


def test_the_initial_mapping_is_copied():
    data = {"a": [1]}
    state = InlineProvider().init({"data": data})

    data["a"].append(2)

    assert state == {"a": [1]}


@pytest.mark.parametrize(
    ("opts", "hint"), [({"dat": {}}, "did you mean 'data'?"), ({"embed": 1, "data": {}}, "it takes data")]
)
def test_an_unknown_init_option_is_refused_with_the_known_one(opts, hint):
    with pytest.raises(InvalidRequest) as refusal:
        InlineProvider().init(opts)

    assert refusal.value.detail == f"the inline provider has no {next(iter(opts))!r}"
    assert refusal.value.hint == hint


def test_an_option_of_a_call_is_refused():
    with pytest.raises(InvalidRequest) as refusal:
        InlineProvider().get({}, "a", {"fresh": True})

    assert (refusal.value.detail, refusal.value.hint) == ("inline get has no 'fresh'", "it takes none")
