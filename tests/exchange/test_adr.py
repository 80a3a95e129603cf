"""The import of decision records as intents: each record, its status and supersessions; every loss is reported."""

import json
import re
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jidomem.exchange.adr import read_records, record_iri

CASES = Path(__file__).parent / "cases" / "adr"
LARGE = 256 * 1024
#: The headings and keys that are fields of an intent.
LABELS = {
    "status",
    "date",
    "title",
    "context",
    "and",
    "problem",
    "statement",
    "rationale",
    "consequences",
    "adr",
    "background",
    "decision",
    "outcome",
}


def read(files, known=()):
    return read_records(files, known={f"{name}.md": "" for name in known})


def load(case):
    files = [(path.relative_to(case).as_posix(), path.read_bytes()) for path in sorted(case.rglob("*.md"))]
    return files, json.loads((case / "expected.json").read_text("utf-8"))


def as_cases(reading, files):
    """Return intents and notes in the form of the cases: paths instead of names, a line for each note."""
    paths = {entry.key: entry.place for entry in reading.entries}
    intents = []
    for entry in reading.entries:
        links = {
            name: [paths.get(key, key) for of, key in entry.links if of == name] for name in ("supersedes", "about")
        }
        links["about"] = [*entry.files, *links["about"]]
        intents.append({"iri": entry.place, **entry.fields, **links})
    notes = [f"{n.severity} {n.path}{f':{n.line}' if n.line else ''}: {n.message}" for n in reading.notes]
    return intents, notes


def words(text):
    return set(re.findall(r"[^\W\d_]{2,}", text.casefold().replace("\\n", " ")))


def nygard(title="Use a queue", status="Accepted", context="Orders come in bursts."):
    text = f"# 1. {title}\n\n## Status\n\n{status}\n\n## Context\n\n{context}\n\n## Decision\n\nWe use one.\n"
    return text.encode()


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_a_folder_of_records_is_read_as_its_listed_and_notes(case):
    files, expected = load(case)

    intents, notes = as_cases(read(files, expected["known"]), files)

    listed = expected["intents"]
    assert [{key: intent.get(key) for key in fields} for intent, fields in zip(intents, listed, strict=True)] == listed
    assert notes == expected["notes"]


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_windows_line_ends_and_a_byte_order_mark_change_no_intent(case):
    files, expected = load(case)
    windows = [(path, b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n")) for path, content in files]

    assert read(windows, expected["known"]) == read(files, expected["known"])


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_an_intent_follows_all_it_supersedes_and_each_memory_has_one_successor(case):
    files, expected = load(case)

    entries = read(files, expected["known"]).entries

    positions = {entry.key: number for number, entry in enumerate(entries)}
    supersessions = [(entry, old) for entry in entries for name, old in entry.links if name == "supersedes"]
    assert all(positions.get(old, -1) < positions[entry.key] for entry, old in supersessions)
    assert len({old for _, old in supersessions}) == len(supersessions)


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda case: case.name)
def test_every_word_of_a_record_is_in_its_intent_or_in_a_note(case):
    files, expected = load(case)
    reading = read(files, expected["known"])
    noted = words(" ".join(note.message for note in reading.notes))

    for entry in reading.entries:
        imported = noted.union(*(words(str(value)) for value in entry.fields.values()))
        assert words(dict(files)[entry.place].decode()) - imported <= LABELS


def test_no_two_records_of_an_import_share_a_topic():
    for case in CASES.iterdir():
        topics = [entry.fields["topic"] for entry in read(load(case)[0]).entries]
        assert len(set(topics)) == len(topics)


def test_the_iri_is_a_uuid_of_version_8_that_depends_on_project_and_file_name_alone():
    first, second = read([("docs/adr/0001-a.md", nygard())]), read([("0001-a.md", nygard("Another title"))])

    identifier = UUID(record_iri("shop", "0001-a").removeprefix("https://jido.ai/memory/"))

    assert first.entries[0].key == second.entries[0].key == "0001-a"
    assert (identifier.version, identifier.variant) == (8, "specified in RFC 4122")
    assert record_iri("shop", "0001-a") != record_iri("stall", "0001-a")


def test_a_record_of_invalid_utf_8_is_an_error_with_its_byte():
    reading = read([("0001-a.md", nygard()), ("0002-b.md", b"# Caf\xe9\n")])

    assert [entry.place for entry in reading.entries] == ["0001-a.md"]
    assert [(n.path, n.severity, n.message) for n in reading.notes] == [
        ("0002-b.md", "error", "not UTF-8 at byte 5; skipped")
    ]


def test_a_record_larger_than_a_memory_is_an_error_and_the_others_are_read():
    fits, larger = nygard(context="ü" * (LARGE // 2 - 6)), nygard(context="ü" * (LARGE // 2 + 1))

    reading = read([("0001-a.md", fits), ("0002-b.md", larger)])

    assert [entry.place for entry in reading.entries] == ["0001-a.md"]
    assert [(n.path, n.severity) for n in reading.notes] == [("0002-b.md", "error")]


def test_front_matter_keeps_leading_zeros_and_expands_no_aliases():
    bomb = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 9)}]\n" for n in range(1, 12))
    newer = f"---\nsupersedes: 0012\nx0: &x0 [y]\n{bomb}---\n".encode() + nygard()

    entries = read([("0010-a.md", nygard("Ten")), ("0012-b.md", nygard("Twelve")), ("0013-c.md", newer)]).entries

    assert entries[-1].links == (("supersedes", "0012-b"),)


