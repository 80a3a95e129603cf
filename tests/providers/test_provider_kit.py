"""The contract tests of providers: a sound provider passes, and each faulty one fails the test of its fault."""

import subprocess
import sys

import pytest

from jidomem.providers import InlineProvider, VectorProvider
from jidomem.providers.conformance import ProviderContract
from jidomem.records.directive import Answer, Done, Missing, Scored, StoredValue


def failing(provider, contract=ProviderContract, **fields):
    """The tests of the contract that *provider* fails."""

    class Contract(contract):
        def opened(self):
            return provider, {}

    failed = set()
    for name in [name for name in dir(Contract) if name.startswith("test_")]:
        instance = Contract()
        for field, value in fields.items():
            setattr(instance, field, value)
        try:
            getattr(instance, name)()
        except Exception:
            failed.add(name.removeprefix("test_"))
    return failed


class Forgetful(InlineProvider):
    def put(self, state, key, value, opts):
        return Done(super().put(state, key, value, opts).state if key not in state else state)


class NoneIsMissing(InlineProvider):
    def get(self, state, key, opts):
        found = super().get(state, key, opts)
        return Missing(state) if getattr(found, "value", None) is None else found


class DeletesAll(InlineProvider):
    def delete(self, state, key, opts):
        return super().delete({key: state[key]} if key in state else state, key, opts)


class DeletesQuietly(InlineProvider):
    def delete(self, state, key, opts):
        super().delete(state, key, opts)
        return Done({name: value for name, value in state.items() if name != key})


class Trimming(InlineProvider):
    def put(self, state, key, value, opts):
        return super().put(state, key.split(":")[-1].strip(), value, opts)

    def get(self, state, key, opts):
        return super().get(state, key.split(":")[-1].strip(), opts)

    def delete(self, state, key, opts):
        return super().delete(state, key.split(":")[-1].strip(), opts)


class Sharing(InlineProvider):
    def get(self, state, key, opts):
        super().get(state, key, opts)
        return StoredValue(state, state[key]) if key in state else Missing(state)


class Deaf(InlineProvider):
    def get(self, state, key, opts):
        return super().get(state, key, {})


class Backwards(VectorProvider):
    def query(self, state, query, opts):
        return Answer(state, [*reversed(super().query(state, query, opts).rows)])


class Bare(InlineProvider):
    def get(self, state, key, opts):
        super().get(state, key, opts)
        return state.get(key)


class Unasked(InlineProvider):
    def query(self, state, query, opts):
        return Answer(state, [Scored(key, 1.0, value) for key, value in state.items()])


def test_a_sound_provider_passes_all_contract_tests():
    assert failing(InlineProvider()) == set()


@pytest.mark.parametrize(
    ("provider", "failed_test"),
    [
        (Forgetful(), "a_put_takes_the_place_of_the_last"),
        (NoneIsMissing(), "none_is_a_value_or_refused_and_never_missing"),
        (DeletesAll(), "what_is_deleted_is_missing_and_the_rest_is_there"),
        (DeletesQuietly(), "deleting_what_is_not_there_says_so"),
        (Trimming(), "a_key_with_blanks_around_it_is_refused_or_is_another_key"),
        (Sharing(), "a_stored_value_is_a_copy"),
        (Deaf(), "an_option_nobody_knows_is_refused_and_changes_nothing"),
        (Bare(), "directives_reach_it_and_signals_answer"),
        (Unasked(), "a_query_gives_at_most_the_limit_the_best_first"),
        (object(), "it_has_the_calls_of_the_contract"),
    ],
)
def test_each_faulty_provider_fails_its_contract_test(provider, failed_test):
    assert failed_test in failing(provider)


def test_a_provider_with_results_in_the_wrong_order_fails():
    vectors = {"put_opts": {"embedding": (1.0, 0.5)}, "search": {"vector": [1, 0]}}

    class Apart(ProviderContract):
        def put(self, provider, state, key, value):
            vector = (1.0, 0.0) if value == self.values[0] else (0.0, 1.0)
            return provider.put(state, key, value, {"embedding": vector}).state

    failed_test = "a_query_gives_at_most_the_limit_the_best_first"
    assert failed_test in failing(Backwards(), Apart, **vectors)
    assert failed_test not in failing(VectorProvider(), Apart, **vectors)


def test_the_contract_tests_do_not_import_pytest():
    program = "import sys, jidomem.providers.conformance; print('pytest' in sys.modules)"

    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert result.stdout == "False\n"
