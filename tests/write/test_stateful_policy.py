"""Under a changing policy and settlements by review, the same invariants hold and no rule is bypassed."""

from conftest import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule
from test_stateful import Memory, abouts, agents, kinds, picks, summaries, topics
from writing import triples_of

from jidomem import JidomemError, Receipt
from jidomem.curation.review_queue import queue, settle_by_rule
from jidomem.curation.review_text import apply, parse, todo
from jidomem.rdf.terms import boolean, iri
from jidomem.rdf.vocab import BASE, family, jido
from jidomem.records.policy import KINDS, UNSET, VERDICTS, PolicyChange

_ACTIONS = ("accept", "reject", "supersede", "keep-both", "skip")
_REFUSALS = ("conflict", "invalid_argument", "shape_violation", "policy_denied")
changes = st.one_of(
    st.builds(
        PolicyChange,
        role=st.sampled_from([None, "Implementer", "Curator"]),
        kind=st.sampled_from([None, "decision", "architectural_decision", "fact", "convention"]),
        path=st.sampled_from([None, "src", "src/a"]),
        allows=st.sampled_from([*VERDICTS, "propose", UNSET, UNSET]),
    ),
    st.builds(PolicyChange, agent=agents, grants=st.sampled_from(["Implementer", "Curator", "Reviewer"])),
    st.builds(PolicyChange, confirms=st.just("restated"), kind=st.sampled_from([None, "fact", "decision"])),
)


class Policed(Memory):
    """A memory under a policy that changes at random, reviewed by any agent."""

    denials = ("policy_denied",)
    explain_an_error = retry = move_a_session = None

    def submit(self, **fields):
        agent, kind = f"{BASE}agents/{fields.get('asserted_by', 'architect')}", fields.get("type", "fact")
        rules = self.memory.writer.authority("p")
        outcome = super().submit(**fields)
        if kind in KINDS and isinstance(outcome, Receipt):
            subject = (
                rules.role_of(agent),
                (kind, family(kind)),
                fields.get("about", ()),
                fields.get("convention_scope"),
            )
            verdict, _ = rules.verdict(agent, *subject)
            assert verdict != "deny"
            assert verdict == "assert" or outcome.status != "asserted"
        return outcome

    @rule(change=changes)
    def set_policy_rule(self, change):
        receipt = self.memory.writer.change_policy("p", [change])
        self.moments.append(receipt.version.recorded_at)

    @precondition(lambda self: self.items)
    @rule(pick=picks, kind=kinds, summary=summaries, topic=topics, about=abouts, agent=agents, source=st.sampled_from(
        [None, "ExternalDocumentSource", "UserSource"]
    ))  # fmt: skip
    def cite_evidence(self, pick, agent, source, kind, summary, topic, about):
        evidence = [self.items[pick % len(self.items)], self.items[pick // 7 % len(self.items)]]
        fields = self.content(kind, f"{summary} {pick}", topic, about)
        self.submit(**fields, asserted_by=agent, source_type=source, evidence=evidence)

    @precondition(lambda self: self.items)
    @rule(data=st.data(), agent=agents)
    def review(self, data, agent):
        writer, reader = self.memory.writer, self.memory.reader
        before, writer.agent = writer.agent, agent
        pending = queue(reader, "p", self.sources.now())
        text = todo(pending)
        for entry in pending[:3]:
            action = data.draw(st.sampled_from([action for action in _ACTIONS if action in (*entry.actions, "skip")]))
            text = text.replace(f"skip {entry.item}", f"{action} {entry.item}", 1)
        for _, outcome in apply(writer, "p", parse(text, pending)):
            self.check_outcome(outcome)
        writer.agent = before

    @precondition(lambda self: self.items)
    @rule()
    def confirm_by_rule(self):
        writer = self.memory.writer
        settlements = settle_by_rule(writer, self.memory.reader, "p", writer.authority("p"), self.sources.now())
        for _, _, outcome in settlements:
            self.check_outcome(outcome)

    def check_outcome(self, outcome):
        if isinstance(outcome, JidomemError):
            assert outcome.code in _REFUSALS, outcome
        else:
            assert outcome.status == "asserted"
            self.track(outcome)

    @precondition(lambda self: self.moments)
    @invariant()
    def memories_on_untrusted_evidence_are_proposed(self):
        rows = {}
        for subject, predicate, value in triples_of(self.memory):
            rows.setdefault(subject, {}).setdefault(predicate, set()).add(value)

        def sources(item, visited):
            """Return the original sources of an item; the walk stops at items that a curator confirmed."""
            properties = rows.get(item, {})
            if item in visited or jido("confirmedBy") in properties:
                return set()
            inherited = (sources(node, visited | {item}) for node in properties.get(jido("derivedFrom"), ()))
            return properties.get(jido("hasSourceType"), set()).union(*inherited)

        for item in map(iri, self.items):
            untrusted = jido("ExternalDocumentSource") in sources(item, set())
            assert (jido("quarantined") in rows[item]) == untrusted, item
            if untrusted:
                assert rows[item][jido("quarantined")] == {boolean(True)}
                assert rows[item][jido("hasAssertionStatus")] == {jido("Proposed")}


TestPoliced = Policed.TestCase  # C016 C118
TestPoliced.settings = settings(
    max_examples=examples(10),
    stateful_step_count=20,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