@pytest.mark.parametrize(
    "head",
    [
        "---\nstatus: rejected\ntitle: Kafka: the log\ndate: 2024-01-01\n---\n",
        "---\nstatus:\trejected\ndate: 2024-01-01\n---\n",
        "---\nstatus: 'rejected'\ndate: 2024-01-01\n\n",
        "---\ndate: 2024-01-01\nstatus: rejected\n",
    ],
)
@pytest.mark.parametrize("foot", ["", "\n---\nThe end: here.\n"])
def test_status_and_date_of_front_matter_that_is_no_yaml_or_not_closed_are_read(head, foot):
    reading = read(
        [("0001-k.md", f"{head}# Kafka\n\n## Context\n\nEvents.\n\n## Decision\n\nUse it.\n{foot}".encode())]
    )

    (entry,) = reading.entries
    fields = entry.fields
    assert (fields["summary"], fields["status"], fields["timestamp"]) == ("Kafka", "rejected", "2024-01-01T00:00:00Z")
    assert [(note.line, note.message[:28]) for note in reading.notes if note.severity == "warning"] == [
        (1, "front matter cannot be read:")
    ]


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# Cache\n\nWe talked about caching. Nothing agreed yet.\n", "proposed"),
        ("# Cache\n\n## Context\n\nSlow.\n\n## Consequences\n\nFast.\n", "proposed"),
        ("# Cache\n\n## Context\n\nSlow.\n\n## Decision\n\n", "proposed"),
        ("---\nstatus rejected\n---\n# Cache\n\n## Decision\n\nUse Redis.\n", "proposed"),
        ("# Cache\n\nDecision: use Redis.\n", "accepted"),
        ("# Cache\n\n## Decision Outcome\n\nUse Redis.\n", "accepted"),
        ("# Cache\n\nStatus: Accepted\n\nUse Redis.\n", "accepted"),
    ],
)
def test_a_record_without_status_is_accepted_only_if_it_states_a_decision(text, status):
    reading = read([("docs/adr/0001-cache.md", text.encode())])

    assert [entry.fields["status"] for entry in reading.entries] == [status]
    read_as = [note.severity for note in reading.notes if note.message.endswith("read as proposed")]
    assert read_as == ["warning"] * (status == "proposed")


def test_a_chain_of_1001_supersessions_is_read_in_order():
    files = [(f"{n:04}-r.md", nygard(f"Release {n}", f"Accepted\n\nSupersedes ADR-{n + 1}")) for n in range(1000)]
    files.append(("1000-r.md", nygard("Release 1000")))

    entries = read(files).entries

    assert [entry.place for entry in entries] == [path for path, _ in reversed(files)]


FRAGMENTS = st.sampled_from(
    ["---\n", "# T\n", "## Status\n", "Accepted\n", "Superseded by ADR-1\n", "Supersedes [x](b.md)\n", "## Decision\n",
     'Chosen option: "', '", because ', "```\n", "* ", "status: ", "date: 2020-01-01\n", "\n", "a b ", "[", "](", ":"]
)  # fmt: skip


@settings(max_examples=150)
@given(st.lists(st.lists(FRAGMENTS, max_size=25).map("".join) | st.text(max_size=80), max_size=4))
def test_any_file_gives_either_an_intent_or_a_note_that_it_is_skipped(texts):
    files = [(f"{'abcd'[n]}.md", text.encode("utf-8", "replace")) for n, text in enumerate(texts)]

    reading = read(files)

    imported = {entry.place for entry in reading.entries}
    skipped = {note.path for note in reading.notes if note.message.endswith("skipped")}
    assert imported | skipped == {path for path, _ in files}
    assert not imported & skipped
    assert all(entry.fields.get(name) for entry in reading.entries for name in ("summary", "rationale", "status"))
