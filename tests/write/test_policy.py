"""Policies of asserting, proposing or neither: rules are data in the journal, and apply to every interface."""

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


def ruled(memory, *changes, agent="ana"):
    memory.writer.agent = agent
    return memory.writer.change_policy("p", changes, reason="as agreed")


def say(memory, agent="bob", **fields):
    return memory.writer.submit_intent("p", {**decision(asserted_by=agent, topic="store"), **fields})


@pytest.mark.parametrize(
    ("allows", "status"), [("assert", "asserted"), ("propose", "proposed")], ids=["assert", "propose"]
)
def test_a_rule_says_what_becomes_of_what_an_agent_submits(memory, allows, status):  # C016
    ruled(memory, PolicyChange(kind="decision", allows=allows))
    receipt = say(memory)
    assert receipt.status == status
    assert [("Implementer" in w or "decision" in w) for w in receipt.warnings] == [True] * (status == "proposed")


def test_a_new_agent_that_is_spelled_like_a_known_one_is_named_with_it(memory):
    say(memory, "debugger")
    say(memory, "worker-1", topic="queue", summary="Use a queue")
    warning = "agent {} wrote nothing here yet; did you mean {!r}?"

    granted = [
        ruled(memory, PolicyChange(agent=name, grants="Curator")) for name in ("debuger", "debugger", "worker-2")
    ]
    assert [each.warnings for each in granted] == [(warning.format("debuger", "debugger"),), (), ()]
    task = intent(type="task", summary="Measure it", assigned_to="debuggr")
    assert memory.writer.submit_intent("p", task).warnings == (warning.format("debuggr", "debugger"),)


def test_who_may_not_write_a_kind_is_told_what_it_may_write(memory):  # C016
    ruled(memory, PolicyChange(kind="decision", allows="deny"))
    before = triples_of(memory)
    error = refusal(say, memory)
    assert (error.code, "may not write a architectural_decision" in error.detail) == ("policy_denied", True)
    assert "fact" in error.hint
    assert triples_of(memory) == before
    assert say(memory, type="fact", rationale=None).status == "asserted"


def test_a_proposal_by_policy_ends_nothing_and_is_not_active(memory):
    old = say(memory).iri
    ruled(memory, PolicyChange(kind="decision", allows="propose"))
    receipt = say(memory, summary="Use Lucene", supersedes=[old])
    assert receipt.status == "proposed"
    assert [row["decision"] for row in memory.reader.ask("decisions", project="p")] == [old]
    assert values_of(memory, receipt.iri, "proposedBecause")


@pytest.mark.parametrize("ending", [
    lambda memory, item: memory.writer.invalidate("p", item, reason="wrong"),
    lambda memory, item: memory.writer.revise("p", item, changes={"type": "fact"}, reason="wrong"),
    lambda memory, item: memory.writer.submit_intent("p", intent(type="incident", invalidates=[item])),
], ids=["withdrawing", "changing its kind", "an incident"])  # fmt: skip
def test_what_may_not_be_written_may_not_be_ended_by_another_kind_either(memory, ending):
    item = say(memory).iri
    ruled(memory, PolicyChange(kind="architectural_decision", allows="deny"))
    assert refusal(ending, memory, item).code == "policy_denied"


@pytest.mark.parametrize(("about", "status"), [
    (["src/billing/api.py"], "proposed"), (["./src/billing"], "proposed"), (["src/x", "src/billing/a"], "proposed"),
    (["src/ui/../billing"], "proposed"), (["src/billing2"], "asserted"), ([], "asserted"),
])  # fmt: skip
def test_a_rule_for_a_place_holds_below_it_whatever_else_is_named(memory, about, status):
    ruled(memory, PolicyChange(path="src/billing", allows="propose"))
    assert say(memory, about=about).status == status


@pytest.mark.parametrize("path", ["./src/billing/", " src/billing", "src//billing", "src/ui/../billing"])
def test_a_place_is_the_same_however_it_is_written_in_a_rule(memory, path):
    ruled(memory, PolicyChange(path="src/billing", allows="deny"))
    ruled(memory, PolicyChange(path=path, allows="propose"))
    assert say(memory, about=["src/billing/api.py"]).status == "proposed"
    ruled(memory, PolicyChange(path=path, allows="unset"))
    assert say(memory, about=["src/billing/api.py"], topic="other").status == "asserted"


