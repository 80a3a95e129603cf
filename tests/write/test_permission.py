"""A denial names the role of the agent, the rule, and the permitted actions."""

import pytest
from conftest import decision, intent
from writing import GRAPH, open_with, refusal, triples_of, values_of

from jidomem.rdf.terms import date_time, iri
from jidomem.rdf.vocab import BASE, TYPE, jido
from jidomem.records.policy import Policy, PolicyChange
from jidomem.write import permissions
from jidomem.write.snapshot import WriteSnapshot

RULES = "the rules: jidomem access policy show"


def change_policy(memory, *changes, agent="ana"):
    memory.writer.agent = agent
    return memory.writer.change_policy("p", changes, reason="as agreed")


def denied(call, *args, **fields):
    """Return the detail and the hint of a denial."""
    error = refusal(call, *args, **fields)
    assert error.code == "policy_denied"
    return error.detail, error.hint


def test_a_denied_kind_is_refused_with_the_rule_and_the_permitted_kinds(memory):
    change_policy(memory, PolicyChange(kind="decision", allows="deny"), PolicyChange(agent="ada", grants="Architect"))
    before = triples_of(memory)

    by_bob = denied(memory.writer.submit_intent, "p", decision(asserted_by="bob"))
    by_ada = denied(memory.writer.submit_intent, "p", decision(asserted_by="ada"))

    rule = "may not write a architectural_decision: every agent may not write decision"
    assert by_bob[0] == f"bob, an Implementer, {rule}"
    assert by_ada[0] == f"ada, an Architect, {rule}"
    listed_kinds, hint = by_bob[1].split("; ")
    kinds = listed_kinds.removeprefix("submit it as one of: ").split(", ")
    assert (len(kinds), hint) == (5, RULES)
    assert triples_of(memory) == before
    for kind in kinds:
        assert memory.writer.submit_intent("p", intent(type=kind, summary=kind, asserted_by="bob"), dry_run=True)


@pytest.mark.parametrize(("call", "kind_name"), [
    (lambda writer: writer.start_session("p", "s"), "session"),
    (lambda writer: writer.append("p", "codebase", [("<urn:a>", "<urn:b>", '"c"')]), "description"),
    (lambda writer: writer.submit_intent("p", intent(asserted_by="bob")), "fact"),
], ids=["session", "description", "fact"])  # fmt: skip
def test_an_agent_denied_every_kind_is_referred_to_a_curator(memory, call, kind_name):
    change_policy(memory, PolicyChange(allows="deny"))
    memory.writer.agent = "bob"

    rule = f"bob, an Implementer, may not write a {kind_name}: every agent may not write memories"
    assert denied(call, memory.writer) == (rule, f"ask a curator to record it; {RULES}")


def test_a_proposal_by_policy_records_its_rule(memory):
    change_policy(memory, PolicyChange(kind="fact", agent="bob", allows="propose"))

    receipt = memory.writer.submit_intent("p", intent(asserted_by="bob"))

    assert values_of(memory, receipt.iri, "proposedBecause") == ['"by policy: bob may only propose fact"']
    unaffected = memory.writer.submit_intent("p", intent(asserted_by="eve", summary="other"))
    assert (unaffected.status, values_of(memory, unaffected.iri, "proposedBecause")) == ("asserted", [])


def test_a_policy_change_applies_to_the_next_intent(memory):
    intents = [intent(summary=str(n), asserted_by="bob") for n in range(3)]
    assert memory.writer.submit_intent("p", intents[0]).status == "asserted"
    change_policy(memory, PolicyChange(kind="fact", allows="propose"))
    assert memory.writer.submit_intent("p", intents[1]).status == "proposed"
    change_policy(memory, PolicyChange(kind="fact", allows="unset"))
    assert memory.writer.submit_intent("p", intents[2]).status == "asserted"


@pytest.mark.parametrize("missing", ["asserted_by", "type"])
def test_an_intent_without_agent_or_type_is_refused_as_incomplete_and_not_by_policy(memory, missing):
    change_policy(memory, PolicyChange(allows="deny"), PolicyChange(agent="bob", kind="fact", allows="assert"))
    proposal = {name: value for name, value in intent(asserted_by="bob").items() if name != missing}

    error = refusal(memory.writer.submit_intent, "p", proposal)

    assert (error.code, [violation.field for violation in error.violations]) == ("missing_required_fields", [missing])


