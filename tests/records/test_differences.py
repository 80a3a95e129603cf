"""The differences between similar statements: the values of one slot, and none for a paraphrase."""

import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jidomem.records.differences import ValueDifference, differences, has_replaced_words

NOTES = Path(__file__).parent.parent / "recall" / "project_notes"
DIFFERENT = [
    ("The pool has 5 threads", "The pool has 20 threads", "5 / 20 threads"),
    ("Only 1 thread reads", "Only 4 threads read", "1 / 4 threads read"),
    ("The limit is 2 GiB", "The limit is 4096 MiB", "2 GiB / 4096 MiB"),
    ("HTTP timeouts are 30s", "Timeout for HTTP: 45s", "30 / 45 s"),
    ("Sessions expire daily", "Sessions expire weekly", "daily / weekly"),
    ("Backups run every night", "Backups run weekly", "every night / weekly"),
    ("Reports are sent quarterly", "Reports are sent every month", "quarterly / every month"),
    ("Run the job at night", "Run the job at noon", "night / noon"),
    ("The release is on 1 May", "The release is on 1 June", "May / June"),
    ("Frist: sechs Wochen", "Frist: drei Monate", "sechs Wochen / drei Monate"),
    ("El borrado tarda dos semanas", "El borrado tarda 1 mes", "dos semanas / 1 mes"),
    ("A seat costs $5 a month", "A seat costs $8 a month", "$5 / $8"),
    ("Coverage must be 80 %", "Coverage must be at least 85%", "80 / 85 %"),
    ("Python 3.9 is the minimum", "The minimum is Python 3.10", "3.9 / 3.10"),
    ("Requires oxigraph v0.4.1", "Requires oxigraph 0.5.0", "v0.4.1 / 0.5.0"),
    ("Freeze is 2024-03-01", "Freeze is 15 March 2024", "2024-03-01 / 15 March 2024"),
    ("Ship at 09:00", "Ship at 10:30", "09:00 / 10:30"),
    ("Release on Monday", "Release on Friday", "Monday / Friday"),
    ("Serve it at http://localhost:8000/", "The port to serve is port 9000", "8000 / 9000"),
    ("We deploy to eu-west-1", "Our region is eu-west-2 where we deploy", "eu-west-1 / eu-west-2"),
    ("Data lives in src/store.py", "The data lives in src/index.py now", "src/store.py / src/index.py"),
    ("Use --force to overwrite", "Use --replace to overwrite", "--force / --replace"),
    ("We use Oxigraph as index", "We use Jena as index", "Oxigraph / Jena"),
    ("The code is formatted with Black in CI", "In CI all code gets formatted with ruff", "Black / ruff"),
    ('We translate raise as "lanzar"', 'For raise we write "levantar"', "lanzar / levantar"),
    ("Tags must be signed", "Tags must not be signed", "signed / not signed"),
    ("The cache is no longer used", "The cache is used", "no longer used / used"),
    ("Tags sind zu signieren", "Tags sind nicht zu signieren", "signieren / nicht signieren"),
    ("La rama se borra", "La rama no se borra", "borra / no borra"),
    ("Build with debug symbols", "Build without debug symbols", "with / without"),
    ("Always squash commits", "Never squash commits", "Always / Never"),
    ("Only admins may delete projects", "Admins may delete projects", "Only admins / Admins"),
    ("Reviews are required", "Reviews are optional", "required / optional"),
    ("Writes are synchronous", "Writes are asynchronous", "synchronous / asynchronous"),
    ("Run the migration before the deploy", "Run the migration after the deploy", "before / after"),
    ("The flag is on by default", "The flag is off by default", "on / off"),
    ("Der Export ist erlaubt", "Der Export ist verboten", "erlaubt / verboten"),
    ("The fuse is rated 15 A", "The fuse is rated 12 amperes", "15 A / 12 amperes"),
    ("The supply has 5V", "The supply has 12 volts", "5 V / 12 volts"),
    ("The cable is 3 m long", "The cable is 250 centimetres long", "3 m / 250 centimetres"),
    ("Retries to a pump are limited to 3", "A pump is retried five times", "3 / five times"),
    ("Anna Meier is the contact", "the contact is Bernd Kohl", "Anna Meier / Bernd Kohl"),
    ("Anna is the owner", "The owner is Ben", "Anna / Ben"),
    ("Anna Meier is the contact", "The contact for alarms is Bernd Kohl", "Anna Meier / Bernd Kohl"),
]
EQUIVALENT = [
    ("Wait 90 s", "Wait for 1.5 minutes"),
    ("The limit is 2 GiB", "The limit is 2048 MiB"),
    ("Retry 3 times", "retry three times"),
    ("At most 10,000 rows", "at most 10k rows"),
    ("Sessions expire daily", "Sessions expire every 24 hours"),
    ("Daily backups are kept in the vault in Zurich", "Backups are made every day and kept in the vault in Zurich"),
    ("Nightly backups are kept in the vault in Zurich", "Backups are made every night and kept in the vault in Zurich"),
    ("Berichte kommen vierteljährlich", "Berichte kommen jedes Quartal"),
    ("Backups are kept for 30 days", "Backups are kept for 1 month"),
    ("It takes 4 to 20 days", "It takes four days to almost three weeks"),
    ("Freeze is 2024-03-01", "Freeze is March 1, 2024"),
    ("Freeze is 2024-03-01", "Freeze is 1.3.2024"),
    ("The build needs Rust 1.80", "the build requires rust 1.80"),
    ("Telemetry is enabled", "Telemetry is not disabled"),
    ("Each service owns its schema", "Every service has its own schema"),
    ("jemalloc is switched off for the FreeBSD build", "On FreeBSD it is built without jemalloc"),
    ("-x is the short form, used with find", "--exec works with find, and -x too"),
    ("", "Use Jena"),
    ("A request waits a minute", "A request waits no more than a minute"),
    ("Functions have 50 lines", "Keep functions no longer than 50 lines"),
    ("Das Backup dauert eine Stunde", "Das Backup dauert nicht mehr als eine Stunde"),
    ("The fuse is rated 15 A", "The fuse has 15 amperes"),
    ("The cable is 3 m long", "The cable is 300 cm long"),
    ("A request waits 5m", "A request waits 300 s"),
    ("Backups run 3 a day", "Backups run three times a day"),
    ("Retries to a pump are limited to 3", "A pump is retried three times"),
    ("The pump has 3 valves", "The pump stops after 5 s"),
    ("Anna Meier is the contact", "The contact is Anna Meier"),
    ("Anna Meier is the contact", "Bernd Kohl tests the pump"),
    ("Postgres is the database", "The database is PostgreSQL"),
]
#: Statements that may contradict each other in a word that is no value, and statements that are equivalent.
REPLACED = [
    ("Tests run with pytest", "We use unittest for tests"),
    ("Indent with tabs", "Use spaces for indentation"),
    ("Secrets are kept in Vault", "We keep our secrets in AWS"),
    ("The API returns JSON", "The API responds in XML"),
]
SYNONYMOUS = [
    ("Tests run with pytest", "We use pytest for tests"),
    ("Indent with tabs", "Tabs are used for indentation"),
    ("No recursion, so that whatever should be bounded is bounded", "No recursion at all, so that all code is bounded"),
    ("Secrets live in Vault", "Vault stores all secrets"),
    ("The build needs Rust 1.80", "Building requires Rust 1.80"),
    ("Ctrl-C pressed twice makes fd exit at once", "a second Ctrl-C terminates the process immediately"),
]
#: The repetitions without a difference that have replaced words, at most, and the contradictions that have these or a
#: difference, at least, in percent. Measured were 6 and 64 of "fit", on which the rule was made, and 3 and 63 of "held
#: out".
REPLACED_BOUNDS = {"fit": (8, 60), "held out": (8, 56)}
#: The contradictions with a difference at least, and the repetitions and near statements with one at most, in percent.
#: Measured were 60, 0 and 10 of "fit", on which the rules were made, and 60, 3 and 10 of "held out".
BOUNDS = {"fit": (56, 2, 12), "held out": (53, 7, 10)}
#: Texts of the parts that the rules look at.
TEXTS = st.lists(
    st.sampled_from(
        [word for sides in (*DIFFERENT, *EQUIVALENT) for text in sides[:2] for word in text.split()]
        + [".", ",", "not", "and", "#12", "1,5", "€", "`x`", "2FA", "1e9", "'"]
    ),
    max_size=12,
).map(" ".join) | st.text(max_size=40)


