"""The commands that a review offers are accepted, whatever became of what a proposal was made on."""

from dataclasses import replace
from itertools import combinations_with_replacement

import pytest
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.curation.review_queue import acceptable, proposals_in, queue, with_endings, with_rivals
from jidomem.curation.review_text import commands, todo
from jidomem.errors import JidomemError
from jidomem.read.memory_detail import short_id
from jidomem.write.settlement import Settlement

PAST = format_timestamp(START.replace(year=START.year - 1))
#: What became of the memory that a proposal is to change or withdraw.
ENDS = {
    "nothing": lambda memory, old: None,
    "revised": lambda memory, old: memory.writer.revise("p", old, changes={"summary": "new"}, reason="r"),
    "confirmed": lambda memory, old: memory.writer.confirm("p", old, reason="r"),
    "deprecated": lambda memory, old: memory.writer.revise("p", old, changes={"status": "deprecated"}, reason="r"),
    "withdrawn": lambda memory, old: memory.writer.invalidate("p", old, reason="r"),
    "refuted": lambda memory, old: say(memory, "it broke", type="incident", invalidates=[old]),
    "restored": lambda memory, old: memory.writer.undo(
        "p", memory.writer.invalidate("p", old, reason="r").iri, reason="r"
    ),
}
#: The proposals on it.
PROPOSALS = {
    "change": {"summary": "Use Parquet"},
    "other change": {"summary": "Use ORC"},
    "deprecation": {"summary": "Use CSV", "status": "deprecated"},
    "dated": {"summary": "Use Avro", "topic": "avro", "expires_on": PAST},
    "over": {"summary": "Use XML", "topic": "xml", "valid_until": PAST},
    "withdrawal": {"type": "deleted_marker", "summary": "Withdrawn", "rationale": "it was never so"},
}


def say(memory, summary, **fields):
    return memory.writer.submit_intent("p", intent(summary=summary, asserted_by="bob", **fields)).iri


def propose(memory, old, kind):
    """A proposal of *kind* on *old*, by bob."""
    fields = PROPOSALS[kind]
    given = intent(**fields) if kind == "withdrawal" else decision(**{"topic": "files", **fields})
    link = "invalidates" if kind == "withdrawal" else "supersedes"
    return memory.writer.submit_intent("p", {**given, link: [old], "asserted_by": "bob"}, propose=True).iri


def carried_out(memory, command, items):
    """The outcome of a command of the review, in a dry run for the first of several."""
    for number, part in enumerate(command.split(" && ")):
        dated = " --set expires_on=DATE"
        changes = {"expires_on": "2030-01-01"} if dated in part else None
        words = part.replace(dated, "").removesuffix(' --reason "..."').split()
        if words[1] == "edit":
            return memory.writer.confirm("p", items[words[2]], reason="r", dry_run=True, expires_on="2030-01-01")
        action, *named = words[2:]
        named, _, other = (named, None, None) if "--against" not in named else (named[:1], None, items[named[2]])
        for item in named:
            if number:
                return None  # what it rejects is pending until the first part is done
            more = {"other": other, "changes": changes}
            outcome = memory.writer.settle("p", items[item], action, **more, reason="r", dry_run=True)
            assert outcome.status == "asserted"
    return None


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", agent="rita", sources=fixed_sources()) as opened:
        yield opened


@pytest.mark.parametrize("ended", ENDS)
@pytest.mark.parametrize("kinds", [*combinations_with_replacement(PROPOSALS, 2)], ids=" and ".join)
def test_each_command_of_a_review_is_accepted_and_so_are_all_that_it_offers_together(memory, kinds, ended):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files", asserted_by="bob")).iri
    made = [propose(memory, old, kind) for kind in dict.fromkeys(kinds)]
    ENDS[ended](memory, old)
    now = memory.sources.now()
    waiting = with_rivals(memory.reader, "p", queue(memory.reader, "p", now))
    items = {short_id(each): each for each in (*made, *(one.other for one in waiting if one.other))}
    assert {*made} <= {one.item for one in waiting}

    for one in waiting:
        ways = commands(one, agent="rita")
        assert ways, one
        for command, _ in ways:
            carried_out(memory, command, items)
    chosen = acceptable(memory.reader, "p", waiting)[""]
    outcomes = memory.writer.settle_many("p", [Settlement(one.item, "accept", reason="r") for one in chosen])

    assert [each for each in outcomes if isinstance(each, JidomemError)] == []
    left = {one.item for one in queue(memory.reader, "p", now)} & set(made)
    assert left == {*made} - {one.item for one in chosen}


