"""Policy rules that permit, propose or deny writes: data in the journal that applies to every interface."""

import re

import pytest
from conftest import START, decision, fixed_sources, intent
from hypothesis import given
from hypothesis import strategies as st
from writing import open_with, refusal, triples_of, values_of

import jidomem
from jidomem.errors import Failed, IntentRefused, InvalidRequest, PolicyDenied
from jidomem.exchange import documents
from jidomem.exchange.importer import import_document
from jidomem.journal.journal import Stream
from jidomem.rdf.terms import iri
from jidomem.rdf.vocab import TYPE, jido
from jidomem.read.derived import authority
from jidomem.records.policy import BUILT_IN, PRESETS, UNSET, VERDICTS, AccessPolicy, PolicyChange

BOB, ANA = "https://jido.ai/agents/bob", "https://jido.ai/agents/ana"


def change_policy(memory, *changes, agent="ana"):
    memory.writer.agent = agent
    return memory.writer.change_policy("p", changes, reason="as agreed")


def submit(memory, agent="bob", **fields):
    return memory.writer.submit_intent("p", {**decision(asserted_by=agent, topic="store"), **fields})


@pytest.mark.parametrize(
    ("allows", "status"), [("assert", "asserted"), ("propose", "proposed")], ids=["assert", "propose"]
)
def test_a_rule_determines_the_status_of_a_submission(memory, allows, status):  # C016
    change_policy(memory, PolicyChange(kind="decision", allows=allows))
    receipt = submit(memory)
    assert receipt.status == status
    assert [("Implementer" in warning or "decision" in warning) for warning in receipt.warnings] == [True] * (
        status == "proposed"
    )


def test_a_new_agent_with_a_name_like_a_known_one_causes_a_warning(memory):
    submit(memory, "debugger")
    submit(memory, "worker-1", topic="queue", summary="Use a queue")
    warning = "agent {} wrote nothing here yet; did you mean {!r}?"

    granted = [
        change_policy(memory, PolicyChange(agent=name, grants="Curator"))
        for name in ("debuger", "debugger", "worker-2")
    ]
    assert [each.warnings for each in granted] == [(warning.format("debuger", "debugger"),), (), ()]
    task = intent(type="task", summary="Measure it", assigned_to="debuggr")
    assert memory.writer.submit_intent("p", task).warnings == (warning.format("debuggr", "debugger"),)


def test_a_denied_kind_is_refused_with_a_hint_of_permitted_kinds(memory):  # C016
    change_policy(memory, PolicyChange(kind="decision", allows="deny"))
    before = triples_of(memory)
    error = refusal(submit, memory)
    assert (error.code, "may not write a architectural_decision" in error.detail) == ("policy_denied", True)
    assert "fact" in error.hint
    assert triples_of(memory) == before
    assert submit(memory, type="fact", rationale=None).status == "asserted"


def test_a_proposal_by_policy_is_not_active_and_supersedes_nothing(memory):
    old = submit(memory).iri
    change_policy(memory, PolicyChange(kind="decision", allows="propose"))
    receipt = submit(memory, summary="Use Lucene", supersedes=[old])
    assert receipt.status == "proposed"
    assert [row["decision"] for row in memory.reader.ask("decisions", project="p")] == [old]
    assert values_of(memory, receipt.iri, "proposedBecause")


@pytest.mark.parametrize("ending", [
    lambda memory, item: memory.writer.invalidate("p", item, reason="wrong"),
    lambda memory, item: memory.writer.revise("p", item, changes={"type": "fact"}, reason="wrong"),
    lambda memory, item: memory.writer.submit_intent("p", intent(type="incident", invalidates=[item])),
], ids=["withdrawing", "changing its kind", "an incident"])  # fmt: skip
def test_a_memory_of_a_denied_kind_is_not_ended_by_another_kind(memory, ending):
    item = submit(memory).iri
    change_policy(memory, PolicyChange(kind="architectural_decision", allows="deny"))
    assert refusal(ending, memory, item).code == "policy_denied"


