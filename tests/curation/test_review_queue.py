"""The review queue: its order, how each kind of item is settled, and what rules settle without a curator."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.curation.review_cache import count as due_count
from jidomem.curation.review_cache import due
from jidomem.curation.review_queue import QUESTIONS, queue, queued, settle_by_rule
from jidomem.curation.review_text import apply, commands, parse, todo, without_settled
from jidomem.errors import Conflict, InvalidRequest, JidomemError, PolicyDenied
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import jido
from jidomem.records.policy import PRESETS, PolicyChange
from jidomem.serve.wire import for_requests, for_tools

CURATED = (*PRESETS["curated"], PolicyChange(agent="rita", grants="Curator"))
WARN = '[conflicts]\ndecision = "warn"\nfact = "propose"\n'


class Clock:
    """A clock that advances a second at each reading, and further on demand."""

    def __init__(self):
        self.now = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now

    def pass_days(self, days):
        self.now += timedelta(days=days)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def memory(tmp_path, clock):
    root = tmp_path / "root"
    root.mkdir()
    (root / "config.toml").write_text(WARN)
    ids = (f"01900000-0000-7000-8000-{n:012x}" for n in count(1))
    with jidomem.open(root, agent="rita", sources=Sources(clock, lambda: next(ids), fixed_sources().nonce)) as opened:
        yield opened


def say(memory, summary, **fields):
    return memory.writer.submit_intent("p", intent(summary=summary, asserted_by="bob", **fields)).iri


def decide(memory, summary, **fields):
    return memory.writer.submit_intent("p", decision(summary=summary, asserted_by="bob", **fields)).iri


def waiting(memory):
    return queue(memory.reader, "p", memory.sources.now())


def told(memory):
    return [(one.tier, one.kind, one.summary) for one in waiting(memory)]


def status(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def settle(memory, *args, **more):
    return memory.writer.settle("p", *args, **{"reason": "agreed", **more})


def one_of_each(memory):
    """A pair in conflict, a binding proposal, another proposal, and an assumption without a date."""
    memory.writer.change_policy(
        "p", [*CURATED, PolicyChange(kind="lesson_learned", allows="propose", role="Implementer")]
    )
    say(memory, "it is cold", type="assumption")
    say(memory, "pin the toolchain", type="lesson")
    say(memory, "tabs", type="convention")
    decide(memory, "Use Oxigraph", type="decision", topic="store")
    decide(memory, "Use Lucene", type="decision", topic="store")


def test_what_keeps_agents_from_working_comes_first(memory):
    one_of_each(memory)
    assert told(memory) == [
        (1, "conflict", "Use Oxigraph"),
        (2, "proposal", "tabs"),
        (3, "proposal", "pin the toolchain"),
        (4, "no_review_date", "it is cold"),
    ]


def test_what_has_waited_for_a_month_moves_up_and_what_more_leans_on_comes_before_it(memory, clock):
    memory.writer.change_policy("p", [PolicyChange(kind="risk", allows="propose")])
    old = say(memory, "old", type="risk")
    clock.pass_days(20)
    leant = say(memory, "leant on", type="risk")
    say(memory, "a fact", evidence=[leant])
    assert [one.item for one in waiting(memory)] == [leant, old]
    clock.pass_days(15)
    assert [(one.tier, one.item) for one in waiting(memory)] == [(2, old), (3, leant)]


def test_an_accepted_proposal_is_asserted_anew_and_stays_as_it_was(memory):
    memory.writer.change_policy("p", CURATED)
    old = decide(memory, "Use Oxigraph", topic="store", type="decision")
    proposed = decide(memory, "Use Lucene", topic="store", supersedes=[old])
    before = set(memory.index.triples(memory.reader and "https://jido.ai/projects/p/graphs/long-term-context"))
    receipt = settle(memory, proposed, "accept", reason="measured")
    assert (receipt.status, status(memory, receipt.iri)) == ("asserted", "active")
    assert [status(memory, item) for item in (old, proposed)] == ["superseded", "superseded"]
    assert before <= set(memory.index.triples("https://jido.ai/projects/p/graphs/long-term-context"))
    assert memory.reader.get_memory("p", receipt.iri)["properties"]["revisionReason"] == ["measured"]
    assert waiting(memory) == []


def test_who_may_only_propose_settles_nothing(memory):
    memory.writer.change_policy("p", CURATED)
    proposed = say(memory, "tabs", type="convention")
    memory.writer.agent = "zoe"
    for action in ("accept", "reject"):
        with pytest.raises(PolicyDenied, match="zoe may not settle this") as refused:
            settle(memory, proposed, action)
        assert refused.value.hint == "ask a curator: rita"
    assert [one.item for one in waiting(memory)] == [proposed]


@pytest.mark.parametrize(("action", "left"), [
    ("accept", {"a": "active", "b": "invalidated"}), ("reject", {"a": "invalidated", "b": "active"}),
    ("supersede", {"a": "superseded", "b": "superseded"}),
])  # fmt: skip
def test_two_that_disagree_are_settled_in_one_call(memory, action, left):
    a = decide(memory, "Use Oxigraph", topic="store")
    b = decide(memory, "Use Lucene", topic="store")
    settle(memory, a, action, other=b)
    assert {"a": status(memory, a), "b": status(memory, b)} == left
    assert waiting(memory) == []


def test_two_are_kept_only_where_each_says_where_it_applies(memory):
    a = decide(memory, "Use Oxigraph", topic="store", about=["server"])
    b = decide(memory, "Use Lucene", topic="store", about=["search"])
    settle(memory, a, "keep-both", other=b)
    assert status(memory, b) == "active"
    assert waiting(memory) == []
    one = say(memory, "the port is 80", topic="port")
    other = say(memory, "the port is 81", topic="port")
    assert [(w.item, w.other) for w in waiting(memory)] == [(other, one)]
    with pytest.raises(Conflict, match="distinct scope"):
        settle(memory, other, "keep-both")
    settle(memory, other, "supersede")
    assert (status(memory, one), waiting(memory)) == ("superseded", [])


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_what_rests_on_a_withdrawn_memory_is_due_until_it_is_judged(memory, clock, action):
    plan = say(memory, "Globex is on Enterprise")
    worded = memory.writer.revise("p", plan, changes={"summary": "Globex uses Enterprise"}, reason="wording").iri
    sla = decide(memory, "a 4 hour SLA", evidence=[plan])
    call = say(memory, "call Globex", type="task", evidence=[worded], expires_on="2027-06-01")
    say(memory, "Initech is on Enterprise", evidence=["the contract"])
    before = clock()
    clock.pass_days(1)
    assert waiting(memory) == []

    receipt = memory.writer.invalidate("p", worded, reason="another Globex")

    named = f"{sla} a 4 hour SLA; {call} call Globex"
    warning = f"2 active memories rest on what is withdrawn: {named}; look at each: jidomem review"
    assert receipt.warnings == (warning,)
    start = warning.removesuffix("jidomem review")
    assert for_requests(receipt.to_dict(), "p")["warnings"] == [f"{start}GET /projects/p/conflicts"]
    assert for_tools(receipt.to_dict())["warnings"] == [f"{start}the tool ask with name stale"]
    assert told(memory) == [(4, "basis_withdrawn", "a 4 hour SLA"), (4, "basis_withdrawn", "call Globex")]
    rows = memory.reader.ask("stale", project="p", valid_at=clock())
    assert [(row["item"], row["reason"]) for row in rows] == [(sla, "basis_withdrawn"), (call, "basis_withdrawn")]
    assert memory.reader.ask("stale", project="p", valid_at=clock(), as_of=before) == []
    assert due_count(memory.reader, "p", clock(), most=100) == 2

    for item in (sla, call):
        settle(memory, item, action)
    assert (waiting(memory), memory.reader.ask("stale", project="p", valid_at=clock())) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "warns"),
    [
        ({"summary": "Globex is on Enterprise"}, {"summary": "invoices are sent on Mondays"}, True),
        ({"summary": "Globex is on Enterprise"}, {"summary": "Globex is on Business"}, False),
        ({"summary": "5", "topic": "threads"}, {"summary": "blue", "topic": "door"}, True),
        ({"summary": "five of them", "topic": "Door colour"}, {"summary": "blue", "topic": "door-colour"}, False),
    ],
)
def test_a_memory_that_takes_the_place_of_one_on_another_matter_warns_of_what_rests_on_that(memory, old, new, warns):
    plan = memory.writer.submit_intent("p", intent(**old)).iri
    sla = decide(memory, "a 4 hour SLA", evidence=[plan])

    receipt = memory.writer.submit_intent("p", intent(**new, supersedes=[plan], reason="r"))

    start = f"an active memory rests on what is superseded by another matter: {sla} a 4 hour SLA; look at each: "
    assert receipt.warnings == ((f"{start}jidomem show {sla}",) if warns else ())
    short = sla.rpartition("/")[2]
    if warns:
        assert for_requests(receipt.to_dict(), "p")["warnings"] == [f"{start}GET /projects/p/memories/{short}"]
        assert for_tools(receipt.to_dict())["warnings"] == [f"{start}the tool why with id {short}"]


def test_what_rests_on_a_memory_that_is_active_again_is_not_due(memory, clock):
    plan = say(memory, "Globex is on Enterprise")
    say(memory, "call Globex", evidence=[plan])
    withdrawn = memory.writer.invalidate("p", plan, reason="another Globex").iri
    again = memory.writer.undo("p", withdrawn, reason="it was this one").iri
    assert (waiting(memory), memory.reader.ask("stale", project="p", valid_at=clock())) == ([], [])

    memory.writer.invalidate("p", again, reason="it left")
    assert [one.kind for one in waiting(memory)] == ["basis_withdrawn"]


@pytest.mark.parametrize(("action", "left"), [("accept", "superseded"), ("reject", "invalidated")])
def test_what_is_due_holds_on_or_is_withdrawn(memory, clock, action, left):
    assumed = say(memory, "it is cold", type="assumption")
    dated = say(memory, "it is warm", expires_on="2026-12-01")
    clock.pass_days(20)
    assert {one.kind for one in waiting(memory)} == {"review_due", "no_review_date"}
    for item in (assumed, dated):
        settle(memory, item, action)
        assert status(memory, item) == left
    assert waiting(memory) == []


@pytest.mark.parametrize("wrong", [
    ("accept", "urn:none"), ("shrug", None), ("supersede", None), ("keep-both", None), ("accept", "settled"),
])  # fmt: skip
def test_what_cannot_be_settled_so_is_refused(memory, wrong):
    memory.writer.change_policy("p", CURATED)
    item = say(memory, "tabs", type="convention")
    action, which = wrong
    if which == "settled":
        settle(memory, item, "reject")
    with pytest.raises(JidomemError) as caught:
        settle(memory, which if which == "urn:none" else item, action)
    assert caught.value.code in ("not_found", "invalid_argument", "conflict")


def test_what_somebody_settled_since_stops_no_other_line_of_a_review(memory):
    one_of_each(memory)
    offered = todo(waiting(memory)).replace("skip https", "reject https")
    first, second, third, _ = waits = waiting(memory)
    settle(memory, first.item, "accept", other=first.other)
    settle(memory, second.item, "reject")
    ends = ("superseded", "invalidated", "rejected")
    ended = lambda item: state if (state := status(memory, item)) in ends else None  # noqa: E731

    left, settled = without_settled(offered, waiting(memory), ended)
    lines = parse(left, waiting(memory))

    numbers = [n for n, line in enumerate(offered.splitlines(), start=1) if line.startswith("reject")]
    found = [*zip(numbers, waits, strict=True)]
    assert [*settled] == numbers[:2]
    assert [(line.number, line.waiting.item) for line in lines] == [(n, one.item) for n, one in found[2:]]
    with pytest.raises(InvalidRequest, match=r"line 1: .* is not pending"):
        parse(f"reject {first.item} {first.other}", waiting(memory))
    assert [line.reason for line in parse(f"reject {third.item[-8:]} no {third.item[-8:]}", waiting(memory))] == [
        f"no {third.item[-8:]}"
    ]


def test_a_review_is_read_whole_before_anything_is_done(memory):
    one_of_each(memory)
    waits = waiting(memory)
    text = todo(waits)
    assert parse(text, waits) == []
    lines = text.replace(f"skip {waits[1].item}", f"reject {waits[1].item} spaces it is").splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("skip"))
    for broken in (
        "shrug " + waits[2].item,
        "accept urn:none",
        "accept",
        f"keep-both {waits[3].item}",
        lines[at] + "\n" + lines[at],
    ):
        with pytest.raises(InvalidRequest, match=r"line \d+: .*nothing was done"):
            parse("\n".join([*lines, broken]), waits)
    assert waiting(memory) == waits or [w.item for w in waiting(memory)] == [w.item for w in waits]
    ((line, outcome),) = apply(memory.writer, "p", parse("\n".join(lines), waits))
    assert (line.action, line.reason) == ("reject", "spaces it is")
    assert memory.reader.get_memory("p", outcome.iri)["properties"]["rationale"] == ["spaces it is"]


def test_a_line_names_a_proposal_alone_or_both_memories_of_a_pair_in_any_order(memory):
    one_of_each(memory)
    for summary in ("Use SQLite", "Use Redis"):
        decide(memory, summary, type="decision", topic="cache")
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    proposal = memory.writer.submit_intent("p", decision(summary="Use a file", topic="store"), propose=True).iri
    waits = waiting(memory)
    first = next(one for one in waits if one.kind == "conflict")
    one = next(one for one in waits if one.item == proposal)
    assert one.other is not None

    text = f"reject {first.other[-8:]} {first.item[-8:]} we need one\nreject {proposal[-8:]} we keep one per vendor"
    pair, alone = parse(text, waits)

    assert (pair.waiting.item, pair.waiting.other, pair.reason) == (first.other, first.item, "we need one")
    assert (alone.waiting, alone.reason) == (one, "we keep one per vendor")
    outcomes = [outcome for _, outcome in apply(memory.writer, "p", [pair, alone])]
    assert [outcome.status for outcome in outcomes] == ["asserted", "asserted"]
    assert [status(memory, each) for each in (first.item, first.other)] == ["active", "invalidated"]
    for line, message in (
        (f"reject {first.item[-8:]} we need one", "is pending with another memory"),
        (f"reject 0badcafe we keep {first.item[-8:]}", "line 1: 0badcafe is not pending"),
        (f"{text}\naccept {first.item} {first.other}", "is in two lines"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            parse(line, waits)


def test_the_refusal_of_one_line_stops_no_other(memory):
    one_of_each(memory)
    waits = waiting(memory)
    memory.writer.agent = "bob"
    outcomes = apply(memory.writer, "p", parse(todo(waits).replace("\nskip ", "\naccept "), waits))
    assert [getattr(outcome, "code", "settled") for _, outcome in outcomes] == [
        "settled", "policy_denied", "policy_denied", "settled",
    ]  # fmt: skip


def by_rule(memory):
    rules = memory.writer.authority("p")
    settled = settle_by_rule(memory.writer, memory.reader, "p", rules, memory.sources.now())
    return [one.summary for one, _, outcome in settled if not isinstance(outcome, JidomemError)]


def test_what_a_second_agent_proposes_in_the_same_words_is_confirmed_by_rule(memory):
    memory.writer.change_policy(
        "p", [PolicyChange(kind="fact", allows="propose"), PolicyChange(confirms="restated", kind="fact")]
    )
    say(memory, "the port is 80")
    say(memory, "the host is x")
    assert by_rule(memory) == []
    memory.writer.submit_intent("p", intent(summary="The port is  80", asserted_by="eve"))
    assert by_rule(memory) == ["the port is 80"]
    (row,) = memory.reader.ask("facts", project="p")
    said = memory.reader.get_memory("p", row["fact"])["properties"]
    assert "restated" in said["revisionReason"][0]
    assert "https://jido.ai/policies/" in said["revisionReason"][0]
    assert said["settledBy"] == ["https://jido.ai/agents/memory-writer"]
    assert "verified" not in said
    assert [one.summary for one in waiting(memory)] == ["the host is x"]


def test_what_stood_unopposed_is_confirmed_by_rule_when_its_days_are_over(memory, clock):
    memory.writer.change_policy("p", [
        PolicyChange(kind="fact", role="Implementer", allows="propose"), PolicyChange(agent="rita", grants="Curator"),
        PolicyChange(confirms="unopposed", kind="fact", days=14),
    ])  # fmt: skip
    old = say(memory, "the port is 80", topic="port")
    say(memory, "the disk is full")
    say(memory, "the port is 81", topic="port")
    clock.pass_days(13)
    assert by_rule(memory) == []
    clock.pass_days(2)
    assert by_rule(memory) == ["the disk is full"]
    settle(memory, old, "reject")
    assert by_rule(memory) == ["the port is 81"]


def test_no_rule_ends_an_active_memory_or_trusts_an_untrusted_source(memory, clock):
    held = say(memory, "the port is 80")
    memory.writer.change_policy("p", [PolicyChange(allows="propose"), PolicyChange(confirms="unopposed", days=1)])
    say(memory, "the port is 81", supersedes=[held])
    say(memory, "the limit is 100", source_type="ExternalDocumentSource")
    clock.pass_days(40)
    rules = memory.writer.authority("p")
    assert settle_by_rule(memory.writer, memory.reader, "p", rules, memory.sources.now()) == []


def trusted(memory, item):
    marks = memory.index.triples(
        "https://jido.ai/projects/p/graphs/long-term-context", iri(item), jido("quarantined"), None
    )
    said = {value for _, _, value in marks}
    assert said <= {'"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'}
    return not said


def test_what_rests_on_an_untrusted_source_waits_until_a_curator_lends_it_their_word(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    read = say(memory, "the limit is 100", source_type="ExternalDocumentSource")
    concluded = say(memory, "we need a queue", evidence=[read])
    assert memory.reader.ask("facts", project="p") == []
    assert [one.summary for one in waiting(memory)] == ["the limit is 100", "we need a queue"]
    memory.writer.agent = "bob"
    with pytest.raises(PolicyDenied):
        settle(memory, concluded, "accept")
    memory.writer.agent = "rita"
    confirmed = settle(memory, read, "accept").iri
    assert trusted(memory, confirmed)
    assert status(memory, say(memory, "we need two queues", evidence=[confirmed])) == "active"


def test_any_number_that_waits_is_listed(memory):  # more items than one query may name
    said = [intent(type="assumption", summary=f"it holds {number}") for number in range(700)]
    memory.writer.submit_many("p", said)

    assert len(waiting(memory)) == 700


def pages(memory, limit):
    found, cursor = [], None
    while True:
        page = queued(memory.reader, "p", memory.sources.now(), limit=limit, cursor=cursor)
        found.append(page.waiting)
        if page.cursor is None:
            return found
        cursor = page.cursor


def due_ones(memory, clock):
    """Memories due for each reason, and others: not due yet, ended, withdrawn, proposed, or recorded later."""
    one_of_each(memory)
    for number in range(3):
        say(memory, f"held until {number}", valid_until=clock.now + timedelta(days=1))
        say(memory, f"looked at by {number}", expires_on=clock.now + timedelta(days=1))
    say(memory, "both", valid_until=clock.now + timedelta(days=1), expires_on=clock.now + timedelta(days=2))
    ended = say(memory, "ended", expires_on=clock.now + timedelta(days=1))
    say(memory, "ends it", supersedes=[ended])
    wrong = say(memory, "wrong")
    say(memory, "concluded", evidence=[wrong])
    memory.writer.invalidate("p", wrong, reason="wrong")
    say(memory, "proposed", type="lesson", expires_on=clock.now + timedelta(days=1))
    say(memory, "much later", expires_on=clock.now + timedelta(days=900))
    say(memory, "assumed with a date", type="assumption", expires_on=clock.now + timedelta(days=900))
    say(memory, "not yet", valid_from=clock.now + timedelta(days=800), expires_on=clock.now + timedelta(days=1))
    before = clock()
    clock.pass_days(3)
    return before


def test_pages_give_what_the_whole_list_gives_whoever_settles_meanwhile(memory, clock):
    due_ones(memory, clock)
    clock.pass_days(40)
    whole = waiting(memory)

    read = pages(memory, 3)
    assert [len(page) for page in read] == [3] * (len(whole) // 3) + ([len(whole) % 3] if len(whole) % 3 else [])
    assert [one for page in read for one in page] == whole
    assert queued(memory.reader, "p", clock(), limit=2).total == len(whole)

    first = queued(memory.reader, "p", clock(), limit=2)
    settle(memory, first.waiting[0].item, "accept", other=first.waiting[0].other)
    clock.pass_days(100)
    second = queued(memory.reader, "p", clock(), limit=2, cursor=first.cursor)
    assert [one.summary for one in second.waiting] == [one.summary for one in whole[2:4]]
    assert [one.days for one in second.waiting] == [one.days for one in whole[2:4]]


def test_accepting_a_memory_whose_validity_ended_settles_it_and_another_date_renews_it(memory, clock):
    until = clock.now + timedelta(days=1)
    freeze, sale = say(memory, "frozen", valid_until=until), say(memory, "on sale", valid_until=until)
    clock.pass_days(3)
    say(memory, "it rained", valid_until=until)  # recorded after its end
    assert [one.item for one in waiting(memory)] == [freeze, sale]
    assert commands(waiting(memory)[0])[0] == (f"jidomem review accept {freeze[-8:]}", "it ended at its date")

    ended = settle(memory, freeze, "accept").iri
    memory.writer.correct("p", sale, changes={"valid_until": clock.now + timedelta(days=1)}, reason="it goes on")
    assert waiting(memory) == []
    assert status(memory, ended) == "expired"
    clock.pass_days(3)
    assert [one.summary for one in waiting(memory)] == ["on sale"]


def test_what_is_due_is_what_the_question_of_the_playbook_tells(memory, clock):
    before = due_ones(memory, clock)
    told = memory.reader.ask("stale", project="p", valid_at=clock())
    found = {(row["item"], row["reason"], row["due"]) for row in due(memory.reader, "p", clock())}
    reviewed = {(one.item, one.kind, one.summary, one.why) for one in waiting(memory) if one.kind in dict(QUESTIONS)}

    assert found == {(row["item"], row["reason"], row["due"]) for row in told}
    assert reviewed == {(row["item"], row["reason"], row["summary"], row["question"]) for row in told}
    assert sorted({row["reason"] for row in told}) == [
        "basis_withdrawn", "no_longer_valid", "no_review_date", "review_due",
    ]  # fmt: skip
    for moment in (None, before, before - timedelta(seconds=6)):
        items = {row["item"] for row in memory.reader.ask("stale", project="p", valid_at=clock.now, as_of=moment)}
        assert due_count(memory.reader, "p", clock.now, most=100, as_of=moment) == len(items)
    assert due_count(memory.reader, "p", clock(), most=4) == 4


@pytest.mark.parametrize("asked", [{"limit": 0}, {"limit": True}, {"cursor": "shrug"}, {"limit": 1, "cursor": ""}])
def test_a_page_that_cannot_be_is_refused(memory, asked):
    one_of_each(memory)
    with pytest.raises(InvalidRequest):
        queued(memory.reader, "p", memory.sources.now(), **asked)


def test_a_proposal_is_shown_with_a_later_active_memory_that_disagrees(memory):
    memory.writer.change_policy("p", CURATED)
    late = say(memory, "the port is 81", topic="port", type="convention")
    given = intent(summary="the port is 80", topic="port", type="convention", asserted_by="rita")
    first = memory.writer.submit_intent("p", given).iri
    (one,) = waiting(memory)
    assert (one.item, one.other, one.actions) == (late, first, ("supersede", "keep-both", "reject"))

    other = memory.writer.revise("p", first, changes={"summary": "the port is 79"}, reason="r").iri

    assert [(one.other, one.other_summary) for one in waiting(memory)] == [(other, "the port is 79")]
    settle(memory, late, "supersede")
    assert (waiting(memory), status(memory, other)) == ([], "superseded")


def test_each_command_of_an_opposed_proposal_settles_it_as_it_stands(memory):
    say(memory, "the port is 80", topic="port")
    late = say(memory, "the port is 81", topic="port")
    (one,) = waiting(memory)

    shown = [line for line, _ in commands(one, " --project p")]

    assert shown == [f"jidomem review --project p {way} {late[-8:]}" for way in ("supersede", "reject")]
    for line in shown:
        assert settle(memory, late, line.split()[4], dry_run=True).iri


def test_decisions_that_apply_apart_can_be_kept_both_as_they_stand(memory):
    decide(memory, "Use Oxigraph", type="decision", topic="store", status="accepted", about=["server"])
    given = {"type": "decision", "topic": "store", "status": "accepted"}
    for about in (["search"], []):
        memory.writer.submit_intent("p", decision(summary="Use Lucene", about=about, **given), propose=True)
    for one in waiting(memory):
        shown = [line.split()[2] for line, _ in commands(one)]
        assert ("keep-both" in shown) == one.is_apart
        for action in shown:
            assert settle(memory, one.item, action, dry_run=True).iri
    assert sorted(one.is_apart for one in waiting(memory)) == [False, True]
