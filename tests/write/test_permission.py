"""A refused agent learns its role, the rule, and the permitted actions."""

import pytest
from conftest import decision, intent
from writing import GRAPH, open_with, refusal, triples_of, values_of

from jidomem.rdf.terms import date_time, iri
from jidomem.rdf.vocab import BASE, TYPE, jido
from jidomem.records.policy import Policy, PolicyChange
from jidomem.write import permissions
from jidomem.write.snapshot import WriteSnapshot

RULES = "the rules: jidomem access policy show"


def ruled(memory, *changes, agent="ana"):
    memory.writer.agent = agent
    return memory.writer.change_policy("p", changes, reason="as agreed")


def denied(call, *args, **fields):
    """The detail and the hint of the denial."""
    error = refusal(call, *args, **fields)
    assert error.code == "policy_denied"
    return error.detail, error.hint


def test_who_may_not_write_a_kind_is_told_the_rule_and_other_kinds(memory):
    ruled(memory, PolicyChange(kind="decision", allows="deny"), PolicyChange(agent="ada", grants="Architect"))
    before = triples_of(memory)

    by_bob = denied(memory.writer.submit_intent, "p", decision(asserted_by="bob"))
    by_ada = denied(memory.writer.submit_intent, "p", decision(asserted_by="ada"))

    rule = "may not write a architectural_decision: every agent may not write decision"
    assert by_bob[0] == f"bob, an Implementer, {rule}"
    assert by_ada[0] == f"ada, an Architect, {rule}"
    listed, rules = by_bob[1].split("; ")
    kinds = listed.removeprefix("submit it as one of: ").split(", ")
    assert (len(kinds), rules) == (5, RULES)
    assert triples_of(memory) == before
    for kind in kinds:
        assert memory.writer.submit_intent("p", intent(type=kind, summary=kind, asserted_by="bob"), dry_run=True)


@pytest.mark.parametrize(("call", "what"), [
    (lambda writer: writer.start_session("p", "s"), "session"),
    (lambda writer: writer.append("p", "codebase", [("<urn:a>", "<urn:b>", '"c"')]), "description"),
    (lambda writer: writer.submit_intent("p", intent(asserted_by="bob")), "fact"),
], ids=["session", "description", "fact"])  # fmt: skip
def test_who_may_write_nothing_is_sent_to_a_curator(memory, call, what):
    ruled(memory, PolicyChange(allows="deny"))
    memory.writer.agent = "bob"

    rule = f"bob, an Implementer, may not write a {what}: every agent may not write memories"
    assert denied(call, memory.writer) == (rule, f"ask a curator to record it; {RULES}")


def test_what_may_only_be_proposed_says_by_which_rule(memory):
    ruled(memory, PolicyChange(kind="fact", agent="bob", allows="propose"))

    receipt = memory.writer.submit_intent("p", intent(asserted_by="bob"))

    assert values_of(memory, receipt.iri, "proposedBecause") == ['"by policy: bob may only propose fact"']
    other = memory.writer.submit_intent("p", intent(asserted_by="eve", summary="other"))
    assert (other.status, values_of(memory, other.iri, "proposedBecause")) == ("asserted", [])


def test_a_rule_that_comes_or_goes_counts_for_the_next_intent(memory):
    given = [intent(summary=str(n), asserted_by="bob") for n in range(3)]
    assert memory.writer.submit_intent("p", given[0]).status == "asserted"
    ruled(memory, PolicyChange(kind="fact", allows="propose"))
    assert memory.writer.submit_intent("p", given[1]).status == "proposed"
    ruled(memory, PolicyChange(kind="fact", allows="unset"))
    assert memory.writer.submit_intent("p", given[2]).status == "asserted"


@pytest.mark.parametrize("missing", ["asserted_by", "type"])
def test_what_lacks_its_agent_or_its_kind_is_refused_for_that_and_not_by_a_rule(memory, missing):
    ruled(memory, PolicyChange(allows="deny"), PolicyChange(agent="bob", kind="fact", allows="assert"))
    given = {name: value for name, value in intent(asserted_by="bob").items() if name != missing}

    error = refusal(memory.writer.submit_intent, "p", given)

    assert (error.code, [found.field for found in error.violations]) == ("missing_required_fields", [missing])


