"""A repeated import updates memory to its sources: it writes no unchanged entry and undoes no decision of a curator."""

import json
import random
import shutil
import subprocess
import tempfile
from datetime import UTC, datetime
from difflib import SequenceMatcher
from pathlib import Path

import pytest
from conftest import examples
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import jidomem
from jidomem.base.clock import Sources
from jidomem.errors import InvalidRequest
from jidomem.exchange import sync_plan
from jidomem.read.derived import pending
from jidomem.records.policy import PolicyChange
from jidomem.repository.other_tools import SOURCE_KINDS, from_path, scan_folder
from jidomem.runtime.adoption import Scope, adopt, compare
from jidomem.write.settlement import Settlement

ADR = "docs/adr/0001-use-a-queue.md"
RECORD = "# {title}\n\n## Status\n\n{status}\n\n## Context\n\n{why}\n\n## Decision\n\nWe do it.\n"
ANA = "https://jido.ai/agents/ana"


def record(title="Use a queue", status="Accepted", why="Orders come in bursts."):
    return RECORD.format(title=title, status=status, why=why)


class Repository:
    """A folder with sources, and a memory in it whose only agent is a curator."""

    def __init__(self, base, sources=None):
        self.base = Path(base)
        self.memory = jidomem.open(self.base / ".jidomem", project="p", agent="ana", sources=sources)
        self.memory.writer.change_policy("p", [PolicyChange(agent=ANA, grants="Administrator")])

    def write(self, path, text):
        (self.base / path).parent.mkdir(parents=True, exist_ok=True)
        (self.base / path).write_text(text)

    def remove(self, path):
        (self.base / path).unlink()

    def sync(self, path=None):
        """Import all files, or the file at *path*; return the number of entries by change."""
        found = scan_folder(self.base) if path is None else from_path(self.base, self.base / path)
        scope = Scope(tuple(SOURCE_KINDS)) if path is None else Scope((), (path,))
        self.adopted, self.report = adopt(self.memory, self.base, found.sources, scope)
        assert self.report.refusals == []
        counts = {}
        for each in self.adopted:
            for change, count in each.changes().items():
                counts[change] = counts.get(change, 0) + count
        return {change: count for change, count in counts.items() if count and change != "unchanged"}

    def differences(self):
        scope = Scope(tuple(SOURCE_KINDS))
        plan = compare(self.memory, self.base, scan_folder(self.base).sources, scope).plan
        return [(step.change, step.path) for step in plan.steps if step.change != "unchanged"]

    def commits(self):
        return sorted(path.name for path in (self.base / ".jidomem").rglob("*.ttl"))

    def pending(self):
        rows = self.memory.reader.ask("proposals", project="p")
        return {row["item"]: row["summary"] for row in rows}

    def accept_all(self):
        outcomes = self.memory.writer.settle_many("p", [Settlement(item, "accept") for item in self.pending()])
        assert [outcome.status for outcome in outcomes] == ["asserted"] * len(outcomes)

    def active(self):
        """Return the active imported memories: summary and position."""
        rows = self.memory.reader.select("p", _ACTIVE)
        return sorted((row["summary"], row["status"] or "", row["why"] or "", row["blob"][41:]) for row in rows)

    def item(self, summary):
        (item,) = {row["item"] for row in self.memory.reader.select("p", _ACTIVE) if row["summary"] == summary}
        return item

    def said(self, item):
        return self.memory.reader.get_memory("p", item)


_ACTIVE = """
PREFIX jido: <https://jido.ai/ontology#>
SELECT ?item ?summary ?status ?why ?blob WHERE {
  ?item jido:hasAssertionStatus jido:Asserted ; jido:sourceBlob ?blob ; jido:summary ?summary .
  OPTIONAL { ?item jido:decisionStatus ?status }
  OPTIONAL { ?item jido:rationale ?why }
  FILTER NOT EXISTS { ?item jido:supersededBy|jido:invalidatedBy ?end }
} ORDER BY ?item ?summary ?status ?why ?blob
"""


@pytest.fixture
def repository(tmp_path):
    opened = Repository(tmp_path)
    yield opened
    opened.memory.close()


def test_a_newly_deprecated_record_is_a_deprecated_decision_that_supersedes_the_old_one(repository):
    repository.write(ADR, record())
    assert repository.sync() == {"added": 1}
    old = repository.item("Use a queue")

    repository.write(ADR, record(status="Deprecated"))

    assert repository.sync() == {"changed": 1}
    new = repository.said(repository.item("Use a queue"))["properties"]
    assert (new["decisionStatus"], new["supersedes"], new["previousImport"]) == (["deprecated"], [old], [old])
    assert f"{ADR}: accepted → deprecated" in str(repository.said(repository.item("Use a queue")))
    assert repository.said(old)["status"] == "superseded"


