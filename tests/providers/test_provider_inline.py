"""The inline provider: plain mappings in its state, and nothing else."""

import pytest

from jidomem.errors import InvalidRequest
from jidomem.providers import InlineProvider
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import StoredValue


class TestInline(ProviderContract):
    def opened(self):
        return InlineProvider(), {}


def test_each_call_leaves_the_state_it_was_given_as_it_was():  # A109
    provider = InlineProvider()
    first = provider.init({"data": {"kept": [1]}})

    second = provider.put(first, "new", {1, 2}, {}).state
    third = provider.delete(second, "kept", {}).state

    assert (first, second, third) == ({"kept": [1]}, {"kept": [1], "new": {1, 2}}, {"new": {1, 2}})
    assert provider.get(second, "new", {}) == StoredValue(second, {1, 2})


def test_the_mapping_it_starts_from_stays_its_givers():
    given = {"a": [1]}
    state = InlineProvider().init({"data": given})

    given["a"].append(2)

    assert state == {"a": [1]}


@pytest.mark.parametrize(
    ("opts", "hint"), [({"dat": {}}, "did you mean 'data'?"), ({"embed": 1, "data": {}}, "it takes data")]
)
def test_an_option_it_does_not_know_is_refused_with_what_it_takes(opts, hint):
    with pytest.raises(InvalidRequest) as refusal:
        InlineProvider().init(opts)

    assert refusal.value.detail == f"the inline provider has no {next(iter(opts))!r}"
    assert refusal.value.hint == hint


def test_a_call_that_takes_no_options_says_so():
    with pytest.raises(InvalidRequest) as refusal:
        InlineProvider().get({}, "a", {"fresh": True})

    assert (refusal.value.detail, refusal.value.hint) == ("inline get has no 'fresh'", "it takes none")
