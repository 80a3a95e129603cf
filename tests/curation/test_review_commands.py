"""The commands that a review offers are accepted, whatever the state of the memory that a proposal concerns."""

from dataclasses import replace
from itertools import combinations_with_replacement

import pytest
from conftest import START, decision, fixed_sources, intent

import jidomem
from jidomem.base.clock import format_timestamp
from jidomem.curation.review_queue import acceptable, proposals_in, queue, with_endings, with_rivals
from jidomem.curation.review_text import commands, todo
from jidomem.errors import JidomemError
from jidomem.rdf.vocab import short_id
from jidomem.write.settlement import Settlement

PAST = format_timestamp(START.replace(year=START.year - 1))
#: State of the memory that a proposal changes or withdraws -> the write that produces it.
ENDINGS = {
    "nothing": lambda memory, old: None,
    "revised": lambda memory, old: memory.writer.revise("p", old, changes={"summary": "new"}, reason="r"),
    "confirmed": lambda memory, old: memory.writer.confirm("p", old, reason="r"),
    "deprecated": lambda memory, old: memory.writer.revise("p", old, changes={"status": "deprecated"}, reason="r"),
    "withdrawn": lambda memory, old: memory.writer.invalidate("p", old, reason="r"),
    "refuted": lambda memory, old: record(memory, "it broke", type="incident", invalidates=[old]),
    "restored": lambda memory, old: memory.writer.undo(
        "p", memory.writer.invalidate("p", old, reason="r").iri, reason="r"
    ),
}
#: Fields of the proposals on it.
PROPOSALS = {
    "change": {"summary": "Use Parquet"},
    "other change": {"summary": "Use ORC"},
    "deprecation": {"summary": "Use CSV", "status": "deprecated"},
    "dated": {"summary": "Use Avro", "topic": "avro", "expires_on": PAST},
    "over": {"summary": "Use XML", "topic": "xml", "valid_until": PAST},
    "withdrawal": {"type": "deleted_marker", "summary": "Withdrawn", "rationale": "it was never so"},
}


def record(memory, summary, **fields):
    return memory.writer.submit_intent("p", intent(summary=summary, asserted_by="bob", **fields)).iri


def propose(memory, old, kind):
    """Record a proposal of *kind* on *old* by bob."""
    fields = PROPOSALS[kind]
    fields_of_proposal = intent(**fields) if kind == "withdrawal" else decision(**{"topic": "files", **fields})
    link = "invalidates" if kind == "withdrawal" else "supersedes"
    return memory.writer.submit_intent("p", {**fields_of_proposal, link: [old], "asserted_by": "bob"}, propose=True).iri


def dry_run_outcome(memory, command, items):
    """Execute a command of the review in a dry run; of several commands only the first."""
    for number, part in enumerate(command.split(" && ")):
        date_option = " --set expires_on=DATE"
        changes = {"expires_on": "2030-01-01"} if date_option in part else None
        tokens = part.replace(date_option, "").removesuffix(' --reason "..."').split()
        if tokens[1] == "edit":
            return memory.writer.confirm("p", items[tokens[2]], reason="r", dry_run=True, expires_on="2030-01-01")
        action, *items_named = tokens[2:]
        items_named, _, other = (
            (items_named, None, None)
            if "--against" not in items_named
            else (items_named[:1], None, items[items_named[2]])
        )
        for item in items_named:
            if number:
                return None  # the rejected memory is pending until the first part is executed
            options = {"other": other, "changes": changes}
            outcome = memory.writer.settle("p", items[item], action, **options, reason="r", dry_run=True)
            assert outcome.status == "asserted"
    return None


@pytest.fixture
def memory(tmp_path):
    with jidomem.open(tmp_path / "root", agent="rita", sources=fixed_sources()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("kinds", "ended"),
    [
        pytest.param(kinds, ended, id=f"{' and '.join(kinds)}-{ended}")
        for kinds in combinations_with_replacement(PROPOSALS, 2)
        for ended in ENDINGS
        if kinds[0] == kinds[1] or ended in ("nothing", "revised", "withdrawn")
    ],
)
def test_each_command_of_a_review_is_accepted_separately_and_together(memory, kinds, ended):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files", asserted_by="bob")).iri
    proposals = [propose(memory, old, kind) for kind in dict.fromkeys(kinds)]
    ENDINGS[ended](memory, old)
    now = memory.sources.now()
    pending = with_rivals(memory.reader, "p", queue(memory.reader, "p", now))
    items = {short_id(item): item for item in (*proposals, *(entry.other for entry in pending if entry.other))}
    assert {*proposals} <= {entry.item for entry in pending}

    for entry in pending:
        command_list = commands(entry, agent="rita")
        assert command_list, entry
        for command, _ in command_list:
            dry_run_outcome(memory, command, items)
    accepted = acceptable(memory.reader, "p", pending)[""]
    outcomes = memory.writer.settle_many("p", [Settlement(entry.item, "accept", reason="r") for entry in accepted])

    assert [item for item in outcomes if isinstance(item, JidomemError)] == []
    remaining = {entry.item for entry in queue(memory.reader, "p", now)} & set(proposals)
    assert remaining == {*proposals} - {entry.item for entry in accepted}