def test_what_is_ended_counts_by_its_own_kind_place_and_scope(memory):
    writer = memory.writer
    billed = writer.submit_intent("p", intent(summary="billed", about=["src/billing/a.py"])).iri
    everywhere = writer.submit_intent(
        "p", intent(type="convention", summary="Tabs", convention_scope="GlobalScope")
    ).iri
    plain = writer.submit_intent("p", intent(summary="plain")).iri
    ruled(memory, PolicyChange(path="src/billing", allows="propose"), PolicyChange(scope="GlobalScope", allows="deny"))

    assert writer.submit_intent("p", intent(summary="new", supersedes=[billed])).status == "proposed"
    assert writer.invalidate("p", billed, reason="wrong").status == "proposed"
    assert refusal(writer.invalidate, "p", everywhere, reason="wrong").code == "policy_denied"
    assert writer.invalidate("p", plain, reason="wrong").status == "asserted"


def test_a_withdrawal_is_judged_as_what_it_withdraws_and_not_as_a_kind_of_its_own(memory):
    fact = memory.writer.submit_intent("p", intent()).iri
    ruled(memory, PolicyChange(allows="deny"), PolicyChange(kind="fact", allows="assert"))

    assert memory.writer.invalidate("p", fact, reason="wrong").status == "asserted"
    loose = intent(type="deleted_marker", rationale="nothing")
    assert "may not write a deleted_marker" in denied(memory.writer.submit_intent, "p", loose)[0]


def test_who_speaks_by_a_token_speaks_for_itself_unless_it_is_a_curator(memory):
    agent, curator = memory.writer.acting_as("bob", "agent"), memory.writer.acting_as("rita", "curator")

    told = denied(agent.submit_intent, "p", intent(asserted_by="eve"))

    assert told == ("bob may not speak for eve", "leave out `asserted_by`, or give bob")
    assert curator.submit_intent("p", intent(asserted_by="eve")).status == "asserted"
    assert agent.submit_intent("p", intent(summary="mine", asserted_by="bob")).status == "asserted"


def test_a_token_that_leaves_the_role_open_has_the_one_of_the_project_but_for_a_curators(memory):
    ruled(
        memory,
        PolicyChange(agent="ada", grants="Architect"),
        PolicyChange(agent="rita", grants="Curator"),
        PolicyChange(kind="fact", allows="deny"),
        PolicyChange(kind="fact", role="Architect", allows="assert"),
        PolicyChange(kind="fact", role="Curator", allows="assert"),
    )

    def told(agent, role):
        return memory.writer.acting_as(agent, role).submit_intent, "p", intent(asserted_by=agent, summary=agent + role)

    call, *given = told("ada", "agent")
    assert call(*given).status == "asserted"
    call, *given = told("rita", "curator")
    assert call(*given).status == "asserted"
    assert denied(*told("rita", "agent"))[0].startswith("rita, an Implementer, may not write a fact")


def test_who_is_no_administrator_is_told_who_is_and_the_last_one_stays(memory):
    ruled(memory, PolicyChange(agent="ana", grants="Administrator"), PolicyChange(agent="tom", grants="Administrator"))
    change = [PolicyChange(allows="deny")]
    memory.writer.agent = "bob"

    assert denied(memory.writer.change_policy, "p", change) == (
        "bob, an Implementer, may not change the policy", "ask ana, tom",
    )  # fmt: skip
    memory.writer.agent = "ana"
    both = [PolicyChange(agent=name, grants="Curator") for name in ("ana", "tom")]
    assert denied(memory.writer.change_policy, "p", both) == (
        "ana, tom would lose the role, and no administrator is left",
        "appoint another one first: jidomem access policy grant AGENT admin",
    )
    assert memory.writer.change_policy("p", both[:1]).commit


def test_where_tokens_are_given_out_who_has_another_is_sent_to_whoever_gives_them(memory):
    agent, reader = memory.writer.acting_as("bob", "agent"), memory.writer.acting_as("eve", "reader")
    first = memory.writer.submit_intent("p", intent())

    assert denied(agent.change_policy, "p", [PolicyChange(allows="deny")]) == (
        "bob, an Implementer, may not change the policy",
        "ask the operator for a token of the role admin",
    )  # fmt: skip
    for writer, who in ((agent, "bob, an Implementer"), (reader, "eve, a MemoryReader")):
        assert denied(writer.roll_back, "p", first.version.recorded_at, reason="back") == (
            f"{who}, may not roll a memory back", "ask the operator for a token of the role curator",
        )  # fmt: skip


