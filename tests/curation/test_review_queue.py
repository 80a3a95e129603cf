"""The review queue: its order, the settlement of each kind of item, and settlement by rules without a curator."""

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from conftest import decision, fixed_sources, intent

import jidomem
from jidomem.base.clock import Sources
from jidomem.curation.review_cache import count as due_count
from jidomem.curation.review_cache import due
from jidomem.curation.review_queue import QUESTIONS, acceptable, queue, queued, settle_by_rule
from jidomem.curation.review_text import apply, commands, keep_both, marks, parse, todo, without_settled
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


def record(memory, summary, **fields):
    return memory.writer.submit_intent("p", intent(summary=summary, asserted_by="bob", **fields)).iri


def record_decision(memory, summary, **fields):
    return memory.writer.submit_intent("p", decision(summary=summary, asserted_by="bob", **fields)).iri


def pending(memory):
    return queue(memory.reader, "p", memory.sources.now())


def queue_rows(memory):
    return [(entry.tier, entry.kind, entry.summary) for entry in pending(memory)]


def status_of(memory, item):
    return memory.reader.get_memory("p", item)["status"]


def settle(memory, *args, **options):
    return memory.writer.settle("p", *args, **{"reason": "agreed", **options})


def record_each_kind(memory):
    """Record two conflicting decisions, a binding proposal, another proposal, and an assumption without a date."""
    memory.writer.change_policy(
        "p", [*CURATED, PolicyChange(kind="lesson_learned", allows="propose", role="Implementer")]
    )
    record(memory, "it is cold", type="assumption")
    record(memory, "pin the toolchain", type="lesson")
    record(memory, "tabs", type="convention")
    record_decision(memory, "Use Oxigraph", type="decision", topic="store")
    record_decision(memory, "Use Lucene", type="decision", topic="store")


def test_the_queue_is_ordered_by_tier(memory):
    record_each_kind(memory)
    assert queue_rows(memory) == [
        (1, "conflict", "Use Oxigraph"),
        (2, "proposal", "tabs"),
        (3, "proposal", "pin the toolchain"),
        (4, "no_review_date", "it is cold"),
    ]


def test_an_item_pending_for_a_month_moves_up_a_tier_and_more_cited_items_come_first(memory, clock):
    memory.writer.change_policy("p", [PolicyChange(kind="risk", allows="propose")])
    old = record(memory, "old", type="risk")
    clock.pass_days(20)
    cited = record(memory, "leant on", type="risk")
    record(memory, "a fact", evidence=[cited])
    assert [entry.item for entry in pending(memory)] == [cited, old]
    clock.pass_days(15)
    assert [(entry.tier, entry.item) for entry in pending(memory)] == [(2, old), (3, cited)]


def test_an_accepted_proposal_is_asserted_as_a_new_memory(memory):
    memory.writer.change_policy("p", CURATED)
    old = record_decision(memory, "Use Oxigraph", topic="store", type="decision")
    proposal = record_decision(memory, "Use Lucene", topic="store", supersedes=[old])
    before = set(memory.index.triples(memory.reader and "https://jido.ai/projects/p/graphs/long-term-context"))
    receipt = settle(memory, proposal, "accept", reason="measured")
    assert (receipt.status, status_of(memory, receipt.iri)) == ("asserted", "active")
    assert [status_of(memory, item) for item in (old, proposal)] == ["superseded", "superseded"]
    assert before <= set(memory.index.triples("https://jido.ai/projects/p/graphs/long-term-context"))
    assert memory.reader.get_memory("p", receipt.iri)["properties"]["revisionReason"] == ["measured"]
    assert pending(memory) == []


def test_a_settlement_by_an_agent_who_may_only_propose_is_denied(memory):
    memory.writer.change_policy("p", CURATED)
    proposed = record(memory, "tabs", type="convention")
    memory.writer.agent = "zoe"
    for action in ("accept", "reject"):
        with pytest.raises(PolicyDenied, match="zoe may not settle this") as refused:
            settle(memory, proposed, action)
        assert refused.value.hint == "ask a curator: rita"
    assert [entry.item for entry in pending(memory)] == [proposed]