def test_unchanged_sources_write_nothing_and_all_changes_are_one_commit(repository):
    repository.write(ADR, record())
    repository.write("docs/adr/0002-use-a-log.md", record("Use a log"))
    repository.write("CLAUDE.md", "# Rules\n\n- Never edit generated files\n- Sign every commit\n")
    assert repository.sync() == {"added": 4}
    before = repository.commits()

    assert (repository.sync(), repository.differences(), repository.commits()) == ({}, [], before)

    repository.write(ADR, record(why="Other reasons."))
    repository.write("CLAUDE.md", "# Rules\n\n- Never edit generated files\n- Sign each and every commit\n")
    assert repository.differences() == [("changed", ADR), ("changed", "CLAUDE.md")]
    assert repository.sync() == {"changed": 2}
    assert len(repository.commits()) == len(before) + 1


def test_a_superseded_record_ends_with_the_import_of_its_successor(repository):
    repository.write(ADR, record())
    repository.sync()
    old = repository.item("Use a queue")
    repository.write(ADR, record(status="Superseded by [a log](0002-use-a-log.md)"))
    repository.write("docs/adr/0002-use-a-log.md", record("Use a log"))

    assert repository.sync() == {"added": 1, "changed": 1}

    assert [row[0] for row in repository.active()] == ["Use a log"]
    assert repository.said(repository.item("Use a log"))["properties"]["supersedes"] == [old]
    assert repository.differences() == []


def test_a_record_superseded_by_an_imported_one_ends_and_is_restored_when_accepted_again(repository):
    repository.write(ADR, record())
    repository.write("docs/adr/0002-use-a-log.md", record("Use a log"))
    repository.sync()

    repository.write(ADR, record(status="Superseded by ADR-0002"))
    repository.sync()
    assert ([row[0] for row in repository.active()], repository.differences()) == (["Use a log"], [])

    repository.write(ADR, record())
    repository.sync()
    assert [row[0] for row in repository.active()] == ["Use a log", "Use a queue"]
    assert repository.differences() == []


QUEUE, LOG, PAGES_ON_SERVER = "docs/adr/0001-a.md", "docs/adr/0002-b.md", "docs/adr/0003-c.md"


def test_a_supersession_applies_once_the_withdrawal_of_its_own_successor_is_accepted(repository):
    repository.write(QUEUE, record("Use a queue", "Superseded by ADR-0002"))
    repository.write(LOG, record("Use a log", why="Logs are kept."))
    repository.sync()
    repository.write(QUEUE, record("Render on the server", "Superseded by ADR-0002", "Telephones are slow."))
    repository.write(LOG, record("Use a queue"))

    assert repository.sync() == {"added": 1, "removed": 1}
    assert (repository.sync(), repository.differences()) == ({}, [])
    assert [row[0] for row in repository.active()] == ["Render on the server", "Use a log"]

    repository.accept_all()
    assert repository.sync() == {"changed": 2}
    assert [row[0] for row in repository.active()] == ["Use a queue"]
    assert (repository.sync(), repository.differences()) == ({}, [])


def test_the_last_record_of_a_chain_supersedes_all_before_an_inactive_middle(repository):
    repository.write(LOG, record("Use a log", "Superseded by ADR-0003", "Logs are kept."))
    repository.write(PAGES_ON_SERVER, record("Render on the server", why="Telephones are slow."))
    repository.sync()
    last = repository.item("Render on the server")
    repository.write(QUEUE, record("Use a queue", "Superseded by ADR-0002"))

    assert repository.sync() == {"added": 1, "changed": 1}

    assert [row[0] for row in repository.active()] == ["Render on the server"]
    ended = repository.said(repository.item("Render on the server"))["properties"]["supersedes"]
    assert (last in ended, len(ended)) == (True, 2)
    assert (repository.sync(), repository.differences()) == ({}, [])


def test_a_record_with_the_topic_of_a_superseded_memory_is_imported(repository):
    repository.write(QUEUE, record("Use a queue"))
    repository.sync()
    repository.write(QUEUE, record("Sign all releases", why="Mirrors are broken into."))
    repository.sync()
    repository.write(QUEUE, record("Use a queue", "Superseded by ADR-0002"))
    repository.write(LOG, record("Use a log", why="Logs are kept."))
    repository.write(PAGES_ON_SERVER, record("Sign all releases", "Superseded by ADR-0002", "Mirrors are broken into."))

    repository.sync()  # refuses nothing

    assert ([row[0] for row in repository.active()], repository.differences()) == (["Use a log"], [])


@pytest.mark.parametrize("why", ["Orders come in bursts.", "Other reasons."])
def test_a_record_is_recognised_by_its_content_before_the_history_of_its_path(repository, why):
    place = "adr/0001-d.md"
    repository.write(place, record("Sign all releases", why="Mirrors are broken into."))
    repository.sync()
    repository.write(place, record("Use a queue"))
    repository.sync()
    repository.remove(place)
    repository.write(QUEUE, record("Sign all releases", why="Mirrors are broken into."))
    repository.write(LOG, record("Use a queue", why=why))
    repository.sync()
    repository.remove(QUEUE)
    repository.remove(LOG)
    repository.write(place, record("Use a queue"))

    repository.sync()  # refuses nothing

    assert repository.differences() == []
    assert [row[3] for row in repository.active() if row[0] == "Use a queue"] == [place]