def test_who_only_reads_is_no_curator_where_nobody_is_one_either(tmp_path):
    with open_with(tmp_path, '[agents.eve]\nrole = "MemoryReader"\n', agent="eve") as memory:
        for what, call in (
            ("change the policy", lambda: memory.writer.change_policy("p", [PolicyChange(allows="deny")])),
            ("redact", lambda: memory.writer.check_keeper("p", "eve", "redact")),
        ):
            assert denied(call)[0] == f"eve, a MemoryReader, may not {what}"
        memory.writer.check_keeper("p", "bob", "redact")  # while nobody is one, every agent is


def test_a_session_of_another_is_left_to_it_and_the_way_on_is_told(memory):
    memory.writer.start_session("p", "s", agent="ana")
    ruled(memory, PolicyChange(agent="rita", grants="Curator"))
    before = triples_of(memory)

    assert denied(memory.writer.move_session, "p", "s", agent="bob", status="Paused") == (
        "bob, an Implementer, may not move s, a session of ana",
        "ask ana or a curator, or open one of your own: jidomem agent session start NAME --continues s",
    )
    assert triples_of(memory) == before


def test_a_session_nobody_opened_belongs_to_nobody(memory):
    ruled(memory, PolicyChange(agent="rita", grants="Curator"))

    assert refusal(memory.writer.move_session, "p", "none", agent="bob", status="Paused").code == "not_found"