@pytest.mark.parametrize(("about", "status"), [
    (["src/billing/api.py"], "proposed"), (["./src/billing"], "proposed"), (["src/x", "src/billing/a"], "proposed"),
    (["src/ui/../billing"], "proposed"), (["src/billing2"], "asserted"), ([], "asserted"),
])  # fmt: skip
def test_a_path_rule_applies_to_every_place_below_it(memory, about, status):
    change_policy(memory, PolicyChange(path="src/billing", allows="propose"))
    assert submit(memory, about=about).status == status


@pytest.mark.parametrize("path", ["./src/billing/", " src/billing", "src//billing", "src/ui/../billing"])
def test_a_path_rule_is_the_same_in_every_spelling_of_its_path(memory, path):
    change_policy(memory, PolicyChange(path="src/billing", allows="deny"))
    change_policy(memory, PolicyChange(path=path, allows="propose"))
    assert submit(memory, about=["src/billing/api.py"]).status == "proposed"
    change_policy(memory, PolicyChange(path=path, allows="unset"))
    assert submit(memory, about=["src/billing/api.py"], topic="other").status == "asserted"


@pytest.mark.parametrize(("path", "hint"), [
    ("src/billing/**", "name the folder, for all below it: src/billing"), ("*.py", "name a folder"),
    ("src/b?/x", "name the folder, for all below it: src"), (".", "leave out `path`"), (" ", "leave out `path`"),
    ("/", "leave out `path`"), ("/home/ana/src", "src/billing"), ("../other", "src/billing"),
])  # fmt: skip
def test_a_path_rule_that_matches_nothing_is_refused_with_a_hint(memory, path, hint):
    error = refusal(change_policy, memory, PolicyChange(path=path, allows="deny"))
    assert hint in error.hint


@pytest.mark.parametrize("path", ["app/[id]/page.tsx", "Shop.Billing", "https://example.org/?q=a*"])
def test_special_characters_of_a_path_are_matched_literally(memory, path):
    change_policy(memory, PolicyChange(path=path, allows="propose"))
    assert submit(memory, about=[path]).status == "proposed"


def test_a_scope_rule_applies_to_conventions_of_that_scope(memory):
    change_policy(memory, PolicyChange(scope="GlobalScope", allows="propose"))
    fields = {"type": "convention", "summary": "Tabs"}
    assert memory.writer.submit_intent("p", intent(**fields, convention_scope="GlobalScope")).status == "proposed"
    assert memory.writer.submit_intent("p", intent(**fields)).status == "asserted"


def test_the_most_specific_rule_applies_and_of_equals_the_strictest():
    rules = (
        PolicyChange(allows="deny"),
        PolicyChange(kind="decision", allows="propose"),
        PolicyChange(kind="decision", role="Architect", allows="assert"),
        PolicyChange(path="src", allows="propose"),
        PolicyChange(path="src/a", allows="deny"),
        PolicyChange(agent=BOB, allows="assert"),
    )
    policy = AccessPolicy(rules)

    def verdict(agent, role, kind, *paths):
        return policy.verdict(agent, role, (kind, "decision" if "decision" in kind else kind), paths)[0]

    assert verdict(ANA, "Planner", "fact") == "deny"
    assert verdict(ANA, "Planner", "architectural_decision") == "propose"
    assert verdict(ANA, "Architect", "architectural_decision") == "assert"
    assert verdict(ANA, "Architect", "architectural_decision", "src/b") == "propose"
    assert verdict(ANA, "Architect", "architectural_decision", "src/b", "src/a/x") == "deny"
    assert verdict(BOB, "Planner", "fact", "src/a") == "assert"


changes = st.builds(
    PolicyChange,
    agent=st.sampled_from([None, ANA, BOB]),
    role=st.sampled_from([None, "Implementer", "Curator"]),
    kind=st.sampled_from([None, "fact", "decision"]),
    path=st.sampled_from([None, "src", "src/a"]),
    allows=st.sampled_from([*VERDICTS, UNSET]),
)


@given(st.lists(changes, max_size=8), st.permutations(range(8)))
def test_the_active_changes_depend_on_node_order_and_not_on_list_order(drawn, order):
    fields = ("agent", "role", "kind", "path", "allows")
    numbered = [PolicyChange(**{**{f: getattr(c, f) for f in fields}, "node": f"n{i}"})
             for i, c in enumerate(drawn)]  # fmt: skip
    shuffled = [numbered[i] for i in order if i < len(numbered)]
    policy, reordered = AccessPolicy(tuple(numbered)), AccessPolicy(tuple(shuffled))
    assert policy.active_changes == reordered.active_changes
    assert len({change.slot for change in policy.active_changes}) == len(policy.active_changes)
    slots = {change.slot for change in policy.active_changes}
    last_changes = {change.slot: change for change in (*BUILT_IN, *numbered)}
    assert slots == {slot for slot, change in last_changes.items() if change.allows != UNSET}