@pytest.mark.parametrize(("action", "expected_status"), [
    ("accept", {"a": "active", "b": "invalidated"}), ("reject", {"a": "invalidated", "b": "active"}),
    ("supersede", {"a": "superseded", "b": "superseded"}),
])  # fmt: skip
def test_two_conflicting_memories_are_settled_in_one_call(memory, action, expected_status):
    a = record_decision(memory, "Use Oxigraph", topic="store")
    b = record_decision(memory, "Use Lucene", topic="store")
    settle(memory, a, action, other=b)
    assert {"a": status_of(memory, a), "b": status_of(memory, b)} == expected_status
    assert pending(memory) == []


def test_two_conflicting_memories_coexist_only_with_distinct_scopes(memory):
    a = record_decision(memory, "Use Oxigraph", topic="store", about=["server"])
    b = record_decision(memory, "Use Lucene", topic="store", about=["search"])
    settle(memory, a, "keep-both", other=b)
    assert status_of(memory, b) == "active"
    assert pending(memory) == []
    first = record(memory, "the port is 80", topic="port")
    second = record(memory, "the port is 81", topic="port")
    assert [(entry.item, entry.other) for entry in pending(memory)] == [(second, first)]
    with pytest.raises(Conflict, match="distinct scope"):
        settle(memory, second, "keep-both")
    settle(memory, second, "supersede")
    assert (status_of(memory, first), pending(memory)) == ("superseded", [])


@pytest.mark.parametrize("action", ["accept", "reject"])
def test_a_memory_based_on_a_withdrawn_one_is_due_until_it_is_settled(memory, clock, action):
    plan = record(memory, "Globex is on Enterprise")
    reworded = memory.writer.revise("p", plan, changes={"summary": "Globex uses Enterprise"}, reason="wording").iri
    decision_iri = record_decision(memory, "a 4 hour SLA", evidence=[plan])
    task = record(memory, "call Globex", type="task", evidence=[reworded], expires_on="2027-06-01")
    record(memory, "Initech is on Enterprise", evidence=["the contract"])
    before = clock()
    clock.pass_days(1)
    assert pending(memory) == []

    receipt = memory.writer.invalidate("p", reworded, reason="another Globex")

    listed = f"{decision_iri} a 4 hour SLA; {task} call Globex"
    warning = f"2 active memories rest on what is withdrawn: {listed}; look at each: jidomem review"
    assert receipt.warnings == (warning,)
    start = warning.removesuffix("jidomem review")
    assert for_requests(receipt.to_dict(), "p")["warnings"] == [f"{start}GET /projects/p/conflicts"]
    assert for_tools(receipt.to_dict())["warnings"] == [f"{start}the tool ask with name stale"]
    assert queue_rows(memory) == [(4, "basis_withdrawn", "a 4 hour SLA"), (4, "basis_withdrawn", "call Globex")]
    rows = memory.reader.ask("stale", project="p", valid_at=clock())
    assert [(row["item"], row["reason"]) for row in rows] == [
        (decision_iri, "basis_withdrawn"),
        (task, "basis_withdrawn"),
    ]
    assert memory.reader.ask("stale", project="p", valid_at=clock(), as_of=before) == []
    assert due_count(memory.reader, "p", clock(), most=100) == 2

    for item in (decision_iri, task):
        settle(memory, item, action)
    assert (pending(memory), memory.reader.ask("stale", project="p", valid_at=clock())) == ([], [])


@pytest.mark.parametrize(
    ("old", "new", "is_warned"),
    [
        ({"summary": "Globex is on Enterprise"}, {"summary": "invoices are sent on Mondays"}, True),
        ({"summary": "Globex is on Enterprise"}, {"summary": "Globex is on Business"}, False),
        ({"summary": "5", "topic": "threads"}, {"summary": "blue", "topic": "door"}, True),
        ({"summary": "five of them", "topic": "Door colour"}, {"summary": "blue", "topic": "door-colour"}, False),
    ],
)
def test_a_successor_on_another_matter_warns_of_dependent_memories(memory, old, new, is_warned):
    plan = memory.writer.submit_intent("p", intent(**old)).iri
    dependent = record_decision(memory, "a 4 hour SLA", evidence=[plan])

    receipt = memory.writer.submit_intent("p", intent(**new, supersedes=[plan], reason="r"))

    start = f"an active memory rests on what is superseded by another matter: {dependent} a 4 hour SLA; look at each: "
    assert receipt.warnings == ((f"{start}jidomem show {dependent}",) if is_warned else ())
    short = dependent.rpartition("/")[2]
    if is_warned:
        assert for_requests(receipt.to_dict(), "p")["warnings"] == [f"{start}GET /projects/p/memories/{short}"]
        assert for_tools(receipt.to_dict())["warnings"] == [f"{start}the tool why with id {short}"]