def test_the_proposal_of_a_record_leaves_the_queue_when_another_supersedes_it(repository):
    repository.write(QUEUE, record())
    repository.sync()
    repository.memory.writer.invalidate("p", repository.item("Use a queue"), reason="it never held")
    repository.write(QUEUE, record(why="Other reasons."))
    assert (repository.sync(), len(repository.pending())) == ({"conflict": 1}, 1)

    repository.write(QUEUE, record(status="Superseded by ADR-0002", why="Other reasons."))
    repository.write(LOG, record("Use a log", why="Logs are kept."))

    assert repository.sync() == {"added": 1, "changed": 1}
    assert (repository.pending(), [row[0] for row in repository.active()]) == ({}, ["Use a log"])
    assert (repository.sync(), repository.differences()) == ({}, [])


@pytest.mark.parametrize("name", ["docs/adr/0001-queues.md", "doc/adr/0001-use-a-queue.md", "docs/adr/0007-q.md"])
def test_a_moved_record_is_superseded_by_itself_with_its_new_path(repository, name):
    repository.write(ADR, record())
    repository.sync()
    old = repository.item("Use a queue")
    repository.remove(ADR)
    repository.write(name, record())

    assert repository.sync() == {"moved": 1}

    new = repository.said(repository.item("Use a queue"))["properties"]
    assert (new["about"], new["supersedes"], repository.pending()) == ([name], [old], {})
    assert repository.report.entries[0].moved_from == ADR
    assert repository.differences() == []


def test_moved_records_of_one_number_are_recognised_by_their_content(repository):
    for folder, title in (("docs/adr", "Use a queue"), ("web/adr", "Render on the server")):
        repository.write(f"{folder}/0001-a.md", record(title, why=f"Because of {title.lower()}."))
    repository.sync()
    for folder, title in (("adr/one", "Render on the server"), ("adr/two", "Use a queue")):
        repository.write(f"{folder}/0001-b.md", record(title, "Deprecated", f"Because of {title.lower()}."))
    shutil.rmtree(repository.base / "docs")
    shutil.rmtree(repository.base / "web")

    assert repository.sync() == {"changed": 2}

    for folder, title in (("adr/one", "Render on the server"), ("adr/two", "Use a queue")):
        fields = repository.said(repository.item(title))["properties"]
        (old,) = fields["supersedes"]
        assert (fields["about"], repository.said(old)["properties"]["summary"]) == (
            [f"{folder}/0001-b.md"],
            [title],
        )


NYGARD = """# {title}

## Status

{status}

## Context

We need to decide.

## Decision

{decision}

## Consequences

We must train the team and update the documentation.
"""


def page(title, decision, status="Accepted"):
    return NYGARD.format(title=title, decision=decision, status=status)


def test_a_new_record_is_not_the_renamed_form_of_a_removed_one_that_has_its_template(repository):
    repository.write("docs/adr/0001-ship-with-dhl.md", page("Ship with DHL", "We ship with DHL."))
    repository.write("docs/adr/0002-log-as-json.md", page("Log as JSON", "We log as JSON."))
    repository.sync()
    repository.remove("docs/adr/0001-ship-with-dhl.md")
    repository.write("docs/adr/0003-cache-in-redis.md", page("Cache in Redis", "We cache in Redis."))

    assert repository.sync() == {"added": 1, "removed": 1}

    assert [row[0] for row in repository.active()] == ["Cache in Redis", "Log as JSON", "Ship with DHL"]
    assert [*repository.pending().values()] == [
        "Withdraw, as its source is removed from docs/adr/0001-ship-with-dhl.md: Ship with DHL"
    ]


def test_a_record_of_another_folder_with_the_number_of_a_removed_one_is_another_record(repository):
    repository.write("docs/adr/0001-ship.md", page("Ship with DHL", "We ship with DHL."))
    repository.sync()
    repository.remove("docs/adr/0001-ship.md")
    repository.write("web/adr/0001-cache.md", page("Cache in Redis", "Redis runs beside the shop."))

    assert repository.sync() == {"added": 1, "removed": 1}


def test_a_record_with_a_new_title_and_number_and_the_same_decision_is_a_renamed_one(repository):
    decision = "Parcels go to DHL: it collects at noon, and its returns cost nothing."
    repository.write("docs/adr/0001-ship-with-dhl.md", page("Ship with DHL", decision))
    repository.write("docs/adr/0002-log-as-json.md", page("Log as JSON", "We log as JSON."))
    repository.sync()
    old = repository.item("Ship with DHL")
    repository.remove("docs/adr/0001-ship-with-dhl.md")
    repository.write("docs/adr/0003-parcels.md", page("Parcel service of the shop", decision))

    assert repository.sync() == {"changed": 1}

    new = repository.said(repository.item("Parcel service of the shop"))["properties"]
    assert (new["supersedes"], repository.pending()) == ([old], {})