def test_a_granted_role_applies_from_its_commit_on(memory):
    change_policy(memory, *PRESETS["curated"], PolicyChange(agent="ana", grants="Administrator"))
    assert submit(memory).status == "proposed"
    change_policy(memory, PolicyChange(agent="bob", grants="Curator"))
    assert submit(memory, topic="other").status == "asserted"
    change_policy(memory, PolicyChange(agent="bob", grants="Implementer"))
    assert submit(memory, topic="third").status == "proposed"


@pytest.mark.parametrize("claim", [
    lambda memory: memory.writer.declare("p", [
        (iri(BOB), TYPE, jido("Agent")), (iri(BOB), jido("hasRole"), jido("Curator")),
        (iri(BOB), jido("hasCapability"), jido("CanWriteMemory")),
    ]),
    lambda memory: submit(memory, type="fact", rationale=None, extra_triples=[
        ["urn:own:bob", "rdf:type", "jido:Agent"], ["urn:own:bob", "jido:hasRole", "jido:Curator"],
        ["urn:own:bob", "jido:hasCapability", "jido:CanWriteMemory"],
    ]),
], ids=["declare", "an extra triple"])  # fmt: skip
def test_an_agents_own_statement_of_its_role_grants_nothing(memory, claim):
    change_policy(memory, *PRESETS["curated"])
    claim(memory)
    assert submit(memory).status == "proposed"
    assert submit(memory, agent="urn:own:bob", summary="Use Lucene", topic="other").status == "proposed"


def test_a_curator_appointed_or_dismissed_by_another_process_is_known_at_once(memory, root):
    submit(memory)
    assert not memory.writer.is_curator("p", "bob")

    with jidomem.open(root) as other:
        change_policy(other, PolicyChange(agent="bob", grants="Curator"))
    assert memory.writer.is_curator("p", "bob")

    change_policy(memory, PolicyChange(agent="bob", grants="Implementer"))
    assert not memory.writer.is_curator("p", "bob")


def test_an_agent_name_in_the_configuration_is_normalized(tmp_path):
    (tmp_path / "config.toml").write_text('[agents."The Rita"]\nrole = "Reviewer"\n')
    with jidomem.open(tmp_path, project="p") as memory:
        assert memory.writer.is_curator("p", "the-rita")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('[policy]\npreset = "curated"', "policy = "),
        ("policy = ['curated']", "policy = "),
        ('[conflicts]\ndecision = ["warn"]', "conflicts.decision"),
        ("[agents.ana.role]", "agents.ana.role"),
        ("[agents.ana]\ncapabilities = [[]]", "agents.ana.capabilities"),
        ("[agents.Ana]\n[agents.ana]", "agents.ana is there twice"),
        ('[agents."..."]', "agents...."),
    ],
)
def test_a_malformed_configuration_is_refused_with_its_file_and_key(tmp_path, text, key):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(Failed, match=re.escape(f"{tmp_path / 'config.toml'}: {key}")) as refusal:
        jidomem.open(tmp_path)
    assert (refusal.value.code, bool(refusal.value.hint)) == ("invalid_config", True)