@pytest.mark.parametrize(("path", "hint"), [
    ("src/billing/**", "name the folder, for all below it: src/billing"), ("*.py", "name a folder"),
    ("src/b?/x", "name the folder, for all below it: src"), (".", "leave out `path`"), (" ", "leave out `path`"),
    ("/", "leave out `path`"), ("/home/ana/src", "src/billing"), ("../other", "src/billing"),
])  # fmt: skip
def test_a_rule_for_a_place_below_which_nothing_lies_is_refused_and_not_kept_to_no_end(memory, path, hint):
    error = refusal(ruled, memory, PolicyChange(path=path, allows="deny"))
    assert hint in error.hint


@pytest.mark.parametrize("path", ["app/[id]/page.tsx", "Shop.Billing", "https://example.org/?q=a*"])
def test_signs_that_a_name_may_hold_are_a_name_in_a_rule(memory, path):
    ruled(memory, PolicyChange(path=path, allows="propose"))
    assert say(memory, about=[path]).status == "proposed"


def test_a_rule_for_a_scope_holds_for_conventions_of_that_scope(memory):
    ruled(memory, PolicyChange(scope="GlobalScope", allows="propose"))
    fields = {"type": "convention", "summary": "Tabs"}
    assert memory.writer.submit_intent("p", intent(**fields, convention_scope="GlobalScope")).status == "proposed"
    assert memory.writer.submit_intent("p", intent(**fields)).status == "asserted"


def test_the_closest_rule_counts_and_of_equals_the_strictest():
    rules = (
        PolicyChange(allows="deny"),
        PolicyChange(kind="decision", allows="propose"),
        PolicyChange(kind="decision", role="Architect", allows="assert"),
        PolicyChange(path="src", allows="propose"),
        PolicyChange(path="src/a", allows="deny"),
        PolicyChange(agent=BOB, allows="assert"),
    )
    given = AccessPolicy(rules)

    def verdict(agent, role, kind, *places):
        return given.verdict(agent, role, (kind, "decision" if "decision" in kind else kind), places)[0]

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
def test_the_active_changes_depend_on_the_time_of_each_and_not_on_their_order(made, order):
    named = ("agent", "role", "kind", "path", "allows")
    dated = [PolicyChange(**{**{f: getattr(c, f) for f in named}, "node": f"n{i}"})
             for i, c in enumerate(made)]  # fmt: skip
    shuffled = [dated[i] for i in order if i < len(dated)]
    one, other = AccessPolicy(tuple(dated)), AccessPolicy(tuple(shuffled))
    assert one.active_changes == other.active_changes
    assert len({change.slot for change in one.active_changes}) == len(one.active_changes)
    taken = {change.slot for change in one.active_changes}
    last = {change.slot: change for change in (*BUILT_IN, *dated)}
    assert taken == {slot for slot, change in last.items() if change.allows != UNSET}


def test_a_role_is_granted_in_the_journal_and_counts_from_then_on(memory):
    ruled(memory, *PRESETS["curated"], PolicyChange(agent="ana", grants="Administrator"))
    assert say(memory).status == "proposed"
    ruled(memory, PolicyChange(agent="bob", grants="Curator"))
    assert say(memory, topic="other").status == "asserted"
    ruled(memory, PolicyChange(agent="bob", grants="Implementer"))
    assert say(memory, topic="third").status == "proposed"


@pytest.mark.parametrize("raising", [
    lambda memory: memory.writer.declare("p", [
        (iri(BOB), TYPE, jido("Agent")), (iri(BOB), jido("hasRole"), jido("Curator")),
        (iri(BOB), jido("hasCapability"), jido("CanWriteMemory")),
    ]),
    lambda memory: say(memory, type="fact", rationale=None, extra_triples=[
        ["urn:own:bob", "rdf:type", "jido:Agent"], ["urn:own:bob", "jido:hasRole", "jido:Curator"],
        ["urn:own:bob", "jido:hasCapability", "jido:CanWriteMemory"],
    ]),
], ids=["declare", "an extra triple"])  # fmt: skip
def test_what_an_agent_says_of_its_own_role_grants_nothing(memory, raising):
    ruled(memory, *PRESETS["curated"])
    raising(memory)
    assert say(memory).status == "proposed"
    assert say(memory, agent="urn:own:bob", summary="Use Lucene", topic="other").status == "proposed"


def test_who_judges_is_known_as_soon_as_anybody_says_so(memory, root):
    say(memory)
    assert not memory.writer.is_curator("p", "bob")

    with jidomem.open(root) as another:
        ruled(another, PolicyChange(agent="bob", grants="Curator"))
    assert memory.writer.is_curator("p", "bob")

    ruled(memory, PolicyChange(agent="bob", grants="Implementer"))
    assert not memory.writer.is_curator("p", "bob")