@pytest.mark.parametrize("link", ["[25. Print ZPL](0025-print-zpl.md)", "ADR-0025", "Print ZPL"])
def test_a_record_may_be_removed_in_the_step_that_adds_its_successor(repository, link):
    repository.write("docs/adr/0025-print-zpl.md", record("Print ZPL", why="Labels."))
    repository.sync()
    old = repository.item("Print ZPL")
    repository.remove("docs/adr/0025-print-zpl.md")
    repository.write("docs/adr/0026-print-pdf.md", record("Print PDF", f"Accepted\n\nSupersedes {link}", "Labels."))

    assert repository.sync() == {"added": 1, "removed": 1}

    assert repository.said(repository.item("Print PDF"))["properties"]["supersedes"] == [old]
    assert (repository.pending(), repository.report.notes) == ({}, [])
    assert (repository.sync(), repository.report.notes, repository.differences()) == ({}, [], [])


def test_a_number_names_no_removed_record_of_another_folder(repository):
    repository.write("docs/adr/0025-print-zpl.md", record("Print ZPL", why="Labels."))
    repository.sync()
    repository.remove("docs/adr/0025-print-zpl.md")
    repository.write("web/adr/0026-cache.md", record("Cache pages", "Accepted\n\nSupersedes ADR-0025", "Slow."))

    assert repository.sync() == {"added": 1, "removed": 1}

    assert [row[0] for row in repository.active()] == ["Cache pages", "Print ZPL"]
    assert [note for note in repository.report.notes if "neither in these files nor in memory" in note] != []


def test_the_withdrawal_of_a_removed_record_is_moot_once_another_memory_took_its_place(repository):
    repository.write("docs/adr/0025-print-zpl.md", record("Print ZPL", why="Labels."))
    repository.sync()
    old, writer = repository.item("Print ZPL"), repository.memory.writer
    repository.remove("docs/adr/0025-print-zpl.md")
    assert repository.sync() == {"removed": 1}
    (withdrawal,) = repository.pending()
    fields = {"type": "decision", "rationale": "Printers were sold.", "topic": "print", "supersedes": [old]}
    reader = repository.memory.reader
    assert pending(reader, "p") == 1
    new = writer.remember("p", "Print PDF", reason="Printers were sold.", **fields).iri

    assert repository.pending() == {}
    assert pending(reader, "p") == 0
    with pytest.raises(InvalidRequest, match="disagrees with no active memory"):
        writer.settle("p", withdrawal, "supersede", reason="no")

    writer.undo("p", new, reason="They were not.")
    assert [*repository.pending()] == [withdrawal]
    writer.settle("p", withdrawal, "supersede", reason="gone")
    assert repository.active() == []


def test_an_edited_memory_of_a_removed_record_may_still_be_withdrawn(repository):
    repository.write("docs/adr/0025-print-zpl.md", record("Print ZPL", why="Labels."))
    repository.sync()
    repository.remove("docs/adr/0025-print-zpl.md")
    repository.sync()
    old, (withdrawal,), writer = repository.item("Print ZPL"), repository.pending(), repository.memory.writer
    writer.revise("p", old, changes={"rationale": "Zebras read it."}, reason="clearer")

    assert [*repository.pending()] == [withdrawal]
    assert writer.settle("p", withdrawal, "supersede", reason="gone").status == "asserted"
    assert repository.active() == []


MERGED = "<<<<<<< HEAD\n{}\n=======\n{}\n>>>>>>> topic\n"


