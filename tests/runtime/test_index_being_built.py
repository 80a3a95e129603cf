"""Recall of a large memory that was not searched before answers from the memories added to the index so far."""

from conftest import intent

import jidomem
from jidomem.index import search_index
from jidomem.recall.briefing import markdown


def test_recall_answers_while_the_index_is_built_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(search_index, "MAX_AWAITED", 2)
    with jidomem.open(tmp_path / "root", project="p", agent="me") as memory:
        memory.writer.submit_many("p", [intent(summary=f"zebra {number}") for number in range(9)])
    with jidomem.open(tmp_path / "root", project="p", agent="me") as memory:
        first = memory.recall("zebra")
        part = first.metadata["index"]
        assert 0 <= part["added"] < part["commits"] == 1
        assert "only the memories of 0 of 1 commits were searched" in markdown(first)
        assert {hit.content for hit in first.entries} <= {f"zebra {number}" for number in range(9)}

        memory.await_index(60.0, lambda added, commits: None)
        whole = memory.recall("zebra", limit=20)
        assert "index" not in whole.metadata
        assert "commits were searched" not in markdown(whole)
        assert len(whole.entries) == 9
