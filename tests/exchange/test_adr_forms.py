"""The forms of title, status and date in decision records."""

from types import SimpleNamespace

import pytest

from jidomem.exchange.adr import read_records

NAME = "docs/adr/0007-use-a-queue.md"
BODY = "\n\n## Context\n\nBursts.\n\n## Decision\n\nWe use one.\n"


def read(text, name=NAME):
    (entry,) = read_records([(name, text.encode())]).entries
    return SimpleNamespace(**{"timestamp": None, **entry.fields})


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("# Use a queue\n\nStatus: Rejected", "rejected"),
        ("# Use a queue\n\n- Status: Rejected\n- Deciders: Ana", "rejected"),
        ("# Use a queue\n\n**Status**: rejected", "rejected"),
        ("# Use a queue\n\n**Status:** ❌ Rejected", "rejected"),
        ("# Use a queue\n\n**Status:**\nRejected", "rejected"),
        ("---\nstatus: rejected\n---\n# Use a queue", "rejected"),
        ("# Use a queue\n\n## Status: Rejected", "rejected"),
        ("# Use a queue\n\n## Status\n\n*Rejected*", "rejected"),
        ("# Use a queue\n\n## Metadata\n\n### Status\n\nRejected", "rejected"),
        ("# Use a queue\n\nStatus\n------\n\nRejected", "rejected"),
        ("# Use a queue\n\n| Status | Rejected |\n|---|---|\n| Date | 2020-01-02 |", "rejected"),
        ("# Use a queue\n\n| Status | Date |\n|---|---|\n| Rejected | 2020-01-02 |", "rejected"),
        ("# Use a queue\n\n| Key | Value |\n|:--|--:|\n| **Status** | Rejected |", "rejected"),
        ("# Use a queue\n\n## Status\n\nProposed\n\nRejected", "rejected"),
        ("# Use a queue\n\n## Status\n\nReverted by [#12](https://example.org/12)", "deprecated"),
        ("# Use a queue\n\n## Status\n\nAmended by [8](0008-use-a-log.md)", "accepted"),
        ("# Use a queue\n\n## Status\n\nAccepted (lazy consensus).\n\nNot implemented yet.", "accepted"),
        ("# Use a queue\n\n## Status\n\nAccepted & implemented.\n\nImplemented.", "accepted"),
        ("# Use a queue\n\n## Statut\n\nAcceptée", "accepted"),
        ("# Use a queue\n\n*Rejected* on 2026-05-01", "rejected"),
        ("# Use a queue\n\nProposed", "proposed"),
        ("# Use a queue\n\nBilling needs one.\nRejected by Ana on 3 May 2026 (too slow).", "rejected"),
        ("# Use a queue\n\nJane Doe", "accepted"),
        ("# Use a queue\n\nInternal use only", "accepted"),
        ("# Use a queue\n\nDropped in 2019 were 3 messages.", "accepted"),
        ("# Use a queue\n\nRejected (too slow): Redis.", "accepted"),
        ("# Use a queue\n\nOpen queues lose messages, as we know.", "accepted"),
        ("# Use a queue\n\nReplaced by [8](0008-use-a-log.md)", "deprecated"),
        ("# Use a queue", "accepted"),
    ],
)
def test_a_status_is_read_in_every_form(text, status):
    assert read(text + BODY).status == status


@pytest.mark.parametrize(
    "status",
    [
        "Partly superseded", "Partially superseded by [a log](0002-use-a-log.md)", "Superseded in part by ADR-2",
        "Accepted, partly replaced by ADR-2", "Superseded, partially, by ADR-2", "Partially deprecated",
        "Partly implemented",
    ],
)  # fmt: skip
def test_a_partly_superseded_record_stays_accepted_and_is_linked_by_about(status):
    old = f"# 1. Use a queue\n\n## Status\n\n{status}\n{BODY}"
    new = f"# 2. Use a log\n\n## Status\n\nAccepted\n{BODY}"
    reading = read_records(
        [("docs/adr/0001-use-a-queue.md", old.encode()), ("docs/adr/0002-use-a-log.md", new.encode())]
    )
    first, second = sorted(reading.entries, key=lambda entry: entry.key)

    is_named = "ADR-2" in status or "](" in status
    assert (first.fields["status"], second.links) == ("accepted", (("about", first.key),) if is_named else ())
    assert (reading.refused, [note for note in reading.notes if note.severity == "warning"]) == (frozenset(), [])