def test_rival_endings_of_one_memory_are_not_accepted_together(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files", asserted_by="bob")).iri
    deprecation, withdrawal = (propose(memory, old, kind) for kind in ("deprecation", "withdrawal"))
    pending = queue(memory.reader, "p", memory.sources.now())

    groups = acceptable(memory.reader, "p", pending)
    memory.writer.settle("p", withdrawal, "supersede", other=deprecation, reason="never so")

    assert {entry.item for entry in groups["rival"]} == {deprecation, withdrawal}
    statuses = [memory.reader.get_memory("p", item)["status"] for item in (old, withdrawal, deprecation)]
    assert statuses == ["invalidated", "superseded", "rejected"]
    assert queue(memory.reader, "p", memory.sources.now()) == []
    memory.writer.undo("p", old, reason="a mistake")
    assert len(queue(memory.reader, "p", memory.sources.now())) == 2  # both are pending again


def test_two_withdrawals_of_one_memory_are_accepted_together(memory):
    old = record(memory, "the port is 80")
    first = propose(memory, old, "withdrawal")
    memory.writer.agent = "cleo"
    second = memory.writer.submit_intent(
        "p", intent(**PROPOSALS["withdrawal"], invalidates=[old], asserted_by="cleo"), propose=True
    ).iri
    memory.writer.agent = "rita"
    pending = acceptable(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))[""]

    outcomes = memory.writer.settle_many("p", [Settlement(entry.item, "accept", reason="r") for entry in pending])

    assert {entry.item for entry in pending} == {first, second}
    assert {outcome.status for outcome in outcomes} == {"asserted"}


def test_a_proposal_with_past_dates_is_marked_and_not_accepted_with_others(memory):
    dated, expired = (
        memory.writer.submit_intent("p", decision(**PROPOSALS[kind], asserted_by="bob"), propose=True).iri
        for kind in ("dated", "over")
    )
    pending = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))

    groups = {
        key: [entry.item for entry in entries]
        for key, entries in acceptable(memory.reader, "p", pending).items()
        if entries
    }

    assert groups == {"date": [dated], "past": [expired]}
    lines = todo(pending).splitlines()
    assert f"#   its review was due on {PAST[:10]}T08:00:00.000000Z; it needs a new date" in lines
    assert f"#   valid until {PAST[:10]}T08:00:00.000000Z; accepted, it is expired at once" in lines
    row = next(entry.to_dict() for entry in pending if entry.item == dated)
    assert (row["needs_date"], row["past_dates"]) == (True, [f"its review was due on {PAST[:10]}T08:00:00.000000Z"])


def test_the_lines_of_a_review_name_the_conflicting_proposals(memory):
    for text in ("Use Parquet", "Use ORC"):
        memory.writer.submit_intent("p", decision(summary=text, topic="files", asserted_by="bob"), propose=True)
    pending = with_endings(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))

    text = todo(pending)

    for entry, other in (pending, pending[::-1]):
        block = text[: text.index(f"skip {entry.item}")].rpartition("\n\n")[2]
        assert f"#   against the proposal {short_id(other.item)}: {other.summary}\n" in block


@pytest.mark.parametrize("ending", ["deprecation", "withdrawal"])
def test_a_newer_version_of_a_proposal_is_a_rival_of_another_ending_of_the_memory(memory, ending):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files")).iri
    first = propose(memory, old, "change")
    second = memory.writer.submit_intent(
        "p", decision(summary="Use XML", topic="formats", supersedes=[first]), propose=True
    ).iri
    other = propose(memory, old, ending)
    pending = queue(memory.reader, "p", memory.sources.now())

    groups = acceptable(memory.reader, "p", pending)

    rivals = {entry.item: [each["item"] for each in entry.rivals] for entry in with_rivals(memory.reader, "p", pending)}
    assert rivals == {first: [], second: [other], other: [second]}
    assert {key: {entry.item for entry in entries} for key, entries in groups.items() if entries} == {
        "version": {first}, "rival": {second, other},
    }  # fmt: skip


@pytest.mark.parametrize("is_active", [False, True])
def test_proposals_with_disjoint_validity_are_no_rivals(memory, is_active):
    fields = decision(summary="Use CSV", topic="files", valid_until="2027-06-01")
    before = memory.writer.submit_intent("p", intent(**fields), propose=not is_active).iri
    after, overlapping = (
        memory.writer.submit_intent("p", decision(summary=text, topic="files", valid_from=date), propose=True).iri
        for text, date in (("Use JSON", "2027-06-01"), ("Use XML", "2027-05-31"))
    )
    pending = queue(memory.reader, "p", memory.sources.now())

    opposed = {entry.item: (entry.other, [each["item"] for each in entry.rivals])
               for entry in with_rivals(memory.reader, "p", pending)}  # fmt: skip

    assert opposed.pop(after) == (None, [overlapping])
    if not is_active:
        assert opposed.pop(before) == (None, [overlapping])
    assert opposed == {overlapping: (before, [after]) if is_active else (None, sorted([before, after]))}
    memory.writer.settle("p", overlapping, "reject", reason="no")
    assert len(acceptable(memory.reader, "p", queue(memory.reader, "p", memory.sources.now()))[""]) == 2 - is_active


def test_a_subset_of_the_queue_has_the_same_entries_as_the_whole_queue(memory):
    old = memory.writer.submit_intent("p", decision(summary="Use CSV", topic="files")).iri
    proposals = [propose(memory, old, kind) for kind in PROPOSALS]
    all_entries = {entry.item: replace(entry, leaning=0) for entry in queue(memory.reader, "p", memory.sources.now())}
    for item in proposals:
        rows = [row for row in memory.reader.ask("proposals", project="p") if row["item"] == item]
        assert proposals_in(memory.reader, "p", memory.sources.now(), rows) == [all_entries[item]]