@pytest.mark.parametrize(("text", "other", "phrase"), DIFFERENT)
def test_two_values_of_one_slot_are_a_difference(text, other, phrase):
    assert [*map(str, differences(text, other))] == [phrase]


@pytest.mark.parametrize(("text", "other"), EQUIVALENT)
def test_paraphrases_and_unit_conversions_are_no_difference(text, other):
    assert differences(text, other) == ()


@pytest.mark.parametrize(("text", "other"), REPLACED)
def test_a_replaced_word_is_reported_as_a_possible_contradiction(text, other):
    assert differences(text, other) == ()
    assert has_replaced_words(text, other)
    assert has_replaced_words(other, text)


@pytest.mark.parametrize(("text", "other"), SYNONYMOUS)
def test_synonyms_and_additional_words_are_no_replaced_words(text, other):
    assert not has_replaced_words(text, other)
    assert not has_replaced_words(other, text)


def test_differences_are_listed_once_in_the_order_of_the_first_text():
    result = differences(
        "The pool has 5 threads, waits 3 s, on port 80", "On port 81 the pool waits 4 s and has 6 threads"
    )

    assert result == (
        ValueDifference("number", "5", "6", "threads"),
        ValueDifference("number", "3", "4", "s"),
        ValueDifference("number", "80", "81"),
    )