def test_a_memory_based_on_a_restored_one_is_not_due(memory, clock):
    plan = record(memory, "Globex is on Enterprise")
    record(memory, "call Globex", evidence=[plan])
    withdrawn = memory.writer.invalidate("p", plan, reason="another Globex").iri
    restored = memory.writer.undo("p", withdrawn, reason="it was this one").iri
    assert (pending(memory), memory.reader.ask("stale", project="p", valid_at=clock())) == ([], [])

    memory.writer.invalidate("p", restored, reason="it left")
    assert [entry.kind for entry in pending(memory)] == ["basis_withdrawn"]


@pytest.mark.parametrize(("action", "expected_status"), [("accept", "superseded"), ("reject", "invalidated")])
def test_a_due_memory_is_renewed_or_withdrawn(memory, clock, action, expected_status):
    assumed = record(memory, "it is cold", type="assumption")
    dated = record(memory, "it is warm", expires_on="2026-12-01")
    clock.pass_days(20)
    assert {entry.kind for entry in pending(memory)} == {"review_due", "no_review_date"}
    for item in (assumed, dated):
        settle(memory, item, action)
        assert status_of(memory, item) == expected_status
    assert pending(memory) == []


def test_a_task_is_overdue_until_it_is_finished(memory, clock):
    task = record(memory, "verify signatures", type="task", expires_on="2026-12-01")
    clock.pass_days(20)
    assert [(entry.kind, entry.why) for entry in pending(memory)] == [("overdue", QUESTIONS["overdue"])]
    assert 'overdue: "verify signatures"' in memory.briefing("p").text

    done = memory.writer.correct("p", task, changes={"status": "Completed"})

    assert (done.warnings, pending(memory)) == ((), [])
    assert "verify signatures" not in memory.briefing("p").text
    with pytest.raises(InvalidRequest):
        settle(memory, done.iri, "accept")


@pytest.mark.parametrize(
    ("due", "after", "is_overdue"),
    [
        ("2026-11-22", "2026-11-22T23:59:58Z", False),
        ("2026-11-22T01:00:00+01:00", "2026-11-22T12:00:00Z", False),
        ("2026-11-22", "2026-11-23T00:00:00Z", True),
        ("2026-11-22T07:30:00Z", "2026-11-22T07:29:58Z", False),
        ("2026-11-22T07:30:00Z", "2026-11-22T07:30:00Z", True),
    ],
)
def test_a_task_due_on_a_date_is_overdue_once_that_day_is_over(tmp_path, due, after, is_overdue):
    moments = [datetime(2026, 11, 21, 8, tzinfo=UTC)]
    with jidomem.open(tmp_path / "root", project="p", agent="rita", sources=Sources(lambda: moments[-1])) as memory:
        task = memory.remember("verify signatures", type="task", due=due)
        review = memory.remember("the port is 80", expires_on="2026-11-22")
        moments.append(datetime.fromisoformat(after))

        late = memory.reader.ask("open-tasks", project="p", overdue_only=True)
        stale = {row["item"] for row in memory.reader.ask("stale", project="p")}
        known = memory.remember("sign releases", type="task", due=due).warnings

        assert [row["task"] for row in late] == [task.iri] * is_overdue
        assert stale == {task.iri, review.iri} if is_overdue else {review.iri}
        assert {entry.item for entry in queue(memory.reader, "p", moments[-1])} >= stale
        assert len(queue(memory.reader, "p", moments[-1])) == len(stale) + is_overdue
        assert any("overdue" in warning for warning in known) is is_overdue
        memory.catch_up("p")
        assert due_count(memory.reader, "p", moments[-1], most=9) == len(stale) + is_overdue
        if is_overdue:
            with pytest.raises(InvalidRequest, match="it was due by"):
                memory.writer.confirm("p", task.iri)
        else:
            assert memory.writer.confirm("p", task.iri).status == "asserted"