def test_a_change_of_a_memory_is_judged_by_the_kind_place_and_scope_of_that_memory(memory):
    writer = memory.writer
    in_place = writer.submit_intent("p", intent(summary="billed", about=["src/billing/a.py"])).iri
    in_scope = writer.submit_intent("p", intent(type="convention", summary="Tabs", convention_scope="GlobalScope")).iri
    unrestricted = writer.submit_intent("p", intent(summary="plain")).iri
    change_policy(
        memory, PolicyChange(path="src/billing", allows="propose"), PolicyChange(scope="GlobalScope", allows="deny")
    )

    assert writer.submit_intent("p", intent(summary="new", supersedes=[in_place])).status == "proposed"
    assert writer.invalidate("p", in_place, reason="wrong").status == "proposed"
    assert refusal(writer.invalidate, "p", in_scope, reason="wrong").code == "policy_denied"
    assert writer.invalidate("p", unrestricted, reason="wrong").status == "asserted"


def test_a_withdrawal_is_judged_by_the_kind_of_the_withdrawn_memory(memory):
    fact = memory.writer.submit_intent("p", intent()).iri
    change_policy(memory, PolicyChange(allows="deny"), PolicyChange(kind="fact", allows="assert"))

    assert memory.writer.invalidate("p", fact, reason="wrong").status == "asserted"
    empty_marker = intent(type="deleted_marker", rationale="nothing")
    assert "may not write a deleted_marker" in denied(memory.writer.submit_intent, "p", empty_marker)[0]


def test_an_authenticated_agent_asserts_only_for_itself_unless_it_is_a_curator(memory):
    agent, curator = memory.writer.acting_as("bob", "agent"), memory.writer.acting_as("rita", "curator")

    denial = denied(agent.submit_intent, "p", intent(asserted_by="eve"))

    assert denial == ("bob may not speak for eve", "leave out `asserted_by`, or give bob")
    assert curator.submit_intent("p", intent(asserted_by="eve")).status == "asserted"
    assert agent.submit_intent("p", intent(summary="mine", asserted_by="bob")).status == "asserted"


def test_a_token_role_agent_takes_the_granted_role_except_curator(memory):
    change_policy(
        memory,
        PolicyChange(agent="ada", grants="Architect"),
        PolicyChange(agent="rita", grants="Curator"),
        PolicyChange(kind="fact", allows="deny"),
        PolicyChange(kind="fact", role="Architect", allows="assert"),
        PolicyChange(kind="fact", role="Curator", allows="assert"),
    )

    def submission(agent, role):
        return memory.writer.acting_as(agent, role).submit_intent, "p", intent(asserted_by=agent, summary=agent + role)

    call, *arguments = submission("ada", "agent")
    assert call(*arguments).status == "asserted"
    call, *arguments = submission("rita", "curator")
    assert call(*arguments).status == "asserted"
    assert denied(*submission("rita", "agent"))[0].startswith("rita, an Implementer, may not write a fact")


def test_a_policy_change_is_denied_to_others_than_administrators_and_the_last_administrator_remains(memory):
    change_policy(
        memory, PolicyChange(agent="ana", grants="Administrator"), PolicyChange(agent="tom", grants="Administrator")
    )
    deny_all = [PolicyChange(allows="deny")]
    memory.writer.agent = "bob"

    assert denied(memory.writer.change_policy, "p", deny_all) == (
        "bob, an Implementer, may not change the policy", "ask ana, tom",
    )  # fmt: skip
    memory.writer.agent = "ana"
    demotions = [PolicyChange(agent=name, grants="Curator") for name in ("ana", "tom")]
    assert denied(memory.writer.change_policy, "p", demotions) == (
        "ana, tom would lose the role, and no administrator is left",
        "appoint another one first: jidomem access policy grant AGENT admin",
    )
    assert memory.writer.change_policy("p", demotions[:1]).commit


def test_a_denied_token_role_is_referred_to_the_operator(memory):
    agent, reader = memory.writer.acting_as("bob", "agent"), memory.writer.acting_as("eve", "reader")
    first = memory.writer.submit_intent("p", intent())

    assert denied(agent.change_policy, "p", [PolicyChange(allows="deny")]) == (
        "bob, an Implementer, may not change the policy",
        "ask the operator for a token of the role admin",
    )  # fmt: skip
    for writer, described in ((agent, "bob, an Implementer"), (reader, "eve, a MemoryReader")):
        assert denied(writer.roll_back, "p", first.version.recorded_at, reason="back") == (
            f"{described}, may not roll a memory back", "ask the operator for a token of the role curator",
        )  # fmt: skip