def test_a_file_in_an_unresolved_merge_is_refused_and_its_memories_stay(repository):
    issue = '{{"id": "bd-1", "title": "{}", "status": "open"}}'.format
    sources = {
        ADR: (record(), record(status=MERGED.format("Rejected", "Accepted"))),
        "CLAUDE.md": (
            "- Never deploy on Fridays\n",
            MERGED.format("- Never deploy on Mondays", "- Deploy on Tuesdays"),
        ),
        ".beads/issues.jsonl": (issue("One"), MERGED.format(issue("Two"), issue("Three"))),
    }
    for path, (text, _) in sources.items():
        repository.write(path, text)
    repository.sync()
    for path, (_, text) in sources.items():
        repository.write(path, text)

    compared = compare(
        repository.memory, repository.base, scan_folder(repository.base).sources, Scope(tuple(SOURCE_KINDS))
    )

    assert [step for step in compared.plan.steps if step.change != "unchanged"] == []
    assert sorted(broken.place for broken in compared.sources.broken) == [
        ".beads/issues.jsonl:1", "CLAUDE.md:1", f"{ADR}:5"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("faulty", "removed", "note"),
    [
        ('{"id": "bd-3", "status": "open"}', 1, ""),
        ('{"id": "bd-2", "title": "Two", "status": "lost"}', 0, ""),
        ('{"title": "Three", "status": "open"}', 0, "warning: entries that are missing: 1, "),
        ('{"id": ', 0, "warning: entries that are missing: 1, "),
    ],
)
def test_an_issue_is_removed_unless_a_refused_entry_may_be_it(repository, faulty, removed, note):
    path, issue = ".beads/issues.jsonl", '{{"id": "bd-{}", "title": "{}", "status": "open"}}\n'.format
    repository.write(path, issue(1, "One") + issue(2, "Two"))
    repository.sync()
    repository.accept_all()
    repository.write(path, issue(1, "One") + faulty)

    plan = compare(repository.memory, repository.base, scan_folder(repository.base).sources, Scope(tuple(SOURCE_KINDS)))

    assert [step.summary for step in plan.plan.steps if step.change == "removed"] == ["Two"] * removed
    assert [each for each in plan.sources.notes if each.startswith(f"{path}: {note}")] == plan.sources.notes
    assert len(plan.sources.notes) == bool(note)


def test_the_marks_of_a_merge_in_fenced_code_are_a_sample(repository):
    repository.write(ADR, record(why=f"A merge looks so:\n\n```\n{MERGED.format('a', 'b')}```"))

    assert repository.sync() == {"added": 1}


def test_accepted_notes_stay_accepted_when_their_page_is_renamed(repository):
    repository.write("CLAUDE.md", "# Rules\n\n- Never edit generated files\n")
    repository.sync()
    repository.accept_all()
    (repository.base / "CLAUDE.md").rename(repository.base / "AGENTS.md")

    assert repository.sync() == {"moved": 1}

    stored = repository.said(repository.item("Never edit generated files"))
    assert (stored["properties"]["confirmedBy"], repository.pending()) == ([ANA], {})
    assert [row[3] for row in repository.active()] == ["AGENTS.md"]


def test_a_note_is_not_the_changed_form_of_another_below_the_same_long_heading(repository):
    page = "# Rules\n\n## When you review a pull request of the billing service\n\n- {}\n".format
    repository.write("CLAUDE.md", page("Recompute all taxes by hand"))
    repository.sync()
    repository.accept_all()
    repository.write("CLAUDE.md", page("Name the ticket in its title"))
    assert repository.sync() == {"added": 1, "removed": 1}

    repository.write("CLAUDE.md", page("Recompute some of the taxes by hand"))
    assert repository.differences() == [("changed", "CLAUDE.md"), ("removed", "CLAUDE.md")]


def test_notes_moved_to_another_folder_are_proposed_again(repository):
    repository.write("web/AGENTS.md", "# Rules\n\n- Never edit generated files\n")
    repository.sync()
    repository.accept_all()
    repository.write("api/AGENTS.md", "# Rules\n\n- Never edit generated files\n")
    repository.remove("web/AGENTS.md")

    assert repository.sync() == {"moved": 1}

    (item,) = repository.pending()
    assert repository.said(item)["properties"]["about"] == ["api"]
    assert repository.differences() == []


def test_a_removed_source_has_one_proposed_withdrawal_which_ends_when_it_returns(repository):
    repository.write(ADR, record())
    repository.sync()
    repository.remove(ADR)

    assert repository.sync() == {"removed": 1}
    (proposal,) = repository.pending()
    assert "Use a queue" in repository.pending()[proposal]
    assert (repository.sync(), repository.differences(), len(repository.active())) == ({}, [], 1)

    repository.write(ADR, record())
    assert repository.sync() == {"added": 1}
    assert (repository.pending(), len(repository.active()), repository.differences()) == ({}, 1, [])

    repository.remove(ADR)
    repository.sync()
    repository.accept_all()
    assert (repository.active(), repository.differences()) == ([], [])
    repository.write(ADR, record())
    assert repository.sync() == {"added": 1}
    assert [row[0] for row in repository.active()] == ["Use a queue"]


def test_a_rejected_withdrawal_is_not_proposed_again(repository):
    repository.write(ADR, record())
    repository.sync()
    repository.remove(ADR)
    repository.sync()
    (proposal,) = repository.pending()

    repository.memory.writer.settle("p", proposal, "reject", reason="it holds without the page, too")

    assert (repository.sync(), repository.pending(), len(repository.active())) == ({}, {}, 1)
    repository.memory.writer.confirm("p", repository.item("Use a queue"))
    assert (repository.sync(), repository.pending(), len(repository.active())) == ({}, {}, 1)


