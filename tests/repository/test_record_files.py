"""The survey of a repository for decision records, and the reasons for skipped files."""

import subprocess

import pytest

from jidomem.exchange.adr import read_records
from jidomem.repository.other_tools import ADR, from_path, scan_folder
from jidomem.repository.record_files import Survey, reads_like_record, survey

NYGARD = "# 1. Use a queue\n\n## Status\n\nAccepted\n\n## Context\n\nBursts.\n\n## Decision\n\nWe use one.\n"
FREE = "# Use a queue\n\nOrders come in bursts, so they wait in a queue.\n"
RFC = "- Start Date: 2020-01-02\n- RFC PR: #1\n\n# Summary\n\nA queue.\n\n# Motivation\n\nBursts.\n"
GUIDE = "# Queues\n\n## Decision trees\n\nThese are trees.\n\n## Status codes\n\n200.\n"
#: A path, its content, and True for a record, the reason for a skipped file, or None for an unreported one.
LAYOUTS = [
    # by the name of the folder, at any depth
    ("docs/adr/0001-use-a-queue.md", NYGARD, True),
    ("doc/adr/0001-use-a-queue.md", FREE, True),
    ("adr/0001-use-a-queue.md", FREE, True),
    (".adr/0001-use-a-queue.md", FREE, True),
    ("src/adr/0001-use-a-queue.md", FREE, True),
    ("docs/ADRs/ADR-001-use-a-queue.md", FREE, True),
    ("docs/a/b/c/adr/0001-use-a-queue.md", FREE, True),
    ("docs/adr/backend/0001-use-a-queue.md", FREE, True),
    ("docs/adr/2024/q1/0001-use-a-queue.md", FREE, True),
    ("docs/decisions/0001-use-a-queue.md", FREE, True),
    ("decisions/0001-use-a-queue.md", FREE, True),
    ("docs/design/decisions/0001-use-a-queue.md", FREE, True),
    ("doc/architecture/decisions/0001-use-a-queue.md", FREE, True),
    ("docs/architecture-decisions/adr001-use-a-queue.md", FREE, True),
    ("docs/architecture_decisions/1-use-a-queue.md", FREE, True),
    ("architecture-decision-record/001-Use-a-queue.md", FREE, True),
    ("docs/architecture-decision-records/0001_use_a_queue.md", FREE, True),
    ("docs/decision-records/2022-02-03-use-a-queue.md", FREE, True),
    ("docs/decision_records/api/API-001-use-a-queue.md", FREE, True),
    ("docs/technical-decisions/0001-use-a-queue.md", FREE, True),
    ("packages/core/docs/adr/20200924-use-a-queue.md", FREE, True),
    ("docs/adr/0001 - Use a queue.md", FREE, True),
    ("docs/adr/0001-use-decisions.md", FREE, True),
    ("docs/adr/0014-project-templates.md", FREE, True),
    ("docs/adr/0005-use-a-queue.mdx", FREE, True),
    ("docs/adr/use-a-queue.md", NYGARD, True),
    # requests for comments
    ("rfcs/0001-use-a-queue.md", RFC, True),
    ("rfc/20240102-use-a-queue.md", FREE, True),
    ("docs/rfc/RFC-001-use-a-queue.md", FREE, True),
    ("text/0001-use-a-queue.md", RFC, True),
    ("20240102-use-a-queue.md", RFC, True),
    # by the name of the file
    ("adr-001-use-a-queue.md", NYGARD, True),
    ("docs/architecture/adr-001-use-a-queue.md", NYGARD, True),
    ("docs/architecture/adr001-use-a-queue.md", NYGARD, True),
    ("docs/ADR-0001.md", NYGARD, True),
    ("docs/PAY-ADR-001-use-a-queue.md", NYGARD, True),
    # by the content alone
    ("docs/architecture/0001-use-a-queue.md", NYGARD, True),
    ("docs/architecture/use-a-queue.md", NYGARD, True),
    ("docs/design/use-a-queue.md", NYGARD.replace("## ", "### "), True),
    ("docs/proposals/use-a-queue.md", NYGARD, True),
    ("docs/architecture/queues.md", GUIDE, None),
    ("docs/0001-queues.md", GUIDE, None),
    ("src/queue.md", NYGARD, None),
    ("src/0001-use-a-queue.py", NYGARD, None),
    # a folder for each record
    ("docs/adr/0001-use-a-queue/README.md", FREE, True),
    ("docs/decision-records/2022-03-02-performance-tests/README.md", FREE, True),
    # and what lies beside them
    ("docs/adr/README.md", FREE, "an index, not a record"),
    ("docs/adr/index.md", FREE, "an index, not a record"),
    ("docs/adr/decision-log.md", FREE, "an index, not a record"),
    ("docs/adr/template.md", NYGARD, "a template"),
    ("docs/adr/0000-template.md", NYGARD, "a template"),
    ("docs/adr/adr-template-bare-minimal.md", NYGARD, "a template"),
    ("docs/architecture/adr.template.md", NYGARD, "a template"),
    ("rfcs/0000-template.md", RFC, "a template"),
    ("docs/adr/0001-use-a-queue.adoc", FREE, "AsciiDoc is not read, only Markdown"),
    ("docs/architecture/decisions/0001-use-a-queue.rst", FREE, "reStructuredText is not read, only Markdown"),
    ("docs/adr/0001-use-a-queue.png", FREE, None),
    ("rfc/rfc2822.txt", FREE, None),
    ("docs/adr/meeting.md", FREE, "not a decision record (no 'Decision' or 'Decision Outcome' section)"),
    ("docs/adr/0001-use-a-queue.md", "# Use a queue\n", "not a decision record (only a title)"),
    ("docs/adr/0001-use-a-queue.md", "", "not a decision record (empty)"),
    ("docs/proposals/use-a-queue.md", FREE, "a design proposal, not a decision record"),
    ("keps/sig-apps/1234-use-a-queue/README.md", FREE, "a design proposal, not a decision record"),
    ("tests/fixtures/adr/0001-use-a-queue.md", NYGARD, "in a folder of samples or third parties"),
    ("packages/core/integration-tests/docs/adr/0001-use-a-queue.md", NYGARD, "in a folder of samples or third parties"),
    ("vendor/queue/docs/adr/0001-use-a-queue.md", NYGARD, "in a folder of samples or third parties"),
]