def test_a_memory_reader_may_not_curate_where_no_curator_is_appointed(tmp_path):
    with open_with(tmp_path, '[agents.eve]\nrole = "MemoryReader"\n', agent="eve") as memory:
        for action, call in (
            ("change the policy", lambda: memory.writer.change_policy("p", [PolicyChange(allows="deny")])),
            ("redact", lambda: memory.writer.check_curator("p", "eve", "redact")),
        ):
            assert denied(call)[0] == f"eve, a MemoryReader, may not {action}"
        memory.writer.check_curator("p", "bob", "redact")  # without an appointed curator, every agent is one


def test_a_move_of_another_agents_session_is_denied_with_the_alternatives(memory):
    memory.writer.start_session("p", "s", agent="ana")
    change_policy(memory, PolicyChange(agent="rita", grants="Curator"))
    before = triples_of(memory)

    assert denied(memory.writer.move_session, "p", "s", agent="bob", status="Paused") == (
        "bob, an Implementer, may not move s, a session of ana",
        "ask ana or a curator, or open one of your own: jidomem agent session start NAME --continues s",
    )
    assert triples_of(memory) == before


def test_a_move_of_an_unknown_session_is_refused(memory):
    change_policy(memory, PolicyChange(agent="rita", grants="Curator"))

    assert refusal(memory.writer.move_session, "p", "none", agent="bob", status="Paused").code == "not_found"