def test_a_task_keeps_its_deadline_and_needs_a_new_one_when_it_is_over(memory, clock):
    def deadline_of(item):
        return memory.reader.get_memory("p", item)["properties"]["expiresOn"][0].date().isoformat()

    proposed = intent(type="task", summary="rotate keys", expires_on="2026-12-24", asserted_by="bob")
    accepted = settle(memory, memory.writer.submit_intent("p", proposed, propose=True).iri, "accept")
    task = record(memory, "verify signatures", type="task", expires_on="2026-11-30")
    clock.pass_days(10)
    is_late = {"summary": "a late one", "expires_on": "2026-11-30"}
    late = memory.writer.submit_intent("p", proposed | is_late, propose=True).iri
    early = memory.writer.confirm("p", accepted.iri)

    with pytest.raises(InvalidRequest) as refused:
        settle(memory, task, "accept")
    assert refused.value.detail.startswith("it was due by 2026-11-30T")
    assert refused.value.hint == f"give the new date: jidomem edit {task} --confirm --set expires_on=DATE"
    assert [deadline_of(item) for item in (accepted.iri, early.iri, task)] == ["2026-12-24", "2026-12-24", "2026-11-30"]
    waiting = {each.item: each for each in pending(memory)}
    assert {item: each.needs_date for item, each in waiting.items()} == {task: True, late: True}
    assert waiting[late].past_dates == ("it was due by 2026-11-30",)


def test_proposals_in_nearly_the_same_words_are_shown_together_and_not_accepted_together(memory):
    memory.writer.change_policy("p", CURATED)
    fields = {"type": "convention", "about": ["src/checkout.py"], "enforcement_level": "Strict"}
    texts = ("Every change of checkout has a test", "Every change in checkout has a test.")
    one, other = (record(memory, text, **fields) for text in texts)
    record(memory, texts[0], **fields | {"about": ["src/cart.py"]})
    old = record(memory, "Every release has a note", **fields)
    record(memory, "Every release has the note", **fields, supersedes=[old])
    memory.writer.submit_intent("p", intent(summary=texts[0], asserted_by="eve", **fields))
    waiting = {each.item: each for each in pending(memory)}

    near = {item: [each["item"] for each in one.near_proposals] for item, one in waiting.items() if one.near_proposals}
    apart = acceptable(memory.reader, "p", [*waiting.values()])

    assert near[one] == [other]
    assert one in near[other]
    assert {each.summary for each in apart["near"]} == {*texts}
    assert f"nearly the words of the proposal {other[-8:]}: {texts[1]}" in marks(waiting[one])
    assert sorted(each.summary for each in apart[""]) == [texts[0], "Every release has the note"]
    settle(memory, one, "reject")
    assert settle(memory, other, "accept").status == "asserted"


def test_a_line_of_the_review_offers_only_what_needs_no_date(memory, clock):
    task = record(memory, "verify signatures", type="task", expires_on="2026-12-01")
    clock.pass_days(20)
    text = todo(pending(memory), place=" --project p")

    assert "#   reject | skip" in text.splitlines()
    assert [line for line in text.splitlines() if "in a shell" in line] == [
        f"#   in a shell: jidomem edit --project p {task[-8:]} --set status=Completed",
        f"#   in a shell: jidomem edit --project p {task[-8:]} --confirm --set expires_on=DATE",
    ]
    assert parse(text.replace("\nskip", "\nreject"), pending(memory))


@pytest.mark.parametrize("settlement", [
    ("accept", "urn:none"), ("shrug", None), ("supersede", None), ("keep-both", None), ("accept", "settled"),
])  # fmt: skip
def test_an_invalid_settlement_is_refused(memory, settlement):
    memory.writer.change_policy("p", CURATED)
    item = record(memory, "tabs", type="convention")
    action, target = settlement
    if target == "settled":
        settle(memory, item, "reject")
    with pytest.raises(JidomemError) as caught:
        settle(memory, target if target == "urn:none" else item, action)
    assert caught.value.code in ("not_found", "invalid_argument", "conflict")