def outcomes(scan):
    """The result for each file of a scan: True for a record, or the reason for a skipped file."""
    files = [file for source in scan.sources if source.kind == ADR for file in source.files]
    read = read_records(files)
    results = {entry.place: True for entry in read.entries}
    results |= {note.path: note.reason for note in read.notes if note in read.skipped}
    return results | {each.path: each.why for each in scan.passed}


def create_repository(base, files):
    for path, text in files.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_text(text)
    subprocess.run(["git", "init", "-q", base], check=True)
    return base


@pytest.mark.parametrize(("path", "text", "expected"), LAYOUTS, ids=lambda value: str(value)[:60])
def test_a_file_is_a_record_or_skipped_with_a_reason_by_path_and_content(path, text, expected, tmp_path):
    results = outcomes(scan_folder(create_repository(tmp_path, {path: text}), (ADR,)))

    assert results == ({} if expected is None else {path: expected})


@pytest.mark.parametrize(
    ("paths", "copies"),
    [
        (
            ["rfc/20241206-registries.md", "rfc/20241206-registries/1-primer.md"],
            {"rfc/20241206-registries/1-primer.md": "a part of rfc/20241206-registries.md"},
        ),
        (
            ["adr/0009-history.md", "adr/0009/notes.md", "adr/2024/0010-other.md"],
            {"adr/0009/notes.md": "a part of adr/0009-history.md"},
        ),
        (
            ["adr/0009-history/README.md", "adr/0009-history/renaming.md"],
            {"adr/0009-history/renaming.md": "a part of adr/0009-history/README.md"},
        ),
        (
            ["docs/adr/0001-a.md", "docs/adr/zh-CN/0001-a.md", "docs/adr/0001-a.ja.md", "docs/adr/db/0001-a.md"],
            dict.fromkeys(("docs/adr/0001-a.ja.md", "docs/adr/zh-CN/0001-a.md"), "a translation of docs/adr/0001-a.md"),
        ),
        (
            ["docs/de/adr/0001-a.md", "docs/en/adr/0001-a.md"],
            {"docs/de/adr/0001-a.md": "a translation of docs/en/adr/0001-a.md"},
        ),
        (["docs/de/adr/0001-a.md"], {}),
        (
            ["docs/adr/0001-a.md", "i18n/fr/docs/current/adr/0001-a.md"],
            {"i18n/fr/docs/current/adr/0001-a.md": "a translation of docs/adr/0001-a.md"},
        ),
        (
            ["docs/adr/0001-a.md", "versioned_docs/version-1.2/adr/0001-a.md"],
            {"versioned_docs/version-1.2/adr/0001-a.md": "an older version of docs/adr/0001-a.md"},
        ),
    ],
)
def test_parts_translations_and_older_versions_of_a_record_are_skipped(paths, copies):
    surveyed = survey(paths)

    assert dict(surveyed.passed) == copies
    assert surveyed == Survey(sorted(set(paths) - copies.keys()), [], surveyed.passed)


@pytest.mark.parametrize(
    ("name", "text"), [(".adr-dir", "notes/log\n"), (".log4brains.yml", "project:\n  adrFolder: ./notes/log\n")]
)
def test_records_are_found_in_the_folder_configured_for_another_tool(name, text, tmp_path):
    scan = scan_folder(create_repository(tmp_path, {name: text, "notes/log/0001-use-a-queue.md": NYGARD}), (ADR,))

    assert outcomes(scan) == {"notes/log/0001-use-a-queue.md": True}


def test_numbered_pages_in_a_named_folder_are_records_by_their_sections(tmp_path):
    files = {"notes/0001-a.md": NYGARD, "notes/0002-b.md": RFC, "notes/README.md": FREE, "notes/c.md": FREE}
    base = create_repository(tmp_path, files)

    assert outcomes(from_path(base, base / "notes")) == {
        "notes/0001-a.md": True,
        "notes/0002-b.md": True,
        "notes/README.md": "an index, not a record",
        "notes/c.md": "not a decision record (no 'Decision' or 'Decision Outcome' section)",
    }


@pytest.mark.parametrize(
    "text",
    [
        "# A\n\n## Status\n\nAccepted\n\n## Decision\n\nWe do.\n",
        "A\n=\n\nStatus\n------\n\nAccepted\n\nDecision\n--------\n\nWe do.\n",
        "# A\n\n**Context**\n\nBursts.\n\n**Decision:**\n\nWe do.\n",
        "# A\n\n## 1. Context and Problem Statement\n\nBursts.\n\n## 2. Decision Outcome\n\nWe do.\n",
    ],
)
def test_a_page_is_recognised_as_a_record_by_its_headings(text):
    assert reads_like_record(text)
    assert not reads_like_record(text.replace("Decision", "Discussion"))
    assert not reads_like_record("A decision.\nStatus\nDecision\n")