def test_a_policy_change_records_exactly_its_fields(memory):
    rule = PolicyChange(kind="fact", path="src", scope="GlobalScope", agent="bob", role="Architect", allows="propose")
    days = PolicyChange(kind="fact", confirms="unopposed", days=14, allows="assert")
    nodes = [change_policy(memory, change).iri for change in (rule, days, PolicyChange(agent="rita", grants="Curator"))]

    recorded = [
        {(p, o) for _, p, o in memory.index.triples(GRAPH, iri(node)) if not p.startswith(jido("recorded")[:-1])}
        for node in nodes
    ]
    common = {
        (TYPE, jido("PolicyChange")), (jido("partOfProject"), iri(f"{BASE}projects/p")),
        (jido("policyReason"), '"as agreed"'), (jido("setBy"), iri(f"{BASE}agents/ana")),
    }  # fmt: skip
    assert recorded[0] - common == {
        (jido("forKind"), '"fact"'), (jido("forPath"), '"src"'), (jido("forScope"), '"GlobalScope"'),
        (jido("forAgent"), iri(f"{BASE}agents/bob")), (jido("forRole"), jido("Architect")),
        (jido("allows"), '"propose"'),
    }  # fmt: skip
    assert recorded[1] - common == {
        (jido("forKind"), '"fact"'), (jido("confirmsBy"), '"unopposed"'), (jido("allows"), '"assert"'),
        (jido("afterDays"), '"14"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    }  # fmt: skip
    assert recorded[2] - common == {
        (jido("forAgent"), iri(f"{BASE}agents/rita")), (jido("grantsRole"), jido("Curator")),
    }  # fmt: skip
    assert all(common <= properties for properties in recorded)
    active_changes = memory.writer.authority("p").active_changes[1:]
    assert [(properties.days, properties.agent, properties.node) for properties in active_changes] == [
        (None, f"{BASE}agents/bob", nodes[0]), (14, None, nodes[1]), (None, f"{BASE}agents/rita", nodes[2]),
    ]  # fmt: skip


def test_an_untrusted_memory_is_quarantined_with_its_reason_and_confirmed_by_a_curator(memory):
    change_policy(memory, PolicyChange(agent="rita", grants="Curator"))

    def submit(text, **fields):
        return memory.writer.submit_intent("p", intent(summary=text, **fields))

    page = submit("page", source_type="ExternalDocumentSource")
    dependent = submit("resting", evidence=["a log", page.iri])
    reviewed = submit("judged", evidence=[page.iri], asserted_by="rita")
    proposed = memory.writer.submit_intent(
        "p", intent(summary="later", evidence=[page.iri], asserted_by="rita"), propose=True
    )
    trusted = submit("sound", evidence=["a log"])

    assert [each.status for each in (page, dependent, reviewed, proposed, trusted)] == [
        "proposed", "proposed", "asserted", "proposed", "asserted",
    ]  # fmt: skip
    because = f'"it rests on what is not trusted: {page.iri}"'
    assert values_of(memory, page.iri, "proposedBecause") == [
        '"memories of source type ExternalDocumentSource become active by review"'
    ]
    assert [values_of(memory, each.iri, "proposedBecause") for each in (dependent, reviewed, trusted)] == [
        [because],
        [],
        [],
    ]
    assert because in values_of(memory, proposed.iri, "proposedBecause")
    assert [
        bool(values_of(memory, each.iri, "quarantined")) for each in (page, dependent, reviewed, proposed, trusted)
    ] == [
        True,
        True,
        False,
        True,
        False,
    ]
    confirmed = [values_of(memory, each.iri, "confirmedBy") for each in (reviewed, trusted)]
    assert confirmed == [[iri(f"{BASE}agents/rita")], []]


def test_an_untrusted_memory_is_not_confirmed_by_a_curator_who_may_only_propose(memory):
    change_policy(memory, PolicyChange(agent="rita", grants="Curator"), PolicyChange(kind="fact", allows="propose"))

    proposal = intent(source_type="ExternalDocumentSource", asserted_by="rita")
    item = memory.writer.submit_intent("p", proposal).iri

    assert values_of(memory, item, "confirmedBy") == []
    assert values_of(memory, item, "proposedBecause") == ['"by policy: every agent may only propose fact"']
    assert values_of(memory, item, "quarantined")


def test_the_alternatives_of_an_untrusted_memory_are_quarantined(memory):
    proposal = decision(source_type="ExternalDocumentSource", alternatives=["SQLite", "Redis"])
    item = memory.writer.submit_intent("p", proposal).iri

    for node in (item, *(f"{item}/alternatives/{n}" for n in (1, 2))):
        assert len(values_of(memory, node, "quarantined")) == 1


def test_an_untrusted_memory_submitted_by_a_rule_is_proposed(memory):
    proposal = intent(source_type="ExternalDocumentSource", asserted_by="memory-writer")

    receipt = memory.writer.by_rule().submit_intent("p", proposal)

    assert (receipt.status, values_of(memory, receipt.iri, "confirmedBy")) == ("proposed", [])


def test_an_idempotency_key_of_another_agent_reveals_no_receipt(memory):
    proposal = intent(asserted_by="eve", idempotency_key="k")
    first = memory.writer.submit_intent("p", proposal)

    assert memory.writer.submit_intent("p", proposal).iri == first.iri
    assert (
        denied(memory.writer.acting_as("bob", "agent").submit_intent, "p", proposal)[0] == "bob may not speak for eve"
    )


def test_a_submission_by_a_rule_is_exempt_from_policy_rules(memory):
    change_policy(memory, PolicyChange(allows="deny"))

    receipt = memory.writer.by_rule().submit_intent("p", intent(asserted_by="memory-writer"))

    assert receipt.status == "asserted"


@pytest.mark.parametrize(
    ("first", "second"),
    [("38.68463Z", "38.684631Z"), ("38Z", "38.5Z"), ("38.9Z", "39Z")],
    ids=["a zero at the end", "a whole second", "the next second"],
)
def test_the_later_of_two_policy_changes_applies_whatever_the_precision_of_its_moment(first, second):
    ana, rows = f"<{BASE}agents/ana>", []
    for node, role, moment in (("<urn:p:2>", "Curator", first), ("<urn:p:1>", "Implementer", second)):
        rows += [
            (node, TYPE, jido("PolicyChange")), (node, jido("forAgent"), ana), (node, jido("grantsRole"), jido(role)),
            (node, jido("recordedAt"), date_time(f"2026-11-23T04:59:{moment}")),
        ]  # fmt: skip
    snapshot = WriteSnapshot(
        lambda *pattern: [
            row for row in rows if all(wanted in (None, actual) for wanted, actual in zip(pattern, row, strict=True))
        ]
    )
    assert permissions.authority(snapshot, Policy()).role_of(f"{BASE}agents/ana") == "Implementer"