def test_of_two_that_would_end_one_memory_otherwise_neither_is_accepted_with_the_others(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files", asserted_by="bob")).iri
    deprecation, withdrawal = (propose(memory, old, kind) for kind in ("deprecation", "withdrawal"))
    waiting = queue(memory.reader, "p", memory.sources.now())

    found = acceptable(memory.reader, "p", waiting)
    memory.writer.settle("p", withdrawal, "supersede", other=deprecation, reason="never so")

    assert {one.item for one in found["rival"]} == {deprecation, withdrawal}
    statuses = [memory.reader.get_memory("p", item)["status"] for item in (old, withdrawal, deprecation)]
    assert statuses == ["invalidated", "superseded", "rejected"]
    assert queue(memory.reader, "p", memory.sources.now()) == []
    memory.writer.undo("p", old, reason="a mistake")
    assert len(queue(memory.reader, "p", memory.sources.now())) == 2  # both are pending again


def test_two_withdrawals_of_one_memory_agree(memory):
    old = say(memory, "the port is 80")
    first = propose(memory, old, "withdrawal")
    memory.writer.agent = "cleo"
    second = memory.writer.submit_intent(
        "p", intent(**PROPOSALS["withdrawal"], invalidates=[old], asserted_by="cleo"), propose=True
    ).iri
    memory.writer.agent = "rita"
    found = acceptable(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))[""]

    outcomes = memory.writer.settle_many("p", [Settlement(one.item, "accept", reason="r") for one in found])

    assert {one.item for one in found} == {first, second}
    assert {each.status for each in outcomes} == {"asserted"}


def test_a_proposal_whose_dates_are_over_says_so_everywhere_and_is_not_accepted_with_the_others(memory):
    dated, over = (
        memory.writer.submit_intent("p", decision(**PROPOSALS[kind], asserted_by="bob"), propose=True).iri
        for kind in ("dated", "over")
    )
    waiting = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))

    found = {key: [one.item for one in some] for key, some in acceptable(memory.reader, "p", waiting).items() if some}

    assert found == {"date": [dated], "past": [over]}
    lines = todo(waiting).splitlines()
    assert f"#   its review was due on {PAST[:10]}T08:00:00.000000Z; it needs a new date" in lines
    assert f"#   valid until {PAST[:10]}T08:00:00.000000Z; accepted, it is expired at once" in lines
    row = next(one.to_dict() for one in waiting if one.item == dated)
    assert (row["needs_date"], row["past_dates"]) == (True, [f"its review was due on {PAST[:10]}T08:00:00.000000Z"])


def test_the_lines_of_a_review_name_the_proposals_that_each_conflicts_with(memory):
    for text in ("Use Parquet", "Use ORC"):
        memory.writer.submit_intent("p", decision(summary=text, topic="files", asserted_by="bob"), propose=True)
    waiting = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))

    text = todo(waiting)

    for one, other in (waiting, waiting[::-1]):
        block = text[: text.index(f"skip {one.item}")].rpartition("\n\n")[2]
        assert f"#   against the proposal {short_id(other.item)}: {other.summary}\n" in block


@pytest.mark.parametrize("end", ["deprecation", "withdrawal"])
def test_a_newer_version_of_a_proposal_is_a_rival_of_what_else_ends_the_memory(memory, end):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files")).iri
    first = propose(memory, old, "change")
    second = memory.writer.submit_intent(
        "p", decision(summary="Use XML", topic="formats", supersedes=[first]), propose=True
    ).iri
    other = propose(memory, old, end)
    waiting = queue(memory.reader, "p", memory.sources.now())

    found = acceptable(memory.reader, "p", waiting)

    rivals = {one.item: [each["item"] for each in one.rivals] for one in with_rivals(memory.reader, "p", waiting)}
    assert rivals == {first: [], second: [other], other: [second]}
    assert {key: {one.item for one in some} for key, some in found.items() if some} == {
        "version": {first}, "rival": {second, other},
    }  # fmt: skip


@pytest.mark.parametrize("is_active", [False, True])
def test_a_proposal_that_is_valid_only_after_another_memory_does_not_oppose_it(memory, is_active):
    fields = decision(summary="Use CSV", topic="files", valid_until="2027-06-01")
    before = memory.writer.submit_intent("p", intent(**fields), propose=not is_active).iri
    after, beside = (
        memory.writer.submit_intent("p", decision(summary=text, topic="files", valid_from=date), propose=True).iri
        for text, date in (("Use JSON", "2027-06-01"), ("Use XML", "2027-05-31"))
    )
    waiting = queue(memory.reader, "p", memory.sources.now())

    opposed = {one.item: (one.other, [each["item"] for each in one.rivals])
               for one in with_rivals(memory.reader, "p", waiting)}  # fmt: skip

    assert opposed.pop(after) == (None, [beside])
    if not is_active:
        assert opposed.pop(before) == (None, [beside])
    assert opposed == {beside: (before, [after]) if is_active else (None, sorted([before, after]))}
    memory.writer.settle("p", beside, "reject", reason="no")
    assert len(acceptable(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))[""]) == 2 - is_active


def test_some_proposals_are_judged_as_in_the_whole_queue(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files")).iri
    made = [propose(memory, old, kind) for kind in PROPOSALS]
    whole = {one.item: replace(one, leaning=0) for one in queue(memory.reader, "p", memory.sources.now())}
    for item in made:
        rows = [row for row in memory.reader.ask("proposals", project="p") if row["item"] == item]
        assert proposals_in(memory.reader, "p", memory.sources.now(), rows) == [whole[item]]