def test_lines_settled_by_another_curator_are_skipped_and_the_others_kept(memory):
    record_each_kind(memory)
    text = todo(pending(memory)).replace("skip https", "reject https")
    first, second, third, _ = entries = pending(memory)
    settle(memory, first.item, "accept", other=first.other)
    settle(memory, second.item, "reject")
    final_statuses = ("superseded", "invalidated", "rejected")
    final_status_of = lambda item: state if (state := status_of(memory, item)) in final_statuses else None  # noqa: E731

    remaining, settled = without_settled(text, pending(memory), final_status_of)
    lines = parse(remaining, pending(memory))

    numbers = [number for number, line in enumerate(text.splitlines(), start=1) if line.startswith("reject")]
    expected = [*zip(numbers, entries, strict=True)]
    assert [*settled] == numbers[:2]
    assert [(line.number, line.waiting.item) for line in lines] == [
        (number, entry.item) for number, entry in expected[2:]
    ]
    with pytest.raises(InvalidRequest, match=r"line 1: .* is not pending"):
        parse(f"reject {first.item} {first.other}", pending(memory))
    assert [line.reason for line in parse(f"reject {third.item[-8:]} no {third.item[-8:]}", pending(memory))] == [
        f"no {third.item[-8:]}"
    ]


def test_a_review_text_with_an_invalid_line_is_refused_as_a_whole(memory):
    record_each_kind(memory)
    entries = pending(memory)
    text = todo(entries)
    assert parse(text, entries) == []
    lines = text.replace(f"skip {entries[1].item}", f"reject {entries[1].item} spaces it is").splitlines()
    first_line = next(n for n, line in enumerate(lines) if line.startswith("skip"))
    for broken in (
        "shrug " + entries[2].item,
        "accept urn:none",
        "accept",
        f"keep-both {entries[3].item}",
        lines[first_line] + "\n" + lines[first_line],
    ):
        with pytest.raises(InvalidRequest, match=r"line \d+: .*nothing was done"):
            parse("\n".join([*lines, broken]), entries)
    assert pending(memory) == entries or [entry.item for entry in pending(memory)] == [entry.item for entry in entries]
    ((line, outcome),) = apply(memory.writer, "p", parse("\n".join(lines), entries))
    assert (line.action, line.reason) == ("reject", "spaces it is")
    assert memory.reader.get_memory("p", outcome.iri)["properties"]["rationale"] == ["spaces it is"]