def test_an_agent_of_another_namespace_with_a_curators_name_is_no_curator(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n[agents.rita]\nrole = "Reviewer"\n') as memory:
        assert submit(memory, agent="rita").status == "asserted"
        assert submit(memory, agent="https://e.org/rita", topic="other").status == "proposed"


@pytest.mark.parametrize("node", ["urn:x:rule", "https://jido.ai/policies/1"])
def test_a_policy_change_written_as_triples_is_refused(memory, node):
    rows = [(iri(node), TYPE, jido("PolicyChange")), (iri(node), jido("allows"), '"assert"')]
    for stream in ("system", "codebase"):
        with pytest.raises(IntentRefused):
            memory.writer.append("p", stream, rows)
    with pytest.raises(IntentRefused):
        memory.writer.declare("p", rows)
    with pytest.raises(IntentRefused):
        submit(memory, extra_triples=[[node, "rdf:type", {"@id": jido("PolicyChange")[1:-1]}]])


def test_only_an_administrator_changes_the_policy_and_the_last_one_remains(memory):
    change_policy(memory, PolicyChange(agent="ana", grants="Administrator"))
    with pytest.raises(PolicyDenied, match="bob, an Implementer, may not change the policy"):
        change_policy(memory, PolicyChange(allows="deny"), agent="bob")
    with pytest.raises(PolicyDenied, match="no administrator is left"):
        change_policy(memory, PolicyChange(agent="ana", grants="Curator"))
    change_policy(
        memory, PolicyChange(agent="bob", grants="Administrator"), PolicyChange(agent="ana", grants="Curator")
    )
    assert memory.writer.authority("p").administrators == [BOB]


def test_a_token_role_determines_agent_and_permissions(memory):
    change_policy(memory, *PRESETS["curated"])
    curator = memory.writer.acting_as("rita", "curator")
    agent = memory.writer.acting_as("bob", "agent")
    reader = memory.writer.acting_as("eve", "reader")
    proposal = decision(asserted_by="bob", topic="store")
    assert agent.submit_intent("p", proposal).status == "proposed"
    assert curator.submit_intent("p", {**proposal, "summary": "Use Lucene"}).status == "asserted"
    assert refusal(agent.submit_intent, "p", intent(asserted_by="rita")).code == "policy_denied"
    for call in (
        lambda: reader.remember("p", "anything"),
        lambda: reader.start_session("p", "mine"),
        lambda: reader.append("p", "codebase", [("<urn:a>", "<urn:b>", '"c"')]),
        lambda: agent.change_policy("p", [PolicyChange(allows="assert")]),
        lambda: curator.change_policy("p", [PolicyChange(allows="assert")]),
    ):
        assert refusal(call).code == "policy_denied"
    assert memory.writer.acting_as("root", "admin").change_policy("p", [PolicyChange(allows="assert")]).commit


def test_an_agent_token_does_not_grant_the_curator_role_of_its_name(memory):
    change_policy(memory, *PRESETS["curated"], PolicyChange(agent="bob", grants="Curator"))
    proposal = decision(asserted_by="bob", topic="store")
    assert memory.writer.acting_as("bob", "agent").submit_intent("p", proposal).status == "proposed"
    assert memory.writer.submit_intent("p", {**proposal, "summary": "Use Lucene"}).status == "asserted"


def test_a_policy_change_applies_to_the_next_intent_of_another_process(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as first, jidomem.open(tmp_path / "root") as second:
        submit(first)
        change_policy(second, PolicyChange(kind="decision", allows="deny"))
        assert refusal(submit, first, topic="other").code == "policy_denied"


def test_the_policy_of_the_journal_overrides_that_of_the_configuration(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n[agents.rita]\nrole = "Reviewer"\n') as memory:
        change_policy(
            memory,
            PolicyChange(kind="convention", allows=UNSET),
            PolicyChange(agent="rita", grants="Planner"),
            agent="rita",
        )
        assert memory.writer.submit_intent("p", intent(type="convention", summary="Tabs")).status == "asserted"
        assert submit(memory, agent="rita").status == "proposed"


def test_a_repeated_proposal_of_the_same_agent_is_deduplicated(memory):
    change_policy(memory, PolicyChange(kind="decision", allows="propose"))
    first = submit(memory)
    repeated, of_another_agent = submit(memory), submit(memory, agent="eve")
    assert (repeated.status, repeated.iri) == ("deduplicated", first.iri)
    assert of_another_agent.status == "proposed"


@pytest.mark.parametrize("given", [
    {}, {"allows": "maybe"}, {"allows": "deny", "role": "King"}, {"allows": "deny", "kind": "musing"},
    {"grants": "Curator"}, {"allows": "deny", "grants": "Curator", "agent": "ana"}, {"confirms": "unopposed"},
    {"confirms": "restated", "days": 3}, {"confirms": "unopposed", "days": 0}, {"allows": "deny", "scope": "Here"},
])  # fmt: skip
def test_an_empty_or_unknown_policy_change_is_refused(memory, given):
    with pytest.raises(InvalidRequest):
        change_policy(memory, PolicyChange(**given))
    with pytest.raises(InvalidRequest, match="none twice"):
        change_policy(memory, PolicyChange(allows="deny"), PolicyChange(allows="assert"))


def test_policy_changes_are_queried_as_of_a_moment(memory):
    change_policy(memory, PolicyChange(kind="decision", allows="deny"))
    first = memory.catch_up("p").recorded_at
    change_policy(memory, PolicyChange(kind="decision", allows=UNSET), agent="bob")
    (earlier,) = memory.reader.ask("policy-changes", project="p", as_of=first)
    rows = memory.reader.ask("policy-changes", project="p")
    assert (earlier["allows"], earlier["kind"], earlier["by"], earlier["reason"]) == (
        "deny",
        "decision",
        ANA,
        "as agreed",
    )
    assert [(row["allows"], row["by"]) for row in rows] == [("deny", ANA), (UNSET, BOB)]
    assert START <= earlier["recorded"] < rows[1]["recorded"]
    assert memory.writer.authority("p").rules == BUILT_IN


def test_an_exported_policy_is_not_imported(memory, tmp_path):
    change_policy(memory, PolicyChange(kind="decision", allows="propose"), PolicyChange(agent="bob", grants="Curator"))
    submit(memory, type="fact", rationale=None)
    text = documents.turtle("p", memory.journal.read(Stream("p")), memory.schema.version)
    with jidomem.open(tmp_path / "other", sources=fixed_sources()) as other:
        report = import_document(other.writer, other.schema, "p", "x.ttl", text)
        assert [entry.outcome.status for entry in report.entries] == ["asserted"]
        assert sum("policies/" in note for note in report.notes) == 2
        assert other.writer.authority("p").rules == BUILT_IN
        assert other.writer.authority("p").role_of(BOB) == "Implementer"


@pytest.mark.parametrize("property_value", [
    ("quarantined", {"@value": "false", "@type": "http://www.w3.org/2001/XMLSchema#boolean"}),
    ("confirmedBy", {"@id": ANA}),
    ("proposedBecause", "nothing"),
    ("hasAssertionStatus", {"@id": jido("Asserted")[1:-1]}),
], ids=lambda property_value: property_value[0])  # fmt: skip
def test_trust_properties_are_refused_in_extra_triples_and_declarations(memory, property_value):
    property_name, value = property_value
    page = memory.writer.submit_intent("p", intent(iri="urn:page", source_type="ExternalDocumentSource")).iri
    before = triples_of(memory)
    for subject in (page, "urn:own"):
        with pytest.raises(IntentRefused):
            memory.writer.submit_intent(
                "p", intent(iri="urn:own", summary="mine", extra_triples=[[subject, f"jido:{property_name}", value]])
            )
        with pytest.raises(IntentRefused):
            memory.writer.declare("p", [(iri(subject), jido(property_name), iri(ANA))])
    assert triples_of(memory) == before


def test_a_memory_based_on_untrusted_evidence_is_proposed_however_distant_and_replaces_no_trusted_one(memory):
    item = memory.writer.submit_intent("p", intent(source_type="ExternalDocumentSource")).iri
    for number in range(3):
        item = memory.writer.submit_intent("p", intent(summary=f"step {number}", evidence=["a log", item])).iri
        assert values_of(memory, item, "hasAssertionStatus") == [jido("Proposed")]
    trusted = memory.writer.submit_intent("p", intent(summary="the limit is 10", topic="limit")).iri
    replacement = memory.writer.submit_intent(
        "p", intent(summary="the limit is 99", topic="limit", evidence=[item], supersedes=[trusted])
    )
    assert replacement.status == "proposed"
    assert [row["fact"] for row in memory.reader.ask("facts", project="p")] == [trusted]
    assert refusal(memory.writer.confirm, "p", replacement.iri).code == "policy_denied"


@pytest.mark.parametrize("source", ["a token", "a grant"])
def test_a_memory_reader_writes_nothing_under_an_open_policy(memory, source):
    if source == "a grant":
        change_policy(memory, PolicyChange(agent="eve", grants="MemoryReader"))
    memory.writer.agent = "eve"
    reader = memory.writer.acting_as("eve", "reader") if source == "a token" else memory.writer
    assert memory.writer.authority("p").is_open
    error = refusal(reader.remember, "p", "anything")
    assert (error.code, "eve, a MemoryReader, may not write a fact" in error.detail) == ("policy_denied", True)


def test_the_policy_is_read_as_of_a_moment(memory):
    change_policy(memory, PolicyChange(kind="decision", allows="deny"))
    earlier = memory.catch_up("p").recorded_at
    change_policy(memory, PolicyChange(kind="decision", allows=UNSET))
    policy = memory.settings.policy
    assert [str(rule) for rule in authority(memory.reader, "p", policy, as_of=earlier).rules][1:] == [
        "every agent may not write decision"
    ]
    assert authority(memory.reader, "p", policy).rules == BUILT_IN


def test_a_session_is_moved_by_its_owner_and_by_curators_only(memory):
    memory.writer.start_session("p", "of-ana", agent="ana")
    memory.writer.submit_intent("p", intent(asserted_by="ana", asserted_in="by-the-way"))
    memory.writer.move_session("p", "of-ana", agent="bob", status="Paused")  # no curator is appointed yet
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])

    for name in ("of-ana", "by-the-way"):
        with pytest.raises(PolicyDenied, match=f"bob, .* may not move {name}, a session of ana") as refusal:
            memory.writer.move_session("p", name, agent="bob", status="Closed")
        assert refusal.value.hint.endswith(f"jidomem agent session start NAME --continues {name}")
        memory.writer.move_session("p", name, agent="ana", phase="review")
        memory.writer.move_session("p", name, agent="rita", status="Closed")

    assert memory.reader.ask("active-sessions", project="p") == []


OVERLAY = """@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
my:%s a owl:Class ; rdfs:subClassOf jido:%s .
"""


@pytest.mark.parametrize(("superclass", "kind", "denied_kind"), [
    ("Decision", "fact", "decision"), ("ArchitecturalDecision", "decision", "architectural_decision"),
    ("Convention", "lesson_learned", "convention"),
])  # fmt: skip
def test_a_denied_kind_is_denied_through_an_overlay_subclass(tmp_path, superclass, kind, denied_kind):
    (tmp_path / "root" / "ontology").mkdir(parents=True)
    (tmp_path / "root" / "ontology" / "my.ttl").write_text(OVERLAY % ("Choice", superclass))
    overlay_type = [["rdf:type", "https://my.example/kitchen#Choice"]]
    with open_with(tmp_path) as memory:
        change_policy(memory, PolicyChange(kind=denied_kind, allows="deny"))
        error = refusal(submit, memory, type=kind, extra_triples=overlay_type)
        assert f"set type to {denied_kind!r}" in error.detail
        assert refusal(submit, memory, type=denied_kind, extra_triples=overlay_type).code == "policy_denied"


@pytest.mark.parametrize(("name", "superclass", "kind"), [
    ("Fact", "Decision", "decision"), ("Risk", "Decision", "decision"), ("Bug", "Decision", "decision"),
    ("Plan", "Decision", "decision"), ("Task", "Fact", "fact"),
])  # fmt: skip
def test_a_rule_for_a_shipped_kind_does_not_apply_to_an_overlay_class_of_its_name(tmp_path, name, superclass, kind):
    (tmp_path / "root" / "ontology").mkdir(parents=True)
    (tmp_path / "root" / "ontology" / "my.ttl").write_text(OVERLAY % (name, superclass))
    overlay_type = [["rdf:type", f"https://my.example/kitchen#{name}"]]
    with open_with(tmp_path) as memory:
        item = submit(memory, type=kind, extra_triples=overlay_type).iri
        memory_row = memory.reader.get_memory("p", item)
        assert (memory_row["type"], memory_row["class"]) == (kind, superclass)
        change_policy(memory, PolicyChange(kind=name.lower(), allows="deny"))
        revised = memory.writer.revise("p", item, changes={"summary": "again"}, reason="r").iri
        change_policy(memory, PolicyChange(kind=name.lower(), allows="unset"), PolicyChange(kind=kind, allows="deny"))
        assert refusal(memory.writer.invalidate, "p", revised, reason="wrong").code == "policy_denied"