def test_a_record_that_partly_supersedes_another_is_linked_by_about():
    old = f"# 1. Use a queue\n\n## Status\n\nAccepted\n{BODY}"
    new = f"# 2. Use a log\n\n## Status\n\nAccepted\n\nPartially supersedes ADR-0001\n{BODY}"
    reading = read_records(
        [("docs/adr/0001-use-a-queue.md", old.encode()), ("docs/adr/0002-use-a-log.md", new.encode())]
    )

    assert reading.entries[1].links == (("about", reading.entries[0].key),)


def test_a_request_for_comments_without_a_status_is_proposed():
    assert read("# Use a queue\n\nWe could.\n", "rfcs/0007-use-a-queue.md").status == "proposed"
    assert read("# Use a queue\n\nStatus: Approved\n", "rfcs/0007-use-a-queue.md").status == "accepted"


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("---\ndate: 2018-03-02\n---\n# Use a queue", "2018-03-02"),
        ("# Use a queue\n\nDate: 2018-03-02", "2018-03-02"),
        ("# Use a queue\n\n* Date: 2018-03-02", "2018-03-02"),
        ("# Use a queue\n\n* **Decided on**: 2 March 2018\n* Created: 2017-01-01", "2018-03-02"),
        ("# Use a queue\n\n## Date\n\n2018-03-02", "2018-03-02"),
        ("# Use a queue\n\n| Status | Date |\n|---|---|\n| Accepted | 2018-03-02 |", "2018-03-02"),
        ("# Use a queue\n\n## Status\n\nAccepted (2018-03-02)", "2018-03-02"),
        ("# Use a queue\n\n## Status\n\nAccepted on March 2nd, 2018", "2018-03-02"),
        ("# Use a queue\n\nStart Date: 2018/03/02", "2018-03-02"),
        ("# Use a queue\n\nDate: 02.03.2018", "2018-03-02"),
        ("# Use a queue\n\nDate: 28/02/2018", "2018-02-28"),
        ("# Use a queue\n\nDate: 2018 Mar 2", "2018-03-02"),
        ("# Use a queue\n\n## Changelog\n\n- 2019-05-12: Accepted\n- 2018-03-02: Draft", "2018-03-02"),
        ("# Use a queue\n\n## Changelog\n\n- 02/03/2018: Draft\n- 25/04/2018: Accepted", "2018-03-02"),
        ("# Use a queue\n\n## Revision History\n\n| Date | By |\n|---|---|\n| 2018-03-02 | Ana |", "2018-03-02"),
        ("# Use a queue\n\nDate: 02/03/2018", None),
        ("# Use a queue\n\nDate: 2018-02-30", None),
        ("# Use a queue\n\nDate: <!-- today -->", None),
        ("# Use a queue\n\nLast updated: 2018-03-02", None),
        ("# Use a queue\n\nWe met on 2018-03-02.", None),
    ],
)
def test_a_date_is_read_in_every_form_and_an_unclear_date_is_not_guessed(text, date):
    assert read(text + BODY).timestamp == (date and f"{date}T00:00:00Z")