def test_proposals_of_removed_and_of_changed_notes_leave_the_queue(repository):
    repository.write("CLAUDE.md", "# Rules\n\n- Never edit generated files\n- Sign every commit\n")
    repository.sync()
    for text in ("Sign every commit with a key", "Sign every commit with an ssh key"):
        repository.write("CLAUDE.md", f"# Rules\n\n- Never edit generated files\n- {text}\n")
        repository.sync()
    assert sorted(repository.pending().values()) == [
        "Never edit generated files",
        "Sign every commit with an ssh key",
    ]

    repository.write("CLAUDE.md", "# Rules\n\n- Never edit generated files\n")
    assert repository.sync() == {"removed": 1}
    assert [*repository.pending().values()] == ["Never edit generated files"]


@pytest.mark.parametrize("action", ["edit", "withdraw", "replace"])
def test_a_memory_changed_by_a_curator_is_neither_overwritten_nor_restored(repository, action):
    repository.write(ADR, record())
    repository.sync()
    item, writer = repository.item("Use a queue"), repository.memory.writer
    if action == "edit":
        own = writer.revise("p", item, changes={"summary": "Use one queue"}, reason="better said").iri
    elif action == "withdraw":
        own = writer.invalidate("p", item, reason="it never held").iri
    else:
        own = writer.submit_intent("p", {
            "type": "architectural_decision", "summary": "Use two queues", "rationale": "one is slow", "reason": "r",
            "applies_to_project": "p", "asserted_by": "ana", "asserted_in": "s", "confidence": "high",
            "supersedes": [item],
        }).iri  # fmt: skip
    assert (repository.sync(), repository.differences()) == ({}, [])

    repository.write(ADR, record(status="Deprecated"))

    assert repository.sync() == {"conflict": 1}
    (proposal,) = repository.pending()
    assert (repository.report.entries[0].iri, repository.report.entries[0].outcome.status) == (proposal, "proposed")
    assert repository.said(own)["status"] in ("active", "withdrawal")
    assert repository.said(item)["status"] != "active"
    assert (repository.sync(), repository.differences()) == ({}, [])

    writer.settle("p", proposal, "reject", reason="ours is right")
    assert (repository.sync(), repository.differences(), repository.pending()) == ({}, [], {})


def test_an_edit_a_millisecond_after_the_import_is_kept_in_a_conflict(tmp_path):
    moments = [datetime(2026, 11, 23, 8, 0, 0, microsecond, tzinfo=UTC) for microsecond in (0, 640_000, 641_000)]
    repository = Repository(tmp_path, Sources(now=lambda: moments[0] if len(moments) == 1 else moments.pop(0)))
    repository.write(ADR, record())
    repository.sync()
    item = repository.item("Use a queue")
    repository.memory.writer.revise("p", item, changes={"summary": "Use one queue"}, reason="better said")
    repository.write(ADR, record(status="Deprecated"))

    assert repository.sync() == {"conflict": 1}
    assert [row[:2] for row in repository.active()] == [("Use one queue", "accepted")]
    repository.memory.close()


def test_a_rejected_proposal_of_an_unchanged_source_stays_rejected(repository):
    repository.write("CLAUDE.md", "# Rules\n\n- Sign every commit\n")
    repository.sync()
    (proposal,) = repository.pending()
    repository.memory.writer.settle("p", proposal, "reject", reason="we do not")

    assert (repository.sync(), repository.pending()) == ({}, {})


def test_only_sources_below_the_named_path_are_removed(repository):
    repository.write(ADR, record())
    repository.write("web/adr/0001-a.md", record("Render on the server"))
    repository.write("CLAUDE.md", "# Rules\n\n- Sign every commit\n")
    repository.sync()
    repository.remove(ADR)
    repository.remove("CLAUDE.md")

    assert repository.sync("web/adr") == {}
    assert repository.sync("docs") == {"removed": 1}
    assert repository.differences() == [("removed", "CLAUDE.md")]


def test_an_unreadable_or_not_checked_out_file_is_not_removed(repository):
    def git(*arguments):
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments], cwd=repository.base, check=True
        )

    git("init", "-q")
    repository.write(ADR, record())
    repository.write("web/adr/0001-a.md", record("Render on the server"))
    repository.write("web/adr/0002-b.md", record("Cache in the browser"))
    git("add", "docs", "web")
    git("commit", "-qm", "records")
    repository.sync()

    git("sparse-checkout", "set", "web")
    (repository.base / "web/adr/0001-a.md").write_bytes(b"# Caf\xe9\n")
    adopted, report = adopt(
        repository.memory, repository.base, scan_folder(repository.base).sources, Scope(tuple(SOURCE_KINDS))
    )

    assert not (repository.base / ADR).exists()
    assert [entry.place for entry in report.refusals] == ["web/adr/0001-a.md"]
    assert sum(each.changes()["removed"] for each in adopted) == 0
    assert repository.pending() == {}