def test_a_line_names_a_proposal_or_both_memories_of_a_pair_in_any_order(memory):
    record_each_kind(memory)
    for summary in ("Use SQLite", "Use Redis"):
        record_decision(memory, summary, type="decision", topic="cache")
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    proposal = memory.writer.submit_intent("p", decision(summary="Use a file", topic="store"), propose=True).iri
    entries = pending(memory)
    first = next(entry for entry in entries if entry.kind == "conflict")
    entry = next(entry for entry in entries if entry.item == proposal)
    assert entry.other is not None

    text = f"reject {first.other[-8:]} {first.item[-8:]} we need one\nreject {proposal[-8:]} we keep one per vendor"
    pair, single = parse(text, entries)

    assert (pair.waiting.item, pair.waiting.other, pair.reason) == (first.other, first.item, "we need one")
    assert (single.waiting, single.reason) == (entry, "we keep one per vendor")
    outcomes = [outcome for _, outcome in apply(memory.writer, "p", [pair, single])]
    assert [outcome.status for outcome in outcomes] == ["asserted", "asserted"]
    assert [status_of(memory, item) for item in (first.item, first.other)] == ["active", "invalidated"]
    for line, message in (
        (f"reject {first.item[-8:]} we need one", "is pending with another memory"),
        (f"reject 0badcafe we keep {first.item[-8:]}", "line 1: 0badcafe is not pending"),
        (f"{text}\naccept {first.item} {first.other}", "is in two lines"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            parse(line, entries)


def test_the_refusal_of_one_line_does_not_affect_the_others(memory):
    record_each_kind(memory)
    entries = pending(memory)
    memory.writer.agent = "bob"
    outcomes = apply(memory.writer, "p", parse(todo(entries).replace("\nskip ", "\naccept "), entries))
    assert [getattr(outcome, "code", "settled") for _, outcome in outcomes] == [
        "settled", "policy_denied", "policy_denied", "settled",
    ]  # fmt: skip


def settle_by_rules(memory):
    rules = memory.writer.authority("p")
    outcomes = settle_by_rule(memory.writer, memory.reader, "p", rules, memory.sources.now())
    return [entry.summary for entry, _, outcome in outcomes if not isinstance(outcome, JidomemError)]


def test_a_proposal_restated_by_a_second_agent_is_confirmed_by_rule(memory):
    memory.writer.change_policy(
        "p", [PolicyChange(kind="fact", allows="propose"), PolicyChange(confirms="restated", kind="fact")]
    )
    record(memory, "the port is 80")
    record(memory, "the host is x")
    assert settle_by_rules(memory) == []
    memory.writer.submit_intent("p", intent(summary="The port is  80", asserted_by="eve"))
    assert settle_by_rules(memory) == ["the port is 80"]
    (row,) = memory.reader.ask("facts", project="p")
    properties = memory.reader.get_memory("p", row["fact"])["properties"]
    assert "restated" in properties["revisionReason"][0]
    assert "https://jido.ai/policies/" in properties["revisionReason"][0]
    assert properties["settledBy"] == ["https://jido.ai/agents/memory-writer"]
    assert "verified" not in properties
    assert [entry.summary for entry in pending(memory)] == ["the host is x"]


def test_an_unopposed_proposal_is_confirmed_by_rule_after_its_period(memory, clock):
    memory.writer.change_policy("p", [
        PolicyChange(kind="fact", role="Implementer", allows="propose"), PolicyChange(agent="rita", grants="Curator"),
        PolicyChange(confirms="unopposed", kind="fact", days=14),
    ])  # fmt: skip
    old = record(memory, "the port is 80", topic="port")
    record(memory, "the disk is full")
    record(memory, "the port is 81", topic="port")
    clock.pass_days(13)
    assert settle_by_rules(memory) == []
    clock.pass_days(2)
    assert settle_by_rules(memory) == ["the disk is full"]
    settle(memory, old, "reject")
    assert settle_by_rules(memory) == ["the port is 81"]


def test_no_rule_ends_an_active_memory_or_confirms_an_untrusted_source(memory, clock):
    active_fact = record(memory, "the port is 80")
    memory.writer.change_policy("p", [PolicyChange(allows="propose"), PolicyChange(confirms="unopposed", days=1)])
    record(memory, "the port is 81", supersedes=[active_fact])
    record(memory, "the limit is 100", source_type="ExternalDocumentSource")
    clock.pass_days(40)
    rules = memory.writer.authority("p")
    assert settle_by_rule(memory.writer, memory.reader, "p", rules, memory.sources.now()) == []


def is_trusted(memory, item):
    marks = memory.index.triples(
        "https://jido.ai/projects/p/graphs/long-term-context", iri(item), jido("quarantined"), None
    )
    values = {value for _, _, value in marks}
    assert values <= {'"true"^^<http://www.w3.org/2001/XMLSchema#boolean>'}
    return not values


def test_a_memory_based_on_an_untrusted_source_is_pending_until_a_curator_confirms_it(memory):
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])
    untrusted = record(memory, "the limit is 100", source_type="ExternalDocumentSource")
    dependent = record(memory, "we need a queue", evidence=[untrusted])
    assert memory.reader.ask("facts", project="p") == []
    assert [entry.summary for entry in pending(memory)] == ["the limit is 100", "we need a queue"]
    memory.writer.agent = "bob"
    with pytest.raises(PolicyDenied):
        settle(memory, dependent, "accept")
    memory.writer.agent = "rita"
    accepted = settle(memory, untrusted, "accept").iri
    assert is_trusted(memory, accepted)
    assert status_of(memory, record(memory, "we need two queues", evidence=[accepted])) == "active"


def test_a_queue_of_seven_hundred_items_is_listed_completely(memory):  # more items than one query may name
    assumptions = [intent(type="assumption", summary=f"it holds {number}") for number in range(700)]
    memory.writer.submit_many("p", assumptions)

    assert len(pending(memory)) == 700


