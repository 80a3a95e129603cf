"""Lists ordered by time with undated memories."""

import pytest

PROJECT = "shop"
DECISION = {
    "type": "decision",
    "rationale": "Orders come in bursts",
    "applies_to_project": PROJECT,
    "asserted_by": "ana",
    "asserted_in": "s1",
    "confidence": "high",
}
DATES = {"a": "2018-03-02", "b": None, "c": "2026-01-01", "d": None, "e": "2020-01-01"}


@pytest.mark.parametrize(
    ("question", "summary", "time", "dated"),
    [("recent-decisions", "summary", "time", "cea"), ("decision-log", "content", "timestamp", "aec")],
)
def test_undated_memories_count_as_the_oldest_and_have_no_date_on_every_page(memory, question, summary, time, dated):
    for name, date in DATES.items():
        date_fields = {"timestamp": date} if date else {"extra_triples": [["jido:isUndated", True]]}
        memory.writer.submit_intent(PROJECT, DECISION | date_fields | {"summary": name, "topic": name})

    whole = memory.reader.ask(question, project=PROJECT)
    for _ in range(2):  # the second time from the list of the index
        rows, cursor = [], None
        while rows == [] or cursor:
            page = memory.reader.ask_page(question, project=PROJECT, limit=1, cursor=cursor)
            rows, cursor = [*rows, *page.rows], page.cursor
        assert rows == whole

    order = "".join(row[summary][:1] for row in whole)
    undated = "".join(row[summary][:1] for row in whole if row[time] is None)
    assert sorted(undated) == ["b", "d"]
    assert order == (dated + undated if question == "recent-decisions" else undated + dated)