def test_a_record_without_a_date_has_that_of_its_file_name():
    dated = "docs/adr/20180302-use-a-queue.md"

    assert read(f"# Use a queue{BODY}", dated).timestamp == "2018-03-02T00:00:00Z"
    assert read(f"# Use a queue\n\nDate: 2019-01-01{BODY}", dated).timestamp == "2019-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "name", "title"),
    [
        ("# ADR-0007: Use a queue", NAME, "Use a queue"),
        ("# 0007 - Use a queue", NAME, "Use a queue"),
        ("Use a queue\n===========", NAME, "Use a queue"),
        ("## 7. Use a queue", NAME, "Use a queue"),
        ("---\ntitle: Use a queue\n---", NAME, "Use a queue"),
        ("- Name: Use a queue", NAME, "Use a queue"),
        ("# Summary\n\nWe do.\n\n# Drawbacks\n\nNone.", "rfcs/0007-use-a_queue.md", "Use a queue"),
        ("", "docs/adr/2018-03-02-use-a-queue/README.md", "Use a queue"),
    ],
)
def test_a_title_is_read_from_the_page_or_else_from_the_file_name(text, name, title):
    assert read(text + BODY, name).summary == title


def test_records_in_own_folders_are_identified_and_linked_by_folder_name():
    first = f"# A\n\n## Status\n\nSuperseded by [B](../2019-01-01-b/){BODY}"
    files = [("adr/2018-01-01-a/README.md", first), ("adr/2019-01-01-b/README.md", f"# B{BODY}")]

    reading = read_records([(p, t.encode()) for p, t in files])

    a, b = sorted(reading.entries, key=lambda entry: entry.summary)
    assert (a.fields["status"], b.links) == ("accepted", (("supersedes", a.key),))
    assert all("same name" not in note.message and "has the name" not in note.message for note in reading.notes)


CHANGED = "# Use a {name}\n\n## Context\n\nc\n\n## Decision\n\nd\n\n## Changelog\n\n- {date}: accepted\n"


def test_an_ambiguous_date_is_noted_with_line_both_readings_and_replacement():
    text = CHANGED.format(name="queue", date="05/01/2022").encode()

    reading = read_records([("docs/adr/0001-use-a-queue.md", text)])

    (note,) = [note for note in reading.notes if "05/01/2022" in note.message]
    assert (note.path, note.line, note.severity) == ("docs/adr/0001-use-a-queue.md", 13, "warning")
    assert "2022-01-05 or 2022-05-01: neither is used, the date of the first commit of the file is used" in note.message
    assert "timestamp" not in reading.entries[0].fields


def test_an_ambiguous_date_is_resolved_by_another_record_of_the_folder():
    first = ("docs/adr/0001-use-a-queue.md", CHANGED.format(name="queue", date="05/01/2022").encode())
    second = ("docs/adr/0002-use-a-log.md", CHANGED.format(name="log", date="25/04/2022").encode())
    elsewhere = ("docs/rfc/0002-use-a-log.md", second[1])

    alone, joint = read_records([first, elsewhere]), read_records([first, second])

    assert "timestamp" not in next(e for e in alone.entries if e.place == first[0]).fields
    dated = next(e for e in joint.entries if e.place == first[0])
    assert dated.fields["timestamp"] == "2022-01-05T00:00:00Z"
    assert not [note for note in joint.notes if "05/01/2022" in note.message]
    assert (
        dated.digest == next(e for e in alone.entries if e.place == first[0]).digest
    )  # the content of the file is the same


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("Accepted on 2024-01-01, no longer valid since 2025-01-01", "deprecated"),
        ("Approved; no longer in use", "deprecated"),
        ("Accepted pending review", "proposed"),
        ("Accepted → Deprecated", "proposed"),
        ("Accepted (tentatively)", "proposed"),
        ("Accepted pending budget approval", "proposed"),
        ("Accepted-ish (pending budget)", "proposed"),
        ("Accepted-ish", "proposed"),
        ("Accepted, subject to a review of security", "proposed"),
        ("Approved if the tests pass", "proposed"),
        ("Accepted unless legal objects", "proposed"),
        ("Akzeptiert, vorbehaltlich der Kosten", "proposed"),
        ("Accepted? (see #42)", "proposed"),
        ("Accepted (?)", "proposed"),
        ("Rejected?", "proposed"),
    ],
)
def test_a_qualified_status_is_noted_with_its_line_and_the_status_taken(status, expected):
    (entry,), notes = entries_and_notes(f"# Use a queue\n\n## Status\n\n{status}\n{BODY}")

    assert entry.fields["status"] == expected
    assert [(note.severity, note.line, note.message) for note in notes] == [
        ("warning", 5, f"status {status!r} is read as {expected}")
    ]


