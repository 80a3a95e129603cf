"""Recall of a large memory without an index answers from the commits indexed so far."""

import sqlite3
from datetime import timedelta

import pytest
from conftest import intent

import jidomem
from jidomem.base.clock import format_timestamp, now
from jidomem.errors import Busy
from jidomem.index import search_index
from jidomem.index.timeline import overview
from jidomem.journal.journal import Stream
from jidomem.recall.briefing import markdown


def test_recall_answers_while_the_index_is_built_and_reports_its_progress(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_AWAITED", 2)
    with jidomem.open(tmp_path / "root", project="p", agent="me") as memory:
        memory.writer.submit_many("p", [intent(summary=f"zebra {number}") for number in range(100)], atomic=True)
    with jidomem.open(tmp_path / "root", project="p", agent="me") as memory:
        first = memory.recall("zebra")
        progress = first.metadata["index"]
        assert 0 <= progress["added"] < progress["commits"] == 1
        assert first.to_dict()["metadata"]["index"] == progress  # as HTTP and MCP answer
        assert "only the memories of 0 of 1 commits were searched" in markdown(first)
        assert {hit.content for hit in first.entries} <= {f"zebra {number}" for number in range(100)}

        memory.await_index(60.0, lambda added, commits: None)
        complete = memory.recall("zebra", limit=1000)
        assert "index" not in complete.metadata
        assert "commits were searched" not in markdown(complete)
        assert len(complete.entries) == 100


FORMER_FACETS = """DROP INDEX memory_facets; ALTER TABLE memory DROP COLUMN rejected; CREATE INDEX memory_facets
ON memory (session, kind, agent, recorded, ended, inactive, valid_from, valid_until);"""
FORMER_FORM = (
    """DROP TABLE tally; DROP TABLE change; DROP TABLE span; DROP TABLE dated; DROP TABLE committed;
DROP TABLE author; DROP TABLE authored;
DROP TABLE list_text; DROP TABLE gram; CREATE TABLE content (number INTEGER PRIMARY KEY, text TEXT);
ALTER TABLE listed DROP COLUMN due; PRAGMA user_version = 18;
DELETE FROM list WHERE definition LIKE '%"contains"%' OR definition LIKE '%"due"%';
DELETE FROM metadata WHERE name IN ('tallies', 'filling');"""
    + FORMER_FACETS
)
#: The former states: an accepted proposal was settled, a rejected one invalidated, a pending one proposed.
FORMER_STATES = f"""{FORMER_FACETS} UPDATE memory SET inactive = 'proposed' WHERE inactive = 'pending';
UPDATE tally SET name = replace(replace(name, 'superseded', 'settled'), 'rejected', 'invalidated');
DROP TABLE author; DROP TABLE authored; PRAGMA user_version = 22;"""
FORMER_LISTS = """DELETE FROM listed; DELETE FROM list; DELETE FROM metadata WHERE name = 'lists';"""


def answers(memory):
    facts = memory.ask("facts-about", limit=20, topic="zebra")
    later = format_timestamp(now() + timedelta(days=1))
    states = memory.texts.read(Stream("p"), lambda file: overview(
        file, {}, moment=None, valid_at=later, after=None, count=1).facets["state"])  # fmt: skip
    return [facts, states, *(memory.ask(name, limit=20) for name in ("facts", "counts", "agent-activity", "commits"))]


@pytest.mark.parametrize("former", [FORMER_FORM, FORMER_STATES, FORMER_LISTS], ids=["form", "states", "lists"])
def test_recall_answers_while_lists_of_an_older_version_are_rebuilt_without_indexing_texts_again(
    tmp_path, monkeypatch, former
):
    monkeypatch.setattr(search_index, "MAX_AWAITED", 2)
    with jidomem.open(tmp_path, project="p", agent="me") as memory:
        memory.writer.submit_many("p", [intent(summary=f"zebra {number}") for number in range(9)])
        for action in ("accept", "reject", None):
            proposal = memory.writer.submit_intent("p", intent(summary=f"mare {action}"), propose=True).iri
            if action is not None:
                memory.writer.settle("p", proposal, action)
        rows = answers(memory)
        assert rows[1] == {"active": 10, "withdrawal": 1, "ended": 1, "rejected": 1, "pending": 1}
    with sqlite3.connect(tmp_path / "cache" / "text" / "p.sqlite") as store:
        store.executescript(f"{former} CREATE TABLE mark (number INTEGER)")

    with jidomem.open(tmp_path, project="p", agent="me") as memory:
        with pytest.raises(Busy, match="the index for lists and searches of p is being built"):
            memory.texts.read_soon(Stream("p"), lambda file: file.filled)
        partial = memory.recall("zebra", limit=20)
        assert len(partial.entries) == 9
        assert "index" not in partial.metadata

        memory.await_index(60.0, lambda added, commits: None)
        assert answers(memory) == rows
        tables = memory.texts.read(Stream("p"), lambda file: [*file.ask("SELECT name FROM sqlite_master")])
        assert ("mark",) in tables