def test_a_name_in_the_configuration_is_that_of_the_agent_however_it_is_written(tmp_path):
    (tmp_path / "config.toml").write_text('[agents."The Rita"]\nrole = "Reviewer"\n')
    with jidomem.open(tmp_path, project="p") as memory:
        assert memory.writer.is_curator("p", "the-rita")


@pytest.mark.parametrize(
    ("text", "said"),
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
def test_a_configuration_of_another_form_is_refused_by_file_and_key(tmp_path, text, said):
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(Failed, match=re.escape(f"{tmp_path / 'config.toml'}: {said}")) as refusal:
        jidomem.open(tmp_path)
    assert (refusal.value.code, bool(refusal.value.hint)) == ("invalid_config", True)


def test_an_agent_elsewhere_with_the_name_of_a_curator_is_none(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n[agents.rita]\nrole = "Reviewer"\n') as memory:
        assert say(memory, agent="rita").status == "asserted"
        assert say(memory, agent="https://e.org/rita", topic="other").status == "proposed"


@pytest.mark.parametrize("node", ["urn:x:rule", "https://jido.ai/policies/1"])
def test_a_rule_is_made_by_its_own_verb_alone(memory, node):
    rows = [(iri(node), TYPE, jido("PolicyChange")), (iri(node), jido("allows"), '"assert"')]
    for stream in ("system", "codebase"):
        with pytest.raises(IntentRefused):
            memory.writer.append("p", stream, rows)
    with pytest.raises(IntentRefused):
        memory.writer.declare("p", rows)
    with pytest.raises(IntentRefused):
        say(memory, extra_triples=[[node, "rdf:type", {"@id": jido("PolicyChange")[1:-1]}]])


def test_once_there_is_an_administrator_nobody_else_changes_the_policy_and_the_last_one_stays(memory):
    ruled(memory, PolicyChange(agent="ana", grants="Administrator"))
    with pytest.raises(PolicyDenied, match="bob, an Implementer, may not change the policy"):
        ruled(memory, PolicyChange(allows="deny"), agent="bob")
    with pytest.raises(PolicyDenied, match="no administrator is left"):
        ruled(memory, PolicyChange(agent="ana", grants="Curator"))
    ruled(memory, PolicyChange(agent="bob", grants="Administrator"), PolicyChange(agent="ana", grants="Curator"))
    assert memory.writer.authority("p").administrators == [BOB]


def test_a_token_says_who_speaks_and_in_which_role(memory):
    ruled(memory, *PRESETS["curated"])
    curator = memory.writer.acting_as("rita", "curator")
    agent = memory.writer.acting_as("bob", "agent")
    reader = memory.writer.acting_as("eve", "reader")
    given = decision(asserted_by="bob", topic="store")
    assert agent.submit_intent("p", given).status == "proposed"
    assert curator.submit_intent("p", {**given, "summary": "Use Lucene"}).status == "asserted"
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


def test_an_agents_token_does_not_make_it_the_curator_its_name_is(memory):
    ruled(memory, *PRESETS["curated"], PolicyChange(agent="bob", grants="Curator"))
    given = decision(asserted_by="bob", topic="store")
    assert memory.writer.acting_as("bob", "agent").submit_intent("p", given).status == "proposed"
    assert memory.writer.submit_intent("p", {**given, "summary": "Use Lucene"}).status == "asserted"


def test_a_policy_binds_the_next_intent_of_the_same_batch_of_processes(tmp_path):
    with jidomem.open(tmp_path / "root", sources=fixed_sources()) as one, jidomem.open(tmp_path / "root") as other:
        say(one)
        ruled(other, PolicyChange(kind="decision", allows="deny"))
        assert refusal(say, one, topic="other").code == "policy_denied"


def test_what_the_journal_says_takes_the_place_of_what_the_root_brings(tmp_path):
    with open_with(tmp_path, 'policy = "curated"\n[agents.rita]\nrole = "Reviewer"\n') as memory:
        ruled(
            memory,
            PolicyChange(kind="convention", allows=UNSET),
            PolicyChange(agent="rita", grants="Planner"),
            agent="rita",
        )
        assert memory.writer.submit_intent("p", intent(type="convention", summary="Tabs")).status == "asserted"
        assert say(memory, agent="rita").status == "proposed"


def test_the_same_proposal_of_the_same_agent_waits_once(memory):
    ruled(memory, PolicyChange(kind="decision", allows="propose"))
    first = say(memory)
    again, others = say(memory), say(memory, agent="eve")
    assert (again.status, again.iri) == ("deduplicated", first.iri)
    assert others.status == "proposed"


@pytest.mark.parametrize("given", [
    {}, {"allows": "maybe"}, {"allows": "deny", "role": "King"}, {"allows": "deny", "kind": "musing"},
    {"grants": "Curator"}, {"allows": "deny", "grants": "Curator", "agent": "ana"}, {"confirms": "unopposed"},
    {"confirms": "restated", "days": 3}, {"confirms": "unopposed", "days": 0}, {"allows": "deny", "scope": "Here"},
])  # fmt: skip
def test_a_change_that_says_nothing_or_something_unknown_is_refused(memory, given):
    with pytest.raises(InvalidRequest):
        ruled(memory, PolicyChange(**given))
    with pytest.raises(InvalidRequest, match="none twice"):
        ruled(memory, PolicyChange(allows="deny"), PolicyChange(allows="assert"))


def test_who_was_allowed_what_when_can_be_asked(memory):
    ruled(memory, PolicyChange(kind="decision", allows="deny"))
    first = memory.catch_up("p").recorded_at
    ruled(memory, PolicyChange(kind="decision", allows=UNSET), agent="bob")
    (then,) = memory.reader.ask("policy-changes", project="p", as_of=first)
    now = memory.reader.ask("policy-changes", project="p")
    assert (then["allows"], then["kind"], then["by"], then["reason"]) == ("deny", "decision", ANA, "as agreed")
    assert [(row["allows"], row["by"]) for row in now] == [("deny", ANA), (UNSET, BOB)]
    assert START <= then["recorded"] < now[1]["recorded"]
    assert memory.writer.authority("p").rules == BUILT_IN


def test_what_is_exported_with_its_policy_is_imported_without_it(memory, tmp_path):
    ruled(memory, PolicyChange(kind="decision", allows="propose"), PolicyChange(agent="bob", grants="Curator"))
    say(memory, type="fact", rationale=None)
    text = documents.turtle("p", memory.journal.read(Stream("p")), memory.schema.version)
    with jidomem.open(tmp_path / "other", sources=fixed_sources()) as other:
        report = import_document(other.writer, other.schema, "p", "x.ttl", text)
        assert [entry.outcome.status for entry in report.entries] == ["asserted"]
        assert sum("policies/" in note for note in report.notes) == 2
        assert other.writer.authority("p").rules == BUILT_IN
        assert other.writer.authority("p").role_of(BOB) == "Implementer"


@pytest.mark.parametrize("said", [
    ("quarantined", {"@value": "false", "@type": "http://www.w3.org/2001/XMLSchema#boolean"}),
    ("confirmedBy", {"@id": ANA}),
    ("proposedBecause", "nothing"),
    ("hasAssertionStatus", {"@id": jido("Asserted")[1:-1]}),
], ids=lambda said: said[0])  # fmt: skip
def test_whether_a_memory_is_trusted_is_said_by_the_writer_alone(memory, said):
    name, value = said
    page = memory.writer.submit_intent("p", intent(iri="urn:page", source_type="ExternalDocumentSource")).iri
    before = triples_of(memory)
    for subject in (page, "urn:own"):
        with pytest.raises(IntentRefused):
            memory.writer.submit_intent(
                "p", intent(iri="urn:own", summary="mine", extra_triples=[[subject, f"jido:{name}", value]])
            )
        with pytest.raises(IntentRefused):
            memory.writer.declare("p", [(iri(subject), jido(name), iri(ANA))])
    assert triples_of(memory) == before


def test_what_rests_on_the_untrusted_three_steps_away_waits_and_so_does_what_would_replace_the_trusted_by_it(memory):
    page = memory.writer.submit_intent("p", intent(source_type="ExternalDocumentSource")).iri
    for number in range(3):
        page = memory.writer.submit_intent("p", intent(summary=f"step {number}", evidence=["a log", page])).iri
        assert values_of(memory, page, "hasAssertionStatus") == [jido("Proposed")]
    sound = memory.writer.submit_intent("p", intent(summary="the limit is 10", topic="limit")).iri
    worse = memory.writer.submit_intent(
        "p", intent(summary="the limit is 99", topic="limit", evidence=[page], supersedes=[sound])
    )
    assert worse.status == "proposed"
    assert [row["fact"] for row in memory.reader.ask("facts", project="p")] == [sound]
    assert refusal(memory.writer.confirm, "p", worse.iri).code == "policy_denied"


@pytest.mark.parametrize("named", ["a token", "a grant"])
def test_who_only_reads_writes_nothing_where_there_are_no_rules_either(memory, named):
    if named == "a grant":
        ruled(memory, PolicyChange(agent="eve", grants="MemoryReader"))
    memory.writer.agent = "eve"
    reader = memory.writer.acting_as("eve", "reader") if named == "a token" else memory.writer
    assert memory.writer.authority("p").is_open
    error = refusal(reader.remember, "p", "anything")
    assert (error.code, "eve, a MemoryReader, may not write a fact" in error.detail) == ("policy_denied", True)


def test_the_policy_as_of_a_moment_is_the_one_of_then(memory):
    ruled(memory, PolicyChange(kind="decision", allows="deny"))
    then = memory.catch_up("p").recorded_at
    ruled(memory, PolicyChange(kind="decision", allows=UNSET))
    policy = memory.settings.policy
    assert [str(rule) for rule in authority(memory.reader, "p", policy, as_of=then).rules][1:] == [
        "every agent may not write decision"
    ]
    assert authority(memory.reader, "p", policy).rules == BUILT_IN


def test_a_session_is_moved_by_who_opened_it_and_by_curators(memory):
    memory.writer.start_session("p", "of-ana", agent="ana")
    memory.writer.submit_intent("p", intent(asserted_by="ana", asserted_in="by-the-way"))
    memory.writer.move_session("p", "of-ana", agent="bob", status="Paused")  # nobody says who is a curator yet
    memory.writer.change_policy("p", [PolicyChange(agent="rita", grants="Curator")])

    for name in ("of-ana", "by-the-way"):
        with pytest.raises(PolicyDenied, match=f"bob, .* may not move {name}, a session of ana") as refusal:
            memory.writer.move_session("p", name, agent="bob", status="Closed")
        assert refusal.value.hint.endswith(f"jidomem agent session start NAME --continues {name}")
        memory.writer.move_session("p", name, agent="ana", phase="review")
        memory.writer.move_session("p", name, agent="rita", status="Closed")

    assert memory.reader.ask("active-sessions", project="p") == []


OWN = """@prefix jido: <https://jido.ai/ontology#> .
@prefix my: <https://my.example/kitchen#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
my:%s a owl:Class ; rdfs:subClassOf jido:%s .
"""


@pytest.mark.parametrize(("below", "kind", "wanted"), [
    ("Decision", "fact", "decision"), ("ArchitecturalDecision", "decision", "architectural_decision"),
    ("Convention", "lesson_learned", "convention"),
])  # fmt: skip
def test_what_may_not_be_written_may_not_be_said_by_a_class_of_ones_own_below_it_either(tmp_path, below, kind, wanted):
    (tmp_path / "root" / "ontology").mkdir(parents=True)
    (tmp_path / "root" / "ontology" / "my.ttl").write_text(OWN % ("Choice", below))
    mine = [["rdf:type", "https://my.example/kitchen#Choice"]]
    with open_with(tmp_path) as memory:
        ruled(memory, PolicyChange(kind=wanted, allows="deny"))
        error = refusal(say, memory, type=kind, extra_triples=mine)
        assert f"set type to {wanted!r}" in error.detail
        assert refusal(say, memory, type=wanted, extra_triples=mine).code == "policy_denied"


@pytest.mark.parametrize(("name", "below", "kind"), [
    ("Fact", "Decision", "decision"), ("Risk", "Decision", "decision"), ("Bug", "Decision", "decision"),
    ("Plan", "Decision", "decision"), ("Task", "Fact", "fact"),
])  # fmt: skip
def test_a_class_of_ones_own_has_not_the_rules_of_the_shipped_one_of_its_name(tmp_path, name, below, kind):
    (tmp_path / "root" / "ontology").mkdir(parents=True)
    (tmp_path / "root" / "ontology" / "my.ttl").write_text(OWN % (name, below))
    mine = [["rdf:type", f"https://my.example/kitchen#{name}"]]
    with open_with(tmp_path) as memory:
        said = say(memory, type=kind, extra_triples=mine).iri
        found = memory.reader.get_memory("p", said)
        assert (found["type"], found["class"]) == (kind, below)
        ruled(memory, PolicyChange(kind=name.lower(), allows="deny"))
        again = memory.writer.revise("p", said, changes={"summary": "again"}, reason="r").iri
        ruled(memory, PolicyChange(kind=name.lower(), allows="unset"), PolicyChange(kind=kind, allows="deny"))
        assert refusal(memory.writer.invalidate, "p", again, reason="wrong").code == "policy_denied"