def test_records_imported_by_version_0_1_0_are_recognised_by_their_iri(repository):
    intent = {
        "type": "architectural_decision", "iri": legacy_iri("p", "0001-use-a-queue"), "summary": "Use a queue",
        "rationale": "the old reading", "applies_to_project": "p", "asserted_by": "ana", "asserted_in": "s",
        "confidence": "high", "topic": "use-a-queue", "about": [ADR], "status": "accepted",
    }  # fmt: skip
    old = repository.memory.writer.submit_intent("p", intent).iri
    repository.write(ADR, record())

    assert repository.sync() == {"changed": 1}

    assert repository.said(repository.item("Use a queue"))["properties"]["supersedes"] == [old]
    assert repository.differences() == []


def legacy_iri(project, name):
    from jidomem.exchange.adr import record_iri

    return record_iri(project, name)


def test_issues_and_graphs_are_synchronised_like_records(repository):
    issue = {"id": "bd-1", "title": "Ship it", "status": "open", "issue_type": "task"}
    other = {**issue, "id": "bd-2", "title": "Test it"}
    entity = {"type": "entity", "name": "Ana", "entityType": "person", "observations": ["reviews on Fridays"]}
    repository.write(".beads/issues.jsonl", f"{json.dumps(issue)}\n{json.dumps(other)}\n")
    repository.write("memory.jsonl", f"{json.dumps(entity)}\n")
    assert repository.sync() == {"added": 3}
    repository.accept_all()

    repository.write(".beads/issues.jsonl", json.dumps({**issue, "status": "closed"}) + "\n")
    repository.write("memory.jsonl", json.dumps({**entity, "observations": ["reviews on Mondays"]}) + "\n")

    assert repository.sync() == {"changed": 2, "removed": 1}
    repository.accept_all()
    assert [row[0] for row in repository.active()] == ["Ana (person): reviews on Mondays", "Ship it"]
    assert (repository.differences(), repository.pending()) == ([], {})


#: A history opens dozens of memories, so shrinking a failing one takes minutes.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
#: Documents that move: each has its own text at every version.
TITLES = ("Use a queue", "Render on the server", "Keep one journal", "Sign all releases")
WHY = {
    "Use a queue": "Orders come in bursts, and the shop must answer while the warehouse is slow.",
    "Render on the server": "Pages were blank for seconds on telephones; HTML arrives faster than scripts run.",
    "Keep one journal": "Two logs disagreed after every crash, so nobody knew which of them had the truth.",
    "Sign all releases": "A mirror was broken into last spring. Customers verify what they download.",
}
RULES = ("Never edit generated files", "Run the linter before a push", "Keep functions short and pure")
PLACES = ("docs/adr/0001-a.md", "docs/adr/0002-b.md", "docs/adr/0003-c.md", "adr/0001-d.md", "docs/adr/0001-e.md")
PAGES = ("CLAUDE.md", "AGENTS.md", "web/AGENTS.md")
STATUSES = (
    "Accepted", "Deprecated", "Rejected", "Superseded by ADR-0002", "Accepted\n\nSupersedes ADR-0001",
    "Superseded by ADR-0001", "Superseded by ADR-0003", "Accepted\n\nSupersedes ADR-0002", "Superseded",
)  # fmt: skip


@st.composite
def histories(draw, statuses=STATUSES):
    """Draw successive states of a repository: the path and version of each document."""
    states = []
    for _ in range(draw(st.integers(2, 5))):
        places = draw(st.lists(st.sampled_from(PLACES), unique=True, max_size=4))
        titles = draw(st.permutations(TITLES))
        state = {
            place: (title, draw(st.sampled_from(statuses)), draw(st.integers(1, 2)))
            for place, title in zip(places, titles, strict=False)
        }
        pages = draw(st.lists(st.sampled_from(PAGES), unique=True, max_size=2))
        rules = draw(st.permutations(RULES))
        cut = draw(st.integers(0, len(RULES)))
        state |= dict(zip(pages, (tuple(rules[:cut]), tuple(rules[cut:])), strict=False))
        states.append(state)
    return states


def write_state(base, state):
    for path in (*PLACES, *PAGES):
        (base / path).unlink(missing_ok=True)
    for path, content in state.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        if path in PLACES:
            title, status, version = content
            text = record(title, status, f"{WHY[title]} Version {version}.")
        else:
            text = f"# Rules of {path.replace('/', ' ')}\n\n" + "".join(f"- {rule}\n" for rule in content)
        (base / path).write_text(text)


@settings(max_examples=examples(6), phases=PHASES)
@given(histories())
def test_each_synchronisation_gives_the_memories_of_a_fresh_import(states):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        synchronised = Repository(Path(name) / "here")
        for number, state in enumerate(states):
            write_state(synchronised.base, state)
            synchronised.sync()
            assert (synchronised.sync(), synchronised.differences()) == ({}, [])
            synchronised.accept_all()
            synchronised.sync()
            synchronised.accept_all()
            before = synchronised.commits()
            assert (synchronised.sync(), synchronised.differences(), synchronised.commits()) == ({}, [], before)

            fresh = Repository(Path(name) / str(number))
            write_state(fresh.base, state)
            fresh.sync()
            fresh.accept_all()
            assert synchronised.active() == fresh.active()
            fresh.memory.close()
        synchronised.memory.close()


