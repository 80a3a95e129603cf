"""The inline provider: plain mappings in its state, and nothing else."""

from jidomem.provider import Found
from jidomem.providers import InlineProvider
from jidomem.providers.kit import ProviderContract


class TestInline(ProviderContract):
    def opened(self):
        return InlineProvider(), {}


def test_each_call_leaves_the_state_it_was_given_as_it_was():  # A109
    provider = InlineProvider()
    first = provider.init({"data": {"kept": [1]}})

    second = provider.put(first, "new", {1, 2}, {}).state
    third = provider.delete(second, "kept", {}).state

    assert (first, second, third) == ({"kept": [1]}, {"kept": [1], "new": {1, 2}}, {"new": {1, 2}})
    assert provider.get(second, "new", {}) == Found(second, {1, 2})


def test_the_mapping_it_starts_from_stays_its_givers():
    given = {"a": [1]}
    state = InlineProvider().init({"data": given})

    given["a"].append(2)

    assert state == {"a": [1]}
