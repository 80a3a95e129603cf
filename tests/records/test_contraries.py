"""A negation, a limit or a further list member is a difference, so that no statement repeats its contrary."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jidomem.records.differences import differences, ends_use, has_replaced_words

PAIRS = json.loads((Path(__file__).parent / "statement_pairs.json").read_text("utf-8"))
#: A subject and an action on it: as participle, imperative and gerund.
ACTIONS = [
    ("failed payouts", "retried", "retry", "retrying"),
    ("backups", "encrypted", "encrypt", "encrypting"),
    ("invoices", "signed", "sign", "signing"),
    ("uploads", "scanned", "scan", "scanning"),
    ("stale tokens", "rejected", "reject", "rejecting"),
    ("missing fields", "logged", "log", "logging"),
    ("errors", "ignored", "ignore", "ignoring"),
    ("unused indexes", "dropped", "drop", "dropping"),
    ("blocked users", "skipped", "skip", "skipping"),
    ("sessions", "cached", "cache", "caching"),
]
PLACES = ["", " in the gateway", " on Mondays", " without a stack trace", " after 3 attempts", " before the release"]
#: The syntactic forms: a statement, and one that negates or limits it, has one list member more, or another number.
FORMS = [
    "{do} {things}{where} | Do not {do} {things}{where}",
    "{Things} are {done}{where} | {Things} are never {done}{where}",
    "{Things} are {done}{where} | {Things} are no longer {done}{where}",
    "We {do} {things}{where} | We stopped {doing} {things}{where}",
    "{Things} must be {done}{where} | {Things} mustn't be {done}{where}",
    "{Things} can be {done}{where} | Nobody can {do} {things}{where}",
    "{Things} are {done}{where} | It is not true that {things} are {done}{where}",
    "That {things} are {done}{where} is fine | That {things} are {done}{where} is forbidden",
    "All {things} are {done}{where} | All {things} except those of partners are {done}{where}",
    "Everyone may {do} {things}{where} | Everyone but Ana may {do} {things}{where}",
    "{Things} are {done}{where} | {Things} are {done}{where} unless a partner objects",
    "{Things} are {done}{where} | Only {things} are {done}{where}",
    "{Things} are {done}{where} for France and Spain | {Things} are {done}{where} for France, Spain and Italy",
    "{Things} and refunds are {done}{where} | {Things} are {done}{where}",
    "{Things} are {done}{where} within 30 days | {Things} are {done}{where} within 90 days",
    "{Things} are {done}{where} within a week | {Things} are {done}{where} within a year",
    "{Things} are {done}{where} every day | {Things} are {done}{where} every other day",
]

#: Statements that use a thing, and others that end it.
USES = [
    "We use {name} for sessions",
    "Sessions are kept in {name}",
    "We run {name} for sessions",
    "{name} is used by sessions",
]
ENDS = [
    "We stopped using {name}",
    "{name} is no longer used",
    "{name} was dropped in March",
    "We moved off {name}",
    "We migrated from {name} to Valkey",
    "{name} was replaced by Valkey",
    "We got rid of {name}",
    "Sessions moved from {name} to Postgres",
    "We use Valkey instead of {name}",
    "{name} has been decommissioned",
    "We don't use {name} any more",
    "{name} wurde abgeschafft",
    "Wir nutzen {name} nicht mehr",
    "Dejamos de usar {name}",
]
#: Statements that end another thing, end it elsewhere, or end nothing.
ENDS_ELSEWHERE = [
    "We stopped using {name} for rate limits", "Billing moved off {name}", "The {name} exporter was removed",
    "{name} keys are dropped after a day", "{name} was not chosen for the queue", "We moved the queue to {name}",
    "We dropped {name} 4", "Rows are moved from {name} to the archive", "{name} was replaced in 2024",
    "{name} no longer drops keys",
]  # fmt: skip


@given(st.sampled_from(FORMS), st.sampled_from(ACTIONS), st.sampled_from(PLACES), st.booleans())
def test_no_statement_repeats_its_contrary(form, action, where, is_swapped):
    things, participle, imperative, gerund = action
    fields = {"things": things, "Things": things.capitalize(), "done": participle, "do": imperative, "doing": gerund}
    first, second = form.format(**fields, where=where).split(" | ")

    assert differences(*((second, first) if is_swapped else (first, second)))


@given(
    st.sampled_from(USES),
    st.sampled_from(ENDS),
    st.sampled_from(["Redis", "pgbouncer", "GitHub Actions", "nightly export"]),
)
def test_a_statement_differs_from_the_end_of_what_it_uses(use, end, name):
    texts = use.format(name=name), end.format(name=name)

    assert ends_use(*texts)
    assert ends_use(*texts[::-1])
    assert differences(*texts)


@pytest.mark.parametrize("end", ENDS_ELSEWHERE)
@pytest.mark.parametrize("use", USES)
def test_the_end_of_another_thing_or_elsewhere_ends_no_use(use, end):
    assert not ends_use(use.format(name="Redis"), end.format(name="Redis"))


@pytest.mark.parametrize(("text", "other"), PAIRS["differs"])
def test_contraries_in_the_same_words_differ(text, other):
    assert differences(text, other)
    assert differences(other, text)


@pytest.mark.parametrize(("text", "other"), PAIRS["repeats"])
def test_paraphrases_do_not_differ(text, other):
    assert differences(text, other) == ()
    assert differences(other, text) == ()


def test_most_paraphrases_have_no_replaced_words():
    assert sum(not has_replaced_words(*pair) for pair in PAIRS["repeats"]) >= 13


@pytest.mark.parametrize(
    ("text", "other", "phrase"),
    [
        ("Retry failed payouts.", "Do not retry failed payouts.", "Retry / not retry"),
        ("We stopped using Redis.", "We use Redis.", "stopped Redis / Redis"),
        ("We moved away from Jenkins.", "We use Jenkins.", "away Jenkins / Jenkins"),
        ("We switched from Jenkins to Actions.", "Builds run on Jenkins.", "switched from Jenkins / Jenkins"),
        ("Actions replaced Jenkins.", "Builds run on Jenkins.", "replaced Jenkins / Jenkins"),
        ("Jenkins was retired in March.", "Builds run on Jenkins.", "Jenkins retired / Jenkins"),
        ("Jenkins was replaced by GitHub Actions.", "We use Jenkins.", "Jenkins replaced / Jenkins"),
        ("All services except billing use TLS.", "All services use TLS.", "except billing / no exception"),
        (
            "Launch currencies are EUR, GBP and SEK; USD is not supported.",
            "Launch currencies: EUR, GBP, SEK and USD.",
            "USD not / USD",
        ),
        ("Logs are kept 30 days.", "Logs are kept a year.", "30 days / a year"),
        ("Tokens expire after half an hour.", "Tokens expire after an hour.", "half an / an hour"),
        ("The report runs twice a month.", "The report runs twice a year.", "a month / a year"),
        ("Initech renews its contract in June", "Initech renews its contract in March", "June / March"),
        ("Guests have read access only.", "Guests have read and write access.", "only Guests / not only"),
        ("Half of all requests are sampled.", "All requests are sampled.", "Half of requests / all"),
        ("Money is stored as integers, never as floats.", "Money is stored as floats, never as integers.", None),
        ("Alle Dienste außer Abrechnung nutzen TLS.", "Alle Dienste nutzen TLS.", "außer Abrechnung / no exception"),
        ("Todos los servicios salvo pagos usan TLS.", "Todos los servicios usan TLS.", "salvo pagos / no exception"),
    ],
)
def test_a_negating_or_limiting_phrase_is_named(text, other, phrase):
    phrases = [*map(str, differences(text, other))]

    assert phrases == [phrase] if phrase else phrases


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("We moved away from Jenkins.", "Jenkins is no longer used here."),
        ("Users can export PDF and CSV.", "Users can export CSV and PDF."),
        ("Money is stored as integers, never as floats.", "Amounts of money are stored as integers, not floats."),
        ("Support answers within a day.", "Support answers within 24 hours."),
        ("The report runs twice a month.", "The report is run two times a month."),
        ("All services except billing use TLS.", "TLS is used by all services except billing."),
        ("Avoid global state.", "Do not use global state."),
        ("Use tabs instead of spaces.", "Use tabs, not spaces."),
        ("The service refuses requests without a token.", "Requests without a token are refused by the service."),
        ("The boiler was replaced in 2024", "We got a new boiler in 2024"),
    ],
)
def test_statements_with_the_same_negation_do_not_differ(text, other):
    assert differences(text, other) == ()
    assert differences(other, text) == ()