def test_a_value_in_one_text_only_is_no_difference():
    assert differences("The pool has 5 threads", "The pool of threads waits 3 seconds") == ()


@pytest.mark.parametrize("text", ["b c " * 500, "not a " * 400, "2024-01-01" * 200, "1 thread " * 300, "/a." * 700])
def test_a_repetitive_text_is_compared_in_a_bounded_number_of_calls(text):
    calls = Counter()

    def count(frame, event, argument):
        calls[event] += 1

    sys.setprofile(count)
    try:
        differences(text, f"the {text[::-1]}")
    finally:
        sys.setprofile(None)

    assert calls["call"] < 200_000


@given(TEXTS, TEXTS)
@example("never cache squash Redis b after", "after squash cache uses")  # two words that may form the pair
def test_differences_are_symmetric(text, other):
    swapped = {ValueDifference(each.kind, each.other, each.value, each.unit) for each in differences(other, text)}

    assert {*differences(text, other)} == swapped


@given(TEXTS)
def test_a_text_does_not_differ_from_itself_in_white_space(text):
    assert differences(text, text) == ()
    assert differences(text, f" {text}  ") == ()


@given(st.integers(1, 10**6), st.sampled_from([("s", "ms"), ("KiB", "bytes"), ("kg", "g")]))
def test_a_quantity_does_not_differ_from_its_conversion(number, units):
    factor = 1024 if units[1] == "bytes" else 1000
    large, small = f"The limit is {number} {units[0]}", f"The limit is {number * factor} {units[1]}"

    assert differences(large, small) == ()
    assert [each.kind for each in differences(large, f"The limit is {number * factor * 2} {units[1]}")] == ["number"]


@pytest.mark.parametrize("part", BOUNDS)
def test_labelled_contradictions_have_differences_and_repetitions_hardly_any(part):
    shares, replaced = {}, {}
    for label in ("contradicts", "repeats", "near"):
        pairs = labelled_pairs(part, label)
        equal = [texts for texts in pairs if not differences(*texts)]
        shares[label] = 100 - 100 * len(equal) / len(pairs)
        replaced[label] = 100 * sum(has_replaced_words(*texts) for texts in equal) / len(equal)

    minimum, most_of_repeats, most_of_near = BOUNDS[part]
    assert shares["contradicts"] >= minimum
    assert shares["repeats"] <= most_of_repeats
    assert shares["near"] <= most_of_near
    maximum, minimum = REPLACED_BOUNDS[part]
    assert replaced["repeats"] <= maximum
    assert shares["contradicts"] + replaced["contradicts"] * (100 - shares["contradicts"]) / 100 >= minimum


def labelled_pairs(part, label):
    """Return memory summary and statement of each pair with *label* in the notes of *part*."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(NOTES.glob("*.json"))]
    return [
        (next(memory["summary"] for memory in notes["memories"] if memory["id"] == pair["memory"]), pair["text"])
        for notes in files
        if notes["part"] == part
        for pair in notes[label]
    ]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("The worker pool has eight threads", "The worker pool has sixteen threads", ["eight / sixteen threads"]),
        ("Workers retry twenty-five times", "Workers retry 20 times", ["twenty-five / 20 times"]),
        ("Der Pool hat siebzehn Verbindungen", "Der Pool hat 18 Verbindungen", ["siebzehn / 18 Verbindungen"]),
        ("Keep ninety backups", "Keep 90 backups", []),
        ("The pool has twenty-one threads", "The pool has 22 threads", ["twenty-one / 22 threads"]),
        ("The pool has twenty one threads", "The pool has 21 threads", []),
        ("Der Pool hat einundzwanzig Threads", "Der Pool hat 21 Threads", []),
        ("El pool tiene veintiuno hilos", "El pool tiene 22 hilos", ["veintiuno / 22 hilos"]),
        ("The queue holds two hundred twenty five jobs", "The queue holds 225 jobs", []),
        ("The queue holds two hundred jobs", "The queue holds two thousand jobs", ["two hundred / two thousand jobs"]),
        ("The cache holds 5 thousand entries", "The cache holds 5,000 entries", []),
        ("Retry twice", "Retry 2 times", []),
        ("Retry thrice", "Retry three times", []),
        ("Retry once", "Retry 2 times", ["once / 2 times"]),
        ("Each job is retried twice.", "Each job is retried 3 times.", ["twice / 3 times"]),
        ("Backups run once a day", "Backups run twice a day", ["once / twice"]),
        ("Deploy once the build is green", "Deploy 2 times if the build is green", []),
        ("Stop all workers at once", "Stop 2 workers of all at once", []),
    ],
)
def test_numbers_in_words_are_values(first, second, expected):
    assert [str(each) for each in differences(first, second)] == expected