def pages(memory, limit):
    results, cursor = [], None
    while True:
        page = queued(memory.reader, "p", memory.sources.now(), limit=limit, cursor=cursor)
        results.append(page.waiting)
        if page.cursor is None:
            return results
        cursor = page.cursor


def record_due_memories(memory, clock):
    """Record memories due for each reason, and others: not yet due, ended, withdrawn, proposed, or dated later."""
    record_each_kind(memory)
    for number in range(3):
        record(memory, f"held until {number}", valid_until=clock.now + timedelta(days=1))
        record(memory, f"looked at by {number}", expires_on=clock.now + timedelta(days=1))
    task = {"type": "task", "expires_on": clock.now + timedelta(days=1)}
    record(memory, "is late", **task)
    record(memory, "is done", **task, status="Completed")
    record(memory, "was dropped", **task, status="Abandoned", valid_until=clock.now + timedelta(days=2))
    record(memory, "both", valid_until=clock.now + timedelta(days=1), expires_on=clock.now + timedelta(days=2))
    record(memory, "over when recorded", valid_until=clock.now, expires_on=clock.now + timedelta(days=1))
    ended = record(memory, "ended", expires_on=clock.now + timedelta(days=1))
    record(memory, "ends it", supersedes=[ended])
    wrong = record(memory, "wrong")
    record(memory, "concluded", evidence=[wrong])
    memory.writer.invalidate("p", wrong, reason="wrong")
    record(memory, "proposed", type="lesson", expires_on=clock.now + timedelta(days=1))
    record(memory, "much later", expires_on=clock.now + timedelta(days=900))
    record(memory, "assumed with a date", type="assumption", expires_on=clock.now + timedelta(days=900))
    record(memory, "not yet", valid_from=clock.now + timedelta(days=800), expires_on=clock.now + timedelta(days=1))
    before = clock()
    clock.pass_days(3)
    return before


def test_pages_equal_the_whole_list_although_items_are_settled_in_between(memory, clock):
    record_due_memories(memory, clock)
    clock.pass_days(40)
    all_entries = pending(memory)

    page_entries = pages(memory, 3)
    assert [len(page) for page in page_entries] == [3] * (len(all_entries) // 3) + (
        [len(all_entries) % 3] if len(all_entries) % 3 else []
    )
    assert [entry for page in page_entries for entry in page] == all_entries
    assert queued(memory.reader, "p", clock(), limit=2).total == len(all_entries)

    first = queued(memory.reader, "p", clock(), limit=2)
    settle(memory, first.waiting[0].item, "accept", other=first.waiting[0].other)
    clock.pass_days(100)
    second = queued(memory.reader, "p", clock(), limit=2, cursor=first.cursor)
    assert [entry.summary for entry in second.waiting] == [entry.summary for entry in all_entries[2:4]]
    assert [entry.days for entry in second.waiting] == [entry.days for entry in all_entries[2:4]]


def test_an_expired_memory_is_settled_by_acceptance_and_renewed_by_a_new_date(memory, clock):
    end_of_validity = clock.now + timedelta(days=1)
    expired, renewed_item = (
        record(memory, "frozen", valid_until=end_of_validity),
        record(memory, "on sale", valid_until=end_of_validity),
    )
    clock.pass_days(3)
    record(memory, "it rained", valid_until=end_of_validity)  # recorded after the end of its validity
    assert [entry.item for entry in pending(memory)] == [expired, renewed_item]
    assert commands(pending(memory)[0])[0] == (f"jidomem review accept {expired[-8:]}", "it ended at its date")

    accepted = settle(memory, expired, "accept").iri
    memory.writer.correct(
        "p", renewed_item, changes={"valid_until": clock.now + timedelta(days=1)}, reason="it goes on"
    )
    assert pending(memory) == []
    assert status_of(memory, accepted) == "expired"
    clock.pass_days(3)
    assert [entry.summary for entry in pending(memory)] == ["on sale"]


