"""A clock that is set back repeatedly: recorded times keep the order of the commits."""

import sys
from dataclasses import replace
from datetime import timedelta
from itertools import chain, count

import pytest
from conftest import START, fixed_sources, intent

import jidomem
from jidomem.check.journal_integrity import journal_findings
from jidomem.journal.journal import Stream
from jidomem.runtime import doctor


def test_recorded_times_increase_although_the_clock_is_set_back(tmp_path):
    ticks = count()
    backwards = replace(fixed_sources(), now=lambda: START - timedelta(hours=next(ticks)))
    with jidomem.open(tmp_path, sources=backwards) as memory:
        iris = [memory.writer.submit_intent("p", intent(summary=f"finding {n}")).iri for n in range(5)]
        assert memory.journal.seal(Stream("p")) == 4
        iris.append(memory.writer.submit_intent("p", intent(summary="and one more")).iri)

    with jidomem.open(tmp_path) as reopened:
        commits = list(reopened.journal.read(Stream("p")))
        moments = [commit.recorded_at for commit in commits]
        assert moments == sorted(set(moments))
        assert [commit.position for commit in commits] == [1, 2, 3, 4, 5, 6]
        assert reopened.journal.verify(Stream("p")) == ()
        assert {reopened.reader.get_memory("p", iri)["status"] for iri in iris} == {"active"}


@pytest.mark.parametrize("question", ["facts", "timeline", "commits"])
def test_pages_of_a_query_show_one_version_although_the_clock_was_set_back(tmp_path, question):
    clock = chain([START + timedelta(hours=1)], (START + timedelta(seconds=n) for n in count()))
    with jidomem.open(tmp_path, sources=replace(fixed_sources(), now=lambda: next(clock))) as memory:
        memory.writer.append("p", "codebase", [("<urn:x>", "<urn:p>", "<urn:y>")])
        for n in range(5):
            memory.writer.submit_intent("p", intent(summary=f"finding {n}"))
        expected = memory.reader.ask(question, project="p")

        page = memory.reader.ask_page(question, project="p", limit=2)
        rows = page.rows
        while page.cursor:
            memory.writer.submit_intent("p", intent(summary=f"said after {len(rows)}"))
            page = memory.reader.ask_page(question, project="p", limit=2, cursor=page.cursor)
            rows += page.rows

    assert rows == expected


def test_the_commit_of_a_fast_clock_is_named_with_its_author_by_receipts_check_and_doctor(tmp_path):
    moments = {"now": START + timedelta(days=30)}
    with jidomem.open(tmp_path, sources=replace(fixed_sources(), now=lambda: moments["now"])) as memory:
        fast = memory.writer.submit_intent("p", intent(summary="first", asserted_by="ana"))
        moments["now"] = START
        late = [memory.writer.submit_intent("p", intent(summary=f"{n}", asserted_by="bob")) for n in range(2)]

        reported = journal_findings(memory.journal, [Stream("p")], START)[Stream("p")]
        (diagnostic,) = doctor.clock(memory.journal, START)
    text = f"commit {fast.commit[:12]} by ana is recorded at "
    assert fast.warnings == ()
    assert [[each.startswith(text) for each in receipt.warnings] for receipt in late] == [[True], [True]]
    assert [(each.kind, each.severity, each.detail.startswith(text)) for each in reported] == [
        ("future", "warning", True)
    ]
    assert "the clock of the machine that wrote it was fast" in reported[0].detail
    assert reported[0].hint == diagnostic.hint
    assert (diagnostic.level, diagnostic.detail.startswith(text), "set the clock" in diagnostic.hint) == (
        "warn",
        True,
        False,
    )


def test_a_write_behind_a_fast_clock_costs_the_same_after_many_commits(tmp_path):
    moments = {"now": START + timedelta(days=30)}
    with jidomem.open(tmp_path, sources=replace(fixed_sources(), now=lambda: moments["now"])) as memory:
        memory.writer.submit_intent("p", intent(summary="first"))
        moments["now"] = START

        def calls(number):
            counted = []
            sys.setprofile(lambda _frame, event, _: counted.append(event) if event == "call" else None)
            try:
                receipt = memory.writer.submit_intent("p", intent(summary=f"{number}"))
            finally:
                sys.setprofile(None)
            assert "is recorded at" in receipt.warnings[0]
            return len(counted)

        few, *_, many = (calls(number) for number in range(80))

    assert many < few + 80