def test_a_change_of_policy_is_recorded_with_all_it_says_and_nothing_it_does_not(memory):
    rule = PolicyChange(kind="fact", path="src", scope="GlobalScope", agent="bob", role="Architect", allows="propose")
    days = PolicyChange(kind="fact", confirms="unopposed", days=14, allows="assert")
    nodes = [ruled(memory, change).iri for change in (rule, days, PolicyChange(agent="rita", grants="Curator"))]

    told = [
        {(p, o) for _, p, o in memory.index.triples(GRAPH, iri(node)) if not p.startswith(jido("recorded")[:-1])}
        for node in nodes
    ]
    always = {
        (TYPE, jido("PolicyChange")), (jido("partOfProject"), iri(f"{BASE}projects/p")),
        (jido("policyReason"), '"as agreed"'), (jido("setBy"), iri(f"{BASE}agents/ana")),
    }  # fmt: skip
    assert told[0] - always == {
        (jido("forKind"), '"fact"'), (jido("forPath"), '"src"'), (jido("forScope"), '"GlobalScope"'),
        (jido("forAgent"), iri(f"{BASE}agents/bob")), (jido("forRole"), jido("Architect")),
        (jido("allows"), '"propose"'),
    }  # fmt: skip
    assert told[1] - always == {
        (jido("forKind"), '"fact"'), (jido("confirmsBy"), '"unopposed"'), (jido("allows"), '"assert"'),
        (jido("afterDays"), '"14"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    }  # fmt: skip
    assert told[2] - always == {
        (jido("forAgent"), iri(f"{BASE}agents/rita")), (jido("grantsRole"), jido("Curator")),
    }  # fmt: skip
    assert all(always <= each for each in told)
    made = memory.writer.authority("p").active_changes[1:]
    assert [(each.days, each.agent, each.node) for each in made] == [
        (None, f"{BASE}agents/bob", nodes[0]), (14, None, nodes[1]), (None, f"{BASE}agents/rita", nodes[2]),
    ]  # fmt: skip


def test_what_is_not_trusted_says_why_and_a_curator_answers_for_it(memory):
    ruled(memory, PolicyChange(agent="rita", grants="Curator"))

    def told(text, **fields):
        return memory.writer.submit_intent("p", intent(summary=text, **fields))

    page = told("page", source_type="ExternalDocumentSource")
    resting = told("resting", evidence=["a log", page.iri])
    judged = told("judged", evidence=[page.iri], asserted_by="rita")
    waiting = memory.writer.submit_intent(
        "p", intent(summary="later", evidence=[page.iri], asserted_by="rita"), propose=True
    )
    sound = told("sound", evidence=["a log"])

    assert [each.status for each in (page, resting, judged, waiting, sound)] == [
        "proposed", "proposed", "asserted", "proposed", "asserted",
    ]  # fmt: skip
    because = f'"it rests on what is not trusted: {page.iri}"'
    assert values_of(memory, page.iri, "proposedBecause") == [
        '"memories of source type ExternalDocumentSource become active by review"'
    ]
    assert [values_of(memory, each.iri, "proposedBecause") for each in (resting, judged, sound)] == [[because], [], []]
    assert because in values_of(memory, waiting.iri, "proposedBecause")
    assert [bool(values_of(memory, each.iri, "quarantined")) for each in (page, resting, judged, waiting, sound)] == [
        True, True, False, True, False,
    ]  # fmt: skip
    confirmed = [values_of(memory, each.iri, "confirmedBy") for each in (judged, sound)]
    assert confirmed == [[iri(f"{BASE}agents/rita")], []]


def test_a_curator_who_may_only_propose_a_kind_does_not_answer_for_what_is_not_trusted(memory):
    ruled(memory, PolicyChange(agent="rita", grants="Curator"), PolicyChange(kind="fact", allows="propose"))

    given = intent(source_type="ExternalDocumentSource", asserted_by="rita")
    item = memory.writer.submit_intent("p", given).iri

    assert values_of(memory, item, "confirmedBy") == []
    assert values_of(memory, item, "proposedBecause") == ['"by policy: every agent may only propose fact"']
    assert values_of(memory, item, "quarantined")


def test_the_alternatives_of_what_is_not_trusted_are_not_trusted_either(memory):
    given = decision(source_type="ExternalDocumentSource", alternatives=["SQLite", "Redis"])
    item = memory.writer.submit_intent("p", given).iri

    for node in (item, *(f"{item}/alternatives/{n}" for n in (1, 2))):
        assert len(values_of(memory, node, "quarantined")) == 1


def test_a_rule_answers_for_nothing_that_is_not_trusted(memory):
    given = intent(source_type="ExternalDocumentSource", asserted_by="memory-writer")

    receipt = memory.writer.by_rule().submit_intent("p", given)

    assert (receipt.status, values_of(memory, receipt.iri, "confirmedBy")) == ("proposed", [])


def test_who_speaks_for_itself_alone_is_not_told_either_what_another_had_kept_under_its_key(memory):
    given = intent(asserted_by="eve", idempotency_key="k")
    first = memory.writer.submit_intent("p", given)

    assert memory.writer.submit_intent("p", given).iri == first.iri
    assert denied(memory.writer.acting_as("bob", "agent").submit_intent, "p", given)[0] == "bob may not speak for eve"


def test_what_a_rule_does_is_held_to_no_other_rule(memory):
    ruled(memory, PolicyChange(allows="deny"))

    receipt = memory.writer.by_rule().submit_intent("p", intent(asserted_by="memory-writer"))

    assert receipt.status == "asserted"


@pytest.mark.parametrize(
    ("first", "then"),
    [("38.68463Z", "38.684631Z"), ("38Z", "38.5Z"), ("38.9Z", "39Z")],
    ids=["a zero at the end", "a whole second", "the next second"],
)
def test_the_later_of_two_changes_counts_however_an_index_writes_its_moment(first, then):
    ana, rows = f"<{BASE}agents/ana>", []
    for node, role, moment in (("<urn:p:2>", "Curator", first), ("<urn:p:1>", "Implementer", then)):
        rows += [
            (node, TYPE, jido("PolicyChange")), (node, jido("forAgent"), ana), (node, jido("grantsRole"), jido(role)),
            (node, jido("recordedAt"), date_time(f"2026-11-23T04:59:{moment}")),
        ]  # fmt: skip
    view = WriteSnapshot(
        lambda *wanted: [row for row in rows if all(w in (None, v) for w, v in zip(wanted, row, strict=True))]
    )
    assert permissions.authority(view, Policy()).role_of(f"{BASE}agents/ana") == "Implementer"