def test_the_due_items_equal_the_rows_of_the_query_stale(memory, clock):
    before = record_due_memories(memory, clock)
    stale = memory.reader.ask("stale", project="p", valid_at=clock())
    due_rows = {(row["item"], row["reason"], row["due"]) for row in due(memory.reader, "p", clock())}
    reviewed = {
        (entry.item, entry.kind, entry.summary, entry.why) for entry in pending(memory) if entry.kind in dict(QUESTIONS)
    }

    assert due_rows == {(row["item"], row["reason"], row["due"]) for row in stale}
    assert reviewed == {(row["item"], row["reason"], row["summary"], row["question"]) for row in stale}
    assert [row["reason"] for row in stale if row["summary"] in ("both", "over when recorded")] == ["no_longer_valid"]
    assert sorted({row["reason"] for row in stale}) == [
        "basis_withdrawn", "no_longer_valid", "no_review_date", "overdue", "review_due",
    ]  # fmt: skip
    for moment in (None, before, before - timedelta(seconds=6)):
        items = {row["item"] for row in memory.reader.ask("stale", project="p", valid_at=clock.now, as_of=moment)}
        assert due_count(memory.reader, "p", clock.now, most=100, as_of=moment) == len(items)
    assert due_count(memory.reader, "p", clock(), most=4) == 4


@pytest.mark.parametrize("arguments", [{"limit": 0}, {"limit": True}, {"cursor": "shrug"}, {"limit": 1, "cursor": ""}])
def test_a_page_with_invalid_arguments_is_refused(memory, arguments):
    record_each_kind(memory)
    with pytest.raises(InvalidRequest):
        queued(memory.reader, "p", memory.sources.now(), **arguments)


def test_a_proposal_is_listed_with_a_later_conflicting_active_memory(memory):
    memory.writer.change_policy("p", CURATED)
    proposal = record(memory, "the port is 81", topic="port", type="convention")
    fields = intent(summary="the port is 80", topic="port", type="convention", asserted_by="rita")
    first = memory.writer.submit_intent("p", fields).iri
    (entry,) = pending(memory)
    assert (entry.item, entry.other, entry.actions) == (proposal, first, ("supersede", "keep-both", "reject"))

    other = memory.writer.revise("p", first, changes={"summary": "the port is 79"}, reason="r").iri

    assert [(entry.other, entry.other_summary) for entry in pending(memory)] == [(other, "the port is 79")]
    settle(memory, proposal, "supersede")
    assert (pending(memory), status_of(memory, other)) == ([], "superseded")


def test_each_command_of_an_opposed_proposal_is_accepted(memory):
    record(memory, "the port is 80", topic="port")
    proposal = record(memory, "the port is 81", topic="port")
    (entry,) = pending(memory)

    lines = [line for line, _ in commands(entry, " --project p")]

    assert lines == [f"jidomem review --project p {action} {proposal[-8:]}" for action in ("supersede", "reject")]
    for line in lines:
        assert settle(memory, proposal, line.split()[4], dry_run=True).iri


def test_a_review_names_the_command_that_keeps_both_in_places_of_their_own(memory):
    record_decision(memory, "Use Oxigraph", topic="store", about=["server"])
    record_decision(memory, "Use Lucene", topic="store", about=["server"])
    (entry,) = pending(memory)
    text = todo([entry])

    command = keep_both(entry)

    assert f"#   in a shell: {command}\n" in text
    assert parse(text, [entry]) == []
    assert command.split()[2:] == [
        "keep-both", entry.item[-8:], "--against", entry.other[-8:], "--set", "about=PATH"]  # fmt: skip
    memory.writer.settle("p", entry.item, "keep-both", other=entry.other, changes={"about": ["search"]}, reason="apart")
    assert pending(memory) == []


def test_keep_both_is_offered_only_for_decisions_of_distinct_scopes(memory):
    record_decision(memory, "Use Oxigraph", type="decision", topic="store", status="accepted", about=["server"])
    fields = {"type": "decision", "topic": "store", "status": "accepted"}
    for about in (["search"], []):
        memory.writer.submit_intent("p", decision(summary="Use Lucene", about=about, **fields), propose=True)
    for entry in pending(memory):
        actions = [line.split()[2] for line, _ in commands(entry)]
        assert ("keep-both" in actions) == entry.is_apart
        for action in actions:
            assert settle(memory, entry.item, action, dry_run=True).iri
    assert sorted(entry.is_apart for entry in pending(memory)) == [False, True]