@settings(max_examples=examples(6), phases=PHASES)
@given(histories(STATUSES[:3]), st.data())
def test_synchronisation_keeps_edits_withdrawals_and_rejections_of_a_curator(states, data):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        synchronised = Repository(Path(name))
        writer, edited, ended = synchronised.memory.writer, [], []
        for state in states:
            write_state(synchronised.base, state)
            synchronised.sync()
            assert synchronised.sync() == {}
            assert set(edited) <= {summary for summary, *_ in synchronised.active()}
            assert all(synchronised.said(item)["status"] not in ("active", "proposed") for item in ended)
            rows = synchronised.memory.reader.select("p", _ACTIVE)
            free = {row["item"] for row in rows if not row["summary"].startswith("Edited")}
            action = data.draw(st.sampled_from(["edit", "withdraw", "reject", "accept"]))
            if action == "edit" and free:
                item = data.draw(st.sampled_from(sorted(free)))
                edited.append(f"Edited {len(edited)}")
                changes = {"rationale": "said by hand", "summary": edited[-1], "topic": edited[-1]}
                writer.revise("p", item, changes=changes, reason="r")
            elif action == "withdraw" and free:
                item = data.draw(st.sampled_from(sorted(free)))
                writer.invalidate("p", item, reason="wrong")
                ended.append(item)
            elif action == "reject" and synchronised.pending():
                item = data.draw(st.sampled_from(sorted(synchronised.pending())))
                writer.settle("p", item, "reject", reason="no")
                ended.append(item)
        synchronised.memory.close()


@pytest.mark.parametrize("name", ["0014-tags.md", "0015-tags.md", "tags.md"])
@pytest.mark.parametrize("change", ["", " It is edited."])
@pytest.mark.parametrize("link", ["[ADR 14](0014-political-tags.md)", "[tags](0014-political-tags.md)"])
def test_a_record_superseded_by_a_renamed_one_stays_superseded(repository, name, change, link):
    repository.write("docs/adr/0006-no-tags.md", record("Use no tags", f"Superseded by {link}"))
    repository.write("docs/adr/0014-political-tags.md", record("Tag it", why="Content is political."))
    repository.sync()
    (old,) = {entry.iri for entry in repository.report.entries if entry.summary == "Use no tags"}
    repository.remove("docs/adr/0014-political-tags.md")
    repository.write(f"docs/adr/{name}", record("Tag it", why=f"Content is political.{change}"))

    counts = repository.sync()

    assert (counts, repository.report.notes) == ({"changed" if change else "moved": 1}, [])
    assert repository.said(old)["status"] == "superseded"
    assert (repository.sync(), repository.differences()) == ({}, [])


LINKS = (*STATUSES[:3], *(f"Superseded by [it]({Path(place).name})" for place in PLACES))


@settings(max_examples=examples(10), phases=PHASES)
@given(histories(LINKS))
def test_one_synchronisation_applies_links_to_renamed_files(states):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        synchronised = Repository(Path(name))
        for state in states:
            write_state(synchronised.base, state)
            synchronised.sync()
            assert (synchronised.sync(), synchronised.differences()) == ({}, [])
        synchronised.memory.close()


def test_one_word_changed_in_a_long_note_is_a_change_though_its_summary_is_shortened(repository):
    text = (
        "Editions can be scheduled to publish at a designated time. This is done by scheduling a job which queues a"
        " publishing run for the specified time in the key-value store of the deployment, next to all other jobs. A"
        " risk is that if the data in the store is lost the job won't run and the publishing won't occur."
    )
    repository.write("CLAUDE.md", f"{text}\n")
    assert repository.sync() == {"added": 1}
    repository.accept_all()

    repository.write("CLAUDE.md", text.replace("designated", "set") + "\n")

    assert repository.differences() == [("changed", "CLAUDE.md")]


def test_many_changed_and_replaced_notes_are_each_compared_with_few_others(repository, monkeypatch):
    count, drawn = 72, random.Random(1)  # more pairs than are all compared
    words = ["".join(drawn.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(400)]
    texts = [" ".join(drawn.choices(words, k=12)) for _ in range(2 * count)]
    now = [f"{texts[number]} today" if number % 2 else texts[number + count] for number in range(count)]
    compared = []
    monkeypatch.setattr(sync_plan, "SequenceMatcher", lambda *given: compared.append(1) or SequenceMatcher(*given))

    for step in (texts[:count], now):
        repository.write("AGENTS.md", "# Notes\n\n" + "".join(f"- {text}.\n" for text in step))
        changes = repository.sync()

    assert changes == {"changed": count // 2, "added": count // 2, "removed": count // 2}
    assert len(compared) < 25 * count