@pytest.mark.parametrize(
    ("status", "expected", "timestamp", "valid_until"),
    [
        ("Trial until 2026-12-31", "proposed", None, "2026-12-31T00:00:00Z"),
        ("Accepted until 2026-12-31", "accepted", None, "2026-12-31T00:00:00Z"),
        ("Accepted 2026-01-02 (trial until 31 December 2026)", "accepted", "2026-01-02", "2026-12-31T00:00:00Z"),
        ("Deferred until 2026-12-31", "proposed", None, None),
        ("Accepted since 2026-01-02", "accepted", "2026-01-02", None),
    ],
)
@pytest.mark.parametrize("form", ["Status: {}", "## Status\n\n{}"])
def test_the_end_date_in_a_status_is_the_valid_until_of_the_decision(form, status, expected, timestamp, valid_until):
    record = read(f"# Use a queue\n\n{form.format(status)}\n{BODY}")

    assert record.status == expected
    assert record.timestamp == (timestamp and f"{timestamp}T00:00:00Z")
    assert getattr(record, "valid_until", None) == valid_until


@pytest.mark.parametrize(
    "status",
    [
        "Accepted",
        "Accepted, supersedes the rejected ADR-2",
        "Accepted (open source)",
        "Accepted on 2026-01-02",
        "Accepted by Ana Meier",
        "Accepted (ADR-7)",
    ],
)
def test_an_unqualified_accepted_status_is_not_noted(status):
    (entry,), notes = entries_and_notes(f"# Use a queue\n\n## Status\n\n{status}\n{BODY}")

    assert entry.fields["status"] == "accepted"
    assert not [note for note in notes if "is read as" in note.message]


def test_a_record_that_names_a_proposed_successor_is_superseded_with_a_warning():
    old, new = "docs/adr/0001-use-a-queue.md", "docs/adr/0002-use-a-log.md"
    files = [
        (old, f"# 1. Use a queue\n\n## Status\n\nSuperseded by ADR-2\n{BODY}".encode()),
        (new, f"# 2. Use a log\n\n## Status\n\nProposed\n{BODY}".encode()),
    ]

    reading = read_records(files)

    assert [(note.path, note.line, note.message) for note in reading.notes if note.severity == "warning"] == [
        (old, 5, f"superseded by {new}, which is proposed; it counts as superseded")
    ]
    assert reading.entries[1].links == (("supersedes", "0001-use-a-queue"),)


def entries_and_notes(text):
    reading = read_records([(NAME, text.encode())])
    return reading.entries, reading.notes


@pytest.mark.parametrize(
    ("path", "status", "is_noted"),
    [
        ("docs/adr/0008-queue.md", "Accepted", True),
        ("docs/adr/0008-queue.md", "Rejected", False),
        ("docs/adr/0008-queue.md", "Accepted. Supersedes ADR-7", False),
        ("web/adr/0008-queue.md", "Accepted", False),
    ],
)
def test_two_accepted_records_with_one_title_are_noted_and_have_own_topics(path, status, is_noted):
    first = f"# 7. Use a queue\n\n## Status\n\nAccepted\n{BODY}"
    second = f"# 8. Use a queue\n\n## Status\n\n{status}\n{BODY}"

    reading = read_records([(NAME, first.encode()), (path, second.encode())])

    topics = {entry.place: entry.fields["topic"] for entry in reading.entries}
    noted = [(note.severity, note.path) for note in reading.notes if f"has the title of {NAME}" in note.message]
    assert noted == ([("warning", path)] if is_noted else [])
    assert topics[path] == path.replace("/", "-").replace(".", "-")
